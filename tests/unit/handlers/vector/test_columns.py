"""Fields of any name become columns."""

from graticule.handlers.vector.columns import column_names


def test_names_are_plain_and_no_two_are_alike() -> None:
    fields = ["Parcel No.", "parcel-no", "PARCEL NO", "Größe (m²)", "1st", "", "日本", "fid", "geom", "select"]
    assert list(column_names(fields).values()) == [
        *("parcel_no", "parcel_no_2", "parcel_no_3", "grosse_m2", "f_1st", "field", "field_2", "fid_2", "geom_2"),
        "select",
    ]


def test_no_column_is_called_like_one_that_every_table_has() -> None:
    fields = ["xmin", "XMAX", "ctid", "tableoid", "oid", "cmin", "cmax"]
    assert list(column_names(fields).values()) == [f"{field.lower()}_2" for field in fields]


def test_long_names_are_cut_and_stay_apart() -> None:
    names = list(column_names(["a" * 80, "a" * 90]).values())
    assert names == ["a" * 63, "a" * 61 + "_2"]
