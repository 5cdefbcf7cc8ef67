"""The commands for jobs: what they send, what they print, how they end, and how they tell of problems."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.unit.cli.api import JOB_ID, FakeApi, event, job, node, page, problem, watched
from tests.unit.cli.conftest import Result, assert_told_in_two_lines, run

from graticule.cli.running import FILE, RunningInstallation, noted
from graticule.cli.server import Server
from graticule.config import Settings
from graticule.core.worker_command import missing_worker

WORKFLOW = {"workflow_id": "demo", "inputs": {"size_mb": {"type": "number"}, "name": {"type": "string"}}}
SUBMITTED = {"POST /api/v1/jobs": httpx.Response(201, json=job("pending")), "GET /api/v1/workflows/demo": WORKFLOW}
KEY = "the-admin-key"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "admin.key").write_text(f"{KEY}\n")
    return tmp_path


def graticule(home: Path, api: FakeApi, *arguments: str, **variables: str) -> Result:
    with api.served():
        result = run(*arguments, variables={"GRATICULE_HOME": str(home), **variables})
    assert KEY not in result.out + result.err
    return result


# submit


def test_inputs_are_sent_with_their_declared_types_and_the_id_is_printed(home: Path) -> None:
    api = FakeApi(SUBMITTED)
    result = graticule(home, api, "submit", "demo", "-p", "size_mb=12", "-p", "name=007", "--priority", "7")
    assert result.code == 0
    assert result.out == f"{JOB_ID}\n"
    assert api.body() == {"workflow_id": "demo", "input_params": {"size_mb": 12, "name": "007"}, "priority": 7}
    assert api.asked[-1].headers["X-API-Key"] == KEY


def test_the_command_line_wins_over_the_file_and_a_key_is_sent(home: Path) -> None:
    file = home / "inputs.json"
    file.write_text(json.dumps({"size_mb": 1, "name": "file"}))
    api = FakeApi(SUBMITTED)
    graticule(home, api, "submit", "demo", "--params-file", str(file), "-p", "name=line", "--key", "k1")
    assert api.body()["input_params"] == {"size_mb": 1, "name": "line"}
    assert api.body()["idempotency_key"] == "k1"


def test_json_is_the_job_and_nothing_else(home: Path) -> None:
    result = graticule(home, FakeApi(SUBMITTED), "submit", "demo", "--json")
    assert json.loads(result.out) == job("pending")


def test_a_submission_warns_of_queues_without_a_worker(home: Path) -> None:
    warnings = [missing_worker("gpu"), missing_worker("slow")]
    api = FakeApi({"POST /api/v1/jobs": httpx.Response(201, json=job("pending", warnings=warnings))})
    result = graticule(home, api, "submit", "demo")
    assert (result.code, result.out) == (0, f"{JOB_ID}\n")
    assert [f"! {warning}" for warning in warnings] == [line for line in result.err.splitlines() if line[0] == "!"]
    assert json.loads(graticule(home, api, "submit", "demo", "--json").out)["warnings"] == warnings


def test_a_job_that_was_there_is_told_as_such(home: Path) -> None:
    api = FakeApi({"POST /api/v1/jobs": httpx.Response(200, json=job("completed"))})
    result = graticule(home, api, "submit", "demo", "--key", "k1")
    assert result.code == 0
    assert "made this job already; it is completed" in result.err
    assert result.out == f"{JOB_ID}\n"


def test_resubmit_is_asked_for_only_when_it_is_wanted(home: Path) -> None:
    api = FakeApi({"POST /api/v1/jobs": httpx.Response(200, json=job("running"))})
    result = graticule(home, api, "submit", "demo", "--key", "k1", "--resubmit")
    assert (result.code, result.out) == (0, f"{JOB_ID}\n")
    assert dict(api.asked[-1].url.params) == {"resubmit": "true"}
    graticule(home, api, "submit", "demo", "--key", "k1")
    assert dict(api.asked[-1].url.params) == {}


@pytest.mark.parametrize(
    ("status", "told"), [("failed", True), ("cancelled", True), ("running", False), ("completed", False)]
)
def test_a_failed_job_that_was_there_is_told_with_the_way_to_let_it_go_on(home: Path, status: str, told: bool) -> None:
    api = FakeApi({"POST /api/v1/jobs": httpx.Response(200, json=job(status))})
    assert ("--resubmit" in graticule(home, api, "submit", "demo", "--key", "k1").err) is told


@pytest.mark.parametrize(("status", "code"), [("completed", 0), ("failed", 1), ("cancelled", 1)])
@pytest.mark.parametrize("command", [("submit", "demo", "--watch"), ("watch", JOB_ID)], ids=["submit", "watch"])
def test_watching_ends_with_the_status_of_the_job(home: Path, command: tuple[str, ...], status: str, code: int) -> None:
    reason = "node 'a' failed: it broke" if status == "failed" else None
    api = watched(job(status, error_message=reason), event(1, "job_created"), nodes=(node("a"),))
    result = graticule(home, api, *command)
    assert result.code == code, result.err
    assert f"{JOB_ID}  {status}" in result.out
    assert (reason or "") in result.out


def test_watching_with_json_prints_the_job_at_its_end_only(home: Path) -> None:
    api = watched(job("failed", error_message="x"), event(1, "job_created"))
    result = graticule(home, api, "submit", "demo", "--watch", "--json")
    assert json.loads(result.out)["status"] == "failed"
    assert result.code == 1


# the other commands


def test_jobs_are_listed_over_several_pages(home: Path) -> None:
    def listed(request: httpx.Request) -> httpx.Response:
        assert request.url.params["status"] == "failed"
        assert request.url.params["workflow_id"] == "demo"
        second = "cursor" in request.url.params
        ids = [f"job-{number}" for number in ((3, 4) if second else (1, 2))]
        failed = [job("failed", job_id=each, error_message="[red]it broke[/red]") for each in ids]
        return httpx.Response(200, json=page(*failed, following=None if second else "more"))

    api = FakeApi({"GET /api/v1/jobs": listed})
    result = graticule(home, api, "jobs", "--status", "failed", "--workflow", "demo", "--limit", "600")
    assert [line.split()[0] for line in result.out.splitlines()[1:]] == ["job-1", "job-2", "job-3", "job-4"]
    assert "[red]" in result.out
    assert [request.url.params["limit"] for request in api.asked] == ["500", "500"]
    assert json.loads(graticule(home, FakeApi({"GET /api/v1/jobs": page(job())}), "jobs", "--json").out) == [job()]


def test_jobs_are_searched_by_a_word(home: Path) -> None:
    api = FakeApi({"GET /api/v1/jobs": page()})
    result = graticule(home, api, "jobs", "--search", "01a1def4")
    assert (result.code, result.out) == (0, "")
    assert "There is no such job." in result.err
    assert [request.url.params["q"] for request in api.asked] == ["01a1def4"]


def test_no_job_at_all_is_told_with_what_to_do(home: Path) -> None:
    result = graticule(home, FakeApi({"GET /api/v1/jobs": page()}), "jobs")
    assert (result.code, result.out) == (0, "")
    assert "graticule submit demo" in result.err


def test_events_are_printed_in_order_one_line_each(home: Path) -> None:
    path = f"GET /api/v1/jobs/{JOB_ID}/events"
    first = page(
        event(1, "job_created"), event(2, "node_failed", "a", error="it\nbroke", will_retry=False), following="c"
    )
    answers: dict[str, Any] = {path: [first, page(event(3, "job_failed", error="x"))]}
    result = graticule(home, FakeApi(answers), "events", JOB_ID)
    assert [line.split()[2] for line in result.out.splitlines()] == ["job_created", "node_failed", "job_failed"]
    assert "a  it broke, for good" in result.out


def test_events_as_json_are_one_document_per_line_also_when_followed(home: Path) -> None:
    long = event(2, "node_failed", "a", error="x" * 500 + " [bold]")
    api = watched(job("failed", error_message="x"), event(1, "job_created"), long)
    result = graticule(home, api, "events", JOB_ID, "--follow", "--json")
    assert [json.loads(line) for line in result.out.splitlines()] == [event(1, "job_created"), long]


@pytest.mark.parametrize(
    ("answered", "told"),
    [
        (job("cancelled"), "is cancelled"),
        (job("completed"), "has ended already: it is completed"),
        (job("running"), "will be cancelled"),
    ],
)
def test_cancel_tells_what_became_of_the_job(home: Path, answered: dict[str, Any], told: str) -> None:
    result = graticule(home, FakeApi({f"POST /api/v1/jobs/{JOB_ID}/cancel": answered}), "cancel", JOB_ID)
    assert result.code == 0
    assert told in result.err


def test_retry_names_the_node(home: Path) -> None:
    api = FakeApi({f"POST /api/v1/jobs/{JOB_ID}/retry": job("running")})
    assert graticule(home, api, "retry", JOB_ID, "--node", "split").code == 0
    assert api.body() == {"node_id": "split"}


def test_dead_letters_are_listed_requeued_and_discarded(home: Path) -> None:
    letter = {"id": "j_a_0", "kind": "task", "queue": "q", "reason": "10 deliveries", "delivery_count": 10}
    path = "/api/v1/dead-letters"
    api = FakeApi(
        {
            f"GET {path}": page(letter),
            f"POST {path}/j_a_0/requeue": {"id": "j_a_0", "done": "requeued"},
            f"POST {path}/j_a_0/discard": {"id": "j_a_0", "done": "discarded"},
        }
    )
    assert "10 deliveries" in graticule(home, api, "dead-letters").out
    assert json.loads(graticule(home, api, "dead-letters", "list", "--json").out) == [letter]
    assert graticule(home, api, "dead-letters", "requeue", "j_a_0").code == 0
    assert graticule(home, api, "dead-letters", "discard", "j_a_0").code == 0
    assert_told_in_one_line(graticule(home, api, "dead-letters", "discard", "other"))


def test_an_id_stays_one_part_of_the_address(home: Path) -> None:
    api = FakeApi()
    graticule(home, api, "cancel", "../../bootstrap/rebuild?confirm=x")
    assert api.asked[0].url.raw_path == b"/api/v1/jobs/..%2F..%2Fbootstrap%2Frebuild%3Fconfirm%3Dx/cancel"


# problems


def assert_told_in_one_line(result: Result) -> str:
    assert result.code == 1
    (line,) = result.err.splitlines()
    assert line.startswith("✗ ")
    return line


EVERY_CALL = [
    ("submit", "demo"),
    ("jobs",),
    ("watch", JOB_ID),
    ("events", JOB_ID),
    ("events", JOB_ID, "--follow"),
    ("cancel", JOB_ID),
    ("retry", JOB_ID),
    ("dead-letters",),
]


class Everything(dict[str, Any]):
    """The same answer to everything."""

    def __init__(self, answer: Any) -> None:
        self._answer = answer

    def get(self, _: str, __: Any = None) -> Any:
        return self._answer


@pytest.mark.parametrize("command", EVERY_CALL, ids=" ".join)
def test_a_problem_is_told_with_its_hint_and_without_a_traceback(home: Path, command: tuple[str, ...]) -> None:
    api = FakeApi(Everything(problem(409, "It is [red]so[/red].", hint="Do otherwise.")))
    told = assert_told_in_two_lines(graticule(home, api, *command))
    assert told == ("✗ It is [red]so[/red].", "  Do otherwise.")


@pytest.mark.parametrize("command", EVERY_CALL, ids=" ".join)
def test_a_server_that_is_away_is_told_with_the_way_to_start_it(
    home: Path, command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graticule.client.event_stream.PATIENCE_SECONDS", 0)
    message, hint = assert_told_in_two_lines(
        graticule(home, FakeApi(Everything(httpx.ConnectError("refused"))), *command)
    )
    assert "Nothing answers at http://127.0.0.1:8001." in message
    assert "graticule up" in hint


def test_every_fault_of_a_request_is_told(home: Path) -> None:
    faults = [{"loc": ["body", "priority"], "message": "too large", "type": "x"}]
    api = FakeApi({"POST /api/v1/jobs": problem(422, "The request is not valid.", errors=faults)})
    assert "body.priority: too large" in graticule(home, api, "submit", "demo").err


def test_a_wrong_key_is_told_with_where_the_key_comes_from(home: Path) -> None:
    api = FakeApi(Everything(problem(401, "The admin key is not the right one.", hint="Send it in the header.")))
    _, hint = assert_told_in_two_lines(graticule(home, api, "jobs"))
    assert "GRATICULE_ADMIN_KEY" in hint


@pytest.mark.parametrize("body", [b"<html>", b"[]", b"{}", b"\xff"])
def test_an_answer_of_another_program_is_told_as_such(home: Path, body: bytes) -> None:
    message, _ = assert_told_in_two_lines(
        graticule(home, FakeApi(Everything(httpx.Response(502, content=body))), "jobs")
    )
    assert "answered with 502" in message


# which server, which key


def located(home: Path, address: str | None = None, **settings: Any) -> Server:
    return Server.locate(Settings(home=home, **settings), address)


def test_the_address_is_the_given_one_else_the_noted_one_else_the_usual_one(home: Path) -> None:
    assert located(home).address == "http://127.0.0.1:8001"
    with noted(home, RunningInstallation(1, "http://g", "http://127.0.0.1:9001", [])):
        assert located(home).address == "http://127.0.0.1:9001"
        assert located(home, "https://maps.example.org/").address == "https://maps.example.org"
    assert not (home / FILE).exists()
    assert located(home).address == "http://127.0.0.1:8001"


def test_the_address_can_come_from_the_environment(home: Path) -> None:
    api = FakeApi({"GET /api/v1/jobs": page()})
    graticule(home, api, "jobs", GRATICULE_API_URL="http://there:1234")
    graticule(home, api, "jobs", "--server", "http://elsewhere:1", GRATICULE_API_URL="http://there:1234")
    assert [request.url.netloc for request in api.asked] == [b"there:1234", b"elsewhere:1"]


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"process_id": 1}', '{"process_id": "x"'])
def test_a_note_that_cannot_be_read_does_not_count(home: Path, content: str) -> None:
    (home / FILE).write_text(content)
    assert located(home).address == "http://127.0.0.1:8001"


def test_the_note_of_a_killed_program_does_not_count(home: Path) -> None:
    nobody = int(Path("/proc/sys/kernel/pid_max").read_text()) + 1
    with noted(home, RunningInstallation(nobody, "http://g", "http://127.0.0.1:9001", [])):
        assert located(home).address == "http://127.0.0.1:8001"


def test_the_key_is_the_one_that_is_set_else_that_of_the_data_folder_else_none(home: Path) -> None:
    assert located(home, admin_key="set").key == "set"
    assert located(home).key == KEY
    (home / "admin.key").unlink()
    assert located(home).key is None
    assert KEY not in repr(located(home, admin_key=KEY))


@pytest.mark.parametrize("address", ["127.0.0.1:8001", "ftp://x", "nonsense"])
def test_an_address_that_is_none_is_refused(home: Path, address: str) -> None:
    assert_told_in_two_lines(graticule(home, FakeApi(), "jobs", "--server", address))
