"""Reads layers by GDAL in a process of its own: it keeps Python's lock while it waits for a server in a thread.

Takes lists of arguments of `pyogrio.raw.read` as JSON, and writes what was read as JSON.
"""

import json
import subprocess
import sys
from typing import Any

import numpy as np
import pyogrio


def read_layers(*calls: dict[str, Any]) -> list[dict[str, Any]]:
    """Read layers in another process."""
    command = [sys.executable, "-m", "tests.integration.serve.gdal_reader", json.dumps(calls)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def _read(source: str, bbox: list[float] | None = None, **options: Any) -> dict[str, Any]:
    meta, fids, geometry, fields = pyogrio.raw.read(source, return_fids=True, bbox=bbox and tuple(bbox), **options)
    return {
        "crs": meta["crs"],
        "count": len(geometry),
        "fids": fids.tolist(),
        "positions": [np.frombuffer(each[5:21], dtype="<f8").tolist() for each in geometry[:10]],
        "values": {name: values[:10].tolist() for name, values in zip(meta["fields"], fields, strict=True)},
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps([_read(**call) for call in json.loads(sys.argv[1])]))
