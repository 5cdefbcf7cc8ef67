"""Whether two tables hold the same: as many rows, the same sums of attributes, the same places."""

from dataclasses import astuple, dataclass
from math import isclose
from typing import LiteralString

import psycopg
from psycopg import sql
from psycopg.rows import class_row

LOOK: LiteralString = """
    SELECT count(*) AS rows, sum(code)::float8 AS codes, sum(area) AS areas, sum(floors)::float8 AS floors,
           count(*) FILTER (WHERE listed) AS listed, sum(extract(epoch FROM built::timestamp))::float8 AS built,
           sum(length(name) + length(owner) + length(kind)) AS letters,
           sum(ST_XMin(geom) + ST_XMax(geom)) AS eastings, sum(ST_YMin(geom) + ST_YMax(geom)) AS northings,
           min(ST_SRID(geom)) AS srid, count(*) FILTER (WHERE GeometryType(geom) = 'MULTIPOLYGON') AS multis
    FROM {table}
"""


class WrongOutput(Exception):
    """The tables differ."""


@dataclass(frozen=True)
class Looks:
    """What a table looks like as a whole."""

    rows: int
    codes: float
    areas: float
    floors: float
    listed: int
    built: float
    letters: int
    eastings: float
    northings: float
    srid: int
    multis: int


def check_alike(url: str, ours: tuple[str, str], theirs: tuple[str, str]) -> None:
    """Compare two tables, each given with its schema."""
    found = [_looked_at(url, table) for table in (ours, theirs)]
    for mine, other in zip(*map(astuple, found), strict=True):
        if not isclose(mine, other, rel_tol=1e-9):
            raise WrongOutput(f"The tables are not alike: {found[0]} and {found[1]}.")


def _looked_at(url: str, table: tuple[str, str]) -> Looks:
    with psycopg.connect(url) as connection, connection.cursor(row_factory=class_row(Looks)) as cursor:
        found = cursor.execute(sql.SQL(LOOK).format(table=sql.Identifier(*table))).fetchone()
    if found is None:
        raise WrongOutput(f"There is no table {table}.")
    return found
