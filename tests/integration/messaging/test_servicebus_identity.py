"""With no key, the namespace is reached as who the process is: over TLS, with tokens of its managed identity."""

import logging
import os
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from structlog.testing import capture_logs
from tests.azure_login import identified
from tests.certificates import made
from tests.integration.messaging.bus import JOBS, QUEUE, Bus, received, until
from tests.managed_identity import ManagedIdentity, managed_identity
from tests.servicebus_emulator import Emulator, QueueOptions
from tests.servicebus_emulator.tokens import check_claims

from graticule.messaging.servicebus import inbound

PORT = 5671  # the client takes no other with TLS; so each process that tests has an address of its own
ADDRESS = f"127.{os.getpid() >> 14 & 127 | 64}.{os.getpid() >> 7 & 127}.{os.getpid() & 127 | 128}"


@dataclass
class Doorkeeper:
    """Looks at tokens as Entra would, unless told to let nobody in."""

    is_refusing: bool = False

    def check(self, token: str, audience: str) -> float:
        if self.is_refusing:
            raise ValueError("The identity has no role here.")
        return check_claims(token, audience)


@pytest.fixture
def identity() -> Iterator[ManagedIdentity]:
    with managed_identity() as endpoint, identified(endpoint.environment):
        yield endpoint


@pytest.fixture
def doorkeeper() -> Doorkeeper:
    return Doorkeeper()


@pytest.fixture
async def entra_bus(
    bus: Bus, doorkeeper: Doorkeeper, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Bus]:
    """Give a namespace that is known by its name alone."""
    certificates = made(tmp_path, ADDRESS)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates.ca))
    named = {"service_bus_connection_string": None, "service_bus_fqdn": ADDRESS}
    queues = dict.fromkeys((QUEUE, JOBS), QueueOptions(lock_seconds=300))
    async with Emulator(queues, host=ADDRESS, check_jwt=doorkeeper.check) as emulator:
        await emulator._listen(PORT, certificates.server_context())
        yield replace(bus, emulator=emulator, settings=bus.settings.model_copy(update=named))


async def test_tasks_travel_with_tokens_of_the_identity_which_nobody_is_told(
    entra_bus: Bus, identity: ManagedIdentity, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    await entra_bus.give("t")
    with capture_logs() as logged:
        async with entra_bus.broker(), entra_bus.receiver() as queue:
            (message,) = await received(queue, 1)
            queue.release(message)
            await until(lambda: not entra_bus.queue.messages)
    assert set(identity.asked) == {"https://servicebus.azure.net/"}
    assert logged == []
    assert not [token for token in identity.tokens if token in caplog.text]


async def test_an_identity_without_a_role_is_told_and_let_in_when_it_has_one(
    entra_bus: Bus, doorkeeper: Doorkeeper, identity: ManagedIdentity, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inbound, "PERMANENT_PAUSE_SECONDS", 0.3)
    doorkeeper.is_refusing = True
    with capture_logs() as logged:
        async with entra_bus.receiver() as queue:
            assert await queue.receive(QUEUE, 1) == []
            await until(lambda: logged)
            assert logged[0]["event"] == "the broker refuses"
            assert "the identity has the roles Service Bus Data Sender and Receiver" in logged[0]["error"]
            assert identity.tokens[0] not in str(logged)
            doorkeeper.is_refusing = False
            await entra_bus.give("t")
            async with entra_bus.broker():
                assert [message.task_id for message in await received(queue, 1)] == ["t"]
