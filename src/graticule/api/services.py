"""What the routes work with, taken from the application that they belong to."""

import asyncio
from typing import Annotated

from fastapi import Depends

from graticule.http.parts import part
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
from graticule.services.staged_jobs import StagedJobs
from graticule.services.statistics import StatisticsService
from graticule.services.submissions import SubmissionService
from graticule.services.unserved_queues import QueueWarnings
from graticule.services.workflow_sharing import WorkflowSharing as SharingOfWorkflows
from graticule.services.workflows import Workflows as WorkflowsInUse

Jobs = Annotated[JobService, Depends(part("jobs"))]
Warnings = Annotated[QueueWarnings, Depends(part("queue_warnings"))]
Reader = Annotated[JobReader, Depends(part("job_reader"))]
Staged = Annotated[StagedJobs, Depends(part("staged_jobs"))]
Workflows = Annotated[WorkflowsInUse, Depends(part("workflows"))]
WorkflowSharing = Annotated[SharingOfWorkflows, Depends(part("workflow_sharing"))]
Statistics = Annotated[StatisticsService, Depends(part("statistics"))]
DeadLetters = Annotated[DeadLetterService, Depends(part("dead_letters"))]
Deliveries = Annotated[DeliveryService, Depends(part("deliveries"))]
Results = Annotated[ResultIntake, Depends(part("results"))]
Leases = Annotated[LeaseService, Depends(part("leases"))]
Presences = Annotated[PresenceService, Depends(part("presences"))]
CatalogueWriter = Annotated[CatalogueService, Depends(part("catalogue"))]
Events = Annotated[EventStream, Depends(part("events"))]
Platforms = Annotated[PlatformService, Depends(part("platforms"))]
Metadata = Annotated[LayerMetadataService, Depends(part("metadata"))]
Commands = Annotated[CommandService, Depends(part("commands"))]
Assets = Annotated[AssetReader, Depends(part("assets"))]
Submissions = Annotated[SubmissionService, Depends(part("submissions"))]
Reviews = Annotated[ReviewService, Depends(part("reviews"))]
PlatformNumbers = Annotated[PlatformStatistics, Depends(part("platform_statistics"))]
Stopping = Annotated[asyncio.Event, Depends(part("stopping"))]
