"""Wrong keys count against the address from which they really come, and framing tricks never reach a target."""

import asyncio
from pathlib import Path

import httpx
import pytest
from tests.conftest import TestDatabase
from tests.integration.gateway.front import key_of, running_api, running_front, served, settings_of

from graticule.http.rate_limits import FAILURES_PER_MINUTE, RateLimits

pytestmark = pytest.mark.timeout(60)


async def test_wrong_keys_with_forged_addresses_are_limited(tmp_path: Path, database: TestDatabase) -> None:
    async with running_front(settings_of(tmp_path), database) as front, served(front.app) as address:
        front.app.state.rate_limits = RateLimits(600)
        async with httpx.AsyncClient(base_url=address, trust_env=False) as client:
            answers = [
                await client.get(
                    "/api/assets", headers={"X-API-Key": key_of(f"wrong-{n}"), "X-Forwarded-For": f"203.0.113.{n}"}
                )
                for n in range(90)
            ]
    statuses = [answer.status_code for answer in answers]
    assert statuses == [401] * FAILURES_PER_MINUTE + [429] * (90 - FAILURES_PER_MINUTE)


async def test_the_proxy_passes_no_request_with_two_lengths_on(tmp_path: Path, database: TestDatabase) -> None:
    settings = settings_of(tmp_path)
    head = (
        "POST /api/proxy/orchestrator/api/v1/jobs HTTP/1.1\r\nHost: gateway\r\n"
        f"X-API-Key: {key_of('operator')}\r\nContent-Type: application/json\r\n"
        "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    async with (
        running_api(settings, database) as api,
        running_front(settings, database, api) as front,
        served(front.app) as address,
    ):
        reader, writer = await asyncio.open_connection("127.0.0.1", int(address.rpartition(":")[2]))
        writer.write(head.encode() + b"2\r\n{}\r\n0\r\n\r\n")
        answer = await reader.read()
        writer.close()
    assert answer.startswith(b"HTTP/1.1 400 ")
