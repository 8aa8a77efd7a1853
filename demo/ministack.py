"""The ministack process: started with an environment of its own, and ended with all that it started."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from demo.mail_front import REGION
from scripts.template import ROOT

ACCOUNT = "000000000000"
MINISTACK = ROOT / ".venv" / "ministack" / "bin" / "ministack"


class LocalAwsError(RuntimeError):
    """The local AWS did not do what was asked; the message says what, and where its log is."""


def free_port() -> int:
    """A port of this machine that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def is_free(port: int) -> bool:
    """Whether nobody listens on this port of this machine."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


@contextmanager
def ends_on_sigterm() -> Iterator[None]:
    """Turn SIGTERM into an exit that unwinds, where this may be done and nobody else has."""
    mine = threading.current_thread() is threading.main_thread()
    if not mine or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


@contextmanager
def without_the_users_aws() -> Iterator[None]:
    """Hide the user's own AWS settings from this process: nothing here may reach a real account."""
    saved = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith("AWS_")}
    nowhere = {"AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull}
    os.environ.update(nowhere)
    try:
        yield
    finally:
        for name in nowhere:
            os.environ.pop(name, None)
        os.environ.update(saved)


@contextmanager
def running(bind: str, port: int, mail_endpoint: str, log_path: Path) -> Iterator[Path]:
    """ministack on ``bind`` and ``port``; its functions reach SES at ``mail_endpoint``, and all else in ministack.

    Gives the folder that is its own, with its workers' code.
    """
    if not MINISTACK.exists():
        raise LocalAwsError(f"{MINISTACK} is not there: run make setup")
    if not is_free(port):
        raise LocalAwsError(f"port {port} is in use, perhaps by another local AWS: end that, or name another")
    scratch = Path(tempfile.mkdtemp(prefix="requester-notices-"))
    log_path.parent.mkdir(exist_ok=True)
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "LANG": "C.UTF-8",
        "HOME": str(scratch),
        "TMPDIR": str(scratch),
        "BIND_HOST": bind,
        "GATEWAY_PORT": str(port),
        "MINISTACK_HOST": "127.0.0.1",
        "MINISTACK_ACCOUNT_ID": ACCOUNT,
        "MINISTACK_REGION": REGION,
        "AUTH": "true",  # the functions may do what their roles allow and no more
        # What follows reaches the functions, since workers inherit ministack's environment. The endpoint of one service
        # goes before that of all, which is in the template.
        "AWS_ENDPOINT_URL_SESV2": mail_endpoint,
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    with log_path.open("wb") as log:
        process = subprocess.Popen(
            [str(MINISTACK)],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # so that Ctrl-C comes to us alone, and its workers can be ended with it
        )
    try:
        _wait_until_ready(process, port, log_path)
        yield scratch
    finally:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=5)
        _end_group(process.pid)
        process.wait()
        shutil.rmtree(scratch, ignore_errors=True)


def _wait_until_ready(process: subprocess.Popen[bytes], port: int, log_path: Path) -> None:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise LocalAwsError(f"ministack ended with {process.returncode}; see {log_path}")
        try:
            with opener.open(f"http://127.0.0.1:{port}/_ministack/ready", timeout=2):
                return
        except OSError:
            time.sleep(0.1)
    raise LocalAwsError(f"ministack is not ready after 30 s; see {log_path}")


def _end_group(group: int) -> None:
    """End what ministack has left of its own: it leads a process group, in which its workers are."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)
