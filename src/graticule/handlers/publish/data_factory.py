"""Azure Data Factory by its REST API: pipelines are started, watched and cancelled."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Any, Final
from urllib.parse import quote

import httpx
from pydantic import JsonValue

from graticule import identity
from graticule.config import Settings
from graticule.core.errors import ConfigurationError, InvalidInput, NotFound, Unavailable

API_VERSION: Final = "2018-06-01"
TIMEOUT_SECONDS: Final = 30.0
MOST_TRIES: Final = 6
FIRST_SECONDS: Final = 0.5
LONGEST_SECONDS: Final = 60.0
LONGEST_MESSAGE: Final = 1000
_LOCAL: Final = frozenset({"127.0.0.1", "::1", "localhost"})
_REQUIRED: Final = ("adf_subscription_id", "adf_resource_group", "adf_factory_name", "adf_export_pipeline")
Pause = Callable[[float], Awaitable[None]]


class Unanswered(Unavailable):
    """No answer came, or none that tells whether it was done."""


@dataclass(frozen=True, slots=True)
class Run:
    """A run of a pipeline."""

    run_id: str
    status: str  # Queued, InProgress, Succeeded, Failed, Canceling, Cancelled
    message: str = ""

    @property
    def has_ended(self) -> bool:
        """Tell whether nothing more happens in it."""
        return self.status in {"Succeeded", "Failed", "Cancelled"}


class DataFactory:
    """A factory, and its pipelines for copies."""

    def __init__(self, settings: Settings, client: httpx.AsyncClient, token: Callable[[], str]) -> None:
        """`token` gives a bearer token; it may take a while."""
        self.export_pipeline = str(settings.adf_export_pipeline)
        self.reversal_pipeline = settings.adf_reversal_pipeline
        self._client, self._token = client, token
        self._base = (
            f"{endpoint_of(settings)}/subscriptions/{_part(settings.adf_subscription_id)}"
            f"/resourceGroups/{_part(settings.adf_resource_group)}"
            f"/providers/Microsoft.DataFactory/factories/{_part(settings.adf_factory_name)}"
        )

    async def start(self, pipeline: str, parameters: Mapping[str, JsonValue], pause: Pause) -> str:
        """Start a pipeline and give the run's id; `Unanswered` when it may have started all the same."""
        path = f"pipelines/{_part(pipeline)}/createRun"
        answer = await self._asked("POST", path, pause, body=dict(parameters), repeats=False)
        return str(answer["runId"])

    async def run(self, run_id: str, pause: Pause) -> Run:
        """Tell how a run is."""
        return _run(await self._asked("GET", f"pipelineruns/{_part(run_id)}", pause))

    async def find(self, pipeline: str, token: str, since: datetime, pause: Pause) -> Run | None:
        """Give the run that was started with this token, if there is one and it did not fail."""
        body: dict[str, JsonValue] = {
            "lastUpdatedAfter": (since - timedelta(minutes=5)).isoformat(),
            "lastUpdatedBefore": (datetime.now(UTC) + timedelta(minutes=5)).isoformat(),
            "filters": [{"operand": "PipelineName", "operator": "Equals", "values": [pipeline]}],
        }
        while True:
            answer = await self._asked("POST", "queryPipelineRuns", pause, body=body)
            for each in answer.get("value", []):
                if (each.get("parameters") or {}).get("run_token") == token and each.get("status") not in _LOST:
                    return _run(each)
            if not answer.get("continuationToken"):
                return None
            body["continuationToken"] = answer["continuationToken"]

    async def cancel(self, run_id: str, pause: Pause) -> None:
        """Ask for the end of a run."""
        await self._asked("POST", f"pipelineruns/{_part(run_id)}/cancel", pause)

    async def _asked(
        self, method: str, path: str, pause: Pause, *, body: JsonValue = None, repeats: bool = True
    ) -> dict[str, Any]:
        """Send a request, again when that may help: always after a refusal for now, else only if it `repeats`."""
        for number in range(MOST_TRIES):
            answer = await self._sent(method, path, body)
            if answer is not None and answer.status_code < 400:
                return _document(answer)
            if answer is not None and answer.status_code < 500 and answer.status_code not in _LATER:
                refusal = NotFound if answer.status_code == 404 else InvalidInput
                raise refusal(f"Azure Data Factory refused: {_told(answer)}")
            is_refused = answer is not None and answer.status_code in _LATER
            if not repeats and not is_refused:
                raise Unanswered("Azure Data Factory did not tell whether the run was started.")
            await pause(_wait(number, answer))
        raise Unavailable("Azure Data Factory cannot be reached, or is too busy.")

    async def _sent(self, method: str, path: str, body: JsonValue) -> httpx.Response | None:
        """Give the answer, or None when none came."""
        token = await asyncio.to_thread(self._token)
        try:
            return await self._client.request(
                method,
                f"{self._base}/{path}",
                params={"api-version": API_VERSION},
                headers={"Authorization": f"Bearer {token}"},
                json=body,
            )
        except httpx.TransportError:
            return None


_LOST: Final = frozenset({"Failed", "Cancelled", "Canceling"})
_LATER: Final = frozenset({408, 429})


@asynccontextmanager
async def opened_factory(settings: Settings) -> AsyncIterator[DataFactory | None]:
    """Give the factory of an installation, or None when it copies by itself."""
    if not any(getattr(settings, name) for name in _REQUIRED):
        yield None
        return
    if missing := [f"GRATICULE_{name.upper()}" for name in _REQUIRED if not getattr(settings, name)]:
        raise ConfigurationError(
            f"Azure Data Factory is configured in part: {', '.join(missing)} is not set.",
            hint="Set all of them in the worker's environment, or none.",
        )
    identity.azure_credential()  # that its packages are missing is told before anything is begun
    token = partial(identity.token, f"{endpoint_of(settings)}/.default")
    async with httpx.AsyncClient(timeout=TIMEOUT_SECONDS, trust_env=False) as client:
        yield DataFactory(settings, client, token)


def endpoint_of(settings: Settings) -> str:
    """Give where Azure's management answers; a token goes there, so it must be encrypted."""
    url = settings.adf_endpoint.get_secret_value()
    if url.scheme != "https" and (url.host or "").strip("[]") not in _LOCAL:
        raise ConfigurationError("GRATICULE_ADF_ENDPOINT must begin with https://.")
    return str(url).rstrip("/")


def _run(answer: Mapping[str, Any]) -> Run:
    message = str(answer.get("message") or "")[:LONGEST_MESSAGE]
    return Run(str(answer["runId"]), str(answer.get("status") or "Queued"), message)


def _document(answer: httpx.Response) -> dict[str, Any]:
    if not answer.content:
        return {}
    try:
        found = answer.json()
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise Unanswered("Azure Data Factory answered with something that is not JSON.")
    return found


def _told(answer: httpx.Response) -> str:
    """Give its own words, which stand in the document of an error."""
    try:
        error = answer.json()["error"]
        told = f"{error['code']}: {error['message']}"
    except (ValueError, KeyError, TypeError):
        told = answer.text
    return f"{told[:LONGEST_MESSAGE]} ({answer.status_code})"


def _wait(number: int, answer: httpx.Response | None) -> float:
    """Give how long to wait: as long as it asks for, or longer each time."""
    asked = answer.headers.get("Retry-After", "") if answer is not None else ""
    if asked.isdigit():
        return min(float(asked), LONGEST_SECONDS)
    try:
        seconds = (parsedate_to_datetime(asked) - datetime.now(UTC)).total_seconds()
    except (ValueError, TypeError):
        seconds = FIRST_SECONDS * 2.0**number * random.uniform(0.5, 1)  # noqa: S311 - no secret
    return min(max(0.0, seconds), LONGEST_SECONDS)


def _part(name: str | None) -> str:
    return quote(str(name), safe="")
