"""Whom a request is counted against: the address that our own proxies saw, and never what a stranger wrote."""

from collections.abc import Iterable, Sequence
from ipaddress import ip_network

import httpx
import pytest
from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from graticule.config import Settings
from graticule.http.forwarded import ForwardedAddress, TrustedProxies

PROXY, OTHER_PROXY, CLIENT, STRANGER = "10.0.0.1", "10.0.0.2", "203.0.113.7", "198.51.100.9"
TRUSTED = TrustedProxies([ip_network("10.0.0.0/24"), ip_network("2001:db8:ffff::/48")])


async def show(scope: Scope, receive: Receive, send: Send) -> None:
    request = Request(scope)
    await JSONResponse([scope["client"][0], request.url.scheme])(scope, receive, send)


async def seen(peer: str, headers: Iterable[tuple[str, str]], proxies: TrustedProxies = TRUSTED) -> Sequence[str]:
    transport = httpx.ASGITransport(ForwardedAddress(show, proxies), client=(peer, 5000))
    async with httpx.AsyncClient(transport=transport, base_url="http://server") as client:
        shown: list[str] = (await client.get("/", headers=list(headers))).json()
        return shown


@pytest.mark.parametrize(
    ("forwarded_for", "client"),
    [
        (CLIENT, CLIENT),
        (f"{STRANGER}, {CLIENT}", CLIENT),
        (f"{STRANGER},{CLIENT}, {OTHER_PROXY}", CLIENT),
        (f"{CLIENT}:50000", CLIENT),
        ("2001:db8::7", "2001:db8::7"),
        ("[2001:db8::7]:50000", "2001:db8::7"),
        (f"::ffff:{CLIENT}", CLIENT),
        (f"{CLIENT}, unknown", PROXY),
        (f"{CLIENT}, , {OTHER_PROXY}", OTHER_PROXY),
        (f"{CLIENT}, 127.0.0.1.evil.example", PROXY),
        (f"{OTHER_PROXY}", OTHER_PROXY),
        ("", PROXY),
    ],
)
async def test_behind_a_trusted_proxy_the_nearest_stranger_is_the_client(forwarded_for: str, client: str) -> None:
    assert (await seen(PROXY, [("X-Forwarded-For", forwarded_for)]))[0] == client


async def test_several_headers_are_one_list() -> None:
    headers = [("X-Forwarded-For", STRANGER), ("X-Forwarded-For", CLIENT)]
    assert (await seen(PROXY, headers))[0] == CLIENT


@pytest.mark.parametrize("peer", ["127.0.0.1", "::1", CLIENT, "10.0.1.1"])
async def test_nobody_else_is_believed(peer: str) -> None:
    headers = [
        ("X-Forwarded-For", STRANGER),
        ("X-Forwarded-Proto", "https"),
        ("Forwarded", f"for={STRANGER};proto=https"),
    ]
    assert await seen(peer, headers) == [peer, "http"]
    assert await seen(PROXY, headers, TrustedProxies()) == [PROXY, "http"]


@pytest.mark.parametrize(
    ("forwarded_proto", "scheme"),
    [
        ("https", "https"),
        ("HTTPS", "https"),
        ("http", "http"),
        ("http, https", "https"),
        ("gopher", "http"),
        ("", "http"),
    ],
)
async def test_a_trusted_proxy_says_by_what_scheme_it_was_reached(forwarded_proto: str, scheme: str) -> None:
    assert (await seen(PROXY, [("X-Forwarded-Proto", forwarded_proto)]))[1] == scheme


@pytest.mark.parametrize("name", ["GRATICULE_TRUSTED_PROXIES", "FORWARDED_ALLOW_IPS"])
def test_the_setting_has_addresses_and_networks(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Settings().trusted_proxies == ()
    monkeypatch.setenv(name, "10.0.0.1, 10.1.0.0/16,2001:db8::1")
    assert [str(each) for each in Settings().trusted_proxies] == ["10.0.0.1/32", "10.1.0.0/16", "2001:db8::1/128"]


@pytest.mark.parametrize("value", ["proxy.example", "10.0.0.0/33"])
def test_a_setting_that_is_no_network_is_refused(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRATICULE_TRUSTED_PROXIES", value)
    with pytest.raises(ValidationError, match="not addresses or networks"):
        Settings()


@pytest.mark.parametrize("value", ["*", "10.0.0.1,*", "0.0.0.0/0", "::/0"])
def test_a_setting_that_would_trust_anyone_is_refused_with_the_reason(
    value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", value)
    with pytest.raises(ValidationError, match="name those of your proxies"):
        Settings()
