"""Named SQL, read from `.sql` files: `-- name: claim_jobs` begins a query, all up to the next belongs to it."""

import re
from collections.abc import Iterator
from importlib.resources import files
from types import MappingProxyType

NAME = re.compile(r"^-- name: (?P<name>[a-z][a-z0-9_]*)$", re.MULTILINE)


class Queries:
    """The queries of one file, by name."""

    def __init__(self, file: str, queries: dict[str, str]) -> None:
        self._file = file
        self._queries = MappingProxyType(queries)

    def __getitem__(self, name: str) -> str:
        try:
            return self._queries[name]
        except KeyError:
            raise KeyError(f"{self._file} has no query named {name!r}; it has: {', '.join(self._queries)}.") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._queries)


def load_queries(file: str, package: str = "graticule.repositories") -> Queries:
    """Read the named queries of a `.sql` file of a package."""
    text = files(package).joinpath(file).read_text(encoding="utf-8")
    parts = NAME.split(text)[1:]
    names, bodies = parts[::2], parts[1::2]
    if len(set(names)) != len(names):
        raise ValueError(f"{file} names a query twice.")
    return Queries(file, {name: body.strip().rstrip(";") for name, body in zip(names, bodies, strict=True)})
