"""What the routes work with, taken from the application that they belong to."""

import asyncio
from typing import Annotated, cast

from fastapi import Depends, Request

from graticule.services.dead_letters import DeadLetterService
from graticule.services.event_stream import EventStream
from graticule.services.job_reading import JobReader
from graticule.services.jobs import JobService
from graticule.services.results import ResultIntake
from graticule.services.statistics import StatisticsService
from graticule.services.workflows import Workflows as WorkflowsInUse


def _jobs(request: Request) -> JobService:
    return cast("JobService", request.app.state.jobs)


def _reader(request: Request) -> JobReader:
    return cast("JobReader", request.app.state.job_reader)


def _workflows(request: Request) -> WorkflowsInUse:
    return cast("WorkflowsInUse", request.app.state.workflows)


def _statistics(request: Request) -> StatisticsService:
    return cast("StatisticsService", request.app.state.statistics)


def _dead_letters(request: Request) -> DeadLetterService:
    return cast("DeadLetterService", request.app.state.dead_letters)


def _results(request: Request) -> ResultIntake:
    return cast("ResultIntake", request.app.state.results)


def _events(request: Request) -> EventStream:
    return cast("EventStream", request.app.state.events)


def _stopping(request: Request) -> asyncio.Event:
    return cast("asyncio.Event", request.app.state.stopping)


Jobs = Annotated[JobService, Depends(_jobs)]
Reader = Annotated[JobReader, Depends(_reader)]
Workflows = Annotated[WorkflowsInUse, Depends(_workflows)]
Statistics = Annotated[StatisticsService, Depends(_statistics)]
DeadLetters = Annotated[DeadLetterService, Depends(_dead_letters)]
Results = Annotated[ResultIntake, Depends(_results)]
Events = Annotated[EventStream, Depends(_events)]
Stopping = Annotated[asyncio.Event, Depends(_stopping)]
