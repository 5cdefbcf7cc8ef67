"""Bytes of geometries are read as they are, and never beyond their end."""

import struct
import time

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.unit.handlers.vector.wkb_making import Made, Style, column, flattened, geometries, square, styles

from graticule.handlers.vector.preparing import wkb

PLAIN = geometries(kinds=(1, 2, 3, 4, 5, 6))
POLYGON = Made(3, [square(0, 0)])


@settings(max_examples=30)
@given(st.lists(st.one_of(st.none(), st.tuples(geometries(), styles())), max_size=4))
def test_both_ways_find_the_vertices_that_shapely_finds(made: list[tuple[Made, Style] | None]) -> None:
    values = [each and each[0].wkb(each[1]) for each in made]
    given_bytes = wkb.Bytes.of(column(values))
    is_plain, runs = wkb.scanned(given_bytes)
    for place, value in enumerate(values):
        if value is None:
            assert not is_plain[place]
            continue
        found = runs.of(np.arange(len(values)) == place)
        begin = given_bytes.offsets[place]
        if is_plain[place]:
            assert list(zip(found.starts - begin, found.counts, strict=True)) == wkb.walked(value)
        expected = [len(ring) for _, rings in flattened(shapely.from_wkb(value)) for ring in rings]
        assert not is_plain[place] or found.counts.tolist() == (expected or [1])  # a point that is nowhere


@given(PLAIN, styles(is_extended=False))
def test_what_gdal_writes_is_plain(made: Made, style: Style) -> None:
    """Or else all would go the slow way, and nobody would see it."""
    is_plain, _ = wkb.scanned(wkb.Bytes.of(column([made.wkb(style)])))
    has_parts = bool(made.rings or made.members)
    assert is_plain[0] == (style.order == "<" and (has_parts or made.kind == 1))


@settings(max_examples=examples(100))
@given(geometries(), styles(), st.data())
def test_no_bytes_lead_beyond_the_end(made: Made, style: Style, data: st.DataObject) -> None:
    broken = bytearray(made.wkb(style)[: data.draw(st.integers(0, 400), "length")])
    for _ in range(data.draw(st.integers(0, 3), "changes")):
        if broken:
            broken[data.draw(st.integers(0, len(broken) - 1), "place")] = data.draw(st.integers(0, 255), "byte")
    neighbour = POLYGON.wkb(Style())
    given_bytes = wkb.Bytes.of(column([bytes(broken), neighbour]))
    is_plain, runs = wkb.scanned(given_bytes)
    assert is_plain[1]
    assert runs.of(np.array([False, True])).counts.tolist() == [5]
    try:
        walked = wkb.walked(bytes(broken))
    except (wkb.Malformed, wkb.Unsupported):
        assert not is_plain[0]
    else:
        found = runs.of(np.array([True, False]))
        assert not is_plain[0] or list(zip(found.starts, found.counts, strict=True)) == walked


def _nested(depth: int) -> bytes:
    return struct.pack("<BII", 1, 7, 1) * depth + struct.pack("<BII", 1, 7, 0)


HOSTILE = {
    "rings": struct.pack("<BII", 1, 3, 2**32 - 1) + b"\0" * 4_000_000,
    "parts": struct.pack("<BII", 1, 6, 2**32 - 1) + struct.pack("<BII", 1, 3, 0) * 300_000,
    "points": struct.pack("<BII", 1, 4, 2**32 - 1) + Made(1, [[(0, 0)]]).wkb(Style()) * 100_000,
    "vertices": struct.pack("<BII", 1, 2, 2**32 - 1) + b"\0" * 64,
    "nested": _nested(300_000),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_counts_that_are_lies_cost_little(name: str) -> None:
    begin = time.process_time()
    is_plain, runs = wkb.scanned(wkb.Bytes.of(column([HOSTILE[name]] * 2)))
    assert not is_plain.any()
    assert not len(runs.starts)
    with pytest.raises(wkb.Unsupported if name == "nested" else wkb.Malformed):
        wkb.walked(HOSTILE[name])
    assert time.process_time() - begin < 1


@pytest.mark.parametrize("kind", range(13, 18))
def test_surfaces_are_told_from_nonsense(kind: int) -> None:
    surface = struct.pack("<BII", 1, kind, 0)
    with pytest.raises(wkb.Unsupported):
        wkb.walked(struct.pack("<BII", 1, 7, 1) + surface)


@settings(max_examples=examples(60))
@given(geometries(), styles(), st.booleans(), st.booleans())
def test_what_is_written_is_what_was_read(made: Made, style: Style, has_z: bool, has_m: bool) -> None:
    value = made.wkb(style)
    written = wkb.Writer(has_z=has_z, has_m=has_m).written(wkb.read(value))
    expected = flattened(shapely.from_wkb(value))
    if not expected:
        assert written is None
        return
    result = shapely.from_wkb(written)
    for (kind, rings), (made_kind, made_rings) in zip(expected, flattened(result), strict=True):
        assert kind == made_kind
        for ring, made_ring in zip(rings, made_rings, strict=True):
            wanted = np.nan_to_num(ring, nan=0.0)
            wanted[:, 2:][:, [not has_z, not has_m]] = np.nan
            np.testing.assert_array_equal(made_ring, wanted)
