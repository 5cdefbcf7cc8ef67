"""What partners are told has nothing internal in it."""

from typing import Any

import pytest
from pydantic import BaseModel
from tests.integration.repositories import rows

from graticule.core.asset_views import (
    PARTNER_EVENTS,
    PartnerAsset,
    PartnerEvent,
    PartnerRequest,
    PartnerRevision,
    PartnerVersion,
    StaffAsset,
    VersionSummary,
)
from graticule.core.models import AssetRevision, AssetVersion, Event, GeospatialAsset, PlatformRequest
from graticule.core.models.engine import EventType

RICH = {type(row): row for row in rows.rich_rows()}
INTERNAL = {
    *(
        "job",
        "workflow",
        "node",
        "task",
        "handler",
        "queue",
        "owner",
        "worker",
        "blob",
        "table",
        "path",
        "stac",
        "export",
    ),
    *("reviewer", "actor", "by", "short", "summary", "priority", "outputs", "body", "idempotency"),
}
OF_ROWS: dict[type[BaseModel], Any] = {
    PartnerAsset: lambda: PartnerAsset.of(StaffAsset(**dict(RICH[GeospatialAsset]))),
    PartnerVersion: lambda: PartnerVersion.of(RICH[AssetVersion]),  # type: ignore[arg-type]
    PartnerRevision: lambda: PartnerRevision.of(RICH[AssetRevision]),  # type: ignore[arg-type]
    PartnerRequest: lambda: PartnerRequest.of(RICH[PlatformRequest]),  # type: ignore[arg-type]
    PartnerEvent: lambda: PartnerEvent.of(rows.event(event_type=EventType.ASSET_CREATED, actor="rita")),
}


@pytest.mark.parametrize("model", [*OF_ROWS, VersionSummary])
def test_no_field_is_named_after_something_internal(model: type[BaseModel]) -> None:
    assert [name for name in model.model_fields if INTERNAL & set(name.split("_"))] == []


@pytest.mark.parametrize("model", OF_ROWS)
def test_a_view_is_made_of_its_row(model: type[BaseModel]) -> None:
    view = OF_ROWS[model]()
    assert type(view) is model
    assert not {"rita", "job", "node"} & set(map(str, dict(view).values()))


def test_an_asset_keeps_its_newest_version() -> None:
    version = VersionSummary.model_validate(RICH[AssetVersion], from_attributes=True)
    asset = StaffAsset(**dict(RICH[GeospatialAsset]), newest_version=version)
    assert PartnerAsset.of(asset).newest_version == version


def test_of_errors_partners_are_told_what_is_meant_for_them() -> None:
    assert PartnerVersion.of(rows.version(last_error="ours", told_error="theirs")).error == "theirs"
    assert PartnerRequest.of(rows.request(last_error="x")).error == "x"


def test_partners_are_told_only_of_assets() -> None:
    assert all(event_type.value.startswith("asset_") for event_type in PARTNER_EVENTS)


@pytest.mark.parametrize("event_type", PARTNER_EVENTS)
def test_an_event_tells_what_happened_and_neither_who_did_it_nor_by_what(event_type: EventType) -> None:
    data: Any = dict.fromkeys(
        ["revision", "reason", "error", "job_id", "node_id", "workflow_id", "actor", "blob_path", "clearance_state"],
        "x",
    )
    event = Event(
        event_type=event_type,
        job_id="job",
        node_id="node",
        actor="rita",
        data=data,
        version_ordinal=3,
        created_at=rows.NOW,
    )
    told = PartnerEvent.of(event)
    assert set(PartnerEvent.model_fields) == {"event", "version_ordinal", "details", "happened_at"}
    assert (told.event, told.version_ordinal, told.happened_at) == (event_type, 3, rows.NOW)
    assert set(told.details) == set(data) & PARTNER_EVENTS[event_type]
    assert not set(told.details) & {"job_id", "node_id", "workflow_id", "actor", "blob_path"}


def test_reasons_of_ours_stay_with_us() -> None:
    ours = (EventType.ASSET_VERSION_REPROCESSED, EventType.ASSET_CLEARANCE_CHANGED)
    assert all("reason" not in PARTNER_EVENTS[event_type] for event_type in ours)
