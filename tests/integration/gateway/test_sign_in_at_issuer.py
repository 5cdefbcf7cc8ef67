"""Signing in at an OpenID issuer: a real one on loopback, which holds the gateway to what it has promised."""

import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack
from datetime import timedelta
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from pydantic import SecretStr
from tests.integration.gateway.browsers import SESSION, Browser, browser_of, cookies_of
from tests.integration.gateway.front import SERVICE_KEY, address, problem_of, settings_of
from tests.unit.services.issuer import AUDIENCE, DISCOVERY, AuthorizationServer, issuer_running, rsa_key

from graticule.gateway.app import create_gateway
from graticule.http.rate_limits import RateLimits
from graticule.services import issuer_documents
from graticule.services.oidc_sign_in import PURPOSE
from graticule.services.seals import Seal

NO_DATABASE = "postgresql://nobody@127.0.0.1:1/nowhere"  # whoever signs in here has no row
CLIENT = AuthorizationServer.client_id
OIDC = f"{SESSION}/oidc"
CALLBACK = f"{OIDC}/callback"


@pytest.fixture
def served() -> Iterator[tuple[AuthorizationServer, ThreadingHTTPServer]]:
    with issuer_running() as both:
        both[0].redirect_uris = {f"http://gateway{CALLBACK}"}
        yield both


@pytest.fixture
def issuer(served: tuple[AuthorizationServer, ThreadingHTTPServer]) -> AuthorizationServer:
    return served[0]


Open = Callable[..., Any]


@pytest.fixture
async def opened(issuer: AuthorizationServer, tmp_path: Path) -> AsyncIterator[Open]:
    """Give what opens a browser of a gateway that trusts the issuer."""
    async with AsyncExitStack() as stack:

        async def make(base_url: str = "http://gateway", **changes: Any) -> Browser:
            given = {"oidc_issuer": issuer.url, "oidc_audience": CLIENT, "oidc_client_id": CLIENT, **changes}
            app = create_gateway(settings_of(tmp_path, **given), NO_DATABASE)
            app.state.rate_limits = RateLimits(1000)
            return await stack.enter_async_context(browser_of(app, base_url))

        yield make


async def come_back(browser: Browser, issuer: AuthorizationServer, to: str = "/") -> httpx.Response:
    """Sign in at the issuer, and give the answer when the browser comes back."""
    led = await browser.client.get(OIDC, params={"to": to})
    assert led.status_code == 303, led.text
    return await browser.client.get(issuer.approve(led.headers["location"]))


async def signed_in(browser: Browser) -> Any:
    return (await browser.session())["caller"]


async def refused(browser: Browser, answer: httpx.Response, reason: str) -> None:
    """See that nobody was signed in, and that the reason is one of a few words."""
    assert (answer.status_code, answer.headers["location"]) == (303, f"/?sign_in={reason}")
    assert "graticule_session" not in cookies_of(answer)
    assert await signed_in(browser) is None


async def test_whoever_the_issuer_knows_is_signed_in(
    opened: Open, issuer: AuthorizationServer, logged: list[Any]
) -> None:
    browser = await opened(oidc_label="Sign in with Example")
    assert (await browser.session())["sign_in"] == {"api_key": True, "oidc": "Sign in with Example"}
    issuer.claims = {"sub": "grace@example.org", "roles": ["submitter", "unknown"], "platform_id": "ddh"}
    answer = await come_back(browser, issuer, "/assets?text=roads")
    assert (answer.status_code, answer.headers["location"]) == (303, "/assets?text=roads")
    cookies = cookies_of(answer)
    assert cookies["graticule_session"][1] == {"httponly", "path=/api", "samesite=strict", "max-age=28800"}
    assert cookies["graticule_sign_in"][1] >= {"max-age=0", "path=/api/session"}
    assert ("grace@example.org", "issuer") in [(line.get("caller"), line.get("by")) for line in logged]
    caller = {"name": "grace@example.org", "roles": ["submitter"], "deeds": ["submit", "read"], "platform_id": "ddh"}
    assert await signed_in(browser) == caller
    issuer.claims["roles"] = ["admin"]
    assert await signed_in(browser) == caller  # as when it signed in


async def test_the_way_there_is_kept_in_a_cookie_for_ten_minutes(opened: Open) -> None:
    for scheme, name in (("http", "graticule_sign_in"), ("https", "__Host-graticule_sign_in")):
        browser = await opened(f"{scheme}://gateway")
        led = await browser.client.get(OIDC)
        ((found, (value, attributes)),) = cookies_of(led).items()
        where = {"secure", "path=/"} if scheme == "https" else {"path=/api/session"}
        assert (found, attributes) == (name, {"httponly", "samesite=lax", "max-age=600"} | where)
        asked = {key: each[0] for key, each in parse_qs(urlsplit(led.headers["location"]).query).items()}
        assert asked["redirect_uri"] == f"{scheme}://gateway{CALLBACK}"
        assert asked["scope"] == "openid profile"
        assert not {"code_verifier", "client_secret"} & set(asked)
        assert value not in led.headers["location"]


async def test_the_issuer_leads_back_to_our_public_address(opened: Open, issuer: AuthorizationServer) -> None:
    issuer.redirect_uris = {f"https://maps.example{CALLBACK}"}
    browser = await opened("https://maps.example", public_url=address("https://maps.example/"))
    led = await browser.client.get(OIDC, headers={"Host": "evil.example"})
    back = issuer.approve(led.headers["location"])
    assert back.startswith(f"https://maps.example{CALLBACK}?")


@pytest.mark.parametrize("in_form", [True, False])
async def test_a_client_with_a_secret_shows_it_to_the_issuer_alone(
    opened: Open, issuer: AuthorizationServer, in_form: bool, logged: list[Any]
) -> None:
    issuer.client_secret, issuer.secret_in_form = "very secret: ü/+", in_form
    browser = await opened(oidc_client_secret=SecretStr("very secret: ü/+"))
    answer = await come_back(browser, issuer)
    assert answer.headers["location"] == "/"
    assert (await signed_in(browser))["name"] == "ada@example.org"
    (form,) = issuer.forms
    told = f"{logged} {answer.headers} {answer.text}"
    assert not [secret for secret in ("very secret", form["code"], form["code_verifier"]) if secret in told]
    wrong = await opened(oidc_client_secret=SecretStr("wrong"))
    await refused(wrong, await come_back(wrong, issuer), "refused")


async def test_an_access_token_counts_where_it_is_the_one_for_us(opened: Open, issuer: AuthorizationServer) -> None:
    browser = await opened(oidc_audience=AUDIENCE)
    issuer.access_claims = {"roles": ["reviewer"]}
    await come_back(browser, issuer)
    caller = await signed_in(browser)
    assert (caller["name"], caller["roles"]) == ("ada-by-access@example.org", ["reviewer"])
    issuer.without = ("id_token",)
    other = await opened(oidc_audience=AUDIENCE)
    await come_back(other, issuer)
    assert (await signed_in(other))["name"] == "ada-by-access@example.org"


# What is refused


async def test_a_code_counts_only_with_the_state_that_was_given_along(
    opened: Open, issuer: AuthorizationServer
) -> None:
    browser = await opened()
    led = await browser.client.get(OIDC)
    back = httpx.URL(issuer.approve(led.headers["location"]))
    for state in ("", "x", str(back.params["state"])[:-1], "é\ud7ff"):
        browser.client.cookies.set("graticule_sign_in", cookies_of(led)["graticule_sign_in"][0])
        await refused(browser, await browser.client.get(back.copy_set_param("state", state)), "refused")
    assert issuer.forms == []  # the issuer was not even asked


async def test_a_code_of_someone_else_signs_nobody_in(opened: Open, issuer: AuthorizationServer) -> None:
    """Else a page could sign a person in as another, and see what that person then sends."""
    attacker, victim = await opened(), await opened()
    theirs = issuer.approve((await attacker.client.get(OIDC)).headers["location"])
    await refused(victim, await victim.client.get(theirs), "expired")
    ours = httpx.URL(issuer.approve((await victim.client.get(OIDC)).headers["location"]))
    mixed = ours.copy_set_param("code", httpx.URL(theirs).params["code"])
    await refused(victim, await victim.client.get(mixed), "refused")  # the issuer misses the verifier


async def test_a_code_counts_once(opened: Open, issuer: AuthorizationServer) -> None:
    browser = await opened()
    led = await browser.client.get(OIDC)
    kept = cookies_of(led)["graticule_sign_in"][0]
    back = issuer.approve(led.headers["location"])
    assert (await browser.client.get(back)).headers["location"] == "/"
    browser.client.cookies.clear()
    await refused(browser, await browser.client.get(back), "expired")
    browser.client.cookies.set("graticule_sign_in", kept)
    await refused(browser, await browser.client.get(back), "refused")


async def test_what_was_begun_too_long_ago_or_not_here_has_expired(opened: Open, issuer: AuthorizationServer) -> None:
    browser = await opened()
    sign_in = browser.app.state.open_id_sign_in
    for seal in (
        Seal(SecretStr(SERVICE_KEY), PURPOSE, timedelta(seconds=-1)),
        Seal(SecretStr(SERVICE_KEY), "another", timedelta(hours=1)),
        Seal(SecretStr("another key, which is long enough too"), PURPOSE, timedelta(hours=1)),
    ):
        sound, sign_in._seal = sign_in._seal, seal
        led = await browser.client.get(OIDC)
        sign_in._seal = sound
        browser.client.cookies.set("graticule_sign_in", cookies_of(led)["graticule_sign_in"][0])
        await refused(browser, await browser.client.get(issuer.approve(led.headers["location"])), "expired")


@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        ({"nonce": "another"}, "refused"),
        ({"nonce": None}, "refused"),
        ({"nonce": 7}, "refused"),
        ({"aud": "another-program"}, "refused"),
        ({"iss": "https://another.example"}, "refused"),
        ({"exp": 1}, "refused"),
        ({"key": rsa_key(1)}, "refused"),
        ({"sub": "admin"}, "refused"),
        ({"roles": []}, "no_role"),
        ({"roles": ["superuser"]}, "no_role"),
        ({"roles": ["submitter"]}, "no_role"),  # of no platform
    ],
)
async def test_an_identity_that_is_not_sound_signs_nobody_in(
    opened: Open, issuer: AuthorizationServer, claims: dict[str, Any], reason: str
) -> None:
    issuer.claims = claims
    browser = await opened()
    await refused(browser, await come_back(browser, issuer), reason)


async def test_an_access_token_counts_only_beside_an_identity_of_this_sign_in(
    opened: Open, issuer: AuthorizationServer
) -> None:
    browser = await opened(oidc_audience=AUDIENCE)
    for changes in ({"claims": {"nonce": "another"}}, {"access_claims": {"aud": "another"}}):
        issuer.claims, issuer.access_claims = changes.get("claims", {}), changes.get("access_claims", {})
        await refused(browser, await come_back(browser, issuer), "refused")


@pytest.mark.parametrize("without", [("id_token",), ("id_token", "access_token")])
async def test_an_answer_without_the_token_signs_nobody_in(
    opened: Open, issuer: AuthorizationServer, without: tuple[str, ...]
) -> None:
    issuer.without = without
    browser = await opened()
    await refused(browser, await come_back(browser, issuer), "refused")


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        ("access_denied", "refused"),
        ("server_error", "unavailable"),
        ("temporarily_unavailable", "unavailable"),
        ("Evil words", "refused"),
    ],
)
async def test_whom_the_issuer_does_not_sign_in_is_told_so(
    opened: Open, issuer: AuthorizationServer, logged: list[Any], error: str, reason: str
) -> None:
    browser = await opened()
    led = await browser.client.get(OIDC)
    state = httpx.URL(led.headers["location"]).params["state"]
    answer = await browser.client.get(CALLBACK, params={"error": error, "code": "c", "state": state})
    await refused(browser, answer, reason)
    assert issuer.forms == []
    (line,) = [line for line in logged if line["event"] == "nobody was signed in"]
    assert line["detail"] == f"the issuer says {'no word that is known' if ' ' in error else error}"


async def test_nothing_that_is_brought_back_is_an_error_to_look_at(opened: Open, issuer: AuthorizationServer) -> None:
    browser = await opened()
    await refused(browser, await browser.client.get(CALLBACK), "expired")
    for name in ("code", "state"):
        led = await browser.client.get(OIDC)
        back = httpx.URL(issuer.approve(led.headers["location"]))
        await refused(browser, await browser.client.get(back.copy_set_param(name, "x" * 9000)), "refused")
    assert issuer.forms == []


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ((400, {}, b'{"error": "very-secret", "error_description": "very-secret"}'), "refused"),
        ((400, {}, b'["very-secret"]'), "refused"),
        ((401, {}, b'{"error": 1}'), "refused"),
        ((400, {}, b"x" * (issuer_documents.MOST_BYTES + 1)), "refused"),
        ((429, {}, b""), "unavailable"),
        ((500, {}, b""), "unavailable"),
        ((302, {"Location": "/tenant/elsewhere"}, b""), "unavailable"),
        ((200, {}, b"no JSON"), "unavailable"),
        ((200, {}, b"[]"), "unavailable"),
        ((200, {}, b'{"id_token": 1}'), "refused"),
        ((200, {}, b'{"id_token": "' + b"x" * issuer_documents.MOST_BYTES + b'"}'), "unavailable"),
        ((200, {}, b'{"id_token": "Zq7.Kx9.Vw3", "secret": "very-secret"}'), "refused"),
    ],
)
async def test_an_answer_of_the_token_endpoint_that_is_none_is_not_told_on(
    opened: Open, issuer: AuthorizationServer, answer: Any, reason: str, logged: list[Any]
) -> None:
    issuer.answers["/tenant/token"] = answer
    browser = await opened()
    await refused(browser, await come_back(browser, issuer), reason)
    assert issuer.asked.count("/tenant/token") == 1
    assert "/tenant/elsewhere" not in issuer.asked
    assert not [word for word in ("very-secret", "Zq7") if word in str(logged)]


async def test_the_word_of_the_token_endpoint_is_logged_and_nothing_else_of_it(
    opened: Open, issuer: AuthorizationServer, logged: list[Any]
) -> None:
    issuer.answers["/tenant/token"] = (401, {}, b'{"error": "invalid_client", "error_description": "very-secret"}')
    browser = await opened()
    await refused(browser, await come_back(browser, issuer), "refused")
    (line,) = [line for line in logged if line["event"] == "nobody was signed in"]
    assert line["detail"] == "the issuer gave no tokens for the code: status 401, invalid_client"
    assert "very-secret" not in str(logged)


@pytest.mark.parametrize(
    "changes",
    [
        {"issuer": "https://another.example"},
        {"token_endpoint": "http://tokens.example/"},
        {"token_endpoint": None},
        {"authorization_endpoint": "javascript:alert(1)"},
        {"authorization_endpoint": "http://[broken"},
    ],
)
async def test_a_discovery_that_leads_elsewhere_is_not_followed(
    opened: Open, issuer: AuthorizationServer, changes: dict[str, Any]
) -> None:
    issuer.answers[f"/tenant{DISCOVERY}"] = (200, {}, json.dumps({**issuer.discovery, **changes}).encode())
    browser = await opened()
    await refused(browser, await browser.client.get(OIDC), "unavailable")


async def test_an_issuer_that_is_away_is_told_of_and_not_waited_for(
    opened: Open,
    served: tuple[AuthorizationServer, ThreadingHTTPServer],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    issuer, server = served
    browser, late = await opened(), await opened()
    led = await browser.client.get(OIDC)
    back = issuer.approve(led.headers["location"])
    server.shutdown()
    server.server_close()
    monkeypatch.setattr(issuer_documents, "TIMEOUT_SECONDS", 1.0)
    await refused(browser, await browser.client.get(back), "unavailable")
    await refused(late, await late.client.get(OIDC), "unavailable")
    assert (await browser.client.get(OIDC)).headers["location"].startswith(issuer.url)  # what is known counts on


@pytest.mark.parametrize("to", ["//evil.example", "https://evil.example/", "/\\evil.example", "/\t/evil.example"])
async def test_nobody_is_led_to_another_site(opened: Open, issuer: AuthorizationServer, to: str) -> None:
    browser = await opened()
    assert (await come_back(browser, issuer, to)).headers["location"] == "/"
    assert (await signed_in(browser))["name"] == "ada@example.org"


async def test_without_a_client_there_is_no_way_to_the_issuer(opened: Open) -> None:
    browser = await opened(oidc_client_id=None)
    assert (await browser.session())["sign_in"]["oidc"] is None
    for path in (OIDC, CALLBACK):
        assert "GRATICULE_OIDC_CLIENT_ID" in problem_of(await browser.client.get(path), 404)["hint"]


async def test_refusals_are_counted_and_nobody_is_locked_out_by_others(
    opened: Open, issuer: AuthorizationServer, logged: list[Any]
) -> None:
    browser = await opened()
    browser.app.state.rate_limits = RateLimits(1000, failures_per_minute=1, nameless_per_minute=1)
    for status in (401, 429):  # what others do at the same address
        assert (await browser.client.get("/api/platforms")).status_code == status
    issuer.claims = {"nonce": "another"}
    await refused(browser, await come_back(browser, issuer), "refused")
    await refused(browser, await come_back(browser, issuer), "unavailable")
    assert "Too many requests with a wrong credential" in str(logged)
    issuer.claims = {}
    assert (await come_back(browser, issuer)).headers["location"] == "/"
    assert (await signed_in(browser))["name"] == "ada@example.org"


async def test_an_issuer_that_is_unwell_is_no_fault_of_the_address(opened: Open, issuer: AuthorizationServer) -> None:
    browser = await opened()
    browser.app.state.rate_limits = RateLimits(1000, failures_per_minute=1)
    for error in ("server_error", "temporarily_unavailable"):
        led = await browser.client.get(OIDC)
        state = httpx.URL(led.headers["location"]).params["state"]
        await refused(
            browser, await browser.client.get(CALLBACK, params={"error": error, "state": state}), "unavailable"
        )
    issuer.claims = {"nonce": "another"}
    await refused(browser, await come_back(browser, issuer), "refused")  # the first that counts
