"""DynamoDB's expressions, compiled once: conditions to predicates, updates to functions from item to item.

As strict as the service where it can matter here: unused names and values, redundant parentheses, two actions on one
attribute, operands of the wrong type and attributes that are not there are refused as DynamoDB refuses them. Document
paths with dots and indexes, `DELETE`, and functions that this system does not use raise NotImplementedError.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import Any

Value = dict[str, Any]  # {"S": "text"}, {"N": "1"}, {"L": [...]}, …
Item = dict[str, Value]
Names = Mapping[str, str]
Values = Mapping[str, Value]

_Predicate = Callable[[Item, Names, Values], bool]
_Operand = Callable[[Item, Names, Values], Value | None]
_Change = Callable[[Item, Item, Names, Values], None]  # from the item before to the one that is being made


class Invalid(Exception):
    """What DynamoDB answers with a ValidationException."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A compiled condition and the placeholders in it."""

    holds: _Predicate
    uses: frozenset[str]


@dataclass(frozen=True, slots=True)
class Update:
    """A compiled update, the placeholders in it and those of the attributes that it changes."""

    changes: tuple[_Change, ...]
    uses: frozenset[str]
    targets: tuple[str, ...]

    def apply(self, item: Item, names: Names, values: Values) -> Item:
        """Return a changed copy; every operand is taken from the item as it was."""
        changed = dict(item)
        for change in self.changes:
            change(item, changed, names, values)
        return changed


@cache
def condition(text: str) -> Condition:
    """Compile a condition or key condition."""
    parser = _Parser(text)
    predicate = parser.either()
    parser.end()
    return Condition(predicate, frozenset(parser.uses))


@cache
def update(text: str) -> Update:
    """Compile an update expression."""
    parser = _Parser(text)
    changes, targets = parser.clauses()
    parser.end()
    return Update(tuple(changes), frozenset(parser.uses), tuple(targets))


@cache
def projection(text: str) -> tuple[str, ...]:
    """Return the placeholders of a projection expression."""
    return tuple(part.strip() for part in text.split(","))


_TOKEN = re.compile(r"\s*(<>|<=|>=|[=<>(),+]|-(?!\d)|[#:]?[A-Za-z0-9_]+|\S)")
_COMPARATORS = ("=", "<>", "<", "<=", ">", ">=")


class _Parser:
    def __init__(self, text: str) -> None:
        self.tokens = _TOKEN.findall(text)
        self.at = 0
        self.uses: set[str] = set()

    # -- tokens

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def word(self) -> str:
        return self.peek().upper()

    def take(self, *expected: str) -> str:
        token = self.peek()
        if (expected and token.upper() not in expected) or not token:
            raise Invalid(f'Syntax error; token: "{token or "<EOF>"}"')
        self.at += 1
        return token

    def end(self) -> None:
        if self.peek():
            raise Invalid(f'Syntax error; token: "{self.peek()}"')

    # -- conditions

    def either(self) -> _Predicate:
        parts = [self.both()]
        while self.word() == "OR":
            self.take()
            parts.append(self.both())
        if len(parts) == 1:
            return parts[0]
        return lambda item, names, values: any(part(item, names, values) for part in parts)

    def both(self) -> _Predicate:
        parts = [self.negation()]
        while self.word() == "AND":
            self.take()
            parts.append(self.negation())
        if len(parts) == 1:
            return parts[0]
        return lambda item, names, values: all(part(item, names, values) for part in parts)

    def negation(self) -> _Predicate:
        if self.word() != "NOT":
            return self.primary()
        self.take()
        inner = self.negation()
        return lambda item, names, values: not inner(item, names, values)

    def primary(self) -> _Predicate:
        if self.peek() == "(":
            self.take()
            opened = self.at
            inner = self.either()
            if self.tokens[opened] == "(" and self._closes(opened) == self.at - 1:
                raise Invalid("The expression has redundant parentheses")
            self.take(")")
            return inner
        if self.word() in ("ATTRIBUTE_EXISTS", "ATTRIBUTE_NOT_EXISTS"):
            wanted = self.take().upper() == "ATTRIBUTE_EXISTS"
            self.take("(")
            path = self.path()
            self.take(")")
            return lambda item, names, values: (names[path] in item) is wanted
        return self.comparison()

    def _closes(self, opened: int) -> int:
        depth = 0
        for place in range(opened, len(self.tokens)):
            depth += {"(": 1, ")": -1}.get(self.tokens[place], 0)
            if depth == 0:
                return place
        return -1

    def comparison(self) -> _Predicate:
        left = self.operand()
        if self.word() == "BETWEEN":
            self.take()
            low = self.operand()
            self.take("AND")
            high = self.operand()
            return lambda item, names, values: (
                _compare(">=", left(item, names, values), low(item, names, values))
                and _compare("<=", left(item, names, values), high(item, names, values))
            )
        if self.word() == "IN":
            self.take()
            self.take("(")
            options = [self.operand()]
            while self.peek() == ",":
                self.take()
                options.append(self.operand())
            self.take(")")
            return lambda item, names, values: any(
                _compare("=", left(item, names, values), option(item, names, values)) for option in options
            )
        comparator = self.take(*_COMPARATORS)
        right = self.operand()
        return lambda item, names, values: _compare(comparator, left(item, names, values), right(item, names, values))

    def operand(self) -> _Operand:
        if self.peek().startswith(":"):
            value = self.value()
            return lambda item, names, values: values[value]
        path = self.path()
        return lambda item, names, values: item.get(names[path])

    def path(self) -> str:
        token = self.take()
        if not token.startswith("#"):
            raise NotImplementedError(f"not written by pynamodb: {token}")
        self.uses.add(token)
        return token

    def value(self) -> str:
        token = self.take()
        if not token.startswith(":"):
            raise Invalid(f'Syntax error; token: "{token}"')
        self.uses.add(token)
        return token

    # -- updates

    def clauses(self) -> tuple[list[_Change], list[str]]:
        changes: list[_Change] = []
        targets: list[str] = []
        seen: set[str] = set()
        while self.peek():
            clause = self.take("SET", "REMOVE", "ADD").upper()
            if clause in seen:
                raise Invalid(f'The "{clause}" section can only be used once in an update expression')
            seen.add(clause)
            while True:
                target = self.path()
                if target in targets:
                    raise Invalid("Two document paths overlap with each other")
                targets.append(target)
                changes.append(getattr(self, f"_{clause.lower()}")(target))
                if self.peek() != ",":
                    break
                self.take()
        return changes, targets

    def _set(self, target: str) -> _Change:
        self.take("=")
        operand = self._set_operand()
        if self.peek() in ("+", "-"):
            raise NotImplementedError("arithmetic in SET")

        def change(before: Item, after: Item, names: Names, values: Values) -> None:
            after[names[target]] = _there(operand(before, names, values))

        return change

    def _set_operand(self) -> _Operand:
        function = self.word()
        if function not in ("LIST_APPEND", "IF_NOT_EXISTS"):
            return self.operand()
        self.take()
        self.take("(")
        first = self.operand() if function == "IF_NOT_EXISTS" else self._set_operand()
        self.take(",")
        second = self._set_operand()
        self.take(")")
        if function == "IF_NOT_EXISTS":
            return lambda item, names, values: first(item, names, values) or second(item, names, values)
        return lambda item, names, values: {
            "L": [*_list(first(item, names, values)), *_list(second(item, names, values))]
        }

    def _remove(self, target: str) -> _Change:
        def change(before: Item, after: Item, names: Names, values: Values) -> None:
            after.pop(names[target], None)

        return change

    def _add(self, target: str) -> _Change:
        value = self.value()

        def change(before: Item, after: Item, names: Names, values: Values) -> None:
            added, current = values[value], before.get(names[target], {"N": "0"})
            if "N" not in added or "N" not in current:
                raise Invalid("An operand in the update expression has an incorrect data type")
            after[names[target]] = {"N": number(Decimal(current["N"]) + Decimal(added["N"]))}

        return change


def number(value: Decimal) -> str:
    """Return a number as DynamoDB writes it: no exponent, no trailing zeros."""
    text = format(value, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _there(value: Value | None) -> Value:
    if value is None:
        raise Invalid("The provided expression refers to an attribute that does not exist in the item")
    return value


def _list(value: Value | None) -> list[Value]:
    value = _there(value)
    if "L" not in value:
        raise Invalid("An operand in the update expression has an incorrect data type")
    found: list[Value] = value["L"]
    return found


def _compare(comparator: str, left: Value | None, right: Value | None) -> bool:
    if comparator == "=":
        return left is not None and right is not None and equal(left, right)
    if comparator == "<>":  # true of an attribute that is not there, and of another type
        return left is None or right is None or not equal(left, right)
    if left is None or right is None:
        return False
    ((left_type, left_value),) = left.items()
    ((right_type, right_value),) = right.items()
    if left_type != right_type or left_type not in ("S", "N", "B"):
        return False
    one = (Decimal(left_value), Decimal(right_value)) if left_type == "N" else (left_value, right_value)
    if comparator == "<":
        return bool(one[0] < one[1])
    if comparator == "<=":
        return bool(one[0] <= one[1])
    if comparator == ">":
        return bool(one[0] > one[1])
    return bool(one[0] >= one[1])


def equal(left: Value, right: Value) -> bool:
    """Whether two values are the same for DynamoDB: numbers by value, all else by type and content."""
    if "N" in left and "N" in right:
        return Decimal(left["N"]) == Decimal(right["N"])
    if "L" in left and "L" in right:
        return len(left["L"]) == len(right["L"]) and all(map(equal, left["L"], right["L"]))
    if "M" in left and "M" in right:
        return left["M"].keys() == right["M"].keys() and all(
            equal(left["M"][key], right["M"][key]) for key in left["M"]
        )
    return left == right
