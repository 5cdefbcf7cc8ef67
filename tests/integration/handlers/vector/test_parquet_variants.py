"""Parquet files as others write them: native encodings, Parquet's and GeoArrow's types, and old versions."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely
from geoarrow.rust.io import GeoParquetWriter
from geoarrow.rust.io.enums import GeoParquetEncoding
from pyproj import CRS
from tests.integration.handlers.vector.sources import Desk

from graticule.handlers.findings import Rejected
from graticule.handlers.vector.examining.scanning import Scan
from graticule.handlers.vector.sources import reading
from graticule.storage.blocking import BlockingStorage
from graticule.storage.local import LocalStorage

FILE = "bronze/a.parquet"
UTM = CRS("EPSG:32620")
HOLE = shapely.box(6, 6, 7, 7)
POINTS = [shapely.Point(n, n + 1) for n in range(3)]
SHAPES: dict[str, list[Any]] = {
    "point": POINTS,
    "linestring": [shapely.LineString([(0, n), (1, 1), (2, 3)]) for n in range(3)],
    "polygon": [shapely.box(0, 0, 9, 9), shapely.box(0, 0, 9, 9).difference(HOLE)],
    "multipoint": [shapely.MultiPoint([(1, 2), (3, 4)]), shapely.MultiPoint([(5, 6)])],
    "multilinestring": [shapely.MultiLineString([[(0, 0), (1, 1)], [(2, 2), (3, 3), (4, 5)]])],
    "multipolygon": [shapely.box(0, 0, 1, 1).union(shapely.box(5, 5, 9, 9).difference(HOLE))],
}


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    (tmp_path / "bronze").mkdir()
    return Desk(tmp_path)


def native(shapes: list[Any], *, is_interleaved: bool = False) -> pa.Array:
    _, coordinates, offsets = shapely.to_ragged_array(np.array(shapes))
    if is_interleaved:
        values = pa.FixedSizeListArray.from_arrays(pa.array(coordinates.ravel()), 2)
    else:
        values = pa.StructArray.from_arrays([pa.array(column) for column in coordinates.T], names=["x", "y"])
    for each in offsets:
        values = pa.ListArray.from_arrays(pa.array(each.astype(np.int32)), values)
    return values


def write(desk: Desk, column: Any, geo: dict[str, Any] | None = None, **options: Any) -> None:
    table = pa.table({"n": range(len(column)), "g": column})
    if geo is not None:
        table = table.replace_schema_metadata({"geo": json.dumps(geo), **options.pop("more", {})})
    pq.write_table(table, desk.folder / FILE, **options)


def described(version: str | None = "1.1.0", **column: Any) -> dict[str, Any]:
    columns = {"g": {"encoding": "WKB", "geometry_types": [], **column}}
    return {"primary_column": "g", "columns": columns} | ({} if version is None else {"version": version})


def texts(shapes: list[Any]) -> list[str]:
    return [shapely.to_wkt(shape) for shape in shapes]


def read(desk: Desk, **options: str) -> list[str]:
    return [shapely.to_wkt(shapely.from_wkt(row["wkt"])) for row in desk.rows(FILE, **options)]


@pytest.mark.parametrize("is_interleaved", [False, True])
@pytest.mark.parametrize("encoding", SHAPES)
def test_native_encodings_are_read(desk: Desk, encoding: str, is_interleaved: bool) -> None:
    write(desk, native(SHAPES[encoding], is_interleaved=is_interleaved), described(encoding=encoding))
    assert desk.open(FILE).crs == "EPSG:4326"
    assert read(desk) == texts(SHAPES[encoding])


@pytest.mark.parametrize("encoding", SHAPES)
@pytest.mark.parametrize("written_as", list(GeoParquetEncoding))
def test_what_geoarrow_writes_is_read(desk: Desk, encoding: str, written_as: Any) -> None:
    about = json.dumps({"crs": UTM.to_json_dict()})
    marks = {"ARROW:extension:name": f"geoarrow.{encoding}", "ARROW:extension:metadata": about}
    column = native(SHAPES[encoding], is_interleaved=True)
    schema = pa.schema([pa.field("n", pa.int64()), pa.field("g", _named_xy(column.type), metadata=marks)])
    table = pa.table([pa.array(range(len(column))), column.cast(_named_xy(column.type))], schema=schema)
    with GeoParquetWriter(str(desk.folder / FILE), table.schema, encoding=written_as) as writer:
        writer.write_table(table)
    assert desk.open(FILE).crs == "EPSG:32620"
    assert read(desk) == texts(SHAPES[encoding])


def _named_xy(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(pa.field("xy", pa.float64(), nullable=False), 2)
    return pa.list_(pa.field("item", _named_xy(kind.value_type), nullable=False))


def test_wkt_is_read_also_with_curves(desk: Desk) -> None:
    write(desk, pa.array(["POINT (1 2)", None, "CIRCULARSTRING (0 0, 1 1, 2 0)"]), described(encoding="WKT"))
    rows = desk.rows(FILE)
    assert [row["wkt"] and row["wkt"].split(" ")[0] for row in rows] == ["POINT", None, "LINESTRING"]


@pytest.mark.parametrize("bad", [0, 30])
def test_wkt_that_cannot_be_read_is_named_by_the_number_of_its_feature(desk: Desk, bad: int) -> None:
    values = ["POINT (1 2)"] * 40
    values[bad] = "POINT (1 2"
    write(desk, pa.array(values), described(encoding="WKT"))
    with pytest.raises(Rejected, match=f"Feature {bad + 1} has a value that is not WKT"):
        desk.rows(FILE)


@pytest.mark.parametrize("version", ["0.1.0", "0.2.0", "0.3.0", "0.4.0", None])
def test_old_versions_have_their_crs_as_wkt(desk: Desk, version: str | None) -> None:
    geo = described(version, crs=UTM.to_wkt())
    if version == "0.1.0":
        geo["schema_version"] = geo.pop("version")
    geo["columns"]["g"]["geometry_type"] = geo["columns"]["g"].pop("geometry_types") and "Point"
    write(desk, shapely.to_wkb(POINTS), geo)
    assert desk.open(FILE).crs == "EPSG:32620"
    assert read(desk) == texts(POINTS)


class Wkb(pa.ExtensionType):  # type: ignore[misc]
    """What GeoArrow calls WKB: Arrow writes it as Parquet's own type."""

    def __init__(self, about: str) -> None:
        self._about = about
        super().__init__(pa.binary(), "geoarrow.wkb")

    def __arrow_ext_serialize__(self) -> bytes:
        return self._about.encode()

    @classmethod
    def __arrow_ext_deserialize__(cls, _: pa.DataType, about: bytes) -> "Wkb":
        return cls(about.decode())


@contextlib.contextmanager
def registered(kind: pa.ExtensionType) -> Iterator[None]:
    pa.register_extension_type(kind)
    try:
        yield
    finally:
        pa.unregister_extension_type(kind.extension_name)


def geometry_column(about: dict[str, Any]) -> pa.Array:
    values = pa.array(shapely.to_wkb(POINTS), pa.binary())
    return pa.ExtensionArray.from_storage(Wkb(json.dumps(about)), values)


@pytest.mark.parametrize(
    ("crs", "found"),
    [
        ("EPSG:32620", "EPSG:32620"),
        (UTM.to_json_dict(), "EPSG:32620"),
        (UTM.to_wkt(), "EPSG:32620"),
        ("srid:5070", "EPSG:5070"),
        ("projjson:some_key", "EPSG:32620"),
        ("OGC:CRS84", "EPSG:4326"),
    ],
)
def test_geometry_columns_of_parquet_are_read(desk: Desk, crs: Any, found: str) -> None:
    column = geometry_column({"crs": crs})
    with registered(column.type):
        table = pa.table({"n": range(3), "g": column})
        more = {"some_key": json.dumps(UTM.to_json_dict())}
        has_key = str(crs).startswith("projjson")  # Arrow writes it only beside its own schema
        pq.write_table(table.replace_schema_metadata(more), desk.folder / FILE, store_schema=has_key)
    assert pq.ParquetFile(desk.folder / FILE).schema.column(1).logical_type.type == "GEOMETRY"
    assert desk.open(FILE).crs == found
    assert read(desk) == texts(POINTS)


@pytest.mark.parametrize("is_marked", [False, True])
def test_edges_on_the_globe_are_told(desk: Desk, is_marked: bool) -> None:
    if is_marked:
        write(desk, shapely.to_wkb(POINTS), described(edges="spherical"))
    else:
        column = geometry_column({"crs": "OGC:CRS84", "edges": "spherical"})
        with registered(column.type):
            pq.write_table(pa.table({"n": range(3), "g": column}), desk.folder / FILE, store_schema=False)
        assert pq.ParquetFile(desk.folder / FILE).schema.column(1).logical_type.type == "GEOGRAPHY"
    desk.open(FILE)
    assert desk.found == ["curved_edges"]


@pytest.mark.parametrize("encoding", ["point", "wkb", "wkt"])
def test_columns_of_geoarrow_are_read_without_more(desk: Desk, encoding: str) -> None:
    columns = {"point": native(POINTS), "wkb": pa.array(shapely.to_wkb(POINTS)), "wkt": pa.array(texts(POINTS))}
    marks = {"ARROW:extension:name": f"geoarrow.{encoding}", "ARROW:extension:metadata": '{"crs": "EPSG:32620"}'}
    schema = pa.schema([pa.field("g", columns[encoding].type, metadata=marks)])
    pq.write_table(pa.table([columns[encoding]], schema=schema), desk.folder / FILE)
    assert desk.open(FILE).crs == "EPSG:32620"
    assert read(desk) == texts(POINTS)
    schema = pa.schema([schema.field(0).with_metadata({"ARROW:extension:name": f"geoarrow.{encoding}"})])
    pq.write_table(pa.table([columns[encoding]], schema=schema), desk.folder / FILE)
    assert desk.refusal(FILE) == "no_crs"


@pytest.mark.parametrize(
    ("geo", "code"),
    [
        (described(encoding="geoarrow.box"), "unsupported_version"),
        (described(encoding="polygon"), "corrupt"),
        (described(encoding="wkt"), "corrupt"),
        ({"version": "7.1.0", "layers": []}, "unsupported_version"),
        ({"version": "1.1.0", "columns": []}, "corrupt"),
        ([], "corrupt"),
        (described(crs="projjson:missing"), "unknown_source_crs"),
        (described(crs="{"), "unknown_source_crs"),
        (described(crs="/etc/passwd"), "no_crs"),
        (described(crs="+proj=longlat +nadgrids=/tmp/x"), "unknown_source_crs"),
        (described(crs="srid:0"), "no_crs"),
    ],
)
def test_what_cannot_be_read_is_refused_for_what_it_is(desk: Desk, geo: Any, code: str) -> None:
    write(desk, shapely.to_wkb(POINTS), geo)
    assert desk.refusal(FILE) == code


def scanned(desk: Desk) -> Scan:
    with (
        BlockingStorage(LocalStorage(desk.folder)) as storage,
        reading.open_layer(storage, desk.open(FILE)) as layer,
    ):
        scan = Scan(layer.fields)
        for batch in layer.batches():
            scan.add(batch.attributes, batch.wkb, batch.curved)
    return scan


@pytest.mark.parametrize("encoding", SHAPES)
def test_a_broken_native_file_is_refused(desk: Desk, encoding: str) -> None:
    write(desk, native(SHAPES[encoding] * 50), described(encoding=encoding), compression="none", use_dictionary=False)
    whole = (desk.folder / FILE).read_bytes()
    for place in range(4, len(whole) // 2, max(1, len(whole) // 40)):
        desk.put(FILE, whole[:place] + b"\xff\x7f\xff" + whole[place + 3 :])
        with contextlib.suppress(Rejected):
            assert scanned(desk).count == 50 * len(SHAPES[encoding])


def repeated(desk: Desk, rows: int, **values: Any) -> None:
    """Write rows with the same values, each of which is in the file once."""
    point = shapely.to_wkb(shapely.Point(1, 1))
    columns = {"g": point, **values}
    places = pa.array(np.zeros(rows, np.int32))
    table = pa.table({name: pa.DictionaryArray.from_arrays(places, pa.array([each])) for name, each in columns.items()})
    plain = pa.table({name: column.cast(column.type.value_type) for name, column in zip(columns, table, strict=True)})
    metadata = {"geo": json.dumps(described())}
    pq.write_table(plain.replace_schema_metadata(metadata), desk.folder / FILE, compression="zstd")


@pytest.mark.parametrize(("rows", "text"), [(3_000, "x" * 100_000), (2_500_000, "")], ids=["values", "rows"])
def test_a_small_file_that_becomes_a_huge_table_is_rejected(desk: Desk, rows: int, text: str) -> None:
    """Archives are held to the same measure: 369 KB became a database of 2.4 GB."""
    repeated(desk, rows, **({"t": text} if text else {}))
    assert (desk.folder / FILE).stat().st_size < 1_000_000
    with pytest.raises(Rejected) as told:
        scanned(desk)
    assert told.value.findings[0].code == "decompression_bomb"


def test_values_that_repeat_are_read_up_to_the_measure(desk: Desk) -> None:
    repeated(desk, 2_000, t="x" * 100_000)
    assert scanned(desk).count == 2_000
