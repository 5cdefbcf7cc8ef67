"""Results and checkpoints by HTTP, for a worker that is told to."""

import json
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

import httpx
import pytest
from fastapi import FastAPI, Request, Response

from graticule.core.errors import InvalidInput, Unavailable
from graticule.core.ids import JobId, NodeId, TaskId, WorkerId
from graticule.core.states import ResultStatus
from graticule.handlers import Checkpoint
from graticule.messaging.protocol import TaskMessage
from graticule.worker.callbacks.client import CallbackClient
from graticule.worker.callbacks.reports import HttpCheckpoints, HttpSink
from graticule.worker.outcome import Outcome, failed
from graticule.worker.reports import News, Report

MESSAGE = TaskMessage(TaskId("t"), JobId("j"), NodeId("n"), "echo", {}, "q", delivery_count=2)


class Receiver:
    """Stands for the orchestrator's API: it keeps what comes and answers as told."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str, dict[str, Any], str | None]] = []
        self.answer: Callable[[], Response] | None = None
        self.receipt: dict[str, Any] = {"accepted": True, "task": "done"}
        self.app = FastAPI()
        self.app.add_api_route("/api/v1/callbacks/{name}", self.take, methods=["POST", "GET"])

    async def take(self, name: str, request: Request) -> Response:
        body: dict[str, Any] = await request.json() if request.method == "POST" else dict(request.query_params)
        self.seen.append((request.method, name, body, request.headers.get("authorization")))
        if self.answer is not None:
            return self.answer()
        receipts = [{"task_id": each["task_id"], **self.receipt} for each in body.get("results", [])]
        return httpx_json({"receipts": receipts} if receipts else self.receipt)

    @property
    def results(self) -> list[dict[str, Any]]:
        """The results that came, whatever they came in."""
        return [result for _, _, body, _ in self.seen for result in body["results"]]


def httpx_json(value: Any, status: int = 200) -> Response:
    return Response(json.dumps(value), status, media_type="application/json")


@pytest.fixture
def receiver() -> Receiver:
    return Receiver()


@pytest.fixture
async def client(receiver: Receiver) -> AsyncIterator[CallbackClient]:
    transport = httpx.ASGITransport(receiver.app)
    inner = httpx.AsyncClient(transport=transport)
    client = CallbackClient("http://orchestrator/", "secret", WorkerId("w"), inner)
    yield client
    await client.close()


async def test_a_result_is_the_message_of_the_contract(receiver: Receiver, client: CallbackClient) -> None:
    outcome = Outcome(ResultStatus.COMPLETED, output=b'{"a":[1,"\xc3\xa4"]}', metrics='{"m":1}')
    assert await HttpSink(client).finish([Report(MESSAGE, outcome, None, {"done": 1})]) == {"t"}
    ((method, name, body, authorization),) = receiver.seen
    assert (method, name, authorization) == ("POST", "task-results", "Bearer secret")
    assert body["worker_id"] == "w"
    (result,) = body["results"]
    assert result.pop("reported_at")
    assert result == {
        "task_id": "t",
        "delivery_count": 2,
        "status": "completed",
        "output": {"a": [1, "ä"]},
        "output_ref": None,
        "error_message": None,
        "retryable": True,
        "metrics": {"m": 1},
        "progress": {"done": 1},
    }


async def test_a_failure_has_its_reason(receiver: Receiver, client: CallbackClient) -> None:
    await HttpSink(client).finish([Report(MESSAGE, failed("no", retryable=False))])
    (result,) = receiver.results
    assert (result["status"], result["error_message"], result["retryable"]) == ("failed", "no", False)


@pytest.mark.parametrize(
    ("answer", "accepted"),
    [
        ({"accepted": True, "task": "done"}, True),
        ({"accepted": False, "task": "done"}, True),  # it had been reported before
        ({"accepted": False, "task": "lost"}, False),
        ({"accepted": False, "task": "withdrawn"}, False),
    ],
)
async def test_the_answer_tells_whether_the_result_counts(
    receiver: Receiver, client: CallbackClient, answer: dict[str, Any], accepted: bool
) -> None:
    receiver.receipt = answer
    assert bool(await HttpSink(client).finish([Report(MESSAGE, failed("no"))])) is accepted


@pytest.mark.parametrize("status", [401, 403, 408, 429, 500, 502, 503])
async def test_what_may_pass_is_tried_again(receiver: Receiver, client: CallbackClient, status: int) -> None:
    receiver.answer = lambda: httpx_json({}, status)
    with pytest.raises(Unavailable):
        await HttpSink(client).finish([Report(MESSAGE, failed("no"))])


async def test_what_can_never_be_accepted_is_told(receiver: Receiver, client: CallbackClient) -> None:
    receiver.answer = lambda: httpx_json({"detail": "too large"}, 413)
    with pytest.raises(InvalidInput, match="413"):
        await HttpSink(client).finish([Report(MESSAGE, failed("no"))])


async def test_results_are_kept_for_an_orchestrator_of_an_earlier_release_until_it_is_replaced(
    receiver: Receiver, client: CallbackClient
) -> None:
    receiver.answer = lambda: httpx_json({}, 404)
    with pytest.raises(Unavailable, match="Upgrade orchestrators"):
        await HttpSink(client).finish([Report(MESSAGE, failed("no"))])


async def test_progress_of_a_task_that_is_not_known_is_dropped(receiver: Receiver, client: CallbackClient) -> None:
    receiver.answer = lambda: httpx_json({}, 404)
    assert not await client.report("task-progress", MESSAGE, {})


async def test_nobody_there_is_no_answer() -> None:
    client = CallbackClient("http://127.0.0.1:9", None, WorkerId("w"))
    with pytest.raises(Unavailable, match="cannot be reached"):
        await HttpSink(client).finish([Report(MESSAGE, failed("no"))])
    await client.close()


def _reports(count: int, output: bytes = b"1") -> list[Report]:
    outcome = Outcome(ResultStatus.COMPLETED, output=output)
    return [Report(replace(MESSAGE, task_id=TaskId(f"t{number}")), outcome) for number in range(count)]


async def test_a_thousand_results_are_two_requests(receiver: Receiver, client: CallbackClient) -> None:
    accepted = await HttpSink(client).finish(_reports(1000))
    assert accepted == {f"t{number}" for number in range(1000)}
    assert [len(body["results"]) for _, _, body, _ in receiver.seen] == [500, 500]


async def test_large_results_are_divided_by_their_size(receiver: Receiver, client: CallbackClient) -> None:
    megabyte = b'"' + b"x" * 1_000_000 + b'"'
    assert len(await HttpSink(client).finish(_reports(6, megabyte))) == 6
    assert [len(body["results"]) for _, _, body, _ in receiver.seen] == [4, 2]


async def test_progress_that_cannot_be_told_harms_nothing(receiver: Receiver, client: CallbackClient) -> None:
    receiver.answer = lambda: httpx_json({}, 503)
    await HttpSink(client).running([News(MESSAGE, {"done": 1})])
    ((_, name, body, _),) = receiver.seen
    assert (name, body["progress"]) == ("task-progress", {"done": 1})


async def test_a_task_without_progress_says_only_that_it_runs(receiver: Receiver, client: CallbackClient) -> None:
    await HttpSink(client).running([News(MESSAGE)])
    assert receiver.seen[0][2]["progress"] is None


async def test_checkpoints_go_the_same_way(receiver: Receiver, client: CallbackClient) -> None:
    checkpoints = HttpCheckpoints(client)
    receiver.answer = lambda: httpx_json({"accepted": True, "task": "held"})
    assert await checkpoints.save(MESSAGE, Checkpoint("p", {"a": 1}, ("x",)))
    receiver.answer = lambda: httpx_json({"accepted": False, "task": "lost"})
    assert not await checkpoints.save(MESSAGE, Checkpoint("p"))
    receiver.answer = lambda: httpx_json({"phase": "p", "data": {"a": 1}, "artifacts": ["x"]})
    assert await checkpoints.load(MESSAGE) == Checkpoint("p", {"a": 1}, ("x",))
    receiver.answer = lambda: httpx_json(None)
    assert await checkpoints.load(MESSAGE) is None
    assert receiver.seen[0][2]["phase"] == "p"
    assert receiver.seen[-1][:3] == ("GET", "checkpoint", {"task_id": "t"})
