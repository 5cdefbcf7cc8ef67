"""Catalogues a table of features, and puts the files that were made beside it where they stay."""

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import ClassVar

import orjson
from pydantic import JsonValue

from graticule.core import json_codec
from graticule.core.errors import InvalidInput
from graticule.handlers.catalogue import Check
from graticule.handlers.context import HandlerContext
from graticule.handlers.outputs.registration import Registration
from graticule.handlers.result import HandlerResult
from graticule.handlers.stac.collections import Holding
from graticule.handlers.stac.items import Stored, Times
from graticule.handlers.stac.table_inputs import TableInputs
from graticule.handlers.stac.tables import software, table_item
from graticule.handlers.vector.preparing.columns import GEOMETRY
from graticule.repositories.catalogue import Document
from graticule.repositories.database import Connection
from graticule.repositories.vectors import VectorRepository


async def register_item(ctx: HandlerContext) -> HandlerResult:
    """Promote the exports and catalogue the table; if the catalogue cannot be written, they are staged again."""
    given: TableInputs = ctx.params
    item = await TableRegistration(ctx, given).result()
    return item if isinstance(item, HandlerResult) else HandlerResult.success(_registered(given, item))


class TableRegistration(Registration):
    """The registration of a table, with or without files beside it."""

    holds: ClassVar = Holding.FEATURES

    def __init__(self, ctx: HandlerContext, given: TableInputs) -> None:
        super().__init__(ctx, given)
        self._table = given

    @property
    def files(self) -> Sequence[str]:
        """The staged exports."""
        return [file.name for file in self._table.exports.values()]

    @property
    def blobs(self) -> Mapping[str, str | None]:
        """The exports, where they stay."""
        return {file.path: file.checksum for file in self._table.exports.values()}

    @property
    def dated(self) -> datetime | None:
        """No format of features says when it was made."""
        return None

    def item(self, stored: Mapping[str, Stored], times: Times) -> Document:
        """Give the item."""
        return table_item(self._table, {key: stored[file.path] for key, file in self._table.exports.items()}, times)

    @property
    def check(self) -> Check:
        """What refuses a table that is not this job's any more."""
        return self._check

    async def _check(self, connection: Connection) -> None:
        """Refuse to speak of a table that another job has made: of two loads of one asset, one is too late."""
        name = self._table.table.table_name
        if not await VectorRepository(connection, self._ctx.job_id).keep_live(name):
            raise InvalidInput(
                f"Another job has replaced the table {name!r}, or it was dropped.",
                hint="What is there now is as that job made it; submit the data again if they are to take its place.",
            )


def _registered(given: TableInputs, item: Document) -> dict[str, JsonValue]:
    """Give what the workflow ends with."""
    source, table = given.source, given.table
    paths = {key: file.path for key, file in given.exports.items()}
    return {
        "stac_item_id": given.stac_item_id,
        "stac_collection_id": given.stac_collection_id,
        "bbox": item["bbox"],
        "datetime": item["properties"]["datetime"],
        "table_name": table.table_name,
        "row_count": table.row_count,
        "columns": {column.name: column.type for column in source.columns} | {GEOMETRY: given.geometry_type},
        "column_details": [column.model_dump(mode="json") for column in source.columns],
        "srid": table.srid,
        "blob_path": next(iter(paths.values()), None),
        "geoparquet_path": paths.get("geoparquet"),
        "pmtiles_path": paths.get("pmtiles"),
        "output_hash": output_hash(given),
        "content_hash": source.content_hash,
        "validation": table.validation or source.validation(),
        "features_url": given.items_url,
        "tilejson_url": given.vector_tilejson_url,
    }


def output_hash(given: TableInputs) -> str:
    """Identify what was made by its rows and files: the same of the same source, prepared in the same way.

    Where an archive was unpacked to is left out: that is another place in each job.
    """
    source, table = given.source, given.table
    made = {
        "source": source.content_hash,
        "layers": [opening.model_dump(mode="json", exclude={"path", "etag"}) for opening in source.openings],
        "columns": [column.model_dump(mode="json") for column in source.columns],
        "geometry": given.geometry_type,
        "rows": table.row_count,
        "table": table.table_hash,
        "exports": {key: file.checksum for key, file in given.exports.items()},
        "software": software(),
    }
    return hashlib.sha256(json_codec.encode(made, option=orjson.OPT_SORT_KEYS)).hexdigest()
