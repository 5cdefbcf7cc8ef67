"""A real worker in a process of its own, beside the application of the test."""

from collections.abc import Iterator
from contextlib import contextmanager

import httpx
from tests.chaos.member import Member, Orders
from tests.conftest import TestDatabase
from tests.e2e.eventually import eventually
from tests.e2e.processes import free_ports
from tests.integration.api.running import RunningApi

from graticule.core.table import DatabaseRole


@contextmanager
def worker_process(api: RunningApi, database: TestDatabase, *, queues: str, handlers: str = "") -> Iterator[Member]:
    """Run `graticule worker` on the storage of the application, with the handlers of one more module."""
    port = free_ports()
    environment = {
        "GRATICULE_HOME": str(api.home),
        "GRATICULE_DATABASE_URL": database.url(DatabaseRole.WORKER),
        "GRATICULE_WORKER_GRACE_SECONDS": "2",
    }
    command = ("worker", "--port", str(port), "--queues", queues, "--concurrency", "2")
    worker = Member(Orders(command, api.home / "worker.log", environment, handlers=(handlers,) if handlers else ()))
    try:
        eventually(lambda: _is_ready(worker, port), lambda: f"a worker that is ready: {worker.output}")
        yield worker
    finally:
        worker.kill()
        worker.wait()


def _is_ready(worker: Member, port: int) -> bool:
    assert worker.running, worker.output
    try:
        return httpx.get(f"http://127.0.0.1:{port}/readyz", timeout=5).status_code == 200
    except httpx.TransportError:
        return False
