"""The two that are compared, built as they would be deployed, for the declared Python where this machine has it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from scripts.build import build
from scripts.template import ROOT

OUT = ROOT / "build" / "bench"
DECLARED = "3.13"

_ALLOWED = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR")


@dataclass(frozen=True, slots=True)
class Function:
    """A built function: where its code is, in the order of the import path, and what its environment says."""

    name: str
    folders: tuple[Path, ...]
    environment: dict[str, str]
    before: str = ""  # run before the import: a step switched off, see steps.py


def interpreter() -> str:
    """Return the declared Python, or the one that runs this. A version manager's shim does not count."""
    return next((path for path in _candidates() if _runs(path)), _base(sys.executable))


def _candidates() -> Iterator[str]:
    if found := shutil.which(f"python{DECLARED}"):
        yield found
    versions = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    yield from (str(path) for path in sorted(versions.glob(f"{DECLARED}*/bin/python{DECLARED}"), reverse=True))


def _runs(path: str) -> bool:
    return subprocess.run([path, "-m", "pip", "--version"], capture_output=True).returncode == 0


def _base(path: str) -> str:
    """Return the interpreter behind a virtual environment, whose packages must not be found."""
    code = "import sys; print(getattr(sys, '_base_executable', sys.executable))"
    return subprocess.run([path, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def ours(python: str) -> Function:
    """Build `TellRequesterFunction` with the layers' own makefiles, as `sam build` does."""
    built = build(OUT / "ours", python)
    folders = (
        built["TellRequesterFunction"],
        *(built[name] / "python" for name in ("DependenciesLayer", "NoticesLayer")),
    )
    return Function("ours", folders, _environment("Notices"))


def peer(python: str) -> Function:
    """Build the peer: its requirements installed beside it, bytecode included, as a careful build would."""
    source, target, stamp = ROOT / "bench" / "peer", OUT / "peer", OUT / ".peer.stamp"
    version = subprocess.run([python, "-VV"], check=True, capture_output=True, text=True).stdout
    wanted = version + (source / "requirements.txt").read_text()
    if not stamp.is_file() or stamp.read_text() != wanted:
        shutil.rmtree(target, ignore_errors=True)
        stamp.unlink(missing_ok=True)
        install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile", "--target"]
        subprocess.run([python, *install, target, "--requirement", source / "requirements.txt"], check=True)
        compile_all(python, target)
        stamp.write_text(wanted)
    app = OUT / "peer-app"
    shutil.rmtree(app, ignore_errors=True)
    shutil.copytree(source, app)
    compile_all(python, app)
    return Function("peer", (app, target), _environment("Told"))


def compile_all(python: str, folder: Path) -> None:
    """Compile a folder's modules the way the layers' makefiles do."""
    how = ["-m", "compileall", "-q", "-j", "0", "--invalidation-mode", "unchecked-hash"]
    subprocess.run([python, *how, str(folder)], check=True)


def _environment(table: str) -> dict[str, str]:
    return {name: os.environ[name] for name in _ALLOWED if name in os.environ} | {
        "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE",
        "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "AWS_SESSION_TOKEN": "token",
        "AWS_REGION": "eu-west-1",
        "AWS_DEFAULT_REGION": "eu-west-1",
        "AWS_LAMBDA_FUNCTION_NAME": "tell-requester",
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "512",
        "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand",
        "AWS_EC2_METADATA_DISABLED": "true",
        "POWERTOOLS_SERVICE_NAME": "requester-notices",
        "ENVIRONMENT": "production",
        "NOTICES_TABLE": table,
        "JOBS_TABLE": "Jobs",
        "REQUESTERS_TABLE": "Requesters",
        "JOB_SETTLED_QUEUE_URL": "https://sqs.eu-west-1.amazonaws.com/123456789012/job-settled",
        "JOB_SETTLED_DEAD_LETTER_QUEUE_URL": "https://sqs.eu-west-1.amazonaws.com/123456789012/dead-letters",
        "NOTICE_FROM_ADDRESS": "Example Platform <notices@example.com>",
        "MAIL_CONFIGURATION_SET": "requester-notices",
        "HQ_BASE_URL": "https://hq.example.com",
        "CUSTOMER_BASE_URL": "https://app.example.com",
        # As fast as it goes: pacing has a figure of its own (flood.py).
        "SES_SEND_RATE": "100000",
        "MAXIMUM_CONCURRENCY": "1",
    }
