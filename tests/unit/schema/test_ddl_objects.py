"""Models become DDL: what stands in the models stands in the statements, in an order in which they can run."""

from datetime import date
from enum import StrEnum
from typing import Annotated, Any

import pytest
from pydantic import Field, create_model

from graticule.core.models import TABLES
from graticule.core.models.fields import CreatedAt, Identity, JsonObject
from graticule.core.table import (
    Check,
    DatabaseRole,
    ForeignKey,
    Index,
    MonthlyPartitions,
    Row,
    Table,
)
from graticule.schema.ddl import (
    Key,
    Kind,
    TableDdl,
    create_statements,
    fingerprint,
    index_name,
    schema_objects,
    seed_statements,
)

TODAY = date(2026, 11, 30)


class Colour(StrEnum):
    """A colour."""

    RED = "red"
    BLUE = "bl'ue"


def model(fields: dict[str, Any] | None = None, *, doc: str | None = "A thing.", **metadata: Any) -> type[Row]:
    made = create_model("Thing", __base__=Row, __doc__=doc, **{"id": (int, ...), **(fields or {})})
    made.table = Table(**{"name": "things", "schema": "s", "primary_key": ("id",), **metadata})
    return made


def creates(*models: type[Row], kind: Kind | None = None) -> list[str]:
    return [item.create for item in schema_objects(models, TODAY) if kind is None or item.key.kind is kind]


def test_a_table_is_made_with_its_columns_key_unique_constraints_and_checks() -> None:
    made = model(
        {
            "id": (Identity, None),
            "name": (Annotated[str, Field(max_length=5)], ...),
            "level": (Annotated[int, Field(ge=0, le=10)], 0),
            "colour": (Colour, Colour.BLUE),
        },
        unique=(("name", "level"),),
        checks=(Check("is_calm", "level < 9"),),
    )
    assert creates(made, kind=Kind.TABLE) == [
        (
            "CREATE TABLE s.things (\n"
            "    id BIGINT GENERATED ALWAYS AS IDENTITY NOT NULL,\n"
            "    name VARCHAR(5) NOT NULL,\n"
            "    level INTEGER DEFAULT 0 NOT NULL,\n"
            "    colour s.colour DEFAULT 'bl''ue'::s.colour NOT NULL,\n"
            "    CONSTRAINT things_pkey PRIMARY KEY (id),\n"
            "    CONSTRAINT things_name_level_key UNIQUE (name, level),\n"
            "    CONSTRAINT things_is_calm CHECK (level < 9),\n"
            "    CONSTRAINT things_level_range CHECK (level >= 0 AND level <= 10)\n"
            ")"
        )
    ]
    assert creates(made, kind=Kind.ENUM) == ["CREATE TYPE s.colour AS ENUM ('red', 'bl''ue')"]


def test_an_enum_that_many_columns_use_is_made_once_and_before_them() -> None:
    fields: dict[str, Any] = {"one": (Colour, ...), "many": (list[Colour], ...), "none": (Colour | None, None)}
    statements = creates(model(fields), model(fields, name="others"))
    assert sum("CREATE TYPE" in statement for statement in statements) == 1
    assert statements.index(creates(model(fields), kind=Kind.ENUM)[0]) < statements.index(
        creates(model(fields), kind=Kind.TABLE)[0]
    )


def test_an_enum_is_made_in_every_schema_that_uses_it() -> None:
    fields: dict[str, Any] = {"one": (Colour, ...)}
    made = [model(fields), model(fields, name="others", schema="t")]
    assert {"s.colour", "t.colour"} <= {statement.split()[2] for statement in creates(*made, kind=Kind.ENUM)}


@pytest.mark.parametrize(
    ("index", "sql"),
    [
        (Index(("a",)), "CREATE INDEX things_a_idx ON s.things USING btree (a)"),
        (Index(("a", "b DESC")), "CREATE INDEX things_a_b_idx ON s.things USING btree (a, b DESC)"),
        (Index(("a",), unique=True), "CREATE UNIQUE INDEX things_a_idx ON s.things USING btree (a)"),
        (Index(("a",), where="b > 0"), "CREATE INDEX things_a_idx ON s.things USING btree (a) WHERE b > 0"),
        (Index(("d",), method="gin"), "CREATE INDEX things_d_idx ON s.things USING gin (d)"),
        (
            Index(("d jsonb_path_ops",), method="gin"),
            "CREATE INDEX things_d_idx ON s.things USING gin (d jsonb_path_ops)",
        ),
        (Index(("t",), method="brin"), "CREATE INDEX things_t_idx ON s.things USING brin (t)"),
        (
            Index(("a",), unique=True, include=("b", "c"), where="c IS NULL", name="mine"),
            "CREATE UNIQUE INDEX mine ON s.things USING btree (a) INCLUDE (b, c) WHERE c IS NULL",
        ),
    ],
    ids=lambda value: None if isinstance(value, str) else repr(value.columns),
)
def test_an_index_is_made_as_it_is_described(index: Index, sql: str) -> None:
    assert creates(model(indexes=(index,)), kind=Kind.INDEX) == [sql]


@pytest.mark.parametrize("entry", ["(lower(name))", "(lower(name)) DESC", "(data ->> 'a')", "(a + b)"])
def test_an_index_on_an_expression_gets_a_name_that_is_one(entry: str) -> None:
    assert index_name("things", Index((entry,))).isidentifier()


def test_a_long_index_name_is_cut_where_postgresql_would_cut_it() -> None:
    assert index_name("t" * 60, Index(("abcdef",))) == "t" * 60 + "_ab"


def test_foreign_keys_come_after_all_tables_for_they_may_refer_to_each_other() -> None:
    there = ForeignKey(("other",), "others", ("id",), on_delete="CASCADE")
    back = ForeignKey(("thing",), "things", ("id",))
    statements = creates(
        model({"other": (int, ...)}, foreign_keys=(there,)),
        model({"thing": (int, ...)}, name="others", foreign_keys=(back,)),
    )
    assert statements.index(
        "ALTER TABLE s.things ADD CONSTRAINT things_other_fkey"
        " FOREIGN KEY (other) REFERENCES s.others (id) ON DELETE CASCADE"
    ) > max(place for place, statement in enumerate(statements) if statement.startswith("CREATE TABLE"))


def test_comments_are_the_docstrings_first_paragraph_and_the_descriptions() -> None:
    made = model(
        {"size": (int, Field(description="It's large."))},
        doc="A thing\n    of two lines.\n\n    More.",
        indexes=(Index(("size",), comment="By size."),),
    )
    assert creates(made, kind=Kind.COMMENT) == [
        "COMMENT ON TABLE s.things IS 'A thing of two lines.'",
        "COMMENT ON COLUMN s.things.size IS 'It''s large.'",
        "COMMENT ON INDEX s.things_size_idx IS 'By size.'",
    ]


def test_a_model_without_a_docstring_has_no_comment_rather_than_an_empty_one() -> None:
    assert creates(model(doc=None), kind=Kind.COMMENT) == []


def test_grants_are_made_one_by_one_and_who_has_one_may_use_the_schema() -> None:
    made = model(grants={DatabaseRole.WORKER: frozenset({"UPDATE", "SELECT"}), DatabaseRole.GATEWAY: frozenset()})
    assert creates(made, kind=Kind.GRANT) == [
        "GRANT USAGE ON SCHEMA s TO graticule_worker",
        "GRANT SELECT ON s.things TO graticule_worker",
        "GRANT UPDATE ON s.things TO graticule_worker",
    ]


def test_seeds_are_put_in_unless_they_are_there() -> None:
    made = model(
        {"name": (str, ...), "tags": (list[str], ...), "data": (JsonObject, ...), "on": (bool, True)},
        seeds=({"id": 1, "name": "it's", "tags": ["a"], "data": {"b": [1]}},),
    )
    assert seed_statements([made]) == [
        (
            "INSERT INTO s.things (id, name, tags, data) VALUES"
            " (1, 'it''s', '{\"a\"}'::TEXT[], '{\"b\": [1]}'::jsonb) ON CONFLICT DO NOTHING"
        )
    ]


def test_a_seed_may_say_that_there_is_no_value() -> None:
    made = model({"name": (str | None, None)}, seeds=({"id": 1, "name": None},))
    assert "VALUES (1, NULL)" in seed_statements([made])[0]


def test_months_are_partitions_from_this_one_on_and_the_rest_goes_to_the_default() -> None:
    made = model({"at": (CreatedAt, ...)}, primary_key=("id", "at"), partitions=MonthlyPartitions("at"))
    assert creates(made, kind=Kind.TABLE)[0].endswith(") PARTITION BY RANGE (at)")
    assert creates(made, kind=Kind.PARTITION) == [
        "CREATE TABLE s.things_default PARTITION OF s.things DEFAULT",
        (
            "CREATE TABLE s.things_2026_11 PARTITION OF s.things"
            " FOR VALUES FROM ('2026-11-01 00:00Z') TO ('2026-12-01 00:00Z')"
        ),
        (
            "CREATE TABLE s.things_2026_12 PARTITION OF s.things"
            " FOR VALUES FROM ('2026-12-01 00:00Z') TO ('2027-01-01 00:00Z')"
        ),
        (
            "CREATE TABLE s.things_2027_01 PARTITION OF s.things"
            " FOR VALUES FROM ('2027-01-01 00:00Z') TO ('2027-02-01 00:00Z')"
        ),
    ]


def test_a_renamed_schema_is_renamed_in_every_statement_and_in_no_key() -> None:
    renamed = schema_objects(TABLES, TODAY, {"dagapp": "aside"})
    assert [item.key for item in renamed] == [item.key for item in schema_objects(TABLES, TODAY)]
    assert not any("dagapp" in item.create for item in renamed)


def test_create_statements_make_each_object_once() -> None:
    objects = schema_objects(TABLES, TODAY)
    within = {item.key for item in objects if item.within is not None}
    assert {key.kind for key in within} == {Kind.COLUMN, Kind.CONSTRAINT}
    assert len(create_statements(objects)) == len(objects) - len(within)
    assert len({item.key for item in objects}) == len(objects)


def test_a_column_can_be_added_alone_and_says_in_which_statement_it_is_made_otherwise() -> None:
    made = TableDdl(model({"size": (int, 3)}), "s")
    added = list(made.add_columns())[1]
    assert added.create == "ALTER TABLE s.things ADD COLUMN size INTEGER DEFAULT 3 NOT NULL"
    assert added.within == Key(Kind.TABLE, "things")


VARIANTS: dict[str, type[Row]] = {
    "a column": model({"size": (int, ...)}),
    "a default": model({"size": (int, 1)}),
    "a check": model(checks=(Check("c", "id > 0"),)),
    "an index": model(indexes=(Index(("id",)),)),
    "a comment": model(doc="Another thing."),
    "a grant": model(grants={DatabaseRole.WORKER: frozenset({"SELECT"})}),
    "a seed": model(seeds=({"id": 1},)),
    "a name": model(name="others"),
}


def test_the_fingerprint_changes_with_the_models_and_with_nothing_else() -> None:
    plain = fingerprint([model()])
    assert fingerprint([model()]) == plain
    assert len({plain, *(fingerprint([variant]) for variant in VARIANTS.values())}) == len(VARIANTS) + 1


def test_the_fingerprint_does_not_change_with_the_month(monkeypatch: pytest.MonkeyPatch) -> None:
    before = fingerprint(TABLES)
    monkeypatch.setattr("graticule.schema.ddl.MONTHS_AHEAD", 5)
    assert fingerprint(TABLES) == before
