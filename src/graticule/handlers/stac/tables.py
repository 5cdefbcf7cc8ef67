"""Items of the catalogue: tables of features."""

from collections.abc import Mapping
from importlib.metadata import version
from typing import Final

from pystac import Asset, Item, Link, MediaType
from pystac.extensions.projection import ProjectionExtension
from pystac.extensions.table import Column, TableExtension

from graticule.core.asset_names import title_of_id
from graticule.handlers.stac.footprint import box_footprint
from graticule.handlers.stac.items import Document, Stored, Times, describe_file, document_of, named_crs, new_item
from graticule.handlers.stac.table_inputs import TableInputs
from graticule.handlers.vector.described import Column as SourceColumn
from graticule.handlers.vector.preparing.columns import GEOMETRY

GEOPARQUET: Final = "geoparquet"
PMTILES: Final = "pmtiles"
FEATURES: Final = "features"
ASSETS: Final[dict[str, Document]] = {
    GEOPARQUET: {"title": "GeoParquet", "type": "application/vnd.apache.parquet", "roles": ["data"]},
    PMTILES: {"title": "Vector tiles (PMTiles)", "type": "application/vnd.pmtiles", "roles": ["data"]},
    FEATURES: {"title": "All features (GeoJSON)", "type": MediaType.GEOJSON.value, "roles": ["data"]},
}
SERVICE: Final = "http://www.opengis.net/def/rel/ogc/1.0/items"  # `items` itself belongs to the STAC API
WORLD: Final = (-180.0, 180.0)
DEGREES: Final = 4326
_SOFTWARE: Final = ("graticule", "pyogrio")


def table_item(given: TableInputs, stored: Mapping[str, Stored], times: Times) -> Document:
    """Give the item of a table, with the files that were made beside it."""
    place = box_footprint(given.bbox)
    item = new_item(given.stac_item_id, given.stac_collection_id, place, times)
    item.common_metadata.title = given.title or title_of_id(given.stac_item_id)
    item.properties |= {
        "processing:lineage": _lineage(given),
        "processing:software": software(),
        **given.properties(),
    }
    _describe_projection(item, given)
    _describe_table(item, given)
    for key, file in stored.items():
        asset = Asset(file.path, media_type=ASSETS[key]["type"], roles=ASSETS[key]["roles"])
        item.add_asset(key, asset)
        describe_file(asset, file)
    _lead_to_service(item, given)
    return document_of(item)


def software() -> dict[str, str]:
    """Name what read and prepared the features."""
    return {name: version(name) for name in _SOFTWARE}


def _describe_projection(item: Item, given: TableInputs) -> None:
    projection = ProjectionExtension.ext(item, add_if_missing=True)
    projection.code = given.crs
    if given.table.srid == DEGREES:
        west, south, east, north = item.bbox or given.bbox
        crossed = west > east
        projection.bbox = [*((WORLD[0], south, WORLD[1], north) if crossed else (west, south, east, north))]


def _describe_table(item: Item, given: TableInputs) -> None:
    table = TableExtension.ext(item, add_if_missing=True)
    table.columns = [
        Column({"name": "fid", "type": "bigint"}),
        *map(_column, given.source.columns),
        Column({"name": GEOMETRY, "type": given.geometry_type}),
    ]
    table.primary_geometry = GEOMETRY
    table.row_count = given.table.row_count


def _column(column: SourceColumn) -> Column:
    """Describe a column; the name that it has in the source is told when it is another."""
    told = {} if column.field in {column.name, ""} else {"description": column.field}
    return Column({"name": column.name, "type": column.type, **told})


def _lineage(given: TableInputs) -> str:
    """Tell in sentences what was made of what. An address loses its query, which may hold a signature."""
    source, table = given.source, given.table
    told = f"Made from {source.source.partition('?')[0]} (SHA-256 {source.content_hash}), layer {source.layer_name}"
    if others := {opening.crs: None for opening in source.openings if opening.crs != given.crs}:
        told += f", by a reprojection from {', '.join(map(named_crs, others))} to {given.crs}"
    done = {"repaired": table.repaired, "divided at the antimeridian": table.divided}
    return f"{told}." + "".join(f" Geometries that were {what}: {count}." for what, count in done.items() if count)


def _lead_to_service(item: Item, given: TableInputs) -> None:
    """Lead to the features service; without files that is all there is to open."""
    if given.items_url is None or given.download_url is None or given.vector_tilejson_url is None:
        return
    kind = ASSETS[FEATURES]
    if not item.assets:
        item.add_asset(FEATURES, Asset(given.download_url, media_type=kind["type"], roles=kind["roles"]))
    item.add_link(Link(SERVICE, given.items_url, media_type=kind["type"], title="Features (OGC API)"))
    item.add_link(Link("tilejson", given.vector_tilejson_url, media_type=MediaType.JSON, title="Vector tiles"))
