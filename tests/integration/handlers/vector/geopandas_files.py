"""Files that geopandas writes, all in one process of its own: handlers take drivers away from GDAL in the tests'."""

import json
import sys
from pathlib import Path
from typing import Any

import geopandas
import pandas as pd


def _write(frame: geopandas.GeoDataFrame, file: str, crs: str | None = None, **options: Any) -> None:
    if crs is not None:
        frame = frame.to_crs(crs)
    if file.endswith(".parquet"):
        frame.to_parquet(file, **options)
    elif (as_json := options.pop("to_json", None)) is not None:
        Path(file).write_text(frame.to_json(default=str, **as_json), encoding="utf-8")
    else:
        frame.to_file(file, **options)


if __name__ == "__main__":
    given = json.load(sys.stdin)
    columns = given["columns"]
    columns["day"] = pd.to_datetime(columns["day"])
    areas = geopandas.GeoSeries.from_wkt(given["wkt"])
    original = geopandas.GeoDataFrame(columns, geometry=areas, crs="EPSG:4326")
    for path, chosen in given["files"]:
        _write(original, path, **chosen)
