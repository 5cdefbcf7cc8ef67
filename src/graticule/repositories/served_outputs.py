"""The outputs of versions in service, what the database knows of them, and what was found when they were checked."""

from collections.abc import Sequence
from typing import Any, ClassVar, Final

from pydantic import BaseModel, ConfigDict

from graticule.core.audience import Audience
from graticule.core.models import OutputCheck
from graticule.core.models.platform import DataType
from graticule.repositories import statements
from graticule.repositories.base import Repository
from graticule.repositories.queries import Queries, load_queries
from graticule.repositories.views import Views

PAGE: Final = 500


class ServedOutput(BaseModel):
    """The output of a version as one audience is served it."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    asset_id: str
    version_ordinal: int
    audience: Audience
    revision: int
    data_type: DataType
    job_id: str | None
    blob_path: str | None
    table_schema: str
    table_name: str | None
    output_hash: str | None
    collection_id: str | None
    item_id: str | None
    item_hash: str | None

    @property
    def key(self) -> dict[str, Any]:
        """The key of its row, as parameters of a query."""
        return {
            "asset_id": self.asset_id,
            "version_ordinal": self.version_ordinal,
            "audience": self.audience.value,
        }


class TableDescription(BaseModel):
    """What a table of features says of itself."""

    owner: str
    comment: str | None
    objection: str | None  # what it has besides rows, for which it is not hashed
    content_hash: str | None  # None: nobody recorded it


class CatalogedItem(BaseModel):
    """An item of the catalog with its hash; both are None when there is no such item."""

    content: dict[str, Any] | None
    hash: str | None


class ServedOutputs(Views):
    """Reads what is in service."""

    queries: ClassVar[Queries] = load_queries("served_outputs.sql")

    async def count(self, asset_id: str | None) -> int:
        """Count the outputs of one asset, or of all."""
        (row,) = await self._rows("count_served_outputs", {"asset_id": asset_id})
        return int(row["outputs"])

    async def page(self, asset_id: str | None, after: ServedOutput | None) -> list[ServedOutput]:
        """Return the outputs that follow one in the order of their keys."""
        key = {"asset_id": "", "version_ordinal": -1, "audience": ""} if after is None else after.key
        parameters = {f"after_{name}": value for name, value in key.items()}
        return await self._views(ServedOutput, "served_outputs", {**parameters, "asset_id": asset_id, "limit": PAGE})

    async def find(self, output: ServedOutput) -> ServedOutput | None:
        """Return an output as it is in service now, or None."""
        return await self._view(ServedOutput, "served_output", output.key)

    async def describe_table(self, output: ServedOutput) -> TableDescription | None:
        """Return what the table of an output says of itself, or None when there is no such table."""
        return await self._view(TableDescription, "describe_table", output.model_dump(mode="json"))

    async def hash_table(self, output: ServedOutput) -> str:
        """Hash the rows of a table; this reads all of them."""
        (row,) = await self._rows("hash_table", output.model_dump(mode="json"))
        return str(row["hash"])

    async def item(self, output: ServedOutput) -> CatalogedItem:
        """Return the item of the catalog that describes an output."""
        named = {"item_id": output.item_id, "collection_id": output.collection_id}
        (item,) = await self._views(CatalogedItem, "find_item_of_output", named)
        return item

    async def hashes_of_tiles(self, collection_ids: Sequence[str], prefix: str) -> dict[str, str]:
        """Return the SHA-256 of those tiles below a prefix that the catalog describes."""
        rows = await self._rows("hashes_of_tiles", {"collection_ids": list(collection_ids), "prefix": prefix})
        return {row["path"]: row["sha256"] for row in rows}


class OutputCheckRepository(Repository[OutputCheck]):
    """Keeps what was found when outputs were checked."""

    model = OutputCheck
    subject: ClassVar = "check of an output"
    queries: ClassVar = ServedOutputs.queries

    async def last(self, output: ServedOutput) -> OutputCheck | None:
        """Return what the last check found in this revision of an output."""
        found = await self.find(**output.key)
        return found if found is not None and found.revision == output.revision else None

    async def record(self, check: OutputCheck) -> None:
        """Keep what was found, in place of what was found before."""
        await self._execute("record_check", statements.parameters(check))

    async def forget_withdrawn(self) -> None:
        """Remove what was found in outputs that are not in service any more."""
        await self._execute("forget_withdrawn", {})
