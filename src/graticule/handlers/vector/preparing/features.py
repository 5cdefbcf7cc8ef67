"""Features on their way from a source to a table or an export: prepared, batch by batch.

Imports GDAL: only for where a handler runs.
"""

from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyproj import CRS

from graticule.handlers.vector.described import Chunk, Opening, Source
from graticule.handlers.vector.preparing import geometries
from graticule.handlers.vector.preparing.attributes import converted
from graticule.handlers.vector.preparing.bounds import Bounds
from graticule.handlers.vector.preparing.columns import FEATURE_ID, GEOMETRY
from graticule.handlers.vector.preparing.geometries import Prepared, Preparer
from graticule.handlers.vector.preparing.merging import LayerColumns
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

    def __init__(self, storage: BlockingStorage, source: Source, target: CRS, chunk: Chunk | None) -> None:
        self._storage = storage
        self._source = source
        self._target = target
        self._chunk = chunk
        self._next_fid = chunk.first_fid if chunk else 1
        self._read = self._batches()

    def batches(self) -> Iterator[FeatureBatch]:
        """Give the features in the order of the source."""
        return self._read

    def close(self) -> None:
        """Close what is open."""
        self._read.close()

    def _batches(self) -> Generator[FeatureBatch, None, None]:
        source, chunk = self._source, self._chunk
        openings = source.openings if chunk is None or chunk.layer is None else [source.openings[chunk.layer]]
        for opening in openings:
            gap = _gap(source.bbox) or _gap(opening.bbox or source.bbox)
            preparer = Preparer(opening.crs, self._target, source.shape, opening.is_swapped, gap=gap)
            with reading.open_layer(self._storage, opening, chunk, self._next_fid) as reader:
                arrays = _arrays_of(reader, source, opening)
                for batch in reader.batches():
                    yield self._prepared(preparer.prepared(batch.wkb, self._next_fid), arrays(batch.attributes))

    def _prepared(self, made: Prepared, columns: list[pa.Array]) -> FeatureBatch:
        fids = np.arange(self._next_fid, self._next_fid + len(made.wkb), dtype=np.int64)
        names = [FEATURE_ID, *(column.name for column in self._source.columns), GEOMETRY]
        rows = pa.RecordBatch.from_arrays([pa.array(fids), *columns, made.wkb], names=names)
        self._next_fid += len(made.wkb)
        return FeatureBatch(rows, made.repaired, made.divided, made.bounds)


def _arrays_of(
    reader: reading.LayerReader, source: Source, opening: Opening
) -> Callable[[pa.RecordBatch], list[pa.Array]]:
    """Return what puts the attributes of a layer into the columns of the table."""
    columns = source.columns
    if source.others:
        return LayerColumns(columns, reader.fields, opening.name).arrays
    if [field.name for field in reader.fields] != [column.field for column in columns]:
        raise rejected(Code.SOURCE_CHANGED, "The layer has other fields than it had.")
    return lambda attributes: [
        converted(values, column.type, f"column {column.field}")
        for values, column in zip(attributes.columns, columns, strict=True)
    ]


@contextmanager
def open_features(
    storage: BlockingStorage, source: Source, target_crs: str, chunk: Chunk | None = None
) -> Iterator[Features]:
    """Open the features of a source, or of one chunk, as they are to be in a CRS."""
    with closing(Features(storage, source, geometries.target_crs(target_crs), chunk)) as features:
        yield features


def _gap(bbox: list[float]) -> float | None:
    """Give a longitude at which nothing of a layer across the antimeridian is."""
    west, _, east, _ = bbox
    return (west + east) / 2 if west > east else None
