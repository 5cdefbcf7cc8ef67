"""Attributes of all types become what PostgreSQL holds."""

import json
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graticule.handlers.findings import Rejected
from graticule.handlers.vector.described import ColumnType
from graticule.handlers.vector.preparing.attributes import ARROW_TYPES, column_type, converted

SOON = datetime(2024, 2, 29, 12, 30, 1, 123456, tzinfo=UTC)
NAIVE = SOON.replace(tzinfo=None)

CASES: list[tuple[pa.DataType, Any, ColumnType, Any]] = [
    (pa.bool_(), True, "boolean", True),
    (pa.int8(), -128, "smallint", -128),
    (pa.uint8(), 255, "smallint", 255),
    (pa.int16(), -32768, "smallint", -32768),
    (pa.uint16(), 65535, "integer", 65535),
    (pa.int32(), -(2**31), "integer", -(2**31)),
    (pa.uint32(), 2**32 - 1, "bigint", 2**32 - 1),
    (pa.int64(), 2**63 - 1, "bigint", 2**63 - 1),
    (pa.uint64(), 2**64 - 1, "numeric", Decimal(2**64 - 1)),
    (pa.decimal32(5, 1), Decimal("-1.5"), "numeric", Decimal("-1.5")),
    (pa.decimal64(18, 0), Decimal(10**17), "numeric", Decimal(10**17)),
    (pa.decimal128(38, 0), Decimal(10**19), "numeric", Decimal(10**19)),
    (pa.decimal128(38, 0), Decimal(1 - 10**20), "numeric", Decimal(1 - 10**20)),
    (pa.decimal128(5, -3), Decimal(12_345_000), "numeric", Decimal(12_345_000)),
    (pa.decimal128(38, 30), Decimal("0." + "1" * 30), "numeric", Decimal("0." + "1" * 18)),
    (pa.decimal256(76, 30), Decimal("-2.25"), "numeric", Decimal("-2.25")),
    (pa.float16(), 1.5, "real", 1.5),
    (pa.float32(), 0.25, "real", 0.25),
    (pa.float64(), 0.1, "double precision", 0.1),
    (pa.date32(), date(9999, 12, 31), "date", date(9999, 12, 31)),
    (pa.date64(), date(1, 1, 1), "date", date(1, 1, 1)),
    (pa.time32("s"), time(23, 59, 59), "time", time(23, 59, 59)),
    (pa.time64("ns"), 1_999, "time", time(0, 0, 0, 1)),
    (pa.timestamp("s"), NAIVE.replace(microsecond=0), "timestamp", NAIVE.replace(microsecond=0)),
    (pa.timestamp("ns"), 1_999, "timestamp", datetime(1970, 1, 1, 0, 0, 0, 1)),  # noqa: DTZ001 - it has no zone
    (pa.timestamp("ns"), -1, "timestamp", datetime(1969, 12, 31, 23, 59, 59, 999_999)),  # noqa: DTZ001
    (pa.timestamp("ns", "Asia/Tokyo"), -1001, "timestamptz", datetime(1969, 12, 31, 23, 59, 59, 999_998, tzinfo=UTC)),
    (pa.timestamp("ns", "UTC"), -(2**63), "timestamptz", datetime(1677, 9, 21, 0, 12, 43, 145_224, tzinfo=UTC)),
    (pa.timestamp("ms", "America/Barbados"), SOON.replace(microsecond=0), "timestamptz", SOON.replace(microsecond=0)),
    (pa.timestamp("us", "UTC"), SOON, "timestamptz", SOON),
    (pa.string(), "a\0b", "text", "ab"),
    (pa.large_string(), "Größe", "text", "Größe"),
    (pa.string_view(), "\0", "text", ""),
    (pa.dictionary(pa.int8(), pa.string()), "x", "text", "x"),
    (pa.null(), None, "text", None),
    (pa.duration("s"), 86_400, "text", "PT86400S"),
    (pa.duration("ms"), -1_500, "text", "PT-1.5S"),
    (pa.duration("us"), 0, "text", "PT0S"),
    (pa.duration("ns"), 2**63 - 1, "text", "PT9223372036.854775807S"),
    (pa.month_day_nano_interval(), (1, 2, 3), "text", "MonthDayNano(months=1, days=2, nanoseconds=3)"),
    (pa.uuid(), UUID(int=1).bytes, "text", str(UUID(int=1))),
    (pa.binary(), b"\0\1", "bytea", b"\0\1"),
    (pa.large_binary(), b"", "bytea", b""),
    (pa.binary_view(), b"a", "bytea", b"a"),
    (pa.binary(2), b"ab", "bytea", b"ab"),
    (pa.list_(pa.int64()), [2**63 - 1, None], "jsonb", "[9223372036854775807,null]"),
    (pa.list_(pa.float64(), 2), [float("nan"), float("inf")], "jsonb", "[null,null]"),
    (pa.list_(pa.timestamp("ns", "UTC")), [1_999], "jsonb", '["1970-01-01T00:00:00.000001+00:00"]'),
    (pa.list_(pa.date32()), [date(2024, 1, 2)], "jsonb", '["2024-01-02"]'),
    (pa.large_list(pa.time64("ns")), [1_999], "jsonb", '["00:00:00.000001"]'),
    (pa.list_(pa.decimal128(20, 2)), [Decimal("1234567890123456.25")], "jsonb", "[1234567890123456.25]"),
    (pa.list_(pa.duration("ms")), [1500, -10], "jsonb", '["PT1.5S","PT-0.01S"]'),
    (pa.struct([("a", pa.binary()), ("b", pa.string())]), {"a": b"\1", "b": "\0x"}, "jsonb", '{"a":"AQ==","b":"x"}'),
    (pa.map_(pa.string(), pa.int8()), [("k", 1)], "jsonb", '{"k":1}'),
    (pa.json_(), '{"a": 12345678901234567890123}', "jsonb", '{"a": 12345678901234567890123}'),
]


@pytest.mark.parametrize(("kind", "value", "name", "expected"), CASES, ids=[str(case[0]) for case in CASES])
def test_a_value_becomes_that_of_its_column(
    kind: pa.DataType, value: object, name: ColumnType, expected: object
) -> None:
    column = _column([value, None], kind)
    assert column_type(pa.field("any", kind)) == name
    made = converted(column, name)
    assert made.type == ARROW_TYPES[name]
    assert made.to_pylist() == [expected, None]


def _column(values: list[object], kind: pa.DataType) -> pa.Array:
    if isinstance(kind, pa.DictionaryType):
        return pa.array(values, kind.value_type).dictionary_encode()
    if pa.types.is_float16(kind):
        return pa.array(values, pa.float32()).cast(kind)
    return pa.array(values, kind)


def test_text_is_json_when_the_field_says_so() -> None:
    field = pa.field("any", pa.string(), metadata={"ARROW:extension:name": "arrow.json"})
    assert column_type(field) == "jsonb"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": 1.10}', '{"a": 1.10}'),
        ("{broken", '"{broken"'),
        ("NaN", '"NaN"'),
        (r'"\ud800"', r'"\"\\ud800\""'),
        ("1e400000", '"1e400000"'),
        ("1e-400000", '"1e-400000"'),
        (r'["\u0000", "\\u0000", "a\\\u0000"]', r'["", "\\u0000", "a\\"]'),
        ("[" * 5000 + "]" * 5000, '"' + "[" * 5000 + "]" * 5000 + '"'),
    ],
)
def test_json_is_kept_as_it_is_or_as_a_string(text: str, expected: str) -> None:
    assert converted(pa.array([text]), "jsonb").to_pylist() == [expected]


@given(st.text())
def test_any_text_is_json_in_the_end(text: str) -> None:
    (made,) = converted(pa.array([text]), "jsonb").to_pylist()
    json.loads(made)
    assert "\0" not in made


@given(st.lists(st.none() | st.text(alphabet="a\0ü", max_size=4)), st.integers(0, 3))
def test_no_text_keeps_a_nul(texts: list[str | None], begin: int) -> None:
    made = converted(pa.array(texts, pa.string())[begin:], "text")
    assert made.to_pylist() == [text and text.replace("\0", "") for text in texts[begin:]]


BEYOND: list[tuple[pa.Array, ColumnType]] = [
    (pa.array([2_932_897], pa.int32()).view(pa.date32()), "date"),
    (pa.array([-719_163], pa.int32()).view(pa.date32()), "date"),
    (pa.array([2**62], pa.int64()).view(pa.timestamp("s")), "timestamp"),
    (pa.array([-(2**62)], pa.int64()).view(pa.timestamp("us", "UTC")), "timestamptz"),
    (pa.array([86_400_000_000], pa.int64()).view(pa.time64("us")), "time"),
    (pa.array([-1], pa.int32()).view(pa.time32("s")), "time"),
    *((pa.array([Decimal(10**power)], pa.decimal128(38, 0)), "numeric") for power in (20, 21, 25, 30, 36, 37)),
    *((pa.array([Decimal(1), Decimal(-(10**power))], pa.decimal128(38, 0)), "numeric") for power in (20, 30, 37)),
    (pa.array([Decimal(10**70)], pa.decimal256(76, 0)), "numeric"),
    (pa.array([Decimal(10**30)], pa.decimal256(76, 30)), "numeric"),
    (pa.array([2**40]), "integer"),
    (pa.array([[2**62]], pa.list_(pa.int64())).cast(pa.list_(pa.timestamp("s"))), "jsonb"),
    (pa.array([[(b"k", 1)]], pa.map_(pa.binary(), pa.int8())), "jsonb"),
    (pa.array([[([1], 1)]], pa.map_(pa.list_(pa.int8()), pa.int8())), "jsonb"),
    (
        pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([[(b"k", 1)]], pa.map_(pa.binary(), pa.int8()))]),
        "jsonb",
    ),
]


@pytest.mark.parametrize(("column", "name"), BEYOND, ids=[f"{column.type}" for column, _ in BEYOND])
def test_what_has_no_place_in_a_column_is_rejected(column: pa.Array, name: ColumnType) -> None:
    with pytest.raises(Rejected) as told:
        converted(column, name, "column Built")
    assert (told.value.findings[0].code, told.value.findings[0].where) == ("unfit_value", "column Built")


@pytest.mark.parametrize("name", ["text", "jsonb"])
@pytest.mark.parametrize("is_nested", [False, True])
def test_text_that_is_not_utf8_is_rejected(name: ColumnType, is_nested: bool) -> None:
    column = pa.array([b"\xff\xfe"]).view(pa.string())
    nested = pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), column) if is_nested else column
    with pytest.raises(Rejected) as told:
        converted(nested, name)
    assert told.value.findings[0].code == "not_utf8"
