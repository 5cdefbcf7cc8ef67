"""Queues, processes, dead letters and numbers of the orchestrator: for operators."""

from graticule.client.call import Call, change, get
from graticule.client.models import Page, Settled
from graticule.repositories.operations import OrchestratorNow, Queue, WorkerNow
from graticule.services.dead_letters import DeadLetter, LetterKind
from graticule.services.statistics import Statistics


def list_queues() -> Call[Page[Queue]]:
    """List the queues that hold something or are served."""
    return get(Page[Queue], "/api/v1/queues")


def list_workers(*, stopped: bool = False) -> Call[Page[WorkerNow]]:
    """List the workers; those that stopped only if wanted."""
    return get(Page[WorkerNow], "/api/v1/workers", {"stopped": stopped})


def list_orchestrators(*, stopped: bool = False) -> Call[Page[OrchestratorNow]]:
    """List the orchestrators; those that stopped only if wanted."""
    return get(Page[OrchestratorNow], "/api/v1/orchestrators", {"stopped": stopped})


def get_statistics() -> Call[Statistics]:
    """Give the numbers of now and of the last days."""
    return get(Statistics, "/api/v1/stats")


def list_dead_letters(
    *, kind: LetterKind | None = None, queue: str | None = None, limit: int | None = None
) -> Call[Page[DeadLetter]]:
    """List the messages that were set aside, newest first."""
    return get(Page[DeadLetter], "/api/v1/dead-letters", {"kind": kind, "queue": queue, "limit": limit})


def requeue_dead_letter(letter_id: str) -> Call[Settled]:
    """Let a dead letter be delivered again; a job that has failed because of it goes on."""
    return change("POST", Settled, "/api/v1/dead-letters/{letter_id}/requeue", letter_id=letter_id)


def discard_dead_letter(letter_id: str) -> Call[Settled]:
    """Take a dead letter off the list for good."""
    return change("POST", Settled, "/api/v1/dead-letters/{letter_id}/discard", letter_id=letter_id)
