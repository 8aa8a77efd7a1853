"""The handlers with nothing around them but what the template declares (DL-07)."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from cases import stack
from cases.stage import FUNCTIONS, Stage, job_settled, sqs_event
from notices import wiring
from notices.settings import SettingsError

VALUES = {
    "POWERTOOLS_SERVICE_NAME": "requester-notices",
    "ENVIRONMENT": "development",
    "NOTICES_TABLE": "notices",
    "JOBS_TABLE": "jobs",
    "REQUESTERS_TABLE": "requesters",
    "JOB_SETTLED_QUEUE_URL": "https://sqs.eu-west-1.amazonaws.com/123456789012/queue",
    "JOB_SETTLED_DEAD_LETTER_QUEUE_URL": "https://sqs.eu-west-1.amazonaws.com/123456789012/dead-letters",
    "MAIL_CONFIGURATION_SET": "notices",
    "CLAIM_LEASE_SECONDS": "0",
    "UNKNOWN_GRACE_SECONDS": "600",
    "RETRY_HORIZON_HOURS": "72",
    "NOTICE_RETENTION_DAYS": "90",
    "UNTOLD_CHECK": "off",
    "SES_SEND_RATE": "14",
    "MAXIMUM_CONCURRENCY": "2",
}
OPTIONAL = {  # an empty parameter's value
    "NOTICE_FROM_ADDRESS", "MAIL_FROM_ADDRESS", "HQ_BASE_URL", "CUSTOMER_BASE_URL", "SETTLED_JOBS_INDEX",
    "UNTOLD_BOOKMARK_TABLE", "AWS_ENDPOINT_URL",
}  # fmt: skip
LOGICAL_IDS = {
    "tell_requester": "TellRequesterFunction",
    "retry_due_notices": "RetryDueNoticesFunction",
    "record_feedback": "RecordFeedbackFunction",
    "find_untold": "FindUntoldFunction",
}
REQUIRED = {
    "tell_requester": [
        "NOTICES_TABLE", "JOBS_TABLE", "REQUESTERS_TABLE", "JOB_SETTLED_DEAD_LETTER_QUEUE_URL",
        "MAIL_CONFIGURATION_SET", "AWS_REGION",
    ],
    "retry_due_notices": ["NOTICES_TABLE", "JOB_SETTLED_QUEUE_URL", "AWS_REGION"],
    "record_feedback": ["NOTICES_TABLE", "AWS_REGION"],
    "find_untold": ["NOTICES_TABLE", "JOBS_TABLE", "AWS_REGION"],
}  # fmt: skip
NO_NETWORK = {"AWS_EC2_METADATA_DISABLED": "true"}  # Lambda gives credentials, so nothing looks for them elsewhere

CALL = """
import importlib.util, json, sys
spec = importlib.util.spec_from_file_location("app", sys.argv[1])
app = importlib.util.module_from_spec(spec)
spec.loader.exec_module(app)
class Context:
    aws_request_id = "request"
    def get_remaining_time_in_millis(self):
        return 120000
print(json.dumps(["answer", app.handler(json.loads(sys.argv[2]), Context())]))
"""

NONE_FAILED: dict[str, list[str]] = {"batchItemFailures": []}
ANSWERS: dict[str, tuple[dict[str, Any], Any]] = {
    "tell_requester": (sqs_event(job_settled("job-0001", kind="nobody_knows_it")), NONE_FAILED),
    "retry_due_notices": ({}, None),
    "record_feedback": (sqs_event('{"Type": "Notification", "Message": " "}'), NONE_FAILED),
    "find_untold": ({}, None),
}


def declared(function: str) -> dict[str, str]:
    """A value for each variable that the template declares for a function."""
    template = stack.template()
    own = template["Resources"][LOGICAL_IDS[function]]["Properties"].get("Environment", {}).get("Variables", {})
    names = {*template["Globals"]["Function"]["Environment"]["Variables"], *own}
    assert names <= VALUES.keys() | OPTIONAL
    return {name: VALUES.get(name, "") for name in names}


class _NothingThere(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = b'{"Items": [], "Count": 0}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@pytest.fixture
def empty_database() -> Iterator[str]:
    """The URL of a DynamoDB that holds nothing."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _NothingThere) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def _call(function: str, home: Path, environ: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", CALL, str(FUNCTIONS / function / "app.py"), json.dumps(ANSWERS[function][0])],
        env={**environ, "HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=home,
    )


@pytest.mark.parametrize("function", LOGICAL_IDS)
def test_a_handler_answers_with_nothing_but_its_declared_variables_and_a_region(
    function: str, tmp_path: Path, empty_database: str
) -> None:
    environ = declared(function) | {"AWS_REGION": "eu-west-1"} | NO_NETWORK
    if function == "retry_due_notices":  # the one that asks AWS whatever the event
        environ |= {"AWS_ACCESS_KEY_ID": "example", "AWS_SECRET_ACCESS_KEY": "example"}
        environ |= {"AWS_ENDPOINT_URL_DYNAMODB": empty_database}
    done = _call(function, tmp_path, environ)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert json.loads(done.stdout.splitlines()[-1]) == ["answer", ANSWERS[function][1]]


def test_a_missing_variable_is_named_in_the_last_line_of_the_init_error(tmp_path: Path) -> None:
    environ = declared("tell_requester") | {"AWS_REGION": "eu-west-1"} | NO_NETWORK
    del environ["JOBS_TABLE"], environ["MAIL_CONFIGURATION_SET"]
    done = _call("tell_requester", tmp_path, environ)
    assert done.returncode != 0
    message = done.stderr.splitlines()[-1]
    assert "JOBS_TABLE is not set" in message
    assert "MAIL_CONFIGURATION_SET is not set" in message


@pytest.mark.parametrize(
    ("function", "name"), [(function, name) for function, names in REQUIRED.items() for name in names]
)
@pytest.mark.parametrize("value", [None, ""], ids=["unset", "empty"])
def test_a_missing_variable_gives_one_message_with_its_name(function: str, name: str, value: str | None) -> None:
    with Stage({name: value}) as stage, pytest.raises(SettingsError) as raised:
        stage.start(function)
    assert str(raised.value) == f"settings: {name} is not set"


class _Asked(dict[str, str]):
    """An environment that remembers what was asked for."""

    def __init__(self, values: Mapping[str, str]) -> None:
        super().__init__(values)
        self.names: set[str] = set()

    def get(self, name: str, default: Any = None) -> Any:
        self.names.add(name)
        return super().get(name, default)

    def __getitem__(self, name: str) -> str:
        self.names.add(name)
        return super().__getitem__(name)


@pytest.mark.parametrize("function", LOGICAL_IDS)
def test_every_variable_that_a_function_depends_on_is_declared(function: str) -> None:
    with Stage() as stage:
        environ = _Asked(stage.environ)
        with stage.as_lambda():
            getattr(wiring, function)(environ)
    needed = {name for name in REQUIRED[function] if name != "AWS_REGION"}
    assert needed <= environ.names
    every = {name for each in LOGICAL_IDS for name in declared(each)}
    assert environ.names <= every | {"AWS_REGION", "AWS_DEFAULT_REGION"}
    assert needed <= declared(function).keys()
