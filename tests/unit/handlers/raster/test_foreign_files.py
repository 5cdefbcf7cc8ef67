"""Formats that are converted first: what is read of them, what is chosen, and what they cannot lead to."""

import http.server
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import rasterio
from affine import Affine
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from rasterio.control import GroundControlPoint
from rasterio.rpc import RPC
from tests.examples import examples
from tests.rasters import write_with_nodata
from tests.unit.handlers.raster.foreign_files import (
    ENVI_HEADER,
    WGS84,
    WORLD_FILE,
    ascii_grid,
    convert_here,
    converted_to,
    netcdf_with_times,
    packed,
    zipped,
)
from tests.unit.handlers.raster.validating import NORTH_UP, accepted, gradient, rejected, result_of, write

from graticule.handlers.context import Signals
from graticule.handlers.findings import Rejected
from graticule.handlers.raster import conversion, preparation
from graticule.handlers.raster.containers import parse_cf_time
from graticule.handlers.raster.nodata import exact_nodata
from graticule.handlers.raster.sandbox import ConversionRequest, convert_in_sandbox
from graticule.handlers.raster.sidecars import parse_aux_xml, parse_world_file

BYTES = gradient(dtype="uint8")
GRID = ascii_grid()
HIDDEN_ENTITY = '<?xml version="1.0" encoding="utf-16"?><!DOCTYPE a [<!ENTITY b "c">]><PAMDataset/>'.encode("utf-16")


@pytest.fixture
def bronze(tmp_path: Path) -> Path:
    folder = tmp_path / "bronze"
    folder.mkdir()
    return folder


@pytest.fixture(autouse=True)
def _in_this_process(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Convert without a process for each file, but where that is what is tested: to start one takes a second."""
    if "sandboxed" not in request.fixturenames:
        monkeypatch.setattr(preparation, "convert_in_sandbox", convert_here)


@pytest.fixture
def sandboxed() -> None:
    """Let a test use the process that converts."""


def pixels_of(bronze: Path, output: dict[str, Any]) -> NDArray[Any]:
    with rasterio.open(bronze.parent / output["prepared"]) as dataset:
        return np.asarray(dataset.read())


def placed(dataset: Any) -> tuple[Any, ...]:
    return dataset.crs.to_epsg(), dataset.transform.almost_equals(NORTH_UP, 1e-9)


# Formats


@pytest.mark.parametrize(
    ("driver", "data"),
    [("GRIB", gradient(dtype="float64")), ("HFA", gradient(2)), ("GPKG", BYTES), ("GPKG", gradient(dtype="float32"))],
)
def test_a_file_of_one_raster_is_read_as_it_is(bronze: Path, driver: str, data: NDArray[Any]) -> None:
    output = accepted(converted_to(driver, bronze / "a.bin", data))
    assert output["facts"]["driver"] == driver
    assert output["facts"]["dtype"] == data.dtype.name
    assert np.array_equal(pixels_of(bronze, output), data)
    with rasterio.open(bronze.parent / output["prepared"]) as dataset:
        assert placed(dataset) == (4326, True)


@pytest.mark.parametrize(
    ("members", "driver"),
    [
        ({"a.asc": ascii_grid(BYTES[0]), "a.prj": WGS84}, "AAIGrid"),
        ({"in/a": BYTES.tobytes(), "in/a.hdr": ENVI_HEADER.replace("= 12", "= 1")}, "ENVI"),
        ({"a.dat": BYTES.tobytes(), "a.dat.hdr": ENVI_HEADER.replace("= 12", "= 1")}, "ENVI"),
        ({"a.txt": ascii_grid(BYTES[0]), "a.prj": WGS84, "b.txt": "hello"}, "AAIGrid"),
        ({"a.tif": "GTiff", "a.tfw": WORLD_FILE, "a.prj": WGS84, "b.jpg": "JPEG", "b.tfw": WORLD_FILE}, "GTiff"),
        ({"a.gif": "GIF", "a.gfw": WORLD_FILE, "a.prj": WGS84}, "GIF"),
        ({"A.PNG": "PNG", "a.pgw": WORLD_FILE, "A.prj": WGS84, "read me.txt": "hello"}, "PNG"),
        ({"a.tif": "GTiff", "a.tfw": WORLD_FILE, "a.prj": WGS84, "a.tif.ovr": b"no overview"}, "GTiff"),
        ({"a.tif": "GTiff", "a.wld": WORLD_FILE, "a.prj": WGS84, "browse.png": "PNG"}, "GTiff"),
    ],
)
def test_a_raster_in_an_archive_is_placed_by_the_files_beside_it(
    bronze: Path, members: dict[str, bytes | str], driver: str
) -> None:
    """Files that stand for a driver's name are written by it, without a place."""
    for name, content in members.items():
        if content in {"GIF", "PNG", "JPEG", "GTiff"}:
            made = write(bronze / "made", BYTES, driver="GTiff", crs=None, transform=None)
            rasterio.shutil.copy(made, bronze / "copy", driver=content)
            members[name] = (bronze / "copy").read_bytes()
    output = accepted(zipped(bronze / "a.zip", members))
    assert output["facts"]["driver"] == driver
    assert np.array_equal(pixels_of(bronze, output), BYTES)
    with rasterio.open(bronze.parent / output["prepared"]) as dataset:
        assert placed(dataset) == (4326, True)


def test_an_archive_of_one_geotiff_is_unpacked_and_read_as_it_is(bronze: Path) -> None:
    made = write(bronze / "a.tif").read_bytes()
    output = accepted(zipped(bronze / "a.zip", {"deep/in/a.tif": made}), content_hash=True)
    assert (bronze.parent / output["prepared"]).read_bytes() == made
    assert output["source"] == "bronze/a.zip"


def test_a_mask_and_an_aux_xml_beside_a_raster_are_read(bronze: Path) -> None:
    mask = np.where(gradient() % 7, 255, 0).astype("uint8")
    notes = f"""<PAMDataset><SRS>{WGS84}</SRS><GeoTransform>10, 0.01, 0, 50, 0, -0.01</GeoTransform>
    <Metadata domain="OVERVIEWS"><MDI key="OVERVIEW_FILE">/etc/passwd</MDI></Metadata>
    <PAMRasterBand band="1"><Description>depth</Description><UnitType>m</UnitType><Scale>0.5</Scale></PAMRasterBand>
    </PAMDataset>"""
    members: dict[str, bytes | str] = {
        "a.tif": write(bronze / "a.tif", crs=None, transform=None).read_bytes(),
        "a.tif.msk": write(bronze / "b.tif", mask, crs=None, transform=None).read_bytes(),
        "a.tif.aux.xml": notes,
    }
    output = accepted(zipped(bronze / "a.zip", members))
    with rasterio.open(bronze.parent / output["prepared"]) as dataset:
        assert placed(dataset) == (4326, True)
        assert (dataset.descriptions, dataset.units, dataset.scales) == (("depth",), ("m",), (0.5,))
        assert np.array_equal(dataset.dataset_mask(), mask[0])
        assert not dataset.tags(ns="OVERVIEWS")


OLD_NAD27 = (
    'GEOGCS["NAD27",DATUM["North_American_Datum_1927",SPHEROID["Clarke 1866",6378206.4,294.9786982],'
    'EXTENSION["PROJ4_GRIDS","conus"]],PRIMEM["Greenwich",0],UNIT["degree",0.0174532925199433],'
    'AUTHORITY["EPSG","4267"]]'
)
WEB_MERCATOR = rasterio.crs.CRS.from_epsg(3857).to_wkt(version="WKT1_GDAL")


@pytest.mark.parametrize(
    ("sidecars", "code"),
    [
        ({"a.tif.aux.xml": "EPSG:4258"}, "EPSG:4258"),
        ({"a.tif.aux.xml": WEB_MERCATOR}, "EPSG:3857"),
        ({"a.tif.aux.xml": OLD_NAD27}, "EPSG:4267"),
        ({"a.prj": WEB_MERCATOR}, "EPSG:3857"),
        ({"a.prj": OLD_NAD27}, "EPSG:4267"),
        ({"a.prj": WGS84, "a.tif.aux.xml": "EPSG:4258"}, "EPSG:4258"),
    ],
)
def test_the_crs_of_a_sidecar_is_read(bronze: Path, sidecars: dict[str, str], code: str) -> None:
    tif = write(bronze / "a.tif", BYTES, crs=None).read_bytes()
    texts = {name: text if name == "a.prj" else in_aux_xml(text) for name, text in sidecars.items()}
    assert accepted(zipped(bronze / "a.zip", {"a.tif": tif, **texts}))["facts"]["crs"] == code


def in_aux_xml(crs: str) -> str:
    return f"<PAMDataset><SRS>{crs}</SRS></PAMDataset>"


@pytest.mark.parametrize("name", ["a.prj", "a.tif.aux.xml"])
def test_a_given_crs_replaces_that_of_a_sidecar(bronze: Path, name: str) -> None:
    tif = write(bronze / "a.tif", BYTES, crs=None).read_bytes()
    file = zipped(bronze / "a.zip", {"a.tif": tif, name: in_aux_xml("no CRS") if "xml" in name else "no CRS"})
    assert set(rejected(file)) <= {"corrupt", "no_crs"}
    assert accepted(file, source_crs="EPSG:4258")["facts"]["crs"] == "EPSG:4258"


def test_a_raster_has_precedence_over_its_world_file_and_an_aux_xml_over_both(bronze: Path) -> None:
    tif = write(bronze / "a.tif", BYTES, crs="EPSG:4258", transform=Affine(0.01, 0, 20, 0, -0.01, 50)).read_bytes()
    beside = {"a.tif": tif, "a.tfw": WORLD_FILE, "a.prj": WGS84}
    facts = accepted(zipped(bronze / "a.zip", beside))["facts"]
    assert (facts["crs"], facts["bbox"][0]) == ("EPSG:4258", pytest.approx(20))
    notes = "<PAMDataset><GeoTransform>30, 0.01, 0, 50, 0, -0.01</GeoTransform></PAMDataset>"
    facts = accepted(zipped(bronze / "b.zip", {**beside, "a.tif.aux.xml": notes}))["facts"]
    assert facts["bbox"][0] == pytest.approx(30)


def test_hdf4_is_refused_by_its_name(bronze: Path) -> None:
    (bronze / "a.hdf").write_bytes(b"\x0e\x03\x13\x01" + bytes(100))
    found = rejected(bronze / "a.hdf")["hdf4_not_accepted"]
    assert "HDF4" in found["how_to_fix"]


# Choosing


def test_coordinates_and_bounds_are_no_rasters_to_choose_among(bronze: Path) -> None:
    output = accepted(netcdf_with_times(bronze / "a.nc"))
    assert (output["prepared"], output["facts"]["band_count"]) == (None, 3)  # GDAL itself passes over the others


def test_the_only_raster_may_be_named(bronze: Path) -> None:
    table = converted_to("GPKG", bronze / "a.gpkg", BYTES, RASTER_TABLE="one")
    element = converted_to("GRIB", bronze / "a.grb", gradient(dtype="float64"))
    with h5py.File(bronze / "a.h5", "w") as file:
        file["inner/first"] = gradient()[0]
    for file, name in ((table, "ONE"), (element, "unknown"), (bronze / "a.h5", "first")):
        assert name in str(result_of(file, variable="x").report)
        found = result_of(file, variable=name, source_crs="EPSG:4326")
        assert "unknown_variable" not in str(found.report)


def test_one_of_several_variables_is_chosen(bronze: Path) -> None:
    file = netcdf_with_times(bronze / "a.nc", ("t2m", "tp"))
    found = rejected(file)["several_datasets"]
    assert found["what"] == "The file contains 2 rasters: t2m, tp."
    assert "processing_options.variable" in found["how_to_fix"]
    assert "It has: t2m, tp." in rejected(file, variable="tpp")["unknown_variable"]["what"]
    output = accepted(file, variable="tp")
    assert output["facts"]["variable"] == "tp"
    assert np.array_equal(pixels_of(bronze, output), gradient(3, dtype="float32") + 100_000)


@pytest.mark.parametrize("given", ["2", "2024-01-02", "2024-01-02T00:00:00Z"])
def test_one_step_is_chosen(bronze: Path, given: str) -> None:
    output = accepted(netcdf_with_times(bronze / "a.nc"), time=given)
    assert np.array_equal(pixels_of(bronze, output), gradient(3, dtype="float32")[1:2])
    assert output["facts"]["tags"]["TIFFTAG_DATETIME"] == "2024:01:02 00:00:00"


def test_a_year_is_not_taken_for_the_number_of_a_step(bronze: Path) -> None:
    output = accepted(netcdf_with_times(bronze / "a.nc", steps=1), time="2024")
    assert output["facts"]["tags"]["TIFFTAG_DATETIME"] == "2024:01:01 00:00:00"
    found = rejected(netcdf_with_times(bronze / "b.nc"), time="2024")["unknown_time"]
    assert found["what"].startswith("'2024' matches 3 time steps.")


@pytest.mark.parametrize("given", ["0", "4", "2024", "1999", "yesterday"])
def test_a_time_that_is_no_step_or_several_is_refused(bronze: Path, given: str) -> None:
    what = rejected(netcdf_with_times(bronze / "a.nc"), time=given)["unknown_time"]["what"]
    assert "3 steps, from 2024-01-01T00:00:00 to 2024-01-03T00:00:00" in what


@pytest.mark.parametrize(
    ("value", "units", "expected"),
    [
        ("36", "hours since 1900-01-01 00:00:0.0", "1900-01-02T12:00:00+00:00"),
        ("1.5", "days since 2000-1-1", "2000-01-02T12:00:00+00:00"),
        ("60", "seconds since 1970-01-01T00:00:00Z", "1970-01-01T00:01:00+00:00"),
        ("90", "min since 2020-02-28 23:00", "2020-02-29T00:30:00+00:00"),
        ("1", "months since 2000-01-01", None),
        ("nan", "days since 2000-01-01", None),
        ("1e30", "days since 2000-01-01", None),
        ("1", "K", None),
    ],
)
def test_times_of_the_climate_conventions(value: str, units: str, expected: str | None) -> None:
    found = parse_cf_time(value, units)
    assert (found.isoformat() if found else None) == expected


def test_a_table_of_a_geopackage_and_a_file_of_an_archive_are_chosen(bronze: Path) -> None:
    file = converted_to("GPKG", bronze / "a.gpkg", BYTES, RASTER_TABLE="one")
    origin = write(bronze / "b.tif", BYTES // 2)
    rasterio.shutil.copy(origin, file, driver="GPKG", APPEND_SUBDATASET="YES", RASTER_TABLE="two")
    assert "The file contains 2 rasters: ONE, TWO." in rejected(file)["several_datasets"]["what"]  # rasterio's capitals
    assert np.array_equal(pixels_of(bronze, accepted(file, variable="TWO")), BYTES // 2)
    other = write(bronze / "c.tif")
    both = zipped(bronze / "a.zip", {"x/one.tif": origin.read_bytes(), "y/two.tif": other.read_bytes()})
    assert "The archive contains 2 rasters: one, two." in rejected(both)["several_datasets"]["what"]
    assert "It has: one, two." in rejected(both, variable="three")["unknown_variable"]["what"]
    assert accepted(both, variable="two")["facts"]["dtype"] == "uint16"


def test_an_element_of_grib_messages_is_chosen_with_its_level_or_without(bronze: Path) -> None:
    """A file is its messages, one after the other."""
    content = b""
    for place, numbers in enumerate(("0 0 2 255 255", "2 2 2 255 255")):
        for level in ("103 0 0 0 0 2", "103 0 0 0 0 10"):
            template = f"{numbers} 0 0 0 1 0 0 0 0 {level} 255 0 0 0 0 0"
            data = gradient(dtype="float64") + 1000 * place
            content += converted_to(
                "GRIB", bronze / "a.bin", data, DISCIPLINE="0", PDS_PDTN="0", PDS_TEMPLATE_NUMBERS=template
            ).read_bytes()
    (bronze / "a.grb2").write_bytes(content)
    what = rejected(bronze / "a.grb2")["several_datasets"]["what"]
    assert what.endswith("The file contains 4 rasters: TMP@2-HTGL, TMP@10-HTGL, UGRD@2-HTGL, UGRD@10-HTGL.")
    assert accepted(bronze / "a.grb2", variable="TMP")["facts"]["band_count"] == 2
    output = accepted(bronze / "a.grb2", variable="UGRD@10-HTGL", time="1970-01-01")
    assert np.array_equal(pixels_of(bronze, output), gradient(dtype="float64") + 1000)


def test_what_was_said_replaces_what_the_file_says(bronze: Path) -> None:
    file = write(bronze / "a.tif", crs="EPSG:32633", transform=Affine(0.01, 0, 10, 0, -0.01, 50), nodata=5)
    output = accepted(file, source_crs="EPSG:4258", nodata=7)
    assert (output["facts"]["crs"], output["facts"]["nodata"]) == ("EPSG:4258", 7)
    assert np.array_equal(pixels_of(bronze, output), gradient())
    assert set(rejected(file, source_crs="EPSG:999999")) == {"unknown_source_crs"}
    assert set(rejected(file, nodata=-1)) == {"unfit_nodata"}
    assert "single raster" in rejected(file, variable="x")["unknown_variable"]["what"]


@pytest.mark.parametrize(
    ("dtype", "own", "given"),
    [
        ("int64", -(2**63), None),
        ("int64", None, 2**53 + 1),
        ("int64", 7, None),
        ("uint64", None, 2**64 - 1),
        ("uint64", 2**64 - 1, None),
    ],
)
def test_nodata_of_64_bits_is_converted_exactly(bronze: Path, dtype: str, own: int | None, given: int | None) -> None:
    data = gradient(dtype=dtype)
    file = write(bronze / "a.tif", data) if own is None else write_with_nodata(bronze / "a.tif", data, own)
    output = accepted(file, nodata=given, source_crs="EPSG:4258")
    with rasterio.open(bronze.parent / output["prepared"]) as dataset:
        assert exact_nodata(dataset) == (own if given is None else given)
        assert np.array_equal(dataset.read(), data)


@pytest.mark.parametrize(("nodata", "dtype"), [("-9999", "uint8"), ("0.5", "uint16"), ("1e40", "float32")])
def test_nodata_of_a_sidecar_that_no_pixel_can_have_is_dropped(bronze: Path, nodata: str, dtype: str) -> None:
    notes = f'<PAMDataset><PAMRasterBand band="1"><NoDataValue>{nodata}</NoDataValue></PAMRasterBand></PAMDataset>'
    tif = write(bronze / "a.tif", gradient(dtype=dtype)).read_bytes()
    output = accepted(zipped(bronze / "a.zip", {"a.tif": tif, "a.tif.aux.xml": notes}))
    assert "unusable_nodata" in {each["code"] for each in output["findings"]}
    assert output["facts"]["nodata"] is None
    assert np.array_equal(pixels_of(bronze, output), gradient(dtype=dtype))


def test_nodata_stands_for_a_mask_that_lies_beside(bronze: Path) -> None:
    mask = np.where(gradient() % 7, 255, 0).astype("uint8")
    members: dict[str, bytes | str] = {
        "a.tif": write(bronze / "a.tif", gradient(2)).read_bytes(),
        "a.tif.msk": write(bronze / "b.tif", mask, crs=None, transform=None).read_bytes(),
    }
    output = accepted(zipped(bronze / "a.zip", members), nodata=9999)
    assert np.array_equal(pixels_of(bronze, output), np.where(mask, gradient(2), 9999))
    assert not output["facts"]["has_mask"]


# Many bands


def test_bands_are_counted_after_a_step_is_chosen(bronze: Path) -> None:
    file = netcdf_with_times(bronze / "a.nc", steps=1100)
    assert "processing_options.time" in rejected(file)["too_many_bands"]["how_to_fix"]
    assert accepted(file, time="2024-05-01")["facts"]["band_count"] == 1


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_many_steps_are_written_in_small_blocks(bronze: Path, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversion, "CHUNK_BYTES", 64 * 1024)
    file = netcdf_with_times(bronze / "a.nc", steps=300)
    with h5py.File(file, "r+") as opened:
        axes = [scale[0] for scale in opened["t2m"].dims]
        attributes = {name: value for name, value in opened["t2m"].attrs.items() if name != "DIMENSION_LIST"}
        del opened["t2m"]
        opened.create_dataset("t2m", data=gradient(300, dtype=dtype), chunks=(1, 60, 80)).attrs.update(attributes)
        for axis, scale in enumerate(axes):
            opened["t2m"].dims[axis].attach_scale(scale)
    output = accepted(file)
    assert output["facts"]["block_width"] < 512
    assert np.array_equal(pixels_of(bronze, output), gradient(300, dtype=dtype))


# Places without a grid


def test_an_image_placed_by_points_is_warped_to_the_target(bronze: Path) -> None:
    points = [GroundControlPoint(r, c, 10 + c / 100, 50 - r / 100) for r, c in ((0, 0), (0, 80), (60, 0), (60, 80))]
    file = write(bronze / "a.tif", BYTES, transform=None, gcps=points, nodata=255)
    output = accepted(file)
    assert np.array_equal(pixels_of(bronze, output), BYTES)
    assert output["facts"]["bbox"] == pytest.approx([10, 49.4, 10.8, 50])
    assert accepted(file, target_crs="EPSG:3857")["facts"]["crs"] == "EPSG:3857"
    given = "".join(f'<GCP Pixel="{each.col}" Line="{each.row}" X="{each.x}" Y="{each.y}"/>' for each in points)
    plain = write(bronze / "b.tif", BYTES, transform=None, crs=None).read_bytes()
    beside = f"<PAMDataset><GCPList>{given}</GCPList></PAMDataset>"
    both = zipped(bronze / "c.zip", {"ga.tif": file.read_bytes(), "gb.tif": file.read_bytes()})
    assert accepted(both, variable="ga")["facts"]["bbox"] == pytest.approx([10, 49.4, 10.8, 50])
    bare = zipped(bronze / "b.zip", {"b.tif": plain, "b.tif.aux.xml": beside})
    assert "no_crs" in rejected(bare)
    assert accepted(bare, source_crs="EPSG:4326")["facts"]["bbox"] == pytest.approx([10, 49.4, 10.8, 50])


def polynomials() -> RPC:
    """Return polynomials that place an image linearly, and move it by 0.01 degrees with 100 m of height."""
    one = [1.0, *[0.0] * 19]
    return RPC(
        height_off=0, height_scale=100, lat_off=49.7, lat_scale=0.3, long_off=10.4, long_scale=0.4,
        line_off=30, line_scale=30, samp_off=40, samp_scale=40,
        line_num_coeff=[0.0, 0.0, -1.0, *[0.0] * 17], line_den_coeff=one,
        samp_num_coeff=[0.0, 1.0, 0.0, -0.025, *[0.0] * 16], samp_den_coeff=one,
    )  # fmt: skip


def test_an_image_placed_by_polynomials_needs_a_height(bronze: Path) -> None:
    file = write(bronze / "a.tif", BYTES, transform=None, crs=None, rpcs=polynomials())
    found = rejected(file)
    assert set(found) == {"rpc_only"}
    assert "processing_options.rpc_height" in found["rpc_only"]["how_to_fix"]
    assert set(rejected(file, nodata=0)) == {"rpc_only"}
    low, high = (accepted(file, rpc_height=height)["facts"]["bbox"] for height in (0, 100))
    assert low == pytest.approx([10, 49.4, 10.8, 50], abs=0.02)
    assert high[0] - low[0] == pytest.approx(0.01, abs=0.001)


# What does harm


@contextmanager
def listening() -> Iterator[tuple[str, list[str]]]:
    asked: list[str] = []

    class Recording(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_error(404)

        def do_HEAD(self) -> None:
            self.do_GET()

        def log_message(self, *_: Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Recording) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"/vsicurl/http://127.0.0.1:{server.server_port}/secret.tif", asked
        server.shutdown()


def test_nothing_in_an_archive_leads_to_another_file_or_host(bronze: Path) -> None:
    secret = write(bronze.parent / "secret.tif", BYTES)
    plain = write(bronze / "a.tif", BYTES, crs=None, transform=None).read_bytes()
    placed = {"a.tif": plain, "a.tfw": WORLD_FILE, "a.prj": WGS84}
    with listening() as (address, asked):
        for place in (address, str(secret)):
            vrt = '<VRTDataset rasterXSize="80" rasterYSize="60"><VRTRasterBand dataType="Byte" band="1"><SimpleSource>'
            vrt += f"<SourceFilename>{place}</SourceFilename></SimpleSource></VRTRasterBand></VRTDataset>"
            pam = f'<Metadata domain="OVERVIEWS"><MDI key="OVERVIEW_FILE">{place}</MDI></Metadata>'
            assert set(rejected(zipped(bronze / "1.zip", {"a.vrt": vrt}))) == {"vrt_not_accepted"}
            assert set(rejected(zipped(bronze / "2.zip", {**placed, "b.tif": vrt}))) == {"vrt_not_accepted"}
            assert set(rejected(zipped(bronze / "3.zip", {**placed, "a.tif.msk": vrt}))) == {"vrt_not_accepted"}
            output = accepted(
                zipped(
                    bronze / "4.zip", {**placed, "a.tif.ovr": vrt, "a.tif.aux.xml": f"<PAMDataset>{pam}</PAMDataset>"}
                )
            )
            assert np.array_equal(pixels_of(bronze, output), BYTES)
            header = ENVI_HEADER.replace("= 12", "= 1") + f"data file = {place}\n"
            noise = zipped(bronze / "5.zip", {"a.img": bytes(4800), "a.hdr": header})
            assert set(rejected(noise, nodata=0)) == {"all_nodata"}
    assert asked == []


@pytest.mark.parametrize(
    ("members", "code"),
    [
        ({"../a.tif": b"II*\0"}, "unsafe_archive"),
        ({"/etc/a.tif": b"II*\0"}, "unsafe_archive"),
        ({"a.zip": packed({"a.tif": b"II*\0"})}, "nested_archive"),
        ({"a.bin": packed({"a.tif": b"II*\0"})}, "nested_archive"),
        ({"a.tif": b"II*\0" + bytes(300 * 1024**2)}, "decompression_bomb"),
        ({"a.txt": "no raster"}, "not_a_raster"),
        ({"a.dat": bytes(9600)}, "not_a_raster"),
        ({"a.dat": bytes(9600), "a.hdr": "no header"}, "not_a_raster"),
        ({"a.dat": b"", "a.hdr": ENVI_HEADER}, "corrupt"),
        ({"a.dat": bytes(9600), "a.hdr": ENVI_HEADER.replace("= 80", "= 900000000")}, "corrupt"),
        ({"a.asc": GRID, "a.prj": 'GEOGCS["a",DATUM["b",EXTENSION["PROJ4_GRIDS","/x"]]]'}, "refers_to_other_files"),
        ({"a.asc": GRID, "a.prj": "GEOGCS[" * 20_000}, "refers_to_other_files"),
        ({"a.asc": ascii_grid()[:2000], "a.prj": WGS84}, "corrupt"),
        ({"a.asc": GRID, "a.prj": WGS84, "a.aux.xml": "<!DOCTYPE a [<!ENTITY b 'c'>]><PAMDataset/>"}, "corrupt"),
        ({"a.asc": GRID, "a.prj": WGS84, "a.aux.xml": HIDDEN_ENTITY}, "corrupt"),
        ({"a.asc": GRID, "a.prj": WGS84, "a.asc.aux.xml": "<PAMDataset"}, "corrupt"),
        ({"a.asc": GRID, "a.prj": WGS84, "a.wld": "1 2 3"}, "corrupt"),
    ],
)  # fmt: skip
def test_hostile_archives(bronze: Path, members: dict[str, bytes | str], code: str) -> None:
    assert set(rejected(zipped(bronze / "a.zip", members))) == {code}


@pytest.mark.usefixtures("sandboxed")
def test_pixels_of_an_erdas_file_that_lie_elsewhere_are_not_read(bronze: Path) -> None:
    file = converted_to("HFA", bronze / "a.img", gradient(), USE_SPILL="YES")
    assert (bronze / "a.ige").exists()
    assert set(rejected(file)) == {"refers_to_other_files"}
    shouted = bronze / "b.img"
    shouted.write_bytes(file.read_bytes().replace(b"ExternalRasterDMS", b"eXTERNALrASTERdms"))
    assert set(rejected(shouted)) == {"refers_to_other_files"}


def test_what_lies_beside_a_converted_file_is_not_read(bronze: Path) -> None:
    (bronze / "a.asc").write_bytes(ascii_grid())
    (bronze / "a.prj").write_text(WGS84)
    (bronze / "a.asc.aux.xml").write_text(f"<PAMDataset><SRS>{WGS84}</SRS></PAMDataset>")
    assert set(rejected(bronze / "a.asc")) == {"no_crs"}
    grib = converted_to("GRIB", bronze / "a.grb", gradient(dtype="float64"))
    (bronze / "a.grb.idx").write_text("1:0:d=2021091906:TMP:2 m above ground:anl:\n2:9:d=2021091906:UGRD:1 mb:anl:\n")
    assert accepted(grib)["facts"]["band_count"] == 1


def test_a_geopackage_is_neither_changed_nor_run(bronze: Path) -> None:
    file = converted_to("GPKG", bronze / "a.gpkg", BYTES, RASTER_TABLE="t")
    before = file.read_bytes()
    (bronze / "a.gpkg-journal").write_bytes(b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" + bytes(600))
    assert accepted(file)
    assert file.read_bytes() == before
    (bronze / "a.gpkg-journal").unlink()
    with closing(sqlite3.connect(file)) as database:
        database.execute("ALTER TABLE t RENAME TO u")
        database.execute("CREATE VIEW t AS SELECT * FROM u")
        database.commit()
    assert "not a plain table" in rejected(file)["corrupt"]["what"]
    with closing(sqlite3.connect(file)) as database:
        database.execute("DELETE FROM gpkg_contents")
        database.commit()
    assert set(rejected(file)) == {"not_a_raster"}


def test_a_name_that_gdal_would_take_apart_is_none_to_it(bronze: Path) -> None:
    file = netcdf_with_times(bronze / 'a":b,c.nc', ("t2m", "tp"))
    assert accepted(file, variable="t2m")["facts"]["variable"] == "t2m"


@pytest.mark.usefixtures("sandboxed")
def test_a_conversion_ends_when_the_task_is_cancelled(bronze: Path) -> None:
    began = time.monotonic()
    result = result_of(write(bronze / "a.tif"), {"signals": Signals(cancelled=True)}, nodata=1)
    assert result.error_message == "cancelled"
    assert time.monotonic() - began < 10
    assert not list((bronze.parent / "silver").rglob("*.tif"))


def test_a_process_that_fails_says_nothing_of_itself(bronze: Path) -> None:
    with pytest.raises(Rejected) as caught:
        convert_in_sandbox(ConversionRequest(name=str(bronze / "not there"), kind="no kind"))
    assert [each.code for each in caught.value.findings] == ["corrupt"]


@pytest.mark.parametrize("text", ["", "1\n2\n3\n4\n5\n", "a b c d e f", "nan 0 0 1 0 0", "1e999 0 0 1 0 0"])
def test_world_files_that_are_none(text: str) -> None:
    with pytest.raises(Rejected):
        parse_world_file(text)


def test_a_world_file_names_the_centre_of_the_first_pixel() -> None:
    assert parse_world_file(WORLD_FILE).almost_equals(NORTH_UP)
    assert parse_world_file("2,5\n0\n0\n-2,5\n1,25\n8,75\n") == Affine(2.5, 0, 0, 0, -2.5, 10)


def test_points_of_an_aux_xml() -> None:
    given = f"""<PAMDataset><GCPList Projection='{WGS84}'><GCP Id="1" Pixel="2" Line="3" X="4.5" Y="5.5"/></GCPList>
    </PAMDataset>"""
    found = parse_aux_xml(given.encode())
    assert [(each.col, each.row, each.x, each.y) for each in found.gcps] == [(2, 3, 4.5, 5.5)]
    assert found.gcp_crs is not None


# Damaged bytes


@pytest.fixture(scope="module")
def small_files(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    folder = tmp_path_factory.mktemp("small") / "bronze"
    data = gradient(1, 20, 24, "uint8")
    made = [
        converted_to("GRIB", folder / "a.grb", data.astype("float64")),
        converted_to("HFA", folder / "a.img", data),
        converted_to("GPKG", folder / "a.gpkg", data),
        converted_to("GIF", folder / "a.gif", data),
        zipped(folder / "a.zip", {"a.asc": ascii_grid(data[0]), "a.prj": WGS84}),
        zipped(folder / "b.zip", {"a.dat": data.tobytes(), "a.hdr": ENVI_HEADER}),
    ]
    return [ascii_grid(data[0]), *(file.read_bytes() for file in made)]


@pytest.mark.usefixtures("sandboxed")
@settings(max_examples=examples(16), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 6), st.data())
def test_damaged_files_are_told_of(bronze: Path, small_files: list[bytes], which: int, data: st.DataObject) -> None:
    content = bytearray(small_files[which])
    places = st.integers(0, min(len(content), 3000) - 1)
    for place, value in data.draw(st.lists(st.tuples(places, st.integers(0, 255)), min_size=1, max_size=8)):
        content[place] = value
    end = data.draw(st.one_of(st.just(len(content)), st.integers(0, len(content))))
    (bronze / "a.bin").write_bytes(content[:end])
    began = time.monotonic()
    result = result_of(bronze / "a.bin")
    assert time.monotonic() - began < 40
    assert (result.report is None) == (result.error_message is None)
