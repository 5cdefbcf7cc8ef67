"""What the services see, row by row, the rows under their earlier names, and the functions that check outputs."""

import hashlib
from importlib.resources import files
from typing import Final

from graticule.schema import pgstac

SCRIPTS: Final = ("serving.sql", "compatibility.sql", "outputs.sql")


def script() -> str:
    """Give the SQL that makes them, in place of those that are there; its last statement leaves the marker."""
    return f"{_written()}\n\nCOMMENT ON SCHEMA serving IS '{marker()}';"


def marker() -> str:
    """Tell what these views are, and for which pgstac: a database that has the same marker has them."""
    text = f"{pgstac.wanted_version()}\n{_written()}"
    return f"What the services may show ({hashlib.sha256(text.encode()).hexdigest()[:16]})."


def _written() -> str:
    scripts = (files(__package__).joinpath(name).read_text(encoding="utf-8").strip() for name in SCRIPTS)
    return "\n\n".join(scripts)
