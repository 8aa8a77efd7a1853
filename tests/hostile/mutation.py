"""Mutants: an input changed here and there, of the same form as before, in microseconds; and a failing one made small.

Making an input anew costs Hypothesis more time than trying it; a mutant costs next to nothing.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

from hostile.inputs import (
    ADDRESSES,
    ANSWERS,
    ENVELOPES,
    FACTS,
    JOB_IDS,
    LOCALES,
    MOMENTS,
    NO_MOMENTS,
    OUTCOMES,
    PIECES,
    SES_MOMENTS,
    SES_TYPES,
    ZONES,
    envelope,
    tag,
)

Input = dict[str, Any]

LIKELY: tuple[Any, ...] = (
    *PIECES,
    *JOB_IDS,
    *OUTCOMES,
    *MOMENTS,
    *NO_MOMENTS,
    *SES_MOMENTS,
    *SES_TYPES,
    *(tag(job_id) for job_id in JOB_IDS),
    *("job.settled", "1", "1.7", 1, 2, 0, -1, True, None, 1.5, 10**40, 2**53 + 1, [], {}, [[]], [None], {"": None}),
)
WIRE: tuple[Any, ...] = (
    {"NULL": True},
    {"BOOL": True},
    {"B": "aGVsbG8="},
    {"SS": ["b", "a"]},
    {"NS": ["2", "1"]},
    {"N": "0"},
    {"N": "1E+125"},
    {"N": "-9.9E-130"},
    {"N": "9" * 38},
    {"L": []},
    {"M": {}},
    {"L": [{"S": "a"}, {"L": [{"N": "1"}]}]},
    {"M": {"a": {"M": {"b": {"S": "c"}}}}},
)
DEEPEST = 40
LONG = 60_000  # as much as six attributes of an item may have each
# Repeated: where a search may begin anew at each.
UNITS = (" ", " \n", "a-", "a/", "a.", "a@", "\u0301", "\u2068", "{{", "(", "\\")


def mutate(hostile: Input, chance: random.Random, donor: Input | None = None) -> Input:
    """Return `hostile` with one to three changes; `donor` is another input of the same target, to take parts from."""
    made = deepcopy(hostile)
    for _ in range(chance.choice((1, 1, 2, 3))):
        _MUTATIONS[made["target"]](made, chance, donor)
    return made


def shrink(hostile: Input, fails: Callable[[Input], bool], tries: int = 2000) -> Input:
    """Return an input that still fails and has less in it."""
    smaller = True
    while smaller and tries > 0:
        smaller = False
        for candidate in _lesser(hostile):
            tries -= 1
            if tries <= 0:
                break
            if fails(candidate):
                hostile, smaller = candidate, True
                break
    return hostile


# --- Text and JSON ---------------------------------------------------------------------------------


def _text(text: str, chance: random.Random) -> str:
    at = chance.randint(0, len(text))
    to = min(len(text), at + chance.choice((1, 2, 8, 60)))
    if len(text) < LONG and chance.random() < 0.03:
        return text[:at] + (chance.choice((*UNITS, text[at:to])) * LONG)[:LONG] + text[to:]
    match chance.randrange(6):
        case 0:
            return text[:at] + text[to:]
        case 1:
            return text[:at] + text[at:to] * 2 + text[to:]
        case 2:
            return text[:at]
        case 3:
            return text[:at] + chr(chance.choice((chance.randrange(128), chance.randrange(0xD800)))) + text[to:]
        case _:
            return text[:at] + chance.choice(PIECES) + text[to:]


def _value(value: Any, chance: random.Random, donor: Any = None, depth: int = 0) -> Any:
    """Change one place somewhere in a JSON value."""
    inside = depth < DEEPEST and chance.random() < 0.85
    if inside and isinstance(value, dict) and value:
        name = chance.choice(list(value))
        match chance.randrange(12):
            case 0:
                return {key: each for key, each in value.items() if key != name}
            case 1:
                return {**value, chance.choice(PIECES + FACTS + tuple(value)): chance.choice(LIKELY)}
            case _:
                return {**value, name: _value(value[name], chance, donor, depth + 1)}
    if inside and isinstance(value, list) and value:
        at = chance.randrange(len(value))
        match chance.randrange(8):
            case 0:
                return value[:at] + value[at + 1 :]
            case 1:
                return [*value, value[at]]
            case _:
                return [*value[:at], _value(value[at], chance, donor, depth + 1), *value[at + 1 :]]
    if inside and isinstance(value, str) and value[:1] in "{[":
        try:
            return json.dumps(_value(json.loads(value), chance, donor, depth + 1))
        except (ValueError, RecursionError):
            return _text(value, chance)
    match chance.randrange(6):
        case 0 if isinstance(value, str):
            return _text(value, chance)
        case 1 if isinstance(value, int | float) and not isinstance(value, bool):
            return value * chance.choice((-1, 0, 10, 1000)) + chance.choice((0, 1, 0.5)) if abs(value) < 1e200 else 0
        case 2:
            return [value]
        case 3 if donor is not None:
            return _somewhere_in(donor, chance)
        case _:
            return chance.choice(LIKELY)


def _somewhere_in(value: Any, chance: random.Random) -> Any:
    while isinstance(value, dict | list) and value and chance.random() < 0.9:
        value = chance.choice(list(value.values()) if isinstance(value, dict) else value)
    return value


# --- The targets -----------------------------------------------------------------------------------


def _records(hostile: Input, chance: random.Random, donor: Input | None) -> None:
    record = chance.choice(hostile["records"])
    match chance.randrange(24):
        case 0:
            record["messageId"] = chance.choice((None, "", 7, "message-0", "message-1", "message-9"))
        case 1:
            record["body"] = chance.choice((None, 5, {}, "", "null"))
        case 2:
            record.pop(chance.choice(("messageId", "body", "eventSource")), None)
        case 3:
            hostile["neighbour_at"] = chance.randint(0, 3)
        case 4:
            hostile["status"] = chance.choice(("pending", "failed", "delivered", "suppressed"))
        case 5 if len(hostile["records"]) < 4:
            hostile["records"].append({**record, "messageId": f"message-{len(hostile['records'])}"})
        case 6 if donor is not None:
            record["body"] = chance.choice(donor["records"]).get("body")
        case _:
            record["body"] = _body(record.get("body"), chance, donor)


def _body(body: Any, chance: random.Random, donor: Input | None) -> Any:
    if not isinstance(body, str):
        body = '{"type": "job.settled", "job_id": "job-1", "outcome": "succeeded"}'
    if chance.random() < 0.25 or len(body) > 20_000:
        body = _text(body, chance)
    else:
        try:
            event = json.loads(body)
            if chance.random() < 0.1:
                event = envelope(chance.choice(ENVELOPES), event, chance.choice(LIKELY))
            other = chance.choice(donor["records"]).get("body") if donor else None
            body = json.dumps(_value(event, chance, json.loads(other) if isinstance(other, str) else None))
        except (ValueError, RecursionError):
            body = _text(body, chance)
    return body[:200_000].encode("utf-8", "replace").decode("utf-8")


def _data(hostile: Input, chance: random.Random, donor: Input | None) -> None:
    match chance.randrange(16):
        case 0:
            hostile["production"] = not hostile["production"]
        case 1:
            hostile["refusal"] = [chance.choice(ANSWERS), chance.choice(PIECES), chance.choice((400, 403, 429, 500, 0))]
        case 2:
            hostile.pop(chance.choice(("refusal", "notice")), None)
        case 3 | 4 | 5:
            address = chance.choice(ADDRESSES)
            hostile["requester"]["email"] = {"S": _text(address, chance) if chance.random() < 0.7 else address}
        case 6 if "notice" in hostile:
            _attribute(hostile["notice"], ("job_id", "outcome"), chance)
        case 7:
            hostile["requester"]["time_zone"] = {"S": chance.choice(ZONES)}
            hostile["requester"]["locale"] = {"S": chance.choice(LOCALES)}
            hostile["requester"]["audience"] = {"S": chance.choice(("staff", "customer", "Staff"))}
        case 8 if donor is not None:
            name = chance.choice(("job", "requester"))
            hostile[name] = {**deepcopy(donor[name]), f"{name}_id": hostile[name][f"{name}_id"]}
        case 9 | 10 | 11:
            facts = hostile["job"].get("details", {}).get("M")
            if facts is not None:
                facts[chance.choice(FACTS[:4])] = {"S": _text(chance.choice(PIECES + MOMENTS), chance)}
        case _:
            name = chance.choice(("job", "requester"))
            _attribute(hostile[name], (f"{name}_id",), chance)


def _attribute(item: Input, keys: tuple[str, ...], chance: random.Random) -> None:
    """Change one attribute of an item, which stays an item: its keys as they are, every value of a known type."""
    name = chance.choice([name for name in item if name not in keys] or ["extra"])
    if chance.random() < 0.1:
        item.pop(name, None)
    else:
        item[name] = _wire(item.get(name, {"S": ""}), chance, 0)


def _wire(value: Any, chance: random.Random, depth: int) -> Any:
    match value:
        case {"M": {**inner}} if inner and depth < DEEPEST and chance.random() < 0.85:
            name = chance.choice(list(inner))
            if chance.random() < 0.15:
                name = chance.choice(FACTS + PIECES)
            return {"M": {**inner, name: _wire(inner.get(name, {"S": ""}), chance, depth + 1)}}
        case {"L": [*inner]} if inner and depth < DEEPEST and chance.random() < 0.85:
            at = chance.randrange(len(inner))
            return {"L": [*inner[:at], _wire(inner[at], chance, depth + 1), *inner[at + 1 :]]}
        case {"S": str(text)} if chance.random() < 0.8:
            return {"S": _text(text, chance)}
    return deepcopy(chance.choice(WIRE)) if chance.random() < 0.5 else {"S": chance.choice(PIECES)}


def _message(hostile: Input, chance: random.Random, donor: Input | None) -> None:
    match chance.randrange(10):
        case 0:
            hostile["outcome"] = chance.choice(("plain", "full"))
        case 1:
            hostile["audience"] = chance.choice(("staff", "customer"))
        case 2:
            hostile["locale"] = _text(chance.choice(LOCALES), chance)
        case 3:
            hostile["time_zone"] = (
                chance.choice(ZONES) if chance.random() < 0.5 else _text(chance.choice(ZONES), chance)
            )
            hostile["details"]["a_time"] = chance.choice(MOMENTS + NO_MOMENTS)
        case 4:
            hostile["name"] = _text(hostile["name"], chance)
        case _:
            name = chance.choice(("a_text", "a_long_text", "a_number", "a_flag", "a_list", "a_time"))
            taken = donor["details"] if donor else None
            hostile["details"][name] = _value(hostile["details"].get(name, ""), chance, taken)


_MUTATIONS: dict[str, Callable[[Input, random.Random, Input | None], None]] = {
    "job_settled": _records,
    "feedback": _records,
    "data": _data,
    "message": _message,
}


# --- Making a failing input small ------------------------------------------------------------------


def _lesser(hostile: Input) -> Iterator[Input]:
    if len(hostile.get("records", ())) > 1:
        for at in range(len(hostile["records"])):
            yield {**hostile, "records": hostile["records"][:at] + hostile["records"][at + 1 :]}
    for name in ("refusal", "notice"):
        if name in hostile:
            yield {key: value for key, value in hostile.items() if key != name}
    for path in _texts_in(hostile):
        text = _at(hostile, path)
        for start, end in ((0, len(text) // 2), (len(text) // 2, len(text)), (0, 1), (len(text) - 1, len(text))):
            yield _with(hostile, path, text[:start] + text[end:])
    for name in ("job", "requester"):
        for key in hostile.get(name, {}):
            if key not in ("job_id", "requester_id"):
                yield {**hostile, name: {each: value for each, value in hostile[name].items() if each != key}}
    for owner in (("job", "details", "M"), ("details",)):
        try:
            facts = _at(hostile, owner)
        except (KeyError, TypeError):
            continue
        for key in facts:
            yield _with(hostile, owner, {each: value for each, value in facts.items() if each != key})


def _texts_in(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, str):
        if value and path[-1:] != ("messageId",) and path[0] in ("records", "requester", "job", "details", "name"):
            yield path
    elif isinstance(value, dict):
        for key, each in value.items():
            if key not in ("job_id", "requester_id", "target"):
                yield from _texts_in(each, (*path, key))
    elif isinstance(value, list):
        for at, each in enumerate(value):
            yield from _texts_in(each, (*path, at))


def _at(value: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        value = value[step]
    return value


def _with(hostile: Input, path: tuple[Any, ...], value: Any) -> Input:
    made = deepcopy(hostile)
    owner = _at(made, path[:-1])
    owner[path[-1]] = value
    return made
