"""Work orders: retries, jobs that end late or are resumed, results that cannot be kept, keys, names, senders."""

import asyncio
import os
from datetime import timedelta
from typing import Any

import pytest
from tests.integration.services.desk import REFS, RITA, Desk, code_of, cog, submission

from graticule.core.asset_names import asset_id_of
from graticule.core.errors import AlreadyExists, InvalidInput, NotFound, Refused
from graticule.core.exchange import SubmissionReceipt
from graticule.core.ids import JobId, PlatformId
from graticule.core.models.platform import ClientRole
from graticule.core.permissions import Caller
from graticule.core.states import ProcessingState, RequestStatus
from graticule.services import submissions
from graticule.services.asset_outcomes import OURS
from graticule.services.step_reading import Wake

TOLD = "https://example.org/told"
OTHER_ASSET = """
    INSERT INTO dagapp.geospatial_assets (asset_id, short_id, platform_id, platform_refs, data_type)
    VALUES (%s, %s, 'ddh', '{}', 'raster')
"""
DDH = Caller("ddh-client", frozenset({ClientRole.SUBMITTER}), PlatformId("ddh"))
ARCGIS = Caller("arcgis-client", frozenset({ClientRole.SUBMITTER}), PlatformId("arcgis"))


def job_of(receipt: SubmissionReceipt) -> JobId:
    assert receipt.job_id is not None
    return receipt.job_id


# A submission and its rows


async def test_a_submission_makes_request_asset_version_and_job_that_name_each_other(desk: Desk) -> None:
    receipt = await desk.submit(priority=3, caller=DDH)
    assert receipt.asset_id == asset_id_of("ddh", REFS)
    assert (receipt.version_ordinal, receipt.revision, receipt.status) == (0, 1, "accepted")
    version, request = await desk.version(receipt.asset_id), await desk.request(receipt.request_id)
    (job,) = await desk.jobs(receipt.asset_id)
    assert version.current_job_id == request.job_id == job.job_id == receipt.job_id
    assert version.last_request_id == request.request_id
    assert (job.asset_id, job.version_ordinal, job.purpose) == (receipt.asset_id, 0, "process")
    assert (request.submitted_by, request.platform_id) == ("ddh-client", "ddh")
    assert (version.priority, job.priority, version.workflow_id, version.workflow_version) == (
        3,
        3,
        "raster_ingest",
        "1",
    )
    asset = await desk.asset(receipt.asset_id)
    assert (asset.platform_refs, asset.data_type, asset.clearance_state) == (REFS, "raster", "uncleared")


CEILINGS: list[
    tuple[set[ClientRole], int, tuple[int, str, int]]
] = [  # the job's priority, its share, its tasks' priority
    ({ClientRole.SUBMITTER}, 0, (0, "ddh", 0)),
    ({ClientRole.SUBMITTER}, 5, (5, "ddh/5", 0)),
    ({ClientRole.SUBMITTER}, 10, (5, "ddh/5", 0)),
    ({ClientRole.OPERATOR}, 5, (5, "ddh/5", 0)),
    ({ClientRole.OPERATOR}, 6, (6, "", 6)),
    ({ClientRole.ADMIN}, 10, (10, "", 10)),
    ({ClientRole.SUBMITTER, ClientRole.OPERATOR}, 10, (10, "", 10)),
]


@pytest.mark.parametrize(("roles", "asked", "expected"), CEILINGS)
async def test_a_priority_is_lowered_to_what_the_caller_may_ask_for(
    desk: Desk, roles: set[ClientRole], asked: int, expected: tuple[int, str, int]
) -> None:
    caller = Caller("someone", frozenset(roles), PlatformId("ddh"))
    receipt = await desk.submit(priority=asked, caller=caller)
    assert receipt.priority == (await desk.version(receipt.asset_id)).priority == expected[0]
    (job,) = await desk.jobs(receipt.asset_id)
    (task,) = await desk.bench.tasks(job.job_id)
    assert (job.priority, job.share, task.priority) == expected
    assert task.share == job.share


async def test_the_same_key_gives_the_same_receipt_whatever_was_lowered(desk: Desk) -> None:
    first = await desk.submit(priority=10, caller=DDH, key="k")
    assert await desk.submit(priority=10, caller=DDH, key="k") == first


@pytest.mark.parametrize(
    ("data_type", "options", "workflow_id"),
    [
        ("raster", {}, "raster_ingest"),
        ("vector", {}, "vector_ingest"),
        ("raster", {"pipeline": "standard"}, "raster_ingest"),
        ("raster", {"pipeline": "large"}, "process_large_raster"),
    ],
)
async def test_data_type_and_options_choose_the_workflow(
    desk: Desk, data_type: str, options: dict[str, Any], workflow_id: str
) -> None:
    receipt = await desk.submit(data_type=data_type, processing_options=options)
    assert (await desk.version(receipt.asset_id)).workflow_id == workflow_id


@pytest.mark.parametrize(
    "options", [{"pipeline": "none"}, {"pipeline": 7}, {"colour": "red"}, {"blob_prefix": "mine"}, {"asset_id": "x"}]
)
async def test_options_that_no_workflow_has_are_refused_and_leave_nothing(desk: Desk, options: dict[str, Any]) -> None:
    before = await desk.snapshot()
    with pytest.raises(InvalidInput, match="processing_options"):
        await desk.submit(processing_options=options)
    assert await desk.snapshot() == before


# Processing


async def test_a_version_goes_with_its_job_through_all_states(desk: Desk) -> None:
    receipt = await desk.submit()
    version = await desk.version(receipt.asset_id)
    assert version.processing_state in {ProcessingState.QUEUED, ProcessingState.PROCESSING}
    assert version.node_summary == {"total": 3, "completed": 1, "failed": 0, "current_node": "work"}
    await desk.process(receipt)
    version = await desk.version(receipt.asset_id)
    assert version.processing_state is ProcessingState.COMPLETED
    assert version.node_summary == {"total": 3, "completed": 3, "failed": 0, "current_node": None}
    assert version.processing_started_at is not None
    assert version.processing_completed_at is not None
    assert version.processing_started_at <= version.processing_completed_at
    assert (await desk.request(receipt.request_id)).status is RequestStatus.COMPLETED


async def test_a_failure_is_told_on_version_and_request(desk: Desk) -> None:
    receipt = await desk.submit(callback_url=TOLD)
    await desk.fail(receipt.job_id, "x" * 5000)
    version, request = await desk.version(receipt.asset_id), await desk.request(receipt.request_id)
    assert version.last_error == request.last_error
    assert "xxx" in str(version.last_error)
    assert len(str(version.last_error)) <= 2000
    assert version.node_summary == {"total": 3, "completed": 1, "failed": 1, "current_node": "work"}
    assert [each["status"] for each in await desk.callbacks()] == ["failed"]
    assert (await desk.history(receipt.asset_id))[-2:] == ["processing_started", "processing_failed"]


async def test_a_job_that_is_cancelled_fails_its_version(desk: Desk) -> None:
    receipt = await desk.submit(callback_url=TOLD)
    await desk.bench.jobs.cancel(job_of(receipt), "otto")
    version = await desk.version(receipt.asset_id)
    assert (version.processing_state, version.last_error) == (ProcessingState.FAILED, "Processing was cancelled.")
    assert (await desk.request(receipt.request_id)).status is RequestStatus.FAILED
    assert [each["status"] for each in await desk.callbacks()] == ["failed"]
    retried = await desk.retry(receipt.asset_id)
    await desk.process(retried)
    assert (await desk.version(receipt.asset_id)).processing_state is ProcessingState.COMPLETED


async def test_a_job_that_is_resumed_takes_its_version_along(desk: Desk) -> None:
    receipt = await desk.submit()
    await desk.fail(receipt.job_id)
    await desk.bench.jobs.resume(job_of(receipt))
    version, request = await desk.version(receipt.asset_id), await desk.request(receipt.request_id)
    assert (version.processing_state, version.last_error) == (ProcessingState.PROCESSING, None)
    assert version.processing_completed_at is None
    assert (request.status, request.retry_count, request.last_error) == (RequestStatus.PROCESSING, 0, None)
    with pytest.raises(Refused) as refused:
        await desk.retry(receipt.asset_id)
    assert code_of(refused.value) == "not_failed"
    await desk.process(receipt)
    version = await desk.version(receipt.asset_id)
    assert (version.processing_state, version.job_count) == (ProcessingState.COMPLETED, 1)
    assert (await desk.history(receipt.asset_id))[2:] == [
        *("processing_started", "processing_failed", "processing_started", "processing_completed"),
    ]


async def test_a_job_of_only_control_nodes_completes_its_version_with_the_submission(desk: Desk) -> None:
    receipt = await desk.submit(processing_options={"pipeline": "large"}, callback_url=TOLD)
    version = await desk.version(receipt.asset_id)
    assert version.processing_state is ProcessingState.COMPLETED
    assert version.processing_started_at == version.processing_completed_at
    assert (await desk.request(receipt.request_id)).status is RequestStatus.COMPLETED
    assert [each["status"] for each in await desk.callbacks()] == ["completed"]
    await desk.approve(receipt.asset_id)


PREFIX = cog(0, 1).removesuffix("/cog.tif")
COLLECTION = "-".join(PREFIX.replace("_", "-").split("/")[1:4])
UNFIT: dict[str, tuple[dict[str, Any], str]] = {
    "a table of its own choice": ({"table_name": "direct_wells"}, "table_name"),
    "a blob elsewhere": ({"blob_path": "silver/direct/wells/cogs/a.tif"}, "blob_path"),
    "a blob that leads elsewhere": ({"blob_path": f"{PREFIX}/../../cog.tif"}, "blob_path"),
    "a blob beside its prefix": ({"blob_path": f"{PREFIX}0/cog.tif"}, "blob_path"),
    "an item of another asset": ({"stac_item_id": "roads-01234567-v0"}, "stac_item_id"),
    "a collection of tiles": ({"stac_collection_id": f"{COLLECTION}-tiles"}, "stac_collection_id"),
    "a path that is too long": ({"blob_path": "x" * 1025}, "blob_path"),
    "a hash that is none": ({"content_hash": "abc"}, "content_hash"),
    "a hash of capitals": ({"output_hash": "A" * 64}, "output_hash"),
    "no table name": ({"table_name": "Robert'); DROP TABLE"}, "table_name"),
    "a number for a path": ({"blob_path": 7}, "blob_path"),
    "a box of three": ({"bbox": [1, 2, 3]}, "bbox"),
    "a box upside down": ({"bbox": [5, 10, 6, -10]}, "bbox"),
    "a box of words": ({"bbox": ["a", "b", "c", "d"]}, "bbox"),
}


@pytest.mark.parametrize("what", UNFIT)
async def test_a_result_that_cannot_be_kept_fails_the_version_and_names_the_field(desk: Desk, what: str) -> None:
    output, field = UNFIT[what]
    receipt = await desk.submit(callback_url=TOLD)
    await desk.finish(receipt.job_id, {"content_hash": "a" * 64, **output})
    version = await desk.version(receipt.asset_id)
    assert version.processing_state is ProcessingState.FAILED
    assert field in str(version.last_error)
    assert version.told_error == OURS
    assert (version.blob_path, version.content_hash) == (None, None)
    assert (await desk.request(receipt.request_id)).status is RequestStatus.FAILED
    await desk.process(await desk.retry(receipt.asset_id))


# The partner is told what its request says, not what the job does.
async def test_a_partner_is_told_of_the_failure_of_a_result_that_cannot_be_kept(desk: Desk) -> None:
    receipt = await desk.submit(callback_url=TOLD)
    await desk.finish(receipt.job_id, {"content_hash": "abc"})
    assert [each["status"] for each in await desk.callbacks()] == ["failed"]


@pytest.mark.parametrize("result", [None, 7, "done", [1, 2], {"other": {"deep": [1]}}, {"blob_path": None}])
async def test_a_result_that_tells_of_no_outputs_is_kept_without_any(desk: Desk, result: Any) -> None:
    receipt = await desk.submit()
    await desk.finish(receipt.job_id, result)
    version = await desk.version(receipt.asset_id)
    assert (version.processing_state, version.blob_path) == (ProcessingState.COMPLETED, None)


async def test_the_estimate_is_the_middle_of_what_the_workflow_took_before(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(submissions, "PACE_HOLDS", timedelta())
    first = await desk.submit("V1")
    assert (await desk.version(first.asset_id)).estimated_completion_at is None, "there is no history"
    await desk.process(first)
    other = {**REFS, "resource_id": "other"}
    others = [await desk.submit("V1", platform_refs={**other, "dataset_id": str(number)}) for number in range(3)]
    for receipt in others[:2]:
        await desk.process(receipt)
    await desk.fail(others[2].job_id)
    lasted = zip((first, *others), (10, 100, 1000, 1), strict=True)
    for receipt, seconds in lasted:
        await desk.execute(
            "UPDATE dagapp.dag_jobs SET ended_at = created_at + make_interval(secs => %s) WHERE job_id = %s",
            seconds,
            receipt.job_id,
        )
    again = await desk.submit("V1", platform_refs=other)
    version = await desk.version(again.asset_id)
    assert version.estimated_completion_at == version.created_at + timedelta(seconds=100)
    vector = await desk.submit("V1", platform_refs={**REFS, "resource_id": "roads"}, data_type="vector")
    assert (await desk.version(vector.asset_id)).estimated_completion_at is None


async def test_the_estimate_is_that_of_files_of_about_the_same_size(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(submissions, "PACE_HOLDS", timedelta())
    file = desk.sources / "bronze" / "ddh" / "sized.tif"
    file.parent.mkdir(parents=True, exist_ok=True)

    async def submitted(number: int, size: int) -> SubmissionReceipt:
        file.touch()
        os.truncate(file, size)
        refs = {**REFS, "resource_id": f"r{number}"}
        asked = submission("V1", platform_refs=refs, file_name="ddh/sized.tif")
        return await desk.submissions.submit(asked, desk.caller)

    async def estimate(number: int, size: int) -> float:
        version = await desk.version((await submitted(number, size)).asset_id)
        assert version.estimated_completion_at is not None
        return (version.estimated_completion_at - version.created_at).total_seconds()

    for number in range(9):
        is_large = number >= 6
        receipt = await submitted(number, 10**9 if is_large else 10**4)
        await desk.process(receipt)
        lasted = 1000 + number if is_large else 10 + number
        await desk.execute(
            "UPDATE dagapp.dag_jobs SET ended_at = created_at + make_interval(secs => %s) WHERE job_id = %s",
            lasted,
            receipt.job_id,
        )
    assert await estimate(20, 2 * 10**9) == 1007
    assert await estimate(21, 5000) == 12.5
    assert await estimate(22, 10**6) == 14  # none was about as large: the median of all


async def test_a_burst_of_submissions_asks_once_how_long_the_workflow_takes(desk: Desk) -> None:
    first = await desk.submit("V1")
    await desk.process(first)
    for seconds in (100, 1000):
        await desk.execute(
            "UPDATE dagapp.dag_jobs SET ended_at = created_at + make_interval(secs => %s) WHERE job_id = %s",
            seconds,
            first.job_id,
        )
        other = await desk.submit("V1", platform_refs={**REFS, "resource_id": str(seconds)})
        version = await desk.version(other.asset_id)
        assert version.estimated_completion_at == version.created_at + timedelta(seconds=100)


# Retry


async def test_a_retry_is_the_same_request_with_a_new_job(desk: Desk) -> None:
    first = await desk.submit(callback_url=TOLD)
    await desk.fail(first.job_id)
    second = await desk.retry(first.asset_id)
    assert (second.request_id, second.revision) == (first.request_id, 1)
    assert second.job_id != first.job_id
    version, request = await desk.version(first.asset_id), await desk.request(first.request_id)
    assert (version.job_count, version.current_job_id, version.revision) == (2, second.job_id, 1)
    assert (request.retry_count, request.job_id, request.last_error) == (1, second.job_id, None)
    assert await desk.revisions(first.asset_id) == []
    before, after = await desk.jobs(first.asset_id)
    assert before.input_params == after.input_params
    await desk.fail(second.job_id)
    third = await desk.retry(first.asset_id)
    await desk.process(third)
    request = await desk.request(first.request_id)
    assert (request.retry_count, request.status) == (2, RequestStatus.COMPLETED)
    assert (await desk.version(first.asset_id)).job_count == 3
    statuses = [each["status"] for each in await desk.callbacks()]
    assert statuses == ["failed", "failed", "completed"]
    assert {each["request_id"] for each in await desk.callbacks()} == {str(first.request_id)}


@pytest.mark.parametrize("deed", ["retry", "overwrite"])
async def test_a_job_is_not_resumed_once_another_processes_its_version(desk: Desk, deed: str) -> None:
    first = await desk.submit(callback_url=TOLD)
    await desk.fail(first.job_id)
    second = await (desk.retry(first.asset_id) if deed == "retry" else desk.submit(overwrite=True))
    before = await desk.snapshot()
    with pytest.raises(Refused) as refused:
        await desk.bench.jobs.resume(job_of(first))
    assert refused.value.code == "job_superseded"
    assert await desk.snapshot() == before
    await desk.process(second)


async def test_the_job_of_a_deleted_version_is_not_resumed(desk: Desk) -> None:
    first = await desk.submit()
    await desk.fail(first.job_id)
    await desk.delete(first.asset_id, 0)
    with pytest.raises(Refused, match="deleted"):
        await desk.bench.jobs.resume(job_of(first))


async def test_a_late_result_of_a_cancelled_job_changes_nothing(desk: Desk) -> None:
    first = await desk.submit()
    task = await desk.bench.task_of(job_of(first), "work")
    await desk.bench.jobs.cancel(job_of(first))
    second = await desk.retry(first.asset_id)
    before = await desk.version(first.asset_id)
    await desk.bench.report(task, output={"content_hash": "f" * 64, "blob_path": "late"})
    await desk.bench.advance(job_of(first))
    assert await desk.version(first.asset_id) == before
    await desk.process(second)


# Idempotency


async def test_the_same_key_gives_the_same_receipt_and_makes_nothing(desk: Desk) -> None:
    first = await desk.submit(key="k-1")
    before = await desk.snapshot()
    assert await desk.submit(key="k-1") == first
    assert await desk.snapshot() == before
    await desk.process(first)
    before = await desk.snapshot()
    assert await desk.submit(key="k-1") == first
    assert await desk.snapshot() == before


async def test_the_same_key_overwrites_once(desk: Desk) -> None:
    await desk.process(await desk.submit(key="k-1"))
    second = await desk.submit(key="k-2", overwrite=True)
    assert await desk.submit(key="k-2", overwrite=True) == second
    assert (await desk.version(second.asset_id)).revision == 2


@pytest.mark.parametrize(
    "change", [{"label": "V2"}, {"overwrite": True}, {"platform_refs": {**REFS, "resource_id": "x"}}]
)
async def test_the_same_key_with_another_body_is_refused(desk: Desk, change: dict[str, Any]) -> None:
    await desk.process(await desk.submit(key="k-1"))
    before = await desk.snapshot()
    with pytest.raises(Refused) as refused:
        await desk.submit(key="k-1", **change)
    assert code_of(refused.value) == "idempotency_key_reused"
    assert await desk.snapshot() == before


async def test_the_same_key_of_another_partner_is_another_key(desk: Desk) -> None:
    refs = {"item_id": "i", "layer_index": 0}
    first = await desk.submit(key="k-1")
    second = await desk.submit(key="k-1", platform_id="arcgis", platform_refs=refs, file_name="arcgis/a.tif")
    assert first.request_id != second.request_id


async def test_two_with_the_same_key_at_once_make_one(desk: Desk) -> None:
    receipts = await asyncio.gather(*(desk.submit(key="k-1") for _ in range(5)))
    assert len({receipt.request_id for receipt in receipts}) == 1
    assert len(await desk.jobs(receipts[0].asset_id)) == 1


# Different assets have different locks: only the index sees both.
async def test_two_with_the_same_key_and_other_bodies_at_once_make_one_and_the_other_is_told_why(desk: Desk) -> None:
    others = [{**REFS, "resource_id": str(number)} for number in range(6)]
    made = await asyncio.gather(
        *(desk.submit(key="k-1", platform_refs=refs) for refs in others), return_exceptions=True
    )
    receipts = [each for each in made if isinstance(each, SubmissionReceipt)]
    assert len(receipts) == 1
    assert {code_of(each) for each in made if isinstance(each, BaseException)} == {"idempotency_key_reused"}


# Who may send, and what


async def test_a_partner_sees_only_its_own_platform(desk: Desk) -> None:
    receipt = await desk.submit(caller=DDH)
    before = await desk.snapshot()
    with pytest.raises(NotFound, match="no platform ddh"):
        await desk.submit("V2", caller=ARCGIS)
    with pytest.raises(NotFound, match="no platform nobody"):
        await desk.submit(platform_id="nobody")
    desk.caller = ARCGIS
    for deed in (desk.retry, desk.reprocess, desk.approve, desk.reject, desk.revoke, desk.unpublish):
        with pytest.raises(NotFound, match=f"no asset {receipt.asset_id}"):
            await deed(receipt.asset_id)
    desk.caller = RITA
    assert await desk.snapshot() == before


async def test_an_inactive_platform_takes_no_new_submissions_but_its_assets_can_be_decided_on(desk: Desk) -> None:
    receipt = await desk.submit(key="k-1")
    await desk.execute("UPDATE dagapp.platforms SET is_active = false WHERE platform_id = 'ddh'")
    before = await desk.snapshot()
    for more in ({}, {"label": "V2"}, {"overwrite": True}, {"platform_refs": {**REFS, "resource_id": "x"}}):
        with pytest.raises(Refused) as refused:
            await desk.submit(**more)
        assert code_of(refused.value) == "platform_inactive"
    assert await desk.submit(key="k-1") == receipt, "what was taken before was taken"
    assert await desk.snapshot() == before
    await desk.process(receipt)
    await desk.approve(receipt.asset_id)


@pytest.mark.parametrize(
    ("refs", "named"),
    [
        ({"dataset_id": "d"}, "resource_id"),
        ({**REFS, "colour": "red"}, "colour"),
        ({**REFS, "version_id": "V1"}, "version_id"),
    ],
)
async def test_refs_that_are_missing_or_unknown_are_named_and_nothing_is_made(
    desk: Desk, refs: dict[str, Any], named: str
) -> None:
    before = await desk.snapshot()
    with pytest.raises(InvalidInput, match=named):
        await desk.submit(platform_refs=refs)
    assert await desk.snapshot() == before


async def test_optional_refs_are_kept_and_are_no_part_of_the_identity(desk: Desk) -> None:
    await desk.execute("UPDATE dagapp.platforms SET optional_refs = '{theme}' WHERE platform_id = 'ddh'")
    first = await desk.submit("V1", platform_refs={**REFS, "theme": "relief"})
    await desk.process(first)
    await desk.approve(first.asset_id)
    second = await desk.submit("V2", platform_refs={**REFS, "theme": "water"})
    assert second.asset_id == first.asset_id == asset_id_of("ddh", REFS)
    assert (await desk.asset(first.asset_id)).platform_refs == {**REFS, "theme": "relief"}, "they are immutable"


@pytest.mark.parametrize("state", ["live", "unpublished"])
async def test_an_asset_stays_a_raster_or_a_vector(desk: Desk, state: str) -> None:
    asset_id = await desk.approved()
    if state == "unpublished":
        await desk.unpublish(asset_id)
    before = await desk.snapshot()
    with pytest.raises(Refused) as refused:
        await desk.submit("V2", data_type="vector")
    assert code_of(refused.value) == "data_type_differs"
    assert await desk.snapshot() == before


# Names


async def test_names_of_outputs_do_not_collide_when_the_beginnings_of_ids_do(desk: Desk) -> None:
    asset_id = asset_id_of("ddh", REFS)
    for length in (8, 12):
        await desk.execute(
            OTHER_ASSET,
            asset_id[:length] + "e" * (32 - length),
            asset_id[:length],
        )
    receipt = await desk.submit()
    assert (await desk.asset(asset_id)).short_id == asset_id[:16]
    (job,) = await desk.jobs(asset_id)
    assert job.input_params["blob_prefix"] == f"ddh/0038272_dem/{asset_id[:16]}/v0/r1"
    await desk.process(receipt)
    assert (await desk.submit(overwrite=True)).asset_id == asset_id
    assert (await desk.asset(asset_id)).short_id == asset_id[:16]


async def test_a_submission_that_loses_the_race_for_a_short_id_has_a_longer_one_when_it_is_repeated(desk: Desk) -> None:
    """Another asset with the same beginning is made between the look and the insertion."""
    asset_id = asset_id_of("ddh", REFS)
    async with desk.pool.connection() as other, other.transaction():
        await other.execute(
            OTHER_ASSET,
            [asset_id[:8] + "e" * 24, asset_id[:8]],
        )
        sending = asyncio.create_task(desk.submit())
        await desk.until_waiting(1)
    try:
        await sending
    except AlreadyExists:
        await desk.submit()
    assert (await desk.asset(asset_id)).short_id == asset_id[:12]


# One transaction


async def test_a_step_that_is_rolled_back_moves_neither_job_nor_version(desk: Desk) -> None:
    receipt = await desk.submit(callback_url=TOLD)
    task = await desk.bench.task_of(job_of(receipt), "work")
    await desk.bench.report(task, output={"content_hash": "a" * 64})
    before = await desk.snapshot()
    async with desk.pool.connection() as connection, connection.transaction(force_rollback=True):
        await desk.bench.steps.advance_within(connection, {job_of(receipt): Wake()})
        cursor = await connection.execute("SELECT processing_state FROM dagapp.asset_versions")
        assert await cursor.fetchall() == [{"processing_state": "completed"}]
    assert await desk.snapshot() == before
    await desk.bench.advance(job_of(receipt))
    assert (await desk.version(receipt.asset_id)).processing_state is ProcessingState.COMPLETED


async def test_a_step_whose_job_was_changed_meanwhile_moves_neither_job_nor_version(desk: Desk) -> None:
    receipt = await desk.submit()
    await desk.bench.report(await desk.bench.task_of(job_of(receipt), "work"), output={"content_hash": "a" * 64})
    async with desk.pool.connection() as holding, holding.transaction():
        await holding.execute("UPDATE dagapp.dag_jobs SET owner_id = 'another', owner_epoch = owner_epoch + 1")
        step = asyncio.create_task(desk.bench.steps.advance({job_of(receipt): Wake()}))
        await desk.until_waiting(1)
    await step
    assert (await desk.version(receipt.asset_id)).processing_state is ProcessingState.PROCESSING
    assert (await desk.request(receipt.request_id)).status is RequestStatus.PROCESSING
    assert (await desk.history(receipt.asset_id))[-1] == "processing_started"


async def test_a_submission_that_fails_at_its_job_leaves_nothing(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    before = await desk.snapshot()

    async def broken(*_: object) -> None:
        raise KeyError("the process ends here")

    monkeypatch.setattr(desk.bench.jobs, "add_within", broken)
    with pytest.raises(KeyError):
        await desk.submit()
    assert await desk.snapshot() == before


async def test_the_processing_events_come_with_the_job_at_its_time(desk: Desk) -> None:
    receipt = await desk.submit()
    await desk.process(receipt)
    job = await desk.bench.job(job_of(receipt))
    version = await desk.version(receipt.asset_id)
    completed = (await desk.events(receipt.asset_id))[-1]
    assert completed.created_at == job.ended_at == version.processing_completed_at
    assert (completed.job_id, completed.actor, completed.version_ordinal) == (job.job_id, "owner-a", 0)
