"""`vector.validate` on real files: what it finds, what it tells of them, and how the table is to be made."""

import hashlib
import io
import json
import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyogrio.raw
import pytest
import shapely

from graticule.core.ids import JobId, NodeId, TaskId
from graticule.core.validation import MOST_FACT_BYTES, ValidationReport
from graticule.handlers.context import ProcessContext, Signals
from graticule.handlers.result import HandlerResult
from graticule.handlers.vector import validation
from graticule.handlers.vector.described import Source
from graticule.handlers.vector.examining import chunks
from graticule.logs import get_logger
from graticule.storage.blocking import BlockingStorage
from graticule.storage.local import LocalStorage

FILE = "parcels.gpkg"
SQUARE = "POLYGON ((0 0, 0 1, 1 1, 1 0, 0 0))"
BOWTIE = "POLYGON ((0 0, 1 1, 1 0, 0 1, 0 0))"
UTM = "POLYGON ((600000 1600000, 600000 1600900, 600900 1600900, 600000 1600000))"


class Looking:
    """The handler, called as a worker calls it, on a storage of its own."""

    def __init__(self, folder: Path, storage: BlockingStorage) -> None:
        self.folder = folder / "bronze"
        self.folder.mkdir()
        self.signals = Signals()
        self.told: list[dict[str, Any]] = []
        self._storage = storage

    def put(self, name: str, content: Any) -> None:
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        (self.folder / name).write_bytes(data)

    def validate(self, name: str = FILE, **options: Any) -> HandlerResult:
        context = ProcessContext(
            task_id=TaskId("t"),
            job_id=JobId("0123456789abcdef0123456789abcdef"),
            node_id=NodeId("n"),
            retry_count=0,
            params=validation.Validate(container_name="bronze", blob_name=name, **options),
            logger=get_logger("test"),
            signals=self.signals,
            report_progress=self.told.append,
            storage=self._storage,
            checkpoint=None,  # type: ignore[arg-type]
        )
        return validation.validate(context)

    def source(self, name: str = FILE, **options: Any) -> Source:
        """Give what was found, as the next step gets it."""
        result = self.validate(name, **options)
        assert result.error_message is None, result
        return Source.model_validate_json(json.dumps(result.output, sort_keys=True))

    def rejection(self, name: str = FILE, **options: Any) -> ValidationReport:
        report = ValidationReport.read(self.validate(name, **options).report)
        assert report is not None
        assert report.outcome == "reject"
        return report

    def write(self, *texts: str | None, crs: str = "EPSG:4326", geometry_type: str = "Unknown", **fields: Any) -> None:
        """Write a GeoPackage of geometries."""
        shapes = np.array([None if text is None else shapely.from_wkt(text) for text in texts], dtype=object)
        pyogrio.raw.write(
            self.folder / FILE,
            shapely.to_wkb(shapes, flavor="iso"),
            [np.array(values) for values in fields.values()],
            list(fields),
            driver="GPKG",
            layer="parcels",
            geometry_type=geometry_type,
            crs=crs,
        )


@pytest.fixture
def looking(tmp_path: Path) -> Iterator[Looking]:
    with BlockingStorage(LocalStorage(tmp_path)) as storage:
        yield Looking(tmp_path, storage)


def codes(source: Source) -> list[str]:
    return [finding["code"] for finding in source.findings]  # type: ignore[index, call-overload, misc]


def finding(source: Source, code: str, severity: str = "fix") -> dict[str, Any]:
    (found,) = [each for each in source.findings if each["code"] == code]  # type: ignore[index, call-overload]
    assert found["severity"] == severity  # type: ignore[index, call-overload]
    return found  # type: ignore[return-value]


def test_an_ordinary_file_is_as_it_should_be(looking: Looking) -> None:
    looking.write(SQUARE, SQUARE, geometry_type="Polygon", name=["ab", None], n=[1, 2])
    source = looking.source()
    data = (looking.folder / FILE).read_bytes()
    assert (source.outcome, source.findings) == ("ok", [])
    assert (source.source, source.size_bytes) == (f"bronze/{FILE}", len(data))
    assert source.content_hash == hashlib.sha256(data).hexdigest()
    assert (source.feature_count, source.shape.column_type) == (2, "MultiPolygon")
    assert [(each.field, each.name, each.type) for each in source.columns] == [
        ("name", "name", "text"),
        ("n", "n", "bigint"),
    ]
    assert [(each.first_fid, each.row_count, each.begin) for each in source.chunks] == [(1, 2, None)]
    assert source.facts == {
        "driver": "GPKG",
        "layer": "parcels",
        "layers": ["parcels"],
        "layer_count": 1,
        "encoding": None,
        "crs": "WGS 84",
        "crs_code": "EPSG:4326",
        "geometry_type": "Polygon",
        "feature_count": 2,
        "geometry_types": {"Polygon": 2},
        "has_z": False,
        "has_m": False,
        "bounds": [0, 0, 1, 1],
        "bbox": [0, 0, 1, 1],
        "invalid": {"count": 0, "examples": []},
        "empty": {"count": 0, "examples": []},
        "null_geometries": {"count": 0, "examples": []},
        "column_count": 2,
        "columns": [
            {"field": "name", "name": "name", "type": "text", "nulls": 1, "null_share": 0.5, "longest": 2},
            {"field": "n", "name": "n", "type": "bigint", "nulls": 0, "null_share": 0.0},
        ],
        "chunk_count": 1,
    }
    assert {each["message"] for each in looking.told} == {"features", "reading"}


def test_what_is_mended_is_told_with_examples(looking: Looking) -> None:
    looking.write(SQUARE, BOWTIE, None, "POLYGON EMPTY", "POINT Z (1 2 3)", "LINESTRING (0 0, 1 1)")
    source = looking.source()
    assert source.outcome == "fix"
    assert codes(source) == ["empty_geometries", "invalid_geometries", "mixed_geometries", "mixed_dimensions"]
    assert finding(source, "invalid_geometries")["where"] == "feature 2"
    assert "Self-intersection[0.5 0.5]" in finding(source, "invalid_geometries")["what"]
    assert finding(source, "empty_geometries")["where"] == "features 3, 4"
    assert "2 Polygon, 1 Point, 1 LineString" in finding(source, "mixed_geometries", "info")["what"]
    assert "3 XY, 1 XYZ" in finding(source, "mixed_dimensions")["what"]
    assert source.facts["invalid"] == {
        "count": 1,
        "examples": [{"feature": 2, "reason": "Self-intersection[0.5 0.5]"}],
    }
    assert source.facts["null_geometries"] == {"count": 1, "examples": [{"feature": 3}]}
    assert source.facts["empty"] == {"count": 1, "examples": [{"feature": 4}]}
    assert source.shape.column_type == "GeometryZ"


@pytest.mark.parametrize(
    ("texts", "column_type"),
    [
        (["POINT (1 1)", "MULTIPOINT (1 1, 2 2)", "POLYGON EMPTY"], "MultiPoint"),
        (["LINESTRING Z (0 0 1, 1 1 1)", "MULTILINESTRING Z ((0 0 1, 1 1 1))"], "MultiLineStringZ"),
        (["MULTIPOLYGON M (((0 0 1, 0 1 1, 1 1 1, 0 0 1)))"], "MultiPolygonM"),
        (["GEOMETRYCOLLECTION ZM (POINT ZM (1 2 3 4))"], "GeometryCollectionZM"),
        (["GEOMETRYCOLLECTION (POINT (1 1))", "POINT (1 1)"], "Geometry"),
    ],
)
def test_the_column_takes_what_there_is(looking: Looking, texts: list[str], column_type: str) -> None:
    looking.write(*texts)
    assert looking.source().shape.column_type == column_type


def test_another_projection_is_told(looking: Looking) -> None:
    looking.write(UTM, crs="EPSG:32620")
    source = looking.source()
    assert finding(source, "other_crs", "info")["what"] == "Reprojected from EPSG:32620 to EPSG:4326."
    assert source.outcome == "ok"
    assert (source.facts["crs"], source.facts["crs_code"]) == ("WGS 84 / UTM zone 20N", "EPSG:32620")
    assert source.bbox == pytest.approx([-62.07, 14.47, -62.06, 14.48], abs=0.01)
    assert codes(looking.source(target_crs="EPSG:32620")) == []


BOTH = ["other_crs", "across_antimeridian"]


@pytest.mark.parametrize(
    ("crs", "text", "bbox", "found"),
    [
        ("EPSG:3460", "LINESTRING (1900000 3800000, 2200000 4000000)", [177.8, -18.81, -179.35, -16.99], BOTH),
        ("EPSG:3832", "LINESTRING (3228264 0, 3450903 111325)", [179, 0, -179, 1], BOTH),
        ("EPSG:4326", "LINESTRING (-182 -20, -178 -10)", [178, -20, -178, -10], ["across_antimeridian"]),
        ("EPSG:4326", "LINESTRING (178 -20, 182 -10)", [178, -20, -178, -10], ["across_antimeridian"]),
        ("EPSG:4326", "LINESTRING (0 -20, 360 10)", [-180, -20, 180, 10], ["across_antimeridian"]),
        ("EPSG:4326", "LINESTRING (-180 -90, 180 90)", [-180, -90, 180, 90], []),
    ],
)
def test_the_antimeridian(looking: Looking, crs: str, text: str, bbox: list[float], found: list[str]) -> None:
    looking.write(text, crs=crs)
    source = looking.source()
    assert source.bbox == pytest.approx(bbox, abs=0.01)
    assert codes(source) == found


def test_columns_that_get_another_name_are_told(looking: Looking) -> None:
    fields = {"geom": "a", "Größe (m²)": 1.0, "CODE": 1, "n": 1}
    looking.put("a.geojson", collection(fields))
    source = looking.source("a.geojson")
    told = finding(source, "renamed_columns", "info")["what"]
    assert "2 columns" in told
    assert f"Größe (m²) → {source.columns[1].name}" in told
    assert "CODE" not in told  # by case alone is no news
    assert [each.field for each in source.columns] == list(fields)


def collection(properties: dict[str, Any]) -> dict[str, Any]:
    point = {"type": "Point", "coordinates": [1, 2]}
    return {"type": "FeatureCollection", "features": [{"type": "Feature", "properties": properties, "geometry": point}]}


def test_the_report_is_bounded(looking: Looking) -> None:
    looking.put("a.geojson", collection({f"{'名' * 400}{number}": "x" for number in range(1000)}))
    source = looking.source("a.geojson")
    report = ValidationReport.read(source.validation())
    assert report is not None
    assert len(source.columns) == report.facts["column_count"] == 1000
    told = report.facts["columns"]
    assert isinstance(told, list)
    assert 100 < len(told) <= 200
    assert len(json.dumps(source.facts, ensure_ascii=False).encode()) < MOST_FACT_BYTES * 1.1


def test_too_many_fields_are_rejected(looking: Looking) -> None:
    looking.put("a.geojson", collection({f"f{number}": 1 for number in range(1001)}))
    assert [each.code for each in looking.rejection("a.geojson").findings] == ["too_many_fields"]


def test_a_name_of_a_field_that_nobody_wrote_is_rejected(looking: Looking) -> None:
    looking.put("a.geojson", collection({"x" * 1001: 1}))
    assert [each.code for each in looking.rejection("a.geojson").findings] == ["unfit_value"]


@pytest.mark.parametrize("target", ["EPSG:5714", "EPSG:999999", "x"])
def test_a_projection_that_is_none_is_told_at_once(looking: Looking, target: str) -> None:
    looking.write(SQUARE)
    assert [each.code for each in looking.rejection(target_crs=target).findings] == ["unknown_target_crs"]
    assert looking.told == []


def test_a_layer_without_a_place_is_rejected_with_what_is_known(looking: Looking) -> None:
    looking.write(None, "POLYGON EMPTY")
    report = looking.rejection()
    assert [each.code for each in report.findings] == ["no_features"]


def test_surfaces_are_rejected_with_what_is_known(looking: Looking) -> None:
    looking.put("a.parquet", geoparquet(shapely.to_wkb(shapely.Point(1, 1)), struct.pack("<BII", 1, 16, 0)))
    report = looking.rejection("a.parquet")
    assert [(each.code, each.where) for each in report.findings] == [("unsupported_geometry", "feature 2")]
    assert (report.facts["driver"], report.facts["crs_code"]) == ("Parquet", "EPSG:4326")


@pytest.mark.parametrize(
    ("wkb", "code"),
    [
        (b"garbage", "corrupt"),
        (struct.pack("<BII", 1, 7, 1) * 100_000, "unsupported_geometry"),
    ],
)
def test_bytes_that_mean_harm_are_rejected(looking: Looking, wkb: bytes, code: str) -> None:
    for told in ([0, 0, 2, 2], None):
        looking.put("a.parquet", geoparquet(shapely.to_wkb(shapely.Point(1, 1)), wkb, bbox=told))
        assert [each.code for each in looking.rejection("a.parquet").findings] == [code]


def geoparquet(*wkb: bytes, **more: Any) -> bytes:
    column = {"encoding": "WKB", "geometry_types": [], "bbox": [0, 0, 2, 2], **more}
    geo = {"version": "1.1.0", "primary_column": "geometry", "columns": {"geometry": column}}
    table = pa.table({"n": list(range(len(wkb))), "geometry": pa.array(wkb, pa.binary())})
    written = pa.BufferOutputStream()
    pq.write_table(table.replace_schema_metadata({"geo": json.dumps(geo)}), written)
    return bytes(written.getvalue())


def test_a_large_source_is_parted(looking: Looking, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "ROWS_PER_CHUNK", 10)
    looking.write(*[f"POINT ({n} {n})" for n in range(25)])
    source = looking.source()
    assert [(each.index, each.first_fid, each.row_count) for each in source.chunks] == [
        (0, 1, 10),
        (1, 11, 10),
        (2, 21, 5),
    ]
    assert all(each.begin is not None and each.end is not None for each in source.chunks)
    assert source.facts["chunk_count"] == 3


@pytest.mark.parametrize("name", ["a.geojson", "a.zip"])
def test_a_file_that_changes_meanwhile_is_rejected(looking: Looking, name: str) -> None:
    content = json.dumps(collection({"n": 1})).encode()
    looking.put(name, zipped(content) if name.endswith(".zip") else content)

    class Change(list[dict[str, Any]]):
        def append(self, told: dict[str, Any]) -> None:
            if told["message"] == "reading":
                looking.put(name, b"another")

    looking.told = Change()
    assert [each.code for each in looking.rejection(name).findings] == ["source_changed"]


def zipped(content: bytes) -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        archive.writestr("inside.geojson", content)
    return written.getvalue()


def test_an_archive_is_known_by_its_own_bytes_and_opened_elsewhere(looking: Looking) -> None:
    data = zipped(json.dumps(collection({"n": 1})).encode())
    looking.put("a.zip", data)
    source = looking.source("a.zip")
    assert (source.source, source.content_hash) == ("bronze/a.zip", hashlib.sha256(data).hexdigest())
    assert source.opening.path.startswith("silver/")
    assert (source.opening.etag, source.facts["layer"]) != (source.etag, "a")


def test_axes_that_are_swapped_are_told_and_put_right(looking: Looking) -> None:
    looking.write("LINESTRING (1600000 600000, 1600900 600900)", crs="EPSG:32620")
    source = looking.source()
    assert codes(source) == ["swapped_axes", "other_crs"]
    assert source.facts["bounds"] == [600000, 1600000, 600900, 1600900]
    assert source.bbox == pytest.approx([-62.07, 14.47, -62.06, 14.48], abs=0.01)


def test_axes_are_judged_by_the_features_and_not_by_what_the_file_says(looking: Looking) -> None:
    for said in ([178, -18, 179, -17], [0, 0, float("inf"), 0]):
        looking.put("a.parquet", geoparquet(shapely.to_wkb(shapely.LineString([(-18, 178), (-17, 179)])), bbox=said))
        source = looking.source("a.parquet")
        assert (source.opening.is_swapped, codes(source)) == (True, ["swapped_axes"])
        assert source.bbox == [178, -18, 179, -17]


@pytest.mark.parametrize(("crs", "x"), [("EPSG:4326", 500), ("EPSG:32620", 1e12), ("EPSG:3857", float("inf"))])
def test_what_lies_nowhere_is_rejected_with_what_is_known(looking: Looking, crs: str, x: float) -> None:
    looking.put("a.csv", f"x,y\n{x},{x}\n".encode())
    report = looking.rejection("a.csv", source_crs=crs)
    assert [each.code for each in report.findings] == ["absurd_bounds"]
    assert report.facts["feature_count"] == 1


@pytest.mark.parametrize("shape", [None, {"type": "Point", "coordinates": []}])
def test_features_without_a_place_alone_are_rejected(looking: Looking, shape: Any) -> None:
    looking.put("a.geojson", {"type": "Feature", "properties": {}, "geometry": shape})
    assert [each.code for each in looking.rejection("a.geojson").findings] == ["no_features"]


def test_vertices_that_are_nowhere_are_left_out_without_a_word(looking: Looking) -> None:
    whole, broken = (struct.pack("<BII6d", 1, 2, 3, 0, 0, x, 1, 2, 2) for x in (1, float("nan")))
    looking.put("a.parquet", geoparquet(whole, broken))
    source = looking.source("a.parquet")
    assert (source.feature_count, source.bbox, codes(source)) == (2, [0, 0, 2, 2], ["invalid_geometries"])


def test_progress_has_one_scale(looking: Looking) -> None:
    looking.write(SQUARE, SQUARE)
    looking.validate()
    percents = [each["percent"] for each in looking.told]
    assert percents == sorted(percents)
    assert (percents[0], percents[-1]) == (95, 100)
    looking.told.clear()
    looking.put("a.zip", zipped(json.dumps(collection({"n": 1})).encode()))
    looking.validate("a.zip")
    assert [each["percent"] for each in looking.told if "percent" in each] == [
        100
    ]  # before, nobody knows how much it is


def test_it_ends_when_nobody_waits(looking: Looking) -> None:
    looking.write(SQUARE)
    looking.signals.cancelled = True
    result = looking.validate()
    assert (result.error_message, result.retryable, looking.told) == ("cancelled", False, [])


def test_heights_do_not_make_another_crs(looking: Looking) -> None:
    looking.write("POINT Z (1 2 3)", crs="EPSG:4979")
    source = looking.source()
    assert (source.opening.crs, codes(source)) == ("EPSG:4979", [])
