"""A program that makes a PMTiles file of the features that come in over its standard input, as an Arrow stream.

Handlers have no driver of GDAL but those that read what partners send. So this is a process of its own, with nothing
but the drivers that write tiles, and no partner's file ever gets here. It ends with the process that started it.
"""

import ctypes
import gzip
import json
import os
import resource
import signal
import struct
import sys
from pathlib import Path
from typing import Any, Final

FEATURE_ID: Final = "OGC_FID"  # the column of which GDAL makes the ids of features
LAYER: Final = "features"  # as the service of features calls it
DRIVERS: Final = frozenset({"PMTiles", "MVT", "SQLite"})  # it fills a database first
# With several threads, GDAL would not tell that one of the last features could not be kept, and be hardly faster.
SETTINGS: Final = {"GDAL_NUM_THREADS": "1", "PROJ_NETWORK": "OFF"}
MOST_BYTES: Final = 64 * 1024**3  # of that database, and of the file
TILE_BYTES: Final = 500_000  # more is left out of a tile, the smallest features first
TILE_FEATURES: Final = 50_000
HEADER: Final = struct.Struct("<7sB11Q")  # the beginning of the header: offsets, lengths and counts
METADATA: Final = 3  # where offset and length of the metadata stand in it
_DIES_WITH_PARENT: Final = 1  # PR_SET_PDEATHSIG


def main() -> None:
    """Write the file that is named, and tell on the standard error why not."""
    end_with(int(sys.argv[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, (MOST_BYTES, MOST_BYTES))
    file, name, max_zoom = Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    try:
        _write(file, name, max_zoom)
        correct_metadata(file)
    except Exception as error:
        sys.exit(f"{type(error).__name__}: {error}")


def end_with(parent: int) -> None:
    """Let the kernel end this process when its parent ends, however that ends."""
    ctypes.CDLL(None).prctl(_DIES_WITH_PARENT, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it ended before the kernel knew
        os._exit(1)


def _write(file: Path, name: str, max_zoom: int) -> None:
    import pyarrow as pa  # noqa: PLC0415 - a handler that starts the program needs none of it
    import pyogrio.core  # noqa: PLC0415
    import pyogrio.raw  # noqa: PLC0415

    others = pyogrio.list_drivers().keys() - DRIVERS
    pyogrio.set_gdal_config_options({**SETTINGS, "OGR_SKIP": ",".join(sorted(others))})
    pyogrio.core._register_drivers()  # noqa: SLF001 - there is no other way to this
    file.unlink(missing_ok=True)  # GDAL would try to open it, and complain
    with pa.ipc.open_stream(sys.stdin.buffer) as features:
        pyogrio.raw.write_arrow(
            features,
            file,
            driver="PMTiles",
            layer=LAYER,
            geometry_name=features.schema.names[-1],
            geometry_type="Unknown",
            crs="EPSG:4326",
            dataset_options={
                "NAME": name,
                "MINZOOM": "0",
                "MAXZOOM": str(max_zoom),
                "MAX_SIZE": str(TILE_BYTES),
                "MAX_FEATURES": str(TILE_FEATURES),
            },
        )


def correct_metadata(file: Path) -> None:
    """Take the column of ids out of the list of attributes, which features do not have.

    The metadata may stand anywhere in a PMTiles file, so they are written anew at its end.
    """
    with file.open("r+b") as opened:
        header = list(HEADER.unpack(opened.read(HEADER.size)))
        opened.seek(header[METADATA + 1])
        metadata: Any = json.loads(gzip.decompress(opened.read(header[METADATA + 2])))
        for layer in metadata["vector_layers"]:
            layer["fields"].pop(FEATURE_ID, None)
        written = gzip.compress(json.dumps(metadata, separators=(",", ":")).encode(), mtime=0)
        header[METADATA + 1 : METADATA + 3] = opened.seek(0, os.SEEK_END), len(written)
        opened.write(written)
        opened.seek(0)
        opened.write(HEADER.pack(*header))


if __name__ == "__main__":
    main()
