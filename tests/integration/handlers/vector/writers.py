"""Files of features written by GDAL with all its drivers, in a process of its own: handlers take drivers away."""

import atexit
import pickle
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import IO, Any


def write_layer(
    file: Path,
    driver: str,
    columns: list[tuple[str, str, list[Any]]],
    wkb: list[bytes | None],
    *,
    geometry_type: str,
    crs: str | None = "EPSG:4326",
    layer: str = "layer",
    append: bool = False,
    **options: str,
) -> None:
    """Write columns (name, kind, values) and geometries as a layer."""
    file.parent.mkdir(parents=True, exist_ok=True)
    described = {"geometry_type": geometry_type, "crs": crs, "layer": layer, "append": append, "options": options}
    process = _elsewhere()
    assert process.stdin is not None
    assert process.stdout is not None
    _send(process.stdin, (str(file), driver, columns, wkb, described))
    if (trouble := pickle.load(process.stdout)) is not None:
        raise ValueError(trouble)


def _send(stream: IO[bytes], content: Any) -> None:
    pickle.dump(content, stream)
    stream.flush()


@cache
def _elsewhere() -> subprocess.Popen[bytes]:
    """Start the process, which ends when nobody can ask it any more."""
    command = [sys.executable, "-W", "ignore", __file__]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    atexit.register(process.communicate, timeout=10)
    return process


def _write(file: str, driver: str, columns: list[Any], wkb: list[Any], described: dict[str, Any]) -> None:
    import pyarrow as pa
    from pyogrio.raw import write_arrow

    types = {
        "boolean": pa.bool_(),
        "int16": pa.int16(),
        "int32": pa.int32(),
        "int64": pa.int64(),
        "float32": pa.float32(),
        "float64": pa.float64(),
        "text": pa.string(),
        "date": pa.date32(),
        "time": pa.time32("ms"),
        "timestamp": pa.timestamp("ms"),
        "timestamptz": pa.timestamp("ms", "UTC"),
        "binary": pa.binary(),
        "json": pa.json_(),
        "integers": pa.list_(pa.int64()),
        "texts": pa.list_(pa.string()),
    }
    arrays = [
        *(pa.array(values, types[kind]) for _, kind, values in columns),
        pa.array(wkb, pa.binary()),
    ]
    geometry = "a geometry"  # no column's name
    table = pa.Table.from_arrays(arrays, [*(name for name, _, _ in columns), geometry])
    options = described.pop("options")
    write_arrow(table, file, driver=driver, geometry_name=geometry, layer_options=options, **described)


if __name__ == "__main__":
    while True:
        try:
            given = pickle.load(sys.stdin.buffer)
        except EOFError:
            break
        trouble = None
        try:
            _write(*given)
        except Exception as error:
            trouble = repr(error)
        _send(sys.stdout.buffer, trouble)
