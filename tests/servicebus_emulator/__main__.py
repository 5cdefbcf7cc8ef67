"""The emulator as a process: `python -m tests.servicebus_emulator --queues '{"q": {"lock_seconds": 5}}'`.

When it is ready it prints a line of JSON with its ports and its connection string. Then each line that it reads is a
command and each line that it prints the answer, both in JSON: `["faults", "cut_after", {}, 100]`, `["queue", "q"]`.
It ends when its input ends.
"""

import argparse
import asyncio
import json
import ssl
import sys
from pathlib import Path
from typing import Any, Final

from tests.servicebus_emulator.emulator import Emulator
from tests.servicebus_emulator.queue import Entry, Queue, QueueOptions
from tests.servicebus_emulator.refusal import Refusal
from tests.servicebus_emulator.tokens import check_claims

_FAULTS: Final = ("cut", "cut_after", "cut_at_random", "delay", "busy", "expire_locks", "stop")


def main() -> None:
    """Run until the input ends."""
    parser = argparse.ArgumentParser(prog="python -m tests.servicebus_emulator", description=__doc__)
    parser.add_argument("--queues", type=_queues, default={}, help="names and options of queues, in JSON")
    parser.add_argument("--port", type=int, default=0, help="for clients without TLS")
    parser.add_argument("--certificate", type=Path, help="opens the ports with TLS, and needs --key")
    parser.add_argument("--key", type=Path)
    parser.add_argument("--accept-jwt", action="store_true", help="accept tokens of an identity by their claims")
    asyncio.run(_run(parser.parse_args()))


async def _run(given: argparse.Namespace) -> None:
    check_jwt = check_claims if given.accept_jwt else None
    tls = _tls(given.certificate, given.key) if given.certificate else None
    async with Emulator(given.queues, tls=tls, port=given.port, check_jwt=check_jwt) as emulator:
        _say({name: getattr(emulator, name) for name in ("connection_string", "port", "tls_port", "admin_port")})
        commands = await _lines_of_input()
        while line := await commands.readline():
            _say(_answer(emulator, json.loads(line)))


def _answer(emulator: Emulator, command: list[Any]) -> dict[str, Any]:
    try:
        match command:
            case ["faults", str(fault), dict(named), *values] if fault in _FAULTS:
                getattr(emulator.faults, fault)(*values, **named)
                return {}
            case ["cuts"]:
                return {"cuts": emulator.faults.cuts}
            case ["queue", str(name)]:
                return _told(emulator.queues[name])
    except (TypeError, KeyError, ValueError, Refusal) as error:
        return {"error": repr(error)}
    return {"error": "There is no such command."}


def _told(queue: Queue) -> dict[str, Any]:
    counts = {name: getattr(queue, name) for name in ("active", "locked", "deferred", "scheduled", "dead")}
    letters = queue.dead_letters.messages if queue.dead_letters else []
    return {
        **counts,
        "messages": [_entry(each) for each in queue.messages],
        "dead_letters": [_entry(each) for each in letters],
    }


def _entry(entry: Entry) -> dict[str, Any]:
    return {
        "id": str(entry.id),
        "state": entry.state.value,
        "deliveries": entry.deliveries,
        "reason": entry.reason,
        "description": entry.description,
    }


def _queues(text: str) -> dict[str, QueueOptions]:
    return {name: QueueOptions(**options) for name, options in json.loads(text).items()}


def _tls(certificate: Path, key: Path) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    return context


async def _lines_of_input() -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    return reader


def _say(what: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
