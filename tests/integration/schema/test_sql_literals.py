"""A literal means to PostgreSQL what the value meant to Python: every kind of value, through a real SELECT."""

from datetime import UTC, date, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any
from uuid import UUID

import psycopg
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.conftest import TestDatabase
from tests.examples import examples

from graticule.core.columns import literal

SAME_CONNECTION = settings(
    derandomize=True,
    deadline=None,
    max_examples=examples(120),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30)
NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.floats(-(2.0**53), 2.0**53, allow_nan=False)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)


class Odd(StrEnum):
    """Values that need quoting."""

    PLAIN = "plain"
    QUOTE = "it's"
    BACK = "back\\slash"
    WIDE = "Zürich 地図"


@pytest.fixture
def select(shared_database: TestDatabase) -> Any:
    """Give a function that lets PostgreSQL read a literal."""
    with psycopg.connect(shared_database.url(), autocommit=True) as connection:

        def read(value: Any, sql_type: str, told_as: str | None = None) -> Any:
            query = f"SELECT CAST({literal(value, sql_type)} AS {sql_type})::{told_as or sql_type}"
            row = connection.execute(query.encode()).fetchone()
            return row[0] if row else None

        connection.execute("DROP TYPE IF EXISTS public.odd")
        labels = ", ".join(literal(member.value, "TEXT") for member in Odd)
        connection.execute(f"CREATE TYPE public.odd AS ENUM ({labels})".encode())
        yield read
        connection.execute("DROP TYPE public.odd")


@SAME_CONNECTION
@given(value=TEXT)
@example(value="'; DROP TABLE x; --")
@example(value="\\' E'\\n' %s %% {} \"")
def test_any_text(select: Any, value: str) -> None:
    assert select(value, "TEXT") == value


@SAME_CONNECTION
@given(value=JSON)
@example(value={"a'": ['"', "\\", None, True, 1, 1.5, {}]})
@example(value=5)
@example(value=True)
@example(value="text")
def test_any_json(select: Any, value: Any) -> None:
    assert select(value, "JSONB") == value


@SAME_CONNECTION
@given(value=st.lists(TEXT, max_size=5))
@example(value=["é", "地図", "a\nb", "tab\t", 'quote"', "back\\slash", "NULL", "", " ", "{}", ",", "'"])
def test_any_list_of_texts(select: Any, value: list[str]) -> None:
    assert select(value, "TEXT[]") == value


@SAME_CONNECTION
@given(value=st.lists(st.integers(-(2**31), 2**31 - 1), max_size=5))
def test_any_list_of_integers(select: Any, value: list[int]) -> None:
    assert select(value, "INTEGER[]") == value


@pytest.mark.parametrize("value", list(Odd), ids=[member.name for member in Odd])
def test_any_enum_value_alone_and_in_a_list(select: Any, value: Odd) -> None:
    assert select(value, "public.odd", told_as="text") == value.value
    assert select([value, Odd.PLAIN], "public.odd[]", told_as="text[]") == [value.value, "plain"]


@SAME_CONNECTION
@given(value=st.integers(-(2**63), 2**63 - 1) | st.booleans() | st.floats(allow_nan=False, allow_infinity=False))
def test_any_number_and_truth_value(select: Any, value: Any) -> None:
    kind = "boolean" if isinstance(value, bool) else "float8" if isinstance(value, float) else "bigint"
    assert select(value, kind) == value


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (datetime(2026, 3, 14, 15, 9, 26, 535897, tzinfo=UTC), "timestamptz"),
        (date(2026, 2, 28), "date"),
        (Decimal("123456789.123456789"), "numeric"),
        (UUID("6f1f6b0e-5d5b-4d5c-9f66-0b8f0f5f2a11"), "uuid"),
        (float("inf"), "float8"),
        (b"\x00\xff'\\", "bytea"),
        (None, "text"),
        ([None, "a"], "TEXT[]"),
        ([True, False], "BOOLEAN[]"),
    ],
    ids=str,
)
def test_values_of_the_other_types(select: Any, value: Any, kind: str) -> None:
    assert select(value, kind) == value


def test_not_a_number_is_one(select: Any) -> None:
    assert str(select(float("nan"), "float8")) == "nan"
