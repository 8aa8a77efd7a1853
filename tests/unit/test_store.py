"""The in-memory store behaves as DynamoDB does, also where its emulators do not."""

from __future__ import annotations

import threading

import pytest
from botocore.exceptions import ClientError
from pynamodb.attributes import ListAttribute, NumberAttribute, UnicodeAttribute
from pynamodb.models import Model

from fakes.gate import Gate, Killed, Lever, ReplyLost, raising
from fakes.store import Store, read_timeout
from notices.database import ConditionFailed, DatabaseError, Table, batch_get


class Thing(Model):
    id = UnicodeAttribute(hash_key=True)
    state = UnicodeAttribute(null=True)
    due = UnicodeAttribute(null=True)
    count = NumberAttribute(null=True)
    log = ListAttribute(null=True)


class Odd(Model):
    state = NumberAttribute()


ANY = Thing.id.exists() | Thing.id.does_not_exist()


@pytest.fixture
def store() -> Store:
    store = Store()
    store.create("Things", ("id",), projected={"due": ["count"]}, due=("state", "due"))
    return store


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture
def table(store, gate) -> Table:
    return Table(store.connect(gate), "Things", ("id",))


def holds(store: Store, table: Table, condition) -> bool:
    before = store.snapshot()
    try:
        table.update(("a",), [Thing.due.set("x")], condition)
    except ConditionFailed:
        assert store.snapshot() == before
        return False
    store.restore(before)
    return True


CONDITIONS = [
    (Thing.state.exists(), True),
    (Thing.log.exists(), False),
    (Thing.log.does_not_exist(), True),
    (Thing.state == "open", True),
    (Thing.state == "shut", False),
    (Thing.log == ["x"], False),
    (Thing.state != "shut", True),
    (Thing.state != "open", False),
    (Thing.log != ["x"], True),  # DynamoDB: an attribute that is not there is unequal to everything
    (Thing.count > 9, True),  # by number, not by text
    (Thing.count >= 10, True),
    (Thing.count < 9, False),
    (Thing.count <= 10, True),
    (Thing.count.between(9, 11), True),
    (Thing.count.between(11, 12), False),
    (Thing.log < ["x"], False),
    (Thing.state.is_in("shut", "open"), True),
    (Thing.state.is_in("shut"), False),
    (~(Thing.state == "shut"), True),
    ((Thing.state == "shut") | ((Thing.state == "open") & (Thing.count == 10)), True),
    (((Thing.state == "shut") | (Thing.state == "open")) & (Thing.count == 11), False),
]


@pytest.mark.parametrize(("condition", "expected"), CONDITIONS, ids=[str(each) for each, _ in CONDITIONS])
def test_a_condition_holds_as_in_dynamodb(store, table, condition, expected) -> None:
    table.put(Thing("a", state="open", count=10), ANY)
    assert holds(store, table, condition) is expected


def test_conditions_on_an_absent_item_see_nothing(store, table) -> None:
    assert holds(store, table, Thing.id.does_not_exist())
    assert holds(store, table, Thing.state != "open")
    assert not holds(store, table, Thing.state == "open")


def test_a_failed_condition_shows_the_stored_item_to_pynamodbs_cause_alone(store, table) -> None:
    table.put(Thing("a", state="open"), ANY)
    with pytest.raises(ConditionFailed) as refused:
        table.put(Thing("a", state="shut"), Thing.id.does_not_exist())
    assert refused.value.item == {"id": {"S": "a"}, "state": {"S": "open"}}
    error = refused.value.__cause__
    assert isinstance(error, ClientError)
    assert "Item" not in error.response
    assert error.__cause__.response["Item"] == refused.value.item


def test_a_failed_condition_on_an_absent_item_shows_none(table) -> None:
    with pytest.raises(ConditionFailed) as refused:
        table.update(("a",), [Thing.state.set("x")], Thing.id.exists())
    assert refused.value.item is None


def test_an_update_sets_appends_removes_and_adds_at_once_from_the_item_as_it_was(store, table) -> None:
    table.put(Thing("a", state="open", due="d", count=1, log=["x"]), ANY)
    actions = [
        Thing.state.set("shut"),
        Thing.log.set(Thing.log.append(["y"])),
        Thing.due.remove(),
        Thing.count.add(2),
    ]
    table.update(("a",), actions, Thing.id.exists())
    assert store.item("Things", "a") == {
        "id": {"S": "a"},
        "state": {"S": "shut"},
        "count": {"N": "3"},
        "log": {"L": [{"S": "x"}, {"S": "y"}]},
    }


def test_an_update_without_a_condition_on_existence_creates_the_item(store, table) -> None:
    table.update(("a",), [Thing.count.add(2)], ANY)
    assert store.item("Things", "a") == {"id": {"S": "a"}, "count": {"N": "2"}}


@pytest.mark.parametrize(
    "actions",
    [
        [Thing.log.set(Thing.log.append(["y"]))],  # there is no log
        [Odd.state.add(1)],  # not a number
        [Thing.state.set("x"), Thing.state.remove()],  # twice
        [Thing.id.set("b")],  # the key
        [Thing.due.set("")],  # an index key that is empty
    ],
    ids=["append to nothing", "add to text", "overlapping", "key", "empty index key"],
)
def test_an_update_that_dynamodb_refuses_is_a_validation_error_and_changes_nothing(store, table, actions) -> None:
    table.put(Thing("a", state="open"), ANY)
    before = store.snapshot()
    with pytest.raises(DatabaseError, match="ValidationException"):
        table.update(("a",), actions, Thing.id.exists())
    assert store.snapshot() == before
    assert store.refused["UpdateItem"] == 1


@pytest.mark.parametrize(
    "kwargs",
    [
        {"ConditionExpression": "((attribute_exists (#0)))", "ExpressionAttributeNames": {"#0": "id"}},
        {"ConditionExpression": "attribute_exists (#0)", "ExpressionAttributeNames": {"#0": "id", "#1": "x"}},
        {"ConditionExpression": "attribute_exists (#0)", "ExpressionAttributeNames": {}},
        {"ConditionExpression": "attribute_exists (#0) AND", "ExpressionAttributeNames": {"#0": "id"}},
        {"ConditionExpression": "attribute_exists (#0) #0", "ExpressionAttributeNames": {"#0": "id"}},
        {"Item": {"id": {"S": ""}}},
        {"Item": {}},
    ],
    ids=["redundant parentheses", "unused name", "undefined name", "cut off", "left over", "empty key", "no key"],
)
def test_a_put_that_dynamodb_refuses_is_a_validation_error(store, kwargs) -> None:
    with pytest.raises(ClientError, match="ValidationException"):
        store.connect().dispatch("PutItem", {"TableName": "Things", "Item": {"id": {"S": "a"}}, **kwargs})


def test_a_table_that_is_not_there_is_not_found(store) -> None:
    with pytest.raises(DatabaseError, match="GetItem on Other: ResourceNotFoundException"):
        Table(store.connect(), "Other", ("id",)).get(Thing, "a")


def test_an_index_holds_what_has_both_its_keys_in_order_and_shows_what_it_projects(table) -> None:
    for name, state, due in [("a", "open", "3"), ("b", "open", "1"), ("c", "open", None), ("d", "shut", "2")]:
        table.put(Thing(name, state=state, due=due, count=1, log=["x"]), ANY)
    page = table.query("due", (Thing.state == "open") & (Thing.due <= "3"))
    assert [item["id"]["S"] for item in page.items] == ["b", "a"]
    assert all(set(item) == {"id", "state", "due", "count"} for item in page.items)
    assert page.next_key is None
    assert table.query("due", Thing.state == "open", only=["id"]).items == [{"id": {"S": "b"}}, {"id": {"S": "a"}}]


def test_a_page_of_exactly_the_limit_says_that_there_may_be_more(table) -> None:
    for name in "abcd":
        table.put(Thing(name, state="open", due="1"), ANY)
    seen, start, pages = [], None, 0
    while True:
        page = table.query("due", Thing.state == "open", start=start, limit=2)
        seen += [item["id"]["S"] for item in page.items]
        pages += 1
        start = page.next_key
        if start is None:
            break
    assert (seen, pages) == (list("abcd"), 3)


def test_a_scan_goes_through_the_table_page_by_page(table, store) -> None:
    for name in "cab":
        table.put(Thing(name), ANY)
    first = table.scan(limit=2)
    rest = table.scan(start=first.next_key, limit=2)
    assert [item["id"]["S"] for item in (*first.items, *rest.items)] == ["a", "b", "c"]
    assert rest.next_key is None
    assert store.rows["Scan"] == 3


def test_an_index_can_lag_behind_its_table(table, store) -> None:
    table.put(Thing("a", state="open", due="1"), ANY)
    store.hold_indexes("Things")
    table.put(Thing("a", state="shut"), ANY)
    assert len(table.query("due", Thing.state == "open").items) == 1
    assert table.get(Thing, "a").state == "shut"
    store.release_indexes("Things")
    assert table.query("due", Thing.state == "open").items == []


def test_keys_left_unprocessed_are_read_again(table, store, gate) -> None:
    for name in "abcde":
        table.put(Thing(name), ANY)
    store.batch_get_serves = 2
    found = batch_get(store.connect(gate), {table: [(name,) for name in "abcxe"]})
    assert sorted(item["id"]["S"] for _, item in found) == ["a", "b", "c", "e"]
    assert store.calls["BatchGetItem"] == 3


def test_keys_that_stay_unprocessed_are_an_error_and_not_absent(table, store) -> None:
    store.batch_get_serves = 0
    with pytest.raises(DatabaseError, match="UnprocessedKeys"):
        list(batch_get(store.connect(), {table: [("a",)]}))
    assert store.calls["BatchGetItem"] == 5


def test_more_than_a_hundred_keys_are_read_in_several_calls(table, store) -> None:
    for number in range(250):
        table.put(Thing(str(number)), ANY)
    found = list(batch_get(store.connect(), {table: [(str(number),) for number in range(250)]}))
    assert len(found) == 250
    assert store.calls["BatchGetItem"] == 3


def test_no_keys_are_no_call(table, store) -> None:
    assert list(batch_get(store.connect(), {table: []})) == []
    assert store.calls["BatchGetItem"] == 0


def test_a_snapshot_brings_everything_back(table, store) -> None:
    table.put(Thing("a", count=1), ANY)
    before = store.snapshot()
    table.update(("a",), [Thing.count.add(1)], ANY)
    table.put(Thing("b"), ANY)
    store.restore(before)
    assert store.items("Things") == [{"id": {"S": "a"}, "count": {"N": "1"}}]


def test_one_of_many_threads_wins_a_conditional_put(store) -> None:
    tables = [Table(store.connect(), "Things", ("id",)) for _ in range(16)]
    start, won = threading.Barrier(16), []

    def put(number: int) -> None:
        start.wait()
        for each in range(50):
            try:
                tables[number].put(Thing(f"thing-{each}", count=number), Thing.id.does_not_exist())
            except ConditionFailed:
                continue
            won.append(each)

    threads = [threading.Thread(target=put, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(won) == list(range(50))


# -- the gate -----------------------------------------------------------------------------------------------------


def test_a_call_refused_at_the_gate_does_not_reach_the_store(store, table, gate) -> None:
    gate.on_call = Lever(raising(read_timeout()))
    with pytest.raises(DatabaseError, match="ReadTimeoutError"):
        table.put(Thing("a"), ANY)
    assert store.calls.total() == 0


def test_a_lost_reply_makes_the_call_again(store, table, gate) -> None:
    gate.after_call = Lever(raising(ReplyLost()))
    table.update(("a",), [Thing.count.add(1)], ANY)
    assert store.item("Things", "a")["count"] == {"N": "2"}
    assert gate.calls == ["UpdateItem", "UpdateItem"]


def test_a_killed_worker_does_nothing_any_more(store, table, gate) -> None:
    gate.after_call = Lever(raising(Killed()))
    with pytest.raises(Killed):
        table.put(Thing("a"), ANY)
    with pytest.raises(Killed):
        table.put(Thing("b"), ANY)
    assert [item["id"]["S"] for item in store.items("Things")] == ["a"]
