"""What the database says of an asset, read as the gateway reads it, and what of that is new since the last look.

Ids that nobody can foresee have names here: `request 1` is the asset's first request, `export 2` its second export.
"""

import re
from datetime import datetime
from typing import Any, Final

import psycopg
from psycopg.rows import dict_row

Rows = dict[Any, dict[str, Any]]
News = dict[str, Any]
Connection = psycopg.Connection[dict[str, Any]]

TABLES: Final = {
    "asset": """
        SELECT 'it' AS key, to_jsonb(found) AS content FROM dagapp.geospatial_assets AS found WHERE asset_id = %s
    """,
    "versions": """
        SELECT version_ordinal AS key, to_jsonb(found) AS content FROM dagapp.asset_versions AS found
        WHERE asset_id = %s ORDER BY version_ordinal
    """,
    "revisions": """
        SELECT version_ordinal || '/' || revision AS key, to_jsonb(found) AS content
        FROM dagapp.asset_revisions AS found
        WHERE asset_id = %s ORDER BY version_ordinal, revision
    """,
    "requests": """
        SELECT 'request ' || row_number() OVER (ORDER BY created_at, request_id) AS key, to_jsonb(found) AS content
        FROM dagapp.platform_requests AS found
        WHERE asset_id = %s
    """,
    "jobs": """
        SELECT purpose || ' ' || row_number() OVER (PARTITION BY purpose ORDER BY created_at, job_id) AS key,
               jsonb_build_object(
                   'job_id', job_id, 'workflow_id', workflow_id, 'version_ordinal', version_ordinal,
                   'status', status, 'submitted_by', submitted_by, 'error_message', error_message
               ) AS content
        FROM dagapp.dag_jobs
        WHERE asset_id = %s
    """,
}
EVENTS: Final = """
    SELECT event_type::text, version_ordinal, actor, data FROM dagapp.dag_job_events
    WHERE asset_id = %s AND starts_with(event_type::text, 'asset_') ORDER BY event_id
"""
MOMENT: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")


def reading(url: str) -> Connection:
    """Connect so that what is read together is of one moment, and so that nothing can be written."""
    connection = psycopg.connect(url, row_factory=dict_row, autocommit=True)
    connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    connection.read_only = True
    return connection


class AssetRows:
    """All rows of one asset."""

    def __init__(self, connection: Connection, asset_id: str) -> None:
        self._connection = connection
        self.asset_id = asset_id
        self.seen: dict[str, Rows] = {table: {} for table in TABLES}
        self._events_seen = 0

    def news(self) -> News:
        """Give what is new since the last look: new rows, changed columns of the others, and events."""
        now, events = self._look()
        news: News = {table: _changes(self.seen[table], now[table]) for table in TABLES}
        news["events"] = events[self._events_seen :]
        self.seen, self._events_seen = now, len(events)
        return {what: found for what, found in news.items() if found}

    def current(self, table: str) -> Rows:
        """Give the rows of a table as they are now; this does not count as a look."""
        return self._look()[0][table]

    def events(self) -> list[tuple[Any, ...]]:
        """Give all that has happened to the asset."""
        return self._look()[1]

    def id_of(self, name: str) -> str:
        """Give the id of a request or a job by its name here."""
        return next(found for found, each in self._names(self._read()[0]).items() if each == name)

    def named(self, document: Any) -> Any:
        """Give a document of the API with names for ids, and with times that can be compared."""
        return _named(document, self._names(self._read()[0]))

    def _look(self) -> tuple[dict[str, Rows], list[tuple[Any, ...]]]:
        tables, events = self._read()
        names = self._names(tables)
        told = [(each["event_type"], each["version_ordinal"], each["actor"], each["data"]) for each in events]
        return _named(tables, names), [tuple(_named(list(event), names)) for event in told]

    def _read(self) -> tuple[dict[str, Rows], list[dict[str, Any]]]:
        """Read all at one moment."""
        ask = self._connection.execute
        with self._connection.transaction():
            found = {table: ask(query, [self.asset_id]).fetchall() for table, query in TABLES.items()}
            events = ask(EVENTS, [self.asset_id]).fetchall()
        return {table: {row["key"]: row["content"] for row in rows} for table, rows in found.items()}, events

    def _names(self, tables: dict[str, Rows]) -> dict[str, str]:
        requests = {row["request_id"]: name for name, row in tables["requests"].items()}
        return requests | {row["job_id"]: name for name, row in tables["jobs"].items()}


def _changes(before: Rows, now: Rows) -> Rows:
    assert before.keys() <= now.keys(), "rows are never removed"
    changed = {
        key: {column: value for column, value in row.items() if key not in before or before[key][column] != value}
        for key, row in now.items()
    }
    return {key: columns for key, columns in changed.items() if columns}


def _named(document: Any, names: dict[str, str]) -> Any:
    match document:
        case dict():
            return {key: _named(value, names) for key, value in document.items()}
        case list():
            return [_named(value, names) for value in document]
        case str() if MOMENT.fullmatch(document):
            return datetime.fromisoformat(document)
        case str():
            for each, name in names.items():
                document = document.replace(each, name)
    return document
