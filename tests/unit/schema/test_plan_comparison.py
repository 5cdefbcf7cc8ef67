"""The plan: what can be added is a change, what could lose or refuse data is only told of."""

from collections.abc import Mapping

import pytest

from graticule.schema.catalogue import ColumnState, Definition
from graticule.schema.ddl import Key, Kind, SchemaObject
from graticule.schema.plan import Plan, make_plan

TABLE = Key(Kind.TABLE, "things")
COLUMN = Key(Kind.COLUMN, "things.size", of="things")
ENUM = Key(Kind.ENUM, "colour")
INDEX = Key(Kind.INDEX, "things_size_idx", of="things")
CHECK = Key(Kind.CONSTRAINT, "things.things_ok", of="things")
COMMENT = Key(Kind.COMMENT, "things", of="things")
GRANT = Key(Kind.GRANT, "things SELECT graticule_worker", of="things")
CREATES = {
    TABLE: "CREATE TABLE s.things ()",
    COLUMN: "ALTER TABLE s.things ADD COLUMN size INTEGER",
    ENUM: "CREATE TYPE s.colour AS ENUM ()",
    INDEX: "CREATE INDEX things_size_idx ON s.things (size)",
    CHECK: "ALTER TABLE s.things ADD CONSTRAINT things_ok CHECK (true)",
    COMMENT: "COMMENT ON TABLE s.things IS 'x'",
    GRANT: "GRANT SELECT ON s.things TO graticule_worker",
}
WITHIN = {COLUMN: TABLE, CHECK: TABLE}


def plan(expected: Mapping[Key, Definition], live: Mapping[Key, Definition]) -> Plan:
    objects = [SchemaObject(key, CREATES[key], WITHIN.get(key)) for key in expected]
    return make_plan(objects, expected, live)


def changes(expected: Mapping[Key, Definition], live: Mapping[Key, Definition]) -> list[str]:
    made = plan(expected, live)
    assert made.differences == ()
    return [change.sql for change in made.changes]


def reasons(expected: Mapping[Key, Definition], live: Mapping[Key, Definition]) -> list[str]:
    made = plan(expected, live)
    assert made.changes == ()
    return [str(difference) for difference in made.differences]


def state(
    type_: str = "integer", *, nullable: bool = True, default: str | None = None, identity: bool = False
) -> ColumnState:
    return ColumnState(type_, nullable, default, identity)


EVERYTHING: dict[Key, Definition] = {
    TABLE: "",
    COLUMN: state(),
    ENUM: ("red",),
    INDEX: "i",
    CHECK: "c",
    COMMENT: "x",
    GRANT: "",
}


def test_nothing_is_to_be_done_where_all_is_the_same() -> None:
    assert plan(EVERYTHING, EVERYTHING) == Plan()


def test_a_table_that_is_missing_is_made_with_its_columns_and_constraints_in_one_statement() -> None:
    assert changes(EVERYTHING, {}) == [CREATES[key] for key in (TABLE, ENUM, INDEX, COMMENT, GRANT)]


@pytest.mark.parametrize("missing", [COLUMN, INDEX, CHECK, COMMENT, GRANT, ENUM], ids=str)
def test_what_is_missing_in_a_table_that_is_there_is_added_alone(missing: Key) -> None:
    live = {key: value for key, value in EVERYTHING.items() if key != missing}
    assert changes(EVERYTHING, live) == [CREATES[missing]]


@pytest.mark.parametrize(
    ("wanted", "found", "added"),
    [
        ("ab", "a", ["'b' AFTER 'a'"]),
        ("ab", "b", ["'a' BEFORE 'b'"]),
        ("abc", "ac", ["'b' AFTER 'a'"]),
        ("abcd", "d", ["'a' BEFORE 'd'", "'b' AFTER 'a'", "'c' AFTER 'b'"]),
        ("abcd", "b", ["'a' BEFORE 'b'", "'c' AFTER 'b'", "'d' AFTER 'c'"]),
        ("a'", "a", ["'''' AFTER 'a'"]),
    ],
)
def test_a_missing_enum_value_is_added_at_its_place(wanted: str, found: str, added: list[str]) -> None:
    expected = [f"ALTER TYPE s.colour ADD VALUE {each}" for each in added]
    assert changes({ENUM: tuple(wanted)}, {ENUM: tuple(found)}) == expected
    assert all(change.is_new_enum_value for change in plan({ENUM: tuple(wanted)}, {ENUM: tuple(found)}).changes)


def test_an_unknown_enum_value_is_told_of_and_the_missing_one_still_added() -> None:
    made = plan({ENUM: ("a", "b")}, {ENUM: ("a", "x")})
    assert [difference.reason for difference in made.differences] == ["has values that the models do not know: x"]
    assert [change.sql for change in made.changes] == ["ALTER TYPE s.colour ADD VALUE 'b' AFTER 'a'"]


def test_enum_values_in_another_order_are_told_of() -> None:
    assert reasons({ENUM: ("a", "b")}, {ENUM: ("b", "a")}) == ["enum colour: has its values in another order"]


ALTER = "ALTER TABLE s.things ALTER COLUMN size"


@pytest.mark.parametrize(
    ("wanted", "found", "sql"),
    [
        (state("character varying(9)"), state("character varying(5)"), f"{ALTER} TYPE character varying(9)"),
        (state("character varying"), state("character varying(5)"), f"{ALTER} TYPE character varying"),
        (state("text"), state("character varying(5)"), f"{ALTER} TYPE text"),
        (state(), state(nullable=False), f"{ALTER} DROP NOT NULL"),
        (state(default="1"), state(default="2"), f"{ALTER} SET DEFAULT 1"),
        (state(default="1"), state(), f"{ALTER} SET DEFAULT 1"),
        (state(), state(default="1"), f"{ALTER} DROP DEFAULT"),
    ],
    ids=str,
)
def test_a_column_is_changed_where_no_value_can_be_lost(wanted: ColumnState, found: ColumnState, sql: str) -> None:
    assert changes({TABLE: "", COLUMN: wanted}, {TABLE: "", COLUMN: found}) == [sql]


@pytest.mark.parametrize(
    ("wanted", "found", "reason"),
    [
        (
            state("character varying(5)"),
            state("character varying(9)"),
            "is character varying(9), and the models want character varying(5)",
        ),
        (
            state("character varying(5)"),
            state("character varying"),
            "is character varying, and the models want character varying(5)",
        ),
        (state("character varying(5)"), state("text"), "is text, and the models want character varying(5)"),
        (state("bigint"), state("integer"), "is integer, and the models want bigint"),
        (state("text"), state("integer"), "is integer, and the models want text"),
        (
            state("character varying(9)[]"),
            state("character varying(5)[]"),
            "is character varying(5)[], and the models want character varying(9)[]",
        ),
        (state(nullable=False), state(), "allows NULL, and the models do not"),
        (state(identity=True), state(), "is numbered by the database in one of the two only"),
    ],
    ids=str,
)
def test_a_column_that_could_lose_or_refuse_a_value_is_told_of(
    wanted: ColumnState, found: ColumnState, reason: str
) -> None:
    assert reasons({TABLE: "", COLUMN: wanted}, {TABLE: "", COLUMN: found}) == [f"column things.size: {reason}"]


def test_another_definition_of_a_constraint_is_told_of_with_both_and_not_replaced() -> None:
    (reason,) = reasons({CHECK: "wanted one"}, {CHECK: "found one"})
    assert "found one" in reason
    assert "wanted one" in reason


def test_another_index_is_made_anew_for_it_holds_nothing_of_its_own() -> None:
    assert changes({INDEX: "new"}, {INDEX: "old"}) == [f"DROP INDEX s.things_size_idx; {CREATES[INDEX]}"]


def test_another_comment_is_written() -> None:
    assert changes({COMMENT: "new"}, {COMMENT: "old"}) == [CREATES[COMMENT]]


@pytest.mark.parametrize("key", [TABLE, COLUMN, INDEX, CHECK, GRANT, ENUM], ids=str)
def test_what_the_models_do_not_know_is_left_and_told_of(key: Key) -> None:
    expected = {TABLE: ""} if key is not TABLE else {}
    (reason,) = reasons(expected, {**expected, key: EVERYTHING[key]})
    assert reason == f"{key}: is in the database, and the models do not know it; it is left as it is"


def test_an_unknown_table_is_told_of_once_as_a_whole() -> None:
    live: dict[Key, Definition] = {TABLE: "", COLUMN: state(), CHECK: "c"}
    assert len(reasons({}, live)) == 1


def test_what_was_granted_to_roles_that_are_not_ours_is_not_our_business() -> None:
    mine, foreign = "things INSERT graticule_gateway", "things INSERT reporting"
    told = reasons({TABLE: ""}, {TABLE: "", Key(Kind.GRANT, mine): "", Key(Kind.GRANT, foreign): ""})
    assert [reason.split(":")[0] for reason in told] == [f"grant {mine}"]


def test_old_partitions_and_additional_comments_are_no_difference() -> None:
    live: dict[Key, Definition] = {Key(Kind.PARTITION, "things_2020_01"): "", Key(Kind.COMMENT, "things.size"): "c"}
    assert plan({}, live) == Plan()


def test_creations_leave_out_what_alters_a_table_that_is_there() -> None:
    live: dict[Key, Definition] = {TABLE: "", ENUM: ("red",)}
    expected: dict[Key, Definition] = {**EVERYTHING, ENUM: ("red", "blue")}
    made = plan(expected, live)
    assert {change.key for change in made.changes} >= {COLUMN, CHECK, ENUM}
    assert not {change.key for change in made.creations(live)} & {COLUMN, CHECK, ENUM}
