"""What operators do and see at the gateway: jobs, numbers, the installation."""

from pathlib import Path
from typing import Any

from pydantic import SecretStr
from tests.conftest import TestDatabase
from tests.integration.gateway.front import (
    ADMIN_KEY,
    FLAT,
    NOWHERE,
    SERVICE_KEY,
    Front,
    address,
    problem_of,
    running_front,
    settings_of,
)

from graticule.config import DatabaseUrl

ECHO = {"workflow_id": "echo_test", "input_params": {}}


async def submit(front: Front, **more: Any) -> Any:
    return await front.post("operator", "/api/gateway/submit", {**ECHO, **more}, 201)


async def test_a_job_is_submitted_and_looked_at(front: Front) -> None:
    answer = await front.ask("operator", "POST", "/api/gateway/submit", json=ECHO, headers={"Idempotency-Key": "once"})
    job = answer.json()
    assert (answer.status_code, answer.headers["location"]) == (201, f"/api/status/job/{job['job_id']}")
    again = await front.ask("operator", "POST", "/api/gateway/submit", json=ECHO, headers={"Idempotency-Key": "once"})
    assert (again.status_code, again.json()["job_id"]) == (200, job["job_id"])
    path = f"/api/status/job/{job['job_id']}"
    assert (await front.get("operator", path))["progress"]["total"] > 0
    nodes = (await front.get("operator", f"{path}/nodes"))["items"]
    assert "echo_handler" in {node["node_id"] for node in nodes}
    events = (await front.get("operator", f"{path}/events", limit=1))["items"]
    assert (events[0]["event_type"], events[0]["actor"]) == ("job_created", "operator")
    listed = await front.get("operator", "/api/status/jobs", workflow_id="echo_test")
    assert [each["job_id"] for each in listed["items"]] == [job["job_id"]]
    assert (await front.get("operator", "/api/status/stats"))["jobs"]
    for missing in ("/api/status/job/x", "/api/status/job/x/nodes", "/api/status/job/x/events"):
        problem_of(await front.ask("operator", "GET", missing), 404, "not_found")
    problem_of(await front.ask("operator", "POST", "/api/gateway/submit", json={"workflow_id": "none"}), 404)


async def test_a_job_is_submitted_and_shown_in_the_staged_form(front: Front) -> None:
    path, body = "/api/jobs/submit/process_large_raster", {"container_name": "bronze", "blob_name": "scene.tif"}
    answer = await front.ask("operator", "POST", path, json=body)
    receipt = answer.json()
    assert (answer.status_code, answer.headers["location"]) == (201, f"/api/jobs/status/{receipt['job_id']}")
    again = await front.ask("operator", "POST", path, json={**body, "overlap": 512, "tile_size": None})
    assert (again.status_code, again.json()["job_id"], again.json()["created"]) == (200, receipt["job_id"], False)
    status = await front.get("operator", receipt["status_url"])
    assert (status["job_type"], status["stage"], status["total_stages"]) == ("process_large_raster", 1, 4)
    history = await front.get("operator", f"/api/status/job/{receipt['job_id']}/events", limit=1)
    assert history["items"][0]["actor"] == "operator"
    once = [
        await front.ask("operator", "POST", "/api/jobs/submit/echo_test", headers={"Idempotency-Key": "once"})
        for _ in range(2)
    ]
    assert [each.status_code for each in once] == [201, 200]
    assert once[0].json()["job_id"] == once[1].json()["job_id"]
    problem_of(await front.ask("operator", "POST", path, json={**body, "tile_sise": 512}), 422)
    problem_of(await front.ask("operator", "POST", "/api/jobs/submit/none", json={}), 404, "not_found")
    problem_of(await front.ask("operator", "POST", "/api/jobs/submit/%2E%2E", json={}), 422)
    problem_of(await front.ask("operator", "GET", "/api/jobs/status/none"), 404, "not_found")
    problem_of(await front.ask("operator", "GET", "/api/jobs/status/%2E%2E"), 422)


async def test_things_are_looked_up_by_any_of_their_keys(front: Front) -> None:
    receipt = await front.post(
        "partner",
        "/api/platform/submit",
        {
            "dataset_id": "1",
            "resource_id": "2",
            "version_id": "3",
            "data_type": "vector",
            "container_name": "bronze",
            "file_name": FLAT["file_name"],
        },
        202,
        **{"Idempotency-Key": "of-the-partner"},
    )
    job = await submit(front, correlation_id="together", idempotency_key="of-the-job")
    for key, value in (
        *(("request_id", receipt["request_id"]), ("asset_id", receipt["asset_id"])),
        ("idempotency_key", "of-the-partner"),
    ):
        found = await front.get("operator", "/api/status/lookup", **{key: value})
        assert [each["request_id"] for each in found["requests"]] == [receipt["request_id"]], key
        assert [each["asset_id"] for each in found["jobs"]] == [receipt["asset_id"]], key
        assert found["jobs"][0]["purpose"] == "process"
    for key, value in (("correlation_id", "together"), ("idempotency_key", "of-the-job")):
        found = await front.get("operator", "/api/status/lookup", **{key: value})
        assert ([each["job_id"] for each in found["jobs"]], found["requests"]) == ([job["job_id"]], []), key
    nothing = await front.get("operator", "/api/status/lookup", correlation_id="nobody's")
    assert nothing == {"requests": [], "jobs": []}
    for wrong in ({}, {"correlation_id": "a", "idempotency_key": "b"}, {"asset_id": "x"}, {"request_id": "x"}):
        problem_of(await front.ask("operator", "GET", "/api/status/lookup", params=wrong), 422)


async def test_a_batch_reports_of_each_item(front: Front) -> None:
    items = [
        ECHO,
        {"workflow_id": "none"},
        {"workflow": 7},
        {**ECHO, "idempotency_key": "k"},
        {**ECHO, "idempotency_key": "k"},
    ]
    report = await front.post("operator", "/api/gateway/submit/batch", {"items": items})
    assert (report["accepted"], report["refused"]) == (3, 2)
    assert [item["index"] for item in report["items"]] == [0, 1, 2, 3, 4]
    assert [item["status"] for item in report["items"]][:3] == [201, 404, 422]
    assert sorted(item["status"] for item in report["items"][3:]) == [200, 201]
    assert report["items"][1]["problem"]["code"] == "not_found"
    assert {fault["loc"][0] for fault in report["items"][2]["problem"]["errors"]} == {"workflow_id", "workflow"}
    assert len({item["job"]["job_id"] for item in report["items"] if item["job"]}) == 2
    for wrong in ([], [ECHO] * 101, "text"):
        problem_of(await front.ask("operator", "POST", "/api/gateway/submit/batch", json={"items": wrong}), 422)


async def test_a_batch_that_reaches_nobody_is_503(database: TestDatabase, tmp_path: Path) -> None:
    async with running_front(settings_of(tmp_path, orchestrator_url=address(NOWHERE)), database) as front:
        answer = await front.ask("operator", "POST", "/api/gateway/submit/batch", json={"items": [ECHO, ECHO]})
    problem_of(answer, 503, "unavailable")
    assert answer.headers["retry-after"]


async def test_active_jobs_and_recent_events_are_paged(front: Front) -> None:
    made = [(await submit(front))["job_id"] for _ in range(3)]
    front.execute("UPDATE dagapp.dag_jobs SET status = 'pending', started_at = NULL WHERE job_id = %s", made[1])
    first = await front.get("operator", "/api/admin/active-jobs", limit=2)
    rest = await front.get("operator", "/api/admin/active-jobs", limit=2, cursor=first["next"])
    assert [job["job_id"] for job in first["items"] + rest["items"]] == made[::-1]
    assert rest["next"] is None
    seen: list[int] = []
    cursor: dict[str, str] = {}
    while len(page := (await front.get("operator", "/api/admin/recent-events", limit=4, **cursor))["items"]) > 0:
        seen += [event["event_id"] for event in page]
        following = (await front.get("operator", "/api/admin/recent-events", limit=4, **cursor))["next"]
        if following is None:
            break
        cursor = {"cursor": following}
    assert seen == sorted(seen, reverse=True)
    assert len(seen) == front.execute("SELECT count(*) FROM dagapp.dag_job_events")[0][0]


async def test_the_health_of_the_installation(front: Front) -> None:
    health = await front.get("operator", "/api/admin/health")
    assert health["database"]["ok"] is True
    assert health["database"]["detail"]["role"] == "graticule_gateway"
    assert (health["status"], health["orchestrators"], health["workers"]) == ("unhealthy", [], [])
    front.execute(
        "INSERT INTO dagapp.dag_orchestrators (owner_id, hostname, process_id, program_version, lock_key)"
        " VALUES ('o', 'h', 1, '1', 1)"
    )
    health = await front.get("operator", "/api/admin/health")
    assert [each["owner_id"] for each in health["orchestrators"]] == ["o"]


async def test_the_workflows_are_listed_with_the_problems_of_files(database: TestDatabase, tmp_path: Path) -> None:
    (tmp_path / "broken.yaml").write_text("workflow: [")
    async with running_front(settings_of(tmp_path, workflows=str(tmp_path)), database) as front:
        found = await front.get("operator", "/api/admin/workflows")
        (tmp_path / "broken.yaml").write_text("workflow_id: mended\nname: M\nversion: 1\nnodes: {a: {type: start}}")
        assert found != await front.get("operator", "/api/admin/workflows"), "a file that changes is read anew"
    assert {"echo_test", "vector_ingest"} <= {each["workflow_id"] for each in found["items"]}
    assert [problem for problem in found["problems"] if problem["file"].endswith("broken.yaml")]


async def test_a_workflow_is_shown_with_the_versions_that_jobs_ran(front: Front) -> None:
    listed = {each["workflow_id"]: each for each in (await front.get("operator", "/api/admin/workflows"))["items"]}
    path = "/api/admin/workflows/echo_test"
    before = await front.get("operator", path)
    assert before["versions"] == []
    assert {name: before[name] for name in listed["echo_test"]} == listed["echo_test"]
    job = await submit(front)
    front.execute(
        "INSERT INTO dagapp.dag_workflows (workflow_hash, workflow_id, version, name, definition, created_at)"
        " VALUES (repeat('0', 64), 'echo_test', '0', 'Of old', '{\"nodes\": {}}', '2020-01-01Z'),"
        " (repeat('1', 64), 'another', '1', 'Another', '{}', now())"
    )
    versions = (await front.get("operator", path))["versions"]
    assert [each["workflow_hash"] for each in versions] == [job["workflow_hash"], "0" * 64]
    ran = await front.get("operator", f"{path}/versions/{job['workflow_hash']}")
    same = ("workflow_hash", "workflow_id", "version", "name", "graph")
    assert {name: ran[name] for name in same} == {name: before[name] for name in same}
    assert ran["created_at"] == versions[0]["created_at"]
    assert await front.get("operator", f"{path}/versions/{'0' * 64}") == {
        "workflow_hash": "0" * 64,
        "workflow_id": "echo_test",
        "version": "0",
        "name": "Of old",
        "graph": {"nodes": {}},
        "created_at": "2020-01-01T00:00:00Z",
    }
    for missing in (f"{path}/versions/{'1' * 64}", f"{path}/versions/{'2' * 64}", "/api/admin/workflows/echo_tset"):
        problem_of(await front.ask("operator", "GET", missing), 404, "not_found")
    problem_of(await front.ask("operator", "GET", f"{path}/versions/x"), 422)


async def test_no_secret_is_shown_with_the_settings(database: TestDatabase, tmp_path: Path) -> None:
    settings = settings_of(
        tmp_path,
        orchestrator_url=address("http://login:hidden-1@127.0.0.1:1/?key=hidden-2"),
        database_url=DatabaseUrl("postgresql://user:hidden-3@h/d"),
        webhook_secret=SecretStr("hidden-4" * 4),
    )
    async with running_front(settings, database) as front:
        answer = await front.ask("operator", "GET", "/api/admin/config")
    assert answer.json()["orchestrator_url"] == "http://127.0.0.1:1/"
    assert not [secret for secret in ("hidden", SERVICE_KEY, ADMIN_KEY) if secret in answer.text]


async def test_probes_need_no_credential(front: Front) -> None:
    for path in ("/api/livez", "/api/readyz", "/api/gateway/health", "/livez", "/readyz", "/health", "/"):
        assert (await front.ask(None, "GET", path)).status_code == 200, path
