"""The tiling scheme of a raster: a GeoJSON file in which people see the tiles, and tasks find all that they need."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from pydantic import JsonValue
from rasterio.io import DatasetReader

from graticule.core import json_codec
from graticule.handlers.raster.cog.encoding import STORAGE_TIERS
from graticule.handlers.raster.grid import OutputGrid, crs_name, output_grid
from graticule.handlers.raster.options import OutputOptions
from graticule.handlers.raster.pixels import Box
from graticule.handlers.raster.rendering import (
    Rendering,
    described_bands,
    encoding_for,
    profile_for,
    raster_type_for,
    target_crs_of,
)
from graticule.handlers.raster.statistics import BandStatistics
from graticule.handlers.raster.tiling import (
    Tile,
    aligned_overlap,
    check_tile_bytes,
    check_told_bytes,
    tile_size_for,
    tiles_of,
)
from graticule.handlers.stac.footprint import footprint
from graticule.handlers.stac.inputs import Grid


@dataclass(frozen=True, slots=True)
class Scheme:
    """Where the tiles lie, what they are made of, and how."""

    source: str
    source_etag: str | None
    prepared: str | None  # what is read in place of the source
    blob_prefix: str
    stem: str
    grid: OutputGrid
    tile_size: int
    overlap: int
    options: OutputOptions
    facts: dict[str, JsonValue]
    tiles: Sequence[Tile]

    def bounds_of(self, tile: Tile) -> list[float]:
        """Give the bounds of a tile in EPSG:4326."""
        return list(self.grid.part(tile.box).bounds_4326())

    def to_geojson(self) -> bytes:
        """Write it as a FeatureCollection."""
        return json_codec.encode(
            {
                "type": "FeatureCollection",
                "name": self.stem,
                "source": self.source,
                "source_etag": self.source_etag,
                "prepared": self.prepared,
                "blob_prefix": self.blob_prefix,
                "target_crs": crs_name(self.grid.crs),
                "grid": self.grid.to_json(),
                "grid_size": {
                    "columns": max(tile.column for tile in self.tiles) + 1,
                    "rows": max(tile.row for tile in self.tiles) + 1,
                },
                "tile_size": self.tile_size,
                "overlap": self.overlap,
                "options": self.options.model_dump(mode="json"),
                **self.facts,
                "features": [self._feature(tile) for tile in self.tiles],
            }
        )

    def _feature(self, tile: Tile) -> dict[str, Any]:
        part, bounds = self.grid.part(tile.box), self.bounds_of(tile)
        properties = {
            "tile_id": tile.tile_id,
            "column": tile.column,
            "row": tile.row,
            "window": _numbers(tile.box),
            "core": _numbers(tile.core),
            "bounds_4326": bounds,
        }
        place = footprint(Grid.model_validate(part.to_json()), bounds)
        return {
            "type": "Feature",
            "id": tile.tile_id,
            "bbox": place.bbox,
            "properties": properties,
            "geometry": place.geometry,
        }

    @classmethod
    def from_geojson(cls, text: bytes) -> "Scheme":
        """Read what `to_geojson` wrote."""
        given = json_codec.decode(text)
        return cls(
            source=given["source"],
            source_etag=given["source_etag"],
            prepared=given.get("prepared"),
            blob_prefix=given["blob_prefix"],
            stem=given["name"],
            grid=OutputGrid.from_json(given["grid"]),
            tile_size=given["tile_size"],
            overlap=given["overlap"],
            options=OutputOptions.model_validate(given["options"]),
            facts={name: given[name] for name in _FACTS},
            tiles=[_tile(feature["properties"]) for feature in given["features"]],
        )


_FACTS = ("source_crs", "raster_type", "bands", "tier", "compression", "storage_tier", "warnings")


def scheme_of(
    dataset: DatasetReader,
    options: OutputOptions,
    *,
    source: str,
    source_etag: str | None,
    prepared: str | None = None,
    blob_prefix: str,
    stem: str,
    tile_size: int | None,
    overlap: int,
) -> Scheme:
    """Lay tiles over the output's grid of a source."""
    grid = output_grid(dataset, target_crs_of(options))
    itemsize = np.dtype(dataset.dtypes[0]).itemsize
    size = tile_size or tile_size_for(dataset.count, itemsize)
    check_tile_bytes(size, dataset.count * itemsize)
    aligned = aligned_overlap(size, overlap if tile_size else min(overlap, size // 4))
    tiles = tiles_of(grid.width, grid.height, size, aligned, stem)
    check_told_bytes(tiles, dataset.count, blob_prefix)
    known = options.model_copy(update={"raster_type": raster_type_for(dataset, options)})
    return Scheme(
        source=source,
        source_etag=source_etag,
        prepared=prepared,
        blob_prefix=blob_prefix,
        stem=stem,
        grid=grid,
        tile_size=size,
        overlap=aligned,
        options=known,
        facts=_facts(dataset, Rendering("", grid, known)),
        tiles=tiles,
    )


def _facts(dataset: DatasetReader, rendering: Rendering) -> dict[str, JsonValue]:
    """Tell what is the same for all tiles."""
    options = rendering.options
    encoding, warnings = encoding_for(dataset, options)
    profile = profile_for(dataset, rendering, rendering.grid.box)
    bands = described_bands(profile, [BandStatistics()] * profile.count)
    return {
        "source_crs": crs_name(dataset.crs),
        "raster_type": raster_type_for(dataset, options).value,
        "bands": [{name: value for name, value in band.items() if name != "statistics"} for band in bands],
        "tier": options.output_tier,
        "compression": encoding.compression,
        "storage_tier": STORAGE_TIERS[options.output_tier],
        "warnings": [*warnings],
    }


def _numbers(box: Box) -> list[int]:
    return [box.column, box.row, box.width, box.height]


def _tile(given: dict[str, Any]) -> Tile:
    return Tile(given["tile_id"], given["column"], given["row"], Box(*given["window"]), Box(*given["core"]))
