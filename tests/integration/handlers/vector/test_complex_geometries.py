"""Polygons that would keep GEOS busy for hours are rejected in seconds; large ones that would not are taken."""

import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely
import shapely.affinity
from hypothesis import given
from hypothesis import strategies as st
from tests.integration.handlers.vector.vector_chain import FILE, Chain, codes, write_features

from graticule.handlers.vector.preparing import complexity

Points = np.ndarray[Any, np.dtype[np.float64]]


def star(count: int, step: int) -> Points:
    """A star polygon: each edge crosses `step - 1` others on either side."""
    turns = (np.arange(count) * step % count) * 2 * np.pi / count
    return np.column_stack([np.cos(turns), np.sin(turns)])


def comb(count: int) -> Points:
    """A valid polygon of long teeth that lie slantwise, so that the boxes of all edges overlap."""
    along = np.arange(count) / count
    teeth = np.column_stack([along, np.arange(count) % 2])
    outline = np.vstack([teeth, [[1, -1], [0, -1]]])
    return np.asarray(outline @ np.array([[1, 1], [-1, 1]]) / 2)


def wave(count: int) -> Points:
    """A long outline without a crossing, as that of a coast."""
    turns = np.arange(count) * 2 * np.pi / count
    radius = 1 + 0.0001 * np.sin(turns * count / 12)
    return np.column_stack([np.cos(turns), np.sin(turns)]) * radius[:, None]


def knotted(outline: Points) -> Points:
    """The same outline, with two of its vertices exchanged."""
    made = outline.copy()
    made[[10, 12]] = made[[12, 10]]
    return made


def examined(folder: Path, *outlines: Points) -> Any:
    write_features(folder / FILE, [shapely.Polygon(each) for each in outlines])
    return Chain(folder, None).validate()  # type: ignore[arg-type]


MONSTERS = {
    "a star of 200,001 edges": [star(200_001, 66_667)],
    "a star whose edges cross a few others": [star(100_001, 5)],
    "random places": [np.random.default_rng(1).random((20_000, 2))],
    "a valid comb": [comb(60_000)],
    "several of which each would do": [star(10_001, 4)] * 20,
    "several combs of which each would do": [comb(5_000)] * 20,
}


@pytest.mark.parametrize("monster", MONSTERS)
def test_what_would_take_hours_is_rejected_in_seconds(tmp_path: Path, monster: str) -> None:
    begun = time.process_time()
    result = examined(tmp_path, shapely.get_coordinates(shapely.box(0, 0, 1, 1)), *MONSTERS[monster])
    assert codes(result) == ["geometry_too_complex"]
    assert time.process_time() - begun < 20
    assert result.report is not None
    (found,) = result.report["findings"]
    assert found["where"] == found["what"].split(" is ")[0].lower()
    assert int(found["where"].removeprefix("feature ")) > 1


def test_large_polygons_are_taken(tmp_path: Path) -> None:
    result = examined(tmp_path, wave(600_000), knotted(wave(100_000)))
    assert result.output["facts"]["invalid"]["count"] == 1


LARGEST_REPAIR = """
import pathlib, shapely
from tests.integration.handlers.vector.test_complex_geometries import examined, knotted, star, wave
from graticule.handlers.vector.preparing.repairing import made_valid
for outline in (knotted(wave(990_000)), star(7_001, 8)):
    examined(pathlib.Path.cwd(), outline)
    assert shapely.is_valid(made_valid(shapely.Polygon(outline)))
status = pathlib.Path("/proc/self/status").read_text()
print(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:")))
"""


def test_the_largest_repairs_are_bounded_in_time_and_memory(tmp_path: Path) -> None:
    """Just within the limits of vertices and of meetings; the process has nothing else in its memory."""
    begun = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    ended = subprocess.run(
        [sys.executable, "-c", LARGEST_REPAIR], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(Path.cwd())},
        stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    assert int(ended.stdout) < 1_300_000  # kB
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - begun < 30


def test_parts_with_borders_in_common_are_taken() -> None:
    """As a partner's districts that were collected into one feature: each vertex touches those of its neighbours."""
    squares = shapely.multipolygons([shapely.box(x, y, x + 1, y + 1) for x in range(60) for y in range(60)])
    assert not shapely.is_valid(squares)
    assert complexity.meetings(squares) == 0


@pytest.mark.parametrize(("count", "step"), [(7, 2), (7, 3), (101, 2), (1_001, 20)])
def test_the_crossings_of_a_star_are_counted(count: int, step: int) -> None:
    assert complexity.meetings(shapely.Polygon(star(count, step))) == count * (step - 1)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=4, max_size=60))
def test_edges_meet_where_geos_says_so(corners: list[tuple[int, int]]) -> None:
    """On a small grid they often run beside each other, touch, or end in each other."""
    polygon = shapely.Polygon(corners)
    ends = shapely.get_coordinates(polygon.exterior)
    edges = np.stack([ends[:-1], ends[1:]], axis=1)
    lines: Any = shapely.linestrings(edges[(edges[:, 0] != edges[:, 1]).any(axis=1)])
    first, second = shapely.STRtree(lines).query(lines, predicate="intersects")
    found = np.count_nonzero(first < second) - len(lines)
    assert complexity.meetings(polygon) == (0 if shapely.is_valid(polygon) else max(0, found))
    parts = shapely.multipolygons([polygon, shapely.affinity.translate(polygon, 30)])
    crossed = shapely.STRtree(lines).query(lines, predicate="crosses").shape[1]  # each pair twice, in two polygons once
    assert complexity.meetings(parts) == crossed + 2 * complexity.meetings(polygon)


def test_parts_that_lie_in_each_other_many_times_are_too_complex() -> None:
    """Each pair of parts would be compared, though no two of their edges meet."""
    rings = [shapely.Point(0, 0).buffer(0.1 + n, quad_segs=1) for n in range(1_200)]
    assert complexity.meetings(shapely.multipolygons(rings)) > complexity.MAX_MEETINGS


def test_geometries_without_polygons_have_no_edges_to_compare() -> None:
    points, line = shapely.MultiPoint(star(2_000, 3)), shapely.LineString(star(2_000, 7))
    flat = shapely.LineString([(1, 1)] * 20)
    limit = complexity.ComplexityLimit()
    limit.check_large(np.array([points, line, None, shapely.MultiPolygon()]), np.arange(4))
    limit.check_invalid(np.array([flat, shapely.GeometryCollection([flat, points])]), np.array([1, 2]))
    assert complexity.meetings(shapely.GeometryCollection([points, flat])) == 0
