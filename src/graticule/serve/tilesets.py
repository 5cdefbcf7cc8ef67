"""Sets of tiles, of rasters and of features alike: the grids that there are, and what is told of tiles in them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from morecantile import Tile, TileMatrixSet
from morecantile import tms as every_tms
from pydantic import BaseModel

from graticule.serve.links import HTML, JSON, Addresses, Link, Query, relation
from graticule.serve.served import Box

KnownGrid = Literal["WebMercatorQuad", "WorldCRS84Quad", "WorldMercatorWGS84Quad"]
WEB_MERCATOR: Final = "WebMercatorQuad"
# These show all longitudes, and a box in degrees is a box in them. In others there are places that have no coordinates
# at all, and a feature there would be the end of every tile that has it.
GRIDS: Final[dict[str, TileMatrixSet]] = {name: every_tms.get(name) for name in get_args(KnownGrid)}
CRS84: Final = "http://www.opengis.net/def/crs/OGC/1.3/CRS84"  # longitude first, unlike EPSG:4326
_TILE: Final = "{tileMatrix}/{tileCol}/{tileRow}"


class TileSetLink(BaseModel):
    """A link, or a template of links."""

    rel: str
    href: str
    type: str
    title: str
    templated: bool | None = None


class BoundingBox(BaseModel):
    """Where tiles are, in degrees."""

    lowerLeft: tuple[float, float]  # noqa: N815 - its name in the standard, as those below
    upperRight: tuple[float, float]  # noqa: N815
    crs: str


class TileMatrixLimits(BaseModel):
    """Which tiles of one zoom level there are."""

    tileMatrix: str  # noqa: N815
    minTileRow: int  # noqa: N815
    maxTileRow: int  # noqa: N815
    minTileCol: int  # noqa: N815
    maxTileCol: int  # noqa: N815


class TileSet(BaseModel):
    """The tiles of one grid."""

    title: str
    dataType: Literal["map", "vector"]  # noqa: N815
    crs: str
    tileMatrixSetURI: str  # noqa: N815
    boundingBox: BoundingBox  # noqa: N815
    links: list[TileSetLink]
    tileMatrixSetLimits: list[TileMatrixLimits] | None = None  # noqa: N815


class TileSetList(BaseModel):
    """The tiles of all grids."""

    links: list[TileSetLink]
    tilesets: list[TileSet]


@dataclass(frozen=True, slots=True)
class Tiled:
    """What is served as tiles, and at which paths below the address of the asset."""

    title: str
    kind: Literal["map", "vector"]
    bounds: Box  # not across the antimeridian
    tilesets: str  # where they are listed
    documents: str  # below this, each grid has a TileJSON document
    formats: Mapping[str, str]  # the types of tiles, by what stands at the end of their address

    def listed(self, to: Addresses, itself: Link, query: Query = ()) -> dict[str, Any]:
        """Describe the tiles of all grids."""
        links = {name: to.link("self", f"{self.tilesets}/{name}", JSON, name, query) for name in GRIDS}
        return {
            "links": [itself],
            "tilesets": [self.described(name, to, link, query) for name, link in links.items()],
        }

    def described(self, grid_name: str, to: Addresses, itself: Link, query: Query = ()) -> dict[str, Any]:
        """Describe the tiles of one grid; `query` goes on to them."""
        grid = GRIDS[grid_name]
        west, south, east, north = self.bounds
        return {
            "title": f"{self.title} in {grid_name}",
            "dataType": self.kind,
            "crs": str(grid.crs.root),
            "tileMatrixSetURI": str(grid.uri),
            "boundingBox": {"lowerLeft": (west, south), "upperRight": (east, north), "crs": CRS84},
            "links": [itself, *self._links(grid_name, to, query)],
        }

    def _links(self, grid_name: str, to: Addresses, query: Query) -> list[Link]:
        tiles, documents = f"{self.tilesets}/{grid_name}/{_TILE}", f"{self.documents}/{grid_name}"
        found = [
            link_to_grid(to, grid_name),
            *(to.template("item", tiles + end, kind, "The tiles", query) for end, kind in self.formats.items()),
            to.link("alternate", f"{documents}/tilejson.json", JSON, "TileJSON", query),
        ]
        if grid_name == WEB_MERCATOR:
            found.append(to.link("preview", f"{documents}/map.html", HTML, "A map", query))
        return found


def link_to_grid(to: Addresses, name: str) -> Link:
    """Give the link to a grid's own description."""
    return to.link(relation("tiling-scheme"), f"/tileMatrixSets/{name}", JSON, name)


def limits(grid_name: str, bounds: Box, zooms: Iterable[int]) -> list[dict[str, Any]]:
    """Tell which tiles of each zoom level have something."""
    return [_limits(GRIDS[grid_name], bounds, zoom) for zoom in zooms]


def _limits(grid: TileMatrixSet, bounds: Box, zoom: int) -> dict[str, Any]:
    west, south, east, north = bounds
    first, last = _tile_at(grid, west, north, zoom), _tile_at(grid, east, south, zoom)
    return {
        "tileMatrix": str(zoom),
        "minTileRow": first.y,
        "maxTileRow": last.y,
        "minTileCol": first.x,
        "maxTileCol": last.x,
    }


def _tile_at(grid: TileMatrixSet, lon: float, lat: float, zoom: int) -> Tile:
    """Give the tile at a place, or the one next to it when the grid ends before."""
    west, south, east, north = grid.bbox
    found = grid.tile(min(max(lon, west), east), min(max(lat, south), north), zoom)
    matrix = grid.matrix(zoom)
    return Tile(min(max(found.x, 0), matrix.matrixWidth - 1), min(max(found.y, 0), matrix.matrixHeight - 1), zoom)
