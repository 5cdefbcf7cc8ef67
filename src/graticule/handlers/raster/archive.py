"""A raster in a zip archive, with the files beside it that say where it lies and which pixels are valid."""

import zipfile
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Final

from graticule.core.validation import shortened
from graticule.handlers.context import ProcessContext
from graticule.handlers.findings import Rejected
from graticule.handlers.outputs.staging import scratch_path
from graticule.handlers.raster.file_kinds import (
    ACCEPTED,
    ASCII_GRID,
    ENVI,
    GIF,
    HDF5,
    HEAD_BYTES,
    JPEG,
    NETCDF,
    PNG,
    REFERENCE,
    TIFF,
    WORLD_FILE_ENDINGS,
    FileKind,
    kind_of,
)
from graticule.handlers.raster.validation_codes import Code, finding
from graticule.handlers.zip_archive import ArchiveError, Growth, list_files, open_archive, read_head, read_pieces

_SIDECARS: Final = (*WORLD_FILE_ENDINGS, ".prj", ".aux.xml", ".msk", ".hdr")
# Documents, styles and what else lies in such archives. Overviews are rebuilt, so the sender's are not read.
_IGNORED: Final = (
    *(".xml", ".pdf", ".html", ".htm", ".md", ".doc", ".docx", ".rtf", ".xls", ".xlsx", ".csv", ".json"),
    *(".qml", ".qgs", ".sld", ".lyr", ".lyrx", ".clr", ".stx", ".sta", ".enp", ".ovr", ".rrd", ".ige", ".aux", ".dbf"),
)
_PICTURES: Final = (PNG, JPEG, GIF)
_WORLD_LETTERS: Final[dict[FileKind | None, str]] = {TIFF: "t", PNG: "p", JPEG: "j", GIF: "g"}
_MAX_NAMED: Final = 20


@dataclass(frozen=True, slots=True)
class Member:
    """A raster in an archive, and the files that belong to it, by their endings."""

    kind: FileKind
    main: zipfile.ZipInfo
    sidecars: dict[str, zipfile.ZipInfo] = field(default_factory=dict)

    @property
    def stem(self) -> str:
        """Its name without folders and ending."""
        return PurePosixPath(self.main.filename).stem

    @property
    def is_plain_picture(self) -> bool:
        """Whether nothing says where it lies: a preview, if there is something else."""
        return self.kind in _PICTURES and not self.sidecars


@dataclass(frozen=True, slots=True)
class Unpacked:
    """What was unpacked into the job's scratch."""

    kind: FileKind
    path: str
    sidecars: dict[str, str]  # paths by their endings
    is_chosen: bool  # by its name, so that `variable` has been used


def unpack_raster(ctx: ProcessContext, path: str, wanted: str | None) -> Unpacked:
    """Unpack the raster that is meant; `Rejected` when there is none, or several and none is named."""
    try:
        with open_archive(ctx.storage, path) as archive:
            members = _find_members(archive)
            names = _name_members(members)
            member = members[_choose(names, wanted)]
            return _unpack(ctx, archive, member, ctx.storage.stat(path).size, is_chosen=wanted in names)
    except ArchiveError as error:
        raise Rejected([finding(Code(error.code), error.what, error.where)]) from error


def _find_members(archive: zipfile.ZipFile) -> list[Member]:
    entries = {each.filename.casefold(): each for each in list_files(archive)}
    found = [member for name, entry in entries.items() if (member := _member(archive, name, entry, entries))]
    placed = [member for member in found if not member.is_plain_picture]
    if not found:
        raise Rejected([finding(Code.NOT_A_RASTER, "The archive contains no raster of an accepted format.", "archive")])
    return placed or found


def _member(
    archive: zipfile.ZipFile, name: str, entry: zipfile.ZipInfo, entries: dict[str, zipfile.ZipInfo]
) -> Member | None:
    if name.endswith((*_SIDECARS, *_IGNORED)):
        return None
    kind = kind_of(read_head(archive, entry, HEAD_BYTES))
    if name.endswith(".txt") and kind is not ASCII_GRID:
        return None
    sidecars = _find_sidecars(name, kind, entries)
    header = sidecars.pop(".hdr", None)
    if kind is REFERENCE:
        raise Rejected([finding(Code.VRT_NOT_ACCEPTED, f"It holds {REFERENCE.name}.", f"file {entry.filename}")])
    if kind is None and header is not None and read_head(archive, header, 4) == b"ENVI":
        return Member(ENVI, entry, {**sidecars, ".hdr": header})
    return Member(kind, entry, sidecars) if kind in ACCEPTED else None


def _find_sidecars(name: str, kind: FileKind | None, entries: dict[str, zipfile.ZipInfo]) -> dict[str, zipfile.ZipInfo]:
    """Find what is named after the file, with its ending or without."""
    folder, _, last = name.rpartition("/")
    stem = f"{folder}/{last.rpartition('.')[0] or last}".lstrip("/")
    return {
        ending: found
        for ending in _SIDECARS
        if not _is_of_another(ending, name, kind)
        and (found := entries.get(f"{name}{ending}") or entries.get(f"{stem}{ending}"))
    }


def _is_of_another(ending: str, name: str, kind: FileKind | None) -> bool:
    """Return whether a world file is that of another format: .tfw of a TIFF, .jgw of a JPEG."""
    letters = {_WORLD_LETTERS[kind], PurePosixPath(name).suffix[1:2]} if kind in _WORLD_LETTERS else None
    return letters is not None and ending in WORLD_FILE_ENDINGS and ending != ".wld" and ending[1] not in letters


def _name_members(members: list[Member]) -> list[str]:
    """Name each, so that no two are alike: by its stem, or else by its whole path."""
    stems = [member.stem for member in members]
    return [
        stem if stems.count(stem) == 1 else member.main.filename for stem, member in zip(stems, members, strict=True)
    ]


def _choose(names: list[str], wanted: str | None) -> int:
    if wanted in names:
        return names.index(wanted)
    if len(names) == 1:
        return 0
    listed = ", ".join(shortened(name, 64) for name in names[:_MAX_NAMED])
    if wanted is None:
        what = f"The archive contains {len(names)} rasters: {listed}."
        raise Rejected([finding(Code.SEVERAL_DATASETS, what, "variable")])
    what = f"There is no raster '{shortened(wanted, 64)}' in the archive. It has: {listed}."
    raise Rejected([finding(Code.UNKNOWN_VARIABLE, what, "variable")])


def _unpack(
    ctx: ProcessContext, archive: zipfile.ZipFile, member: Member, packed_bytes: int, *, is_chosen: bool
) -> Unpacked:
    parts = {_ending(member): member.main, **member.sidecars}
    growth = Growth(ctx, packed_bytes, sum(entry.file_size for entry in parts.values()))
    paths = {ending: source_path(ctx, ending) for ending in parts}
    for ending, entry in parts.items():
        with ctx.storage.writing(paths[ending]) as target, target.open("wb") as written:
            for piece in read_pieces(archive, entry):
                growth.count(len(piece))
                written.write(piece)
    main = paths.pop(_ending(member))
    return Unpacked(member.kind, main, paths, is_chosen)


def _ending(member: Member) -> str:
    """Return an ending of ours; that of NetCDF and HDF5 tells GDAL how to read a file that is both."""
    if member.kind in {NETCDF, HDF5}:
        return ".nc" if member.main.filename.casefold().endswith((".nc", ".nc4", ".cdf")) else ".h5"
    return ".data"


def source_path(ctx: ProcessContext, ending: str) -> str:
    """Name a file after the attempt: one that was given up and goes on must not write over the next."""
    return scratch_path(ctx.storage, ctx.job_id, f"source/{ctx.retry_count}-{ctx.delivery_count}-raster{ending}")
