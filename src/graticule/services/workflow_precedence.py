"""Which definition of a workflow counts when orchestrators have different files. No I/O happens here.

A reload is the strongest, and speaks only for the files that changed since the last one. When an instance starts, its
workflows count if nobody announced them before; those of a folder count more than those of packages, and a newer
release more than an older one. A definition that was superseded does not come back because some instance restarts.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from graticule.core.models.engine import DefinitionSource
from graticule.repositories.workflow_definitions import DefinitionKey, WorkflowHolder

Rank = tuple[bool, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class LocalWorkflow:
    """A workflow of this instance's own files."""

    workflow_hash: str
    source: DefinitionSource


@dataclass(frozen=True, slots=True)
class Announcements:
    """What an instance writes: the workflows that become current, and those that nobody has any more."""

    announced: frozenset[str] = frozenset()
    withdrawn: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ClusterView:
    """What the database says: everything that was ever announced, and the other instances."""

    keys: Sequence[DefinitionKey]
    others: Sequence[WorkflowHolder]
    current: Mapping[str, DefinitionKey] = field(init=False)
    seen: frozenset[tuple[str, str]] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "current", {key.workflow_id: key for key in self.keys if key.is_current})
        object.__setattr__(self, "seen", frozenset((key.workflow_id, key.workflow_hash) for key in self.keys))

    def is_held(self, key: DefinitionKey) -> bool:
        """Whether another instance has this very definition in its files."""
        return any(other.workflows.get(key.workflow_id) == key.workflow_hash for other in self.others)

    def has_release(self, program_version: str) -> bool:
        """Whether another instance has this release, or a newer one."""
        return any(_release(other.program_version) >= _release(program_version) for other in self.others)


def announcements_of_start(
    local: Mapping[str, LocalWorkflow], view: ClusterView, program_version: str
) -> Announcements:
    """Decide what an instance announces by itself, when it starts and whenever it looks."""
    wins = (name for name, workflow in local.items() if _wins(name, workflow, view, program_version))
    return Announcements(frozenset(wins))


def announcements_of_reload(
    local: Mapping[str, LocalWorkflow], view: ClusterView, *, changed: Collection[str], broken: Collection[str]
) -> Announcements:
    """Decide what a reload announces, or the start of the only instance.

    A workflow whose file is broken stays as it is: its last sound definition remains in use.
    """
    differing = {
        name: view.current.get(name)
        for name, workflow in local.items()
        if name not in view.current or view.current[name].workflow_hash != workflow.workflow_hash
    }
    announced = (name for name, key in differing.items() if key is None or name in changed or not view.is_held(key))
    held = {name for other in view.others for name in other.workflows}
    return Announcements(frozenset(announced), frozenset(view.current.keys() - local.keys() - held - set(broken)))


def _wins(name: str, workflow: LocalWorkflow, view: ClusterView, program_version: str) -> bool:
    current = view.current.get(name)
    if current is None:
        return True
    if current.workflow_hash == workflow.workflow_hash:
        return False
    own, other = _rank(workflow.source, program_version), _rank(current.source, current.program_version)
    if own < other:  # but a deployment that was rolled back counts, once the newer release has left
        is_older = _release(program_version) < _release(current.program_version)
        return is_older and not view.has_release(current.program_version)
    is_new = (name, workflow.workflow_hash) not in view.seen
    return is_new or (own > other and not current.is_reload)


def _rank(source: DefinitionSource, program_version: str) -> Rank:
    return source is DefinitionSource.FOLDER, _release(program_version)


def _release(program_version: str) -> tuple[int, ...]:
    numbers = re.match(r"\d+(\.\d+)*", program_version)
    return tuple(map(int, numbers[0].split("."))) if numbers else ()
