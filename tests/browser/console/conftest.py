"""Installations for the console's tests, and where their pictures go.

With `GRATICULE_SCREENSHOTS=docs/images/console` the pictures of the views in the documentation are made anew; otherwise
they are taken and thrown away.
"""

import os
from pathlib import Path

import pytest
from playwright.sync_api import expect
from tests.browser.console.visitor import PATIENCE_MS
from tests.e2e.conftest import first_start, folder, home, start_process, start_up

__all__ = ["first_start", "folder", "home", "start_process", "start_up"]

expect.set_options(timeout=PATIENCE_MS)


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    kept = os.environ.get("GRATICULE_SCREENSHOTS")
    made = tmp_path if kept is None else Path(kept).resolve()
    made.mkdir(parents=True, exist_ok=True)
    return made
