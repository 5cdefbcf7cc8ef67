"""The features of a source become a GeoParquet file and a PMTiles file."""

import datetime as dt
import hashlib
import json
import os
import select
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyogrio.raw
import pytest
import shapely
from geoarrow.rust.io import GeoParquetFile
from obstore.store import LocalStore
from pyproj import CRS, Transformer
from structlog.testing import capture_logs
from tests.integration.handlers.vector.tiles import LINE, POINT, POLYGON, read_archive

from graticule.core.ids import JobId, NodeId, TaskId
from graticule.handlers.context import ProcessContext, Signals
from graticule.handlers.registry import handlers
from graticule.handlers.result import HandlerResult
from graticule.handlers.vector import exporting, validation
from graticule.handlers.vector.described import Column, Shape, Source
from graticule.handlers.vector.exports import geoparquet_writing, pmtiles_making, pmtiles_writing
from graticule.handlers.vector.exports.geoparquet_writing import GeoParquetWriter
from graticule.logs import get_logger
from graticule.storage.blocking import BlockingStorage
from graticule.storage.local import LocalStorage

JOB = JobId("0123456789abcdef0123456789abcdef")
FILE = "bronze/island/parcels.gpkg"
STAGED = "silver/89abcdef/out"
MOMENT = dt.datetime(2024, 2, 29, 12, 30, 15, 250_000, tzinfo=dt.UTC)
WKB = {"ARROW:extension:name": "geoarrow.wkb"}


class Desk:
    """The handlers, called as a worker calls them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.signals = Signals()
        self.told: list[dict[str, Any]] = []
        self.report: Callable[[dict[str, Any]], None] = self.told.append

    def source(self, path: str = FILE) -> Source:
        """Give what `vector.validate` finds out about a file."""
        container, _, blob = path.partition("/")
        params = validation.Validate(container_name=container, blob_name=blob)
        with BlockingStorage(LocalStorage(self.folder)) as storage:
            result = validation.validate(self.context(storage, params))
        self.told.clear()
        return Source.model_validate(output_of(result))

    def run(self, name: str, source: Source, **options: Any) -> HandlerResult:
        handler = handlers()[f"vector.export_{name}"]
        assert handler.params is not None
        params = handler.params.model_validate(
            {"source": source, "table_name": "a", "blob_prefix": "island/v1", **options}
        )
        with BlockingStorage(LocalStorage(self.folder)) as storage:
            found: HandlerResult = handler.function(self.context(storage, params))
            return found

    def context(self, storage: BlockingStorage, params: Any) -> ProcessContext:
        return ProcessContext(
            task_id=TaskId("t"),
            job_id=JOB,
            node_id=NodeId("n"),
            retry_count=0,
            params=params,
            logger=get_logger("test"),
            signals=self.signals,
            report_progress=self.report,
            checkpoint=None,  # type: ignore[arg-type]
            storage=storage,
        )

    def staged(self) -> list[str]:
        """Give all that is left in the job's folder, also what is hidden."""
        return sorted(str(file.relative_to(self.folder / STAGED)) for file in (self.folder / STAGED).rglob("*.*"))


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def write_source(desk: Desk, shapes: list[Any], columns: dict[str, pa.Array] | None = None) -> None:
    file = desk.folder / FILE
    file.parent.mkdir(parents=True, exist_ok=True)
    given = columns or {}
    geometry = pa.array(
        [None if shape is None else shapely.to_wkb(shape, flavor="iso") for shape in shapes], pa.binary()
    )
    fields = [pa.field(name, column.type) for name, column in given.items()]
    schema = pa.schema([*fields, pa.field("geom", pa.binary(), metadata=WKB)])
    pyogrio.raw.write_arrow(
        pa.table([*given.values(), geometry], schema=schema),
        file,
        layer="parcels",
        driver="GPKG",
        geometry_name="geom",
        geometry_type="Unknown",
        crs="EPSG:4326",
    )


def all_types(count: int) -> dict[str, pa.Array]:
    def column(values: list[Any], kind: pa.DataType) -> pa.Array:
        return pa.array((values * count)[:count], kind)

    return {
        "big": column([2**60 + 1, -5], pa.int64()),
        "small": column([7, None], pa.int16()),
        "real": column([1.5, None], pa.float32()),
        "text": column(["ü", None], pa.string()),
        "flag": column([True, False], pa.bool_()),
        "day": column([dt.date(2024, 2, 29), None], pa.date32()),
        "moment": column([MOMENT, None], pa.timestamp("ms", "UTC")),
        "raw": column([b"\x00\x01", None], pa.binary()),
        "more": pa.ExtensionArray.from_storage(pa.json_(pa.string()), column(['{"a":[1]}', None], pa.string())),
    }


def output_of(result: HandlerResult) -> dict[str, Any]:
    assert isinstance(result.output, dict), result
    return result.output


# GeoParquet

SHAPES = [shapely.box(1, 2, 1.1, 2.3), None, shapely.Polygon(), shapely.Point(10, 50), shapely.box(-70, -20, -69, -19)]


def test_geoparquet_has_the_features_and_tells_what_they_are(desk: Desk) -> None:
    write_source(desk, SHAPES, all_types(5))
    output = output_of(desk.run("geoparquet", desk.source()))
    file = desk.folder / STAGED / output["name"]
    assert (output["name"], output["path"]) == (
        "geoparquet/parcels.parquet",
        "silver/island/v1/geoparquet/parcels.parquet",
    )
    assert (output["row_count"], output["size_bytes"]) == (5, file.stat().st_size)
    assert output["checksum"] == hashlib.sha256(file.read_bytes()).hexdigest()
    assert desk.told[-1]["done"] == desk.told[-1]["total"] == 5

    table = pq.read_table(file)
    assert table.schema.field("moment").type == pa.timestamp("us", "UTC")
    assert table.schema.field("more").type == pa.json_(pa.string())
    rows = table.drop_columns(["geom", "bbox"]).to_pylist()
    assert rows[0] == {
        "fid": 1,
        "big": 2**60 + 1,
        "small": 7,
        "real": 1.5,
        "text": "ü",
        "flag": True,
        "day": dt.date(2024, 2, 29),
        "moment": MOMENT,
        "raw": b"\x00\x01",
        "more": '{"a":[1]}',
    }
    assert [row["fid"] for row in rows] == [1, 2, 3, 4, 5]
    assert {name for name, value in rows[1].items() if value is None} == {*all_types(1)} - {"big", "flag"}

    described = json.loads(table.schema.metadata[b"geo"])
    column = described["columns"]["geom"]
    assert (described["version"], described["primary_column"], column["encoding"]) == ("1.1.0", "geom", "WKB")
    assert set(column["geometry_types"]) >= {"MultiPolygon", "MultiPoint"}
    assert CRS.from_json_dict(column["crs"]).to_epsg() == 4326
    assert column["bbox"] == pytest.approx([-70, -20, 10, 50])
    assert column["covering"] == {"bbox": {side: ["bbox", side] for side in ("xmin", "ymin", "xmax", "ymax")}}


def opened(file: Path) -> GeoParquetFile:
    """Open a file with a reader that shares nothing with what has written it."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Successfully reconstructed a store", RuntimeWarning)
        return GeoParquetFile.open(file.name, LocalStore(file.parent))


def fids(file: Path, box: tuple[float, float, float, float]) -> list[int]:
    """Give the features that the reader finds by their boxes."""
    return list(pa.table(opened(file).read(bbox=box))["fid"].to_pylist())


def test_another_reader_takes_geoparquet_and_finds_by_place(desk: Desk) -> None:
    write_source(desk, SHAPES, {"n": pa.array(range(5))})
    output = output_of(desk.run("geoparquet", desk.source(), target_crs="EPSG:32631"))
    file = desk.folder / STAGED / output["name"]
    there = opened(file)
    assert CRS(there.crs()).to_epsg() == 32631
    assert there.num_rows == len(SHAPES)
    move: Any = Transformer.from_crs(4326, 32631, always_xy=True).transform
    first: Any = SHAPES[0]
    west, south, east, north = shapely.transform(first, move, interleaved=False).bounds
    assert fids(file, (west + 1, south + 1, east - 1, north - 1)) == [1]
    assert fids(file, (west - 9, south - 9, west - 5, north)) == []


def test_geoparquet_is_written_in_groups_that_can_be_passed_over(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(geoparquet_writing, "GROUP_ROWS", 2)
    file = desk.folder / "a.parquet"
    with GeoParquetWriter(file, [], Shape(type="MultiPoint"), CRS(4326)) as writer:
        for n in range(5):
            writer.write(batch([n + 1], [shapely.MultiPoint([(n, n + 0.1)])]))
    groups = pq.ParquetFile(file).metadata
    assert [groups.row_group(n).num_rows for n in range(groups.num_row_groups)] == [2, 2, 1]
    sides = {groups.row_group(1).column(n).path_in_schema: groups.row_group(1).column(n) for n in range(6)}
    assert (sides["bbox.xmin"].statistics.min, sides["bbox.xmax"].statistics.max) == (2, 3)
    assert {sides[name].compression for name in ("fid", "geom", "bbox.ymax")} == {"ZSTD"}
    assert fids(file, (2.5, 0, 9, 9)) == [4, 5]


def batch(fids: list[int], shapes: list[Any], **columns: pa.Array) -> pa.RecordBatch:
    wkb = pa.array([None if shape is None else shapely.to_wkb(shape, flavor="iso") for shape in shapes], pa.binary())
    return pa.record_batch([pa.array(fids, pa.int64()), *columns.values(), wkb], ["fid", *columns, "geom"])


@pytest.mark.parametrize(
    ("given", "kept", "kinds", "reach"),
    [
        ("MULTIPOINT Z ((1 2 3))", "MULTIPOINT Z ((1 2 3))", ["MultiPoint Z"], [1, 2, 3, 1, 2, 3]),
        ("MULTIPOINT ZM ((1 2 3 4))", "MULTIPOINT Z ((1 2 3))", ["MultiPoint Z"], [1, 2, 3, 1, 2, 3]),
        ("MULTIPOINT M ((1 2 4))", "MULTIPOINT ((1 2))", ["MultiPoint"], [1, 2, 1, 2]),
    ],
)
def test_geoparquet_has_heights_and_no_measures(
    tmp_path: Path, given: str, kept: str, kinds: list[str], reach: list[float]
) -> None:
    file, shape = tmp_path / "a.parquet", shapely.from_wkt(given)
    described = Shape(type="MultiPoint", has_z=shape.has_z, has_m=shape.has_m)
    with GeoParquetWriter(file, [], described, CRS(4326)) as writer:
        writer.write(batch([1], [shape]))
    (column,) = json.loads(pq.read_schema(file).metadata[b"geo"])["columns"].values()
    assert (column["geometry_types"], column["bbox"]) == (kinds, reach)
    (written,) = pq.read_table(file)["geom"].to_pylist()
    assert written == shapely.to_wkb(shapely.from_wkt(kept), flavor="iso")


def test_a_source_may_have_a_column_for_boxes(tmp_path: Path) -> None:
    file, columns = tmp_path / "a.parquet", [Column(field="bbox", name="bbox", type="text")]
    with GeoParquetWriter(file, columns, Shape(type="MultiPoint"), CRS(4326)) as writer:
        writer.write(batch([1], [shapely.MultiPoint([(1, 2)])], bbox=pa.array(["mine"])))
    assert pq.read_table(file)["bbox"].to_pylist() == ["mine"]
    assert fids(file, (0, 0, 2, 2)) == [1]
    assert fids(file, (3, 3, 4, 4)) == []


def test_boxes_hold_what_they_are_around() -> None:
    sides: Any = np.sort(np.random.default_rng(3).uniform(-9e6, 9e6, (500, 4)))
    bounds: Any = np.vstack([sides, np.array([[0.1] * 4, [-180, -90, 180, 90], [np.nan] * 4])])
    *boxes, missing = geoparquet_writing.boxes(bounds).to_pylist()
    assert missing is None
    for box, (west, south, east, north) in zip(boxes, bounds, strict=False):
        assert box["xmin"] <= west
        assert box["ymin"] <= south
        assert box["xmax"] >= east
        assert box["ymax"] >= north
        assert box["xmax"] - box["xmin"] <= east - west + 2
    assert boxes[-1] == {"xmin": -180, "ymin": -90, "xmax": 180, "ymax": 90}


def test_what_was_exported_is_a_source_again(desk: Desk) -> None:
    write_source(desk, SHAPES, all_types(5))
    first = desk.source()
    output = output_of(desk.run("geoparquet", first))
    (desk.folder / STAGED / output["name"]).rename(desk.folder / "bronze/again.parquet")
    again = desk.source("bronze/again.parquet")
    assert (again.feature_count, again.shape, again.opening.crs) == (5, first.shape, "EPSG:4326")
    types = {column.field: column.type for column in again.columns}
    assert {column.name: types[column.name] for column in first.columns} == {
        column.name: column.type for column in first.columns
    }


# PMTiles

KINDS = [
    (shapely.Point(10, 50), POINT),
    (shapely.MultiPoint([(-100, 40), (100, -40)]), POINT),
    (shapely.LineString([(-60, 10), (20, 60)]), LINE),
    (shapely.MultiLineString([[(0, 0), (5, 5)], [(6, 6), (9, 1)]]), LINE),
    (shapely.box(-30, -30, 30, -10), POLYGON),
    (shapely.MultiPolygon([shapely.box(50, 0, 60, 10), shapely.box(70, 0, 80, 10)]), POLYGON),
    (None, 0),
    (shapely.Polygon(), 0),
    (shapely.Point(0, 89), 0),  # tiles end at 85 degrees
    (shapely.box(100, 70, 140, 90), POLYGON),
    (shapely.GeometryCollection([shapely.Point(-120, 1), shapely.box(-90, 2, -80, 9)]), 0),  # one of each
]


def test_tiles_have_all_kinds_of_features_with_their_ids_and_attributes(desk: Desk) -> None:
    write_source(desk, [shape for shape, _ in KINDS], all_types(len(KINDS)))
    output = output_of(desk.run("pmtiles", desk.source(), pmtiles_max_zoom=3))
    file = desk.folder / STAGED / output["name"]
    assert desk.staged() == ["pmtiles/parcels.pmtiles"]
    assert (output["path"], output["size_bytes"]) == ("silver/island/v1/pmtiles/parcels.pmtiles", file.stat().st_size)
    assert output["checksum"] == hashlib.sha256(file.read_bytes()).hexdigest()
    archive = read_archive(file, (0, 0, 0), (3, 4, 2), (3, 0, 0))
    header = archive.header
    assert (header["min_zoom"], header["max_zoom"], output["max_zoom"]) == (0, 3, 3)
    assert output["tile_count"] == header["addressed_tiles_count"]
    bounds = [header[side] / 1e7 for side in ("min_lon_e7", "min_lat_e7", "max_lon_e7", "max_lat_e7")]
    assert bounds == pytest.approx([-120, -40, 140, 85], abs=0.01)

    (layer,) = archive.metadata["vector_layers"]
    assert (layer["id"], layer["minzoom"], layer["maxzoom"]) == ("features", 0, 3)
    assert layer["fields"] == {
        **dict.fromkeys(["big", "small", "real"], "Number"),
        **dict.fromkeys(["text", "day", "moment", "more"], "String"),
        "flag": "Boolean",
    }
    world = archive.tiles[0, 0, 0]
    whole = [(n, kind) for n, (_, kind) in enumerate(KINDS, 1) if kind]
    assert [(each.id, each.type) for each in world] == [*whole, (11, POINT), (11, POLYGON)]
    assert world[0].attributes == {
        "big": 2**60 + 1,
        "small": 7,
        "real": 1.5,
        "text": "ü",
        "flag": True,
        "day": "2024-02-29",
        "moment": "2024-02-29T12:30:15.250Z",
        "more": '{"a":[1]}',
    }
    assert world[1].attributes == {"big": -5, "flag": False}
    assert {each.id for each in archive.tiles[3, 4, 2]} == {1, 3}  # 0 to 45 degrees east, 41 to 66 north
    assert archive.tiles[3, 0, 0] == []


def written_chosen(desk: Desk, shapes: list[Any]) -> Source:
    write_source(desk, shapes, {"n": pa.array(range(len(shapes)))})
    return desk.source()


def test_values_go_into_tiles_by_types_that_these_have() -> None:
    columns = {
        "exact": pa.array([Decimal("1.50")], pa.decimal128(38, 18)),
        "time": pa.array([dt.time(1, 2, 3, 500_000)], pa.time64("us")),
        "raw": pa.array([b"x"]),
    }
    rows = pmtiles_making.in_tiles(batch([7], [shapely.Point(1, 2)], **columns))
    assert rows.drop_columns(["geom"]).to_pylist() == [{"OGC_FID": 7, "exact": 1.5, "time": "01:02:03.500000"}]


@pytest.mark.parametrize("name", ["geoparquet", "pmtiles"])
def test_an_export_that_is_not_wanted_any_more_leaves_nothing(desk: Desk, name: str) -> None:
    source, others = written_chosen(desk, SHAPES), children()
    running: set[int] = set()

    def report(told: dict[str, Any]) -> None:
        if told["message"] == "features":
            running.update(children() - others)
            desk.signals.cancelled = True

    desk.report = report
    result = desk.run(name, source)
    assert (result.error_message, result.retryable) == ("cancelled", False)
    assert desk.staged() == []
    assert len(running) == (name == "pmtiles")
    assert children() == others


def children() -> set[int]:
    """Give the processes that this one has started."""
    return set(map(int, Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="ascii").split()))


def test_a_writer_of_tiles_that_is_killed_is_a_clear_failure(desk: Desk) -> None:
    source, others = written_chosen(desk, SHAPES), children()

    def report(told: dict[str, Any]) -> None:
        if told["message"] == "features":
            for pid in children() - others:
                os.kill(pid, signal.SIGKILL)
            (partial,) = (desk.folder / STAGED / "pmtiles").iterdir()
            partial.with_name(f"{partial.name}.tmp.mbtiles").touch()  # as GDAL leaves it

    desk.report = report
    with pytest.raises(pmtiles_making.TilesNotMade, match="ended by SIGKILL"):
        desk.run("pmtiles", source)
    assert desk.staged() == []


def test_what_gdal_says_of_tiles_that_cannot_be_written_is_for_the_log(desk: Desk) -> None:
    params = exporting.ExportPmtiles(source=written_chosen(desk, SHAPES), table_name="a")
    with BlockingStorage(LocalStorage(desk.folder)) as storage:
        context = desk.context(storage, params)
        told = "The tiles could not be made: their process ended with status 1. The log of the worker has more."
        with pytest.raises(pmtiles_making.TilesNotMade, match=f"^{told}$"), capture_logs() as logged:
            write_one(context, desk.folder / "a.pmtiles", b"no geometry")
    assert "Failed to write features to dataset a.pmtiles" in logged[-1]["said"]


def write_one(context: ProcessContext, file: Path, wkb: bytes) -> None:
    rows = pa.record_batch([pa.array([1]), pa.array([wkb])], ["fid", "geom"])
    with pmtiles_making.TileWriter.started(context, file, "a", 2) as writer:
        writer.write(pmtiles_making.in_tiles(rows))
        writer.finish()


def test_the_writer_of_tiles_ends_with_who_started_it() -> None:
    name = pmtiles_writing.__name__
    writer = f"import os, sys, time; from {name} import end_with; end_with(os.getppid()); print('on'); time.sleep(60)"
    starter = f"import subprocess, sys; subprocess.run([sys.executable, '-uc', {writer!r}])"
    with subprocess.Popen([sys.executable, "-c", starter], stdout=subprocess.PIPE) as started:
        assert started.stdout is not None
        assert started.stdout.readline() == b"on\n"
        started.kill()
        assert select.select([started.stdout], [], [], 30)[0]
        assert started.stdout.read() == b""  # the pipe is closed when both have ended


def test_a_source_that_has_changed_is_rejected(desk: Desk) -> None:
    source = written_chosen(desk, SHAPES)
    os.utime(desk.folder / FILE, (1, 1))
    result = desk.run("geoparquet", source)
    assert result.report is not None
    assert "source_changed" in str(result.report)
    assert desk.staged() == []


@pytest.mark.parametrize("name", ["geoparquet", "pmtiles"])
def test_exports_run_where_they_can_be_ended(name: str) -> None:
    handler = handlers()[f"vector.export_{name}"]
    assert not handler.is_async
    assert (handler.memory_limit_mb, handler.timeout_seconds) == (2048, 7200)
