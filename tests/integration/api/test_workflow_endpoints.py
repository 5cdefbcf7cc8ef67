"""The workflows over HTTP: what is in use, what is wrong, and reading the files anew."""

import httpx
import pytest
from tests.integration.api.running import RunningApi
from tests.integration.api.stored import YAML, graph
from tests.integration.api.test_bootstrap_access import problem_of

WORKFLOWS = "/api/v1/workflows"
BAD = "workflow_id: bad\nname: Bad\nversion: 1\nnodes:\n  start: {type: start, next: nowhere}\n"


async def test_the_shipped_workflows_are_listed(admin_client: httpx.AsyncClient) -> None:
    found = (await admin_client.get(WORKFLOWS)).json()
    listed = {item["workflow_id"]: item for item in found["items"]}
    assert "echo_test" in listed
    assert found["next"] is None
    assert [problem for problem in found["problems"] if problem["severity"] == "error"] == []
    assert set(listed["echo_test"]) == {
        "workflow_id",
        "name",
        "version",
        "description",
        "inputs",
        "workflow_hash",
        "file",
        "source",
        "announced_by",
        "announced_at",
        "reloaded_by",
    }
    assert listed["echo_test"]["source"] == "shipped"
    assert listed["fan_out_test"]["inputs"]["items"]["type"] == "array"
    assert listed["echo_test"]["file"].endswith("echo_test.yaml")


async def test_one_workflow_has_its_graph_and_its_diagram(admin_client: httpx.AsyncClient) -> None:
    found = (await admin_client.get(f"{WORKFLOWS}/echo_test")).json()
    assert "echo_handler" in found["graph"]["nodes"]
    diagram = await admin_client.get(f"{WORKFLOWS}/echo_test", params={"format": "mermaid"})
    assert diagram.headers["content-type"].startswith("text/plain")
    assert "echo_handler" in diagram.text
    problem_of(await admin_client.get(f"{WORKFLOWS}/echo_test", params={"format": "png"}), 422, "invalid_input")
    unknown = problem_of(await admin_client.get(f"{WORKFLOWS}/echo_tset"), 404, "not_found")
    assert "echo_test" in unknown["hint"]


async def test_a_text_is_compiled_and_nothing_is_kept(admin_client: httpx.AsyncClient) -> None:
    answer = await admin_client.post(f"{WORKFLOWS}/validate", content=YAML)
    assert answer.status_code == 200, answer.text
    assert answer.json()["valid"]
    assert answer.json()["graph"]["nodes"].keys() == graph().nodes.keys()
    problem_of(await admin_client.get(f"{WORKFLOWS}/flow"), 404, "not_found")


async def test_all_that_is_wrong_with_a_text_is_told_with_its_lines(admin_client: httpx.AsyncClient) -> None:
    found = (await admin_client.post(f"{WORKFLOWS}/validate", content=BAD)).json()
    assert (found["valid"], found["graph"]) == (False, None)
    assert len(found["problems"]) >= 2
    assert 5 in [problem["line"] for problem in found["problems"]]
    assert "start" in [problem["node"] for problem in found["problems"]]


@pytest.mark.parametrize("body", [b"", b": : :", b"[]", b"&a [*a]", b"a: !!python/object:os.system {}"])
async def test_what_is_no_workflow_is_told_so(admin_client: httpx.AsyncClient, body: bytes) -> None:
    answer = await admin_client.post(f"{WORKFLOWS}/validate", content=body)
    assert answer.status_code == 200, answer.text
    assert not answer.json()["valid"]
    assert answer.json()["problems"]


async def test_a_text_that_is_not_utf8_is_refused(admin_client: httpx.AsyncClient) -> None:
    problem_of(await admin_client.post(f"{WORKFLOWS}/validate", content=b"\xff"), 422, "invalid_input")


async def test_reading_anew_takes_new_files_and_reports_bad_ones(api: RunningApi) -> None:
    folder = api.home / "workflows"
    (folder / "flow.yaml").write_text(YAML)
    (folder / "bad.yaml").write_text(BAD)
    problem_of(await api.client.post("/api/v1/jobs", json={"workflow_id": "flow"}), 404, "not_found")
    answer = await api.client.post(f"{WORKFLOWS}/reload")
    assert answer.status_code == 200, answer.text
    assert {"flow", "echo_test"} <= {item["workflow_id"] for item in answer.json()["items"]}
    assert any("bad.yaml" in problem["file"] for problem in answer.json()["problems"])
    job_id = await api.submit("flow")
    (folder / "flow.yaml").write_text(YAML.replace("aa:", "changed:").replace("on_true: aa", "on_true: changed"))
    await api.client.post(f"{WORKFLOWS}/reload")
    assert "changed" in (await api.get(f"{WORKFLOWS}/flow"))["graph"]["nodes"]
    assert "changed" not in (await api.get(f"/api/v1/jobs/{job_id}/graph"))["nodes"]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/api/v1/jobs", {"workflow_id": "bad"}),
        ("POST", "/api/jobs/submit/bad", {}),
        ("GET", f"{WORKFLOWS}/bad", None),
    ],
)
async def test_a_workflow_whose_file_is_broken_is_told_with_the_file_and_the_reason(
    api: RunningApi, method: str, path: str, body: dict[str, str] | None
) -> None:
    file = api.home / "workflows" / "flows.yaml"
    file.write_text(BAD)
    problems = (await api.client.post(f"{WORKFLOWS}/reload")).json()["problems"]
    first = next(problem for problem in problems if problem["file"] == str(file))
    answer = await api.client.request(method, path, json=body)
    assert answer.status_code == 404
    found = answer.json()  # operators are told where the file is, as they are by the list
    assert found["code"] == "not_found"
    assert f"{file}:{first['line']}" in found["detail"]
    assert first["message"] in found["detail"]
    assert f"graticule workflow validate {file}" in found["hint"]


async def test_a_submission_names_the_queues_without_a_worker(api: RunningApi) -> None:
    answer = await api.client.post("/api/v1/jobs", json={"workflow_id": "echo_test"})
    assert answer.status_code == 201, answer.text
    (warning,) = answer.json()["warnings"]
    assert "graticule worker --queues functionapp-tasks" in warning
