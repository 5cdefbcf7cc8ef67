"""What carries tasks to workers that are started alone: a broker, and the part of an orchestrator that sends to it."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from tests.servicebus_emulator import Emulator, QueueOptions

from graticule.config import Settings
from graticule.core.ids import OwnerId
from graticule.core.table import DatabaseRole
from graticule.orchestrator.broker import Broker
from graticule.repositories.database import Database

LOOK_SECONDS = 0.2  # between two looks for tasks of which nobody has told
T = TypeVar("T")


@dataclass(frozen=True)
class Carrier:
    """What a worker has to know to be brought tasks, and how to say that there are some."""

    environment: dict[str, str] = field(default_factory=dict)
    announce: Callable[[], object] = lambda: None


@contextmanager
def brokered(url: str, home: Path, owner_id: OwnerId, queue: str) -> Iterator[Carrier]:
    """Carry the tasks of one owner's jobs by Service Bus, in a thread: the tests of processes await nothing."""
    loop, stack = asyncio.new_event_loop(), AsyncExitStack()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    def run(work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, loop).result(30)

    try:
        environment, broker = run(_opened(stack, url, home, owner_id, queue))
        yield Carrier(environment, partial(loop.call_soon_threadsafe, broker.announce))
    finally:
        run(stack.aclose())
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _opened(
    stack: AsyncExitStack, url: str, home: Path, owner_id: OwnerId, queue: str
) -> tuple[dict[str, str], Broker]:
    queues = dict.fromkeys(("orchestrator-jobs", queue), QueueOptions(lock_seconds=300))
    emulator = await stack.enter_async_context(Emulator(queues))
    database = await stack.enter_async_context(Database(url, DatabaseRole.ORCHESTRATOR, pool_size=2))
    told = {"transport": "servicebus", "service_bus_connection_string": emulator.connection_string}
    settings = Settings.model_validate({"home": home, "orchestrator_poll_interval": LOOK_SECONDS, **told})
    broker = Broker(settings, database, owner_id)
    await stack.enter_async_context(broker.running())
    return {f"GRATICULE_{name.upper()}": value for name, value in told.items()}, broker
