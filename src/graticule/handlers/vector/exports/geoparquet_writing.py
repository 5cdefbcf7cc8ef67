"""GeoParquet 1.1: the features of a source in one file, with a box around each.

Imports GDAL, to read the source: only for where a handler runs.
"""

import json
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import shapely
from pydantic import JsonValue
from pyproj import CRS

from graticule.handlers.context import ProcessContext
from graticule.handlers.vector.described import Column, Shape
from graticule.handlers.vector.exports.export_reading import read_features
from graticule.handlers.vector.preparing.columns import GEOMETRY
from graticule.handlers.vector.preparing.geometries import target_crs

VERSION: Final = "1.1.0"
GROUP_ROWS: Final = 65_536  # of a row group: large enough to pack well, small enough to be passed over
GROUP_BYTES: Final = 64 * 1024**2  # of features in memory before they are written
BOX: Final = "bbox"
SIDES: Final = ("xmin", "ymin", "xmax", "ymax")
# Singles, rounded outwards as GDAL has it: half the size of doubles, and a box that is too large by a metre at most
# finds what it has to find.
BOX_TYPE: Final = pa.struct([(side, pa.float32()) for side in SIDES])
JSON_TYPE: Final = pa.json_(pa.utf8())
_KINDS: Final = {
    1: "Point",
    2: "LineString",
    3: "Polygon",
    4: "MultiPoint",
    5: "MultiLineString",
    6: "MultiPolygon",
    7: "GeometryCollection",
}


def write_geoparquet(ctx: ProcessContext, file: Path) -> dict[str, JsonValue]:
    """Write the features of the source that the task is about, and tell what was written."""
    source, crs = ctx.params.source, target_crs(ctx.params.target_crs)
    with GeoParquetWriter(file, source.columns, source.shape, crs) as writer:
        for rows in read_features(ctx, ctx.params.target_crs):
            writer.write(rows)
    return {"row_count": source.feature_count, "geometry_types": [*writer.geometry_types], "crs": crs.to_string()}


class GeoParquetWriter:
    """Writes batches of features, and what is known of them all in the end."""

    def __init__(self, file: Path, columns: list[Column], shape: Shape, crs: CRS) -> None:
        self._file = file
        self._shape = shape
        self._crs = crs
        self._json = frozenset(column.name for column in columns if column.type == "jsonb")
        self._box = box_name({column.name for column in columns})
        self._codes: set[int] = set()
        self._ranges = np.array([[np.inf] * 3, [-np.inf] * 3])  # lowest and highest x, y and z
        self._waiting: list[pa.RecordBatch] = []
        self._writer: pq.ParquetWriter | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._write_group()
        if self._writer is not None:
            if kind is None:
                self._writer.add_key_value_metadata({"geo": json.dumps(self._described())})
            self._writer.close()

    @property
    def geometry_types(self) -> list[str]:
        """The types of geometries that there are."""
        return sorted(f"{_KINDS[code % 1000]}{' Z' if code >= 1000 else ''}" for code in self._codes)

    def write(self, rows: pa.RecordBatch) -> None:
        """Add features: their columns and, in the last, their geometries."""
        geometry = shapely.from_wkb(rows.column(GEOMETRY).to_numpy(zero_copy_only=False))
        wkb = self._without_m(geometry) if self._shape.has_m else rows.column(GEOMETRY).cast(pa.binary())
        self._codes |= type_codes(wkb)
        bounds = shapely.bounds(geometry)
        self._note(geometry, bounds)
        columns = [self._typed(name, rows.column(name)) for name in rows.schema.names if name != GEOMETRY]
        names = [name for name in rows.schema.names if name != GEOMETRY]
        self._waiting.append(pa.record_batch([*columns, wkb, boxes(bounds)], [*names, GEOMETRY, self._box]))
        if sum(map(len, self._waiting)) >= GROUP_ROWS or sum(batch.nbytes for batch in self._waiting) >= GROUP_BYTES:
            self._write_group()

    def _typed(self, name: str, column: pa.Array) -> pa.Array:
        return pa.ExtensionArray.from_storage(JSON_TYPE, column.cast(pa.utf8())) if name in self._json else column

    def _without_m(self, geometry: Any) -> pa.Array:
        """Give geometries without measures, which GeoParquet does not have."""
        plain = geometry if self._shape.has_z else shapely.force_2d(geometry)
        return pa.array(shapely.to_wkb(plain, flavor="iso", output_dimension=3), pa.binary())

    def _note(self, geometry: Any, bounds: Any) -> None:
        """Keep how far the coordinates reach."""
        reach = [bounds[:, 0::2], bounds[:, 1::2]]
        if self._shape.has_z:
            reach.append(shapely.get_coordinates(geometry, include_z=True)[:, 2])
        for place, values in enumerate(reach):
            self._ranges[0, place] = np.fmin(self._ranges[0, place], np.fmin.reduce(values, axis=None, initial=np.inf))
            self._ranges[1, place] = np.fmax(self._ranges[1, place], np.fmax.reduce(values, axis=None, initial=-np.inf))

    def _write_group(self) -> None:
        if self._waiting:
            table = pa.Table.from_batches(self._waiting)
            self._opened(table.schema).write_table(table, row_group_size=len(table))
            self._waiting = []

    def _opened(self, schema: pa.Schema) -> pq.ParquetWriter:
        if self._writer is None:
            plain = [name for name in schema.names if name not in {GEOMETRY, self._box}]
            self._writer = pq.ParquetWriter(
                self._file,
                schema,
                compression="zstd",
                use_dictionary=plain,  # what is different in each row would only fill one
                write_statistics=[*plain, *(f"{self._box}.{side}" for side in SIDES)],
                write_page_index=True,
                store_schema=False,  # readers would look for the metadata there, where they are not
            )
        return self._writer

    def _described(self) -> dict[str, Any]:
        """Give the metadata of the file, as the specification has it."""
        column = {
            "encoding": "WKB",
            "geometry_types": self.geometry_types,
            "crs": self._crs.to_json_dict(),
            "covering": {BOX: {side: [self._box, side] for side in SIDES}},
        }
        dimensions = int(np.isfinite(self._ranges).all(axis=0).sum())  # x and y, and z if there is one
        if dimensions:
            column["bbox"] = self._ranges[:, :dimensions].ravel().tolist()
        return {"version": VERSION, "primary_column": GEOMETRY, "columns": {GEOMETRY: column}}


def box_name(taken: set[str]) -> str:
    """Name the column of the boxes, which a source may have, too."""
    return next(name for name in (BOX, *(f"{BOX}_{n}" for n in range(2, len(taken) + 3))) if name not in taken)


def boxes(bounds: Any) -> pa.Array:
    """Give boxes as a column, rounded outwards; where a geometry is empty or missing, there is none."""
    is_missing = np.isnan(bounds[:, 0])
    singles = bounds.astype(np.float32)
    singles[:, :2] = np.where(singles[:, :2] > bounds[:, :2], np.nextafter(singles[:, :2], -np.inf), singles[:, :2])
    singles[:, 2:] = np.where(singles[:, 2:] < bounds[:, 2:], np.nextafter(singles[:, 2:], np.inf), singles[:, 2:])
    sides = [pa.array(singles[:, place], mask=is_missing) for place in range(len(SIDES))]
    return pa.StructArray.from_arrays(sides, fields=list(BOX_TYPE), mask=pa.array(is_missing))


def type_codes(wkb: pa.BinaryArray) -> set[int]:
    """Give the types that stand at the beginning of geometries in little-endian WKB."""
    starts = np.frombuffer(wkb.buffers()[1], np.int32)[wkb.offset : wkb.offset + len(wkb)]
    starts = starts[wkb.is_valid().to_numpy(zero_copy_only=False)]
    if not len(starts):
        return set()
    data = np.frombuffer(wkb.buffers()[2], np.uint8)
    codes = data[starts[:, None] + np.arange(1, 5)].copy().view("<u4")
    return set(np.unique(codes).tolist())
