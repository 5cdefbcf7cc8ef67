"""A managed identity on this machine: the endpoint that App Service gives to a process, which hands out tokens.

The tokens are well-formed and nobody's: their signature says nothing. What takes them in tests looks at their claims.
"""

import base64
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

TENANT = "7d0b1a3e-3f0a-4f4e-9d5e-0c6f2b6f6a11"
PRINCIPAL = "0f6a4c52-8f0e-4c1b-b0a1-5d8b9e3a7c22"
HEADER = "the-header-of-this-process"


@dataclass
class ManagedIdentity:
    """Who asked for what, and what was given."""

    address: str
    seconds: int = 3600  # how long the next token holds
    is_refusing: bool = False  # as an endpoint does that knows no such identity
    asked: list[str] = field(default_factory=list)  # the resources, in order
    tokens: list[str] = field(default_factory=list)  # each is another one
    client_ids: list[str | None] = field(default_factory=list)  # which of several identities was meant

    @property
    def environment(self) -> dict[str, str]:
        """Give the variables by which a process finds this endpoint, and looks for no other."""
        return {
            "IDENTITY_ENDPOINT": self.address,
            "IDENTITY_HEADER": HEADER,
            "AZURE_TOKEN_CREDENTIALS": "ManagedIdentityCredential",
        }

    def answer(self, resource: str) -> dict[str, str]:
        """Give a token for a resource."""
        expires = int(time.time()) + self.seconds
        token = unsigned_token(resource, expires)
        self.asked.append(resource)
        self.tokens.append(token)
        return {"access_token": token, "expires_on": str(expires), "resource": resource, "token_type": "Bearer"}


def unsigned_token(audience: str, expires: int, **claims: str) -> str:
    """Give a token of Entra's form whose signature is none."""
    stated = {
        "aud": audience,
        "iss": f"https://sts.windows.net/{TENANT}/",
        "iat": expires - 7200,
        "nbf": expires - 7200,
        "exp": expires,
        "oid": PRINCIPAL,
        "sub": PRINCIPAL,
        "tid": TENANT,
        "jti": uuid4().hex,
        **claims,
    }
    parts = ({"typ": "JWT", "alg": "RS256", "kid": "test"}, stated, "no signature")
    return ".".join(map(_encoded, parts))


def _encoded(part: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode()


@contextmanager
def managed_identity() -> Iterator[ManagedIdentity]:
    """Answer on a free port of the loopback while the block runs."""

    class Endpoint(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = parse_qs(urlsplit(self.path).query)
            if self.headers.get("X-IDENTITY-HEADER") != HEADER or "api-version" not in asked:
                self._send(401, {"statusCode": 401, "message": "Unauthorized"})
            elif identity.is_refusing:
                self._send(400, {"statusCode": 400, "message": "No managed identity was found."})
            else:
                identity.client_ids.append(asked.get("client_id", [None])[0])
                self._send(200, identity.answer(asked["resource"][0]))

        def _send(self, status: int, document: dict[str, Any]) -> None:
            body = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Endpoint) as server:
        identity = ManagedIdentity(f"http://127.0.0.1:{server.server_address[1]}/msi/token")
        serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        serving.start()
        try:
            yield identity
        finally:
            server.shutdown()
            serving.join()
