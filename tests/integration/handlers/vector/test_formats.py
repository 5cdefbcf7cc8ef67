"""Each format, opened and read: encodings, tables of texts, date-times, axes, layers and parts."""

import json
import sqlite3
from contextlib import closing
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyogrio.raw
import pytest
import shapely
from pyproj import CRS
from tests.integration.handlers.vector.sources import POINT, Desk, archive, features, refusal, shapefile

from graticule.handlers.findings import Rejected
from graticule.handlers.vector.described import Chunk
from graticule.handlers.vector.sources import csv_table, encodings, geopackage, reading, source
from graticule.handlers.vector.sources import geoparquet as geoparquet_source
from graticule.handlers.vector.sources.placing import layer_crs, locate
from graticule.handlers.vector.sources.source import Kind
from graticule.storage.blocking import BlockingStorage
from graticule.storage.local import LocalStorage

KML = """<?xml version="1.0"?><!-- a -->
<kml xmlns="http://www.opengis.net/kml/2.2"><Document>
<Schema name="s" id="s"><SimpleField name="n" type="int"/><SimpleField name="icon2" type="bool"/></Schema>
<Folder><name>Full</name><Placemark><name>A</name><TimeStamp><when>2020-01-01T00:00:00+02:00</when></TimeStamp>
<ExtendedData><SchemaData schemaUrl="#s"><SimpleData name="n">5</SimpleData><SimpleData name="icon2">1</SimpleData>
</SchemaData></ExtendedData><Point><coordinates>1,2,3</coordinates></Point></Placemark></Folder>
<Folder><name>Empty</name></Folder>
<NetworkLink><Link><href>http://127.0.0.1:9/x.kml</href></Link></NetworkLink></Document></kml>"""
ZIP = "bronze/a.zip"
WINTER = datetime(2020, 1, 1, tzinfo=UTC)
BEFORE = datetime(2019, 12, 31, 22, tzinfo=UTC)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def lines(mark: str = "", indent: int | None = None) -> str:
    listed = [{"type": "Feature", "properties": {"n": n}, "geometry": POINT} for n in (1, 2)]
    return "".join(f"{mark}{json.dumps(each, indent=indent)}\n" for each in listed)


def write(file: Path, fields: dict[str, Any], shapes: list[Any], crs: str | None = "EPSG:4326", **more: Any) -> None:
    """Write a GeoPackage; without an index, for its triggers need functions of GDAL's."""
    file.parent.mkdir(parents=True, exist_ok=True)
    pyogrio.raw.write(
        file,
        shapely.to_wkb(np.array(shapes)),
        list(fields.values()),
        list(fields),
        crs=crs,
        driver="GPKG",
        geometry_type="Point",
        layer_options={"SPATIAL_INDEX": "NO"},
        **{"layer": "parcels", **more},
    )


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("a.geojson", features({"n": 1}, {"n": 2}), Kind.GEOJSON),
        ("a.geojson", lines(), Kind.GEOJSON_LINES),
        ("a.json", lines("\x1e", indent=1), Kind.GEOJSON_LINES),
        ("a.csv", "n,lon,lat\n1,1,2\n2,1,2\n", Kind.CSV),
        ("a.txt", "\ufeffn;WKT\n1;POINT (1 2)\n2;POINT (1 2)\n", Kind.CSV),
        ("a.whatever", "\ufeff" + features({"n": 1}, {"n": 2}), Kind.GEOJSON),
    ],
)
def test_a_format_is_known_by_its_bytes(desk: Desk, name: str, text: str, kind: Kind) -> None:
    desk.put(f"bronze/{name}", text)
    opened = desk.open(f"bronze/{name}")
    assert (opened.kind, opened.layer, opened.crs, desk.found) == (kind, "a", "EPSG:4326", [])
    read = desk.read(opened).select(["n", "wkt"])
    assert read.to_pylist() == [{"n": n, "wkt": "POINT (1 2)"} for n in (1, 2)]
    assert desk.open(f"bronze/{name}", layer="a") == opened
    assert desk.refusal(f"bronze/{name}", layer="b") == "unknown_layer"


def test_a_line_may_be_long(desk: Desk) -> None:
    desk.put("bronze/a.geojson", lines().replace('"n": 1', f'"n": 1, "t": "{"x" * 100_000}"'))
    assert [row["n"] for row in desk.rows("bronze/a.geojson")] == [1, 2]


@pytest.mark.parametrize("text", ["a,b\n1,2\n", "\x01\x02,lon,lat\n", "<xml/>", "{}"])
def test_what_is_no_format_is_refused(desk: Desk, text: str) -> None:
    desk.put("bronze/a.dat", text)
    assert desk.refusal("bronze/a.dat") == "not_a_vector"
    desk.put("bronze/a.csv", text)
    assert desk.refusal("bronze/a.csv") in {"not_a_vector", "no_coordinates"}


# Tables of texts


def test_types_of_a_table_are_those_of_all_its_rows(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_table, "BATCH_ROWS", 1)
    first = (
        '7,1.5,00123,9223372036854775807,true,2020-02-03,12:30:05,2020-01-01 00:00,2020-01-01T00:00+02:00,"a\n""b""",5'
    )
    second = "8,2,1,1,false,2020-02-04,12:31,2020-01-02T00:00:00.5,2020-01-01T00:00:00Z,,x"
    names = "id,LON,code,big,flag,day,at,naive,zoned,name,Lat"
    desk.put("bronze/a.csv", f"{names}\n{first}\n{second.replace(',x', ',6')}\n")
    read = desk.read(desk.open("bronze/a.csv"))
    assert read.to_pylist()[0] == {
        "id": 7,
        "LON": 1.5,
        "code": "00123",
        "big": 9223372036854775807,
        "flag": True,
        "day": date(2020, 2, 3),
        "at": time(12, 30, 5),
        "naive": datetime(2020, 1, 1),  # noqa: DTZ001 - it has none
        "zoned": BEFORE,
        "name": 'a\n"b"',
        "Lat": 5,
        "wkt": "POINT (1.5 5)",
    }
    assert read.to_pylist()[1]["zoned"] == WINTER
    desk.put("bronze/b.csv", f"{names}\n{first}\n{second}\n")
    assert refusal(lambda: desk.rows("bronze/b.csv")) == "unreadable_row"


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1", "99999999999999999999"], "string"),
        (["1", "0.5"], "double"),
        (["1", "007"], "string"),
        (["2020-02-31"], "string"),
        (["2020-01-01T00:00Z", "2020-01-01T00:00"], "string"),
        (["", ""], "string"),
        (["1", ""], "int64"),
    ],
)
def test_a_value_that_differs_makes_texts(desk: Desk, values: list[str], kind: str) -> None:
    desk.put("bronze/a.csv", "v,lon,lat\n" + "".join(f"{value},1,2\n" for value in values))
    read = desk.read(desk.open("bronze/a.csv"))
    assert str(read.schema.field("v").type) == kind
    assert [str(value) for value in read["v"].drop_null().to_pylist()] == [
        each if kind != "double" else str(float(each)) for each in values if each
    ]


def test_a_table_of_another_encoding_is_read(desk: Desk) -> None:
    text = "name;lon;lat\nGarçon;1,5;2\n"
    desk.put("bronze/a.csv", text.encode("cp1252"))
    assert desk.rows("bronze/a.csv")[0] == {"name": "Garçon", "lon": "1,5", "lat": 2, "wkt": "POINT (1.5 2)"}
    assert desk.found == ["other_encoding"]
    desk.put("bronze/b.tsv", text.replace(";", "\t").encode("utf-16"))
    assert desk.rows("bronze/b.tsv")[0]["name"] == "Garçon"
    assert desk.found == []
    desk.put("bronze/c.csv", text.replace("ç", "ж").encode("koi8-r"))
    assert desk.rows("bronze/c.csv", encoding="KOI8-R")[0]["name"] == "Garжon"
    assert desk.refusal("bronze/c.csv", encoding="utf-8") == "unknown_encoding"
    assert desk.refusal("bronze/c.csv", encoding="no such") == "unknown_encoding"


@pytest.mark.parametrize("name", ["rot13", "punycode", "idna", "unicode_escape", "raw_unicode_escape", "utf_7", "hz"])
def test_encodings_that_texts_are_not_in_are_refused(desk: Desk, tmp_path: Path, name: str) -> None:
    desk.put("bronze/a.csv", "n,lon,lat\n1,1,2\n")
    assert desk.refusal("bronze/a.csv", encoding=name) == "unknown_encoding"
    pack(desk, shapefile(tmp_path / "s", ["a"]), cpg=name.encode())
    assert desk.open(ZIP).encoding != name


@pytest.mark.parametrize(
    "name",
    ["Latin1", "ISO-8859-15", "windows-1251", "IBM850", "macintosh", "gb18030", "big5", "sjis", "EUC-KR", "UTF-16LE"],
)
def test_encodings_that_texts_are_in_are_known(name: str) -> None:
    assert encodings.encoding_of(name) is not None


def test_a_header_may_come_after_empty_lines(desk: Desk) -> None:
    desk.put("bronze/a.csv", "\n\r\nn,lon,lat\n1,1,2\n\n2,1,2\n")
    assert [row["n"] for row in desk.rows("bronze/a.csv")] == [1, 2]


@pytest.mark.parametrize(
    ("name", "text", "wkt"),
    [
        ("a.tsv", "wkt\nLINESTRING (30 10, 10 30, 40 40)\n", "LINESTRING (30 10, 10 30, 40 40)"),
        ("a.csv", "wkt\nLINESTRING (30 10, 10 30, 40 40)\n", "LINESTRING (30 10, 10 30, 40 40)"),
        ("a.tsv", "n\twkt\n1\tLINESTRING (3 1, 1 3)\n2\tPOINT (1 2)\n", "LINESTRING (3 1, 1 3)"),
        ("a.txt", "n|wkt|t\n1|LINESTRING (3 1, 1 3)|a;b\n", "LINESTRING (3 1, 1 3)"),
        ("a.csv", "n;wkt\n1;LINESTRING (3 1, 1 3)\n", "LINESTRING (3 1, 1 3)"),
        ("a.csv", 'n,wkt\n"1,5","LINESTRING (3 1, 1 3)"\n', "LINESTRING (3 1, 1 3)"),
        ("a.tsv", "lon,lat\n1,2\n", "POINT (1 2)"),
        ("a.csv", "lon\tlat\tt\n1\t2\ta,b,c,d,e\n", "POINT (1 2)"),
        ("a.csv", "lon;lat;stra\xdfe\n1,5;2,5;x,y\n".encode("cp1252"), "POINT (1.5 2.5)"),
        ("a.csv", 'a;b;lon,lat\n"x\n,,,",1\n', None),
        ("a.csv", 't,lon,lat\n"a ""b"", \n;;;;;;",1,2\n', "POINT (1 2)"),
        ("a.csv", "wkt\nPOINT Z (1 2 3)\n", "POINT Z (1 2 3)"),
        ("a.csv", "wkt\nPOINT M (1 2 3)\n", "POINT M (1 2 3)"),
    ],
)
def test_the_dialect_of_a_table_is_found(desk: Desk, name: str, text: str | bytes, wkt: str | None) -> None:
    desk.put(f"bronze/{name}", text)
    if wkt is None:
        assert desk.refusal(f"bronze/{name}") in {"no_coordinates", "unreadable_row"}
    else:
        assert desk.rows(f"bronze/{name}")[0]["wkt"] == wkt


def test_the_option_decides_on_the_delimiter(desk: Desk) -> None:
    desk.put("bronze/a.csv", "id;form,x\n1;LINESTRING (3 1, 1 3)\n")
    assert desk.refusal("bronze/a.csv") == "no_coordinates"
    assert desk.rows("bronze/a.csv", wkt_column="form,x")[0]["wkt"] == "LINESTRING (3 1, 1 3)"


def test_curves_in_a_table_become_lines(desk: Desk) -> None:
    desk.put("bronze/a.csv", 'wkt\n"POINT (1 2)"\n"CIRCULARSTRING (0 0, 1 1, 2 0)"\n"POLYGON ((0 0, 1 0, 1 1))"\n')
    opened = desk.open("bronze/a.csv")
    assert opened.crs == "EPSG:4326"
    with BlockingStorage(LocalStorage(desk.folder)) as storage, reading.open_layer(storage, opened) as layer:
        (batch,) = layer.batches()
    assert batch.curved.tolist() == [1]


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("lon,lat\n1,2\n1,2,3\n", "row 3"),
        ("lon,lat\n1,2\n1,2\n1,north\n", "feature 3, column lat"),
        ('wkt\n"POINT (1 2)"\n"POINT (1 north)"\n', "feature 2, column wkt"),
    ],
)
def test_a_rejection_names_the_row(desk: Desk, text: str, where: str) -> None:
    desk.put("bronze/a.csv", text)
    with pytest.raises(Rejected) as told:
        desk.rows("bronze/a.csv")
    (finding,) = told.value.findings
    assert (finding.code, finding.where) == ("unreadable_row", where)
    assert "wkt_column" in finding.how_to_fix


def test_an_srid_before_wkt_is_its_crs(desk: Desk) -> None:
    text = "n;wkt\n1,SRID=32620;POINT(600000 1600000)\n2,srid=32620; POINT(600001 1600000)\n3,\n".replace("n;", "n,")
    desk.put("bronze/a.csv", text)
    opened = desk.open("bronze/a.csv")
    assert opened.crs == "EPSG:32620"
    assert desk.read(opened)["wkt"].to_pylist() == ["POINT (600000 1600000)", "POINT (600001 1600000)", None]
    desk.put("bronze/a.csv", text.replace("srid=32620", "SRID=4326"))
    assert desk.refusal("bronze/a.csv") == "unknown_source_crs"
    assert desk.open("bronze/a.csv", source_crs="EPSG:32620").crs == "EPSG:32620"
    desk.put("bronze/a.csv", text.replace("32620;", "0;"))
    assert desk.refusal("bronze/a.csv") == "no_crs"


def test_coordinates_are_found_or_named(desk: Desk) -> None:
    desk.put("bronze/a.csv", "e,n\n600000,1600000\n")
    assert desk.refusal("bronze/a.csv") == "no_coordinates"
    assert desk.refusal("bronze/a.csv", x_column="e") == "no_coordinates"
    assert desk.refusal("bronze/a.csv", x_column="e", y_column="x") == "no_coordinates"
    assert desk.refusal("bronze/a.csv", x_column="e", y_column="n") == "no_crs"
    named = {"x_column": "e", "y_column": "n", "source_crs": "EPSG:32620"}
    assert desk.rows("bronze/a.csv", **named) == [{"e": 600000, "n": 1600000, "wkt": "POINT (600000 1600000)"}]
    desk.put("bronze/b.csv", 'geom,shape,x,y\nno,"POINT (1 2)",5,6\n,,,\n')
    rows = desk.rows("bronze/b.csv")
    assert [row["wkt"] for row in rows] == ["POINT (1 2)", None]
    assert set(rows[0]) == {"geom", "x", "y", "wkt"}
    assert desk.rows("bronze/b.csv", x_column="x", y_column="y", source_crs="EPSG:4326")[1]["wkt"] is None


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("lon,lat\n1,2,3\n", "unreadable_row"),
        ("lon,lat\none,2\n", "unreadable_row"),
        ("wkt\nPOINT (1 2)\nPOINT (1\n", "unreadable_row"),
        ("wkt\nPOINT (600000 1600000)\n", "no_crs"),
        ("wkt\n" + "GEOMETRYCOLLECTION(" * 50_000, "unsupported_geometry"),
        (f'wkt\n"{"GEOMETRYCOLLECTION(" * 50_000}POINT(1 2){")" * 50_000}"\n', "unsupported_geometry"),
        ('wkt\n"TIN (((0 0, 1 1, 2 0, 0 0)))"\n', "unsupported_geometry"),
        ('lon,lat,t\n1,2,"' + "x" * 17_000_000, "too_large_feature"),
    ],
)
def test_a_table_that_cannot_be_read_is_refused(desk: Desk, text: str, code: str) -> None:
    desk.put("bronze/a.csv", text)
    assert refusal(lambda: desk.rows("bronze/a.csv")) == code


def test_a_cell_without_a_value_is_a_feature_without_a_place(desk: Desk) -> None:
    desk.put("bronze/a.csv", 'n,wkt\n1,""\n2,POINT (1 2)\n3," "\n4,\n')
    assert [row["wkt"] for row in desk.rows("bronze/a.csv")] == [None, "POINT (1 2)", None, None]


def test_a_geometry_of_many_rings_is_not_nested(desk: Desk) -> None:
    shape = shapely.MultiPolygon([shapely.box(place, 0, place + 0.5, 1) for place in range(150)])
    desk.put("bronze/a.csv", f'wkt\n"{shape.wkt}"\n')
    assert shapely.from_wkt(desk.rows("bronze/a.csv")[0]["wkt"]).equals(shape)


def test_a_row_may_be_long(desk: Desk) -> None:
    desk.put("bronze/a.csv", f"lon,lat,t\n1,2,{'x' * 3_000_000}\n")
    assert len(desk.rows("bronze/a.csv")[0]["t"]) == 3_000_000


def test_what_lies_beside_a_table_is_not_read(desk: Desk) -> None:
    desk.put("bronze/a.csv", "x,y\n1,2\n")
    desk.put("bronze/a.prj", CRS("EPSG:32620").to_wkt("WKT1_ESRI"))
    desk.put("bronze/a.csvt", '"String","String"')
    desk.put("bronze/a.vrt", '<OGRVRTDataSource><OGRVRTLayer name="a"/></OGRVRTDataSource>')
    assert desk.refusal("bronze/a.csv") == "no_crs"
    assert desk.rows("bronze/a.csv", source_crs="EPSG:4326")[0]["x"] == 1


# Shapefiles


def pack(desk: Desk, parts: dict[str, bytes], *left_out: str, **more: bytes) -> None:
    given = {**parts, **{f".{ending}": data for ending, data in more.items()}}
    desk.put(ZIP, archive({f"DATA/ROADS{end.upper()}": given[end] for end in given if end not in left_out}))


def language(parts: dict[str, bytes], number: int) -> bytes:
    return parts[".dbf"][:29] + bytes([number]) + parts[".dbf"][30:]


def test_a_shapefile_is_read(desk: Desk, tmp_path: Path) -> None:
    parts = shapefile(tmp_path / "s", ["a", "b"])
    pack(desk, parts)
    opened = desk.open(ZIP)
    assert (opened.kind, opened.layer, opened.crs) == (Kind.SHAPEFILE, "ROADS", "EPSG:32620")
    assert desk.read(opened).to_pylist()[1] == {"name": "b", "n": 1, "wkt": "POINT (600001 1600000)"}
    assert desk.open(ZIP, layer="ROADS").layer == "ROADS"
    assert desk.refusal(ZIP, layer="roads") == "unknown_layer"
    desk.put("bronze/a.shp", parts[".shp"])
    assert desk.refusal("bronze/a.shp") == "missing_part"


def test_parts_of_a_shapefile_that_are_missing(desk: Desk, tmp_path: Path) -> None:
    parts = shapefile(tmp_path / "s", ["a", "b", "c"])
    pack(desk, parts, ".dbf")
    assert desk.refusal(ZIP) == "missing_part"
    pack(desk, parts, ".prj")
    assert desk.refusal(ZIP) == "no_crs"
    assert desk.open(ZIP, source_crs="EPSG:2970").crs == "EPSG:2970"
    pack(desk, parts, ".shx")
    assert [row["name"] for row in desk.rows(ZIP)] == ["a", "b", "c"]
    assert (desk.folder / "silver/89abcdef/source/0-1-layer.shx").read_bytes() == parts[".shx"]


@pytest.mark.parametrize(
    ("written", "number", "cpg", "found"),
    [
        ("UTF-8", 0, b"UTF-8", []),
        ("UTF-8", 0, None, []),
        ("UTF-8", 0x57, None, ["other_encoding"]),
        ("CP1252", 0x57, None, []),
        ("CP1252", 0x03, b"", []),
        ("CP1252", 0, None, ["other_encoding"]),
        ("CP1252", 0, b"UTF-8", ["other_encoding"]),
        ("CP850", 0, b"850", []),
        ("CP850", 0x02, None, []),
        ("ISO-8859-1", 0, b"ISO 88591", []),
    ],
)
def test_the_encoding_of_a_shapefile(
    desk: Desk, written: str, number: int, cpg: bytes | None, found: list[str]
) -> None:
    parts = shapefile(desk.folder / "s", ["Garçon é", "b"], written)
    parts.pop(".cpg", None)
    pack(desk, parts, dbf=language(parts, number), **({} if cpg is None else {"cpg": cpg}))
    assert [row["name"] for row in desk.rows(ZIP)] == ["Garçon é", "b"]
    assert desk.found == found


def test_the_encoding_of_a_shapefile_can_be_named(desk: Desk, tmp_path: Path) -> None:
    pack(desk, shapefile(tmp_path / "s", ["ж"], "KOI8-R"), ".cpg")
    assert desk.rows(ZIP, encoding="koi8_r")[0]["name"] == "ж"
    assert desk.refusal(ZIP, encoding="nothing") == "unknown_encoding"


def test_a_character_that_was_cut_is_left_out(desk: Desk, tmp_path: Path) -> None:
    parts = shapefile(tmp_path / "s", ["x" * 80], "UTF-8")
    pack(desk, parts, dbf=parts[".dbf"].replace(b"x" * 80, b"x" * 79 + "é".encode()[:1]))
    assert desk.rows(ZIP)[0]["name"] == "x" * 79


def test_a_shapefile_is_divided_unless_records_are_deleted(desk: Desk, tmp_path: Path) -> None:
    parts = shapefile(tmp_path / "s", list("abcde"))
    pack(desk, parts)
    opened = desk.open(ZIP)
    found = desk.ranges(opened, 2)
    assert found == [(0, 2, 2), (2, 4, 2), (4, 5, 1)]
    assert read_parts(desk, opened, found, "name") == [["a", "b"], ["c", "d"], ["e"]]
    header = int.from_bytes(parts[".dbf"][8:10], "little")
    pack(desk, parts, dbf=parts[".dbf"][:header] + b"*" + parts[".dbf"][header + 1 :])
    opened = desk.open(ZIP)
    assert desk.ranges(opened, 2) is None
    assert len(desk.read(opened)) == 4
    with BlockingStorage(LocalStorage(desk.folder)) as storage, reading.open_layer(storage, opened) as layer:
        assert layer.count == 4


def read_parts(desk: Desk, opened: Any, found: list[tuple[int, int, int]], column: str) -> list[list[Any]]:
    chunks = [
        Chunk(index=index, first_fid=1, row_count=count, begin=begin, end=end)
        for index, (begin, end, count) in enumerate(found)
    ]
    return [desk.read(opened, chunk)[column].to_pylist() for chunk in chunks]


# Others


def test_kml_keeps_types_and_follows_nothing(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.put("bronze/a.kml", KML)
    opened = desk.open("bronze/a.kml")
    (row,) = desk.read(opened).to_pylist()
    assert opened.layer == "Full"
    assert {key: row[key] for key in ("Name", "n", "icon2", "timestamp", "wkt")} == {
        "Name": "A",
        "n": 5,
        "icon2": True,
        "timestamp": BEFORE,
        "wkt": "POINT Z (1 2 3)",
    }
    assert set(row) == {"Name", "timestamp", "n", "icon2", "wkt"}  # nothing of what GDAL adds and nobody has
    desk.put(
        "bronze/b.kml", KML.replace("Empty</name>", "Two</name>" + KML.partition("Full</name>")[2].partition("</F")[0])
    )
    assert desk.refusal("bronze/b.kml") == "several_layers"
    assert desk.rows("bronze/b.kml", layer="Two")[0]["n"] == 5
    monkeypatch.setitem(source.MAX_BYTES, Kind.KML, 100)
    assert desk.refusal("bronze/a.kml") == "too_large_file"


@pytest.mark.parametrize(
    "before", ['<!DOCTYPE kml [<!ENTITY a SYSTEM "file:///etc/passwd">]>', "<!-- --><!DOCTYPE kml []><!-- -->"]
)
def test_kml_with_entities_is_refused(desk: Desk, before: str) -> None:
    desk.put("bronze/a.kml", KML.replace("<!-- a -->", before))
    assert desk.refusal("bronze/a.kml") == "not_a_vector"


def test_a_field_of_kml_that_one_feature_has_is_kept(desk: Desk) -> None:
    more = "<Placemark><description>b</description><Point><coordinates>1,2</coordinates></Point></Placemark></Folder>"
    desk.put("bronze/a.kml", KML.replace("</Folder>", more, 1))
    opened = desk.open("bronze/a.kml")
    assert [(row["description"], row["timestamp"]) for row in desk.read(opened).to_pylist()] == [
        (None, BEFORE),
        ("b", None),
    ]
    desk.put("bronze/b.kml", KML.replace("<name>A</name>", ""))
    assert "Name" not in desk.read(desk.open("bronze/b.kml")).column_names


def test_lists_and_objects_of_geojson_keep_their_numbers(desk: Desk) -> None:
    value = [2**53 + 1, 0.1, 1e300, {"a": [2**63 - 1, -0.25, "0.10000000000000001"]}]
    desk.put("bronze/a.geojson", features({"v": value, "w": [2**53 + 1, 0.5]}, {"v": None, "w": [1]}))
    first, second = desk.rows("bronze/a.geojson")
    assert (json.loads(first["v"]), json.loads(first["w"])) == (value, [2**53 + 1, 0.5])
    assert "0.1," in first["v"]
    assert (second["v"], json.loads(second["w"])) == (None, [1])


def test_whole_numbers_beyond_64_bits_do_not_become_others(desk: Desk) -> None:
    desk.put("bronze/a.geojsonl", lines().replace('"n": 2', f'"n": {10**20}'))
    assert refusal(lambda: desk.rows("bronze/a.geojsonl")) == "unfit_value"
    desk.put("bronze/a.geojsonl", lines().replace('"n": 2', f'"n": {2**63 - 2}'))
    assert desk.rows("bronze/a.geojsonl")[1]["n"] == 2**63 - 2


def geoparquet(file: Path, geo: dict[str, Any] | None, **primary: Any) -> None:
    rows = 5
    table = pa.table(
        {
            "n": pa.array(range(rows), pa.int64()),
            "kind": pa.array(["a"] * rows).dictionary_encode(),
            "at": pa.array([datetime(2020, 1, 1, tzinfo=UTC)] * rows, pa.timestamp("us", "Europe/Paris")),
            "bbox": [{"xmin": 0.0}] * rows,
            "other": pa.array([b""] * rows),
            "geometry": pa.array([shapely.to_wkb(shapely.Point(n, n + 1)) for n in range(rows)]),
        }
    )
    described = {"encoding": "WKB", "geometry_types": ["Point"], "covering": {"bbox": {"xmin": ["bbox", "xmin"]}}}
    columns = {"geometry": {**described, **primary}, "other": {"encoding": "WKB"}}
    text = json.dumps({"primary_column": "geometry", "columns": columns} if geo is None else geo)
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table.replace_schema_metadata({"geo": text} if text != "{}" else None), file, row_group_size=2)


def test_geoparquet_is_read(desk: Desk) -> None:
    geoparquet(desk.folder / "bronze/a.parquet", None)
    opened = desk.open("bronze/a.parquet")
    assert (opened.kind, opened.layer, opened.crs) == (Kind.GEOPARQUET, "a", "EPSG:4326")
    assert desk.read(opened).to_pylist()[0] == {"n": 0, "kind": "a", "at": WINTER, "wkt": "POINT (0 1)"}
    assert desk.ranges(opened, 1) == [(0, 1, 2), (1, 2, 2), (2, 3, 1)]
    found = desk.ranges(opened, 4)
    assert found == [(0, 2, 4), (2, 3, 1)]
    assert read_parts(desk, opened, found, "n") == [[0, 1, 2, 3], [4]]
    bounds = [600000, 1600000, 0, 600001, 1600001, 5]
    geoparquet(desk.folder / "bronze/b.parquet", None, crs=CRS("EPSG:32620").to_json_dict(), bbox=bounds)
    assert desk.open("bronze/b.parquet").crs == "EPSG:32620"


@pytest.mark.parametrize(
    ("geo", "primary", "code"),
    [
        ({}, {}, "not_a_vector"),
        ({"primary_column": "geometry"}, {}, "corrupt"),
        ({"primary_column": "n", "columns": {"n": {"encoding": "WKB"}}}, {}, "corrupt"),
        (None, {"encoding": "point"}, "corrupt"),
        (None, {"crs": None}, "no_crs"),
        (None, {"crs": {"type": "nothing"}}, "unknown_source_crs"),
    ],
)
def test_geoparquet_that_cannot_be_read_is_refused(desk: Desk, geo: Any, primary: dict[str, Any], code: str) -> None:
    geoparquet(desk.folder / "bronze/a.parquet", geo, **primary)
    assert desk.refusal("bronze/a.parquet") == code


def test_a_geoparquet_file_that_is_broken_is_refused(desk: Desk) -> None:
    geoparquet(desk.folder / "bronze/a.parquet", None)
    whole = (desk.folder / "bronze/a.parquet").read_bytes()
    for broken in (whole[:-50], whole[:-4], whole[:-300] + b"\xff" * 250 + whole[-50:]):
        desk.put("bronze/b.parquet", broken)
        assert desk.refusal("bronze/b.parquet") == "corrupt"
    desk.put("bronze/b.parquet", whole[:4] + b"\xff" * 200 + whole[204:])
    assert refusal(lambda: desk.rows("bronze/b.parquet")) == "corrupt"


@pytest.mark.parametrize(
    ("names", "primary"),
    [(["n", "n", "geometry"], {}), (["n", "m", "geometry"], {"geometry_types": 5})],
    ids=["names that repeat", "types that are none"],
)
def test_a_geoparquet_file_that_contradicts_itself_is_refused(
    desk: Desk, names: list[str], primary: dict[str, Any]
) -> None:
    point = pa.array([shapely.to_wkb(shapely.Point(1, 2))])
    geo = {"primary_column": "geometry", "columns": {"geometry": {"encoding": "WKB", **primary}}}
    table = pa.table([pa.array([1]), pa.array([2]), point], names).replace_schema_metadata({"geo": json.dumps(geo)})
    (desk.folder / "bronze").mkdir()
    pq.write_table(table, desk.folder / "bronze/a.parquet")
    assert refusal(lambda: desk.rows("bronze/a.parquet")) == "corrupt"


def test_geoparquet_of_many_columns_is_refused_at_once(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    geoparquet(desk.folder / "bronze/a.parquet", None)
    monkeypatch.setattr(geoparquet_source, "MOST_COLUMNS", 5)
    assert desk.refusal("bronze/a.parquet") == "too_many_fields"


def test_geoparquet_is_read_by_the_size_that_values_have(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(geoparquet_source, "BATCH_BYTES", 100_000)
    rows = 2000
    texts = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), ["x" * 1000])
    points = pa.array([shapely.to_wkb(shapely.Point(1, 2))] * rows)
    geo = {"primary_column": "geometry", "columns": {"geometry": {"encoding": "WKB"}}}
    (desk.folder / "bronze").mkdir()
    for values in (texts, texts.dictionary_decode()):
        table = pa.table({"t": values, "geometry": points}).replace_schema_metadata({"geo": json.dumps(geo)})
        pq.write_table(table, desk.folder / "bronze/a.parquet", row_group_size=500)
        opened = desk.open("bronze/a.parquet")
        with BlockingStorage(LocalStorage(desk.folder)) as storage, reading.open_layer(storage, opened) as layer:
            sizes = [len(batch.wkb) for batch in layer.batches()]
        assert sum(sizes) == rows
        assert max(sizes) <= 100


def test_a_geopackage_is_divided_by_its_ids(desk: Desk) -> None:
    file = desk.folder / "bronze/a.gpkg"
    write(file, {"n": np.arange(10)}, [shapely.Point(n, n) for n in range(10)])
    opened = desk.open("bronze/a.gpkg")
    assert desk.ranges(opened, 4) == [(1, 5, 4), (5, 9, 4), (9, 11, 2)]
    with closing(sqlite3.connect(file)) as database:
        database.execute("DROP TRIGGER trigger_delete_feature_count_parcels")
        database.execute("DELETE FROM parcels WHERE fid IN (2, 3, 4)")
        database.execute('ALTER TABLE parcels RENAME COLUMN fid TO "a ""b"" -- c"')
        database.commit()
    opened = desk.open("bronze/a.gpkg")
    found = desk.ranges(opened, 3)
    assert found == [(1, 7, 3), (7, 10, 3), (10, 11, 1)]
    assert read_parts(desk, opened, found, "n") == [[0, 4, 5], [6, 7, 8], [9]]
    assert geopackage.ranges(str(file), "no such", 3) is None


def test_layers_of_a_geopackage_are_chosen(desk: Desk) -> None:
    file = desk.folder / "bronze/a.gpkg"
    for layer in ("one", "two"):
        write(
            file, {"name": np.array([layer], dtype=object)}, [shapely.Point(1, 2)], layer=layer, append=layer == "two"
        )
    assert desk.refusal("bronze/a.gpkg") == "several_layers"
    assert desk.refusal("bronze/a.gpkg", layer="three") == "unknown_layer"
    assert desk.rows("bronze/a.gpkg", layer="two")[0]["name"] == "two"


# Date-times, CRSs and axes


NONE, ZULU, EAST, WEST = (f"2020-01-01T00:00:00{zone}" for zone in ("", "Z", "+02:00", "-03:30"))
NAIVE = datetime(2020, 1, 1)  # noqa: DTZ001 - it has none
LATER = datetime(2020, 1, 1, 3, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("texts", "values"),
    [
        ([ZULU, ZULU], [WINTER, WINTER]),
        ([EAST, EAST], [BEFORE, BEFORE]),
        ([ZULU, EAST], [WINTER, BEFORE]),
        ([EAST, WEST], [BEFORE, LATER]),
        ([NONE, NONE], [NAIVE, NAIVE]),
        ([EAST, NONE], [EAST, NONE]),
    ],
)
def test_date_times_keep_their_zones(desk: Desk, tmp_path: Path, texts: list[str], values: list[Any]) -> None:
    desk.put("bronze/a.geojson", features(*({"at": text} for text in texts)))
    desk.put("bronze/a.csv", "at,lon,lat\n" + "".join(f"{text},1,2\n" for text in texts))
    naive = np.array(["2020-01-01T00:00:00"] * 2, dtype="datetime64[ms]")
    write(desk.folder / "bronze/a.gpkg", {"at": naive}, [shapely.Point(1, 2)] * 2)
    with closing(sqlite3.connect(desk.folder / "bronze/a.gpkg")) as database:
        database.executemany("UPDATE parcels SET at = ? WHERE fid = ?", [(text, n + 1) for n, text in enumerate(texts)])
        database.commit()
    for ending in ("geojson", "csv", "gpkg"):
        assert [row["at"] for row in desk.rows(f"bronze/a.{ending}")] == values, ending
        assert desk.found == (["mixed_zones"] if values == texts else []), ending


def test_fields_that_differ_by_case_keep_their_own_zones(desk: Desk) -> None:
    moments = {"at": ZULU, "AT": NONE, "At": "noon"}
    for names in (["at", "AT"], ["AT", "at"], ["at", "At"], ["At", "at"], ["AT", "At", "at"]):
        desk.put("bronze/a.geojson", features({name: moments[name] for name in names}))
        (feature,) = json.loads(features({name: moments[name] for name in names}))["features"]
        desk.put("bronze/a.geojsonl", f"{json.dumps(feature)}\n" * 2)
        expected = [{"at": WINTER, "AT": NAIVE, "At": "noon"}[name] for name in names]
        for file in ("bronze/a.geojson", "bronze/a.geojsonl"):
            assert [desk.rows(file)[0][name] for name in names] == expected


def test_a_leap_second_is_the_one_before(desk: Desk) -> None:
    desk.put("bronze/a.geojson", features({"at": "2016-12-31T23:59:60Z"}, {"at": "2017-01-01T00:00:00Z"}))
    desk.put("bronze/a.csv", "at,lon,lat\n2016-12-31 23:59:60.5Z,1,2\n")
    for ending in ("geojson", "csv"):
        assert desk.rows(f"bronze/a.{ending}")[0]["at"] == datetime(2016, 12, 31, 23, 59, 59, tzinfo=UTC)


@pytest.mark.parametrize(("zone", "value"), [(None, NAIVE), ("UTC", WINTER), ("+02:00", WINTER)])
def test_date_times_of_flatgeobuf_keep_their_zones(desk: Desk, zone: str | None, value: datetime) -> None:
    (desk.folder / "bronze").mkdir()
    point = pa.array([shapely.to_wkb(shapely.Point(1, 2))])
    table = pa.table({"at": pa.array([NAIVE], pa.timestamp("us", zone)), "g": point})
    pyogrio.raw.write_arrow(
        table,
        desk.folder / "bronze/a.fgb",
        driver="FlatGeobuf",
        geometry_name="g",
        geometry_type="Point",
        crs="EPSG:4326",
    )
    assert desk.rows("bronze/a.fgb")[0]["at"] == value


@pytest.mark.parametrize(
    ("crs", "code"),
    [("EPSG:999999", "unknown_source_crs"), ("EPSG:5714", "unknown_source_crs"), ("EPSG:4978", "unknown_source_crs")],
)
def test_a_crs_that_is_named_is_one_for_maps(desk: Desk, crs: str, code: str) -> None:
    desk.put("bronze/a.geojson", features())
    assert desk.refusal("bronze/a.geojson", source_crs=crs) == code
    assert desk.refusal("bronze/a.geojson", source_crs="+init=epsg:4326") == code
    assert desk.open("bronze/a.geojson", source_crs="EPSG:4937").crs == "EPSG:4937"


@pytest.mark.parametrize(
    ("crs", "x", "y", "swapped"),
    [
        ("EPSG:4326", 170, 14, False),
        ("EPSG:4326", 14, 170, True),
        ("EPSG:4326", 350, -14, False),
        ("EPSG:4326", -181, -14, False),
        ("EPSG:4326", 14, -61, False),  # it may be meant
        ("EPSG:32620", 600_000, 1_600_000, False),
        ("EPSG:32620", 1_600_000, 600_000, True),
        ("EPSG:32620", 1_200_000, 1_600_000, False),  # a zone too far
        ("EPSG:3857", -6_800_000, 1_600_000, False),
        ("EPSG:2193", 1_750_000, 5_920_000, False),
        ("EPSG:2193", 5_920_000, 1_750_000, True),
        ("EPSG:4258", 10, 50, False),
        ("EPSG:4258", 50, 10, True),
        ("EPSG:3413", 0, -1_000_000, False),
    ],
)
def test_axes_are_swapped_when_only_that_lies_where_the_crs_is_used(
    crs: str, x: float, y: float, *, swapped: bool
) -> None:
    location = locate(crs, (x, y, x + 0.001, y))
    assert location is not None
    assert location.is_swapped is swapped


def test_a_crs_without_a_code_stays_as_it_is_written(desk: Desk, tmp_path: Path) -> None:
    own = CRS("+proj=tmerc +lat_0=14 +lon_0=-61 +k=0.99 +x_0=600000 +y_0=1600000 +ellps=GRS80")
    parts = shapefile(tmp_path / "s", ["a"])
    pack(desk, parts, prj=own.to_wkt("WKT1_ESRI").encode())
    assert 'Scale factor at natural origin",0.99' in desk.open(ZIP).crs


@pytest.mark.parametrize("crs", ["EPSG:2218", "EPSG:2963", "EPSG:32600"])
def test_a_crs_that_proj_can_only_read_is_refused(desk: Desk, crs: str) -> None:
    desk.put("bronze/a.geojson", features())
    assert desk.refusal("bronze/a.geojson", source_crs=crs) == "unknown_source_crs"
    text = CRS(crs).to_wkt("WKT1_GDAL")
    assert refusal(lambda: layer_crs(text, None, "layer")) == "unknown_source_crs"


@pytest.mark.parametrize("crs", ["ESRI:54098", "ESRI:102001", "EPSG:27200", "EPSG:3078", "EPSG:2065", "EPSG:2046"])
def test_every_text_of_a_crs_is_read(crs: str) -> None:
    for version in ("WKT1_GDAL", "WKT1_ESRI", "WKT2_2015", "WKT2_2019"):
        read = CRS(layer_crs(CRS(crs).to_wkt(version), None, "layer"))
        assert read.equals(CRS(crs), ignore_axis_order=True) or read.name.replace("_", " ") in CRS(crs).name


def test_a_crs_that_is_none_is_refused(desk: Desk) -> None:
    write(desk.folder / "bronze/a.gpkg", {"n": np.arange(1)}, [shapely.Point(1, 2)])
    for undefined in (-1, 0):
        with closing(sqlite3.connect(desk.folder / "bronze/a.gpkg")) as database:
            database.execute("UPDATE gpkg_geometry_columns SET srs_id = ?", [undefined])
            database.execute("UPDATE gpkg_contents SET srs_id = ?", [undefined])
            database.commit()
        assert desk.refusal("bronze/a.gpkg") == "no_crs"


def test_another_version_of_flatgeobuf_is_named(desk: Desk) -> None:
    desk.put("bronze/a.fgb", b"fgb\x02fgb\x00" + b"\0" * 100)
    with pytest.raises(Rejected) as told:
        desk.open("bronze/a.fgb")
    (finding,) = told.value.findings
    assert (finding.code, "version 2" in finding.what) == ("unsupported_version", True)
