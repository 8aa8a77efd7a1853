"""What `make sam-local` says on a machine that lacks something, and whether its checks can fail."""

from __future__ import annotations

import http.server
import json
import os
import socketserver
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from demo import sam_local
from demo.engine import Engine, EngineError
from demo.sam_cases import CASES, Invoked
from scripts.template import ROOT, load

ANSWERS: dict[str, Any] = {
    "/_ping": "OK",
    "/images/public.ecr.aws/lambda/python:3.13-x86_64/json": {},
    "/networks/bridge": {"IPAM": {"Config": [{"Subnet": "172.17.0.0/16", "Gateway": "172.17.0.1"}]}},
}


class Answering(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        found = ANSWERS.get(self.path)
        body = json.dumps(found).encode()
        self.send_response(200 if found is not None else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def address_string(self) -> str:
        return "socket"

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture
def engine_socket(tmp_path: Path) -> Iterator[str]:
    path = str(tmp_path / "engine.sock")
    with socketserver.ThreadingUnixStreamServer(path, Answering) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield f"unix://{path}"
        server.shutdown()


def test_an_engine_is_asked_over_its_socket(engine_socket: str) -> None:
    engine = Engine({"DOCKER_HOST": engine_socket})
    assert engine.has_image("public.ecr.aws/lambda/python:3.13-x86_64")
    assert not engine.has_image("public.ecr.aws/lambda/python:3.13-arm64")
    assert engine.this_machine() == "172.17.0.1"


@pytest.mark.parametrize("address", ["unix:///nowhere/engine.sock", "tcp://127.0.0.1:1", "npipe:////./pipe/engine"])
def test_where_no_engine_answers_the_error_names_the_address(address: str) -> None:
    with pytest.raises(EngineError, match=address.replace(".", r"\.")):
        Engine({"DOCKER_HOST": address})


def test_all_that_is_missing_is_said_at_once_with_exit_status_3(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/engine.sock")

    assert sam_local.main([]) == 3

    said = capsys.readouterr().err
    for missing in ("the SAM CLI", "python3.13", "make, which", "a container engine", "unix:///nowhere/engine.sock"):
        assert f"- {missing}" in said or missing in said
    assert "make demo" in said


def test_a_build_that_fails_ends_with_exit_status_2_and_sams_own_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, engine_socket: str
) -> None:
    for name, script in (("sam", "echo 'Build Failed: no such layer' >&2; exit 1"), ("python3.13", ""), ("make", "")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("DOCKER_HOST", engine_socket)
    monkeypatch.setattr(sam_local, "WORK", tmp_path / "work")

    assert sam_local.main([]) == 2

    said = capsys.readouterr().err
    assert "`sam build" in said
    assert "Build Failed: no such layer" in said


def test_every_function_and_every_ready_event_is_invoked() -> None:
    functions = {name for name, each in load()["Resources"].items() if each["Type"] == "AWS::Serverless::Function"}
    assert {case.function for case in CASES} == functions
    events = {path.name for path in (ROOT / "events").glob("*.json")}
    assert {case.event for case in CASES} == events - {"env.json", "job-settled.schema.json"}


class NothingDone:
    """A stack on which nothing has happened."""

    outputs = dict.fromkeys(("NoticesTableName", "JobSettledDeadLetterQueueUrl", "JobSettledQueueUrl"), "x")

    def table(self, _output: str) -> Any:
        return self

    def client(self, _service: str) -> Any:
        return self

    def get_item(self, **_: Any) -> dict[str, Any]:
        item = {"revision": 2, "next_attempt_at": "2026-03-01T10:00:00.000000+0000", "status": "failed", "attempts": 1}
        return {"Item": item}

    def receive_message(self, **_: Any) -> dict[str, Any]:
        return {}


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.function}-{case.event}")
def test_an_invocation_that_did_nothing_is_not_right(case: Any) -> None:
    assert case.right(NothingDone(), Invoked({"batchItemFailures": []}, []))


def test_what_a_function_counted_is_read_by_service_alone() -> None:
    by_kind = {"_aws": {}, "service": "x", "kind": "k", "NoticeDelivered": [1.0]}
    invoked = Invoked(None, [by_kind, {"_aws": {}, "service": "x", "NoticeDelivered": [2.0]}])
    assert invoked.counted("NoticeDelivered") == 2
    assert invoked.counted("NoticeFailed") is None
