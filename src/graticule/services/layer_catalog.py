"""The catalogue of layers: what is published of an approved version, to us alone or to everyone."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from graticule.core.asset_views import LayerColumn
from graticule.core.ids import AssetId
from graticule.core.models import AssetRevision, AssetVersion, GeospatialAsset, LayerCatalog, LayerMetadata
from graticule.core.models.fields import JsonObject
from graticule.core.refusals import Refusal
from graticule.core.states import ClearanceState
from graticule.repositories.assets import AssetRevisionRepository
from graticule.repositories.layers import LayerCatalogRepository, LayerMetadataRepository
from graticule.services.asset_changes import AssetUnderChange

DESCRIBED: Final = (
    *("title", "description", "keywords", "attribution", "licence"),
    *("temporal_start", "temporal_end", "bands", "style"),
)
STAC: Final = ("stac_item_id", "stac_collection_id")
OURS: Final = ("blob_path", "table_name", *STAC)
EVERYONES: Final = ("external_blob_path", *STAC)


async def show(change: AssetUnderChange, ordinal: int, now: datetime, *, is_external: bool) -> bool:
    """Show the revision in service as it is described now; False when the catalogue shows exactly that."""
    change.require_live()
    version = change.version(ordinal)
    if version.approved_revision is None:
        change.refuse(Refusal.NOT_APPROVED, f"No revision of version {ordinal} is approved.", "Approve it first.")
    if is_external and change.asset.clearance_state is not ClearanceState.PUBLIC:
        change.refuse(
            Refusal.NOT_PUBLIC, f"The asset is cleared as {change.asset.clearance_state}.", "Clear it as public first."
        )
    key: dict[str, Any] = {"asset_id": version.asset_id, "version_ordinal": ordinal}
    revision = await AssetRevisionRepository(change.connection).find(**key, revision=version.approved_revision)
    layers = LayerMetadataRepository(change.connection)
    metadata = await layers.find(**key)
    table_name = revision.outputs.get("table_name") if revision else version.table_name
    columns = await layers.columns(str(table_name) if table_name else None)
    entry = catalogue_entry(change.asset, version, revision, metadata, columns, is_external=is_external)
    catalogue = LayerCatalogRepository(change.connection)
    shown = await catalogue.find(**key)
    if shown and (shown.entry, shown.is_external) == (entry, is_external):
        return False
    published = LayerCatalog(
        **key, entry=entry, is_external=is_external, published_at=now, published_by=change.caller.name
    )
    await catalogue.publish(published)
    return True


async def hide(change: AssetUnderChange, ordinal: int) -> bool:
    """Show a version no longer, whatever became of it; False when it was not shown."""
    return await LayerCatalogRepository(change.connection).withdraw(change.asset.asset_id, ordinal)


async def follow(change: AssetUnderChange, now: datetime) -> None:
    """Take out of the catalogue what is in service no longer, and away from everyone what is public no longer."""
    catalogue = LayerCatalogRepository(change.connection)
    for shown in await catalogue.of_asset(AssetId(change.asset.asset_id)):
        if change.versions[shown.version_ordinal] not in change.in_service:
            await hide(change, shown.version_ordinal)
        elif shown.is_external and change.asset.clearance_state is not ClearanceState.PUBLIC:
            await show(change, shown.version_ordinal, now, is_external=False)


def catalogue_entry(
    asset: GeospatialAsset,
    version: AssetVersion,
    superseded: AssetRevision | None,
    metadata: LayerMetadata | None,
    columns: Sequence[LayerColumn] | None,
    *,
    is_external: bool,
) -> JsonObject:
    """Say of a version what the catalogue shows; `superseded` is the revision in service when a newer one is there.

    What everyone may see has nothing in it of where we and the partner keep the data.
    """
    outputs: Mapping[str, Any] = superseded.outputs if superseded else version.model_dump(mode="json")
    if is_external:
        kept = {**outputs, "external_blob_path": version.external_blob_path}
        where = {name: kept.get(name) for name in EVERYONES}
    else:
        where = {name: outputs.get(name) for name in OURS}
        where |= {"platform_id": asset.platform_id, "platform_refs": asset.platform_refs}
    described = metadata.model_dump(mode="json", include={*DESCRIBED}) if metadata else {}
    return {
        "asset_id": asset.asset_id,
        "version_ordinal": version.version_ordinal,
        "version_label": version.version_label,
        "revision": version.approved_revision,
        "data_type": asset.data_type.value,
        "bbox": outputs.get("bbox"),
        **{name: described.get(name) for name in DESCRIBED},
        **({} if columns is None else {"columns": [column.model_dump() for column in columns]}),
        **where,
    }
