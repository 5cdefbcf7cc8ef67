"""Arcs become line segments: as many as GDAL makes of them, and never more than a feature may have."""

import contextlib
import math
import struct
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples

from graticule.handlers.findings import Rejected
from graticule.handlers.vector.preparing import curves, wkb
from graticule.handlers.vector.preparing.curves import DEGREES, linearize
from graticule.handlers.vector.sources import linear
from graticule.handlers.vector.sources.layer import SourceBatch
from graticule.handlers.vector.sources.linear import LinearReader

Points = list[tuple[float, ...]]
HALF: Points = [(0, 0), (1, 1), (2, 0)]
CIRCLE: Points = [(0, 0), (2, 0), (0, 0)]


def run(kind: int, points: Points) -> bytes:
    return struct.pack("<BII", 1, kind, len(points)) + np.array(points, "<f8").tobytes()


def several(kind: int, *members: bytes) -> bytes:
    return struct.pack("<BII", 1, kind, len(members)) + b"".join(members)


def linear_of(value: bytes) -> Any:
    geometry = wkb.read_curved(value)
    assert geometry is not None
    return shapely.from_wkb(wkb.Writer(has_z=geometry.has_z, has_m=geometry.has_m).written_or_empty(geometry))


@settings(max_examples=examples(100))
@given(st.tuples(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6)), st.floats(1, 1e6), st.floats(0, 6.3), st.floats(-3, 3))
def test_vertices_lie_on_the_circle(center: tuple[float, float], radius: float, begin: float, turn: float) -> None:
    turn = turn if abs(turn) > 0.1 else 0.1
    angles = begin + np.array([0, turn, 2 * turn])
    points = np.array(center) + radius * np.column_stack([np.cos(angles), np.sin(angles)])
    made = linearize(points)
    assert (made[[0, -1]] == points[[0, -1]]).all()
    assert len(made) - 1 == pytest.approx(max(7, abs(math.degrees(2 * turn)) / DEGREES), abs=2.01)
    assert np.hypot(*(made - center).T) == pytest.approx(radius, abs=1e-6 * radius + 1e-6 * max(map(abs, center)))


def test_a_half_circle_has_the_vertices_that_gdal_gives_it() -> None:
    made = linearize(np.array(HALF, float))
    angles = np.degrees(np.arctan2(made[:, 1], made[:, 0] - 1))
    assert angles == pytest.approx(np.arange(180, -1, -4))


@pytest.mark.parametrize(
    ("degrees", "segments"), [(3, 7), (50, 13), (90.5, 23), (157, 39), (180, 45), (220, 55), (360, 91)]
)
def test_an_arc_has_as_many_segments_as_gdal_gives_it(degrees: float, segments: int) -> None:
    angles = np.radians([0, degrees / 3 if degrees < 360 else 180, degrees])
    points = np.column_stack([np.cos(angles), np.sin(angles)])
    points[2] = points[0] if degrees == 360 else points[2]
    assert len(linearize(points)) == segments + 1


def test_heights_go_through_the_middle_point() -> None:
    made = linearize(np.array([(0, 0, 0), (1, 1, 10), (2, 0, 0)], float))
    assert made[:, 2].max() == pytest.approx(10, abs=0.3)
    assert made[[0, -1], 2].tolist() == [0, 0]


@pytest.mark.parametrize(
    "points",
    [
        [(0, 0), (1, 0), (2, 0)],
        [(0, 0), (math.nan, 1), (2, 0)],
        [(0, 0), (math.inf, 1), (2, 0)],
        [(1e308, 0), (-1e308, 1), (0, 1e308)],
        [(5, 5), (5, 5), (5, 5)],
    ],
)
def test_what_is_no_arc_stays_as_it_is(points: Points) -> None:
    assert len(linearize(np.array(points, float))) == 3


def test_all_curves_become_what_they_are_made_of() -> None:
    arc, line, closing = run(8, HALF), run(2, [(2, 0), (3, 0)]), run(2, [(2, 0), (0, 0)])
    assert linear_of(arc).geom_type == "LineString"
    joined = linear_of(several(9, arc, line))
    assert (joined.geom_type, joined.coords[-1]) == ("LineString", (3, 0))
    assert len(joined.coords) == 47
    disk = linear_of(several(10, several(9, arc, closing)))
    assert disk.area == pytest.approx(math.pi / 2, rel=1e-2)
    assert linear_of(several(10, run(8, CIRCLE))).area == pytest.approx(math.pi, rel=1e-2)
    assert linear_of(several(11, arc, line)).geom_type == "MultiLineString"
    assert linear_of(several(12, several(10, run(8, CIRCLE)))).geom_type == "MultiPolygon"
    assert linear_of(several(7, several(12, several(10, run(8, CIRCLE))))).geom_type == "GeometryCollection"
    assert linear_of(several(10)).wkt == "POLYGON EMPTY"


def test_what_has_no_curves_is_left_alone() -> None:
    assert wkb.read_curved(run(2, HALF)) is None
    assert wkb.read_curved(several(7, run(2, HALF))) is None


class Layer:
    """A layer of some geometries, in one batch."""

    fields, geometry_type, count = pa.schema([]), "Unknown", None

    def __init__(self, *values: bytes | None) -> None:
        self._values = values

    def batches(self) -> Any:
        attributes = pa.RecordBatch.from_arrays([pa.array(range(len(self._values)))], names=["n"])
        yield SourceBatch(attributes, pa.array(self._values, pa.binary()))


def test_only_curves_of_a_batch_are_rewritten_and_named() -> None:
    point = shapely.to_wkb(shapely.Point(1, 2), byte_order=0)
    (batch,) = LinearReader(Layer(point, None, run(8, HALF), several(7, point)), 1).batches()
    assert batch.curved.tolist() == [2]
    assert batch.wkb[0].as_py() == point
    assert shapely.from_wkb(batch.wkb[2].as_py()).length == pytest.approx(math.pi, rel=1e-3)
    assert batch.attributes["n"].to_pylist() == [0, 1, 2, 3]


def test_big_endian_and_extended_curves_are_known() -> None:
    big = struct.pack(">BII", 0, 8, 3) + np.array(HALF, ">f8").tobytes()
    extended = struct.pack("<BIII", 1, 8 | 0x20000000, 4326, 3) + np.array(HALF, "<f8").tobytes()
    (batch,) = LinearReader(Layer(big, extended), 1).batches()
    assert batch.curved.tolist() == [0, 1]


def test_a_batch_that_grows_is_divided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear, "BATCH_BYTES", 2000)
    batches = list(LinearReader(Layer(*[run(8, HALF)] * 7, None), 1).batches())
    assert [len(batch.wkb) for batch in batches] == [2, 2, 2, 2]
    assert [batch.curved.tolist() for batch in batches] == [[0, 1], [0, 1], [0, 1], [0]]
    assert [n for batch in batches for n in batch.attributes["n"].to_pylist()] == list(range(8))


def code_of(*values: bytes) -> tuple[str, str]:
    with pytest.raises(Rejected) as told:
        list(LinearReader(Layer(*values), 11).batches())
    return told.value.findings[0].code, told.value.findings[0].where


def test_hostile_curves_are_rejected_by_the_number_of_the_feature(monkeypatch: pytest.MonkeyPatch) -> None:
    point = run(2, HALF)
    nested = struct.pack("<BII", 1, 9, 1) * 100_000 + run(8, HALF)
    assert code_of(point, nested) == ("unsupported_geometry", "feature 12")
    assert code_of(struct.pack("<BII", 1, 8, 2**32 - 1) + b"\0" * 64) == ("corrupt", "feature 11")
    assert code_of(several(9, several(3))) == ("corrupt", "feature 11")
    assert code_of(several(10, several(10))) == ("corrupt", "feature 11")
    assert code_of(several(12, run(2, HALF))) == ("corrupt", "feature 11")
    monkeypatch.setattr(curves, "MAX_VERTICES", 1000)
    monkeypatch.setattr(wkb, "MAX_VERTICES", 1000)
    many: Points = [(0, 0), *[(2, 0), (0, 0)] * 50]
    assert code_of(run(8, many)) == ("unsupported_geometry", "feature 11")
    assert code_of(several(11, *[run(8, CIRCLE)] * 50)) == ("unsupported_geometry", "feature 11")


@given(st.binary(max_size=80), st.integers(7, 12))
@settings(max_examples=examples(200))
def test_any_bytes_are_read_or_rejected(tail: bytes, kind: int) -> None:
    for value in (struct.pack("<BII", 1, kind, 2) + tail, struct.pack("<BII", 1, kind, 1) + run(8, HALF) + tail):
        with contextlib.suppress(Rejected):
            list(LinearReader(Layer(value), 1).batches())
