"""What there is: the landing page, the one collection, and what its features can be asked about."""

from typing import Any, Final

from fastapi import APIRouter, Request
from fastapi.responses import Response
from tipg import model

from graticule.repositories.served_tables import ServedColumn
from graticule.serve.features.conformance import CONFORMS_TO
from graticule.serve.features.cql2 import Kind, kind_of
from graticule.serve.features.crs import list_crs, storage_crs
from graticule.serve.features.formats import JSON_ONLY, Format, json_response
from graticule.serve.features.layer import COLLECTION, Layer, TheLayer
from graticule.serve.features.links import DOWNLOAD, GEOJSON, ITEMS, SCHEMA, THE_COLLECTION, TILESETS
from graticule.serve.links import HTML, JSON, Addresses, Link, relation
from graticule.serve.openapi import description_links
from graticule.serve.served import Served

QUERYABLES: Final = f"{THE_COLLECTION}/queryables"
_SCHEMAS: Final[dict[Kind, dict[str, str]]] = {
    Kind.NUMBER: {"type": "number"},
    Kind.TEXT: {"type": "string"},
    Kind.BOOLEAN: {"type": "boolean"},
    Kind.INSTANT: {"type": "string", "format": "date-time"},
    Kind.OTHER: {"type": "string"},
}
_BY_TYPE: Final[dict[str, dict[str, str]]] = {
    **{name: {"type": "integer"} for name in ("smallint", "integer", "bigint")},
    **{name: {"type": "object"} for name in ("json", "jsonb")},
    "date": {"type": "string", "format": "date"},
}

router = APIRouter(tags=["Collection"], dependencies=[JSON_ONLY])


@router.get("/", response_model=None)
async def landing(request: Request) -> dict[str, Any]:
    """Tell where everything is."""
    to = Addresses(request)
    served: Served = request.state.served
    links = [
        to.itself(request),
        *description_links(to),
        to.link("conformance", "/conformance", JSON, "The standards that this API follows"),
        to.link("data", "/collections", JSON, "The collections"),
        to.link(relation("data"), "/collections", JSON, "The collections"),
        to.link(relation("tiling-schemes"), "/tileMatrixSets", JSON, "The tile matrix sets"),
    ]
    return {"title": served.title or served.asset_id, "links": links}


@router.get("/conformance", response_model=model.Conformance)
async def conformance() -> Any:
    """Name the standards that this API follows."""
    return {"conformsTo": CONFORMS_TO}


class Collection(model.Collection):
    """A collection, with what Part 2 of the standard adds to it."""

    storageCrs: str  # noqa: N815 - its name in the standard


class Collections(model.Collections):
    """The collections."""

    collections: list[Collection]  # type: ignore[assignment]  # a list of more than the base has


@router.get("/collections", response_model=Collections, response_model_exclude_none=True)
async def collections(request: Request, layer: TheLayer) -> Any:
    """List the collections: there is one."""
    to = Addresses(request)
    return {
        "links": [to.itself(request)],
        "numberMatched": 1,
        "numberReturned": 1,
        "collections": [await _described(request, layer, to, _link_to_collection(to, "self"))],
    }


@router.get(THE_COLLECTION, response_model=Collection, response_model_exclude_none=True)
async def collection(request: Request, layer: TheLayer) -> Any:
    """Describe the collection."""
    to = Addresses(request)
    return await _described(request, layer, to, to.itself(request))


@router.get(QUERYABLES, response_class=Response, responses={200: {"content": {SCHEMA: {}}}})
async def queryables(request: Request, layer: TheLayer) -> Response:
    """Tell by which properties features can be filtered."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": Addresses(request).to(QUERYABLES),
        "type": "object",
        "title": layer.title,
        "properties": {
            name: {"title": column.title, **column_schema(column)} for name, column in layer.columns.items()
        },
        "additionalProperties": False,
    }
    return json_response(schema, SCHEMA)


def field_types(layer: Layer) -> dict[str, str]:
    """Name the types of the properties, as TileJSON has them."""
    return {column.name: column_schema(column)["type"] for column in layer.properties}


def column_schema(column: ServedColumn) -> dict[str, str]:
    """Return the JSON Schema of a column's values."""
    if column.geometry_type is not None:
        kind = column.geometry_type.lower().removesuffix("m").removesuffix("z")
        return {"format": f"geometry-{'any' if kind == 'geometry' else kind}", "x-ogc-role": "primary-geometry"}
    return _BY_TYPE.get(column.type) or _SCHEMAS[kind_of(column)]


def _link_to_collection(to: Addresses, rel: str) -> Link:
    return to.link(rel, THE_COLLECTION, JSON, "The collection")


async def _described(request: Request, layer: Layer, to: Addresses, itself: Link) -> dict[str, Any]:
    described: dict[str, Any] = {
        "id": COLLECTION,
        "title": layer.title,
        "crs": await list_crs(request, layer),
        "storageCrs": storage_crs(layer),
        "links": [
            itself,
            to.link("items", ITEMS, GEOJSON, "The features"),
            to.link("items", ITEMS, "text/csv", "The features as CSV", [("f", Format.CSV)]),
            to.link("enclosure", DOWNLOAD, GEOJSON, "All features in one file"),
            to.link(relation("queryables"), QUERYABLES, SCHEMA, "What can be asked for"),
            to.link("queryables", QUERYABLES, SCHEMA, "What can be asked for"),
            to.link(relation("tilesets-vector"), TILESETS, JSON, "The vector tiles"),
            to.link("preview", f"{TILESETS}/WebMercatorQuad/map.html", HTML, "A map"),
        ],
    }
    if layer.extent is not None:
        described["extent"] = {"spatial": {"bbox": [layer.extent]}}
    return described
