"""Results, progress and checkpoints by HTTP, to an orchestrator's API; idempotent, so that each may be sent again."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

import httpx
import orjson

from graticule.core.errors import GraticuleError, InvalidInput, Unavailable
from graticule.core.ids import TaskId, WorkerId
from graticule.handlers.context import Checkpoint
from graticule.logs import get_logger
from graticule.messaging.protocol import TaskMessage
from graticule.worker.reports import News, Report

AT_ONCE: Final = 8
TIMEOUT_SECONDS: Final = 30.0
_LATER: Final = frozenset({401, 403, 408, 425, 429})  # a token can be mended, a limit passes
_DONE: Final = frozenset({"held", "done"})

_log = get_logger(__name__)


class CallbackClient:
    """Speaks to `/api/v1/callbacks` as a worker."""

    def __init__(
        self, url: str, token: str | None, worker_id: WorkerId, client: httpx.AsyncClient | None = None
    ) -> None:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._base = f"{url.rstrip('/')}/api/v1/callbacks"
        self._worker_id = worker_id
        self._client = client or httpx.AsyncClient(timeout=TIMEOUT_SECONDS)
        self._headers = {**headers, "Content-Type": "application/json"}

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def post(self, path: str, message: TaskMessage, content: dict[str, Any], output: bytes | None = None) -> bool:
        """Send a report; False when the task is no longer this worker's."""
        document = orjson.dumps({**self._subject(message), **content})
        if output is not None:  # it is JSON already
            document = document[:-1] + b',"output":' + output + b"}"
        receipt = await self._asked("POST", path, content=document)
        return bool(receipt.get("accepted")) or receipt.get("task") in _DONE

    async def get(self, path: str, message: TaskMessage) -> dict[str, Any] | None:
        """Ask about a task's node."""
        found: dict[str, Any] | None = await self._asked("GET", path, params={"task_id": message.task_id})
        return found

    def _subject(self, message: TaskMessage) -> dict[str, Any]:
        return {
            "task_id": message.task_id,
            "job_id": message.job_id,
            "node_id": message.node_id,
            "worker_id": self._worker_id,
            "delivery_count": message.delivery_count,
        }

    async def _asked(self, method: str, path: str, **given: Any) -> Any:
        try:
            answer = await self._client.request(method, f"{self._base}/{path}", headers=self._headers, **given)
        except httpx.TransportError as error:
            raise Unavailable(f"The orchestrator cannot be reached ({type(error).__name__}).") from error
        if answer.status_code >= 500 or answer.status_code in _LATER:
            raise Unavailable(f"The orchestrator answered with {answer.status_code} to a callback.")
        if answer.status_code == 404:
            return {"accepted": False, "task": "lost"} if method == "POST" else None
        if answer.status_code >= 400:
            raise InvalidInput(f"The orchestrator refused a callback with {answer.status_code}: {answer.text[:500]}")
        return answer.json()


class HttpSink:
    """Sends reports one by one, several at a time."""

    def __init__(self, client: CallbackClient) -> None:
        self._client = client
        self._at_once = asyncio.Semaphore(AT_ONCE)

    async def finish(self, reports: Sequence[Report]) -> set[TaskId]:
        """Tell how tasks ended, and give those that were accepted: of the others the lease was lost."""
        answers = await asyncio.gather(*map(self._finish, reports), return_exceptions=True)
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer  # the whole batch is sent again: what was accepted counts once
        return {report.message.task_id for report, accepted in zip(reports, answers, strict=True) if accepted}

    async def running(self, news: Sequence[News]) -> None:
        """Tell of tasks that still run."""
        await asyncio.gather(*map(self._running, news))

    async def _finish(self, report: Report) -> bool:
        outcome = report.outcome
        content = {
            "status": outcome.status.value,
            "output_ref": report.output_ref,
            "error_message": outcome.error_message,
            "retryable": outcome.retryable,
            "metrics": None if outcome.metrics is None else orjson.loads(outcome.metrics),
            "progress": report.progress,
            "reported_at": datetime.now(UTC).isoformat(),
        }
        async with self._at_once:
            return await self._client.post("task-result", report.message, content, outcome.output)

    async def _running(self, news: News) -> None:
        try:
            async with self._at_once:
                await self._client.post("task-progress", news.message, {"progress": news.progress})
        except GraticuleError as error:
            _log.warning("progress cannot be told", task_id=news.message.task_id, error=str(error))


class HttpCheckpoints:
    """Keeps checkpoints by way of the orchestrator."""

    def __init__(self, client: CallbackClient) -> None:
        self._client = client

    async def load(self, message: TaskMessage) -> Checkpoint | None:
        """Give the last checkpoint of the task's node."""
        found = await self._client.get("checkpoint", message)
        return None if found is None else Checkpoint(found["phase"], found["data"], tuple(found["artifacts"]))

    async def save(self, message: TaskMessage, checkpoint: Checkpoint) -> bool:
        """Keep a checkpoint; False when the task is not this worker's any more."""
        content = {"phase": checkpoint.phase, "data": checkpoint.data, "artifacts": list(checkpoint.artifacts)}
        return await self._client.post("checkpoint", message, content)
