"""Load the features that were read into a table aside, and publish that."""

from collections.abc import AsyncIterator
from typing import Annotated, Final

from pydantic import BaseModel, Field

from graticule.core.errors import ConfigurationError, InvalidInput, NotFound
from graticule.core.models.platform import TableName
from graticule.handlers.answers import Stopped, answering_async, go_on
from graticule.handlers.context import HandlerContext
from graticule.handlers.raster.staging import scratch_path
from graticule.handlers.registry import register_handler
from graticule.handlers.result import HandlerResult
from graticule.handlers.vector.columns import FEATURE_ID, GEOMETRY
from graticule.handlers.vector.reading import FEATURES, Source
from graticule.handlers.vector.rejecting import Code, rejected
from graticule.repositories.database import Database
from graticule.repositories.vectors import FeatureTable, VectorRepository

QUEUE: Final = "container-tasks"
ColumnName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,62}$")]
_PLAIN_TYPES: Final = "boolean|numeric|bigint|integer|double precision|date|time|timestamptz|timestamp|bytea|jsonb|text"
_GEOMETRY_TYPE: Final = r"geometry\((?:Geometry|MultiPoint|MultiLineString|MultiPolygon)Z?, [0-9]{1,6}\)"
ColumnType = Annotated[str, Field(pattern=rf"^(?:{_PLAIN_TYPES}|{_GEOMETRY_TYPE})$")]  # it becomes a part of SQL


class Column(BaseModel):
    """A column of the table, in the order of the text that was written."""

    name: ColumnName
    type: ColumnType


class Features(BaseModel):
    """What `vector.read` has written, and `vector.load` loaded."""

    row_count: int
    columns: list[Column]

    @property
    def table(self) -> FeatureTable:
        """The table that they fill."""
        return FeatureTable({each.name: each.type for each in self.columns}, FEATURE_ID, GEOMETRY)


class Load(BaseModel):
    """What to load."""

    features: Features


class Finalize(BaseModel):
    """What was loaded, and the table that it becomes."""

    source: Source
    loaded: Features
    table_name: TableName


def _database(ctx: HandlerContext) -> Database:
    if ctx.database is None:
        raise ConfigurationError("This worker has no database for handlers.")
    return ctx.database


@register_handler("vector.load", queue=QUEUE, timeout_seconds=7200, params=Load)
@answering_async
async def load(ctx: HandlerContext) -> HandlerResult:
    """Load the features into a table of this job, all or none."""
    features: Features = ctx.params.features
    await _drop_abandoned(ctx)
    async with _database(ctx).connection() as connection, connection.transaction():
        tables = VectorRepository(connection, ctx.job_id)
        await tables.create_staging(features.table)
        try:
            count = await tables.fill([each.name for each in features.columns], _written(ctx))
        except InvalidInput as refused:
            raise rejected(Code.UNFIT_VALUE, f"A value does not fit into the table: {refused}") from refused
        if count != features.row_count:
            raise InvalidInput(f"{features.row_count} features were read, but {count} loaded.")
    return HandlerResult.success(features.model_dump(mode="json"))


async def _drop_abandoned(ctx: HandlerContext) -> None:
    """Tidy up after jobs that loaded a table and never published it; nobody else would."""
    async with _database(ctx).connection() as connection, connection.transaction():
        dropped = await VectorRepository(connection, ctx.job_id).drop_abandoned()
    if dropped:
        ctx.logger.info("staging tables of ended jobs were dropped", tables=dropped)


async def _written(ctx: HandlerContext) -> AsyncIterator[bytes]:
    """Give what `vector.read` has written, as long as this load is wanted."""
    path = scratch_path(ctx.storage, ctx.job_id, FEATURES)
    try:
        size, done = (await ctx.storage.stat(path)).size, 0
        async for piece in ctx.storage.stream(path):
            go_on(ctx)
            yield piece
            done += len(piece)
            ctx.progress(done, size, "bytes")
    except NotFound:
        raise Stopped(HandlerResult.failure("The features are gone; read them again.", retryable=False)) from None


@register_handler("vector.finalize", queue=QUEUE, timeout_seconds=1800, params=Finalize)
@answering_async
async def finalize(ctx: HandlerContext) -> HandlerResult:
    """Index the loaded table, and put it in the place of the live one."""
    asked: Finalize = ctx.params
    table = asked.loaded.table
    async with _database(ctx).connection() as connection, connection.transaction():
        tables = VectorRepository(connection, ctx.job_id)
        if not await tables.publish(asked.table_name, table):
            return HandlerResult.failure("The loaded table is gone; load it again.", retryable=False)
        made = await tables.summary(asked.table_name, table)
    await ctx.storage.delete(scratch_path(ctx.storage, ctx.job_id, FEATURES))
    source = asked.source
    return HandlerResult.success(
        {
            "table_name": asked.table_name,
            "row_count": made.row_count,
            "columns": {**table.columns},
            "bbox": made.bbox,
            "content_hash": source.content_hash,
            "validation": {"outcome": source.outcome, "findings": source.findings, "facts": source.facts},
        }
    )
