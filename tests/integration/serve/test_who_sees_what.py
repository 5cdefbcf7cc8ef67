"""Who sees what: for every combination of states, audience, version and role, the right answer at every outlet.

The table and its right answers are in `access_table.py`. The data of each revision differ, so that an answer also shows
whose data it was made of. In the catalogue what is gone is as what never was: it is not there.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from itertools import cycle, product
from typing import Any, Final

import numpy as np
import orjson
import pytest
import pytest_asyncio
import structlog
from rasterio.io import MemoryFile
from tests.conftest import new_database, plain_logs
from tests.integration.serve.access_table import (
    ABSENT,
    ALL_VERSIONS,
    EXTERNAL,
    INTERNAL,
    LATEST,
    LATEST_ONLY,
    MALFORMED,
    NO_SUCH_ORDINAL,
    OUO,
    PUBLIC,
    STORIES,
    UNKNOWN_CALLER,
    Answer,
    Asset,
    all_assets,
    catalogued,
    copies_of,
    of_asset,
    of_version,
    previewed,
)
from tests.integration.serve.running import (
    INSIDE,
    NOBODY,
    OF_PUBLIC,
    REVIEWER,
    ROLES,
    SHARED,
    TILE,
    Given,
    Role,
    Service,
    World,
    item_of,
    mark_of,
    serving,
)
from tests.otlp_collector import traced

from graticule.core.audience import Audience
from graticule.core.models.platform import DataType

pytestmark = [
    pytest.mark.filterwarnings("ignore:Use `@` matmul:PendingDeprecationWarning"),  # rasterio 1.4 with affine 3
    pytest.mark.filterwarnings("ignore::rasterio.errors.NotGeoreferencedWarning"),  # pictures have no place
    pytest.mark.asyncio(loop_scope="module"),
]

AT_ONCE: Final = 8
MOST_TOLD: Final = 12
RASTER, VECTOR = DataType
ASSETS: Final = all_assets()
POINT: Final = f"point/{INSIDE[0]},{INSIDE[1]}"
ITEMS: Final = "collections/features/items"
NO_ASSET: Final = "f" * 32
# Written in a way that means no version, or two.
MALFORMED_VERSIONS: Final = (
    *("version=-1", "version=1.5", "version=abc", "version=", "version", "version=%20", "version=0x0", "version=null"),
    *("version=LATEST", "version=0&version=0", "version=latest&version=0", "version=latest&version=latest"),
    *(
        "version=%2B1",
        "version=%00",
        "version=0%20",
        "version=latest%00",
        "version=%D9%A0",
        "version=0,1",
        "version=[0]",
    ),
    *("%76ersion=-1", "versio%6E=abc", "limit=1&version=x"),
)


# The world


def of_each_kind() -> list[Asset]:
    """Give one asset for each state of its only version, as public as it can be."""
    found: dict[tuple[str, DataType], Asset] = {}
    for asset in ASSETS:
        story, copies = asset.versions[0].story, asset.versions[0].copies
        as_public_as_can_be = asset.clearance is PUBLIC and copies == [*copies_of(story)][-1]
        if len(asset.versions) == 1 and asset.url_mode is ALL_VERSIONS and as_public_as_can_be:
            found.setdefault((story.name, asset.data_type), asset)
    assert len(found) == len(STORIES) * len(DataType)
    return [*found.values()]


KINDS: Final = of_each_kind()
RASTERS: Final = [asset for asset in KINDS if asset.data_type is RASTER]
# One that is served, one of which more was made, one that is gone, and one that never was there: of each type.
FEW_NAMES: Final = ("approved", "approved, newer pending", "revoked", "pending")
FEW: Final = [asset for asset in KINDS if asset.versions[0].story.name in FEW_NAMES]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Give a database with the whole table in it: the tests only read it."""
    with new_database() as created:
        world = World(created, tmp_path_factory.mktemp("served"))
        world.write_clients()
        world.write_data()
        world.write_assets(ASSETS, [asset.asset_id for asset in RASTERS])
        structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))  # there are thousands of requests
        yield world
        plain_logs()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def services(world: World) -> AsyncIterator[dict[Audience, Service]]:
    """Give the running services."""
    async with serving(world) as running:
        yield running


# How answers are held against the table


class Findings:
    """What was answered otherwise than the table says."""

    def __init__(self) -> None:
        self._wrong: list[str] = []
        self.asked = 0

    def hold(self, told: str, right: Answer, given: Given, mark: int | None, audience: Audience) -> None:
        """Note it if an answer is not the right one."""
        self.asked += 1
        expected = None if right.ordinal is None else mark_of(audience, right.ordinal, right.revision or 0)
        if (given.status, mark) != (right.status, expected):
            self._wrong.append(f"{told}: {right} (data {expected}) is right, {given.status} (data {mark}) was given")

    def note(self, told: str) -> None:
        self._wrong.append(told)

    def check(self) -> None:
        told = "\n".join(self._wrong[:MOST_TOLD])
        assert not self._wrong, f"{len(self._wrong)} wrong answers, among them\n{told}"


def address(outlet: str, asset_id: str, data_type: DataType, query: str = "") -> str:
    """Give an address that shows the data cheaply; an outlet may have an ordinal after the asset."""
    rest = POINT if data_type is RASTER else ITEMS
    limit = "limit=1" if data_type is VECTOR else ""
    return f"/{outlet}/{rest}?{'&'.join(filter(None, (limit, query)))}".replace("{asset_id}", asset_id).rstrip("?")


def service_address(asset: Asset, query: str = "") -> str:
    outlet = "tiles" if asset.data_type is RASTER else "features"
    return address(f"{outlet}/{{asset_id}}", asset.asset_id, asset.data_type, query)


def preview_address(asset: Asset, ordinal: int, query: str = "") -> str:
    return address(f"preview/{{asset_id}}/{ordinal}", asset.asset_id, asset.data_type, query)


def mark(given: Given, data_type: DataType) -> int | None:
    """Read whose data an answer shows."""
    if given.status != 200:
        return None
    if data_type is RASTER:
        return int(given.document["values"][0])
    return int(given.document["features"][0]["properties"]["mark"])


async def several_at_once(check: Callable[..., Awaitable[None]], asked: Iterable[tuple[Any, ...]]) -> None:
    """Check all that is asked, some at a time."""
    left = iter(asked)

    async def take() -> None:
        for each in left:
            await check(*each)

    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(take())


# Tiles and features


def wanted_versions(asset: Asset) -> list[str | None]:
    """Give what to ask for: the latest by its name or by none, versions, and of some also one that there is not."""
    if asset in KINDS:
        return [None, LATEST, *(str(each.ordinal) for each in asset.versions), str(NO_SUCH_ORDINAL)]
    named = asset.versions if asset.url_mode is ALL_VERSIONS else asset.versions[-1:]
    return [LATEST if asset.number % 2 else None, *(str(each.ordinal) for each in named)]


@pytest.mark.parametrize("audience", Audience)
async def test_tiles_and_features_show_what_the_table_says(
    services: dict[Audience, Service], audience: Audience
) -> None:
    findings, service = Findings(), services[audience]

    async def check(asset: Asset, wanted: str | None, role: Role) -> None:
        query = "" if wanted is None else f"version={wanted}"
        given = await service.get(service_address(asset, query), role.headers)
        told = f"{asset}, version={wanted}, {audience}, {role.name}"
        findings.hold(told, of_asset(asset, audience, wanted), given, mark(given, asset.data_type), audience)

    asked = [(asset, wanted) for asset in ASSETS for wanted in wanted_versions(asset)]
    await several_at_once(check, ((*each, role) for each, role in zip(asked, cycle(ROLES), strict=False)))
    findings.check()
    assert findings.asked == len(asked)


@pytest.mark.parametrize("audience", Audience)
async def test_no_role_changes_what_tiles_and_features_show(
    services: dict[Audience, Service], audience: Audience
) -> None:
    findings = Findings()
    for asset, role in product(FEW, ROLES):
        given = await services[audience].get(service_address(asset), role.headers)
        right = of_asset(asset, audience, None)
        findings.hold(f"{asset}, {audience}, {role.name}", right, given, mark(given, asset.data_type), audience)
    findings.check()


@pytest.mark.parametrize("audience", Audience)
async def test_a_malformed_version_is_refused_whatever_the_asset(
    services: dict[Audience, Service], audience: Audience
) -> None:
    findings = Findings()
    for asset, query in product(FEW, MALFORMED_VERSIONS):
        given = await services[audience].get(service_address(asset, query))
        findings.hold(f"{asset}, {query}, {audience}", MALFORMED, given, mark(given, asset.data_type), audience)
    findings.check()


@pytest.mark.parametrize("audience", Audience)
async def test_an_asset_is_served_by_the_outlet_of_its_type_alone(
    services: dict[Audience, Service], audience: Audience
) -> None:
    findings = Findings()
    for asset in [asset for asset in KINDS if of_asset(asset, audience, None).status == 200]:
        other = "features" if asset.data_type is RASTER else "tiles"
        for rest in ("", "/info", f"/{POINT}", f"/{ITEMS}", "/collections"):
            given = await services[audience].get(f"/{other}/{asset.asset_id}{rest}")
            findings.hold(f"{asset}, {audience}, {other}{rest}", ABSENT, given, None, audience)
    for outlet, data_type in (("tiles", RASTER), ("features", VECTOR)):
        given = await services[audience].get(address(f"{outlet}/{{asset_id}}", NO_ASSET, data_type))
        findings.hold(f"no asset, {audience}, {outlet}", ABSENT, given, None, audience)
    findings.check()


# Everything else that shows an asset


RASTER_PARTS: Final = (
    *(
        "",
        "info",
        "info.geojson",
        "statistics",
        "tiles",
        f"tiles/{TILE}.png",
        f"tiles/{TILE}",
        "preview.png?max_size=8",
    ),
    *("WebMercatorQuad/tilejson.json", "WebMercatorQuad/map.html", "bbox/-61.6,14.4,-61.4,14.6.png?max_size=8"),
)
VECTOR_PARTS: Final = (
    *("", "conformance", "collections", "collections/features", f"{ITEMS}/1", "collections/features/queryables"),
    *(f"collections/features/tiles/{TILE}", "collections/features/tiles/WebMercatorQuad/tilejson.json"),
)


@pytest.mark.parametrize("audience", Audience)
async def test_every_other_address_of_an_asset_answers_alike(
    services: dict[Audience, Service], audience: Audience
) -> None:
    findings = Findings()
    for asset in KINDS:
        right = of_asset(asset, audience, None)
        parts = RASTER_PARTS if asset.data_type is RASTER else VECTOR_PARTS
        for part in parts if right.status == 200 else (*parts[:1], *parts[-2:]):
            outlet = "tiles" if asset.data_type is RASTER else "features"
            given = await services[audience].get(f"/{outlet}/{asset.asset_id}/{part}".rstrip("/"))
            findings.hold(f"{asset}, {audience}, {part}", Answer(right.status), given, None, audience)
    findings.check()


@pytest.mark.parametrize("audience", Audience)
async def test_tiles_and_pictures_are_made_of_the_right_revision(
    services: dict[Audience, Service], audience: Audience
) -> None:
    findings = Findings()
    for asset in RASTERS:
        right = of_asset(asset, audience, None)
        if right.status == 200:
            for part in (f"tiles/{TILE}.png", "preview.png?max_size=8", f"tiles/{TILE}.tif"):
                given = await services[audience].get(f"/tiles/{asset.asset_id}/{part}")
                findings.hold(f"{asset}, {audience}, {part}", right, given, pixel(given), audience)
    findings.check()
    assert findings.asked


def pixel(given: Given) -> int | None:
    """Give the value in the middle of a picture."""
    if given.status != 200:
        return None
    with MemoryFile(given.body) as file, file.open() as opened:
        values = opened.read(1)
    return int(np.asarray(values)[values.shape[0] // 2, values.shape[1] // 2])


# Previews


async def test_reviewers_preview_the_newest_revision_that_was_made(services: dict[Audience, Service]) -> None:
    findings, service = Findings(), services[INTERNAL]
    reviewers = cycle([role for role in ROLES if role.is_reviewer])

    async def check(asset: Asset, ordinal: int, role: Role) -> None:
        given = await service.get(preview_address(asset, ordinal), role.headers)
        told = f"{asset}, preview of {ordinal}, {role.name}"
        findings.hold(told, previewed(asset, ordinal), given, mark(given, asset.data_type), INTERNAL)

    shown = {
        (asset.data_type, asset.is_unpublished, *(each.story for each in asset.versions)): asset for asset in ASSETS
    }
    asked = [(asset, each.ordinal) for asset in shown.values() for each in asset.versions]
    asked += [(asset, NO_SUCH_ORDINAL) for asset in KINDS]
    await several_at_once(check, ((*each, role) for each, role in zip(asked, reviewers, strict=False)))
    findings.check()


async def test_previews_are_for_reviewers_alone(services: dict[Audience, Service]) -> None:
    findings = Findings()
    for asset, role in product(RASTERS, ROLES):
        right = previewed(asset, 0) if role.is_reviewer else ABSENT if role.is_known else UNKNOWN_CALLER
        given = await services[INTERNAL].get(preview_address(asset, 0), role.headers)
        findings.hold(f"{asset}, {role.name}", right, given, mark(given, asset.data_type), INTERNAL)
    findings.check()


async def test_the_public_has_no_previews(services: dict[Audience, Service]) -> None:
    findings = Findings()
    for asset, role in product(FEW, ROLES):
        given = await services[EXTERNAL].get(preview_address(asset, 0), role.headers)
        findings.hold(f"{asset}, {role.name}", ABSENT, given, None, EXTERNAL)
    findings.check()


async def test_the_version_of_a_preview_is_in_its_address(services: dict[Audience, Service]) -> None:
    findings = Findings()
    for asset, query in product(FEW, ("version=0", "version=latest", *MALFORMED_VERSIONS)):
        given = await services[INTERNAL].get(preview_address(asset, 0, query), REVIEWER.headers)
        findings.hold(f"{asset}, {query}", MALFORMED, given, None, INTERNAL)
    for asset, ordinal in product(FEW, ("-1", "1.5", "abc", "", "latest", "00")):
        given = await services[INTERNAL].get(f"/preview/{asset.asset_id}/{ordinal}/{POINT}", REVIEWER.headers)
        findings.hold(f"{asset}, preview of {ordinal!r}", ABSENT, given, None, INTERNAL)
    findings.check()


# The catalogue


def items_of(asset: Asset) -> set[str]:
    """Name the items of all revisions that were made."""
    made = [(version.ordinal, revision) for version in asset.versions for revision in version.story.made]
    return {item_of(asset.asset_id, *each) for each in made}


def shown_items(asset: Asset, audience: Audience) -> set[str]:
    """Name the items that an audience sees; only rasters have some."""
    if asset.data_type is VECTOR:
        return set()
    return {item_of(asset.asset_id, *each) for each in catalogued(asset, audience)}


def collection_of(asset: Asset, audience: Audience) -> str:
    name = asset.asset_id if asset in RASTERS else SHARED
    return name if audience is INTERNAL else f"{name}{OF_PUBLIC}"


@pytest.mark.parametrize("audience", Audience)
async def test_a_search_finds_what_the_table_says(services: dict[Audience, Service], audience: Audience) -> None:
    right = {(collection_of(asset, audience), each): asset for asset in ASSETS for each in shown_items(asset, audience)}
    found = await searched(services[audience], {"limit": 1000})
    assert not (found - right.keys()), "These must not be found."
    assert not [f"{each}, {asset}" for each, asset in right.items() if each not in found], "These must be found."


async def searched(service: Service, asked: dict[str, Any]) -> set[tuple[str, str]]:
    """Give all that a search finds, page by page."""
    found: list[tuple[str, str]] = []
    headers = {"content-type": "application/json"}
    while True:
        given = await service.ask("POST", "/stac/search", headers, orjson.dumps(asked))
        assert given.status == 200, given.text
        found += [(each["collection"], each["id"]) for each in given.document["features"]]
        following = [link for link in given.document["links"] if link["rel"] == "next"]
        if not following:
            assert len(found) == len(set(found)), "an item was found twice"
            return set(found)
        asked = {**asked, **following[0]["body"]}


@pytest.mark.parametrize("audience", Audience)
async def test_items_and_collections_are_there_for_whom_the_table_says(
    services: dict[Audience, Service], audience: Audience
) -> None:
    findings, service, roles = Findings(), services[audience], cycle(ROLES)
    for asset in RASTERS:
        shown = shown_items(asset, audience)
        for whose in Audience:
            collection_id = collection_of(asset, whose)
            for item_id in items_of(asset) | {"none"}:
                path = f"/stac/collections/{collection_id}/items/{item_id}"
                right = Answer(200) if item_id in shown and whose is audience else ABSENT
                given, told = await service.get(path, next(roles).headers), f"{asset}, {audience}, {path}"
                findings.hold(told, right, given, None, audience)
                if given.status == 200 and given.document["id"] != item_id:
                    findings.note(f"{told}: {given.document['id']} was given")
            right = Answer(200) if shown and whose is audience else ABSENT
            for path in (f"/stac/collections/{collection_id}", f"/stac/collections/{collection_id}/items"):
                given = await service.get(path, next(roles).headers)
                findings.hold(f"{asset}, {audience}, {path}", right, given, None, audience)
    findings.check()


@pytest.mark.parametrize("audience", Audience)
async def test_the_collections_are_those_that_have_something_to_show(
    services: dict[Audience, Service], audience: Audience
) -> None:
    right = {collection_of(asset, audience) for asset in ASSETS if shown_items(asset, audience)}
    for role in (NOBODY, REVIEWER):
        given = await services[audience].get("/stac/collections?limit=1000", role.headers)
        assert {each["id"] for each in given.document["collections"]} == right, role.name


@pytest.mark.parametrize("audience", Audience)
async def test_no_role_changes_what_a_search_finds(services: dict[Audience, Service], audience: Audience) -> None:
    assets = [asset for asset in FEW if asset.data_type is RASTER]
    asked = ",".join(sorted(each for asset in assets for each in items_of(asset)))
    right = {each for asset in assets for each in shown_items(asset, audience)}
    for role in ROLES:
        given = await services[audience].get(f"/stac/search?limit=1000&ids={asked}", role.headers)
        assert given.status == 200, given.text
        assert {each["id"] for each in given.document["features"]} == right, role.name


# The table itself


async def test_traces_name_routes_and_what_takes_long_but_no_asset(
    services: dict[Audience, Service],
) -> None:
    shown = [asset for asset in FEW if of_asset(asset, INTERNAL, None).status == 200]
    raster, vector = (next(asset for asset in shown if asset.data_type is kind) for kind in (RASTER, VECTOR))
    caller = {"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}
    with traced("serve") as collector:
        for path in (
            f"/tiles/{raster.asset_id}/tiles/{TILE}.png?rescale=0,99",
            f"/features/{vector.asset_id}/{ITEMS}?limit=1",
            "/stac/collections",
            "/livez",
        ):
            assert (await services[INTERNAL].get(path, caller)).status == 200
    spans = {span.name: span for span in collector.spans}
    assert {name for name, span in spans.items() if span.parent_id == "00f067aa0ba902b7"} == {
        "GET /tiles/{path}",
        "GET /features/{path}",
        "GET /stac/{path}",
    }
    assert {name for name, span in spans.items() if span.parent_id == spans["GET /tiles/{path}"].span_id} == {
        "gdal.read",
        "gdal.encode",
    }


async def test_the_table_has_every_answer() -> None:
    given = {
        (audience, wanted is None, of_asset(asset, audience, wanted).status) for asset, audience, wanted in _asked()
    }
    assert given == set(product(Audience, (True, False), (200, 404, 410)))
    falls_back = [
        asset for asset in ASSETS if len(asset.versions) == 2 and of_asset(asset, INTERNAL, None).ordinal == 0
    ]
    assert {asset.versions[1].story.name for asset in falls_back} >= {"pending", "revoked", "deleted after approval"}
    assert all(
        of_asset(asset, audience, "0") == ABSENT
        for asset, audience in product(ASSETS, Audience)
        if asset.url_mode is LATEST_ONLY
    )
    assert not any(
        of_version(asset, asset.versions[0], EXTERNAL).status == 200 for asset in ASSETS if asset.clearance is OUO
    )


def _asked() -> Iterator[tuple[Asset, Audience, str | None]]:
    yield from product(ASSETS, Audience, (None, "0"))
