"""What in an HDF5 file leads out of it.

HDF5 follows external links, external storage and virtual datasets to any file of this machine: GDAL would show its
bytes as pixels. So a file that has one of them is not opened by GDAL at all.
"""

from collections.abc import Iterator
from typing import Any, BinaryIO, Final

import h5py
import numpy as np

from graticule.core.validation import shortened
from graticule.handlers.findings import Rejected
from graticule.handlers.raster.crs_texts import check_crs_text, is_crs_attribute
from graticule.handlers.raster.source_file import SourceFile, open_stream
from graticule.handlers.raster.validation_codes import Code, finding

MOST_OBJECTS: Final = 10_000
LONGEST_SIDE: Final = 10_000_000


class TooMuch(ValueError):
    """There are more objects than a raster needs, or longer ones: GDAL reads all axes when it opens a file."""


def check_references(stream: BinaryIO) -> None:
    """Reject a file that leads to another one."""
    try:
        with h5py.File(stream, "r") as file:
            _check_attributes(file["/"])
            for group, name in _links(file):
                _check_link(group, name)
    except (OSError, KeyError, RuntimeError, ValueError):
        raise Rejected([finding(Code.CORRUPT, "Its objects cannot be listed.")]) from None


def list_rasters(source: SourceFile) -> list[str]:
    """Return the paths of the datasets that may be rasters, of a file that was checked."""
    with open_stream(source) as stream, h5py.File(stream, "r") as file:
        items = (group.get(name) for group, name in _links(file) if _is_hard(group, name))
        return [item.name.strip("/") for item in items if isinstance(item, h5py.Dataset) and item.ndim > 1]


def _is_hard(group: Any, name: str) -> bool:
    return isinstance(group.get(name, getlink=True), h5py.HardLink)


def _check_link(group: Any, name: str) -> None:
    link = group.get(name, getlink=True)
    # A soft link leads to what a hard one names too.
    item = group.get(name) if _is_hard(group, name) else None
    if item is not None:
        _check_attributes(item)
    if isinstance(link, h5py.ExternalLink) or (isinstance(item, h5py.Dataset) and _is_elsewhere(item)):
        path = shortened(f"{group.name.rstrip('/')}/{name}", 200)
        what = f"The data of its object '{path}' lie in another file."
        raise Rejected([finding(Code.REFERS_TO_OTHER_FILES, what, "objects")])


def _is_elsewhere(dataset: Any) -> bool:
    if max(dataset.shape or (0,)) > LONGEST_SIDE:
        raise TooMuch(f"A side is longer than {LONGEST_SIDE}.")
    return bool(dataset.external or dataset.is_virtual)


def _check_attributes(item: Any) -> None:
    for name in item.attrs:
        if is_crs_attribute(name):
            check_crs_text(b"".join(_texts(item.attrs[name])), f"attribute {name}")


def _texts(value: Any) -> Iterator[bytes]:
    for each in np.ravel(value).tolist():
        if isinstance(each, str | bytes):
            yield each.encode(errors="surrogateescape") if isinstance(each, str) else each


def _links(file: Any) -> Iterator[tuple[Any, str]]:
    """Go through the links of all groups, each group once: hard links may lead in circles."""
    waiting, known, seen = [file["/"]], set(), 0
    while waiting:
        group = waiting.pop()
        for name in group:
            if (seen := seen + 1) > MOST_OBJECTS:
                raise TooMuch(f"There are more than {MOST_OBJECTS} objects.")
            yield group, name
            inner = group[name] if _is_hard(group, name) else None
            if isinstance(inner, h5py.Group) and (address := h5py.h5o.get_info(inner.id).addr) not in known:
                known.add(address)
                waiting.append(inner)
