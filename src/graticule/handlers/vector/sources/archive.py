"""Unpack of an archive what is needed, and nothing that means harm.

Sizes are counted while they grow, for what an archive says of itself need not be true. Nothing keeps its name.
"""

import io
import re
import stat
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Final

from graticule.handlers.answers import go_on
from graticule.handlers.context import ProcessContext
from graticule.handlers.findings import Rejected
from graticule.handlers.outputs.staging import scratch_path
from graticule.handlers.vector.rejecting import Code, rejected
from graticule.handlers.vector.sources.blob_stream import blob_stream
from graticule.handlers.vector.sources.choosing import chosen
from graticule.handlers.vector.sources.source import (
    ARCHIVE_ENDINGS,
    HEAD_BYTES,
    JOURNALS,
    MAIN_PART,
    OTHER_PARTS,
    Kind,
    SourceFile,
    kind_of,
)

MOST_ENTRIES: Final = 1000
MOST_BYTES: Final = 16 * 1024**3
MOST_RATIO: Final = 200  # times the archive's own size; a Shapefile that is mostly blanks comes near 100
FREE_BYTES: Final = 256 * 1024**2  # that a small archive may always become
LONGEST_DIRECTORY: Final = 4 * 1024**2
PIECE_BYTES: Final = 1024**2
SHAPEFILE_PARTS: Final = (MAIN_PART, *OTHER_PARTS)
_ENDINGS: Final = {  # by which readers know a file
    Kind.GEOPACKAGE: ".gpkg",
    Kind.FLATGEOBUF: ".fgb",
    Kind.GEOJSON: ".geojson",
    Kind.GEOJSON_LINES: ".geojsonl",
    Kind.KML: ".kml",
    Kind.CSV: ".csv",
    Kind.GEOPARQUET: ".parquet",
}
_JUNK: Final = re.compile(r"(^|/)(__MACOSX/|\._|\.DS_Store$|Thumbs\.db$|desktop\.ini$)", re.IGNORECASE)
_BESIDES: Final = (  # documents, pictures, styles and indexes, of which nothing is read
    *(".xml", ".txt", ".pdf", ".html", ".htm", ".md", ".doc", ".docx", ".rtf", ".xls", ".xlsx", ".jpg", ".jpeg"),
    *(".png", ".gif", ".svg", ".qpj", ".qml", ".qmd", ".qgs", ".sld", ".lyr", ".lyrx", ".mxd", ".sbn", ".sbx"),
    *(".qix", ".idm", ".ind", ".atx", ".ain", ".aih", ".fbn", ".fbx", ".csvt", ".cst"),
)
_DRIVE: Final = re.compile(r"[A-Za-z]:")
_MAGIC: Final = re.compile(
    rb"PK\x03\x04|\x1f\x8b|BZh|\xfd7zXZ\x00|7z\xbc\xaf|Rar!|\x28\xb5\x2f\xfd|.{257}ustar", re.DOTALL
)
_READ: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # the others grow without a limit at each step
_LOCAL_HEADER_BYTES: Final = 30  # before the name of a file
_ENCRYPTED: Final = 0x1


@dataclass(frozen=True, slots=True)
class Dataset:
    """A file of features in an archive, with the others that belong to it, by their endings."""

    kind: Kind
    main: zipfile.ZipInfo
    parts: dict[str, zipfile.ZipInfo] = field(default_factory=dict)

    @property
    def stem(self) -> str:
        """Its name without folders and ending."""
        return PurePosixPath(self.main.filename).stem


@dataclass(frozen=True, slots=True)
class Unpacked:
    """What was unpacked, and what its layer is called."""

    file: SourceFile
    stem: str
    is_chosen: bool  # by its name: the layer that is asked for is the file


def unpacked(ctx: ProcessContext, file: SourceFile, wanted: str | None) -> Unpacked:
    """Unpack the file of features that is meant into the job's folder."""
    with _opened(file) as archive:
        datasets = _datasets(archive, file.path)
        names = _names(datasets)
        is_chosen = wanted in names
        name = chosen(names, wanted) if is_chosen or len(names) != 1 else names[0]
        dataset = datasets[names.index(name)]
        path = _unpack(ctx, archive, dataset, file.state().size)
    return Unpacked(SourceFile.of(ctx.storage, path), dataset.stem, is_chosen)


class _Directory(io.BufferedReader):
    """A stream from which nobody reads very much at once, as who believes in a huge table of contents would."""

    def read(self, size: int | None = -1, /) -> bytes:
        if size is not None and size > LONGEST_DIRECTORY:
            raise rejected(Code.DECOMPRESSION_BOMB, "The archive announces too many files.")
        return super().read(size)


@contextmanager
def _opened(file: SourceFile) -> Iterator[zipfile.ZipFile]:
    """Open an archive all of whose entries are harmless by what it says of them."""
    with closing(_Directory(blob_stream(file.storage, file.path).detach())) as stream:
        try:
            with zipfile.ZipFile(stream) as archive:
                _check(archive)
                yield archive
        except (zipfile.BadZipFile, EOFError, OSError, ValueError, zlib.error) as error:
            raise rejected(Code.CORRUPT, "The archive cannot be read.") from error
        except NotImplementedError:
            raise rejected(Code.UNSAFE_ARCHIVE, "The archive is compressed or encrypted in an unusual way.") from None


def _check(archive: zipfile.ZipFile) -> None:
    entries = archive.infolist()
    if len(entries) > MOST_ENTRIES:
        raise rejected(Code.DECOMPRESSION_BOMB, f"The archive has {len(entries)} files; at most {MOST_ENTRIES} fit.")
    if len({entry.filename.casefold() for entry in entries}) < len(entries):
        raise rejected(Code.UNSAFE_ARCHIVE, "Two files of the archive have the same name.")
    _check_places(entries, archive.start_dir)
    for entry in entries:
        _check_entry(entry)


def _check_places(entries: list[zipfile.ZipInfo], end: int) -> None:
    """Reject an archive whose files share their bytes: it can become any size."""
    placed = sorted(entries, key=lambda entry: entry.header_offset)
    begins = [*(entry.header_offset for entry in placed[1:]), end]
    for entry, following in zip(placed, begins, strict=False):
        if entry.header_offset + _LOCAL_HEADER_BYTES + entry.compress_size > following:
            raise rejected(Code.DECOMPRESSION_BOMB, "Files of the archive lie over each other.")


def _check_entry(entry: zipfile.ZipInfo) -> None:
    name = entry.orig_filename
    where = f"file {name}"
    parts = name.replace("\\", "/").split("/")
    if "\\" in name or "\0" in name or name.startswith("/") or ".." in parts or _DRIVE.match(name):
        raise rejected(Code.UNSAFE_ARCHIVE, "The name of a file leads out of the archive.", where)
    mode = entry.external_attr >> 16
    if stat.S_IFMT(mode) not in {0, stat.S_IFREG, stat.S_IFDIR}:
        raise rejected(Code.UNSAFE_ARCHIVE, "A file of the archive is a link.", where)
    if entry.flag_bits & _ENCRYPTED:
        raise rejected(Code.UNSAFE_ARCHIVE, "A file of the archive has a password.", where)
    if not entry.is_dir() and entry.compress_type not in _READ:
        raise rejected(Code.UNSAFE_ARCHIVE, "A file of the archive is compressed in an unusual way.", where)
    if not _JUNK.search(name) and name.casefold().endswith(ARCHIVE_ENDINGS):
        raise rejected(Code.NESTED_ARCHIVE, "The archive has another in it.", where)


def _datasets(archive: zipfile.ZipFile, path: str) -> list[Dataset]:
    """Find the files of features; what only goes with them, or is none, is passed over."""
    entries = [each for each in archive.infolist() if not each.is_dir() and not _JUNK.search(each.filename)]
    named = {each.filename.casefold(): each for each in entries}
    found = [dataset for name, entry in named.items() if (dataset := _dataset(archive, name, entry, named))]
    if not found and any(name.endswith((".dbf", ".shx")) for name in named):
        raise rejected(Code.MISSING_PART, "The archive has parts of a Shapefile, but no .shp file.")
    if not found:
        raise rejected(Code.NO_LAYER, "The archive has no file of features.")
    main = [dataset for dataset in found if dataset.main.filename.casefold() == "doc.kml"]
    return main if main and path.casefold().endswith(".kmz") else found


def _dataset(
    archive: zipfile.ZipFile, name: str, entry: zipfile.ZipInfo, named: dict[str, zipfile.ZipInfo]
) -> Dataset | None:
    if name.endswith((*_BESIDES, *SHAPEFILE_PARTS[1:], *JOURNALS)):
        return None
    with archive.open(entry) as stream:
        head = stream.read(HEAD_BYTES)
    if _MAGIC.match(head):
        raise rejected(Code.NESTED_ARCHIVE, "The archive has another in it.", f"file {entry.filename}")
    try:
        kind = kind_of(head, name)
    except Rejected:
        return None
    if kind is Kind.SHAPEFILE:
        return _shapefile(name, entry, named)
    if any(f"{name}{ending}" in named for ending in JOURNALS):
        raise rejected(Code.UNFINISHED, "Changes to the file are left beside it.", f"file {entry.filename}")
    return Dataset(kind, entry, {_ENDINGS[kind]: entry})


def _shapefile(name: str, entry: zipfile.ZipInfo, named: dict[str, zipfile.ZipInfo]) -> Dataset:
    stem = name.removesuffix(".shp")
    parts = {ending: named[f"{stem}{ending}"] for ending in SHAPEFILE_PARTS if f"{stem}{ending}" in named}
    return Dataset(Kind.SHAPEFILE, entry, {**parts, ".shp": entry})


def _names(datasets: list[Dataset]) -> list[str]:
    """Name each, so that no two are alike: by its stem, or else by its whole path."""
    stems = [dataset.stem for dataset in datasets]
    return [
        stem if stems.count(stem) == 1 else dataset.main.filename for stem, dataset in zip(stems, datasets, strict=True)
    ]


def _unpack(ctx: ProcessContext, archive: zipfile.ZipFile, dataset: Dataset, packed_bytes: int) -> str:
    """Write what is needed, in place of what is there, and give the path of the main file."""
    growth = _Growth(ctx, packed_bytes, sum(entry.file_size for entry in dataset.parts.values()))
    if dataset.kind is Kind.SHAPEFILE:
        for ending in SHAPEFILE_PARTS:
            ctx.storage.delete(_path(ctx, ending))
    for ending, entry in dataset.parts.items():
        with ctx.storage.writing(_path(ctx, ending)) as target, target.open("wb") as written:
            for piece in _pieces(archive, entry):
                growth.count(len(piece))
                written.write(piece)
    return _path(ctx, ".shp" if dataset.kind is Kind.SHAPEFILE else _ENDINGS[dataset.kind])


def _pieces(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Iterator[bytes]:
    with archive.open(entry) as stream:
        while piece := stream.read(PIECE_BYTES):
            yield piece


def _path(ctx: ProcessContext, ending: str) -> str:
    """Name what is unpacked after the attempt: one that was given up and goes on must not write over the next."""
    return scratch_path(ctx.storage, ctx.job_id, f"source/{ctx.retry_count}-{ctx.delivery_count}-layer{ending}")


class _Growth:
    """Counts what comes out of an archive, and ends it when that is too much."""

    def __init__(self, ctx: ProcessContext, packed_bytes: int, announced: int) -> None:
        self._ctx = ctx
        self._most = min(MOST_BYTES, max(FREE_BYTES, MOST_RATIO * packed_bytes))
        self._announced = announced
        self._done = 0
        self.count(0)

    def count(self, length: int) -> None:
        """Go on by so many bytes."""
        go_on(self._ctx)
        self._done += length
        if max(self._done, self._announced) > self._most:
            what = f"The archive becomes more than {self._most // 1024**2} MiB."
            raise rejected(Code.DECOMPRESSION_BOMB, what)
        self._ctx.progress(self._done, message="unpacking")  # a small part of the work, of which nothing is to be told
