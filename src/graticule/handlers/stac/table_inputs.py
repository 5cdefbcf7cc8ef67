"""What the catalogue is given of a table of features: the outputs of the steps of `vector_ingest`.

Orchestrators import this to know the handlers, hence no STAC library here.
"""

from typing import Any

from pydantic import Field, JsonValue, model_validator

from graticule.core.models.platform import TableName
from graticule.handlers.outputs.staging import table_prefix_for
from graticule.handlers.stac.inputs import Given, Registering
from graticule.handlers.vector.described import Source


class Table(Given):
    """What `vector.finalize` made; its columns are those of the source."""

    table_name: TableName
    row_count: int = Field(ge=0)
    srid: int = Field(gt=0)
    bbox: list[float] | None = Field(None, min_length=4, max_length=4)  # in degrees; west > east across 180
    repaired: int = Field(0, ge=0)
    divided: int = Field(0, ge=0)
    table_hash: str | None = None  # SHA-256 of the rows
    validation: dict[str, JsonValue] | None = None  # the report of the source, with what was mended on the way


class ExportedFile(Given):
    """What `vector.export_geoparquet` or `vector.export_pmtiles` made: staged as `name`, `path` when it is promoted."""

    name: str
    path: str
    checksum: str


class TableInputs(Registering):
    """Parameters of `vector.stac_register_item`."""

    source: Source
    table: Table
    geoparquet: ExportedFile | None = None
    pmtiles: ExportedFile | None = None

    @model_validator(mode="before")
    @classmethod
    def _is_named(cls, given: Any) -> Any:
        """Name what belongs to no asset after its source and its table."""
        if not isinstance(given, dict):
            return given
        path, table_name = _named(given.get("source"), "source"), _named(given.get("table"), "table_name")
        prefix = given.get("blob_prefix") or table_prefix_for(path, table_name)
        names = {
            "blob_prefix": prefix,
            "stac_item_id": given.get("stac_item_id") or prefix.replace("/", "-"),
            "stac_collection_id": given.get("stac_collection_id") or f"direct-{path.partition('/')[0].strip('$')}",
        }
        return {**given, **names}

    @property
    def exports(self) -> dict[str, ExportedFile]:
        """The files that were made beside the table, by the names of their assets; the first stands for all."""
        made = {"geoparquet": self.geoparquet, "pmtiles": self.pmtiles}
        return {key: file for key, file in made.items() if file is not None}

    @property
    def crs(self) -> str:
        """The projection of the table."""
        return f"EPSG:{self.table.srid}"

    @property
    def geometry_type(self) -> str:
        """The type of the geometries, as PostGIS has it."""
        return f"geometry({self.source.shape.column_type}, {self.table.srid})"

    @property
    def bbox(self) -> list[float]:
        """Where the features are."""
        return self.table.bbox or self.source.bbox

    @property
    def items_url(self) -> str | None:
        """Where the service has the features, once it is approved."""
        return self.service_url("features", "collections/features/items")

    @property
    def download_url(self) -> str | None:
        """Where the service has all features in one file."""
        return self.service_url("features", "collections/features/download.geojson")

    @property
    def vector_tilejson_url(self) -> str | None:
        """Where the service describes vector tiles of the features."""
        return self.service_url("features", "collections/features/tiles/WebMercatorQuad/tilejson.json")


def _named(given: Any, name: str) -> str:
    """Give a name out of what is not checked yet; what has none is refused when it is."""
    return str(given.get(name, "") if isinstance(given, dict) else getattr(given, name, ""))
