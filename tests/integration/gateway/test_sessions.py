"""Sessions of the console: begun by a key, good for as long as the key, and of no use to pages of other sites."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import SecretStr
from tests.conftest import TestDatabase
from tests.integration.api.documents import application
from tests.integration.gateway.browsers import CONSOLE, SESSION, Browser, browser_of, cookies_of
from tests.integration.gateway.front import (
    ADMIN_KEY,
    FLAT,
    SERVICE_KEY,
    WHO,
    Front,
    address,
    caller_of,
    headers_of,
    key_of,
    problem_of,
    running_front,
    served,
    settings_of,
)
from tests.integration.gateway.targets import Target

from graticule import __version__
from graticule.core.permissions import ALLOWED, Deed
from graticule.gateway.app import create_gateway
from graticule.http.callers import CHANGING, MOST_BYTES_OF_STRANGERS
from graticule.http.rate_limits import RateLimits
from graticule.services.access import key_hash
from graticule.services.seals import Seal
from graticule.services.service_tokens import HEADER, ServiceTokens
from graticule.services.sessions import PURPOSE, Sessions

NO_DATABASE = "postgresql://nobody@127.0.0.1:1/nowhere"


@pytest.fixture
async def browser(front: Front) -> AsyncIterator[Browser]:
    async with browser_of(front.app) as browser:
        yield browser


# Signing in


async def test_a_key_opens_a_session_which_holds_no_key(browser: Browser, logged: list[Any]) -> None:
    assert (await browser.session())["caller"] is None
    problem_of(await browser.client.get("/api/platforms"), 401, "unauthenticated")
    view = await browser.sign_in(key_of("partner"))
    deeds = ["submit", "read"]
    assert view == {
        "caller": {"name": "partner", "roles": ["submitter"], "deeds": deeds, "platform_id": "ddh"},
        "sign_in": {"api_key": True, "oidc": None},
        "live": True,
        "services": False,
        "base_map": None,
        "version": __version__,
    }
    assert await browser.session() == view
    assert (await browser.client.get("/api/platforms")).json()["items"][0]["platform_id"] == "ddh"
    assert key_of("partner") not in f"{browser.cookie} {logged}"


async def test_each_is_told_what_it_may_do(front: Front, subtests: pytest.Subtests) -> None:
    for who, (roles, platform_id) in WHO.items():
        with subtests.test(who):
            async with browser_of(front.app) as browser:
                caller = (await browser.sign_in(key_of(who)))["caller"]
            assert (caller["name"], caller["roles"], caller["platform_id"]) == (who, roles, platform_id)
            assert set(caller["deeds"]) == {deed for deed, whose in ALLOWED.items() if set(roles) & whose}
            by_key = (await front.ask(who, "GET", SESSION)).json()["caller"]
            assert by_key == caller


async def test_the_admin_key_opens_a_session_too(browser: Browser, front: Front) -> None:
    front.app.state.rate_limits = RateLimits(1)
    caller = (await browser.sign_in(ADMIN_KEY))["caller"]
    assert caller == {
        "name": "admin",
        "roles": ["admin"],
        "deeds": [deed for deed in Deed if deed is not Deed.REPORT],
        "platform_id": None,
    }
    for _ in range(3):  # it must open the door when others crowd it
        assert (await browser.client.get("/api/admin/config")).status_code == 200


@pytest.mark.parametrize("key", ["wrong", key_of("nobody"), key_of("partner")[:-1], key_hash(key_of("partner"))])
async def test_a_wrong_key_opens_nothing(browser: Browser, key: str) -> None:
    answer = await browser.client.post(SESSION, json={"api_key": key}, headers=CONSOLE)
    assert key not in answer.text
    problem_of(answer, 401, "unauthenticated")
    assert not answer.headers.get_list("set-cookie")


async def test_wrong_keys_are_counted_and_a_right_one_opens_all_the_same(browser: Browser, front: Front) -> None:
    front.app.state.rate_limits = RateLimits(1000, failures_per_minute=3)
    for status in (401, 401, 401, 429, 429):
        await browser.sign_in("wrong", status)
    wrong = {"X-API-Key": "wrong"}
    assert (await browser.client.get(SESSION, headers=wrong)).status_code == 429  # it tells no more of keys than others
    await browser.sign_in(key_of("partner"))


async def test_what_is_sent_to_sign_in_is_brief_and_has_its_form(browser: Browser) -> None:
    wrong: list[Any] = [{}, {"api_key": ""}, {"api_key": 1}, {"api_key": None}, {"api_key": "k", "more": 1}, [], "k"]
    for each in wrong:
        problem_of(await browser.client.post(SESSION, json=each, headers=CONSOLE), 422, "invalid_input")
    headers = {**CONSOLE, "Content-Type": "application/json"}
    surrogate = await browser.client.post(SESSION, content=b'{"api_key": "\\ud800"}', headers=headers)
    problem_of(surrogate, 422)
    secret = "long-secret" + "x" * 600
    refused = await browser.client.post(SESSION, json={"api_key": secret}, headers=CONSOLE)
    assert "long-secret" not in refused.text
    problem_of(refused, 422)

    async def body() -> AsyncIterator[bytes]:
        for _ in range(3):
            yield b"x" * (MOST_BYTES_OF_STRANGERS // 2)

    for content in (b"x" * (MOST_BYTES_OF_STRANGERS + 1), body()):
        problem_of(await browser.client.post(SESSION, content=content, headers=headers), 413, "content_too_large")


async def test_without_a_service_key_nobody_signs_in_and_is_told_why(tmp_path: Path) -> None:
    app = create_gateway(settings_of(tmp_path, service_key=None), NO_DATABASE)
    async with browser_of(app) as browser:
        assert (await browser.session())["caller"] is None
        answer = await browser.client.post(SESSION, json={"api_key": ADMIN_KEY}, headers=CONSOLE)
        assert "GRATICULE_SERVICE_KEY" in problem_of(answer, 503, "unavailable")["hint"]
        assert (await browser.client.delete(SESSION, headers=CONSOLE)).status_code == 204


# While it lasts


async def test_a_session_ends_with_its_key_and_follows_the_roles_of_its_client(browser: Browser, front: Front) -> None:
    await browser.sign_in(key_of("operator"))
    assert (await browser.client.get("/api/status/jobs")).status_code == 200
    _change(front, "operator", "roles = '{reviewer}'::dagapp.client_role[]")
    assert (await browser.session())["caller"]["roles"] == ["reviewer"]
    problem_of(await browser.client.get("/api/status/jobs"), 403, "permission_denied")
    _change(front, "operator", "is_active = false")
    problem_of(await browser.client.get("/api/platforms"), 401, "unauthenticated")
    _change(front, "operator", "is_active = true")
    assert (await browser.client.get("/api/platforms")).status_code == 200  # it is the same key
    _change(front, "operator", f"key_hash = '{key_hash('another')}'")
    ended = await browser.client.get(SESSION)
    assert ended.json()["caller"] is None
    assert cookies_of(ended)["graticule_session"][1] >= {"max-age=0", "path=/api"}
    assert not browser.client.cookies


def _change(front: Front, who: str, change: str) -> None:
    front.execute(f"UPDATE dagapp.api_clients SET {change} WHERE client_id = %s", who)
    front.app.state.access.forget(who)  # instead of waiting until it is looked up anew


async def test_a_session_that_is_over_counts_as_none(browser: Browser, front: Front) -> None:
    front.app.state.rate_limits = RateLimits(1000, failures_per_minute=1)
    seal = Seal(SecretStr(SERVICE_KEY), PURPOSE, timedelta(seconds=-1))
    old = Sessions(seal, front.app.state.access, admin_key=None, issuer=None).begun_by_key(key_of("partner"))
    good = front.app.state.sessions.begun_by_key(key_of("partner"))
    other = ServiceTokens(SecretStr(SERVICE_KEY)).sign(caller_of("admin"))
    for value in (old, good[:-2], good.replace(".", ".x", 1), "x", "x" * 5000, other):
        browser.client.cookies.set("graticule_session", value)
        answer = await browser.client.get("/api/platforms")
        assert problem_of(answer, 401, "unauthenticated")["detail"] == "The session has ended."
        assert (await browser.session())["caller"] is None


async def test_signing_out_forgets_the_session(browser: Browser, logged: list[Any]) -> None:
    await browser.sign_in(key_of("partner"))
    answer = await browser.client.delete(SESSION, headers=CONSOLE)
    assert (answer.status_code, answer.content) == (204, b"")
    attributes = {"httponly", "max-age=0", "path=/api", "samesite=strict"}
    assert cookies_of(answer)["graticule_session"] == ('""', attributes)
    assert answer.headers["clear-site-data"] == '"cache"'
    told = [(line["event"], line["caller"], line.get("by")) for line in logged if line["event"].startswith("signed")]
    assert told == [("signed in", "partner", "key"), ("signed out", "partner", None)]
    problem_of(await browser.client.get("/api/platforms"), 401, "unauthenticated")
    assert (await browser.client.delete(SESSION, headers=CONSOLE)).status_code == 204


async def test_requests_of_a_session_count_for_its_client(browser: Browser, front: Front) -> None:
    front.app.state.rate_limits = RateLimits(3)
    await browser.sign_in(key_of("partner"))
    answers = [await browser.client.get("/api/platforms") for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert (await front.ask("partner", "GET", "/api/platforms")).status_code == 429
    assert (await browser.session())["caller"]["name"] == "partner"


async def test_the_cookie_is_for_this_host_and_no_script(front: Front) -> None:
    seconds = f"max-age={front.app.state.settings.session_minutes * 60}"
    both = {"httponly", "samesite=strict", seconds}
    expected = {
        "http": ("graticule_session", both | {"path=/api"}),
        "https": ("__Host-graticule_session", both | {"path=/", "secure"}),
    }
    for scheme, (name, attributes) in expected.items():
        async with browser_of(front.app, f"{scheme}://gateway") as browser:
            answer = await browser.client.post(SESSION, json={"api_key": ADMIN_KEY}, headers=CONSOLE)
            ((found, (_, told)),) = cookies_of(answer).items()
            assert (found, told) == (name, attributes)
            assert (await browser.session())["caller"]["name"] == "admin"
            answer = await browser.client.delete(SESSION, headers=CONSOLE)
            assert cookies_of(answer)[name][1] >= attributes - {seconds}


async def test_where_the_public_address_is_one_of_https_cookies_go_by_it_alone(
    database: TestDatabase, tmp_path: Path
) -> None:
    """A proxy that takes the https may say nothing of it."""
    settings = settings_of(tmp_path, public_url=address("https://maps.example"))
    async with running_front(settings, database) as front, browser_of(front.app) as browser:
        answer = await browser.client.post(SESSION, json={"api_key": ADMIN_KEY}, headers=CONSOLE)
        ((name, (value, attributes)),) = cookies_of(answer).items()
        assert (name, attributes & {"secure", "path=/"}) == ("__Host-graticule_session", {"secure", "path=/"})
        sent = await browser.client.get("/api/platforms", headers={"Cookie": f"{name}={value}"})
        assert sent.status_code == 200


async def test_other_ports_of_the_host_are_not_sent_the_session(browser: Browser) -> None:
    await browser.sign_in(ADMIN_KEY)
    beside = httpx.Request("GET", "http://gateway:8003/tiles/1")
    browser.client.cookies.set_cookie_header(beside)
    assert "cookie" not in beside.headers


async def test_by_https_a_cookie_that_another_host_may_have_set_does_not_count(front: Front) -> None:
    async with browser_of(front.app, "https://gateway") as browser:
        browser.client.cookies.set("graticule_session", front.app.state.sessions.begun_by_key(ADMIN_KEY))
        assert (await browser.session())["caller"] is None
        problem_of(await browser.client.get("/api/platforms"), 401)


# Pages of other sites

CROSS_SITE = [
    {},
    {"X-Graticule-Console": ""},
    {"X-Graticule-Console": "0"},
    {"X-Graticule-Console": "true"},
    {"Sec-Fetch-Site": "same-origin"},
    {"X-Graticule-Console": "1", "Sec-Fetch-Site": "cross-site"},
    {"X-Graticule-Console": "1", "Sec-Fetch-Site": "same-site"},
    {"X-Graticule-Console": "1", "Sec-Fetch-Site": ""},
]


def changing_routes() -> Iterator[tuple[str, str]]:
    for path, item in application("gateway").openapi()["paths"].items():
        for method in item:
            if method.upper() in CHANGING:
                yield method.upper(), path.replace("{", "").replace("}", "")


async def test_no_change_is_made_in_the_name_of_a_browser_that_another_site_leads_here(browser: Browser) -> None:
    await browser.sign_in(ADMIN_KEY)
    routes = list(changing_routes())
    assert len(routes) > 15
    read = asyncio.Event()

    async def body() -> AsyncIterator[bytes]:
        read.set()
        yield b"{}"

    for method, path in routes:
        for headers in CROSS_SITE:
            sent = {"Content-Type": "application/json", **headers}
            problem_of(await browser.client.request(method, path, content=body(), headers=sent), 403, "csrf")
    assert not read.is_set()
    assert (await browser.session())["caller"]["name"] == "admin"  # nor was it signed out


@pytest.mark.parametrize("method", ["POST", "DELETE"])
async def test_nobody_is_signed_in_or_out_by_another_site(browser: Browser, method: str) -> None:
    for headers in CROSS_SITE:
        for more in ({}, headers_of("partner")):
            answer = await browser.client.request(
                method, SESSION, json={"api_key": ADMIN_KEY}, headers={**headers, **more}
            )
            problem_of(answer, 403, "csrf")
            assert not answer.headers.get_list("set-cookie")


async def test_changes_of_the_console_are_made_in_the_name_of_who_is_signed_in(browser: Browser, front: Front) -> None:
    await browser.sign_in(key_of("partner"))
    for headers in (CONSOLE, {"X-Graticule-Console": "1"}, {**CONSOLE, "Sec-Fetch-Site": "none"}):
        body = {**FLAT, "resource_id": f"shapefile-{len(headers)}-{headers.get('Sec-Fetch-Site')}"}
        answer = await browser.client.post("/api/platform/submit", json=body, headers=headers)
        assert answer.status_code == 202, answer.text
    recorded = front.execute("SELECT DISTINCT submitted_by FROM dagapp.platform_requests")
    assert recorded == [("partner",)]


async def test_beside_another_credential_a_session_does_not_count(browser: Browser) -> None:
    await browser.sign_in(key_of("operator"))
    reviewer = await browser.client.get(SESSION, headers=headers_of("reviewer"))
    assert reviewer.json()["caller"]["name"] == "reviewer"
    for wrong in ({"X-API-Key": "wrong"}, {"Authorization": "Bearer x"}, {HEADER: "x"}):
        problem_of(await browser.client.get("/api/platforms", headers=wrong), 401, "unauthenticated")
        answer = await browser.client.get(SESSION, headers=wrong)
        assert answer.json()["caller"] is None
    submitted = await browser.client.post("/api/platform/submit", json=FLAT, headers=headers_of("partner"))
    assert submitted.status_code == 202  # programs need no sign that they are the console
    assert (await browser.session())["caller"]["name"] == "operator"


# Where it does not go


async def test_a_session_stays_at_the_gateway(database: TestDatabase, tmp_path: Path) -> None:
    target = Target()
    async with served(target.app) as found:
        settings = settings_of(tmp_path, orchestrator_url=address(found), proxy_targets={"serve": address(found)})
        async with running_front(settings, database) as front, browser_of(front.app) as browser:
            assert (await browser.sign_in(key_of("operator")))["services"] is True
            browser.client.cookies.set("other", "kept")
            for path in ("proxy/orchestrator/x", "proxy/serve/x"):
                for method in ("GET", "POST"):
                    assert (await browser.client.request(method, f"/api/{path}", headers=CONSOLE)).status_code == 200
            cookie = browser.cookie
    passed_on = [request for request in target.requests if request.url.path == "/x"]
    assert len(passed_on) == 4
    for request in target.requests:
        assert "cookie" not in request.headers
        assert not [value for value in request.headers.values() if cookie in value]


async def test_the_orchestrator_takes_no_session(browser: Browser, front: Front) -> None:
    await browser.sign_in(ADMIN_KEY)
    assert front.api is not None
    async with browser_of(front.api) as other:
        other.client.cookies.set("graticule_session", browser.cookie)
        problem_of(await other.client.get("/api/v1/platforms"), 401, "unauthenticated")
        answer = await other.client.post(SESSION, json={"api_key": ADMIN_KEY}, headers=CONSOLE)
        problem_of(answer, 401, "unauthenticated")


async def test_a_session_is_in_no_log_and_no_answer(browser: Browser, logged: list[Any]) -> None:
    await browser.sign_in(key_of("partner"))
    signature = browser.cookie.rpartition(".")[2]
    answers = [
        await browser.client.get("/api/nowhere"),
        await browser.client.get("/api/platforms"),
        await browser.client.post("/api/platform/submit", json=FLAT),
    ]
    assert signature not in str(logged) + "".join(answer.text for answer in answers)


async def test_a_base_map_and_the_services_are_told_of(tmp_path: Path) -> None:
    tiles = "https://tiles.example:8443/{z}/{x}/{y}.png?key=k"
    settings = settings_of(tmp_path, console_base_map=tiles, console_base_map_attribution="The map makers")
    async with browser_of(create_gateway(settings, NO_DATABASE, streams=False)) as browser:
        view = await browser.session()
    assert (view["live"], view["services"]) == (False, False)
    assert view["base_map"] == {"tiles": tiles, "attribution": "The map makers"}


async def test_a_session_whose_client_cannot_be_looked_up_is_neither_good_nor_over(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, database_timeout_seconds=0.2)
    app = create_gateway(settings, NO_DATABASE)
    async with app.router.lifespan_context(app), browser_of(app) as browser:
        browser.client.cookies.set("graticule_session", app.state.sessions.begun_by_key(key_of("partner")))
        answer: httpx.Response = await browser.client.get(SESSION)
        problem_of(answer, 503, "unavailable")
        assert not answer.headers.get_list("set-cookie")
