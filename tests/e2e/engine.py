"""An installation that runs jobs, and the command line beside it."""

import json
from dataclasses import dataclass
from datetime import datetime
from subprocess import CompletedProcess
from typing import Any

from tests.e2e.eventually import eventually
from tests.e2e.installation import FORKED, Program, Up


@dataclass(frozen=True)
class Engine:
    """What people do with jobs on an installation."""

    up: Up

    def begin(self, *arguments: str) -> Program:
        """Begin a command, and leave it running."""
        return Program(self.up.home.parent, FORKED, *arguments, GRATICULE_HOME=str(self.up.home))

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

    def job(self, job_id: str) -> dict[str, Any]:
        headers = {"X-API-Key": self.up.admin_key}
        found: dict[str, Any] = self.up.get(
            f"/api/v1/jobs/{job_id}", self.up.ports["orchestrator"], headers=headers
        ).json()
        return found

    def moments(self, job_id: str) -> dict[str, datetime]:
        """Tell when events of each kind came last."""
        events = map(json.loads, self.ok("events", job_id, "--json").splitlines())
        return {event["event_type"]: datetime.fromisoformat(event["created_at"]) for event in events}

    def until_running(self, job_id: str, node: str) -> None:
        eventually(lambda: node in self.job(job_id)["progress"]["current"], f"{node} under way")
