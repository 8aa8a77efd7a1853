"""``make sam-local``: every function in Lambda's own image, invoked with the ready events, and what it did checked.

It builds with sam, starts the local AWS, and runs `sam local invoke` for each event of events/ against it. No run can
reach the real AWS; on Linux your network can reach the local one while it runs. Exit status: 0 when all is as expected,
1 when something is not, 2 when the build or the local AWS failed, 3 when something that this needs is missing here.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from demo.engine import Engine, EngineError
from demo.local_aws import STACK_NAME, LocalAwsError, LocalStack
from demo.mail_front import REGION
from demo.sam_cases import CASES, Case, Invoked, seed
from scripts.build import BUILD
from scripts.template import ROOT, load

WORK = BUILD / "sam-local"
HOST = "host.docker.internal"  # this machine, as a container names it
SECONDS_TO_INVOKE = 180  # the first one makes an image
SECONDS_TO_BUILD = 600


class SamError(RuntimeError):
    """sam did not do what was asked; the message has its own last words."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it all and return the exit status."""
    parser = argparse.ArgumentParser(prog="make sam-local", description=__doc__)
    parser.add_argument("--sam", default="sam", help="the SAM CLI's command (default: %(default)s)")
    options = parser.parse_args(arguments)
    sam = shutil.which(options.sam)
    missing, engine = look_around(sam)
    if missing or sam is None or engine is None:
        print("make sam-local needs what this machine does not have:", *missing, sep="\n  - ", file=sys.stderr)
        print("The same functions run without a container engine in `make demo` and `make up`.", file=sys.stderr)
        return 3
    try:
        return _run(sam, engine)
    except (SamError, LocalAwsError) as error:
        print(error, file=sys.stderr)
        return 2


def look_around(sam: str | None) -> tuple[list[str], Engine | None]:
    """What is missing, each with its remedy; and the engine, where there is one."""
    missing = []
    if sam is None:
        missing.append("the SAM CLI: `pip install aws-sam-cli` in an environment of its own, and its `sam` on the PATH")
    if not _works("python3.13", "-m", "pip", "--version"):
        missing.append(
            "a python3.13 with pip on the PATH, which compiles the layers' bytecode; a version manager's shim has to"
            " have 3.13 selected"
        )
    if shutil.which("make") is None:
        missing.append("make, which builds the layers")
    engine = None
    try:
        engine = Engine()
    except EngineError as error:
        missing.append(f"a container engine (Docker, Podman, Finch), running: {error}. DOCKER_HOST names another one")
    return missing, engine


def _run(sam: str, engine: Engine) -> int:
    started = time.monotonic()
    _says("building with sam")
    built = _build(sam)
    wrong = 0
    bind = "0.0.0.0" if sys.platform == "linux" else "127.0.0.1"  # noqa: S104 - a container cannot reach 127.0.0.1 there
    with LocalStack("production", {"UntoldCheck": "scan"}, bind=bind, progress=_says) as stack:
        _quieten(stack)
        seed(stack)
        invoke = Invoke(sam, built, engine, _variables(stack))
        for case in CASES:
            faults = _try(case, stack, invoke)
            wrong += bool(faults)
            print(f"{'WRONG' if faults else 'ok':5} {case.function:24} {case.event:30} {case.shows}", flush=True)
            for fault in faults:
                print(f"      {fault}", flush=True)
    verdict = f"{wrong} of {len(CASES)} are not as expected" if wrong else f"all {len(CASES)} as expected"
    print(f"{verdict}, in {time.monotonic() - started:.0f} seconds")
    return 1 if wrong else 0


def _try(case: Case, stack: LocalStack, invoke: Invoke) -> Sequence[str]:
    try:
        invoked = invoke(case.function, ROOT / "events" / case.event)
    except SamError as error:
        return str(error).splitlines()
    return case.right(stack, invoked)


# ---- sam ----------------------------------------------------------------------------------------------------------


class Invoke:
    """Runs ``sam local invoke`` as a person would type it."""

    def __init__(self, sam: str, built: Path, engine: Engine, variables: Mapping[str, str]) -> None:
        architecture = "arm64" if platform.machine() in ("arm64", "aarch64") else "x86_64"
        environment = WORK / "env.json"
        environment.write_text(json.dumps({"Parameters": dict(variables)}, indent=2))
        runtime = load()["Globals"]["Function"]["Runtime"].removeprefix("python")
        image = f"public.ecr.aws/lambda/python:{runtime}-{architecture}"
        self._options = ["--template-file", str(built / "template.yaml"), "--env-vars", str(environment)]
        self._options += ["--parameter-overrides", f"SesIdentity=example.com Architecture={architecture}"]
        if engine.has_image(image):
            self._options.append("--skip-pull-image")  # sam would ask the registry each time, also without a network
        if sys.platform == "linux":
            self._options += ["--add-host", f"{HOST}:{engine.this_machine() or '172.17.0.1'}"]
        self._sam = sam

    def __call__(self, function: str, event: Path) -> Invoked:
        """Invoke ``function`` with the event in a file.

        Raises:
            SamError: sam failed, or the function did.
        """
        done = _sam([self._sam, "local", "invoke", function, "--event", str(event), *self._options], SECONDS_TO_INVOKE)
        # The answer is all that goes to standard output; what the function logs goes the other way.
        lines = done.stdout.strip().splitlines()
        answer = _parsed(lines[-1]) if lines else None
        if isinstance(answer, dict) and "errorMessage" in answer:
            raise SamError(f"{function} failed: {answer.get('errorType')}: {answer['errorMessage']}")
        logged = [line for text in (done.stdout + done.stderr).splitlines() if isinstance(line := _parsed(text), dict)]
        return Invoked(answer, logged)


def _build(sam: str) -> Path:
    built = WORK / "built"
    WORK.mkdir(parents=True, exist_ok=True)
    template = ROOT / "template.yaml"
    _sam([sam, "build", "--template-file", str(template), "--build-dir", str(built)], SECONDS_TO_BUILD)
    return built


def _sam(command: Sequence[str], seconds: float) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    environment |= {
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": REGION,
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "SAM_CLI_TELEMETRY": "0",
    }
    # An empty configuration: the project's own is for deploying.
    empty = WORK / "samconfig.toml"
    empty.write_text("version = 0.1\n")
    try:
        done = subprocess.run(
            [*command, "--config-file", str(empty)],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=seconds,
        )
    except subprocess.TimeoutExpired as error:
        raise SamError(f"`{_typed(command)}` did not end within {seconds:.0f} seconds") from error
    if done.returncode:
        last = "\n".join((done.stdout + done.stderr).strip().splitlines()[-15:])
        raise SamError(f"`{_typed(command)}` ended with {done.returncode}:\n{last}")
    return done


def _typed(command: Sequence[str]) -> str:
    return " ".join(["sam", *command[1:4]])


# ---- the local AWS ------------------------------------------------------------------------------------------------


def _quieten(stack: LocalStack) -> None:
    """Keep the local AWS's own functions from doing the work of those that sam runs."""
    for source in ("TellRequesterEventSourceId", "RecordFeedbackEventSourceId"):
        stack.client("lambda").update_event_source_mapping(UUID=stack.outputs[source], Enabled=False)
    for rule in ("RetryScheduleRuleName", "UntoldScheduleRuleName"):
        stack.client("events").disable_rule(Name=stack.outputs[rule])


def _variables(stack: LocalStack) -> dict[str, str]:
    """What `events/env.json` has, for this local AWS: what it made, at an address that a container can reach."""
    endpoint = f"http://{HOST}:{stack.port}"

    def reached(output: str) -> str:
        return endpoint + "/" + stack.outputs[output].split("/", 3)[3]

    bookmark = stack.client("cloudformation").describe_stack_resource(
        StackName=STACK_NAME, LogicalResourceId="UntoldBookmarkTable"
    )["StackResourceDetail"]["PhysicalResourceId"]
    return {
        "AWS_ENDPOINT_URL": endpoint,
        "CUSTOMER_BASE_URL": stack.parameters["CustomerBaseUrl"],
        "ENVIRONMENT": "production",
        "HQ_BASE_URL": stack.parameters["HqBaseUrl"],
        "JOBS_TABLE": stack.outputs["JobsTableName"],
        "JOB_SETTLED_DEAD_LETTER_QUEUE_URL": reached("JobSettledDeadLetterQueueUrl"),
        "JOB_SETTLED_QUEUE_URL": reached("JobSettledQueueUrl"),
        "MAIL_CONFIGURATION_SET": stack.outputs["MailConfigurationSetName"],
        "NOTICES_TABLE": stack.outputs["NoticesTableName"],
        "NOTICE_FROM_ADDRESS": stack.parameters["NoticeFromAddress"],
        "REQUESTERS_TABLE": stack.outputs["RequestersTableName"],
        "UNTOLD_BOOKMARK_TABLE": bookmark,
        "UNTOLD_CHECK": "scan",
    }


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _works(*command: str) -> bool:
    try:
        return subprocess.run(command, capture_output=True, timeout=30).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def _says(step: str) -> None:
    print(f"· {step}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
