"""One trust store for all connections of all clients.

botocore has urllib3 load the whole bundle of certificate authorities for every connection that is made: some 20 ms of
computing each, and the threads of a first batch make twenty at once. Here it is loaded once, when the function starts.
Who is trusted stays what the SDK's settings say (AWS_CA_BUNDLE, `ca_bundle`, else its own bundle).
"""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

from botocore.httpsession import create_urllib3_context, get_cert_path  # type: ignore[import-untyped]

Verify = bool | str
"""As botocore has it: whether to verify, or against which bundle."""


class TrustStore:
    """A TLS context for each bundle of authorities, loaded once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._contexts: dict[str, ssl.SSLContext] = {}

    def share_with(self, client: Any) -> None:
        """Let a botocore client's connections use this store, loaded now where the client will speak TLS."""
        session = client._endpoint.http_session  # private, like what it replaces: botocore offers no other way
        session._setup_ssl_cert = partial(self._set_up, session._setup_ssl_cert)
        if client.meta.endpoint_url.startswith("https:") and session._verify:
            self._context(session._verify)

    def _set_up(self, otherwise: Callable[[Any, str, Verify], None], pool: Any, url: str, verify: Verify) -> None:
        if not (url.lower().startswith("https:") and verify):
            otherwise(pool, url, verify)
            return
        pool.cert_reqs = "CERT_REQUIRED"
        pool.ca_certs = None  # or every connection would load them again
        pool.conn_kw["ssl_context"] = self._context(verify)

    def _context(self, verify: Verify) -> ssl.SSLContext:
        bundle = get_cert_path(verify)
        with self._lock:
            if bundle not in self._contexts:
                context: ssl.SSLContext = create_urllib3_context()
                context.load_verify_locations(bundle)
                self._contexts[bundle] = context
            return self._contexts[bundle]
