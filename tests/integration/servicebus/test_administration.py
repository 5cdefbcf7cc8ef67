"""Queues are made, changed, listed and removed over HTTPS."""

import datetime as dt
from collections.abc import Iterator
from uuid import uuid4

import pytest
from azure.core.exceptions import (
    ClientAuthenticationError,
    HttpResponseError,
    ResourceExistsError,
    ResourceNotFoundError,
)
from azure.servicebus import ServiceBusClient, ServiceBusMessage
from azure.servicebus.exceptions import MessagingEntityNotFoundError
from azure.servicebus.management import ServiceBusAdministrationClient
from tests.integration.servicebus.bus import Bus
from tests.servicebus_emulator import QueueOptions


@pytest.fixture
def administration(bus: Bus) -> Iterator[ServiceBusAdministrationClient]:
    with ServiceBusAdministrationClient.from_connection_string(**bus.administration_options()) as client:
        yield client


@pytest.fixture
def name(administration: ServiceBusAdministrationClient) -> Iterator[str]:
    name = f"graticule-check-{uuid4().hex[:12]}"
    yield name
    if any(queue.name == name for queue in administration.list_queues()):
        administration.delete_queue(name)


def test_a_queue_is_made_as_it_is_asked_for(administration: ServiceBusAdministrationClient, name: str) -> None:
    made = administration.create_queue(
        name,
        lock_duration=dt.timedelta(minutes=5),
        max_delivery_count=7,
        default_message_time_to_live=dt.timedelta(days=1),
        dead_lettering_on_message_expiration=True,
        requires_duplicate_detection=True,
        duplicate_detection_history_time_window=dt.timedelta(minutes=20),
    )
    for queue in (made, administration.get_queue(name)):
        assert queue.name == name
        assert queue.lock_duration == dt.timedelta(minutes=5)
        assert queue.max_delivery_count == 7
        assert queue.default_message_time_to_live == dt.timedelta(days=1)
        assert queue.dead_lettering_on_message_expiration
        assert queue.requires_duplicate_detection
        assert queue.duplicate_detection_history_time_window == dt.timedelta(minutes=20)


def test_a_queue_is_changed(administration: ServiceBusAdministrationClient, name: str) -> None:
    queue = administration.create_queue(name)
    queue.max_delivery_count = 3
    queue.lock_duration = dt.timedelta(seconds=30)
    administration.update_queue(queue)
    changed = administration.get_queue(name)
    assert (changed.max_delivery_count, changed.lock_duration) == (3, dt.timedelta(seconds=30))


def test_what_cannot_be_is_refused(administration: ServiceBusAdministrationClient, name: str) -> None:
    with pytest.raises(HttpResponseError):
        administration.create_queue(name, lock_duration=dt.timedelta(minutes=10))
    with pytest.raises(ResourceNotFoundError):
        administration.get_queue(name)
    administration.create_queue(name)
    with pytest.raises(ResourceExistsError):
        administration.create_queue(name)
    administration.delete_queue(name)
    with pytest.raises(ResourceNotFoundError):
        administration.delete_queue(name)


def test_queues_are_listed_page_by_page(bus: Bus, administration: ServiceBusAdministrationClient) -> None:
    names = {bus.new_queue(QueueOptions()) for _ in range(3)}
    pages = administration.list_queues(max_page_size=2).by_page()
    listed = [[queue.name for queue in page] for page in pages]
    assert names <= {name for page in listed for name in page}
    assert all(len(page) <= 2 for page in listed)


def test_messages_are_counted(bus: Bus, administration: ServiceBusAdministrationClient) -> None:
    emulated = bus.emulated("its counts are late")
    queue = emulated.new_queue(QueueOptions())
    later = dt.datetime.now(dt.UTC) + dt.timedelta(hours=1)
    with (
        ServiceBusClient.from_connection_string(**emulated.client_options(tls=False)) as client,
        client.get_queue_sender(queue) as sender,
    ):
        sender.send_messages([ServiceBusMessage("1"), ServiceBusMessage("2")])
        sender.schedule_messages(ServiceBusMessage("3"), later)
    counted = administration.get_queue_runtime_properties(queue)
    assert (counted.active_message_count, counted.scheduled_message_count) == (2, 1)
    assert (counted.total_message_count, counted.dead_letter_message_count) == (3, 0)


def test_a_queue_that_is_removed_detaches_its_links(
    bus: Bus, administration: ServiceBusAdministrationClient, name: str
) -> None:
    administration.create_queue(name)
    with (
        ServiceBusClient.from_connection_string(**bus.client_options(tls=False), retry_total=0) as client,
        client.get_queue_receiver(name) as receiver,
    ):
        administration.delete_queue(name)
        with pytest.raises(MessagingEntityNotFoundError):
            receiver.receive_messages(max_wait_time=5)


def test_a_wrong_key_is_refused(bus: Bus) -> None:
    options = bus.administration_options()
    options["conn_str"] = options["conn_str"].replace("SharedAccessKey=", "SharedAccessKey=not")
    with (
        ServiceBusAdministrationClient.from_connection_string(**options) as client,
        pytest.raises(ClientAuthenticationError),
    ):
        client.get_queue("any")
