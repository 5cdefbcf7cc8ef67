"""Orchestrators with different files share their workflows by the database."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest
from tests.conftest import TestDatabase

from graticule.core.channels import WORKFLOWS
from graticule.core.errors import NotFound, Unavailable
from graticule.core.ids import OwnerId
from graticule.core.models import Orchestrator
from graticule.core.table import DatabaseRole
from graticule.dag.compile import KnownHandler
from graticule.repositories.database import Database
from graticule.repositories.listener import Listener, listening
from graticule.repositories.processes import OrchestratorRepository
from graticule.repositories.retention import RetentionRepository
from graticule.services.shared_workflows import WorkflowSource
from graticule.services.workflow_sharing import WorkflowSharing
from graticule.services.workflows import Workflows

ROLE = DatabaseRole.ORCHESTRATOR
LOCK_KEY = 1
HANDLERS = {"echo": KnownHandler("functionapp-tasks", 600)}


class Member:
    """An orchestrator of which only the workflows are at work."""

    def __init__(self, database: Database, folder: Path, name: str) -> None:
        self.database, self.folder, self.owner_id = database, folder, OwnerId(name)
        folder.mkdir(exist_ok=True)
        self.start()

    def start(self) -> None:
        """Begin with what the files say, as after a restart."""
        self.workflows = Workflows([self.folder], lambda: HANDLERS)
        self.sharing = WorkflowSharing(self.database, self.workflows, self.owner_id, threshold_seconds=60)

    async def join(self) -> None:
        now = datetime.now(UTC)
        row = Orchestrator(
            owner_id=self.owner_id,
            hostname="host",
            process_id=1,
            program_version="1",
            lock_key=LOCK_KEY,
            started_at=now,
            heartbeat_at=now,
        )
        async with self.database.connection() as connection:
            await OrchestratorRepository(connection).insert(row)
        await self.sharing.share()

    def write(self, name: str = "flow", *, handler: str = "echo", version: int = 1) -> None:
        text = f"workflow_id: {name}\nversion: {version}\nnodes:\n  start: {{next: a}}\n"
        (self.folder / f"{name}.yaml").write_text(f"{text}  a: {{handler: {handler}, next: end}}\n")

    def version(self, name: str = "flow") -> str:
        return self.workflows.library.get(name).version

    def source(self, name: str = "flow") -> WorkflowSource:
        return self.workflows.library.origin(name).source

    async def learn(self, name: str) -> None:
        async with self.database.connection() as connection:
            await self.workflows.learn(connection, [name])


@pytest.fixture
async def pool(emptied_database: TestDatabase) -> AsyncIterator[Database]:
    async with Database(emptied_database.url(ROLE), ROLE, pool_size=2) as opened:
        yield opened


@pytest.fixture
async def session(emptied_database: TestDatabase) -> AsyncIterator[None]:
    """Hold the lock by which orchestrators prove that they are there."""
    async with await psycopg.AsyncConnection.connect(emptied_database.url(), autocommit=True) as connection:
        await connection.execute("SELECT pg_advisory_lock(%s)", [LOCK_KEY])
        yield


@pytest.fixture
async def members(pool: Database, session: None, tmp_path: Path) -> tuple[Member, Member]:
    """Give two orchestrators, one of which knows a workflow."""
    first, second = (Member(pool, tmp_path / name, name) for name in ("first", "second"))
    first.write()
    first.start()
    await first.join()
    await second.join()
    return first, second


async def test_an_instance_takes_over_what_another_announced(members: tuple[Member, Member]) -> None:
    first, second = members
    assert second.workflows.library.get("flow").content_hash == first.workflows.own.graphs["flow"].content_hash
    assert (first.source(), second.source()) == (WorkflowSource.FOLDER, WorkflowSource.DATABASE)
    origin = second.workflows.library.origin("flow")
    assert (origin.announced_by, origin.reloaded_by, origin.announced_at is None) == ("first", None, False)


async def test_a_reload_reaches_the_others_by_notification(
    members: tuple[Member, Member], emptied_database: TestDatabase
) -> None:
    first, second = members
    async with listening(Listener(emptied_database.url(ROLE), ROLE, [WORKFLOWS])) as heard:
        await anext(heard)
        first.write(version=2)
        await first.sharing.reload("ann")
        async with asyncio.timeout(20):
            await anext(heard)
    assert await second.sharing.share()
    assert (second.version(), second.workflows.library.origin("flow").reloaded_by) == ("2", "ann")
    assert not await second.sharing.share()


async def test_an_unknown_workflow_is_looked_up(members: tuple[Member, Member]) -> None:
    first, second = members
    first.write("other")
    await first.sharing.reload("ann")
    with pytest.raises(NotFound, match="graticule workflow list"):
        second.workflows.library.get("other")
    await second.learn("other")
    assert second.version("other") == "1"
    await second.learn("no\x00name")


async def test_an_instance_that_restarts_with_old_files_rolls_nothing_back(members: tuple[Member, Member]) -> None:
    first, second = members
    second.write(version=2)
    await second.sharing.reload("ann")
    first.start()
    await first.sharing.share()
    assert (first.version(), second.version()) == ("2", "2")


async def test_a_reload_before_an_instance_has_announced_its_files_is_not_rolled_back(
    pool: Database, session: None, tmp_path: Path
) -> None:
    first, second = (Member(pool, tmp_path / name, name) for name in ("first", "second"))
    for member in (first, second):
        member.write()
        member.start()
    first.write(version=2)
    await first.sharing.reload("ann")
    await first.join()
    await second.join()
    await first.sharing.share()
    assert (first.version(), second.version()) == ("2", "2")


async def test_a_prune_does_not_make_a_superseded_definition_new(members: tuple[Member, Member]) -> None:
    first, second = members
    second.write()  # the same file, which nobody changes here
    second.start()
    first.write(version=2)
    await first.sharing.reload("ann")
    assert [await _prune_definitions(first.database) for _ in range(2)] == [1, 0]
    await second.sharing.share()  # as at every heartbeat
    second.start()
    await second.sharing.share()
    await first.sharing.share()
    assert (first.version(), second.version()) == ("2", "2")

    second.write(version=3)
    await second.sharing.reload("ann")
    second.write()
    await second.sharing.reload("ann")  # on purpose: it comes back with its content
    await first.sharing.share()
    assert (first.version(), second.version()) == ("1", "1")


async def _prune_definitions(database: Database) -> int:
    async with database.connection() as connection:
        return await RetentionRepository(connection).remove_workflows(datetime.now(UTC) + timedelta(seconds=1))


async def test_a_reload_leaves_what_changed_elsewhere(members: tuple[Member, Member]) -> None:
    first, second = members
    second.write(version=2)
    await second.sharing.reload("ann")
    first.write("other")
    await first.sharing.reload("ann")
    assert (first.version(), first.version("other")) == ("2", "1")


async def test_a_file_that_breaks_leaves_the_last_sound_definition_and_is_reported(
    members: tuple[Member, Member],
) -> None:
    first, second = members
    first.write(handler="no such handler!")
    await first.sharing.reload("ann")
    await second.sharing.share()
    assert (first.version(), second.version()) == ("1", "1")
    assert first.workflows.library.problems
    (other,) = second.workflows.others
    assert (other.owner_id, "flow.yaml" in other.workflow_problems[0]) == ("first", True)


async def test_a_workflow_is_withdrawn_when_the_last_file_of_it_is_gone(members: tuple[Member, Member]) -> None:
    first, second = members
    second.write()
    await second.sharing.reload("ann")
    for member, is_known in ((first, True), (second, False)):
        (member.folder / "flow.yaml").unlink()
        await member.sharing.reload("ann")
        assert ("flow" in member.workflows.library.graphs) is is_known
    await first.sharing.share()
    assert "flow" not in first.workflows.library.graphs


async def test_the_only_instance_starts_with_its_files(pool: Database, tmp_path: Path) -> None:
    member = Member(pool, tmp_path / "files", "only")
    for version in (1, 2, 1):  # an edit that is taken back counts, too
        member.write(version=version)
        member.start()
        await member.sharing.share()
        assert member.version() == str(version)
    (member.folder / "flow.yaml").unlink()
    member.start()
    await member.sharing.share()
    assert "flow" not in member.workflows.library.graphs


async def test_a_definition_of_a_newer_release_leaves_the_own_one_in_use(members: tuple[Member, Member]) -> None:
    _, second = members
    second.write("own")
    await second.sharing.reload("ann")
    async with second.database.connection() as connection:
        await connection.execute(
            "UPDATE dagapp.dag_definitions SET program_version = '99.1',"
            " workflow_hash = repeat(md5(workflow_id), 2), definition = definition || '{\"of_the_next_release\": 1}'"
        )
        await connection.execute(
            "UPDATE dagapp.dag_orchestrators SET program_version = '99.1' WHERE owner_id = 'first'"
        )
    await second.sharing.share()
    assert second.version("own") == "1"
    with pytest.raises(NotFound, match=r"release 99\.1"):
        second.workflows.library.get("flow")


async def test_a_reload_without_a_database_changes_nothing(members: tuple[Member, Member]) -> None:
    first, _ = members
    first.write(version=2)
    database = Database("postgresql://nobody@127.0.0.1:1/nowhere", ROLE, timeout_seconds=0.1)
    away = WorkflowSharing(database, first.workflows, first.owner_id, threshold_seconds=60)
    async with database:
        with pytest.raises(Unavailable):
            await away.reload("ann")
    assert first.version() == "1"
    await first.sharing.reload("ann")
    assert first.version() == "2"
