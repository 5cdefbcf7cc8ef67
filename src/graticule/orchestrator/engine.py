"""The engine of one orchestrator process: its parts, put together from the settings."""

import os
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from graticule.config import Settings
from graticule.dag.state import Policy
from graticule.handlers.registry import known_handlers
from graticule.orchestrator.loop import OrchestratorLoop
from graticule.orchestrator.membership import new_owner_id
from graticule.repositories.database import Database
from graticule.services.jobs import JobService
from graticule.services.outputs import OutputStore
from graticule.services.steps import StepService
from graticule.services.workflows import Workflows
from graticule.storage.local import LocalStorage


@dataclass(frozen=True, slots=True)
class Engine:
    """What an orchestrator decides with."""

    workflows: Workflows
    jobs: JobService
    outputs: OutputStore
    loop: OrchestratorLoop


def create_engine(settings: Settings, database: Database, url: str) -> Engine:
    """Put an engine together; it works once its loop runs."""
    outputs = OutputStore(LocalStorage(storage_root(settings)))
    steps = StepService(database, new_owner_id(), outputs, policy(settings))
    workflows = Workflows(workflow_folders(settings), known_handlers)
    jobs = JobService(database, steps, workflows)
    return Engine(workflows, jobs, outputs, OrchestratorLoop(settings, database, url, steps, jobs))


def policy(settings: Settings) -> Policy:
    """Give the evaluator's limits, and of the environment what templates may see."""
    names = {name.strip() for name in settings.template_environment.split(",")}
    return Policy(
        dispatch_timeout_seconds=settings.dispatch_timeout_seconds,
        queue_dispatch_timeouts=settings.queue_dispatch_timeouts,
        running_grace_seconds=settings.worker_lease_seconds,
        environment={name: value for name, value in os.environ.items() if name in names},
    )


def workflow_folders(settings: Settings) -> list[Path]:
    """Give the folders of workflows, the shipped ones first."""
    given = [Path(folder).expanduser() for folder in settings.workflows.split(os.pathsep) if folder]
    return [Path(str(files("graticule.workflows"))), *given]


def storage_root(settings: Settings) -> Path:
    """Give the folder in which files are kept."""
    return settings.storage_root or settings.home.expanduser().absolute() / "storage"
