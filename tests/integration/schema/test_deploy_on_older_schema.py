"""Deploying on an older schema makes new tables, leaves those that are there as they are, and says what is pending."""

from datetime import date
from typing import Any

import pytest
from pydantic import Field
from tests.integration.schema.bench import Bench, Spec, enum, told

from graticule.core.models.fields import CreatedAt, Priority
from graticule.core.table import Check, DatabaseRole, ForeignKey, Index, MonthlyPartitions, Row
from graticule.schema.catalogue import Catalogue

READ = frozenset({"SELECT"})
# What is new in a table that is there: the newer model, and what must be pending.
PENDING: dict[str, tuple[Spec, set[str]]] = {
    "a column": ({"fields": {"size": (int, 0)}}, {"column things.size"}),
    "a column with a comment": (
        {"fields": {"size": (int, Field(0, description="How large."))}},
        {"column things.size", "comment things.size"},
    ),
    "a column with an index": (
        {"fields": {"size": (int, 0)}, "indexes": (Index(("size",)),)},
        {"column things.size", "index things_size_idx"},
    ),
    "a column with bounds": (
        {"fields": {"priority": (Priority, 0)}},
        {"column things.priority", "constraint things.things_priority_range"},
    ),
    "a column with a seed": (
        {"fields": {"size": (int, 0)}, "seeds": ({"id": 1, "size": 3},)},
        {"column things.size"},
    ),
    "a check": ({"checks": (Check("c", "id > 0"),)}, {"constraint things.things_c"}),
    "a unique constraint": ({"unique": (("name",),)}, {"constraint things.things_name_key"}),
    "an index": ({"indexes": (Index(("name",)),)}, {"index things_name_idx"}),
    "an enum value": (
        {"fields": {"colour": (enum("Colour", "a", "b") | None, None)}},
        {"enum colour"},
    ),
    "a default": ({"fields": {"name": (str | None, "x")}}, {"column things.name"}),
    "a changed comment": ({"doc": "Another thing."}, {"comment things"}),
}


def _of_things(catalogue: Catalogue) -> dict[str, Any]:
    """Give all that belongs to the table `things` or to its enum."""
    return {
        str(key): value
        for key, value in catalogue.items()
        if key.name.partition(".")[0].split("_")[0].split()[0] in {"things", "colour"}
    }


@pytest.mark.parametrize(("newer", "pending"), PENDING.values(), ids=PENDING)
async def test_a_table_that_is_there_is_left_as_it_is_and_a_new_one_is_made(
    bench: Bench, newer: Spec, pending: set[str]
) -> None:
    await bench.deploy(bench.model({"colour": (enum("Colour", "a") | None, None)}))
    await bench.execute("INSERT INTO OURS.things (id) VALUES (7)")
    before = _of_things(await bench.catalogue())
    fields = {"colour": (enum("Colour", "a") | None, None), **newer.get("fields", {})}
    models = [bench.model(**{**newer, "fields": fields}), bench.model(name="kinds", doc="A kind.")]
    report = await bench.deploy(*models)
    assert _of_things(await bench.catalogue()) == before
    assert set(told(report.pending)) == pending
    assert {"table kinds", "comment kinds"} <= set(told(report.applied))
    assert not report.current
    assert await bench.execute("SELECT id FROM OURS.things ORDER BY id") == [(7,)]
    assert (await bench.migrate(*models)).current


async def test_a_new_table_may_refer_to_one_that_is_there(bench: Bench) -> None:
    await bench.deploy(bench.model())
    parts = bench.model(
        {"thing_id": (int, ...)},
        name="parts",
        foreign_keys=(ForeignKey(("thing_id",), "things", ("id",)),),
        grants={DatabaseRole.GATEWAY: READ},
        seeds=(),
    )
    report = await bench.deploy(bench.model(), parts)
    assert (report.pending, report.current) == ([], True)
    assert "constraint parts.parts_thing_id_fkey" in told(report.applied)


async def test_a_new_table_that_needs_a_pending_enum_value_does_not_stop_the_deployment(bench: Bench) -> None:
    old, new = enum("Colour", "a"), enum("Colour", "a", "b")
    await bench.deploy(bench.model({"colour": (old, old("a"))}))
    models: list[type[Row]] = [
        bench.model({"colour": (new, new("a"))}),
        bench.model({"colour": (new, new("b"))}, name="others", indexes=(Index(("id",), where="colour = 'b'"),)),
    ]
    report = await bench.deploy(*models)
    assert not report.current
    assert (await bench.migrate(*models)).current


async def test_the_partitions_of_a_new_month_are_made_by_any_deployment(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = bench.model(
        {"at": (CreatedAt, ...)},
        primary_key=("id", "at"),
        partitions=MonthlyPartitions("at"),
        indexes=(Index(("at",)),),
    )
    await _deploy_on(bench, monkeypatch, (2030, 1, 31), model)
    await bench.execute("INSERT INTO OURS.things (id, at) VALUES (1, '2030-01-31 23:59:59Z'), (2, '2030-02-01 00:00Z')")
    report = await _deploy_on(bench, monkeypatch, (2030, 2, 1), model)
    assert list(told(report.applied)) == ["partition things_2030_04"]
    assert report.current
    where = "SELECT id, tableoid::regclass::text FROM OURS.things ORDER BY id"
    assert [(number, table.rpartition(".")[2]) for number, table in await bench.execute(where)] == [
        (1, "things_2030_01"),
        (2, "things_2030_02"),
    ]


async def test_rows_that_wait_in_the_default_partition_are_kept_and_told_of(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = bench.model({"at": (CreatedAt, ...)}, primary_key=("id", "at"), partitions=MonthlyPartitions("at"))
    await _deploy_on(bench, monkeypatch, (2030, 1, 31), model)
    await bench.execute("INSERT INTO OURS.things (id, at) VALUES (1, '2030-07-09Z')")
    report = await _deploy_on(bench, monkeypatch, (2030, 7, 1), model)
    assert "cannot be made with the rows" in told(report.differences)["partition things_2030_07"]
    assert {"partition things_2030_08", "partition things_2030_09"} == set(told(report.applied))
    assert await bench.execute("SELECT id FROM OURS.things") == [(1,)]
    assert report.current  # programs can work: the rows are found wherever they are
    assert (await bench.status(model)).current


async def _deploy_on(bench: Bench, monkeypatch: pytest.MonkeyPatch, day: tuple[int, int, int], model: type[Row]) -> Any:
    monkeypatch.setattr("graticule.schema.deploy._today", lambda: date(*day))
    return await bench.deploy(model)
