"""`raster.validate`: is this a raster that can be used, and what is it?"""

import hashlib
from collections.abc import Callable
from typing import Any, Final, Literal

from pydantic import ConfigDict, Field, JsonValue, model_validator

from graticule.core.errors import NotFound
from graticule.core.validation import outcome_of
from graticule.handlers.answers import answering, go_on
from graticule.handlers.compatibility import translate_validation
from graticule.handlers.context import ProcessContext
from graticule.handlers.findings import Rejected
from graticule.handlers.raster.acceptance import accepted_kind, check_length
from graticule.handlers.raster.file_kinds import HEAD_BYTES, READ_DIRECTLY, FileKind
from graticule.handlers.raster.options import Resampling, Tier
from graticule.handlers.raster.preparation import PlacedByPoints, Preparation, Readable
from graticule.handlers.raster.raster_type import RasterType
from graticule.handlers.raster.references import check_references
from graticule.handlers.raster.sandbox import Warping
from graticule.handlers.raster.selection import SourceSelection
from graticule.handlers.raster.source_file import SourceFile, State, open_stream, source_file
from graticule.handlers.raster.validation_codes import Code, finding
from graticule.handlers.registry import register_handler
from graticule.handlers.result import HandlerResult
from graticule.storage.paths import Source, resolve_source

_MEBIBYTE: Final = 1024 * 1024
MEMORY_LIMIT_MB: Final = 3072  # the largest block that is accepted, compressed and decoded
TIMEOUT_SECONDS: Final = 3600  # of which hashing a very large file takes nearly all
_PIECE_BYTES: Final = 4 * _MEBIBYTE

Watch = Callable[[], None]


class Validate(SourceSelection):
    """Which file to look at, and what is to become of it."""

    model_config = ConfigDict(extra="forbid")

    container_name: str | None = None
    blob_name: str
    content_hash: bool = False
    target_crs: str | None = Field(None, pattern=r"^[A-Za-z_]+:[0-9A-Za-z_]+$", examples=["EPSG:4326"])
    raster_type: RasterType | Literal["auto"] = "auto"
    output_tier: Tier = "analysis"
    resampling: Resampling = "auto"

    @model_validator(mode="before")
    @classmethod
    def _translate(cls, params: Any) -> Any:
        return translate_validation(params)


@register_handler(
    "raster.validate",
    queue="container-tasks",
    params=Validate,
    timeout_seconds=TIMEOUT_SECONDS,
    memory_limit_mb=MEMORY_LIMIT_MB,
)
@answering
def validate(ctx: ProcessContext) -> HandlerResult:
    """Look at a raster by range reads: reject it with all reasons, or tell what it is and what will be repaired."""
    source = _source(ctx)
    file = source_file(ctx.storage, source)
    before = _state(file)
    try:
        output = _validated(ctx, source, file, before)
    except Rejected:
        _check_unchanged(file, before)  # what went wrong may have gone wrong because of it
        raise
    _check_unchanged(file, before)
    return HandlerResult.success(output)


def _validated(ctx: ProcessContext, source: Source, file: SourceFile, state: State) -> JsonValue:
    # Orchestrators load this module to know its handlers, and carry no GDAL.
    from graticule.handlers.raster.examination import Examined, Wanted, examine  # noqa: PLC0415

    params: Validate = ctx.params
    raster_type = RasterType(params.raster_type) if params.raster_type != "auto" else None
    wanted = Wanted(params.target_crs, raster_type, params.output_tier, params.resampling)

    warping = Warping(
        target_crs=params.target_crs,
        raster_type=raster_type,
        output_tier=params.output_tier,
        resampling=params.resampling,
    )

    def examined(readable: Readable) -> Examined:
        return examine(readable, wanted, lambda: go_on(ctx))

    preparation = Preparation(ctx, params, warping)
    readable = preparation.prepare(source, _kind(file, state.size), state.size, _kind)
    try:
        found = examined(readable)
    except PlacedByPoints:
        readable = preparation.warp_by_points(readable, source)
        found = examined(readable)
    return {
        "source": source.blob or source.shown,
        "blob_url": source.blob or source.shown,  # as earlier workflows call it
        "outcome": outcome_of(found.findings).value,
        "findings": [each.model_dump(mode="json") for each in found.findings],
        "facts": found.facts.model_dump(mode="json"),
        "size_bytes": state.size,
        "file_size_mb": round(state.size / _MEBIBYTE, 3),
        "raw_size_mb": round(found.raw_bytes / _MEBIBYTE, 3),
        "content_hash": _sha256(ctx, file, state.size) if params.content_hash else None,
        "etag": state.mark if source.blob else None,
        "prepared": readable.path,
        "raster_type": found.facts.raster_type,
        "is_cog": found.facts.is_cog,
        "bbox": list(found.facts.bbox) if found.facts.bbox else None,
    }


def _source(ctx: ProcessContext) -> Source:
    try:
        return resolve_source(ctx.storage, ctx.params.container_name, ctx.params.blob_name)
    except NotFound:  # another partner's is refused in the same words
        raise _not_there() from None


def _state(file: SourceFile) -> State:
    try:
        return file.state()
    except NotFound:
        raise _not_there() from None


def _not_there() -> Rejected:
    return Rejected([finding(Code.NOT_FOUND, "The file is not there.")])


def _check_unchanged(file: SourceFile, before: State) -> None:
    try:
        changed = file.state() != before
    except NotFound:
        changed = True
    if changed:
        raise Rejected([finding(Code.SOURCE_CHANGED, "The file was changed while it was read.")]) from None


def _kind(file: SourceFile, size: int) -> FileKind:
    with open_stream(file) as stream:
        head = stream.read(HEAD_BYTES)
        kind = accepted_kind(head)
        check_length(kind, head, size)
        if kind in READ_DIRECTLY:
            check_references(stream, kind)
    return kind


def _sha256(ctx: ProcessContext, file: SourceFile, size: int) -> str:
    digest, done = hashlib.sha256(), 0
    while piece := file.read(done, min(_PIECE_BYTES, size - done)) if done < size else b"":
        go_on(ctx)
        digest.update(piece)
        done += len(piece)
        ctx.progress(done, size, "hashing the source")
    return digest.hexdigest()
