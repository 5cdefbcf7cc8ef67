"""Requests to `/api/v1/callbacks`, and what their answers mean to a worker."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeVar

import httpx

from graticule.core import json_codec
from graticule.core.backoff import Backoff
from graticule.core.errors import Conflict, InvalidInput, Unavailable
from graticule.core.ids import WorkerId
from graticule.core.trace_context import TRACEPARENT, current_traceparent
from graticule.messaging.protocol import TaskMessage

TIMEOUT_SECONDS: Final = 30.0
PATIENCE_SECONDS: Final = 30.0  # for an orchestrator that is being replaced
_LATER: Final = frozenset({401, 403, 408, 425, 429})  # a token can be mended, a limit passes
_DONE: Final = frozenset({"held", "done"})
T = TypeVar("T")


class CallbackClient:
    """Speaks to `/api/v1/callbacks` as a worker."""

    def __init__(
        self, url: str, token: str | None, worker_id: WorkerId, client: httpx.AsyncClient | None = None
    ) -> None:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._base = f"{url.rstrip('/')}/api/v1/callbacks"
        self.worker_id = worker_id
        self._client = client or httpx.AsyncClient(timeout=TIMEOUT_SECONDS)
        self._headers = {**headers, "Content-Type": "application/json"}

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def report(self, path: str, message: TaskMessage, content: Mapping[str, Any]) -> bool:
        """Tell something of a task; False when it is no longer this worker's."""
        told = {"job_id": message.job_id, "node_id": message.node_id, **self.subject(message), **content}
        answer = await self._asked("POST", path, content=json_codec.encode(told))
        if answer.status_code == 404:
            return False
        receipt = _document(answer)
        return bool(receipt.get("accepted")) or receipt.get("task") in _DONE

    async def ask(self, path: str, content: Mapping[str, Any]) -> Any:
        """Ask for something; None when there is nothing to answer."""
        return _document(
            await self._asked("POST", path, content=json_codec.encode({"worker_id": self.worker_id, **content}))
        )

    async def find(self, path: str, **parameters: str) -> Any:
        """Look for something; None when it is not there."""
        answer = await self._asked("GET", path, params=parameters)
        return None if answer.status_code == 404 else _document(answer)

    def subject(self, message: TaskMessage) -> dict[str, Any]:
        """Name a task, as this worker holds it."""
        return {
            "task_id": message.task_id,
            "worker_id": self.worker_id,
            "delivery_count": message.delivery_count,
        }

    async def _asked(self, method: str, path: str, **given: Any) -> httpx.Response:
        try:
            here = current_traceparent()
            headers = self._headers if here is None else {**self._headers, TRACEPARENT: here}
            answer = await self._client.request(method, f"{self._base}/{path}", headers=headers, **given)
        except httpx.TransportError as error:
            raise Unavailable(f"The orchestrator cannot be reached ({type(error).__name__}).") from error
        if answer.status_code >= 500 or answer.status_code in _LATER:
            raise Unavailable(f"The orchestrator answered with {answer.status_code} to a callback.")
        if answer.status_code == 409:
            raise Conflict(f"The orchestrator refused a callback: {_detail(answer)}")
        if answer.status_code >= 400 and answer.status_code != 404:
            raise InvalidInput(f"The orchestrator refused a callback with {answer.status_code}: {_detail(answer)}")
        return answer


async def patiently(ask: Callable[[], Awaitable[T]]) -> T:
    """Ask for something, and ask again for a while when nobody answers."""
    backoff, loop = Backoff(), asyncio.get_running_loop()
    until = loop.time() + PATIENCE_SECONDS
    while True:
        try:
            return await ask()
        except Unavailable:
            pause = backoff.next()
            if loop.time() + pause > until:
                raise
            await asyncio.sleep(pause)


def _document(answer: httpx.Response) -> Any:
    if answer.status_code == 404:  # the path, and not what was asked for: an orchestrator of an earlier release
        raise Unavailable("The orchestrator does not know this callback.", hint="Upgrade orchestrators before workers.")
    return None if answer.status_code == 204 else json_codec.decode(answer.content)


def _detail(answer: httpx.Response) -> str:
    return answer.text[:500]
