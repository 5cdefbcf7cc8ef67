"""Archives: what is unpacked of them, and what is refused."""

import io
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.integration.handlers.vector.sources import Desk, archive, features, shapefile

from graticule.handlers import zip_archive
from graticule.handlers.answers import Stopped

ZIP = "bronze/a.zip"


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("../a.geojson", "unsafe_archive"),
        ("x/../../a.geojson", "unsafe_archive"),
        ("/etc/a.geojson", "unsafe_archive"),
        ("C:/a.geojson", "unsafe_archive"),
        ("..\\a.geojson", "unsafe_archive"),
        ("a.geojson\0.txt", "unsafe_archive"),
        ("inner.zip", "nested_archive"),
        ("inner.KMZ", "nested_archive"),
        ("inner.tar.gz", "nested_archive"),
    ],
)
def test_a_name_that_leads_elsewhere_is_refused(desk: Desk, name: str, code: str) -> None:
    packed = archive({name.replace("\0", "?"): features(), "fine.geojson": features()})
    desk.put(ZIP, packed.replace(name.replace("\0", "?").encode(), name.encode()))
    assert desk.refusal(ZIP) == code
    assert not (desk.folder / "silver").exists()


@pytest.mark.parametrize("inner", [archive({"a": b""}), b"\x1f\x8b\x08", b"7z\xbc\xaf'\x1c", b"x" * 257 + b"ustar"])
def test_an_archive_in_an_archive_is_known_by_its_bytes(desk: Desk, inner: bytes) -> None:
    desk.put(ZIP, archive({"a.geojson": features(), "b.dat": inner}))
    assert desk.refusal(ZIP) == "nested_archive"


def changed(files: dict[str, str], change: Callable[[zipfile.ZipInfo], None]) -> bytes:
    """Pack files of which something is different."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as written:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name)
            change(entry)
            written.writestr(entry, data)
    return packed.getvalue()


def test_a_link_and_a_secret_are_refused(desk: Desk) -> None:
    desk.put(ZIP, changed({"a.geojson": "/etc/passwd"}, lambda entry: setattr(entry, "external_attr", 0o120777 << 16)))
    assert desk.refusal(ZIP) == "unsafe_archive"
    packed = bytearray(archive({"a.geojson": features()}))
    directory = packed.index(b"PK\x01\x02")
    packed[directory + 8] |= 1  # encrypted
    desk.put(ZIP, bytes(packed))
    assert desk.refusal(ZIP) == "unsafe_archive"


def test_other_compressions_are_refused(desk: Desk) -> None:
    desk.put(ZIP, archive({"a.geojson": features()}, zipfile.ZIP_BZIP2))
    assert desk.refusal(ZIP) == "unsafe_archive"


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_files_that_are_one_another_are_refused(desk: Desk) -> None:
    desk.put(ZIP, changed({"a.geojson": features(), "A.geojson": features()}, lambda _: None))
    assert desk.refusal(ZIP) == "unsafe_archive"
    packed = bytearray(archive({"a.geojson": features(), "b.geojson": features()}))
    second = packed.index(b"PK\x01\x02", packed.index(b"PK\x01\x02") + 1)
    packed[second + 42 : second + 46] = struct.pack("<I", 0)  # it begins where the first does
    desk.put(ZIP, bytes(packed))
    assert desk.refusal(ZIP) == "decompression_bomb"


def test_what_grows_too_much_is_refused(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zip_archive, "FREE_BYTES", 100_000)
    desk.put(ZIP, archive({"a.geojson": features() + " " * 1_000_000}))
    assert desk.refusal(ZIP) == "decompression_bomb"
    monkeypatch.setattr(zip_archive, "MAX_RATIO", 5000)
    assert desk.open(ZIP).layer == "a"
    monkeypatch.setattr(zip_archive, "MAX_BYTES", 100_000)
    assert desk.refusal(ZIP) == "decompression_bomb"


def test_growth_is_counted_whatever_is_announced(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zip_archive, "FREE_BYTES", 100_000)
    monkeypatch.setattr(zip_archive, "PIECE_BYTES", 10_000)
    packed = bytearray(archive({"a.geojson": features() + " " * 1_000_000}))
    for mark, place in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        begin = packed.index(mark) + place
        packed[begin : begin + 4] = struct.pack("<I", 100)
    desk.put(ZIP, bytes(packed))
    assert desk.refusal(ZIP) in {"decompression_bomb", "corrupt"}
    assert not any((desk.folder / "silver").rglob("*.geojson"))


def test_too_many_files_are_refused(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zip_archive, "MAX_ENTRIES", 2)
    desk.put(ZIP, archive({"a.geojson": features(), "b": "", "c": ""}))
    assert desk.refusal(ZIP) == "decompression_bomb"
    monkeypatch.setattr(zip_archive, "MAX_DIRECTORY_BYTES", 100)
    assert desk.refusal(ZIP) == "decompression_bomb"


@pytest.mark.parametrize("cut", [30, -30])
def test_half_an_archive_is_refused(desk: Desk, cut: int) -> None:
    desk.put(ZIP, archive({"a.geojson": features()})[:cut])
    assert desk.refusal(ZIP) == "corrupt"


def test_what_is_packed_besides_is_passed_over(desk: Desk) -> None:
    junk = {"__MACOSX/._My map.geojson": "x", ".DS_Store": "x", "read me.txt": "lon,lat\n1,2\n", "a.pdf": "x", "b": "x"}
    desk.put(ZIP, archive({**junk, "x/": "", "x/My map.geojson": features({"n": 5})}))
    opened = desk.open(ZIP)
    assert opened.path == "silver/89abcdef/source/0-1-layer.geojson"
    assert opened.layer == "My map"
    assert desk.read(opened).to_pylist() == [{"n": 5, "wkt": "POINT (1 2)"}]
    assert [told["message"] for told in desk.told[:1]] == ["unpacking"]


def test_an_archive_without_features_is_refused(desk: Desk, tmp_path: Path) -> None:
    desk.put(ZIP, archive({"a.pdf": "x"}))
    assert desk.refusal(ZIP) == "no_layer"
    desk.put(ZIP, archive({}))
    assert desk.refusal(ZIP) == "no_layer"
    desk.put(ZIP, archive({"a.dbf": shapefile(tmp_path / "s", ["a"])[".dbf"]}))
    assert desk.refusal(ZIP) == "missing_part"


def test_files_of_an_archive_are_layers(desk: Desk) -> None:
    files = {"a.geojson": features({"n": 1}), "x/b.geojson": features({"n": 2}), "y/b.geojson": features({"n": 3})}
    desk.put(ZIP, archive(files))
    assert desk.refusal(ZIP) == "several_layers"
    assert desk.refusal(ZIP, layer="b") == "unknown_layer"
    assert [desk.rows(ZIP, layer=name)[0]["n"] for name in ("a", "y/b.geojson", "x/b.geojson")] == [1, 3, 2]


def test_a_kmz_is_its_document(desk: Desk) -> None:
    kml = '<kml xmlns="http://www.opengis.net/kml/2.2"><Placemark><name>{}</name><Point><coordinates>1,2</coordinates>'
    kml += "</Point></Placemark></kml>"
    desk.put("bronze/a.kmz", archive({"doc.kml": kml.format("main"), "files/other.kml": kml.format("other")}))
    (row,) = desk.rows("bronze/a.kmz")
    assert row["Name"] == "main"


def test_who_unpacks_can_be_stopped(desk: Desk) -> None:
    desk.put(ZIP, archive({"a.geojson": features()}))
    desk.signals.cancelled = True
    with pytest.raises(Stopped):
        desk.open(ZIP)
    assert not any((desk.folder / "silver").rglob("*.geojson"))


def test_what_was_left_of_another_attempt_is_not_read(desk: Desk, tmp_path: Path) -> None:
    parts = shapefile(tmp_path / "s", ["é"])
    desk.put("silver/89abcdef/source/0-1-layer.cpg", "CP437")
    desk.put("silver/89abcdef/source/0-1-layer.shp", "x")
    desk.put(ZIP, archive({f"a{ending}": parts[ending] for ending in (".shp", ".shx", ".dbf", ".prj")}))
    assert desk.rows(ZIP)[0]["name"] == "é"


def test_an_attempt_that_was_given_up_does_not_write_over_the_next(desk: Desk) -> None:
    desk.put("bronze/a.zip", archive({"a.geojson": features({"n": 1})}))
    desk.delivery_count = 2
    opened = desk.open("bronze/a.zip")
    desk.delivery_count = 1  # it goes on late
    desk.open("bronze/a.zip")
    assert desk.read(opened)["n"].to_pylist() == [1]
