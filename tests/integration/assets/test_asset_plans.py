"""Ten thousand assets: every list and every question is answered by an index, also for the gateway's role."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import combinations
from typing import Any, cast
from uuid import UUID

import pytest
from tests.conftest import TestDatabase
from tests.integration.repositories import rows

from graticule.core.ids import AssetId, OwnerId, PlatformId
from graticule.core.models.engine import EventType
from graticule.core.models.platform import DataType
from graticule.core.states import ApprovalState, ClearanceState, ProcessingState, RequestStatus
from graticule.core.table import DatabaseRole
from graticule.repositories.asset_views import Area, AssetFilter, AssetViews, RequestFilter
from graticule.repositories.database import Connection, Database
from graticule.repositories.operations import OperationViews
from graticule.repositories.platform_statistics import PlatformStatisticViews
from graticule.repositories.views import Views

# What is rare is found by the index of its own; what is common, by walking from the newest.
RARE: dict[str, tuple[dict[str, Any], str]] = {
    "platform": ({"platform_id": PlatformId("geonode")}, "geospatial_assets_platform_id_created_at_asset_id_idx"),
    "refs": ({"refs": {"dataset_id": "0000400"}}, "geospatial_assets_platform_refs_idx"),
    "type": ({"data_type": DataType.RASTER}, "geospatial_assets_data_type_created_at_asset_id_idx"),
    "clearance": (
        {"clearance_state": ClearanceState.PUBLIC},
        "geospatial_assets_clearance_state_created_at_asset_id_idx",
    ),
    "processing": ({"processing_state": ProcessingState.PROCESSING}, "asset_versions_processing_state_created_at_idx"),
    "approval": ({"approval_state": ApprovalState.REJECTED}, "asset_versions_approval_state_created_at_idx"),
    "ref words": ({"text": "0000400"}, "geospatial_assets_text"),
    "described words": ({"text": "sheet 77"}, "layer_metadata_text"),
    "box": ({"bbox": Area(10, 10, 14, 30)}, "asset_versions_bbox"),
    "crossing box": ({"bbox": Area(179, 10, -179, 12)}, "asset_versions_bbox"),
}
COMMON: dict[str, dict[str, Any]] = {
    "nothing": {},
    "deleted": {"with_deleted": True},
    "common platform": {"platform_id": PlatformId("ddh")},
    "common type": {"data_type": DataType.VECTOR},
    "common clearance": {"clearance_state": ClearanceState.UNCLEARED},
    "common refs": {"refs": {"resource_id": "shape-1"}},
    "common processing": {"processing_state": ProcessingState.COMPLETED},
    "failed": {"processing_state": ProcessingState.FAILED},
    "queued": {"processing_state": ProcessingState.QUEUED},
    "pending": {"approval_state": ApprovalState.PENDING_REVIEW},
    "common approval": {"approval_state": ApprovalState.APPROVED},
    "common words": {"text": "rivers and la"},
    "world": {"bbox": Area(-180, -90, 180, 90)},
}
FILTERS = {name: asked for name, (asked, _) in RARE.items()} | COMMON
PAIRS = [(one, other) for one, other in combinations(FILTERS, 2) if not set(FILTERS[one]) & set(FILTERS[other])]
CURSOR = (datetime.fromisoformat("2026-01-03T00:00:00Z"), AssetId("8" * 32))


class Plans:
    """The plans of the statements that a class of views ran."""

    def __init__(self, views: type[Views], connection: Connection, *, only_planned: str | None = None) -> None:
        """Begin; statements whose names begin as `only_planned` are not run."""
        self.found: list[dict[str, Any]] = []

        async def explained(query: str, parameters: Mapping[str, Any], **how: Any) -> list[dict[str, Any]]:
            statement = f"EXPLAIN (FORMAT JSON) {views.queries[query]}".encode()
            cursor = await connection.execute(statement, parameters, prepare=False)
            self.found.append((await cursor.fetchall())[0]["QUERY PLAN"][0]["Plan"])
            is_run = only_planned is None or not query.startswith(only_planned)
            return await views._rows(self.views, query, parameters, **how) if is_run else []

        self.views = cast("Any", views(connection))
        self.views._rows = explained

    @property
    def nodes(self) -> list[dict[str, Any]]:
        return [node for plan in self.found for node in _nodes(plan)]

    @property
    def indexes(self) -> set[str]:
        return {node["Index Name"] for node in self.nodes if "Index Name" in node}

    @property
    def scanned(self) -> list[str]:
        """Name the tables that were read as a whole, in their own order or by an index."""
        return [
            f"{node['Node Type']} {node.get('Relation Name') or node.get('Index Name')}"
            for node in self.nodes
            if node["Node Type"] == "Seq Scan" or ("Index Name" in node and _is_whole(node))
        ]


def _is_whole(node: dict[str, Any]) -> bool:
    """Tell whether an index is walked from end to end; that of what failed holds nothing else."""
    return "Index Cond" not in node and node["Index Name"] != "asset_versions_failed"


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for part in plan.get("Plans", ()):
        yield from _nodes(part)


@pytest.mark.parametrize("name", RARE)
async def test_each_filter_is_answered_by_its_own_index(planning: Connection, name: str) -> None:
    asked, index = RARE[name]
    plans = Plans(AssetViews, planning)
    found = await plans.views.assets(AssetFilter(**asked))
    assert (len(found) > 0) is (name != "crossing box")
    assert plans.scanned == []
    assert index in plans.indexes


@pytest.mark.parametrize("before", [None, CURSOR], ids=["first page", "later page"])
async def test_no_filter_reads_a_whole_table(
    planning: Connection, before: tuple[datetime, AssetId] | None, subtests: pytest.Subtests
) -> None:
    for name, asked in FILTERS.items():
        with subtests.test(name):
            plans = Plans(AssetViews, planning, only_planned="assets_")
            await plans.views.assets(AssetFilter(**asked), before)
            assert plans.scanned == []


async def test_no_two_filters_together_read_a_whole_table(planning: Connection, subtests: pytest.Subtests) -> None:
    assert len(PAIRS) > 150
    for one, other in PAIRS:
        with subtests.test(f"{one} + {other}"):
            plans = Plans(AssetViews, planning, only_planned="assets_")
            await plans.views.assets(AssetFilter(**FILTERS[one], **FILTERS[other]))
            assert plans.scanned == []


async def test_no_plan_is_kept_for_other_values(planning: Connection) -> None:
    for _ in range(10):  # the driver prepares what it is given more often
        await AssetViews(planning).assets(AssetFilter(text="0000400"))
    kept = await (await planning.execute("SELECT name FROM pg_prepared_statements")).fetchall()
    assert kept == []


async def test_one_thing_is_read_by_its_key(planning: Connection) -> None:
    plans = Plans(AssetViews, planning)
    asset = (await plans.views.assets(AssetFilter(), limit=1))[0]
    await plans.views.asset(asset.asset_id)
    await plans.views.versions(asset.asset_id)
    await plans.views.version(asset.asset_id, 0)
    request_id = await plans.views.newest_request(asset.asset_id)
    assert await plans.views.request(request_id)
    assert await plans.views.request_in_full(request_id)
    await plans.views.request_of_job("job-1")
    assert plans.scanned == []


@pytest.mark.parametrize("types", [None, [EventType.ASSET_APPROVED]], ids=["all", "some types"])
async def test_history_is_read_by_the_index_of_the_asset(planning: Connection, types: list[EventType] | None) -> None:
    plans = Plans(AssetViews, planning)
    asset = (await plans.views.assets(AssetFilter(), limit=1))[0]  # one of the newest: these have events
    assert len(await plans.views.history(asset.asset_id, types=types)) == (1 if types else 2)
    month = await (await planning.execute("SELECT to_char(now(), 'YYYY_MM') AS month")).fetchone()
    part = f"dag_job_events_{(month or {})['month']}_asset_id_event_id_idx"  # the months to come have no rows yet
    (walked,) = [node for node in plans.nodes if node.get("Index Name") == part]
    assert "asset_id" in walked["Index Cond"]
    assert "event_id" in walked["Index Cond"]


@pytest.mark.parametrize(
    "wanted",
    [
        RequestFilter(),
        RequestFilter(platform_id=PlatformId("ddh")),
        RequestFilter(platform_id=PlatformId("ddh"), status=RequestStatus.FAILED),
        RequestFilter(status=RequestStatus.PROCESSING),
        RequestFilter(asset_id=AssetId("c4ca4238a0b923820dcc509a6f75849b")),
    ],
    ids=str,
)
async def test_requests_are_listed_by_index(planning: Connection, wanted: RequestFilter) -> None:
    plans = Plans(AssetViews, planning)
    assert await plans.views.requests(wanted)
    await plans.views.requests(wanted, (rows.NOW, UUID(int=1)))
    assert plans.scanned == []


async def test_the_queue_of_reviewers_is_read_from_its_front(planning: Connection) -> None:
    plans = Plans(AssetViews, planning)
    first = await plans.views.waiting(limit=10)
    last = first[-1]
    assert await plans.views.waiting((last.waiting_since, last.asset_id, last.version_ordinal), 10)
    assert plans.scanned == []
    assert "asset_versions_waiting" in plans.indexes
    assert not [node for node in plans.nodes if node["Node Type"] in {"Sort", "Bitmap Heap Scan"}]


async def test_damaged_outputs_are_counted_by_their_keys(ten_thousand: TestDatabase) -> None:
    """The metrics are read every few seconds, and of many damaged outputs each would read all versions."""
    url = ten_thousand.url(DatabaseRole.ORCHESTRATOR)
    async with Database(url, DatabaseRole.ORCHESTRATOR, pool_size=1) as pool, pool.connection() as connection:
        plans = Plans(OperationViews, connection)
        assert await plans.views.state(OwnerId("o"), "jobs", 60, 10)
    assert {"asset_versions_pkey", "geospatial_assets_pkey"} <= plans.indexes
    assert not {"Seq Scan asset_versions", "Seq Scan geospatial_assets"} & set(plans.scanned)


async def test_each_question_is_answered_by_index(planning: Connection) -> None:
    row = await (await planning.execute("SELECT now() AS now")).fetchone()
    now = (row or {})["now"]
    plans = Plans(PlatformStatisticViews, planning)
    views: PlatformStatisticViews = plans.views
    stuck = await views.stuck(now, 60, None, 10)
    failed = await views.failed(None, 10)
    tried = await views.tried(20, None, 10)
    await views.stuck(now, 60, (stuck[-1].processing_started_at, stuck[-1].asset_id, stuck[-1].version_ordinal), 10)
    await views.failed((failed[-1].failed_at, failed[-1].asset_id, failed[-1].version_ordinal), 10)
    await views.tried(20, (tried[-1].job_count, tried[-1].asset_id, tried[-1].version_ordinal), 10)
    assert await views.durations(now, 7, 1000)
    assert await views.load(now, 1000)
    assert plans.scanned == []
    assert plans.indexes >= {"asset_versions_failed", "asset_versions_job_count_asset_id_idx", "dag_jobs_ended_at_idx"}
