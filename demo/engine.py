"""A container engine, asked over its socket: whether it is there, which images it has, where it sees this machine."""

from __future__ import annotations

import http.client
import json
import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

USUAL_SOCKETS = (Path("/var/run/docker.sock"), Path.home() / ".docker/run/docker.sock")
SECONDS = 5


class EngineError(RuntimeError):
    """No engine answers; the message says where one was looked for."""


class Engine:
    """The engine that ``sam`` would use: the one of DOCKER_HOST, else the usual socket."""

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        """Find it and ask it once.

        Raises:
            EngineError: there is none, or it does not answer.
        """
        usual = next((path for path in USUAL_SOCKETS if path.exists()), USUAL_SOCKETS[0])
        self.address = environ.get("DOCKER_HOST") or f"unix://{usual}"
        self._get("/_ping")

    def has_image(self, name: str) -> bool:
        """Whether the image need not be fetched."""
        return self._get(f"/images/{quote(name, safe='/:')}/json")[0] == http.HTTPStatus.OK

    def this_machine(self) -> str | None:
        """The address by which its containers reach this machine, where its bridge network says so."""
        status, body = self._get("/networks/bridge")
        if status != http.HTTPStatus.OK:
            return None
        configured = json.loads(body).get("IPAM", {}).get("Config") or [{}]
        gateway: str | None = configured[0].get("Gateway")
        return gateway

    def _get(self, path: str) -> tuple[int, bytes]:
        connection = _connection(self.address)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read()
        except (OSError, http.client.HTTPException) as error:
            raise EngineError(f"no container engine answers at {self.address}: {error}") from error
        finally:
            connection.close()


def _connection(address: str) -> http.client.HTTPConnection:
    url = urlsplit(address)
    if url.scheme == "unix":
        return _OverSocket(url.path)
    if url.scheme in ("tcp", "http") and url.hostname:
        return http.client.HTTPConnection(url.hostname, url.port or 2375, timeout=SECONDS)
    raise EngineError(f"cannot ask a container engine at {address}: unix:// or tcp:// is needed")


class _OverSocket(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=SECONDS)
        self._path = path

    def connect(self) -> None:
        self.sock: Any = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(SECONDS)
        self.sock.connect(self._path)
