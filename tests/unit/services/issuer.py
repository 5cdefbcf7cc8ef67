"""An OpenID issuer for tests: a real HTTP server on loopback, with real keys."""

import base64
import hashlib
import json
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode, urljoin, urlsplit

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
        sound = {
            "iss": self.url,
            "aud": AUDIENCE,
            "sub": "ada@example.org",
            "iat": now,
            "exp": now + 300,
            "roles": ["operator"],
        }
        payload = {name: value for name, value in {**sound, **claims}.items() if name not in without}
        headers = {} if kid is None else {"kid": kid}
        return jwt.encode(payload, rsa_key() if key is None else key, algorithm=algorithm, headers=headers)


Answer = tuple[int, dict[str, str], bytes]


class AuthorizationServer(Issuer):
    """An issuer at which people sign in: it holds its client to all that it has promised before it gives tokens."""

    client_id = "the-console"
    client_secret: str | None = None
    secret_in_form = True

    def __init__(self, port: int) -> None:
        super().__init__(port)
        self.redirect_uris: set[str] = set()
        self.codes: dict[str, dict[str, str]] = {}  # what was asked for when each was given out
        self.used: set[str] = set()
        self.claims: dict[str, Any] = {}  # what a test changes of the tokens
        self.access_claims: dict[str, Any] = {}
        self.without: tuple[str, ...] = ()  # of what it gives out
        self.forms: list[dict[str, str]] = []

    @property
    def discovery(self) -> dict[str, Any]:
        methods = ["client_secret_post"] if self.secret_in_form else ["client_secret_basic"]
        return {
            **super().discovery,
            "authorization_endpoint": f"{self.url}/authorize?tenant=ours",
            "token_endpoint": f"{self.url}/token",
            "token_endpoint_auth_methods_supported": methods,
        }

    def answer(self, path: str) -> Answer:
        """Answer programs as any issuer does; a browser that comes to sign in is led back at once."""
        if urlsplit(path).path != urlsplit(f"{self.url}/authorize").path:
            return super().answer(path)
        return 303, {"Location": self.approve(urljoin(self.url, path))}, b""

    def approve(self, address: str) -> str:
        """Sign somebody in, as a person does in a browser; give where that browser is led to."""
        parts = urlsplit(address)
        asked = dict(parse_qsl(parts.query, strict_parsing=True))
        assert f"{parts.scheme}://{parts.netloc}{parts.path}" == f"{self.url}/authorize"
        assert asked["tenant"] == "ours"
        assert asked["client_id"] == self.client_id
        assert asked["redirect_uri"] in self.redirect_uris
        assert (asked["response_type"], asked["code_challenge_method"]) == ("code", "S256")
        assert "openid" in asked["scope"].split()
        assert len(asked["nonce"]) >= 40
        assert len(asked["state"]) >= 40
        code = secrets.token_urlsafe(16)
        self.codes[code] = asked
        return f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}"

    def answer_form(self, path: str, form: dict[str, str], authorization: str) -> Answer:
        """Give tokens for a code, once, to the client that has asked for it."""
        self.asked.append(path)
        self.forms.append(form)
        self.may_answer.wait(10)
        if path in self.answers:
            return self.answers[path]
        asked = self.codes.get(form.get("code", ""), {})
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        promised = {
            "path": path == urlsplit(f"{self.url}/token").path,
            "grant": form.get("grant_type") == "authorization_code",
            "code": bool(asked) and form["code"] not in self.used,
            "challenge": asked.get("code_challenge") == base64.urlsafe_b64encode(digest).rstrip(b"=").decode(),
            "redirect": asked.get("redirect_uri") == form.get("redirect_uri"),
            "client": self._is_client(form, authorization),
        }
        self.used.add(form.get("code", ""))
        if not all(promised.values()):
            broken = [name for name, is_kept in promised.items() if not is_kept]
            return 400, {}, json.dumps({"error": "invalid_grant", "error_description": str(broken)}).encode()
        return 200, {}, json.dumps(self._tokens(asked["nonce"])).encode()

    def _is_client(self, form: dict[str, str], authorization: str) -> bool:
        if self.client_secret is None or self.secret_in_form:
            given = (form.get("client_id"), form.get("client_secret"))
            return given == (self.client_id, self.client_secret) and not authorization
        login = base64.b64decode(authorization.removeprefix("Basic ")).decode().split(":")
        return [unquote(each) for each in login] == [self.client_id, self.client_secret] and "client_secret" not in form

    def _tokens(self, nonce: str) -> dict[str, Any]:
        identity = self.token(**{"aud": self.client_id, "nonce": nonce, **self.claims})
        access = self.token(**{"sub": "ada-by-access@example.org", **self.access_claims})
        given = {"token_type": "Bearer", "expires_in": 300, "id_token": identity, "access_token": access}
        return {name: value for name, value in given.items() if name not in self.without}


@contextmanager
def issuer_running() -> Iterator[tuple[AuthorizationServer, ThreadingHTTPServer]]:
    """Serve an issuer on a free port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._send(issuer.answer(self.path))

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", "0"))).decode()
            self._send(issuer.answer_form(self.path, dict(parse_qsl(body)), self.headers.get("Authorization", "")))

        def _send(self, answer: Answer) -> None:
            status, headers, body = answer
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
    issuer = AuthorizationServer(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield issuer, server
    finally:
        issuer.may_answer.set()
        server.shutdown()
        server.server_close()
        thread.join()
