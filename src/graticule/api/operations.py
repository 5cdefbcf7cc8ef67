"""Queues, workers, orchestrators and numbers. Operators only."""

from typing import Annotated

from fastapi import APIRouter, Query

from graticule.api.access import OperatorOnly
from graticule.api.services import Statistics
from graticule.http.paging import Page
from graticule.http.problems import problem_responses
from graticule.repositories.operations import OrchestratorNow, Queue, WorkerNow
from graticule.services import statistics

router = APIRouter(
    prefix="/api/v1", tags=["operations"], dependencies=[OperatorOnly], responses=problem_responses(401, 403, 503)
)

Stopped = Annotated[bool, Query(description="Show those that have stopped, too.")]


@router.get("/queues")
async def list_queues(service: Statistics) -> Page[Queue]:
    """List the queues that hold something or are served."""
    return Page(items=await service.queues())


@router.get("/workers")
async def list_workers(service: Statistics, stopped: Stopped = False) -> Page[WorkerNow]:
    """List the workers."""
    return Page(items=await service.workers(stopped=stopped))


@router.get("/orchestrators")
async def list_orchestrators(service: Statistics, stopped: Stopped = False) -> Page[OrchestratorNow]:
    """List the orchestrators."""
    return Page(items=await service.orchestrators(stopped=stopped))


@router.get("/stats")
async def stats(service: Statistics) -> statistics.Statistics:
    """Give the numbers of now and of the last days."""
    return await service.statistics()
