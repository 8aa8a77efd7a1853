"""Two implementations of DynamoDB that race honestly, each in a process of its own: ministack, and dynalite on node.

They have nothing in common: one is Python, the other JavaScript on LevelDB. Where dynalite cannot run (no node, or npm
cannot bring it), `NotHere` says why.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pynamodb.connection.base import Connection

from demo.ministack import free_port, running
from fakes.gate import Gate
from scripts.build import BUILD

REGION = "eu-west-1"
DYNALITE = "dynalite@4.0.0"  # the last version whose conditional writes were tried here; 20 is the node it wants
NODE = 20
INSTALL_SECONDS = 180


class NotHere(Exception):
    """A store that this machine cannot run; the text says why."""


class RealStore:
    """A store behind an endpoint, with what the tests use of `fakes.store.Store`."""

    def __init__(self, endpoint: str) -> None:
        connection = Connection(region=REGION, host=endpoint, max_pool_connections=20)
        connection.session.set_credentials("test", "test")
        self.client = connection.client  # made here: it is lazy, and not safe to make in threads

    def connect(self, _gate: Gate | None = None) -> Connection:
        """Return a connection; all share one client, as a function's threads do."""
        return _Connection(self.client)

    def create(self, name: str, keys: tuple[str, ...], **indexes: tuple[str, ...]) -> None:
        """Make a table and wait until it is there."""
        names = dict.fromkeys([*keys, *(part for index in indexes.values() for part in index)])
        request: dict[str, Any] = {
            "TableName": name,
            "BillingMode": "PAY_PER_REQUEST",
            "AttributeDefinitions": [{"AttributeName": each, "AttributeType": "S"} for each in names],
            "KeySchema": _schema(keys),
        }
        if indexes:
            request["GlobalSecondaryIndexes"] = [
                {"IndexName": index, "KeySchema": _schema(parts), "Projection": {"ProjectionType": "ALL"}}
                for index, parts in indexes.items()
            ]
        self.client._make_api_call("CreateTable", request)
        while self._status(name) != "ACTIVE":
            time.sleep(0.02)

    def place(self, table: str, item: dict[str, Any]) -> None:
        """Put an item there, whatever is."""
        self.client._make_api_call("PutItem", {"TableName": table, "Item": item})

    def _status(self, name: str) -> str:
        return str(self.client._make_api_call("DescribeTable", {"TableName": name})["Table"]["TableStatus"])


class _Connection(Connection):
    def __init__(self, client: Any) -> None:
        super().__init__(region=REGION)
        self._client = client


def _schema(keys: tuple[str, ...]) -> list[dict[str, str]]:
    return [{"AttributeName": key, "KeyType": kind} for key, kind in zip(keys, ("HASH", "RANGE"), strict=False)]


@contextmanager
def ministack() -> Iterator[str]:
    """Run ministack; gives its endpoint."""
    port = free_port()
    with running("127.0.0.1", port, "http://127.0.0.1:9", BUILD / f"ministack-{port}.log"):
        yield f"http://127.0.0.1:{port}"


@contextmanager
def dynalite() -> Iterator[str]:
    """Run dynalite; gives its endpoint. Raises NotHere."""
    node = _node()
    cli = _installed() / "node_modules" / "dynalite" / "cli.js"
    port = free_port()
    process = subprocess.Popen(
        [node, str(cli), "--host", "127.0.0.1", "--port", str(port), "--createTableMs", "0"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert process.stdout is not None
        said = process.stdout.readline()
        assert "listening" in said, said
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(timeout=10)
        assert process.stdout is not None
        process.stdout.close()


def _node() -> str:
    node = shutil.which("node")
    if node is None or shutil.which("npm") is None:
        raise NotHere("there is no node with npm on the PATH")
    version = subprocess.run([node, "--version"], check=True, capture_output=True, text=True).stdout.strip()
    if int(version.removeprefix("v").partition(".")[0]) < NODE:
        raise NotHere(f"node is {version}, and dynalite wants {NODE}")
    return node


def _installed() -> Path:
    """Return the folder in which dynalite is, brought by npm the first time."""
    folder = BUILD / DYNALITE
    if not folder.exists():
        BUILD.mkdir(exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix="dynalite-", dir=BUILD))
        npm = ["npm", "install", "--prefix", str(made), "--no-audit", "--no-fund", "--ignore-scripts", "--silent"]
        try:
            subprocess.run([*npm, DYNALITE], check=True, capture_output=True, timeout=INSTALL_SECONDS)
        except (subprocess.SubprocessError, OSError) as error:
            shutil.rmtree(made, ignore_errors=True)
            raise NotHere(f"npm could not bring {DYNALITE}: {type(error).__name__}") from error
        try:
            os.rename(made, folder)  # whole or not at all, also where two test processes bring it at once
        except OSError:
            shutil.rmtree(made, ignore_errors=True)
    return folder
