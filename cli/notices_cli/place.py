"""Where the system is: names given by hand, else those that the stack's outputs tell."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import ClientError  # type: ignore[import-untyped]

from notices_cli.trouble import Trouble

DEFAULT_STACK = "requester-notices"

# what the tool calls it: the stack's output, and the option that gives it by hand
NAMES: Mapping[str, tuple[str, str | None]] = {
    "notices_table": ("NoticesTableName", "--notices-table"),
    "jobs_table": ("JobsTableName", "--jobs-table"),
    "requesters_table": ("RequestersTableName", "--requesters-table"),
    "queue_url": ("JobSettledQueueUrl", "--queue-url"),
    "dead_letter_queue_url": ("JobSettledDeadLetterQueueUrl", "--dead-letter-queue-url"),
    "feedback_queue_url": ("FeedbackQueueUrl", None),
    "feedback_dead_letter_queue_url": ("FeedbackDeadLetterQueueUrl", None),
    "tell_function": ("TellRequesterFunctionName", "--function"),
    "event_source_id": ("TellRequesterEventSourceId", None),
    "schedule_rule": ("RetryScheduleRuleName", None),
    "configuration_set": ("MailConfigurationSetName", None),
}


@dataclass(slots=True)
class Place:
    """Looks names up: `given` ones by hand first, then the stack, which is asked once and only when needed."""

    stack: str
    find_region: Callable[[], str]
    endpoint: str | None
    given: Mapping[str, str]
    client: Callable[[str], Any]
    typed: str = ""  # the options that said so, as they were typed
    _described: Mapping[str, Any] | None = field(default=None, init=False)

    @property
    def region(self) -> str:
        """The AWS region. Raises Trouble where none is said."""
        return self.find_region()

    def name(self, what: str) -> str:
        """Return a name.

        Raises:
            Trouble: the stack is not there, or does not tell.
        """
        found = self.find(what)
        if found is None:
            output, option = NAMES[what]
            by_hand = f" or give {option}" if option else ""
            raise Trouble(
                f"The stack {self.stack} has no output {output}.", f"Deploy it again with this template{by_hand}."
            )
        return found

    def find(self, what: str) -> str | None:
        """Return a name, or None when the stack does not tell it. Raises Trouble as `name` does."""
        return self.given.get(what) or self._outputs().get(NAMES[what][0])

    def parameter(self, name: str) -> str | None:
        """Return a parameter that the stack was deployed with."""
        return _pairs(self._stack().get("Parameters", ()), "ParameterKey", "ParameterValue").get(name)

    @property
    def suffix(self) -> str:
        """What a command that the tool proposes has to end with, so as to speak of the same stack, region, account."""
        return f" {self.typed}" if self.typed else ""

    def __str__(self) -> str:
        return " · ".join(part for part in (self.stack, self.region, self.endpoint) if part)

    def _outputs(self) -> Mapping[str, str]:
        return _pairs(self._stack().get("Outputs", ()), "OutputKey", "OutputValue")

    def _stack(self) -> Mapping[str, Any]:
        if self._described is None:
            try:
                stacks = self.client("cloudformation").describe_stacks(StackName=self.stack)["Stacks"]
            except ClientError as error:
                if error.response.get("Error", {}).get("Code") != "ValidationError":
                    raise
                stacks = []
            if not stacks:
                raise Trouble(
                    f"There is no stack {self.stack} in {self.region}.",
                    "Give --stack, --region or --profile; aws cloudformation list-stacks shows those there are.",
                )
            self._described = stacks[0]
        return self._described


def _pairs(entries: Any, key: str, value: str) -> dict[str, str]:
    return {entry[key]: entry.get(value, "") for entry in entries}
