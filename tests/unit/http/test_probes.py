"""Probes tell what is wrong, quickly, and log it once."""

import asyncio
import json
import re
from collections.abc import Mapping
from datetime import datetime

import httpx
import pytest
from fastapi import FastAPI
from structlog.testing import capture_logs

from graticule import __version__
from graticule.core.errors import Unavailable
from graticule.http.application import create_application
from graticule.http.probes import Check, CheckResult, probe_router


async def fine() -> CheckResult:
    return CheckResult(ok=True, detail={"rows": 3})


async def not_fine() -> CheckResult:
    return CheckResult(ok=False, reason="two are missing")


async def unavailable() -> CheckResult:
    raise Unavailable("The database cannot be reached.", hint="Start it.", detail="10.0.0.7 refused")


async def broken() -> CheckResult:
    raise RuntimeError("an inner secret")


async def endless() -> CheckResult:
    await asyncio.Event().wait()
    raise AssertionError


async def own_timeout() -> CheckResult:
    raise TimeoutError("of the driver")


def probing(checks: Mapping[str, Check], check_timeout: float = 0.01) -> httpx.AsyncClient:
    app = FastAPI()
    app.include_router(probe_router("worker", checks, check_timeout=check_timeout))
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test")


async def test_a_process_is_alive_whatever_its_checks_say() -> None:
    response = await probing({"database": unavailable}).get("/livez")
    assert (response.status_code, response.json()) == (200, {"status": "alive"})


async def test_ready_when_every_check_is_ok() -> None:
    response = await probing({"database": fine, "queue": fine}).get("/readyz")
    assert (response.status_code, response.json()) == (200, {"status": "ready"})


@pytest.mark.parametrize(
    ("check", "reason"),
    [
        (not_fine, "two are missing"),
        (unavailable, "The database cannot be reached. Start it."),
        (broken, "failed, see the log"),
        (own_timeout, "failed, see the log"),
        (endless, "no answer within 0.01 s"),
    ],
)
async def test_not_ready_names_the_reason(check: Check, reason: str) -> None:
    response = await probing({"queue": fine, "database": check}).get("/readyz")
    assert response.status_code == 503
    assert response.json() == {"status": "not_ready", "reasons": {"database": reason}}


async def test_checks_run_at_the_same_time() -> None:
    together = asyncio.Barrier(2)

    async def meeting() -> CheckResult:
        await together.wait()
        return CheckResult(ok=True)

    app = FastAPI()
    app.include_router(probe_router("worker", {"a": meeting, "b": meeting}, check_timeout=30))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
        assert (await client.get("/readyz")).status_code == 200


async def test_checks_run_once_for_all_who_ask_at_the_same_time() -> None:
    runs = 0

    async def counted() -> CheckResult:
        nonlocal runs
        runs += 1
        await asyncio.sleep(0.2)
        return CheckResult(ok=True)

    async with probing({"database": counted}, check_timeout=30) as client:
        answers = await asyncio.gather(*(client.get("/readyz") for _ in range(20)))
        assert [answer.status_code for answer in answers] == [200] * 20
        assert runs == 1
        await client.get("/readyz")
    assert runs == 2


async def test_health_tells_everything() -> None:
    response = await probing({"queue": fine, "database": broken}).get("/health")
    health = response.json()
    assert response.status_code == 503
    assert (health["status"], health["process"], health["version"]) == ("unhealthy", "worker", __version__)
    assert datetime.fromisoformat(health["started_at"]).tzinfo is not None
    assert health["uptime_seconds"] >= 0
    durations = [check.pop("duration_ms") for check in health["checks"].values()]
    assert all(duration >= 0 for duration in durations)
    assert health["checks"] == {
        "queue": {"ok": True, "detail": {"rows": 3}},
        "database": {"ok": False, "detail": {}, "reason": "failed, see the log"},
    }


async def test_strangers_are_told_only_what_is_not_ok_and_why() -> None:
    app = FastAPI()
    app.include_router(probe_router("gateway", {"queue": fine, "database": broken}, details=False))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
        response = await client.get("/health")
    assert response.status_code == 503
    assert response.json() == {
        "status": "unhealthy",
        "process": "gateway",
        "checks": {"queue": {"ok": True}, "database": {"ok": False, "reason": "failed, see the log"}},
    }


async def test_health_is_200_when_all_is_well() -> None:
    response = await probing({"queue": fine}).get("/health")
    assert (response.status_code, response.json()["status"]) == (200, "healthy")


async def test_only_a_change_of_state_is_logged() -> None:
    state: list[Check] = [broken]

    async def changing() -> CheckResult:
        return await state[0]()

    client = probing({"database": changing})
    with capture_logs() as lines:
        await client.get("/readyz")
        await client.get("/health")
        state[0] = fine
        await client.get("/readyz")
        await client.get("/readyz")
        state[0] = unavailable
        await client.get("/readyz")
    assert [(line["event"], line["check"]) for line in lines] == [
        ("check fails", "database"),
        ("check recovered", "database"),
        ("check fails", "database"),
    ]
    assert str(lines[0]["exc_info"]) == "an inner secret"
    assert (lines[2]["detail"], lines[2]["exc_info"]) == ("10.0.0.7 refused", None)


async def test_probes_and_metrics_are_part_of_every_application() -> None:
    app = create_application(process="gateway", title="Test", checks={"database": not_fine})
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
        assert (await client.get("/readyz")).status_code == 503
        metrics = (await client.get("/metrics")).text
        schema = (await client.get("/openapi.json")).json()
        assert (await client.get("/docs")).status_code == (await client.get("/redoc")).status_code == 404
    assert re.search(rf'graticule_build_info{{process="gateway",version="{re.escape(__version__)}"}} 1\.0', metrics)
    assert "process_cpu_seconds_total" in metrics
    assert {"/livez", "/readyz", "/health"} <= set(schema["paths"])
    ready = schema["paths"]["/readyz"]["get"]["responses"]
    for status in "200", "503":
        assert ready[status]["content"]["application/json"]["schema"]["$ref"].endswith("/Readiness")
    assert schema["info"]["version"] == __version__


async def test_the_description_is_written_once_however_often_strangers_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    app = create_application(process="gateway", title="Gateway", checks={})
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
        first = await client.get("/openapi.json")
        monkeypatch.setattr(json, "dumps", None)
        second = await client.get("/openapi.json")
    assert first.headers["content-type"] == "application/json"
    assert second.content == first.content
