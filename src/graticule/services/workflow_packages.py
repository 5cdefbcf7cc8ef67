"""The workflows that installed packages bring, found by the entry-point group `graticule.workflows`."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from graticule.dag.problems import Problem, Severity

ENTRY_POINT_GROUP: Final = "graticule.workflows"


@dataclass(frozen=True)
class WorkflowPackages:
    """The folders of packages that have workflows, and what is wrong with packages that cannot be found."""

    folders: tuple[Path, ...] = ()
    problems: tuple[Problem, ...] = ()


@cache  # what is installed does not change while a process runs
def installed_packages() -> WorkflowPackages:
    """Give the packages with workflows that are installed beside Graticule."""
    return find_packages(entry_points(group=ENTRY_POINT_GROUP))


def find_packages(named: Iterable[EntryPoint]) -> WorkflowPackages:
    """Find the folders of the packages that entry points name; one that is broken does not stop the others."""
    folders: list[Path] = []
    problems: list[Problem] = []
    for entry_point in named:
        try:
            folders += _folders(entry_point)
        except Exception as error:  # whatever the import of a package above it raises
            problems.append(_problem(entry_point, error))
    return WorkflowPackages(tuple(dict.fromkeys(folders)), tuple(problems))


def _folders(entry_point: EntryPoint) -> list[Path]:
    spec = find_spec(entry_point.module)
    if spec is None:
        raise ModuleNotFoundError(f"No module named {entry_point.module!r}")
    if spec.submodule_search_locations is None:
        raise ImportError(f"{entry_point.module!r} is a module; a package is wanted, whose folder has the files")
    return [Path(place).absolute() for place in spec.submodule_search_locations]


def _problem(entry_point: EntryPoint, error: Exception) -> Problem:
    message = f"The package of the entry point '{entry_point.name}' cannot be found: {type(error).__name__}: {error}."
    hint = f"Its value in [project.entry-points.\"{ENTRY_POINT_GROUP}\"] is a package such as 'acme.workflows'."
    return Problem(entry_point.value, None, None, Severity.ERROR, "unreadable", message, hint)
