"""The console in a real browser, with many jobs: until the first view is usable, and from page to page."""

import os
import secrets
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from statistics import median, quantiles
from typing import Any, Final, LiteralString

import psycopg
from playwright.async_api import Browser, BrowserContext, Page, async_playwright
from rich.console import Console
from rich.table import Table

from benchmarks.installation import Place, deploy, private_cluster
from benchmarks.job_list import FEW, MANY, fill
from benchmarks.processes import running
from graticule.core.table import DatabaseRole

ROUNDS: Final = 5
PAGES: Final = 40
USABLE_MS, PAGE_MS = 1500.0, 100.0
PROGRAMS: Final = ("chromium", "chromium-browser", "google-chrome")
# Nothing runs jobs that were only written down: an orchestrator would take them up, and fail them.
END_ALL: LiteralString = "UPDATE dagapp.dag_jobs SET status = 'completed', ended_at = now() WHERE ended_at IS NULL"

# Notes in the page itself when the first view is usable: numbers in all tiles, and no part that still loads.
NOTE_USABLE: Final = """
    const isUsable = () => {
        const tiles = [...document.querySelectorAll('.overview-tile-number')]
        const filled = tiles.length > 0 && tiles.every((tile) => /\\d/.test(tile.textContent))
        return filled && !document.body.textContent.includes('Loading…')
    }
    const look = () => {
        if (document.body && isUsable()) window.usableAfter = performance.now()
        else requestAnimationFrame(look)
    }
    look()
"""
# Turns the page, and gives the milliseconds until the other rows are drawn, and those that the gateway took for them.
TURN_PAGE: Final = """
    () => new Promise((resolve, reject) => {
        const first = () => document.querySelector('tbody tr a')?.textContent
        const older = [...document.querySelectorAll('.pager button')].at(-1)
        const before = first()
        performance.clearResourceTimings()
        const began = performance.now()
        const look = () => {
            if (first() === before || document.querySelector('.jobs-waiting')) return requestAnimationFrame(look)
            const [asked] = performance.getEntriesByType('resource').filter(({ name }) => name.includes('cursor='))
            if (asked === undefined) reject(new Error('No page was asked for.'))
            else resolve([performance.now() - began, asked.responseEnd - asked.requestStart])
        }
        older.click()
        look()
    })
"""


@dataclass(frozen=True)
class Measured:
    """What was seen in the browser, in milliseconds."""

    usable: list[float]
    turned: list[float]
    answered: list[float]


async def run(console: Console, *, quick: bool = False) -> None:
    """Fill a database, open the console, turn pages, and show how long it took."""
    jobs = FEW if quick else MANY
    async with private_cluster() as place:
        await deploy(place)
        await fill(place, jobs)
        async with await psycopg.AsyncConnection.connect(place.url(), autocommit=True) as connection:
            await connection.execute(END_ALL)
        async with _gateway(place) as (url, key), _browser() as browser:
            measured = await _measured(browser, url, key)
    console.print(_table(measured, jobs))


async def _measured(browser: Browser, url: str, key: str) -> Measured:
    usable = [await _usable_after(browser, url, key) for _ in range(ROUNDS)]
    async with _signed_in(browser, url, key) as context:
        page = await context.new_page()
        await page.goto(f"{url}/jobs")
        await page.locator("tbody tr a").first.wait_for()
        turns = [await _turned(page) for _ in range(PAGES)]
    return Measured(usable, [turn for turn, _ in turns], [answer for _, answer in turns])


async def _usable_after(browser: Browser, url: str, key: str) -> float:
    """Open the console as somebody who is signed in and has nothing of it in the cache."""
    async with _signed_in(browser, url, key) as context:
        page = await context.new_page()
        await page.add_init_script(NOTE_USABLE)
        await page.goto(url)
        await page.wait_for_function("() => window.usableAfter !== undefined")
        return float(await page.evaluate("() => window.usableAfter"))


async def _turned(page: Page) -> tuple[float, float]:
    turn, answer = await page.evaluate(TURN_PAGE)
    return turn, answer


def _table(measured: Measured, jobs: int) -> Table:
    table = Table("what", "median", "p95", "worst", "p95 to reach", "reached?", title=f"The console with {jobs:,} jobs")
    for name, taken, bound in (
        ("the first view, usable; nothing in the cache", measured.usable, USABLE_MS),
        ("from a click to the next page of jobs", measured.turned, PAGE_MS),
        ("of that, the gateway's answer", measured.answered, PAGE_MS),
    ):
        p95 = quantiles(taken, n=20, method="inclusive")[-1]
        reached = "[green]yes[/]" if p95 < bound else "[red]no[/]"
        figures = [f"{figure:.0f} ms" for figure in (median(taken), p95, max(taken))]
        table.add_row(name, *figures, f"under {bound:.0f} ms", reached)
    return table


@asynccontextmanager
async def _signed_in(browser: Browser, url: str, key: str) -> AsyncIterator[BrowserContext]:
    context = await browser.new_context(base_url=url, viewport={"width": 1280, "height": 800})
    try:
        headers = {"X-Graticule-Console": "1"}
        answer = await context.request.post("/api/session", data={"api_key": key}, headers=headers)
        if not answer.ok:
            raise RuntimeError(f"Nobody could sign in: {await answer.text()}")
        yield context
    finally:
        await context.close()


@asynccontextmanager
async def _browser() -> AsyncIterator[Browser]:
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        raise RuntimeError(f"There is no browser. Install one of {', '.join(PROGRAMS)}.")
    flags = ["--no-sandbox"] if os.geteuid() == 0 else []
    async with (
        async_playwright() as playwright,
        await playwright.chromium.launch(executable_path=program, args=flags) as browser,
    ):
        yield browser


@asynccontextmanager
async def _gateway(place: Place) -> AsyncIterator[tuple[str, str]]:
    """Run an installation, and give the gateway's address and the admin key."""
    key, logs = secrets.token_urlsafe(32), place.home / "logs"
    logs.mkdir(exist_ok=True)
    shared = {
        "GRATICULE_HOME": str(place.home),
        "GRATICULE_ADMIN_KEY": key,
        "GRATICULE_SERVICE_KEY": secrets.token_urlsafe(32),
        "GRATICULE_LOG_LEVEL": "WARNING",
    }

    def settings(role: DatabaseRole, **more: Any) -> dict[str, str]:
        return {**shared, "GRATICULE_DATABASE_URL": place.url(role), **more}

    async with (
        running("orchestrator", settings(DatabaseRole.ORCHESTRATOR), logs) as orchestrator,
        running("worker", settings(DatabaseRole.WORKER), logs),
        running(
            "gateway", settings(DatabaseRole.GATEWAY, GRATICULE_ORCHESTRATOR_URL=orchestrator.url), logs
        ) as gateway,
    ):
        yield gateway.url, key
