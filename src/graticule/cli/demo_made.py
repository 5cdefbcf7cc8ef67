"""What the jobs of the demonstration have made, in a few lines."""

from collections.abc import Iterator
from typing import Any, Final

from rich.table import Column, Table
from rich.text import Text

from graticule.cli.console import out

MEASURES: Final = ("min", "max", "mean", "stddev")

Result = dict[str, Any]


def print_made(raster: Result, vector: Result) -> None:
    """Print what a raster and a vector became."""
    for title, lines in (("The raster became", _of_raster(raster)), ("The vector became", _of_vector(vector))):
        out.print(Text(f"\n {title}", style="bold"))
        for name, told in lines:
            out.print(f"   {name:<12} {told}", soft_wrap=True)
        if title == "The raster became":
            out.print(_statistics(raster["bands"]))
    out.print()


def _of_raster(result: Result) -> Iterator[tuple[str, str]]:
    rows, columns = result["shape"][-2:]
    size = f"{result['size_bytes'] / 1e6:.1f} MB"
    yield "COG", result["blob_path"]
    yield "", f"{columns} x {rows} pixels in EPSG:4326, {result['compression']}, {size}"
    yield "STAC item", f"{result['stac_item_id']} of collection {result['stac_collection_id']}"
    yield from _hashes(result)
    yield "bounds", _box(result["bbox"])


def _of_vector(result: Result) -> Iterator[tuple[str, str]]:
    yield "table", f"geo.{result['table_name']}"
    yield "", f"{result['row_count']} rows of {result['columns']['geom']}"
    yield "columns", ", ".join(sorted(result["columns"].keys() - {"geom"}))
    yield "GeoParquet", result["geoparquet_path"]
    yield "PMTiles", result["pmtiles_path"]
    yield "STAC item", f"{result['stac_item_id']} of collection {result['stac_collection_id']}"
    yield from _hashes(result)
    yield "bounds", _box(result["bbox"])


def _hashes(result: Result) -> Iterator[tuple[str, str]]:
    for name, field in (("sent", "content_hash"), ("made", "output_hash")):
        if result.get(field):
            yield name, f"sha256 {result[field]}"


def _box(bbox: list[float]) -> str:
    return ", ".join(f"{side:.4f}" for side in bbox)


def _statistics(bands: list[Result]) -> Table:
    table = Table("  band", *(Column(name, justify="right") for name in MEASURES), box=None, header_style="dim")
    for band in bands:
        table.add_row(f"  {band['name']}", *(f"{band['statistics'][name]:.4g}" for name in MEASURES))
    return table
