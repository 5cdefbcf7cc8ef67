"""`layers: all`: every layer of a file becomes part of one table."""

import io
import json
import struct
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely
from tests.integration.handlers.vector.ingesting import Ingestion, Refused
from tests.integration.handlers.vector.sources import Desk, archive, features, shapefile
from tests.integration.handlers.vector.writers import write_layer

from graticule.handlers.vector.examining import chunks
from graticule.handlers.vector.sources import choosing

KML = '<kml xmlns="http://www.opengis.net/kml/2.2"><Document>{}</Document></kml>'
MARK = "<Placemark><name>{0}1</name><Point><coordinates>{1},2</coordinates></Point></Placemark>"
FOLDER = f"<Folder><name>{{0}}</name>{MARK}</Folder>"


def wkb(*shapes: shapely.Geometry) -> list[bytes | None]:
    return [shapely.to_wkb(shape) for shape in shapes]


def write_package(file: Path) -> Path:
    """Write layers whose fields, types and CRSs differ."""
    near, far = shapely.Point(500_000, 5_500_000), shapely.Point(3, 50)
    columns: list[tuple[str, str, list[Any]]] = [
        ("Name", "text", ["a"]),
        ("size", "int32", [7]),
        ("code", "int32", [12]),
    ]
    write_layer(file, "GPKG", columns, wkb(near), geometry_type="Point", crs="EPSG:32631", layer="utm")
    columns = [
        ("name", "text", ["b", None]),
        ("size", "float64", [0.5, None]),
        ("code", "date", [None, None]),
        ("layer", "text", ["x", "y"]),
    ]
    shapes = wkb(far, shapely.LineString([(3, 50), (4, 51)]))
    write_layer(file, "GPKG", columns, shapes, geometry_type="Unknown", layer="degrees", append=True)
    write_layer(file, "GPKG", [("n", "int32", [])], [], geometry_type="Point", layer="empty", append=True)
    return file


def test_layers_become_one_table(ingestion: Ingestion) -> None:
    loaded = ingestion.load(write_package(ingestion.new_file("gpkg")), layers="all")
    types = {column["name"]: column["type"] for column in loaded.columns}
    assert types == {"name": "text", "size": "double precision", "code": "text", "layer": "text", "layer_2": "text"}
    assert loaded.values("layer_2") == ["utm", "degrees", "degrees"]
    assert loaded.values("layer") == [None, "x", "y"]
    assert loaded.values("name") == ["a", "b", None]
    assert loaded.values("size") == [7, 0.5, None]
    assert loaded.values("code") == ["12", None, None]
    first = loaded.features[0]["geometry"]["coordinates"][0]
    assert first == pytest.approx([3, 49.6517], abs=1e-3)
    assert loaded.geometry.startswith("geometry(Geometry")
    assert {"merged_layers", "mixed_types", "other_crs", "mixed_geometries"} <= loaded.fixes
    facts = loaded.source["facts"]
    assert (facts["layer"], facts["layers"], facts["layer_count"], facts["crs_code"]) == (
        None,
        ["utm", "degrees"],
        2,
        None,
    )
    assert facts["bbox"] == pytest.approx([3, 49.6517, 4, 51], abs=1e-3)


def test_large_layers_are_loaded_in_chunks_of_each(ingestion: Ingestion, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "ROWS_PER_CHUNK", 1)
    file = write_package(ingestion.new_file("gpkg"))
    job = ingestion.rows.new_job()
    source = ingestion.validated(job, file, layers="all")
    planned = [
        {"index": 0, "first_fid": 1, "row_count": 1, "layer": 0},
        {"index": 1, "first_fid": 2, "row_count": 2, "layer": 1},
    ]
    result = ingestion.loaded(job, {**source, "chunks": planned}, "direct_t1")
    loaded = ingestion.served(source, result, "direct_t1")
    assert loaded.values("layer_2") == ["utm", "degrees", "degrees"]
    assert [feature["id"] for feature in loaded.features] == [1, 2, 3]


def test_chunks_of_layers_are_numbered_on() -> None:
    layers = [
        chunks.planned(None, 3),
        chunks.planned(None, 0),
        chunks.planned([(0, 300_000, 300_000), (300_000, 300_001, 1)], 300_001),
    ]
    joined = chunks.joined(layers)
    assert [(each.index, each.first_fid, each.row_count, each.layer, each.begin) for each in joined] == [
        (0, 1, 3, 0, None),
        (1, 4, 300_000, 2, 0),
        (2, 300_004, 1, 2, 300_000),
    ]


def test_folders_of_kml_are_sent_at_once(ingestion: Ingestion) -> None:
    names = [f"Folder {number}" for number in range(8)]
    file = ingestion.new_file("kml")
    file.write_text(KML.format("".join(FOLDER.format(name, place) for place, name in enumerate(names))))
    with pytest.raises(Refused) as refused:
        ingestion.load(file)
    assert refused.value.code == "several_layers"
    loaded = ingestion.load(file, layers="all")
    assert loaded.values("layer") == names
    assert loaded.values("name") == [f"{name}1" for name in names]
    assert [feature["geometry"]["coordinates"][0][0] for feature in loaded.features] == list(range(8))
    assert loaded.source["bbox"] == [0, 2, 7, 2]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_files_of_an_archive_are_taken_together(desk: Desk, tmp_path: Path) -> None:
    parts = {f"roads{ending}": data for ending, data in shapefile(tmp_path / "s", ["é"]).items()}
    package = write_package(tmp_path / "made.gpkg").read_bytes()
    files: dict[str, Any] = {
        **parts,
        "x/b.geojson": features({"n": 2}),
        "y/b.geojson": features({"n": 3}),
        "c.gpkg": package,
    }
    desk.put("bronze/a.zip", archive(files))
    opened = desk.open_all("bronze/a.zip", layers="all")
    assert [each.name for each in opened] == ["roads", "x/b.geojson", "y/b.geojson", "c/utm", "c/degrees"]
    assert len({each.path for each in opened}) == 4
    read = [desk.read(each).to_pylist() for each in opened]
    assert [rows[0].get("n") for rows in read] == [0, 2, 3, None, None]
    assert read[0][0]["name"] == "é"


def test_all_layers_of_one_is_that_one(desk: Desk) -> None:
    desk.put("bronze/a.geojson", features({"n": 1}))
    (opened,) = desk.open_all("bronze/a.geojson", layers="all")
    assert opened.name == "a"


def test_all_layers_of_gpx_have_the_points_too(desk: Desk) -> None:
    track = '<trk><trkseg><trkpt lat="2" lon="1"/><trkpt lat="3" lon="1"/></trkseg></trk>'
    desk.put("bronze/a.gpx", f'<gpx version="1.1" xmlns="http://www.topografix.com/GPX/1/1">{track}</gpx>')
    assert [each.layer for each in desk.open_all("bronze/a.gpx", layers="all")] == ["tracks", "track_points"]
    assert [each.layer for each in desk.open_all("bronze/a.gpx", layers="all", layer="tracks")] == ["tracks"]


def test_too_many_layers_are_rejected(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choosing, "MAX_MERGED", 2)
    desk.put("bronze/a.zip", archive({f"{name}.geojson": features() for name in "abc"}))
    assert desk.refusal("bronze/a.zip", layers="all") == "too_many_layers"


def test_a_rejection_names_the_layer(ingestion: Ingestion) -> None:
    odd = json.dumps(
        {
            "type": "FeatureCollection",
            "features": [
                {
                    "type": "Feature",
                    "properties": {"d": "2020-01-01T00:00:00Z"},
                    "geometry": {"type": "Point", "coordinates": [1e9, 1e9]},
                }
            ],
        }
    )
    file = ingestion.new_file("zip")
    file.write_bytes(archive({"good.geojson": features(), "bad.geojson": odd}))
    with pytest.raises(Refused) as refused:
        ingestion.load(file, layers="all")
    assert refused.value.code == "absurd_bounds"
    assert "layer bad" in refused.value.message


BROKEN_ARC = struct.pack("<BII", 1, 8, 99)  # it announces more vertices than it has


def parquet(*values: bytes) -> bytes:
    geo = {"version": "1.0.0", "primary_column": "g", "columns": {"g": {"encoding": "WKB", "geometry_types": []}}}
    written = io.BytesIO()
    pq.write_table(pa.table({"g": list(values)}).replace_schema_metadata({"geo": json.dumps(geo)}), written)
    return written.getvalue()


POINT = shapely.to_wkb(shapely.Point(1, 2))
GOOD_TABLE = "id,wkt\n1,POINT (1 2)\n2,POINT (1 3)\n"


@pytest.mark.parametrize(
    ("files", "code", "where"),
    [
        ({"a.parquet": parquet(POINT, POINT), "b.parquet": parquet(POINT, BROKEN_ARC)}, "corrupt", "feature 4"),
        ({"a.csv": GOOD_TABLE, "b.csv": "id,wkt\n1,POINT (1 2)\n2,POINT (1\n"}, "unreadable_row", "feature 2"),
        ({"a.csv": GOOD_TABLE, "b.csv": "id,wkt\n1,POIN (1 2)\n2,POINT (1 2)\n"}, "unreadable_row", "feature 1"),
        (
            {"a.geojson": features(), "b.geojson": '{"type":"FeatureCollection","crs":{"type":"link"}}'},
            "linked_crs",
            "crs",
        ),
    ],
    ids=["arc", "cut", "first row", "link"],
)
def test_a_rejection_names_the_file_and_the_feature(
    ingestion: Ingestion, files: dict[str, bytes], code: str, where: str
) -> None:
    file = ingestion.new_file("zip")
    file.write_bytes(archive(files))
    with pytest.raises(Refused) as refused:
        ingestion.load(file, layers="all")
    assert refused.value.code == code
    assert f"layer b, {where}" in refused.value.message
