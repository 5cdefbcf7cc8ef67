"""What stands at the root of a raster: links, what it conforms to, and its description for programs."""

from typing import Any, Final

from fastapi import APIRouter, Request

from graticule.serve.links import HTML, JSON, Addresses, relation
from graticule.serve.openapi import description_links
from graticule.serve.served import TheServed
from graticule.serve.tiles.tilesets import TILESETS
from graticule.serve.tilesets import WEB_MERCATOR

_TILES: Final = "http://www.opengis.net/spec/ogcapi-tiles-1/1.0/conf"
# Not tileset-list's `mvt` or `netcdf`, nor `collections-selection` and its kin: there is one raster here, and one time.
CONFORMS_TO: Final = (
    f"{_TILES}/core",
    f"{_TILES}/tileset",
    f"{_TILES}/tilesets-list",
    f"{_TILES}/dataset-tilesets",
    f"{_TILES}/png",
    f"{_TILES}/jpeg",
    f"{_TILES}/tiff",
    "http://www.opengis.net/spec/ogcapi-common-1/1.0/conf/core",
    "http://www.opengis.net/spec/ogcapi-common-1/1.0/conf/landing-page",
    "http://www.opengis.net/spec/ogcapi-common-1/1.0/conf/json",
    "http://www.opengis.net/spec/ogcapi-common-1/1.0/conf/oas30",
    "http://www.opengis.net/spec/tms/2.0/conf/tilematrixset",
    "http://www.opengis.net/spec/tms/2.0/conf/json-tilematrixset",
)

router = APIRouter()


@router.get("/", operation_id="getLandingPage")
def landing(request: Request, served: TheServed) -> dict[str, Any]:
    """Show what there is of the raster."""
    to = Addresses(request)
    links = [
        to.itself(request),
        *description_links(to),
        to.link("conformance", "/conformance", JSON, "What it conforms to"),
        to.link(relation("conformance"), "/conformance", JSON, "What it conforms to"),
        to.link(relation("tilesets-map"), TILESETS, JSON, "Its tilesets"),
        to.link(relation("tiling-schemes"), "/tileMatrixSets", JSON, "Its tile matrix sets"),
        to.link("tilejson", f"/{WEB_MERCATOR}/tilejson.json", JSON, "TileJSON, for map clients"),
        to.link("alternate", f"/{WEB_MERCATOR}/map.html", HTML, "A map"),
        to.link("describedby", "/info", JSON, "What is known of the raster"),
        to.link("preview", "/preview.png", "image/png", "A picture of it"),
    ]
    return {"title": served.title or served.asset_id, "links": links}


@router.get("/conformance", operation_id="getConformance")
def conformance() -> dict[str, Any]:
    """Tell which parts of which standards are met."""
    return {"conformsTo": list(CONFORMS_TO)}
