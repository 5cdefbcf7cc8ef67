"""How much of everything is run."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

BANDS = 3
CORES = 2


class RasterPart(StrEnum):
    """What can be chosen on the command line."""

    COG = "raster-cog"
    TILED = "raster-tiled"
    OVERHEAD = "raster-overhead"
    VALIDATE = "raster-validate"


@dataclass(frozen=True)
class RasterSize:
    """The sides of rasters and tiles, in pixels."""

    side: int = 13_000
    tile: int | None = None  # of `process_large_raster`; chosen by the platform when not given
    many_tiles: int = 2048  # each of the 204 tiles
    validated_side: int = 62_000

    @property
    def name(self) -> str:
        """Say in words what the source is."""
        return f"{self.side:,}² RGB ({megabytes(self.side * self.side * BANDS)})"


@dataclass(frozen=True)
class Folder:
    """Where the files of a run are: what the installation stores, and what the other tools make."""

    path: Path

    @property
    def storage(self) -> Path:
        """The root of the installation's storage."""
        return self.path / "storage"

    def source(self, name: str) -> Path:
        """A file in the partners' container."""
        return self.storage / "bronze" / name

    @property
    def silver(self) -> Path:
        """The container of what the installation makes."""
        return self.storage / "silver"

    def made(self, prefix: str) -> list[Path]:
        """The COGs of a job."""
        return sorted((self.silver / prefix).rglob("*.tif"))

    @property
    def by_tools(self) -> Path:
        """Where the other tools write to."""
        return self.path / "tools"


def megabytes(count: float) -> str:
    """Say how many bytes these are."""
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:,.0f} MB"
