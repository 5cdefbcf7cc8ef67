"""The workflows of folders and of installed packages, compiled; a bad file is reported and hides no other."""

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib.resources import files
from itertools import filterfalse
from pathlib import Path
from typing import Final, Self

from graticule import __version__
from graticule.config import Settings
from graticule.core.errors import NotFound
from graticule.core.models.engine import DefinitionSource
from graticule.dag.compile import Compiled, KnownHandler, Problem, Severity, compile_workflow
from graticule.dag.graph import Graph
from graticule.dag.problems import did_you_mean
from graticule.services.shared_workflows import SharedWorkflow, WorkflowOrigin, WorkflowSource
from graticule.services.workflow_packages import WorkflowPackages

SUFFIXES: Final = frozenset({".yaml", ".yml"})
MAX_BYTES: Final = 4 << 20  # as many as the most characters that a workflow may have can be
NO_PACKAGES: Final = WorkflowPackages()
NEWER_RELEASE: Final = "newer_release"
_DUPLICATE: Final = "duplicate_workflow"


class UnknownWorkflow(NotFound):
    """No workflow of this name can be used here."""


@dataclass(frozen=True)
class WorkflowLibrary:
    """The workflows that can be used, and what is wrong with the files."""

    graphs: Mapping[str, Graph]
    problems: tuple[Problem, ...]
    files: Mapping[str, Path]
    sources: Mapping[str, DefinitionSource] = field(default_factory=dict)  # of what the files have
    broken: Mapping[str, Problem] = field(default_factory=dict)  # why the workflow of this id is not in use
    shared: Mapping[str, SharedWorkflow] = field(default_factory=dict)  # what orchestrators announced

    def get(self, workflow_id: str) -> Graph:
        """Give a workflow."""
        found = self.graphs.get(workflow_id)
        if found is None:
            raise self._missing(workflow_id)
        return found

    def with_shared(self, shared: Mapping[str, SharedWorkflow]) -> Self:
        """Put announced workflows in the place of those of files; one that cannot be read here leaves the file's."""
        graphs, files = dict(self.graphs), dict(self.files)
        sources, broken = dict(self.sources), dict(self.broken)
        for name, workflow in shared.items():
            if workflow.graph is not None:
                if name not in self.graphs or self.graphs[name].content_hash != workflow.workflow_hash:
                    files.pop(name, None)
                    sources.pop(name, None)
                graphs[name] = workflow.graph
            elif name not in graphs:
                broken[name] = _unreadable(name, workflow)
        return replace(self, graphs=graphs, files=files, sources=sources, broken=broken, shared=shared)

    def origin(self, workflow_id: str) -> WorkflowOrigin:
        """Return where a workflow in use comes from."""
        shared = self.shared.get(workflow_id)
        return WorkflowOrigin(
            source=WorkflowSource(self.sources.get(workflow_id, WorkflowSource.DATABASE)),
            announced_by=None if shared is None else shared.announced_by,
            announced_at=None if shared is None else shared.announced_at,
            reloaded_by=None if shared is None else shared.reloaded_by,
        )

    def _missing(self, workflow_id: str) -> UnknownWorkflow:
        if problem := self.broken.get(workflow_id):
            return UnknownWorkflow(f"The workflow '{workflow_id}' did not load: {problem}", hint=_fix(problem))
        shown = workflow_id if len(workflow_id) <= 64 else f"{workflow_id[:64]}…"
        similar = did_you_mean(workflow_id[:64], self.graphs, or_list=False)
        hint = "`graticule workflow list` shows those that can be used."
        return UnknownWorkflow(f"There is no workflow '{shown}'.", hint=f"{similar} {hint}" if similar else hint)


def _fix(problem: Problem) -> str | None:
    if problem.code == NEWER_RELEASE:  # the problem says what to do
        return None
    reload = "`graticule workflow reload` reads the files again."
    if problem.code == _DUPLICATE:  # the file by itself is sound
        return reload
    return f"`graticule workflow validate {shlex.quote(problem.file)}` shows all that is wrong with it. {reload}"


def _unreadable(name: str, workflow: SharedWorkflow) -> Problem:
    message = (
        f"'{name}' was announced by release {workflow.program_version};"
        f" this process is of release {__version__} and cannot read it."
    )
    hint = f"Replace it with release {workflow.program_version}."
    return Problem("database", None, None, Severity.ERROR, NEWER_RELEASE, message, hint)


def shipped_folder() -> Path:
    """Give the folder of the workflows that are part of the package."""
    return Path(str(files("graticule.workflows")))


def load(
    folders: Sequence[Path], handlers: Mapping[str, KnownHandler], packages: WorkflowPackages = NO_PACKAGES
) -> WorkflowLibrary:
    """Compile all files of all folders; of a workflow that stands in two folders the later one is used.

    Packages have no order among them, and take nobody's place: what they bring is used under names that are free.
    """
    graphs: dict[str, Graph] = {}
    places: dict[str, Path] = {}
    problems: list[Problem] = []
    broken: dict[str, Problem] = {}
    for folder in dict.fromkeys(folder.absolute() for folder in folders):
        found = _load_folders([folder], handlers, problems, broken)
        for workflow_id, (path, graph) in found.items():
            if workflow_id in places:
                message = f"The workflow '{workflow_id}' replaces the one of {places[workflow_id]}."
                problems.append(_problem(path, Severity.WARNING, "replaced", message))
            graphs[workflow_id], places[workflow_id] = graph, path
    problems += [*packages.problems, *map(_empty, filterfalse(_has_files, packages.folders))]
    for workflow_id, (path, graph) in _load_folders(packages.folders, handlers, problems, broken).items():
        if workflow_id in places:
            problems.append(_taken(workflow_id, path, places[workflow_id]))
        else:
            graphs[workflow_id], places[workflow_id] = graph, path
    sources = {name: _source(file, packages) for name, file in places.items()}
    return WorkflowLibrary(graphs, tuple(problems), places, sources, broken)


def _source(file: Path, packages: WorkflowPackages) -> DefinitionSource:
    if file.parent == shipped_folder():
        return DefinitionSource.SHIPPED
    return DefinitionSource.PACKAGE if file.parent in packages.folders else DefinitionSource.FOLDER


def compile_file(path: Path, handlers: Mapping[str, KnownHandler]) -> Compiled:
    """Compile one file."""
    try:
        if path.stat().st_size > MAX_BYTES:
            return _unread(path, f"The file has more than {MAX_BYTES:,} bytes.")
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        return _unread(path, "The file is not UTF-8 text.")
    except OSError as error:
        return _unread(path, f"The file cannot be read: {error.strerror or error}.")
    return _compiled(text, str(path), frozenset(handlers.items()))


@lru_cache(maxsize=1024)  # more than anyone has files; what is edited leaves its former texts
def _compiled(text: str, file: str, handlers: frozenset[tuple[str, KnownHandler]]) -> Compiled:
    """Compile a text once, however often it is read: that takes a moment, and few of the files have changed since."""
    return compile_workflow(text, file=file, handlers=dict(handlers))


def _unread(path: Path, message: str) -> Compiled:
    return Compiled(None, (_problem(path, Severity.ERROR, "unreadable", message),))


def _problem(path: Path, severity: Severity, code: str, message: str, hint: str | None = None) -> Problem:
    return Problem(str(path), None, None, severity, code, message, hint)


def _has_files(folder: Path) -> bool:
    return any(_files(folder, []))


def _empty(folder: Path) -> Problem:
    message = "The package is to bring workflows, and its folder has no files that end in .yaml or .yml."
    return _problem(
        folder, Severity.ERROR, "no_workflows", message, "Are they built into the package that is installed?"
    )


def _taken(workflow_id: str, path: Path, other: Path) -> Problem:
    """Say that a package's workflow is not used. An operator's folder may be meant to replace it, ours is not."""
    meant = other.parent != shipped_folder()
    message = f"The workflow '{workflow_id}' of this package is not used: {other} has this name."
    hint = None if meant else "Give it a name of its own; only a folder of GRATICULE_WORKFLOWS replaces our workflows."
    return _problem(path, Severity.WARNING if meant else Severity.ERROR, "name_taken", message, hint)


def _load_folders(
    folders: Sequence[Path], handlers: Mapping[str, KnownHandler], problems: list[Problem], broken: dict[str, Problem]
) -> dict[str, tuple[Path, Graph]]:
    """Compile the files of folders that count alike; two with the same id cannot both be meant, so neither is used."""
    found: dict[str, list[tuple[Path, Graph]]] = {}
    for path in (file for folder in folders for file in _files(folder, problems)):
        compiled = compile_file(path, handlers)
        problems += compiled.problems
        if compiled.graph is not None:
            found.setdefault(compiled.graph.workflow_id, []).append((path, compiled.graph))
        else:
            _note_broken(path, compiled, broken)
    for workflow_id, same in found.items():
        if len(same) > 1:
            duplicates = _duplicates(workflow_id, [path for path, _ in same])
            problems += duplicates
            broken[workflow_id] = duplicates[0]
    return {workflow_id: same[0] for workflow_id, same in found.items() if len(same) == 1}


def _note_broken(path: Path, compiled: Compiled, broken: dict[str, Problem]) -> None:
    """Remember the first error of a file under the id that it declares, or under its name when none can be read."""
    error = next(problem for problem in compiled.problems if problem.severity is Severity.ERROR)
    if compiled.workflow_id is not None:
        broken[compiled.workflow_id] = error
    else:
        broken.setdefault(path.stem, error)  # a file that does declare this id is meant rather


def _duplicates(workflow_id: str, paths: Sequence[Path]) -> list[Problem]:
    problems = []
    for path in paths:
        others = ", ".join(
            other.name if other.parent == path.parent else str(other) for other in paths if other != path
        )
        message = f"The workflow '{workflow_id}' is in {others} too; none of them is used."
        problems.append(_problem(path, Severity.ERROR, _DUPLICATE, message, "Give each an id of its own."))
    return problems


def _files(folder: Path, problems: list[Problem]) -> Iterator[Path]:
    try:
        listed = sorted(folder.iterdir())
    except OSError as error:
        message = f"The folder of workflows cannot be read: {error.strerror or error}."
        problems.append(_problem(folder, Severity.ERROR, "unreadable", message))
        return
    yield from (path for path in listed if path.suffix in SUFFIXES and not path.name.startswith("."))


def workflow_folders(settings: Settings) -> list[Path]:
    """Give the folders of workflows, the shipped ones first."""
    given = [Path(folder).expanduser() for folder in settings.workflows.split(os.pathsep) if folder]
    return [shipped_folder(), *given]
