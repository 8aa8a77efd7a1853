"""What happens to the requests of the functions' own clients on their way: let through, refused, lost, interleaved.

A session from `Wire.session` hands every HTTP attempt to the wire first. What the wire lets through goes to moto, or
for mail to the SES that is set by `AWS_ENDPOINT_URL_SESV2`.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import botocore.session  # type: ignore[import-untyped]
from botocore.awsrequest import AWSPreparedRequest, AWSResponse  # type: ignore[import-untyped]
from botocore.exceptions import ReadTimeoutError  # type: ignore[import-untyped]
from botocore.loaders import create_loader  # type: ignore[import-untyped]
from moto.core.botocore_stubber import MockRawResponse
from moto.core.models import botocore_stubber

_LOADER = create_loader()  # keeps what it has read, so that a fresh session costs little


@dataclass(frozen=True, slots=True)
class Call:
    """One HTTP attempt of one call."""

    service: str
    operation: str
    payload: dict[str, Any]
    worker: str = ""

    @property
    def job_id(self) -> str | None:
        """The job that it is about, where it is a call to DynamoDB about one item."""
        key = self.payload.get("Item") or self.payload.get("Key") or {}
        value: str | None = key.get("job_id", {}).get("S")
        return value

    @property
    def resources(self) -> list[str]:
        """What it touches: tables, indexes (`table/index/name`), queues by URL, identities and configuration sets."""
        if "RequestItems" in self.payload:
            return sorted(self.payload["RequestItems"])
        if "TableName" in self.payload:
            index = self.payload.get("IndexName")
            return [self.payload["TableName"] + (f"/index/{index}" if index else "")]
        names = ("QueueUrl", "FromEmailAddress", "ConfigurationSetName")
        return [str(self.payload[name]) for name in names if name in self.payload]


Let = Callable[[], AWSResponse | None]
Action = Callable[[Call, Let], AWSResponse | None]


@dataclass(slots=True)
class _Rule:
    operation: str
    action: Action
    when: Callable[[Call], bool]
    times: int | None

    def meets(self, call: Call) -> bool:
        return call.operation == self.operation and self.times != 0 and self.when(call)


@dataclass(slots=True)
class Wire:
    """The rules, and every attempt that was made. The first rule that fits decides."""

    calls: list[Call] = field(default_factory=list)
    _rules: list[_Rule] = field(default_factory=list)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def on(
        self,
        operation: str,
        action: Action,
        *,
        when: Callable[[Call], bool] = lambda _: True,
        times: int | None = None,
    ) -> None:
        """Meet the attempts at an operation by this action: all of them, or so many."""
        self._rules.append(_Rule(operation, action, when, times))

    def clear(self) -> None:
        """Let everything through again."""
        self._rules.clear()

    def count(self, operation: str) -> int:
        """How many attempts at an operation were made."""
        return sum(call.operation == operation for call in self.calls)

    def session(self, worker: str = "") -> botocore.session.Session:
        """A session whose clients' requests go through here."""
        session = botocore.session.Session()
        session.register_component("data_loader", _LOADER)
        session.unregister("before-send", botocore_stubber)  # else moto would answer beside the wire

        def before_send(request: AWSPreparedRequest, event_name: str, **_: Any) -> AWSResponse | None:
            service, operation = event_name.split(".")[1:]
            call = Call(service, operation, json.loads(request.body or b"{}"), worker)

            def let() -> AWSResponse | None:
                return None if service == "sesv2" else botocore_stubber(event_name, request)

            return self._meet(call, let)

        session.register("before-send", before_send)
        return session

    def _meet(self, call: Call, let: Let) -> AWSResponse | None:
        with self._lock:
            self.calls.append(call)
            rule = next((rule for rule in self._rules if rule.meets(call)), None)
            if rule is not None and rule.times is not None:
                rule.times -= 1
        return rule.action(call, let) if rule is not None else let()


def about(job_id: str) -> Callable[[Call], bool]:
    """When a call is about this job."""
    return lambda call: call.job_id == job_id


# Actions


def answer(status: int, body: dict[str, Any]) -> Action:
    """Answer in the service's stead; the service never sees the request."""

    def act(call: Call, let: Let) -> AWSResponse:
        headers = {"Content-Type": "application/x-amz-json-1.0"}
        return AWSResponse("http://wire.invalid", status, headers, MockRawResponse(json.dumps(body)))

    return act


def error(code: str, status: int = 400, message: str = "made up for a test") -> Action:
    """Refuse with an error of this code."""
    return answer(status, {"__type": f"com.amazonaws.example#{code}", "message": message})


def read_timeout(call: Call, let: Let) -> AWSResponse | None:
    """No answer comes, and the service never saw the request."""
    raise ReadTimeoutError(endpoint_url="http://wire.invalid")


def landed_but_lost(call: Call, let: Let) -> AWSResponse | None:
    """The service does it, and its answer is lost."""
    let()
    raise ReadTimeoutError(endpoint_url="http://wire.invalid")


def after(first: Callable[[], object]) -> Action:
    """Something else happens first; then the request goes through."""

    def act(call: Call, let: Let) -> AWSResponse | None:
        first()
        return let()

    return act


class Turns:
    """Makes workers in threads of their own take their steps in one order: (worker, operation), one attempt each."""

    def __init__(self, *steps: tuple[str, str]) -> None:
        self._steps = list(steps)
        self._changed = threading.Condition()

    def watch(self, worker: str) -> Callable[[botocore.session.Session], None]:
        """Let the steps of a worker end when their answers are there; for its session."""

        def end(event_name: str, **_: Any) -> None:
            self._end((worker, event_name.rpartition(".")[2]))

        def register(session: botocore.session.Session) -> None:
            session.register("response-received", end)

        return register

    def take(self, call: Call, let: Let) -> AWSResponse | None:
        """An action: wait for the turn of this step."""
        step = (call.worker, call.operation)
        with self._changed:
            if not self._changed.wait_for(lambda: self._steps[:1] == [step], timeout=10):
                raise AssertionError(f"{step} never had its turn; next would be {self._steps[:1]}")
        return let()

    def _end(self, step: tuple[str, str]) -> None:
        with self._changed:
            if self._steps[:1] == [step]:
                self._steps.pop(0)
            self._changed.notify_all()
