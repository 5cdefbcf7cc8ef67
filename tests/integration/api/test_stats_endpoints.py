"""The questions that are asked of the platform as a whole, over HTTP."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import httpx
import pytest
from tests.integration.api.stored import add_job
from tests.integration.repositories import rows

from graticule.core.ids import AssetId
from graticule.core.models.engine import EventType
from graticule.core.states import ClearanceState, JobStatus, ProcessingState, RequestStatus
from graticule.repositories.assets import AssetRepository, AssetVersionRepository
from graticule.repositories.database import Connection
from graticule.repositories.events import EventRepository
from graticule.repositories.requests import RequestRepository

STATS = "/api/v1/stats"
QUESTIONS = ("stuck", "failed", "durations", "attempts", "load", 'datasets?refs={"dataset_id":"d"}')
NO_QUESTIONS = (
    "stuck?minutes=-1",
    "stuck?minutes=x",
    "stuck?cursor=x",
    "failed?limit=0",
    "durations?days=0",
    "attempts?at_least=1",
    "attempts?cursor=WyJ4Il0",
    "datasets",
    "datasets?refs=x",
    "datasets?refs=[]",
    "datasets?refs={}",
    'datasets?refs={"a":{"b":1}}',
    'datasets?refs={"a":"\\u0000"}',
)
REMOVED: dict[str, Any] = {"deleted_at": rows.NOW, "deleted_by": "olaf"}
APPROVED: dict[str, Any] = {**rows.APPROVED, "approved_revision": 1}


def asset_id(number: int) -> AssetId:
    return AssetId(f"{number:032x}")


def ago(**span: float) -> datetime:
    return datetime.now(UTC) - timedelta(**span)


async def add(connection: Connection, number: int, asset: dict[str, Any] | None = None, **version: Any) -> None:
    """Add an asset with a version."""
    await AssetRepository(connection).insert(rows.asset(asset_id(number), **(asset or {})))
    await AssetVersionRepository(connection).insert(rows.version(asset_id=asset_id(number), **version))


async def asked(client: httpx.AsyncClient, question: str) -> list[dict[str, Any]]:
    answer = await client.get(f"{STATS}/{question}")
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["items"]
    return found


def numbers(items: list[dict[str, Any]]) -> list[int]:
    return [int(item["asset_id"], 16) for item in items]


async def paged(client: httpx.AsyncClient, question: str) -> list[int]:
    """Give the assets of all pages of one item each."""
    found, cursor = [], ""
    while cursor is not None:
        answer = (await client.get(f"{STATS}/{question}{cursor}")).json()
        found += numbers(answer["items"])
        cursor = answer["next"] and f"&cursor={answer['next']}"
    return found


async def test_stuck_is_what_has_been_processing_for_long(
    admin_client: httpx.AsyncClient, connection: Connection
) -> None:
    under_way: dict[str, Any] = {"processing_state": ProcessingState.PROCESSING}
    await add(connection, 1, **under_way, processing_started_at=ago(minutes=61), workflow_id="flow")
    await add(connection, 2, **under_way, processing_started_at=ago(minutes=59))
    await add(connection, 3, **under_way, processing_started_at=ago(days=3))
    await add(connection, 4, processing_state=ProcessingState.COMPLETED, processing_started_at=ago(days=3))
    await add(connection, 5, **under_way, processing_started_at=ago(days=3), **REMOVED)
    found = await asked(admin_client, "stuck")
    assert numbers(found) == [3, 1]
    assert 3660 <= found[1]["seconds"] < 3900
    assert (found[1]["workflow_id"], found[1]["platform_refs"]) == ("flow", {"dataset_id": "d"})
    assert numbers(await asked(admin_client, "stuck?minutes=30")) == [3, 1, 2]
    assert numbers(await asked(admin_client, "stuck?minutes=5000")) == []
    assert await paged(admin_client, "stuck?minutes=0&limit=1") == [3, 1, 2]


async def test_failed_is_what_needs_attention_with_the_error_and_the_attempts(
    admin_client: httpx.AsyncClient, connection: Connection
) -> None:
    failed: dict[str, Any] = {"processing_state": ProcessingState.FAILED, "last_error": "no such file"}
    request_id = UUID(int=7)
    await RequestRepository(connection).insert(
        rows.request(
            request_id, asset_id=asset_id(1), retry_count=2, status=RequestStatus.FAILED, last_error="no such file"
        )
    )
    await add(connection, 1, **failed, processing_completed_at=ago(hours=2), last_request_id=request_id, job_count=3)
    await add(connection, 2, **failed, processing_completed_at=ago(hours=1))
    await add(connection, 3, **failed, processing_completed_at=ago(hours=1), **REMOVED)
    await add(connection, 4, REMOVED, **failed, processing_completed_at=ago(hours=1))
    await add(connection, 5, processing_state=ProcessingState.QUEUED)
    await add(connection, 6, **failed, updated_at=ago(hours=5))  # it never began
    found = await asked(admin_client, "failed")
    assert numbers(found) == [2, 1, 6]
    assert (found[1]["error"], found[1]["retry_count"], found[1]["job_count"]) == ("no such file", 2, 3)
    assert found[0]["retry_count"] == 0
    assert await paged(admin_client, "failed?limit=1") == [2, 1, 6]


async def test_a_copy_for_the_public_that_could_not_be_made_is_a_failure(
    admin_client: httpx.AsyncClient, connection: Connection
) -> None:
    public: dict[str, Any] = {"clearance_state": ClearanceState.PUBLIC, "latest_approved_version_ordinal": 0}
    public |= {"cleared_at": rows.NOW, "cleared_by": "rita", "made_public_at": rows.NOW, "made_public_by": "rita"}
    for number, clearance in enumerate([public, {}]):  # of the second one nobody wants a copy any more
        await add(connection, number, clearance, processing_state=ProcessingState.COMPLETED, **APPROVED)
        failure = rows.event(
            event_type=EventType.ASSET_EXPORT_FAILED,
            job_id=f"export-{number}",
            asset_id=asset_id(number),
            version_ordinal=0,
            data={"error": "no space left"},
        )
        await EventRepository(connection).insert(failure)
    (found,) = await asked(admin_client, "failed")
    told = ("asset_id", "version_ordinal", "purpose", "job_id", "error")
    assert [found[name] for name in told] == [asset_id(0), 0, "export", "export-0", "no space left"]
    assert datetime.fromisoformat(found["failed_at"]) == rows.NOW


async def test_attempts_are_counted_by_jobs(admin_client: httpx.AsyncClient, connection: Connection) -> None:
    for number, count in enumerate([1, 2, 3, 9, 3]):
        await add(connection, number, job_count=count)
    await add(connection, 8, REMOVED, job_count=20)
    await add(connection, 9, job_count=20, **REMOVED)
    await AssetVersionRepository(connection).insert(
        rows.version(1, asset_id=asset_id(4), job_count=3, **APPROVED)  # the first one awaits a decision
    )
    found = await asked(admin_client, "attempts")
    assert [(int(each["asset_id"], 16), each["job_count"]) for each in found] == [(3, 9), (2, 3), (4, 3), (4, 3)]
    assert numbers(await asked(admin_client, "attempts?at_least=2")) == [3, 2, 4, 4, 1]
    assert numbers(await asked(admin_client, "attempts?at_least=4")) == [3]
    assert await paged(admin_client, "attempts?at_least=2&limit=1") == [3, 2, 4, 4, 1]


async def test_durations_and_load_of_each_workflow(admin_client: httpx.AsyncClient, connection: Connection) -> None:
    async def job(number: int, status: JobStatus, seconds: int = 1, ended: datetime | None = None, **more: Any) -> None:
        started = None if ended is None else ended - timedelta(seconds=seconds)
        await add_job(connection, f"job-{number}", status=status, started_at=started, ended_at=ended, **more)

    for number in range(1, 11):
        await job(number, JobStatus.COMPLETED, number, ago(hours=1))
    await job(20, JobStatus.COMPLETED, 1000, ago(days=8))
    await job(21, JobStatus.FAILED, 1000, ago(hours=1), error_message="x")
    await job(22, JobStatus.CANCELLED, 1000, ago(hours=30))
    await job(23, JobStatus.RUNNING)
    await job(24, JobStatus.PENDING)
    await job(25, JobStatus.PENDING, workflow_id="other")
    (durations,) = await asked(admin_client, "durations")
    assert durations == {"workflow_id": "flow", "jobs": 10, "p50_seconds": 5.5, "p95_seconds": pytest.approx(9.55)}
    assert (await asked(admin_client, "durations?days=30"))[0]["jobs"] == 11
    flow, other = await asked(admin_client, "load")
    assert flow == {
        "workflow_id": "flow",
        "pending": 1,
        "running": 1,
        "completed_24h": 10,
        "failed_24h": 1,
        "cancelled_24h": 0,
    }
    assert (other["workflow_id"], other["pending"], other["completed_24h"]) == ("other", 1, 0)


async def test_all_assets_of_a_dataset_whatever_the_resource(
    admin_client: httpx.AsyncClient, connection: Connection
) -> None:
    for number, (dataset, platform) in enumerate([("0038272", "ddh"), ("0038272", "arcgis"), ("38272", "ddh")]):
        refs = {"dataset_id": dataset, "resource_id": f"r{number}"}
        created = rows.NOW + timedelta(minutes=number)
        await add(connection, number, {"platform_refs": refs, "platform_id": platform, "created_at": created})
    question = f"datasets?refs={json.dumps({'dataset_id': '0038272'})}"
    found = await asked(admin_client, question)
    assert numbers(found) == [1, 0]
    assert found[0]["newest_version"]["version_ordinal"] == 0
    assert await paged(admin_client, f"{question}&limit=1") == [1, 0]


async def test_what_cannot_be_asked_is_refused(admin_client: httpx.AsyncClient, subtests: pytest.Subtests) -> None:
    for question in NO_QUESTIONS:
        with subtests.test(question):
            answer = await admin_client.get(f"{STATS}/{question}")
            assert (answer.status_code, answer.headers["content-type"]) == (422, "application/problem+json")


async def test_only_operators_are_answered(visitor: httpx.AsyncClient) -> None:
    answers = [await visitor.get(f"{STATS}/{question}") for question in QUESTIONS]
    assert [answer.status_code for answer in answers] == [401] * len(QUESTIONS)


async def test_every_question_is_answered_when_there_is_nothing(admin_client: httpx.AsyncClient) -> None:
    answers = [await admin_client.get(f"{STATS}/{question}") for question in QUESTIONS]
    assert [answer.json() for answer in answers] == [{"items": [], "next": None}] * len(QUESTIONS)
