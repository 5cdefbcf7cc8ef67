"""The workflows that can be submitted now, and how they are read anew."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from graticule.dag.compile import KnownHandler
from graticule.dag.problems import Severity
from graticule.logs import get_logger
from graticule.services import workflow_library
from graticule.services.workflow_library import NO_PACKAGES, WorkflowLibrary
from graticule.services.workflow_packages import WorkflowPackages

_log = get_logger(__name__)
Handlers = Callable[[], Mapping[str, KnownHandler]]


class Workflows:
    """Holds the library in use; a reload replaces it as a whole, or leaves it when nothing can be read."""

    def __init__(self, folders: Sequence[Path], handlers: Handlers, packages: WorkflowPackages = NO_PACKAGES) -> None:
        self._folders = tuple(folders)
        self._handlers = handlers
        self._packages = packages
        self.library = self._load()

    async def reload(self) -> WorkflowLibrary:
        """Read all files anew."""
        self.library = await asyncio.to_thread(self._load)
        _log.info("workflows are loaded", count=len(self.library.graphs))
        return self.library

    def _load(self) -> WorkflowLibrary:
        library = workflow_library.load(self._folders, self._handlers(), self._packages)
        for problem in library.problems:
            # That a handler lives only on workers is usual: they have packages that no orchestrator needs.
            tell = _log.warning if problem.severity is Severity.ERROR else _log.debug
            tell("a problem in a workflow", problem=str(problem))
        return library
