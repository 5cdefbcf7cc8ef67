"""The views through which the services see the platform, and who sees which rows of the catalogue."""

import hashlib
from importlib.resources import files

from graticule.schema import pgstac


def script() -> str:
    """Give the SQL that makes them, in place of those that are there; its last statement leaves the marker."""
    return f"{_written()}\n\nCOMMENT ON SCHEMA serving IS '{marker()}';"


def marker() -> str:
    """Tell what these views are, and for which pgstac: a database that has the same marker has them."""
    text = f"{pgstac.wanted_version()}\n{_written()}"
    return f"What the services may show ({hashlib.sha256(text.encode()).hexdigest()[:16]})."


def _written() -> str:
    return files(__package__).joinpath("serving.sql").read_text(encoding="utf-8").strip()
