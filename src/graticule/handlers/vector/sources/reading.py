"""Read a layer, or a part of it, as it was opened. Imports GDAL: only for where a handler runs."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from graticule.handlers.vector.described import Chunk, Opening
from graticule.handlers.vector.rejecting import Code, rejected
from graticule.handlers.vector.sources import csv_table, geopackage, geoparquet, ogr_reading, shapefile
from graticule.handlers.vector.sources.choosing import Choice
from graticule.handlers.vector.sources.layer import LayerReader, SourceBatch
from graticule.handlers.vector.sources.linear import LinearReader
from graticule.handlers.vector.sources.ogr import closed_network
from graticule.handlers.vector.sources.source import MULTI_LAYER, Kind, SourceFile
from graticule.storage.blocking import BlockingStorage

__all__ = ["LayerReader", "SourceBatch", "open_layer", "ranges"]

_ANNOUNCED: Final = {Kind.GEOPACKAGE, Kind.FLATGEOBUF, Kind.SHAPEFILE, Kind.FILEGDB}


@contextmanager
def open_layer(
    storage: BlockingStorage, opening: Opening, chunk: Chunk | None = None, first_fid: int = 1
) -> Iterator[LayerReader]:
    """Open a layer, or a chunk of it, whose first row has this number; a file that is not what it was is rejected."""
    file = SourceFile.of(storage, opening.path)
    file.check_unchanged(opening.etag)
    if file.kind() is not opening.kind:
        raise rejected(Code.NOT_A_VECTOR, f"The file is no {opening.kind.value} file.")
    with closed_network(), _reader(file, opening, chunk, first_fid) as reader:
        yield LinearReader(reader, first_fid)
        file.check_unchanged(opening.etag)


def ranges(storage: BlockingStorage, opening: Opening, rows_per_chunk: int) -> list[tuple[int, int, int]] | None:
    """Give the parts of a layer that can be read apart (begin, end, count of rows), or None when there are none."""
    file = SourceFile.of(storage, opening.path)
    if opening.kind is Kind.GEOPACKAGE:
        return geopackage.ranges(file.opened, opening.layer, rows_per_chunk)
    if opening.kind is Kind.SHAPEFILE:
        return _places(file, opening, rows_per_chunk)
    if opening.kind is Kind.GEOPARQUET:
        return geoparquet.ranges(file, rows_per_chunk)
    return None


def _places(file: SourceFile, opening: Opening, rows: int) -> list[tuple[int, int, int]] | None:
    """Divide a Shapefile by places, which are those of features as long as no record is deleted."""
    with closed_network():
        count = ogr_reading.feature_count(file.opened, None, opening)
    if count is None or shapefile.deleted_count(file):
        return None
    return [(begin, min(begin + rows, count), min(rows, count - begin)) for begin in range(0, count, rows)]


@contextmanager
def _reader(file: SourceFile, opening: Opening, chunk: Chunk | None, first_fid: int) -> Iterator[LayerReader]:
    if opening.kind is Kind.CSV:
        with csv_table.open_table(file, opening, first_fid) as table:
            yield table
        return
    if opening.kind is Kind.GEOPARQUET:
        with geoparquet.open_parquet(file, chunk, first_fid) as parquet:
            yield parquet
        return
    layer = opening.layer if opening.kind in MULTI_LAYER else None  # others have but one, of whatever name
    with ogr_reading.open_ogr(file.opened, layer, opening, _part(file, opening, chunk)) as reader:
        if chunk is not None:
            reader.count = chunk.row_count
        elif opening.kind in _ANNOUNCED:
            reader.count = _announced(file, layer, opening)
        yield reader


def _announced(file: SourceFile, layer: str | None, opening: Opening) -> int | None:
    count = ogr_reading.feature_count(file.opened, layer, opening)
    if count is None or opening.kind is not Kind.SHAPEFILE:
        return count
    return count - shapefile.deleted_count(file)


def _part(file: SourceFile, opening: Opening, chunk: Chunk | None) -> ogr_reading.Part:
    if opening.kind is Kind.GEOPACKAGE:
        geopackage.feature_layers(file.opened, Choice(opening.layer))
        return ogr_reading.Part(where=geopackage.filter_of(file.opened, opening.layer, chunk))
    if opening.kind is Kind.SHAPEFILE and chunk is not None and chunk.begin is not None:
        return ogr_reading.Part(begin=chunk.begin, count=chunk.row_count)
    return ogr_reading.Part()
