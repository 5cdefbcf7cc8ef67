"""What workers report by HTTP: who may, what counts, and what does not."""

import asyncio
import json
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.conftest import TestDatabase
from tests.integration.api.conftest import StartApi
from tests.integration.api.running import KEY, TOKEN
from tests.integration.api.stored import add_job
from tests.integration.api.test_bootstrap_access import problem_of
from tests.integration.repositories import rows

from graticule.core.channels import owner_channel
from graticule.core.models import Task
from graticule.core.states import MessageStatus, ResultStatus
from graticule.repositories.checkpoints import CheckpointRepository
from graticule.repositories.database import Connection
from graticule.repositories.results import ResultRepository
from graticule.repositories.tasks import TaskRepository
from graticule.storage.local import LocalStorage

CALLBACKS = "/api/v1/callbacks"
HELD = {"task_id": "job_node_0", "worker_id": "worker-1", "delivery_count": 1}
DONE = {**HELD, "status": "completed", "output": {"answer": 42}}


@pytest.fixture
async def worker(admin_client: httpx.AsyncClient) -> httpx.AsyncClient:
    del admin_client.headers["X-API-Key"]
    admin_client.headers["Authorization"] = f"Bearer {TOKEN}"
    return admin_client


async def add_task(connection: Connection, **changes: Any) -> None:
    """Add a task that worker-1 holds in its first delivery."""
    lease = {"status": MessageStatus.LEASED, "leased_by": "worker-1", "lease_expires_at": rows.LATER}
    await add_job(connection, "job", owner_id=rows.OWNER, owner_epoch=1)
    await TaskRepository(connection).insert(rows.task(**{**lease, "delivery_count": 1, **changes}))


NOT_LEASED: dict[str, Any] = {"leased_by": None, "lease_expires_at": None}


async def receipt(client: httpx.AsyncClient, report: dict[str, Any], kind: str = "task-result") -> tuple[bool, str]:
    answer = await client.post(f"{CALLBACKS}/{kind}", json=report)
    assert answer.status_code == 200, answer.text
    return answer.json()["accepted"], answer.json()["task"]


async def refusal(client: httpx.AsyncClient, report: dict[str, Any]) -> str:
    return str(problem_of(await client.post(f"{CALLBACKS}/task-result", json=report), 409, "conflict")["detail"])


async def stored(connection: Connection) -> tuple[Task, list[Any]]:
    task = await TaskRepository(connection).get(task_id="job_node_0")
    return task, await ResultRepository(connection).unprocessed("job")  # type: ignore[arg-type]


async def test_a_result_counts_once_and_its_owner_is_told(worker: httpx.AsyncClient, connection: Connection) -> None:
    await add_task(connection)
    await connection.execute(f"LISTEN {owner_channel(rows.OWNER)}".encode())
    assert await receipt(worker, {**DONE, "metrics": {"seconds": 1.5}, "reported_at": "2026-01-01T00:00:00Z"}) == (
        True,
        "done",
    )
    assert await receipt(worker, DONE) == (False, "done")
    assert "another result" in await refusal(worker, {**DONE, "status": "failed", "error_message": "late"})
    task, (result,) = await stored(connection)
    assert (task.status, task.leased_by) == (MessageStatus.DONE, None)
    assert (result.status, result.output, result.worker_id) == (ResultStatus.COMPLETED, {"answer": 42}, "worker-1")
    assert (result.node_id, result.metrics) == ("node", {"seconds": 1.5})
    heard = [notify.payload async for notify in connection.notifies(timeout=5, stop_after=1)]
    assert heard == ["job"]


async def test_of_two_reports_at_once_one_counts(worker: httpx.AsyncClient, connection: Connection) -> None:
    await add_task(connection)
    receipts = await asyncio.gather(*(receipt(worker, DONE) for _ in range(8)))
    assert sorted(receipts) == [(False, "done")] * 7 + [(True, "done")]
    assert len((await stored(connection))[1]) == 1


@pytest.mark.parametrize(
    "report", [{"worker_id": "worker-2"}, {"worker_id": None}, {"delivery_count": 2}, {"delivery_count": 0}]
)
async def test_a_report_of_a_lease_that_was_lost_changes_nothing(
    worker: httpx.AsyncClient, connection: Connection, report: dict[str, Any]
) -> None:
    await add_task(connection)
    for body in (DONE, {**HELD, "status": "running"}):
        assert "lease has ended" in await refusal(worker, {**body, **report})
    for kind, body in (
        ("task-progress", {**HELD, "progress": {"done": 1}}),
        ("checkpoint", {**HELD, "phase": "one"}),
    ):
        assert await receipt(worker, {**body, **report}, kind) == (False, "lost")
    task, results = await stored(connection)
    assert (task.status, results) == (MessageStatus.LEASED, [])
    assert await CheckpointRepository(connection).find(job_id="job", node_id="node") is None


async def test_a_result_does_not_count_when_the_lease_ran_out(
    worker: httpx.AsyncClient, connection: Connection
) -> None:
    await add_task(connection, status=MessageStatus.QUEUED, **NOT_LEASED)
    assert "waits for a worker" in await refusal(worker, DONE)
    assert (await stored(connection))[1] == []


async def test_of_a_task_that_a_broker_carries_only_who_was_given_its_lease_can_report(
    worker: httpx.AsyncClient, connection: Connection
) -> None:
    await add_task(connection, status=MessageStatus.QUEUED, sent_at=rows.NOW, **NOT_LEASED)
    assert "waits for a worker" in await refusal(worker, DONE)
    assert await receipt(worker, {**HELD, "phase": "one"}, "checkpoint") == (False, "lost")
    assert (await stored(connection))[1] == []


async def test_a_worker_is_told_that_its_task_was_withdrawn_and_its_late_result_is_recorded(
    worker: httpx.AsyncClient, connection: Connection
) -> None:
    await add_task(connection, status=MessageStatus.WITHDRAWN, **NOT_LEASED)
    assert await receipt(worker, {**HELD, "progress": {}}, "task-progress") == (False, "withdrawn")
    assert await receipt(worker, {**HELD, "phase": "one"}, "checkpoint") == (False, "withdrawn")
    for other in ({"worker_id": None}, {"delivery_count": None}, {"delivery_count": 2}):
        assert "was withdrawn" in await refusal(worker, {**DONE, **other})
    assert (await stored(connection))[1] == []
    assert await receipt(worker, {**DONE, "status": "cancelled", "output": None}) == (True, "done")
    assert await receipt(worker, {**DONE, "status": "cancelled", "output": None}) == (False, "done")
    assert "another result" in await refusal(worker, DONE)
    task, (result,) = await stored(connection)
    assert (task.status, result.status) == (MessageStatus.DONE, ResultStatus.CANCELLED)


EARLIER = {"task_id": "job_node_0", "worker_id": "worker-xyz"}


async def test_the_first_report_of_an_earlier_worker_takes_the_lease_and_counts(
    worker: httpx.AsyncClient, connection: Connection
) -> None:
    await add_task(connection, status=MessageStatus.QUEUED, delivery_count=0, **NOT_LEASED)
    body = {**EARLIER, "status": "completed", "output": {"echoed_params": {"message": "hello"}}}
    assert await receipt(worker, body) == (True, "done")
    assert await receipt(worker, body) == (False, "done")  # its answer was lost, and it reports again
    assert "another result of this attempt" in await refusal(worker, {**body, "worker_id": "worker-abc"})
    task, (result,) = await stored(connection)
    assert (task.status, task.delivery_count, result.worker_id) == (MessageStatus.DONE, 1, "worker-xyz")
    assert result.output == {"echoed_params": {"message": "hello"}}


DIFFERENT: list[dict[str, Any]] = [
    {"output": {"answer": 43}},
    {"output": None},
    {"status": "failed", "error_message": "no CRS"},
    {"status": "cancelled"},
    {"error_message": "well, almost"},
]


@pytest.mark.parametrize("size", [1, 300_000], ids=["in its row", "in the storage"])
async def test_another_result_of_the_same_worker_is_refused_and_the_same_one_accepted_again(
    worker: httpx.AsyncClient, connection: Connection, size: int
) -> None:
    await add_task(connection, status=MessageStatus.QUEUED, delivery_count=0, **NOT_LEASED)
    body = {**EARLIER, "status": "completed", "output": {"text": "x" * size, "answer": 42}}
    assert await receipt(worker, body) == (True, "done")
    before = await stored(connection)
    for different in DIFFERENT:
        assert "another result of this attempt" in await refusal(worker, {**body, **different})
    same = {**EARLIER, "output": {"answer": 42, "text": "x" * size}, "success": True, "metrics": {"seconds": 2}}
    assert await receipt(worker, same) == (False, "done")
    assert await stored(connection) == before


async def test_a_sign_of_life_that_arrives_after_the_result_is_no_other_result(
    worker: httpx.AsyncClient, connection: Connection
) -> None:
    await add_task(connection, status=MessageStatus.QUEUED, delivery_count=0, **NOT_LEASED)
    assert await receipt(worker, {**EARLIER, "success": True, "output": {}}) == (True, "done")
    before = await stored(connection)
    running = {**EARLIER, "status": "running", "progress": {"percent": 99}}
    assert await receipt(worker, running) == (False, "done")
    assert "another result" in await refusal(worker, {**running, "worker_id": "worker-abc"})
    assert await stored(connection) == before


async def test_the_result_of_an_attempt_may_be_repeated_when_the_next_has_begun(
    worker: httpx.AsyncClient, connection: Connection
) -> None:
    await add_task(connection)
    failed = {**HELD, "success": False, "error_message": "no luck"}
    assert await receipt(worker, failed) == (True, "done")
    await connection.execute("UPDATE dagapp.dag_task_results SET processed_at = now()")
    assert await receipt(worker, failed) == (False, "done")
    assert "another result" in await refusal(worker, {**failed, "error_message": "still none"})


async def test_a_result_that_came_in_a_batch_is_repeated_by_its_worker_alone(
    worker: httpx.AsyncClient, connection: Connection
) -> None:
    await add_task(connection)
    results = [{"task_id": "job_node_0", "delivery_count": 1, "status": "completed"}]
    await worker.post(f"{CALLBACKS}/task-results", json={"worker_id": "worker-1", "results": results})
    assert await receipt(worker, {**HELD, "status": "completed"}) == (False, "done")
    assert "another result" in await refusal(worker, {**HELD, "worker_id": "worker-2", "status": "completed"})


async def test_of_many_earlier_workers_one_reports(worker: httpx.AsyncClient, connection: Connection) -> None:
    await add_task(connection, status=MessageStatus.QUEUED, delivery_count=0, **NOT_LEASED)
    bodies = [{**EARLIER, "worker_id": f"worker-{number}", "status": "completed"} for number in range(8)]
    answers = await asyncio.gather(*(worker.post(f"{CALLBACKS}/task-result", json=body) for body in bodies))
    assert sorted(answer.status_code for answer in answers) == [200] + [409] * 7
    assert len((await stored(connection))[1]) == 1


async def test_an_earlier_worker_that_reports_running_holds_the_task_as_long_as_it_may_take(
    worker: httpx.AsyncClient, connection: Connection
) -> None:
    await add_task(connection, status=MessageStatus.QUEUED, delivery_count=0, timeout_seconds=1800, **NOT_LEASED)
    before = await moment(connection)
    assert await receipt(worker, {**EARLIER, "status": "running"}) == (True, "held")
    task, _ = await stored(connection)
    assert (task.status, task.leased_by) == (MessageStatus.LEASED, "worker-xyz")
    assert task.lease_expires_at is not None
    assert (task.lease_expires_at - before).total_seconds() >= 1800
    assert "lease has ended" in await refusal(worker, {**EARLIER, "worker_id": "worker-abc", "status": "running"})
    assert await receipt(worker, {**EARLIER, "success": True, "output": {}}) == (True, "done")


async def test_a_task_of_our_worker_is_not_taken_by_an_earlier_one(
    worker: httpx.AsyncClient, connection: Connection
) -> None:
    await add_task(connection)
    assert "another worker holds" in await refusal(worker, {**EARLIER, "status": "completed"})
    assert await receipt(worker, DONE) == (True, "done")


async def moment(connection: Connection) -> datetime:
    (row,) = await (await connection.execute("SELECT now() AS now")).fetchall()
    return row["now"]  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("told", "status", "reason"),
    [
        ({"success": True, "output": {"crs": "EPSG:4326"}}, ResultStatus.COMPLETED, None),
        ({"success": True, "output": {}, "error_message": "of no weight"}, ResultStatus.COMPLETED, None),
        ({"success": False, "output": {}, "error_message": "no CRS"}, ResultStatus.FAILED, "no CRS"),
        ({"success": False}, ResultStatus.FAILED, "the handler gave no reason"),
    ],
)
async def test_a_result_may_be_told_by_success(
    worker: httpx.AsyncClient, connection: Connection, told: dict[str, Any], status: ResultStatus, reason: str | None
) -> None:
    await add_task(connection)
    assert await receipt(worker, {**HELD, **told}) == (True, "done")
    (result,) = (await stored(connection))[1]
    assert (result.status, result.error_message) == (status, reason)


async def test_results_of_several_tasks_come_together_and_each_counts_by_itself(
    worker: httpx.AsyncClient, connection: Connection, tmp_path: Path
) -> None:
    await add_task(connection)
    tasks = TaskRepository(connection)
    lease: dict[str, Any] = {"status": MessageStatus.LEASED, "lease_expires_at": rows.LATER, "delivery_count": 1}
    for name, changes in {
        "failed": {"leased_by": "worker-1", **lease},
        "large": {"leased_by": "worker-1", "node_id": "split__0", **lease},
        "lost": {"leased_by": "worker-2", **lease},
        "late": {"status": MessageStatus.WITHDRAWN, "delivery_count": 1},
    }.items():
        await tasks.insert(rows.task(name, **changes))
    large = {"text": "x" * 300_000}
    told: dict[str, dict[str, Any]] = {
        "job_node_0": {"output": {"answer": 42}, "metrics": {"seconds": 1.5}},
        "failed": {"status": "failed", "error_message": "no\0", "retryable": False},
        "large": {"output": large},
        "lost": {"output": large},
        "late": {"status": "cancelled"},
        "unknown": {},
    }
    results = [{"task_id": name, "delivery_count": 1, "status": "completed", **each} for name, each in told.items()]
    batch = {"worker_id": "worker-1", "results": results}
    answer = await worker.post(f"{CALLBACKS}/task-results", json=batch)
    assert answer.status_code == 200, answer.text
    done = {"accepted": True, "task": "done"}
    assert answer.json()["receipts"] == [
        {"task_id": name, **({"accepted": False, "task": "lost"} if name in ("lost", "unknown") else done)}
        for name in told
    ]
    found = {result.task_id: result for result in (await stored(connection))[1]}
    assert found.keys() == {"job_node_0", "failed", "large", "late"}
    assert (found["job_node_0"].output, found["job_node_0"].metrics) == ({"answer": 42}, {"seconds": 1.5})
    assert (found["failed"].error_message, found["failed"].retryable) == ("no\N{REPLACEMENT CHARACTER}", False)
    path = found["large"].output_ref
    assert path is not None
    storage = LocalStorage(tmp_path / "storage")
    assert json.loads(await storage.get(path)) == large
    assert [blob.path async for blob in storage.list("outputs/job/")] == [path]  # of what did not count, nothing stays
    again = (await worker.post(f"{CALLBACKS}/task-results", json=batch)).json()["receipts"]
    assert [(each["accepted"], each["task"]) for each in again[:2]] == [(False, "done")] * 2
    assert len((await stored(connection))[1]) == 4


async def test_a_batch_that_is_no_batch_of_results_is_refused(worker: httpx.AsyncClient) -> None:
    done = {"task_id": "t", "delivery_count": 1, "status": "completed"}
    many = [{**done, "task_id": f"t{number}"} for number in range(501)]
    for results in ([], [{"status": "completed"}], [{**done, "status": "running"}], [done] * 2, many):
        answer = await worker.post(f"{CALLBACKS}/task-results", json={"worker_id": "w", "results": results})
        assert answer.status_code == 422, answer.text


async def test_progress_and_signs_of_life_leave_the_task_with_its_worker(
    worker: httpx.AsyncClient, connection: Connection
) -> None:
    await add_task(connection)
    progress = {"done": 3, "total": 10, "message": "halfway"}
    assert await receipt(worker, {**HELD, "progress": progress}, "task-progress") == (True, "held")
    assert await receipt(worker, {**HELD, "status": "running"}) == (True, "held")
    task, results = await stored(connection)
    assert task.status is MessageStatus.LEASED
    assert [(result.status, result.progress) for result in results] == [
        (ResultStatus.RUNNING, progress),
        (ResultStatus.RUNNING, None),
    ]


async def test_a_checkpoint_is_kept_and_read_back_by_the_next_attempt(
    worker: httpx.AsyncClient, connection: Connection
) -> None:
    await add_task(connection)
    assert (await worker.get(f"{CALLBACKS}/checkpoint", params={"task_id": "job_node_0"})).json() is None
    for phase in ("one", "two"):
        saved = {**HELD, "phase": phase, "data": {"at": phase}, "artifacts": ["a/b.tif"]}
        assert await receipt(worker, saved, "checkpoint") == (True, "held")
    await TaskRepository(connection).insert(rows.task("job_node_1", retry_count=1))
    found = (await worker.get(f"{CALLBACKS}/checkpoint", params={"task_id": "job_node_1"})).json()
    assert (found["phase"], found["data"], found["artifacts"]) == ("two", {"at": "two"}, ["a/b.tif"])
    assert [result.checkpoint for result in (await stored(connection))[1]] == ["one", "two"]


async def test_a_large_output_goes_to_the_storage(
    worker: httpx.AsyncClient, connection: Connection, tmp_path: Any
) -> None:
    await add_task(connection)
    output = {"text": "x" * (1024 * 1024)}
    assert await receipt(worker, {**DONE, "output": output}) == (True, "done")
    assert await receipt(worker, {**DONE, "output": output}) == (False, "done")
    (result,) = (await stored(connection))[1]
    assert result.output is None
    files = [file for file in (tmp_path / "storage").rglob("*") if file.is_file()]
    assert [str(file.relative_to(tmp_path / "storage")) for file in files] == [result.output_ref]
    assert len(files[0].read_bytes()) > 1024 * 1024


async def test_a_failure_keeps_its_reason_and_whether_to_try_again(
    worker: httpx.AsyncClient, connection: Connection
) -> None:
    await add_task(connection)
    failed = {**HELD, "status": "failed"}
    assert await receipt(worker, {**failed, "error_message": "bin\0ary", "retryable": False}) == (True, "done")
    (result,) = (await stored(connection))[1]
    assert (result.error_message, result.retryable) == ("bin\N{REPLACEMENT CHARACTER}ary", False)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"task_id": "unknown", "status": "completed"}, 404),
        ({"status": "completed"}, 422),
        ({**DONE, "status": "finished"}, 422),
        ({**DONE, "success": True}, 422),
        ({**HELD, "success": "yes"}, 422),
        ({**DONE, "output": "nul \0"}, 422),
        ({**DONE, "output_ref": "../../etc/passwd"}, 422),
        ({**DONE, "output_ref": "outputs/job/missing.json"}, 422),
        ({**DONE, "metrics": {"x": "x" * 64 * 1024}}, 422),
        ({**DONE, "progress": {"x": "x" * 16 * 1024}}, 422),
        ({**DONE, "status": "running", "progress": {"x": "x" * 16 * 1024}}, 422),
    ],
)
async def test_what_is_no_result_is_refused(
    worker: httpx.AsyncClient, connection: Connection, body: dict[str, Any], status: int
) -> None:
    await add_task(connection)
    code = "not_found" if status == 404 else "invalid_input"
    problem_of(await worker.post(f"{CALLBACKS}/task-result", json=body), status, code)
    assert (await stored(connection))[1] == []


@pytest.mark.parametrize(
    ("kind", "name", "limit"), [("task-progress", "progress", 16 * 1024), ("checkpoint", "data", 1024 * 1024)]
)
async def test_what_is_kept_of_a_running_task_is_bounded(
    worker: httpx.AsyncClient, connection: Connection, kind: str, name: str, limit: int
) -> None:
    await add_task(connection)
    most = limit - len('{"x":""}')
    body: dict[str, Any] = {**HELD, "phase": "one", name: {"x": "x" * most}}
    assert await receipt(worker, body, kind) == (True, "held")
    refused = await worker.post(f"{CALLBACKS}/{kind}", json={**body, name: {"x": "x" * (most + 1)}})
    assert f"at most {limit:,} are allowed" in problem_of(refused, 422, "invalid_input")["detail"]


@pytest.mark.parametrize("path", ["outputs/another/x.json", "outputs/job/../another/x.json", "outputs/jobs.json"])
async def test_an_output_of_another_job_is_not_taken(
    worker: httpx.AsyncClient, connection: Connection, tmp_path: Any, path: str
) -> None:
    await add_task(connection)
    storage = LocalStorage(tmp_path / "storage")
    for stored_path in ("outputs/another/x.json", "outputs/jobs.json", "outputs/job/mine.json"):
        await storage.put(stored_path, b"1")
    refused = await worker.post(f"{CALLBACKS}/task-result", json={**DONE, "output": None, "output_ref": path})
    problem_of(refused, 422, "invalid_input")
    assert await receipt(worker, {**DONE, "output": None, "output_ref": "outputs/job/mine.json"}) == (True, "done")


ENDPOINTS = [
    ("POST", "task-result"),
    ("POST", "task-progress"),
    ("POST", "checkpoint"),
    ("GET", "checkpoint?task_id=a"),
]


@pytest.mark.parametrize("headers", [{}, {"Authorization": f"Basic {TOKEN}"}])
@pytest.mark.parametrize(("method", "path"), ENDPOINTS)
async def test_without_the_worker_token_the_answer_is_401(
    visitor: httpx.AsyncClient, method: str, path: str, headers: dict[str, str]
) -> None:
    answer = await visitor.request(method, f"{CALLBACKS}/{path}", headers=headers)
    assert "Bearer" in problem_of(answer, 401, "unauthenticated")["hint"]


@pytest.mark.parametrize(("method", "path"), ENDPOINTS)
async def test_an_admin_is_no_worker(visitor: httpx.AsyncClient, method: str, path: str) -> None:
    answer = await visitor.request(method, f"{CALLBACKS}/{path}", headers={"X-API-Key": KEY})
    assert "worker" in problem_of(answer, 403, "permission_denied")["detail"]


async def test_beside_an_api_key_the_worker_token_counts(worker: httpx.AsyncClient, connection: Connection) -> None:
    await add_task(connection)
    worker.headers["X-API-Key"] = KEY
    assert await receipt(worker, DONE) == (True, "done")


@pytest.mark.parametrize("wrong", ["wrong", KEY, TOKEN[:-1], TOKEN + "x", TOKEN.upper()])
async def test_with_a_wrong_token_the_answer_is_401(visitor: httpx.AsyncClient, wrong: str) -> None:
    headers = {"Authorization": f"Bearer {wrong}"}
    answer = await visitor.post(f"{CALLBACKS}/task-result", json=DONE, headers=headers)
    problem_of(answer, 401, "unauthenticated")
    assert TOKEN not in answer.text


@pytest.mark.parametrize("token", [None, ""])
async def test_where_no_token_is_configured_no_worker_reports(
    database: TestDatabase, start_api: StartApi, token: str | None
) -> None:
    async with start_api(database, worker_token=token) as client:
        answer = await client.post(f"{CALLBACKS}/task-result", json=DONE, headers={"Authorization": "Bearer x"})
        assert "GRATICULE_WORKER_TOKEN" in problem_of(answer, 401, "unauthenticated")["hint"]
