"""Rasters that other programs wrote, each format with several options of its writer, to the COG that is made of them.

GDAL's command line, in the version of the system, writes the files and reads them back; what comes out of our handlers
has to have the same pixels in the same places.
"""

import shutil
import subprocess
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import netCDF4
import numpy as np
import pytest
import rasterio
import tifffile
from affine import Affine
from numpy.typing import NDArray
from PIL import Image
from rasterio.rpc import RPC
from tests.integration.handlers.raster.desk import Desk
from tests.unit.handlers.raster.foreign_files import WGS84, WORLD_FILE, convert_here
from tests.unit.handlers.raster.validating import write

from graticule.handlers.raster import preparation

WIDTH, HEIGHT = 48, 40
PLACE = Affine(0.01, 0, 10, 0, -0.01, 50)
UTM_PLACE = Affine(30, 0, 500_000, 0, -30, 5_500_000)
ENDINGS = {"netCDF": "nc", "JP2OpenJPEG": "jp2"}  # by which GDAL tells what to write, and read
needs_gdal = pytest.mark.skipif(shutil.which("gdal_translate") is None, reason="gdal-bin is not installed")


@pytest.fixture(autouse=True)
def _in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preparation, "convert_in_sandbox", convert_here)


@dataclass(frozen=True)
class Case:
    """A file to be written: by which driver, from which pixels, with which options."""

    driver: str
    options: str = ""  # of gdal_translate, `-co` left out before KEY=VALUE
    dtype: str = "uint8"
    count: int = 1
    tolerance: float = 0
    is_zipped: bool = False  # with all that the driver wrote beside it
    given: dict[str, Any] = field(default_factory=dict)  # options of the submission

    def __str__(self) -> str:
        return " ".join(filter(None, (self.driver, self.dtype, f"x{self.count}", self.options)))


def many(driver: str, *options: str, **common: Any) -> list[Case]:
    return [Case(driver, each, **common) for each in options]


LOSSLESS = "QUALITY=100 REVERSIBLE=YES"
DEGREES = {"source_crs": "EPSG:4326"}
CASES = [
    *many("GTiff", "COMPRESS=LZW PREDICTOR=2", "COMPRESS=ZSTD", "BIGTIFF=YES ENDIANNESS=BIG", dtype="uint16"),
    *many("GTiff", "COMPRESS=DEFLATE PREDICTOR=3 -a_nodata -9999", "TILED=YES BLOCKXSIZE=16", dtype="float32"),
    *many("GTiff", "INTERLEAVE=BAND", "INTERLEAVE=PIXEL COMPRESS=PACKBITS", "COMPRESS=LERC", "NBITS=4", count=3),
    *many("COG", "COMPRESS=DEFLATE", "COMPRESS=LZW BLOCKSIZE=128", dtype="int16"),
    *many("JP2OpenJPEG", LOSSLESS, f"{LOSSLESS} RESOLUTIONS=2", dtype="uint16"),
    *many("JP2OpenJPEG", f"{LOSSLESS} YCC=NO", f"{LOSSLESS} PROGRESSION=RLCP", f"{LOSSLESS} SOP=YES", count=3),
    *many("netCDF", "FORMAT=NC", "FORMAT=NC2", "FORMAT=NC4 COMPRESS=DEFLATE ZLEVEL=9", "FORMAT=NC4C", dtype="float32"),
    *many("netCDF", "WRITE_BOTTOMUP=NO", "CHUNKING=NO FORMAT=NC4", "-a_nodata 7", dtype="int16"),
    *many("GRIB", "DATA_ENCODING=IEEE_FLOATING_POINT", "DATA_ENCODING=SIMPLE_PACKING NBITS=16", dtype="float64"),
    *many("GRIB", "DATA_ENCODING=COMPLEX_PACKING", "DATA_ENCODING=PNG NBITS=8", "DATA_ENCODING=JPEG2000"),
    *many("HFA", "COMPRESSED=YES", "BLOCKSIZE=32", "STATISTICS=YES", "-a_nodata 3", dtype="uint16"),
    *many("HFA", "", "IGNOREUTM=YES", dtype="float64", count=2),
    *many("HFA", "NBITS=4"),
    *many("AAIGrid", "DECIMAL_PRECISION=2", "SIGNIFICANT_DIGITS=4", "-a_nodata -1", dtype="float32", is_zipped=True),
    *many("AAIGrid", "FORCE_CELLSIZE=YES", "-a_nodata 0", dtype="int16", is_zipped=True),
    *many("ENVI", "INTERLEAVE=BSQ", "INTERLEAVE=BIL", "INTERLEAVE=BIP", dtype="int16", count=3, is_zipped=True),
    *many("ENVI", "-a_nodata 1", "SUFFIX=ADD", dtype="float64", is_zipped=True),
    *many("GIF", "WORLDFILE=YES", "INTERLACING=YES", "-a_nodata 5", is_zipped=True, given=DEGREES),
    *many("GIF", "COMPRESS=NONE", "", is_zipped=True),
    *many("PNG", "WORLDFILE=YES", "ZLEVEL=9", dtype="uint16", is_zipped=True, given=DEGREES),
    *many("PNG", "", "NBITS=2", is_zipped=True),
    *many("PNG", "-a_nodata 0", count=3, is_zipped=True),
    *many("JPEG", "QUALITY=100", "PROGRESSIVE=YES", "WORLDFILE=YES", count=3, is_zipped=True, tolerance=6),
    *many("JPEG", "", "ARITHMETIC=NO QUALITY=50", is_zipped=True, tolerance=6),
    *many("GPKG", "TILE_FORMAT=PNG", "BLOCKSIZE=64", "RASTER_TABLE=a", count=3),
    *many("GPKG", "TILE_FORMAT=WEBP QUALITY=100", "TILE_FORMAT=JPEG", count=3, tolerance=6),
    *many("GPKG", "TILE_FORMAT=PNG", "TILE_FORMAT=PNG -a_nodata 4", dtype="int16"),
    *many("GPKG", "TILE_FORMAT=TIFF", dtype="float32"),
]


def noise(dtype: str, count: int = 1, shape: tuple[int, int] = (HEIGHT, WIDTH)) -> NDArray[Any]:
    """Return values that every format can hold, and none that is nodata by chance."""
    values = np.random.default_rng(7).integers(10, 250, (count, *shape))
    return values.astype(dtype) if dtype.startswith(("int", "uint")) else (values + 0.25).astype(dtype)


def translate(source: Path | str, target: Path, *arguments: str) -> Path:
    subprocess.run(["gdal_translate", "-q", *arguments, str(source), str(target)], check=True, capture_output=True)
    return target


def written(folder: Path, case: Case, **profile: Any) -> Path:
    """Write a file by GDAL's command line; one that is zipped with all that lies beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    bits = next((bits for bits in (2, 4) if f"NBITS={bits}" in case.options), 8)
    data = noise(case.dtype, case.count) >> (8 - bits) if bits < 8 else noise(case.dtype, case.count)
    if case.tolerance:  # decoders differ at sharp edges
        data[:] = np.add.outer(np.arange(HEIGHT), np.arange(WIDTH) * 2)
    origin = write(folder.parent / "origin.tif", data, **{"transform": PLACE, **profile})
    options = [part for each in case.options.split() for part in (("-co", each) if "=" in each else (each,))]
    return translate(origin, folder / f"a.{ENDINGS.get(case.driver, 'dat')}", "-of", case.driver, *options)


def sent(desk: Desk, made: Path, *, is_zipped: bool = False) -> str:
    """Put a file into the storage, and give its name."""
    bronze = desk.file("bronze")
    bronze.mkdir(parents=True, exist_ok=True)
    if not is_zipped:
        shutil.copy(made, bronze / made.name)
        return made.name
    with zipfile.ZipFile(bronze / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for each in made.parent.iterdir():
            archive.write(each, f"data/{each.name}")
    return "a.zip"


def cog_of(desk: Desk, name: str, **given: Any) -> Path:
    """Go the way of `raster_ingest` to the COG."""
    found = desk.run("raster.validate", container_name="bronze", blob_name=name, **given)
    desk.run(
        "raster.create_cog",
        source=found["source"],
        source_etag=found["etag"],
        prepared=found["prepared"],
        raster_type=found["raster_type"],
    )
    return desk.staged(f"cogs/{Path(name).stem}.tif")


def assert_same(made: Path, expected: Path, tolerance: float = 0) -> None:
    with rasterio.open(made) as ours, rasterio.open(expected) as theirs:
        assert ours.dtypes == theirs.dtypes
        assert ours.bounds == pytest.approx(theirs.bounds, abs=1e-6)
        assert ours.shape == theirs.shape
        difference = np.abs(ours.read().astype("float64") - theirs.read())
        assert np.nanmax(difference) <= tolerance
        assert np.array_equal(ours.dataset_mask(), theirs.dataset_mask())


@needs_gdal
@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_gdal_wrote(desk: Desk, tmp_path: Path, case: Case) -> None:
    made = written(tmp_path / "made", case)
    expected = translate(made, tmp_path / "expected.tif", "-a_srs", "EPSG:4326")
    output = cog_of(desk, sent(desk, made, is_zipped=case.is_zipped), **case.given)
    assert_same(output, expected, case.tolerance)


@needs_gdal
@pytest.mark.parametrize("driver", ["GTiff", "netCDF", "GRIB", "HFA", "AAIGrid", "ENVI"])
def test_what_gdal_wrote_in_another_crs(desk: Desk, tmp_path: Path, driver: str) -> None:
    case = Case(driver, dtype="float64", is_zipped=driver in {"AAIGrid", "ENVI"})
    made = written(tmp_path / "made", case, crs="EPSG:32633", transform=UTM_PLACE)
    expected = tmp_path / "expected.tif"
    warp = ["gdalwarp", "-q", "-et", "0", "-s_srs", "EPSG:32633", "-t_srs", "EPSG:4326", "-dstnodata", "nan"]
    subprocess.run([*warp, str(made), str(expected)], check=True, capture_output=True)
    assert_same(cog_of(desk, sent(desk, made, is_zipped=case.is_zipped)), expected)


@needs_gdal
@pytest.mark.parametrize("points", [4, 12, 210])
def test_what_is_placed_by_points_is_as_gdalwarp_has_it(desk: Desk, tmp_path: Path, points: int) -> None:
    plain = write(tmp_path / "plain.tif", noise("uint16"), crs=None, transform=None)
    columns = 15 if points == 210 else 4 if points == 12 else 2
    given: list[str] = []
    for row in np.linspace(0, HEIGHT, points // columns):
        for column in np.linspace(0, WIDTH, columns):
            bend = 0 if points == 4 else column * row / 4e5
            given += ["-gcp", f"{column}", f"{row}", f"{10 + column / 100 + bend:.9f}", f"{50 - row / 90 + bend:.9f}"]
    made = translate(plain, tmp_path / "a.tif", "-a_srs", "EPSG:4326", "-a_nodata", "0", *given)
    expected = tmp_path / "expected.tif"
    subprocess.run(["gdalwarp", "-q", "-et", "0", "-t_srs", "EPSG:4326", str(made), str(expected)], check=True)
    assert_same(cog_of(desk, sent(desk, made)), expected)


@needs_gdal
@pytest.mark.parametrize("height", [0, 500])
def test_what_is_placed_by_polynomials_is_as_gdalwarp_has_it(desk: Desk, tmp_path: Path, height: float) -> None:
    one = [1.0, *[0.0] * 19]
    polynomials = RPC(
        height_off=100, height_scale=1000, lat_off=49.8, lat_scale=0.2, long_off=10.24, long_scale=0.24,
        line_off=HEIGHT / 2, line_scale=HEIGHT / 2, samp_off=WIDTH / 2, samp_scale=WIDTH / 2,
        line_num_coeff=[0.001, 0.02, -1.0, 0.03, *[0.0] * 16], line_den_coeff=one,
        samp_num_coeff=[0.001, 1.0, 0.03, -0.2, *[0.0] * 16], samp_den_coeff=one,
    )  # fmt: skip
    made = write(tmp_path / "a.tif", noise("uint16"), crs=None, transform=None, nodata=0, rpcs=polynomials)
    expected = tmp_path / "expected.tif"
    warp = ["gdalwarp", "-q", "-et", "0", "-rpc", "-to", f"RPC_HEIGHT={height}", "-t_srs", "EPSG:4326"]
    subprocess.run([*warp, str(made), str(expected)], check=True, capture_output=True)
    assert_same(cog_of(desk, sent(desk, made), rpc_height=height), expected)


@needs_gdal
def test_tiles_of_what_was_chosen_are_those_of_the_variable(desk: Desk, tmp_path: Path) -> None:
    file = netcdf(tmp_path / "a.nc", noise("int16", 2, (600, 700)), variables=("one", "two"))
    name = sent(desk, file)
    found = desk.run("raster.validate", container_name="bronze", blob_name=name, variable="two", time="2")
    scheme, tiles, _ = desk.chain(
        found["source"], extract=True, tile_size=512, overlap=0, prepared=found["prepared"], raster_type="continuous"
    )
    assert len(tiles) == scheme["tile_count"] == 4
    with rasterio.open(desk.staged(tiles[3]["name"])) as last:
        assert np.array_equal(last.read(1), noise("int16", 2, (600, 700))[1][512:, 512:] + 1)


# Other libraries


def netcdf(
    file: Path, data: NDArray[Any], variables: tuple[str, ...] = ("v",), form: Any = "NETCDF4", **options: Any
) -> Path:
    """Write a file by the library of NetCDF: steps of days, and each variable one more than the one before."""
    steps, height, width = data.shape
    with netCDF4.Dataset(file, "w", format=form) as made:
        for name, values in {
            "time": np.arange(steps),
            "lat": 49.995 - np.arange(height) * 0.01,
            "lon": 10.005 + np.arange(width) * 0.01,
        }.items():
            made.createDimension(name, len(values))
            made.createVariable(name, "f8", (name,))[:] = values
        made["time"].units = "days since 2024-02-28"
        made["lat"].units, made["lon"].units = "degrees_north", "degrees_east"
        made.createVariable("crs", "i4").grid_mapping_name = "latitude_longitude"
        scale = options.pop("scale", None)
        for more, name in enumerate(variables):
            variable = made.createVariable(name, data.dtype, ("time", "lat", "lon"), **options)
            variable.grid_mapping = "crs"
            if scale:
                variable.scale_factor = scale
                variable.set_auto_scale(False)
            variable[:] = data + data.dtype.type(more)
    return file


@pytest.mark.parametrize(
    ("dtype", "options"),
    [
        ("float32", {}),
        ("float64", {"zlib": True, "complevel": 9, "shuffle": True}),
        ("int16", {"chunksizes": (1, 16, 16), "fill_value": -999}),
        ("int16", {"form": "NETCDF4_CLASSIC", "fletcher32": True}),
        ("int32", {"form": "NETCDF3_64BIT_OFFSET"}),
        ("int16", {"form": "NETCDF3_CLASSIC", "scale": 0.1}),
        ("uint16", {"contiguous": True}),
    ],
)
def test_what_the_netcdf_library_wrote(desk: Desk, tmp_path: Path, dtype: str, options: dict[str, Any]) -> None:
    data = noise(dtype, 2)
    name = sent(desk, netcdf(tmp_path / "a.nc", data, ("one", "two"), **options))
    with rasterio.open(cog_of(desk, name, variable="two", source_crs="EPSG:4326")) as made:
        assert np.array_equal(made.read(), data + data.dtype.type(1))
        assert made.bounds == pytest.approx((10, 49.6, 10.48, 50))
        assert made.dtypes == (dtype, dtype)
        assert made.scales[0] == options.get("scale", 1)


GEO_TAGS: Any = [
    (33550, "d", 3, (0.01, 0.01, 0.0), True),
    (33922, "d", 6, (0.0, 0.0, 0.0, 10.0, 50.0, 0.0), True),
    (34735, "H", 16, (1, 1, 0, 3, 1024, 0, 1, 2, 1025, 0, 1, 1, 2048, 0, 1, 4326), True),
]


@pytest.mark.parametrize(
    ("pixels", "options"),
    [
        (("uint8", 3), {"photometric": "rgb", "planarconfig": "contig"}),
        (("uint16", 2), {"planarconfig": "separate", "compression": "zlib"}),
        (("float32", 1), {"compression": "zstd", "predictor": 3, "tile": (16, 16)}),
        (("int16", 1), {"compression": "lzw", "predictor": 2, "rowsperstrip": 7}),
        (("uint32", 1), {"compression": "lzma"}),
        (("float64", 1), {}),
    ],
)
@pytest.mark.parametrize("form", [{"bigtiff": True}, {"byteorder": ">"}])
def test_what_tifffile_wrote(
    desk: Desk, tmp_path: Path, pixels: tuple[str, int], options: dict[str, Any], form: dict[str, Any]
) -> None:
    data, count = noise(*pixels), pixels[1]
    shaped = np.moveaxis(data, 0, -1) if options.get("planarconfig") == "contig" else data if count > 1 else data[0]
    with tifffile.TiffWriter(tmp_path / "a.tif", **form) as writer:
        writer.write(shaped, extratags=GEO_TAGS, metadata=None, **{"photometric": "minisblack", **options})
    with rasterio.open(cog_of(desk, sent(desk, tmp_path / "a.tif"))) as made:
        assert np.array_equal(made.read(), data)
        assert made.bounds == pytest.approx((10, 49.6, 10.48, 50))


@pytest.mark.parametrize(
    ("ending", "mode", "options"),
    [
        ("png", "L", {"optimize": True}),
        ("png", "RGBA", {"compress_level": 1}),
        ("gif", "P", {"interlace": 1}),
        ("gif", "L", {"interlace": 0}),
        ("tif", "I;16", {"compression": "tiff_deflate"}),
        ("jpg", "RGB", {"quality": 95, "progressive": True, "subsampling": 0}),
    ],
)
def test_what_pillow_wrote(desk: Desk, tmp_path: Path, ending: str, mode: str, options: dict[str, Any]) -> None:
    folder = tmp_path / "made"
    folder.mkdir()
    shape = {"RGBA": (HEIGHT, WIDTH, 4), "RGB": (HEIGHT, WIDTH, 3)}.get(mode, (HEIGHT, WIDTH))
    dtype = "uint16" if mode == "I;16" else "uint8"
    values = noise(dtype, 1, (int(np.prod(shape)) // WIDTH, WIDTH)).reshape(shape)
    image = Image.fromarray(values, "L" if mode == "P" else None)
    (image.convert("P") if mode == "P" else image).save(folder / f"a.{ending}", **options)
    (folder / f"a.{ending[0]}{ending[2]}w").write_text(WORLD_FILE)
    (folder / "a.prj").write_text(WGS84)
    name = sent(desk, folder / "a.prj", is_zipped=True)
    with rasterio.open(cog_of(desk, name)) as made:
        assert made.bounds == pytest.approx((10, 49.6, 10.48, 50))
        expected = values[None] if values.ndim == 2 else np.moveaxis(values, -1, 0)
        found = made.read()
        if ending == "gif":  # grey, by a table of the colours that occur
            found = np.array([made.colormap(1)[value][0] for value in range(256)])[found]
        difference = np.abs(found.astype(int) - expected)
        assert difference.max() <= (40 if ending == "jpg" else 0)
