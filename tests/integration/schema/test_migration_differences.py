"""What cannot be made without losing or refusing data is told of, changes nothing, and stops nothing else."""

import re
from datetime import datetime
from typing import Annotated, LiteralString

import pytest
from pydantic import Field
from tests.integration.schema.bench import Bench, Spec, enum, told

from graticule.core.table import Check, Column, DatabaseRole, ForeignKey, Index

Code5 = Annotated[str, Field(max_length=5)]
Code20 = Annotated[str, Field(max_length=20)]
READ = frozenset({"SELECT"})
ROWS: LiteralString = "INSERT INTO OURS.things (id, name) VALUES (1, 'same'), (2, 'same'), (3, NULL)"

# What differs: the older model, the newer one, the object that is told of, and words of the reason.
REFUSED: dict[str, tuple[Spec, Spec, str, str]] = {
    "another type": (
        {"fields": {"size": (int, 0)}},
        {"fields": {"size": (str, "0")}},
        "column things.size",
        "is integer, and the models want text",
    ),
    "a larger number": (
        {"fields": {"size": (int, 0)}},
        {"fields": {"size": (Annotated[int, Column(type="BIGINT")], 0)}},
        "column things.size",
        "is integer, and the models want bigint",
    ),
    "a type with another default": (
        {"fields": {"at": (datetime | None, None)}},
        {"fields": {"at": (bool | None, True)}},
        "column things.at",
        "and the models want boolean",
    ),
    "a narrower text": (
        {"fields": {"code": (Code20, "x")}},
        {"fields": {"code": (Code5, "x")}},
        "column things.code",
        r"is character varying\(20\), and the models want character varying\(5\)",
    ),
    "a text that gets a limit": (
        {},
        {"fields": {"name": (Code20 | None, None)}},
        "column things.name",
        r"is text, and the models want character varying\(20\)",
    ),
    "nulls that are no longer allowed": (
        {},
        {"fields": {"name": (str, ...)}},
        "column things.name",
        "allows NULL, and the models do not",
    ),
    "a number by the database": (
        {},
        {"fields": {"id": (Annotated[int | None, Column(type="INTEGER", identity=True)], None)}},
        "column things.id",
        "is numbered by the database in one of the two only",
    ),
    "a column without a default": (
        {},
        {"fields": {"size": (int, ...)}},
        "column things.size",
        'cannot be made with the rows that are there: column "size" .* contains null values',
    ),
    "a check that rows violate": (
        {},
        {"checks": (Check("small", "id < 3"),)},
        "constraint things.things_small",
        'cannot be made with the rows that are there: check constraint "things_small" .* is violated by some row',
    ),
    "bounds that rows violate": (
        {},
        {"fields": {"id": (Annotated[int, Field(le=2)], ...)}},
        "constraint things.things_id_range",
        "is violated by some row",
    ),
    "a unique constraint that rows violate": (
        {},
        {"unique": (("name",),)},
        "constraint things.things_name_key",
        'could not create unique index "things_name_key"',
    ),
    "a unique index that rows violate": (
        {},
        {"indexes": (Index(("name",), unique=True),)},
        "index things_name_idx",
        'could not create unique index "things_name_idx"',
    ),
    "a foreign key that rows violate": (
        {"fields": {"up": (int, 9)}},
        {"fields": {"up": (int, 9)}, "foreign_keys": (ForeignKey(("up",), "things", ("id",)),)},
        "constraint things.things_up_fkey",
        'violates foreign key constraint "things_up_fkey"',
    ),
    "another check": (
        {"checks": (Check("rule", "id > 0"),)},
        {"checks": (Check("rule", "id > -1"),)},
        "constraint things.things_rule",
        r"id > 0.*the models want.*id > '-1'",
    ),
    "another primary key": (
        {},
        {"fields": {"k": (int, 1)}, "primary_key": ("id", "k")},
        "constraint things.things_pkey",
        "the models want",
    ),
    "another foreign key": (
        {"fields": {"up": (int | None, None)}, "foreign_keys": (ForeignKey(("up",), "things", ("id",)),)},
        {
            "fields": {"up": (int | None, None)},
            "foreign_keys": (ForeignKey(("up",), "things", ("id",), on_delete="CASCADE"),),
        },
        "constraint things.things_up_fkey",
        "the models want",
    ),
    "enum values in another order": (
        {"fields": {"colour": (enum("Colour", "a", "b") | None, None)}},
        {"fields": {"colour": (enum("Colour", "b", "a") | None, None)}},
        "enum colour",
        "has its values in another order",
    ),
    "an enum value that is gone": (
        {"fields": {"colour": (enum("Colour", "a", "b") | None, None)}},
        {"fields": {"colour": (enum("Colour", "a") | None, None)}},
        "enum colour",
        "has values that the models do not know: b",
    ),
}


def _with_more(spec: Spec) -> Spec:
    """Add to a model what can be made without harm."""
    fields = {**spec.get("fields", {}), "more": (str | None, Field(None, description="More."))}
    return {**spec, "fields": fields, "indexes": (*spec.get("indexes", ()), Index(("more",)))}


MORE = {"column things.more", "index things_more_idx", "comment things.more"}


@pytest.mark.parametrize(("older", "newer", "key", "reason"), REFUSED.values(), ids=REFUSED)
async def test_a_change_that_could_harm_is_told_of_and_the_others_are_made(
    bench: Bench, older: Spec, newer: Spec, key: str, reason: str
) -> None:
    await bench.deploy(bench.model(**older))
    await bench.execute(ROWS)
    rows, before = await bench.execute("SELECT * FROM OURS.things ORDER BY id"), await bench.catalogue()
    report = await bench.migrate(bench.model(**_with_more(newer)))
    assert re.search(reason, told(report.differences)[key])
    assert {item.object for item in report.applied} >= MORE
    assert {item.object for item in report.applied} <= MORE | {"column things.k"}
    after = await bench.catalogue()
    assert {name: after[name] for name in before} == before
    kept = await bench.execute("SELECT * FROM OURS.things ORDER BY id")
    assert [row[: len(rows[0])] for row in kept] == rows


@pytest.mark.parametrize("case", ["another check", "another foreign key", "another primary key"])
async def test_the_sql_that_is_told_of_removes_the_difference(bench: Bench, case: str) -> None:
    older, newer = REFUSED[case][:2]
    await bench.deploy(bench.model(**older))
    await bench.execute(ROWS)
    report = await bench.migrate(bench.model(**newer))
    for difference in report.differences:
        assert difference.by_hand is not None
        await bench.connection.execute(difference.by_hand.encode())
    assert (await bench.migrate(bench.model(**newer))).current


async def test_another_index_takes_the_place_of_the_one_that_is_there(bench: Bench) -> None:
    await bench.deploy(bench.model(indexes=(Index(("name",)),)))
    await bench.execute(ROWS)
    newer = bench.model(indexes=(Index(("name",), where="id > 1"),))
    report = await bench.migrate(newer)
    assert [item.object for item in report.applied] == ["index things_name_idx"]
    assert report.current
    assert (await bench.migrate(newer)).applied == []


async def test_an_index_that_the_rows_do_not_allow_leaves_the_one_that_is_there(bench: Bench) -> None:
    await bench.deploy(bench.model(indexes=(Index(("name",)),)))
    await bench.execute(ROWS)
    await bench.execute("UPDATE OURS.things SET name = 'same'")
    before = await bench.catalogue()
    report = await bench.migrate(bench.model(indexes=(Index(("name",), unique=True),)))
    assert not report.current
    assert "index things_name_idx" in told(report.differences)
    assert await bench.catalogue() == before


async def test_a_schema_that_misses_a_change_is_not_current_and_is_not_recorded_as_deployed(bench: Bench) -> None:
    await bench.deploy(bench.model())
    await bench.execute(ROWS)
    newer = bench.model(unique=(("name",),))
    report = await bench.migrate(newer)
    status = await bench.status(newer)
    assert (report.current, status.current) == (False, False)
    assert status.deployed_fingerprint != report.fingerprint
    await bench.execute("DELETE FROM OURS.things WHERE id = 2")
    assert (await bench.migrate(newer)).current
    assert (await bench.status(newer)).deployed_fingerprint == report.fingerprint


async def test_a_schema_with_a_column_of_another_type_is_not_current(bench: Bench) -> None:
    """Programs look for their fingerprint to know that they can work here: they could not."""
    await bench.deploy(bench.model({"size": (int, 0)}))
    newer = bench.model({"size": (str | None, None)})
    report = await bench.migrate(newer)
    assert report.differences
    assert not report.current
    assert not (await bench.status(newer)).current


async def test_what_depends_on_a_refused_column_does_not_stop_the_migration(bench: Bench) -> None:
    await bench.deploy(bench.model())
    await bench.execute(ROWS)
    newer: Spec = {
        "fields": {"size": (Annotated[int, Field(ge=0)], Field(description="How large."))},
        "indexes": (Index(("size",)),),
        "checks": (Check("size_is_even", "size % 2 = 0"),),
        "unique": (("size",),),
    }
    report = await bench.migrate(bench.model(**_with_more(newer)))
    assert {item.object for item in report.applied} == MORE
    assert "contains null values" in told(report.differences)["column things.size"]
    assert not report.current


async def test_the_comment_of_a_refused_index_does_not_stop_the_migration(bench: Bench) -> None:
    await bench.deploy(bench.model())
    await bench.execute(ROWS)
    newer: Spec = {"indexes": (Index(("name",), unique=True, comment="One of each."),)}
    report = await bench.migrate(bench.model(**_with_more(newer)))
    assert {item.object for item in report.applied} == MORE
    assert "could not create unique index" in told(report.differences)["index things_name_idx"]


async def test_a_column_that_a_view_of_the_operators_reads_does_not_stop_the_migration(bench: Bench) -> None:
    await bench.deploy(bench.model({"code": (Code5 | None, None)}))
    await bench.execute("CREATE VIEW OURS.report AS SELECT code FROM OURS.things")
    newer: Spec = {"fields": {"code": (Code20 | None, None)}}
    report = await bench.migrate(bench.model(**_with_more(newer)))
    assert {item.object for item in report.applied} == MORE
    assert "view" in told(report.differences)["column things.code"]


async def test_what_the_models_do_not_know_is_told_of_and_left_alone(bench: Bench) -> None:
    model = bench.model({"colour": (enum("Colour", "a") | None, None)})
    await bench.deploy(model)
    await bench.execute("ALTER TABLE OURS.things ADD COLUMN theirs TEXT")
    await bench.execute("ALTER TABLE OURS.things ADD CONSTRAINT theirs_too CHECK (id <> 99)")
    await bench.execute("CREATE INDEX their_index ON OURS.things (theirs)")
    await bench.execute("CREATE TABLE OURS.their_table (id INT PRIMARY KEY CHECK (id > 0))")
    await bench.execute("CREATE TYPE OURS.their_enum AS ENUM ('x')")
    await bench.execute("ALTER TYPE OURS.colour ADD VALUE 'theirs'")
    before = await bench.catalogue()
    report = await bench.migrate(model)
    assert set(told(report.differences)) == {
        "column things.theirs",
        "constraint things.theirs_too",
        "index their_index",
        "table their_table",
        "enum their_enum",
        "enum colour",
    }
    assert (report.applied, report.pending) == ([], [])
    assert await bench.catalogue() == before


async def test_an_unknown_table_is_told_of_once_although_it_has_indexes_and_grants(bench: Bench) -> None:
    await bench.deploy(bench.model())
    await bench.execute("CREATE TABLE OURS.theirs (id INT)")
    await bench.execute("CREATE INDEX theirs_id ON OURS.theirs (id)")
    await bench.execute("GRANT SELECT ON OURS.theirs TO graticule_worker")
    assert set(told((await bench.migrate(bench.model())).differences)) == {"table theirs"}


EXTRA_GRANTS: dict[str, tuple[LiteralString, str]] = {
    "to the gateway": ("GRANT INSERT ON OURS.things TO graticule_gateway", "grant things INSERT graticule_gateway"),
    "to a worker": ("GRANT TRUNCATE ON OURS.things TO graticule_worker", "grant things TRUNCATE graticule_worker"),
    "on the schema": ("GRANT CREATE ON SCHEMA OURS TO graticule_gateway", "CREATE graticule_gateway"),
    "to everyone": ("GRANT INSERT ON OURS.things TO PUBLIC", "things INSERT"),
    "to everyone on the schema": ("GRANT CREATE ON SCHEMA OURS TO PUBLIC", "CREATE"),
    "on a column": ("GRANT UPDATE (name) ON OURS.things TO graticule_gateway", "UPDATE"),
}


@pytest.mark.parametrize(("grant", "expected"), EXTRA_GRANTS.values(), ids=EXTRA_GRANTS)
async def test_a_privilege_that_lets_our_roles_do_more_is_told_of(
    bench: Bench, grant: LiteralString, expected: str
) -> None:
    model = bench.model(grants={DatabaseRole.GATEWAY: READ})
    await bench.deploy(model)
    await bench.execute(grant)
    report = await bench.migrate(model)
    assert [item.object for item in report.differences if expected in item.object] != []


async def test_a_privilege_of_a_role_that_is_not_ours_is_not_told_of(bench: Bench) -> None:
    model = bench.model(grants={DatabaseRole.GATEWAY: READ})
    await bench.deploy(model)
    await bench.execute("GRANT SELECT, INSERT ON OURS.things TO pgstac_read")
    await bench.execute("GRANT USAGE ON SCHEMA OURS TO pgstac_read")
    report = await bench.migrate(model)
    assert (report.differences, report.current) == ([], True)


async def test_a_migration_leaves_the_sessions_settings_as_they_were(bench: Bench) -> None:
    settings = "SELECT name, setting FROM pg_settings WHERE name IN ('lock_timeout', 'search_path', 'role')"
    await bench.deploy(bench.model())
    before = await bench.execute(settings)
    await bench.migrate(bench.model({"size": (int, 0)}))
    await bench.status(bench.model())
    assert await bench.execute(settings) == before
    held = "SELECT FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()"
    assert await bench.execute(held) == []
