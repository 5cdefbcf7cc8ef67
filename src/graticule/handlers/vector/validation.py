"""Look at a file of features before anything is made of it."""

import hashlib
from typing import Final

from pydantic import BaseModel

from graticule.handlers.answers import answering, go_on
from graticule.handlers.context import ProcessContext
from graticule.handlers.registry import register_handler
from graticule.handlers.result import HandlerResult
from graticule.handlers.vector.source import SourceFile

MEMORY_LIMIT_MB: Final = 2048  # GDAL holds a GeoJSON file of up to 200 MB as objects


class Validate(BaseModel):
    """Where the file is, and which of its layers is meant."""

    container_name: str
    blob_name: str
    layer: str | None = None


@register_handler(
    "vector.validate",
    queue="container-tasks",
    timeout_seconds=1800,
    params=Validate,
    memory_limit_mb=MEMORY_LIMIT_MB,
)
@answering
def validate(ctx: ProcessContext) -> HandlerResult:
    """Tell what a file of features holds, and its hash; reject one that cannot be loaded."""
    from graticule.handlers.vector.opening import inspected  # noqa: PLC0415 - imports GDAL

    file = SourceFile.at(ctx.storage, ctx.params.container_name, ctx.params.blob_name)
    known = file.state()
    layer = inspected(file.opened, file.kind(), ctx.params.layer)
    content_hash = _sha256(ctx, file.path, known.size)
    file.check_unchanged(known.etag)
    return HandlerResult.success(
        {
            "source": file.path,
            "layer": layer.name,
            "feature_count": layer.count,
            "outcome": "ok",
            "findings": [],
            "facts": layer.facts(),
            "size_bytes": known.size,
            "etag": known.etag,
            "content_hash": content_hash,
            "bbox": list(layer.bbox),
        }
    )


def _sha256(ctx: ProcessContext, source: str, size: int) -> str:
    digest = hashlib.sha256()
    done = 0
    for piece in ctx.storage.stream(source):
        go_on(ctx)
        digest.update(piece)
        done += len(piece)
        ctx.progress(done, size, "reading")
    return digest.hexdigest()
