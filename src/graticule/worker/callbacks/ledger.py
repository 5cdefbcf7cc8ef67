"""The ledger of leases by HTTP: an orchestrator asks the rows, and this worker believes it."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, TypeVar

from graticule.core.ids import TaskId
from graticule.messaging.protocol import TaskMessage
from graticule.repositories.tasks import LeaseState, TakenTask
from graticule.worker.callbacks.client import CallbackClient

MOST_TASKS: Final = 1000  # in one request
LONGEST_REASON: Final = 4000
T = TypeVar("T")


class HttpLedger:
    """A `TaskLedger` of a worker that does not reach the database."""

    def __init__(self, client: CallbackClient) -> None:
        self._client = client

    async def take(self, task_ids: Sequence[TaskId]) -> Mapping[TaskId, TakenTask]:
        """Lease the tasks that wait, and tell how each stands."""
        taken: dict[TaskId, TakenTask] = {}
        for part in _parts(task_ids):
            answer = await self._client.ask("leases", {"task_ids": part})
            sources = answer.get("sources", {})  # an orchestrator of an older release names none
            taken |= {
                TaskId(task_id): TakenTask(**each, sources=sources.get(task_id))
                for task_id, each in answer["tasks"].items()
            }
        return taken

    async def renew(self, messages: Sequence[TaskMessage]) -> Mapping[TaskId, LeaseState]:
        """Prolong the leases, and tell of each whether it is still held."""
        states: dict[TaskId, LeaseState] = {}
        for part in _parts(messages):
            answer = await self._client.ask("leases/renew", _held(part))
            states |= {TaskId(task_id): LeaseState(state) for task_id, state in answer["tasks"].items()}
        return states

    async def give_back(
        self, messages: Sequence[TaskMessage], *, delay_seconds: float = 0, counts: bool = True
    ) -> set[TaskId]:
        """Let tasks be sent anew, and give those whose lease was held."""
        given: set[TaskId] = set()
        for part in _parts(messages):
            asked = {**_held(part), "delay_seconds": delay_seconds, "counts": counts}
            answer = await self._client.ask("leases/give-back", asked)
            given |= {TaskId(task_id) for task_id in answer["task_ids"]}
        return given

    async def dead_letter(self, message: TaskMessage, reason: str) -> bool:
        """Set a task aside for good; False when its lease was lost."""
        answer = await self._client.ask("leases/dead-letter", {**_named(message), "reason": reason[:LONGEST_REASON]})
        return bool(answer["accepted"])


def _parts(given: Sequence[T]) -> Iterator[list[T]]:
    remaining = iter(given)
    while part := list(islice(remaining, MOST_TASKS)):
        yield part


def _held(messages: Sequence[TaskMessage]) -> dict[str, Any]:
    return {"tasks": [_named(message) for message in messages]}


def _named(message: TaskMessage) -> dict[str, Any]:
    return {"task_id": message.task_id, "delivery_count": message.delivery_count}
