"""The checks before the first notice and after each deploy: what would stop one, and what to do about it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError  # type: ignore[import-untyped]

from notices.jobs import JOB_KEYS, REQUESTER_KEYS
from notices.mail import mailbox
from notices.record import NOTICE_KEYS
from notices.retry import INDEX
from notices.settings import Settings, SettingsError
from notices_cli.send_rate import misfits
from notices_cli.tool import Tool
from notices_cli.trouble import EXPECTED, Trouble, explained
from notices_cli.words import command, count, masked, span

ENVIRONMENTS = ("production", "staging", "development")
EVENT_TYPES = frozenset({"SEND", "DELIVERY", "DELIVERY_DELAY", "BOUNCE", "COMPLAINT", "REJECT", "RENDERING_FAILURE"})
TRACKING = frozenset({"OPEN", "CLICK"})
DUE_PROJECTS = ("created_at", "revision")
LEAST_RETENTION = timedelta(days=7)
VISIBILITY_FACTOR = 6  # AWS's own advice for a queue before a function


class Level(StrEnum):
    """How a finding is meant. Only a fault stops a notice."""

    OK = "ok"
    NOTE = "note"
    FAULT = "fault"
    UNSEEN = "unseen"


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found, and the remedy where one is needed."""

    area: str
    level: Level
    says: str
    remedy: str = ""


Findings = Iterator[Finding]


def check(tool: Tool) -> Iterator[Finding]:
    """Yield what is found, area by area. What may not be seen is a finding too, and stops no other."""
    areas: tuple[tuple[str, Callable[[Tool], Findings]], ...] = (
        ("settings", _settings),
        ("SES account", _account),
        ("SES identity", _identity),
        ("SES events", _configuration_set),
        ("tables", _tables),
        ("queues", _queues),
        ("sending", _sending),
    )
    for area, look in areas:
        try:
            for finding in look(tool):
                yield replace(finding, area=area)
        except SettingsError as error:
            if area != "settings":
                yield Finding(area, Level.UNSEEN, "not all was looked at, since the settings are wrong")
                continue
            for fault in str(error).removeprefix("settings: ").split("; "):
                yield Finding(area, Level.FAULT, fault, _SETTING_REMEDY)
        except EXPECTED as error:
            yield Finding(area, Level.UNSEEN, str(explained(error)))
        except Trouble as trouble:
            yield Finding(area, Level.UNSEEN, str(trouble))


_SETTING_REMEDY = "Correct the parameter and deploy again."


def _ok(says: str) -> Finding:
    return Finding("", Level.OK, says)


def _note(says: str, remedy: str = "") -> Finding:
    return Finding("", Level.NOTE, says, remedy)


def _fault(says: str, remedy: str) -> Finding:
    return Finding("", Level.FAULT, says, remedy)


# -- settings -------------------------------------------------------------------------------------------------------


def _settings(tool: Tool) -> Findings:
    settings = tool.settings  # a fault in any of them is raised, all named
    environment = settings.environment
    if settings.sends_mail:
        yield _ok("ENVIRONMENT is production: mail goes out")
    elif environment in ENVIRONMENTS:
        yield _note(f"ENVIRONMENT is {environment}: no mail goes out, notices are suppressed")
    else:
        yield _fault(
            f"ENVIRONMENT is '{environment}', which is none of {', '.join(ENVIRONMENTS)}: no mail goes out",
            "Deploy with Environment=production, exactly so, if mail is to go out.",
        )
    if settings.sender is None:
        remedy = "Deploy with NoticeFromAddress."
        says = "there is no from-address: neither NOTICE_FROM_ADDRESS nor MAIL_FROM_ADDRESS is set"
        yield _fault(says, remedy) if settings.sends_mail else _note(says, remedy)
    else:
        yield _ok(f"from-address {masked(_address(settings.sender))}")
    for name, parameter, url, whom in (
        ("HQ_BASE_URL", "HqBaseUrl", settings.hq_base_url, "colleagues"),
        ("CUSTOMER_BASE_URL", "CustomerBaseUrl", settings.customer_base_url, "customers"),
    ):
        if url is None:
            yield _note(f"{name} is not set: messages to {whom} carry no link", f"Deploy with {parameter}.")
        elif url.startswith("http://"):
            yield _note(f"{name} is {url}: not https", f"Deploy with an https {parameter}.")
        else:
            yield _ok(f"{name} is {url}")


def _address(sender: str) -> str:
    return sender.rpartition("<")[2].removesuffix(">")


def _sender(settings: Settings) -> str | None:
    return _address(mailbox(settings.sender)) if settings.sender else None


# -- SES ------------------------------------------------------------------------------------------------------------


def _severity(tool: Tool) -> Callable[[str, str], Finding]:
    """A fault of SES stops a notice only where mail goes out, or where that cannot be seen."""
    try:
        return _fault if tool.settings.sends_mail else _note
    except (SettingsError, Trouble, ClientError, BotoCoreError):
        return _fault


def _account(tool: Tool) -> Findings:
    wrong = _severity(tool)
    account = tool.client("sesv2").get_account()
    if account.get("ProductionAccessEnabled"):
        yield _ok("production access")
    else:
        yield wrong(
            "the account is in SES's sandbox: mail goes to verified addresses alone",
            "Request production access in the SES console of this region.",
        )
    status = account.get("EnforcementStatus", "HEALTHY")
    if not account.get("SendingEnabled", True):
        yield wrong(
            "sending is paused for the account",
            "See the SES console; where somebody of ours paused it: "
            "aws sesv2 put-account-sending-attributes --sending-enabled",
        )
    elif status != "HEALTHY":
        yield _note(f"SES has the account under {status.lower()}", "Answer SES's case before sending is paused.")
    quota = account.get("SendQuota", {})
    most, sent = quota.get("Max24HourSend", 0.0), quota.get("SentLast24Hours", 0.0)
    if most >= 0 and sent >= most:
        yield wrong(f"the daily quota is used up: {sent:,.0f} of {most:,.0f}", "Have the quota raised, or wait.")
    elif most >= 0 and sent >= 0.8 * most:
        yield _note(f"{sent:,.0f} of {most:,.0f} messages of the daily quota are used", "Have the quota raised.")
    else:
        yield _ok(f"{sent:,.0f} of {most:,.0f} messages of the daily quota are used")
    rate = float(quota.get("MaxSendRate", 0.0))
    found = list(misfits(rate, tool.settings.ses_send_rate, tool.settings.maximum_concurrency, _concurrency(tool)))
    for says, remedy in found:
        yield _note(says, remedy)
    if not found:
        yield _ok(_fits(tool.settings.ses_send_rate, rate))


def _fits(rate: int, ses: float) -> str:
    """Say what part of SES's rate the notices take."""
    if ses < 1:
        return f"notices go out at {rate:,} a second at most (SesSendRate)"
    says = f"notices go out at {rate:,} of the {ses:,.0f} a second that SES takes"
    return says if rate >= ses else f"{says}: SesSendRate may be raised so far, if nobody else sends from this account"


def _concurrency(tool: Tool) -> int | None:
    source = tool.client("lambda").get_event_source_mapping(UUID=tool.place.name("event_source_id"))
    most = source.get("ScalingConfig", {}).get("MaximumConcurrency")
    return int(most) if most is not None else None


def _identity(tool: Tool) -> Findings:
    wrong = _severity(tool)
    sender = _sender(tool.settings)
    if sender is None:
        return
    domain = sender.rpartition("@")[2]
    # SES takes the address's own identity where it has one, else that of its domain
    for identity in (sender, domain):
        shown = masked(identity) if "@" in identity else identity
        found = _email_identity(tool, identity)
        if found is None:
            continue
        declared = tool.place.parameter("SesIdentity")
        if not found.get("VerifiedForSendingStatus"):
            yield wrong(f"the identity {shown} is not verified", "Finish its verification in SES, in this region.")
        elif declared and declared.lower() != identity.lower():
            # the function may send as SesIdentity alone, and SES asks for the identity that it takes
            allowed = masked(declared) if "@" in declared else declared
            yield wrong(
                f"SES takes the identity {shown}, and the function may use {allowed}",
                f"Deploy with SesIdentity={shown}.",
            )
        else:
            yield _ok(f"the identity {shown} is verified")
        dkim = found.get("DkimAttributes", {})
        if "@" not in identity and not (dkim.get("SigningEnabled") and dkim.get("Status") == "SUCCESS"):
            yield _note(f"DKIM does not sign for {shown}", "Publish its records: unsigned mail often ends as spam.")
        return
    yield wrong(
        f"SES has no identity for {masked(sender)} in {tool.place.region}",
        f"Verify {domain} in SES, in this region, or correct the from-address.",
    )


def _email_identity(tool: Tool, identity: str) -> Mapping[str, Any] | None:
    try:
        found: Mapping[str, Any] = tool.client("sesv2").get_email_identity(EmailIdentity=identity)
    except ClientError as error:
        if error.response.get("Error", {}).get("Code") == "NotFoundException":
            return None
        raise
    return found


def _configuration_set(tool: Tool) -> Findings:
    wrong = _severity(tool)
    ses, name = tool.client("sesv2"), tool.place.name("configuration_set")
    try:
        found = ses.get_configuration_set(ConfigurationSetName=name)
    except ClientError as error:
        if error.response.get("Error", {}).get("Code") != "NotFoundException":
            raise
        yield wrong(f"there is no configuration set {name}: SES refuses every message", "Deploy the stack again.")
        return
    if found.get("SendingOptions", {}).get("SendingEnabled", True):
        yield _ok(f"the configuration set {name} sends")
    else:
        yield wrong(
            f"sending is switched off for the configuration set {name}",
            "Once its cause is known: aws sesv2 put-configuration-set-sending-options --sending-enabled "
            f"--configuration-set-name {name}",
        )
    destinations = ses.get_configuration_set_event_destinations(ConfigurationSetName=name).get("EventDestinations", [])
    ours = [each for each in destinations if each.get("Enabled") and "EventBridgeDestination" in each]
    types = {kind for each in ours for kind in each.get("MatchingEventTypes", ())}
    missing, tracking = sorted(EVENT_TYPES - types), sorted(TRACKING & types)
    if missing:
        yield _note(
            f"SES's events do not all come: {', '.join(missing).lower()} missing. Sends without an answer are then "
            "settled by sending again",
            "Deploy the stack again: its event destination was changed.",
        )
    else:
        yield _ok("its events go to EventBridge")
    if tracking:
        yield _note(
            f"{', '.join(tracking).lower()} events are on: SES rewrites the links", "Take them off the destination."
        )


# -- tables and queues ------------------------------------------------------------------------------------------------


def _tables(tool: Tool) -> Findings:
    database = tool.client("dynamodb")
    for what, keys in (("notices_table", NOTICE_KEYS), ("jobs_table", JOB_KEYS), ("requesters_table", REQUESTER_KEYS)):
        name = tool.place.name(what)
        try:
            table = database.describe_table(TableName=name)["Table"]
        except ClientError as error:
            if error.response.get("Error", {}).get("Code") != "ResourceNotFoundException":
                raise
            yield _fault(f"there is no table {name}", "Correct its name among the parameters, or restore it.")
            continue
        has = tuple(key["AttributeName"] for key in sorted(table["KeySchema"], key=lambda key: key["KeyType"]))
        if has != keys:
            yield _fault(f"{name} has the key {' + '.join(has)}, not {' + '.join(keys)}", "Name the right table.")
        elif table.get("TableStatus") != "ACTIVE":
            yield _fault(f"{name} is {str(table.get('TableStatus')).lower()}", "Wait until it is active.")
        else:
            yield _ok(f"{name}: key {' + '.join(keys)}")
        if what == "notices_table":
            yield from _due_index(table)
            yield from _expiry(database, name)


def _due_index(table: Mapping[str, Any]) -> Findings:
    remedy = "Deploy the stack again: without the index nothing is retried."
    index = next((each for each in table.get("GlobalSecondaryIndexes", ()) if each["IndexName"] == INDEX), None)
    if index is None:
        yield _fault(f"the index {INDEX} is missing", remedy)
        return
    keys = tuple(key["AttributeName"] for key in sorted(index["KeySchema"], key=lambda key: key["KeyType"]))
    projection = index.get("Projection", {})
    projected = set(projection.get("NonKeyAttributes", ()))
    if keys != ("status", "next_attempt_at"):
        yield _fault(f"the index {INDEX} has the key {' + '.join(keys)}, not status + next_attempt_at", remedy)
    elif projection.get("ProjectionType") != "ALL" and not projected >= set(DUE_PROJECTS):
        yield _fault(f"the index {INDEX} does not project {', '.join(DUE_PROJECTS)}", remedy)
    elif index.get("IndexStatus", "ACTIVE") != "ACTIVE":
        yield _fault(f"the index {INDEX} is {str(index['IndexStatus']).lower()}", "Wait until it is active.")
    else:
        yield _ok(f"the index {INDEX} is as the retry needs it")


def _expiry(database: Any, name: str) -> Findings:
    answer = database.describe_time_to_live(TableName=name)["TimeToLiveDescription"]
    if answer.get("TimeToLiveStatus") in ("ENABLED", "ENABLING") and answer.get("AttributeName") == "expires_at":
        yield _ok("notices expire by expires_at")
    else:
        yield _note("notices do not expire: the table's time to live is off", "Switch it on, for expires_at.")


def _queues(tool: Tool) -> Findings:
    function_seconds = _function_seconds(tool)
    for what, dead, seconds in (
        ("queue_url", "dead_letter_queue_url", function_seconds),
        ("feedback_queue_url", "feedback_dead_letter_queue_url", None),
    ):
        url, dead_url = tool.place.find(what), tool.place.find(dead)
        if url is None or dead_url is None:
            continue
        attributes, parked = _attributes(tool, url), _attributes(tool, dead_url)
        if attributes is None or parked is None:
            missing = url if attributes is None else dead_url
            yield _fault(f"there is no queue {_named(missing)}", "Deploy the stack again.")
            continue
        yield from _queue(_named(url), attributes, parked, seconds)
        number = int(parked.get("ApproximateNumberOfMessages", 0))
        if number:
            see = f"See {command('parked', suffix=tool.place.suffix)}."
            if what == "feedback_queue_url":
                see = "See FeedbackDeadLetterAlarm in docs/runbook.md."
            lie = count(number, "message lies", "messages lie")
            yield _note(f"about {lie} on the dead-letter queue of {_named(url)}", see)


def _function_seconds(tool: Tool) -> int | None:
    """How long the function may run; None where that cannot be seen, which the settings' finding says."""
    try:
        return int(tool.function.get("Timeout", 0))
    except (Trouble, ClientError, BotoCoreError):
        return None


def _queue(
    name: str, attributes: Mapping[str, str], parked: Mapping[str, str], function_seconds: int | None
) -> Findings:
    policy = json.loads(attributes.get("RedrivePolicy") or "{}")
    visibility = int(attributes["VisibilityTimeout"])
    fine = True
    if function_seconds and visibility < function_seconds:
        fine = False
        yield _fault(
            f"{name} shows messages again after {visibility} s, before its function ends ({function_seconds} s): "
            "messages are handled twice",
            f"Set its visibility time-out to {VISIBILITY_FACTOR * function_seconds} s: deploy the stack again.",
        )
    elif function_seconds and visibility < VISIBILITY_FACTOR * function_seconds:
        fine = False
        yield _note(
            f"{name} shows messages again after {visibility} s, less than six times its function's "
            f"{function_seconds} s",
            "Deploy the stack again.",
        )
    if policy.get("deadLetterTargetArn") != parked.get("QueueArn"):
        fine = False
        yield _fault(
            f"{name} does not lead to its dead-letter queue: what fails ten times is tried until it expires",
            "Deploy the stack again.",
        )
    kept, kept_parked = (timedelta(seconds=int(each["MessageRetentionPeriod"])) for each in (attributes, parked))
    if kept < LEAST_RETENTION:
        fine = False
        yield _note(
            f"{name} keeps messages for {span(kept)} only: a longer pause loses them", "Deploy the stack again."
        )
    if kept_parked <= kept:
        fine = False
        yield _note(
            f"the dead-letter queue of {name} keeps messages no longer than it: SQS counts from the first send, so "
            "what comes there late is gone at once",
            "Deploy the stack again.",
        )
    if fine:
        yield _ok(f"{name}: time-out, redrive and retention are right")


def _attributes(tool: Tool, url: str) -> Mapping[str, str] | None:
    try:
        answer = tool.client("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=["All"])
    except ClientError as error:
        if "NonExistentQueue" in str(error) or error.response.get("Error", {}).get("Code") == "QueueDoesNotExist":
            return None
        raise
    attributes: Mapping[str, str] = answer["Attributes"]
    return attributes


def _named(url: str) -> str:
    return url.rpartition("/")[2]


# -- whether it runs ------------------------------------------------------------------------------------------------


def _sending(tool: Tool) -> Findings:
    state = tool.switch.state()
    if state.on:
        yield _ok(f"sending goes on ({state})")
    else:
        yield _fault(f"sending is paused ({state})", command("resume", suffix=tool.place.suffix))
    source = tool.client("lambda").get_event_source_mapping(UUID=tool.place.name("event_source_id"))
    if "ReportBatchItemFailures" not in source.get("FunctionResponseTypes", ()):
        yield _fault(
            "the event source does not take partial batch responses: what should come back is taken for done",
            "Deploy the stack again: its FunctionResponseTypes were changed.",
        )
    overdue = _overdue(tool)
    if overdue:
        yield _note(
            overdue,
            "See the log of RetryDueNoticesFunction and the alarms; "
            f"{command('list', '--waiting', suffix=tool.place.suffix)} shows them.",
        )


def _overdue(tool: Tool) -> str | None:
    """Say how late the retry is, by the longest due notice of each status: two small queries."""
    now = tool.now()
    late = [due for due in tool.questions.longest_due() if (now - due).total_seconds() > 300]
    return f"a notice has been due for {span(now - min(late))}: the retry is behind, or has stopped" if late else None
