"""Geometries as Arrow has them (GeoArrow, and the native encodings of GeoParquet 1.1), written as WKB.

All geometries of a batch are written at once: the size of each part is known from the lengths of the lists, and so is
the place of each of its bytes.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from graticule.handlers.vector.preparing.wkb import code_of

# Of each encoding the types of WKB from the whole geometry down to its vertices: 0 is a ring, which has only a count.
LEVELS: Final[dict[str, tuple[int, ...]]] = {
    "point": (1,),
    "linestring": (2,),
    "polygon": (3, 0),
    "multipoint": (4, 1),
    "multilinestring": (5, 2),
    "multipolygon": (6, 3, 0),
}
_POINT, _RING = 1, 0
_AXES: Final = ("x", "y", "z", "m")
_BYTES: Final = 4  # of a count

Integers = NDArray[np.int64]


class UnfitType(ValueError):
    """A type of Arrow that is not that of an encoding."""


def write_wkb(column: pa.Array, encoding: str) -> pa.Array:
    """Write a column in an encoding as WKB, null where it is null; `UnfitType` if the column has another type."""
    levels = LEVELS[encoding]
    lists, vertices = _unnested(column, len(levels) - (levels[-1] == _POINT))
    axes, coordinates = _coordinates(vertices)
    layout = _Layout(levels, [_lengths(each) for each in lists], axes)
    data, sizes = layout.written(coordinates)
    is_null = column.is_null().to_numpy(zero_copy_only=False)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    made = pa.Array.from_buffers(pa.large_binary(), len(column), [None, pa.py_buffer(offsets), pa.py_buffer(data)])
    return pc.if_else(pa.array(is_null), None, made) if is_null.any() else made


def has_type_of(kind: pa.DataType, encoding: str) -> bool:
    """Return whether a column of this type can have an encoding."""
    try:
        write_wkb(pa.array([], kind), encoding)
    except UnfitType:
        return False
    return True


def _unnested(column: pa.Array, depth: int) -> tuple[list[pa.Array], pa.Array]:
    """Return the lists at each depth, and the vertices in the innermost."""
    lists = []
    for _ in range(depth):
        if not (pa.types.is_list(column.type) or pa.types.is_large_list(column.type)):
            raise UnfitType(str(column.type))
        lists.append(column)
        column = column.flatten()  # without what is null
    return lists, column


def _lengths(lists: pa.Array) -> Integers:
    lengths: Integers = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    return lengths


def _coordinates(vertices: pa.Array) -> tuple[str, NDArray[np.float64]]:
    """Return the axes of vertices, and their coordinates: of structs of numbers, or of lists of fixed length."""
    kind = vertices.type
    if pa.types.is_struct(kind):
        names = [field.name for field in kind]
        columns = [pc.struct_field(vertices, name) for name in names]
    elif pa.types.is_fixed_size_list(kind):
        names = list(kind.value_field.name if set(kind.value_field.name) <= set(_AXES) else "xyzm"[: kind.list_size])
        flat = vertices.values.slice(vertices.offset * kind.list_size, len(vertices) * kind.list_size)
        columns = [flat.take(pa.array(np.arange(place, len(flat), kind.list_size))) for place in range(kind.list_size)]
    else:
        raise UnfitType(str(kind))
    is_known = "".join(names) in {"xy", "xyz", "xym", "xyzm"} and len(names) == len(columns)
    if not is_known or not all(pa.types.is_floating(each.type) for each in columns):
        raise UnfitType(str(kind))
    numbers = [pc.fill_null(each.cast(pa.float64()), np.nan).to_numpy(zero_copy_only=False) for each in columns]
    return "".join(names), np.column_stack(numbers)


@dataclass(frozen=True, slots=True)
class _Layout:
    """Where the parts of geometries are in their WKB."""

    levels: tuple[int, ...]
    lengths: list[Integers]  # of the lists at each level
    axes: str

    def written(self, coordinates: NDArray[np.float64]) -> tuple[NDArray[np.uint8], Integers]:
        """Write all geometries, one after the other, and return their bytes and the size of each."""
        sizes = self._sizes(len(coordinates))
        data = np.zeros(int(sizes[0].sum()), np.uint8)
        starts = np.cumsum(sizes[0]) - sizes[0]
        for level, kind in enumerate(self.levels):
            self._write_head(data, starts, level, kind)
            starts = starts + self._head_bytes(kind)
            if level < len(self.lengths):
                below = sizes[level + 1] if level + 1 < len(sizes) else self._vertices(len(coordinates))
                starts = _starts_of_parts(starts, self.lengths[level], below)
        stride = 8 * len(self.axes)
        values = np.ascontiguousarray(coordinates, "<f8").view(np.uint8).reshape(-1, stride)
        if len(values):
            target = np.ndarray((len(data) - stride + 1,), f"V{stride}", data, strides=(1,))
            target[starts] = values.view(f"V{stride}").ravel()
        return data, sizes[0]

    def _sizes(self, vertices: int) -> list[Integers]:
        """Return the bytes of the parts at each level."""
        below = self._vertices(vertices)
        sizes: list[Integers] = []
        for level in reversed(range(len(self.levels))):
            if level < len(self.lengths):
                below = _sums(below, self.lengths[level])
            below = below + self._head_bytes(self.levels[level])
            sizes.insert(0, below)
        return sizes

    def _vertices(self, count: int) -> Integers:
        return np.full(count, 8 * len(self.axes), np.int64)

    @staticmethod
    def _head_bytes(kind: int) -> int:
        """Return the bytes before the parts: the order of bytes, the type, and the count that all but a point have."""
        return (0 if kind == _RING else 1 + _BYTES) + (0 if kind == _POINT else _BYTES)

    def _write_head(self, data: NDArray[np.uint8], starts: Integers, level: int, kind: int) -> None:
        if kind != _RING:
            data[starts] = 1
            code = code_of(kind, has_z="z" in self.axes, has_m="m" in self.axes)
            _write_numbers(data, starts + 1, np.full(len(starts), code))
        if kind != _POINT:
            _write_numbers(data, starts + (0 if kind == _RING else 1 + _BYTES), self.lengths[level])


def _write_numbers(data: NDArray[np.uint8], at: Integers, numbers: Any) -> None:
    parts = np.asarray(numbers).astype("<u4").view(np.uint8).reshape(-1, _BYTES)
    for place in range(_BYTES):
        data[at + place] = parts[:, place]


def _sums(values: Integers, lengths: Integers) -> Integers:
    """Sum runs of values of these lengths."""
    ends = np.cumsum(lengths)
    total = np.concatenate([[0], np.cumsum(values)])
    sums: Integers = total[ends] - total[ends - lengths]
    return sums


def _starts_of_parts(starts: Integers, lengths: Integers, sizes: Integers) -> Integers:
    """Return where each part begins: after those before it in the same whole."""
    before = np.cumsum(sizes) - sizes
    first = np.repeat(np.cumsum(lengths) - lengths, lengths)
    begun: Integers = np.repeat(starts, lengths) + before - before[first] if len(sizes) else before
    return begun
