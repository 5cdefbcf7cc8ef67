"""Which handlers there are: ours, and those of other packages, found by the entry-point group `graticule.handlers`."""

import importlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from threading import RLock
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pydantic import BaseModel

from graticule.core.errors import ConfigurationError
from graticule.handlers.compatibility import HANDLER_ALIASES
from graticule.logs import get_logger

if TYPE_CHECKING:
    from graticule.dag.compile import KnownHandler

ENTRY_POINT_GROUP: Final = "graticule.handlers"
DEFAULT_QUEUE: Final = "functionapp-tasks"
DEFAULT_TIMEOUT_SECONDS: Final = 3600
BUILT_IN: Final = (
    "graticule.handlers.examples",
    "graticule.handlers.publish.handlers",
    "graticule.handlers.raster.catalogue",
    "graticule.handlers.raster.cogs",
    "graticule.handlers.raster.copying",
    "graticule.handlers.raster.extraction",
    "graticule.handlers.raster.mosaics",
    "graticule.handlers.raster.tiles",
    "graticule.handlers.raster.validation",
    "graticule.handlers.vector.exporting",
    "graticule.handlers.vector.loading",
    "graticule.handlers.vector.registering",
    "graticule.handlers.vector.validation",
)  # none of them imports GDAL before one of its handlers runs

_log = get_logger(__name__)
HandlerFunction = Callable[[Any], Any]
F = TypeVar("F", bound=HandlerFunction)


@dataclass(frozen=True, slots=True)
class RegisteredHandler:
    """A handler, and what holds for its tasks unless a workflow says otherwise."""

    name: str
    function: HandlerFunction
    queue: str
    timeout_seconds: int
    params: type[BaseModel] | None
    memory_limit_mb: int | None
    needs_database: bool = False

    @property
    def is_async(self) -> bool:
        """Whether it runs in the worker's loop; else it runs in a child process."""
        return inspect.iscoroutinefunction(self.function)

    @property
    def module(self) -> str:
        """The module whose import registers it."""
        return str(self.function.__module__)


_registered: dict[str, RegisteredHandler] = {}
_loading: Final = RLock()  # a module that is loaded may ask for what is there so far
_failures: dict[str, str] = {}  # by entry point: why its handlers are missing
_loaded: list[str] = []  # the entry points that were tried; not empty once that is done


def register_handler(
    name: str,
    *,
    queue: str = DEFAULT_QUEUE,
    timeout_seconds: int = DEFAULT_TIMEOUT_SECONDS,
    params: type[BaseModel] | None = None,
    memory_limit_mb: int | None = None,
    needs_database: bool = False,
) -> Callable[[F], F]:
    """Make a function the handler of this name.

    `async def` runs in the worker's loop, `def` in a child process. `params` is a model that the parameters
    must fit. `memory_limit_mb` is how much a `def` handler may take beyond what its process has at the start.
    `needs_database` keeps its tasks from workers that have none: they fail there at once, and for good.
    """

    def register(function: F) -> F:
        _register(RegisteredHandler(name, function, queue, timeout_seconds, params, memory_limit_mb, needs_database))
        return function

    return register


def _register(handler: RegisteredHandler) -> None:
    present = _registered.get(handler.name)
    is_alias = present is not None and present.name != handler.name
    if present is not None and not is_alias and _place(present) != _place(handler):
        raise ConfigurationError(
            f"Two handlers are called {handler.name!r}: {_place(present)} and {_place(handler)}.",
            hint="Give one of them another name.",
        )
    if handler.is_async and handler.memory_limit_mb is not None:
        raise ConfigurationError(
            f"The handler {handler.name!r} has a memory limit and runs in the worker's own process.",
            hint="Make it a `def`: that runs in a child process, which can be limited.",
        )
    _registered[handler.name] = handler


def _place(handler: RegisteredHandler) -> str:
    return f"{handler.module}.{handler.function.__qualname__}"


def handlers() -> Mapping[str, RegisteredHandler]:
    """Give all handlers that can be found, by name."""
    with _loading:  # who comes meanwhile waits until all are there
        if not _loaded:
            _load()
    return MappingProxyType(_registered)


def failed_packages() -> Mapping[str, str]:
    """Return the entry points whose handlers could not be loaded, each with the reason."""
    handlers()
    return MappingProxyType(_failures)


def find_handler(name: str, module: str) -> RegisteredHandler | None:
    """Give a handler, importing no more than its module if that is enough."""
    importlib.import_module(module)
    return _registered.get(name) or handlers().get(name)


def known_handlers() -> "dict[str, KnownHandler]":
    """Give what the compiler of workflows wants to know of each handler."""
    from graticule.dag.compile import KnownHandler  # noqa: PLC0415 - a child process does not need it

    return {name: KnownHandler(each.queue, each.timeout_seconds) for name, each in handlers().items()}


def _load() -> None:
    for module in BUILT_IN:
        _loaded.append(module)
        importlib.import_module(module)
    for entry_point in entry_points(group=ENTRY_POINT_GROUP):
        _load_entry_point(entry_point)
    for alias, name in HANDLER_ALIASES.items():
        if name in _registered:
            _registered.setdefault(alias, _registered[name])


def _load_entry_point(entry_point: EntryPoint) -> None:
    """Import a package's handlers; one that is broken does not stop the others."""
    _loaded.append(entry_point.name)
    try:
        entry_point.load()
    except Exception as error:
        _failures[entry_point.name] = str(error) or type(error).__name__
        _log.exception("handlers could not be loaded", entry_point=entry_point.name, module=entry_point.value)
