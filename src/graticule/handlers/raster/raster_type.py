"""What kind of raster it is, from what the file declares and from a sample of its values."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class RasterType(StrEnum):
    """What the pixels mean, as far as it matters for resampling, compression and display."""

    RGB = "rgb"
    RGBA = "rgba"
    DEM = "dem"
    CATEGORICAL = "categorical"
    MULTISPECTRAL = "multispectral"
    PANCHROMATIC = "panchromatic"
    CONTINUOUS = "continuous"  # one band of measured values that is no elevation


_COLOURS: Final = ("red", "green", "blue")
_ELEVATION_WORDS: Final = ("elevation", "dem", "dtm", "dsm", "height", "altitude", "bathymetry", "depth")
_LENGTH_UNITS: Final = ("m", "metre", "meter", "metres", "meters", "ft", "foot", "feet", "us survey foot")
_CATEGORIES: Final = 32  # a sample with no more distinct whole numbers is taken for classes
_DEEPEST, _HIGHEST = -12_000, 9_000  # metres; there is no land or sea floor beyond


@dataclass(frozen=True, slots=True)
class SampledValues:
    """What a sample of a band showed."""

    minimum: float
    maximum: float
    distinct: int


@dataclass(frozen=True, slots=True)
class Declared:
    """What a file says of its bands."""

    dtype: str
    colours: Sequence[str]  # one for each band: red, green, blue, alpha, gray, palette, undefined …
    descriptions: Sequence[str | None] = ()
    units: Sequence[str | None] = ()
    has_colour_table: bool = False

    @property
    def data_bands(self) -> int:
        """How many bands are not alpha."""
        return sum(colour != "alpha" for colour in self.colours)


def raster_type_of(declared: Declared, sample: SampledValues | None = None) -> RasterType:
    """Tell what kind of raster it is; `sample` is of the first band."""
    if declared.data_bands == 1:
        return _single_band(declared, sample)
    return _colour_type(declared) or RasterType.MULTISPECTRAL


def fits(wanted: RasterType, declared: Declared) -> bool:
    """Tell whether the bands of a file can be what someone says they are."""
    bands, is_float = declared.data_bands, declared.dtype.startswith("float")
    has_alpha = bands < len(declared.colours)
    return {
        RasterType.RGB: bands == 3 and not has_alpha,
        RasterType.RGBA: len(declared.colours) == 4,
        RasterType.MULTISPECTRAL: bands > 1,
        RasterType.CATEGORICAL: bands == 1 and not is_float,
    }.get(wanted, bands == 1)


def _colour_type(declared: Declared) -> RasterType | None:
    colours, has_alpha = tuple(declared.colours), "alpha" in declared.colours
    is_colour = colours[:3] == _COLOURS or (declared.dtype == "uint8" and not set(colours) & {*_COLOURS, "palette"})
    if declared.data_bands != 3 or not is_colour or declared.dtype not in {"uint8", "uint16"}:
        return None
    return RasterType.RGBA if has_alpha else RasterType.RGB


def _single_band(declared: Declared, sample: SampledValues | None) -> RasterType:
    if declared.has_colour_table or "palette" in declared.colours:
        return RasterType.CATEGORICAL
    if _is_named_elevation(declared):
        return RasterType.DEM
    if declared.dtype.startswith("float"):
        return RasterType.DEM if sample is None or _looks_like_elevation(sample) else RasterType.CONTINUOUS
    if sample is not None and sample.distinct <= _CATEGORIES:
        return RasterType.CATEGORICAL
    if declared.dtype.startswith("uint"):
        return RasterType.PANCHROMATIC
    return RasterType.DEM if sample is None or _looks_like_elevation(sample) else RasterType.CONTINUOUS


def _is_named_elevation(declared: Declared) -> bool:
    words = " ".join(text or "" for text in declared.descriptions).lower().replace("_", " ").split()
    units = {(unit or "").lower() for unit in declared.units}
    return bool(set(words) & set(_ELEVATION_WORDS) or units & set(_LENGTH_UNITS))


def _looks_like_elevation(sample: SampledValues) -> bool:
    """An index such as NDVI lies within -1 … 1; a radiance or a count goes beyond every mountain."""
    spread_of_an_index = sample.minimum >= -1 and sample.maximum <= 1
    return sample.minimum >= _DEEPEST and sample.maximum <= _HIGHEST and not spread_of_an_index
