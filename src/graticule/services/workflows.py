"""The workflows that can be submitted now: of this instance's own files, and of those that others announced."""

import asyncio
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Final

from graticule.core.models import WorkflowDefinition
from graticule.dag.compile import KnownHandler
from graticule.dag.problems import Severity
from graticule.logs import get_logger
from graticule.repositories.database import Connection
from graticule.repositories.workflow_definitions import WorkflowDefinitionRepository, WorkflowHolder
from graticule.services import workflow_library
from graticule.services.shared_workflows import SharedWorkflow
from graticule.services.workflow_library import NO_PACKAGES, WorkflowLibrary
from graticule.services.workflow_packages import WorkflowPackages

_log = get_logger(__name__)
Handlers = Callable[[], Mapping[str, KnownHandler]]
WORKFLOW_ID: Final = re.compile(r"[a-z][a-z0-9_]{0,63}")


class Workflows:
    """Holds the library in use, which is replaced as a whole."""

    def __init__(self, folders: Sequence[Path], handlers: Handlers, packages: WorkflowPackages = NO_PACKAGES) -> None:
        self._folders = tuple(folders)
        self._handlers = handlers
        self._packages = packages
        self._shared: dict[str, SharedWorkflow] = {}
        self.others: Sequence[WorkflowHolder] = ()
        self.own = self._load()
        self.library = self.own

    async def read_files(self) -> WorkflowLibrary:
        """Read this instance's own files again; they are in use after `use_files`."""
        return await asyncio.to_thread(self._load)

    def use_files(self, own: WorkflowLibrary, others: Sequence[WorkflowHolder]) -> None:
        """Use what was read, and remember what the other instances have."""
        self.own, self.others = own, others
        self._unite()

    async def adopt(self, connection: Connection, current: Mapping[str, str]) -> bool:
        """Take over the current definitions, given by id and hash; False when all were known."""
        known = {name: shared for name, shared in self._shared.items() if current.get(name) == shared.workflow_hash}
        missing = current.keys() - known.keys()
        is_changed = bool(missing) or known.keys() != self._shared.keys()
        if is_changed:
            rows = await self._read(connection, missing)
            self._shared = known | rows
            self._unite()
            _log.info("workflows were taken over from the other orchestrators", workflows=sorted(rows))
        return is_changed

    async def learn(self, connection: Connection, ids: Collection[str]) -> None:
        """Look in the database for workflows that are not known here."""
        unknown = {name for name in ids if name not in self.library.graphs and WORKFLOW_ID.fullmatch(name)}
        if unknown and (rows := await self._read(connection, unknown)):
            self._shared |= rows
            self._unite()

    async def _read(self, connection: Connection, ids: Collection[str]) -> dict[str, SharedWorkflow]:
        if not ids:
            return {}
        rows: list[WorkflowDefinition] = await WorkflowDefinitionRepository(connection).current(ids=ids)
        return {row.workflow_id: SharedWorkflow.read(row) for row in rows}

    def _unite(self) -> None:
        self.library = self.own.with_shared(self._shared)

    def _load(self) -> WorkflowLibrary:
        library = workflow_library.load(self._folders, self._handlers(), self._packages)
        for problem in library.problems:
            # That a handler lives only on workers is usual: they have packages that no orchestrator needs.
            log = _log.warning if problem.severity is Severity.ERROR else _log.debug
            log("a problem in a workflow", problem=str(problem))
        return library
