"""Look at a file of features before anything is made of it."""

import hashlib
from typing import TYPE_CHECKING, Final

from graticule.core.validation import MOST_FINDINGS, outcome_of
from graticule.handlers.answers import answering, go_on
from graticule.handlers.context import ProcessContext
from graticule.handlers.findings import Rejected
from graticule.handlers.registry import register_handler
from graticule.handlers.result import HandlerResult
from graticule.handlers.vector.described import DEFAULT_TARGET, Chunk, Opening, Source
from graticule.handlers.vector.examining import chunks
from graticule.handlers.vector.sources.options import SourceOptions
from graticule.handlers.vector.sources.source import MULTI_LAYER, Kind, SourceFile
from graticule.repositories.geopackages import open_geopackage
from graticule.storage.protocol import BlobInfo
from graticule.telemetry import span

if TYPE_CHECKING:
    from graticule.handlers.vector.examining.layers import Examined

MEMORY_LIMIT_MB: Final = 2048  # ordinary sources take a quarter of it, whatever their size
TIMEOUT_SECONDS: Final = 7200  # all features are read, and all bytes


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
    from graticule.handlers.vector.examining import layers, report  # noqa: PLC0415
    from graticule.handlers.vector.preparing.geometries import target_crs  # noqa: PLC0415
    from graticule.handlers.vector.sources.opening import opened_layers  # noqa: PLC0415

    target = target_crs(ctx.params.target_crs)
    openings, found = opened_layers(ctx, file, ctx.params)
    facts = report.opening_facts(openings, _layers(ctx, openings))
    with report.telling(facts):
        with span("ogr.scan", size_bytes=known.size):
            examined = layers.examine(ctx, openings, facts)
        bbox = examined.bbox
        facts |= report.place_facts(examined.layers, bbox)
        parts = _chunks(ctx, examined)
        facts["chunk_count"] = len(parts)
        content_hash = _sha256(ctx, file.path, known.size)
        for opening in openings:  # it may have been unpacked
            SourceFile.of(ctx.storage, opening.path).check_unchanged(opening.etag)
    found = [*found, *examined.findings(target)][:MOST_FINDINGS]
    first, *others = examined.openings
    return Source(
        source=file.path,
        etag=known.etag,
        content_hash=content_hash,
        size_bytes=known.size,
        opening=first,
        others=others,
        feature_count=examined.scan.count,
        shape=report.shape_of(examined.scan),
        columns=examined.columns,
        chunks=parts,
        bbox=bbox,
        outcome=outcome_of(found).value,
        findings=[each.model_dump(mode="json") for each in found],
        facts=report.bounded(facts),
    )


def _layers(ctx: ProcessContext, openings: list[Opening]) -> list[str]:
    """Name all layers of the file; most formats have but one."""
    from graticule.handlers.vector.sources.ogr import closed_network  # noqa: PLC0415 - imports GDAL
    from graticule.handlers.vector.sources.ogr_reading import layer_names  # noqa: PLC0415 - imports GDAL

    first, *others = openings
    if others or first.kind not in MULTI_LAYER:
        return [opening.name for opening in openings]
    opened = SourceFile.of(ctx.storage, first.path).opened
    if first.kind is Kind.GEOPACKAGE:
        with open_geopackage(opened) as package:
            return package.layers()
    with closed_network():
        return layer_names(opened, first.kind)


def _chunks(ctx: ProcessContext, examined: "Examined") -> list[Chunk]:
    from graticule.handlers.vector.sources.reading import ranges  # noqa: PLC0415 - imports GDAL

    total = examined.scan.count
    if total <= chunks.ROWS_PER_CHUNK:
        return chunks.planned(None, total)
    rows = chunks.rows_per_chunk(total)
    planned = [chunks.planned(ranges(ctx.storage, layer.opening, rows), layer.count) for layer in examined.layers]
    return planned[0] if len(planned) == 1 else chunks.joined(planned)


def _sha256(ctx: ProcessContext, source: str, size: int) -> str:
    from graticule.handlers.vector.examining.layers import SCANNING, WHOLE  # noqa: PLC0415 - imports GDAL

    digest = hashlib.sha256()
    done = 0
    for piece in ctx.storage.stream(source):
        go_on(ctx)
        digest.update(piece)
        done += len(piece)
        ctx.progress(round(SCANNING + (WHOLE - SCANNING) * done / size), WHOLE, "reading")
    return digest.hexdigest()
