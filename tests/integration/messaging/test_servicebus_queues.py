"""`graticule azure queues ensure` brings the queues of a namespace to what they should be."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.servicebus.bus import KEY, KEY_NAME, EmulatedBus, emulated_bus
from tests.servicebus_emulator import QueueOptions
from tests.unit.cli.conftest import Result, assert_told_in_two_lines, run

OURS = ("orchestrator-jobs", "functionapp-tasks", "container-tasks")


@pytest.fixture(scope="module")
def namespace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmulatedBus]:
    with emulated_bus(tmp_path_factory.mktemp("namespace")) as emulated:
        yield emulated


def ensure(namespace: EmulatedBus, *arguments: str, key: str = KEY, **variables: str) -> Result:
    endpoint = f"Endpoint=sb://127.0.0.1:{namespace.emulator.admin_port}/"
    given = {
        "GRATICULE_SERVICE_BUS_CONNECTION_STRING": f"{endpoint};SharedAccessKeyName={KEY_NAME};SharedAccessKey={key}",
        "SSL_CERT_FILE": str(namespace.certificates.ca),
    }
    return run("azure", "queues", "ensure", *arguments, variables=given | variables)


def options(namespace: EmulatedBus, name: str) -> QueueOptions:
    return namespace.emulator.queues[name].options


def test_queues_are_made_changed_and_kept(namespace: EmulatedBus) -> None:
    namespace.do(lambda emulator: emulator.namespace.create("odd", QueueOptions(lock_seconds=30, ttl_seconds=60)))
    made = ensure(namespace, "odd", GRATICULE_WORKER_QUEUE="night-tasks, container-tasks")
    assert (made.code, made.err) == (0, "")
    assert lines(made) == [*((name, "made") for name in (*OURS, "night-tasks")), ("odd", "changed")]
    for name in (*OURS, "night-tasks", "odd"):
        assert options(namespace, name) == QueueOptions(lock_seconds=300, max_deliveries=10, ttl_seconds=86_400)
    kept = ensure(namespace)
    assert lines(kept) == [(name, "kept") for name in OURS]
    changed = ensure(
        namespace,
        "--lock-seconds",
        "60",
        "--max-deliveries",
        "20",
        GRATICULE_SERVICE_BUS_MESSAGE_SECONDS="3600",
        GRATICULE_JOB_QUEUE_NAME="other-jobs",
    )
    assert lines(changed) == [("other-jobs", "made"), *((name, "changed") for name in OURS[1:])]
    assert options(namespace, OURS[1]) == QueueOptions(lock_seconds=60, max_deliveries=20, ttl_seconds=3600)


def test_a_queue_that_drops_what_it_has_seen_is_warned_of(namespace: EmulatedBus) -> None:
    namespace.do(lambda emulator: emulator.namespace.create("picky", QueueOptions(duplicate_seconds=600)))
    result = ensure(namespace, "picky")
    assert result.code == 0
    assert ("picky", "changed") in lines(result)
    assert "picky drops messages whose id it has seen before" in " ".join(result.err.split())
    assert options(namespace, "picky").duplicate_seconds == 600, "it cannot be changed in a queue that exists"


def test_a_key_that_may_not_is_told_without_it(namespace: EmulatedBus) -> None:
    told, hint = assert_told_in_two_lines(ensure(namespace, key="a-wrong-key"))
    assert "does not let us see to the queue 'orchestrator-jobs'" in told
    assert "Manage" in hint
    assert "a-wrong-key" not in told + hint


@pytest.mark.parametrize(
    ("connection_string", "told"),
    [
        ("Endpoint=sb://127.0.0.1:9/;SharedAccessKeyName=n;SharedAccessKey=a-hidden-key", "could not see to the queue"),
        ("a-hidden-key", "is not a connection string"),
        ("", "The namespace of Service Bus is not known"),
    ],
)
def test_what_cannot_be_reached_is_told_without_secrets(
    namespace: EmulatedBus, connection_string: str, told: str
) -> None:
    result = ensure(namespace, GRATICULE_SERVICE_BUS_CONNECTION_STRING=connection_string)
    assert result.code == 1
    assert told in " ".join(result.err.split())
    assert "a-hidden-key" not in result.out + result.err
    assert "Traceback" not in result.err


def test_the_help_tells_the_rules(tmp_path: Path) -> None:
    result = run("azure", "queues", "ensure", "--help")
    for word in ("--lock-seconds", "300", "--max-deliveries", "10", "GRATICULE_WORKER_QUEUE"):
        assert word in result.out


def lines(result: Result) -> list[tuple[str, ...]]:
    """Give the queues with what was done to them, in the order in which they are listed."""
    return [tuple(line.split()) for line in result.out.splitlines() if len(line.split()) == 2]
