"""What of a source survives in the COG."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasterio
from affine import Affine
from rasterio.crs import CRS
from rasterio.enums import ColorInterp
from tests.unit.handlers.raster.cog.rasters import DEFLATE, ArraySource, assert_cog

from graticule.handlers.raster.cog.encoding import Encoding
from graticule.handlers.raster.cog.profile import CogProfile, profile_of
from graticule.handlers.raster.cog.writer import write_cog

CRS_OF_COG = CRS.from_epsg(4326)
TRANSFORM = Affine(0.25, 0, 13, 0, -0.25, 52)
JPEG = Encoding("jpeg", quality=85)


def source(path: Path, *, count: int = 1, dtype: str = "uint8", describe: Any = None, **options: Any) -> Path:
    settings = {"driver": "GTiff", "width": 30, "height": 20, "count": count, "dtype": dtype, **options}
    with rasterio.open(path, "w", crs="EPSG:32633", transform=Affine(10, 0, 5e5, 0, -10, 5e6), **settings) as dataset:
        if describe is not None:
            describe(dataset)
        dataset.write(np.ones((count, 20, 30), dtype))
    return path


def profile_from(path: Path, **changes: Any) -> CogProfile:
    settings: dict[str, Any] = {
        "width": 600,
        "height": 520,
        "crs": CRS_OF_COG,
        "transform": TRANSFORM,
        "encoding": DEFLATE,
        "overview_resampling": "average",
        "has_mask": False,
        **changes,
    }
    with rasterio.open(path) as dataset:
        return profile_of(dataset, **settings)


def cog_of(path: Path, **changes: Any) -> Path:
    profile = profile_from(path, **changes)
    data = np.ones((profile.count, profile.height, profile.width), profile.dtype)
    target = path.with_name("cog.tif")
    write_cog(target, profile, [ArraySource(data)], on_progress=lambda done, total: None)
    assert_cog(target)
    return target


def test_everything_that_is_said_of_the_bands_survives(tmp_path: Path) -> None:
    def describe(dataset: Any) -> None:
        dataset.descriptions = ("depth", "größe")
        dataset.scales = (0.1, 1)
        dataset.offsets = (0, -5.5)
        dataset.units = ("m", "")
        dataset.update_tags(AREA_OR_POINT="Point", survey="north", TIFFTAG_SOFTWARE="sonar", STATISTICS_MEAN="3")
        dataset.update_tags(2, wavelength="<700>", STATISTICS_MAXIMUM="9")

    path = source(tmp_path / "a.tif", count=2, dtype="int16", nodata=-32768, describe=describe)
    with rasterio.open(cog_of(path)) as cog:
        assert (cog.width, cog.height, cog.crs, cog.transform) == (600, 520, CRS_OF_COG, TRANSFORM)
        assert cog.nodata == -32768
        assert cog.descriptions == ("depth", "größe")
        assert (cog.scales, cog.offsets) == ((0.1, 1), (0, -5.5))
        assert [unit or "" for unit in cog.units] == ["m", ""]
        assert cog.tags() == {"AREA_OR_POINT": "Point", "survey": "north", "TIFFTAG_SOFTWARE": "sonar"}
        assert cog.tags(2) == {"wavelength": "<700>"}
        assert cog.tags(1) == {}
    assert not list(tmp_path.glob("*.xml"))


@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
def test_colour_table_survives_at_every_level_and_is_not_averaged(tmp_path: Path, dtype: str) -> None:
    colours = {0: (1, 2, 3, 255), 1: (40, 50, 60, 255), 200: (255, 254, 253, 255)}
    path = source(tmp_path / "a.tif", dtype=dtype, describe=lambda dataset: dataset.write_colormap(1, colours))
    assert profile_from(path).overview_resampling == "nearest"
    target = cog_of(path)
    for options in ({}, {"OVERVIEW_LEVEL": 0}):
        with rasterio.open(target, **options) as cog:
            assert cog.colorinterp == (ColorInterp.palette,)
            assert {key: cog.colormap(1)[key] for key in colours} == colours


@pytest.mark.parametrize(
    "colours",
    [
        (ColorInterp.gray,),
        (ColorInterp.red, ColorInterp.green, ColorInterp.blue),
        (ColorInterp.red, ColorInterp.green, ColorInterp.blue, ColorInterp.alpha),
        (ColorInterp.gray, ColorInterp.alpha),
        (ColorInterp.gray, ColorInterp.undefined, ColorInterp.undefined),
        (ColorInterp.blue, ColorInterp.green, ColorInterp.red, ColorInterp.undefined),
        (ColorInterp.red, ColorInterp.green, ColorInterp.blue, ColorInterp.undefined),
    ],
)
@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
def test_colour_interpretation_survives(tmp_path: Path, colours: tuple[ColorInterp, ...], dtype: str) -> None:
    def describe(dataset: Any) -> None:
        dataset.colorinterp = colours

    path = source(tmp_path / "a.tif", count=len(colours), dtype=dtype, photometric="MINISBLACK", describe=describe)
    with rasterio.open(cog_of(path)) as cog:
        assert cog.colorinterp == colours


def test_given_names_and_nodata_win(tmp_path: Path) -> None:
    path = source(tmp_path / "a.tif", count=2, dtype="float32", nodata=-1)
    with rasterio.open(cog_of(path, band_names=["u", "v"], nodata=math.nan)) as cog:
        assert cog.descriptions == ("u", "v")
        assert math.isnan(cog.nodata)
    with rasterio.open(cog_of(path, nodata=None)) as cog:
        assert cog.nodata is None


def test_nodata_that_no_pixel_can_hold_is_dropped(tmp_path: Path) -> None:
    path = source(tmp_path / "a.tif")
    assert profile_from(path, nodata=-9999).nodata is None


def test_a_mask_stands_in_for_nodata_when_values_are_not_exact(tmp_path: Path) -> None:
    path = source(tmp_path / "a.tif", count=3, nodata=0, photometric="RGB")
    profile = profile_from(path, encoding=JPEG)
    assert (profile.nodata, profile.has_mask) == (None, True)
    assert not profile_from(path, encoding=JPEG, nodata=None).has_mask
    assert (profile_from(path).nodata, profile_from(path).has_mask) == (0, False)
