"""DynamoDB in memory, with its conditional semantics: one call at a time, each of them whole or not at all.

    store = Store()
    store.create("Notices", ("job_id", "outcome"), due=("status", "next_attempt_at"))
    table = Table(store.connect(), "Notices", ("job_id", "outcome"))

A connection is pynamodb's own with its calls answered here: the serialiser is the real one, and errors come as pynamodb
raises them. Each worker gets a connection, and with it a gate (`fakes.gate`) at which a test can stand. Items are kept
in wire form and never changed in place, so a snapshot costs one dictionary a table.

What it leaves out: sizes and limits in bytes, reserved words (pynamodb writes none), filters, transactions, batch
writes, streams, expiry. A page that holds exactly `Limit` rows says that there may be more, as DynamoDB does.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from botocore.exceptions import ClientError, ReadTimeoutError  # type: ignore[import-untyped]
from pynamodb.connection.base import Connection
from pynamodb.exceptions import VerboseClientError

from fakes.expressions import Invalid, Item, condition, projection, update
from fakes.gate import Gate

Key = tuple[str, ...]
Snapshot = Mapping[str, Mapping[Key, Item]]

BATCH_GET_KEYS = 100


@dataclass(slots=True)
class _Table:
    keys: tuple[str, ...]
    indexes: Mapping[str, tuple[str, ...]]
    projected: Mapping[str, frozenset[str]]
    items: dict[Key, Item] = field(default_factory=dict)
    lagging: dict[Key, Item] | None = None  # what the indexes show, where they lag


class Store:
    """The tables. `calls` counts what reached them, `refused` the errors, `rows` what queries and scans read."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.rows: Counter[str] = Counter()
        self.batch_get_serves: int | None = None  # keys that one BatchGetItem processes; the rest it leaves
        self.empty_pages: set[int] = set()  # queries (counted from 1) that answer with no row and a key to go on
        self._tables: dict[str, _Table] = {}
        self._lock = threading.RLock()

    def create(
        self,
        name: str,
        keys: tuple[str, ...],
        *,
        projected: Mapping[str, Iterable[str]] | None = None,
        **indexes: tuple[str, ...],
    ) -> None:
        """Make a table; an index is given as (hash key, range key), and projects all where nothing else is said."""
        shown = {index: frozenset(names) | {*keys, *indexes[index]} for index, names in (projected or {}).items()}
        self._tables[name] = _Table(keys, indexes, shown)

    def connect(self, gate: Gate | None = None) -> StoreConnection:
        """Return a connection of its own for one worker."""
        return StoreConnection(self, gate or Gate())

    def items(self, table: str) -> list[Item]:
        """Return what is in a table, by key."""
        found = self._tables[table].items
        return [found[key] for key in sorted(found)]

    def item(self, table: str, *key: str) -> Item | None:
        """Return one item as it is stored."""
        return self._tables[table].items.get(key)

    def place(self, table: str, item: Item) -> None:
        """Put an item there, whatever is."""
        self._tables[table].items[_key_of(item, self._tables[table].keys)] = item

    def discard(self, table: str, *key: str) -> None:
        """Take an item away, as its expiry does."""
        self._tables[table].items.pop(key, None)

    def snapshot(self) -> Snapshot:
        """Return the state of all tables."""
        return {name: dict(table.items) for name, table in self._tables.items()}

    def restore(self, snapshot: Snapshot) -> None:
        """Go back to a snapshot."""
        for name, items in snapshot.items():
            self._tables[name].items = dict(items)

    def hold_indexes(self, table: str) -> None:
        """Let a table's indexes show what they show now, until they are released."""
        self._tables[table].lagging = dict(self._tables[table].items)

    def release_indexes(self, table: str) -> None:
        """Let a table's indexes catch up."""
        self._tables[table].lagging = None

    def handle(self, operation: str, kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Answer one call."""
        with self._lock:
            self.calls[operation] += 1
            handler: Callable[[Mapping[str, Any]], dict[str, Any]] = getattr(self, f"_{_SNAKE[operation]}")
            try:
                return handler(kwargs)
            except Invalid as error:
                self.refused[operation] += 1
                refuse(operation, kwargs, "ValidationException", str(error))
            except ClientError:
                self.refused[operation] += 1
                raise

    # -- one item

    def _get_item(self, kwargs: Mapping[str, Any]) -> dict[str, Any]:
        table = self._table("GetItem", kwargs)
        found = table.items.get(_key_of(kwargs["Key"], table.keys, exactly=True))
        return {"Item": dict(found)} if found is not None else {}

    def _put_item(self, kwargs: Mapping[str, Any]) -> dict[str, Any]:
        table = self._table("PutItem", kwargs)
        item: Item = kwargs["Item"]
        key = _key_of(item, table.keys)
        self._check("PutItem", kwargs, table.items.get(key), frozenset())
        self._store(table, key, dict(item))
        return {}

    def _update_item(self, kwargs: Mapping[str, Any]) -> dict[str, Any]:
        table = self._table("UpdateItem", kwargs)
        key = _key_of(kwargs["Key"], table.keys, exactly=True)
        current = table.items.get(key)
        compiled = update(kwargs["UpdateExpression"])
        names, values = _placeholders(kwargs)
        self._check("UpdateItem", kwargs, current, compiled.uses)
        if not {names[target] for target in compiled.targets}.isdisjoint(table.keys):
            raise Invalid("Cannot update attribute. This attribute is part of the key")
        changed = compiled.apply(current if current is not None else dict(kwargs["Key"]), names, values)
        self._store(table, key, changed)
        return {}

    def _check(self, operation: str, kwargs: Mapping[str, Any], current: Item | None, also: frozenset[str]) -> None:
        text = kwargs.get("ConditionExpression")
        compiled = condition(text) if text is not None else None
        names, values = _placeholders(kwargs)
        _all_used({*names, *values}, also | (compiled.uses if compiled else frozenset()))
        if compiled is not None and not compiled.holds(current or {}, names, values):
            shown = current if kwargs.get("ReturnValuesOnConditionCheckFailure") == "ALL_OLD" else None
            refuse(operation, kwargs, "ConditionalCheckFailedException", "The conditional request failed", shown)

    def _store(self, table: _Table, key: Key, item: Item) -> None:
        for names in table.indexes.values():
            for name in names:
                if name in item and not item[name].get("S"):
                    raise Invalid(f"The value for the index key {name} is not a string that is not empty")
        table.items[key] = item

    # -- many items

    def _query(self, kwargs: Mapping[str, Any]) -> dict[str, Any]:
        table = self._table("Query", kwargs)
        index = kwargs.get("IndexName")
        if index is not None and index not in table.indexes:
            raise Invalid(f"The table does not have the specified index: {index}")
        if index is not None and kwargs.get("ConsistentRead"):
            raise Invalid("Consistent reads are not supported on global secondary indexes")
        by = table.indexes[index] if index is not None else table.keys
        names, values = _placeholders(kwargs)
        compiled = condition(kwargs["KeyConditionExpression"])
        only = projection(kwargs["ProjectionExpression"]) if "ProjectionExpression" in kwargs else ()
        _all_used({*names, *values}, compiled.uses | frozenset(only))
        rows = [
            item
            for item in (table.items if table.lagging is None or index is None else table.lagging).values()
            if all(name in item for name in by) and compiled.holds(item, names, values)
        ]
        shown = table.projected.get(index) if index is not None else None
        wanted = frozenset(names[name] for name in only) if only else shown
        keys = (*by, *table.keys) if index is not None else table.keys
        return self._page("Query", kwargs, rows, (*by[1:], *table.keys), keys, wanted)

    def _scan(self, kwargs: Mapping[str, Any]) -> dict[str, Any]:
        table = self._table("Scan", kwargs)
        return self._page("Scan", kwargs, list(table.items.values()), table.keys, table.keys, None)

    def _page(
        self,
        operation: str,
        kwargs: Mapping[str, Any],
        rows: Sequence[Item],
        order: tuple[str, ...],
        keys: tuple[str, ...],
        wanted: frozenset[str] | None,
    ) -> dict[str, Any]:
        ordered = sorted(rows, key=lambda row: _values(row, order))
        start = kwargs.get("ExclusiveStartKey")
        if start is not None:
            if start.keys() != set(keys):
                raise Invalid("The provided starting key is invalid")
            ordered = [row for row in ordered if _values(row, order) > _values(start, order)]
        if operation == "Query" and self.calls[operation] in self.empty_pages and ordered:
            before = start or {name: {"S": "\x00"} for name in keys}
            return {"Items": [], "Count": 0, "LastEvaluatedKey": before}
        limit = kwargs.get("Limit", len(ordered) + 1)
        page = ordered[:limit]
        self.rows[operation] += len(page)
        items = [row if wanted is None else {name: row[name] for name in row if name in wanted} for row in page]
        answer: dict[str, Any] = {"Items": [dict(item) for item in items], "Count": len(items)}
        if len(page) == limit:
            answer["LastEvaluatedKey"] = {name: page[-1][name] for name in keys}
        return answer

    def _batch_get_item(self, kwargs: Mapping[str, Any]) -> dict[str, Any]:
        requests: Mapping[str, Mapping[str, Any]] = kwargs["RequestItems"]
        if not requests or sum(len(request["Keys"]) for request in requests.values()) > BATCH_GET_KEYS:
            raise Invalid("Too many items requested for the BatchGetItem call, or none")
        left = self.batch_get_serves if self.batch_get_serves is not None else BATCH_GET_KEYS
        answer: dict[str, dict[str, Any]] = {"Responses": {}, "UnprocessedKeys": {}}
        for name, request in requests.items():
            table = self._table("BatchGetItem", {"TableName": name})
            keys = [_key_of(key, table.keys, exactly=True) for key in request["Keys"]]
            if not keys or len(set(keys)) < len(keys):
                raise Invalid("Provided list of item keys contains duplicates, or is empty")
            found = [table.items[key] for key in keys[:left] if key in table.items]
            answer["Responses"][name] = [dict(item) for item in found]
            if keys[left:]:
                answer["UnprocessedKeys"][name] = {**request, "Keys": request["Keys"][left:]}
            left = max(0, left - len(keys))
        return answer

    def _table(self, operation: str, kwargs: Mapping[str, Any]) -> _Table:
        table = self._tables.get(kwargs["TableName"])
        if table is None:
            refuse(operation, kwargs, "ResourceNotFoundException", "Requested resource not found")
        return table


_SNAKE = {
    "GetItem": "get_item",
    "PutItem": "put_item",
    "UpdateItem": "update_item",
    "Query": "query",
    "Scan": "scan",
    "BatchGetItem": "batch_get_item",
}


class StoreConnection(Connection):
    """pynamodb's connection with a store at its other end, and a gate in between."""

    def __init__(self, store: Store, gate: Gate) -> None:
        super().__init__(region="eu-west-1")
        self.store = store
        self.gate = gate

    def dispatch(self, operation_name: str, operation_kwargs: dict[str, Any]) -> dict[str, Any]:
        """Make the call here; no client is ever made."""
        return self.gate.pass_through(
            operation_name, operation_kwargs, lambda: self.store.handle(operation_name, operation_kwargs)
        )


def refusal(
    operation: str, code: str, message: str = "", item: Item | None = None, table: str | None = None
) -> VerboseClientError:
    """Return an error response as pynamodb raises it: without the item, which its cause has."""
    response: dict[str, Any] = {
        "Error": {"Code": code, "Message": message},
        "ResponseMetadata": {"HTTPStatusCode": 400, "HTTPHeaders": {"x-amzn-requestid": "request"}},
    }
    if item is not None:
        response["Item"] = dict(item)
    error = VerboseClientError(
        {"Error": response["Error"]}, operation, {"request_id": "request", "table_name": table or ""}
    )
    error.__cause__ = ClientError(response, operation)
    return error


def refuse(
    operation: str, kwargs: Mapping[str, Any], code: str, message: str = "", item: Item | None = None
) -> NoReturn:
    """Answer a call with an error response."""
    raise refusal(operation, code, message, item, kwargs.get("TableName"))


def read_timeout() -> ReadTimeoutError:
    """Return what comes when no reply came in time, at the SDK's last attempt."""
    return ReadTimeoutError(endpoint_url="https://dynamodb.eu-west-1.amazonaws.com/", error="timed out")


def _key_of(item: Mapping[str, Any], names: tuple[str, ...], *, exactly: bool = False) -> Key:
    if exactly and set(item) != set(names):
        raise Invalid("The provided key element does not match the schema")
    try:
        key = tuple(item[name]["S"] for name in names)
    except KeyError:
        raise Invalid("One of the required keys was not given a value") from None
    if not all(key):
        raise Invalid("One or more parameter values are not valid: the key has an empty string")
    return key


def _values(item: Mapping[str, Any], names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(item[name]["S"] for name in names)


def _placeholders(kwargs: Mapping[str, Any]) -> tuple[Mapping[str, str], Mapping[str, Item]]:
    return kwargs.get("ExpressionAttributeNames", {}), kwargs.get("ExpressionAttributeValues", {})


def _all_used(given: set[str], used: frozenset[str]) -> None:
    if unused := given - used:
        raise Invalid(f"Value provided in expression attributes unused in expressions: {sorted(unused)}")
    if missing := used - given:
        raise Invalid(f"An expression attribute name or value is not defined: {sorted(missing)}")
