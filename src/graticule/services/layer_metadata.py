"""How a version of an asset is described to those who use it."""

from typing import Annotated, Any, Final, Self

from pydantic import AwareDatetime, Field, StringConstraints, model_validator

from graticule.core.asset_views import LayerDescribed
from graticule.core.errors import InvalidInput, Refused
from graticule.core.exchange import Asked
from graticule.core.fault_points import Commit
from graticule.core.ids import AssetId
from graticule.core.models import AssetVersion, LayerMetadata
from graticule.core.models.engine import EventType
from graticule.core.models.fields import JsonObject
from graticule.core.permissions import Caller
from graticule.core.refusals import Refusal
from graticule.repositories.assets import AssetRepository, AssetVersionRepository
from graticule.repositories.database import Database
from graticule.repositories.layers import LayerMetadataRepository
from graticule.repositories.steps import document
from graticule.services.asset_changes import changing, no_such_asset

MOST_KEYWORDS: Final = 100
MOST_BANDS: Final = 500
LARGEST_BYTES: Final = 256 * 1024  # of bands and style

NO_NUL: Final = r"^[^\x00]*$"
LineText = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=255, pattern=NO_NUL)]
ShortText = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=64, pattern=NO_NUL)]
LongText = Annotated[str, StringConstraints(min_length=1, max_length=10_000, pattern=NO_NUL)]


class LayerDescription(Asked):
    """All that is said of a layer; what is left out is not said any more."""

    expected_version: int | None = Field(
        None,
        ge=0,
        lt=2**31,
        description="The `version` that the caller has seen, 0 for none; another one refuses the change (409).",
    )
    title: LineText | None = Field(None, examples=["Elevation of Europe"])
    description: LongText | None = None
    keywords: Annotated[list[ShortText], Field(max_length=MOST_KEYWORDS)] = Field(
        default_factory=list, examples=[["elevation", "europe"]]
    )
    attribution: LineText | None = Field(None, examples=["© The Atlas"])
    licence: ShortText | None = Field(None, examples=["CC-BY-4.0"])
    temporal_start: AwareDatetime | None = None
    temporal_end: AwareDatetime | None = None
    bands: Annotated[list[JsonObject], Field(max_length=MOST_BANDS)] = Field(
        default_factory=list, examples=[[{"name": "elevation", "unit": "m"}]]
    )
    style: JsonObject | None = Field(None, examples=[{"colormap": "terrain", "rescale": [0, 4000]}])

    @model_validator(mode="after")
    def _begins_before_it_ends(self) -> Self:
        if self.temporal_start and self.temporal_end and self.temporal_start > self.temporal_end:
            raise ValueError("temporal_start is later than temporal_end")
        return self

    def fields(self) -> dict[str, Any]:
        """Give what is said, by column."""
        return {name: getattr(self, name) for name in type(self).model_fields if name != "expected_version"}


class LayerMetadataService:
    """Reads and writes descriptions, under the lock of their assets."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def read(self, asset_id: AssetId, version_ordinal: int, caller: Caller) -> LayerDescribed:
        """Give the description of a version; what the caller may not see is not there.

        One that nobody has described is at version 0; features tell their columns even then. Who wrote it is for staff.
        """
        found = await self._described(asset_id, version_ordinal, caller)
        return found if caller.is_staff else found.model_copy(update={"updated_by": None})

    async def _described(self, asset_id: AssetId, version_ordinal: int, caller: Caller) -> LayerDescribed:
        key: dict[str, Any] = {"asset_id": asset_id, "version_ordinal": version_ordinal}
        async with self._database.connection() as connection:
            asset = await AssetRepository(connection).find(asset_id=asset_id)
            if asset is None or not caller.sees(asset.platform_id):
                raise no_such_asset(asset_id)
            version = await AssetVersionRepository(connection).get(**key)
            layers = LayerMetadataRepository(connection)
            said = await layers.find(**key) or _not_described(version)
            return LayerDescribed(**dict(said), columns=await layers.columns(version.table_name))

    async def write(
        self, asset_id: AssetId, version_ordinal: int, description: LayerDescription, caller: Caller
    ) -> LayerMetadata:
        """Describe a version; the same description again changes nothing."""
        _check_size(description)
        async with changing(self._database, asset_id, caller, commit=Commit.METADATA) as change:
            change.require_live()
            key = {"asset_id": asset_id, "version_ordinal": change.version(version_ordinal).version_ordinal}
            layers, now = LayerMetadataRepository(change.connection), self._database.now()
            present = await layers.find(**key) or LayerMetadata(**key, version=0, created_at=now, updated_at=now)
            changed = [name for name, value in description.fields().items() if value != getattr(present, name)]
            if present.version and not changed:
                return present
            _check_version(present, description.expected_version)
            update = {**description.fields(), "updated_by": caller.name, "updated_at": now}
            written = await layers.write(present.model_copy(update=update))
            await change.change_asset(now)
            await change.tell(
                EventType.ASSET_METADATA_CHANGED, now, version_ordinal, fields=changed, version=written.version
            )
            return written


def _not_described(version: AssetVersion) -> LayerMetadata:
    return LayerMetadata(
        asset_id=version.asset_id,
        version_ordinal=version.version_ordinal,
        version=0,
        created_at=version.created_at,
        updated_at=version.updated_at,
    )


def _check_size(description: LayerDescription) -> None:
    size = len(document({"bands": description.bands, "style": description.style}))
    if size > LARGEST_BYTES:
        raise InvalidInput(f"bands and style have {size} bytes as JSON; they may have {LARGEST_BYTES}.")


def _check_version(present: LayerMetadata, expected: int | None) -> None:
    if expected is not None and expected != present.version:
        raise Refused(
            Refusal.STALE_VERSION,
            f"The layer is described already: it is at version {present.version}.",
            hint="Read it again and repeat the change.",
            current={"version": present.version},
        )
