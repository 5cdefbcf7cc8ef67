"""The coordinate reference systems in which features can be had and asked for (OGC API Features, Part 2).

A layer offers every CRS of EPSG whose area of use contains it and that PostGIS knows: the national grids, UTM zones and
world projections that make sense there, and none in which its coordinates could not be computed.
"""

import math
import re
from functools import lru_cache
from itertools import pairwise
from typing import Annotated, Final

from fastapi import Depends, Query, Request
from pyproj import CRS, Transformer
from pyproj.aoi import AreaOfInterest
from pyproj.database import query_crs_info
from pyproj.enums import PJType

from graticule.repositories.served_tables import ServedTableRepository
from graticule.serve.features.geometries import DEFAULT_CRS, DEGREES, FeatureCrs
from graticule.serve.features.layer import Layer, TheLayer
from graticule.serve.features.limits import FilterError
from graticule.serve.served import Box
from graticule.serve.tilesets import CRS84

CRS84H: Final = "http://www.opengis.net/def/crs/OGC/0/CRS84h"  # the same with ellipsoidal heights
WEB_MERCATOR: Final = 3857
_EPSG: Final = "http://www.opengis.net/def/crs/EPSG/0/"
_EPSG_NAME: Final = re.compile(
    r"(?:https?://www\.opengis\.net/def/crs/EPSG/[0-9.]+/|urn:ogc:def:crs:EPSG:[0-9.]*:|EPSG:)([1-9][0-9]{3,5})",
    re.IGNORECASE,
)
_CRS84_NAMES: Final = frozenset({CRS84, "OGC:CRS84", "urn:ogc:def:crs:OGC:1.3:CRS84"})
_CRS84H_NAMES: Final = frozenset({CRS84H, "OGC:CRS84h"})
_HALF_WAY_ROUND: Final = 180.0  # degrees from one point of an outline to the next: it went over the antimeridian
_EDGE_POINTS: Final = 21  # of each side of a box: a straight line in one CRS is none in another


async def list_crs(request: Request, layer: Layer) -> list[str]:
    """Return the URIs of all CRSs that a layer can be had in; the default comes first."""
    if layer.geometry is None:
        return [CRS84]
    heights = [CRS84H] if layer.has_heights else []
    return [CRS84, *heights, *(f"{_EPSG}{code}" for code in await _codes(request, layer))]


def storage_crs(layer: Layer) -> str:
    """Return the URI of the CRS in which a layer is stored."""
    return CRS84 if layer.srid == DEGREES else f"{_EPSG}{layer.srid}"


async def find_crs(request: Request, layer: Layer, name: str | None, parameter: str) -> FeatureCrs:
    """Return the CRS that a request names, or raise that the layer does not offer it."""
    if name is None or name in _CRS84_NAMES:
        return DEFAULT_CRS
    if name in _CRS84H_NAMES and layer.has_heights:
        return FeatureCrs(CRS84H, DEGREES, is_north_first=False)
    found = _EPSG_NAME.fullmatch(name)
    if found is None or layer.geometry is None or int(found[1]) not in await _codes(request, layer):
        told = f"{parameter}: {name[:100]!r} is not supported for this layer."
        raise FilterError(f"{told} The collection lists the supported CRSs in `crs`.")
    code = int(found[1])
    return FeatureCrs(f"{_EPSG}{code}", code, is_north_first=is_north_first(code))


async def requested_crs(
    request: Request,
    layer: TheLayer,
    crs: Annotated[
        str | None, Query(description=f"The CRS of the answer, one that the collection lists; {CRS84} by default.")
    ] = None,
) -> FeatureCrs:
    """Return the CRS in which a request wants its answer."""
    return await find_crs(request, layer, crs, "crs")


RequestedCrs = Annotated[FeatureCrs, Depends(requested_crs)]


async def _codes(request: Request, layer: Layer) -> list[int]:
    """Return the EPSG codes that a layer offers: the common ones first, and its own in any case."""
    known: frozenset[int] | None = getattr(request.app.state, "known_srids", None)
    if known is None:
        async with request.app.state.pool.acquire() as connection:
            known = await ServedTableRepository(connection).known_srids()
        request.app.state.known_srids = known
    around = _codes_around(layer.extent or layer.bounds)
    common = [DEGREES, layer.srid, *((WEB_MERCATOR,) if WEB_MERCATOR in around else ())]
    return list(dict.fromkeys([*common, *(code for code in around if code in known)]))


@lru_cache(maxsize=512)
def _codes_around(bounds: Box) -> tuple[int, ...]:
    """Return the codes of the CRSs whose area of use contains a box in degrees."""
    found = query_crs_info(
        auth_name="EPSG",
        pj_types=[PJType.PROJECTED_CRS, PJType.GEOGRAPHIC_2D_CRS],
        area_of_interest=AreaOfInterest(*bounds),
        contains=True,
    )
    return tuple(sorted(int(each.code) for each in found))


@lru_cache(maxsize=512)
def is_north_first(code: int) -> bool:
    """Return whether a CRS has northing or latitude first, by PROJ's rule, which PostGIS follows when it swaps them."""
    first, second = CRS.from_epsg(code).axis_info[:2]
    if (first.direction, second.direction) == ("north", "east"):
        return True
    is_polar = first.direction == second.direction and first.direction in {"north", "south"}
    return is_polar and first.name.lower().startswith("northing") and second.name.lower().startswith("easting")


# Boxes


def clip_box(box: Box, layer: Layer, crs: FeatureCrs) -> Box | None:
    """Cut a box to where a layer is, so that no corner lies outside of the CRS's domain; None if it is elsewhere."""
    if layer.extent is None:
        return box
    west, south, east, north = _transformer(DEGREES, crs.srid).transform_bounds(*layer.extent)
    if west > east:  # across the antimeridian, in degrees
        return box
    across, up = 0.01 * (east - west) + 1e-3, 0.01 * (north - south) + 1e-3
    around = west - across, south - up, east + across, north + up
    if not all(map(math.isfinite, around)):
        return box
    cut = max(box[0], around[0]), max(box[1], around[1]), min(box[2], around[2]), min(box[3], around[3])
    return cut if cut[0] <= cut[2] and cut[1] <= cut[3] else None


def box_outline(box: Box, crs: FeatureCrs, srid: int) -> str | None:
    """Return the outline of a box in another CRS, as the WKT of a polygon; None when the edge of a map cuts it."""
    corners = [(box[0], box[1]), (box[2], box[1]), (box[2], box[3]), (box[0], box[3]), (box[0], box[1])]
    ring = [
        (start[0] + (end[0] - start[0]) * step / _EDGE_POINTS, start[1] + (end[1] - start[1]) * step / _EDGE_POINTS)
        for start, end in pairwise(corners)
        for step in range(_EDGE_POINTS)
    ]
    ring.append(ring[0])
    xs, ys = _transformer(crs.srid, srid).transform([x for x, _ in ring], [y for _, y in ring])
    if not all(map(math.isfinite, (*xs, *ys))):
        raise FilterError("The bbox is outside the area where its CRS is defined.")
    if srid == DEGREES and any(abs(x - following) > _HALF_WAY_ROUND for x, following in pairwise(xs)):
        return None
    return f"POLYGON(({', '.join(f'{x!r} {y!r}' for x, y in zip(xs, ys, strict=True))}))"


@lru_cache(maxsize=256)
def _transformer(source: int, target: int) -> Transformer:
    return Transformer.from_crs(source, target, always_xy=True)
