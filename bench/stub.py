"""A local AWS that is fast enough not to be what is measured: `python -m bench.stub`, its own process.

It answers DynamoDB, SQS and SES v2 over HTTP and over TLS, each call after the latency that was chosen, and counts
its calls. It keeps nothing: every job and requester exists, and a notice exists when `handled` is set. Controlled by
`Control`, over the same port.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import subprocess
import sys
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Item = dict[str, Any]

PEER_TABLE = "Told"  # the peer's idempotency records
DETAILS = {
    "workspace_id": {"S": "ws-0001"},
    "workspace_name": {"S": "Blue Harbour"},
    "failure_reason": {"S": "the region has no more room for workspaces of this size"},
}
NOTICE = {
    "status": {"S": "delivered"},
    "kind": {"S": "workspace_provisioning"},
    "tenant_id": {"S": "tenant-1"},
    "requester_id": {"S": "requester-1"},
    "attempts": {"N": "1"},
    "claim_id": {"S": "6f1c1c1e-0000-4000-8000-000000000000"},
    "claimed_at": {"S": "2026-01-01T00:00:00.000000+0000"},
    "created_at": {"S": "2026-01-01T00:00:00.000000+0000"},
    "handled_at": {"S": "2026-01-01T00:00:01.000000+0000"},
    "provider_reference": {"S": "0102018f-stub"},
    "attempt_log": {
        "L": [
            {
                "M": {
                    "attempt": {"N": "1"},
                    "claim_id": {"S": "6f1c1c1e-0000-4000-8000-000000000000"},
                    "recorded_at": {"S": "2026-01-01T00:00:01.000000+0000"},
                    "result": {"S": "delivered"},
                    "reference": {"S": "0102018f-stub"},
                }
            }
        ]
    },
    "revision": {"N": "2"},
    "expires_at": {"N": "4102444800"},
}
TOLD = {
    "status": {"S": "COMPLETED"},
    "expiration": {"N": "4102444800"},
    "data": {"S": '{"message_id": "0102018f-stub"}'},
}


@dataclass(slots=True)
class World:
    """What the stub was told to be, and what it was asked."""

    latency: float
    handled: bool
    calls: Counter[str]

    def answer(self, path: str, target: str, body: bytes) -> tuple[int, Any]:
        """Return status and answer of one call."""
        operation = target.rpartition(".")[2] or ("SendEmail" if path.endswith("/outbound-emails") else path)
        self.calls[operation] += 1
        if operation == "SendEmail":
            return 200, {"MessageId": "0102018f-stub"}
        request = json.loads(body)
        match operation:
            case "GetItem":
                item = self._item(request["Key"])
                return 200, {"Item": item} if item else {}
            case "BatchGetItem":
                return 200, {
                    "Responses": {
                        table: [item for key in wanted["Keys"] if (item := self._item(key))]
                        for table, wanted in request["RequestItems"].items()
                    },
                    "UnprocessedKeys": {},
                }
            case "PutItem" if self.handled:
                stored = TOLD if request["TableName"] == PEER_TABLE else NOTICE
                return 400, {
                    "__type": "com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException",
                    "message": "The conditional request failed",
                    "Item": request["Item"] | stored,
                }
            case "PutItem" | "UpdateItem":
                return 200, {}
            case "SendMessage":
                return 200, {"MessageId": "message-1"}
        return 400, {"__type": "UnknownOperationException"}

    def _item(self, key: Item) -> Item | None:
        if "requester_id" in key:
            person = {"tenant_id": "tenant-1", "email": "dana@example.com", "name": "Dana Example"}
            return key | {name: {"S": value} for name, value in person.items()}
        if "outcome" in key:
            return key | NOTICE if self.handled else None
        return key | {
            "kind": {"S": "workspace_provisioning"},
            "tenant_id": {"S": "tenant-1"},
            "requester_id": {"S": f"requester-of-{key['job_id']['S']}"},
            "details": {"M": DETAILS},
        }


class Http(asyncio.Protocol):
    """Just enough of HTTP/1.1: one request after the other on a connection that stays open."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._received = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer every request that is complete."""
        self._received += data
        while (end := self._received.find(b"\r\n\r\n")) >= 0:
            head = self._received[:end].decode("latin-1").split("\r\n")
            headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:])}
            length = int(headers.get("content-length", 0))
            if len(self._received) < end + 4 + length:
                return
            body = self._received[end + 4 : end + 4 + length]
            self._received = self._received[end + 4 + length :]
            self._respond(head[0].split(" ")[1], headers.get("x-amz-target", ""), body)

    def _respond(self, path: str, target: str, body: bytes) -> None:
        if path.startswith("/-/"):
            self._write(200, self._control(body))
            return
        status, answer = self._world.answer(path, target, body)
        if self._world.latency:
            asyncio.get_running_loop().call_later(self._world.latency, self._write, status, answer)
        else:
            self._write(status, answer)

    def _control(self, body: bytes) -> dict[str, int]:
        told = json.loads(body)
        calls = dict(self._world.calls)
        self._world.calls.clear()
        self._world.latency = told.get("latency", self._world.latency)
        self._world.handled = told.get("handled", self._world.handled)
        return calls

    def _write(self, status: int, answer: Any) -> None:
        assert self._transport is not None
        if self._transport.is_closing():
            return
        body = json.dumps(answer, separators=(",", ":")).encode()
        head = f"HTTP/1.1 {status} -\r\nContent-Type: application/x-amz-json-1.0\r\nContent-Length: {len(body)}\r\n\r\n"
        self._transport.write(head.encode() + body)


class Control:
    """A running stub, seen from the benchmark."""

    def __init__(self, http: str, https: str) -> None:
        self.http, self.https = http, https

    def set(self, **told: Any) -> dict[str, int]:
        """Set `latency` (seconds) or `handled`; return the calls since the last time, by operation."""
        request = urllib.request.Request(f"{self.http}/-/", json.dumps(told).encode(), method="POST")
        with urllib.request.urlopen(request, timeout=10) as answer:
            calls: dict[str, int] = json.load(answer)
        return calls


@contextmanager
def running(certificate: Path, key: Path) -> Iterator[Control]:
    """Run a stub in a process of its own."""
    command = [sys.executable, "-m", "bench.stub", str(certificate), str(key)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        http, https = json.loads(process.stdout.readline())
        yield Control(f"http://127.0.0.1:{http}", f"https://127.0.0.1:{https}")
    finally:
        process.terminate()
        process.communicate(timeout=10)


async def _serve(certificate: str, key: str) -> None:
    world = World(0.0, False, Counter())
    loop = asyncio.get_running_loop()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    plain = await loop.create_server(lambda: Http(world), "127.0.0.1", 0)
    secure = await loop.create_server(lambda: Http(world), "127.0.0.1", 0, ssl=context)
    print(json.dumps([server.sockets[0].getsockname()[1] for server in (plain, secure)]), flush=True)
    # until whoever started it is gone
    await loop.run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(_serve(*sys.argv[1:3]))
