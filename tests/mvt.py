"""Vector tiles read and written by GDAL, in a process of its own: handlers take drivers away that they do not use."""

import atexit
import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

LAYER = "features"


def read_tile(file: Path, *, with_buffer: bool = False) -> list[dict[str, Any]]:
    """Give the features of a tile, which has one layer of a known name."""
    found: list[dict[str, Any]] = _asked("read", str(file), with_buffer)
    return found


def write_tiles(folder: Path, wkb: list[bytes], names: list[str], max_zoom: int) -> None:
    """Write geometries with their names into a folder of tiles; where no feature is, there is none."""
    _asked("write", str(folder), [each.hex() for each in wkb], names, max_zoom)


def _asked(*question: Any) -> Any:
    process = _elsewhere()
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(question) + "\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline())


@cache
def _elsewhere() -> subprocess.Popen[str]:
    """Start the process, which ends when nobody can ask it any more."""
    process = subprocess.Popen([sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    atexit.register(process.communicate, timeout=10)
    return process


def _read(file: str, with_buffer: bool) -> list[dict[str, Any]]:
    import pyogrio

    assert pyogrio.list_layers(file)[:, 0].tolist() == [LAYER]
    meta, _, _, fields = pyogrio.raw.read(file, layer=LAYER, read_geometry=True, CLIP="NO" if with_buffer else "YES")
    columns = {name: field.tolist() for name, field in zip(meta["fields"], fields, strict=True) if name != "mvt_id"}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _write(folder: str, wkb: list[str], names: list[str], max_zoom: int) -> int:
    import numpy as np
    from pyogrio.raw import write

    described = {"layer": LAYER, "driver": "MVT", "geometry_type": "Unknown", "crs": "EPSG:4326"}
    only = {"MINZOOM": "0", "MAXZOOM": str(max_zoom), "COMPRESS": "NO", "FORMAT": "DIRECTORY"}
    shapes = np.array([bytes.fromhex(each) for each in wkb], object)
    write(folder, shapes, [np.array(names, object)], ["name"], **described, **only)
    return len(wkb)


if __name__ == "__main__":
    for line in sys.stdin:
        what, *given = json.loads(line)
        answer = _read(*given) if what == "read" else _write(*given)
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
