"""Staff look at the data of the real services through the gateway, each as far as its roles go."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import cramjam
import httpx
import pytest
import pytest_asyncio
from fastapi import FastAPI
from pydantic import SecretStr
from tests.conftest import new_database
from tests.integration.gateway.front import (
    SERVICE_KEY,
    Front,
    add_clients,
    address,
    ask_raw,
    caller_of,
    headers_of,
    key_of,
    problem_of,
    running_api,
    running_front,
    served,
    settings_of,
)
from tests.integration.gateway.targets import Target
from tests.integration.serve.access_table import ALL_VERSIONS, BY_NAME, NEVER, OUO, UNCLEARED, Asset, Version
from tests.integration.serve.running import INSIDE, TILE, World, table_of

from graticule.core.audience import Audience
from graticule.core.models.platform import ClientRole, DataType
from graticule.gateway import proxy
from graticule.serve.app import create_serve
from graticule.services.service_tokens import HEADER, TO_ORCHESTRATOR, TO_SERVICES, ServiceTokens

pytestmark = [
    pytest.mark.filterwarnings("ignore:Use `@` matmul:PendingDeprecationWarning"),  # rasterio 1.4 with affine 3
    pytest.mark.asyncio(loop_scope="module"),
]

SERVE_KEY: Final = "the-key-of-the-services-of-the-tests-is-long"
RASTER, VECTOR = DataType


def asset(number: int, data_type: DataType, story: str) -> Asset:
    clearance = UNCLEARED if story == "pending" else OUO
    return Asset(number, data_type, clearance, ALL_VERSIONS, (Version(0, BY_NAME[story], NEVER),))


WAITING_RASTER, WAITING_VECTOR = asset(1, RASTER, "pending"), asset(2, VECTOR, "pending")
SERVED_RASTER, SERVED_VECTOR = asset(3, RASTER, "approved"), asset(4, VECTOR, "approved")
WITHDRAWN: Final = asset(5, RASTER, "revoked")
PREVIEW: Final = f"preview/{WAITING_RASTER.asset_id}/0/tiles/{TILE}"
VECTOR_PREVIEW: Final = f"preview/{WAITING_VECTOR.asset_id}/0/collections/features/tiles/{TILE}"
PICTURE: Final = f"tiles/{SERVED_RASTER.asset_id}/tiles/{TILE}"
VECTOR_TILE: Final = f"features/{SERVED_VECTOR.asset_id}/collections/features/tiles/{TILE}"
SHOWN: Final = (PICTURE, VECTOR_TILE, f"tiles/{SERVED_RASTER.asset_id}/info", "stac", "stac/collections", "stac/search")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Give what is served, and what waits; the tests only read it."""
    with new_database() as created:
        add_clients(created)
        world = World(created, tmp_path_factory.mktemp("viewed"))
        world.write_data([0], [1])
        world.write_assets([WAITING_RASTER, WAITING_VECTOR, SERVED_RASTER, SERVED_VECTOR, WITHDRAWN])
        with world.connected() as connection:  # so many that a tile is worth compressing
            more = f"INSERT INTO geo.{table_of(0, 1)} SELECT n, n, ST_Point(%s + n * 1e-5, %s, 4326) FROM"
            connection.execute(f"{more} generate_series(2, 500) AS n".encode(), INSIDE)
        yield world


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def services(world: World) -> AsyncIterator[str]:
    """Give the address of the internal services."""
    app = create_serve(
        world.settings(serve_key=SERVE_KEY), world.database.url(Audience.INTERNAL.role), Audience.INTERNAL
    )
    async with app.router.lifespan_context(app), served(app) as found:
        yield found


@asynccontextmanager
async def viewing(world: World, services: str, home: Path, **more: Any) -> AsyncIterator[Front]:
    """Give a gateway that knows the services."""
    given = {"proxy_targets": {"serve": address(services)}, "serve_key": SecretStr(SERVE_KEY), **more}
    async with running_front(settings_of(home, **given), world.database) as front:
        yield front


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def front(world: World, services: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Front]:
    async with viewing(world, services, tmp_path_factory.mktemp("gateway")) as running:
        yield running


async def seen(front: Front, who: str | None, path: str, **headers: str) -> httpx.Response:
    return await front.ask(who, "GET", f"/api/view/{path}", headers=headers)


async def test_reviewers_see_what_waits_and_operators_do_not(front: Front) -> None:
    for path in (PREVIEW, VECTOR_PREVIEW, f"preview/{WAITING_RASTER.asset_id}/0/WebMercatorQuad/tilejson.json"):
        for who in ("reviewer", "admin"):
            answer = await seen(front, who, path)
            assert (answer.status_code, answer.headers["cache-control"]) == (200, "private, no-cache"), (who, path)
            assert answer.headers["graticule-revision"] == "1", "what a decision has to name"
        problem_of(await seen(front, "operator", path), 404, "not_found")


async def test_staff_see_what_is_in_service_and_nothing_else(front: Front) -> None:
    for who in ("reviewer", "operator", "admin"):
        for path in SHOWN:
            assert (await seen(front, who, path)).status_code == 200, (who, path)
        problem_of(await seen(front, who, f"tiles/{WAITING_RASTER.asset_id}/info"), 404)
        problem_of(await seen(front, who, f"tiles/{WITHDRAWN.asset_id}/info"), 410)


async def test_nobody_else_passes(front: Front) -> None:
    for path in (PREVIEW, *SHOWN):
        for who in ("partner", "stranger", "worker"):
            problem_of(await seen(front, who, path), 403)
        problem_of(await seen(front, None, path), 401)


async def test_who_is_signed_in_to_the_console_needs_no_key(front: Front) -> None:
    for who, status in (("reviewer", 200), ("operator", 404), ("partner", 403)):
        transport = httpx.ASGITransport(front.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://gateway") as browser:
            signing_in = {"X-Graticule-Console": "1"}
            signed_in = await browser.post("/api/session", json={"api_key": key_of(who)}, headers=signing_in)
            assert signed_in.status_code == 200
            assert signed_in.json()["services"] is True
            assert (await browser.get(f"/api/view/{PREVIEW}")).status_code == status


async def test_what_a_browser_has_already_is_not_sent_again(front: Front) -> None:
    for path in (PREVIEW, PICTURE, VECTOR_TILE, "stac/collections"):
        first = await seen(front, "reviewer", path)
        assert first.headers["vary"] == "Accept, Accept-Encoding, Cookie, Authorization, X-API-Key"
        again = await seen(front, "reviewer", path, **{"If-None-Match": first.headers["etag"]})
        assert (again.status_code, again.content) == (304, b""), path
        kept = ("etag", "cache-control", "vary")
        assert [again.headers[name] for name in kept] == [first.headers[name] for name in kept]
        other = await seen(front, "reviewer", path, **{"If-None-Match": 'W/"another"'})
        assert (other.status_code, other.content) == (200, first.content)


async def test_a_tag_that_one_caller_has_opens_nothing_to_another(front: Front) -> None:
    tag = (await seen(front, "reviewer", PREVIEW)).headers["etag"]
    problem_of(await seen(front, "operator", PREVIEW, **{"If-None-Match": tag}), 404)


async def raw(client: httpx.AsyncClient, path: str, encoding: str) -> tuple[httpx.Headers, bytes]:
    """Ask as someone who may review, and give what came as it came."""
    headers = {**headers_of("reviewer"), "Accept-Encoding": encoding}
    async with client.stream("GET", path, headers=headers) as answer:
        assert answer.status_code == 200
        return answer.headers, b"".join([part async for part in answer.aiter_raw()])


@pytest.mark.parametrize("tile", [VECTOR_TILE, VECTOR_PREVIEW], ids=["in service", "waiting"])
async def test_vector_tiles_stay_compressed_on_their_whole_way(front: Front, services: str, tile: str) -> None:
    headers, plain = await raw(front.client, f"/api/view/{tile}", "identity")
    assert "content-encoding" not in headers
    assert len(plain) > 1000
    async with served(front.app) as gateway, httpx.AsyncClient(verify=False) as client:
        for encoding, unpack in (("gzip", cramjam.gzip.decompress), ("br", cramjam.brotli.decompress)):
            headers, body = await raw(client, f"{gateway}/api/view/{tile}", encoding)
            _, made = await raw(client, f"{services}/{tile}", encoding)
            assert (headers["content-encoding"], headers["content-length"]) == (encoding, str(len(body)))
            assert body == made
            assert len(body) < len(plain)
            assert bytes(unpack(body)) == plain


async def test_only_what_is_read_can_be_asked(front: Front) -> None:
    answer = await front.ask("reviewer", "HEAD", f"/api/view/{PREVIEW}")
    whole = await seen(front, "reviewer", PREVIEW)
    assert (answer.status_code, answer.content) == (200, b"")
    assert answer.headers["etag"] == whole.headers["etag"]
    assert answer.headers["content-length"] == whole.headers["content-length"]
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        problem_of(await front.ask("admin", method, "/api/view/stac/search", json={}), 405)


async def test_answers_cannot_act_as_pages_of_ours(front: Front) -> None:
    answer = await seen(front, "operator", f"tiles/{SERVED_RASTER.asset_id}/WebMercatorQuad/map.html")
    assert answer.headers["content-type"].startswith("text/html")
    assert answer.headers["content-security-policy"] == "sandbox"
    assert answer.headers["x-frame-options"] == "DENY"


TRICKS: Final = (
    *("", "x", "metrics", "readyz", "static/x.js", "openapi.json", "tiles", "previews/1", "stacks", "TILES/1", "/stac"),
    *("tiles/../metrics", "tiles/../preview/x", "tiles/%2e%2e/metrics", "stac/..", "stac%2fcollections", "tiles%2f1"),
    *("tiles/%252e%252e/metrics", "tiles//metrics", "./tiles/1", "tiles/a%5cb", "tiles/a\\b", "tiles/a%00b"),
    *("http://evil.example/tiles/1", "//evil.example/tiles/1", "tiles/..%2f..%2fmetrics"),
)


# What services of another kind would do


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def target() -> AsyncIterator[Target]:
    target = Target()
    async with served(target.app) as found:
        target.address = found
        yield target


async def test_no_path_leads_anywhere_else(world: World, target: Target, tmp_path: Path) -> None:
    async with viewing(world, f"{target.address}/base", tmp_path) as front:
        for path in TRICKS:
            assert await ask_raw(front.app, "admin", f"/api/view/{path}".encode()) == 422, path
    assert target.requests == []


async def test_the_services_are_told_who_looks_and_no_credential(world: World, target: Target, tmp_path: Path) -> None:
    target.requests.clear()
    sent = {"Cookie": "c=d", "X-Forwarded-For": "1.2.3.4", "Accept-Encoding": "br"}
    async with viewing(world, f"{target.address}/base", tmp_path) as front:
        answer = await seen(front, "reviewer", "tiles/1?a=1", **sent)
        moved = await seen(front, "reviewer", f"stac/moved?to={target.address}/base/stac/there")
    assert answer.headers["cache-control"] == "private, max-age=600"
    assert answer.headers["vary"] == "Cookie, Authorization, X-API-Key"
    assert not {"set-cookie", "server", "x-secret"} & set(answer.headers)
    assert (moved.status_code, moved.headers["location"]) == (307, "/api/view/stac/there")
    request = target.requests[0]
    assert (request.url.path, request.url.query) == ("/base/tiles/1", "a=1")
    assert request.headers["accept-encoding"] == "br"
    assert not {"x-api-key", "authorization", "cookie", "x-forwarded-for"} & set(request.headers)
    assert key_of("reviewer") not in str(request.headers)
    caller = ServiceTokens(SecretStr(SERVE_KEY), TO_SERVICES).read(request.headers[HEADER])
    assert (caller.name, caller.roles) == ("reviewer", frozenset({ClientRole.REVIEWER}))


async def test_no_answer_may_pause_for_ever(
    world: World, target: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proxy, "ANSWER_SECONDS", 0.2)
    headers = {**headers_of("reviewer"), "Accept": "text/event-stream"}
    async with (
        viewing(world, target.address, tmp_path) as front,
        served(front.app) as found,
        httpx.AsyncClient(base_url=found, headers=headers, timeout=20, verify=False) as client,
        client.stream("GET", "/api/view/tiles/events") as answer,
    ):
        chunks = answer.aiter_raw()
        assert await anext(chunks) == b"data: 1\n\n"
        with pytest.raises(httpx.RemoteProtocolError):
            await anext(chunks)


# How it is set up


async def test_services_that_know_themselves_by_another_name_are_asked_by_it(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a cluster, where the gateway reaches them by a name with dots, which they would refuse."""
    public, name, find = "https://maps.example", "services.cluster.example", socket.getaddrinfo

    def found_here(host: Any, *more: Any, **named: Any) -> Any:
        return find("127.0.0.1" if host in {name, name.encode()} else host, *more, **named)

    monkeypatch.setattr(socket, "getaddrinfo", found_here)
    settings = world.settings(serve_key=SERVE_KEY, serve_url=public)
    app = create_serve(settings, world.database.url(Audience.INTERNAL.role), Audience.INTERNAL)
    async with app.router.lifespan_context(app), served(app) as found:
        within = found.replace("127.0.0.1", name)
        async with viewing(world, within, tmp_path, serve_url=address(public)) as front:
            for path in (PICTURE, PREVIEW, "stac/collections"):
                assert (await seen(front, "reviewer", path)).status_code == 200, path
        async with viewing(world, within, tmp_path) as front:
            assert (await seen(front, "reviewer", PICTURE)).status_code == 421


async def test_a_gateway_that_knows_no_services_says_what_to_set(world: World, tmp_path: Path) -> None:
    async with running_front(settings_of(tmp_path), world.database) as front:
        assert not front.app.state.proxy.has("serve")
        problem = problem_of(await seen(front, "reviewer", PREVIEW), 503, "unavailable")
    assert "GRATICULE_PROXY_TARGETS=serve=" in problem["hint"]


@pytest.mark.parametrize("key", [None, SecretStr("k" * 32)], ids=["no key", "another key"])
async def test_services_that_do_not_believe_the_gateway_are_no_fault_of_the_caller(
    world: World, services: str, tmp_path: Path, key: SecretStr | None
) -> None:
    async with viewing(world, services, tmp_path, serve_key=key) as front:
        assert (await seen(front, "reviewer", PICTURE)).status_code == 200
        problem = problem_of(await seen(front, "reviewer", PREVIEW), 503, "unavailable")
    assert "GRATICULE_SERVE_KEY" in problem["hint"]


async def test_services_that_are_down_are_503(world: World, tmp_path: Path) -> None:
    async with viewing(world, "http://127.0.0.1:1", tmp_path) as front:
        answer = await seen(front, "reviewer", PREVIEW)
    assert problem_of(answer, 503, "unavailable")["detail"] == "The target 'serve' does not answer."
    assert answer.headers["retry-after"]


async def test_tiles_do_not_use_up_what_a_caller_may_ask(world: World, services: str, tmp_path: Path) -> None:
    async with viewing(world, services, tmp_path, rate_limit_per_minute=1) as front:
        answers = await asyncio.gather(*(seen(front, "reviewer", PREVIEW) for _ in range(10)))
        assert {answer.status_code for answer in answers} == {200}
        assert (await front.ask("reviewer", "GET", "/api/assets")).status_code == 200
        problem_of(await front.ask("reviewer", "GET", "/api/assets"), 429)
        assert (await seen(front, "reviewer", PREVIEW)).status_code == 200


# Whom the services and the orchestrator believe


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def api(world: World, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[FastAPI]:
    async with running_api(settings_of(tmp_path_factory.mktemp("api")), world.database) as app:
        yield app


async def test_a_token_for_one_process_opens_nothing_at_another(services: str, api: FastAPI) -> None:
    admin = caller_of("admin")
    signed = {
        (key, receiver.audience): ServiceTokens(SecretStr(key), receiver).sign(admin)
        for key in (SERVE_KEY, SERVICE_KEY)
        for receiver in (TO_SERVICES, TO_ORCHESTRATOR)
    }
    transport = httpx.ASGITransport(api)
    async with (
        httpx.AsyncClient(base_url=services, verify=False) as of_services,
        httpx.AsyncClient(transport=transport, base_url="http://orchestrator") as of_orchestrator,
    ):
        for who, token in signed.items():
            shown = await of_services.get(f"/{PREVIEW}", headers={HEADER: token})
            assert shown.status_code == (200 if who == (SERVE_KEY, TO_SERVICES.audience) else 401), who
            listed = await of_orchestrator.get("/api/v1/assets", headers={HEADER: token})
            assert listed.status_code == (200 if who == (SERVICE_KEY, TO_ORCHESTRATOR.audience) else 401), who


async def test_services_without_a_key_take_no_tokens(world: World) -> None:
    token = ServiceTokens(SecretStr(SERVE_KEY), TO_SERVICES).sign(caller_of("reviewer"))
    app = create_serve(world.settings(), world.database.url(Audience.INTERNAL.role), Audience.INTERNAL)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://served") as client,
    ):
        problem_of(await client.get(f"/{PREVIEW}", headers={HEADER: token}), 401)
        assert (await client.get(f"/{PREVIEW}", headers=headers_of("reviewer"))).status_code == 200


async def test_the_public_s_services_have_no_previews_for_anyone(world: World) -> None:
    token = ServiceTokens(SecretStr(SERVE_KEY), TO_SERVICES).sign(caller_of("admin"))
    audience = Audience.EXTERNAL
    app = create_serve(world.settings(serve_key=SERVE_KEY), world.database.url(audience.role), audience)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://served") as client,
    ):
        problem_of(await client.get(f"/{PREVIEW}", headers={HEADER: token}), 404)
