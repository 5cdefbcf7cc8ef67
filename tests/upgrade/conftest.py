"""A database that the previous release has made, and processes of both releases for it."""

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import HOME_VARIABLE, TestDatabase, create_database, new_database
from tests.integration.schema.bench import alone_on_the_server
from tests.upgrade.installation import Installation
from tests.upgrade.previous_release import PreviousRelease, unpack


@pytest.fixture(scope="session")
def place() -> Path:
    """Give the folder of the previous release: one for a run, which removes it at its end."""
    made = Path(os.environ[HOME_VARIABLE]) / "upgrade"
    made.mkdir(exist_ok=True)
    return made


@pytest.fixture(scope="session")
def template(place: Path) -> str:
    """Give the name of a database as the previous release's own command makes it; whoever comes first, makes it."""
    record = place / "template"
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not record.exists():
            release, made = unpack(place), create_database("template0")
            with alone_on_the_server():
                release.run(*release.command("schema", "deploy"), GRATICULE_DATABASE_URL=made.url())
            record.write_text(made.name)
    return record.read_text()


@pytest.fixture
def old_database(template: str) -> Iterator[TestDatabase]:
    """Give a database with the previous release's schema."""
    with new_database(template) as created:
        yield created


@pytest.fixture
def site(place: Path, old_database: TestDatabase, tmp_path: Path) -> Iterator[Installation]:
    """Give an installation in which nobody works yet."""
    made = Installation(tmp_path, old_database, PreviousRelease(place / "src"))
    yield made
    made.close()
