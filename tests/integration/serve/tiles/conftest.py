"""One storage with rasters of every kind, and the application that serves it; no test writes to it."""

from pathlib import Path

import pytest
from fastapi import FastAPI
from tests.integration.serve.tiles.served_rasters import make_both, write_columns

from graticule.serve.tiles.app import create_tiles
from graticule.storage.local import LocalStorage


@pytest.fixture(scope="session")
def rasters(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("rasters")
    make_both(root, "rgb", width=600, height=520, tier="visualization")
    make_both(root, "dem", width=1100, height=240, tile_size=1024, overlap=64)
    make_both(root, "categorical", width=600, height=250)
    make_both(root, "rgba", width=600, height=250)
    make_both(root, "antimeridian", width=600, height=250)
    write_columns(root / "silver/dateline/cogs/columns.tif", west=179.0)
    write_columns(root / "silver/before/cogs/columns.tif", west=-181.0)
    return root


@pytest.fixture(scope="session")
def app(rasters: Path) -> FastAPI:
    return create_tiles(LocalStorage(rasters))
