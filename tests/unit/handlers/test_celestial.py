"""CRSs of other celestial bodies are known, and none of the Earth is taken for one."""

import pytest
from pyproj import CRS
from pyproj.database import query_crs_info
from pyproj.enums import PJType

from graticule.handlers.celestial import other_body


@pytest.mark.parametrize(
    ("crs", "body"),
    [
        ("IAU_2015:49900", "Mars"),
        ("ESRI:104905", "Mars"),
        ("ESRI:103881", "Moon"),
        ("IAU_2015:30100", "Moon"),
        ("IAU_2015:29900", "Venus"),
        ("+proj=longlat +a=1737400 +b=1737400 +type=crs", "another celestial body (radius 1,737 km)"),
    ],
)
def test_another_body_is_named(crs: str, body: str) -> None:
    assert other_body(CRS(crs)) == body


@pytest.mark.parametrize("crs", ["EPSG:4326", "EPSG:3411", "ESRI:54004", "+proj=longlat +R=1 +type=crs", "EPSG:5714"])
def test_the_earth_is_the_earth(crs: str) -> None:
    assert other_body(CRS(crs)) is None


def test_no_geographic_crs_of_the_epsg_is_of_another_body() -> None:
    for info in query_crs_info("EPSG", pj_types=PJType.GEOGRAPHIC_2D_CRS):
        assert other_body(CRS.from_authority("EPSG", info.code)) is None
