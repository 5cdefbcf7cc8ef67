"""An installation that runs jobs, and the command line beside it."""

from dataclasses import dataclass
from datetime import datetime
from subprocess import CompletedProcess
from typing import Any, NamedTuple

import httpx
from tests.e2e.eventually import eventually
from tests.e2e.installation import FORKED, Program, Up

ENDED = frozenset({"completed", "failed", "cancelled"})


class JobEvent(NamedTuple):
    """Something that was noted of a job."""

    node_id: str | None
    at: datetime


@dataclass(frozen=True)
class Engine:
    """What people do with jobs on an installation."""

    up: Up

    def begin(self, *arguments: str) -> Program:
        """Begin a command, and leave it running."""
        return self.up.beside(FORKED, *arguments)

    def run(self, *arguments: str, seconds: float = 60) -> CompletedProcess[str]:
        """Run a command to its end."""
        program = self.begin(*arguments)
        try:
            return CompletedProcess(arguments, program.wait(seconds), program.output, program.errors)
        finally:
            program.close()

    def ok(self, *arguments: str) -> str:
        result = self.run(*arguments)
        assert result.returncode == 0, result.stdout + result.stderr
        return result.stdout

    def submit(self, *arguments: str) -> str:
        return self.ok("submit", *arguments).strip()

    # By HTTP, where the command is not the subject.

    def begun(self, workflow_id: str, **inputs: Any) -> str:
        """Begin a job."""
        job = {"workflow_id": workflow_id, "input_params": inputs}
        return str(self._asked("POST", "", json=job)["job_id"])

    def job(self, job_id: str) -> dict[str, Any]:
        return self._asked("GET", f"/{job_id}")

    def ended(self, job_id: str) -> dict[str, Any]:
        """Wait for the end of a job."""
        return eventually(lambda: _ended(self.job(job_id)), lambda: f"the end of {self.job(job_id)}")

    def events(self, job_id: str, event_type: str) -> list[JobEvent]:
        """Give the events of a kind."""
        found = self._asked("GET", f"/{job_id}/events", params={"event_type": event_type})["items"]
        return [JobEvent(each["node_id"], datetime.fromisoformat(each["created_at"])) for each in found]

    def until_running(self, job_id: str, node: str) -> None:
        eventually(lambda: node in self.job(job_id)["progress"]["current"], f"{node} under way")

    def _asked(self, method: str, path: str, **options: Any) -> dict[str, Any]:
        answer = httpx.request(
            method,
            f"http://127.0.0.1:{self.up.ports['orchestrator']}/api/v1/jobs{path}",
            headers={"X-API-Key": self.up.admin_key},
            timeout=30,
            verify=False,
            **options,
        )
        assert answer.is_success, answer.text
        document: dict[str, Any] = answer.json()
        return document


def _ended(job: dict[str, Any]) -> dict[str, Any] | None:
    return job if job["status"] in ENDED else None
