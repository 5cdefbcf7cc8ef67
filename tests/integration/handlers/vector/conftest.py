"""A worker and the application of features, for all tests of a process that take a file the whole way."""

import threading
from collections.abc import Iterator

import pytest
from tests.conftest import new_database
from tests.integration.handlers.vector.hosts import Host
from tests.integration.handlers.vector.ingesting import Ingestion


@pytest.fixture(scope="session")
def shared_ingestion(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ingestion]:
    """Give a worker on a database of its own: to start one, with its processes, takes longer than most tests."""
    with new_database() as database:
        made = Ingestion(database, tmp_path_factory.mktemp("ingestion"))
        yield made
        made.close()


@pytest.fixture
def ingestion(shared_ingestion: Ingestion) -> Iterator[Ingestion]:
    """Give the worker; what was loaded is dropped after the test."""
    yield shared_ingestion
    shared_ingestion.rows.forget()


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")  # as installations have it
    with Host() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()
