"""CRS definitions inside rasters that lead to other files: they are rejected before GDAL opens the raster."""

import re
import sqlite3
import struct
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import h5py
import netCDF4
import pytest
from rasterio.crs import CRS
from tests.unit.handlers.raster.foreign_files import ENVI_HEADER, convert_here, converted_to, zipped
from tests.unit.handlers.raster.validating import accepted, gradient, rejected, write

from graticule.handlers.raster import conversion, examination, preparation, references
from graticule.handlers.raster.file_kinds import ERDAS

BYTES = gradient(dtype="uint8")
DATUM = 'DATUM["d",SPHEROID["s",6377397.155,299.1528]{}]'
WKT = f'GEOGCS["x",{DATUM},PRIMEM["Greenwich",0],UNIT["degree",0.0174532925199433]]'
GRIDS = WKT.format(',EXTENSION["PROJ4_GRIDS","/secret/grid"]')
WEB_MERCATOR = CRS.from_epsg(3857).to_wkt(version="WKT1_GDAL")


def geopackage(folder: Path, text: str) -> Path:
    file = converted_to("GPKG", folder / "a.gpkg", BYTES)
    with closing(sqlite3.connect(file)) as database:
        database.execute("UPDATE gpkg_spatial_ref_sys SET definition = ? WHERE srs_id = 4326", (text,))
        database.commit()
    return file


def envi(folder: Path, text: str) -> Path:
    header = ENVI_HEADER.replace("= 12", "= 1") + f"coordinate system string = {{{text[:60]}\n{text[60:]}}}\n"
    return zipped(folder / "a.zip", {"a.dat": BYTES.tobytes(), "a.hdr": header})


def classic_netcdf(folder: Path, text: str, name: str = "spatial_ref") -> Path:
    file = converted_to("netCDF", folder / "a.nc", BYTES)
    with netCDF4.Dataset(file, "r+") as opened:
        opened["crs"].setncattr(name, text)
    return file


def netcdf4(folder: Path, text: str) -> Path:
    file = converted_to("netCDF", folder / "a.nc", BYTES, FORMAT="NC4")
    with h5py.File(file, "r+") as opened:
        opened["crs"].attrs["Spatial_Ref"] = text
    return file


def geotiff(folder: Path, text: str) -> Path:
    """Write a text over the name of the CRS."""
    utm = CRS.from_epsg(32633).to_wkt().replace("WGS 84 / UTM zone 33N", "A" * 2000)
    file = write(folder / "a.tif", BYTES, crs=CRS.from_wkt(utm))
    content = file.read_bytes()
    (name,) = re.findall(rb"A{500,}", content)
    file.write_bytes(content.replace(name, f"ESRI PE String = {text}".ljust(len(name)).encode()))
    return file


def jpeg2000(folder: Path, text: str) -> Path:
    file = write(folder / "a.jp2", BYTES, driver="JP2OpenJPEG")
    tiff = bytes.fromhex("b14bf8bd083d4b43a5ae8cd7d5a6ce03") + geotiff(folder, text).read_bytes()
    file.write_bytes(file.read_bytes() + struct.pack(">I4s", 8 + len(tiff), b"uuid") + tiff)
    return file


def erdas(folder: Path, text: str) -> Path:
    """Write the text among the pixels: where in the file a CRS lies makes no difference."""
    file = converted_to("HFA", folder / "a.img", BYTES)
    file.write_bytes(file.read_bytes() + text.encode())
    return file


MAKERS = (geopackage, envi, classic_netcdf, netcdf4, geotiff, jpeg2000, erdas)


@pytest.fixture
def bronze(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(preparation, "convert_in_sandbox", convert_here)
    (tmp_path / "bronze").mkdir()
    return tmp_path / "bronze"


@pytest.mark.parametrize("make", MAKERS)
def test_a_crs_that_names_a_file_is_rejected_unopened(
    bronze: Path, make: Callable[[Path, str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = make(bronze, GRIDS)
    for module in (conversion, examination):
        monkeypatch.setattr(module, "open_raster", None)
    assert set(rejected(file)) == {"refers_to_other_files"}


@pytest.mark.parametrize("make", MAKERS)
def test_a_crs_that_stands_for_itself_is_accepted(bronze: Path, make: Callable[[Path, str], Path]) -> None:
    assert "+nadgrids=@null" in WEB_MERCATOR
    assert accepted(make(bronze, WEB_MERCATOR), source_crs="EPSG:4326")


@pytest.mark.parametrize(
    ("text", "is_rejected"),
    [
        ("+proj=longlat +ellps=bessel +nadgrids=/secret", True),
        ("+init=/secret:1", True),
        ("proj=vgridshift grids=/secret", True),
        ("+proj=longlat +datum=WGS84 +no_defs", False),
        ("+proj=merc +a=6378137 +nadgrids=@null", False),
        ("+init=epsg:4326", False),
    ],
)
def test_proj_strings_are_judged_by_their_parameters(bronze: Path, text: str, is_rejected: bool) -> None:
    file = classic_netcdf(bronze, text, "proj4")
    if is_rejected:
        assert set(rejected(file)) == {"refers_to_other_files"}
    else:
        assert accepted(file)


def test_an_erdas_file_is_searched_piece_by_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(references, "_PIECE_BYTES", 100)
    for start in (80, 95, 99, 100):
        (tmp_path / "a.img").write_bytes(bytes(start) + b"ExternalRasterDMS" + bytes(200))
        with pytest.raises(Exception, match="refers_to_other_files"):
            references.check_local_references(str(tmp_path / "a.img"), ERDAS, None, lambda: None)
