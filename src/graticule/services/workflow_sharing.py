"""How an orchestrator shares its workflows with the others: by rows, and a notification after the commit."""

import asyncio
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from graticule import __version__
from graticule.core.fault_points import Commit
from graticule.core.ids import OwnerId
from graticule.core.models import WorkflowDefinition
from graticule.dag.graph import Graph
from graticule.dag.problems import Severity
from graticule.logs import get_logger
from graticule.repositories.database import Connection, Database
from graticule.repositories.workflow_definitions import WorkflowDefinitionRepository
from graticule.services.workflow_library import WorkflowLibrary
from graticule.services.workflow_precedence import (
    Announcements,
    ClusterView,
    LocalWorkflow,
    announcements_of_reload,
    announcements_of_start,
)
from graticule.services.workflows import Workflows

_log = get_logger(__name__)
MAX_PROBLEMS: Final = 20
MAX_PROBLEM_LENGTH: Final = 2000


@dataclass(frozen=True, slots=True)
class _Reload:
    """A reload: who asked for it, and what changed in the files."""

    actor: str
    changed: frozenset[str]


class WorkflowSharing:
    """Announces the workflows of one instance, and takes over what the others announced."""

    def __init__(
        self, database: Database, workflows: Workflows, owner_id: OwnerId, *, threshold_seconds: float
    ) -> None:
        self._database = database
        self._workflows = workflows
        self._owner_id = owner_id
        self._threshold = threshold_seconds
        self._is_first = True
        self._turn = asyncio.Lock()  # what was read before a reload must not replace what the reload has read

    async def reload(self, actor: str) -> WorkflowLibrary:
        """Read the files of this instance again and announce what changed; nothing changes without the database."""
        async with self._turn:
            if self._is_first:  # what the reload supersedes is known as old to those who start with it later
                await self._share(self._workflows.own, None)
            own = await self._workflows.read_files()
            before = _hashes(self._workflows.own)
            changed = frozenset(name for name, content in _hashes(own).items() if before.get(name) != content)
            await self._share(own, _Reload(actor, changed))
            return self._workflows.library

    async def share(self) -> bool:
        """Announce what counts of this instance's files, and take over the rest; False when nothing changed."""
        async with self._turn:
            return await self._share(self._workflows.own, None)

    async def _share(self, own: WorkflowLibrary, reload: _Reload | None) -> bool:
        async with self._database.transaction(Commit.SHARE_WORKFLOWS) as connection:
            rows = WorkflowDefinitionRepository(connection)
            await rows.lock()
            view = ClusterView(await rows.keys(), await rows.holders(self._owner_id, self._threshold))
            decided = self._decide(own, view, reload)
            await self._write(connection, own, decided, reload)
        self._is_first = False
        hashes: dict[str, str] = {name: key.workflow_hash for name, key in view.current.items()}
        hashes |= {name: content for name, content in _hashes(own).items() if name in decided.announced}
        self._workflows.use_files(own, view.others)
        async with self._database.connection() as connection:
            return await self._workflows.adopt(
                connection, {name: content for name, content in hashes.items() if name not in decided.withdrawn}
            )

    def _decide(self, own: WorkflowLibrary, view: ClusterView, reload: _Reload | None) -> Announcements:
        local = {name: LocalWorkflow(content, own.sources[name]) for name, content in _hashes(own).items()}
        if reload is not None:
            return announcements_of_reload(local, view, changed=reload.changed, broken=own.broken)
        if self._is_first and not any(other.has_session for other in view.others):
            alone = ClusterView(view.keys, ())
            return announcements_of_reload(local, alone, changed=local, broken=own.broken)
        return announcements_of_start(local, view, __version__)

    async def _write(
        self, connection: Connection, own: WorkflowLibrary, decided: Announcements, reload: _Reload | None
    ) -> None:
        rows = WorkflowDefinitionRepository(connection)
        for name in sorted(decided.announced):
            await rows.announce(self._definition(own, own.graphs[name], reload))
        if decided.withdrawn:
            await rows.withdraw(decided.withdrawn)
        is_noted = await rows.note_files(self._owner_id, _hashes(own), _problems(own))
        if decided.announced or decided.withdrawn or is_noted:
            await rows.notify()
        _log_decision(decided.announced, decided.withdrawn)

    def _definition(self, own: WorkflowLibrary, graph: Graph, reload: _Reload | None) -> WorkflowDefinition:
        return WorkflowDefinition.model_validate(
            {
                "workflow_id": graph.workflow_id,
                "workflow_hash": graph.content_hash,
                # An older release reads it as long as it uses nothing that is newer.
                "definition": graph.model_dump(mode="json", exclude_defaults=True),
                "source": own.sources[graph.workflow_id],
                "file": str(own.files[graph.workflow_id])[-1024:],
                "program_version": __version__,
                "announced_by": self._owner_id,
                "reloaded_by": None if reload is None else reload.actor[:128],
                "announced_at": self._database.now(),
            }
        )


def _hashes(own: WorkflowLibrary) -> dict[str, str]:
    return {name: graph.content_hash for name, graph in own.graphs.items()}


def _problems(own: WorkflowLibrary) -> list[str]:
    errors = [str(problem) for problem in own.problems if problem.severity is Severity.ERROR]
    return [error[:MAX_PROBLEM_LENGTH] for error in errors[:MAX_PROBLEMS]]


def _log_decision(announced: Collection[str], withdrawn: Collection[str]) -> None:
    if announced or withdrawn:
        _log.info("workflows were announced", announced=sorted(announced), withdrawn=sorted(withdrawn))
