"""DynamoDB through one shared pynamodb connection: strongly consistent reads and conditional writes.

pynamodb serialises models, conditions and updates. Its own `save` and `update` are not used because they cannot
return the item that failed a condition (DESIGN 5), and a claim or an outcome is decided by that item.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from botocore.exceptions import BotoCoreError, ClientError  # type: ignore[import-untyped]
from pynamodb.connection.base import MetaTable
from pynamodb.expressions.condition import Condition
from pynamodb.expressions.update import Action
from pynamodb.models import Model

CONNECT_SECONDS = 1.0
READ_SECONDS = 2.0
ATTEMPTS = 2  # by the SDK, for each call
BACKOFF_SECONDS = 1.0  # the SDK's longest pause before its second attempt
CALL_SECONDS = ATTEMPTS * (CONNECT_SECONDS + READ_SECONDS) + (ATTEMPTS - 1) * BACKOFF_SECONDS

BATCH_GET_KEYS = 100  # DynamoDB's limit for one BatchGetItem
UNPROCESSED_TRIES = 5
UNPROCESSED_PAUSE_SECONDS = 0.05  # longer each time

Item = dict[str, Any]
Key = tuple[str, ...]

_M = TypeVar("_M", bound=Model)


class DatabaseError(Exception):
    """A call that failed for any reason but its condition: throttling, a conflict, denied access, a time-out."""

    def __init__(self, operation: str, table: str, code: str) -> None:
        super().__init__(f"{operation} on {table}: {code}")
        self.operation = operation
        self.table = table
        self.code = code

    @property
    def lasting(self) -> bool:
        """Whether the same call again would fail the same way."""
        return self.code in _LASTING


_LASTING = frozenset(
    {
        "ValidationException",
        "AccessDeniedException",
        "ResourceNotFoundException",
        "UnrecognizedClientException",
    }
)


class ConditionFailed(Exception):
    """The one failure that means "not ours": the stored item did not meet the condition."""

    def __init__(self, item: Item | None) -> None:
        super().__init__("condition failed")
        self.item = item  # as stored at that moment; None: there is none, or the store did not say


class Connection(Protocol):
    """What is used of `pynamodb.connection.Connection`; tests pass a store of their own."""

    def add_meta_table(self, meta_table: MetaTable) -> None:
        """Say what a table's keys are."""

    @property
    def get_operation_kwargs(self) -> Callable[..., Item]:
        """Build a call's arguments: `(table_name, hash_key, ...)`."""

    def dispatch(self, operation_name: str, operation_kwargs: Item) -> Item:
        """Make the call."""


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a query or scan: its items and where the next one starts, if there is one."""

    items: Sequence[Item]
    next_key: Item | None


class Table:
    """One table on the shared connection, with the model of its items."""

    def __init__(self, connection: Connection, name: str, keys: Key) -> None:
        self.name = name
        self.keys = keys
        self._connection = connection
        connection.add_meta_table(_meta_table(name, keys))

    def get(self, model: type[_M], *key: str) -> _M | None:
        """Return the item with this key, strongly consistent, or None.

        Raises:
            DatabaseError: when the look-up fails: never taken for an absent item.
        """
        kwargs = self._kwargs(key, consistent_read=True)
        item = self._dispatch("GetItem", kwargs).get("Item")
        return model.from_raw_data(item) if item else None

    def put(self, item: Model, condition: Condition | None = None) -> None:
        """Put the whole item, if the condition holds.

        Raises:
            ConditionFailed: with the stored item.
            DatabaseError: on any other failure; the put may have landed all the same.
        """
        values = item.serialize()
        key = tuple(values[name]["S"] for name in self.keys)
        self._write("PutItem", self._kwargs(key, key="Item", attributes=values, condition=condition))

    def update(self, key: Key, actions: Sequence[Action], condition: Condition) -> None:
        """Update the item if the condition holds; raises as `put` does."""
        self._write("UpdateItem", self._kwargs(key, actions=actions, condition=condition))

    def query(
        self,
        index: str | None,
        condition: Condition,
        *,
        start: Item | None = None,
        limit: int | None = None,
        only: Sequence[str] | None = None,
    ) -> Page:
        """Return one page of an index, or of the table itself (strongly consistent), in the order of its range key.

        Raises:
            DatabaseError: when the query fails.
        """
        names: dict[str, str] = {}
        values: dict[str, Any] = {}
        kwargs: Item = {
            "TableName": self.name,
            "KeyConditionExpression": condition.serialize(names, values),
        }
        if index is None:
            kwargs["ConsistentRead"] = True
        else:
            kwargs["IndexName"] = index
        if only is not None:
            kwargs["ProjectionExpression"] = ", ".join(names.setdefault(name, f"#{len(names)}") for name in only)
        kwargs["ExpressionAttributeNames"] = {alias: name for name, alias in names.items()}
        kwargs["ExpressionAttributeValues"] = values
        return self._page("Query", kwargs, start, limit)

    def scan(self, *, start: Item | None = None, limit: int | None = None) -> Page:
        """Return one page of the table. Raises DatabaseError when the scan fails."""
        return self._page("Scan", {"TableName": self.name}, start, limit)

    def _page(self, operation: str, kwargs: Item, start: Item | None, limit: int | None) -> Page:
        if start is not None:
            kwargs["ExclusiveStartKey"] = start
        if limit is not None:
            kwargs["Limit"] = limit
        answer = self._dispatch(operation, kwargs)
        return Page(answer.get("Items", ()), answer.get("LastEvaluatedKey"))

    def _kwargs(self, keys: Key, **kwargs: Any) -> Item:
        range_key = keys[1] if len(keys) > 1 else None
        return self._connection.get_operation_kwargs(self.name, keys[0], range_key=range_key, **kwargs)

    def _write(self, operation: str, kwargs: Item) -> None:
        kwargs["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
        self._dispatch(operation, kwargs)

    def _dispatch(self, operation: str, kwargs: Item) -> Item:
        return dispatch(self._connection, operation, kwargs, self.name)


def dispatch(connection: Connection, operation: str, kwargs: Item, table: str) -> Item:
    """Make one call.

    Raises:
        ConditionFailed: with the stored item, which pynamodb's own error drops and its cause has.
        DatabaseError: on any other failure.
    """
    try:
        return connection.dispatch(operation, kwargs)
    except ClientError as error:
        code = error.response.get("Error", {}).get("Code", "Unknown")
        if code == "ConditionalCheckFailedException":
            response: Mapping[str, Any] = getattr(error.__cause__, "response", None) or error.response
            raise ConditionFailed(response.get("Item") or None) from error
        raise DatabaseError(operation, table, code) from error
    except BotoCoreError as error:
        raise DatabaseError(operation, table, type(error).__name__) from error


def pages(read: Callable[[Item | None], Page], start: Item | None = None) -> Iterator[Page]:
    """Yield page after page to the end, from the key `start` on; one may be empty and not the last.

    Raises:
        DatabaseError: when a page cannot be read.
    """
    while True:
        page = read(start)
        yield page
        if page.next_key is None:
            return
        start = page.next_key


def batch_get(connection: Connection, keys: Mapping[Table, Sequence[Key]]) -> Iterator[tuple[str, Item]]:
    """Yield (table name, item) for every one of the keys that exists, strongly consistent.

    Keys that DynamoDB leaves unprocessed are read again, never taken for absent (DESIGN 3.5).

    Raises:
        DatabaseError: when a read fails, or keys are still unprocessed after a few tries.
    """
    wanted = [(table, key) for table, some in keys.items() for key in some]
    for first in range(0, len(wanted), BATCH_GET_KEYS):
        pending: dict[str, Any] = {}
        for table, key in wanted[first : first + BATCH_GET_KEYS]:
            request = pending.setdefault(table.name, {"ConsistentRead": True, "Keys": []})
            request["Keys"].append({name: {"S": value} for name, value in zip(table.keys, key, strict=True)})
        for tried in range(UNPROCESSED_TRIES):
            time.sleep(UNPROCESSED_PAUSE_SECONDS * tried)
            names = ",".join(sorted(pending))
            answer = dispatch(connection, "BatchGetItem", {"RequestItems": pending}, names)
            for name, items in answer.get("Responses", {}).items():
                for item in items:
                    yield name, item
            pending = answer.get("UnprocessedKeys") or {}
            if not pending:
                break
        else:
            raise DatabaseError("BatchGetItem", ",".join(sorted(pending)), "UnprocessedKeys")


def _meta_table(name: str, keys: Key) -> MetaTable:
    # what pynamodb needs to know of a table; said here, it does not ask DynamoDB for it
    return MetaTable(
        {
            "TableName": name,
            "KeySchema": [
                {"AttributeName": key, "KeyType": kind} for key, kind in zip(keys, ("HASH", "RANGE"), strict=False)
            ],
            "AttributeDefinitions": [{"AttributeName": key, "AttributeType": "S"} for key in keys],
        }
    )
