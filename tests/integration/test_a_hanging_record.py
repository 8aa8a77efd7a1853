"""One record that hangs holds its batch up no longer than its own time-outs: the real function, over real sockets."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from bench.stub import World
from fakes.context import FakeContext
from notices import database, wiring

READ_SECONDS = 0.4
HANGS = "job-3"
ENVIRON = {
    "AWS_REGION": "eu-west-1",
    "ENVIRONMENT": "production",
    "NOTICES_TABLE": "Notices",
    "JOBS_TABLE": "Jobs",
    "REQUESTERS_TABLE": "Requesters",
    "JOB_SETTLED_DEAD_LETTER_QUEUE_URL": "https://sqs.eu-west-1.amazonaws.com/123456789012/dead",
    "MAIL_CONFIGURATION_SET": "mail",
    "NOTICE_FROM_ADDRESS": "notices@example.com",
}


class Aws:
    """The benchmark's stub in threads, but that one operation on one job gets no answer."""

    def __init__(self, operation: str) -> None:
        self.operation = operation
        self.world = World(0.0, False, Counter())
        self.answered: list[tuple[float, str]] = []
        self.over = threading.Event()


@pytest.fixture
def aws(request: pytest.FixtureRequest) -> Iterator[tuple[str, Aws]]:
    aws = Aws(request.param)

    class Http(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            target = self.headers.get("X-Amz-Target", "")
            if target.endswith(aws.operation) and f'"{HANGS}"'.encode() in body:
                aws.over.wait(20)
                self.close_connection = True
                return
            status, answer = aws.world.answer(self.path, target, body)
            said = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)
            aws.answered.append((time.monotonic(), target.rpartition(".")[2] or "SendEmail"))

        def log_message(self, *_args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Http)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", aws
    aws.over.set()
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(("aws", "reported"), [("PutItem", True), ("UpdateItem", False)], indirect=["aws"])
def test_a_record_that_hangs_delays_no_other_and_ends_with_its_own_time_outs(
    aws: tuple[str, Aws], reported: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint, seen = aws
    for name, value in {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_ENDPOINT_URL": endpoint}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(database, "READ_SECONDS", READ_SECONDS)
    handler = wiring.tell_requester(ENVIRON)
    event = {
        "Records": [
            {
                "messageId": f"message-{number}",
                "body": json.dumps({"type": "job.settled", "job_id": f"job-{number}", "outcome": "succeeded"}),
            }
            for number in range(10)
        ]
    }

    begun = time.monotonic()
    answer = handler(event, FakeContext())
    ended = time.monotonic()

    assert answer == {"batchItemFailures": [{"itemIdentifier": "message-3"}] if reported else []}
    assert Counter(name for _, name in seen.answered)["UpdateItem"] == 9
    # two attempts of the SDK's that both time out, and for an outcome that twice over; far from the server's own 20 s
    own = database.ATTEMPTS * READ_SECONDS + database.BACKOFF_SECONDS
    assert ended - begun >= database.ATTEMPTS * READ_SECONDS
    assert ended - begun < 2 * own + 8
    # the nine others were through while it hung
    others_done = max(at for at, name in seen.answered if name == "UpdateItem")
    assert others_done < ended
