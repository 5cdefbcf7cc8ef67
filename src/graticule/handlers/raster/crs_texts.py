"""Definitions of CRSs in rasters, checked before GDAL reads them: PROJ opens the files that they name."""

import re
from typing import Final

from graticule.handlers.findings import Rejected
from graticule.handlers.raster.validation_codes import Code, finding
from graticule.handlers.vector.sources.crs_texts import is_self_contained

_ATTRIBUTES: Final = re.compile(r"spatial_ref|crs_wkt|srid|esri_pe_string|proj4\w*", re.IGNORECASE)
_ENVI_CRS: Final = re.compile(rb"coordinate[ _]system[ _]string\s*=[\s{]*([^}]*)", re.IGNORECASE)
_PROJ_STRING: Final = re.compile(rb"\s*(?:\+|proj\s*=)", re.IGNORECASE)
_CODE_OF_PROJ: Final = re.compile(rb"\+init\s*=\s*(?:epsg|esri):\d+", re.IGNORECASE)


def check_crs_text(text: bytes, where: str) -> None:
    """Reject the definition of a CRS that refers to other files."""
    if not _is_harmless(text):
        what = "The CRS definition refers to other files or is too long."
        raise Rejected([finding(Code.REFERS_TO_OTHER_FILES, what, where)])


def is_crs_attribute(name: str) -> bool:
    """Return whether an attribute of a NetCDF or HDF5 file defines a CRS."""
    return _ATTRIBUTES.fullmatch(name) is not None


def check_envi_header(header: bytes) -> None:
    """Reject the header of an ENVI file whose CRS refers to other files; GDAL joins its lines."""
    if b"\0" in header:
        raise Rejected([finding(Code.CORRUPT, "The header is not a text.", ".hdr")])
    for found in _ENVI_CRS.finditer(header.replace(b"\r", b"").replace(b"\n", b"")):
        check_crs_text(found[1], ".hdr")


def _is_harmless(text: bytes) -> bool:
    """Return whether a CRS definition stands for itself; PROJ strings, which are not WKT, by their parameters."""
    if _PROJ_STRING.match(text):
        return is_self_contained(b"PROJ string " + _CODE_OF_PROJ.sub(b"", text))
    return is_self_contained(text)
