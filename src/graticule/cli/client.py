"""The orchestrator's HTTP API, as the commands use it. A problem document becomes an error with its hint."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlsplit

import httpx

from graticule.cli.processes import ORCHESTRATOR_PORT
from graticule.cli.running import running_installation
from graticule.cli.settings import absolute_home
from graticule.config import Settings
from graticule.core.errors import ConfigurationError, GraticuleError, Unavailable

TIMEOUT_SECONDS: Final = 30.0
SILENCE_SECONDS: Final = 60.0  # a stream that is alive says so more often
PAGE: Final = 500

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Server:
    """Where the API is, and the key that opens it."""

    address: str
    key: str | None = field(repr=False)

    @classmethod
    def locate(cls, settings: Settings, address: str | None) -> "Server":
        """Take the address that was given, else that of what runs in the data folder, else the usual one."""
        home = absolute_home(settings)
        running = None if address else running_installation(home)
        found = address or (running.orchestrator if running else f"http://127.0.0.1:{ORCHESTRATOR_PORT}")
        if urlsplit(found).scheme not in {"http", "https"}:
            raise ConfigurationError(
                f"{found!r} is not the address of a server.", hint="Write it as http://127.0.0.1:8001."
            )
        return cls(found.rstrip("/"), _key(settings, home))


def _key(settings: Settings, home: Path) -> str | None:
    if settings.admin_key is not None:
        return settings.admin_key.get_secret_value()
    try:
        return (home / "admin.key").read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return None


class ApiProblem(GraticuleError):
    """The server refused, and said why."""

    code = "api_problem"

    def __init__(self, status: int, message: str, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.status = status


class ApiClient:
    """Calls the API of one server."""

    def __init__(self, server: Server, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self._server = server
        self._http = httpx.AsyncClient(
            base_url=server.address,
            headers={"X-API-Key": server.key} if server.key else {},
            timeout=TIMEOUT_SECONDS,
            transport=transport,
            trust_env=not _is_loopback(server.address),  # a proxy has no business between us and this machine
        )

    async def __aenter__(self) -> "ApiClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    async def workflow(self, workflow_id: str) -> Document:
        """Give a workflow that can be submitted."""
        return await self._call("GET", f"/api/v1/workflows/{_path(workflow_id)}")

    async def submit(self, message: Mapping[str, Any], *, resubmit: bool = False) -> tuple[Document, bool]:
        """Submit a job; tells also whether it was made just now. `resubmit` lets one that failed go on."""
        parameters = {"resubmit": "true"} if resubmit else {}
        answer = await self._answer("POST", "/api/v1/jobs", json=message, params=parameters)
        job: Document = answer.json()
        return job, answer.status_code == 201

    async def job(self, job_id: str) -> Document:
        """Give one job with its progress."""
        return await self._call("GET", _job(job_id))

    async def jobs(self, limit: int, **wanted: str | None) -> list[Document]:
        """Give the newest jobs."""
        return await self._pages("/api/v1/jobs", limit, {name: value for name, value in wanted.items() if value})

    async def nodes(self, job_id: str) -> list[Document]:
        """Give the nodes of a job's workflow in graph order."""
        return await self._pages(f"{_job(job_id)}/nodes", PAGE, {})

    async def events(self, job_id: str, limit: int | None = None) -> AsyncIterator[Document]:
        """Give the events of a job in order, up to now."""
        parameters: dict[str, Any] = {"limit": min(limit or PAGE, PAGE)}
        given = 0
        while True:
            page = await self._call("GET", f"{_job(job_id)}/events", params=parameters)
            for event in page["items"]:
                yield event
            given += len(page["items"])
            if page["next"] is None or (limit is not None and given >= limit):
                return
            parameters["cursor"] = page["next"]

    async def cancel(self, job_id: str) -> Document:
        """Ask for the end of a job."""
        return await self._call("POST", f"{_job(job_id)}/cancel")

    async def retry(self, job_id: str, node_id: str | None) -> Document:
        """Let a failed job go on."""
        return await self._call("POST", f"{_job(job_id)}/retry", json={"node_id": node_id})

    async def dead_letters(self, limit: int, queue: str | None) -> list[Document]:
        """Give the newest dead letters."""
        return await self._pages("/api/v1/dead-letters", limit, {"queue": queue} if queue else {})

    async def settle_dead_letter(self, letter_id: str, deed: str) -> Document:
        """Requeue or discard a dead letter."""
        return await self._call("POST", f"/api/v1/dead-letters/{_path(letter_id)}/{deed}")

    @asynccontextmanager
    async def stream(self, job_id: str, after: int) -> AsyncIterator[AsyncIterator[str]]:
        """Open the live stream of a job's events and give its lines."""
        timeout = httpx.Timeout(TIMEOUT_SECONDS, read=SILENCE_SECONDS)
        headers = {"Last-Event-ID": str(after)}
        path = f"{_job(job_id)}/events/stream"
        async with self._http.stream("GET", path, headers=headers, timeout=timeout) as answer:
            if not answer.is_success:
                await answer.aread()
                raise self._problem(answer)
            yield answer.aiter_lines()

    async def _pages(self, path: str, limit: int, parameters: dict[str, Any]) -> list[Document]:
        items: list[Document] = []
        while len(items) < limit:
            page = await self._call("GET", path, params={**parameters, "limit": min(limit - len(items), PAGE)})
            items += page["items"]
            if page["next"] is None:
                break
            parameters["cursor"] = page["next"]
        return items

    async def _call(self, method: str, path: str, **options: Any) -> Document:
        answer: Document = (await self._answer(method, path, **options)).json()
        return answer

    async def _answer(self, method: str, path: str, **options: Any) -> httpx.Response:
        try:
            answer = await self._http.request(method, path, **options)
        except (httpx.TransportError, httpx.InvalidURL) as error:
            raise self.unreachable(error) from error
        if not answer.is_success:
            raise self._problem(answer)
        return answer

    def unreachable(self, error: Exception) -> Unavailable:
        """Give the error for a server that does not answer."""
        return Unavailable(
            f"Nothing answers at {self._server.address}.",
            hint="Start it with `graticule up`, or name another server with --server or GRATICULE_API_URL.",
            detail=repr(error),
        )

    def _problem(self, answer: httpx.Response) -> GraticuleError:
        try:
            told: Document = answer.json()
            message = str(told["detail"])
        except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError):
            return ApiProblem(
                answer.status_code,
                f"{self._server.address} answered with {answer.status_code} and no reason.",
                hint="Is it Graticule's orchestrator? --server or GRATICULE_API_URL names it.",
            )
        faults = [f"{'.'.join(map(str, each['loc']))}: {each['message']}" for each in told.get("errors") or []]
        return ApiProblem(answer.status_code, " ".join([message, *faults]), hint=self._hint(answer, told))

    def _hint(self, answer: httpx.Response, told: Document) -> str | None:
        if answer.status_code == 401:
            return "Set GRATICULE_ADMIN_KEY to its admin key, or GRATICULE_HOME to the data folder that has it."
        hint = told.get("hint")
        return str(hint) if hint else None


def _job(job_id: str) -> str:
    return f"/api/v1/jobs/{_path(job_id)}"


def _path(name: str) -> str:
    return quote(name, safe="")


def _is_loopback(address: str) -> bool:
    return urlsplit(address).hostname in {"127.0.0.1", "::1", "localhost"}
