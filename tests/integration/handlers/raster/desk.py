"""Raster handlers called as a worker calls them: real files, a real storage, checkpoints in memory."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import rasterio
from tests.rasters import make_raster

from graticule.core.ids import JobId, NodeId, TaskId
from graticule.handlers import Checkpoint, HandlerResult, ProcessContext
from graticule.handlers.context import Signals
from graticule.handlers.raster import cogs, copying, extraction, mosaics, tiles, validation
from graticule.handlers.registry import RegisteredHandler, find_handler
from graticule.logs import get_logger
from graticule.storage.blocking import BlockingStorage
from graticule.storage.local import LocalStorage
from graticule.storage.paths import scratch_name
from graticule.worker.outcome import document, validated

JOB = JobId("0123456789abcdef")
MODULES = {
    "raster.create_cog": cogs,
    "raster.blob_to_mount": copying,
    "raster.extract_tiles": extraction,
    "raster.create_mosaicjson": mosaics,
    "raster.generate_tiling_scheme": tiles,
    "raster.process_tile": tiles,
    "raster.process_tile_batch": tiles,
    "raster.validate": validation,
}


class Saved:
    """The checkpoints of one node."""

    def __init__(self, storage: BlockingStorage) -> None:
        self._storage = storage
        self.all: list[Checkpoint] = []

    def load(self) -> Checkpoint | None:
        last = self.all[-1] if self.all else None
        return last if last is not None and all(map(self._storage.exists, last.artifacts)) else None

    def save(self, phase: str, data: Mapping[str, Any] | None = None, artifacts: Sequence[str] = ()) -> None:
        kept: dict[str, Any] = orjson.loads(document(dict(data or {})))
        assert all(map(self._storage.exists, artifacts))
        self.all.append(Checkpoint(phase, kept, tuple(artifacts)))


@dataclass
class Desk:
    """A storage with sources in `bronze`, and a way to run handlers on it."""

    root: Path
    storage: BlockingStorage
    job_id: JobId = JOB
    told: list[dict[str, Any]] = field(default_factory=list)

    def source(self, kind: str, name: str = "scene.tif", **changes: Any) -> str:
        """Make a raster, and give its path in the storage."""
        make_raster(self.root / "bronze" / name, kind, **changes)
        return f"bronze/{name}"

    def file(self, path: str) -> Path:
        return self.root / path

    def staged(self, name: str) -> Path:
        return self.root / "silver" / scratch_name(self.job_id) / "out" / name

    def blobs(self, prefix: str = "silver") -> list[str]:
        return [blob.path for blob in self.storage.list(prefix)]

    def etag(self, path: str) -> str:
        return self.storage.stat(path).etag

    def saved(self) -> Saved:
        return Saved(self.storage)

    def result(
        self,
        name: str,
        *,
        saved: Saved | None = None,
        signals: Signals | None = None,
        on_progress: Callable[[dict[str, Any]], None] | None = None,
        **params: Any,
    ) -> HandlerResult:
        """Run a handler."""
        handler = find(name)
        ctx = ProcessContext(
            task_id=TaskId("t"),
            job_id=self.job_id,
            node_id=NodeId("n"),
            retry_count=0,
            params=validated(handler.params, params),
            logger=get_logger("test"),
            signals=signals or Signals(),
            report_progress=on_progress or self.told.append,
            storage=self.storage,
            checkpoint=saved or self.saved(),
        )
        result = handler.function(ctx)
        assert isinstance(result, HandlerResult)
        return result

    def run(self, name: str, **given: Any) -> Any:
        """Run a handler that succeeds, and give its output as later nodes see it."""
        result = self.result(name, **given)
        assert result.error_message is None, result.error_message
        assert not result.is_interrupted
        return orjson.loads(document(result.output))

    def chain(self, source: str, *, extract: bool = False, overview_level: int = 2, **options: Any) -> Any:
        """Go from a source to its mosaic; gives the mosaic's output and the tiles'."""
        scheme = self.run("raster.generate_tiling_scheme", source=source, source_etag=self.etag(source), **options)
        pieces = self.run("raster.extract_tiles", scheme=scheme["scheme"])["pieces"] if extract else None
        made = [
            tile
            for batch in scheme["batches"]
            for tile in self.run("raster.process_tile_batch", scheme=scheme["scheme"], tile_ids=batch, pieces=pieces)
        ]
        mosaic = self.run(
            "raster.create_mosaicjson", scheme=scheme["scheme"], tiles=made, overview_level=overview_level
        )
        return scheme, made, mosaic


def find(name: str) -> RegisteredHandler:
    handler = find_handler(name, MODULES[name].__name__)
    assert handler is not None
    return handler


@contextmanager
def opened_desk(root: Path) -> Iterator[Desk]:
    with BlockingStorage(LocalStorage(root)) as storage:
        yield Desk(root, storage)


class RemoteDesk(Desk):
    """A desk whose storage is not on this machine; `root` has what was made here."""

    def source(self, kind: str, name: str = "scene.tif", **changes: Any) -> str:
        path = super().source(kind, name, **changes)
        self.storage.put(path, self.file(path).read_bytes())
        return path


def pixels(path: Path) -> tuple[Any, Any]:
    """Give all values of a raster, and its mask."""
    with rasterio.open(path) as dataset:
        return dataset.read(), dataset.dataset_mask()
