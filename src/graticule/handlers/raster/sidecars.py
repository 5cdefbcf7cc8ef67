"""What the files beside a raster say of it. They are parsed here: GDAL would follow what they name to other files."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import isfinite
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree as ET

from affine import Affine
from rasterio.control import GroundControlPoint
from rasterio.crs import CRS
from rasterio.io import DatasetReader

from graticule.handlers.findings import Rejected
from graticule.handlers.raster.crs_texts import check_crs_text
from graticule.handlers.raster.file_kinds import WORLD_FILE_ENDINGS
from graticule.handlers.raster.nodata import Number, parse_number
from graticule.handlers.raster.opening import GDAL_ERRORS
from graticule.handlers.raster.validation_codes import Code, finding
from graticule.handlers.vector.sources.crs_texts import code_in_wkt, is_self_contained

MAX_BYTES: Final = 4 * 1024 * 1024
_DIGITS: Final = re.compile(r"[-+]?(?:\d+[.,]?\d*|[.,]\d+)(?:[eE][-+]?\d+)?")
_CODE: Final = re.compile(r"(\w+):(\w+)", re.ASCII)


@dataclass(frozen=True, slots=True)
class BandNotes:
    """What is said of a band."""

    nodata: Number | None = None
    scale: float | None = None
    offset: float | None = None
    unit: str | None = None
    description: str | None = None


@dataclass(frozen=True, slots=True)
class Placement:
    """What the files beside a raster say of it: an .aux.xml replaces what it says itself, the others complete it."""

    crs: CRS | None = None
    transform: Affine | None = None
    gcps: tuple[GroundControlPoint, ...] = ()
    gcp_crs: CRS | None = None
    bands: dict[int, BandNotes] = field(default_factory=dict)
    prj_crs: CRS | None = None
    world_transform: Affine | None = None


def read_sidecars(files: dict[str, Path], folder: Path, *, with_crs: bool) -> Placement:
    """Read world file, .prj and .aux.xml, by their endings; their CRS only if nobody has given another."""
    said = Placement()
    if ".aux.xml" in files:
        said = parse_aux_xml(_bytes(files[".aux.xml"], ".aux.xml"), with_crs=with_crs)
    return replace(
        said,
        prj_crs=read_prj(_bytes(files[".prj"], ".prj"), folder) if with_crs and ".prj" in files else None,
        world_transform=next(
            (parse_world_file(_text(files[each], each)) for each in WORLD_FILE_ENDINGS if each in files), None
        ),
    )


def parse_world_file(text: str) -> Affine:
    """Return the transform of six lines: sizes and rotations of a pixel, and the centre of the first one."""
    lines = text.split()[:6]
    if len(lines) < 6 or not all(map(_DIGITS.fullmatch, lines)):
        raise _corrupt("The world file does not have six numbers.", "world file")
    a, d, b, e, x, y = (float(line.replace(",", ".")) for line in lines)
    if not all(map(isfinite, (a, b, d, e, x, y))):
        raise _corrupt("A number of the world file is not finite.", "world file")
    return Affine(a, b, x - a / 2 - b / 2, d, e, y - d / 2 - e / 2)


def read_prj(content: bytes, folder: Path) -> CRS | None:
    """Return the CRS of a .prj file in Esri's WKT, or in the older form of ArcInfo, which only GDAL's drivers read."""

    def read() -> CRS | None:
        (folder / "prj.asc").write_text("ncols 1\nnrows 1\nxllcorner 0\nyllcorner 0\ncellsize 1\n0\n")
        (folder / "prj.prj").write_bytes(content)
        with DatasetReader(str(folder / "prj.asc"), driver=["AAIGrid"]) as dataset:
            return dataset.crs or None

    return _read_crs(content, ".prj", read)


def parse_aux_xml(content: bytes, *, with_crs: bool = True) -> Placement:
    """Return what is known here of GDAL's own file: of the rest, some names other files."""
    if b"\0" in content or b"<!" in content.replace(b"<!--", b""):  # UTF-16 would hide declarations
        raise _corrupt("It has declarations, which no .aux.xml needs.", ".aux.xml")
    try:
        root = ET.fromstring(content)  # noqa: S314 - without declarations there are no entities
        points = root.find("GCPList")
        return Placement(
            _crs(root.findtext("SRS")) if with_crs else None,
            _geotransform(root.findtext("GeoTransform")),
            tuple(_points(points)),
            _crs(points.get("Projection")) if with_crs and points is not None else None,
            {int(band.get("band", "1")): _band(band) for band in root.findall("PAMRasterBand")},
        )
    except (ET.ParseError, ValueError, KeyError):
        raise _corrupt("It cannot be read.", ".aux.xml") from None


def _crs(given: str | None) -> CRS | None:
    text = (given or "").strip()

    def parse() -> CRS:
        code = _CODE.fullmatch(text)
        return CRS.from_authority(*code.groups()) if code else CRS.from_wkt(text)

    return _read_crs(text.encode(), ".aux.xml", parse) if text else None


def _read_crs(text: bytes, where: str, parse: Callable[[], CRS | None]) -> CRS | None:
    """Parse a definition; one that refers to other files is replaced by that of its code, if it has one."""
    code = None if is_self_contained(text) else code_in_wkt(text)
    if code is None:
        check_crs_text(text, where)
    try:
        return parse() if code is None else CRS.from_authority(*code.split(":"))
    except GDAL_ERRORS:
        raise _corrupt("The CRS cannot be read.", where) from None


def _geotransform(text: str | None) -> Affine | None:
    if not text:
        return None
    numbers = [float(each) for each in text.split(",")]
    return Affine.from_gdal(*numbers) if len(numbers) == 6 and all(map(isfinite, numbers)) else None


def _points(given: Any) -> list[GroundControlPoint]:
    found = [] if given is None else given.findall("GCP")
    return [
        GroundControlPoint(
            row=float(each.get("Line")), col=float(each.get("Pixel")), x=float(each.get("X")), y=float(each.get("Y"))
        )
        for each in found
    ]


def _band(given: Any) -> BandNotes:
    return BandNotes(
        parse_number(nodata) if (nodata := given.findtext("NoDataValue")) else None,
        _number(given.findtext("Scale")),
        _number(given.findtext("Offset")),
        given.findtext("UnitType"),
        given.findtext("Description"),
    )


def _number(text: str | None) -> float | None:
    return float(text) if text else None


def _bytes(path: Path, where: str) -> bytes:
    if path.stat().st_size > MAX_BYTES:
        raise _corrupt("It is too long for such a file.", where)
    return path.read_bytes()


def _text(path: Path, where: str) -> str:
    return _bytes(path, where).decode("ascii", errors="replace")


def _corrupt(what: str, where: str) -> Rejected:
    return Rejected([finding(Code.CORRUPT, what, where)])
