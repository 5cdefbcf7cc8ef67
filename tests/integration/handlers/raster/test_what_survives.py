"""What a source says of its pixels is said by all that is made of it, and the source itself stays as it was."""

import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasterio
from affine import Affine
from numpy.typing import NDArray
from rasterio.enums import ColorInterp, MaskFlags
from rasterio.io import DatasetReader
from rio_cogeo.cogeo import cog_validate
from tests.integration.handlers.raster.desk import Desk
from tests.integration.handlers.raster.one_pass import Whole, one_pass
from tests.rasters import COLOURS

from graticule.core.ids import JobId
from graticule.handlers.raster.cog import writer

Array = NDArray[Any]

WIDTH, HEIGHT = 540, 130  # two tiles of 512, the second of which is small
ASLANT = Affine(10, 0, 760_000, 0, -10, 2_000_000)
HOLE = np.s_[..., 30:70, 480:530]
TAGS = {"AREA_OR_POINT": "Point", "SURVEY": 'Straße & Söhne <"1">', "TIFFTAG_SOFTWARE": "levels 2.1"}
BAND_TAGS = {"wavelength": "0.66", "note": "first & only"}
EXTREMES: dict[str, tuple[float, float]] = {
    "int8": (-128, 127),
    "int16": (-32_768, 32_767),
    "int32": (-200_000, 200_000),
    "uint32": (0, 200_000),
    "float64": (-1e100, 1e-300),
}
LOWEST = float(np.finfo("float32").min)


def samples(dtype: str, count: int = 1, low: int = 0, high: int = 120) -> Array:
    values = np.random.default_rng(3).integers(low, high, (count, HEIGHT, WIDTH)).astype(dtype)
    return values + values.dtype.type(0.25) if values.dtype.kind == "f" else values


def write(desk: Desk, data: Array, *, name: str = "scene.tif", mask: Array | None = None, **profile: Any) -> str:
    """Put a source into the storage, as a partner would."""
    path = desk.file(f"bronze/{name}")
    path.parent.mkdir(parents=True, exist_ok=True)
    count, height, width = data.shape
    given = {"driver": "GTiff", "crs": "EPSG:32620", "transform": ASLANT, **profile}
    with (
        rasterio.Env(GDAL_TIFF_INTERNAL_MASK=True),
        rasterio.open(path, "w", width=width, height=height, count=count, dtype=data.dtype.name, **given) as dataset,
    ):
        dataset.write(data)
        if mask is not None:
            dataset.write_mask(mask)
    return f"bronze/{name}"


def outputs(desk: Desk, source: str, **options: Any) -> tuple[list[Path], Any]:
    """Make one COG and tiles; give the files, the COG first, and what is told of the COG."""
    cog = desk.run("raster.create_cog", source=source, source_etag=desk.etag(source), **options)
    _, tiles, mosaic = desk.chain(source, tile_size=512, overlap=64, **options)
    assert mosaic["grid"] == cog["grid"]
    assert len(tiles) == 2
    files = [desk.staged(name) for name in (*cog["files"], *(tile["name"] for tile in tiles))]
    for file in files:
        assert cog_validate(file, strict=True, quiet=True) == (True, [], [])
    for counted, merged in zip(cog["bands"], mosaic["bands"], strict=True):
        assert described(counted) == described(merged)
        assert counted["statistics"] == pytest.approx(merged["statistics"], rel=1e-12)
    return files, cog


def described(band: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in band.items() if name != "statistics"}


def assert_pixels_of(whole: Whole, grid: Mapping[str, Any], files: Iterable[Path]) -> None:
    """Compare each file with the part of the whole where it lies."""
    for file in files:
        with rasterio.open(file) as dataset:
            column, row = (round(number) for number in ~Affine(*grid["transform"]) @ dataset.transform @ (0, 0))
            here = np.s_[..., row : row + dataset.height, column : column + dataset.width]
            assert set(dataset.dtypes) == {whole.data.dtype.name}
            np.testing.assert_array_equal(dataset.read(), whole.data[here])
            np.testing.assert_array_equal(dataset.dataset_mask() != 0, whole.mask[here])


def assert_equals_one_pass(desk: Desk, source: str, **options: Any) -> tuple[list[Path], Whole, Any]:
    files, cog = outputs(desk, source, **options)
    whole = one_pass(desk.file(source), cog["grid"])
    assert 0 < whole.mask.mean() < 1
    assert_pixels_of(whole, cog["grid"], files)
    return files, whole, cog


def assert_statistics_of(whole: Whole, bands: list[Any]) -> None:
    """Compare with whole numbers of any size, which numpy would have to round."""
    for data, valid, band in zip(whole.data, whole.valid, bands, strict=True):
        found, values = band["statistics"], data[valid & np.isfinite(data)]
        exact = values.tolist()
        assert (found["count"], found["min"], found["max"]) == (values.size, values.min(), values.max())
        sums, squares = sum(exact), sum(value * value for value in exact)
        is_whole = data.dtype.kind in "iu"
        assert found["sum"] == (sums if is_whole else pytest.approx(sums, rel=1e-12))
        is_exact = is_whole and data.dtype.itemsize <= 2  # squares of more bits are beyond what a double holds
        assert found["sum_of_squares"] == (squares if is_exact else pytest.approx(squares, rel=1e-12))


def told(dataset: DatasetReader) -> dict[str, Any]:
    return {
        "dtypes": dataset.dtypes,
        "colorinterp": dataset.colorinterp,
        "descriptions": dataset.descriptions,
        "scales": dataset.scales,
        "offsets": dataset.offsets,
        "units": dataset.units,
        "tags": dataset.tags(),
        "band tags": [dataset.tags(band) for band in dataset.indexes],
    }


def test_all_that_is_told_of_the_bands(desk: Desk) -> None:
    source = write(desk, samples("int16", 3, low=-100), photometric="MINISBLACK")
    with rasterio.open(desk.file(source), "r+") as dataset:
        for band, name in enumerate(("Röte", "near <infrared>", "depth"), 1):
            dataset.set_band_description(band, name)
        dataset.scales, dataset.offsets = (0.0001, 1.0, 2.5), (0.0, -273.15, 10.0)
        dataset.units = ("", "K", "m")
        dataset.update_tags(**TAGS)
        dataset.update_tags(1, **BAND_TAGS)
    files, _, cog = assert_equals_one_pass(desk, source)
    with rasterio.open(desk.file(source)) as dataset:
        wanted = told(dataset)
    for file in files:
        with rasterio.open(file) as dataset:
            assert told(dataset) == wanted
    assert [band["name"] for band in cog["bands"]] == ["Röte", "near <infrared>", "depth"]
    assert [band["unit"] for band in cog["bands"]] == [None, "K", "m"]
    assert [(band["scale"], band["offset"]) for band in cog["bands"]] == [(0.0001, 0.0), (1.0, -273.15), (2.5, 10.0)]


@pytest.mark.parametrize("is_point", [False, True])
def test_a_pixel_is_where_it_was(desk: Desk, is_point: bool) -> None:
    """Points are named by their centres in the file, areas by their corners: nothing may move by half a pixel."""
    source = write(desk, samples("uint8"))
    if is_point:
        with rasterio.open(desk.file(source), "r+") as dataset:
            dataset.update_tags(AREA_OR_POINT="Point")
    files, cog = outputs(desk, source, target_crs="EPSG:32620")
    with rasterio.open(desk.file(source)) as dataset:
        assert cog["grid"]["transform"] == list(dataset.transform)[:6]
        wanted, kind = dataset.read(), dataset.tags()["AREA_OR_POINT"]
    assert kind == ("Point" if is_point else "Area")
    with rasterio.open(files[0]) as dataset:
        np.testing.assert_array_equal(dataset.read(), wanted)
        assert list(dataset.transform)[:6] == cog["grid"]["transform"]
        assert dataset.tags()["AREA_OR_POINT"] == kind
        assert dataset.mask_flag_enums == ([MaskFlags.all_valid],)  # nothing was turned: no mask is needed


@pytest.mark.parametrize(
    ("dtype", "colours"),
    [
        ("uint8", (ColorInterp.red, ColorInterp.green, ColorInterp.blue)),
        ("uint16", (ColorInterp.red, ColorInterp.green, ColorInterp.blue, ColorInterp.undefined)),
        ("uint16", (ColorInterp.red, ColorInterp.green, ColorInterp.blue, ColorInterp.alpha)),
        ("uint8", (ColorInterp.gray, ColorInterp.alpha)),
        ("uint8", (ColorInterp.blue, ColorInterp.green, ColorInterp.red)),
    ],
)
def test_colour_interpretation(desk: Desk, dtype: str, colours: tuple[ColorInterp, ...]) -> None:
    data = samples(dtype, len(colours), low=1)
    is_rgb = colours[0] is ColorInterp.red
    has_alpha = ColorInterp.alpha in colours
    if has_alpha:
        data[-1] = np.iinfo(dtype).max // 2  # half transparent is not transparent
        data[-1][HOLE] = 0
    options: dict[str, Any] = {"alpha": "YES"} if has_alpha else {}
    options["photometric"] = "RGB" if is_rgb else "MINISBLACK"
    source = write(desk, data, **options)
    with rasterio.open(desk.file(source), "r+") as dataset:
        dataset.colorinterp = colours
    files, _, cog = assert_equals_one_pass(desk, source)
    for file in files:
        with rasterio.open(file) as dataset:
            assert dataset.colorinterp == colours
    assert [band["color_interpretation"] for band in cog["bands"]] == [colour.name for colour in colours]


@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
def test_a_colour_table(desk: Desk, dtype: str) -> None:
    source = write(desk, samples(dtype, high=4))
    with rasterio.open(desk.file(source), "r+") as dataset:
        dataset.write_colormap(1, COLOURS)
    with rasterio.open(desk.file(source)) as dataset:
        wanted = dataset.colormap(1)
        assert wanted[2] == COLOURS[2]
    for file in assert_equals_one_pass(desk, source)[0]:
        with rasterio.open(file) as dataset:
            assert dataset.colormap(1) == wanted
            assert dataset.colorinterp == (ColorInterp.palette,)


@pytest.mark.parametrize("dtype", ["int8", "int16", "uint32", "int32", "float64"])
@pytest.mark.parametrize("nodata", [None, 7])
def test_every_type_with_and_without_nodata(desk: Desk, dtype: str, nodata: float | None) -> None:
    data = samples(dtype, 2, low=0 if dtype.startswith("u") else -100)
    data[0, :5, :5], data[1, :5, :5] = EXTREMES[dtype]
    if nodata is not None:
        data[HOLE] = data[0, 100:, 100:150] = nodata  # in both bands, and in one alone
    source = write(desk, data, nodata=nodata)
    files, whole, cog = assert_equals_one_pass(desk, source)
    assert_statistics_of(whole, cog["bands"])
    wanted = "nan" if nodata is None and dtype == "float64" else nodata  # missing floats are not numbers
    for file in files:
        with rasterio.open(file) as dataset:
            assert dataset.nodata == wanted or str(dataset.nodata) == wanted
            assert dataset.mask_flag_enums[0] == [MaskFlags.nodata if wanted is not None else MaskFlags.per_dataset]
    assert {band["nodata"] for band in cog["bands"]} == {wanted}


@pytest.mark.parametrize(
    ("dtype", "nodata"),
    [("float32", np.nan), ("float64", np.nan), ("float32", LOWEST), ("uint8", 0), ("int16", -32768)],
)
def test_nodata(desk: Desk, dtype: str, nodata: float) -> None:
    data = samples(dtype, low=1)
    data[HOLE] = nodata
    source = write(desk, data, nodata=nodata)
    files, whole, cog = assert_equals_one_pass(desk, source)
    assert_statistics_of(whole, cog["bands"])
    for file in files:
        with rasterio.open(file) as dataset:
            np.testing.assert_equal(dataset.nodata, nodata)
            assert dataset.mask_flag_enums == ([MaskFlags.nodata],)
    assert str(cog["bands"][0]["nodata"]) == str(nodata)


def test_what_is_not_a_number_stays_so_beside_nodata(desk: Desk) -> None:
    data = samples("float32")
    data[HOLE], data[0, 5:15, 5:15], data[0, 20, 20] = -9999, np.nan, np.inf
    files, whole, cog = assert_equals_one_pass(desk, write(desk, data, nodata=-9999))
    assert_statistics_of(whole, cog["bands"])
    with rasterio.open(files[0]) as dataset:
        assert {np.isnan(dataset.read()).any(), np.isinf(dataset.read()).any()} == {True}


@pytest.mark.parametrize(("count", "tier"), [(1, "analysis"), (3, "visualization"), (3, "archive")])
def test_a_mask_in_the_file(desk: Desk, count: int, tier: str) -> None:
    mask = np.full((HEIGHT, WIDTH), 255, "uint8")
    mask[HOLE] = 0
    source = write(desk, samples("uint8", count), mask=mask, **({"photometric": "RGB"} if count == 3 else {}))
    files, cog = outputs(desk, source, output_tier=tier, resampling="nearest")
    whole = one_pass(desk.file(source), cog["grid"])
    assert_statistics_of(whole, cog["bands"])
    for file in files:
        with rasterio.open(file) as dataset:
            assert dataset.mask_flag_enums == ([MaskFlags.per_dataset],) * count
            assert dataset.nodata is None
    with rasterio.open(files[0]) as dataset:
        np.testing.assert_array_equal(dataset.dataset_mask() != 0, whole.mask)
    if cog["compression"] != "jpeg":
        assert_pixels_of(whole, cog["grid"], files)


LAYOUTS: dict[str, dict[str, Any]] = {
    "stripes of bands": {"interleave": "band", "blockysize": 7},
    "one stripe": {"blockysize": HEIGHT},
    "tiles of bands": {"interleave": "band", "tiled": True, "blockxsize": 64, "blockysize": 32, "compress": "lzw"},
    "big-endian": {"endianness": "BIG", "compress": "deflate", "predictor": 2},
    "BigTIFF": {"BIGTIFF": "YES", "compress": "zstd"},
    "JPEG 2000": {"driver": "JP2OpenJPEG", "quality": "100", "reversible": "YES"},
}


@pytest.mark.parametrize("layout", sorted(LAYOUTS))
def test_every_layout(desk: Desk, layout: str) -> None:
    name = "scene.jp2" if "driver" in LAYOUTS[layout] else "scene.tif"
    source = write(desk, samples("uint16", 3, high=60_000), name=name, **LAYOUTS[layout])
    _, whole, cog = assert_equals_one_pass(desk, source)
    assert_statistics_of(whole, cog["bands"])


def test_tiles_of_extracted_pieces_tell_the_same(desk: Desk) -> None:
    source = write(desk, samples("int16", 2), nodata=-7)
    with rasterio.open(desk.file(source), "r+") as dataset:
        dataset.units, dataset.scales = ("K", "m"), (0.5, 2.0)
        dataset.update_tags(**TAGS)
        dataset.set_band_description(2, "height")
    made = [desk.chain(source, tile_size=512, overlap=64, extract=extract)[1] for extract in (False, True)]
    assert made[0] == made[1]


def contents(root: Path) -> dict[str, tuple[bytes, int]]:
    """Give the bytes and the time of every file."""
    return {
        str(path.relative_to(root)): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def run_all(desk: Desk, source: str) -> list[str]:
    container, name = source.split("/", 1)
    desk.run("raster.validate", container_name=container, blob_name=name)
    copied = desk.run("raster.blob_to_mount", container_name=container, blob_name=name)
    cog = desk.run("raster.create_cog", source=copied["path"], blob_prefix="acme/one")
    *_, mosaic = desk.chain(source, tile_size=512, overlap=64, blob_prefix="acme/many", extract=True)
    assert desk.file(copied["path"]).read_bytes() == desk.file(source).read_bytes()
    return [cog["output_hash"], mosaic["output_hash"], *mosaic["files"]]


@pytest.mark.parametrize("name", ["scene.tif", "scene.jp2"])
def test_the_source_stays_as_it_was_and_alone(desk: Desk, name: str) -> None:
    driver = "JP2OpenJPEG" if name.endswith("jp2") else "GTiff"
    source = write(desk, samples("uint8", 3), name=name, driver=driver)
    before = contents(desk.file("bronze"))
    assert set(before) == {name}
    run_all(desk, source)
    assert contents(desk.file("bronze")) == before


def test_nothing_is_written_outside_the_storage(desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no folder for temporary files: whatever wanted one would fail."""
    source = write(desk, samples("uint8", 3), compress="deflate")
    nowhere = str(tmp_path / "nowhere")
    monkeypatch.setattr(tempfile, "tempdir", nowhere)
    for name in ("TMPDIR", "TMP", "TEMP", "CPL_TMPDIR"):
        monkeypatch.setenv(name, nowhere)
    monkeypatch.setattr(writer, "SPOOL_MEMORY", 1)  # as if there were more blocks than memory holds
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    run_all(desk, source)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["here", "storage"]
    assert contents(tmp_path / "here") == {}
    assert {path.split("/")[0] for path in contents(desk.root)} == {"bronze", "silver"}


def test_a_job_that_runs_again_overwrites_nothing_else(desk: Desk) -> None:
    source = write(desk, samples("uint8", 3))
    first = run_all(desk, source)
    for name in ("acme/one/cogs/scene.tif", "acme/many/mosaics/scene.json", "acme/other/cogs/scene.tif"):
        desk.storage.put(f"silver/{name}", b"of another version")
    before = contents(desk.root)
    assert run_all(desk, source) == first
    again = contents(desk.root)
    own = "silver/89abcdef/"
    assert {name: kept[0] for name, kept in again.items()} == {name: kept[0] for name, kept in before.items()}
    assert {name for name in before if again[name] != before[name]} <= {name for name in before if name.startswith(own)}

    desk.job_id = JobId("76543210fedcba98")
    assert run_all(desk, source) == first
    after = contents(desk.root)
    assert {name: after[name] for name in again} == again
    assert {name.split("/")[1] for name in set(after) - set(again)} == {"fedcba98"}
