"""The namespace of the checks, and the clients with which each of them is run."""

import os
from collections.abc import Iterator

import pytest
from tests.integration.servicebus.bus import Bus, emulated_bus, real_bus
from tests.integration.servicebus.clients import Clients

REAL = "GRATICULE_TEST_SERVICE_BUS_CONNECTION_STRING"


@pytest.fixture(scope="session")
def bus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bus]:
    """The emulator, or the namespace that the environment names."""
    if connection_string := os.environ.get(REAL):
        with real_bus(connection_string) as real:
            yield real
    else:
        with emulated_bus(tmp_path_factory.mktemp("servicebus")) as emulated:
            yield emulated


@pytest.fixture(params=["aio", "sync"])
def clients(bus: Bus, request: pytest.FixtureRequest) -> Clients:
    """Either client."""
    return Clients(bus, is_aio=request.param == "aio")


@pytest.fixture(params=["aio", "sync"])
def tls_clients(bus: Bus, request: pytest.FixtureRequest) -> Clients:
    """Either client, over TLS."""
    return Clients(bus, is_aio=request.param == "aio", tls=True)
