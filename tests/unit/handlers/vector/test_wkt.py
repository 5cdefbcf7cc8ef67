"""Well-known text is read as shapely reads it, with curves and open rings besides, or rejected by the feature."""

import contextlib
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import shapely
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.unit.handlers.vector.wkb_making import Made, Style, geometries, styles

from graticule.handlers.findings import Rejected
from graticule.handlers.vector.preparing import wkb
from graticule.handlers.vector.sources.wkt import MAX_DEPTH, NotWkt, parse, write_wkb


@settings(max_examples=examples(100))
@given(geometries(), styles(is_extended=False))
def test_it_is_read_as_shapely_reads_it(made: Made, style: Style) -> None:
    shape = shapely.from_wkb(made.wkb(style))
    text = shapely.to_wkt(shape, rounding_precision=-1, output_dimension=4)
    try:
        expected = shapely.from_wkt(text)
    except shapely.errors.GEOSException:  # it writes empty members with measures in a way that it does not read
        reject()
    found = shapely.from_wkb(parse(text))
    assert shapely.to_wkt(found, rounding_precision=-1, output_dimension=4) == shapely.to_wkt(
        expected, rounding_precision=-1, output_dimension=4
    )


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("CIRCULARSTRING (0 0, 1 1, 2 0)", "LineString"),
        ("CIRCULARSTRINGZ(0 0 5,1 1 5,2 0 5)", "LineString"),
        ("compoundcurve zm ((0 0 1 2, 1 1 1 2), circularstring zm (1 1 1 2, 2 2 1 2, 3 1 1 2))", "LineString"),
        ("COMPOUNDCURVE (CIRCULARSTRING (0 0, 1 1, 2 0), (2 0, 3 0))", "LineString"),
        ("CURVEPOLYGON ((0 0, 1 0, 1 1, 0 0))", "Polygon"),
        ("CURVEPOLYGON (COMPOUNDCURVE (CIRCULARSTRING (0 0, 1 1, 2 0), (2 0, 0 0)))", "Polygon"),
        ("MULTICURVE ((0 0, 1 1), CIRCULARSTRING (0 0, 1 1, 2 0), EMPTY)", "MultiLineString"),
        ("MULTISURFACE (((0 0, 1 0, 1 1, 0 0)), CURVEPOLYGON (CIRCULARSTRING (0 0, 2 0, 0 0)))", "MultiPolygon"),
        ("GEOMETRYCOLLECTION (POINT (1 2), CIRCULARSTRING (0 0, 1 1, 2 0))", "GeometryCollection"),
        ("MULTIPOINT (1 2, 3 4)", None),
        ("MULTICURVE EMPTY", "MultiLineString"),
        ("POINT Z EMPTY", None),
        ("POLYGON ((0 0, 9 0, 9 9))", None),
        ("POINT (nan -inf)", None),
    ],
)
def test_curves_and_open_rings_are_read(text: str, kind: str | None) -> None:
    geometry = wkb.read_curved(parse(text))
    if kind is None:
        assert geometry is None
        return
    assert geometry is not None
    written = wkb.Writer(has_z=geometry.has_z, has_m=geometry.has_m).written_or_empty(geometry)
    assert shapely.from_wkb(written).geom_type == kind


@pytest.mark.parametrize("text", ["TIN (((0 0, 1 0, 1 1, 0 0)))", "TRIANGLE ((0 0, 1 0, 1 1, 0 0))"])
def test_surfaces_are_what_they_are(text: str) -> None:
    with pytest.raises(wkb.Unsupported):
        wkb.read(parse(text))


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "no",
            "POINT",
            "POINT (1)",
            "POINT (1 2",
            "POINT (1 2) x",
            "POINT (1 2 3 4 5)",
            "LINESTRING (1 2, 1 2 3)",
        ),
        *("GEOMETRYCOLLECTION ((1 2))", "COMPOUNDCURVE (1 2)", "POINT Z (1 2)", "POINT (1,2)", "POINT (1 x)", "-POINT"),
    ],
)
def test_what_is_no_wkt_is_none(text: str) -> None:
    with pytest.raises(NotWkt):
        parse(text)


@given(st.text("POINTLIESRGCUVM ZEY0123.,()-+ex", max_size=60))
@settings(max_examples=examples(300))
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(NotWkt):
        assert parse(text)


def code_of(*texts: str) -> tuple[str, str]:
    with pytest.raises(Rejected) as told:
        write_wkb(pa.array(texts), "column geom", 7)
    return told.value.findings[0].code, told.value.findings[0].where


def test_a_rejection_names_the_feature_and_the_column() -> None:
    assert code_of("POINT (1 2)", "POINT (1") == ("unreadable_row", "feature 8, column geom")
    deep = "GEOMETRYCOLLECTION(" * (MAX_DEPTH + 1) + "POINT (1 2)" + ")" * (MAX_DEPTH + 1)
    assert code_of("POINT (1 2)", deep) == ("unsupported_geometry", "feature 8, column geom")


def test_srids_and_blanks_are_left_out() -> None:
    found: Any = write_wkb(
        pa.array(["SRID=4326;POINT (1 2)", "  ", None, "srid = 5 ; CIRCULARSTRING(0 0,1 1,2 0)"]), "c"
    )
    assert [value is None for value in found.to_pylist()] == [False, True, True, False]
    assert shapely.from_wkb(found[0].as_py()).wkt == "POINT (1 2)"
    assert np.frombuffer(found[3].as_py(), np.uint8)[1] == wkb.CIRCULAR_STRING
