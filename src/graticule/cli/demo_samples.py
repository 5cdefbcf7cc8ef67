"""What the partner of the demonstration sends: a picture of an island, its land register, and a file that is broken."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import Final

from pydantic import JsonValue

from graticule.core.models.platform import DataType

PARTNER: Final = "island_survey"
CONTAINER: Final = "bronze"
NEEDED: Final = ("numpy", "pyogrio", "rasterio", "shapely")  # of the extra `worker`
NO_RASTER: Final = b"This was to be the island as seen in the dry season, but the export failed.\n"


@dataclass(frozen=True, slots=True)
class Sample:
    """A file of a partner, and what it is called there."""

    resource: str
    data_type: DataType
    file_name: str  # in the container
    told: str
    data: bytes
    options: Mapping[str, JsonValue] = field(default_factory=dict)  # what else is to be made of it

    @property
    def path(self) -> str:
        """Where it is in the storage."""
        return f"{CONTAINER}/{self.file_name}"


@dataclass(frozen=True, slots=True)
class Samples:
    """All that is sent in the demonstration."""

    raster: Sample
    vector: Sample
    broken: Sample


def can_make_samples() -> bool:
    """Tell whether what makes them is installed."""
    return all(find_spec(module) is not None for module in NEEDED)


def make_samples() -> Samples:
    """Make them, in about two seconds; nothing is downloaded."""
    from graticule.cli.demo_island import CRS, HEIGHT, WIDTH, Island, island_raster
    from graticule.cli.demo_parcels import parcels_geopackage

    island = Island.make()
    register = _sample("parcels", DataType.VECTOR, "parcels.gpkg", f"land parcels, {CRS}", parcels_geopackage(island))
    return Samples(
        _sample("relief", DataType.RASTER, "island.tif", f"{WIDTH} x {HEIGHT} pixels, {CRS}", island_raster(island)),
        replace(register, options={"geoparquet": True, "pmtiles": True}),
        _sample("dry_season", DataType.RASTER, "dry_season.tif", "a text that says it is a raster", NO_RASTER),
    )


def _sample(resource: str, data_type: DataType, name: str, told: str, data: bytes) -> Sample:
    return Sample(resource, data_type, f"{PARTNER}/{name}", told, data)
