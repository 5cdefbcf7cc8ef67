"""Files of features that mean harm: they lead elsewhere, never end, or are not what they seem."""

import json
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pyogrio
import pytest
import shapely
from tests.integration.handlers.vector.vector_chain import FILE, SQUARES, Chain, codes, write_features

from graticule.handlers.registry import handlers
from graticule.handlers.result import HandlerResult
from graticule.handlers.vector import ogr
from graticule.handlers.vector.source import Kind, check_links

JSON = "bronze/a.geojson"
POINT = {"type": "Point", "coordinates": [1, 2]}


class Host(ThreadingHTTPServer):
    """Something that a partner must not reach through us; it notes who comes."""

    def __init__(self) -> None:
        self.visits: list[str] = []
        super().__init__(("127.0.0.1", 0), Visit)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/secret.geojson"


class Visit(BaseHTTPRequestHandler):
    server: Host

    def do_GET(self) -> None:
        self.server.visits.append(self.path)
        self.send_error(404)

    do_HEAD = do_GET  # noqa: N815 - the name that the server looks for

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")  # as installations have it
    with Host() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def looking(tmp_path: Path) -> Chain:
    return Chain(tmp_path, None)  # type: ignore[arg-type]


def collection(**more: Any) -> str:
    feature = {"type": "Feature", "properties": {"crs": "a text", "n": 1}, "geometry": POINT}
    return json.dumps({"type": "FeatureCollection", "features": [feature], **more})


def link(href: str = "http://169.254.169.254/") -> dict[str, Any]:
    return {"type": "link", "properties": {"href": href, "type": "proj4"}}


def both(looking: Chain, path: str, layer: str | None = None) -> list[HandlerResult]:
    """Validate a file, and read it as someone would who leaves that out."""
    named = layer or Path(path).stem
    unchecked = {"source": path, "layer": named, "feature_count": 1, "etag": looking.etag(path), "content_hash": ""}
    return [looking.validate(path), looking.read({**unchecked, "outcome": "ok", "findings": [], "facts": {}})]


@pytest.mark.parametrize(
    "disguise",
    [
        lambda text: text,
        lambda text: text.replace('"crs": {', '"\\u0063r\\u0073"\n:\t{').replace('"link"', '"\\u004cINK"'),
        lambda text: text.replace('"crs": {', '"crs": {"type": "name", "more": {}}, "crs": {'),
    ],
    ids=["plain", "escaped", "twice"],
)
def test_a_crs_that_is_a_link_is_rejected(looking: Chain, host: Host, disguise: Callable[[str], str]) -> None:
    for text in (collection(crs=link(host.address)), collection(features=[{**POINT, "crs": link(host.address)}])):
        looking.put(JSON, disguise(text).encode())
        assert [codes(result) for result in both(looking, JSON)] == [["linked_crs"]] * 2
    assert host.visits == []


def test_a_link_that_is_overlooked_leads_nowhere(looking: Chain, host: Host) -> None:
    looking.put(JSON, collection(crs=link(host.address)).replace('"crs":', f'"crs"{" " * 99}:').encode())
    assert looking.validate(JSON).output
    assert host.visits == []


def test_a_link_is_found_wherever_the_pieces_are_cut() -> None:
    text = (" " * 300 + json.dumps({"crs": link(), "features": []})).encode()
    for cut in range(300, len(text)):
        with pytest.raises(Exception, match="linked_crs"):
            check_links([text[:cut], text[cut:], b" " * 20_000])


def test_a_crs_that_is_a_name_is_read(looking: Chain) -> None:
    looking.put(JSON, collection(crs={"type": "name", "properties": {"name": "EPSG:3857"}}).encode())
    output: Any = looking.validate(JSON).output
    assert output["facts"]["crs"] == "WGS 84 / Pseudo-Mercator"
    assert looking.read(output).output["row_count"] == 1  # type: ignore[index, call-overload]


@pytest.mark.parametrize("begin", ["", "{ \n", '{"', '{"type": "FeatureCollection"} '])
def test_a_file_that_refers_to_others_is_rejected_unopened(looking: Chain, host: Host, begin: str) -> None:
    looking.put("bronze/other.geojson", collection().encode())
    for target in (f"/vsicurl/{host.address}", looking.folder / "bronze/other.geojson"):
        layer = f'<OGRVRTLayer name="a"><SrcDataSource>{target}</SrcDataSource><SrcLayer>other</SrcLayer></OGRVRTLayer>'
        looking.put(JSON, f"{begin}<OGRVRTDataSource>{layer}</OGRVRTDataSource>".encode())
        assert all(set(codes(result)) <= {"not_a_vector", "corrupt"} for result in both(looking, JSON))
    assert host.visits == []


def test_gdal_has_no_other_drivers_than_those_that_are_taken() -> None:
    assert set(pyogrio.list_drivers()) == {"GPKG", "FlatGeobuf", "GeoJSON"} == set(Kind)


@pytest.mark.parametrize("name", ["a.geojson;x", "a.zip!b.geojson", "a.zip", "a.gpkg.ZIP", "a.tar/b.gpkg", "vsizip/a"])
def test_a_name_that_stands_for_another_file_is_rejected(looking: Chain, name: str) -> None:
    looking.put("bronze/a.geojson", collection().encode())
    looking.put(f"bronze/{name}", collection().encode())
    assert [codes(result) for result in both(looking, f"bronze/{name}")] == [["unusable_name"]] * 2


def test_a_name_of_which_something_would_be_cut_is_rejected(looking: Chain) -> None:
    looking.put("bronze/a.geojson?", collection().encode())
    assert [codes(result) for result in both(looking, "bronze/a.geojson?")] == [["unusable_name"]] * 2


def test_what_we_made_is_no_source(looking: Chain) -> None:
    looking.put("silver/a.geojson", collection().encode())
    for result in both(looking, "silver/a.geojson"):
        assert "holds what this platform makes" in str(result.error_message)
        assert not result.retryable


def changed(looking: Chain, *statements: str) -> None:
    """Write a GeoPackage and change it as its tables allow."""
    fields = {"name": np.array(["a"] * 5, dtype=object)}
    write_features(looking.folder / FILE, SQUARES, fields, SPATIAL_INDEX="NO")  # its triggers need functions of GDAL's
    with closing(sqlite3.connect(looking.folder / FILE)) as database:
        for statement in statements:
            database.execute(statement)
        database.commit()


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
VIEW = f"CREATE VIEW v AS {ENDLESS} SELECT i AS fid, (SELECT geom FROM parcels) AS geom FROM n WHERE i = 1"
LIST_VIEW = (
    "UPDATE gpkg_contents SET table_name = 'v', identifier = 'v'",
    "UPDATE gpkg_geometry_columns SET table_name = 'v'",
    "UPDATE gpkg_ogr_contents SET table_name = 'v', feature_count = 10",
)
UNBOUND = "PRAGMA foreign_keys = OFF"
DISGUISED = "UPDATE sqlite_master SET type = 'table' WHERE name = 'v'"


@pytest.mark.parametrize(
    ("statements", "code"),
    [
        ((VIEW, *LIST_VIEW), "not_a_table"),
        ((VIEW, *LIST_VIEW, "PRAGMA writable_schema = ON", DISGUISED), "corrupt"),
        (("CREATE VIRTUAL TABLE v USING fts5(geom)", *LIST_VIEW), "not_a_table"),
        (("ALTER TABLE parcels ADD big TEXT AS (printf('%.*c', 20000000, 'x'))",), "not_a_table"),
        (
            ("DROP TABLE gpkg_ogr_contents", f"CREATE VIEW gpkg_ogr_contents AS {ENDLESS} SELECT max(i) FROM n"),
            "corrupt",
        ),
    ],
    ids=["view", "view that calls itself a table", "virtual", "computed column", "view of the format"],
)
def test_only_tables_of_a_geopackage_are_read(looking: Chain, statements: tuple[str, ...], code: str) -> None:
    drop = [f"DROP TRIGGER trigger_{what}_feature_count_parcels" for what in ("insert", "delete")]
    changed(looking, UNBOUND, *drop, *statements)
    layer = "v" if LIST_VIEW[0] in statements else "parcels"
    assert [codes(result) for result in both(looking, FILE, layer)] == [[code]] * 2


def test_a_geopackage_that_announces_other_features_than_it_has_is_rejected(looking: Chain) -> None:
    changed(looking, "UPDATE gpkg_ogr_contents SET feature_count = 7")
    assert codes(looking.read(looking.validate().output)) == ["corrupt"]


def test_a_text_that_is_none_is_rejected(looking: Chain) -> None:
    changed(looking, "UPDATE parcels SET name = CAST(x'ff41' AS TEXT)")
    assert codes(looking.read(looking.validate().output)) == ["not_utf8"]


def test_a_geopackage_is_read_without_a_trace(looking: Chain) -> None:
    changed(looking, "PRAGMA journal_mode = WAL")
    folder, before = (looking.folder / FILE).parent, (looking.folder / FILE).read_bytes()
    seen: set[str] = set()
    looking.report = lambda _: seen.update(file.name for file in folder.iterdir())
    assert looking.read(looking.validate().output).error_message is None
    assert seen == {"parcels.gpkg"}
    assert (looking.folder / FILE).read_bytes() == before


@pytest.mark.parametrize("ending", ["-wal", "-journal"])
def test_a_geopackage_with_a_journal_is_rejected_and_left_as_it_is(looking: Chain, ending: str) -> None:
    changed(looking)
    looking.put(f"{FILE}{ending}", b"changes")
    assert [codes(result) for result in both(looking, FILE)] == [["unfinished"]] * 2
    assert (looking.folder / f"{FILE}{ending}").read_bytes() == b"changes"


@pytest.fixture
def small_batches() -> Iterator[None]:
    pyogrio.set_gdal_config_options({"OGR_ARROW_MEM_LIMIT": "65536"})
    yield
    pyogrio.set_gdal_config_options({"OGR_ARROW_MEM_LIMIT": ogr.SETTINGS["OGR_ARROW_MEM_LIMIT"]})


@pytest.mark.parametrize(("driver", "ending"), [("GPKG", "gpkg"), ("GeoJSON", "geojson"), ("FlatGeobuf", "fgb")])
@pytest.mark.usefixtures("small_batches")
def test_features_are_read_by_their_size(looking: Chain, driver: str, ending: str) -> None:
    def written(length: int) -> Any:
        path = f"bronze/{length}.{ending}"
        fields = {"text": np.array(["x" * length] * 20, dtype=object)}
        points = [shapely.Point(n, n) for n in range(20)]
        write_features(looking.folder / path, points, fields, "EPSG:4326", driver=driver, geometry_type="Point")
        return looking.validate(path).output

    assert looking.read(written(10_000)).output["row_count"] == 20  # type: ignore[index, call-overload]
    assert len(looking.told) > 4
    assert codes(looking.read(written(70_000))) == ["too_large_feature"]


@pytest.mark.parametrize(
    "target", ["+init=file:/etc/passwd", "EPSG:5714", "EPSG:4978", "EPSG:7415", "EPSG:999999", "x" * 100_000]
)
def test_the_projection_of_the_table_is_one_for_maps(looking: Chain, target: str) -> None:
    write_features(looking.folder / FILE, SQUARES)
    assert codes(looking.read(looking.validate().output, target_crs=target)) == ["unknown_target_crs"]


def test_too_many_fields_are_rejected_and_few_are_told(looking: Chain) -> None:
    looking.put(JSON, collection(features=[feature(1001)]).encode())
    assert codes(looking.validate(JSON)) == ["too_many_fields"]
    looking.put(JSON, collection(features=[feature(300)]).encode())
    facts: Any = looking.validate(JSON).output
    assert (facts["facts"]["column_count"], len(facts["facts"]["columns"])) == (300, 200)


def feature(count: int) -> dict[str, Any]:
    return {"type": "Feature", "properties": {f"{n}{'x' * 500}": n for n in range(count)}, "geometry": POINT}


@pytest.mark.parametrize("name", ["vector.validate", "vector.read"])
def test_gdal_reads_partners_bytes_only_in_a_process_that_can_be_ended(name: str) -> None:
    handler = handlers()[name]
    assert not handler.is_async
    assert handler.memory_limit_mb == 2048
