"""Features in other coordinate reference systems (OGC API Features, Part 2): as pyproj computes them, in that order."""

from typing import Any

import httpx
import pytest
from pyproj import Transformer
from tests.integration.serve.features.conftest import COUNT, Serving, served
from tests.integration.serve.features.test_features import ITEMS, refused

CRS84 = "http://www.opengis.net/def/crs/OGC/1.3/CRS84"
EPSG = "http://www.opengis.net/def/crs/EPSG/0/"
SWISS = (7.44, 46.95, 8.54, 47.37)
BERN = (7.44, 46.95)


async def asked(client: httpx.AsyncClient, **parameters: str) -> httpx.Response:
    given = {name.replace("_", "-"): value for name, value in parameters.items()}
    response = await client.get(ITEMS, params={"limit": "1000", **given})
    assert response.status_code == 200, response.text
    return response


async def ids(client: httpx.AsyncClient, **parameters: str) -> list[int]:
    return [each["id"] for each in (await asked(client, **parameters)).json()["features"]]


def first_position(geometry: dict[str, Any]) -> list[float]:
    place = geometry["coordinates"]
    while isinstance(place[0], list):
        place = place[0]
    return list(place)


async def crs_of(client: httpx.AsyncClient) -> dict[str, Any]:
    found: dict[str, Any] = (await client.get("/collections/features")).json()
    assert (await client.get("/collections")).json()["collections"][0]["crs"] == found["crs"]
    return found


async def test_a_collection_lists_what_it_can_be_had_in(client: httpx.AsyncClient, serving: Serving) -> None:
    roads = await crs_of(client)
    assert roads["crs"][:3] == [CRS84, f"{EPSG}4326", f"{EPSG}3857"]
    assert roads["storageCrs"] == CRS84
    assert f"{EPSG}2056" not in roads["crs"], "that of Switzerland"
    assert len(set(roads["crs"])) == len(roads["crs"]) < 300
    serving.served = served("swiss_v1", bbox=SWISS)
    swiss = await crs_of(client)
    assert {f"{EPSG}{code}" for code in (2056, 21781, 3035, 25832, 32632, 4258)} <= set(swiss["crs"])
    assert f"{EPSG}28992" not in swiss["crs"], "that of the Netherlands"
    assert swiss["storageCrs"] == f"{EPSG}2056"
    serving.served = served("islands_v1", bbox=(179.0, 0.0, -179.0, 0.0))
    assert (await crs_of(client))["crs"][:3] == [CRS84, f"{EPSG}4326", f"{EPSG}3857"]
    serving.served = served("islands_v1", bbox=(170.0, -45.0, -175.0, -35.0))
    assert f"{EPSG}4167" in (await crs_of(client))["crs"], "that of New Zealand"
    serving.served = served("islands_v1", bbox=(-180.0, -90.0, 180.0, 90.0))
    assert f"{EPSG}3857" not in (await crs_of(client))["crs"], "it has no poles"
    classes = (await client.get("/conformance")).json()["conformsTo"]
    assert "http://www.opengis.net/spec/ogcapi-features-2/1.0/conf/crs" in classes


@pytest.mark.parametrize("code", [4326, 3857, 2056, 3035, 25832, 4258, 3395])
@pytest.mark.parametrize("table", ["swiss_v1", "swiss_degrees_v1"])
async def test_coordinates_are_in_the_order_that_the_crs_defines(
    client: httpx.AsyncClient, serving: Serving, table: str, code: int
) -> None:
    serving.served = served(table, bbox=SWISS)
    # Without `always_xy`, pyproj gives coordinates in the order of their definition.
    expected = Transformer.from_crs("OGC:CRS84", f"EPSG:{code}").transform(*BERN)
    for name in (f"{EPSG}{code}", f"EPSG:{code}", f"urn:ogc:def:crs:EPSG::{code}"):
        answer = await asked(client, ids="1", crs=name)
        assert answer.headers["content-crs"] == f"<{EPSG}{code}>"
        (feature,) = answer.json()["features"]
        assert "crs" not in feature["geometry"]
        assert feature["geometry"]["coordinates"] == pytest.approx(expected, abs=5e-3 if expected[0] > 180 else 1e-7)
    single = await client.get(f"{ITEMS}/1", params={"crs": f"{EPSG}{code}"})
    assert single.headers["content-crs"] == f"<{EPSG}{code}>"
    assert single.json()["geometry"] == feature["geometry"]
    as_csv = await asked(client, ids="1", crs=f"EPSG:{code}", f="csv")
    x, y = as_csv.text.partition("POINT(")[2].partition(")")[0].split(" ")
    assert [float(x), float(y)] == pytest.approx(feature["geometry"]["coordinates"], abs=1e-6)
    assert as_csv.headers["content-crs"] == f"<{EPSG}{code}>"


async def test_degrees_are_the_default(client: httpx.AsyncClient) -> None:
    plain, named = await asked(client, ids="1"), await asked(client, ids="1", crs=CRS84)
    assert plain.headers["content-crs"] == named.headers["content-crs"] == f"<{CRS84}>"
    position = first_position(plain.json()["features"][0]["geometry"])
    assert position == first_position(named.json()["features"][0]["geometry"]) == [-25, -25]
    turned = await asked(client, ids="40", crs=f"{EPSG}4326", **{"bbox-only": "true"})
    assert sorted(first_position(turned.json()["features"][0]["geometry"])) == [14, 14]


async def test_pages_keep_the_crs(client: httpx.AsyncClient) -> None:
    page = (await client.get(ITEMS, params={"limit": "1", "crs": f"{EPSG}3857"})).json()
    (following,) = [link["href"] for link in page["links"] if link["rel"] == "next"]
    second = await client.get(following.partition("/features/roads")[2])
    assert second.headers["content-crs"] == f"<{EPSG}3857>"
    assert abs(first_position(second.json()["features"][0]["geometry"])[0]) > 180


@pytest.mark.parametrize("parameter", ["crs", "bbox-crs", "filter-crs"])
@pytest.mark.parametrize(
    "name",
    ["", "x", f"{EPSG}2056", f"{EPSG}999999", f"{EPSG}3857'", "EPSG:03857", "3857", f"{EPSG}", "EPSG:4979", "EPSG:-1"],
)
async def test_what_is_not_listed_is_refused(client: httpx.AsyncClient, parameter: str, name: str) -> None:
    told = await refused(client, ITEMS, 400, **{parameter: name})
    assert parameter in told["detail"]


async def test_a_box_is_in_the_crs_that_is_named(client: httpx.AsyncClient, serving: Serving) -> None:
    assert await ids(client, bbox="-25,-24,-24,-23") == [2]
    assert await ids(client, bbox="-24,-25,-23,-24", bbox_crs=f"{EPSG}4326") == [2], "latitude first"
    assert await ids(client, bbox="-24,-25,0,-23,-24,100", bbox_crs=f"{EPSG}4326") == [2]
    west, south, east, north = Transformer.from_crs("OGC:CRS84", "EPSG:3857").transform_bounds(-25, -24, -24, -23)
    assert await ids(client, bbox=f"{west},{south},{east},{north}", bbox_crs=f"{EPSG}3857") == [2]
    assert len(await ids(client, bbox="-9e8,-9e8,9e8,9e8", bbox_crs=f"{EPSG}3857")) == COUNT, "larger than the world"
    assert await ids(client, bbox="9e7,9e7,9e8,9e8", bbox_crs=f"{EPSG}3857") == []
    for wrong in ("1,1,0,2", "1,1,2,0", "nan,1,2,3", "1e10,1,2e10,3", "1,2,3"):
        await refused(client, ITEMS, 400, **{"bbox": wrong, "bbox-crs": f"{EPSG}3857"})
    for table in ("swiss_v1", "swiss_degrees_v1"):
        serving.served = served(table, bbox=SWISS)
        around_bern = "2600000,1199000,2601500,1200500"
        assert await ids(client, bbox=around_bern, bbox_crs=f"{EPSG}2056") == [1]
        assert await ids(client, bbox="0,0,9e6,9e6", bbox_crs=f"{EPSG}2056") == [1, 2]
        east, north = Transformer.from_crs("OGC:CRS84", "EPSG:3035", always_xy=True).transform(*BERN)
        near = f"{north - 9},{east - 9},{north + 9},{east + 9}"
        assert await ids(client, bbox=near, bbox_crs=f"{EPSG}3035") == [1], "northing first"


async def test_a_box_over_a_pole_finds_all_sides(client: httpx.AsyncClient, serving: Serving) -> None:
    serving.served = served("arctic_v1", bbox=(-180.0, 80.0, 180.0, 80.0))
    about_pole, beside = "-1.2e6,-1.2e6,1.2e6,1.2e6", "-1e5,1e6,1e5,1.2e6"
    assert await ids(client, bbox=about_pole, bbox_crs=f"{EPSG}3995") == [1, 2, 3]
    assert await ids(client, bbox=beside, bbox_crs=f"{EPSG}3995") == [1, 2], "both sides of the antimeridian"


async def test_shapes_in_a_filter_are_in_the_crs_that_is_named(client: httpx.AsyncClient, serving: Serving) -> None:
    box = "S_INTERSECTS(geom, BBOX({},{},{},{}))"
    assert await ids(client, filter=box.format(-25, -24, -24, -23)) == [2]
    assert await ids(client, filter=box.format(-24, -25, -23, -24), filter_crs=f"{EPSG}4326") == [2]
    point = "S_INTERSECTS(geom, POINT({} {}))"
    assert await ids(client, filter=point.format(-23.9, -24.1), filter_crs=f"{EPSG}4326") == []
    assert await ids(client, filter=point.format(-23.9, -23.9), filter_crs=f"{EPSG}4326") == [2]
    serving.served = served("swiss_v1", bbox=SWISS)
    assert await ids(client, filter=box.format(2600000, 1199000, 2601500, 1200500), filter_crs="EPSG:2056") == [1]
    assert await ids(client, filter=box.format(2600000, 1199000, 2601500, 1200500), filter_crs="EPSG:32632") == []
    for wrong in (point.format(91, 0), box.format(0, -181, 1, 181), point.format("2e9", 0)):
        await refused(client, ITEMS, 400, **{"filter": wrong, "filter-crs": "EPSG:4326"})
