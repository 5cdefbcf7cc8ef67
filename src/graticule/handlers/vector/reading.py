"""Read a file of features into the job's folder, as the database takes them.

This is the one step besides `vector.validate` in which GDAL touches a partner's bytes. It runs in a process that can
be ended and takes no more memory than it may; the worker itself only passes its text on to the database.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO, Final

from pydantic import BaseModel, JsonValue

from graticule.handlers.answers import answering, go_on
from graticule.handlers.context import ProcessContext
from graticule.handlers.raster.staging import scratch_path
from graticule.handlers.registry import register_handler
from graticule.handlers.result import HandlerResult
from graticule.handlers.vector.rejecting import Code, rejected
from graticule.handlers.vector.source import Kind, SourceFile

if TYPE_CHECKING:
    from graticule.handlers.vector.features import FeatureReader

FEATURES: Final = "features.copy"  # in the job's folder: the text that COPY reads
MEMORY_LIMIT_MB: Final = 2048  # a batch of features several times over, and what GDAL holds of a GeoJSON file
TIMEOUT_SECONDS: Final = 7200


class Source(BaseModel):
    """What `vector.validate` found out, as far as it matters later."""

    source: str
    layer: str
    feature_count: int
    etag: str
    content_hash: str
    outcome: str
    findings: list[JsonValue]
    facts: dict[str, JsonValue]


class Read(BaseModel):
    """What to read, and the projection that is wanted."""

    source: Source
    target_crs: str = "EPSG:4326"


@register_handler(
    "vector.read",
    queue="container-tasks",
    timeout_seconds=TIMEOUT_SECONDS,
    params=Read,
    memory_limit_mb=MEMORY_LIMIT_MB,
)
@answering
def read(ctx: ProcessContext) -> HandlerResult:
    """Write the features of the layer into the job's folder, all or none."""
    source: Source = ctx.params.source
    container, _, blob = source.source.partition("/")
    file = SourceFile.at(ctx.storage, container, blob)
    file.check_unchanged(source.etag)
    path = scratch_path(ctx.storage, ctx.job_id, FEATURES)
    with ctx.storage.writing(path) as written, written.open("wb") as stream, _reader(ctx, file) as reader:
        count = _copied(ctx, reader.batches(), stream)
        # A list, for the order matters: the database keeps outputs, and objects in an order of its own.
        columns: list[JsonValue] = [{"name": name, "type": kind} for name, kind in reader.columns.items()]
        file.check_unchanged(source.etag)
        if count != source.feature_count:
            what = f"The layer announces {source.feature_count} features, and {count} can be read."
            raise rejected(Code.CORRUPT, what, f"layer {source.layer}")
    return HandlerResult.success({"row_count": count, "columns": columns})


@contextmanager
def _reader(ctx: ProcessContext, file: SourceFile) -> "Iterator[FeatureReader]":
    from graticule.handlers.vector import features, geopackage, ogr  # noqa: PLC0415 - imports GDAL

    asked: Read = ctx.params
    target, kind = features.target_crs(asked.target_crs), file.kind()
    if kind is Kind.GEOPACKAGE:
        geopackage.feature_layer(file.opened, asked.source.layer)
    with ogr.closed_network(), features.FeatureReader(file.opened, kind, asked.source.layer, target) as reader:
        yield reader


def _copied(ctx: ProcessContext, batches: Iterator[tuple[int, bytes]], stream: BinaryIO) -> int:
    count = 0
    for rows, text in batches:
        go_on(ctx)
        stream.write(text)
        count += rows
        ctx.progress(count, ctx.params.source.feature_count, "features")
    return count
