"""Load the features of a source into a table aside, chunk by chunk, and put that in the place of the live one."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from typing import Annotated, Final

import orjson
from pydantic import BaseModel, Field, JsonValue

from graticule.core import json_codec
from graticule.core.errors import ConfigurationError, Unavailable
from graticule.core.models.platform import TableName
from graticule.handlers.answers import Stopped, answering, answering_async, go_on
from graticule.handlers.context import (
    BlockingStaging,
    HandlerContext,
    NotStaged,
    ProcessContext,
    StagedRows,
    TooWideRows,
    UnfitRows,
)
from graticule.handlers.registry import register_handler
from graticule.handlers.result import HandlerResult
from graticule.handlers.vector.described import DEFAULT_TARGET, Chunk, Described, Source
from graticule.handlers.vector.overviews import build_overview
from graticule.handlers.vector.preparing.bounds import Bounds, joined
from graticule.handlers.vector.preparing.columns import FEATURE_ID, GEOMETRY
from graticule.handlers.vector.rejecting import Code, rejected
from graticule.repositories.database import Database
from graticule.repositories.outputs import OutputKind, require_outputs
from graticule.repositories.overviews import OverviewFailed
from graticule.repositories.tasks import Delivery
from graticule.repositories.vectors import (
    AbandonedTables,
    Description,
    FeatureTable,
    Held,
    Ledger,
    StillNeeded,
    VectorRepository,
)
from graticule.telemetry import span

QUEUE: Final = "container-tasks"
MEMORY_LIMIT_MB: Final = 2048  # ordinary sources take a quarter of it, whatever their size
TRIES: Final = 10  # to get hold of a table
BETWEEN_TRIES_SECONDS: Final = 3.0  # in which those who use it have their way
_MOST_NAMED: Final = 10
TargetCrs = Annotated[str, Field(pattern=r"^EPSG:[0-9]{1,6}$")]  # its number becomes a part of SQL


class Stage(BaseModel):
    """What is going to be loaded."""

    source: Source
    target_crs: TargetCrs = DEFAULT_TARGET
    table_name: TableName | None = None  # that it will become: refused here, before the work, if it is not the job's

    @property
    def srid(self) -> int:
        """The number of the table's projection."""
        return int(self.target_crs.removeprefix("EPSG:"))

    @property
    def table(self) -> FeatureTable:
        """The table that is made of it."""
        columns: dict[str, str] = {column.name: column.type for column in self.source.columns}
        geometry = f"geometry({self.source.shape.column_type}, {self.srid})"
        return FeatureTable({**columns, GEOMETRY: geometry}, FEATURE_ID, GEOMETRY)

    def digest(self) -> str:
        """Tell apart what is loaded from other sources, and in other ways."""
        parts = {"etag", "opening", "others", "shape", "columns", "chunks"}
        told = [self.source.model_dump(mode="json", include=parts), self.target_crs]
        return hashlib.sha256(json_codec.encode(told, option=orjson.OPT_SORT_KEYS)).hexdigest()[:32]


class Load(Stage):
    """The chunk that is to be loaded."""

    chunk: Chunk


class Loaded(Described):
    """What became of a chunk."""

    chunk: int
    row_count: int
    repaired: int
    divided: int
    bounds: Bounds | None  # in units of the target, across the antimeridian beyond it; None when nothing has a place


class Finalize(Stage):
    """What was loaded, and the table that it becomes."""

    loaded: list[Loaded]
    table_name: TableName

    @property
    def mended(self) -> dict[str, JsonValue]:
        """How many features were repaired, and how many divided at the antimeridian."""
        return {name: sum(getattr(each, name) for each in self.loaded) for name in ("repaired", "divided")}

    def description(self) -> Description:
        """Give what the table says of itself."""
        source = self.source
        layer = f"the layer {source.layer_name!r} of {source.source}"
        sentence = f"{source.feature_count} rows of {layer}, in {self.target_crs}."
        return Description(sentence, {column.name: column.field for column in source.columns})


def _database(ctx: HandlerContext) -> Database:
    if ctx.database is None:
        raise ConfigurationError("This worker has no database for handlers.")
    return ctx.database


def _delivery(ctx: HandlerContext) -> Delivery:
    return Delivery(ctx.task_id, ctx.delivery_count)


@register_handler("vector.stage", queue=QUEUE, timeout_seconds=600, params=Stage, needs_database=True)
@answering_async
async def stage(ctx: HandlerContext) -> HandlerResult:
    """Make the table of this job that the chunks are loaded into, if it is not there, and give what they need."""
    asked: Stage = ctx.params
    await _require_table(ctx, asked.table_name)
    async with _database(ctx).connection() as connection:
        if dropped := await AbandonedTables(connection).drop():  # soon, and not only when an operator prunes
            ctx.logger.info("staging tables of ended jobs were dropped", tables=dropped)
    await _until_free(ctx, lambda: _is_staged(ctx, asked), "An earlier attempt of this job still loads its table.")
    source = asked.source
    # Every chunk is given the source, without what may be long and is of no use to it.
    lean = source.model_copy(update={"chunks": [], "findings": [], "facts": {}})
    chunks: list[JsonValue] = [chunk.model_dump(mode="json") for chunk in source.chunks]
    return HandlerResult.success({"source": lean.model_dump(mode="json"), "chunks": chunks})


async def _require_table(ctx: HandlerContext, name: str | None) -> None:
    """Refuse a table that is not the job's to write, before anything is done for it."""
    if name is None:
        return
    async with _database(ctx).connection() as connection, connection.transaction():
        await require_outputs(connection, ctx.job_id, OutputKind.TABLE, name)


async def _is_staged(ctx: HandlerContext, asked: Stage) -> bool:
    """Make the table; False when another attempt holds the one before.

    The lease comes last: whoever holds it while it waits for others keeps its worker from renewing all its leases.
    """
    try:
        async with _database(ctx).connection() as connection, connection.transaction():
            tables = VectorRepository(connection, ctx.job_id)
            await tables.create_staging(asked.table, asked.digest())
            await tables.hold_lease(_delivery(ctx))
    except Held:
        return False
    return True


async def _until_free(ctx: HandlerContext, attempt: Callable[[], Awaitable[bool]], otherwise: str) -> None:
    """Try several times; between, those who hold a table go on."""
    for _ in range(TRIES):
        go_on(ctx)
        if await attempt():
            return
        await asyncio.sleep(BETWEEN_TRIES_SECONDS)
    raise Stopped(HandlerResult.failure(f"{otherwise} Try again later."))


@register_handler(
    "vector.load", queue=QUEUE, timeout_seconds=7200, params=Load, memory_limit_mb=MEMORY_LIMIT_MB, needs_database=True
)
@answering
def load(ctx: ProcessContext) -> HandlerResult:
    """Load a chunk, all of it or nothing; one that is loaded already is not read again."""
    if ctx.staging is None:
        raise ConfigurationError("This worker has no database for handlers.")
    try:
        done = ctx.staging.loaded(ctx.params.chunk.index)
        return HandlerResult.success(done or _loaded(ctx, ctx.staging))
    except TooWideRows as refused:
        fields = len(ctx.params.source.columns)
        what = f"A row of these {fields} fields needs more room than the database has for one, about 8,000 bytes."
        raise rejected(Code.TOO_MANY_FIELDS, what, f"layer {ctx.params.source.layer_name}") from refused
    except UnfitRows as refused:
        raise rejected(Code.UNFIT_VALUE, f"A value does not fit into the table: {refused}") from refused
    except (NotStaged, Unavailable) as failed:
        return HandlerResult.failure(str(failed))


def _loaded(ctx: ProcessContext, staging: BlockingStaging) -> dict[str, JsonValue]:
    from graticule.handlers.vector.preparing.copy_format import column_order  # noqa: PLC0415 - imports Arrow

    asked: Load = ctx.params
    with (
        span("postgres.copy", chunk=asked.chunk.index),
        staging.chunk(asked.chunk.index, column_order(asked.source)) as rows,
    ):
        done = _copied(ctx, rows)
        if done.row_count != asked.chunk.row_count:
            what = f"The file announces {asked.chunk.row_count} features, and {done.row_count} can be read."
            raise rejected(Code.CORRUPT, what, f"layer {asked.source.layer_name}")
        rows.result = done.model_dump(mode="json")
    return rows.result


def _copied(ctx: ProcessContext, rows: StagedRows) -> Loaded:
    """Write the features of the chunk, as long as this is wanted."""
    # Orchestrators load this module to know its handlers, and carry no GDAL.
    from graticule.handlers.vector.preparing.copy_format import CopyWriter  # noqa: PLC0415
    from graticule.handlers.vector.preparing.features import open_features  # noqa: PLC0415

    asked: Load = ctx.params
    count, mended, bounds = 0, {"repaired": 0, "divided": 0}, None
    with (
        span("ogr.read", rows=asked.chunk.row_count),  # and check, repair, reproject, and hand to COPY
        open_features(ctx.storage, asked.source, asked.target_crs, asked.chunk) as features,
    ):
        for batch in features.batches():
            go_on(ctx)
            writer = CopyWriter(asked.source.columns)
            rows.write(b"".join((writer.begin(), writer.rows(batch.rows), writer.end())))
            count += batch.rows.num_rows
            mended = {name: total + getattr(batch, name) for name, total in mended.items()}
            bounds = joined(bounds, batch.bounds)
            ctx.progress(count, asked.chunk.row_count, "features")
    return Loaded(chunk=asked.chunk.index, row_count=count, bounds=bounds, **mended)


@register_handler("vector.finalize", queue=QUEUE, timeout_seconds=3600, params=Finalize, needs_database=True)
@answering_async
async def finalize(ctx: HandlerContext) -> HandlerResult:
    """Index the table when all chunks are in it, and put it in the place of the live one."""
    asked: Finalize = ctx.params
    await _require_table(ctx, asked.table_name)
    if not await _is_published(ctx, asked):
        await _index(ctx, asked)
        await _prepare_overview(ctx, asked)
        await _publish(ctx, asked)
    async with _database(ctx).connection() as connection:
        table_hash = await VectorRepository(connection, ctx.job_id).live_hash(asked.table_name)
    return HandlerResult.success({**await _described(asked), "table_hash": table_hash})


async def _is_published(ctx: HandlerContext, asked: Finalize) -> bool:
    """Tell whether an attempt before this one came to its end; if not, all chunks must be there."""
    async with _database(ctx).connection() as connection:
        tables = VectorRepository(connection, ctx.job_id)
        ledger = await tables.read_ledger()
        wrong = _wrong(asked.source, ledger)
        if wrong and not await tables.is_live(asked.table_name):
            raise Stopped(HandlerResult.failure(wrong, retryable=False))
        return wrong is not None


def _wrong(source: Source, ledger: Ledger | None) -> str | None:
    """Tell why what is loaded cannot be published, or None."""
    if ledger is None:
        return "The loaded table is gone, and the live one is not of this job. Let the job begin anew."
    missing = sorted({chunk.index for chunk in source.chunks} - set(ledger.chunks))
    if missing:
        named = ", ".join(map(str, missing[:_MOST_NAMED]))
        return f"{len(missing)} of {len(source.chunks)} chunks are not loaded: {named}. Let the job load them again."
    if ledger.row_count != source.feature_count:
        return f"The source has {source.feature_count} features, and {ledger.row_count} are loaded."
    return None


async def _index(ctx: HandlerContext, asked: Finalize) -> None:
    """Make both indexes at once, on the table that nobody reads yet; an attempt after this one finds them."""
    made = await asyncio.gather(_index_key(ctx, asked), _index_geometry(ctx, asked), return_exceptions=True)
    for error in made:
        if error is not None:
            raise error


async def _index_key(ctx: HandlerContext, asked: Finalize) -> None:
    async with _database(ctx).connection() as connection:
        await VectorRepository(connection, ctx.job_id).index_key(asked.table)


async def _index_geometry(ctx: HandlerContext, asked: Finalize) -> None:
    async with _database(ctx).connection() as connection:
        await VectorRepository(connection, ctx.job_id).index_geometry(asked.table)


async def _prepare_overview(ctx: HandlerContext, asked: Finalize) -> None:
    """Prepare the tiles of places with many features. A table without them is served all the same."""

    def report(done: float, total: float) -> None:
        go_on(ctx)
        ctx.progress(done, total, "tiles")

    try:
        async with _database(ctx).connection() as connection, connection.transaction():
            tables = VectorRepository(connection, ctx.job_id)
            builder = tables.overview_builder(asked.table)
            await builder.lock()
            if await tables.has_overview():
                return
            with span("postgis.overview", rows=asked.source.feature_count):
                if await build_overview(builder, report):
                    await tables.keep_overview()
    except OverviewFailed as error:
        ctx.logger.warning("the tiles of many features could not be prepared", error=error.detail)


async def _publish(ctx: HandlerContext, asked: Finalize) -> None:
    """Put the table in its place, all in one transaction."""
    async with _database(ctx).connection() as connection, connection.transaction():
        tables = VectorRepository(connection, ctx.job_id)
        if await tables.complete(asked.description()):
            await _swap(ctx, tables, asked.table_name)
            await tables.hold_lease(_delivery(ctx))


async def _swap(ctx: HandlerContext, tables: VectorRepository, name: str) -> None:
    held = f"The table {name!r} is being read without a pause, and cannot be replaced now."
    try:
        await _until_free(ctx, lambda: tables.swap(name), f"{held} End the longest queries on it.")
    except StillNeeded as error:
        told = f"The table {name!r} cannot be replaced: {error}"
        raise Stopped(HandlerResult.failure(told, retryable=False)) from error


async def _described(asked: Finalize) -> dict[str, JsonValue]:
    source, columns = asked.source, asked.table.columns
    facts = {**source.facts, **asked.mended}
    bounds = [each.bounds for each in asked.loaded]
    bbox = await asyncio.to_thread(bbox_of, bounds, asked.target_crs, source.bbox)
    return {
        "table_name": asked.table_name,
        "row_count": source.feature_count,
        "columns": {**columns},
        "column_details": [column.model_dump(mode="json") for column in source.columns],
        "shape": source.shape.column_type,
        "srid": asked.srid,
        "bbox": [*bbox] if bbox else None,
        **asked.mended,
        "content_hash": source.content_hash,
        "validation": {**source.validation(), "facts": facts},
    }


def bbox_of(parts: list[Bounds | None], crs: str, of_source: list[float]) -> list[float] | None:
    """Give the bounds of all parts in degrees; the west is beyond the east only if it is so in the source."""
    from pyproj import CRS  # noqa: PLC0415 - an orchestrator need not have it

    from graticule.handlers.vector.extent import extent_in_degrees, wrapped  # noqa: PLC0415

    bounds, target = joined(*parts), CRS.from_user_input(crs)
    if bounds is None:
        return None
    extent = extent_in_degrees(target, bounds)
    if extent is None:
        return of_source
    west, south, east, north = wrapped(extent)
    if not target.is_geographic and (of_source[0] > of_source[2] or west > east):
        west, _, east, _ = of_source
    return [west, south, east, north]
