"""What a partner sends: an island as a picture, the same one in false colours, and the beaches on it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyogrio
import rasterio
import shapely
from affine import Affine
from numpy.typing import NDArray
from tests.browser.console.callers import Caller
from tests.e2e.eventually import eventually

from graticule.cli.demo_island import CRS, NORTH, PIXEL_METRES, WEST, Island

STEP: Final = 4  # of the island's pixels one in so many is sent, along and across
BEACHES: Final = 40
CONTAINER, PLATFORM = "bronze", "ddh"


@dataclass(frozen=True)
class Sender:
    """A partner who sends files, and waits until they are processed."""

    partner: Caller
    container: Path

    @classmethod
    def of(cls, admin: Caller) -> "Sender":
        container = admin.site.home / "storage" / CONTAINER / PLATFORM
        container.mkdir(parents=True, exist_ok=True)
        return cls(admin.add_client("harbour-office", "submitter", platform_id=PLATFORM), container)

    def send(self, data_type: str, resource: str, label: str, file: Path, **more: Any) -> dict[str, Any]:
        """Send a file of the container as a version, and give the receipt."""
        receipt: dict[str, Any] = self.partner.post(
            "/api/platform/submit",
            dataset_id="island",
            resource_id=resource,
            version_id=label,
            data_type=data_type,
            container_name=CONTAINER,
            file_name=f"{PLATFORM}/{file.name}",
            **more,
        )
        return receipt

    def until_processed(self, *receipts: dict[str, Any]) -> None:
        for receipt in receipts:
            path = f"/api/platform/status/{receipt['request_id']}"
            eventually(
                lambda path=path: self.partner.get(path)["status"] == "completed",  # type: ignore[misc]
                lambda path=path: str(self.partner.get(path)),  # type: ignore[misc]
                60,
            )


def write_picture(path: Path, bands: NDArray[np.uint8]) -> Path:
    """Write a picture of the island as partners have it: in metres, so that it has to be reprojected."""
    count, height, width = bands.shape
    transform = Affine(STEP * PIXEL_METRES, 0, WEST, 0, -STEP * PIXEL_METRES, NORTH)
    shape = {"width": width, "height": height, "count": count, "dtype": "uint8", "photometric": "RGB"}
    with rasterio.open(path, "w", driver="GTiff", crs=CRS, transform=transform, **shape) as file:
        file.write(bands)
    return path


def natural_colours(island: Island) -> NDArray[np.uint8]:
    return island.picture()[:, ::STEP, ::STEP]


def false_colours(island: Island) -> NDArray[np.uint8]:
    """Give the picture with red for blue: the sea is red, wherever one looks."""
    return natural_colours(island)[::-1]


def write_beaches(path: Path, island: Island) -> Path:
    """Write circles on the shore as a GeoPackage."""
    rows, columns = np.nonzero((island.elevation > 0) & (island.elevation < 4))
    chosen = np.random.default_rng(7).choice(len(rows), BEACHES, replace=False)
    east, north = WEST + columns[chosen] * PIXEL_METRES, NORTH - rows[chosen] * PIXEL_METRES
    return _write_circles(path, _circles(shapely.points(east, north), 400), "Beach")


def write_trees(path: Path, count: int) -> Path:
    """Write a wood of so many trees as a GeoPackage, and ten fields around it."""
    corner = np.array((WEST + 30_000, NORTH - 25_000))
    trees = shapely.points(corner + np.random.default_rng(7).uniform(0, 1000, (count, 2)))
    fields = shapely.points(WEST + 22_000 + 1500 * np.arange(10), NORTH - 20_000)
    return _write_circles(path, np.concatenate([_circles(trees, 4), _circles(fields, 600)]), "Tree")


def _circles(centres: Any, metres: float) -> NDArray[Any]:
    return np.asarray(shapely.buffer(centres, metres, quad_segs=4))


def _write_circles(path: Path, circles: NDArray[Any], name: str) -> Path:
    numbers = np.arange(len(circles))
    fields = {"name": np.array([f"{name} {n}" for n in numbers], object), "rank": numbers}
    pyogrio.raw.write(
        path,
        geometry=shapely.to_wkb(circles),
        field_data=list(fields.values()),
        fields=list(fields),
        layer=name.lower(),
        driver="GPKG",
        geometry_type="Polygon",
        crs=CRS,
    )
    return path
