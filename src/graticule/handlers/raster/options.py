"""What a caller may choose about an output. Orchestrators import this to know the handlers: no GDAL here."""

import os
from collections.abc import Sequence
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from graticule.core.errors import InvalidInput
from graticule.handlers.compatibility import translate_source
from graticule.handlers.raster.raster_type import RasterType

Tier = Literal["visualization", "analysis", "archive"]
Resampling = Literal["auto", "nearest", "bilinear", "cubic", "cubic_spline", "lanczos", "average", "mode"]
AUTO: Final = "auto"
DEFAULT_CRS: Final = "EPSG:4326"
MEMORY_LIMIT_MB: Final = 6144  # of addresses, which are more than the memory behind them: the last resort
CACHE_MB: Final = 256  # GDAL's cache of decoded source blocks


class SourceParams(BaseModel):
    """Which source it is, and where what is made of it goes."""

    source: str = Field(min_length=1, description="As `raster.validate` and `raster.blob_to_mount` give it.")
    source_etag: str | None = Field(None, description="What it must still have.")
    prepared: str | None = Field(None, description="What `raster.validate` made of it, which is read instead.")
    blob_prefix: str | None = Field(None, description="Below what the outputs are; without one, after the source.")

    @model_validator(mode="before")
    @classmethod
    def _translate(cls, params: Any) -> Any:
        return translate_source(params)


class OutputOptions(BaseModel):
    """How a source becomes COGs."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    target_crs: str | None = None
    output_tier: Tier = "analysis"
    raster_type: Literal["auto"] | RasterType = AUTO
    jpeg_quality: int = Field(85, ge=1, le=100)
    band_names: list[str] | dict[str, str] | None = None
    resampling: Resampling = AUTO


def resolve_resampling(resampling: Resampling, tier: Tier, raster_type: RasterType | None) -> Resampling:
    """Return the method that `auto` stands for: values are blended only for display, and classes never."""
    if resampling != AUTO:
        return resampling
    is_displayed = tier == "visualization" and raster_type is not RasterType.CATEGORICAL
    return "bilinear" if is_displayed else "nearest"


def named_bands(given: Sequence[str] | dict[str, str] | None, descriptions: Sequence[str | None]) -> list[str] | None:
    """Give a name for each band, those of the source where none is given; None when nothing is given."""
    if not given:
        return None
    if isinstance(given, dict):
        return _named_by_number(given, descriptions)
    if len(given) != len(descriptions):
        raise InvalidInput(
            f"There are {len(given)} band_names for {len(descriptions)} bands.",
            hint='Name each band, or only some by their numbers: {"1": "Red"}.',
        )
    return list(given)


def _named_by_number(given: dict[str, str], descriptions: Sequence[str | None]) -> list[str]:
    numbers = {str(number) for number in range(1, len(descriptions) + 1)}
    if unknown := sorted(set(given) - numbers):
        raise InvalidInput(
            f"band_names: there is no band {unknown[0]!r}.", hint=f"The bands are 1 to {len(descriptions)}."
        )
    return [given.get(str(number), present or "") for number, present in enumerate(descriptions, 1)]


def cpu_count() -> int:
    """Tell how many processors this process may use."""
    return len(os.sched_getaffinity(0))
