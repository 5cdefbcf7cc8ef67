"""Migrating from an older model adds what is missing and loses no row."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

import pytest
from pydantic import Field
from tests.integration.schema.bench import Bench, Spec, enum, told

from graticule.core.models.fields import CreatedAt, JsonObject, Priority
from graticule.core.table import Check, Column, DatabaseRole, ForeignKey, Index, Row

Code3 = Annotated[str, Field(max_length=3)]
Code30 = Annotated[str, Field(max_length=30)]
READ = frozenset({"SELECT"})
Mood = enum("Mood", "calm", "wild")
State = enum("State", "a", "b", "c")


def with_enum(*values: str) -> Spec:
    made = enum("Colour", *values)
    return {"fields": {"colour": (made | None, None), "colours": (list[made], Field(default_factory=list))}}  # type: ignore[valid-type]


EVOLUTIONS: dict[str, tuple[Spec, Spec]] = {
    "a nullable column": ({}, {"fields": {"note": (str | None, None)}}),
    "a column with a default": ({}, {"fields": {"size": (int, 3)}}),
    "a column with a text that needs quoting": ({}, {"fields": {"note": (str, 'it\'s \\ "so" %s {}')}}),
    "a column that the database fills": ({}, {"fields": {"made_at": (CreatedAt, ...)}}),
    "a column with a document": ({}, {"fields": {"data": (JsonObject, {"a": [1, "ü'"]})}}),
    "a column with an array": ({}, {"fields": {"tags": (list[str], ["a", "b c"])}}),
    "a column of a new enum": ({}, {"fields": {"mood": (Mood, Mood("calm"))}}),
    "a column with bounds": ({}, {"fields": {"priority": (Priority, 0)}}),
    "a column of every other type": (
        {},
        {"fields": {"a": (UUID | None, None), "b": (float, 0.5), "c": (bool, True), "d": (datetime | None, None)}},
    ),
    "a column that the database numbers": (
        {},
        {"fields": {"number": (Annotated[int | None, Column(type="BIGINT", identity=True)], None)}},
    ),
    "an index": ({}, {"indexes": (Index(("name", "id DESC")),)}),
    "a partial unique index": ({}, {"indexes": (Index(("name",), unique=True, where="id > 2", include=("id",)),)}),
    "an index with a comment": ({}, {"indexes": (Index(("id",), method="brin", comment="By age."),)}),
    "an index on a new column": ({}, {"fields": {"size": (int, 0)}, "indexes": (Index(("size",)),)}),
    "a check": ({}, {"checks": (Check("positive", "id > 0"),)}),
    "a unique constraint": ({}, {"unique": (("id", "name"),)}),
    "bounds of a column": ({}, {"fields": {"id": (Annotated[int, Field(ge=0, lt=100)], ...)}}),
    "a wider text": ({"fields": {"code": (Code3 | None, None)}}, {"fields": {"code": (Code30 | None, None)}}),
    "a text without a limit": ({"fields": {"code": (Code3, "abc")}}, {"fields": {"code": (str, "abc")}}),
    "a changed default": ({"fields": {"size": (int, 1)}}, {"fields": {"size": (int, 2)}}),
    "a new default": ({"fields": {"size": (int | None, None)}}, {"fields": {"size": (int | None, 2)}}),
    "a default that is gone": ({"fields": {"size": (int | None, 2)}}, {"fields": {"size": (int | None, None)}}),
    "nulls that are allowed now": ({"fields": {"size": (int, 1)}}, {"fields": {"size": (int | None, None)}}),
    "a changed comment of the table": ({}, {"doc": "Another thing."}),
    "a comment of a column": ({}, {"fields": {"name": (str | None, Field(None, description="It's named."))}}),
    "a changed comment of a column": (
        {"fields": {"name": (str | None, Field(None, description="Before."))}},
        {"fields": {"name": (str | None, Field(None, description="After."))}},
    ),
    "a changed comment of an index": (
        {"indexes": (Index(("id",), comment="Before."),)},
        {"indexes": (Index(("id",), comment="After."),)},
    ),
    "a grant": (
        {"grants": {DatabaseRole.WORKER: READ}},
        {"grants": {DatabaseRole.WORKER: READ | {"INSERT"}, DatabaseRole.GATEWAY: READ}},
    ),
    "an enum value at the end": (with_enum("a", "b"), with_enum("a", "b", "c")),
    "an enum value at the start": (with_enum("a", "b"), with_enum("z", "a", "b")),
    "an enum value in the middle": (with_enum("a", "b"), with_enum("a", "m", "b")),
    "many enum values": (with_enum("c", "f"), with_enum("a", "b", "c", "d", "e", "f", "g", "h's")),
    "an enum value that a check, an index and a default name": (
        {"fields": {"state": (enum("State", "a"), "a")}},
        {
            "fields": {"state": (State, State("b")), "more": (State, State("c"))},
            "checks": (Check("not_c", "state <> 'c'"),),
            "indexes": (Index(("id",), where="state = 'b'"),),
        },
    ),
    "long names": ({}, {"fields": {"x" * 59: (Annotated[int, Field(ge=0)], 0)}}),
    "no comment": ({"doc": None}, {"doc": None, "fields": {"size": (int, 0)}}),
    "an index on an expression": ({}, {"indexes": (Index(("(lower(name)) DESC",)),)}),
}


async def _three_rows(bench: Bench) -> list[Any]:
    await bench.execute("INSERT INTO OURS.things (id, name) VALUES (1, 'a'), (2, NULL), (3, 'ü''')")
    return await bench.execute("SELECT id, name FROM OURS.things ORDER BY id")


async def _is_the_same_as_a_fresh_deployment(bench: Bench, *specs: Spec) -> bool:
    fresh = bench.beside()
    await fresh.deploy(*(fresh.model(**spec) for spec in specs))
    expected = await fresh.catalogue()
    await fresh.execute("DROP SCHEMA OURS CASCADE")
    assert await bench.catalogue() == expected
    return True


@pytest.mark.parametrize(("older", "newer"), EVOLUTIONS.values(), ids=EVOLUTIONS)
async def test_migrating_adds_what_is_missing_and_keeps_every_row(bench: Bench, older: Spec, newer: Spec) -> None:
    assert (await bench.deploy(bench.model(**older))).current
    before = await _three_rows(bench)
    model = bench.model(**newer)
    assert older == newer or (await bench.status(model)).pending
    report = await bench.migrate(model)
    assert (report.pending, report.differences, report.current) == ([], [], True)
    assert await bench.execute("SELECT id, name FROM OURS.things ORDER BY id") == before
    status = await bench.status(model)
    assert (status.pending, status.differences, status.current) == ([], [], True)
    assert (await bench.migrate(model)).applied == []
    assert await _is_the_same_as_a_fresh_deployment(bench, newer)


async def test_a_new_table_is_made_and_an_old_one_may_refer_to_it(bench: Bench) -> None:
    await bench.deploy(bench.model())
    before = await _three_rows(bench)
    newer: list[Spec] = [
        {
            "fields": {"kind_id": (int | None, None)},
            "foreign_keys": (ForeignKey(("kind_id",), "kinds", ("id",), on_delete="SET NULL"),),
        },
        {"name": "kinds", "unique": (("name",),), "grants": {DatabaseRole.GATEWAY: READ}},
    ]
    assert (await bench.migrate(*(bench.model(**spec) for spec in newer))).current
    assert await bench.execute("SELECT id, name FROM OURS.things ORDER BY id") == before
    assert await _is_the_same_as_a_fresh_deployment(bench, *newer)


async def test_rows_keep_the_values_of_columns_that_were_changed(bench: Bench) -> None:
    await bench.deploy(bench.model({"code": (Code3, "abc"), **with_enum("a", "b")["fields"]}))
    await bench.execute("INSERT INTO OURS.things (id, code, colour, colours) VALUES (1, 'xyz', 'a', '{b,a}')")
    newer = {"code": (str, "new"), "size": (int, 7), **with_enum("z", "a", "m", "b")["fields"]}
    await bench.migrate(bench.model(newer))
    await bench.execute("INSERT INTO OURS.things (id, code) VALUES (2, 'now much longer than before')")
    assert await bench.execute("SELECT id, code, size, colour::text, colours::text FROM OURS.things ORDER BY id") == [
        (1, "xyz", 7, "a", "{b,a}"),
        (2, "now much longer than before", 7, None, "{}"),
    ]
    ordered = "SELECT 'z'::OURS.colour < 'a' AND 'a'::OURS.colour < 'm' AND 'm'::OURS.colour < 'b'"
    assert await bench.execute(ordered) == [(True,)]


async def test_new_seeds_are_put_in_and_changed_rows_are_left_as_they_are(bench: Bench) -> None:
    one, two = {"id": 1, "name": "one"}, {"id": 2, "name": "two"}
    await bench.deploy(bench.model(seeds=(one,)))
    await bench.execute("UPDATE OURS.things SET name = 'edited by an operator'")
    await bench.migrate(bench.model(seeds=(one, two)))
    assert await bench.execute("SELECT id, name FROM OURS.things ORDER BY id") == [
        (1, "edited by an operator"),
        (2, "two"),
    ]


async def test_status_is_not_current_before_new_seeds_are_put_in(bench: Bench) -> None:
    await bench.deploy(bench.model())
    assert not (await bench.status(bench.model(seeds=({"id": 1},)))).current


async def test_status_and_readiness_agree_on_whether_these_models_were_deployed(bench: Bench) -> None:
    """A model that lost an index needs no change, and still no process calls the schema its own before `migrate`."""
    await bench.deploy(bench.model(indexes=(Index(("id",)),)))
    status = await bench.status(bench.model())
    assert status.fingerprint != status.deployed_fingerprint
    assert not status.current


async def test_what_was_done_is_told_with_the_statement(bench: Bench) -> None:
    await bench.deploy(bench.model())
    newer = bench.model({"size": (int, 0)}, indexes=(Index(("size",)),))
    report = await bench.migrate(newer)
    assert told(report.applied) == {
        "column things.size": f"ALTER TABLE {bench.schema}.things ADD COLUMN size INTEGER DEFAULT 0 NOT NULL",
        "index things_size_idx": f"CREATE INDEX things_size_idx ON {bench.schema}.things USING btree (size)",
    }


async def test_status_changes_nothing(bench: Bench) -> None:
    await bench.deploy(bench.model())
    before = await bench.catalogue()
    status = await bench.status(bench.model({"size": (int, 0)}), bench.model(name="others"))
    assert {"column things.size", "table others"} <= set(told(status.pending))
    assert await bench.catalogue() == before
    leftovers = "SELECT nspname FROM pg_namespace WHERE nspname LIKE '%%\\_\\_expected'"
    assert await bench.execute(leftovers) == []


async def test_an_invalid_index_is_made_anew(bench: Bench) -> None:
    model = bench.model(indexes=(Index(("id",)),))
    await bench.deploy(model)
    await bench.execute("UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'OURS.things_id_idx'::regclass")
    report = await bench.migrate(model)
    assert [item.object for item in report.applied] == ["index things_id_idx"]
    assert (await bench.migrate(model)).current


async def test_tables_are_listed_with_their_rows(bench: Bench) -> None:
    models: list[type[Row]] = [bench.model(indexes=(Index(("name",)),)), bench.model(name="empty", doc="No rows.")]
    await bench.deploy(*models)
    await _three_rows(bench)
    empty, things = await bench.commands(*models).tables()
    assert (things.name, things.rows, things.rows_estimated, things.indexes) == (f"{bench.schema}.things", 3, False, 2)
    assert (empty.rows, empty.comment) == (0, "No rows.")
