"""Look at a file of features before anything is made of it."""

import hashlib
from typing import TYPE_CHECKING, Final

from graticule.handlers.answers import answering, go_on
from graticule.handlers.context import ProcessContext
from graticule.handlers.findings import Rejected
from graticule.handlers.registry import register_handler
from graticule.handlers.result import HandlerResult
from graticule.handlers.vector.described import DEFAULT_TARGET, Chunk, Opening, Source
from graticule.handlers.vector.examining import chunks
from graticule.handlers.vector.rejecting import Code, rejected
from graticule.handlers.vector.sources.options import SourceOptions
from graticule.handlers.vector.sources.source import Kind, SourceFile
from graticule.repositories.geopackages import open_geopackage
from graticule.storage.protocol import BlobInfo
from graticule.telemetry import span

if TYPE_CHECKING:
    from graticule.handlers.vector.examining.scanning import Box, Scan
    from graticule.handlers.vector.sources.reading import LayerReader

MEMORY_LIMIT_MB: Final = 2048  # ordinary sources take a quarter of it, whatever their size
TIMEOUT_SECONDS: Final = 7200  # all features are read, and all bytes
WHOLE: Final = 1000
SCANNING: Final = 950  # of the whole; a million polygons take 8 seconds, and the hash of their bytes .3


class Validate(SourceOptions):
    """Where the file is, how it is to be read, and the projection that is wanted."""

    container_name: str
    blob_name: str
    target_crs: str = DEFAULT_TARGET


@register_handler(
    "vector.validate",
    queue="container-tasks",
    timeout_seconds=TIMEOUT_SECONDS,
    params=Validate,
    memory_limit_mb=MEMORY_LIMIT_MB,
)
@answering
def validate(ctx: ProcessContext) -> HandlerResult:
    """Read a file of features once: reject it with a reason, or tell what it is and what will be mended."""
    file = SourceFile.at(ctx.storage, ctx.params.container_name, ctx.params.blob_name)
    known = file.state()
    try:
        source = _validated(ctx, file, known)
    except Rejected:
        file.check_unchanged(known.etag)  # what went wrong may have gone wrong because of it
        raise
    file.check_unchanged(known.etag)
    return HandlerResult.success(source.model_dump(mode="json"))


def _validated(ctx: ProcessContext, file: SourceFile, known: BlobInfo) -> Source:
    # Orchestrators load this module to know its handlers, and carry no GDAL.
    from graticule.handlers.vector.examining import report  # noqa: PLC0415
    from graticule.handlers.vector.preparing.geometries import target_crs  # noqa: PLC0415
    from graticule.handlers.vector.sources.opening import opened_layer  # noqa: PLC0415
    from graticule.handlers.vector.sources.reading import open_layer  # noqa: PLC0415

    target = target_crs(ctx.params.target_crs)
    opening, found = opened_layer(ctx, file, ctx.params)
    facts = report.opening_facts(opening, _layers(ctx, opening))
    with report.telling(facts):
        with span("ogr.scan", size_bytes=known.size), open_layer(ctx.storage, opening) as layer:
            facts["geometry_type"] = layer.geometry_type
            columns = report.table_columns(layer.fields)
            scan = _scanned(ctx, layer, opening)
        facts |= report.scan_facts(scan, columns)
        opening, bounds = _placed(opening, report.bounds_of(scan))
        bbox = report.degrees(opening.crs, bounds)
        facts |= report.place_facts(bounds, bbox)
        parts = _chunks(ctx, opening, scan.count)
        facts["chunk_count"] = len(parts)
        content_hash = _sha256(ctx, file.path, known.size)
        SourceFile.of(ctx.storage, opening.path).check_unchanged(opening.etag)  # it may have been unpacked
    found = [*found, *report.findings(scan, columns, opening, target, bbox)]
    return Source(
        source=file.path,
        etag=known.etag,
        content_hash=content_hash,
        size_bytes=known.size,
        opening=opening,
        feature_count=scan.count,
        shape=report.shape_of(scan),
        columns=columns,
        chunks=parts,
        bbox=list(bbox),
        outcome="fix" if found else "ok",
        findings=[each.model_dump(mode="json") for each in found],
        facts=report.bounded(facts),
    )


def _scanned(ctx: ProcessContext, layer: "LayerReader", opening: Opening) -> "Scan":
    from graticule.handlers.vector.examining.report import limit_of_longitudes  # noqa: PLC0415 - imports PROJ
    from graticule.handlers.vector.examining.scanning import Scan  # noqa: PLC0415 - imports shapely

    scan = Scan(layer.fields, limit_of_longitudes(opening.crs))
    for batch in layer.batches():
        go_on(ctx)
        scan.add(batch.attributes, batch.wkb)
        ctx.progress(*_scanned_share(scan.count, layer.count), "features")
    if layer.count not in {None, scan.count}:
        what = f"The layer announces {layer.count} features, and {scan.count} can be read."
        raise rejected(Code.CORRUPT, what)
    return scan


def _scanned_share(count: int, announced: int | None) -> tuple[int, int | None]:
    """Tell how far the work is, as long as that is known, on the one scale that it has to its end."""
    return (round(SCANNING * min(1, count / announced)), WHOLE) if announced else (count, None)


def _placed(opening: Opening, bounds: "Box") -> "tuple[Opening, Box]":
    """Find out the order of the axes by where the features really are; what a file says of it need not be true."""
    from graticule.handlers.vector.examining.report import turned  # noqa: PLC0415 - imports PROJ
    from graticule.handlers.vector.sources.placing import is_swapped  # noqa: PLC0415 - imports PROJ

    if is_swapped(opening.crs, bounds, f"layer {opening.layer}"):
        return opening.model_copy(update={"is_swapped": True}), turned(bounds)
    return opening, bounds


def _layers(ctx: ProcessContext, opening: Opening) -> list[str]:
    """Name all layers of the file; most formats have but one."""
    from graticule.handlers.vector.sources.ogr import closed_network  # noqa: PLC0415 - imports GDAL
    from graticule.handlers.vector.sources.ogr_reading import layer_names  # noqa: PLC0415 - imports GDAL

    opened = SourceFile.of(ctx.storage, opening.path).opened
    if opening.kind is Kind.GEOPACKAGE:
        with open_geopackage(opened) as package:
            return package.layers()
    if opening.kind is Kind.KML:
        with closed_network():
            return layer_names(opened, opening.kind)
    return [opening.layer]


def _chunks(ctx: ProcessContext, opening: Opening, feature_count: int) -> list[Chunk]:
    from graticule.handlers.vector.sources.reading import ranges  # noqa: PLC0415 - imports GDAL

    if feature_count <= chunks.ROWS_PER_CHUNK:
        return chunks.planned(None, feature_count)
    found = ranges(ctx.storage, opening, chunks.rows_per_chunk(feature_count))
    return chunks.planned(found, feature_count)


def _sha256(ctx: ProcessContext, source: str, size: int) -> str:
    digest = hashlib.sha256()
    done = 0
    for piece in ctx.storage.stream(source):
        go_on(ctx)
        digest.update(piece)
        done += len(piece)
        ctx.progress(round(SCANNING + (WHOLE - SCANNING) * done / size), WHOLE, "reading")
    return digest.hexdigest()
