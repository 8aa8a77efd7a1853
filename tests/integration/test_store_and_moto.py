"""The in-memory store against moto: the same operations on a notice leave the same items and give the same answers.

Known differences, in each of which the store does as DynamoDB does: moto takes values that no expression uses and index
keys of the wrong type, and says that a page of exactly `Limit` rows is the last one. (Its writes also hold no lock.)
"""

from __future__ import annotations

import itertools
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from moto import mock_aws
from pynamodb.connection.base import Connection

from fakes.clock import Clock
from fakes.store import Store
from notices.database import Table, batch_get
from notices.jobs import Job
from notices.record import NOTICE_KEYS, Attempt, Claim, ClaimContended, Feedback, Notice, Notices, Result, Status
from notices.retry import Due

KEYS = [("job-1", "succeeded"), ("job-1", "failed"), ("job-2", "succeeded")]
PROJECTED = ["created_at", "revision"]
_tables = itertools.count()


@pytest.fixture(scope="module")
def moto():
    with mock_aws():
        connection = Connection(region="eu-west-1")
        yield connection


def moto_table(connection: Connection, name: str) -> Table:
    connection.client._make_api_call(
        "CreateTable",
        {
            "TableName": name,
            "BillingMode": "PAY_PER_REQUEST",
            "AttributeDefinitions": [
                {"AttributeName": key, "AttributeType": "S"} for key in (*NOTICE_KEYS, "status", "next_attempt_at")
            ],
            "KeySchema": [
                {"AttributeName": "job_id", "KeyType": "HASH"},
                {"AttributeName": "outcome", "KeyType": "RANGE"},
            ],
            "GlobalSecondaryIndexes": [
                {
                    "IndexName": "due",
                    "KeySchema": [
                        {"AttributeName": "status", "KeyType": "HASH"},
                        {"AttributeName": "next_attempt_at", "KeyType": "RANGE"},
                    ],
                    "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": PROJECTED},
                }
            ],
        },
    )
    return Table(connection, name, NOTICE_KEYS)


class Side:
    """One implementation, with a history of its own."""

    def __init__(self, table: Table, connection) -> None:
        self.clock = Clock(tick=timedelta(milliseconds=1))
        self.table = table
        self.connection = connection
        numbers = itertools.count(1)
        self.notices = Notices(
            table,
            now=self.clock,
            retention=timedelta(days=90),
            new_claim_id=lambda: f"claim-{next(numbers)}",
            sleep=lambda _seconds: None,
        )
        self.claims: list[Claim] = []
        self.read: list[Notice] = []

    def do(self, name: str, key: tuple[str, str], number: int):
        self.clock.advance(timedelta(minutes=number))
        try:
            answer = getattr(self, name)(key, number)
        except ClaimContended as error:
            answer = type(error).__name__
        notice = self.notices.get(*key)
        if notice is not None:
            self.read.append(notice)
        return answer

    def claim(self, key, number):
        answer = self.notices.claim(Job(key[0], "kind", "tenant", "requester"), key[1], settled_at=self.clock())
        if isinstance(answer, Claim):
            self.claims.append(answer)
        return answer

    def retry(self, key, number):
        answer = self.notices.claim(Job(key[0], "kind"), key[1], retry=number)
        if isinstance(answer, Claim):
            self.claims.append(answer)
        return answer

    def record(self, key, number):
        if not self.claims:
            return None
        claim = self.claims[number % len(self.claims)]
        results = [
            Result.delivered(f"message-{number}"),
            Result.suppressed(),
            Result.failed("throttled: X", self.clock.at + timedelta(minutes=number)),
            Result.failed("provider_refused: X", None),
        ]
        return self.notices.record(claim, results[number % 4])

    def other(self, key, number):
        if not self.read:
            return None
        notice = self.read[-1 - number % min(3, len(self.read))]
        if number % 4 == 0:
            return self.notices.close(notice, "gave_up: x")
        if number % 4 == 1:
            return self.notices.move_on(notice)
        news = Feedback(type="send", at=self.clock(), message_id=f"message-{number}")
        entry = Attempt(attempt=1, claim_id="claim-1", recorded_at=self.clock(), result="delivered", reference="m")
        return self.notices.add_feedback(notice, feedback=news, accepted=entry if number % 4 == 2 else None)

    def due(self, key, number):
        page = Due(self.table, self.clock, page=1 + number % 3)
        return [list(page(status)) for status in (Status.PENDING, Status.FAILED)]

    def scan(self, key, number):
        items, start = [], None
        while True:
            page = self.table.scan(start=start, limit=1 + number % 3)
            items += page.items
            start = page.next_key
            if start is None:
                return sorted(items, key=lambda item: (item["job_id"]["S"], item["outcome"]["S"]))

    def batch(self, key, number):
        found = batch_get(self.connection, {self.table: KEYS})
        return sorted((item for _, item in found), key=lambda item: (item["job_id"]["S"], item["outcome"]["S"]))


OPERATIONS = st.tuples(
    st.sampled_from(["claim", "claim", "retry", "record", "record", "other", "other", "due", "scan", "batch"]),
    st.sampled_from(KEYS),
    st.integers(0, 12),
)


@settings(
    max_examples=40,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(history=st.lists(OPERATIONS, min_size=1, max_size=14))
def test_the_same_history_gives_the_same_answers_and_items(moto, history) -> None:
    name = f"Notices-{next(_tables)}"
    store = Store()
    store.create(name, NOTICE_KEYS, projected={"due": PROJECTED}, due=("status", "next_attempt_at"))
    connection = store.connect()
    ours, theirs = Side(Table(connection, name, NOTICE_KEYS), connection), Side(moto_table(moto, name), moto)

    for step in history:
        assert ours.do(*step) == theirs.do(*step), step

    assert store.items(name) == theirs.scan(None, 12)
