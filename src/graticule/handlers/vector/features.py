"""Features on their way from a file to a table: reprojected, of several parts each, written as COPY reads them.

Imports GDAL: only for where a handler runs.
"""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyogrio.raw
import shapely
from pyogrio.errors import DataLayerError, DataSourceError
from pyproj import CRS, Transformer
from pyproj.exceptions import ProjError

from graticule.handlers.vector.columns import GEOMETRY, column_names
from graticule.handlers.vector.ogr import BATCH_BYTES, OPTIONS, check_opened_as_it_is
from graticule.handlers.vector.rejecting import Code, rejected
from graticule.handlers.vector.source import Kind

BATCH_ROWS: Final = 10_000
MULTI: Final = {"Point": "MultiPoint", "LineString": "MultiLineString", "Polygon": "MultiPolygon"}
_PROMOTED: Final[dict[int, Callable[..., Any]]] = {
    0: shapely.multipoints,
    1: shapely.multilinestrings,
    3: shapely.multipolygons,
}
# The first test that fits decides: the type of the column.
_TYPES: Final[tuple[tuple[Callable[[pa.DataType], bool], str], ...]] = (
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_uint64, "numeric"),
    (lambda kind: pa.types.is_int64(kind) or pa.types.is_uint32(kind), "bigint"),
    (pa.types.is_integer, "integer"),
    (pa.types.is_floating, "double precision"),
    (pa.types.is_decimal, "numeric"),
    (pa.types.is_date, "date"),
    (pa.types.is_time, "time"),
    (lambda kind: pa.types.is_timestamp(kind) and kind.tz is not None, "timestamptz"),
    (pa.types.is_timestamp, "timestamp"),
    (lambda kind: pa.types.is_binary(kind) or pa.types.is_large_binary(kind), "bytea"),
    (pa.types.is_nested, "jsonb"),
)
_NULL: Final = "\\N"
# PostgreSQL has no character NUL; the others part values and rows, or lead to such.
_ESCAPES: Final = (("\0", ""), ("\\", "\\\\"), ("\t", "\\t"), ("\n", "\\n"), ("\r", "\\r"))
_EPSG: Final = re.compile(r"EPSG:[0-9]{1,6}")


class FeatureReader:
    """Reads a layer batch by batch."""

    def __init__(self, file: str, kind: Kind, layer: str, target: CRS) -> None:
        check_opened_as_it_is(file)
        self._opening: AbstractContextManager[Any] = pyogrio.raw.open_arrow(
            file, layer=layer, use_pyarrow=True, batch_size=BATCH_ROWS, **OPTIONS.get(kind, {})
        )
        self._target = target

    def __enter__(self) -> Self:
        try:
            meta, self._batches = self._opening.__enter__()
        except (DataSourceError, DataLayerError) as error:
            raise rejected(Code.CORRUPT, "The file cannot be read.") from error
        self._reproject = _reprojection(CRS.from_user_input(meta["crs"]), self._target)
        self._several, self._has_z = _column_type(str(meta["geometry_type"]))
        fields = [field for field in self._batches.schema if not _is_geometry(field, meta["geometry_name"])]
        self._geometry = next(name for name in self._batches.schema.names if name not in {each.name for each in fields})
        self._names = column_names([field.name for field in fields])
        self._kinds = {field.name: _kind(field.type) for field in fields}
        return self

    def __exit__(self, *_: object) -> None:
        self._opening.__exit__(None, None, None)

    @property
    def columns(self) -> dict[str, str]:
        """The columns of the table, with their types; the geometry is the last."""
        plain = {self._names[field]: kind for field, kind in self._kinds.items()}
        return {**plain, GEOMETRY: f"geometry({self._several}{'Z' if self._has_z else ''}, {self.srid})"}

    @property
    def srid(self) -> int:
        """The number of the table's projection."""
        return int(self._target.to_epsg() or 0)

    def batches(self) -> Iterator[tuple[int, bytes]]:
        """Give the rows as the text that COPY reads, in batches, each with the number of its rows."""
        try:
            for batch in self._batches:
                yield batch.num_rows, self._rows(batch)
        except pa.ArrowMemoryError:
            what = f"A feature has more than {BATCH_BYTES // 1024**2} MiB."
            raise rejected(Code.TOO_LARGE_FEATURE, what) from None
        except (DataSourceError, DataLayerError, pa.ArrowException, OSError, shapely.errors.GEOSException) as error:
            raise rejected(Code.CORRUPT, "The features cannot be read to the end.") from error

    def _rows(self, batch: pa.RecordBatch) -> bytes:
        columns = [_texts(batch.column(field), kind) for field, kind in self._kinds.items()]
        columns.append(self._prepared(batch.column(self._geometry)))
        lines = pc.binary_join_element_wise(
            *columns, pa.scalar("\t", pa.large_string()), null_handling="replace", null_replacement=_NULL
        )
        return "".join(f"{line}\n" for line in lines.to_pylist()).encode()

    def _prepared(self, column: pa.Array) -> pa.Array:
        """Give geometries as the database reads them: reprojected, of several parts, with the projection's number."""
        given = shapely.from_wkb(column.to_numpy(zero_copy_only=False))
        geometry = shapely.force_3d(given) if self._has_z else shapely.force_2d(given)
        if self._reproject is not None:
            geometry = shapely.transform(geometry, self._reproject, include_z=self._has_z, interleaved=False)
        several = shapely.set_srid(_promoted(geometry), self.srid)
        return pa.array(shapely.to_wkb(several, hex=True, include_srid=True).tolist(), pa.large_string())


def target_crs(name: str) -> CRS:
    """Give the projection of the table, which is one of the EPSG's for maps."""
    try:
        crs = CRS.from_user_input(name) if _EPSG.fullmatch(name) else None
    except ProjError:
        crs = None
    if crs is None or crs.to_epsg() is None or not (crs.is_projected or crs.is_geographic) or crs.is_vertical:
        raise rejected(Code.UNKNOWN_TARGET_CRS, f"The target_crs {name[:100]!r} is not one.", "target_crs")
    return crs


def _reprojection(source: CRS, target: CRS) -> Callable[..., Any] | None:
    """Give what moves coordinates to the target, or None when they are there; x is always first."""
    if source.equals(target, ignore_axis_order=True):
        return None
    transform: Callable[..., Any] = Transformer.from_crs(source, target, always_xy=True).transform
    return transform


def _column_type(layer: str) -> tuple[str, bool]:
    """Give the type of a layer's column, and whether it has heights; a layer of no one type may hold all."""
    plain = layer.removeprefix("2.5D ").removeprefix("3D ").removesuffix(" Z")
    return MULTI.get(plain, plain if plain in MULTI.values() else "Geometry"), plain != layer


def _is_geometry(field: pa.Field, name: str) -> bool:
    return field.name == (name or "wkb_geometry") and (field.metadata or {}).get(b"ARROW:extension:name") is not None


def _kind(arrow: pa.DataType) -> str:
    return next((kind for fits, kind in _TYPES if fits(arrow)), "text")


def _texts(column: pa.Array, kind: str) -> pa.Array:
    """Write the values of a column as COPY reads them."""
    if kind == "jsonb":
        return _escaped(_written(column, lambda value: json.dumps(value, default=str)))
    if kind == "bytea":
        return _escaped(_written(column, lambda value: f"\\x{value.hex()}"))
    if pa.types.is_timestamp(column.type) and column.type.tz is not None:
        return column.cast(pa.timestamp(column.type.unit, "UTC")).cast(pa.large_string())
    if pa.types.is_floating(column.type):  # as it is, and not as the shortest number of its own precision
        return column.cast(pa.float64()).cast(pa.large_string())
    if kind == "text":
        return _escaped(_in_utf8(column).cast(pa.large_string()))
    return column.cast(pa.large_string())


def _written(column: pa.Array, write: Callable[[Any], str]) -> pa.Array:
    texts = [None if value is None else write(value) for value in column.to_pylist()]
    return pa.array(texts, pa.large_string())


def _in_utf8(column: pa.Array) -> pa.Array:
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        raise rejected(Code.NOT_UTF8, "A text of the features is not in UTF-8.") from None
    return column


def _escaped(column: pa.Array) -> pa.Array:
    for character, written in _ESCAPES:
        column = pc.replace_substring(column, character, written)
    return column


def _promoted(geometry: Any) -> Any:
    """Make of each single part a geometry of several parts; what has several stays as it is."""
    promoted = geometry.copy()
    kinds = shapely.get_type_id(geometry)
    for kind, make in _PROMOTED.items():
        (chosen,) = np.nonzero(kinds == kind)
        if len(chosen):
            promoted[chosen] = make(geometry[chosen], indices=np.arange(len(chosen)))
    return promoted
