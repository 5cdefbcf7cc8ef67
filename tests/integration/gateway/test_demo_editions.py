"""`graticule demo` run again: the partner sends the next edition, or replaces the one that was not approved."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from fastapi import FastAPI
from tests.integration.gateway.front import ADMIN_KEY, Front, served
from tests.sources import put_source

from graticule.cli.demo_samples import Sample
from graticule.cli.demo_story import Sent, _cast, _review
from graticule.cli.installation import AdminKey, Installation
from graticule.config import Settings
from graticule.core.models.platform import DataType

RELIEF = Sample("relief", DataType.RASTER, "island_survey/island.tif", "an island", b"a raster")


@pytest.fixture
async def running(front: Front, api: FastAPI, settings: Settings, tmp_path: Path) -> AsyncIterator[Installation]:
    """Return an installation without workers: a test says what is processed."""
    put_source(settings.storage_folder, RELIEF.path, RELIEF.data)
    async with served(front.app) as gateway, served(api) as orchestrator:
        key = AdminKey(tmp_path, ADMIN_KEY, is_new=False)
        yield Installation(gateway, orchestrator, (), None, front.database.url(), tmp_path, tmp_path, key)


async def run_demo(running: Installation, front: Front, *, is_approved: bool = True) -> tuple[Sent, int, int]:
    """Do what a run does: register everyone, submit, and approve; return what was sent, and as which revision."""
    async with _cast(running) as cast:
        sent = await cast.submit(RELIEF)
        version = (await cast.status(sent)).version
        (asset_id,) = front.execute("SELECT asset_id FROM dagapp.geospatial_assets")[0]
        front.process(asset_id)
        if is_approved:
            await _review(cast, [sent])
    return sent, version.ordinal, version.revision


async def test_each_run_sends_the_next_edition(running: Installation, front: Front) -> None:
    runs = [await run_demo(running, front) for _ in range(3)]
    assert [(sent.edition, ordinal, revision) for sent, ordinal, revision in runs] == [
        ("1", 0, 1),
        ("2", 1, 1),
        ("3", 2, 1),
    ]
    approved = front.execute("SELECT version_label FROM dagapp.asset_versions WHERE approval_state = 'approved'")
    assert sorted(approved) == [("1",), ("2",), ("3",)]


async def test_a_run_that_was_left_before_its_review_is_replaced(running: Installation, front: Front) -> None:
    await run_demo(running, front, is_approved=False)
    sent, ordinal, revision = await run_demo(running, front)
    assert (sent.edition, ordinal, revision) == ("1", 0, 2)
