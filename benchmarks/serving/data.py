"""The data: a COG and a table of polygons, both registered as approved assets, and what is asked of them."""

import random
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import LiteralString

import morecantile
import psycopg
import rasterio
from rasterio.warp import transform_bounds

from benchmarks.raster.sources import make_picture
from benchmarks.raster.tools import ROOT
from graticule.core.table import DatabaseRole

RASTER_ID, VECTOR_ID = "5e" * 16, "fe" * 16
BLOB = "silver/bench/cogs/picture.tif"
SCHEMA, TABLE = "geo", "bench_polygons"
WEST, SOUTH, DEGREES = 10.0, 45.0, 4.0  # where the polygons are: so many degrees on each side
RASTER_ZOOMS = range(11, 15)  # the last has about the resolution of the COG
VECTOR_ZOOMS = range(11, 14)  # about 190, 50 and 12 polygons of a tile
BOX_DEGREES = 0.2  # of a page of features: about 250 polygons, of which the first 100 are shown
PAGE = 100
MERCATOR = morecantile.tms.get("WebMercatorQuad")
Box = tuple[float, float, float, float]

ASSET: LiteralString = """
    INSERT INTO dagapp.geospatial_assets (asset_id, platform_id, platform_refs, data_type,
        latest_approved_version_ordinal)
    VALUES (%(asset_id)s, 'ddh', jsonb_build_object('dataset_id', %(data_type)s::text),
        %(data_type)s::text::dagapp.data_type, 0)
"""
VERSION: LiteralString = """
    INSERT INTO dagapp.asset_versions (asset_id, version_ordinal, version_label, approval_state, reviewer, reviewed_at,
        approved_revision, processing_state, blob_path, table_name)
    VALUES (%(asset_id)s, 0, '1', 'approved', 'bench', now(), 1, 'completed', %(blob_path)s, %(table_name)s)
"""
# Uneven rings of 12 to 40 corners, spread at random, in the form of the tables that `vector_ingest` makes.
POLYGONS: LiteralString = """
    CREATE TABLE geo.bench_polygons AS
    SELECT number AS fid, 'Parcel ' || number AS name,
           (ARRAY['arable', 'forest', 'meadow', 'built'])[1 + number %% 4] AS kind,
           round((random() * 1000)::numeric, 2)::double precision AS area, (random() * 100)::int AS households,
           timestamptz '2024-01-01' + number * interval '1 minute' AS surveyed_at,
           ST_Multi(ST_SetSRID(ST_MakePolygon(ST_AddPoint(ring, ST_StartPoint(ring))), 4326))
               ::geometry(MultiPolygon, 4326) AS geom
    FROM (SELECT number, %(west)s + random() * %(degrees)s AS x, %(south)s + random() * %(degrees)s AS y,
                 12 + number %% 29 AS corners
          FROM generate_series(1::bigint, %(count)s) AS number) AS place,
         LATERAL (SELECT ST_MakeLine(ST_MakePoint(
                             x + 0.004 * (0.7 + 0.3 * random()) * cos(2 * pi() * corner / corners),
                             y + 0.003 * (0.7 + 0.3 * random()) * sin(2 * pi() * corner / corners)) ORDER BY corner)
                         AS ring
                  FROM generate_series(0, corners - 1) AS corner) AS drawn
"""
INDEXES: tuple[LiteralString, ...] = (
    "ALTER TABLE geo.bench_polygons ADD PRIMARY KEY (fid)",
    "CREATE INDEX ON geo.bench_polygons USING gist (geom)",
)


@dataclass(frozen=True)
class Tile:
    """A map tile."""

    z: int
    x: int
    y: int

    @property
    def path(self) -> str:
        """Its place in the addresses of both libraries."""
        return f"/tiles/WebMercatorQuad/{self.z}/{self.x}/{self.y}"


def make_cog(storage: Path, side: int) -> Path:
    """Make a COG in EPSG:4326 where the services read, as one GDAL command makes it."""
    source, cog = storage.parent / f"picture-{side}.tif", storage / BLOB
    make_picture(source, side, side)
    cog.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "benchmarks.raster.with_rasterio", "copy", str(source), str(cog)]
    subprocess.run(command, cwd=ROOT, check=True)
    source.unlink()
    return cog


async def make_table(url: str, count: int) -> None:
    """Make the table of polygons in the name of a worker, as a job does."""
    async with await psycopg.AsyncConnection.connect(url) as connection:
        await connection.execute(f"SET LOCAL ROLE {DatabaseRole.WORKER}")
        await connection.execute("SELECT setseed(0.5)")
        await connection.execute(POLYGONS, {"count": count, "west": WEST, "south": SOUTH, "degrees": DEGREES})
        for statement in INDEXES:
            await connection.execute(statement)
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        await connection.execute("VACUUM ANALYZE geo.bench_polygons")


async def register(url: str) -> None:
    """Write the rows of two assets whose only version is approved."""
    outputs = ((RASTER_ID, "raster", BLOB, None), (VECTOR_ID, "vector", None, TABLE))
    async with await psycopg.AsyncConnection.connect(url) as connection:
        for asset_id, data_type, blob_path, table_name in outputs:
            await connection.execute(ASSET, {"asset_id": asset_id, "data_type": data_type})
            row = {"asset_id": asset_id, "blob_path": blob_path, "table_name": table_name}
            await connection.execute(VERSION, row)


def raster_tiles(cog: Path, count: int) -> list[Tile]:
    """Choose tiles of all zoom levels at which the COG has detail, the same ones each time."""
    with rasterio.open(cog) as dataset:
        bounds = transform_bounds(dataset.crs, "EPSG:4326", *dataset.bounds)
    return _chosen_tiles(bounds, RASTER_ZOOMS, count)


def vector_tiles(count: int) -> list[Tile]:
    """Choose tiles with polygons."""
    return _chosen_tiles((WEST, SOUTH, WEST + DEGREES, SOUTH + DEGREES), VECTOR_ZOOMS, count)


def pages(count: int) -> list[str]:
    """Choose boxes, and give the parameters with which a page of the polygons in each is asked for."""
    chosen, room = random.Random(3), DEGREES - BOX_DEGREES
    corners = [(WEST + chosen.random() * room, SOUTH + chosen.random() * room) for _ in range(count)]
    boxes = [(x, y, x + BOX_DEGREES, y + BOX_DEGREES) for x, y in corners]
    return [f"bbox={','.join(f'{side:.5f}' for side in box)}&limit={PAGE}" for box in boxes]


def _chosen_tiles(bounds: Box, zooms: Sequence[int], count: int) -> list[Tile]:
    """Choose as many of each zoom level as there are, but no more than its share, from the fewest on."""
    chosen, found = random.Random(3), list[Tile]()
    for place, zoom in enumerate(zooms):
        tiles = [Tile(tile.z, tile.x, tile.y) for tile in MERCATOR.tiles(*bounds, zooms=[zoom])]
        share = (count - len(found)) // (len(zooms) - place)
        found += chosen.sample(tiles, min(share, len(tiles)))
    chosen.shuffle(found)
    return found
