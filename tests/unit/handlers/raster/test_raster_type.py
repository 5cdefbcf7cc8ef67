"""What kind of raster it is, by what is declared and by a sample."""

import pytest

from graticule.handlers.raster.raster_type import Declared, RasterType, SampledValues, fits, raster_type_of

RGB = ("red", "green", "blue")
MANY = SampledValues(0, 250, 250)
FEW = SampledValues(0, 7, 8)
HILLS = SampledValues(-3, 1800, 900)
INDEX = SampledValues(-0.4, 0.9, 900)
RADIANCE = SampledValues(0, 60_000, 900)


@pytest.mark.parametrize(
    ("declared", "sample", "wanted"),
    [
        (Declared("uint8", RGB), MANY, "rgb"),
        (Declared("uint8", ("gray", "undefined", "undefined")), MANY, "rgb"),
        (Declared("uint16", RGB), MANY, "rgb"),
        (Declared("uint16", ("gray", "undefined", "undefined")), MANY, "multispectral"),
        (Declared("uint8", (*RGB, "alpha")), MANY, "rgba"),
        (Declared("uint8", (*RGB, "undefined")), MANY, "multispectral"),
        (Declared("float32", RGB), MANY, "multispectral"),
        (Declared("uint16", ("gray", *["undefined"] * 7)), MANY, "multispectral"),
        (Declared("uint8", ("gray", "undefined")), MANY, "multispectral"),
        (Declared("uint8", ("palette",), has_colour_table=True), MANY, "categorical"),
        (Declared("uint8", ("gray",)), FEW, "categorical"),
        (Declared("uint8", ("gray",)), MANY, "panchromatic"),
        (Declared("uint8", ("gray", "alpha")), MANY, "panchromatic"),
        (Declared("uint16", ("gray",)), RADIANCE, "panchromatic"),
        (Declared("uint16", ("gray",), units=("m",)), MANY, "dem"),
        (Declared("uint8", ("gray",), descriptions=("surface_height",)), FEW, "dem"),
        (Declared("int16", ("gray",)), HILLS, "dem"),
        (Declared("int16", ("gray",)), FEW, "categorical"),
        (Declared("int32", ("gray",)), RADIANCE, "continuous"),
        (Declared("float32", ("gray",)), HILLS, "dem"),
        (Declared("float32", ("gray",)), INDEX, "continuous"),
        (Declared("float32", ("gray",)), RADIANCE, "continuous"),
        (Declared("float32", ("gray",)), None, "dem"),
    ],
)
def test_the_type_of_a_raster(declared: Declared, sample: SampledValues | None, wanted: str) -> None:
    found = raster_type_of(declared, sample)
    assert found == wanted
    assert fits(found, declared)


@pytest.mark.parametrize(
    ("wanted", "declared"),
    [
        ("rgb", Declared("uint8", ("gray",))),
        ("rgb", Declared("uint8", (*RGB, "alpha"))),
        ("rgba", Declared("uint8", RGB)),
        ("dem", Declared("float32", RGB)),
        ("multispectral", Declared("uint8", ("gray", "alpha"))),
        ("categorical", Declared("float32", ("gray",))),
    ],
)
def test_what_a_raster_cannot_be(wanted: str, declared: Declared) -> None:
    assert not fits(RasterType(wanted), declared)
