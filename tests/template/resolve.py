"""The template as CloudFormation would see it for given parameters: conditions decided, functions worked out.

What only a deployed stack knows stays a word in braces: ``Ref`` of a queue is ``{JobSettledQueue}``, its ARN
``{JobSettledQueue.Arn}``. A name that nothing declares is an error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from scripts.template import load

PSEUDO = {
    "AWS::AccountId": "123456789012",
    "AWS::Partition": "aws",
    "AWS::Region": "eu-west-1",
    "AWS::StackName": "requester-notices",
    "AWS::URLSuffix": "amazonaws.com",
}
NO_VALUE = object()


class Stack:
    def __init__(self, **parameters: str) -> None:
        self.template = _template()
        declared = self.template["Parameters"]
        assert set(parameters) <= set(declared)
        self.parameters = {
            name: str(parameters.get(name, declaration.get("Default", ""))) for name, declaration in declared.items()
        }
        self.resources: dict[str, dict[str, Any]] = {
            name: self._resolve(resource)
            for name, resource in self.template["Resources"].items()
            if "Condition" not in resource or self._condition(resource["Condition"])
        }

    def properties(self, logical_id: str) -> dict[str, Any]:
        properties: dict[str, Any] = self.resources[logical_id]["Properties"]
        return properties

    def of_type(self, resource_type: str) -> dict[str, dict[str, Any]]:
        return {
            name: resource["Properties"]
            for name, resource in self.resources.items()
            if resource["Type"] == resource_type
        }

    def environment(self, function: str) -> dict[str, str]:
        shared = self._resolve(self.template["Globals"]["Function"]["Environment"]["Variables"])
        return {**shared, **self.properties(function).get("Environment", {}).get("Variables", {})}

    def statements(self, function: str) -> list[dict[str, Any]]:
        """All that the function may do; its role holds no managed policy."""
        role = self.properties(self.properties(function)["Role"].strip("{}").removesuffix(".Arn"))
        assert "ManagedPolicyArns" not in role
        return [
            {**statement, "Action": as_list(statement["Action"]), "Resource": as_list(statement["Resource"])}
            for policy in role["Policies"]
            for statement in policy["PolicyDocument"]["Statement"]
        ]

    def allowed(self, function: str) -> set[tuple[str, str]]:
        """The pairs of action and resource."""
        return {
            (action, resource)
            for statement in self.statements(function)
            for action in statement["Action"]
            for resource in statement["Resource"]
        }

    def accepted_by(self, rule: str) -> bool:
        """Whether CloudFormation takes these parameters, as far as one of the template's rules is concerned."""
        declared = self.template["Rules"][rule]
        if not self._resolve(declared["RuleCondition"]):
            return True
        return all(self._resolve(assertion["Assert"]) for assertion in declared["Assertions"])

    def outputs(self) -> dict[str, str]:
        return {
            name: self._resolve(output["Value"])
            for name, output in self.template["Outputs"].items()
            if "Condition" not in output or self._condition(output["Condition"])
        }

    def _condition(self, name: str) -> bool:
        decided = self._resolve(self.template["Conditions"][name])
        assert isinstance(decided, bool)
        return decided

    def _resolve(self, value: Any) -> Any:
        if isinstance(value, dict):
            if len(value) == 1:
                [(name, argument)] = value.items()
                if name in ("Ref", "Condition") and isinstance(argument, str):
                    return self._ref(argument) if name == "Ref" else self._condition(argument)
                if name.startswith("Fn::"):
                    return getattr(self, f"_fn_{name.removeprefix('Fn::').lower()}")(argument)
            pairs = {key: self._resolve(item) for key, item in value.items()}
            return {key: item for key, item in pairs.items() if item is not NO_VALUE}
        if isinstance(value, list):
            return [item for item in map(self._resolve, value) if item is not NO_VALUE]
        return value

    def _ref(self, name: str) -> Any:
        if name == "AWS::NoValue":
            return NO_VALUE
        if name in PSEUDO:
            return PSEUDO[name]
        if name in self.parameters:
            return self.parameters[name]
        return f"{{{self._declared(name)}}}"

    def _declared(self, name: str) -> str:
        if name in self._made_by_sam():
            return name
        resource = self.template["Resources"][name]
        assert "Condition" not in resource or self._condition(resource["Condition"]), f"{name} is not made"
        return name

    def _made_by_sam(self) -> set[str]:
        """What SAM makes of a function's event: an event source mapping or a rule, named after both."""
        return {
            function + event
            for function, resource in self.template["Resources"].items()
            if resource["Type"] == "AWS::Serverless::Function"
            for event in resource["Properties"].get("Events", {})
        }

    def _fn_getatt(self, argument: Any) -> str:
        name, attribute = argument if isinstance(argument, list) else argument.split(".", 1)
        return f"{{{self._declared(name)}.{attribute}}}"

    def _fn_sub(self, argument: Any) -> str:
        text, variables = argument if isinstance(argument, list) else (argument, {})
        own = {name: self._resolve(value) for name, value in variables.items()}

        def value(match: re.Match[str]) -> str:
            name = match[1]
            if name in own:
                return str(own[name])
            return self._fn_getatt(name) if "." in name else str(self._ref(name))

        return re.sub(r"\$\{([^}!]+)\}", value, text)

    def _fn_if(self, argument: list[Any]) -> Any:
        return self._resolve(argument[1] if self._condition(argument[0]) else argument[2])

    def _fn_equals(self, argument: list[Any]) -> bool:
        left, right = self._resolve(argument)
        return bool(left == right)

    def _fn_not(self, argument: list[Any]) -> bool:
        [value] = self._resolve(argument)
        return not value

    def _fn_and(self, argument: list[Any]) -> bool:
        return all(self._resolve(argument))

    def _fn_or(self, argument: list[Any]) -> bool:
        return any(self._resolve(argument))

    def _fn_join(self, argument: list[Any]) -> str:
        separator, parts = self._resolve(argument)
        return str(separator).join(parts)

    def _fn_split(self, argument: list[Any]) -> list[str]:
        separator, text = self._resolve(argument)
        return list(text.split(separator))

    def _fn_select(self, argument: list[Any]) -> Any:
        index, items = self._resolve(argument)
        return items[int(index)]


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def matches(pattern: Mapping[str, Any], event: Mapping[str, Any]) -> bool:
    """Whether an EventBridge rule with ``pattern`` passes ``event``; exact values only, which is all that ours use."""
    for name, wanted in pattern.items():
        found = event.get(name)
        if isinstance(wanted, dict):
            if not isinstance(found, dict) or not matches(wanted, found):
                return False
        elif not set(as_list(found)) & set(wanted):
            return False
    return True


@cache
def _template() -> dict[str, Any]:
    return load()
