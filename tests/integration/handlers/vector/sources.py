"""Files of features, opened and read as handlers do it."""

import io
import json
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyogrio.raw
import shapely

from graticule.core.ids import JobId, NodeId, TaskId
from graticule.handlers.context import ProcessContext, Signals
from graticule.handlers.findings import Rejected
from graticule.handlers.vector.described import Chunk, Opening
from graticule.handlers.vector.sources import opening, reading
from graticule.handlers.vector.sources.options import SourceOptions
from graticule.handlers.vector.sources.source import Kind, SourceFile
from graticule.logs import get_logger
from graticule.storage.blocking import BlockingStorage
from graticule.storage.local import LocalStorage

JOB = JobId("0123456789abcdef0123456789abcdef")
POINT = {"type": "Point", "coordinates": [1, 2]}


@dataclass
class Desk:
    """A storage with partners' files, and who opens them."""

    folder: Path
    signals: Signals = field(default_factory=Signals)
    delivery_count: int = 1
    found: list[str] = field(default_factory=list)  # of the file that was opened last: what is mended on the way
    told: list[dict[str, Any]] = field(default_factory=list)

    def put(self, path: str, data: bytes | str) -> None:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data.encode() if isinstance(data, str) else data)

    def open(self, path: str, **options: str) -> Opening:
        (opened,) = self.open_all(path, **options)
        return opened

    def open_all(self, path: str, **options: str) -> list[Opening]:
        container, _, blob = path.partition("/")
        with BlockingStorage(LocalStorage(self.folder)) as storage:
            file = SourceFile.at(storage, container, blob)
            asked = SourceOptions.model_validate(options)
            opened, findings = opening.opened_layers(self._context(storage), file, asked)
        self.found = [finding.code for finding in findings]
        return [Opening.model_validate_json(each.model_dump_json()) for each in opened]

    def read(self, opened: Opening, chunk: Chunk | None = None) -> pa.Table:
        """Give all features, with their geometries as WKT."""
        with (
            BlockingStorage(LocalStorage(self.folder)) as storage,
            reading.open_layer(storage, opened, chunk) as layer,
        ):
            rows = [batch.attributes.append_column("wkt", _wkt(batch.wkb)) for batch in layer.batches()]
            schema = layer.fields.append(pa.field("wkt", pa.string()))
        return pa.Table.from_batches(rows, schema)

    def rows(self, path: str, **options: str) -> list[dict[str, Any]]:
        """Open and read a file."""
        read: list[dict[str, Any]] = self.read(self.open(path, **options)).to_pylist()
        return read

    def ranges(self, opened: Opening, rows: int) -> list[tuple[int, int, int]] | None:
        with BlockingStorage(LocalStorage(self.folder)) as storage:
            return reading.ranges(storage, opened, rows)

    def refusal(self, path: str, **options: str) -> str:
        """Tell why a file is not opened."""
        return refusal(lambda: self.open(path, **options))

    def unchecked(self, path: str, kind: Kind, layer: str) -> Opening:
        """Give what someone would have who did not open the file."""
        with BlockingStorage(LocalStorage(self.folder)) as storage:
            etag = storage.stat(path).etag
        return Opening(path=path, etag=etag, kind=kind, layer=layer, crs="EPSG:4326")

    def _context(self, storage: BlockingStorage) -> ProcessContext:
        return ProcessContext(
            task_id=TaskId("t"),
            job_id=JOB,
            node_id=NodeId("n"),
            retry_count=0,
            delivery_count=self.delivery_count,
            params=None,
            logger=get_logger("test"),
            signals=self.signals,
            report_progress=self.told.append,
            storage=storage,
            checkpoint=None,  # type: ignore[arg-type]
            staging=None,
        )


def refusal(do: Callable[[], object]) -> str:
    """Tell with which code a file is rejected, and that the finding says what to do."""
    try:
        done = do()
    except Rejected as error:
        (finding,) = error.findings
        assert finding.how_to_fix
        return finding.code
    raise AssertionError(f"It is not rejected: {done}")


def features(*properties: dict[str, Any], **more: Any) -> str:
    """Write a GeoJSON file of points."""
    listed = [{"type": "Feature", "properties": each, "geometry": POINT} for each in properties or ({"n": 1},)]
    return json.dumps({"type": "FeatureCollection", "features": listed, **more})


def archive(files: Mapping[str, bytes | str], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Pack files."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", compression) as written:
        for name, data in files.items():
            written.writestr(name, data)
    return packed.getvalue()


def shapefile(
    folder: Path, texts: list[str], encoding: str = "ISO-8859-1", crs: str = "EPSG:32620", at: float = 600_000
) -> dict[str, bytes]:
    """Write the parts of a Shapefile, by their endings."""
    folder.mkdir(parents=True, exist_ok=True)
    points = shapely.to_wkb(np.array([shapely.Point(at + n, 1_600_000) for n in range(len(texts))]))
    pyogrio.raw.write(
        folder / "a.shp",
        points,
        [np.array(texts, dtype=object), np.arange(len(texts))],
        ["name", "n"],
        crs=crs,
        geometry_type="Point",
        driver="ESRI Shapefile",
        encoding=encoding,
    )
    return {file.suffix: file.read_bytes() for file in folder.iterdir()}


def _wkt(wkb: pa.Array) -> pa.Array:
    shapes = shapely.from_wkb(wkb.to_numpy(zero_copy_only=False))
    return pa.array(shapely.to_wkt(shapes, trim=True), pa.string())
