"""Up to which zoom features get tiles."""

import numpy as np
import pytest
import shapely

from graticule.handlers.vector.exports import tile_zooms
from graticule.handlers.vector.exports.tile_zooms import ZoomSurvey


def surveyed(*shapes: object, times: int = 1) -> ZoomSurvey:
    survey = ZoomSurvey()
    for _ in range(times):
        survey.add(np.array(shapes, object))
    return survey


def squares(size: float, count: int = 100) -> list[object]:
    return [shapely.box(n, 10, n + size, 10 + size) for n in np.linspace(-60, 60, count)]


@pytest.mark.parametrize(
    ("degrees", "zoom"),
    [(20, 5), (0.01, 10), (0.0002, 14), (0.000001, 14)],
    ids=["countries", "fields", "houses", "specks"],
)
def test_small_features_get_more_zooms(degrees: float, zoom: int) -> None:
    assert abs(surveyed(*squares(degrees)).best() - zoom) <= 1


def test_an_edge_of_most_features_is_several_units_long() -> None:
    zoom = surveyed(*squares(0.01)).best()
    edge = 4 * 0.01 / 5
    assert edge / (360 / 2**zoom / 4096) >= 32 > edge / (360 / 2 ** (zoom - 1) / 4096)


def test_dense_points_get_more_zooms() -> None:
    near = [shapely.Point(x, y) for x, y in np.random.default_rng(1).uniform(10, 10.3, (1000, 2))]
    assert surveyed(*near).best() == 5
    assert surveyed(*near, times=8).best() == 10  # 8000 in one tile of zoom 9
    assert surveyed(*near, times=64).best() == 12


def test_a_zoom_that_is_asked_for_is_taken() -> None:
    assert [surveyed(shapely.Point(0, 0)).best(asked) for asked in (0, 3, 16)] == [0, 3, 16]


def test_what_would_take_too_long_is_not_made() -> None:
    world = surveyed(shapely.box(-180, -90, 180, 90))
    assert world.best(16) == 13
    assert 55 * (4**14 - 1) / 3 < tile_zooms.MOST_WORK < 55 * (4**15 - 1) / 3
    assert surveyed(*squares(20), times=1000).best(16) < 10


def test_features_without_a_place_count_for_nothing() -> None:
    survey = surveyed(None, shapely.Polygon(), *squares(0.01))
    assert survey.best() == surveyed(*squares(0.01)).best()
    assert surveyed(None, shapely.Point()).best() == 5


def test_places_beyond_the_map_are_at_its_edge() -> None:
    assert surveyed(shapely.Point(180, 90), shapely.Point(-180, -90), shapely.Point(200, 95)).best(16) == 16
