"""Requests of those who mean harm: each is refused, and reads nothing but what it may.

Whether something else was read is watched, not guessed: a listener on loopback counts who connects, the kernel tells
of everyone who opens the file beside the data, and a secret stands in every row and file that nobody may see.
"""

import asyncio
import ctypes
import os
import struct
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import cycle, islice, product
from pathlib import Path
from time import perf_counter
from typing import Final
from urllib.parse import quote, unquote

import orjson
import psycopg
import pytest
import pytest_asyncio
import rasterio
import structlog
from psycopg import sql
from psycopg.types.json import Jsonb
from tests.conftest import new_database, plain_logs
from tests.integration.serve.access_table import (
    ALL_VERSIONS,
    BY_NAME,
    NEVER,
    OF_FIRST,
    OUO,
    PUBLIC,
    Asset,
    Version,
)
from tests.integration.serve.hostile_values import (
    BODIES,
    BOX,
    CQL2,
    EVIL,
    EXPRESSIONS,
    FEATURES,
    HARMLESS_SEARCHES,
    HEADERS,
    PICTURES,
    RENDERING,
    SEARCH_BODIES,
    SEARCHES,
    polygon,
)
from tests.integration.serve.running import (
    INSIDE,
    REVIEWER,
    SECRET,
    TILE,
    Given,
    Service,
    World,
    item_of,
    mark_of,
    serving,
    write_raster,
    write_table,
)

from graticule.core.audience import Audience
from graticule.core.models.platform import DataType

pytestmark = [
    pytest.mark.filterwarnings("ignore:Use `@` matmul:PendingDeprecationWarning"),  # rasterio 1.4 with affine 3
    pytest.mark.asyncio(loop_scope="module"),
]

GUARD_SECONDS: Final = 5.0  # against what never ends; a second is promised, and measured elsewhere
PUBLIC_ADDRESS: Final = "https://maps.example.org/services"
RASTER, VECTOR = DataType
SERVED: Final = {
    data_type: Asset(number, data_type, PUBLIC, ALL_VERSIONS, (Version(0, BY_NAME["approved"], OF_FIRST),))
    for number, data_type in enumerate(DataType, start=1)
}
HIDDEN: Final = Asset(9, RASTER, OUO, ALL_VERSIONS, (Version(0, BY_NAME["pending"], NEVER),))
R, V = SERVED[RASTER].asset_id, SERVED[VECTOR].asset_id
HIDDEN_TABLE: Final = "hidden_v0_r1"
POINT: Final = f"point/{INSIDE[0]},{INSIDE[1]}"
ITEMS: Final = "collections/features/items"
IN_OPEN, IN_ACCESS, IN_NONBLOCK = 0x20, 0x01, 0o4000
JSON: Final = {"content-type": "application/json"}


# Who watches


class OpenedFiles:
    """Tells which of some files were opened or read, by anyone, as the kernel saw it."""

    def __init__(self, *paths: Path) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._watcher = self._libc.inotify_init1(IN_NONBLOCK)
        assert self._watcher >= 0
        for path in paths:
            assert self._libc.inotify_add_watch(self._watcher, os.fsencode(path), IN_OPEN | IN_ACCESS) >= 0

    def count(self) -> int:
        """Tell how often since the last time."""
        try:
            told = os.read(self._watcher, 65536)
        except BlockingIOError:
            return 0
        found = 0
        while told:
            *_, length = struct.unpack_from("iIII", told)
            told, found = told[16 + length :], found + 1
        return found

    def close(self) -> None:
        os.close(self._watcher)


class Listener:
    """Somebody on loopback to whom nobody may connect."""

    def __init__(self) -> None:
        self.connected = 0
        self.port = 0

    @asynccontextmanager
    async def listening(self) -> AsyncIterator["Listener"]:
        server = await asyncio.start_server(self._count, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        async with server:
            yield self

    async def _count(self, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connected += 1
        writer.close()


@dataclass
class Watched:
    """The services, and what lies beside what they may read."""

    services: Mapping[Audience, Service]
    folder: Path
    canary: Path
    opened: OpenedFiles
    listener: Listener
    slowest: float = 0.0
    wrong: list[str] = field(default_factory=list)

    @property
    def elsewhere(self) -> list[str]:
        """Name data that are not to be read, in all ways that GDAL or a server might follow."""
        host = f"127.0.0.1:{self.listener.port}"
        plain = [
            *(str(self.canary), f"file://{self.canary}", f"http://{host}/x.tif", f"//{host}/x.tif"),
            *(
                f"/vsicurl/http://{host}/x.tif",
                f"/vsicurl?url=http://{host}/x.tif",
                f"/vsizip/vsicurl/http://{host}/x.zip",
            ),
            *(f"vrt://{self.canary}", f"/vsisubfile/0_99,{self.canary}", f"WMS:http://{host}/?", "/etc/passwd"),
            *(
                "../../../canary/canary.tif",
                "silver/../../canary/canary.tif",
                f"PG:host=127.0.0.1 port={self.listener.port}",
            ),
            *(f"GTIFF_DIR:1:{self.canary}", f"<VRTDataset><SourceFilename>{self.canary}</SourceFilename></VRTDataset>"),
        ]
        twice = [quote(each, safe="") for each in plain[:6]]
        return [*plain, *twice, f"{self.canary}\x00.tif"]

    def named(self, value: str) -> str:
        """Put in what nobody may touch."""
        return value.replace("{canary}", str(self.canary)).replace("{port}", str(self.listener.port))

    async def ask(self, audience: Audience, request: "Request", *, refused: bool = True) -> Given | None:
        """Send a request, and note what is wrong with the answer."""
        began = perf_counter()
        try:
            async with asyncio.timeout(GUARD_SECONDS):
                given = await self.services[audience].ask(request.method, request.path, request.headers, request.body)
        except TimeoutError:
            self.wrong.append(f"{audience} {request}: no answer")
            return None
        self.slowest = max(self.slowest, perf_counter() - began)
        good = range(400, 500) if refused else range(200, 500)
        leads_back = given.headers.get("location", "").startswith(f"{PUBLIC_ADDRESS}/")  # without a slash at its end
        if given.status not in good and not (given.status == 307 and leads_back):
            self.wrong.append(f"{audience} {request}: {given.status} {given.text[:150]}")
        shown = given.text + repr(given.headers)
        self.wrong += [
            f"{audience} {request}: it shows {told!r}"
            for told in (SECRET, str(self.folder), EVIL)
            if told in shown and told not in unquote(request.path)  # which an error may repeat
        ]
        return given

    async def check(self) -> None:
        """See that all was refused, nothing else read, and that what is served still is."""
        assert not self.wrong, f"{len(self.wrong)} wrong answers, among them\n" + "\n".join(self.wrong[:20])
        await asyncio.sleep(0)
        assert self.listener.connected == 0, "Somebody connected to another host."
        assert self.opened.count() == 0, "Somebody opened another file."
        for audience, service in self.services.items():
            raster = await service.get(f"/tiles/{R}/{POINT}")
            assert raster.document["values"] == [mark_of(audience, 0, 1)]
            features = await service.get(f"/features/{V}/{ITEMS}")
            assert [each["properties"]["mark"] for each in features.document["features"]] == [mark_of(audience, 0, 1)]
            found = await service.get("/stac/search")
            assert [each["id"] for each in found.document["features"]] == [item_of(R, 0, 1)]


@dataclass(frozen=True)
class Request:
    """What is sent."""

    path: str
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    def __str__(self) -> str:
        told = f" {self.body[:60]!r}… of {len(self.body)} bytes" if self.body else ""
        headers = {name: text[:60] for name, text in self.headers.items()}
        return f"{self.method} {self.path[:200]} {headers or ''}{told}"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Give a raster and features that are served, and beside them what nobody may see."""
    with new_database() as created:
        world = World(created, tmp_path_factory.mktemp("served"))
        world.write_clients()
        world.write_data((0,), (1,))
        world.write_assets([*SERVED.values(), HIDDEN])
        _write_secrets(world)
        structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))  # there are many requests
        yield world
        plain_logs()


def _write_secrets(world: World) -> None:
    path = world.folder / "canary" / "canary.tif"
    write_raster(path, 200)
    with rasterio.open(path, "r+", IGNORE_COG_LAYOUT_BREAK="YES") as file:
        file.update_tags(secret=SECRET)
    with world.connected() as connection:
        write_table(connection, "geo", HIDDEN_TABLE, 200)
        connection.execute("RESET ROLE")
        connection.execute(
            sql.SQL("ALTER TABLE geo.{0} ADD COLUMN secret text DEFAULT {1}").format(
                sql.Identifier(HIDDEN_TABLE), sql.Literal(SECRET)
            )
        )
        connection.execute("UPDATE dagapp.geospatial_assets SET platform_refs = %s", [Jsonb({"secret": SECRET})])
        connection.execute("SET search_path = pgstac, public")
        connection.execute(
            "UPDATE items SET content = jsonb_set(content, '{properties,title}', to_jsonb(%s::text)) WHERE id = %s",
            [SECRET, item_of(HIDDEN.asset_id, 0, 1)],
        )


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def services(world: World) -> AsyncIterator[dict[Audience, Service]]:
    """Give the running services."""
    async with serving(world, serve_url=PUBLIC_ADDRESS, external_serve_url=PUBLIC_ADDRESS) as running:
        for service in running.values():
            await service.get("/stac/search")  # the first one of each connection takes longer
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def watched(world: World, services: dict[Audience, Service]) -> AsyncIterator[Watched]:
    """Give the services, with somebody who watches."""
    canary = world.folder / "canary" / "canary.tif"
    async with Listener().listening() as listener:
        opened = OpenedFiles(canary, canary.parent)
        yield Watched(services, world.folder, canary, opened, listener)
        opened.close()


Place = tuple[Audience, str, Mapping[str, str]]


def places_of(outlet: str, asset: Asset) -> Iterator[Place]:
    """Give where an asset is served, by turns: to the house, to the public, and to a reviewer."""
    served: list[Place] = [(audience, f"/{outlet}/{asset.asset_id}", {}) for audience in Audience]
    return cycle([*served, (Audience.INTERNAL, f"/preview/{asset.asset_id}/0", REVIEWER.headers)])


def raster_places() -> Iterator[Place]:
    return places_of("tiles", SERVED[RASTER])


def feature_places() -> Iterator[Place]:
    return places_of("features", SERVED[VECTOR])


async def test_the_watch_is_awake(watched: Watched) -> None:
    watched.canary.read_bytes()
    assert watched.opened.count() > 0
    _, writer = await asyncio.open_connection("127.0.0.1", watched.listener.port)
    writer.close()
    await writer.wait_closed()
    async with asyncio.timeout(GUARD_SECONDS):
        while not watched.listener.connected:  # noqa: ASYNC110 - it has no signal
            await asyncio.sleep(0.001)
    with rasterio.open(watched.canary) as file:
        assert SECRET in file.tags().values()


NAMES: Final = ("url", "src_path", "dataset", "path", "href", "file", "assets", "mosaic", "URL", "collection", "table")


async def test_data_are_never_named_by_a_request(watched: Watched) -> None:
    routes = ("info", POINT, f"tiles/{TILE}.png", "preview.png", "WebMercatorQuad/tilejson.json", "statistics")
    asked = product(watched.elsewhere, NAMES)
    for (value, name), route, (audience, base, headers) in zip(asked, cycle(routes), raster_places(), strict=False):
        await watched.ask(audience, Request(f"{base}/{route}?{name}={quote(value)}", headers=headers))
    values = (*watched.elsewhere, f"geo.{HIDDEN_TABLE}", "pg_catalog.pg_authid")
    asked = product(values, (ITEMS, "collections", f"collections/features/tiles/{TILE}"))
    for (value, route), (audience, base, headers) in zip(asked, feature_places(), strict=False):
        await watched.ask(audience, Request(f"{base}/{route}?url={quote(value)}", headers=headers))
    for audience, value in product(Audience, watched.elsewhere):
        for outlet in ("tiles/", "features/", "stac", "stac/search"):
            await watched.ask(audience, Request(f"/{outlet}?url={quote(value)}"))
    await watched.check()


async def test_paths_lead_nowhere_else(watched: Watched) -> None:
    steps = ("..", "%2e%2e", "%2E%2E%2F", "..%2f", "..%5c", "%252e%252e%252f", "....//", ".%00.", "%c0%ae%c0%ae/")
    places = [
        *(
            "/tiles/{}/etc/passwd",
            "/tiles/{}/{}/info",
            f"/tiles/{R}/{{}}/{HIDDEN.asset_id}/info",
            f"/tiles/{R}/{{}}/passwd",
        ),
        *(f"/tiles/{R}/{{}}/tilejson.json", f"/tiles/{R}/tiles/{{}}/8/84/117", f"/features/{V}/collections/{{}}/items"),
        *(
            f"/features/{V}/{{}}/{{}}/stac",
            "/static/{}/page.html",
            "/static/{}/{}/{}/{}/etc/passwd",
            "/stac/collections/{}",
        ),
        *("/stac/collections/shared/items/{}", "/preview/{}/0/info", f"/preview/{R}/{{}}/info", "/{}/etc/passwd"),
    ]
    for audience in Audience:
        for place in places:
            for step in steps:
                await watched.ask(audience, Request(place.replace("{}", step), headers=REVIEWER.headers))
        for value in watched.elsewhere:
            for outlet in ("tiles", "features", "preview", "static", "stac/collections"):
                await watched.ask(audience, Request(f"/{outlet}/{quote(value, safe='/')}", headers=REVIEWER.headers))
                await watched.ask(
                    audience, Request(f"/{outlet}/{quote(value, safe='')}/info", headers=REVIEWER.headers)
                )
        for wrong in (
            R.upper().replace("0", "A"),
            f"{R}0",
            R[:-1],
            f"{R}%00",
            f"%20{R}",
            f"{R}%0a",
            "0x" + R,
            f"{R}'--",
            "*",
        ):
            await watched.ask(audience, Request(f"/tiles/{wrong}/info"))
            await watched.ask(audience, Request(f"/features/{wrong}/{ITEMS}"))
            await watched.ask(audience, Request(f"/preview/{wrong}/0/info", headers=REVIEWER.headers))
        for ordinal in ("-1", "999999999999", "1e9", "0%00", "0'", "0;1"):
            await watched.ask(audience, Request(f"/preview/{R}/{ordinal}/info", headers=REVIEWER.headers))
            await watched.ask(audience, Request(f"/tiles/{R}/info?version={ordinal}"))
    await watched.check()


async def test_expressions_do_not_explode(watched: Watched) -> None:
    routes = cycle((f"tiles/{TILE}.png", "preview.png", POINT, "statistics", f"bbox/{BOX}.png"))
    for expression, route, (audience, base, headers) in zip(EXPRESSIONS * 2, routes, raster_places(), strict=False):
        await watched.ask(audience, Request(f"{base}/{route}?expression={quote(expression)}", headers=headers))
    await watched.check()


async def test_pictures_have_their_bounds(watched: Watched) -> None:
    asked = [*PICTURES, *(f"preview.png?{watched.named(value)}" for value in RENDERING)]
    for part, (audience, base, headers) in zip(asked, raster_places(), strict=False):
        await watched.ask(audience, Request(f"{base}/{part}", headers=headers))
    await watched.check()


async def test_bodies_are_not_believed(watched: Watched) -> None:
    routes = ("statistics", "feature.png", "feature/100000x100000.png")
    for (body, route), (audience, base, headers) in zip(product(BODIES, routes), raster_places(), strict=False):
        await watched.ask(audience, Request(f"{base}/{route}", "POST", {**headers, **JSON}, body))
    for body, audience in zip(BODIES, cycle(Audience), strict=False):
        await watched.ask(audience, Request("/stac/search", "POST", JSON, body))
    for audience, base, headers in islice(raster_places(), 3):
        await watched.ask(audience, Request(f"{base}/feature.png", "POST", headers, orjson.dumps([polygon(4)] * 9)))
        announced = {**headers, **JSON, "content-length": "99999999999"}
        await watched.ask(audience, Request(f"{base}/statistics", "POST", announced, b"{}"))
    await watched.check()


async def test_methods_that_change_something_are_not_there(watched: Watched) -> None:
    places = (
        f"/tiles/{R}/info",
        f"/features/{V}/{ITEMS}",
        "/stac/collections",
        f"/stac/collections/shared/items/{R}",
        "/",
    )
    for audience in Audience:
        for place in places:
            for method in ("PUT", "DELETE", "PATCH", "TRACE", "CONNECT", "PROPFIND", "GETT"):
                await watched.ask(audience, Request(place, method, {**JSON, **REVIEWER.headers}, b"{}"))
        for place in places[1:]:
            await watched.ask(audience, Request(place, "POST", {**JSON, **REVIEWER.headers}, b"{}"))
    await watched.check()


async def test_filters_are_no_sql(watched: Watched) -> None:
    tiles = "collections/features/tiles"
    parts = (
        *(f"{ITEMS}/1;DROP", f"{ITEMS}/1%20OR%201=1", f"{ITEMS}/%00", f"{ITEMS}/99999999999999999999", f"{ITEMS}/-1'"),
        *(f"collections/{HIDDEN_TABLE}/items", f"collections/geo.{HIDDEN_TABLE}", "collections/pg_class/items"),
        *(f"{tiles}/WebMercatorQuad/60/0/0", f"{tiles}/WebMercatorQuad/8/-1/0", f"{tiles}/x/8/84/117"),
        *(f"{tiles}/{TILE}?limit=1000000000", "functions/x/items"),
    )
    filters = [f"{ITEMS}?filter={quote(text)}" for text in CQL2]
    asked = [*filters, *(f"{ITEMS}?{watched.named(value)}" for value in FEATURES), *parts]
    for part, (audience, base, headers) in zip(asked, feature_places(), strict=False):
        await watched.ask(audience, Request(f"{base}/{part}", headers=headers))
    await watched.check()


async def test_searches_find_no_more_than_there_is(watched: Watched) -> None:
    for audience in Audience:
        for search in SEARCHES:
            await watched.ask(audience, Request(f"/stac/search?{watched.named(search)}"))
        for body in SEARCH_BODIES:
            await watched.ask(audience, Request("/stac/search", "POST", JSON, body))
        for search in (*HARMLESS_SEARCHES, f"ids={item_of(HIDDEN.asset_id, 0, 1)}"):
            await watched.ask(audience, Request(f"/stac/search?{search}"), refused=False)
            await watched.ask(audience, Request(f"/stac/collections/shared/items?{search}"), refused=False)
    await watched.check()


async def test_long_questions_are_cut_short(watched: Watched) -> None:
    for audience in Audience:
        for size in (8193, 100_000, 1_000_000):
            for place in (f"/tiles/{R}/info", f"/features/{V}/{ITEMS}", "/stac/search"):
                for name in ("version", "x", "filter", "ids"):
                    await watched.ask(audience, Request(f"{place}?{name}={'1' * size}"))
                await watched.ask(audience, Request(f"{place}?{'&'.join(['a=1'] * (size // 4))}"))
        await watched.ask(audience, Request(f"/tiles/{R}/{'a/' * 50_000}"))
        await watched.ask(audience, Request(f"/stac/collections/{'x' * 100_000}"))
        for byte in ("%00", "%ff", "%0d%0aX-Evil:%201", "%f0%9f%92%a3", "%ed%a0%80"):
            await watched.ask(audience, Request(f"/tiles/{R}/info?{byte}=1"))
            await watched.ask(audience, Request(f"/tiles/{R}/info?version={byte}"))
            await watched.ask(audience, Request(f"/features/{V}/{ITEMS}?mark={byte}"))
            await watched.ask(audience, Request(f"/stac/collections/{byte}"))
            await watched.ask(audience, Request(f"/stac/search?datetime={byte}"))
    await watched.check()


async def test_headers_play_no_tricks(watched: Watched) -> None:
    places = (
        *(f"/tiles/{R}/WebMercatorQuad/tilejson.json", f"/tiles/{R}", f"/features/{V}/{ITEMS}", f"/features/{V}"),
        *("/stac", "/stac/search", f"/tiles/{R}/WebMercatorQuad/map.html", "/"),
    )
    for audience in Audience:
        for headers in HEADERS:
            for place in places:
                await watched.ask(audience, Request(place, headers=headers), refused=False)
            hidden = await watched.ask(audience, Request(f"/tiles/{HIDDEN.asset_id}/info", headers=headers))
            is_misled = audience is Audience.INTERNAL and EVIL in headers.get("host", "")  # the name of another's page
            assert hidden is None or hidden.status == (421 if is_misled else 404)
    await watched.check()


async def test_the_database_refuses_the_services_what_they_need_not_read(world: World) -> None:
    refused = (
        *(
            "SELECT * FROM dagapp.geospatial_assets",
            "SELECT * FROM dagapp.asset_versions",
            "SELECT * FROM dagapp.dag_jobs",
        ),
        *(
            "SELECT * FROM geo.{}",
            "DELETE FROM pgstac.items",
            "CREATE TABLE x (y int)",
            "SELECT pg_read_file('/etc/passwd')",
        ),
    )
    allowed = {(Audience.INTERNAL, "SELECT * FROM geo.{}")}
    for audience in Audience:
        with psycopg.connect(world.database.url(audience.role), autocommit=True) as connection:
            for statement in refused:
                if (audience, statement) in allowed:
                    continue
                query = sql.SQL(statement).format(sql.Identifier(HIDDEN_TABLE))
                with pytest.raises((psycopg.errors.InsufficientPrivilege, psycopg.errors.ReadOnlySqlTransaction)):
                    connection.execute(query)
