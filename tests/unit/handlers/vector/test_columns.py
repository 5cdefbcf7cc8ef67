"""Fields of any name become columns."""

from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter
from tests.examples import examples

from graticule.handlers.vector.described import ColumnName
from graticule.handlers.vector.preparing.columns import RESERVED_WORDS, SYSTEM_COLUMNS, column_names

FITS = TypeAdapter(ColumnName)
LIKELY = st.sampled_from(["fid", "FID", "geom", "id", "a", "A", "a_2", "select", "select_", "xmin", "", "1", "x" * 63])
NAMES = st.lists(st.one_of(LIKELY, st.text(max_size=80), st.from_regex(r"[a-z][a-z0-9_]{0,62}", fullmatch=True)))


@settings(max_examples=examples(50))
@given(NAMES)
def test_every_field_gets_a_column_of_its_own(fields: list[str]) -> None:
    names = column_names(fields)
    assert len(names) == len(fields)
    assert len(set(names)) == len(names)
    assert not {"fid", "geom", *SYSTEM_COLUMNS, *RESERVED_WORDS} & set(names)
    for name in names:
        FITS.validate_python(name)


@settings(max_examples=examples(50))
@given(NAMES)
def test_good_names_stay_as_they_are(fields: list[str]) -> None:
    names = column_names(fields)
    assert column_names(names) == names
    assert set(names) & set(fields) == {each for each in fields if each in column_names([each])}


def test_names_are_plain_and_no_two_are_alike() -> None:
    fields = [
        "Parcel No.",
        "parcel-no",
        "PARCEL NO",
        "Größe (m²)",
        "1st",
        "",
        "日本",
        "fid",
        "FID",
        "geom",
        "id",
        "\N{MATHEMATICAL BOLD CAPITAL A}b",
    ]
    assert column_names(fields) == [
        *("parcel_no", "parcel_no_2", "parcel_no_3", "grosse_m2", "f_1st", "field", "field_2", "fid_2", "fid_3"),
        *("geom_2", "id", "ab"),
    ]


def test_names_may_repeat_to_the_letter() -> None:
    assert column_names(["a", "a", "A", "a_2"]) == ["a", "a_3", "a_4", "a_2"]


def test_words_of_sql_get_an_underscore() -> None:
    assert column_names(["select", "User", "ORDER", "select_"]) == ["select__2", "user_", "order_", "select_"]


def test_no_column_is_called_like_one_that_every_table_has() -> None:
    fields = ["xmin", "XMAX", "ctid", "tableoid", "oid", "cmin", "cmax"]
    assert column_names(fields) == [f"{field.lower()}_2" for field in fields]


def test_long_names_are_cut_and_stay_apart() -> None:
    assert column_names(["a" * 200, "a" * 90]) == ["a" * 63, "a" * 61 + "_2"]
