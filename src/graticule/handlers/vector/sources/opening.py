"""Open a partner's file of features, and say what is wrong with it. Imports GDAL: only for where a handler runs."""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Final

from graticule.handlers.context import ProcessContext
from graticule.handlers.findings import Finding
from graticule.handlers.vector.described import Opening
from graticule.handlers.vector.rejecting import Code, finding, naming_layer, rejected
from graticule.handlers.vector.sources import csv_table, filegdb, flatgeobuf, geoparquet, ogr_reading, shapefile
from graticule.handlers.vector.sources.archive import Unpacked, unpacked
from graticule.handlers.vector.sources.choosing import Choice, candidates, check_count, chosen
from graticule.handlers.vector.sources.encodings import FALLBACK, known_encoding
from graticule.handlers.vector.sources.geopackage import feature_layers
from graticule.handlers.vector.sources.layer import Declared
from graticule.handlers.vector.sources.ogr import closed_network
from graticule.handlers.vector.sources.options import SourceOptions
from graticule.handlers.vector.sources.placing import layer_crs
from graticule.handlers.vector.sources.source import MULTI_LAYER, Kind, SourceFile

MOST_FIELDS: Final = 1000  # PostgreSQL has at most 1600 columns, fewer when they are wide
MOST_ZONES_TOLD: Final = 5  # fields


@dataclass(frozen=True, slots=True)
class _File:
    """A file that is opened: what was sent, or what was unpacked of it."""

    file: SourceFile
    stem: str  # what its layer is called where the format has no name for it
    kind: Kind
    choice: Choice
    prefix: str = ""  # of the names of its layers, when other files are read with it


def opened_layers(ctx: ProcessContext, file: SourceFile, options: SourceOptions) -> tuple[list[Opening], list[Finding]]:
    """Tell how the layers that are meant are read, and what is mended on the way; `Rejected` if one cannot be used."""
    openings, findings = [], []
    with closed_network():
        for each in _files(ctx, file, options):
            with _naming_file(each.prefix):
                for name in _layer_names(each):
                    opening, found = _opened(ctx, each, name, options)
                    openings.append(opening)
                    findings += found
    check_count(len(openings))
    return openings, findings


def _files(ctx: ProcessContext, file: SourceFile, options: SourceOptions) -> list[_File]:
    choice = Choice(options.layer, has_all=options.layers == "all")
    if not file.is_archive():
        return [_File(file, file.stem, file.kind(), choice)]
    found = unpacked(ctx, file, choice)
    rest = replace(choice, layer=None) if found[0].is_chosen else choice
    return [_unpacked_file(each, rest, f"{each.name}/" if len(found) > 1 else "") for each in found]


def _unpacked_file(found: Unpacked, choice: Choice, prefix: str) -> _File:
    with _naming_file(prefix):
        return _File(found.file, found.stem, found.file.kind(), choice, prefix)


def _naming_file(prefix: str) -> AbstractContextManager[None]:
    """Let a rejection tell in which of several files of an archive something was found."""
    return naming_layer(prefix.rstrip("/")) if prefix else nullcontext()


def _layer_names(source: _File) -> list[str | None]:
    """Return the layers that are meant; None where a file of the format has but one."""
    file, kind = source.file, source.kind
    if kind not in MULTI_LAYER:
        return [None]
    if kind is Kind.GEOPACKAGE:
        return [*feature_layers(file.opened, source.choice)]
    if kind is Kind.FILEGDB:
        filegdb.check_tables(file.opened)
    names, wanted = ogr_reading.layer_names(file.opened, kind), source.choice.layer
    if wanted is not None and names == [file.stem]:  # the format has no name for it
        return [names[0] if wanted == source.stem else chosen([source.stem], wanted)]
    if wanted is None:
        filled = ogr_reading.filled_layers(file.opened, kind, names)
        names = filled if source.choice.has_all else candidates(kind, filled)
    return [*source.choice.of(names)]


def _opened(
    ctx: ProcessContext, source: _File, name: str | None, options: SourceOptions
) -> tuple[Opening, list[Finding]]:
    file, kind = source.file, source.kind
    if name is None:
        declared, findings = _single(ctx, source, options)
    else:
        declared, findings = ogr_reading.declared(file.opened, kind, name), []
    called = source.stem if declared.layer == file.stem else declared.layer
    label = f"{source.prefix}{called}" if name is not None else source.prefix.rstrip("/") or called
    where = f"layer {label}"
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
        label=None if label == declared.layer else label,
    )
    return opening, [*findings, *_mixed_zones(declared)]


def _mixed_zones(declared: Declared) -> list[Finding]:
    what = "Some of the date-times have a zone, and some have none."
    return [finding(Code.MIXED_ZONES, what, f"field {name}") for name in declared.mixed_zones[:MOST_ZONES_TOLD]]


def _single(ctx: ProcessContext, source: _File, options: SourceOptions) -> tuple[Declared, list[Finding]]:
    """Describe the one layer of a file; it is known by the name of the file, and some have a name for it, too."""
    declared, findings = _only_layer(ctx, source.file, source.kind, options)
    name = source.stem if declared.layer == source.file.stem else declared.layer
    wanted = source.choice.layer
    if wanted is not None and wanted != source.stem:
        chosen([name], wanted)
    return replace(declared, layer=name), findings


def _only_layer(
    ctx: ProcessContext, file: SourceFile, kind: Kind, options: SourceOptions
) -> tuple[Declared, list[Finding]]:
    if kind is Kind.CSV:
        return csv_table.surveyed(file, options)
    if kind is Kind.GEOPARQUET:
        return geoparquet.declared(file)
    if kind is Kind.FLATGEOBUF:
        flatgeobuf.check_crs(file)
    if kind is Kind.SHAPEFILE:
        shapefile.check_parts(ctx, file)
        encoding, findings = shapefile.text_encoding(file, options.encoding)
        return ogr_reading.declared(file.opened, kind, None, encoding), findings
    if kind is Kind.MAPINFO and ogr_reading.is_undecoded(file.opened, kind):
        encoding, findings = _undeclared_encoding(options.encoding)
        return ogr_reading.declared(file.opened, kind, None, encoding), findings
    return ogr_reading.declared(file.opened, kind, None), []


def _undeclared_encoding(wanted: str | None) -> tuple[str, list[Finding]]:
    if wanted is not None:
        return known_encoding(wanted), []
    what = f"The file declares no character set, and its texts are not in UTF-8; they are read as {FALLBACK}."
    return FALLBACK, [finding(Code.OTHER_ENCODING, what)]
