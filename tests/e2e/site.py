"""An installation that is given files and jobs, and its storage, wherever that is."""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from tests.azure_login import identified
from tests.e2e.eventually import eventually
from tests.e2e.installation import Up

from graticule.config import Settings
from graticule.storage.blocking import BlockingStorage
from graticule.storage.place import storage_of

BRONZE = "bronze"
PARTIAL = ".partial"  # in the name of a file that is being written


@dataclass(frozen=True)
class Site:
    """An installation, asked by HTTP, and what it stores."""

    up: Up
    storage: BlockingStorage
    copies: Path  # a folder for what is looked at here
    client: httpx.Client

    def call(self, method: str, path: str, **options: Any) -> Any:
        answer = self.client.request(method, f"/api/v1{path}", **options)
        assert answer.status_code < 300, answer.text
        return answer.json()

    def submit(self, workflow_id: str, **inputs: Any) -> str:
        return str(self.call("POST", "/jobs", json={"workflow_id": workflow_id, "input_params": inputs})["job_id"])

    def until(self, job_id: str, status: str) -> Any:
        def asked() -> Any:
            job = self.call("GET", f"/jobs/{job_id}")
            return job if job["status"] == status else None

        return eventually(asked, lambda: f"{status}; {self.call('GET', f'/jobs/{job_id}')}", 60)

    def run(self, workflow_id: str, **inputs: Any) -> Any:
        """Run a job to its end, and give its result."""
        return self.until(self.submit(workflow_id, **inputs), "completed")["result"]

    def kept(self, below: str = "") -> dict[str, str]:
        """Give all that we made and finished, each with what another content would change."""
        prefix = f"{self.storage.silver}/{below}".removesuffix("/")
        return {blob.path: blob.etag for blob in self.storage.list(prefix)}

    def half_written(self) -> set[Path]:
        """Give what is not finished: it is beside where it is to be, or with the worker until it is sent."""
        folders = self.up.home / "storage", Path(self.up.environment["TMPDIR"])
        walks = (os.walk(folder) for folder in folders)
        return {Path(at, name) for walk in walks for at, _, names in walk for name in names if PARTIAL in name}

    def copy(self, path: str) -> Path:
        """Give a stored file as one that can be opened here."""
        copy = self.copies / path.replace("/", "-")
        copy.write_bytes(self.storage.get(path))
        return copy

    def hash(self, path: str) -> str:
        return hashlib.sha256(self.storage.get(path)).hexdigest()


@contextmanager
def opened_site(up: Up, copies: Path) -> Iterator[Site]:
    """Open the storage as the processes of the installation do, with their variables."""
    with (
        identified(up.environment),
        BlockingStorage(storage_of(Settings(home=up.home))) as storage,
        httpx.Client(
            base_url=f"http://127.0.0.1:{up.ports['orchestrator']}",
            headers={"X-API-Key": up.admin_key},
            timeout=30,
            verify=False,
        ) as client,
    ):
        yield Site(up, storage, copies, client)
