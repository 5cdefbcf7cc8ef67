"""An application at work, with a client that can also listen to a stream; the tests play the worker."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from fastapi import FastAPI
from starlette.types import Message, Scope

from graticule.core.ids import JobId
from graticule.core.models import Task
from graticule.core.states import MessageStatus
from graticule.repositories.tasks import TaskRepository

KEY = "the-key-of-the-tests"
WORKER = "worker-1"
TOKEN = "the-token-of-the-workers"
NOWHERE = "postgresql://nobody@127.0.0.1:1/nowhere"


@dataclass
class Heard:
    """A server-sent event as a client parses it."""

    event: str | None = None
    id: str | None = None
    data: str = ""

    @property
    def json(self) -> Any:
        return json.loads(self.data)


@dataclass
class EventSource:
    """Reads a stream from the application directly: httpx would wait for its end."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    text: str = ""
    chunks: asyncio.Queue[str | None] = field(default_factory=asyncio.Queue)

    async def receive(self) -> Message:
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {name.decode(): value.decode() for name, value in message["headers"]}
            self.begun.set()
        else:
            self.chunks.put_nowait(message.get("body", b"").decode())
            if not message.get("more_body"):
                self.chunks.put_nowait(None)

    async def events(self) -> AsyncIterator[Heard]:
        """Give the events; comments are passed over."""
        while (chunk := await self.chunks.get()) is not None:
            self.text += chunk
            while "\n\n" in self.text:
                block, self.text = self.text.split("\n\n", 1)
                fields = [line.split(": ", 1) for line in block.split("\n") if not line.startswith(":")]
                if any(name == "data" for name, _ in fields):
                    yield Heard(**{name: value for name, value in fields if name != "retry"})

    async def rest(self) -> list[Heard]:
        async with asyncio.timeout(30):
            return [heard async for heard in self.events()]


@dataclass
class RunningApi:
    """The application, and what tests do with it."""

    app: FastAPI
    client: httpx.AsyncClient
    home: Path

    @asynccontextmanager
    async def stream(self, path: str, **headers: str) -> AsyncIterator[EventSource]:
        """Listen to a stream; leaving the context is the client going away."""
        source = EventSource()
        address, _, query = path.partition("?")
        sent = {"x-api-key": KEY, **{name.replace("_", "-"): value for name, value in headers.items()}}
        scope: Scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": "GET",
            "scheme": "http",
            "path": address,
            "raw_path": address.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [(name.encode(), value.encode()) for name, value in sent.items()],
            "client": ("test", 1),
            "server": ("orchestrator", 80),
        }
        answering = asyncio.create_task(self.app(scope, source.receive, source.send))
        try:
            async with asyncio.timeout(30):
                await source.begun.wait()
            yield source
        finally:
            source.gone.set()
            async with asyncio.timeout(30):
                await answering

    async def submit(self, workflow_id: str, **inputs: Any) -> JobId:
        answer = await self.client.post("/api/v1/jobs", json={"workflow_id": workflow_id, "input_params": inputs})
        assert answer.status_code == 201, answer.text
        return JobId(answer.json()["job_id"])

    async def get(self, path: str) -> Any:
        answer = await self.client.get(path)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def tasks(self, job_id: JobId) -> list[Task]:
        """Give the tasks that wait for a worker."""
        async with self.app.state.database.connection() as connection:
            found = await TaskRepository(connection).of_job(job_id)
        return [task for task in found if task.status is MessageStatus.QUEUED]

    async def task(self, job_id: JobId, node_id: str) -> Task:
        """Wait for the task of a node."""
        async with asyncio.timeout(30):
            while True:
                for task in await self.tasks(job_id):
                    if task.node_id == node_id:
                        return task
                await asyncio.sleep(0.01)

    async def hold(self, task_id: str) -> None:
        """Lease a task to the worker that reports of it."""
        async with self.app.state.database.connection() as connection:
            await connection.execute(
                "UPDATE dagapp.dag_tasks SET status = 'leased', leased_by = %s, delivery_count = delivery_count + 1,"
                " lease_expires_at = now() + interval '60 s' WHERE task_id = %s AND status = 'queued'",
                [WORKER, task_id],
            )

    async def report(self, task_id: str, status: str = "completed", **more: Any) -> Any:
        """Take a task, and report of it."""
        await self.hold(task_id)
        answer = await self.client.post(
            "/api/v1/callbacks/task-result", json={"task_id": task_id, "status": status, "worker_id": WORKER, **more}
        )
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def ended(self, job_id: JobId) -> list[Heard]:
        """Wait for the end of a job, and give its events."""
        async with self.stream(f"/api/v1/jobs/{job_id}/events/stream") as source:
            return await source.rest()

    async def run_echo(self, **inputs: Any) -> JobId:
        """Run the echo workflow to its end."""
        job_id = await self.submit("echo_test", **inputs)
        task = await self.task(job_id, "echo_handler")
        await self.report(task.task_id, output={"echoed_params": task.params})
        await self.ended(job_id)
        return job_id
