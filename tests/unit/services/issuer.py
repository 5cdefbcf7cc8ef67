"""An OpenID issuer for tests: a real HTTP server on loopback, with real keys."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

DISCOVERY = "/.well-known/openid-configuration"
AUDIENCE = "api://graticule"
PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey


@cache
def rsa_key(number: int = 0) -> rsa.RSAPrivateKey:
    """Make a key; each number is another one."""
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@cache
def ec_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def jwk(key: PrivateKey, kid: str | None = "first", **more: Any) -> dict[str, Any]:
    """Give the public half of a key as an issuer publishes it."""
    algorithm: Any = RSAAlgorithm if isinstance(key, rsa.RSAPrivateKey) else ECAlgorithm
    public: dict[str, Any] = algorithm.to_jwk(key.public_key(), as_dict=True)
    return {**public, **({} if kid is None else {"kid": kid}), "use": "sig", **more}


class Issuer:
    """What the server answers, which a test may change, and how often it was asked."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}/tenant"
        self.keys: list[dict[str, Any]] = [jwk(rsa_key())]
        self.asked: list[str] = []
        self.answers: dict[str, tuple[int, dict[str, str], bytes]] = {}
        self.may_answer = threading.Event()
        self.may_answer.set()

    @property
    def keys_path(self) -> str:
        return "/tenant/keys"

    @property
    def discovery(self) -> dict[str, Any]:
        return {"issuer": self.url, "jwks_uri": f"{self.url}/keys"}

    def answer(self, path: str) -> tuple[int, dict[str, str], bytes]:
        self.asked.append(path)
        self.may_answer.wait(10)
        if path in self.answers:
            return self.answers[path]
        found = {f"/tenant{DISCOVERY}": self.discovery, self.keys_path: {"keys": self.keys}}.get(path)
        return (404, {}, b"") if found is None else (200, {}, json.dumps(found).encode())

    def token(
        self,
        key: Any = None,
        *,
        algorithm: str = "RS256",
        kid: str | None = "first",
        without: tuple[str, ...] = (),
        **claims: Any,
    ) -> str:
        """Sign a token that is sound, but for what the test changes."""
        now = int(datetime.now(UTC).timestamp())
        sound = {"iss": self.url, "aud": AUDIENCE, "sub": "ada", "iat": now, "exp": now + 300, "roles": ["operator"]}
        payload = {name: value for name, value in {**sound, **claims}.items() if name not in without}
        headers = {} if kid is None else {"kid": kid}
        return jwt.encode(payload, rsa_key() if key is None else key, algorithm=algorithm, headers=headers)


@contextmanager
def issuer_running() -> Iterator[tuple[Issuer, ThreadingHTTPServer]]:
    """Serve an issuer on a free port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, headers, body = issuer.answer(self.path)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    issuer = Issuer(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield issuer, server
    finally:
        issuer.may_answer.set()
        server.shutdown()
        server.server_close()
        thread.join()
