"""Every repository, found as the program finds them."""

import importlib
import pkgutil
from types import ModuleType
from typing import Any

import graticule.repositories
from graticule.core.table import Row
from graticule.repositories.base import Repository


def modules() -> list[ModuleType]:
    """Give all modules of the package."""
    found = pkgutil.iter_modules(graticule.repositories.__path__)
    return [importlib.import_module(f"graticule.repositories.{module.name}") for module in found]


def repositories() -> list[type[Repository[Any]]]:
    """Give all repositories."""
    named = [value for module in modules() for value in vars(module).values()]
    found = {
        each for each in named if isinstance(each, type) and issubclass(each, Repository) and each is not Repository
    }
    return sorted(found, key=lambda each: each.__name__)


def repository_of(model: type[Row]) -> type[Repository[Any]]:
    """Give the repository of a model."""
    (found,) = [each for each in repositories() if each.model is model]
    return found
