"""Every output in service is looked at: what somebody has dropped, cut off, flipped or redirected is named."""

import hashlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, LiteralString

import orjson
import pytest
from psycopg import sql
from psycopg.types.json import Jsonb
from tests.conftest import TestDatabase
from tests.integration.handlers.publish.publisher import Publisher, output
from tests.integration.repositories import rows
from tests.unit.cli.conftest import Result, run

from graticule.core.errors import NotFound, Unavailable
from graticule.core.ids import OwnerId
from graticule.core.models.platform import DataType
from graticule.core.states import ClearanceState
from graticule.core.table import DatabaseRole
from graticule.repositories import statements
from graticule.repositories.database import Database
from graticule.services.output_faults import MAX_FAULTS, FaultCode, Findings
from graticule.services.output_verification import MAX_ERRORS_IN_A_ROW, OutputVerification, VerifiedOutput, fix_of
from graticule.services.state_metrics import state_reading
from graticule.storage.local import LocalStorage

COG = b"a raster" * 1000
Found = set[tuple[str, str]]


@dataclass
class Site:
    """An asset in service, whose outputs can be damaged and looked at."""

    publisher: Publisher
    database: Database
    made: dict[str, Any]

    def serve(self, *, data_type: DataType = DataType.RASTER, output_hash: str | None = None) -> None:
        """Put what was made into service, for the house."""
        asset = rows.asset(self.publisher.asset_id, data_type=data_type, latest_approved_version_ordinal=0)
        self.publisher.admin.execute(statements.insert(type(asset)), statements.parameters(asset))
        self.set(**self.made, processing_state="completed", output_hash=output_hash)

    async def publish(self) -> None:
        """Let the public see a copy, too."""
        copied = output(await self.publisher.export(self.made))
        self.set(external_blob_path=copied["external_blob_path"], exported_revision=1)
        self.publisher.admin.execute(
            "UPDATE dagapp.geospatial_assets SET clearance_state = %s, cleared_at = now(), cleared_by = 'r',"
            " made_public_at = now(), made_public_by = 'r' WHERE asset_id = %s",
            (ClearanceState.PUBLIC, self.publisher.asset_id),
        )

    def set(self, **values: Any) -> None:
        """Change the row of the version."""
        assigned = sql.SQL(", ").join(sql.SQL("{} = %s").format(sql.Identifier(name)) for name in values)
        self.publisher.admin.execute(
            sql.SQL("UPDATE dagapp.asset_versions SET {} WHERE asset_id = %s").format(assigned),
            (*values.values(), self.publisher.asset_id),
        )

    def execute(self, query: LiteralString, table: str) -> None:
        """Change a table of features by hand."""
        schema, _, name = table.partition(".")
        self.publisher.admin.execute(sql.SQL(query).format(table=sql.Identifier(schema, name)))

    def file(self, path: str) -> Path:
        return self.publisher.folder / path

    async def verify(self, *, is_quick: bool = False) -> list[VerifiedOutput]:
        run = OutputVerification(self.database, self.publisher.storage, is_quick=is_quick)
        return [each async for each in run.run(self.publisher.asset_id)]

    async def faults(self, *, is_quick: bool = False) -> Found:
        """Return the faults of all audiences: whose they are and what they are."""
        found = await self.verify(is_quick=is_quick)
        assert [each.error for each in found if each.error] == []
        return {(each.output.audience.value, fault.code.value) for each in found for fault in each.faults}

    async def damaged(self, audience: str) -> float:
        """Return the metric."""
        read = state_reading(self.database, OwnerId("o"), "jobs", 60)
        return next(each.value for each in await read() if each.name == "outputs_damaged" and each.labels == [audience])


@pytest.fixture
async def database(publishing_database: TestDatabase) -> AsyncIterator[Database]:
    """Connect with the rights that the command has."""
    url = publishing_database.url(DatabaseRole.ORCHESTRATOR)
    async with Database(url, DatabaseRole.ORCHESTRATOR, pool_size=2) as opened:
        yield opened


@pytest.fixture
async def raster(publisher: Publisher, database: Database) -> Site:
    site = Site(publisher, database, await publisher.made(COG))
    site.serve(output_hash=hashlib.sha256(COG).hexdigest())
    await site.publish()
    return site


@pytest.fixture
async def mosaic(publisher: Publisher, database: Database) -> Site:
    site = Site(publisher, database, await publisher.made_mosaic())
    tiles = [data for name, data in (await publisher.blobs("silver")).items() if name.endswith(".tif")]
    digests = sorted(hashlib.sha256(each).hexdigest() for each in tiles)
    site.serve(output_hash=hashlib.sha256("".join(digests).encode()).hexdigest())
    await site.publish()
    return site


@pytest.fixture
async def features(publisher: Publisher, database: Database) -> Site:
    site = Site(publisher, database, await publisher.made_features({"geoparquet": b"parquet" * 100}))
    table = sql.Identifier("geo", site.made["table_name"])
    (hash_of_rows,) = publisher.admin.execute(
        "SELECT dagapp.hash_table('geo', %s)", (site.made["table_name"],)
    ).fetchone() or ("",)
    comment = f"Made by job {_job_of(publisher)}: a table. Content: {hash_of_rows}."
    publisher.admin.execute(sql.SQL("COMMENT ON TABLE {} IS {}").format(table, sql.Literal(comment)))
    site.serve(data_type=DataType.VECTOR)
    await site.publish()
    return site


@pytest.fixture
def site(request: pytest.FixtureRequest) -> Site:
    """Return the site that a parameter names."""
    found: Site = request.getfixturevalue(request.param)
    return found


def _job_of(publisher: Publisher) -> str:
    query = "SELECT current_job_id FROM dagapp.asset_versions WHERE asset_id = %s"
    (job_id,) = publisher.admin.execute(query, (publisher.asset_id,)).fetchone() or ("",)
    return str(job_id)


def flip(file: Path) -> None:
    """Flip one bit in the middle of a file, whose size stays."""
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)


def cut_off(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:100])


@pytest.mark.parametrize("site", ["raster", "mosaic", "features"], indirect=True)
@pytest.mark.parametrize("is_quick", [False, True])
async def test_what_nobody_has_touched_is_intact(site: Site, *, is_quick: bool) -> None:
    found = await site.verify(is_quick=is_quick)
    assert [(each.output.audience.value, each.faults, each.unhashed, each.error) for each in found] == [
        ("external", (), (), None),
        ("internal", (), (), None),
    ]


@pytest.mark.parametrize(
    ("damage", "code", "is_seen_quickly"),
    [
        (Path.unlink, FaultCode.FILE_MISSING, True),
        (cut_off, FaultCode.FILE_SIZE, True),
        (flip, FaultCode.FILE_CONTENT, False),
    ],
)
@pytest.mark.parametrize("zone", ["silver", "external"])
async def test_a_damaged_raster(
    raster: Site, damage: Callable[[Path], None], code: FaultCode, zone: str, *, is_seen_quickly: bool
) -> None:
    audience = "internal" if zone == "silver" else "external"
    before = await raster.damaged(audience)
    damage(raster.file(zone + raster.made["blob_path"].removeprefix("silver")))
    expected = {(audience, code.value)}
    assert await raster.faults(is_quick=True) == (expected if is_seen_quickly else set())
    assert await raster.faults() == expected
    assert await raster.damaged(audience) == before + 1


async def test_a_quick_check_neither_misses_a_rewritten_file_nor_takes_back_what_a_hash_has_shown(raster: Site) -> None:
    file = raster.file(raster.made["blob_path"])
    assert await raster.faults() == set()
    flip(file)
    assert await raster.faults(is_quick=True) == {("internal", "file_rewritten")}
    assert await raster.faults() == {("internal", "file_content")}
    assert await raster.faults(is_quick=True) == {("internal", "file_content")}
    flip(file)
    assert await raster.faults(is_quick=True) == {("internal", "file_content")}
    assert await raster.faults() == set()
    assert await raster.faults(is_quick=True) == set()


@pytest.mark.parametrize(("damage", "code"), [(Path.unlink, "file_missing"), (flip, "file_content")])
@pytest.mark.parametrize("zone", ["silver", "external"])
async def test_a_damaged_tile_of_a_mosaic(mosaic: Site, damage: Callable[[Path], None], code: str, zone: str) -> None:
    name = f"{zone}/{mosaic.publisher.prefix()}/r1/cogs/scene_tile_1_0.tif"
    damage(mosaic.file(name))
    (found,) = [each for each in await mosaic.verify() if each.faults]
    (fault,) = found.faults
    assert (found.output.audience, fault.code) == ("internal" if zone == "silver" else "external", code)
    assert (name if code == "file_missing" else f"{zone}/{mosaic.publisher.prefix()}/r1/cogs/") in fault.message


@pytest.mark.parametrize("zone", ["silver", "external"])
async def test_damaged_tiling_scheme_is_found(mosaic: Site, zone: str) -> None:
    name = f"{zone}/{mosaic.publisher.prefix()}/r1/schemes/scene.geojson"
    flip(mosaic.file(name))
    (found,) = [each for each in await mosaic.verify() if each.faults]
    assert [(fault.code, fault.place) for fault in found.faults] == [(FaultCode.FILE_CONTENT, name)]


async def test_a_tile_with_a_hash_in_the_catalog_is_named(mosaic: Site) -> None:
    names = [f"{mosaic.publisher.prefix()}/r1/cogs/scene_tile_{number}_0.tif" for number in range(3)]
    collection = f"{mosaic.publisher.collection}-tiles"
    admin = mosaic.publisher.admin
    admin.execute("SELECT pgstac.create_collection(%s)", (Jsonb({"id": collection}),))
    for number, name in enumerate(names):
        sha256 = hashlib.sha256(mosaic.file(f"silver/{name}").read_bytes()).hexdigest()
        asset = {"href": f"silver/{name}", "file:checksum": f"1220{sha256}"}
        item = {
            "id": f"tile-{number}",
            "collection": collection,
            "geometry": {"type": "Point", "coordinates": [0, 0]},
            "properties": {"datetime": "2024-01-01T00:00:00Z"},
            "assets": {"data": asset},
        }
        admin.execute("SELECT pgstac.create_item(%s)", (Jsonb(item),))
    flip(mosaic.file(f"external/{names[1]}"))
    (found,) = [each for each in await mosaic.verify() if each.faults]
    assert [fault.place for fault in found.faults] == [f"external/{names[1]}"]


async def test_a_mosaic_that_names_a_foreign_file(mosaic: Site) -> None:
    text = orjson.dumps({"tiles": {"0": ["bronze/other/secret.tif"]}})
    mosaic.file(mosaic.made["blob_path"]).write_bytes(text)
    mosaic.publisher.admin.execute(
        "UPDATE pgstac.items SET content = content #- '{assets,mosaic,file:size}' #- '{assets,mosaic,file:checksum}'"
        " WHERE collection = %s",
        (mosaic.publisher.collection,),
    )
    assert await mosaic.faults() == {("internal", "file_content"), ("internal", "item_content")}


@pytest.mark.parametrize(
    ("query", "code", "is_seen_quickly"),
    [
        ("DROP TABLE {table}", "table_missing", True),
        ("UPDATE {table} SET name = 'b'", "table_content", False),
        ("DELETE FROM {table}", "table_content", False),
        ("CREATE INDEX ON {table} (lower(name))", "table_extended", True),
        ("ALTER TABLE {table} OWNER TO graticule_worker", "table_owner", True),
        ("COMMENT ON TABLE {table} IS 'Made by job 0: another. Content: 0.'", "table_replaced", True),
    ],
)
@pytest.mark.parametrize("schema", ["geo", "external"])
async def test_a_damaged_table(
    features: Site, query: LiteralString, code: str, schema: str, *, is_seen_quickly: bool
) -> None:
    features.execute(query, f"{schema}.{features.made['table_name']}")
    expected = {("internal" if schema == "geo" else "external", code)}
    assert await features.faults(is_quick=True) == (expected if is_seen_quickly else set())
    assert await features.faults() == expected


async def test_what_somebody_added_to_a_table_is_named_and_can_be_removed(features: Site) -> None:
    table = f"geo.{features.made['table_name']}"
    features.execute("CREATE INDEX by_name ON {table} (lower(name))", table)
    (found,) = [each for each in await features.verify() if each.faults]
    (fault,) = found.faults
    assert fault.message.endswith(
        "the index geo.by_name computes an expression or has a condition (remove it: DROP INDEX geo.by_name)."
    )
    assert fix_of(found.output, fault).startswith("graticule verify --asset ")
    features.publisher.admin.execute("DROP INDEX geo.by_name")
    assert await features.faults(is_quick=True) == set()


@pytest.mark.parametrize("site", ["raster", "features"], indirect=True)
async def test_an_item_that_is_gone_or_describes_something_else(site: Site) -> None:
    elsewhere = "UPDATE pgstac.items SET content = replace(content::text, 'r1/', 'r2/')::jsonb WHERE collection = %s"
    site.publisher.admin.execute(elsewhere, (site.publisher.public,))
    assert {("external", "item_target")} < await site.faults(is_quick=True)
    site.publisher.admin.execute("DELETE FROM pgstac.items WHERE collection = %s", (site.publisher.collection,))
    assert ("internal", "item_missing") in await site.faults()


@pytest.mark.parametrize("site", ["raster", "mosaic", "features"], indirect=True)
@pytest.mark.parametrize("is_quick", [False, True])
@pytest.mark.parametrize(
    "change", ["jsonb_set(content, '{properties,platform:revision}', '7')", "content || '{\"more\": true}'", "content"]
)
async def test_item_that_was_changed_is_found(site: Site, change: str, *, is_quick: bool) -> None:
    geometry = "public.ST_Point(1, 2, 4326)" if change == "content" else "geometry"
    for collection, audience in ((site.publisher.collection, "internal"), (site.publisher.public, "external")):
        query = f"UPDATE pgstac.items SET content = {change}, geometry = {geometry} WHERE collection = %s"
        site.publisher.admin.execute(query.encode(), (collection,))
        assert (audience, "item_content") in await site.faults(is_quick=is_quick)
    assert {code for _, code in await site.faults(is_quick=is_quick)} == {"item_content"}


async def test_outputs_of_an_earlier_release_have_no_hash_and_no_fault(features: Site) -> None:
    features.set(item_hash=None, external_item_hash=None)
    table = sql.Identifier("geo", features.made["table_name"])
    comment = sql.Literal(f"Made by job {_job_of(features.publisher)}: a table.")
    features.publisher.admin.execute(sql.SQL("COMMENT ON TABLE {} IS {}").format(table, comment))
    features.publisher.admin.execute(
        "UPDATE pgstac.items SET content = content #- '{assets,geoparquet,file:checksum}' WHERE collection = ANY (%s)",
        ([features.publisher.collection, features.publisher.public],),
    )
    found = await features.verify()
    assert [each.faults for each in found] == [(), ()]
    name, path, item_id = (features.made[each] for each in ("table_name", "blob_path", "stac_item_id"))
    publisher = features.publisher
    assert [set(each.unhashed) for each in found] == [
        {f"external.{name}", path.replace("silver", "external", 1), f"the item {publisher.public}/{item_id}"},
        {f"geo.{name}", path, f"the item {publisher.collection}/{item_id}"},
    ]


async def test_what_was_withdrawn_is_not_looked_at_and_forgotten(raster: Site) -> None:
    raster.file(raster.made["blob_path"]).unlink()
    assert await raster.faults() == {("internal", "file_missing")}
    raster.set(approved_revision=None, approval_state="pending_review", reviewer=None, reviewed_at=None)
    raster.set(exported_revision=None)
    assert await raster.verify() == []
    run = OutputVerification(raster.database, raster.publisher.storage, is_quick=True)
    assert raster.publisher.asset_id not in [each.output.asset_id async for each in run.run()]
    query = "SELECT count(*) FROM dagapp.output_checks WHERE asset_id = %s"
    assert raster.publisher.admin.execute(query, (raster.publisher.asset_id,)).fetchone() == (0,)


async def test_an_asset_without_outputs_is_not_found(database: Database, publisher: Publisher) -> None:
    with pytest.raises(NotFound, match="in service"):
        await OutputVerification(database, publisher.storage, is_quick=True).count(publisher.asset_id)


class Away(LocalStorage):
    """A storage whose disk does not answer."""

    async def stat(self, path: str) -> Any:
        raise Unavailable(f"The storage cannot serve {path!r} now: Input/output error.")


async def test_a_file_that_cannot_be_read_is_no_fault(raster: Site) -> None:
    before = await raster.damaged("internal")
    run = OutputVerification(raster.database, Away(raster.publisher.folder), is_quick=True)
    found = [each async for each in run.run(raster.publisher.asset_id)]
    assert ["Input/output error" in str(each.error) for each in found] == [True] * 2
    assert len(found) < MAX_ERRORS_IN_A_ROW
    assert await raster.damaged("internal") == before


async def test_metrics_say_when_the_oldest_check_was(raster: Site) -> None:
    await raster.faults()
    raster.publisher.admin.execute(
        "UPDATE dagapp.output_checks SET checked_at = %s WHERE asset_id = %s AND audience = 'internal'",
        (rows.NOW - timedelta(days=1000), raster.publisher.asset_id),
    )
    read = state_reading(raster.database, OwnerId("o"), "jobs", 60)
    (value,) = [each.value for each in await read() if each.name == "outputs_verified_at"]
    assert value == (rows.NOW - timedelta(days=1000)).timestamp()


def test_thousands_of_faults_of_one_output_are_not_kept() -> None:
    findings = Findings()
    for number in range(5000):
        findings.add(FaultCode.FILE_MISSING, f"f{number}", f"The file f{number} is missing.")
    assert len(findings.faults) == MAX_FAULTS
    assert findings.faults[-1].message == "The file f99 is missing. So it is with 4,900 more."


def verify(site: Site, database: TestDatabase, *arguments: str) -> Result:
    variables = {
        "GRATICULE_DATABASE_URL": database.url(DatabaseRole.ORCHESTRATOR),
        "GRATICULE_STORAGE_ROOT": str(site.publisher.folder),
        "GRATICULE_HOME": str(site.publisher.folder / "home"),
    }
    return run("verify", "--asset", site.publisher.asset_id, *arguments, variables=variables)


def test_the_command_names_each_fault_in_one_line(raster: Site, publishing_database: TestDatabase) -> None:
    clean = verify(raster, publishing_database)
    assert (clean.code, clean.out) == (0, ""), clean.err
    assert "Outputs checked: 2. No faults." in clean.err
    raster.file(raster.made["blob_path"]).unlink()
    asset_id = raster.publisher.asset_id
    fix = f'graticule asset reprocess {asset_id} --version 0 --reason "damaged output"'
    found = verify(raster, publishing_database)
    message = f"The file {raster.made['blob_path']} is missing."
    assert (found.code, found.out) == (1, f"{asset_id} version 0 internal: {message} Fix: {fix}\n")
    lines = [orjson.loads(line) for line in verify(raster, publishing_database, "--json", "--quick").out.splitlines()]
    assert lines == [
        {
            "asset_id": asset_id,
            "version_ordinal": 0,
            "audience": "internal",
            "revision": 1,
            "code": "file_missing",
            "place": raster.made["blob_path"],
            "message": message,
            "fix": fix,
        },
        {"checked": 2, "damaged": 1, "faults": 1, "errors": 0, "without_hash": 0},
    ]


def test_command_names_outputs_without_a_recorded_hash(raster: Site, publishing_database: TestDatabase) -> None:
    raster.set(external_item_hash=None)
    found = verify(raster, publishing_database)
    assert (found.code, found.out) == (0, ""), found.err
    told = " ".join(found.err.split())
    item = f"{raster.publisher.public}/{raster.made['stac_item_id']}"
    assert f"no hash recorded for the item {item}; only its existence was checked." in told
    assert "Reprocessing records one where an earlier release made the output." in told


def test_the_command_says_when_it_could_not_run(raster: Site, publishing_database: TestDatabase) -> None:
    raster.publisher.asset_id = "0" * 32
    missing = verify(raster, publishing_database)
    assert (missing.code, missing.out) == (2, "")
    assert "No version of an asset" in missing.err
