"""The engine of one orchestrator process: its parts, put together from the settings."""

import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from prometheus_client import CollectorRegistry

from graticule.config import Settings, Transport
from graticule.core.ids import OwnerId
from graticule.core.table import DatabaseRole
from graticule.dag.state import Policy
from graticule.handlers.registry import known_handlers
from graticule.logs import get_logger
from graticule.messaging.metrics import QueueMetrics
from graticule.orchestrator.deliveries import Deliveries
from graticule.orchestrator.loop import OrchestratorLoop
from graticule.orchestrator.membership import new_owner_id
from graticule.orchestrator.metrics import OrchestratorMetrics
from graticule.orchestrator.renewals import Renewals
from graticule.repositories.database import Database
from graticule.services.deliveries import CallbackSender
from graticule.services.engine_metrics import EngineMetrics
from graticule.services.jobs import JobService
from graticule.services.outputs import OutputStore
from graticule.services.publishing import CopyRenewal, PublishingJobs
from graticule.services.state_metrics import StateMetrics, state_reading
from graticule.services.steps import StepService
from graticule.services.workflow_library import workflow_folders
from graticule.services.workflow_packages import installed_packages
from graticule.services.workflow_sharing import WorkflowSharing
from graticule.services.workflows import Workflows
from graticule.storage.place import storage_of

if TYPE_CHECKING:
    from graticule.orchestrator.broker import Broker

LOOP_CONNECTIONS: Final = 3
BROKER_CONNECTIONS: Final = 2

_log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Engine:
    """What an orchestrator decides with. The loop has connections of its own: requests cannot keep them from it."""

    workflows: Workflows
    sharing: WorkflowSharing
    jobs: JobService
    outputs: OutputStore
    loop: OrchestratorLoop
    loop_database: Database
    deliveries: Deliveries | None  # None: callbacks are paused
    renewals: Renewals
    broker: "Broker | None"  # None: workers take the rows of tasks
    queue_metrics: QueueMetrics
    state_metrics: StateMetrics

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Let the loop run beside the caller, callbacks be sent, and copies for the public be renewed."""
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self.loop_database)
            for part in (self.broker, self.loop, self.deliveries, self.renewals):
                if part is not None:
                    await stack.enter_async_context(part.running())
            yield


def create_engine(
    settings: Settings, database: Database, url: str, registry: CollectorRegistry | None = None
) -> Engine:
    """Put an engine together; it works once it runs. What it does is counted in the registry."""
    owner_id, limits = new_owner_id(), policy(settings)
    outputs = OutputStore(storage_of(settings))
    workflows = Workflows(workflow_folders(settings), known_handlers, installed_packages())
    loop_database = Database(
        url,
        DatabaseRole.ORCHESTRATOR,
        pool_size=LOOP_CONNECTIONS + (BROKER_CONNECTIONS if settings.transport is Transport.SERVICEBUS else 0),
        timeout_seconds=settings.database_timeout_seconds,
        name="graticule-orchestrator-loop",
        by_key=True,
        clock=database.clock,
    )
    metrics, queue_metrics = EngineMetrics(registry), QueueMetrics(registry)
    steps, loop_steps = (StepService(each, owner_id, outputs, limits, metrics) for each in (database, loop_database))
    make_jobs = partial(
        JobService,
        callback_allow=settings.callback_allow,
        default_container=settings.default_container,
        partner_max_priority=settings.partner_max_priority,
    )
    jobs, loop_jobs = make_jobs(database, steps, workflows), make_jobs(loop_database, loop_steps, workflows)
    sharing = WorkflowSharing(database, workflows, owner_id, threshold_seconds=settings.orphan_threshold_seconds)
    broker = _broker(settings, loop_database, owner_id, queue_metrics)
    on_tasks = None if broker is None else broker.announce
    return Engine(
        workflows=workflows,
        sharing=sharing,
        jobs=jobs,
        outputs=outputs,
        loop=OrchestratorLoop(
            settings,
            loop_database,
            url,
            loop_steps,
            loop_jobs,
            sharing=sharing,
            on_tasks=on_tasks,
            metrics=OrchestratorMetrics(queue_metrics, registry),
        ),
        loop_database=loop_database,
        deliveries=_deliveries(settings, CallbackSender(database, settings, metrics=metrics), url),
        renewals=Renewals(CopyRenewal(database, PublishingJobs(jobs, workflows)), settings),
        broker=broker,
        queue_metrics=queue_metrics,
        state_metrics=StateMetrics(
            state_reading(database, owner_id, settings.job_queue_name, settings.orphan_threshold_seconds), registry
        ),
    )


def _deliveries(settings: Settings, sender: CallbackSender, url: str) -> Deliveries | None:
    if not settings.callbacks_paused:
        return Deliveries(sender, url, settings)
    _log.warning("callbacks are paused: they wait until GRATICULE_CALLBACKS_PAUSED is unset")
    return None


def _broker(settings: Settings, database: Database, owner_id: OwnerId, metrics: QueueMetrics) -> "Broker | None":
    if settings.transport is Transport.POSTGRES:
        return None
    from graticule.orchestrator.broker import Broker  # noqa: PLC0415 - its packages are not always installed

    return Broker(settings, database, owner_id, metrics)


def policy(settings: Settings) -> Policy:
    """Give the evaluator's limits, and of the environment what templates may see."""
    names = {name.strip() for name in settings.template_environment.split(",")}
    return Policy(
        dispatch_timeout_seconds=settings.dispatch_timeout_seconds,
        queue_dispatch_timeouts=settings.queue_dispatch_timeouts,
        running_grace_seconds=settings.worker_lease_seconds,
        environment={name: value for name, value in os.environ.items() if name in names},
    )
