"""The SQL of the pages runs on PostgreSQL, by an administrator of a database that has our schema."""

import psycopg
import pytest
from tests.conftest import TestDatabase
from tests.unit.docs.snippets import Snippet, snippets

SHOWN = [each for each in snippets() if each.language == "sql"]


@pytest.mark.parametrize("snippet", SHOWN, ids=str)
def test_the_statements_of_the_pages_run(snippet: Snippet, emptied_database: TestDatabase) -> None:
    with psycopg.connect(emptied_database.url()) as connection:
        connection.execute(snippet.text.encode())
        connection.rollback()  # roles are of the whole cluster
