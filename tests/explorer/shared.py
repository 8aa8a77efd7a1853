"""What processes share, as values that never change: one notice, the mail provider, the queues.

The notice is kept in wire form and numbered (0: there is none), so that a call on it is worked out by the store once
for each notice that it meets.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from botocore.exceptions import ClientError  # type: ignore[import-untyped]

from explorer.process import Call, Reply, tables
from fakes.mail import Accepted, ses_event
from fakes.world import JOB_ID, NOTICES, OUTCOME, World
from notices.mail import Answer, Letter, Verdict, notice_tags

Item = dict[str, Any]
LETTER = Letter("dana@example.com", "subject", "text", "html", notice_tags(JOB_ID, OUTCOME, ""))
Mail = tuple[str, str]  # the reference that the provider gave it, and the claim in its tags


class Shared(NamedTuple):
    """The state of the world outside the processes."""

    notice: int = 0
    accepted: tuple[Mail, ...] = ()
    queued: tuple[str, ...] = ()  # on the job.settled queue
    told: frozenset[str] = frozenset()  # mails whose SES event was received
    refused: bool = False  # the provider refused a mail for good


class Notary:
    """The notices by number, and what each call does to them. `on_change` sees each change once, the first time."""

    def __init__(self, on_change: Callable[[Call, Item | None, Item], None]) -> None:
        self._store = tables()
        world = World()
        for name in ("Jobs", "Requesters"):
            for item in world.store.items(name):
                self._store.place(name, item)
        self._on_change = on_change
        self._items: list[Item | None] = [None]
        self._numbers: dict[str, int] = {}
        self._done: dict[tuple[int, str], tuple[int, Reply]] = {}

    def item(self, number: int) -> Item | None:
        """Return a notice in wire form."""
        return self._items[number]

    def number(self, item: Item | None) -> int:
        """Return the number of a notice."""
        if item is None:
            return 0
        key = json.dumps(item, sort_keys=True)
        if key not in self._numbers:
            self._numbers[key] = len(self._items)
            self._items.append(item)
        return self._numbers[key]

    def make(self, notice: int, call: Call) -> tuple[int, Reply]:
        """Make a call of the database; return the notice after it, and the answer."""
        key = (notice, call.key)
        if key not in self._done:
            self._done[key] = self._make(notice, call)
        return self._done[key]

    def _make(self, notice: int, call: Call) -> tuple[int, Reply]:
        before = self._items[notice]
        self._store.discard(NOTICES, JOB_ID, OUTCOME)
        if before is not None:
            self._store.place(NOTICES, before)
        try:
            reply = Reply(self._store.handle(call.operation, call.kwargs))
        except ClientError as error:
            response = getattr(error.__cause__, "response", error.response)
            reply = Reply(error=response["Error"]["Code"], item=response.get("Item"))
            if reply.error != "ConditionalCheckFailedException":
                raise  # a call that DynamoDB would not take is no fault to explore
        after = self.number(self._store.item(NOTICES, JOB_ID, OUTCOME))
        if after != notice:
            changed = self._items[after]
            assert changed is not None, "nothing deletes a notice"
            self._on_change(call, before, changed)
        return after, reply


def accept(shared: Shared, call: Call) -> tuple[Shared, Reply]:
    """The provider takes a mail."""
    reference = f"message-{len(shared.accepted) + 1}"
    mail = (reference, call.kwargs["tags"]["notice_claim"])
    return shared._replace(accepted=(*shared.accepted, mail)), Reply(Answer(Verdict.ACCEPTED, reference=reference))


def enqueue(shared: Shared, call: Call) -> tuple[Shared, Reply]:
    """The queue takes a batch."""
    bodies = tuple(entry["MessageBody"] for entry in call.kwargs["Entries"])
    answer = {"Successful": [{"Id": entry["Id"]} for entry in call.kwargs["Entries"]]}
    return shared._replace(queued=(*shared.queued, *bodies)), Reply(answer)


def send_event(mail: Mail) -> str:
    """Return SES's own event that it accepted a mail."""
    reference, claim = mail
    letter = replace(LETTER, tags={**LETTER.tags, "notice_claim": claim})
    return ses_event(Accepted(letter, reference))
