"""Installations for the console's tests, and where their pictures go.

With `GRATICULE_SCREENSHOTS=docs/images/console` the pictures of the views in the documentation are made anew; otherwise
they are taken and thrown away.
"""

import asyncio
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect
from tests.browser.console.site import Site
from tests.browser.console.visitor import PATIENCE_MS
from tests.conftest import TestDatabase
from tests.e2e.conftest import folder, start_process

from graticule.services.bootstrap import BootstrapService

__all__ = ["folder", "start_process"]

StartSite = Callable[..., Site]

expect.set_options(timeout=PATIENCE_MS)


@pytest.fixture
def start_site(folder: Path, database: TestDatabase) -> Iterator[StartSite]:
    """Start what the console needs; it ends with the test."""
    # A clone lacks what is granted on a database itself, and the console tells of it.
    asyncio.run(BootstrapService(database.url(), development=False).deploy())
    started: list[Site] = []

    def start(**options: Any) -> Site:
        started.append(Site(folder, database, **options))
        return started[-1]

    yield start
    for site in started:
        site.close()


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    kept = os.environ.get("GRATICULE_SCREENSHOTS")
    made = tmp_path if kept is None else Path(kept).resolve()
    made.mkdir(parents=True, exist_ok=True)
    return made
