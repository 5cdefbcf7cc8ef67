"""What a layer of features is to who reads it, whatever the format."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class SourceBatch:
    """Features as the source has them: attributes, and geometries as ISO WKB, null where there is none."""

    attributes: pa.RecordBatch
    wkb: pa.Array
    curved: NDArray[np.intp] = field(default_factory=lambda: np.empty(0, np.intp))  # the places of what had curves


def with_columns(rows: pa.RecordBatch, columns: list[pa.Array], fields: pa.Schema) -> pa.RecordBatch:
    """Give other columns of the same rows; without any, only a choice of none keeps the number of rows."""
    return pa.RecordBatch.from_arrays(columns, schema=fields) if columns else rows.select([])


class LayerReader(Protocol):
    """Reads a layer, or a part of it, batch by batch."""

    @property
    def fields(self) -> pa.Schema:
        """The attributes, in the source's order; names may repeat but for their case."""

    @property
    def geometry_type(self) -> str:
        """What the layer declares, in GDAL's words: "Polygon", "3D Point", "Unknown"."""

    @property
    def count(self) -> int | None:
        """How many features are announced, if that is known before they are read."""

    def batches(self) -> Iterator[SourceBatch]:
        """Give the features; `Rejected` when they cannot be read to the end."""


@dataclass(frozen=True, slots=True)
class Declared:
    """What a source says of one of its layers."""

    layer: str
    crs: str | None
    field_count: int
    fields: list[int] | None = None
    types: dict[int, str] = field(default_factory=dict)
    mixed_zones: list[str] = field(default_factory=list)  # fields of date-times of which only some have a zone
    encoding: str | None = None
    x_column: str | None = None
    y_column: str | None = None
    wkt_column: str | None = None
