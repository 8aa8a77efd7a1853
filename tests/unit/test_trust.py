"""One trust store for all connections of all clients."""

from __future__ import annotations

import ssl
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import botocore.session
import pytest
from botocore.config import Config
from botocore.exceptions import SSLError

from notices import trust
from notices.trust import TrustStore


class Answer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.send_header("Connection", "close")  # each call a new connection
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_args: object) -> None:
        pass


def certificate(folder: Path, name: str) -> tuple[Path, Path]:
    made, key = folder / f"{name}.pem", folder / f"{name}.key"
    kind = ["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    subject = ["-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1"]
    command = ["openssl", "req", *kind, *subject, "-keyout", str(key), "-out", str(made)]
    subprocess.run(command, check=True, capture_output=True)
    return made, key


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("trust")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[tuple[str, Path]]:
    """An HTTPS server, and the certificate by which it is known."""
    made, key = certificate(folder, "server")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(made, key)
    http = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    http.socket = context.wrap_socket(http.socket, server_side=True)
    threading.Thread(target=http.serve_forever, daemon=True).start()
    yield f"https://127.0.0.1:{http.server_port}", made
    http.shutdown()
    http.server_close()


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Every load of a bundle into a context."""
    made: list[object] = []

    class Counting(ssl.SSLContext):
        def load_verify_locations(self, cafile=None, capath=None, cadata=None) -> None:
            made.append(cafile)
            super().load_verify_locations(cafile, capath, cadata)

    monkeypatch.setattr("botocore.httpsession.SSLContext", Counting)
    monkeypatch.setattr(trust, "create_urllib3_context", lambda: Counting(ssl.PROTOCOL_TLS_CLIENT))
    return made


def client(url: str, bundle: Path):
    session = botocore.session.get_session()
    session.set_credentials("a", "b")
    config = Config(retries={"total_max_attempts": 1})
    return session.create_client("dynamodb", "eu-west-1", endpoint_url=url, verify=str(bundle), config=config)


def test_every_connection_of_every_client_uses_what_was_loaded_once(server, loads) -> None:
    url, bundle = server
    store, clients = TrustStore(), [client(url, bundle) for _ in range(2)]
    for each in clients:
        store.share_with(each)
    assert loads == [str(bundle)], "at the start, before any connection"
    for each in clients * 3:
        each.list_tables()
        each.close()
    assert loads == [str(bundle)]


def test_without_it_each_connection_loads_the_bundle(server, loads) -> None:
    url, bundle = server
    alone = client(url, bundle)
    for _ in range(3):
        alone.list_tables()
    alone.close()
    assert len(loads) == 3


def test_a_server_that_the_bundle_does_not_vouch_for_is_refused(server, folder) -> None:
    url, _ = server
    stranger, _ = certificate(folder, "stranger")
    each = client(url, stranger)
    TrustStore().share_with(each)
    with pytest.raises(SSLError):
        each.list_tables()
    each.close()


def test_a_name_that_is_not_the_servers_is_refused(server) -> None:
    url, bundle = server
    each = client(url.replace("127.0.0.1", "localhost"), bundle)
    TrustStore().share_with(each)
    with pytest.raises(SSLError):
        each.list_tables()
    each.close()


def test_nothing_is_loaded_for_a_plain_endpoint(loads, folder) -> None:
    each = client("http://127.0.0.1:1", folder / "none.pem")
    TrustStore().share_with(each)
    assert loads == []
    each.close()
