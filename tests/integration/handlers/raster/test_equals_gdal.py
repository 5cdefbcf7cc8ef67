"""Outputs equal what GDAL's warp makes of the whole raster in one pass, pixel for pixel."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
import rasterio
from affine import Affine
from cogeo_mosaic.mosaic import MosaicJSON
from numpy.typing import NDArray
from rasterio.enums import ColorInterp, Resampling
from rasterio.vrt import WarpedVRT
from rio_cogeo.cogeo import cog_validate
from tests.integration.handlers.raster.desk import Desk, opened_desk
from tests.integration.handlers.raster.one_pass import Whole, one_pass
from tests.rasters import KINDS, UTM_20

Array = NDArray[Any]
Grid = dict[str, Any]

LOSSY = {("rgb", "visualization"), ("rgba", "visualization")}
# Sizes of sources whose outputs, and the outputs' first overviews, have an even number of rows and columns: only
# there GDAL's overviews, too, are made of whole cells of two by two pixels.
EVEN = {"antimeridian": (1033, 301), "arctic": (140, 240)}
EVEN_ELSEWHERE = (1060, 302)


# Far from the middle of its zone, so that its sides are not those of the output.
ASLANT = Affine(10, 0, 760_000, 0, -10, 2_000_000)


@dataclass(frozen=True)
class Scene:
    """A source at a desk, and all that GDAL makes of it on the grid that the handlers chose."""

    kind: str
    desk: Desk
    source: str
    grid: Grid
    whole: Whole


@pytest.fixture(scope="module", params=sorted(KINDS))
def scene(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    kind: str = request.param
    with opened_desk(tmp_path_factory.mktemp(kind)) as desk:
        source = sent(desk, kind, 240 if kind == "arctic" else 640, 560)
        grid = desk.run("raster.generate_tiling_scheme", source=source)["grid"]
        yield Scene(kind, desk, source, grid, one_pass(desk.file(source), grid))


def sent(desk: Desk, kind: str, width: int, height: int) -> str:
    changes: dict[str, Any] = {"transform": ASLANT} if KINDS[kind].crs == UTM_20 else {}
    return desk.source(kind, width=width, height=height, **changes)


def affine_of(grid: Grid) -> Affine:
    return Affine(*grid["transform"])


def place_of(tile: Affine, grid: Affine) -> tuple[int, int]:
    """Give the column and row of the grid at which a tile begins, by the tile's own word."""
    column, row = ~grid @ (tile.c, tile.f)
    assert (tile.a, tile.e) == (grid.a, grid.e)
    assert (column, row) == pytest.approx((round(column), round(row)), abs=1e-6)
    return round(column), round(row)


class Assembly:
    """A mosaic that is put together; tiles that overlap must agree."""

    def __init__(self, count: int, height: int, width: int, dtype: Any) -> None:
        self.data = np.zeros((count, height, width), dtype)
        self.mask = np.zeros((height, width), bool)
        self.covered = np.zeros((height, width), bool)
        self.overlapping = 0

    def put(self, column: int, row: int, data: Array, mask: Array) -> None:
        here = np.s_[..., row : row + mask.shape[0], column : column + mask.shape[1]]
        before = self.covered[here].copy()
        np.testing.assert_array_equal(self.data[here][:, before], data[:, before])
        np.testing.assert_array_equal(self.mask[here][before], mask[before])
        self.data[here], self.mask[here], self.covered[here] = data, mask, True
        self.overlapping += int(before.sum())


def tiles_named_in(desk: Desk, mosaic: Any) -> list[Path]:
    """Give the files of all tiles that the MosaicJSON names, where they are staged."""
    written = MosaicJSON.model_validate_json(desk.staged("mosaics/scene.json").read_bytes())
    prefix = f"silver/{mosaic['blob_prefix']}/"
    paths = {path for paths in written.tiles.values() for path in paths}
    assert all(path.startswith(prefix) for path in paths)
    return [desk.staged(path.removeprefix(prefix)) for path in sorted(paths)]


def windows_of(desk: Desk, scheme: Any) -> dict[str, list[int]]:
    written = orjson.loads(desk.storage.get(scheme["scheme"]))
    return {each["properties"]["tile_id"]: each["properties"]["window"] for each in written["features"]}


def assembled(desk: Desk, scheme: Any, mosaic: Any) -> Assembly:
    """Put together what the MosaicJSON names, each tile where it says that it lies."""
    grid, windows = scheme["grid"], windows_of(desk, scheme)
    paths = tiles_named_in(desk, mosaic)
    assert [path.stem for path in paths] == sorted(windows)
    with rasterio.open(paths[0]) as first:
        assembly = Assembly(first.count, grid["height"], grid["width"], first.dtypes[0])
    for path in paths:
        assert cog_validate(path, strict=True, quiet=True) == (True, [], [])
        with rasterio.open(path) as tile:
            column, row = place_of(tile.transform, affine_of(grid))
            assert windows[path.stem] == [column, row, tile.width, tile.height]
            assert tile.crs.to_epsg() == 4326
            assembly.put(column, row, tile.read(), tile.dataset_mask() != 0)
    assert assembly.covered.all()
    return assembly


def assert_statistics_of(whole: Whole, bands: list[Any]) -> None:
    """Compare with what numpy counts of the whole at once."""
    assert len(bands) == len(whole.data)
    for data, valid, band in zip(whole.data, whole.valid, bands, strict=True):
        samples = data[valid]
        wide = samples.astype("f8" if data.dtype.kind == "f" else "i8")
        counted = band["statistics"]
        assert (counted["count"], counted["min"], counted["max"]) == (samples.size, samples.min(), samples.max())
        sums = (wide.sum().item(), (wide * wide).sum().item())
        found = (counted["sum"], counted["sum_of_squares"])
        assert found == (pytest.approx(sums, rel=1e-12) if data.dtype.kind == "f" else sums)
        assert counted["mean"] == pytest.approx(wide.mean(), rel=1e-12)
        assert counted["stddev"] == pytest.approx(wide.std(), rel=1e-9)


def test_the_grid_is_that_of_gdalwarp(scene: Scene) -> None:
    is_beyond = scene.kind == "antimeridian"  # in EPSG:4326 GDAL's own grid goes all around the earth there
    crs = "+proj=longlat +datum=WGS84 +lon_wrap=180" if is_beyond else "EPSG:4326"
    with rasterio.open(scene.desk.file(scene.source)) as dataset, WarpedVRT(dataset, crs=crs) as warped:
        chosen = (affine_of(scene.grid), scene.grid["width"], scene.grid["height"])
        by_gdal = (warped.transform, warped.width, warped.height)
    if is_beyond:
        assert (chosen[0].c, chosen[0].f) == pytest.approx((by_gdal[0].c, by_gdal[0].f), rel=1e-9)
        assert chosen[0].c < 180 < chosen[0].c + chosen[1] * chosen[0].a
        assert chosen[1:] == pytest.approx(by_gdal[1:], rel=0.02)
    else:
        assert chosen == by_gdal


@pytest.mark.parametrize("overlap", [64, 0])
def test_the_mosaic_of_the_tiles_is_the_whole(scene: Scene, overlap: int) -> None:
    scheme, tiles, mosaic = scene.desk.chain(scene.source, tile_size=512, overlap=overlap)
    assert (scheme["grid"], scheme["overlap"]) == (scene.grid, overlap)
    assert len(tiles) >= 4
    assembly = assembled(scene.desk, scheme, mosaic)
    assert bool(assembly.overlapping) == bool(overlap)
    np.testing.assert_array_equal(assembly.data, scene.whole.data)
    np.testing.assert_array_equal(assembly.mask, scene.whole.mask)
    assert 0 < assembly.mask.mean() < 1
    assert_statistics_of(scene.whole, mosaic["bands"])


@pytest.mark.parametrize("tier", ["analysis", "archive", "visualization"])
def test_one_cog_is_the_whole(scene: Scene, tier: str) -> None:
    made = scene.desk.run("raster.create_cog", source=scene.source, output_tier=tier, resampling="nearest")
    path = scene.desk.staged(made["files"][0])
    assert cog_validate(path, strict=True, quiet=True) == (True, [], [])
    assert (made["tier"], made["grid"]) == (tier, scene.grid)
    with rasterio.open(path) as dataset:
        np.testing.assert_array_equal(dataset.dataset_mask() != 0, scene.whole.mask)
        assert (dataset.transform, dataset.shape) == (affine_of(scene.grid), scene.whole.mask.shape)
        data = dataset.read()
    if (scene.kind, tier) in LOSSY:
        assert made["compression"] in {"jpeg", "webp"}
        assert data.shape == scene.whole.data.shape
    else:
        np.testing.assert_array_equal(data, scene.whole.data)
    assert_statistics_of(scene.whole, made["bands"])


def test_lossy_tiers_stay_near_what_they_were_made_of(desk: Desk) -> None:
    """Of smooth pictures, that is; noise is what these codecs give up."""
    source = desk.source("rgb", width=500, height=400)
    shades = np.linspace(40, 200, 500).astype("uint8")
    with rasterio.open(desk.file(source), "r+") as dataset:
        dataset.write(np.broadcast_to(shades, (3, 400, 500)).copy())
    made = desk.run("raster.create_cog", source=source, output_tier="visualization", jpeg_quality=95)
    whole = one_pass(desk.file(source), made["grid"])
    with rasterio.open(desk.staged(made["files"][0])) as dataset:
        differences = np.abs(dataset.read().astype(int) - whole.data)[whole.valid]
    assert np.percentile(differences, 99) <= 3  # at the edge colours mix with the black outside


def test_where_gdal_chooses_among_ways_tiles_are_the_whole_as_well(desk: Desk) -> None:
    """Between these datums there are several ways, each for an area of its own."""
    source = desk.source("rgb", width=600, height=300, crs="EPSG:23031", transform=Affine(10, 0, 4e5, 0, -10, 4.6e6))
    scheme, _, mosaic = desk.chain(source, tile_size=512, overlap=64)
    whole = one_pass(desk.file(source), scheme["grid"])
    assembly = assembled(desk, scheme, mosaic)
    np.testing.assert_array_equal(assembly.data, whole.data)
    np.testing.assert_array_equal(assembly.mask, whole.mask)


def written_by_gdal(path: Path, whole: Whole, grid: Grid) -> Path:
    """Let GDAL write the whole, with overviews of its own."""
    count, height, width = whole.data.shape
    is_rgb = whole.colorinterp[:3] == (ColorInterp.red, ColorInterp.green, ColorInterp.blue)
    profile: dict[str, Any] = {
        "photometric": "RGB" if is_rgb else "MINISBLACK",
        "transform": affine_of(grid),
        "nodata": whole.nodata,
        "crs": grid["crs"],
        "tiled": True,
        **({"alpha": "YES"} if ColorInterp.alpha in whole.colorinterp else {}),
    }
    with (
        rasterio.Env(GDAL_TIFF_INTERNAL_MASK=True),
        rasterio.open(path, "w", width=width, height=height, count=count, dtype=whole.data.dtype, **profile) as file,
    ):
        file.write(whole.data)
        if whole.has_mask:
            file.write_mask(whole.mask)
    return path


def with_overviews(path: Path, reductions: list[int], resampling: Resampling) -> Path:
    with rasterio.open(path, "r+") as dataset:
        dataset.build_overviews(reductions, resampling)
    return path


def overview_of(path: Path, level: int) -> tuple[Array, Array]:
    with rasterio.open(path, overview_level=level) as dataset:
        return dataset.read(), dataset.dataset_mask() != 0


def assert_alike(kind: str, data: Array, mask: Array, theirs: tuple[Array, Array]) -> None:
    """Compare overviews: classes are the same, means may be rounded otherwise."""
    np.testing.assert_array_equal(mask, theirs[1])
    differences = np.abs(data.astype("f8") - theirs[0])
    assert differences.max() <= {"categorical": 0, "dem": 1e-3}.get(kind, 1)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_overviews_are_those_of_gdal(desk: Desk, tmp_path: Path, kind: str) -> None:
    width, height = EVEN.get(kind, EVEN_ELSEWHERE)
    source = sent(desk, kind, width, height)
    scheme, tiles, mosaic = desk.chain(source, tile_size=1024, overlap=256)
    grid = scheme["grid"]
    assert grid["width"] % 4 == grid["height"] % 4 == 0
    assert len(tiles) >= 2
    resampling = Resampling.nearest if kind == "categorical" else Resampling.average
    by_gdal = written_by_gdal(tmp_path / "gdal.tif", one_pass(desk.file(source), grid), grid)
    with_overviews(by_gdal, [2, 4], resampling)

    halves = Assembly(len(mosaic["bands"]), grid["height"] // 2, grid["width"] // 2, mosaic["bands"][0]["data_type"])
    for tile in tiles:
        if max(tile["shape"]) > 512:
            column, row = (number // 2 for number in tile["window"][:2])
            halves.put(column, row, *overview_of(desk.staged(tile["name"]), 0))
    theirs = overview_of(by_gdal, 0)
    there = halves.covered
    assert there.mean() > 0.9
    assert_alike(kind, halves.data[:, there], halves.mask[there], (theirs[0][:, there], theirs[1][there]))

    whole = desk.staged(desk.run("raster.create_cog", source=source)["files"][0])
    for level in (0, 1):
        assert_alike(kind, *overview_of(whole, level), overview_of(by_gdal, level))
