"""Whether sending goes on, and its switch: what takes events from the queue, and the schedule of the retry."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

ENABLED = "Enabled"
SETTLE_SECONDS = 60  # Lambda takes some seconds to start or stop taking events
LOOK_SECONDS = 2


@dataclass(frozen=True, slots=True)
class Sending:
    """The state of both."""

    events: str  # of the event source mapping: Enabled, Disabled, Enabling, Disabling, ...
    schedule: str  # of the rule: ENABLED or DISABLED

    @property
    def on(self) -> bool:
        """Whether both run."""
        return self.events == ENABLED and self.schedule == "ENABLED"

    @property
    def off(self) -> bool:
        """Whether neither does."""
        return self.events == "Disabled" and self.schedule == "DISABLED"

    def __str__(self) -> str:
        return f"taking events from the queue: {self.events.lower()}; the retry's schedule: {self.schedule.lower()}"


class Switch:
    """Both together. Every method raises ClientError or BotoCoreError when a call fails."""

    def __init__(
        self,
        functions: Any,
        rules: Any,
        *,
        event_source_id: str,
        rule: str,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._functions = functions
        self._rules = rules
        self._event_source_id = event_source_id
        self._rule = rule
        self._sleep = sleep

    def state(self) -> Sending:
        """Return whether sending goes on: two calls."""
        source = self._functions.get_event_source_mapping(UUID=self._event_source_id)
        rule = self._rules.describe_rule(Name=self._rule)
        return Sending(str(source["State"]), str(rule["State"]))

    def pause(self) -> Sending:
        """Stop both: the schedule first, so that nothing more is put on a queue that nobody reads."""
        self._rules.disable_rule(Name=self._rule)
        self._functions.update_event_source_mapping(UUID=self._event_source_id, Enabled=False)
        return self._settled()

    def resume(self) -> Sending:
        """Start both: the taking of events first."""
        self._functions.update_event_source_mapping(UUID=self._event_source_id, Enabled=True)
        self._rules.enable_rule(Name=self._rule)
        return self._settled()

    def _settled(self) -> Sending:
        state = self.state()
        for _ in range(round(SETTLE_SECONDS / LOOK_SECONDS)):
            if state.on or state.off:
                break
            self._sleep(LOOK_SECONDS)
            state = self.state()
        return state
