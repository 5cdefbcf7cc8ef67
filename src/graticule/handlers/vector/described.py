"""What `vector.validate` found out about a source; all later steps go by it.

Orchestrators import this to know the handlers, hence no GDAL here.
"""

from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from graticule.handlers.vector.sources.source import Kind

WGS84: Final = "EPSG:4326"
DEFAULT_TARGET: Final = WGS84
ColumnName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,62}$")]
ColumnType = Literal[  # it becomes a part of SQL
    "boolean",
    "smallint",
    "integer",
    "bigint",
    "numeric",
    "real",
    "double precision",
    "date",
    "time",
    "timestamp",
    "timestamptz",
    "bytea",
    "jsonb",
    "text",
]
ShapeType = Literal["MultiPoint", "MultiLineString", "MultiPolygon", "GeometryCollection", "Geometry"]


class Described(BaseModel):
    """A part of the description; it comes back from the database as it was written."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class Column(Described):
    """A column of the table, and the field of the source that fills it. Fields are found by their place."""

    field: str
    name: ColumnName
    type: ColumnType


class Shape(Described):
    """The kind of the geometries when they are in the table: always of several parts."""

    type: ShapeType
    has_z: bool = False
    has_m: bool = False

    @property
    def column_type(self) -> str:
        """The type as PostGIS has it, without the projection."""
        return f"{self.type}{'Z' if self.has_z else ''}{'M' if self.has_m else ''}"


class Opening(Described):
    """How the layer is opened: the blob (the source, or what was unpacked of it) and what its format leaves open."""

    path: str  # container/blob/path
    etag: str
    kind: Kind
    layer: str
    crs: str  # in which the coordinates are: what was asked for, or else what the source declares
    is_swapped: bool = False  # the source has north before east, against its format
    encoding: str | None = None
    x_column: str | None = None
    y_column: str | None = None
    wkt_column: str | None = None
    fields: list[int] | None = None  # the places of those that are read, when not all are
    types: dict[int, str] = {}  # of what is read, by its place, of which the format does not say it: Arrow's names
    label: str | None = None  # what people call the layer, where that is not its name in the file
    bbox: list[float] | None = None  # of one of several layers, as that of the source

    @property
    def name(self) -> str:
        """What people call the layer."""
        return self.label or self.layer


class Chunk(Described):
    """A part of the rows that can be read by itself.

    `begin` and `end` are what the format finds rows by: feature ids of a GeoPackage, places of rows in a Shapefile,
    row groups of GeoParquet; the end is not in it. A source that can only be read as a whole is one chunk without.
    """

    index: int = Field(ge=0)
    first_fid: int = Field(ge=1)  # in the table: rows are numbered in the order of the source
    row_count: int = Field(ge=0)
    begin: int | None = None
    end: int | None = None
    layer: int | None = None  # its place among the layers of a source of several; all of them when not given


class Source(Described):
    """The source."""

    source: str  # container/blob/path, as it was sent
    etag: str
    content_hash: str
    size_bytes: int
    opening: Opening
    others: list[Opening] = []  # the other layers, when several become one table
    feature_count: int
    shape: Shape
    columns: list[Column]
    chunks: list[Chunk]
    bbox: list[float]  # west, south, east, north in degrees; west > east across the antimeridian
    outcome: str
    findings: list[JsonValue]
    facts: dict[str, JsonValue]

    @property
    def openings(self) -> list[Opening]:
        """All layers, in the order in which they are read."""
        return [self.opening, *self.others]

    @property
    def layer_name(self) -> str:
        """What people call the layer, or the layers."""
        return f"{self.opening.name} and {len(self.others)} more" if self.others else self.opening.name

    def validation(self) -> dict[str, JsonValue]:
        """Give the report."""
        return {"outcome": self.outcome, "findings": self.findings, "facts": self.facts}
