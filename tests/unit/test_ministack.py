"""The local AWS does not take another's place for its own."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from demo.ministack import LocalAwsError, free_port, is_free, running


def test_a_port_that_somebody_listens_on_is_refused_by_name(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with (
            pytest.raises(LocalAwsError, match=f"port {port} is in use"),
            running("127.0.0.1", port, "http://127.0.0.1:1", tmp_path / "log"),
        ):
            pass


def test_a_free_port_is_free() -> None:
    assert is_free(free_port())
