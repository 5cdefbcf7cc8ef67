"""Values that a source has as texts: which type they all have, and what they are in it."""

import json
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from graticule.handlers.vector.rejecting import Code, rejected

TEXT: Final = "text"
TIMESTAMP: Final = "timestamp"
TIMESTAMPTZ: Final = "timestamptz"
TYPES: Final[dict[str, pa.DataType]] = {  # the first that all values have is theirs
    "boolean": pa.bool_(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "date": pa.date32(),
    "time": pa.time64("us"),
    TIMESTAMPTZ: pa.timestamp("us", "UTC"),
    TIMESTAMP: pa.timestamp("us"),
    TEXT: pa.string(),
}
_MIXED: Final = "mixed"  # date-times with a zone and without: they remain texts
_TIME: Final = r"[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?"
_DATE: Final = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_ZONE: Final = r"(Z|[+-][0-9]{2}(:?[0-9]{2})?)"
# A code such as 00123 is no number, and what a double cannot hold exactly is none either.
_FORMS: Final = {
    "boolean": r"(?i)true|false",
    "bigint": r"-?(0|[1-9][0-9]{0,18})",
    "double": r"[+-]?((0|[1-9][0-9]{0,14})(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?",
    "date": _DATE,
    "time": _TIME,
    TIMESTAMPTZ: f"{_DATE}[T ]{_TIME}{_ZONE}",
    TIMESTAMP: f"{_DATE}[T ]{_TIME}",
    _MIXED: f"{_DATE}[T ]{_TIME}{_ZONE}?",
}
_ENDS: Final = (-(2**63), 2**63 - 1)
_LONG_NUMBER: Final = "[0-9.]{17}"
_LEAP_SECOND: Final = r"^(.{10}[T ][0-9]{2}:[0-9]{2}):60(\.[0-9]+)?"  # Arrow knows none
_SOME_DAY: Final = "1970-01-01"
_ZONED: Final = rf"[0-9]{_ZONE}$"


class TypeFinder:
    """Finds the type that all values of a column have, batch by batch."""

    def __init__(self) -> None:
        self._left = list(_FORMS)
        self._has_values = False

    def look(self, column: pa.Array) -> None:
        """Drop the types that these values do not have."""
        if column.null_count < len(column):
            self._has_values = True
            self._left = [name for name in self._left if _has_type(column, name)]

    @property
    def found(self) -> str:
        """The type; that of no values at all is text."""
        kind = next(iter(self._left), TEXT) if self._has_values else TEXT
        return TEXT if kind == _MIXED else kind

    @property
    def has_mixed_zones(self) -> bool:
        """Whether they are date-times of which some have a zone, and some have none."""
        return self._has_values and self._left == [_MIXED]


class ZoneFinder:
    """Finds out whether date-times have a zone: all, none or some."""

    def __init__(self) -> None:
        self._seen: set[bool] = set()

    def look(self, column: pa.Array) -> None:
        """Note which of them there are."""
        self._seen.update(pc.unique(pc.match_substring_regex(column, _ZONED)).drop_null().to_pylist())

    @property
    def found(self) -> str:
        """The type."""
        return zone_type(self._seen)


def zone_type(seen: set[bool]) -> str:
    """Give the type of date-times of which some have a zone, or have none: when both are seen, they remain texts."""
    return TEXT if len(seen) > 1 else TIMESTAMPTZ if True in seen else TIMESTAMP


def parsed(column: pa.Array, name: str, field: str) -> pa.Array:
    """Give texts as what they stand for."""
    try:
        return _cast(column, name)
    except pa.ArrowInvalid:
        raise rejected(Code.UNFIT_VALUE, f"A value is no {name}.", f"field {field}") from None


def without_cut_characters(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Leave out what is left of a character of UTF-8 that was cut at the end of a field of fixed length."""
    for place, field in enumerate(batch.schema):
        if pa.types.is_string(field.type) and not _is_valid(batch.column(place)):
            values = batch.column(place).cast(pa.binary()).to_pylist()
            texts = [None if value is None else value.decode(errors="ignore") for value in values]
            batch = batch.set_column(place, field, pa.array(texts, field.type))
    return batch


def has_raw_texts(batch: pa.RecordBatch) -> bool:
    """Return whether texts of a batch are not in UTF-8."""
    return not all(_is_valid(column) for column in batch.columns)


def with_decoded_texts(batch: pa.RecordBatch, encoding: str) -> pa.RecordBatch:
    """Decode texts that GDAL left as they are in the file."""
    for place, field in enumerate(batch.schema):
        if pa.types.is_string(field.type):
            values = batch.column(place).cast(pa.binary()).to_pylist()
            try:
                texts = [None if value is None else value.decode(encoding) for value in values]
            except UnicodeError:
                what = f"The texts are not all in {encoding}."
                raise rejected(Code.UNKNOWN_ENCODING, what, f"field {field.name}") from None
            batch = batch.set_column(place, field, pa.array(texts, field.type))
    return batch


def with_short_numbers(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Write numbers in JSON as they were: GDAL makes 0.10000000000000001 of 0.1."""
    for place, field in enumerate(batch.schema):
        if isinstance(field.type, pa.JsonType):
            texts = batch.column(place).storage
            is_long = pc.fill_null(pc.match_substring_regex(texts, _LONG_NUMBER), False)
            if pc.any(is_long).as_py():
                written = [_shortened(text) for text in texts.filter(is_long).to_pylist()]
                made = pc.replace_with_mask(texts, is_long, pa.array(written, texts.type))
                batch = batch.set_column(place, field, pa.ExtensionArray.from_storage(field.type, made))
    return batch


def check_whole_numbers(batch: pa.RecordBatch) -> None:
    """Reject numbers that 64 bits have no room for: GDAL makes the nearest of them of such."""
    for field, column in zip(batch.schema, batch.columns, strict=True):
        if pa.types.is_int64(field.type) and not set(pc.min_max(column).as_py().values()).isdisjoint(_ENDS):
            what = "A whole number is at the end of what 64 bits have room for, or beyond it."
            raise rejected(Code.UNFIT_VALUE, what, f"field {field.name}")


def _shortened(text: str) -> str:
    try:
        return json.dumps(json.loads(text), ensure_ascii=False)
    except (ValueError, RecursionError):
        return text


def _is_valid(column: pa.Array) -> bool:
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _has_type(column: pa.Array, name: str) -> bool:
    if not pc.all(pc.match_substring_regex(column, f"^({_FORMS[name]})$")).as_py():
        return False
    if name == _MIXED:
        return True
    try:
        _cast(column, name)
    except pa.ArrowInvalid:  # such as the 31st of February
        return False
    return True


def _cast(column: pa.Array, name: str) -> pa.Array:
    if name == "time":  # Arrow reads none but those of a day
        return pc.binary_join_element_wise(_SOME_DAY, column, "T").cast(TYPES[TIMESTAMP]).cast(TYPES[name])
    if name in {TIMESTAMP, TIMESTAMPTZ}:
        column = pc.replace_substring_regex(column, _LEAP_SECOND, r"\1:59")
    return column.cast(TYPES[name])
