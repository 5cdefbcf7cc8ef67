"""Every named query of every file parses on the real schema."""

import re
from itertools import combinations
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

import graticule.repositories
from graticule.core.models import TABLES, GeospatialAsset, LayerMetadata
from graticule.repositories import statements
from graticule.repositories.queries import load_queries
from graticule.repositories.step_parts import Part, write_statement
from graticule.schema.catalogue import QUERIES as CATALOGUE
from graticule.schema.deploy import STATE, _recorded

PARTS = "step_parts.sql"  # of a statement that is put together from them
# Those name tables or views that are given, which cannot be prepared, or are for SQLite; the tests of features, of the
# services and of publishing run them all.
COMPOSED = {
    "vectors.sql",
    "geopackages.sql",
    "overviews.sql",
    "publications.sql",
    "served_tables.sql",
    "served_versions.sql",
    "tile_shapes.sql",
}
FILES = sorted({path.name for path in Path(graticule.repositories.__path__[0]).glob("*.sql")} - {PARTS, *COMPOSED})
EVERY_QUERY = [(file, name, load_queries(file)[name]) for file in FILES for name in load_queries(file)]
EVERY_QUERY += [("state.sql", name, STATE[name]) for name in STATE if name != "record_deployment"]
EVERY_QUERY += [("state.sql", "record_deployment", _recorded(TABLES))]  # its values are written in, for psql
EVERY_QUERY += [("catalogue.sql", name, CATALOGUE[name]) for name in CATALOGUE]


def _numbered(query: str) -> str:
    """Write a query's parameters as the driver does: each name once, by number."""
    names = list(dict.fromkeys(re.findall(r"%\((\w+)\)s", query)))
    return re.sub(r"%\((\w+)\)s", lambda found: f"${names.index(found[1]) + 1}", query).replace("%%", "%")


async def test_every_named_query_can_be_prepared(
    admin: psycopg.AsyncConnection[Any], subtests: pytest.Subtests
) -> None:
    assert len(EVERY_QUERY) > 30
    for file, name, query in EVERY_QUERY:
        with subtests.test(f"{file} {name}"):
            await admin.execute(f"PREPARE {name} AS {_numbered(query)}".encode())


async def test_the_statement_of_a_step_can_be_prepared_with_any_two_of_its_parts_and_with_all(
    admin: psycopg.AsyncConnection[Any],
) -> None:
    counts = (0, 1, 2, len(Part) - 1, len(Part))
    some = [parts for count in counts for parts in combinations(Part, count)]
    for number, parts in enumerate(some):
        await admin.execute(f"PREPARE step_{number} AS {write_statement(parts).text}".encode())


async def test_every_statement_made_from_a_model_can_be_prepared(
    admin: psycopg.AsyncConnection[Any], subtests: pytest.Subtests
) -> None:
    for model in TABLES:
        made: list[sql.Composed] = [statements.insert(model), statements.select_by_key(model)]
        made += [statements.replace_versioned(model)] if model in {GeospatialAsset, LayerMetadata} else []
        for number, statement in enumerate(made):
            with subtests.test(f"{model.__name__} {number}"):
                name = f"{model.table.name}_{number}"
                await admin.execute(f"PREPARE {name} AS {_numbered(statement.as_string())}".encode())
