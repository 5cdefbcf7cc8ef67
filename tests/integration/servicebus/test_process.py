"""The emulator as a process of its own."""

from azure.servicebus import ServiceBusClient, ServiceBusMessage
from tests.servicebus_emulator import QueueOptions, running_emulator
from tests.sockets import left_sockets_closed


def test_it_is_used_and_made_to_fail_from_outside() -> None:
    queues = {"q": QueueOptions(max_deliveries=1), "other": QueueOptions()}
    with (
        left_sockets_closed(),
        running_emulator(queues) as emulator,
        ServiceBusClient.from_connection_string(emulator.connection_string, retry_backoff_factor=0.05) as client,
        client.get_queue_sender("q") as sender,
        client.get_queue_receiver("q") as receiver,
    ):
        sender.send_messages([ServiceBusMessage("x", message_id=name) for name in ("1", "2", "3")])
        first, second = receiver.receive_messages(max_message_count=2, max_wait_time=5)
        receiver.dead_letter_message(first, reason="why")
        seen = emulator.queue("q")
        assert (seen.active, seen.locked, seen.dead) == (1, 1, 1)
        assert [message["state"] for message in seen.messages] == ["locked", "active"]
        assert [(letter["id"], letter["reason"]) for letter in seen.dead_letters] == [("1", "why")]
        emulator.faults.expire_locks("q")
        assert emulator.queue("q").dead_letters[1]["id"] == second.message_id == "2"
        emulator.faults.cut_after(1)
        sender.send_messages(ServiceBusMessage("x", message_id="4"))
        assert emulator.faults.cuts == 1
        assert {message["id"] for message in emulator.queue("q").messages} == {"3", "4"}
