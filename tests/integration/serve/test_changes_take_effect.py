"""A decision takes effect at every outlet as soon as it is made, whatever is remembered, kept or held by callers.

The decisions are made by the platform's own services, and the engine ends the jobs; the tests play the worker. What a
service remembers holds here for an hour, so that only a notification can make it look anew.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import psycopg
import pytest
import pytest_asyncio
from psycopg.types.json import Jsonb
from tests.conftest import new_database
from tests.integration.serve.access_table import ABSENT, EXTERNAL, GONE, INTERNAL, LATEST, Answer
from tests.integration.serve.running import (
    INSIDE,
    OF_PUBLIC,
    REVIEWER,
    TILE,
    Given,
    Service,
    World,
    blob_of,
    collection,
    item,
    mark_of,
    serving,
    write_raster,
    write_table,
)
from tests.integration.services.desk import Desk

from graticule.core.audience import Audience
from graticule.core.exchange import SubmissionReceipt
from graticule.core.models.engine import JobPurpose
from graticule.core.models.platform import DataType
from graticule.core.table import DatabaseRole
from graticule.repositories.database import Database
from graticule.serve import resolution

pytestmark = [
    pytest.mark.filterwarnings("ignore:Use `@` matmul:PendingDeprecationWarning"),  # rasterio 1.4 with affine 3
    pytest.mark.asyncio(loop_scope="module"),
]

AN_HOUR: Final = 3600.0
GUARD_SECONDS: Final = (
    10.0  # a second is promised; a busy machine is no failure, and without a notification it is an hour
)
ORDINALS: Final = range(4)
REVISIONS: Final = (1, 2, 3)
RASTER, VECTOR = DataType
ONLY_LATEST: Final[Mapping[int, tuple[Answer, Answer]]] = {0: (ABSENT, ABSENT)}


def of(ordinal: int, revision: int = 1) -> Answer:
    return Answer(200, ordinal, revision)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Give a database and a storage with data for all versions that are to come."""
    with new_database() as created:
        world = World(created, tmp_path_factory.mktemp("served"))
        world.write_clients()
        world.write_data(ORDINALS, REVISIONS)
        yield world


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def services(world: World) -> AsyncIterator[dict[Audience, Service]]:
    """Give the running services."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(resolution, "CACHE_SECONDS", AN_HOUR)
        async with serving(world) as running:
            yield running


@pytest_asyncio.fixture(loop_scope="module")
async def desk(world: World, tmp_path: Path) -> AsyncIterator[Desk]:
    """Give the platform's services."""
    url = world.database.url(DatabaseRole.ORCHESTRATOR)
    async with Database(url, DatabaseRole.ORCHESTRATOR, pool_size=4) as pool:
        yield Desk(pool, tmp_path)


@dataclass(frozen=True)
class Expected:
    """What is right: the latest for the house and for the public, and by number, where that counts."""

    latest: tuple[Answer, Answer]
    versions: Mapping[int, tuple[Answer, Answer]] = field(default_factory=lambda: ONLY_LATEST)

    def items(self, audience: Audience) -> set[tuple[int, int]]:
        """Give whose items the catalogue shows."""
        answers = [self.latest] if self.versions is ONLY_LATEST else [*self.versions.values()]
        found = [each[audience is EXTERNAL] for each in answers]
        return {
            (each.ordinal, each.revision) for each in found if each.ordinal is not None and each.revision is not None
        }


class Story:
    """One asset, and all who look at it."""

    def __init__(self, world: World, services: Mapping[Audience, Service], desk: Desk, data_type: DataType) -> None:
        self.world, self.services, self.desk = world, services, desk
        self.is_raster = data_type is RASTER
        self.data_type = data_type
        self.refs = {"dataset_id": "changes", "resource_id": str(data_type)}
        self.asset_id = ""
        self._collection_id = ""
        self._item_ids: dict[int, str] = {}  # by ordinal: for good, whatever the revision
        self._held: dict[str, tuple[Given, int]] = {}  # by address: an answer, and whose data it was made of

    # What partners and workers do

    async def submit(self, label: str, **more: Any) -> SubmissionReceipt:
        receipt = await self.desk.submit(label, platform_refs=self.refs, data_type=self.data_type, **more)
        self.asset_id = receipt.asset_id
        return receipt

    async def process(self, receipt: SubmissionReceipt, content: str = "a") -> None:
        """Make what the job of a revision was told to make, and catalogue it."""
        ordinal, revision = receipt.version_ordinal, receipt.revision
        names = await self.desk.names(receipt)
        self._collection_id = names["stac_collection_id"]
        self._item_ids[ordinal] = names["stac_item_id"].removesuffix(f"-r{revision}")
        outputs: dict[str, Any] = {"stac_collection_id": self._collection_id}
        if self.is_raster:
            path = self.world.folder / "storage" / "silver" / names["blob_prefix"] / "cog.tif"
            write_raster(path, mark_of(INTERNAL, ordinal, revision))
        else:
            outputs |= {"blob_path": None, "table_name": names["table_name"]}
            self._write_tables(names["table_name"], receipt)
        await self._catalogue(self._collection_id, names["stac_item_id"], ordinal, revision)
        await self.desk.process(receipt, content, **outputs)

    def _write_tables(self, name: str, receipt: SubmissionReceipt) -> None:
        """Write the table of a revision, and the copy that an export would make of it."""
        with self.world.connected() as connection:
            for audience, schema in ((INTERNAL, "geo"), (EXTERNAL, "external")):
                write_table(connection, schema, name, mark_of(audience, receipt.version_ordinal, receipt.revision))
            connection.execute(f"COMMENT ON TABLE geo.{name} IS 'Made by job {receipt.job_id}: for a test.'".encode())

    async def new_version(self, label: str, content: str, **more: Any) -> SubmissionReceipt:
        receipt = await self.submit(label, **more)
        await self.process(receipt, content)
        return receipt

    async def export(self) -> None:
        """Do what the last export that was asked for does, and let the engine end it."""
        job = (await self.desk.jobs(self.asset_id, JobPurpose.EXPORT))[-1]
        ordinal, revision = int(str(job.version_ordinal)), int(str(job.input_params["revision"]))
        await self._catalogue(f"{self._collection_id}{OF_PUBLIC}", self._item_ids[ordinal], ordinal, revision)
        made = {"external_blob_path": blob_of(ordinal, revision, "external")} if self.is_raster else {}
        await self.desk.finish(job.job_id, made)

    async def remove_copies(self) -> None:
        """Let the engine end the last job that removes copies."""
        await self.desk.finish((await self.desk.jobs(self.asset_id, JobPurpose.REVERSAL))[-1].job_id)

    async def _catalogue(self, collection_id: str, item_id: str, ordinal: int, revision: int) -> None:
        url = self.world.database.url()
        async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
            await connection.execute("SET search_path = pgstac, public")
            await connection.execute("SELECT upsert_collection(%s)", [Jsonb(collection(collection_id))])
            document = item(self.asset_id, ordinal, revision, collection_id) | {"id": item_id}
            await connection.execute("SELECT upsert_item(%s)", [Jsonb(document)])

    # What is seen

    async def shows(self, step: str, expected: Expected) -> None:
        """Wait until every outlet answers as it should, and see that nobody is told to keep what is not right."""
        found: list[str] = []
        try:
            async with asyncio.timeout(GUARD_SECONDS):
                while found := await self._wrong(expected):  # noqa: ASYNC110 - who looks from outside has no signal
                    await asyncio.sleep(0.01)
        except TimeoutError:
            pytest.fail(f"{self.data_type}, after: {step}\n" + "\n".join(found))
        await self._hold(step, expected)

    async def previews(self, ordinal: int, revision: int) -> None:
        """Wait until a reviewer sees this revision, which the answer names: the decision has to name it, too."""
        path = self._address(f"preview/{self.asset_id}/{ordinal}")
        seen: Any = None
        try:
            async with asyncio.timeout(GUARD_SECONDS):
                while seen != (mark_of(INTERNAL, ordinal, revision), str(revision)):
                    given = await self.services[INTERNAL].get(path, REVIEWER.headers)
                    seen = self._mark(given), given.headers.get("graticule-revision")
        except TimeoutError:
            pytest.fail(f"the preview shows {seen}, not revision {revision}")

    async def _wrong(self, expected: Expected) -> list[str]:
        wrong = []
        for audience in Audience:
            for path, right in self._asked(expected, audience):
                given = await self.services[audience].get(path)
                wanted = self._whose(right, audience) if "point" in path or "items" in path else None
                seen = self._mark(given) if wanted is not None else None
                if (given.status, seen) != (right.status, wanted):
                    wrong.append(f"{audience} {path}: {right}, but {given.status} with {seen}")
            items = await self._items(audience)
            if items != expected.items(audience):
                wrong.append(f"{audience} catalogue: {expected.items(audience)}, but {items}")
        return wrong

    async def _hold(self, step: str, expected: Expected) -> None:
        """See that the tags that callers hold count only for what is right now; and hold the tags of that."""
        for audience in Audience:
            for path, right in self._asked(expected, audience):
                key, whose = f"{audience} {path}", self._whose(right, audience)
                told = f"{self.data_type}, after: {step}, {key}"
                held, of_whom = self._held.get(key, (None, None))
                if held is not None:
                    again = await self.services[audience].get(path, {"if-none-match": held.headers["etag"]})
                    assert again.status == (304 if whose == of_whom else right.status), told
                if whose is not None:
                    given = await self.services[audience].get(path)
                    assert given.status == 200, told
                    again = await self.services[audience].get(path, {"if-none-match": given.headers["etag"]})
                    assert again.status == 304, told
                    self._held[key] = (given, whose)

    def _asked(self, expected: Expected, audience: Audience) -> Iterator[tuple[str, Answer]]:
        """Give addresses, and what they are to show: a small answer and a tile, which is kept, for each version."""
        is_public = audience is EXTERNAL
        outlet = f"{'tiles' if self.is_raster else 'features'}/{self.asset_id}"
        tile = f"/{outlet}/{'' if self.is_raster else 'collections/features/'}tiles/{TILE}"
        wanted = [(LATEST, expected.latest), *((str(each), both) for each, both in expected.versions.items())]
        for version, both in wanted:
            yield self._address(outlet, f"version={version}"), both[is_public]
            yield f"{tile}?version={version}", both[is_public]
        yield self._address(outlet), expected.latest[is_public]

    def _address(self, outlet: str, query: str = "") -> str:
        rest = f"point/{INSIDE[0]},{INSIDE[1]}" if self.is_raster else "collections/features/items"
        return f"/{outlet}/{rest}?{query}".rstrip("?")

    def _mark(self, given: Given) -> int | None:
        if given.status != 200:
            return None
        document = given.document
        return int(document["values"][0] if self.is_raster else document["features"][0]["properties"]["mark"])

    def _whose(self, answer: Answer, audience: Audience) -> int | None:
        if answer.ordinal is None or answer.revision is None:
            return None
        return mark_of(audience, answer.ordinal, answer.revision)

    async def _items(self, audience: Audience) -> set[tuple[int, int]]:
        ids = ",".join(self._item_ids.values()) or "none"
        given = await self.services[audience].get(f"/stac/search?limit=100&ids={ids}")
        told = [each["properties"] for each in given.document["features"]]
        return {(each["platform:version_ordinal"], each["platform:revision"]) for each in told}


@pytest.fixture(params=DataType)
def story(request: pytest.FixtureRequest, world: World, services: Mapping[Audience, Service], desk: Desk) -> Story:
    return Story(world, services, desk, request.param)


async def test_a_preview_names_the_revision_that_made_what_it_shows_until_the_next_is_there(story: Story) -> None:
    story.refs = {"dataset_id": "previewed", "resource_id": str(story.data_type)}
    await story.new_version("V1", "a")
    second = await story.submit("V1", overwrite=True)
    assert (await story.desk.version(story.asset_id)).revision == 2
    await story.previews(0, 1)
    await story.desk.fail(second.job_id)
    await story.previews(0, 1)
    await story.process(await story.desk.retry(story.asset_id), "b")
    await story.previews(0, 2)


async def test_every_decision_takes_effect_at_every_outlet(story: Story) -> None:
    desk = story.desk

    await story.new_version("V1", "a")
    await story.shows("processing", Expected((ABSENT, ABSENT)))
    await story.previews(0, 1)
    asset_id = story.asset_id
    await desk.approve(asset_id, "ouo")
    await story.shows("approval", Expected((of(0), ABSENT)))
    await desk.clear(asset_id, "public")
    await story.shows("clearance for the public", Expected((of(0), ABSENT)))
    await story.export()
    await story.shows("export", Expected((of(0), of(0))))

    await story.new_version("V1", "b", overwrite=True)
    await story.shows("overwriting", Expected((of(0), of(0))))
    await story.previews(0, 2)
    await desk.approve(asset_id, "public")
    await story.shows("approval of revision 2", Expected((of(0, 2), of(0))))
    await story.export()
    await story.shows("export of revision 2", Expected((of(0, 2), of(0, 2))))

    await story.process(await desk.reprocess(asset_id, 0), "b")
    await story.shows("reprocessing of the same content", Expected((of(0, 3), of(0, 2))))

    await desk.clear(asset_id, "ouo")
    await story.shows("clearance for the house alone", Expected((of(0, 3), GONE)))
    await story.remove_copies()
    await story.shows("removal of the copies", Expected((of(0, 3), GONE)))
    await desk.clear(asset_id, "public")
    await story.shows("clearance for the public again", Expected((of(0, 3), GONE)))
    await story.export()
    await story.shows("export again", Expected((of(0, 3), of(0, 3))))


async def test_versions_come_and_go_at_every_outlet(story: Story) -> None:
    desk, story.refs["dataset_id"] = story.desk, "versions"
    await story.new_version("V1", "a")
    asset_id, first = story.asset_id, (of(0), of(0))
    await desk.approve(asset_id, "public")
    await story.export()
    await story.shows("export", Expected(first))
    await desk.set_url_mode(asset_id, "all_versions")
    await story.shows("all_versions", Expected(first, {0: first, 1: (ABSENT, ABSENT)}))

    await story.new_version("V2", "b")
    await story.shows("a new version", Expected(first, {0: first, 1: (ABSENT, ABSENT)}))
    await desk.approve(asset_id, "public")
    second = (of(1), of(1))
    await story.shows("approval of version 1", Expected((of(1), of(0)), {0: first, 1: (of(1), ABSENT)}))
    await story.export()
    await story.shows("export of version 1", Expected(second, {0: first, 1: second}))
    await desk.set_url_mode(asset_id, "latest_only")
    await story.shows("latest_only", Expected(second))
    await desk.set_url_mode(asset_id, "all_versions")
    await story.shows("all_versions again", Expected(second, {0: first, 1: second}))

    await desk.revoke(asset_id, 1)
    await story.shows("revoking", Expected(first, {0: first, 1: (GONE, GONE)}))
    await desk.delete(asset_id, 0)
    gone = (GONE, GONE)
    await story.shows("deletion", Expected(gone, {0: gone, 1: gone}))
    await desk.delete(asset_id, 1)
    await story.new_version("V3", "c")
    await story.shows("a third version", Expected(gone, {0: gone, 1: gone, 2: (ABSENT, ABSENT)}))
    await desk.approve(asset_id, "public")
    await story.export()
    third = (of(2), of(2))
    await story.shows("approval of version 2", Expected(third, {0: gone, 1: gone, 2: third}))

    await desk.unpublish(asset_id)
    await story.shows("unpublishing", Expected(gone, {0: gone, 1: gone, 2: gone}))
    await story.new_version("V4", "d")
    await story.shows("revival", Expected(gone, {0: gone, 2: gone, 3: (ABSENT, ABSENT)}))
    await desk.approve(asset_id, "ouo")
    await story.shows("approval after that", Expected((of(3), GONE), {2: gone, 3: (of(3), ABSENT)}))
