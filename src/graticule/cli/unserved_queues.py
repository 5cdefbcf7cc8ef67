"""Queues that no live worker serves, as commands name them."""

import asyncio
from typing import TYPE_CHECKING, Final

from graticule.cli.settings import load_settings
from graticule.core.errors import GraticuleError
from graticule.core.worker_command import missing_worker

if TYPE_CHECKING:
    from graticule.repositories.operations import Queue

PATIENCE_SECONDS: Final = 3.0  # with a server that is not needed


def unserved_queue(queue: "Queue") -> str:
    """Return the sentence for a queue in which tasks wait in vain."""
    from graticule.cli.job_picture import told_seconds

    tasks = "1 task waits" if queue.unserved == 1 else f"{queue.unserved} tasks wait"
    return f"{tasks}, the oldest for {told_seconds(queue.oldest_seconds or 0)}. {missing_worker(queue.queue)}"


def queues_of_server(server: str | None) -> "list[Queue] | None":
    """Return the queues of the server that is meant; None when there is none that answers."""
    from graticule.cli.server import Server, connected
    from graticule.client import calls

    async def read() -> "list[Queue]":
        async with asyncio.timeout(PATIENCE_SECONDS), connected(Server.locate(load_settings(), server)) as client:
            return (await client.send(calls.list_queues())).items

    try:
        return asyncio.run(read())
    except (GraticuleError, TimeoutError):
        return None
