"""Files of features that mean harm: they lead elsewhere, never end, or are not what they seem."""

import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pyogrio
import pytest
import shapely
from pyproj import CRS
from tests.integration.handlers.vector.hosts import Host
from tests.integration.handlers.vector.sources import POINT, Desk, archive, features, refusal, shapefile
from tests.integration.handlers.vector.vector_chain import FILE, SQUARES, Chain, codes, write_features
from tests.integration.handlers.vector.written import is_misread

from graticule.core.errors import InvalidInput
from graticule.handlers.findings import Rejected
from graticule.handlers.registry import handlers
from graticule.handlers.vector.described import Opening
from graticule.handlers.vector.sources import geopackage, ogr, ogr_reading, reading
from graticule.handlers.vector.sources.json_crs import check_json
from graticule.handlers.vector.sources.json_escapes import EscapeCheck
from graticule.handlers.vector.sources.projections import read_crs, wkt_of_json
from graticule.handlers.vector.sources.source import Kind
from graticule.repositories import geopackages
from graticule.storage.blocking import BlockingStorage
from graticule.storage.local import LocalStorage

JSON = "bronze/a.geojson"


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def collection(**more: Any) -> str:
    return features({"crs": "a text", "n": 1}, **more)


def link(href: str = "http://169.254.169.254/") -> dict[str, Any]:
    return {"type": "link", "properties": {"href": href, "type": "proj4"}}


def both(desk: Desk, path: str, layer: str = "a", kind: Kind = Kind.GEOJSON) -> list[str]:
    """Tell why a file is not opened, and why not read by someone who leaves that out."""
    unchecked = desk.unchecked(path, kind, layer)
    return [desk.refusal(path), refusal(lambda: desk.read(unchecked))]


@pytest.mark.parametrize(
    "disguise",
    [
        lambda text: text,
        lambda text: text.replace('"crs": {', '"\\u0063r\\u0073"\n:\t{').replace('"link"', '"\\u004cINK"'),
        lambda text: text.replace('"crs": {', '"crs": {"type": "name", "more": {}}, "crs": {'),
        lambda text: text.replace('"crs": {"type"', '"CRS" : {"TYPE"'),
        lambda text: text.replace('"crs": {', f'"crs"{" " * 999}:{" " * 9999}{{'),
    ],
    ids=["plain", "escaped", "twice", "large letters", "blanks"],
)
def test_a_crs_that_is_a_link_is_rejected(desk: Desk, host: Host, disguise: Callable[[str], str]) -> None:
    for text in (collection(crs=link(host.address)), collection(features=[{**POINT, "crs": link(host.address)}])):
        desk.put(JSON, disguise(text).encode())
        assert both(desk, JSON) == ["linked_crs"] * 2
    assert host.visits == []


def test_a_link_that_is_overlooked_leads_nowhere(desk: Desk, host: Host) -> None:
    desk.put(JSON, collection().encode())
    opened = desk.open(JSON)
    desk.put(JSON, collection(crs=link(host.address)).encode())
    with ogr.closed_network():
        ogr_reading.declared(str(desk.folder / JSON), opened.kind, None)
    assert host.visits == []


@pytest.mark.parametrize("before", ["", "/vsicurl/", "bronze/", "bronze//vsicurl/"])
def test_an_address_is_no_source(desk: Desk, host: Host, before: str) -> None:
    with pytest.raises((InvalidInput, Rejected)):
        desk.open(f"{before}{host.address}")
    assert host.visits == []


def test_a_link_is_found_wherever_the_pieces_are_cut() -> None:
    text = (" " * 300 + json.dumps({"crs": link(), "features": []})).encode()
    for cut in range(300, len(text)):
        with pytest.raises(Exception, match="linked_crs"):
            check_json([text[:cut], text[cut:], b" " * 20_000])


@pytest.mark.parametrize("between", ["/**/:", ":/**/"])
def test_a_crs_that_cannot_be_found_is_rejected(desk: Desk, between: str) -> None:
    desk.put(JSON, collection(crs=link()).replace('"crs": {', f'"crs"{between}{{').encode())
    assert desk.refusal(JSON) == "corrupt"
    assert refusal(lambda: check_json([b'"crs"', *[b" " * 1000] * 20])) == "corrupt"


def test_a_crs_that_is_a_name_is_read(desk: Desk) -> None:
    desk.put(JSON, collection(crs={"type": "name", "properties": {"name": "EPSG:3857"}}).encode())
    opened = desk.open(JSON)
    assert opened.crs == "EPSG:3857"
    assert len(desk.read(opened)) == 1


@pytest.mark.parametrize("begin", ["", "{ \n", '{"', '{"type": "FeatureCollection"} '])
def test_a_file_that_refers_to_others_is_rejected_unopened(desk: Desk, host: Host, begin: str) -> None:
    desk.put("bronze/other.geojson", collection().encode())
    for target in (f"/vsicurl/{host.address}", desk.folder / "bronze/other.geojson"):
        layer = f'<OGRVRTLayer name="a"><SrcDataSource>{target}</SrcDataSource><SrcLayer>other</SrcLayer></OGRVRTLayer>'
        desk.put(JSON, f"{begin}<OGRVRTDataSource>{layer}</OGRVRTDataSource>".encode())
        assert set(both(desk, JSON)) <= {"not_a_vector", "corrupt"}
    assert host.visits == []


def test_gdal_has_no_other_drivers_than_those_that_are_taken() -> None:
    taken = {"GPKG", "FlatGeobuf", "GeoJSON", "GeoJSONSeq", "ESRI Shapefile", "LIBKML", "GPX", "GML", "TopoJSON"}
    taken |= {"JSONFG", "OpenFileGDB", "MapInfo File"}
    assert set(pyogrio.list_drivers()) == taken == set(Kind) - {"CSV", "Parquet"}


def test_kml_is_read_without_what_it_links_to(desk: Desk, host: Host) -> None:
    links = f"<NetworkLink><Link><href>{host.address}</href></Link></NetworkLink><styleUrl>{host.address}#a</styleUrl>"
    data = f'<ExtendedData><SchemaData schemaUrl="{host.address}#s"><SimpleData name="a">1</SimpleData></SchemaData>'
    mark = f"<Placemark>{data}</ExtendedData><Point><coordinates>1,2</coordinates></Point></Placemark>"
    overlay = f"<GroundOverlay><Icon><href>{host.address}</href></Icon></GroundOverlay>"
    desk.put(
        "bronze/a.kml", f'<kml xmlns="http://www.opengis.net/kml/2.2"><Document>{links}{mark}{overlay}</Document></kml>'
    )
    assert desk.rows("bronze/a.kml")
    assert host.visits == []


def test_a_name_that_sqlite_would_decode_is_rejected(desk: Desk, tmp_path: Path) -> None:
    write_features(desk.folder / FILE, SQUARES)
    data = (desk.folder / FILE).read_bytes()
    for path in ("bronze/%2e%2e%2fparcels.gpkg", "bronze/a%3fb.gpkg"):
        desk.put(path, data)
        assert both(desk, path, "parcels", Kind.GEOPACKAGE) == ["unusable_name"] * 2
    other = Desk(tmp_path / "a%62c")
    other.put("bronze/a.gpkg", data)
    assert both(other, "bronze/a.gpkg", "parcels", Kind.GEOPACKAGE) == ["unusable_name"] * 2


@pytest.mark.parametrize(
    "name", ["a%.geojson", "a.geojson;x", "a.zip!b.geojson", "a.zip", "a.gpkg.ZIP", "a.tar/b.gpkg", "vsizip/a"]
)
def test_a_name_that_stands_for_another_file_is_rejected(desk: Desk, name: str) -> None:
    desk.put("bronze/a.geojson", collection().encode())
    desk.put(f"bronze/{name}", collection().encode())
    assert both(desk, f"bronze/{name}") == ["unusable_name"] * 2


def test_a_name_of_which_something_would_be_cut_is_rejected(desk: Desk) -> None:
    desk.put("bronze/a.geojson?", collection().encode())
    assert both(desk, "bronze/a.geojson?") == ["unusable_name"] * 2


@pytest.mark.parametrize("folder", ["", "89abcdef/out/", "89abcdef/source/b/"])
def test_what_we_made_is_no_source(desk: Desk, folder: str) -> None:
    path = f"silver/{folder}a.geojson"
    desk.put(path, collection().encode())
    for do in (lambda: desk.open(path), lambda: desk.read(desk.unchecked(path, Kind.GEOJSON, "a"))):
        with pytest.raises(InvalidInput, match="holds what this platform makes"):
            do()


def changed(desk: Desk, *statements: str) -> None:
    """Write a GeoPackage and change it as its tables allow."""
    fields = {"name": np.array(["a"] * 5, dtype=object)}
    write_features(desk.folder / FILE, SQUARES, fields, SPATIAL_INDEX="NO")  # its triggers need functions of GDAL's
    with closing(sqlite3.connect(desk.folder / FILE)) as database:
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
        (
            (
                "DROP TABLE gpkg_ogr_contents",
                f"CREATE VIEW gpkg_ogr_contents AS {ENDLESS} SELECT max(i) FROM n",
                "CREATE TABLE gpkg_ogr_content\u017f (x)",
            ),
            "corrupt",
        ),
        (("ALTER TABLE gpkg_contents ADD big TEXT AS (printf('%.*c', 20000000, 'x'))",), "corrupt"),
    ],
    ids=[
        "view",
        "view that calls itself a table",
        "virtual",
        "computed column",
        "view of the format",
        "view beside a table of nearly the same name",
        "computed column of the format",
    ],
)
def test_only_tables_of_a_geopackage_are_read(desk: Desk, statements: tuple[str, ...], code: str) -> None:
    drop = [f"DROP TRIGGER trigger_{what}_feature_count_parcels" for what in ("insert", "delete")]
    changed(desk, UNBOUND, *drop, *statements)
    layer = "v" if LIST_VIEW[0] in statements else "parcels"
    assert both(desk, FILE, layer, Kind.GEOPACKAGE) == [code] * 2


def test_a_view_is_none_by_a_table_of_nearly_the_same_name(desk: Desk) -> None:
    view, *lists = (
        each.replace(" v ", ' "stra\u00dfe" ').replace("'v'", "'stra\u00dfe'") for each in (VIEW, *LIST_VIEW)
    )
    changed(desk, UNBOUND, view, *lists, "CREATE TABLE strasse (x)")
    assert both(desk, FILE, "stra\u00dfe", Kind.GEOPACKAGE) == ["not_a_table"] * 2


def test_objects_that_are_not_looked_at_are_too_many(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    changed(desk)
    monkeypatch.setattr(geopackages, "MOST_OBJECTS", 5)
    assert desk.refusal(FILE) == "corrupt"


# CRSs that lead to other files: PROJ and GDAL would wait for ever at a pipe.


BASE = 'BASEGEOGCRS["b",DATUM["d",ELLIPSOID["e",6378137,298.2]]]'
METRES = 'CS[Cartesian,2],AXIS["E",east],AXIS["N",north],LENGTHUNIT["metre",1]'
DEGREES = 'CS[ellipsoidal,2],AXIS["lat",north],AXIS["lon",east],ANGLEUNIT["degree",0.0174532925199433]'
GEOGRAPHIC = f'GEOGCRS["g",DATUM["d",ELLIPSOID["e",6378137,298.2]],{DEGREES}]'
OLD = 'GEOGCS["g",DATUM["D",SPHEROID["s",6378137,298]%s],PRIMEM["Greenwich",0],UNIT["degree",0.0174532925199433]]'
NTV2 = 'METHOD["NTv2",ID["EPSG",9615]],PARAMETERFILE["Latitude and longitude difference file","PIPE"]'
LEADING = {
    "step": f'PROJCRS["x",{BASE},CONVERSION["c",METHOD["PROJ hgridshift grids=PIPE"]],{METRES}]',
    "step in other quotes": f'PROJCRS["x",{BASE},CONVERSION["c",METHOD ( \u201cPROJ merc init=PIPE:1\u201d)],{METRES}]',
    "derived": f'GEOGCRS["x",{BASE},DERIVINGCONVERSION["c",{NTV2}],{DEGREES}]',
    "bound": f'BOUNDCRS[SOURCECRS[{GEOGRAPHIC}],TARGETCRS[{GEOGRAPHIC}],ABRIDGEDTRANSFORMATION["t",{NTV2}]]',
    "extension": f'PROJCS["x",{OLD % ""},PROJECTION["custom_proj4"],UNIT["m",1],EXTENSION["PROJ4","+nadgrids='
    '@null,PIPE"]]',
    "extension of the datum": OLD % ',EXTENSION["PROJ4_GRIDS","PIPE"]',
    "no WKT": "+proj=longlat +nadgrids=PIPE +type=crs",
}


@pytest.mark.parametrize("text", LEADING.values(), ids=LEADING)
def test_a_crs_that_leads_to_files_is_rejected_unread(desk: Desk, text: str) -> None:
    pipe = desk.folder / "pipe"
    os.mkfifo(pipe)
    text = text.replace("PIPE", str(pipe))
    write_features(desk.folder / FILE, SQUARES)
    with closing(sqlite3.connect(desk.folder / FILE)) as database:
        database.execute("UPDATE gpkg_spatial_ref_sys SET organization = 'none', definition = ?", [text])
        database.commit()
    assert desk.refusal(FILE) == "unknown_source_crs"
    parts = {f"a{ending}": data for ending, data in shapefile(desk.folder / "s", ["a"]).items()}
    desk.put("bronze/a.zip", archive({**parts, "a.prj": text}))
    assert desk.refusal("bronze/a.zip") == "unknown_source_crs"
    desk.put(JSON, collection(crs={"type": "name", "properties": {"name": text}}).encode())
    assert desk.refusal(JSON) == "unknown_source_crs"
    assert refusal(lambda: read_crs(text, "crs")) == "unknown_source_crs"


@pytest.mark.parametrize("organization", ["none", "EPSG"])
@pytest.mark.parametrize("extension", ['"PROJ4_GRIDS","PIPE"', '"PROJ4","+proj=longlat +nadgrids=PIPE +no_defs"'])
def test_a_crs_with_a_code_is_taken_by_its_code_and_its_grids_stay_unread(
    desk: Desk, organization: str, extension: str
) -> None:
    pipe = desk.folder / "pipe"
    os.mkfifo(pipe)
    text = OLD.replace("]]", '],AUTHORITY["EPSG","4267"]]').replace("]%s", f"],EXTENSION[{extension}]")
    text = text.replace("PIPE", str(pipe)).replace("%s", "")
    write_features(desk.folder / FILE, SQUARES)
    before = (desk.folder / FILE).read_bytes()
    with closing(sqlite3.connect(desk.folder / FILE)) as database:
        change = "UPDATE gpkg_spatial_ref_sys SET organization = ?, organization_coordsys_id = 4267, definition = ?"
        database.execute(change, [organization, text])
        database.commit()
    assert before != (desk.folder / FILE).read_bytes()
    assert desk.open(FILE).crs == "EPSG:4267"
    assert len(desk.rows(FILE)) == len(SQUARES)
    parts = {f"a{ending}": data for ending, data in shapefile(desk.folder / "s", ["a"]).items()}
    desk.put("bronze/a.zip", archive({**parts, "a.prj": text}))
    assert desk.open("bronze/a.zip").crs == "EPSG:4267"
    assert read_crs(text, "crs").to_epsg() == 4267


def test_a_geopackage_with_too_many_crss_is_rejected(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(geopackage, "MAX_DEFINITIONS", 2)
    write_features(desk.folder / FILE, SQUARES)
    assert desk.refusal(FILE) == "corrupt"


def test_the_crs_of_a_flatgeobuf_is_looked_at(desk: Desk) -> None:
    points = [shapely.Point(1, 2)]
    own = CRS("+proj=tmerc +lat_0=14 +lon_0=-61 +k=0.99 +ellps=GRS80 +type=crs").to_wkt()
    fields = {"n": np.arange(1)}
    write_features(desk.folder / "bronze/a.fgb", points, fields, own, driver="FlatGeobuf", geometry_type="Point")
    assert "0.99" in desk.open("bronze/a.fgb").crs
    data = (desk.folder / "bronze/a.fgb").read_bytes()
    desk.put("bronze/b.fgb", data.replace(b'METHOD["Transverse', b'METHOD["PROJ merc  '))
    assert desk.refusal("bronze/b.fgb") == "unknown_source_crs"
    desk.put("bronze/b.fgb", data[:12] + b"\xff" * 40 + data[52:])
    assert desk.refusal("bronze/b.fgb") == "corrupt"


def own_method(name: str, /, **parameter: Any) -> dict[str, Any]:
    """Describe a CRS by a method and a parameter of it."""
    described: dict[str, Any] = CRS("+proj=moll +ellps=GRS80 +type=crs").to_json_dict()
    described["conversion"]["method"] = {"name": name, "id": {"authority": "EPSG", "code": 9807}}
    described["conversion"]["parameters"].append({"name": "k", "value": 1, **parameter})
    return described


@pytest.mark.parametrize(
    "described",
    [
        own_method("PROJ hgridshift grids=x"),
        own_method("PROJ-based operation method: +proj=merc"),
        own_method("NTv2", value="file"),
        own_method("PROJ ob_tran o_proj=longlat", name="grids=x"),
        {**own_method("Mollweide"), "remarks": "PROJ CRS string: +proj=merc"},
    ],
)
def test_a_described_crs_that_leads_to_files_is_rejected(described: dict[str, Any]) -> None:
    assert refusal(lambda: wkt_of_json(described, "crs")) == "unknown_source_crs"
    assert "Mollweide" in wkt_of_json(CRS("ESRI:54009").to_json_dict(), "crs")


@pytest.mark.parametrize("code", ["ESRI:54009", "EPSG:3857", "EPSG:2154", "EPSG:7405"])
@pytest.mark.parametrize("version", ["WKT2_2019", "WKT1_GDAL", "WKT1_ESRI"])
def test_other_crss_remain_what_they_are(code: str, version: str) -> None:
    assert read_crs(CRS(code).to_wkt(version), "crs") == CRS(code)


def test_a_datum_that_is_known_by_numbers_keeps_them() -> None:
    bound = CRS("+proj=merc +ellps=bessel +towgs84=598.1,73.7,418.2 +type=crs")
    assert "598.1" in read_crs(bound.to_wkt(), "crs").to_wkt()


def test_a_geopackage_that_announces_other_features_than_it_has_is_rejected(desk: Desk) -> None:
    changed(desk, "UPDATE gpkg_ogr_contents SET feature_count = 7")
    assert codes(Chain(desk.folder, None).validate()) == ["corrupt"]  # type: ignore[arg-type]


def test_a_character_whose_escapes_are_misread_is_rejected(desk: Desk) -> None:
    """GDAL gives U+FFFD for these and no others; a file that has them as they are is read."""
    characters = [chr(code) for code in range(0x10000, 0x110000, 509)]
    misread = [each for each in characters if 0xD800 <= ord(each) & 0xFFFF < 0xE000]
    others = [each for each in characters if each not in misread]
    assert len(misread) > 50
    assert all(is_misread(json.dumps(each)) for each in misread)
    desk.put(JSON, features({"n": misread[0]}))
    assert desk.refusal(JSON) == "misread_escape"
    desk.put(JSON, json.dumps(json.loads(features({"n": misread[0]})), ensure_ascii=False))
    assert desk.rows(JSON)[0]["n"] == misread[0]
    desk.put(JSON, features(*({"n": each} for each in others)))
    assert [row["n"] for row in desk.rows(JSON)] == others


def looked_at(text: bytes, cut: int) -> None:
    """Look at a text in two pieces."""
    check = EscapeCheck()
    check.look(text[:cut])
    check.look(text[cut:])


@pytest.mark.parametrize(
    "escaped",
    [
        r"a\u0000b",
        r"x\ud83d\u0041y",
        r"\ud83d\ud83d\ude00!",
        r"\\\u0000",
        r"\uD836\uDC00",
        r"\\\\\ud83d\n\u0000",
        r"\\ud83d\u0000",
    ],
)
def test_escapes_that_lose_text_are_rejected(desk: Desk, escaped: str) -> None:
    text = features({"n": "here"}).replace("here", escaped)
    desk.put(JSON, text)
    assert desk.refusal(JSON) == "misread_escape"
    for cut in range(len(text)):
        assert refusal(lambda at=cut: looked_at(text.encode(), at)) == "misread_escape"  # type: ignore[misc]


@pytest.mark.parametrize(
    "escaped", [r"a\\u0000b", r"\\ud836\\udc00", r"\ud83d\ude00\u0041", r"\ud83d!", r"\\\\u0000", r"\u00011"]
)
def test_other_escapes_are_read_as_they_are(desk: Desk, escaped: str) -> None:
    text = features({"n": "here"}).replace("here", escaped)
    desk.put(JSON, text)
    expected = json.loads(f'"{escaped}"').encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    assert desk.rows(JSON)[0]["n"] == expected
    for cut in range(len(text)):
        looked_at(text.encode(), cut)


def test_a_text_that_is_none_is_rejected(desk: Desk) -> None:
    changed(desk, "UPDATE parcels SET name = CAST(x'ff41' AS TEXT)")
    assert codes(Chain(desk.folder, None).validate()) == ["not_utf8"]  # type: ignore[arg-type]


def test_a_geopackage_is_read_without_a_trace(desk: Desk) -> None:
    changed(desk, "PRAGMA journal_mode = WAL")
    folder, before = (desk.folder / FILE).parent, (desk.folder / FILE).read_bytes()
    opened = desk.open(FILE)
    with BlockingStorage(LocalStorage(desk.folder)) as storage, reading.open_layer(storage, opened) as layer:
        seen = [file.name for _ in layer.batches() for file in folder.iterdir()]
    assert seen == ["parcels.gpkg"]
    assert (desk.folder / FILE).read_bytes() == before


@pytest.mark.parametrize("ending", ["-wal", "-journal"])
def test_a_geopackage_with_a_journal_is_rejected_and_left_as_it_is(desk: Desk, ending: str) -> None:
    changed(desk)
    desk.put(f"{FILE}{ending}", b"changes")
    assert both(desk, FILE, "parcels", Kind.GEOPACKAGE) == ["unfinished"] * 2
    assert (desk.folder / f"{FILE}{ending}").read_bytes() == b"changes"


@pytest.fixture
def small_batches() -> Iterator[None]:
    pyogrio.set_gdal_config_options({"OGR_ARROW_MEM_LIMIT": "65536"})
    yield
    pyogrio.set_gdal_config_options({"OGR_ARROW_MEM_LIMIT": ogr.SETTINGS["OGR_ARROW_MEM_LIMIT"]})


@pytest.mark.parametrize(("driver", "ending"), [("GPKG", "gpkg"), ("GeoJSON", "geojson"), ("FlatGeobuf", "fgb")])
@pytest.mark.usefixtures("small_batches")
def test_features_are_read_by_their_size(desk: Desk, driver: str, ending: str) -> None:
    def written(length: int) -> Opening:
        path = f"bronze/{length}.{ending}"
        fields = {"text": np.array(["x" * length] * 20, dtype=object)}
        points = [shapely.Point(n, n) for n in range(20)]
        write_features(desk.folder / path, points, fields, "EPSG:4326", driver=driver, geometry_type="Point")
        return desk.open(path)

    read = desk.read(written(10_000))
    assert len(read) == 20
    assert read["text"].num_chunks == 4  # 200,000 bytes
    too_large = written(70_000)
    assert refusal(lambda: desk.read(too_large)) == "too_large_feature"


@pytest.mark.parametrize(
    "target", ["+init=file:/etc/passwd", "EPSG:5714", "EPSG:4978", "EPSG:7415", "EPSG:999999", "x" * 100_000]
)
def test_the_projection_of_the_table_is_one_for_maps(desk: Desk, target: str) -> None:
    write_features(desk.folder / FILE, SQUARES)
    assert codes(Chain(desk.folder, None).validate(target_crs=target)) == ["unknown_target_crs"]  # type: ignore[arg-type]


def test_too_many_fields_are_rejected_and_few_are_told(desk: Desk) -> None:
    desk.put(JSON, collection(features=[feature(1001)]).encode())
    assert desk.refusal(JSON) == "too_many_fields"
    desk.put(JSON, collection(features=[feature(300)]).encode())
    facts: Any = Chain(desk.folder, None).validate(JSON).output  # type: ignore[arg-type]
    assert len(facts["columns"]) == facts["facts"]["column_count"] == 300
    assert len(facts["facts"]["columns"]) <= 200


def feature(count: int) -> dict[str, Any]:
    return {"type": "Feature", "properties": {f"{n}{'x' * 500}": n for n in range(count)}, "geometry": POINT}


@pytest.mark.parametrize("name", ["vector.validate", "vector.load"])
def test_gdal_reads_partners_bytes_only_in_a_process_that_can_be_ended(name: str) -> None:
    handler = handlers()[name]
    assert not handler.is_async
    assert handler.memory_limit_mb == 2048
