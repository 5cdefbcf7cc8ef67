"""Files of the newer formats that mean harm: they lead elsewhere, become huge, or are not what they seem."""

import contextlib
import json
import os
import random
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import shapely
from tests.integration.handlers.vector.hosts import Host
from tests.integration.handlers.vector.sources import Desk, archive, features
from tests.integration.handlers.vector.test_more_formats import (
    GPX,
    PLACE,
    TRACK,
    UTM,
    WAYPOINT,
    collected,
    geodatabase,
    gml,
    json_fg,
    topology,
)
from tests.integration.handlers.vector.writers import write_layer

from graticule.handlers.findings import Rejected
from graticule.handlers.vector.sources import ogr_reading, topojson, xml_source

ZIP = "bronze/a.zip"
ROOT = Path(__file__).parents[4]
LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
BOMB = f'<!DOCTYPE x [<!ENTITY l0 "lol">{LAUGHS}]>'
KML = '<kml xmlns="http://www.opengis.net/kml/2.2"><Placemark><name>&l9;</name></Placemark></kml>'


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def outcome(desk: Desk, path: str, **options: str) -> str:
    """Tell how a file is rejected, or that it is read."""
    try:
        return desk.refusal(path, **options)
    except AssertionError:
        return "read"


# XML: entities, schemas, links


@pytest.mark.parametrize("begin", ["", "<!-- x -->", '<?xml-stylesheet href="x"?>'])
@pytest.mark.parametrize("ending", ["gml", "gpx", "kml"])
def test_xml_with_entities_is_rejected_unread(desk: Desk, host: Host, ending: str, begin: str) -> None:
    secret = desk.folder / "secret.txt"
    secret.write_text("secret")
    texts = {"gml": gml("3"), "gpx": GPX.format(WAYPOINT), "kml": KML}
    text = texts[ending].partition("?>")[2] or texts[ending]
    for doctype in (
        BOMB,
        f'<!DOCTYPE x [<!ENTITY l9 SYSTEM "file://{secret}">]>',
        f'<!DOCTYPE x SYSTEM "{host.address}">',
        f'<!DOCTYPE x [<!ENTITY % p SYSTEM "{host.address}"> %p;]>',
    ):
        desk.put(f"bronze/a.{ending}", f'<?xml version="1.0"?>{begin}{doctype}{text}')
        assert desk.refusal(f"bronze/a.{ending}") == "not_a_vector"
    assert host.visits == []


def test_a_document_type_that_is_found_late_is_rejected() -> None:
    with pytest.raises(Exception, match="DOCTYPE"):
        xml_source.check_well_formed([b"<!-- ", b"x" * 100_000, b" --><!DOCTYPE x><x/>"])


def test_schemas_and_links_of_gml_lead_nowhere(desk: Desk, host: Host) -> None:
    describe = f"{host.address}?service=WFS&amp;request=DescribeFeatureType&amp;typename=a:site"
    schema = f'xmlns:wfs="http://www.opengis.net/wfs" xsi:schemaLocation="http://a {describe}"'
    text = (
        gml("3").replace("<a:All ", f"<wfs:FeatureCollection {schema} ").replace("</a:All>", "</wfs:FeatureCollection>")
    )
    text = text.replace("<a:n>", f'<a:ref xlink:href="{host.address}"/><a:n>')
    text = text.replace(
        "xmlns:a=",
        'xmlns:xlink="http://www.w3.org/1999/xlink" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xmlns:a=',
    )
    desk.put("bronze/a.gml", text)
    assert desk.rows("bronze/a.gml")[0]["n"] == 5
    assert host.visits == []


def test_files_beside_gml_are_neither_read_nor_written(desk: Desk) -> None:
    desk.put("bronze/a.gml", gml("3"))
    before = desk.rows("bronze/a.gml")
    layer = "<GMLFeatureClass><Name>other</Name><ElementPath>site</ElementPath></GMLFeatureClass>"
    template = f"<GMLFeatureClassList>{layer}</GMLFeatureClassList>"
    for ending in ("gfs", "xsd", "resolved.gml"):
        os.mkfifo(desk.folder / f"bronze/a.{ending}")  # who opens it waits for ever
    (desk.folder / "bronze/a.gfs").unlink()
    desk.put("bronze/a.gfs", template)
    os.utime(desk.folder / "bronze/a.gfs", (2**31, 2**31))  # newer than the source
    assert desk.rows("bronze/a.gml") == before
    assert (desk.folder / "bronze/a.gfs").read_text() == template


@pytest.mark.parametrize(
    "name",
    [
        "+proj=longlat +nadgrids=PIPE",
        "&#43;proj=longlat&#32;+nadgrids=PIPE",
        "+init=PIPE:1",
        "urn:x,PROJCRS[&quot;x&quot;]",
    ],
)
def test_a_crs_of_gml_is_a_name(desk: Desk, name: str) -> None:
    os.mkfifo(desk.folder / "pipe")
    text = gml("3").replace("urn:ogc:def:crs:EPSG::32613", name.replace("PIPE", str(desk.folder / "pipe")))
    for written in ("srsName", "SRSNAME", "gml:srsName"):
        desk.put("bronze/a.gml", text.replace("srsName", written))
        assert desk.refusal("bronze/a.gml") == "unknown_source_crs"
    desk.put("bronze/a.gml", gml("3").replace("urn:ogc:def:crs:EPSG::32613", str(desk.folder / "pipe")))
    assert desk.refusal("bronze/a.gml") == "no_crs"


ARC = (
    '<gml:Curve srsName="urn:ogc:def:crs:EPSG::4326"><gml:segments><gml:ArcByCenterPoint numArc="1"><gml:pos>50 7'
    '</gml:pos><gml:radius uom="m">RADIUS</gml:radius><gml:startAngle uom="deg">START</gml:startAngle>'
    '<gml:endAngle uom="deg">END</gml:endAngle></gml:ArcByCenterPoint></gml:segments></gml:Curve>'
)


def arc(start: str = "0", end: str = "90", radius: str = "1000") -> str:
    return ARC.replace("START", start).replace("END", end).replace("RADIUS", radius)


def segment(name: str, content: str) -> str:
    written = f'<gml:{name} numArc="2000000000">{content}</gml:{name}>'
    return f'<gml:Curve srsName="urn:ogc:def:crs:EPSG::4326"><gml:segments>{written}</gml:segments></gml:Curve>'


def with_geometry(geometry: str) -> str:
    text = gml("3")
    begin, end = text.index("<a:geom>") + len("<a:geom>"), text.index("</a:geom>")
    return text[:begin] + geometry + text[end:]


@pytest.mark.parametrize(
    "geometry",
    [
        *(arc(end=end) for end in ("1e300", "inf", "nan", "721", "1000000000<x/>e-9", "", "90 degrees")),
        *(arc(start=start) for start in ("-1e300", "<![CDATA[1e300]]>")),
        arc(end="1e300").replace("endAngle", "ENDANGLE"),
        arc(end="1e300").replace("gml:endAngle", "endAngle"),
    ],
)
def test_arcs_of_gml_without_end_are_rejected(desk: Desk, geometry: str) -> None:
    desk.put("bronze/a.gml", with_geometry(geometry))
    assert desk.refusal("bronze/a.gml") == "corrupt"


@pytest.mark.parametrize(
    "geometry",
    [
        arc(),
        arc("-3.6E2", " 720.0\n"),
        arc(radius="1e300"),
        segment("CircleByCenterPoint", "<gml:pos>50 7</gml:pos><gml:radius uom='m'>1e300</gml:radius>"),
        segment("ArcByBulge", "<gml:posList>0 0 1 1</gml:posList><gml:bulge>1e300</gml:bulge>"),
        segment("Arc", "<gml:posList>0 0 1e300 1 2 2</gml:posList>"),
        segment("ArcString", "<gml:posList>0 0 1 1 2 0</gml:posList>"),
        segment("LineStringSegment", "<gml:posList srsDimension='2000000000'>0 0 1 1</gml:posList>"),
    ],
)
def test_curves_of_gml_end(desk: Desk, geometry: str) -> None:
    desk.put("bronze/a.gml", with_geometry(geometry))
    started = time.perf_counter()
    with contextlib.suppress(Rejected):
        desk.rows("bronze/a.gml")
    assert time.perf_counter() - started < 5


def test_a_tag_of_xml_without_end_is_rejected() -> None:
    begin, piece = b'<kml a="', b"x" * 1024**2
    pieces = [begin, *[piece] * (xml_source.MAX_TOKEN_BYTES // len(piece) + 1)]
    with pytest.raises(Exception, match="A tag or comment has more than 8 MiB"):
        xml_source.check_well_formed(pieces)


def test_a_long_text_of_xml_is_read() -> None:
    pieces = [b"<kml>", *[b"x" * 1024**2] * (2 * xml_source.MAX_TOKEN_BYTES // 1024**2), b"</kml>"]
    xml_source.check_well_formed(pieces)


def test_xml_that_is_nested_too_deep_or_cut_off_is_rejected(desk: Desk) -> None:
    deep = "<x>" * (xml_source.MAX_DEPTH + 1) + "</x>" * (xml_source.MAX_DEPTH + 1)
    for ending, text in {"gml": gml("3"), "gpx": GPX.format(TRACK)}.items():
        root = text.rindex("</")
        desk.put(f"bronze/deep.{ending}", text[:root] + deep + text[root:])
        assert desk.refusal(f"bronze/deep.{ending}") == "corrupt"
        desk.put(f"bronze/cut.{ending}", text[: len(text) // 2])
        assert desk.refusal(f"bronze/cut.{ending}") in {"corrupt", "not_a_vector"}


def gml_of(members: list[str]) -> str:
    inside = "".join(f"<gml:featureMember>{each}</gml:featureMember>" for each in members)
    return f'<gml:FeatureCollection xmlns:gml="http://www.opengis.net/gml">{inside}</gml:FeatureCollection>'


def kml_of(inside: str) -> str:
    return f'<kml xmlns="http://www.opengis.net/kml/2.2"><Document>{inside}</Document></kml>'


def many(count: int, text: str) -> list[str]:
    return [text.replace("N", str(number)) for number in range(count)]


MARK = "<Placemark>DATA<Point><coordinates>1,1</coordinates></Point></Placemark>"
DATA = MARK.replace("DATA", '<ExtendedData><Data name="fN"><value>1</value></Data></ExtendedData>')
CROWDS = {
    "fields of GML": ("gml", gml_of(many(5_001, "<x><fN>1</fN></x>")), "too_many_fields"),
    "fields of GML in attributes": ("gml", gml_of(many(5_001, '<x><f aN="1">1</f></x>')), "too_many_fields"),
    "fields of GML in several layers": ("gml", gml_of(many(4_001, "<xN><a/><b/><c/><d/></xN>")), "too_many_fields"),
    "layers of GML": ("gml", gml_of(many(5_001, "<xN><f>1</f></xN>")), "too_many_layers"),
    "attributes of XML": ("gml", gml_of(["<x " + " ".join(many(1_001, 'aN="1"')) + "/>"]), "corrupt"),
    "layers of KML": ("kml", kml_of("".join(many(5_000, "<Folder><name>fN</name></Folder>"))), "too_many_layers"),
    "fields of KML": ("kml", kml_of("".join(many(5_001, DATA))), "too_many_fields"),
}


@pytest.mark.parametrize("crowd", CROWDS)
def test_crowds_in_xml_are_rejected_before_gdal_opens_them(
    desk: Desk, crowd: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """GDAL's time grows with the square of the fields and layers: 100,000 fields did not end in eight minutes."""
    monkeypatch.setattr(ogr_reading, "layer_names", None)
    ending, text, code = CROWDS[crowd]
    desk.put(f"bronze/a.{ending}", text)
    assert desk.refusal(f"bronze/a.{ending}") == code


def test_layers_and_fields_of_xml_below_the_limits_are_read(desk: Desk) -> None:
    place = '<gml:Point srsName="EPSG:4326"><gml:coordinates>1,1</gml:coordinates></gml:Point>'
    wide = f"<y>{''.join(many(900, '<fN>1</fN>'))}{place}</y>"
    layers = [*many(50, f"<xN><f a='1'>1</f>{place}</xN>"), wide]
    desk.put("bronze/a.gml", gml_of(layers))
    assert len(desk.rows("bronze/a.gml", layer="y")) == 1
    folders = "".join(many(50, f"<Folder><name>fN</name>{DATA}</Folder>"))
    desk.put("bronze/a.kml", kml_of(folders))
    assert desk.rows("bronze/a.kml", layer="f7")[0]["f7"] in {1, "1"}


def test_a_file_of_two_formats_is_opened_as_one(desk: Desk, host: Host) -> None:
    """KML that also looks like GML: GDAL's driver of GML would be asked first."""
    schema = f'xmlns:gml="http://www.opengis.net/gml" xmlns:wfs="http://www.opengis.net/wfs" a="{host.address}"'
    mark = "<Placemark><name>A</name><Point><coordinates>1,2</coordinates></Point></Placemark>"
    desk.put(
        "bronze/a.kml", f'<kml xmlns="http://www.opengis.net/kml/2.2" {schema}>{mark}<wfs:FeatureCollection/></kml>'
    )
    assert desk.open("bronze/a.kml").kind == "LIBKML"
    assert host.visits == []


def test_links_of_gpx_are_only_texts(desk: Desk, host: Host) -> None:
    link = f'<link href="{host.address}"><text>x</text></link>'
    desk.put("bronze/a.gpx", GPX.format(WAYPOINT.replace("</wpt>", f"{link}</wpt>")))
    assert desk.rows("bronze/a.gpx")[0]["link1_href"] == host.address
    assert host.visits == []


# JSON: arcs that are used without end, CRSs that are no names


def test_arcs_that_are_used_without_end_are_rejected(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topojson, "MAX_POINTS", 10_000)
    many = {"type": "MultiLineString", "arcs": [[0, 1, ~1]] * 2000}
    desk.put("bronze/a.json", json.dumps(topology(a=collected(many))))
    assert desk.refusal("bronze/a.json", source_crs="EPSG:4326") == "decompression_bomb"


@pytest.mark.parametrize(
    "change",
    [
        {"arcs": None},
        {"arcs": [[[0, 0]], 5]},
        {"objects": {"a": {"type": "LineString", "arcs": [99]}}},
        {"objects": {"a": {"type": "LineString", "arcs": [-99]}}},
        {"objects": []},
    ],
)
def test_a_topology_that_refers_to_nothing_is_rejected(desk: Desk, change: dict[str, Any]) -> None:
    desk.put("bronze/a.json", json.dumps({**topology(a=collected()), **change}))
    assert desk.refusal("bronze/a.json", source_crs="EPSG:4326") == "corrupt"


def test_a_topology_that_is_nested_too_deep_is_rejected(desk: Desk) -> None:
    desk.put("bronze/a.json", '{"type":"Topology","arcs":[],"objects":' + "[" * 100_000)
    assert desk.refusal("bronze/a.json") == "corrupt"


GRIDS = {"type": "GeographicCRS", "name": "x", "remarks": "PROJ CRS string: +proj=longlat +nadgrids=PIPE"}


@pytest.mark.parametrize(
    "crs",
    [
        {"type": "PROJJSON", "value": GRIDS},
        {"type": "Reference", "href": "http://127.0.0.1:9/crs"},
        "/etc/passwd",
        "+proj=longlat +nadgrids=PIPE",
        [UTM, {"type": "PROJJSON", "value": GRIDS}],
    ],
)
def test_a_crs_of_json_fg_is_a_name(desk: Desk, crs: Any) -> None:
    text = json_fg(crs, PLACE)
    desk.put("bronze/a.json", text)
    assert desk.refusal("bronze/a.json") == "unknown_source_crs"
    disguised = text.replace('"coordRefSys"', '"coord\\u0052ef\\u0053ys"')
    desk.put("bronze/a.json", disguised)
    assert desk.refusal("bronze/a.json") == "unknown_source_crs"
    place = json.dumps({**PLACE, "coordRefSys": crs})
    desk.put("bronze/a.json", json_fg(UTM, PLACE).replace(json.dumps(PLACE), place))
    assert desk.refusal("bronze/a.json") == "unknown_source_crs"


# Archives: File Geodatabases and MapInfo


def database_files(folder: Path) -> dict[str, bytes]:
    return {f"a.gdb/{file.name}": file.read_bytes() for file in geodatabase(folder, "roads").iterdir()}


def table_of(files: dict[str, bytes]) -> str:
    """Name the table of the features: the last one."""
    return max(name for name in files if name.endswith(".gdbtable"))


@pytest.mark.parametrize("place", [4, 8, 12, 16, 24, 32, 36])
@pytest.mark.parametrize("number", [2**31 - 1, 2**32 - 1])
def test_absurd_numbers_in_a_geodatabase_do_no_harm(desk: Desk, tmp_path: Path, place: int, number: int) -> None:
    files = database_files(tmp_path / "made")
    for name in (table_of(files), "a.gdb/a00000001.gdbtable", "a.gdb/a00000004.gdbtable"):
        data = bytearray(files[name])
        data[place : place + 4] = struct.pack("<I", number)
        desk.put(ZIP, archive({**files, name: bytes(data)}))
        assert outcome(desk, ZIP) in {"corrupt", "no_layer", "unknown_source_crs", "read", "no_features"}


def test_a_crs_of_a_geodatabase_that_leads_to_files_is_rejected(desk: Desk, tmp_path: Path) -> None:
    files = database_files(tmp_path / "made")
    roads, items = table_of(files), "a.gdb/a00000004.gdbtable"
    meridian, leading = ('PRIMEM["Greenwich",0.0]', 'PARAMETERFILE["x","/e"]')
    described = files[roads].replace(meridian.encode("utf-16-le"), leading.encode("utf-16-le"))
    begin = files[items].rindex(b"<WKT>") + len(b"<WKT>")
    disguised = b"&#80;ROJ4_GRIDS"  # PROJ4_GRIDS
    listed = files[items][:begin] + disguised + files[items][begin + len(disguised) :]
    assert described != files[roads]
    for name, data in ((roads, described), (items, listed)):
        desk.put(ZIP, archive({**files, name: data}))
        assert desk.refusal(ZIP) == "unknown_source_crs"


@pytest.mark.parametrize(
    ("extra", "code"),
    [
        ({"a.gdb/../x": b""}, "unsafe_archive"),
        ({"a.gdb/x.zip": b"x"}, "nested_archive"),
        ({"a.gdb/A00000001.GDBTABLE": b""}, "unsafe_archive"),
    ],
)
def test_a_geodatabase_is_an_archive_like_others(
    desk: Desk, tmp_path: Path, extra: dict[str, bytes], code: str
) -> None:
    desk.put(ZIP, archive({**database_files(tmp_path / "made"), **extra}))
    assert desk.refusal(ZIP) == code


def mapinfo(folder: Path, ending: str) -> dict[str, bytes]:
    points: list[bytes | None] = [shapely.to_wkb(shapely.Point(1, 2))]
    write_layer(folder / f"a.{ending}", "MapInfo File", [("n", "int32", [1])], points, geometry_type="Point")
    return {file.name: file.read_bytes() for file in folder.iterdir()}


@pytest.mark.parametrize(
    "change",
    [
        lambda tab: tab + b'\ncreate view "x" as select * from other\nOpen Table "/etc/passwd"\n',
        lambda tab: tab + b'begin_metadata\n"\\IsSeamless" = "TRUE"\nend_metadata\n',
        lambda tab: tab.replace(b"NATIVE", b"RASTER"),
        lambda tab: tab.replace(b"NATIVE", b"ODBC"),
        lambda tab: tab.replace(b"NATIVE", b"DBF"),
    ],
    ids=["view", "seamless", "raster", "odbc", "dbf"],
)
def test_a_mapinfo_table_that_refers_to_others_is_rejected(
    desk: Desk, tmp_path: Path, change: Callable[[bytes], bytes]
) -> None:
    files = mapinfo(tmp_path / "made", "tab")
    desk.put(ZIP, archive({**files, "a.tab": change(files["a.tab"])}))
    assert desk.refusal(ZIP) == "not_a_table"


@pytest.mark.parametrize("reference", ['"\\IsSeamless" = "TRUE"', 'create view "x" as', 'Open Table "/etc/passwd"'])
def test_a_mapinfo_table_of_which_not_all_is_looked_at_is_rejected(desk: Desk, tmp_path: Path, reference: str) -> None:
    files = mapinfo(tmp_path / "made", "tab")
    padding = "".join(f'"\\p{number}" = "{"x" * 60}"\r\n' for number in range(1000))
    metadata = f"begin_metadata\r\n{padding}{reference}\r\nend_metadata\r\n".encode()
    desk.put(ZIP, archive({**files, "a.tab": files["a.tab"] + metadata}))
    assert desk.refusal(ZIP) == "too_large_file"


def test_a_mapinfo_table_without_its_parts_is_rejected(desk: Desk, tmp_path: Path) -> None:
    for ending, part in (("tab", "a.dat"), ("mif", "a.mid")):
        files = mapinfo(tmp_path / ending, ending)
        del files[part]
        desk.put(ZIP, archive(files))
        assert desk.refusal(ZIP) == "missing_part"


# Damaged bytes: each file many times, in a process of its own, for GDAL could take it down


SEEDS: dict[str, Callable[[Path], bytes | dict[str, bytes]]] = {
    "a.gml": lambda _: gml("3.2").encode(),
    "a.gpx": lambda _: GPX.format(WAYPOINT + TRACK).encode(),
    "a.topojson": lambda _: json.dumps(topology(a=collected({"type": "LineString", "arcs": [0]}))).encode(),
    "a.json": lambda _: json_fg(UTM, PLACE).encode(),
    "gdb.zip": database_files,
    "tab.zip": lambda folder: mapinfo(folder, "tab"),
    "mif.zip": lambda folder: mapinfo(folder, "mif"),
}


@pytest.mark.parametrize("name", SEEDS)
def test_damaged_files_are_read_or_rejected(tmp_path: Path, name: str) -> None:
    made = SEEDS[name](tmp_path / "made")
    desk = Desk(tmp_path / "desk")
    numbers = random.Random(name)
    for each in range(DAMAGES):
        desk.put(f"bronze/{each}{Path(name).suffix}", damaged(made, numbers))
    command = [
        sys.executable,
        "-W",
        "ignore",
        "-m",
        "tests.integration.handlers.vector.damaged_files",
        str(desk.folder),
    ]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=100, cwd=ROOT)
    assert done.returncode == 0, done.stderr[-2000:]
    assert len(done.stdout.split()) == DAMAGES


DAMAGES = int(os.environ.get("DAMAGES", "40"))


def damaged(made: bytes | dict[str, bytes], numbers: random.Random) -> bytes:
    """Change, remove or repeat some bytes of a file, or of one of an archive."""
    if isinstance(made, dict):
        name = numbers.choice([each for each, data in made.items() if data])
        return archive({**made, name: damaged(made[name], numbers)})
    data = bytearray(made)
    for _ in range(numbers.randint(1, 8)):
        begin = numbers.randrange(len(data))
        end = min(len(data), begin + numbers.randint(1, 16))
        piece = bytes(data[begin:end])
        data[begin:end] = numbers.choice([b"", piece * 3, numbers.randbytes(len(piece)), b"\xff" * len(piece)])
        if not data:
            return b"x"
    return bytes(data)


def test_a_geojson_stays_a_geojson_among_the_drivers(desk: Desk) -> None:
    desk.put("bronze/a.json", features({"type": "Topology", "note": "opengis.net/gml"}))
    assert desk.open("bronze/a.json").kind == "GeoJSON"
