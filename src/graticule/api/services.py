"""What the routes work with, taken from the application that they belong to."""

import asyncio
from typing import Annotated, cast

from fastapi import Depends, Request

from graticule.services.asset_reading import AssetReader
from graticule.services.catalogue import CatalogueService
from graticule.services.commands import CommandService
from graticule.services.dead_letters import DeadLetterService
from graticule.services.deliveries import DeliveryService
from graticule.services.event_stream import EventStream
from graticule.services.job_reading import JobReader
from graticule.services.jobs import JobService
from graticule.services.layer_metadata import LayerMetadataService
from graticule.services.leases import LeaseService
from graticule.services.platform_statistics import PlatformStatistics
from graticule.services.platforms import PlatformService
from graticule.services.presence import PresenceService
from graticule.services.results import ResultIntake
from graticule.services.reviews import ReviewService
from graticule.services.statistics import StatisticsService
from graticule.services.submissions import SubmissionService
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


def _deliveries(request: Request) -> DeliveryService:
    return cast("DeliveryService", request.app.state.deliveries)


def _results(request: Request) -> ResultIntake:
    return cast("ResultIntake", request.app.state.results)


def _leases(request: Request) -> LeaseService:
    return cast("LeaseService", request.app.state.leases)


def _presences(request: Request) -> PresenceService:
    return cast("PresenceService", request.app.state.presences)


def _catalogue(request: Request) -> CatalogueService:
    return cast("CatalogueService", request.app.state.catalogue)


def _events(request: Request) -> EventStream:
    return cast("EventStream", request.app.state.events)


def _platforms(request: Request) -> PlatformService:
    return cast("PlatformService", request.app.state.platforms)


def _metadata(request: Request) -> LayerMetadataService:
    return cast("LayerMetadataService", request.app.state.metadata)


def _commands(request: Request) -> CommandService:
    return cast("CommandService", request.app.state.commands)


def _assets(request: Request) -> AssetReader:
    return cast("AssetReader", request.app.state.assets)


def _submissions(request: Request) -> SubmissionService:
    return cast("SubmissionService", request.app.state.submissions)


def _reviews(request: Request) -> ReviewService:
    return cast("ReviewService", request.app.state.reviews)


def _platform_numbers(request: Request) -> PlatformStatistics:
    return cast("PlatformStatistics", request.app.state.platform_statistics)


def _stopping(request: Request) -> asyncio.Event:
    return cast("asyncio.Event", request.app.state.stopping)


Jobs = Annotated[JobService, Depends(_jobs)]
Reader = Annotated[JobReader, Depends(_reader)]
Workflows = Annotated[WorkflowsInUse, Depends(_workflows)]
Statistics = Annotated[StatisticsService, Depends(_statistics)]
DeadLetters = Annotated[DeadLetterService, Depends(_dead_letters)]
Deliveries = Annotated[DeliveryService, Depends(_deliveries)]
Results = Annotated[ResultIntake, Depends(_results)]
Leases = Annotated[LeaseService, Depends(_leases)]
Presences = Annotated[PresenceService, Depends(_presences)]
CatalogueWriter = Annotated[CatalogueService, Depends(_catalogue)]
Events = Annotated[EventStream, Depends(_events)]
Platforms = Annotated[PlatformService, Depends(_platforms)]
Metadata = Annotated[LayerMetadataService, Depends(_metadata)]
Commands = Annotated[CommandService, Depends(_commands)]
Assets = Annotated[AssetReader, Depends(_assets)]
Submissions = Annotated[SubmissionService, Depends(_submissions)]
Reviews = Annotated[ReviewService, Depends(_reviews)]
PlatformNumbers = Annotated[PlatformStatistics, Depends(_platform_numbers)]
Stopping = Annotated[asyncio.Event, Depends(_stopping)]
