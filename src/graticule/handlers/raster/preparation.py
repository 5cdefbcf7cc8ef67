"""Makes a source readable for all tasks of a job: chosen, unpacked, and converted where it cannot be read as it is."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from graticule.handlers.answers import go_on
from graticule.handlers.context import ProcessContext
from graticule.handlers.raster.archive import source_path, unpack_raster
from graticule.handlers.raster.file_kinds import READ_DIRECTLY, TIFF, ZIP, FileKind
from graticule.handlers.raster.sandbox import Conversion, ConversionRequest, Warping, convert_in_sandbox
from graticule.handlers.raster.selection import SourceSelection
from graticule.handlers.raster.source_file import SourceFile, file_of
from graticule.storage.paths import Source

_MAX_SUFFIX: Final = 8
_PIECE_BYTES: Final = 4 * 1024 * 1024

CheckKind = Callable[[SourceFile, int], FileKind]


@dataclass(frozen=True, slots=True)
class Readable:
    """What the tasks of a job open: the source itself, or what was made of it in the job's scratch."""

    opened: str  # the name for GDAL
    kind: FileKind
    size: int
    sent_as: FileKind
    path: str | None = None  # in the scratch; None for the source itself
    conversion: Conversion | None = None  # when it was converted


@dataclass(frozen=True, slots=True)
class Preparation:
    """How a source is to be read."""

    ctx: ProcessContext
    selection: SourceSelection
    warping: Warping

    def prepare(self, source: Source, kind: FileKind, size: int, check_kind: CheckKind) -> Readable:
        """Return what is to be read; only what cannot be read as it is gets unpacked or converted."""
        if kind is ZIP:
            return self._prepare_archive(source, check_kind)
        if kind in READ_DIRECTLY and not self.selection.changes_source:
            return Readable(source.opened, kind, size, kind)
        return self.convert(Readable(source.opened, kind, size, kind), self._local(source), source.shown)

    def convert(self, readable: Readable, local: str, shown: str, sidecars: dict[str, str] | None = None) -> Readable:
        """Write the raster that is meant as a GeoTIFF, if it has to be."""
        ctx, path = self.ctx, source_path(self.ctx, ".tif")
        is_remote = readable.opened.startswith("/vsi")
        request = self._request(local, readable.kind, shown, sidecars=sidecars or {}, is_remote=is_remote)
        try:
            with ctx.storage.writing(path) as target:
                done = convert_in_sandbox(request.model_copy(update={"output": str(target)}), lambda: go_on(ctx))
                _check_needed(done)
        except _NotNeeded:
            return readable
        size = ctx.storage.stat(path).size
        return Readable(ctx.storage.readable(path), TIFF, size, readable.sent_as, path, done)

    def warp_by_points(self, readable: Readable, source: Source) -> Readable:
        """Warp an image that only control points place."""
        if readable.path is None:
            return self.convert(readable, self._local(source), source.shown)
        local = str(self.ctx.storage.local(readable.path))  # unpacked: `variable` has chosen the file
        return self._without_variable().convert(readable, local, source.shown)

    def _prepare_archive(self, source: Source, check_kind: CheckKind) -> Readable:
        ctx, storage = self.ctx, self.ctx.storage
        archive = source.blob or self._copy_here(source)
        found = unpack_raster(ctx, archive, self.selection.variable)
        local = str(storage.local(found.path))
        file = file_of(local)
        size = file.state().size
        kind = found.kind if ".hdr" in found.sidecars else check_kind(file, size)
        inner = self if not found.is_chosen else self._without_variable()
        readable = Readable(storage.readable(found.path), kind, size, kind, found.path)
        if kind in READ_DIRECTLY and not found.sidecars and not inner.selection.changes_source:
            return readable
        sidecars = {ending: str(storage.local(path)) for ending, path in found.sidecars.items()}
        return inner.convert(readable, local, found.path, sidecars)

    def _without_variable(self) -> "Preparation":
        selection = self.selection.model_copy(update={"variable": None})
        return Preparation(self.ctx, selection, self.warping)

    def _request(
        self, name: str, kind: FileKind, shown: str, *, sidecars: dict[str, str], is_remote: bool
    ) -> ConversionRequest:
        return ConversionRequest(
            name=name,
            kind=kind.name,
            ending=_suffix(shown),
            is_remote=is_remote,
            selection=self.selection.only_selection(),
            sidecars=sidecars,
            warping=self.warping,
        )

    def _local(self, source: Source) -> str:
        """Return a file of this machine with what the source holds."""
        storage = self.ctx.storage
        if source.blob is not None:
            return str(storage.local(source.blob))
        return source.opened if not source.opened.startswith("/vsi") else str(storage.local(self._copy_here(source)))

    def _copy_here(self, source: Source) -> str:
        """Copy what lies behind an address into the job's scratch."""
        ctx, file = self.ctx, file_of(source.opened, source.shown)
        path, size, done = source_path(ctx, f".copy{_suffix(source.shown)}"), file.state().size, 0
        with ctx.storage.writing(path) as target, target.open("wb") as written:
            while piece := file.read(done, min(_PIECE_BYTES, size - done)) if done < size else b"":
                go_on(ctx)
                done += written.write(piece)
                ctx.progress(done, size, "copying the source")
        return path


def _suffix(name: str) -> str:
    """Return the ending of a name, by which GDAL tells NetCDF from HDF5."""
    ending = PurePosixPath(name).suffix
    return ending if ending[1:].isalnum() and ending.isascii() and len(ending) <= _MAX_SUFFIX else ""


class PlacedByPoints(Exception):
    """Only control points say where a raster lies, so it has to be warped first."""


def _check_needed(done: Conversion) -> None:
    if not done.is_needed:
        raise _NotNeeded


class _NotNeeded(Exception):
    """The file can be read as it is."""
