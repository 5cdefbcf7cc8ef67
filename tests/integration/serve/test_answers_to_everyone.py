"""What holds for all answers of the services: their tags, what they show of the inside, how long they may take."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.conftest import TestDatabase
from tests.integration.serve.access_table import BY_NAME, INTERNAL, LATEST_ONLY, NEVER, OUO, Asset, Version
from tests.integration.serve.running import TILE, World, serving

from graticule.core.audience import Audience
from graticule.core.models.platform import DataType
from graticule.serve import resolution
from graticule.serve.features.connections import SESSION_SETTINGS as FEATURE_SETTINGS
from graticule.serve.pools import opened_pool
from graticule.serve.stac.connections import SESSION_SETTINGS as STAC_SETTINGS
from graticule.serve.stac.connections import prepare_connection

pytestmark = pytest.mark.filterwarnings("ignore:Use `@` matmul:PendingDeprecationWarning")  # rasterio 1.4, affine 3

VECTOR = Asset(1, DataType.VECTOR, OUO, LATEST_ONLY, (Version(0, BY_NAME["approved"], NEVER),))
RASTER = Asset(2, DataType.RASTER, OUO, LATEST_ONLY, (Version(0, BY_NAME["approved"], NEVER),))
FEATURES = f"/features/{VECTOR.asset_id}"
TILES = f"/tiles/{RASTER.asset_id}"
PAGES = (
    *(f"{FEATURES}/collections/features/tiles/WebMercatorQuad/map.html", f"{TILES}/WebMercatorQuad/map.html"),
    *(f"{FEATURES}/api.html", "/stac/api.html"),
)


@pytest.fixture
def world(own_database: TestDatabase, tmp_path: Path) -> World:
    world = World(own_database, tmp_path)
    world.write_data([0], [1])
    world.write_assets([VECTOR, RASTER])
    return world


async def test_the_tag_depends_on_the_hash_of_the_outputs(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resolution, "CACHE_SECONDS", 0.0)
    paths = (f"{FEATURES}/collections/features/items?limit=1", f"{TILES}/tiles/{TILE}.png?rescale=0,99")
    async with serving(world) as services:
        tags = {path: (await services[INTERNAL].get(path)).headers["etag"] for path in paths}
        for path, tag in tags.items():
            assert (await services[INTERNAL].get(path, {"if-none-match": tag})).status == 304
        with world.connected() as connection:
            connection.execute("UPDATE dagapp.asset_versions SET output_hash = %s", ["f" * 64])
        for path, tag in tags.items():
            answer = await services[INTERNAL].get(path, {"if-none-match": tag})
            assert answer.status == 200, path
            assert answer.headers["etag"] != tag


async def test_every_page_has_a_policy_and_health_shows_no_details(world: World) -> None:
    async with serving(world) as services:
        for path in PAGES:
            answer = await services[INTERNAL].get(path, {"accept": "text/html"})
            assert (answer.status, answer.headers["content-type"].partition(";")[0]) == (200, "text/html"), path
            assert "default-src 'none'" in answer.headers["content-security-policy"], path
            assert "://" not in answer.headers["content-security-policy"], path
        for service in services.values():
            health = await service.get("/health")
            assert health.document["checks"] == {"database": {"ok": True}}
            assert health.status == 200


@pytest.mark.parametrize("audience", Audience)
@pytest.mark.parametrize("settings", [FEATURE_SETTINGS, STAC_SETTINGS], ids=["features", "stac"])
async def test_no_statement_may_take_longer_than_ten_seconds(
    own_database: TestDatabase, audience: Audience, settings: Mapping[str, str]
) -> None:
    url = own_database.url(audience.role)
    async with opened_pool(url, audience, size=1, name="a test", settings=settings, prepare=prepare_connection) as pool:
        assert await pool.fetchval("SHOW statement_timeout") == "10s"
