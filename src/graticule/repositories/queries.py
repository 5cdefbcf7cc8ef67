"""Named SQL, read from `.sql` files: `-- name: claim_jobs` begins a query, all up to the next belongs to it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from types import MappingProxyType

NAME = re.compile(r"^-- name: (?P<name>[a-z][a-z0-9_]*)$", re.MULTILINE)


PARAMETER = re.compile(r"%\((?P<name>\w+)\)s")


@dataclass(frozen=True, slots=True)
class NumberedQuery:
    """A query whose parameters are numbered, and their names in that order."""

    text: str
    names: tuple[str, ...]


class Queries:
    """The queries of one file, by name."""

    def __init__(self, file: str, queries: dict[str, str]) -> None:
        self._file = file
        self._queries = MappingProxyType(queries)
        self._numbered: dict[str, NumberedQuery] = {}

    def __getitem__(self, name: str) -> str:
        try:
            return self._queries[name]
        except KeyError:
            raise KeyError(f"{self._file} has no query named {name!r}; it has: {', '.join(self._queries)}.") from None

    def numbered(self, name: str) -> "NumberedQuery":
        """Give a query with `$1` for its parameters, translated once: the driver translates a long one every time."""
        if name not in self._numbered:
            self._numbered[name] = numbered(self[name])
        return self._numbered[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._queries)


def numbered(query: str) -> NumberedQuery:
    """Number the parameters of a query."""
    names = tuple(dict.fromkeys(PARAMETER.findall(query)))
    text = PARAMETER.sub(lambda match: f"${names.index(match['name']) + 1}", query)
    return NumberedQuery(text, names)


def load_queries(file: str, package: str = "graticule.repositories") -> Queries:
    """Read the named queries of a `.sql` file of a package."""
    text = files(package).joinpath(file).read_text(encoding="utf-8")
    parts = NAME.split(text)[1:]
    names, bodies = parts[::2], parts[1::2]
    if len(set(names)) != len(names):
        raise ValueError(f"{file} names a query twice.")
    return Queries(file, {name: body.strip().rstrip(";") for name, body in zip(names, bodies, strict=True)})
