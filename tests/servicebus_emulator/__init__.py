"""An emulator of Azure Service Bus for tests: Microsoft's own clients connect to it as they do to a real namespace.

    async with Emulator({"q": QueueOptions(lock_seconds=5)}) as emulator:
        client = ServiceBusClient.from_connection_string(emulator.connection_string)
        ...
        emulator.faults.cut()
        assert emulator.queues["q"].active == 1

It speaks AMQP 1.0 on loopback, with TLS too when it is given a context, and the administration API over HTTPS. It
needs nothing but the standard library, so that `running_emulator` starts it as a process in a moment. From the bottom
up: `types` and `frames` are the encoding, `message` and `queue` the rules without a wire, by a clock that a test can
move; `links`, `session` and `connection` are the wire; `nodes`, `management` and `tokens` answer requests;
`administration` and `descriptions` are the API of HTTP; `faults` is what can go wrong.

Whether it behaves as the service does is checked in tests/integration/servicebus, where the same checks also run in a
real namespace. Topics, sessions, transactions and web sockets are not emulated, nor the windows of AMQP sessions: a
client that gives credit for messages gets them.
"""

from tests.servicebus_emulator.emulator import Emulator
from tests.servicebus_emulator.process import EmulatorProcess, running_emulator
from tests.servicebus_emulator.queue import Queue, QueueOptions

__all__ = ["Emulator", "EmulatorProcess", "Queue", "QueueOptions", "running_emulator"]
