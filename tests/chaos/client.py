"""Someone who asks for jobs, as clients do: again and again with the same key, until there is an answer."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from random import Random
from typing import Any, Final

import httpx
import psycopg
from tests.chaos.history import SubmittedJob
from tests.chaos.installation import OPERATOR_KEY, Crew, ask
from tests.chaos.workflows import POISON_ID, ChaosWorkflow

from graticule.core.errors import GraticuleError
from graticule.core.models import JobMessage
from graticule.core.table import DatabaseRole
from graticule.repositories.database import Database
from graticule.repositories.messages import MessageRepository

QUEUE: Final = "orchestrator-jobs"
PAUSES: Final = (0.1, 0.3, 1.0)
FAILED: Final = "SELECT job_id, workflow_id FROM dagapp.dag_jobs WHERE status = 'failed' AND workflow_id <> %s"
MOST_RESUMES: Final = 2  # of one job
BrokerPost = Callable[[str, dict[str, Any]], Awaitable[None]]  # takes a message's id and its body


class Client:
    """Submits jobs by HTTP and by message, cancels some, and resumes some that failed."""

    def __init__(
        self, crew: Crew, workflows: Sequence[ChaosWorkflow], rng: Random, broker: BrokerPost | None = None
    ) -> None:
        """Prepare to ask; messages go by the broker, if there is one."""
        self._broker = broker
        self.submitted: list[SubmittedJob] = []
        self.asked = 0
        self.repeated = 0  # requests without an answer
        self.cancelled = 0
        self.resumed: Counter[str] = Counter()
        self.problems: list[str] = []
        self._crew = crew
        self._workflows = {workflow.workflow_id: workflow for workflow in workflows}
        self._rng = rng
        self._http = httpx.AsyncClient(headers={"X-API-Key": OPERATOR_KEY}, timeout=5, verify=False)
        self._database = Database(crew.url(DatabaseRole.ORCHESTRATOR), DatabaseRole.ORCHESTRATOR, pool_size=2)
        self._under_way: set[asyncio.Task[Any]] = set()

    @asynccontextmanager
    async def open(self) -> AsyncIterator["Client"]:
        """Connect inside the block."""
        async with self._http, self._database:
            try:
                yield self
            finally:
                for task in self._under_way:
                    task.cancel()
                await asyncio.gather(*self._under_way, return_exceptions=True)

    async def go_on(self, jobs_per_second: float) -> None:
        """Ask for jobs, for ever."""
        drawn = [workflow for workflow in self._workflows.values() if workflow.workflow_id != POISON_ID]
        while True:
            self._begin(self._one(self._rng.choice(drawn)))
            await asyncio.sleep(self._rng.expovariate(jobs_per_second))

    async def resume_failed(self) -> None:
        """Resume every other job that failed, for ever."""
        seen: Counter[str] = Counter()
        while True:
            await asyncio.sleep(1)
            for job_id, workflow_id in await self._failed():
                seen[job_id] += 1
                if seen[job_id] == 1 and self._rng.random() < 0.6 and self.resumed[job_id] < MOST_RESUMES:
                    seen[job_id] = 0  # it may fail again
                    self._begin(self._resume(job_id, self._workflows[workflow_id]))

    async def _failed(self) -> list[tuple[str, str]]:
        try:
            found = await ask(self._crew.place.url(), FAILED, POISON_ID)
        except psycopg.OperationalError:
            return []
        return [(str(job_id), str(workflow_id)) for job_id, workflow_id in found]

    async def answered(self, seconds: float) -> None:
        """Wait until everything that was asked for is answered."""
        if self._under_way:
            _, waiting = await asyncio.wait(self._under_way, timeout=seconds)
            if waiting:
                self.problems.append(f"{len(waiting)} requests were not answered within {seconds:g} s of calm")

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._under_way.add(task)
        task.add_done_callback(self._end)

    def _end(self, task: "asyncio.Task[None]") -> None:
        self._under_way.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.problems.append(f"a request failed: {error!r}")

    # Asking

    async def _one(self, workflow: ChaosWorkflow) -> None:
        luck = self._rng.random()
        if luck < 0.03:
            await self._send_bad(workflow)
        elif luck < 0.35:
            await self.send(workflow)
        else:
            cancel_after = self._rng.uniform(0, 2) if self._rng.random() < 0.08 else None
            job_id = await self.submit(workflow, {"value": self._rng.randint(0, 9)})
            if cancel_after is not None:
                await asyncio.sleep(cancel_after)
                await self.cancel(job_id)

    async def submit(self, workflow: ChaosWorkflow, inputs: Mapping[str, Any], port: int | None = None) -> str:
        """Ask for a job by HTTP, and give its id."""
        key = self._new_key()
        content = {"workflow_id": workflow.workflow_id, "input_params": dict(inputs), "idempotency_key": key}
        answer = await self._ask("/jobs", content, {200, 201}, port)
        job_id = str(answer["job_id"])
        self.submitted.append(SubmittedJob(key, workflow.workflow_id, job_id, may_fail=workflow.may_fail))
        return job_id

    async def cancel(self, job_id: str) -> None:
        """Ask for the end of a job."""
        await self._ask(f"/jobs/{job_id}/cancel", {}, {200, 202})
        self.cancelled += 1

    async def send(self, workflow: ChaosWorkflow) -> None:
        """Ask for a job by message."""
        key = self._new_key()
        await self._send(key, {"workflow_id": workflow.workflow_id, "idempotency_key": key})
        self.submitted.append(SubmittedJob(key, workflow.workflow_id, may_fail=workflow.may_fail))

    async def _send_bad(self, workflow: ChaosWorkflow) -> None:
        """Send a message that can never become a job."""
        key = self._new_key()
        asked: dict[str, Any] = {"workflow_id": "chaos_that_is_not_there"}
        if self._rng.random() < 0.5:
            asked = {"workflow_id": workflow.workflow_id, "input_params": {"value": "not a number"}}
        await self._send(key, {**asked, "idempotency_key": key})
        self.submitted.append(SubmittedJob(key, asked["workflow_id"], is_bad=True))

    async def _resume(self, job_id: str, workflow: ChaosWorkflow) -> None:
        """Let a failed job go on: from where it failed, or from some node."""
        tasks = [name for name, node in workflow.nodes.items() if "handler" in node]
        content = {"node_id": self._rng.choice(tasks)} if tasks and self._rng.random() < 0.3 else {}
        # Refused: the node never ran; or an answer was lost, and the job goes on already.
        await self._ask(f"/jobs/{job_id}/retry", content, {200, 409, 422})
        self.resumed[job_id] += 1

    def _new_key(self) -> str:
        self.asked += 1
        return f"chaos-{self.asked}"

    async def _ask(self, path: str, content: object, expected: set[int], port: int | None = None) -> Any:
        """Ask an orchestrator, and the next if there is no answer."""
        while True:
            chosen = port or self._rng.choice(self._crew.orchestrators).port
            try:
                answer = await self._http.post(f"http://127.0.0.1:{chosen}/api/v1{path}", json=content)
            except httpx.TransportError:
                pass
            else:
                if answer.status_code in expected:
                    return answer.json()
                if answer.status_code < 500:
                    raise AssertionError(f"{path}: {answer.status_code} {answer.text}")
            self.repeated += 1
            await asyncio.sleep(self._rng.choice(PAUSES))

    async def _send(self, key: str, body: dict[str, Any]) -> None:
        if self._broker is not None:
            await self._broker(f"message-{key}", body)
            return
        while True:
            try:
                now = self._database.now()
                message = JobMessage(
                    message_id=f"message-{key}", queue=QUEUE, body=body, available_at=now, created_at=now
                )
                async with self._database.connection() as connection:
                    await MessageRepository(connection).send(message)
            except GraticuleError:
                self.repeated += 1
                await asyncio.sleep(self._rng.choice(PAUSES))
            else:
                return
