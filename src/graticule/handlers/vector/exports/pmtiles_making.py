"""Vector tiles of the features of a source, in one PMTiles file. Imports GDAL: only for where a handler runs.

The source is read twice: to choose the zooms, and to give its features to the process that writes.
"""

import glob
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final

import pyarrow as pa
import shapely
from pydantic import JsonValue

from graticule.core.errors import GraticuleError
from graticule.handlers.answers import go_on
from graticule.handlers.context import ProcessContext
from graticule.handlers.outputs.staging import stem_of
from graticule.handlers.vector.exports import pmtiles_writing as program
from graticule.handlers.vector.exports.export_reading import read_features
from graticule.handlers.vector.exports.tile_zooms import ZoomSurvey
from graticule.handlers.vector.preparing.columns import FEATURE_ID, GEOMETRY

DEGREES: Final = "EPSG:4326"  # whatever the projection of the table: tiles have one of their own
LOOK_SECONDS: Final = 0.5  # how often is looked whether the task is still wanted
LONGEST_TOLD: Final = 1000  # bytes of what the process says that go into the log
ADDRESSED_TILES: Final = 10  # where the number of tiles stands in the header
_END_OF_STREAM: Final = b"\xff\xff\xff\xff\x00\x00\x00\x00"
_WKB: Final = {"ARROW:extension:name": "geoarrow.wkb"}


class TilesNotMade(GraticuleError):
    """The process that writes tiles has failed."""

    code = "tiles_not_made"


def write_pmtiles(ctx: ProcessContext, file: Path) -> dict[str, JsonValue]:
    """Write tiles of the source that the task is about, and tell what was written."""
    survey = ZoomSurvey()
    for rows in read_features(ctx, DEGREES, "features looked at"):
        survey.add(shapely.from_wkb(rows.column(GEOMETRY).to_numpy(zero_copy_only=False)))
    asked: int | None = ctx.params.pmtiles_max_zoom
    max_zoom = survey.best(asked)
    if asked is not None and max_zoom < asked:
        ctx.logger.warning("fewer zooms get tiles than were asked for", asked=asked, max_zoom=max_zoom)
    with TileWriter.started(ctx, file, stem_of(ctx.params.source.source), max_zoom) as writer:
        for rows in read_features(ctx, DEGREES):
            writer.write(in_tiles(rows))
        writer.finish()
    with file.open("rb") as opened:
        header = program.HEADER.unpack(opened.read(program.HEADER.size))
    return {
        "tile_count": header[ADDRESSED_TILES],
        "min_zoom": 0,
        "max_zoom": max_zoom,
        "layer": program.LAYER,
    }


def in_tiles(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Give features as they go into tiles, by types that tiles have; bytes are left out."""
    columns = {name: _in_tile(rows.column(name)) for name in rows.schema.names if name not in {FEATURE_ID, GEOMETRY}}
    kept = {name: column for name, column in columns.items() if not pa.types.is_binary(column.type)}
    fields = [pa.field(name, column.type) for name, column in kept.items()]
    schema = pa.schema([(program.FEATURE_ID, pa.int64()), *fields, pa.field(GEOMETRY, pa.binary(), metadata=_WKB)])
    return pa.record_batch([rows.column(FEATURE_ID), *kept.values(), rows.column(GEOMETRY)], schema=schema)


def _in_tile(column: pa.Array) -> pa.Array:
    """Give dates and times as text, of which GDAL would make another one, and exact numbers as plain ones."""
    if pa.types.is_date(column.type) or pa.types.is_time(column.type):
        return column.cast(pa.utf8())
    return column.cast(pa.float64()) if pa.types.is_decimal(column.type) else column


class TileWriter:
    """The process that writes, fed without waiting for it longer than the task may go unheard."""

    def __init__(
        self, ctx: ProcessContext, process: subprocess.Popen[bytes], stdin: IO[bytes], told: IO[bytes]
    ) -> None:
        self._ctx = ctx
        self._process = process
        self._stdin = stdin
        self._told = told
        self._has_begun = False
        os.set_blocking(stdin.fileno(), False)

    @classmethod
    @contextmanager
    def started(cls, ctx: ProcessContext, file: Path, name: str, max_zoom: int) -> "Iterator[TileWriter]":
        """Start the process; when the block ends it has ended, and nothing is left of what it kept beside the file."""
        command = [sys.executable, "-P", "-m", program.__name__, str(os.getpid()), file.name, name, str(max_zoom)]
        with tempfile.TemporaryFile() as told:
            process = subprocess.Popen(  # noqa: S603 - our own program
                command, cwd=file.parent, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=told
            )
            try:
                yield cls(ctx, process, _input_of(process), told)
            finally:
                process.kill()
                process.communicate()
                for left in file.parent.glob(f"{glob.escape(file.name)}.*"):
                    left.unlink(missing_ok=True)

    def write(self, rows: pa.RecordBatch) -> None:
        """Give it features."""
        if not self._has_begun:
            self._send(rows.schema.serialize())
            self._has_begun = True
        self._send(rows.serialize())

    def finish(self) -> None:
        """Tell it that these were all, and wait until the file is written."""
        self._send(_END_OF_STREAM)
        self._stdin.close()
        count = self._ctx.params.source.feature_count
        while self._is_running():
            go_on(self._ctx)
            self._ctx.progress(count, count, "tiles are put together")
        if self._process.returncode:
            raise self._failure()

    def _send(self, data: Any) -> None:
        left = memoryview(data)
        while left:
            go_on(self._ctx)
            _, is_ready, _ = select.select([], [self._stdin], [], LOOK_SECONDS)
            if is_ready:
                try:
                    left = left[os.write(self._stdin.fileno(), left) :]
                except BrokenPipeError:
                    self._process.wait()
                    raise self._failure() from None

    def _is_running(self) -> bool:
        try:
            self._process.wait(LOOK_SECONDS)
        except subprocess.TimeoutExpired:
            return True
        return False

    def _failure(self) -> TilesNotMade:
        """Give how the process ended; what it said may name places of this machine, and is for the log."""
        size = self._told.seek(0, os.SEEK_END)
        self._told.seek(max(0, size - LONGEST_TOLD))
        said = self._told.read(LONGEST_TOLD).decode(errors="replace").strip()
        status = self._process.returncode
        self._ctx.logger.warning("the process that writes tiles failed", status=status, said=said)
        ended = f"was ended by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
        return TilesNotMade(f"The tiles could not be made: their process {ended}. The log of the worker has more.")


def _input_of(process: subprocess.Popen[bytes]) -> IO[bytes]:
    if process.stdin is None:
        raise RuntimeError("The process was started without a pipe.")
    return process.stdin
