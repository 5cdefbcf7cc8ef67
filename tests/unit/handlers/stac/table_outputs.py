"""Outputs of the steps before the catalogue, as the vector handlers give them."""

from typing import Any

SHA, OTHER_SHA = "ab" * 32, "cd" * 32
GEOPARQUET = "silver/direct/d/s/v1/r1/geoparquet/parcels.parquet"
PMTILES = "silver/direct/d/s/v1/r1/pmtiles/parcels.pmtiles"
BBOX = [-61.5, 15.0, -61.0, 15.5]
COLUMNS = [
    {"field": "Nutzungsart (2023)", "name": "nutzungsart_2023", "type": "text"},
    {"field": "height", "name": "height", "type": "double precision"},
]


def source(**more: Any) -> dict[str, Any]:
    """Give an output of `vector.validate`."""
    opening = {"path": "silver/12345678/source/parcels.shp", "etag": "e", "kind": "ESRI Shapefile", "layer": "parcels"}
    found = {"source": "bronze/in/parcels.zip", "etag": "e", "content_hash": "ef" * 32, "size_bytes": 99}
    told = {"outcome": "ok", "findings": [], "facts": {"layer": "parcels"}, "bbox": BBOX}
    rows = {"feature_count": 3, "columns": COLUMNS, "shape": {"type": "MultiPolygon"}, "chunks": []}
    return {**found, "opening": {**opening, "crs": "EPSG:32620"}, **rows, **told, **more}


def table(**more: Any) -> dict[str, Any]:
    """Give an output of `vector.finalize`."""
    made = {"table_name": "parcels_v1", "row_count": 3, "srid": 4326, "bbox": BBOX, "repaired": 1, "divided": 0}
    report = {"outcome": "ok", "findings": [], "facts": {"layer": "parcels", "repaired": 1}}
    return {**made, "content_hash": "ef" * 32, "validation": report, **more}


def geoparquet(**more: Any) -> dict[str, Any]:
    """Give an output of `vector.export_geoparquet`."""
    made = {"name": "geoparquet/parcels.parquet", "path": GEOPARQUET, "size_bytes": 5, "checksum": SHA}
    return {**made, "row_count": 3, **more}


def pmtiles(**more: Any) -> dict[str, Any]:
    """Give an output of `vector.export_pmtiles`."""
    made = {"name": "pmtiles/parcels.pmtiles", "path": PMTILES, "size_bytes": 7, "checksum": OTHER_SHA}
    return {**made, "tile_count": 9, **more}


def table_inputs(**more: Any) -> dict[str, Any]:
    """Give the parameters of `vector.stac_register_item`, of a table without files beside it."""
    version = {"asset_id": "a" * 32, "version_ordinal": 1, "version_label": "v1", "revision": 1, "platform_id": "ddh"}
    request = {"request_id": "r-1"}
    ids = {"stac_item_id": "parcels-v1", "stac_collection_id": "ddh-d", "blob_prefix": "direct/d/s/v1/r1"}
    refs = {"dataset_id": "d-1"}
    return {**ids, **version, **request, "platform_refs": refs, "source": source(), "table": table(), **more}
