"""Dead letters: tasks and job messages that were set aside, to be tried again or taken off the list."""

import heapq
from datetime import datetime
from enum import StrEnum
from typing import Final

from pydantic import BaseModel, Field

from graticule.core.errors import Conflict, NotFound
from graticule.core.fault_points import Commit
from graticule.core.ids import JobId, NodeId, TaskId
from graticule.core.models import JobMessage, Task
from graticule.core.models.fields import JsonObject
from graticule.repositories.database import Database
from graticule.repositories.messages import MessageRepository
from graticule.repositories.tasks import RequeueOutcome, TaskRepository
from graticule.services.jobs import JobService

_NO_TASK: Final = frozenset({RequeueOutcome.NOT_FOUND, RequeueOutcome.NOT_DEAD})


class LetterKind(StrEnum):
    """What a dead letter was."""

    TASK = "task"
    JOB = "job"


class DeadLetter(BaseModel):
    """A message that nobody tries to deliver any more."""

    id: str = Field(description="The task's id, or the job message's.")
    kind: LetterKind
    queue: str
    reason: str
    delivery_count: int
    body: JsonObject = Field(description="The task's parameters, or the job message.")
    job_id: JobId | None = None
    node_id: NodeId | None = None
    handler: str | None = None
    created_at: datetime


class DeadLetterService:
    """Lists dead letters, and deals with them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def page(
        self,
        *,
        kind: LetterKind | None = None,
        queue: str | None = None,
        before: tuple[datetime, str] | None = None,
        limit: int = 100,
    ) -> list[DeadLetter]:
        """Give dead letters, newest first, after the one that `before` names."""
        letters: list[list[DeadLetter]] = []
        async with self._database.connection() as connection:
            if kind is not LetterKind.JOB:
                after = None if before is None else (before[0], TaskId(before[1]))
                tasks = await TaskRepository(connection).dead(queue, limit, before=after)
                letters.append([_of_task(task) for task in tasks])
            if kind is not LetterKind.TASK:
                messages = await MessageRepository(connection).dead(queue, limit, before=before)
                letters.append([_of_message(message) for message in messages])
        return list(heapq.merge(*letters, key=_newest_first, reverse=True))[:limit]

    async def requeue(self, letter_id: str, jobs: JobService, actor: str | None = None) -> None:
        """Let a dead letter be delivered again; a job that has failed because of it is resumed, with a new attempt."""
        async with self._database.transaction(Commit.DEAD_LETTERS) as connection:
            tasks = TaskRepository(connection)
            await tasks.hold_job_of(TaskId(letter_id))
            outcome = await tasks.requeue(TaskId(letter_id))
            if outcome in _NO_TASK and not await MessageRepository(connection).requeue(letter_id):
                raise _unknown(letter_id)
        if outcome is RequeueOutcome.NOT_AWAITED:
            raise Conflict(
                f"The node of task {letter_id} does not wait for it any more.",
                hint="If the job has failed, retry it: POST /api/v1/jobs/{id}/retry, or `graticule retry`.",
            )
        if outcome is RequeueOutcome.JOB_FAILED:
            await self._resume(TaskId(letter_id), jobs, actor)

    async def _resume(self, task_id: TaskId, jobs: JobService, actor: str | None) -> None:
        async with self._database.connection() as connection:
            task = await TaskRepository(connection).get(task_id=task_id)
        await jobs.resume(task.job_id, actor=actor)
        async with self._database.committing(Commit.DEAD_LETTERS) as connection:
            await TaskRepository(connection).discard(task_id)

    async def discard(self, letter_id: str) -> None:
        """Take a dead letter off the list for good."""
        async with self._database.transaction(Commit.DEAD_LETTERS) as connection:
            if await TaskRepository(connection).discard(TaskId(letter_id)):
                return
            if not await MessageRepository(connection).discard(letter_id):
                raise _unknown(letter_id)


def _unknown(letter_id: str) -> NotFound:
    return NotFound(f"There is no dead letter {letter_id}.", hint="GET /api/v1/dead-letters lists them.")


def _newest_first(letter: DeadLetter) -> tuple[datetime, str]:
    return letter.created_at, letter.id


def _of_task(task: Task) -> DeadLetter:
    return DeadLetter(
        id=task.task_id,
        kind=LetterKind.TASK,
        queue=task.queue,
        reason=task.dead_reason or "",
        delivery_count=task.delivery_count,
        body=task.params,
        job_id=task.job_id,
        node_id=task.node_id,
        handler=task.handler,
        created_at=task.created_at,
    )


def _of_message(message: JobMessage) -> DeadLetter:
    return DeadLetter(
        id=message.message_id,
        kind=LetterKind.JOB,
        queue=message.queue,
        reason=message.dead_reason or "",
        delivery_count=message.delivery_count,
        body=message.body,
        created_at=message.created_at,
    )
