"""Rows in the binary format of PostgreSQL's COPY."""

from typing import Final

import numpy as np
import pgpq
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pgpq import encoders, schema

from graticule.handlers.vector.described import Column, Source
from graticule.handlers.vector.preparing.attributes import ARROW_TYPES
from graticule.handlers.vector.preparing.columns import FEATURE_ID, GEOMETRY
from graticule.handlers.vector.preparing.wkb import Flags, Integers

_BASE: Final = 10_000  # of the digits of a numeric
_WHOLE_DIGITS, _DECIMAL_DIGITS = 5, 5  # of our decimals, which have 20 decimal ones before the point and 18 after it
_NEGATIVE: Final = 0x4000


def column_order(source: Source) -> list[str]:
    """Give the columns in the order of the rows: for COPY has none of its own."""
    return [FEATURE_ID, *(column.name for column in source.columns), GEOMETRY]


class CopyWriter:
    """Writes batches of rows: the number of the feature, its columns, and its geometry as WKB.

    The WKB needs no SRID, for PostGIS takes it from the type of the column.
    """

    def __init__(self, columns: list[Column]) -> None:
        self._numerics = [place for place, column in enumerate(columns, 1) if column.type == "numeric"]
        plain = [pa.field(column.name, _given(column)) for column in columns]
        self._schema = pa.schema([pa.field(FEATURE_ID, pa.int64()), *plain, pa.field(GEOMETRY, pa.binary())])
        made = {field.name: pgpq.ArrowToPostgresBinaryEncoder.infer_encoder(field) for field in self._schema}
        for column, field in zip(columns, plain, strict=True):
            if column.type == "jsonb":
                made[column.name] = encoders.StringEncoderBuilder.new_with_output(field, schema.Jsonb())
        self._encoder = pgpq.ArrowToPostgresBinaryEncoder.new_with_encoders(self._schema, made)

    def begin(self) -> bytes:
        """Give what stands before the rows."""
        return self._encoder.write_header()

    def rows(self, batch: pa.RecordBatch) -> bytes:
        """Give the rows of a batch."""
        columns = batch.columns
        for place in self._numerics:
            columns[place] = _numerics(columns[place])
        return self._encoder.write_batch(pa.RecordBatch.from_arrays(columns, schema=self._schema))

    def end(self) -> bytes:
        """Give what stands after the rows."""
        return self._encoder.finish()


def _given(column: Column) -> pa.DataType:
    """Give the type of a column as pgpq gets it."""
    return pa.binary() if column.type == "numeric" else ARROW_TYPES[column.type]


def _numerics(column: pa.Array) -> pa.Array:
    """Give numbers as PostgreSQL receives them; pgpq would keep the zeros at their end, and one by one takes long."""
    is_negative, digits = _digits(column)
    scales = _decimal_counts(digits[:, _WHOLE_DIGITS:])
    used = np.flatnonzero(digits.any(axis=0))  # PostgreSQL removes what other zeros are left
    begin, end = (min(used[0], _WHOLE_DIGITS - 1), max(used[-1] + 1, _WHOLE_DIGITS)) if len(used) else (0, 1)
    images = np.empty((len(column), 4 + end - begin), ">u2")
    images[:, 0], images[:, 1] = end - begin, _WHOLE_DIGITS - 1 - begin
    images[:, 2], images[:, 3] = np.where(is_negative, _NEGATIVE, 0), scales
    images[:, 4:] = digits[:, begin:end]
    offsets = np.arange(len(column) + 1, dtype=np.int32) * (2 * images.shape[1])
    made = pa.Array.from_buffers(pa.binary(), len(column), [None, pa.py_buffer(offsets), pa.py_buffer(images)])
    return pc.if_else(column.is_valid(), made, None) if column.null_count else made


def _digits(column: pa.Array) -> tuple[Flags, Integers]:
    """Tell which numbers are negative, and give the digits of all: those before the point, then those after it."""
    buffer = column.buffers()[1]
    halves = np.frombuffer(buffer, "<u8", 2 * len(column), 16 * column.offset).reshape(-1, 2)
    is_negative = halves[:, 1] >> 63 > 0
    low, high = (np.where(is_negative, ~half, half) for half in halves.T)
    low += is_negative
    high += is_negative & (low == 0)
    parts = np.column_stack([low, high]).view("<u4").T[::-1]
    rest = list(np.ascontiguousarray(parts, np.uint64))
    digits = np.empty((len(column), _WHOLE_DIGITS + _DECIMAL_DIGITS), np.int64)
    digits[:, -1] = _remainder(rest, 100).astype(np.int64) * 100  # the last digit has two decimals
    for place in range(digits.shape[1] - 3, 0, -2):
        digits[:, place], digits[:, place + 1] = np.divmod(_remainder(rest, _BASE**2).astype(np.int64), _BASE)
    digits[:, 0] = _remainder(rest, _BASE)
    return is_negative, digits


def _remainder(parts: list[NDArray[np.uint64]], divisor: int) -> NDArray[np.uint64]:
    """Divide numbers of several parts of 32 bits each, and give what remains."""
    remainder = np.zeros_like(parts[0])
    for place, part in enumerate(parts):
        parts[place], remainder = np.divmod((remainder << 32) | part, np.uint64(divisor))
    return remainder


def _decimal_counts(digits: Integers) -> Integers:
    """Tell how many decimals numbers have, of the digits after their points."""
    counts = np.zeros(len(digits), np.int64)
    for place, digit in enumerate(digits.T):
        zeros = sum((digit % power == 0).astype(np.int64) for power in (10, 100, 1000))
        counts = np.where(digit > 0, 4 * (place + 1) - zeros, counts)
    return counts
