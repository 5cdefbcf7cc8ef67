"""The rules of rows that neither a type nor a check can say: triggers keep them, whoever writes."""

import hashlib
from importlib.resources import files


def script() -> str:
    """Return the SQL that makes the triggers; its last statement leaves the marker."""
    return f"{_written()}\n\nCOMMENT ON FUNCTION dagapp.keep_first_times() IS '{marker()}';"


def marker() -> str:
    """Return what identifies these triggers: a database that has the same marker has them."""
    return f"Keeps what was noted first ({hashlib.sha256(_written().encode()).hexdigest()[:16]})."


def _written() -> str:
    return files(__package__).joinpath("rules.sql").read_text(encoding="utf-8").strip()
