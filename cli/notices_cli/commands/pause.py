"""`notices pause` and `notices resume`: stop sending, and start it again."""

from __future__ import annotations

from datetime import timedelta

import click

from notices_cli.options import with_tool, yes_option
from notices_cli.sending import Sending
from notices_cli.show import Output, not_all
from notices_cli.tool import Tool
from notices_cli.trouble import EXIT_CODES
from notices_cli.words import at, command, count, span


@click.command(epilog=EXIT_CODES)
@click.option("--status", "only_show", is_flag=True, help="Only show whether sending goes on.")
@yes_option
@with_tool
def pause(only_show: bool, yes: bool, tool: Tool, out: Output) -> None:
    """Stop sending: the taking of events from the queue and the retry's schedule together.

    Nothing is lost while it lasts: events wait on the queue for as long as it keeps messages (10 days), and notices
    that are due wait in the table. SES's events are recorded all the while. Done again, it changes nothing. A deploy
    that changes the event source or the schedule starts sending again.
    """
    state = tool.switch.state()
    if only_show:
        out.say(_state(state), "green" if state.on else "yellow")
        out.json({"sending": _word(state), "events": state.events, "schedule": state.schedule, "changed": False})
        return
    if state.off:
        out.say("Sending is paused already; nothing was changed.", "yellow")
        _meaning(tool, out)
        out.json({"sending": "paused", "events": state.events, "schedule": state.schedule, "changed": False})
        return
    _meaning(tool, out)
    out.confirm("Pause sending?", place=tool.place, yes=yes)
    _report(tool.switch.pause(), "paused", tool, out)


@click.command(epilog=EXIT_CODES)
@yes_option
@with_tool
def resume(yes: bool, tool: Tool, out: Output) -> None:
    """Start sending again: the taking of events and the retry's schedule together.

    What waited goes out at SesSendRate. Done again, it changes nothing.
    """
    state = tool.switch.state()
    if state.on:
        out.say("Sending goes on already; nothing was changed.", "green")
        out.json({"sending": "on", "events": state.events, "schedule": state.schedule, "changed": False})
        return
    waiting = _waiting(tool)
    horizon, rate = span(tool.settings.retry_horizon), tool.settings.ses_send_rate
    out.say(f"Now: {state}. About {count(waiting, 'event waits', 'events wait')} on the queue.")
    out.say(
        f"They go out from now on, {rate:,} a second at most (SesSendRate). Notices first claimed more than {horizon} "
        "ago are given up at the retry's first run, if they are due; notices retry brings them back."
    )
    out.confirm("Resume sending?", place=tool.place, yes=yes)
    _report(tool.switch.resume(), "on", tool, out)


def _report(state: Sending, wanted: str, tool: Tool, out: Output) -> None:
    out.say(_state(state), "green" if _word(state) == wanted else "yellow")
    out.json({"sending": _word(state), "events": state.events, "schedule": state.schedule, "changed": True})
    if _word(state) != wanted:
        see = command("pause", "--status", suffix=tool.place.suffix)
        raise not_all(f"It takes longer than a minute: {state}. See later: {see}.")
    if wanted == "paused":
        out.command("go on", command("resume", suffix=tool.place.suffix))


def _word(state: Sending) -> str:
    return "on" if state.on else "paused" if state.off else "partly"


def _state(state: Sending) -> str:
    first = {"on": "Sending goes on", "paused": "Sending is paused", "partly": "Sending goes on in part"}[_word(state)]
    return f"{first} ({state})."


def _meaning(tool: Tool, out: Output) -> None:
    if out.as_json:
        return
    attributes = _attributes(tool)
    kept = timedelta(seconds=int(attributes["MessageRetentionPeriod"]))
    horizon = tool.settings.retry_horizon
    now = tool.now()
    points = [
        f"Events of settled jobs wait on the queue, which keeps each for {span(kept)}: resume before "
        f"{at(now + kept)}, and earlier if some have waited already. {_waiting(tool):,} are there now.",
        "Batches that were taken already are finished, which can take two minutes.",
        "Notices that are due wait in the table. A claim that came to nothing is due after 15 minutes.",
        f"Nothing is given up meanwhile. But a pause that lasts beyond {span(horizon)} after a notice's first claim "
        "costs it the retry: it is given up when sending goes on, and notices retry brings it back.",
        "What SES says of messages already sent is still recorded.",
    ]
    out.points(points)


def _waiting(tool: Tool) -> int:
    return int(_attributes(tool)["ApproximateNumberOfMessages"])


def _attributes(tool: Tool) -> dict[str, str]:
    answer = tool.client("sqs").get_queue_attributes(
        QueueUrl=tool.place.name("queue_url"),
        AttributeNames=["ApproximateNumberOfMessages", "MessageRetentionPeriod"],
    )
    attributes: dict[str, str] = answer["Attributes"]
    return attributes
