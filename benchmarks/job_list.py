"""Pages of a list of many jobs, asked of a gateway by HTTP: by filter, by a word that finds jobs, near and far."""

import secrets
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from statistics import quantiles
from typing import Any, LiteralString

import httpx
import psycopg
from psycopg.rows import dict_row
from rich.console import Console
from rich.table import Table

from benchmarks.installation import Place, deploy, private_cluster
from benchmarks.processes import running
from graticule.core.ids import JobId
from graticule.core.table import DatabaseRole
from graticule.http.job_filters import JOBS

MANY, FEW = 100_000, 5_000
PAGES = 40  # of each kind, in each round
ROUNDS = 3  # the best counts: the least disturbed
TO_REACH_MS = 100.0
DEEP = 0.9  # of all jobs are newer than a deep page
# Jobs of three months, the newest last. One workflow and one submitter have most of them; what is `old` has a tenth,
# and all of it long ago; what is `rare` has one in a thousand. Every third belongs to an asset.
FILL: Sequence[LiteralString] = (
    """
    INSERT INTO dagapp.dag_workflows (workflow_hash, workflow_id, version, name, definition)
    SELECT repeat('0', 64), 'common', '1', 'Common', '{}'
    """,
    """
    INSERT INTO dagapp.geospatial_assets (asset_id, platform_id, platform_refs, data_type)
    SELECT md5(n::text), 'ddh', jsonb_build_object('dataset_id', n, 'resource_id', 'r'), 'raster'
    FROM generate_series(0, %(jobs)s / 30) AS n
    """,
    """
    INSERT INTO dagapp.asset_versions (asset_id, version_ordinal, version_label)
    SELECT asset_id, 0, '1' FROM dagapp.geospatial_assets
    """,
    """
    INSERT INTO dagapp.platform_requests (request_id, platform_id, asset_id, version_ordinal, request_body,
                                          idempotency_key)
    SELECT asset_id::uuid, platform_id, asset_id, 0, '{}', 'request-' || asset_id FROM dagapp.geospatial_assets
    """,
    """
    INSERT INTO dagapp.dag_jobs (job_id, workflow_id, workflow_version, workflow_hash, status, error_message,
                                 input_params, correlation_id, submitted_by, idempotency_key, asset_id, version_ordinal,
                                 purpose, created_at, started_at, ended_at, updated_at)
    SELECT lpad(to_hex((extract(epoch FROM created) * 1000)::bigint), 12, '0') || left(md5(n::text), 20),
           kind, '1', repeat('0', 64), state::dagapp.job_status, CASE state WHEN 'failed' THEN 'it broke' END,
           jsonb_build_object('source', 'bronze/files/' || n || '.tif', 'tile', n %% 100),
           CASE WHEN n <= %(jobs)s / 10 THEN 'old' ELSE 'batch-' || n / 100 END, kind, 'key-' || n,
           CASE WHEN n %% 3 = 0 THEN md5((n / 3 %% (%(jobs)s / 30))::text) END, CASE WHEN n %% 3 = 0 THEN 0 END,
           CASE WHEN n %% 3 = 0 THEN 'process'::dagapp.job_purpose END, created, created,
           CASE WHEN state <> 'running' THEN created + interval '1 minute' END, created
    FROM generate_series(1, %(jobs)s) AS n
    CROSS JOIN LATERAL (
        SELECT now() - (%(jobs)s - n) * interval '90 days' / %(jobs)s AS created,
               CASE WHEN n %% 1000 = 0 THEN 'rare' WHEN n <= %(jobs)s / 10 THEN 'old' WHEN n %% 3 = 0 THEN 'usual'
                    ELSE 'common' END AS kind,
               CASE WHEN n > %(jobs)s - 20 THEN 'running' WHEN n %% 50 = 0 THEN 'failed' ELSE 'completed' END AS state
    ) AS made
    """,
    "VACUUM (ANALYZE)",
)
AT: LiteralString = """
    SELECT job_id, created_at, asset_id, correlation_id, idempotency_key FROM dagapp.dag_jobs
    WHERE asset_id IS NOT NULL ORDER BY created_at DESC, job_id DESC OFFSET %(offset)s LIMIT 1
"""


@dataclass(frozen=True)
class Page:
    """A kind of page: what is asked, and whether something is to be found."""

    name: str
    asked: dict[str, Any]
    finds: bool = True


@dataclass(frozen=True)
class Timed:
    """How long pages of a kind took, in milliseconds."""

    page: Page
    p50: float
    p95: float


async def run(console: Console, *, quick: bool = False) -> None:
    """Fill a database, ask for every kind of page, and show how long it took."""
    jobs = FEW if quick else MANY
    async with private_cluster() as place:
        await deploy(place)
        await fill(place, jobs)
        pages = await _pages(place, jobs)
        async with _gateway(place) as client:
            rounds = [[await _timed(client, page) for page in pages] for _ in range(ROUNDS)]
    table = Table("page", "p50", "p95", "reached?", title=f"Pages of 50 of {jobs:,} jobs, by the gateway's HTTP")
    for each in map(_best, zip(*rounds, strict=True)):
        reached = "[green]yes[/]" if each.p95 < TO_REACH_MS else "[red]no[/]"
        table.add_row(each.page.name, f"{each.p50:.1f} ms", f"{each.p95:.1f} ms", reached)
    console.print(table)


async def fill(place: Place, jobs: int) -> None:
    """Write so many jobs, as an installation would have after three months."""
    async with await psycopg.AsyncConnection.connect(place.url(), autocommit=True) as connection:
        for statement in FILL:
            await connection.execute(statement, {"jobs": jobs} if "%(" in statement else None)


async def _pages(place: Place, jobs: int) -> list[Page]:
    async with await psycopg.AsyncConnection.connect(place.url(), row_factory=dict_row) as connection:
        near, far = [
            await (await connection.execute(AT, {"offset": offset})).fetchone() or {}
            for offset in (10, round(DEEP * jobs / 3))
        ]
    deep = JOBS.write((far["created_at"], JobId(far["job_id"])))
    middle: datetime = near["created_at"] - (near["created_at"] - far["created_at"]) / 2
    return [
        Page("first", {}),
        Page("deep", {"cursor": deep}),
        *_filtered(deep, middle, near),
        *_sought(near, far, deep),
    ]


def _filtered(deep: str, middle: datetime, near: dict[str, Any]) -> list[Page]:
    return [
        *(Page(f"status {status}", {"status": status}) for status in ("completed", "failed", "running")),
        Page("status failed, deep", {"status": "failed", "cursor": deep}),
        *(Page(f"workflow {kind}", {"workflow_id": kind}) for kind in ("common", "rare", "old")),
        *(Page(f"submitter {kind}", {"submitted_by": kind}) for kind in ("common", "rare", "old")),
        Page("submitter old, deep", {"submitted_by": "old", "cursor": deep}),
        Page("correlation, a batch", {"correlation_id": near["correlation_id"]}),
        Page("correlation, a tenth of all", {"correlation_id": "old"}),
        Page("created before", {"created_before": middle.isoformat()}),
        Page("workflow rare, failed", {"workflow_id": "rare", "status": "failed"}),
        Page("submitter old, running", {"submitted_by": "old", "status": "running"}, finds=False),
    ]


def _sought(near: dict[str, Any], far: dict[str, Any], deep: str) -> list[Page]:
    request_id = f"{near['asset_id'][:8]}-{near['asset_id'][8:12]}-{near['asset_id'][12:16]}-"
    request_id += f"{near['asset_id'][16:20]}-{near['asset_id'][20:]}"
    words = {
        "4 characters of an id": near["job_id"][:4],
        "6 characters of an old id": far["job_id"][:6],
        "an id": far["job_id"],
        "an asset": near["asset_id"],
        "a request": request_id,
        "a request's idempotency key": f"request-{near['asset_id']}",
        "a batch's correlation id": near["correlation_id"],
        "an idempotency key": near["idempotency_key"],
        "a common word": "common",
        "a rare word": "rare",
        "an old word": "old",
    }
    return [
        *(Page(f"q: {name}", {"q": word}) for name, word in words.items()),
        Page("q: nothing", {"q": secrets.token_hex(8)}, finds=False),
        Page("q: an old word, deep", {"q": "old", "cursor": deep}),
        Page("q: a common word, failed", {"q": "common", "status": "failed"}),
    ]


@asynccontextmanager
async def _gateway(place: Place) -> AsyncIterator[httpx.AsyncClient]:
    key = secrets.token_urlsafe(32)
    environment = {
        "GRATICULE_HOME": str(place.home),
        "GRATICULE_DATABASE_URL": place.url(DatabaseRole.GATEWAY),
        "GRATICULE_ADMIN_KEY": key,
        "GRATICULE_LOG_LEVEL": "WARNING",
    }
    logs = place.home / "logs"
    logs.mkdir(exist_ok=True)
    async with (
        running("gateway", environment, logs) as process,
        httpx.AsyncClient(base_url=process.url, headers={"X-API-Key": key}, timeout=60) as client,
    ):
        yield client


async def _timed(client: httpx.AsyncClient, page: Page) -> Timed:
    """Ask for a page again and again, and check that it shows what it should."""
    await _asked(client, page)
    taken = [await _milliseconds(lambda: _asked(client, page)) for _ in range(PAGES)]
    cuts = quantiles(taken, n=20)
    return Timed(page, cuts[9], cuts[18])


def _best(rounds: Sequence[Timed]) -> Timed:
    return Timed(rounds[0].page, min(each.p50 for each in rounds), min(each.p95 for each in rounds))


async def _milliseconds(work: Callable[[], Any]) -> float:
    began = time.perf_counter()
    await work()
    return (time.perf_counter() - began) * 1000


async def _asked(client: httpx.AsyncClient, page: Page) -> None:
    answer = await client.get("/api/status/jobs", params=page.asked)
    answer.raise_for_status()
    if bool(answer.json()["items"]) is not page.finds:
        raise RuntimeError(f"{page.name}: {len(answer.json()['items'])} jobs were found.")
