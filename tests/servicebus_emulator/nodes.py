"""The nodes that answer requests: `$cbs`, which takes tokens, and `$management` of a queue."""

from collections.abc import Callable
from typing import Any

from tests.servicebus_emulator.faults import Faults
from tests.servicebus_emulator.management import manage
from tests.servicebus_emulator.message import Request
from tests.servicebus_emulator.queue import Queue
from tests.servicebus_emulator.refusal import Refusal
from tests.servicebus_emulator.tokens import Grants
from tests.servicebus_emulator.types import Int, Symbol

Answer = Callable[[Request], bytes]


def token_node(grants: Grants, when_granted: Callable[[], None]) -> Answer:
    """Give what answers to tokens that a client shows."""

    def answer(request: Request) -> bytes:
        try:
            grants.add(str(request.body), str(request.application_properties.get("name")))
        except Refusal as refusal:
            return request.answer(_status("status-code", "status-description", refusal.status, refusal.text), {})
        when_granted()
        return request.answer(_status("status-code", "status-description", 202, "Accepted"), {})

    return answer


def management_node(queue: Queue, faults: Faults) -> Answer:
    """Give what answers to requests about a queue."""

    def answer(request: Request) -> bytes:
        try:
            faults.refuse_when_busy()
            body = request.body if isinstance(request.body, dict) else {}
            status, result = manage(queue, str(request.application_properties.get("operation")), body)
        except Refusal as refusal:
            told = _status("statusCode", "statusDescription", refusal.status, refusal.text)
            return request.answer({**told, "errorCondition": Symbol(refusal.condition)}, {})
        return request.answer(_status("statusCode", "statusDescription", status, "OK"), result)

    return answer


def _status(code_name: str, text_name: str, code: int, text: str) -> dict[str, Any]:
    return {code_name: Int(code), text_name: text}
