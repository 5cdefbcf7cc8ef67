"""Requests go to addresses that were checked, wait for nobody for long, and tell little of what they found."""

import asyncio
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from tests.integration.services.receiver import (
    Answering,
    Receiver,
    endless,
    raw,
    receiving,
    silence,
    status,
)

from graticule.services import safe_http
from graticule.services.callback_targets import parse_allowance
from graticule.services.safe_http import Answer, RequestFailed, Resolver, SafeHttp, resolved

OK = b"HTTP/1.1 200 OK\r\n"
CHUNK = b"400\r\n" + b"x" * 1024 + b"\r\n"


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving() as running:
        yield running


def resolving(*answers: Sequence[str]) -> tuple[Resolver, list[str]]:
    """Give a resolver that answers so, one time after the other, and what it is asked."""
    asked: list[str] = []

    async def resolve(host: str) -> list[str]:
        asked.append(host)
        return list(answers[min(len(asked), len(answers)) - 1])

    return resolve, asked


def http(allow: str = "127.0.0.1", seconds: float = 5, **more: object) -> SafeHttp:
    return SafeHttp(parse_allowance(allow), seconds=seconds, **more)  # type: ignore[arg-type]


async def failure(client: SafeHttp, url: str) -> str:
    with pytest.raises(RequestFailed) as failed:
        await client.post(url, {}, b"{}")
    assert "secret" not in str(failed.value)
    return str(failed.value)


# What is sent


async def test_a_body_arrives_with_its_headers_at_the_host_that_was_named(receiver: Receiver) -> None:
    resolve, _ = resolving(["127.0.0.1"])
    answer = await http(resolve=resolve).post(
        f"http://Hooks.Example.:{receiver.port}/a%20b?key=secret", {"webhook-id": "msg_1"}, b'{"a": 1}'
    )
    assert answer == Answer(204)
    (received,) = receiver.received
    assert (received.line, received.body) == ("POST /a%20b?key=secret HTTP/1.1", b'{"a": 1}')
    assert received.headers["host"] == f"hooks.example.:{receiver.port}"
    assert (received.headers["webhook-id"], received.headers["content-length"]) == ("msg_1", "8")


@pytest.mark.parametrize("code", [200, 299, 404, 410, 500])
async def test_the_status_is_given_whatever_it_is(receiver: Receiver, code: int) -> None:
    receiver.answers = [status(code, Retry_After="7")]
    assert await http().post(receiver.url, {}, b"{}") == Answer(code, "7")


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
async def test_a_redirect_is_not_followed(receiver: Receiver, code: int) -> None:
    receiver.answers = [status(code, Location=f"http://127.0.0.1:{receiver.port}/elsewhere")]
    assert (await http().post(receiver.url, {}, b"{}")).status == code
    assert len(receiver.received) == 1


async def test_no_proxy_of_the_environment_is_asked(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    async with receiving() as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        await http().post(receiver.url, {}, b"{}")
        assert (len(receiver.received), proxy.connections) == (1, 0)


# Where it goes


@pytest.mark.parametrize("host", ["127.0.0.1", "2130706433", "0x7f.1", "127.0.0.1.", "[::ffff:127.0.0.1]", "localhost"])
async def test_a_private_address_is_not_even_connected_to(receiver: Receiver, host: str) -> None:
    assert await failure(http(""), f"http://{host}:{receiver.port}/?key=secret") == "the address is private"
    assert receiver.connections == 0


async def test_a_public_name_that_resolves_to_something_private_is_not_connected_to(receiver: Receiver) -> None:
    resolve, _ = resolving(["127.0.0.1"])
    assert (
        await failure(http("", resolve=resolve), f"http://hooks.example:{receiver.port}/") == "the address is private"
    )
    assert receiver.connections == 0


@pytest.mark.parametrize("found", [["127.0.0.1", "10.0.0.1"], ["10.0.0.1", "127.0.0.1"], ["127.0.0.1", "::1"]])
async def test_one_address_that_is_not_allowed_is_enough_to_refuse_a_name(receiver: Receiver, found: list[str]) -> None:
    resolve, _ = resolving(found)
    assert await failure(http(resolve=resolve), f"http://hooks.example:{receiver.port}/") == "the address is private"
    assert receiver.connections == 0


async def test_a_name_is_resolved_once_and_the_address_that_was_checked_is_connected_to(receiver: Receiver) -> None:
    """DNS rebinding: the second answer would lead elsewhere, and nobody asks for it."""
    resolve, asked = resolving(["127.0.0.1"], ["10.0.0.1"])
    client, url = http(resolve=resolve), f"http://hooks.example:{receiver.port}/"
    assert (await client.post(url, {}, b"{}")).status == 204
    assert asked == ["hooks.example"]
    assert await failure(client, url) == "the address is private", "each try checks anew"
    assert len(receiver.received) == 1


async def test_a_name_that_is_allowed_may_resolve_to_what_it_will(receiver: Receiver) -> None:
    resolve, _ = resolving(["127.0.0.1"])
    client = http("Hooks.Example", resolve=resolve)
    assert (await client.post(f"http://hooks.example:{receiver.port}/", {}, b"{}")).status == 204
    assert await failure(client, f"http://other.example:{receiver.port}/") == "the address is private"


async def test_the_next_address_is_tried_when_the_first_does_not_answer(receiver: Receiver) -> None:
    resolve, _ = resolving(["127.0.0.2", "127.0.0.1"])
    client = http("127.0.0.0/8", resolve=resolve)
    assert (await client.post(f"http://hooks.example:{receiver.port}/", {}, b"{}")).status == 204


# What goes wrong


async def test_what_cannot_be_reached_is_told_without_detail(receiver: Receiver) -> None:
    def unknown(_: str) -> list[str]:
        raise OSError("secret")

    async def resolve(host: str) -> list[str]:
        return unknown(host)

    assert await failure(http(resolve=resolve), "http://hooks.example/?secret") == "the host name cannot be resolved"
    nothing, _ = resolving([])
    assert await failure(http(resolve=nothing), "http://hooks.example/?secret") == "the host name cannot be resolved"
    assert await failure(http(), "http://127.0.0.1:1/?secret") == "the host cannot be connected to"
    assert await failure(http(), "gopher://127.0.0.1/secret") == (
        "The callback_url begins with neither http:// nor https://."
    )


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (silence, "no answer within 0.5 s"),
        (endless(b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 100 Continue\r\n\r\n"), "no answer within 0.5 s"),
        (endless(OK, b"X-Header: value\r\n"), "no valid HTTP answer came"),
        (raw(b"secret\r\n\r\n"), "no valid HTTP answer came"),
        (raw(b""), "no valid HTTP answer came"),
    ],
    ids=["silent", "for ever about to answer", "endless headers", "not HTTP", "hangs up"],
)
async def test_an_answer_that_does_not_come(receiver: Receiver, answer: Answering, told: str) -> None:
    receiver.answers = [answer]
    seconds = 0.5 if told.endswith("0.5 s") else 20
    assert await failure(http(seconds=seconds), receiver.url) == told


async def test_an_endless_answer_is_cut_off_and_its_status_counts(receiver: Receiver) -> None:
    receiver.answers = [endless(OK + b"Transfer-Encoding: chunked\r\n\r\n", CHUNK)]
    async with asyncio.timeout(10):
        assert (await http(seconds=30).post(receiver.url, {}, b"{}")).status == 200


async def test_a_slow_answer_is_cut_off_and_its_status_counts(receiver: Receiver) -> None:
    async def half(writer: asyncio.StreamWriter) -> None:
        writer.write(OK + b"Content-Length: 10\r\n\r\nhalf")
        await silence(writer)

    receiver.answers = [half]
    assert (await http(seconds=0.2).post(receiver.url, {}, b"{}")).status == 200


async def test_a_name_server_that_keeps_silent_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = threading.Event()
    monkeypatch.setattr(safe_http, "CONNECT_SECONDS", 0.1)
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: answer.wait(20) and [])
    assert await failure(http(), "http://hooks.example/") == "no connection within 0.1 s"
    answer.set()


async def test_names_are_resolved_as_the_system_does(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "127.0.0.1" in await resolved("localhost")
    for error in (socket.gaierror("no such name"), UnicodeError("label too long")):
        monkeypatch.setattr(socket, "getaddrinfo", _raising(error))
        with pytest.raises(OSError, match="name"):
            await resolved("hooks.example")


def _raising(error: Exception) -> Callable[..., None]:
    def raises(*_: object, **__: object) -> None:
        raise error

    return raises


# TLS


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a key with a certificate for `hooks.example`."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "hooks.example")])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("hooks.example")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    file = tmp_path_factory.mktemp("tls") / "hooks.pem"
    file.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
        + made.public_bytes(serialization.Encoding.PEM)
    )
    return file


async def test_a_certificate_must_be_that_of_the_name_although_an_address_is_connected_to(certificate: Path) -> None:
    served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    served.load_cert_chain(certificate)
    trusted = ssl.create_default_context(cafile=str(certificate))
    resolve, _ = resolving(["127.0.0.1"])
    async with receiving(served) as receiver:
        client = http(resolve=resolve, tls=trusted)
        for name in ("hooks.example", "hooks.example."):
            assert (await client.post(f"https://{name}:{receiver.port}/", {}, b"{}")).status == 204
        invalid = "the TLS certificate is not valid for this host"
        assert await failure(client, f"https://other.example:{receiver.port}/") == invalid
        assert await failure(client, f"https://127.0.0.1:{receiver.port}/") == invalid
        assert await failure(http(resolve=resolve), f"https://hooks.example:{receiver.port}/") == invalid, "not trusted"
        assert len(receiver.received) == 2


async def test_a_handshake_that_is_cut_off_leaves_no_connection(receiver: Receiver) -> None:
    assert await failure(http(seconds=0.2), f"https://127.0.0.1:{receiver.port}/") == "no answer within 0.2 s"
