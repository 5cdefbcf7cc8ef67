"""`/api/v1/dead-letters`: messages that were set aside. Operators only."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import AwareDatetime, BaseModel

from graticule.api.access import Operator, OperatorOnly
from graticule.api.services import DeadLetters, Jobs
from graticule.core.models.fields import Short
from graticule.http.paging import Cursor, Cursors, Limit, Page
from graticule.http.problems import problem_responses
from graticule.services.dead_letters import DeadLetter, LetterKind

router = APIRouter(
    prefix="/api/v1/dead-letters",
    tags=["dead letters"],
    dependencies=[OperatorOnly],
    responses=problem_responses(401, 403, 422, 503),
)

LetterPath = Annotated[str, Path(max_length=224, description="The id of the task or of the job message.")]

_LETTERS: Cursors[tuple[datetime, str]] = Cursors(tuple[AwareDatetime, str])


class Done(BaseModel):
    """What was done with a dead letter."""

    id: str
    done: str


@router.get("")
async def list_dead_letters(
    service: DeadLetters,
    kind: LetterKind | None = None,
    queue: Short | None = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Page[DeadLetter]:
    """List dead letters, newest first."""
    found = await service.page(kind=kind, queue=queue, before=_LETTERS.read(cursor), limit=limit + 1)
    return _LETTERS.page(found, limit, lambda letter: (letter.created_at, letter.id))


@router.post("/{letter_id}/requeue", responses=problem_responses(404, 409))
async def requeue(letter_id: LetterPath, service: DeadLetters, jobs: Jobs, operator: Operator) -> Done:
    """Let a dead letter be delivered again; a job that has failed because of it goes on with a new attempt."""
    await service.requeue(letter_id, jobs, actor=operator)
    return Done(id=letter_id, done="requeued")


@router.post("/{letter_id}/discard", responses=problem_responses(404))
async def discard(letter_id: LetterPath, service: DeadLetters) -> Done:
    """Take a dead letter off the list for good."""
    await service.discard(letter_id)
    return Done(id=letter_id, done="discarded")


@router.delete("/{letter_id}", responses=problem_responses(404))
async def delete(letter_id: LetterPath, service: DeadLetters) -> Done:
    """Take a dead letter off the list for good."""
    await service.discard(letter_id)
    return Done(id=letter_id, done="discarded")
