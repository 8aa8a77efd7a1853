"""Where the threads of a function compute: on one processor in Lambda, and nowhere else is anything changed."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a process choose its processor")

LAMBDA = {"AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand"}

# In a process of its own: it would stay on one processor.
PROGRAM = """
import json, os, sys, threading
allowed = os.sched_getaffinity
{before}
from notices.processor import stay_on_one

usual = len(allowed(0)), round(sys.getswitchinterval(), 6)
stay_on_one({environ})
found = []
thread = threading.Thread(target=lambda: found.append(len(allowed(0))))
thread.start()
thread.join()
print(json.dumps([usual, [len(allowed(0)), found[0], round(sys.getswitchinterval(), 6)]]))
"""


def after(environ: dict[str, str], before: str = "") -> tuple[list[float], list[float]]:
    """Return what was usual, and what holds for the thread that asked, one that it starts, and their turns."""
    program = PROGRAM.format(environ=environ, before=before)
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=60)
    usual, found = json.loads(done.stdout)
    return usual, found


def test_in_lambda_a_thread_and_those_it_starts_stay_on_one_processor():
    _, found = after(LAMBDA)
    assert found == [1, 1, 0.05]


def test_outside_lambda_nothing_is_changed():
    (processors, turn), found = after({"AWS_LAMBDA_FUNCTION_NAME": "tell-requester"})
    assert found == [processors, processors, turn]


@pytest.mark.parametrize("call", ["sched_getaffinity", "sched_setaffinity"])
def test_where_the_system_refuses_the_function_starts_all_the_same(call):
    refuse = f"def refuse(*_): raise PermissionError\nos.{call} = refuse"
    (processors, _), found = after(LAMBDA, refuse)
    assert found == [processors, processors, 0.05]
