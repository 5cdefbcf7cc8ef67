"""Handlers are registered by name, and found in other packages."""

import types
from importlib.metadata import EntryPoint

import pytest
from pydantic import BaseModel

from graticule.core.errors import ConfigurationError
from graticule.handlers import HandlerContext, ProcessContext, handlers, known_handlers, register_handler, registry
from graticule.handlers.compatibility import HANDLER_ALIASES


@pytest.fixture(autouse=True)
def own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    handlers()
    monkeypatch.setattr(registry, "_registered", dict(registry._registered))
    monkeypatch.setattr(registry, "_loaded", list(registry._loaded))


def test_the_examples_are_there() -> None:
    expected = {"echo", "hello_world", "sleep", "fail", "flaky_echo", "multi_phase", "size_check", "chunk_processor"}
    assert expected <= set(handlers())
    assert not handlers()["multi_phase"].is_async
    assert handlers()["echo"].is_async


def test_a_handler_says_where_its_tasks_go_and_what_it_takes() -> None:
    class Params(BaseModel):
        a: int

    @register_handler("x.y", queue="container-tasks", timeout_seconds=7, params=Params, memory_limit_mb=100)
    def y(ctx: ProcessContext) -> None:
        """Do nothing."""

    found = handlers()["x.y"]
    assert (found.queue, found.timeout_seconds, found.params, found.memory_limit_mb) == (
        "container-tasks",
        7,
        Params,
        100,
    )
    assert (found.function, found.is_async, found.module) == (y, False, __name__)
    known = known_handlers()["x.y"]
    assert (known.queue, known.timeout_seconds) == ("container-tasks", 7)


def test_the_default_queue_and_time() -> None:
    @register_handler("x")
    async def x(ctx: HandlerContext) -> None:
        """Do nothing."""

    assert (handlers()["x"].queue, handlers()["x"].timeout_seconds) == ("functionapp-tasks", 3600)


def test_two_handlers_of_one_name_are_refused_and_the_same_one_twice_is_not() -> None:
    async def one(ctx: HandlerContext) -> None:
        """Do nothing."""

    async def two(ctx: HandlerContext) -> None:
        """Do nothing."""

    register_handler("x")(one)
    register_handler("x")(one)
    with pytest.raises(ConfigurationError, match="Two handlers are called 'x'"):
        register_handler("x")(two)
    assert handlers()["x"].function is one


def test_a_memory_limit_needs_a_process_of_its_own() -> None:
    async def one(ctx: HandlerContext) -> None:
        """Do nothing."""

    with pytest.raises(ConfigurationError, match="memory limit"):
        register_handler("x", memory_limit_mb=1)(one)


def test_handlers_of_other_packages_are_found_and_a_broken_package_stops_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def found(ctx: HandlerContext) -> None:
        """Do nothing."""

    def load(entry_point: EntryPoint) -> types.ModuleType:
        if entry_point.name == "broken":
            raise ImportError("no such library")
        register_handler("other.found")(found)
        return types.ModuleType("other")

    points = [EntryPoint(name, name, "graticule.handlers") for name in ("broken", "other")]
    monkeypatch.setattr(registry, "entry_points", lambda group: points if group == "graticule.handlers" else [])
    monkeypatch.setattr(EntryPoint, "load", load)
    monkeypatch.setattr(registry, "_loaded", [])
    monkeypatch.setattr(registry, "_failures", {})
    assert "other.found" in handlers()
    assert "echo" in handlers()
    assert dict(registry.failed_packages()) == {"broken": "no such library"}


def test_earlier_names_of_handlers_lead_to_ours() -> None:
    for alias, name in HANDLER_ALIASES.items():
        assert handlers()[alias] is handlers()[name]
        assert handlers()[alias].name == name  # by which a child process finds it


def test_a_package_may_have_a_handler_of_an_earlier_name() -> None:
    @register_handler("raster_validate", queue="own")
    async def own(ctx: HandlerContext) -> None:
        """Validate in its own way."""

    assert handlers()["raster_validate"].function is own
    assert handlers()["raster.validate"].function is not own
