"""How large a mosaic becomes."""

import pytest

from graticule.handlers.raster.mosaic_making import MOST_SQUARES, shown_from, square_count

WORLD = [-180.0, -90.0, 180.0, 90.0]


@pytest.mark.parametrize(
    ("bbox", "zoom", "count"),
    [(WORLD, 0, 1), (WORLD, 3, 64), ([179, -10, -179, 10], 3, 4), ([10, 10, 10.001, 10.001], 9, 1)],
)
def test_squares_are_counted(bbox: list[float], zoom: int, count: int) -> None:
    assert square_count(bbox, zoom) == count


def test_a_mosaic_has_no_more_squares_than_can_be_written_down() -> None:
    assert shown_from(WORLD, 15) == 8
    assert square_count(WORLD, 8) <= MOST_SQUARES < square_count(WORLD, 9)
    assert shown_from(WORLD, 5) == 5
    assert shown_from([10, 10, 10.1, 10.1], 15) == 15
