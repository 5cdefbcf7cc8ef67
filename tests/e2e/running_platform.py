"""An installation with handlers of another package, and people and programs who call its gateway."""

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx
from standardwebhooks import Webhook
from tests.e2e.alike import text_like
from tests.e2e.asset_rows import AssetRows, Connection, reading
from tests.e2e.callback_receiver import Receiver, receiver
from tests.e2e.engine import Engine
from tests.e2e.eventually import eventually
from tests.e2e.installation import Up
from tests.e2e.lifecycle_package import LifecyclePackage

from graticule.core.table import DatabaseRole

SERVE_URL: Final = "http://serve.example"
ENDED: Final = frozenset({"completed", "failed"})
CLIENTS: Final = {
    "ddh-portal": ("--role", "submitter", "--platform", "ddh"),
    "arcgis-portal": ("--role", "submitter", "--platform", "arcgis"),
    "rita-of-review": ("--role", "reviewer"),
    "olaf-of-operations": ("--role", "operator"),
}


@dataclass(frozen=True)
class HttpCaller:
    """One who calls the gateway; all that it was told is kept."""

    client: httpx.Client
    answers: list[httpx.Response] = field(default_factory=list)

    def ask(self, method: str, path: str, status: int = 200, /, **options: Any) -> Any:
        """Send a request, insist on the status of its answer, and give the document that it carries."""
        answer = self.client.request(method, path, **options)
        self.answers.append(answer)
        assert answer.status_code == status, f"{method} {path}: {answer.status_code} {answer.text}"
        assert answer.headers["content-type"] == ("application/json" if status < 400 else "application/problem+json")
        return answer.json()

    def get(self, path: str, status: int = 200, /, **params: Any) -> Any:
        return self.ask("GET", path, status, params=params)

    def post(self, path: str, status: int = 200, /, **body: Any) -> Any:
        return self.ask("POST", path, status, json=body)


@dataclass(frozen=True)
class RunningPlatform:
    """The installation, and all who have to do with it."""

    up: Up
    package: LifecyclePackage
    callbacks: Receiver
    database: Connection
    partner: HttpCaller
    stranger: HttpCaller
    reviewer: HttpCaller
    operator: HttpCaller
    admin: HttpCaller

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.up.port}"

    def rows(self, asset_id: str) -> AssetRows:
        return AssetRows(self.database, asset_id)

    def webhook(self, platform_id: str) -> Webhook:
        """Give what verifies the callbacks to a partner, made of the secret that an admin hands to it."""
        told = self.admin.get(f"/api/proxy/orchestrator/api/v1/platforms/{platform_id}/webhook-secret")
        assert told == {"recipient": platform_id, "secret": text_like(r"whsec_[A-Za-z0-9+/]{43}=")}
        return Webhook(told["secret"])

    def submission(self, dataset: str, label: str, file: str, **more: Any) -> dict[str, Any]:
        """Give what the partner sends, in words of its own."""
        return {
            "dataset_id": dataset,
            "resource_id": "dem",
            "version_id": label,
            "data_type": "raster",
            "container_name": "bronze",
            "file_name": file,
            **more,
        }

    def until_ended(self, request_id: str) -> Any:
        """Follow a request as the partner does until its processing has ended."""

        def asked() -> Any:
            status = self.partner.get(f"/api/platform/status/{request_id}")
            return status if status["status"] in ENDED else None

        return eventually(asked, lambda: f"the end of {request_id}; {self.up.logs[-2000:]}")

    def processed(self, dataset: str, label: str = "V1") -> str:
        """Send a version with a file that is there, wait until it is processed, and give its asset."""
        file = self.package.upload(f"{dataset}.tif", f"{dataset} {label}")
        receipt = self.partner.post("/api/platform/submit", 202, **self.submission(dataset, label, file))
        assert self.until_ended(receipt["request_id"])["status"] == "completed"
        return str(receipt["asset_id"])

    def until_job(self, rows: AssetRows, name: str, status: str) -> None:
        """Wait until a job of an asset stands so."""
        eventually(
            lambda: rows.current("jobs").get(name, {}).get("status") == status,
            lambda: f"{name} {status}; {rows.current('jobs')}",
        )


@contextmanager
def running_platform(home: Path) -> Iterator[RunningPlatform]:
    """Start everything on a data folder, and have keys made for those who call."""
    package = LifecyclePackage(home.parent / "package", home / "storage")
    up = Up(
        home,
        PYTHONPATH=str(package.modules),
        GRATICULE_WORKFLOWS=str(package.workflows),
        GRATICULE_CALLBACK_ALLOW="127.0.0.1/32",
        GRATICULE_SERVE_URL=SERVE_URL,
        GRATICULE_RATE_LIMIT_PER_MINUTE="6000",  # the tests ask more often than people do
    )
    with ExitStack() as stack:
        stack.callback(up.close)
        callbacks = stack.enter_context(receiver())
        keys = _new_keys(up.until_ready())
        clients = [
            stack.enter_context(
                httpx.Client(
                    base_url=f"http://127.0.0.1:{up.port}",
                    headers={"X-API-Key": key},
                    timeout=30,
                    trust_env=False,
                    verify=False,
                )
            )
            for key in (*keys, up.admin_key)
        ]
        database = stack.enter_context(reading(up.database_url(DatabaseRole.GATEWAY)))
        yield RunningPlatform(up, package, callbacks, database, *map(HttpCaller, clients))


def _new_keys(up: Up) -> list[str]:
    """Have an admin make the clients by the command line, and give their keys."""
    commands = [Engine(up).begin("client", "add", name, *roles, "--json") for name, roles in CLIENTS.items()]
    assert [command.wait(60) for command in commands] == [0] * len(CLIENTS)
    return [str(json.loads(command.output)["key"]) for command in commands]
