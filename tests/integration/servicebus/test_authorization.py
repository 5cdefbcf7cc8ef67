"""Who has no sound token gets nowhere, and who asks for a queue that is not there is told so."""

import asyncio
import time

import pytest
from azure.core.credentials import AccessToken
from azure.servicebus import ServiceBusClient, ServiceBusMessage
from azure.servicebus.exceptions import (
    MessagingEntityNotFoundError,
    ServiceBusAuthenticationError,
    ServiceBusAuthorizationError,
)
from tests.integration.servicebus.bus import GOOD_JWT, Bus, EmulatedBus
from tests.integration.servicebus.clients import Clients
from tests.servicebus_emulator import QueueOptions

NO_RETRY = {"retry_total": 0}
REFUSED = (ServiceBusAuthenticationError, ServiceBusAuthorizationError)


@pytest.fixture
def queue(bus: Bus) -> str:
    return bus.new_queue(QueueOptions())


@pytest.fixture
def emulated(bus: Bus) -> EmulatedBus:
    return bus.emulated("its tokens and keys are its own")


class Identity:
    """A credential with a token of an identity."""

    def __init__(self, token: str) -> None:
        self._token = token

    def get_token(self, *scopes: str, **_: object) -> AccessToken:
        assert scopes == ("https://servicebus.azure.net//.default",)
        return AccessToken(self._token, int(time.time()) + 3600)


async def test_an_unknown_queue_is_told(clients: Clients) -> None:
    with pytest.raises(MessagingEntityNotFoundError):
        async with clients.sender("graticule-check-never", **NO_RETRY) as sender:
            await sender.send_messages(ServiceBusMessage("x"))


async def test_a_wrong_key_is_refused(clients: Clients, queue: str) -> None:
    wrong = clients.bus.connection_string.replace("SharedAccessKey=", "SharedAccessKey=not")
    with pytest.raises(REFUSED):
        async with clients.sender(queue, conn_str=wrong, **NO_RETRY):
            pass


@pytest.mark.parametrize(("resource", "seconds"), [("{queue}", -10), ("other", 60)])
async def test_a_token_that_is_too_old_or_for_another_queue_is_refused(
    emulated: EmulatedBus, queue: str, resource: str, seconds: int
) -> None:
    signed = _signed(emulated, resource.format(queue=queue), seconds)
    with pytest.raises(REFUSED):
        async with Clients(emulated, is_aio=True).sender(queue, conn_str=signed, **NO_RETRY):
            pass


async def test_a_link_is_detached_when_its_token_ends(emulated: EmulatedBus, queue: str) -> None:
    signed = _signed(emulated, queue, 4)
    async with Clients(emulated, is_aio=True).sender(queue, conn_str=signed, **NO_RETRY) as sender:
        await sender.send_messages(ServiceBusMessage("x"))
        await asyncio.sleep(4)
        with pytest.raises(REFUSED):
            await sender.send_messages(ServiceBusMessage("y"))
    assert len(emulated.do(lambda emulator: emulator.queues[queue].messages)) == 1


@pytest.mark.parametrize(("token", "is_good"), [(GOOD_JWT, True), ("another token", False)])
def test_a_token_of_an_identity_is_checked(emulated: EmulatedBus, queue: str, token: str, is_good: bool) -> None:
    address = f"127.0.0.1:{emulated.emulator.port}"
    trusted = {"connection_verify": str(emulated.certificates.ca)}
    with ServiceBusClient(address, Identity(token), use_tls=False, **NO_RETRY, **trusted) as client:  # type: ignore[arg-type]
        if is_good:
            with client.get_queue_sender(queue) as sender:
                sender.send_messages(ServiceBusMessage("x"))
        else:
            with pytest.raises(REFUSED), client.get_queue_sender(queue):
                pass


def _signed(bus: EmulatedBus, queue: str, seconds: int) -> str:
    """Give a connection string with a token instead of a key."""
    address = f"sb://127.0.0.1:{bus.emulator.port}"
    token = bus.signed_token(f"{address}/{queue}", seconds)
    return f"Endpoint={address};SharedAccessSignature={token};UseDevelopmentEmulator=true"
