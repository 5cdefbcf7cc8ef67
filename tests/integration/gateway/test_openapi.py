"""Both processes do what their OpenAPI documents say, whatever is sent to them."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import hypothesis
import psycopg
import pytest
import requests
from hypothesis import HealthCheck, Phase
from hypothesis import strategies as st
from pydantic import SecretStr
from tests.conftest import TestDatabase
from tests.examples import examples
from tests.integration.api.documents import application
from tests.integration.gateway.front import (
    ADMIN_KEY,
    DOMAIN,
    SERVICE_KEY,
    TOKEN,
    add_clients,
    address,
    running_api,
    running_front,
    served,
    settings_of,
)

from graticule.services.service_tokens import GATEWAY, HEADER, ServiceTokens

EXAMPLES: Final = examples(10)  # of each operation; what was once found wrong has a test of its own
PROCESSES: Final = ("gateway", "orchestrator")
# They answer without end; their own tests listen to them.
ENDLESS: Final = ("/events/stream",)
# These work on the whole schema, for seconds; their own tests do so.
SLOW: Final = ("/bootstrap/deploy", "/bootstrap/migrate", "/bootstrap/rebuild")
NO_CREDENTIAL: Final = frozenset(
    {"/", "/livez", "/readyz", "/health", "/api/livez", "/api/readyz", "/api/gateway/health"}
    | {"/api/session", "/api/session/oidc", "/api/session/oidc/callback"}
)


@dataclass
class Installation:
    """Both processes at work, in a thread of their own, and ids of what is there."""

    addresses: dict[str, str]
    known: dict[str, str] = field(default_factory=dict)

    def document(self, process: str) -> dict[str, Any]:
        found: dict[str, Any] = requests.get(f"{self.addresses[process]}/openapi.json", timeout=30).json()
        return found

    def document_without_credentials(self, process: str) -> dict[str, Any]:
        """Give the document without what opens the addresses: a second credential, made up, would refuse the first."""
        found = self.document(process)
        del found["components"]["securitySchemes"]
        for operation in (each for item in found["paths"].values() for each in item.values()):
            operation.pop("security", None)
        return found


@contextmanager
def in_a_thread(database: TestDatabase, home: Path) -> Iterator[dict[str, str]]:
    """Serve both processes while the tests ask from this thread."""
    addresses: dict[str, str] = {}
    ready, stop = threading.Event(), asyncio.Event()
    loop = asyncio.new_event_loop()

    async def serve() -> None:
        settings = settings_of(home)
        async with running_api(settings, database) as api, served(api) as orchestrator:
            # The orchestrator stands for the services: it has none of their paths, and says so as they would.
            targets = {"serve": address(orchestrator)}
            forwarding = settings_of(home, orchestrator_url=address(orchestrator), proxy_targets=targets)
            async with running_front(forwarding, database) as front, served(front.app) as gateway:
                addresses.update(gateway=gateway, orchestrator=orchestrator)
                ready.set()
                await stop.wait()

    def run() -> None:
        try:
            loop.run_until_complete(serve())
        finally:
            ready.set()
            loop.close()

    thread = threading.Thread(target=run)
    thread.start()
    assert ready.wait(60)
    try:
        yield addresses
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(60)


@pytest.fixture
def installation(own_database: TestDatabase, tmp_path: Path) -> Iterator[Installation]:
    add_clients(own_database)
    with in_a_thread(own_database, tmp_path) as addresses:
        found = Installation(addresses)
        _fill(found, own_database)
        yield found


def _fill(installation: Installation, database: TestDatabase) -> None:
    """Let there be something of everything, so that answers can be compared with their schemas."""
    ask = requests.Session()
    ask.headers["X-API-Key"] = ADMIN_KEY
    base = installation.addresses["gateway"]
    submitted = ask.post(f"{base}/api/platform/submit", json={**DOMAIN, "platform_id": "ddh"}, timeout=30).json()
    with psycopg.connect(database.url(), autocommit=True) as connection:
        connection.execute("UPDATE dagapp.asset_versions SET processing_state = 'completed'")
    named = {"asset_id": submitted["asset_id"], "clearance_level": "ouo"}
    assert ask.post(f"{base}/api/platform/approve", json=named, timeout=30).status_code == 200
    job = ask.post(f"{base}/api/gateway/submit", json={"workflow_id": "echo_test"}, timeout=30).json()
    installation.known = {
        "asset_id": submitted["asset_id"],
        "key": submitted["request_id"],
        "ordinal": "0",
        "version_ordinal": "0",
        "job_id": job["job_id"],
        "node_id": "echo_handler",
        "platform_id": "ddh",
        "workflow_id": "echo_test",
        "client_id": "partner",
        "target": "orchestrator",
    }


def credential(path: str) -> dict[str, str]:
    """Give what opens an address."""
    if path.endswith("/clients/used"):
        return {HEADER: ServiceTokens(SecretStr(SERVICE_KEY)).sign(GATEWAY)}
    return {"Authorization": f"Bearer {TOKEN}"} if "/callbacks/" in path else {"X-API-Key": ADMIN_KEY}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("process", PROCESSES)
def test_every_answer_is_one_that_the_document_tells_of(
    installation: Installation, process: str, subtests: pytest.Subtests
) -> None:
    # It is loaded for two seconds, and all processes that run tests would do so.
    from tests.integration.gateway.described import CHECKS, operations, sound_or_not

    session = requests.Session()
    for operation in operations(installation.document_without_credentials(process)):
        if operation.path.endswith((*ENDLESS, *SLOW)):
            continue

        @hypothesis.settings(
            max_examples=EXAMPLES,
            derandomize=True,
            deadline=None,
            database=None,
            phases=[Phase.explicit, Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @hypothesis.given(case=sound_or_not(operation), is_known=st.sampled_from([True, True, False]))
        def holds(case: Any, is_known: bool) -> None:
            if is_known and case.path_parameters:
                case.path_parameters.update(
                    {name: value for name, value in installation.known.items() if name in case.path_parameters}
                )
            headers = {} if case.path in NO_CREDENTIAL else credential(case.path)
            answer = case.call(installation.addresses[process], session=session, headers=headers, timeout=30)
            case.validate_response(answer, checks=CHECKS)

        with subtests.test(operation.label):
            holds()


@pytest.mark.parametrize("process", PROCESSES)
def test_every_operation_documents_its_errors(process: str) -> None:
    document: dict[str, Any] = application(process).openapi()
    missing = {
        f"{method.upper()} {path}": sorted(wanted)
        for path, item in document["paths"].items()
        for method, operation in item.items()
        if (wanted := _errors_of(path, operation) - set(operation["responses"]))
    }
    assert missing == {}


def _errors_of(path: str, operation: dict[str, Any]) -> set[str]:
    """Give the statuses that can always come of an operation."""
    if path in NO_CREDENTIAL:
        return set()
    wanted = {"401", "503"} if path.endswith("/clients/used") else {"401", "403", "503"}
    wanted |= {"422"} if operation.get("parameters") else set()
    return wanted | ({"400", "413", "422"} if "requestBody" in operation else set())
