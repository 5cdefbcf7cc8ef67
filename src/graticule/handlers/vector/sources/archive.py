"""Unpack of an archive the file of features that is meant."""

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from graticule.handlers.context import ProcessContext
from graticule.handlers.findings import Rejected
from graticule.handlers.outputs.staging import scratch_path
from graticule.handlers.vector.rejecting import Code, rejected
from graticule.handlers.vector.sources import filegdb, mapinfo
from graticule.handlers.vector.sources.choosing import Choice, listed
from graticule.handlers.vector.sources.source import (
    HEAD_BYTES,
    JOURNALS,
    MAIN_PART,
    OTHER_PARTS,
    PACKED_GDB,
    PARTS,
    Kind,
    SourceFile,
    kind_of,
)
from graticule.handlers.zip_archive import ArchiveError, Growth, list_files, open_archive, read_head, read_pieces

SHAPEFILE_PARTS: Final = (MAIN_PART, *OTHER_PARTS)
_ENDINGS: Final = {  # by which readers know a file
    Kind.GEOPACKAGE: ".gpkg",
    Kind.FLATGEOBUF: ".fgb",
    Kind.GEOJSON: ".geojson",
    Kind.GEOJSON_LINES: ".geojsonl",
    Kind.KML: ".kml",
    Kind.CSV: ".csv",
    Kind.GEOPARQUET: ".parquet",
    Kind.GPX: ".gpx",
    Kind.GML: ".gml",
    Kind.TOPOJSON: ".topojson",
    Kind.JSON_FG: ".json",
}
_BESIDES: Final = (  # documents, pictures, styles and indexes, of which nothing is read
    *(".xml", ".txt", ".pdf", ".html", ".htm", ".md", ".doc", ".docx", ".rtf", ".xls", ".xlsx", ".jpg", ".jpeg"),
    *(".png", ".gif", ".svg", ".qpj", ".qml", ".qmd", ".qgs", ".sld", ".lyr", ".lyrx", ".mxd", ".sbn", ".sbx"),
    *(".qix", ".idm", ".ind", ".atx", ".ain", ".aih", ".fbn", ".fbx", ".csvt", ".cst", ".xsd", ".gfs"),
)


@dataclass(frozen=True, slots=True)
class Dataset:
    """A file of features in an archive, with the others that belong to it, by their endings."""

    kind: Kind
    name: str  # its path in the archive
    ending: str  # of the file that is opened
    parts: dict[str, zipfile.ZipInfo]

    @property
    def stem(self) -> str:
        """Its name without folders and ending."""
        return PurePosixPath(self.name).stem


@dataclass(frozen=True, slots=True)
class Unpacked:
    """What was unpacked, and what its layer is called."""

    file: SourceFile
    stem: str
    name: str  # among the others of the archive
    is_chosen: bool  # by its name: the layer that is asked for is the file


def unpacked(ctx: ProcessContext, file: SourceFile, choice: Choice) -> list[Unpacked]:
    """Unpack the files of features that are meant into the job's folder."""
    with _opened(file) as archive:
        datasets = dict(zip(_names(found := _datasets(archive, file.path)), found, strict=True))
        is_chosen = choice.layer in datasets
        names = choice.of(list(datasets)) if is_chosen or len(datasets) != 1 else list(datasets)
        announced = sum(part.file_size for name in names for part in datasets[name].parts.values())
        growth = Growth(ctx, file.state().size, announced)
        files = [
            SourceFile.of(ctx.storage, _unpack(_Target(ctx, place), archive, datasets[name], growth))
            for place, name in enumerate(names)
        ]
    return [Unpacked(each, datasets[name].stem, name, is_chosen) for each, name in zip(files, names, strict=True)]


@contextmanager
def _opened(file: SourceFile) -> Iterator[zipfile.ZipFile]:
    """Open an archive, and say what is wrong with it as of any file of features."""
    try:
        with open_archive(file.storage, file.path) as archive:
            yield archive
    except ArchiveError as error:
        raise rejected(Code(error.code), error.what, error.where) from error


def _datasets(archive: zipfile.ZipFile, path: str) -> list[Dataset]:
    """Find the files of features; what only goes with them, or is none, is passed over."""
    named = {each.filename.casefold(): each for each in list_files(archive)}
    databases = _geodatabases(archive, named, PurePosixPath(path).name.partition(".")[0])
    rest = {name: entry for name, entry in named.items() if not any(_lies_in(name, folder) for folder in databases)}
    found = [dataset for name, entry in rest.items() if (dataset := _dataset(archive, name, entry, rest))]
    found += databases.values()
    if not found and any(name.endswith((".dbf", ".shx")) for name in named):
        raise rejected(Code.MISSING_PART, "The archive has parts of a Shapefile, but no .shp file.")
    if not found:
        seen = listed([entry.filename for entry in named.values()])
        raise rejected(Code.NO_LAYER, f"The archive has no vector file. It contains: {seen or 'nothing'}.")
    main = [dataset for dataset in found if dataset.name.casefold() == "doc.kml"]
    return main if main and path.casefold().endswith(".kmz") else found


def _geodatabases(archive: zipfile.ZipFile, named: dict[str, zipfile.ZipInfo], stem: str) -> dict[str, Dataset]:
    """Find the folders that are File Geodatabases; one that was packed without its folder has the archive's name."""
    found = {}
    for name, entry in named.items():
        if not filegdb.is_main_table(name) or not filegdb.is_table(read_head(archive, entry, HEAD_BYTES)):
            continue
        folder = name.removesuffix(filegdb.MAIN_TABLE)
        parts = {each.removeprefix(folder): part for each, part in named.items() if _lies_in(each, folder)}
        tables = {each: part for each, part in parts.items() if filegdb.FILES.fullmatch(each)}
        called = entry.filename[: len(folder)].rstrip("/") or stem
        found[folder] = Dataset(Kind.FILEGDB, called, PACKED_GDB, tables)
    return found


def _lies_in(name: str, folder: str) -> bool:
    """Whether a file is one of a geodatabase: all in its folder, or what is called so if it has none."""
    return name.startswith(folder) and bool(folder or filegdb.OWN_FILES.fullmatch(name))


def _dataset(
    archive: zipfile.ZipFile, name: str, entry: zipfile.ZipInfo, named: dict[str, zipfile.ZipInfo]
) -> Dataset | None:
    if name.endswith((*_BESIDES, *SHAPEFILE_PARTS[1:], *JOURNALS)) or _is_part(name, named):
        return None
    head = read_head(archive, entry, HEAD_BYTES)
    try:
        kind = kind_of(head, name)
    except Rejected:
        return None
    if kind is Kind.SHAPEFILE:
        return _of_parts(kind, MAIN_PART, entry, named)
    if kind is Kind.MAPINFO:
        return _mapinfo(mapinfo.ending_of(head), entry, named)
    if any(f"{name}{ending}" in named for ending in JOURNALS):
        raise rejected(Code.UNFINISHED, "Changes to the file are left beside it.", f"file {entry.filename}")
    return Dataset(kind, entry.filename, _ENDINGS[kind], {_ENDINGS[kind]: entry})


def _is_part(name: str, named: dict[str, zipfile.ZipInfo]) -> bool:
    """Whether a file belongs to another of the archive."""
    stem, dot, ending = name.rpartition(".")
    return any(f"{dot}{ending}" in others and f"{stem}{main}" in named for main, others in PARTS.items())


def _of_parts(kind: Kind, main: str, entry: zipfile.ZipInfo, named: dict[str, zipfile.ZipInfo]) -> Dataset:
    stem = entry.filename.casefold().removesuffix(main)
    parts = {ending: named[f"{stem}{ending}"] for ending in PARTS[main] if f"{stem}{ending}" in named}
    return Dataset(kind, entry.filename, main, {**parts, main: entry})


def _mapinfo(main: str, entry: zipfile.ZipInfo, named: dict[str, zipfile.ZipInfo]) -> Dataset:
    dataset = _of_parts(Kind.MAPINFO, main, entry, named)
    if (attributes := PARTS[main][0]) not in dataset.parts:
        raise rejected(
            Code.MISSING_PART, f"The archive has no {attributes} file of that name.", f"file {entry.filename}"
        )
    return dataset


def _names(datasets: list[Dataset]) -> list[str]:
    """Name each, so that no two are alike: by its stem, or else by its whole path."""
    stems = [dataset.stem for dataset in datasets]
    return [stem if stems.count(stem) == 1 else dataset.name for stem, dataset in zip(stems, datasets, strict=True)]


@dataclass(frozen=True, slots=True)
class _Target:
    """Where a file is unpacked to."""

    ctx: ProcessContext
    number: int  # of the file, of all that are unpacked

    def path(self, ending: str) -> str:
        """Name it after the attempt: one that was given up and goes on must not write over the next."""
        attempt = f"{self.ctx.retry_count}-{self.ctx.delivery_count}"
        number = str(self.number + 1) if self.number else ""
        return scratch_path(self.ctx.storage, self.ctx.job_id, f"source/{attempt}-layer{number}{ending}")


def _unpack(to: _Target, archive: zipfile.ZipFile, dataset: Dataset, growth: Growth) -> str:
    """Write what is needed, in place of what is there, and give the path of the main file."""
    storage = to.ctx.storage
    if dataset.kind is Kind.FILEGDB:
        with storage.writing(to.path(dataset.ending)) as target:
            _pack_geodatabase(target, archive, dataset, growth)
        return to.path(dataset.ending)
    for ending in PARTS.get(dataset.ending, ()):
        storage.delete(to.path(ending))
    for ending, entry in dataset.parts.items():
        with storage.writing(to.path(ending)) as target, target.open("wb") as written:
            for piece in read_pieces(archive, entry):
                growth.count(len(piece))
                written.write(piece)
    return to.path(dataset.ending)


def _pack_geodatabase(target: Path, archive: zipfile.ZipFile, dataset: Dataset, growth: Growth) -> None:
    """Write the tables into one file, uncompressed, so that GDAL reads any part of them at once."""
    with zipfile.ZipFile(target, "w") as packed:
        for name, entry in dataset.parts.items():
            with packed.open(f"{filegdb.FOLDER}/{name}", "w", force_zip64=True) as written:
                for piece in read_pieces(archive, entry):
                    growth.count(len(piece))
                    written.write(piece)
