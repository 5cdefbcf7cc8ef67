"""`raster.validate`: what it tells of good files, and of bad ones of every kind."""

import gzip
import hashlib
import io
import struct
import subprocess
import sys
import tarfile
import time
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import orjson
import pytest
import rasterio
import rasterio.shutil
from affine import Affine
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from rasterio.control import GroundControlPoint
from rasterio.crs import CRS
from rasterio.enums import Resampling
from rio_cogeo.cogeo import cog_validate
from tests.examples import examples
from tests.rasters import KINDS, make_raster, write_with_nodata
from tests.unit.handlers.raster.large_tiffs import hollow_tiff
from tests.unit.handlers.raster.range_server import served
from tests.unit.handlers.raster.validating import NORTH_UP, accepted, gradient, rejected, result_of, write

from graticule.core.errors import Unavailable
from graticule.core.validation import MOST_FACT_BYTES
from graticule.handlers.context import Signals
from graticule.handlers.findings import Rejected
from graticule.handlers.raster import examination, sampling
from graticule.handlers.raster.examination import Wanted, examine
from graticule.handlers.raster.file_kinds import GRIB, HDF5, TIFF, kind_of
from graticule.handlers.raster.hdf5_references import check_references
from graticule.handlers.raster.inspection import block_bytes, facts_of, file_named_in
from graticule.handlers.raster.opening import ALLOWED_DRIVERS, gdal_environment, open_raster
from graticule.handlers.raster.preparation import Readable
from graticule.handlers.stac.inputs import Source

MEBIBYTE = 1024 * 1024


@pytest.fixture
def bronze(tmp_path: Path) -> Path:
    folder = tmp_path / "bronze"
    folder.mkdir()
    return folder


# Good files


@pytest.mark.parametrize("kind", ["rgb", "rgba", "multispectral", "dem", "categorical"])
def test_the_type_is_found(bronze: Path, kind: str) -> None:
    output = accepted(make_raster(bronze / "a.tif", kind))
    assert output["raster_type"] == output["facts"]["raster_type"] == kind
    assert output["facts"]["nodata"] == KINDS[kind].nodata
    assert output["facts"]["has_alpha"] == (kind == "rgba")
    assert output["facts"]["has_colour_table"] == (kind == "categorical")


def test_the_output(bronze: Path) -> None:
    file = make_raster(bronze / "a.tif", "rgb", width=300, height=200)
    output = accepted(file, content_hash=True)
    assert output["source"] == "bronze/a.tif"
    assert output["size_bytes"] == file.stat().st_size
    assert output["raw_size_mb"] == round(300 * 200 * 3 / MEBIBYTE, 3)
    assert output["content_hash"] == hashlib.sha256(file.read_bytes()).hexdigest()
    assert output["etag"]
    facts = output["facts"]
    assert facts["crs"] == "EPSG:32620"
    assert facts["bounds"] == [500_000, 1_998_000, 503_000, 2_000_000]
    assert facts["resolution"] == [10, 10]
    assert output["bbox"] == facts["bbox"] == pytest.approx([-63, 18.07056, -62.97163, 18.08871], abs=1e-4)
    assert facts["sample"] == {"blocks": 1, "pixels": 60_000, "valid_pixels": 60_000, "is_complete": True}


def test_what_a_band_says_is_told(bronze: Path) -> None:
    file = write(bronze / "a.tif", gradient(2), nodata=7)
    with rasterio.open(file, "r+") as dataset:
        dataset.descriptions, dataset.units = ("near infrared", None), ("K", "")
        dataset.scales, dataset.offsets = (0.1, 1), (-5, 0)
    first, second = accepted(file)["facts"]["bands"]
    assert (first["description"], first["unit"], first["scale"], first["offset"]) == ("near infrared", "K", 0.1, -5)
    assert (second["nodata"], second["unit"], second["dtype"]) == (7, None, "uint16")


def test_nodata_that_json_cannot_tell(bronze: Path) -> None:
    facts = accepted(write(bronze / "a.tif", gradient(dtype="float32"), nodata=np.nan))["facts"]
    assert facts["nodata"] == facts["bands"][0]["nodata"] == "nan"


def test_bounds_across_the_antimeridian(bronze: Path) -> None:
    west, _, east, _ = accepted(make_raster(bronze / "a.tif", "antimeridian", width=900))["bbox"]
    assert 179 < west < 180
    assert -180 < east < -179
    unwrapped = write(bronze / "b.tif", transform=Affine(0.25, 0, 175, 0, -0.25, 10))
    assert accepted(unwrapped)["bbox"] == pytest.approx([175, -5, -165, 10])


GOES = "+proj=geos +h=35786023 +lon_0=-75 +sweep=x +ellps=GRS80"


@pytest.mark.parametrize(
    ("crs", "transform", "bbox"),
    [
        (GOES, Affine(180_860, 0, -5_425_800, 0, -180_860, 5_425_800), [-153, -66, 3, 66]),
        ("EPSG:6933", Affine(578_917.68, 0, -17_367_530.45, 0, -243_818, 7_314_540.83), [-180, -85, 180, 85]),
        ("ESRI:54009", Affine(600_000, 0, -18_000_000, 0, -300_000, 9_000_000), [-180, -89, 180, 89]),
        ("EPSG:3413", Affine(50_000, 0, -1.5e6, 0, -50_000, 1.5e6), [-180, 70, 180, 90]),
    ],
)
def test_bounds_of_what_reaches_to_the_ends_of_the_earth(
    bronze: Path, crs: str, transform: Affine, bbox: list[float]
) -> None:
    file = write(bronze / "a.tif", np.ones((1, 60, 60), "uint8"), crs=crs, transform=transform)
    assert accepted(file)["bbox"] == pytest.approx(bbox, abs=1.5)


def test_the_time_of_the_picture_reaches_the_catalogue(bronze: Path) -> None:
    file = write(bronze / "a.tif")
    with rasterio.open(file, "r+") as dataset:
        dataset.update_tags(TIFFTAG_DATETIME="2023:04:05 06:07:08", AREA_OR_POINT="Point", secret="of no concern")
    output = accepted(file)
    assert output["facts"]["tags"] == {"TIFFTAG_DATETIME": "2023:04:05 06:07:08", "AREA_OR_POINT": "Point"}
    assert Source.model_validate(output).acquired_at == datetime(2023, 4, 5, 6, 7, 8, tzinfo=UTC)


def test_texts_of_a_file_are_cut(bronze: Path) -> None:
    file = write(bronze / "a.tif", gradient(70, 4, 4, "uint8"))
    with rasterio.open(file, "r+") as dataset:
        dataset.descriptions = ["\U0001f30d" * 5000] * 70
        dataset.units = ["\ue000\x85" * 500] * 70
        dataset.update_tags(TIFFTAG_SOFTWARE="s" * 10_000)
    facts = accepted(file)["facts"]
    assert len(facts["bands"]) == 64
    assert facts["bands"][63]["description"] == "\U0001f30d" * 99 + "…"
    assert facts["bands"][63]["unit"] == "\ufffd" * 19 + "…"
    assert facts["tags"]["TIFFTAG_SOFTWARE"] == "s" * 199 + "…"
    assert len(orjson.dumps(facts)) < MOST_FACT_BYTES


def test_nodata_that_no_pixel_can_have(bronze: Path) -> None:
    output = accepted(write(bronze / "a.tif", gradient(dtype="uint8"), nodata=0.5))
    assert [each["code"] for each in output["findings"]] == ["unusable_nodata"]
    assert output["facts"]["sample"]["valid_pixels"] == 60 * 80  # GDAL's mask takes 0 for empty
    assert accepted(write(bronze / "b.tif", gradient(dtype="uint8"), nodata=7))["outcome"] == "ok"


def test_nan_without_nodata(bronze: Path) -> None:
    data = gradient(dtype="float32")
    data[0, :10] = np.nan
    (found,) = accepted(write(bronze / "a.tif", data))["findings"]
    assert found["code"] == "nan_without_nodata"
    assert accepted(write(bronze / "b.tif", data, nodata=np.nan))["outcome"] == "ok"


def test_a_cog_is_told_as_the_tool_tells_it(bronze: Path) -> None:
    large = gradient(1, 700, 600, "uint8")
    profile = {"tiled": True, "blockxsize": 256, "blockysize": 256, "compress": "deflate"}
    files = [
        write(bronze / "cog.tif", large, driver="COG", blocksize=256),
        write(bronze / "strips.tif", large),
        write(bronze / "tiles.tif", large, **profile),
        write(bronze / "late.tif", large, **profile),
        write(bronze / "small.tif", gradient(), driver="COG"),
    ]
    with rasterio.open(files[3], "r+") as dataset:
        dataset.build_overviews([2], Resampling.average)
    edited = write(bronze / "edited.tif", large, driver="COG", blocksize=256)
    with rasterio.open(edited, "r+", IGNORE_COG_LAYOUT_BREAK="YES") as dataset:
        dataset.write(large[:, ::-1])
    outputs = {file.stem: accepted(file) for file in [*files, edited]}
    for file in [*files, edited]:
        assert outputs[file.stem]["is_cog"] == cog_validate(str(file), strict=True, quiet=True)[0], file.stem
    codes = {name: [each["code"] for each in output["findings"]] for name, output in outputs.items()}
    assert codes == {
        "cog": [],
        "strips": ["not_tiled", "no_overviews", "not_cog"],
        "tiles": ["no_overviews", "not_cog"],
        "late": ["not_cog"],
        "small": [],
        "edited": ["not_cog"],
    }
    assert outputs["cog"]["outcome"] == "ok"
    assert outputs["late"]["outcome"] == "ok"
    assert {each["severity"] for output in outputs.values() for each in output["findings"]} == {"info"}
    assert outputs["cog"]["facts"]["overviews"] == [2, 4] or outputs["cog"]["facts"]["overviews"] == [2]


@pytest.mark.parametrize("dtype", examination.DTYPES)
def test_types_that_are_accepted(bronze: Path, dtype: str) -> None:
    assert accepted(write(bronze / "a.tif", gradient(dtype=dtype)))["facts"]["dtype"] == dtype


def test_half_floats_are_read_as_floats(bronze: Path) -> None:
    """GDAL has no type of 16 bits before 3.11, and widens them without loss."""
    values = gradient(dtype="float32").astype("float16").astype("float32")
    file = write(bronze / "a.tif", values, NBITS=16)
    assert accepted(file)["facts"]["dtype"] == "float32"
    with rasterio.open(file) as dataset:
        assert (dataset.read() == values).all()


@pytest.mark.parametrize("nodata", [2**64 - 1, 2**53 + 1, 0])
def test_nodata_of_64_bits_is_told_exactly(bronze: Path, nodata: int) -> None:
    file = write_with_nodata(bronze / "a.tif", np.array([[[nodata, 1], [2, nodata]]], "uint64"), nodata)
    facts = accepted(file)["facts"]
    assert (facts["nodata"], facts["bands"][0]["nodata"], facts["sample"]["valid_pixels"]) == (nodata, nodata, 2)


def netcdf_of(file: Path, data: NDArray[Any], **options: Any) -> Path:
    origin = write(file.with_suffix(".origin"), data)
    rasterio.shutil.copy(origin, file, driver="netCDF", **options)
    origin.unlink()
    return file


def test_other_formats(bronze: Path) -> None:
    jp2 = write(bronze / "a.jp2", gradient(), driver="JP2OpenJPEG", QUALITY="100", REVERSIBLE="YES")
    netcdf = netcdf_of(bronze / "a.nc", gradient(dtype="float32"))
    netcdf4 = netcdf_of(bronze / "b.nc", gradient(dtype="float32"), FORMAT="NC4")
    for file, driver in ((jp2, "JP2OpenJPEG"), (netcdf, "netCDF"), (netcdf4, "netCDF")):
        output = accepted(file)
        assert output["facts"]["driver"] == driver
        assert output["facts"]["crs"] == "EPSG:4326"
        assert "not_cog" in {each["code"] for each in output["findings"]}


def test_what_is_done_is_information(bronze: Path) -> None:
    rotated = write(bronze / "r.tif", transform=NORTH_UP @ Affine.rotation(10))
    flipped = write(bronze / "f.tif", transform=Affine(0.01, 0, 10, 0, 0.01, 50))
    for file, code in ((rotated, "rotated"), (flipped, "flipped")):
        output = accepted(file)
        assert (output["outcome"], [each["code"] for each in output["findings"]]) == ("ok", [code])
        assert not output["facts"]["is_north_up"]
    (reprojected,) = accepted(write(bronze / "c.tif"), target_crs="EPSG:3857")["findings"]
    assert (reprojected["code"], reprojected["severity"]) == ("other_crs", "info")
    assert reprojected["what"] == "Reprojected from EPSG:4326 to EPSG:3857 with nearest-neighbour resampling."
    assert accepted(bronze / "c.tif", target_crs="EPSG:4326")["outcome"] == "ok"


def test_the_type_that_was_asked_for(bronze: Path) -> None:
    file = write(bronze / "a.tif")
    assert accepted(file, raster_type="dem")["raster_type"] == "dem"
    assert set(rejected(file, raster_type="rgb")) == {"type_mismatch"}


# Bad files


def zipped(_: Path) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("a.tif", b"II*\0")
    return buffer.getvalue()


def tarred(_: Path) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("a.tif"))
    return buffer.getvalue()


def vrt(good: Path) -> bytes:
    source = f"<SimpleSource><SourceFilename>{good}</SourceFilename><SourceBand>1</SourceBand></SimpleSource>"
    band = f'<VRTRasterBand dataType="UInt16" band="1">{source}</VRTRasterBand>'
    return f'<VRTDataset rasterXSize="80" rasterYSize="60">{band}</VRTDataset>'.encode()


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (lambda _: b"", "empty_file"),
        (lambda _: b"hello, world\n" * 40, "not_a_raster"),
        (lambda _: b"\0" * 5000, "not_a_raster"),
        (lambda _: b"II*\0", "corrupt"),
        (lambda _: b"\x89PNG\r\n\x1a\n", "corrupt"),
        (vrt, "vrt_not_accepted"),
        (zipped, "corrupt"),
        (tarred, "archive_not_accepted"),
        (lambda good: gzip.compress(good.read_bytes()), "archive_not_accepted"),
        (lambda good: good.read_bytes()[:-100], "truncated"),
        (lambda good: b"II*\0" + struct.pack("<I", 9_999_999) + good.read_bytes()[8:], "truncated"),
    ],
)
def test_what_is_no_raster(bronze: Path, content: Callable[[Path], bytes], code: str) -> None:
    good = write(bronze / "good.tif")
    (bronze / "a.tif").write_bytes(content(good))
    assert set(rejected(bronze / "a.tif")) == {code}


def test_a_file_that_is_not_there(bronze: Path) -> None:
    assert set(rejected(bronze / "a.tif")) == {"not_found"}


def test_several_reasons_are_told_together(bronze: Path) -> None:
    file = write(bronze / "a.tif", np.zeros((1, 50, 50), "complex64"), crs=None, transform=Affine.identity(), nodata=0)
    assert set(rejected(file)) == {"complex_type", "no_crs", "no_geotransform", "all_nodata"}
    assert set(rejected(write(bronze / "b.png", gradient(3, dtype="uint8"), driver="PNG"))) == {
        "no_crs",
        "no_geotransform",
    }


@pytest.mark.parametrize(
    ("profile", "code"),
    [
        ({"crs": None}, "no_crs"),
        ({"crs": 'LOCAL_CS["site",UNIT["metre",1]]'}, "unsupported_crs"),
        ({"transform": Affine.identity()}, "no_geotransform"),
        ({"transform": Affine(10, 0, 500_000, 0, -10, 4_900_000)}, "absurd_bounds"),
        ({"transform": Affine(10, 0, 0, 0, -0.1, 10)}, "absurd_bounds"),
        ({"transform": Affine(np.nan, 0, 0, 0, -1, 10)}, "absurd_bounds"),
        ({"crs": "EPSG:32620", "transform": Affine(0.0001, 0, -63, 0, -0.0001, 44)}, "absurd_bounds"),
        ({"crs": "EPSG:32620", "transform": Affine(10, 0, 9e8, 0, -10, 9e8)}, "absurd_bounds"),
        ({"crs": "IAU_2015:49900"}, "other_body"),
        ({"crs": "IAU_2015:30110", "transform": Affine(100, 0, 0, 0, -100, 0)}, "other_body"),
    ],
)
def test_what_has_no_place_on_the_earth(bronze: Path, profile: dict[str, Any], code: str) -> None:
    assert set(rejected(write(bronze / "a.tif", **profile))) == {code}


def test_another_body_is_named(bronze: Path) -> None:
    (found,) = rejected(write(bronze / "a.tif", crs="IAU_2015:49900")).values()
    assert "Mars" in found["what"]


@pytest.mark.parametrize(
    ("crs", "transform", "codes"),
    [
        ("EPSG:32620", Affine(10, 0, 4e6, 0, -10, 1e6), ["outside_area_of_use"]),  # 30 degrees beside its zone
        ("EPSG:2154", Affine(10, 0, 650_000, 0, -10, 4_000_000), ["outside_area_of_use"]),  # Algeria in Lambert-93
        ("EPSG:32655", Affine(30, 0, 300_000, 0, -30, -4_100_000), []),  # Melbourne, as Landsat delivers it
        ("EPSG:32733", Affine(30, 0, 500_000, 0, -30, 10_500_000), []),
        ("EPSG:4326", Affine(4.5, 0, -182.25, 0, -3.05, 91.5), []),  # centres of pixels on the poles and ±180
        ("EPSG:4326", Affine(360.0000000000001 / 80, 0, -180.00000000000006, 0, -3, 90.00000000000003), []),
    ],
)
def test_unusual_positions_are_accepted(bronze: Path, crs: str, transform: Affine, codes: list[str]) -> None:
    output = accepted(write(bronze / "a.tif", crs=crs, transform=transform))
    found = [each for each in output["findings"] if each["severity"] != "info"]
    assert [each["code"] for each in found] == codes
    assert (output["outcome"], {each["severity"] for each in found} <= {"warning"}) == ("ok", True)


def test_a_world_raster_is_not_wrapped_by_rounding(bronze: Path) -> None:
    around = Affine(360.0000000000001 / 80, 0, -180.00000000000006, 0, -180.00000000000006 / 60, 90.00000000000003)
    assert accepted(write(bronze / "a.tif", transform=around))["bbox"] == [-180, -90, 180, 90]


def test_resampling_is_told(bronze: Path) -> None:
    file = write(bronze / "a.tif", gradient(dtype="float32"))
    for options, method in (
        ({}, "nearest-neighbour"),
        ({"output_tier": "archive"}, "nearest-neighbour"),
        ({"output_tier": "visualization"}, "bilinear"),
        ({"resampling": "cubic_spline"}, "cubic spline"),
    ):
        (found,) = accepted(file, target_crs="EPSG:3857", **options)["findings"]
        assert found["what"] == f"Reprojected from EPSG:4326 to EPSG:3857 with {method} resampling."
    classes = write(bronze / "b.tif", (gradient(dtype="uint8") % 5).astype("uint8"))
    (found,) = accepted(classes, target_crs="EPSG:3857", output_tier="visualization")["findings"]
    assert "nearest-neighbour" in found["what"]


def test_control_points_only(bronze: Path) -> None:
    points = [GroundControlPoint(r, c, c / 10, 50 - r / 10) for r, c in ((0, 0), (0, 79), (59, 0), (59, 79))]
    file = write(bronze / "a.tif", transform=None, gcps=points)
    output = accepted(file)
    assert [each["code"] for each in output["findings"]] == ["gcps_only", "not_cog"]
    assert output["facts"]["control_points"] == 4
    assert output["prepared"] == "silver/23456789/source/0-1-raster.tif"
    assert output["bbox"] == pytest.approx([0, 44, 8, 50], abs=0.2)


def test_types_that_are_not_accepted(bronze: Path) -> None:
    assert set(rejected(write(bronze / "b.tif", gradient(dtype="complex128")))) == {"complex_type"}
    assert set(rejected(write(bronze / "c.tif", gradient(dtype="int16"), dtype="complex_int16"))) == {"complex_type"}


def test_a_raster_without_data(bronze: Path) -> None:
    assert set(rejected(write(bronze / "a.tif", np.full((1, 50, 50), 9, "uint8"), nodata=9))) == {"all_nodata"}
    assert set(rejected(write(bronze / "b.tif", np.full((1, 50, 50), np.nan, "float32")))) == {"all_nodata"}
    masked = write(bronze / "c.tif")
    with rasterio.Env(GDAL_TIFF_INTERNAL_MASK=True), rasterio.open(masked, "r+") as dataset:
        dataset.write_mask(np.zeros((60, 80), bool))
    assert set(rejected(masked)) == {"all_nodata"}
    assert accepted(write(bronze / "d.tif", np.zeros((1, 50, 50), "uint8")))["outcome"] == "ok"


def test_one_pixel_of_data_is_found_wherever_it_is(bronze: Path) -> None:
    data = np.zeros((1, 2000, 2000), "uint16")
    options = {"nodata": 0, "tiled": True, "blockxsize": 64, "blockysize": 64, "compress": "zstd", "SPARSE_OK": True}
    assert set(rejected(write(bronze / "a.tif", data, **options))) == {"all_nodata"}
    data[0, 1234, 321] = 1
    facts = accepted(write(bronze / "b.tif", data, **options))["facts"]
    assert facts["sample"]["valid_pixels"] == 0  # so it took the scan to find it


def test_what_is_too_large_to_scan_for_data_is_not_rejected(bronze: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write(bronze / "a.tif", np.zeros((1, 2000, 2000), "uint16"), nodata=0, tiled=True, compress="zstd")
    monkeypatch.setattr(sampling, "SCANNED_BELOW", 10)
    assert accepted(file)["facts"]["sample"]["valid_pixels"] == 0


def sparse(file: Path, side: int, count: int = 1, **options: Any) -> Path:
    profile = {"driver": "GTiff", "crs": "EPSG:4326", "transform": Affine(1e-6, 0, 0, 0, -1e-6, 50)}
    with rasterio.open(
        file, "w", width=side, height=side, count=count, dtype="uint8", SPARSE_OK="TRUE", **profile, **options
    ):
        return file


def test_sizes_that_are_not_accepted(bronze: Path) -> None:
    bomb = sparse(bronze / "a.tif", 200_000, tiled=True, blockxsize=8192, blockysize=8192, compress="zstd")
    assert set(rejected(bomb)) == {"decompression_bomb"}
    block = sparse(bronze / "b.tif", 15_000, tiled=True, blockxsize=16_384, blockysize=16_384)
    assert set(rejected(block)) == {"block_too_large"}
    assert accepted(write(bronze / "c.tif", gradient(64, 4, 4, "float64")))
    assert set(rejected(write(bronze / "d.tif", gradient(1025, 4, 4, "uint8")))) == {"too_many_bands"}
    assert accepted(write(bronze / "e.tif", gradient(1024, 4, 4, "uint8")))["facts"]["band_count"] == 1024


def test_pixels_of_which_nothing_is_stored_are_counted(bronze: Path) -> None:
    empty = write_empty(bronze / "a.tif", 1_000_000, 1000, Affine(1e-4, 0, 0, 0, -1e-4, 50), dtype="float64")
    assert set(rejected(empty)) == {"too_many_pixels"}
    tiles: dict[str, Any] = {"tiled": True, "blockxsize": 128, "blockysize": 128}
    small_blocks = write_empty(bronze / "b.tif", 20_000, 20_000, Affine(1e-4, 0, 0, 0, -1e-4, 50), **tiles)
    assert set(rejected(small_blocks)) == {"too_many_pixels"}


def test_pixels_that_a_warp_adds_are_counted(bronze: Path) -> None:
    """A line of pixels that runs from one corner of its bounding box to the other."""
    askew = write_empty(bronze / "a.tif", 40_000, 4_000, Affine(1e-4, -1e-4, 0, -1e-4, -1e-4, 20))
    assert set(rejected(askew)) == {"too_many_pixels"}


def test_many_pixels_that_are_stored_are_accepted(bronze: Path) -> None:
    assert accepted(hollow_tiff(bronze / "a.tif", 61_000))["raw_size_mb"] > 10_000


def write_empty(file: Path, width: int, height: int, transform: Affine, dtype: str = "uint8", **options: Any) -> Path:
    """Write a sparse file of which no block is stored."""
    profile = {"driver": "GTiff", "crs": "EPSG:4326", "transform": transform, "SPARSE_OK": "TRUE"}
    with rasterio.open(file, "w", width=width, height=height, count=1, dtype=dtype, **profile, **options):
        return file


@pytest.mark.parametrize(("count", "interleave"), [(326, "band"), (326, "pixel"), (1024, "pixel")])
def test_many_bands_in_usual_tiles_are_accepted(bronze: Path, count: int, interleave: str) -> None:
    tiles = {"tiled": True, "blockxsize": 512, "blockysize": 512, "compress": "deflate", "interleave": interleave}
    file = sparse(bronze / "a.tif", 600, count, **tiles)
    assert block_bytes_of(file) == 512 * 512 * (count if interleave == "pixel" else 1)
    assert accepted(file)["facts"]["band_count"] == count


def block_bytes_of(file: Path) -> int:
    with rasterio.open(file) as dataset:
        return block_bytes(dataset)


@pytest.mark.parametrize("start", [512, 1024, 2048])
def test_hdf5_behind_a_user_block(bronze: Path, start: int) -> None:
    with h5py.File(bronze / "a.h5", "w", userblock_size=start) as file:
        file["data"] = gradient()[0]
        file["link"] = h5py.ExternalLink("/secret", "data")
    assert set(rejected(bronze / "a.h5")) == {"refers_to_other_files"}
    with h5py.File(bronze / "b.h5", "w", userblock_size=start) as file:
        file["data"] = gradient()[0]
    assert set(rejected(bronze / "b.h5")) == {"no_crs", "no_geotransform"}


def test_grib_behind_a_header_of_the_wmo() -> None:
    assert kind_of(b"\x01\r\r\n123 \r\r\nHTXX50 EGRR 010000\r\r\nGRIB\0\0\0\x02" + bytes(20)) is GRIB
    assert kind_of(b"A text about GRIB files") is None
    assert kind_of(b"A" * 1001 + b"GRIB\0\0\0\x02") is None


def test_a_raster_that_would_become_a_giant_one(bronze: Path) -> None:
    turned = Affine.translation(10, 50) @ Affine.rotation(45) @ Affine.scale(1e-4, -1e-4)
    assert set(rejected(write(bronze / "a.tif", np.ones((1, 1, 100_000), "uint8"), transform=turned))) == {
        "unusable_grid"
    }


def test_several_rasters_in_one_file(bronze: Path) -> None:
    pages = write(bronze / "a.tif")
    with rasterio.open(pages) as dataset:
        profile = dataset.profile
    with rasterio.open(pages, "w", **profile, APPEND_SUBDATASET="YES") as dataset:
        dataset.write(gradient())
    two = bronze / "a.h5"
    with h5py.File(two, "w") as file:
        file["first"], file["second"] = gradient()[0], gradient()[0]
    write(bronze / "b.tif")
    with rasterio.open(bronze / "b.tif", "r+") as dataset:
        dataset.build_overviews([2], Resampling.nearest)  # which is no second raster
    assert "several_datasets" in rejected(two)
    found = rejected(pages)["several_datasets"]
    assert ": 1, 2." in found["what"]
    assert "processing_options.variable" in found["how_to_fix"]
    assert accepted(pages, variable="2")["facts"]["variable"] == "2"
    assert accepted(bronze / "b.tif")


def test_axes_that_would_take_hours_to_read(bronze: Path) -> None:
    netcdf = netcdf_of(bronze / "a.nc", gradient(dtype="uint8"))
    content = bytearray(netcdf.read_bytes())
    at = content.index(b"lon\0") + 4
    assert content[at : at + 4] == struct.pack(">I", 80)
    content[at : at + 4] = struct.pack(">I", 2**31)
    netcdf.write_bytes(content)
    assert set(rejected(netcdf)) == {"truncated"}
    with h5py.File(bronze / "a.h5", "w") as file:
        file.create_dataset("lon", (2**33,), "f8", chunks=(1024,))
    with pytest.raises(Rejected, match="corrupt"):
        check_references(io.BytesIO((bronze / "a.h5").read_bytes()))


@pytest.mark.parametrize("way", ["storage", "link", "virtual"])
def test_an_hdf5_file_that_leads_to_another_one(bronze: Path, way: str) -> None:
    secret = bronze.parent / "secret.h5"
    with h5py.File(secret, "w") as file:
        file["data"] = gradient(dtype="uint8")[0]
    with h5py.File(bronze / "a.h5", "w") as file:
        group = file.create_group("inner")
        if way == "storage":
            group.create_dataset("data", (60, 80), "u1", external=[(str(secret), 0, 4800)])
        elif way == "link":
            group["data"] = h5py.ExternalLink(str(secret), "data")
        else:
            layout = h5py.VirtualLayout((60, 80), "u1")
            layout[:] = h5py.VirtualSource(str(secret), "data", (60, 80))
            group.create_virtual_dataset("data", layout)
        group["self"] = group
    with pytest.raises(Rejected) as caught:
        check_references(io.BytesIO((bronze / "a.h5").read_bytes()))
    (found,) = caught.value.findings
    assert found.code == "refers_to_other_files"
    assert "'/inner/data'" in found.what


def test_hdf5_is_not_read_where_it_could_do_harm(bronze: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with h5py.File(bronze / "a.h5", "w") as file:
        file["\ue000" * 300] = h5py.ExternalLink("/secret", "data")  # whose name is told, as far as that can be
    monkeypatch.setitem(sys.modules, "graticule.handlers.raster.hdf5_references", None)  # in this process
    assert set(rejected(bronze / "a.h5")) == {"refers_to_other_files"}


def test_a_crs_that_names_a_file(bronze: Path) -> None:
    file = netcdf_of(bronze / "a.nc", gradient(dtype="uint8"), FORMAT="NC4")
    shifted = CRS.from_string("+proj=longlat +ellps=clrk66 +nadgrids=@/secret/of/this.machine +no_defs")
    with h5py.File(file, "r+") as opened:
        opened["crs"].attrs["spatial_ref"] = opened["crs"].attrs["crs_wkt"] = shifted.to_wkt()
    with pytest.raises(Rejected) as caught:
        examine(Readable(str(file), HDF5, file.stat().st_size, HDF5), Wanted(), lambda: None)
    assert [each.code for each in caught.value.findings] == ["refers_to_other_files"]
    assert file_named_in(CRS.from_epsg(3857)) is None  # whose shifts are `@null`
    assert file_named_in(CRS.from_string("+proj=longlat +ellps=clrk66 +nadgrids=@conus,ntv1_can.dat")) is None


def test_a_tiff_that_leads_to_another_file(bronze: Path) -> None:
    write(bronze / "other.tif", gradient(1, 30, 40))
    file = write(bronze / "a.tif")
    with rasterio.open(file, "r+") as dataset:
        dataset.update_tags(ns="OVERVIEWS", OVERVIEW_FILE=str(bronze / "other.tif"))
    assert set(rejected(file)) == {"refers_to_other_files"}


def test_what_lies_beside_a_file_is_not_read(bronze: Path) -> None:
    file = write(bronze / "a.tif", crs=None, transform=None)
    (bronze / "a.tfw").write_text("0.01\n0\n0\n-0.01\n10\n50\n")
    (bronze / "a.tif.aux.xml").write_text("<PAMDataset><SRS>EPSG:4326</SRS></PAMDataset>")
    write(bronze / "a.tif.ovr", gradient(1, 30, 40))
    assert set(rejected(file)) == {"no_crs", "no_geotransform"}
    with gdal_environment(16), open_raster(str(file)) as dataset:
        assert (dataset.overviews(1), dataset.crs, dataset.files) == ([], None, [str(file)])


def test_a_damaged_block_is_found(bronze: Path) -> None:
    file = write(bronze / "a.tif", gradient(1, 400, 400), compress="deflate", tiled=True)
    content = bytearray(file.read_bytes())
    content[-3000:-2000] = b"\xff" * 1000
    file.write_bytes(content)
    assert set(rejected(file)) == {"corrupt"}


def test_a_damaged_jpeg_block_of_a_tiff_is_found(bronze: Path) -> None:
    data = np.random.default_rng(3).integers(0, 255, (1, 256, 256)).astype("uint8")
    file = write(bronze / "a.tif", data, compress="jpeg", tiled=True, blockxsize=128, blockysize=128)
    assert accepted(file)
    content = bytearray(file.read_bytes())
    content[-2000:-1998] = b"\xff\xd9"  # the end of an image, in the midst of it
    file.write_bytes(content)
    assert set(rejected(file)) == {"corrupt"}


# The source


def test_a_file_that_changes_meanwhile(bronze: Path) -> None:
    file = write(bronze / "a.tif")

    def change(_: Any) -> None:
        file.write_bytes(file.read_bytes() + b"\0")

    result = result_of(file, {"report_progress": change}, content_hash=True)
    assert result.report is not None
    found: Any = result.report["findings"]
    assert [each["code"] for each in found] == ["source_changed"]
    result = result_of(file, {"report_progress": lambda _: file.unlink(missing_ok=True)}, content_hash=True)
    assert "source_changed" in str(result.report)


def test_the_source_is_left_as_it_is(bronze: Path) -> None:
    file = make_raster(bronze / "a.tif", "dem")
    before = (file.read_bytes(), file.stat().st_mtime_ns)
    accepted(file)
    assert (file.read_bytes(), file.stat().st_mtime_ns) == before
    assert list(bronze.iterdir()) == [file]


def test_it_stops_when_it_is_told_to(bronze: Path) -> None:
    file = write(bronze / "a.tif")
    cancelled = result_of(file, {"signals": Signals(cancelled=True)})
    assert (cancelled.error_message, cancelled.retryable) == ("cancelled", False)
    assert result_of(file, {"signals": Signals(shutdown_requested=True)}).is_interrupted


def test_little_is_read_of_a_large_file(tmp_path: Path) -> None:
    file = hollow_tiff(tmp_path / "a.tif", 40_000)
    size = file.stat().st_size
    assert size > 4_000 * MEBIBYTE
    with served(file) as server:
        found = examine(Readable(server.name, TIFF, size, TIFF), Wanted(), lambda: None)
        read, requests = server.counted()
    assert found.facts.sample is not None
    assert found.facts.sample.blocks > 10
    assert read < 12 * MEBIBYTE
    assert requests < 40


def test_a_server_that_fails_is_no_fault_of_the_file(tmp_path: Path) -> None:
    file = write(tmp_path / "a.tif")
    with served(file, status=403) as server, pytest.raises(Unavailable) as caught:
        examine(Readable(server.name, TIFF, 10_000, TIFF), Wanted(), lambda: None)
    assert "127.0.0.1" not in str(caught.value)


# GDAL


def test_the_cache_is_as_large_as_it_was_asked_to_be() -> None:
    with gdal_environment(48):
        assert rasterio.env.get_gdal_config("GDAL_CACHEMAX") == 48 * MEBIBYTE


def test_every_allowed_driver_is_there() -> None:
    with rasterio.Env() as env:
        assert set(ALLOWED_DRIVERS) <= set(env.drivers())
    assert not {"VRT", "WMS", "GTI", "STACTA", "MBTiles", "Zarr", "HTTP"} & set(ALLOWED_DRIVERS)


def test_the_handler_is_registered_without_gdal() -> None:
    heavy = "{'rasterio', 'numpy', 'h5py', 'pyproj'}"
    code = f"import sys, graticule.handlers.raster.validation; sys.exit(str({heavy} & set(sys.modules) or ''))"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ended.stderr.strip() == ""


# Damaged bytes


@pytest.fixture(scope="module")
def small_files(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    folder = tmp_path_factory.mktemp("small") / "bronze"
    data = gradient(1, 20, 24, "uint8")
    made = [
        write(folder / "a.tif", data, compress="deflate"),
        write(folder / "b.tif", data, tiled=True, blockxsize=16, blockysize=16, BIGTIFF="YES", nodata=0),
        write(folder / "a.png", data, driver="PNG"),
        write(folder / "a.jpg", data, driver="JPEG"),
        write(folder / "a.jp2", data, driver="JP2OpenJPEG"),
        netcdf_of(folder / "a.nc", data),
        netcdf_of(folder / "b.nc", data, FORMAT="NC4"),
    ]
    return [file.read_bytes() for file in made]


def _damage(bronze: Path, small_files: list[bytes], which: int, data: st.DataObject) -> None:
    content = bytearray(small_files[which])
    places = st.integers(0, min(len(content), 1500) - 1)  # where headers and tags are
    for place, value in data.draw(st.lists(st.tuples(places, st.integers(0, 255)), max_size=6)):
        content[place] = value
    end = data.draw(st.one_of(st.just(len(content)), st.integers(0, len(content))))
    file = bronze / "a.bin"
    file.write_bytes(content[:end])
    began = time.monotonic()
    result = result_of(file)
    assert time.monotonic() - began < 30
    assert (result.report is None) == (result.error_message is None)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # damaged bytes in GDAL's words
@settings(max_examples=examples(120), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 4), st.data())
def test_damaged_files_are_told_of(bronze: Path, small_files: list[bytes], which: int, data: st.DataObject) -> None:
    _damage(bronze, small_files, which, data)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # damaged bytes in GDAL's words
@settings(max_examples=4, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(5, 6), st.data())
def test_damaged_containers_are_told_of(
    bronze: Path, small_files: list[bytes], which: int, data: st.DataObject
) -> None:
    _damage(bronze, small_files, which, data)


def test_facts_are_read_without_a_sample(bronze: Path) -> None:
    with gdal_environment(16), open_raster(str(write(bronze / "a.tif"))) as dataset:
        assert facts_of(dataset, TIFF).sample is None
