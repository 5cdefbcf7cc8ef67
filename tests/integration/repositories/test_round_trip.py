"""A row comes back as it went in, whatever it holds and whichever way it was written."""

import math
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg import sql
from pydantic import JsonValue
from tests.examples import examples
from tests.integration.repositories import rows
from tests.integration.repositories.registry import repositories, repository_of

from graticule.core.errors import AlreadyExists, Conflict, InvalidInput, NotFound
from graticule.core.models import TABLES
from graticule.core.table import Row
from graticule.repositories.database import Connection
from graticule.repositories.jobs import JobRepository
from graticule.repositories.nodes import NodeRepository
from graticule.repositories.platforms import PlatformRepository
from graticule.repositories.workflows import WorkflowRepository

IDENTITIES = {"deployment_id", "result_id", "event_id", "callback_id"}
SAME_DATABASE = settings(
    derandomize=True,
    deadline=None,
    max_examples=examples(60),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)
# Beyond 2**53 a float comes back from JSONB as the integer that was written; an integer beyond 64 bits is a float.
NUMBERS = st.integers(-(2**63), 2**64 - 1) | st.floats(-(2.0**53), 2.0**53, allow_nan=False)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


def _key(row: Row) -> dict[str, Any]:
    return {name: getattr(row, name) for name in row.table.primary_key}


def _own(row: Row) -> dict[str, Any]:
    """Give what the writer set: all but the number that the database gave."""
    return {name: value for name, value in row if name not in IDENTITIES}


async def _read_back(connection: Connection, row: Row) -> Row:
    """Read through the repository the row that was copied in, whose number is not known."""
    key = _key(row)
    if IDENTITIES & set(key):
        names = sql.SQL(", ").join(map(sql.Identifier, key))
        query = sql.SQL("SELECT {} FROM dagapp.{} ORDER BY 1 DESC LIMIT 1").format(
            names, sql.Identifier(row.table.name)
        )
        key = await (await connection.execute(query)).fetchone() or {}
    found: Row = await repository_of(type(row))(connection).get(**key)
    return found


def test_every_model_has_one_repository_and_rich_rows_with_every_field_set() -> None:
    assert sorted(each.model.__name__ for each in repositories()) == sorted(model.__name__ for model in TABLES)
    assert {type(row) for row in rows.rich_rows()} == set(TABLES)
    fields = [(f"{type(row).__name__}.{name}", value) for row in rows.rich_rows() for name, value in _own(row).items()]
    assert {name for name, _ in fields} == {name for name, value in fields if value is not None}


async def test_every_model_is_inserted_got_and_found_as_it_was(owner: Connection, subtests: pytest.Subtests) -> None:
    for row in [*rows.parents(), *rows.rich_rows()]:
        with subtests.test(type(row).__name__):
            repository = repository_of(type(row))(owner)
            inserted = await repository.insert(row)
            assert _own(inserted) == _own(row)
            assert all(getattr(inserted, name) for name in IDENTITIES & set(type(row).model_fields))
            assert await repository.get(**_key(inserted)) == inserted
            assert await repository.find(**_key(inserted)) == inserted


async def test_every_model_is_copied_in_as_it_was(owner: Connection, subtests: pytest.Subtests) -> None:
    for row in rows.parents():
        await repository_of(type(row))(owner).insert(row)
    for row in rows.rich_rows():
        with subtests.test(type(row).__name__):
            await repository_of(type(row))(owner).insert_many([row])
            assert _own(await _read_back(owner, row)) == _own(row)


async def test_a_row_with_nothing_but_what_it_needs_has_nulls_and_the_models_defaults(with_job: Connection) -> None:
    found = await NodeRepository(with_job).get(job_id="job", node_id="node")
    assert found == rows.node()
    assert found.output is None
    assert found.input_params is None


async def test_a_json_value_that_is_falsy_is_not_a_null(with_job: Connection) -> None:
    falsy: list[JsonValue] = [0, False, "", [], {}, "null", [None], 0.0]
    for place, value in enumerate(falsy):
        await NodeRepository(with_job).insert(rows.node(f"node_{place}", output=value))
        found = await NodeRepository(with_job).get(job_id="job", node_id=f"node_{place}")
        assert (found.output, type(found.output)) == (value, type(value))


@SAME_DATABASE
@given(definition=st.dictionaries(TEXT, JSON, max_size=4), name=TEXT, ordinal=st.integers(0, 2**128))
async def test_any_json_and_any_text_round_trip(
    connection: Connection, definition: dict[str, Any], name: str, ordinal: int
) -> None:
    row = rows.workflow(workflow_hash=f"{ordinal:064x}", definition=definition, name=name)
    await connection.execute("DELETE FROM dagapp.dag_workflows")
    assert await WorkflowRepository(connection).insert(row) == row
    await connection.execute("DELETE FROM dagapp.dag_workflows")
    await WorkflowRepository(connection).insert_many([row])
    assert await WorkflowRepository(connection).get(workflow_hash=row.workflow_hash) == row


@SAME_DATABASE
@given(refs=st.lists(TEXT, min_size=1, max_size=5))
async def test_any_array_of_texts_round_trips(owner: Connection, refs: list[str]) -> None:
    now = rows.NOW
    repository, row = PlatformRepository(owner), (await PlatformRepository(owner).get(platform_id="ddh"))
    changed = row.model_copy(update={"required_refs": refs, "created_at": now, "updated_at": now, "platform_id": "p"})
    for write in (repository.insert(changed), repository.insert_many([changed])):
        await owner.execute("DELETE FROM dagapp.platforms WHERE platform_id = 'p'")
        await write
        assert await repository.get(platform_id="p") == changed


async def test_many_rows_are_copied_in_at_once_or_none(with_job: Connection) -> None:
    jobs = JobRepository(with_job)
    made = [rows.job(f"job-{number}") for number in range(2000)]
    await jobs.insert_many(made)
    assert len(await jobs.by_ids([job.job_id for job in made])) == 2000
    with pytest.raises(AlreadyExists):
        await jobs.insert_many([rows.job("new"), rows.job("job-7")])
    assert await jobs.find(job_id="new") is None


async def test_no_rows_are_copied_in_without_an_error(connection: Connection) -> None:
    await WorkflowRepository(connection).insert_many([])


async def test_a_duplicate_is_refused_and_the_first_row_stays(owner: Connection) -> None:
    first, second = rows.workflow(name="first"), rows.workflow(name="second")
    repository = WorkflowRepository(owner)
    await repository.insert(first)
    with pytest.raises(AlreadyExists, match="Could not add the workflow: it exists already"):
        await repository.insert(second)
    with pytest.raises(AlreadyExists):
        await repository.insert_many([second])
    assert await repository.get(workflow_hash=rows.HASH) == first


async def test_a_row_that_is_not_there_is_none_or_not_found(connection: Connection) -> None:
    jobs = JobRepository(connection)
    assert await jobs.find(job_id="missing") is None
    with pytest.raises(NotFound, match=r"There is no job missing\."):
        await jobs.get(job_id="missing")


async def test_what_a_row_refers_to_must_exist(connection: Connection) -> None:
    with pytest.raises(Conflict, match="refers to"):
        await JobRepository(connection).insert(rows.job())


async def test_a_text_or_number_that_postgresql_has_not_is_an_invalid_input_not_a_crash(connection: Connection) -> None:
    documents: list[dict[str, Any]] = [{"a": "\0"}, {"a": "\ud800"}, {"\ud800": 1}, {"a": math.nan}, {"a": math.inf}]
    repository = WorkflowRepository(connection)
    for row in (rows.workflow(name="\0"), *(rows.workflow(definition=document) for document in documents)):
        for write in (repository.insert(row), repository.insert_many([row])):
            with pytest.raises(InvalidInput):
                await write


async def test_a_column_that_a_newer_release_added_is_passed_over(owner: Connection) -> None:
    row = rows.workflow()
    async with owner.transaction(force_rollback=True):
        await owner.execute("ALTER TABLE dagapp.dag_workflows ADD COLUMN newer TEXT DEFAULT 'x' NOT NULL")
        assert await WorkflowRepository(owner).insert(row) == row
        assert await WorkflowRepository(owner).get(workflow_hash=row.workflow_hash) == row
