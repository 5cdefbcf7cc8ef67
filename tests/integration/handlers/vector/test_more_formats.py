"""Formats besides the first ones: File Geodatabase, GML, GPX, TopoJSON, JSON-FG, MapInfo, and KML folders."""

import json
from pathlib import Path
from typing import Any

import pytest
import shapely
from tests.integration.handlers.vector.sources import Desk, archive, features, refusal
from tests.integration.handlers.vector.writers import write_layer

from graticule.handlers.findings import Rejected
from graticule.handlers.vector.sources.source import Kind

POINTS: list[bytes | None] = [shapely.to_wkb(shapely.Point(n, 50 + n)) for n in range(3)]
NAMES = ("name", "text", ["a", "é", "漢"])
ZIP = "bronze/a.zip"


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def packed(folder: Path, prefix: str = "") -> bytes:
    return archive({f"{prefix}{file.name}": file.read_bytes() for file in sorted(folder.iterdir())})


def geodatabase(folder: Path, *layers: str) -> Path:
    for number, layer in enumerate(layers):
        numbers = ("n", "int32", [number * 10 + n for n in range(3)])
        write_layer(
            folder / "a.gdb",
            "OpenFileGDB",
            [NAMES, numbers],
            POINTS,
            geometry_type="Point",
            layer=layer,
            append=number > 0,
        )
    return folder / "a.gdb"


@pytest.mark.parametrize("prefix", ["Roads.gdb/", "x/Roads.gdb/", ""], ids=["folder", "deep", "no folder"])
def test_a_file_geodatabase_is_read_from_its_archive(desk: Desk, tmp_path: Path, prefix: str) -> None:
    made = packed(geodatabase(tmp_path / "made", "roads"), prefix)
    desk.put(ZIP, made)
    opened = desk.open(ZIP)
    assert (opened.kind, opened.layer, opened.crs) == (Kind.FILEGDB, "roads", "EPSG:4326")
    rows = desk.read(opened).to_pylist()
    assert [(row["name"], row["n"]) for row in rows] == [("a", 0), ("é", 1), ("漢", 2)]
    assert [row["wkt"] for row in rows] == [f"POINT ({n} {50 + n})" for n in range(3)]


def test_a_layer_of_a_geodatabase_is_chosen(desk: Desk, tmp_path: Path) -> None:
    desk.put(ZIP, packed(geodatabase(tmp_path / "made", "roads", "rivers"), "a.gdb/"))
    assert desk.refusal(ZIP) == "several_layers"
    assert desk.refusal(ZIP, layer="lakes") == "unknown_layer"
    assert [row["n"] for row in desk.rows(ZIP, layer="rivers")] == [10, 11, 12]


def test_files_beside_a_geodatabase_are_layers_too(desk: Desk, tmp_path: Path) -> None:
    database = geodatabase(tmp_path / "made", "roads")
    files: dict[str, Any] = {f"x.gdb/{file.name}": file.read_bytes() for file in database.iterdir()}
    desk.put(ZIP, archive({**files, "b.geojson": features({"n": 5}), "readme.txt": "x"}))
    assert desk.refusal(ZIP) == "several_layers"
    assert len(desk.rows(ZIP, layer="x")) == 3
    assert desk.rows(ZIP, layer="b")[0]["n"] == 5


def test_layers_without_features_are_no_candidates(desk: Desk, tmp_path: Path) -> None:
    file = tmp_path / "bronze/a.gpkg"
    layers: dict[str, list[bytes | None]] = {"empty": [], "full": POINTS}
    for layer, wkb in layers.items():
        write_layer(
            file,
            "GPKG",
            [("n", "int32", list(range(len(wkb))))],
            wkb,
            geometry_type="Point",
            layer=layer,
            append=layer == "full",
        )
    assert desk.open("bronze/a.gpkg").layer == "full"
    assert desk.open("bronze/a.gpkg", layer="empty").layer == "empty"


def gml(version: str) -> str:
    space = "http://www.opengis.net/gml" + ("/3.2" if version == "3.2" else "")
    point = (
        "<gml:coordinates>600000,4900000</gml:coordinates>" if version == "2" else "<gml:pos>600000 4900000</gml:pos>"
    )
    where = f'<a:geom><gml:Point srsName="urn:ogc:def:crs:EPSG::32613">{point}</gml:Point></a:geom>'
    feature = f'<a:site gml:id="s.1">{where}<a:code>00123</a:code><a:n>5</a:n></a:site>'
    head = (
        f'<?xml version="1.0" encoding="UTF-8"?><!-- made by hand -->\n<a:All xmlns:a="http://a" xmlns:gml="{space}">'
    )
    return f"{head}<gml:featureMember>{feature}</gml:featureMember></a:All>"


@pytest.mark.parametrize("version", ["2", "3", "3.2"])
def test_gml_is_read_and_leaves_no_trace(desk: Desk, version: str) -> None:
    desk.put("bronze/a.xml", gml(version))
    opened = desk.open("bronze/a.xml")
    assert (opened.kind, opened.layer, opened.crs) == (Kind.GML, "site", "EPSG:32613")
    (row,) = desk.read(opened).to_pylist()
    assert (row["n"], row["code"], row["wkt"]) == (5, "00123", "POINT (600000 4900000)")
    assert [file.name for file in (desk.folder / "bronze").iterdir()] == ["a.xml"]


def test_axes_of_gml_are_put_in_order(desk: Desk) -> None:
    text = gml("3.2").replace("EPSG::32613", "EPSG::4326").replace("600000 4900000", "44 -104")
    desk.put("bronze/a.gml", text)
    assert desk.rows("bronze/a.gml")[0]["wkt"] == "POINT (-104 44)"


GPX = """<?xml version="1.0"?><gpx version="1.1" creator="x" xmlns="http://www.topografix.com/GPX/1/1">{}</gpx>"""
WAYPOINT = '<wpt lat="2" lon="1"><ele>5</ele><time>2020-01-01T00:00:00Z</time><name>A</name></wpt>'
TRACK = '<trk><name>T</name><trkseg><trkpt lat="2" lon="1"/><trkpt lat="3" lon="1"/></trkseg></trk>'


def test_gpx_has_the_fields_that_are_filled(desk: Desk) -> None:
    desk.put("bronze/a.gpx", GPX.format(WAYPOINT))
    opened = desk.open("bronze/a.gpx")
    assert (opened.kind, opened.layer, opened.crs) == (Kind.GPX, "waypoints", "EPSG:4326")
    read = desk.read(opened)
    assert read.column_names == ["ele", "time", "name", "wkt"]
    assert str(read.schema.field("time").type) == "timestamp[us, tz=UTC]"


def test_points_of_a_track_are_a_layer_only_when_named(desk: Desk) -> None:
    desk.put("bronze/a.gpx", GPX.format(TRACK))
    assert desk.rows("bronze/a.gpx")[0]["wkt"] == "MULTILINESTRING ((1 2, 1 3))"
    assert len(desk.rows("bronze/a.gpx", layer="track_points")) == 2
    desk.put("bronze/b.gpx", GPX.format(WAYPOINT + TRACK))
    assert desk.refusal("bronze/b.gpx") == "several_layers"
    desk.put("bronze/c.gpx", GPX.format(""))
    assert desk.refusal("bronze/c.gpx") == "no_features"


def topology(**objects: Any) -> dict[str, Any]:
    arcs = [[[0, 0], [10, 0]], [[10, 0], [0, 10], [-10, 0], [0, -10]]]
    transform = {"scale": [0.1, 0.1], "translate": [5, 50]}
    return {"type": "Topology", "transform": transform, "objects": objects, "arcs": arcs}


def collected(*geometries: dict[str, Any]) -> dict[str, Any]:
    return {"type": "GeometryCollection", "geometries": geometries}


LINE = {"type": "LineString", "arcs": [0], "properties": {"n": 1}, "id": "x"}
AREA = {"type": "Polygon", "arcs": [[0, 1]], "properties": {"n": 2}}


def test_topojson_is_read_in_the_crs_that_is_named(desk: Desk) -> None:
    desk.put("bronze/a.json", json.dumps(topology(a=collected(LINE, AREA))))
    assert desk.refusal("bronze/a.json") == "no_crs"
    opened = desk.open("bronze/a.json", source_crs="EPSG:4326")
    assert (opened.kind, opened.layer) == (Kind.TOPOJSON, "a")
    rows = desk.read(opened).to_pylist()
    assert [(row["n"], row["wkt"]) for row in rows] == [
        (1, "LINESTRING (5 50, 6 50)"),
        (2, "POLYGON ((5 50, 6 50, 6 51, 5 51, 5 50))"),
    ]


def test_objects_of_topojson_are_layers(desk: Desk) -> None:
    desk.put("bronze/a.topojson", json.dumps(topology(lines=collected(LINE), areas=collected(AREA))))
    assert desk.refusal("bronze/a.topojson", source_crs="EPSG:4326") == "several_layers"
    assert desk.rows("bronze/a.topojson", source_crs="EPSG:4326", layer="areas")[0]["n"] == 2


def json_fg(crs: Any, *places: dict[str, Any] | None) -> str:
    listed = [
        {
            "type": "Feature",
            "id": n,
            "geometry": {"type": "Point", "coordinates": [3, 40]},
            "place": place,
            "time": None,
            "properties": {"n": n},
        }
        for n, place in enumerate(places)
    ]
    core = "http://www.opengis.net/spec/json-fg-1/0.3/conf/core"
    head = {"type": "FeatureCollection", "conformsTo": [core], **({"coordRefSys": crs} if crs else {})}
    return json.dumps({**head, "features": listed})


UTM = "http://www.opengis.net/def/crs/EPSG/0/32631"
PLACE = {"type": "Point", "coordinates": [500000, 4500000]}


@pytest.mark.parametrize("crs", [UTM, "[EPSG:32631]", {"type": "Reference", "href": UTM}])
def test_json_fg_is_read_by_its_place(desk: Desk, crs: Any) -> None:
    desk.put("bronze/a.json", json_fg(crs, PLACE))
    opened = desk.open("bronze/a.json")
    assert (opened.kind, opened.layer, opened.crs) == (Kind.JSON_FG, "a", "EPSG:32631")
    assert desk.read(opened).to_pylist()[0]["wkt"] == "POINT (500000 4500000)"
    desk.put(ZIP, archive({"b.json": json_fg(crs, PLACE)}))
    assert len(desk.rows(ZIP)) == 1
    assert desk.open(ZIP, layer="b").kind is Kind.JSON_FG


def test_json_fg_without_a_place_is_read_by_its_geometry(desk: Desk) -> None:
    desk.put("bronze/a.json", json_fg(None, None, None))
    opened = desk.open("bronze/a.json")
    assert (opened.crs, desk.read(opened).to_pylist()[0]["wkt"]) == ("EPSG:4326", "POINT (3 40)")
    desk.put("bronze/a.json", json_fg("http://www.opengis.net/def/crs/EPSG/0/999999", PLACE))
    assert desk.refusal("bronze/a.json") == "no_crs"


def test_a_property_called_place_makes_no_json_fg(desk: Desk) -> None:
    desk.put("bronze/a.geojson", features({"place": {"type": "town"}, "featureType": "x"}))
    assert desk.open("bronze/a.geojson").kind is Kind.GEOJSON


@pytest.mark.parametrize("ending", ["mif", "tab"])
def test_mapinfo_is_read_from_its_archive(desk: Desk, tmp_path: Path, ending: str) -> None:
    columns: list[tuple[str, str, list[Any]]] = [("name", "text", ["a", "é", None]), ("n", "int32", [1, 2, 3])]
    write_layer(
        tmp_path / f"made/Streets.{ending}",
        "MapInfo File",
        columns,
        POINTS,
        geometry_type="Point",
        ENCODING="CP1252",
    )
    upper = {file.name.upper(): file.read_bytes() for file in (tmp_path / "made").iterdir()}
    for files in ({file.name: file.read_bytes() for file in (tmp_path / "made").iterdir()}, upper):
        desk.put(ZIP, archive({**files, "readme.pdf": "x"}))
        opened = desk.open(ZIP)
        assert (opened.kind, opened.layer.upper(), opened.crs) == (Kind.MAPINFO, "STREETS", "EPSG:4326")
        assert [(row["name"] or None, row["n"]) for row in desk.read(opened).to_pylist()] == [
            ("a", 1),
            ("é", 2),
            (None, 3),
        ]
    desk.put(f"bronze/a.{ending}", (tmp_path / f"made/Streets.{ending}").read_bytes())
    assert desk.refusal(f"bronze/a.{ending}") == "missing_part"


@pytest.mark.parametrize("ending", ["mif", "tab"])
def test_texts_of_mapinfo_without_a_charset_are_decoded(desk: Desk, tmp_path: Path, ending: str) -> None:
    columns: list[tuple[str, str, list[Any]]] = [("name", "text", ["a", "Zoë", None]), ("n", "int32", [1, 2, 3])]
    file = tmp_path / f"made/a.{ending}"
    write_layer(file, "MapInfo File", columns, POINTS, geometry_type="Point", ENCODING="CP1252")
    assert b"WindowsLatin1" in file.read_bytes()
    file.write_bytes(file.read_bytes().replace(b"WindowsLatin1", b"Neutral"))
    desk.put(ZIP, archive({each.name: each.read_bytes() for each in file.parent.iterdir()}))
    for encoding, text, found in ((None, "Zoë", ["other_encoding"]), ("cp1251", "Zoл", []), ("latin1", "Zoë", [])):
        rows = desk.rows(ZIP, **({} if encoding is None else {"encoding": encoding}))
        assert [(row["name"] or None, row["n"]) for row in rows] == [("a", 1), (text, 2), (None, 3)]
        assert desk.found == found
    assert refusal(lambda: desk.rows(ZIP, encoding="UTF-8")) == "unknown_encoding"


def test_folders_of_kml_are_layers_and_empty_ones_are_not(desk: Desk) -> None:
    mark = "<Placemark><name>{}</name><Point><coordinates>1,2</coordinates></Point></Placemark>"
    folder = "<Folder><name>{}</name>{}</Folder>"
    folders = [folder.format(name, mark.format(name)) for name in ("One", "Two")]
    text = '<kml xmlns="http://www.opengis.net/kml/2.2"><Document>{}</Document></kml>'
    desk.put("bronze/a.kml", text.format("".join([*folders, folder.format("None", "")])))
    with pytest.raises(Rejected) as told:
        desk.open("bronze/a.kml")
    (finding,) = told.value.findings
    assert finding.what == "The file has 2 layers: One, Two."
    assert "processing_options.layer " in finding.how_to_fix
    assert "processing_options.layers to `all`" in finding.how_to_fix
    desk.put("bronze/b.kml", text.format(folders[0] + folder.format("None", "")))
    assert desk.rows("bronze/b.kml")[0]["Name"] == "One"


def test_a_lone_ring_in_kml_is_a_missing_geometry_and_not_damage(desk: Desk) -> None:
    mark = "<Placemark><{0}><coordinates>{1}</coordinates></{0}></Placemark>"
    marks = mark.format("LinearRing", "0,0 0,1 1,1 0,0") + mark.format("Point", "1,2")
    desk.put("bronze/a.kml", f'<kml xmlns="http://www.opengis.net/kml/2.2"><Document>{marks}</Document></kml>')
    assert [row["wkt"] for row in desk.rows("bronze/a.kml")] == [None, "POINT (1 2)"]


def test_what_an_archive_contains_is_told(desk: Desk) -> None:
    desk.put(ZIP, archive({"map.pdf": "x", "b/scene.tif": b"II*\0"}))
    with pytest.raises(Rejected) as told:
        desk.open(ZIP)
    (finding,) = told.value.findings
    assert (finding.code, finding.what) == (
        "no_layer",
        "The archive has no vector file. It contains: map.pdf, b/scene.tif.",
    )
    assert "data_type raster" in finding.how_to_fix
