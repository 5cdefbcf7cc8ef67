"""Open a partner's file of features, and say what is wrong with it. Imports GDAL: only for where a handler runs."""

from dataclasses import replace
from typing import Final

from graticule.handlers.context import ProcessContext
from graticule.handlers.findings import Finding
from graticule.handlers.vector.described import Opening
from graticule.handlers.vector.rejecting import Code, fixed, rejected
from graticule.handlers.vector.sources import csv_table, flatgeobuf, geoparquet, ogr_reading, shapefile
from graticule.handlers.vector.sources.archive import unpacked
from graticule.handlers.vector.sources.choosing import chosen
from graticule.handlers.vector.sources.geopackage import feature_layer
from graticule.handlers.vector.sources.layer import Declared
from graticule.handlers.vector.sources.ogr import closed_network
from graticule.handlers.vector.sources.options import SourceOptions
from graticule.handlers.vector.sources.placing import layer_crs
from graticule.handlers.vector.sources.source import Kind, SourceFile

MOST_FIELDS: Final = 1000  # PostgreSQL has at most 1600 columns, fewer when they are wide
MOST_ZONES_TOLD: Final = 5  # fields
MOST_KML_BYTES: Final = 20 * 1024**2  # GDAL holds all of it: 20 MB of points took 260 MB, of polygons 200 MB


def opened_layer(ctx: ProcessContext, file: SourceFile, options: SourceOptions) -> tuple[Opening, list[Finding]]:
    """Tell how the layer that is meant is read, and what is mended on the way; `Rejected` when it cannot be used."""
    stem = file.stem
    if file.is_archive():
        found = unpacked(ctx, file, options.layer)
        file, stem = found.file, found.stem
        options = options.model_copy(update={"layer": None}) if found.is_chosen else options
    kind = file.kind()
    with closed_network():
        declared, findings = _declared(ctx, file, kind, stem, options)
    where = f"layer {declared.layer}"
    if declared.field_count > MOST_FIELDS:
        what = f"The layer has {declared.field_count} fields; at most {MOST_FIELDS} are taken."
        raise rejected(Code.TOO_MANY_FIELDS, what, where)
    opening = Opening(
        path=file.path,
        etag=file.state().etag,
        kind=kind,
        layer=declared.layer,
        crs=layer_crs(declared.crs, options.source_crs, where),
        encoding=declared.encoding,
        x_column=declared.x_column,
        y_column=declared.y_column,
        wkt_column=declared.wkt_column,
        fields=declared.fields,
        types=declared.types,
    )
    return opening, [*findings, *_mixed_zones(declared)]


def _mixed_zones(declared: Declared) -> list[Finding]:
    what = "Some of the date-times have a zone, and some have none."
    return [fixed(Code.MIXED_ZONES, what, f"field {name}") for name in declared.mixed_zones[:MOST_ZONES_TOLD]]


def _declared(
    ctx: ProcessContext, file: SourceFile, kind: Kind, stem: str, options: SourceOptions
) -> tuple[Declared, list[Finding]]:
    if kind is Kind.GEOPACKAGE:
        return ogr_reading.declared(file.opened, kind, feature_layer(file.opened, options.layer)), []
    if kind is Kind.KML:
        if file.state().size > MOST_KML_BYTES:
            raise rejected(Code.TOO_LARGE_FILE, f"A KML file has at most {MOST_KML_BYTES // 1024**2} MiB.")
        name = chosen(ogr_reading.layer_names(file.opened, kind), options.layer)
        return ogr_reading.declared(file.opened, kind, name), []
    declared, findings = _single(ctx, file, kind, options)
    # A file of one layer is known by its name; some have a name for the layer, too.
    name = stem if declared.layer == file.stem else declared.layer
    if options.layer is not None and options.layer != stem:
        chosen([name], options.layer)
    return replace(declared, layer=name), findings


def _single(
    ctx: ProcessContext, file: SourceFile, kind: Kind, options: SourceOptions
) -> tuple[Declared, list[Finding]]:
    if kind is Kind.CSV:
        return csv_table.surveyed(file, options)
    if kind is Kind.GEOPARQUET:
        return geoparquet.declared(file), []
    if kind is Kind.FLATGEOBUF:
        flatgeobuf.check_crs(file)
    if kind is Kind.SHAPEFILE:
        shapefile.check_parts(ctx, file)
        encoding, findings = shapefile.text_encoding(file, options.encoding)
        return ogr_reading.declared(file.opened, kind, None, encoding), findings
    return ogr_reading.declared(file.opened, kind, None), []
