"""Features on their way from a source to a table or an export: prepared, batch by batch.

Imports GDAL: only for where a handler runs.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from graticule.handlers.vector.described import Chunk, Source
from graticule.handlers.vector.preparing import attributes, geometries
from graticule.handlers.vector.preparing.bounds import Bounds
from graticule.handlers.vector.preparing.columns import FEATURE_ID, GEOMETRY
from graticule.handlers.vector.preparing.geometries import Preparer
from graticule.handlers.vector.rejecting import Code, rejected
from graticule.handlers.vector.sources import reading
from graticule.storage.blocking import BlockingStorage


@dataclass(frozen=True, slots=True)
class FeatureBatch:
    """Some features: `rows` has the number, the columns and the geometry of each."""

    rows: pa.RecordBatch
    repaired: int
    divided: int  # at the antimeridian
    bounds: Bounds | None  # in units of the target, across the antimeridian beyond it; None when nothing has a place


class Features:
    """The features of a source, or of a chunk of it."""

    def __init__(self, reader: reading.LayerReader, source: Source, preparer: Preparer, first_fid: int) -> None:
        self._reader = reader
        self._columns = source.columns
        self._preparer = preparer
        self._next_fid = first_fid

    def batches(self) -> Iterator[FeatureBatch]:
        """Give the features in the order of the source."""
        for batch in self._reader.batches():
            yield self._prepared(batch)
            self._next_fid += len(batch.wkb)

    def _prepared(self, batch: reading.SourceBatch) -> FeatureBatch:
        made = self._preparer.prepared(batch.wkb, self._next_fid)
        fids = np.arange(self._next_fid, self._next_fid + len(batch.wkb), dtype=np.int64)
        columns = [
            attributes.converted(values, column.type, f"column {column.field}")
            for values, column in zip(batch.attributes.columns, self._columns, strict=True)
        ]
        names = [FEATURE_ID, *(column.name for column in self._columns), GEOMETRY]
        rows = pa.RecordBatch.from_arrays([pa.array(fids), *columns, made.wkb], names=names)
        return FeatureBatch(rows, made.repaired, made.divided, made.bounds)


@contextmanager
def open_features(
    storage: BlockingStorage, source: Source, target_crs: str, chunk: Chunk | None = None
) -> Iterator[Features]:
    """Open the features of a source, or of one chunk, as they are to be in a CRS."""
    target, opening = geometries.target_crs(target_crs), source.opening
    preparer = Preparer(opening.crs, target, source.shape, opening.is_swapped, gap=_gap(source))
    with reading.open_layer(storage, opening, chunk) as reader:
        if [field.name for field in reader.fields] != [column.field for column in source.columns]:
            raise rejected(Code.SOURCE_CHANGED, "The layer has other fields than it had.")
        yield Features(reader, source, preparer, chunk.first_fid if chunk else 1)


def _gap(source: Source) -> float | None:
    """Give a longitude at which nothing of a layer across the antimeridian is."""
    west, _, east, _ = source.bbox
    return (west + east) / 2 if west > east else None
