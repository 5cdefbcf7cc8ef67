"""The land register of the demonstration's island: parcels with what grows on them, as a partner sends them.

shapely, rasterio and pyogrio come with the extra `worker`: whoever imports this needs it.
"""

from dataclasses import dataclass
from io import BytesIO
from typing import Any, Final

import numpy as np
import pyogrio
import shapely
from affine import Affine
from numpy.typing import NDArray
from rasterio.features import shapes

from graticule.cli.demo_island import CRS, NORTH, PIXEL_METRES, SEED, WEST, Island

LAYER: Final = "parcels"
CANDIDATES: Final = 2400  # places that are thrown on the map; those in the sea or on steep ground mostly get no parcel
SMALLEST_HECTARES: Final = 2.0
SHORE_STEP: Final = 2  # the coast is traced on every second pixel
WRITTEN: Final = "2026-01-05T08:00:00.000Z"
SURVEYED: Final = np.datetime64("2024-01-08")

Values = NDArray[Any]


@dataclass(frozen=True, slots=True)
class _Places:
    """Points on the land, and what the terrain is like there."""

    x: Values
    y: Values
    elevation: Values  # metres
    slope: Values  # degrees


def parcels_geopackage(island: Island, seed: int = SEED) -> bytes:
    """Give the island's parcels as a GeoPackage with one layer; the same seed gives the same parcels."""
    random = np.random.default_rng(seed)
    places = _settled(island, random)
    parcels, owners = _parcels(places, _land(island))
    fields = _attributes(parcels, places, owners, random)
    file = BytesIO()
    pyogrio.set_gdal_config_options({"OGR_CURRENT_DATE": WRITTEN})  # else no two files are alike
    pyogrio.raw.write(
        file,
        geometry=shapely.to_wkb(parcels),
        field_data=list(fields.values()),
        fields=list(fields),
        layer=LAYER,
        driver="GPKG",
        geometry_type="Polygon",
        crs=CRS,
    )
    return file.getvalue()


def _settled(island: Island, random: np.random.Generator) -> _Places:
    """Choose where parcels are: densely on low and flat land, rarely in the mountains."""
    place = random.choice(island.elevation.size, CANDIDATES, replace=False)  # no two on the same pixel
    row, column = np.unravel_index(place, island.elevation.shape)
    elevation = island.elevation[row, column]
    slope = np.degrees(np.arctan(np.hypot(island.slope_east[row, column], island.slope_south[row, column])))
    appeal = np.where(elevation > 0, np.clip(1.1 - elevation / 700, 0.15, 1), 0)
    chosen = random.random(CANDIDATES) < appeal
    x, y = WEST + (column + 0.5) * PIXEL_METRES, NORTH - (row + 0.5) * PIXEL_METRES
    return _Places(*(values[chosen] for values in (x, y, elevation, slope)))


def _land(island: Island) -> shapely.Geometry:
    """Trace the coast."""
    mask = np.asarray(island.elevation[::SHORE_STEP, ::SHORE_STEP] > 0, dtype=np.uint8)
    step = SHORE_STEP * PIXEL_METRES
    traced = shapes(mask, mask=mask == 1, transform=Affine(step, 0, WEST, 0, -step, NORTH))
    polygons = [shapely.geometry.shape(outline) for outline, _ in traced]
    return shapely.simplify(shapely.union_all(polygons), 1.2 * step)


def _parcels(places: _Places, land: shapely.Geometry) -> tuple[Values, Values]:
    """Give each place the land that is nearer to it than to any other; a parcel in two pieces becomes two.

    Gives the parcels, and for each the number of its place.
    """
    points = shapely.MultiPoint(np.column_stack([places.x, places.y]))
    cells = shapely.get_parts(shapely.voronoi_polygons(points, extend_to=land, ordered=True))
    shapely.prepare(land)
    pieces, owners = shapely.get_parts(shapely.intersection(cells, land), return_index=True)
    is_parcel = (shapely.get_type_id(pieces) == 3) & (shapely.area(pieces) > SMALLEST_HECTARES * 10_000)
    return pieces[is_parcel], owners[is_parcel]


def _attributes(parcels: Values, places: _Places, owners: Values, random: np.random.Generator) -> dict[str, Values]:
    elevation, slope, hectares = places.elevation[owners], places.slope[owners], shapely.area(parcels) / 10_000
    land_use = _land_use(elevation, slope, random.random(len(parcels)))
    density = np.select([land_use == "town", land_use == "farmland"], [22.0, 0.6], 0.0)
    return {
        "Parcel No.": np.array([f"GR-{number:04d}" for number in range(1, len(parcels) + 1)], dtype=object),
        "land_use": land_use,
        "elevation_m": np.round(elevation.astype(np.float64), 1),
        "slope_deg": np.round(slope.astype(np.float64), 1),
        "area_ha": np.round(hectares, 2),
        "inhabitants": np.asarray(hectares * density * random.uniform(0.5, 1.5, len(parcels)), dtype=np.int32),
        "protected": (land_use == "cloud forest") | (land_use == "mangrove"),
        "surveyed": SURVEYED + random.integers(0, 700, len(parcels)).astype("timedelta64[D]"),
    }


def _land_use(elevation: Values, slope: Values, chance: Values) -> Values:
    """Say what the land is used for, as its height and its slope suggest."""
    uses = {
        "town": (elevation < 80) & (slope < 12) & (chance < 0.12),
        "mangrove": elevation < 6,
        "farmland": (elevation < 160) & (slope < 14),
        "pasture": (elevation < 260) & (slope < 20),
        "bare rock": (slope > 34) & (chance < 0.6),
        "cloud forest": elevation > 420,
    }
    return np.select(list(uses.values()), list(uses), "rain forest").astype(object)
