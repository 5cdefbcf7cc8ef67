"""What the orchestration of many tiles costs: the time in which a worker could have run a handler, and did not.

Of each worker, the time from the dispatch of the tiles to its last result counts, less the time in which its handlers
ran; that one worker ends a tile before the other is nobody's fault. To the mean of that comes what passes before and
after the tiles while no handler runs at all.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import LiteralString

import psycopg
from rasterio.warp import calculate_default_transform

from benchmarks.jobs import JobRun
from benchmarks.raster.sources import CRS, TRANSFORM

COLUMNS, ROWS = 17, 12
TILES = COLUMNS * ROWS
TILE_HANDLERS = ("raster.process_tile", "raster.process_tile_batch")
SPANS: LiteralString = """
WITH tile AS (
    SELECT task_id, dispatched_at FROM dagapp.dag_nodes
    WHERE job_id = %(job_id)s AND handler = ANY (%(handlers)s) AND parent_node_id IS NOT NULL
)
SELECT count(*), extract(epoch FROM max(reported_at) - (SELECT min(dispatched_at) FROM tile))::float8
FROM tile JOIN dagapp.dag_task_results AS result USING (task_id)
WHERE result.status = 'completed'
GROUP BY result.worker_id
"""


@dataclass(frozen=True)
class Overhead:
    """The overhead of a job."""

    tiles: int
    seconds: float  # the job
    between_tiles: float  # seconds, of the mean worker
    besides: float  # seconds before and after the tiles
    workers: int
    handler_seconds: dict[str, float]

    @property
    def share(self) -> float:
        """The part of the job's time."""
        return (self.between_tiles + self.besides) / self.seconds

    @property
    def milliseconds_per_tile(self) -> float:
        """What passes on a worker from one tile to the next."""
        return 1000 * self.between_tiles * self.workers / self.tiles


async def overhead_of(url: str, run: JobRun) -> Overhead:
    """Ask the database when the tiles of a job were done, and the workers' counters for how long they ran."""
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        given = {"job_id": run.job_id, "handlers": list(TILE_HANDLERS)}
        spans: Sequence[tuple[int, float]] = await (await connection.execute(SPANS, given)).fetchall()
    in_tiles = sum(seconds for name, seconds in run.handler_seconds.items() if name in TILE_HANDLERS)
    in_others = sum(run.handler_seconds.values()) - in_tiles
    return Overhead(
        tiles=sum(count for count, _ in spans),
        seconds=run.seconds,
        between_tiles=(sum(span for _, span in spans) - in_tiles) / len(spans),
        besides=run.seconds - max(span for _, span in spans) - in_others,
        workers=len(spans),
        handler_seconds=run.handler_seconds,
    )


def overlap_of(tile: int) -> int:
    """Give the overlap of the tiles; of 2048, it is the default, 512."""
    return tile // 4


def source_shape(tile: int) -> tuple[int, int]:
    """Give the width and height of a source whose output has 204 tiles."""
    overlap, stride = overlap_of(tile), tile - overlap_of(tile)
    wanted = [overlap + round((count - 0.5) * stride) for count in (COLUMNS, ROWS)]
    shape = list(wanted)
    for _ in range(3):  # each step brings the output nearer to what is wanted
        width, height = shape
        left, top = TRANSFORM @ (0, 0)
        right, bottom = TRANSFORM @ (width, height)
        _, *found = calculate_default_transform(CRS, "EPSG:4326", width, height, left, bottom, right, top)
        shape = [ceil(side * want / got) for side, want, got in zip(shape, wanted, found, strict=True)]
    return shape[0], shape[1]
