"""Layers whose curves are read as lines, whatever the format."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from graticule.handlers.vector.preparing.parsing import naming_feature
from graticule.handlers.vector.preparing.wkb import Bytes, Writer, read_curved
from graticule.handlers.vector.sources.layer import LayerReader, SourceBatch
from graticule.handlers.vector.sources.ogr import BATCH_BYTES


class LinearReader:
    """Reads a layer with line segments in place of its curves."""

    def __init__(self, reader: LayerReader, first: int) -> None:
        """Wrap a reader whose first feature has this number."""
        self._reader, self._next = reader, first
        self.fields, self.geometry_type = reader.fields, reader.geometry_type

    @property
    def count(self) -> int | None:
        """How many features are announced, if that is known before they are read."""
        return self._reader.count

    def batches(self) -> Iterator[SourceBatch]:
        """Return the features; a batch whose curves become long lines is divided."""
        for batch in self._reader.batches():
            places = Bytes.of(batch.wkb).may_have_curves() if len(batch.wkb) else np.empty(0, np.int64)
            yield from self._linear(batch, places) if len(places) else [batch]
            self._next += len(batch.wkb)

    def _linear(self, batch: SourceBatch, places: np.ndarray) -> Iterator[SourceBatch]:
        begin, size, lines = 0, 0, dict[int, bytes]()
        for place in places.tolist():
            line = _linearized(batch.wkb[place].as_py(), self._next + place)
            if line is None:
                continue
            if lines and size + len(line) > BATCH_BYTES:
                yield _part(batch, begin, place, lines)
                begin, size, lines = place, 0, {}
            lines[place] = line
            size += len(line)
        yield _part(batch, begin, len(batch.wkb), lines)


def _linearized(wkb: bytes, number: int) -> bytes | None:
    """Write a geometry without its curves; None if it has none."""
    with naming_feature(number):
        geometry = read_curved(wkb)
    if geometry is None:
        return None
    return Writer(has_z=geometry.has_z, has_m=geometry.has_m).written_or_empty(geometry)


def _part(batch: SourceBatch, begin: int, end: int, lines: dict[int, bytes]) -> SourceBatch:
    """Return some features of a batch, with other geometries for some of them."""
    values = batch.wkb[begin:end].cast(pa.large_binary())
    if not lines:
        return SourceBatch(batch.attributes[begin:end], values)
    places = np.array(sorted(lines)) - begin
    order = np.arange(len(values))
    order[places] = len(values) + np.arange(len(places))
    written = pa.array([lines[place] for place in sorted(lines)], pa.large_binary())
    taken = pa.concat_arrays([values, written]).take(pa.array(order))
    return SourceBatch(batch.attributes[begin:end], taken, places)
