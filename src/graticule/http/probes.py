"""Probes: is the process alive, is it ready for work, and how is it.

Readiness and health run the same checks, all at once, each with a time limit. A check that starts or
stops failing is logged then, not at every probe.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

from fastapi import APIRouter
from fastapi.responses import JSONResponse
from pydantic import BaseModel, JsonValue

from graticule import __version__
from graticule.core.errors import GraticuleError
from graticule.logs import get_logger

_log = get_logger(__name__)


@dataclass(frozen=True)
class CheckResult:
    """What a check found; `reason` tells why it is not ok."""

    ok: bool
    detail: dict[str, JsonValue] = field(default_factory=dict)
    reason: str | None = None


Check = Callable[[], Awaitable[CheckResult]]


class Liveness(BaseModel):
    """The process answers."""

    status: Literal["alive"] = "alive"


class Readiness(BaseModel):
    """Whether the process can do its work now, and what keeps it from it."""

    status: Literal["ready", "not_ready"]
    reasons: dict[str, str] | None = None


class CheckHealth(BaseModel):
    """One check in full."""

    ok: bool
    duration_ms: float
    detail: dict[str, JsonValue]
    reason: str | None = None


class CheckOutcome(BaseModel):
    """One check, for everyone."""

    ok: bool
    reason: str | None = None


class PublicHealth(BaseModel):
    """The process, as far as everyone may know of it."""

    status: Literal["healthy", "unhealthy"]
    process: str
    checks: dict[str, CheckOutcome]


class Health(BaseModel):
    """The process in full."""

    status: Literal["healthy", "unhealthy"]
    process: str
    version: str
    started_at: datetime
    uptime_seconds: float
    checks: dict[str, CheckHealth]


def probe_router(
    process: str,
    checks: Mapping[str, Check],
    *,
    check_timeout: float = 2.0,
    details: bool = True,
    live: str = "/livez",
    ready: str = "/readyz",
    health: str = "/health",
) -> APIRouter:
    """Serve `/livez`, `/readyz` and `/health`, or the same at other addresses.

    Without `details`, health tells only what is not ok and why, for processes that strangers can reach.
    """
    probes = _Probes(process, checks, check_timeout)
    router = APIRouter(tags=["probes"])
    router.add_api_route(live, probes.live, response_model=Liveness, summary="Alive?")
    router.add_api_route(
        ready, probes.ready, response_model=Readiness, responses=_unavailable(Readiness), summary="Ready?"
    )
    told, answer = (Health, probes.health) if details else (PublicHealth, probes.public_health)
    router.add_api_route(
        health, answer, response_model=told, responses=_unavailable(told), summary="Details" if details else "Healthy?"
    )
    return router


def _unavailable(model: type[BaseModel]) -> dict[int | str, dict[str, object]]:
    return {503: {"model": model, "description": "At least one check is not ok."}}


class _Probes:
    """The checks of one process, and which of them failed when last seen."""

    def __init__(self, process: str, checks: Mapping[str, Check], check_timeout: float) -> None:
        self._process = process
        self._checks = checks
        self._timeout = check_timeout
        self._started_at = datetime.now(UTC)
        self._started = time.monotonic()
        self._failing: set[str] = set()
        self._running: asyncio.Task[dict[str, CheckHealth]] | None = None

    async def live(self) -> Liveness:
        """Tell that the process answers; nothing is checked, so that a slow database restarts nobody."""
        return Liveness()

    async def ready(self) -> JSONResponse:
        """Tell whether every check is ok."""
        found = await self._run_all()
        reasons = {name: check.reason or "not ok" for name, check in found.items() if not check.ok}
        if reasons:
            return _answer(Readiness(status="not_ready", reasons=reasons), ok=False)
        return _answer(Readiness(status="ready"), ok=True)

    async def health(self) -> JSONResponse:
        """Tell how the process is, check by check."""
        found = await self._run_all()
        ok = all(check.ok for check in found.values())
        health = Health(
            status="healthy" if ok else "unhealthy",
            process=self._process,
            version=__version__,
            started_at=self._started_at,
            uptime_seconds=round(time.monotonic() - self._started, 3),
            checks=found,
        )
        return _answer(health, ok=ok)

    async def public_health(self) -> JSONResponse:
        """Tell which checks are ok, and why the others are not."""
        found = await self._run_all()
        ok = all(check.ok for check in found.values())
        health = PublicHealth(
            status="healthy" if ok else "unhealthy",
            process=self._process,
            checks={name: CheckOutcome(ok=check.ok, reason=check.reason) for name, check in found.items()},
        )
        return _answer(health, ok=ok)

    async def _run_all(self) -> dict[str, CheckHealth]:
        """Run the checks once for all who ask meanwhile: many probes must not take the connections of others."""
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(self._run_each())
        return await asyncio.shield(self._running)

    async def _run_each(self) -> dict[str, CheckHealth]:
        found = await asyncio.gather(*(self._run(name, check) for name, check in self._checks.items()))
        return dict(zip(self._checks, found, strict=True))

    async def _run(self, name: str, check: Check) -> CheckHealth:
        began = time.perf_counter()
        result, error = await _outcome(check, self._timeout)
        self._note(name, result, error)
        milliseconds = round((time.perf_counter() - began) * 1000, 1)
        return CheckHealth(ok=result.ok, duration_ms=milliseconds, detail=result.detail, reason=result.reason)

    def _note(self, name: str, result: CheckResult, error: Exception | None) -> None:
        if not result.ok and name not in self._failing:
            self._failing.add(name)
            foreseen = isinstance(error, GraticuleError)
            detail = getattr(error, "detail", None)
            _log.warning(
                "check fails",
                check=name,
                reason=result.reason,
                detail=detail,
                exc_info=None if foreseen else error,
            )
        elif result.ok and name in self._failing:
            self._failing.remove(name)
            _log.info("check recovered", check=name)


async def _outcome(check: Check, limit: float) -> tuple[CheckResult, Exception | None]:
    """Run one check; an error is given back too, for the log."""
    try:
        async with asyncio.timeout(limit) as timer:
            return await check(), None
    except GraticuleError as error:
        return CheckResult(ok=False, reason=str(error)), error
    except Exception as error:
        if isinstance(error, TimeoutError) and timer.expired():
            return CheckResult(ok=False, reason=f"no answer within {limit:g} s"), None
        return CheckResult(ok=False, reason="failed, see the log"), error


def _answer(model: BaseModel, *, ok: bool) -> JSONResponse:
    return JSONResponse(model.model_dump(mode="json", exclude_none=True), status_code=200 if ok else 503)
