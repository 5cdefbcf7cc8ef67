"""Open a partner's file of features, and say what is wrong with it. Imports GDAL: only for where a handler runs."""

import math
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

import pyogrio
from pydantic import JsonValue
from pyogrio.errors import DataLayerError, DataSourceError
from pyproj import CRS, Transformer
from pyproj.exceptions import ProjError

from graticule.handlers.findings import Rejected
from graticule.handlers.vector.geopackage import chosen, feature_layer
from graticule.handlers.vector.ogr import OPTIONS, check_opened_as_it_is, closed_network
from graticule.handlers.vector.rejecting import Code, rejected
from graticule.handlers.vector.source import Kind

MOST_FIELDS: Final = 1000  # PostgreSQL has at most 1600 columns, fewer when they are wide
LONGEST_TOLD: Final = 256  # characters of a name in the file
MOST_TOLD: Final = 200  # fields
WGS84: Final = "EPSG:4326"

Box = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class Layer:
    """What is known of the layer that is loaded."""

    driver: str
    name: str
    geometry_type: str  # as GDAL writes it: "Polygon", "3D Point", "Unknown"
    crs: str
    count: int
    bounds: Box
    bbox: Box  # the same in degrees
    fields: dict[str, str]  # with their types

    def facts(self) -> dict[str, JsonValue]:
        """Give it as JSON."""
        return {
            "driver": self.driver,
            "layer": self.name[:LONGEST_TOLD],
            "geometry_type": self.geometry_type,
            "crs": CRS.from_user_input(self.crs).name[:LONGEST_TOLD],
            "feature_count": self.count,
            "bounds": list(self.bounds),
            "column_count": len(self.fields),
            "columns": {name[:LONGEST_TOLD]: kind for name, kind in islice(self.fields.items(), MOST_TOLD)},
        }


def inspected(file: str, kind: Kind, wanted: str | None = None) -> Layer:
    """Tell what the layer at hand is like; `Rejected` when it cannot be loaded."""
    check_opened_as_it_is(file)
    name = feature_layer(file, wanted) if kind is Kind.GEOPACKAGE else None
    try:
        with closed_network():
            info = pyogrio.read_info(
                file, layer=name, force_feature_count=True, force_total_bounds=True, **OPTIONS.get(kind, {})
            )
    except (DataSourceError, DataLayerError) as error:
        raise _unreadable(kind, error) from error
    if info["driver"] != kind:
        raise rejected(Code.NOT_A_VECTOR, f"The file is no {kind.value} file, though it begins like one.")
    return _layer(name or chosen([info["layer_name"]], wanted), info)


def _unreadable(kind: Kind, error: Exception) -> Rejected:
    if kind is Kind.GEOJSON and "not recognized" in str(error):  # JSON of another sort
        return rejected(Code.NOT_A_VECTOR, "The file is no GeoJSON file, though it begins like one.")
    return rejected(Code.CORRUPT, "The file cannot be read.")


def _layer(name: str, info: dict[str, Any]) -> Layer:
    where = f"layer {name}"
    if info["geometry_type"] is None:
        raise rejected(Code.NO_GEOMETRY, "The layer has no geometry.", where)
    if not info["features"] or info["total_bounds"] is None:
        raise rejected(Code.NO_FEATURES, "The layer has no feature with a geometry.", where)
    if info["crs"] is None:
        raise rejected(Code.NO_CRS, "The layer does not say in which CRS its coordinates are.", where)
    if len(info["fields"]) > MOST_FIELDS:
        raise rejected(
            Code.TOO_MANY_FIELDS, f"The layer has {len(info['fields'])} fields; at most {MOST_FIELDS} are taken.", where
        )
    left, bottom, right, top = map(float, info["total_bounds"])
    bounds = left, bottom, right, top
    return Layer(
        driver=info["driver"],
        name=name,
        geometry_type=info["geometry_type"],
        crs=info["crs"],
        count=int(info["features"]),
        bounds=bounds,
        bbox=_degrees(info["crs"], bounds, where),
        fields=dict(zip(map(str, info["fields"]), map(str, info["dtypes"]), strict=True)),
    )


def _degrees(crs: str, bounds: Box, where: str) -> Box:
    """Give bounds in degrees; the axes of CRS definitions may be in any order, GDAL's are not."""
    try:
        box: Box = Transformer.from_crs(crs, WGS84, always_xy=True).transform_bounds(*bounds, errcheck=True)
        is_on_earth = all(map(math.isfinite, box))
    except ProjError:
        is_on_earth = False
    if not is_on_earth:
        told = ", ".join(f"{side:g}" for side in bounds)
        raise rejected(Code.ABSURD_BOUNDS, f"The bounds {told} do not lie where the layer's CRS is defined.", where)
    return box
