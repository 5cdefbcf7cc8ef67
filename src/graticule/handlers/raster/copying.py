"""`raster.blob_to_mount`: a blob becomes a file in the job's scratch, for sources that are slow to read in parts."""

import hashlib
import os
from pathlib import Path
from typing import BinaryIO, Final

from pydantic import BaseModel, JsonValue

from graticule.core.errors import InvalidInput
from graticule.handlers.answers import answering, go_on
from graticule.handlers.context import ProcessContext
from graticule.handlers.outputs.staging import scratch_path, stem_of
from graticule.handlers.raster.source import source_changed, unchanged
from graticule.handlers.registry import register_handler
from graticule.handlers.result import HandlerResult
from graticule.storage.paths import resolve_source
from graticule.storage.protocol import BlobInfo

PIECE: Final = 4 * 1024 * 1024


class BlobToMount(BaseModel):
    """Which blob."""

    container_name: str
    blob_name: str


@register_handler("raster.blob_to_mount", queue="container-tasks", timeout_seconds=14_400, params=BlobToMount)
@answering
def blob_to_mount(ctx: ProcessContext) -> HandlerResult:
    """Copy a blob to scratch; after a crash it goes on after the last byte that was written."""
    source = resolve_source(ctx.storage, ctx.params.container_name, ctx.params.blob_name).blob
    if source is None:
        raise InvalidInput("Only a blob of the storage can be copied.")
    blob = ctx.storage.stat(source)
    path = scratch_path(ctx.storage, ctx.job_id, f"source/{_file_name(source)}")
    saved = ctx.checkpoint.load()
    if saved is not None and saved.phase == "copied" and saved.data["etag"] == blob.etag:
        return HandlerResult.success(_copy(path, blob, str(saved.data["sha256"])))
    is_same = saved is not None and saved.data["etag"] == blob.etag
    sha256 = _copied(ctx, blob, path, goes_on=is_same)
    ctx.checkpoint.save("copied", {"etag": blob.etag, "sha256": sha256}, artifacts=[path])
    return HandlerResult.success(_copy(path, blob, sha256))


def _copy(path: str, blob: BlobInfo, sha256: str) -> JsonValue:
    return {"path": path, "size_bytes": blob.size, "sha256": sha256, "etag": blob.etag}


def _copied(ctx: ProcessContext, blob: BlobInfo, path: str, *, goes_on: bool) -> str:
    """Copy what is not there yet, and give the digest of the whole."""
    partial = f"{path}.part"
    file = _local(ctx, partial)
    if not goes_on:
        file.unlink(missing_ok=True)
        ctx.checkpoint.save("copying", {"etag": blob.etag})  # what the bytes that follow are a copy of
    file.touch()
    with unchanged(ctx.storage, blob.path, blob.etag), file.open("r+b") as opened:
        digest = _appended(ctx, blob, opened)
        os.fsync(opened.fileno())
    ctx.storage.move(partial, path)
    return digest


def _appended(ctx: ProcessContext, blob: BlobInfo, opened: BinaryIO) -> str:
    """Hash what is there, and add the rest; a second writer of the file writes the same bytes to the same places."""
    digest, done = hashlib.sha256(), 0
    while piece := opened.read(PIECE):
        go_on(ctx)
        digest.update(piece)
        done += len(piece)
    for piece in ctx.storage.stream(blob.path, done):
        go_on(ctx)
        digest.update(piece)
        done += opened.write(piece)
        opened.flush()
        ctx.progress(done, blob.size, "bytes")
    if done != blob.size:
        raise source_changed(f"It has {done} bytes, and had {blob.size}.", blob.path)
    return digest.hexdigest()


def _local(ctx: ProcessContext, path: str) -> Path:
    """Give the file of a blob in the job's scratch, which must be on a disk that this machine sees."""
    name = ctx.storage.readable(path)
    if name.startswith("/vsi"):
        raise InvalidInput("This storage has no folder on this machine, to which the file could be copied.")
    file = Path(name)
    file.parent.mkdir(parents=True, exist_ok=True)
    return file


def _file_name(source: str) -> str:
    suffix = Path(source).suffix
    return f"{stem_of(source)}{suffix if suffix[1:].isalnum() and suffix.isascii() else ''}"
