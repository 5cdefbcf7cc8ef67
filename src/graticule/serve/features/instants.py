"""Dates and times that a caller gives."""

import re
from datetime import UTC, date, datetime, time
from typing import Final

from graticule.serve.features.limits import FilterError

_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIMESTAMP: Final = re.compile(_DATE.pattern + r"T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?(Z|[+-][0-9]{2}:[0-9]{2})")
_OPEN: Final = frozenset({"..", ""})

Period = tuple[datetime, datetime]  # its first and its last moment, in UTC and without saying so


def read_date(text: str) -> Period:
    """Read a day: from its first microsecond to its last."""
    try:
        day = date.fromisoformat(text) if _DATE.fullmatch(text) else None
    except ValueError:
        day = None
    if day is None:
        raise FilterError(f"{text[:40]!r} is no date like 2024-12-31.")
    return datetime.combine(day, time.min), datetime.combine(day, time.max)


def read_timestamp(text: str) -> datetime:
    """Read a moment."""
    try:
        found = datetime.fromisoformat(text).astimezone(UTC) if _TIMESTAMP.fullmatch(text) else None
    except (ValueError, OverflowError):
        found = None
    if found is None:
        raise FilterError(f"{text[:40]!r} is no timestamp like 2024-12-31T23:59:59Z.")
    return found.replace(tzinfo=None)


def read_interval(text: str) -> tuple[datetime | None, datetime | None]:
    """Read a day or a moment, or two with / between them: the first and the last moment, None where there is no end."""
    parts = text.split("/")
    if len(parts) > 2 or set(parts) <= _OPEN:
        raise FilterError("datetime is a time, or two with / between them, one of which may be '..'.")
    first, last = (None if part in _OPEN else read_either(part) for part in (parts[0], parts[-1]))
    return first and first[0], last and last[1]


def read_either(text: str) -> Period:
    """Read a day or a moment."""
    if _DATE.fullmatch(text):
        return read_date(text)
    moment = read_timestamp(text)
    return moment, moment
