"""The rasters that one file holds, and the one that is meant: variables, tables, pages, elements of messages."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from rasterio.io import DatasetReader

from graticule.core.validation import shortened
from graticule.handlers.findings import Rejected
from graticule.handlers.raster.file_kinds import GEOPACKAGE, GRIB, HDF5, JPEG, NETCDF, FileKind
from graticule.handlers.raster.geopackage_tables import list_raster_tables
from graticule.handlers.raster.opening import open_raster
from graticule.handlers.raster.source_file import file_of
from graticule.handlers.raster.validation_codes import Code, finding

MAX_CANDIDATES: Final = 500
MAX_INSPECTED: Final = 64  # candidates whose attributes are read
MAX_NAMED: Final = 20  # in a message
_MAX_NAME: Final = 64
# CF attributes whose value names variables that describe another one.
_REFERENCES: Final = ("coordinates", "bounds", "climatology", "grid_mapping", "ancillary_variables", "cell_measures")
_AUXILIARY: Final = re.compile(
    r"(?:lat|lon|latitude|longitude|[xy]c?|crs|spatial_ref|.*_(?:bnds|bounds|vertices))", re.IGNORECASE
)
_TIME_UNITS: Final = re.compile(r"(second|sec|minute|min|hour|hr|day)s?\s+since\s+(.+)|([smhd])\s+since\s+(.+)")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_CALENDARS: Final = frozenset({"standard", "gregorian", "proleptic_gregorian"})


@dataclass(frozen=True, slots=True)
class Candidate:
    """A raster of a file: its name for people, its name for GDAL, and its bands when they are not all."""

    name: str
    opened: str
    bands: tuple[int, ...] = ()


def choose_raster(dataset: DatasetReader, kind: FileKind, path: str, wanted: str | None) -> Candidate | None:
    """Return the raster that is meant; None for the dataset itself, all of it.

    `Rejected` when there are several and none is named, or none has that name.
    """
    candidates = list_candidates(dataset, kind, path)
    if wanted is not None and (found := _find(candidates or _name_itself(dataset, kind, path), wanted)):
        return found
    if wanted is None and _is_a_choice_already(dataset, kind):
        return None
    meant = _without_auxiliary(candidates, kind) if kind in {NETCDF, HDF5} else candidates
    if wanted is not None:
        raise _unknown(wanted, meant or _name_itself(dataset, kind, path))
    if len(meant) > 1:
        what = f"The file contains {len(meant)} rasters: {_list(meant)}."
        raise Rejected([finding(Code.SEVERAL_DATASETS, what, "variable")])
    return meant[0] if meant else None


def list_candidates(dataset: DatasetReader, kind: FileKind, path: str) -> list[Candidate]:
    """Return the rasters of a file that has several; none when it is one raster."""
    if kind is GRIB:
        elements = _elements(dataset, path)
        return elements if len({each.name.partition("@")[0] for each in elements}) > 1 else []
    listed = dataset.tags(ns="SUBDATASETS")
    opened = [listed[key] for key in listed if key.endswith("_NAME")]
    return [Candidate(_short_name(name, path), name) for name in opened[:MAX_CANDIDATES] if path in name]


def _is_a_choice_already(dataset: DatasetReader, kind: FileKind) -> bool:
    """Whether GDAL shows one raster beside the list: the only variable that is no coordinate, or a JPEG image."""
    return dataset.count > 0 and (kind is JPEG or dataset.driver == "netCDF")


def _short_name(opened: str, path: str) -> str:
    """Return what is left of GDAL's name without the file: NETCDF:"file":t2m, HDF5:"file"://a/b, GTIFF_DIR:2:file."""
    before, _, after = opened.partition(path)
    return after.strip(':"/') or before.strip(':"').rpartition(":")[2]


def _name_itself(dataset: DatasetReader, kind: FileKind, path: str) -> list[Candidate]:
    """Return the only raster of a file under its name, if it has one."""
    if kind is GRIB:
        return _elements(dataset, path)
    if kind is GEOPACKAGE:
        names = list_raster_tables(path)
    elif dataset.driver == "HDF5Image":
        from graticule.handlers.raster.hdf5_references import list_rasters  # noqa: PLC0415 - a heavy import

        names = list_rasters(file_of(path))
    else:
        names = [dataset.tags(1).get("NETCDF_VARNAME", "")] if dataset.count else []
    return [Candidate(name, path) for name in names if name]


def _find(candidates: Sequence[Candidate], wanted: str) -> Candidate | None:
    text = wanted.strip("/")
    by_name = [each for each in candidates if each.name == text]
    by_end = [each for each in candidates if each.name.rpartition("/")[2] == text]
    by_element = [each for each in candidates if each.name.partition("@")[0] == text]
    if by_name:
        return by_name[0]
    if len(by_end) == 1:
        return by_end[0]
    bands = tuple(sorted(band for each in by_element for band in each.bands))
    return Candidate(text, by_element[0].opened, bands) if bands else None


def _unknown(wanted: str, candidates: Sequence[Candidate]) -> Rejected:
    has = f"It has: {_list(candidates)}." if candidates else "The file is a single raster without a name."
    what = f"There is no raster '{shortened(wanted, _MAX_NAME)}'. {has}"
    return Rejected([finding(Code.UNKNOWN_VARIABLE, what, "variable")])


def _list(candidates: Sequence[Candidate]) -> str:
    names = ", ".join(shortened(each.name, _MAX_NAME) for each in candidates[:MAX_NAMED])
    more = len(candidates) - MAX_NAMED
    return f"{names} and {more} more" if more > 0 else names


def _without_auxiliary(candidates: list[Candidate], kind: FileKind) -> list[Candidate]:
    """Leave out coordinates, bounds, grid mappings and what else only describes other variables."""
    described: set[str] = set()
    for each in candidates[:MAX_INSPECTED] if len(candidates) > 1 else ():
        described |= _described_by(each, kind)
    names = [each.name.rpartition("/")[2] for each in candidates]
    is_auxiliary = [name in described or _AUXILIARY.fullmatch(name) is not None for name in names]
    return [each for each, is_left_out in zip(candidates, is_auxiliary, strict=True) if not is_left_out] or candidates


def _described_by(candidate: Candidate, kind: FileKind) -> set[str]:
    try:
        with open_raster(candidate.opened, kind) as dataset:
            tags = {**dataset.tags(), **(dataset.tags(1) if dataset.count else {})}
    except Rejected:
        return set()
    values = [value for key, value in tags.items() if key.rpartition("#")[2] in _REFERENCES]
    return {name for value in values for name in value.split()}


def _elements(dataset: DatasetReader, path: str) -> list[Candidate]:
    """Return the elements of GRIB messages, such as TMP; with their levels where they have several."""
    found: dict[tuple[str, str], list[int]] = {}
    for band in dataset.indexes:
        tags = dataset.tags(band)
        found.setdefault((tags.get("GRIB_ELEMENT", "unknown"), tags.get("GRIB_SHORT_NAME", "")), []).append(band)
    elements = [element for element, _ in found]
    return [
        Candidate(element if elements.count(element) == 1 else f"{element}@{level}", path, tuple(bands))
        for (element, level), bands in list(found.items())[:MAX_CANDIDATES]
    ]


# Times


def select_time(dataset: DatasetReader, bands: Sequence[int], wanted: str) -> list[int]:
    """Return the bands of one step; `Rejected` when there is none."""
    times = [band_time(dataset, band) for band in bands]
    steps: list[datetime | int] = list(dict.fromkeys(time or band for band, time in zip(bands, times, strict=True)))
    if wanted.isdecimal() and int(wanted) <= len(steps):
        chosen = steps[int(wanted) - 1 : int(wanted)] if int(wanted) else []
    else:
        text = wanted.strip().removesuffix("Z").replace(" ", "T")
        chosen = [step for step in steps if isinstance(step, datetime) and _iso(step).startswith(text)]
    if len(chosen) != 1:
        name = f"'{shortened(wanted, _MAX_NAME)}'"
        problem = f"{name} matches {len(chosen)} time steps." if chosen else f"No time step matches {name}."
        what = f"{problem} {_describe_steps(steps)}"
        raise Rejected([finding(Code.UNKNOWN_TIME, what, "time")])
    return [band for band, time in zip(bands, times, strict=True) if (time or band) == chosen[0]]


def band_time(dataset: DatasetReader, band: int) -> datetime | None:
    """Return the time of a band, if the file says it in a way that is understood."""
    tags = dataset.tags(band)
    if tags.get("GRIB_VALID_TIME", "").split(" ")[0].isdecimal():
        return _after(datetime(1970, 1, 1, tzinfo=UTC), float(tags["GRIB_VALID_TIME"].split(" ")[0]))
    said = dataset.tags()
    for key, value in tags.items():
        dimension = key.removeprefix("NETCDF_DIM_")
        if dimension != key and said.get(f"{dimension}#calendar", "standard").lower() in _CALENDARS:
            found = parse_cf_time(value, said.get(f"{dimension}#units", ""))
            if found is not None:
                return found
    return None


def parse_cf_time(value: str, units: str) -> datetime | None:
    """Return the time of a value such as 36 in units such as `hours since 1900-01-01`; None for others."""
    found = _TIME_UNITS.fullmatch(units.strip().lower())
    if found is None:
        return None
    unit, since = (found[1] or found[3])[0], (found[2] or found[4]).removesuffix("utc").strip().upper()
    try:
        start = datetime.fromisoformat(re.sub(r"(?<!\d)(\d)(?!\d)", r"0\1", since.partition(".")[0]))
        return _after(start if start.tzinfo else start.replace(tzinfo=UTC), float(value) * _SECONDS[unit])
    except ValueError:
        return None


def _after(start: datetime, seconds: float) -> datetime | None:
    try:
        return start + timedelta(seconds=round(seconds))
    except OverflowError:
        return None


def _iso(time: datetime) -> str:
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _describe_steps(steps: Sequence[datetime | int]) -> str:
    known = [_iso(step) for step in steps if isinstance(step, datetime)]
    span = f", from {known[0]} to {known[-1]}" if known else ""
    return f"It has {len(steps)} steps{span}: give a step number, starting at 1, or a time."
