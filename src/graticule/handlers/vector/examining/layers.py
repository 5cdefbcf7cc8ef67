"""All features of the layers that are meant, read once. Imports GDAL: only for where a handler runs."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
from pyproj import CRS

from graticule.handlers.answers import go_on
from graticule.handlers.context import ProcessContext
from graticule.handlers.findings import Finding
from graticule.handlers.vector.described import Column, Opening
from graticule.handlers.vector.examining import report
from graticule.handlers.vector.examining.report import ExaminedLayer, Facts
from graticule.handlers.vector.examining.scanning import Scan
from graticule.handlers.vector.preparing.merging import (
    LayerColumns,
    merged_bbox,
    merged_columns,
    merged_schema,
    mixed_fields,
)
from graticule.handlers.vector.rejecting import Code, naming_layer, rejected
from graticule.handlers.vector.sources.layer import LayerReader
from graticule.handlers.vector.sources.opening import MOST_FIELDS
from graticule.handlers.vector.sources.reading import open_layer

SCANNING: Final = 950  # of the whole; a million polygons take 8 seconds, and the hash of their bytes .3
WHOLE: Final = 1000
_Merge = Callable[[pa.RecordBatch], pa.RecordBatch]


@dataclass(frozen=True, slots=True)
class Examined:
    """What is known when all features were seen."""

    layers: list[ExaminedLayer]
    columns: list[Column]  # of the table that is made of them
    scan: Scan
    mixed: list[str] = field(default_factory=list)  # fields that have several types in the layers

    def add(self, opening: Opening, count: int, geometry_type: str, facts: Facts) -> None:
        """Locate the layer that was scanned last."""
        facts |= report.scan_facts(self.scan, self.columns)
        self.layers.append(ExaminedLayer.of(opening, self.scan, count, geometry_type))

    def findings(self, target: CRS) -> list[Finding]:
        """Return what is done with the features on the way."""
        merged = report.merged_findings(self.layers, self.columns[-1], self.mixed) if len(self.layers) > 1 else []
        return [*merged, *report.findings(self.scan, self.columns, self.layers, target)]

    @property
    def bbox(self) -> list[float]:
        """Where all of them lie, in degrees; the west is above the east across the antimeridian."""
        boxes = [layer.location.bbox for layer in self.layers if layer.location is not None]
        if not boxes:
            raise rejected(Code.NO_FEATURES, "No feature has a geometry.")
        return merged_bbox(boxes)

    @property
    def openings(self) -> list[Opening]:
        """How the layers are opened again; of several, each tells where it lies."""
        if len(self.layers) == 1:
            return [self.layers[0].opening]
        return [
            layer.opening.model_copy(update={"bbox": layer.location and list(layer.location.bbox)})
            for layer in self.layers
        ]


def examine(ctx: ProcessContext, openings: list[Opening], facts: Facts) -> Examined:
    """Read one layer, or several that become one table; `facts` get what is known, also when one is rejected."""
    if len(openings) == 1:
        with open_layer(ctx.storage, openings[0]) as reader:
            facts["geometry_type"] = reader.geometry_type
            examined = Examined([], report.table_columns(reader.fields), Scan(reader.fields))
            count = _scan_layer(ctx, examined.scan, reader, openings[0])
        examined.add(openings[0], count, reader.geometry_type, facts)
        return examined
    fields = [_fields(ctx, opening) for opening in openings]
    columns = merged_columns(fields)
    if len(columns) > MOST_FIELDS:
        what = f"The layers have {len(columns)} fields together; at most {MOST_FIELDS} are taken."
        raise rejected(Code.TOO_MANY_FIELDS, what)
    examined = Examined([], report.checked_columns(columns), Scan(merged_schema(columns)), mixed_fields(fields))
    for opening in openings:
        first_fid = examined.scan.count + 1
        with naming_layer(opening.name), open_layer(ctx.storage, opening, first_fid=first_fid) as reader:
            count = _scan_layer(ctx, examined.scan, reader, opening, _merge_of(columns, reader, opening))
            examined.add(opening, count, reader.geometry_type, facts)
    facts["geometry_type"] = report.declared_type(examined.layers)
    return examined


def _fields(ctx: ProcessContext, opening: Opening) -> pa.Schema:
    with naming_layer(opening.name), open_layer(ctx.storage, opening) as reader:
        return reader.fields


def _merge_of(columns: list[Column], reader: LayerReader, opening: Opening) -> _Merge:
    merger, schema = LayerColumns(columns, reader.fields, opening.name), merged_schema(columns)
    return lambda attributes: pa.RecordBatch.from_arrays(merger.arrays(attributes), schema=schema)


def _scan_layer(
    ctx: ProcessContext,
    scan: Scan,
    reader: LayerReader,
    opening: Opening,
    merge: _Merge = lambda attributes: attributes,
) -> int:
    """Add all features of a layer, and return how many there are."""
    before = scan.count
    scan.begin_layer(report.limit_of_longitudes(opening.crs))
    for batch in reader.batches():
        go_on(ctx)
        scan.add(merge(batch.attributes), batch.wkb, batch.curved)
        ctx.progress(*_progress(scan.count - before, reader.count), "features")
    count = scan.count - before
    if reader.count not in {None, count}:
        raise rejected(Code.CORRUPT, f"The layer announces {reader.count} features, and {count} can be read.")
    return count


def _progress(count: int, announced: int | None) -> tuple[int, int | None]:
    """Return how far the work is, as long as that is known, on the one scale that it has to its end."""
    return (round(SCANNING * min(1, count / announced)), WHOLE) if announced else (count, None)
