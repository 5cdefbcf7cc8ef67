"""Those who call the gateway beside the console: they prepare what is to be seen there."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx
from tests.browser.console.site import Site
from tests.e2e.eventually import eventually

ORCHESTRATOR = "/api/proxy/orchestrator/api/v1"


@dataclass(frozen=True)
class Caller:
    """One who calls with a key."""

    site: Site
    key: str

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.site.port}"

    def get(self, path: str, **params: Any) -> Any:
        return self._ask("GET", path, params=params)

    def post(self, path: str, **body: Any) -> Any:
        return self._ask("POST", path, json=body)

    def add_client(self, name: str, *roles: str, platform_id: str | None = None) -> "Caller":
        """Have an admin add a client, and give it as one who calls."""
        asked = {"client_id": name, "display_name": name, "roles": roles, "platform_id": platform_id}
        return Caller(self.site, self.post(f"{ORCHESTRATOR}/clients", **asked)["key"])

    def submit_job(self, workflow: str, **inputs: Any) -> str:
        return str(self.post("/api/gateway/submit", workflow_id=workflow, input_params=inputs)["job_id"])

    def until_job(self, job_id: str, stands: Callable[[Any], bool]) -> None:
        """Wait until a job stands as it should."""
        path = f"/api/status/job/{job_id}"
        eventually(lambda: stands(self.get(path)), lambda: str(self.get(path)), 60)

    def _ask(self, method: str, path: str, **options: Any) -> Any:
        headers = {"X-API-Key": self.key}
        answer = httpx.request(method, f"{self.url}{path}", headers=headers, timeout=30, verify=False, **options)
        assert answer.is_success, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer.json()
