"""The parts of what a step writes, and the one statement that they make; see `step_parts.sql`."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import cache
from typing import Any, Final

from graticule.repositories.queries import NumberedQuery, load_queries, numbered

QUERIES: Final = load_queries("step_parts.sql")
CHUNK: Final = 5000  # rows of one part in one statement
Row = Mapping[str, Any]


class Part(StrEnum):
    """The parts of a step's writes: each is a list of rows, and moves as many."""

    NODES = "nodes"
    COMPLETED_CHILDREN = "completed_children"
    NEW_NODES = "new_nodes"
    NEW_TASKS = "new_tasks"
    EVENTS = "events"
    PROCESSED_RESULTS = "processed_results"
    JOBS = "jobs"
    OTHER_JOBS = "other_jobs"
    PROCESSED_VERSIONS = "processed_versions"
    CALLBACKS = "callbacks"
    NOTIFICATIONS = "notifications"


VERSIONED: Final = frozenset({Part.JOBS, Part.OTHER_JOBS})
# What may move fewer rows than were given: a version goes its own way, too.
UNCOUNTED: Final = frozenset({Part.PROCESSED_VERSIONS})
# What is written for each row that a part has moved.
FOLLOWING: Final[Mapping[Part, tuple[str, ...]]] = {
    Part.PROCESSED_VERSIONS: ("answered_requests", "version_events", "version_callbacks")
}


@cache
def write_statement(parts: tuple[Part, ...]) -> NumberedQuery:
    """Put the statement together that holds jobs and writes these parts."""
    names = [name for part in parts for name in (part.value, *FOLLOWING.get(part, ()))]
    written = "".join(QUERIES["part"].format(part=name, statement=QUERIES[name]) for name in names)
    counts = "".join(QUERIES["count"].format(part=part) for part in parts if part not in UNCOUNTED)
    return numbered(QUERIES["step"].format(parts=written, counts=counts))


def portions(parts: Mapping[Part, Sequence[Row]]) -> list[dict[Part, Sequence[Row]]]:
    """Share rows out among statements, in order; the jobs come with the last, for that gives them a new version."""
    count = max(1, -(-max(map(len, parts.values()), default=0) // CHUNK))
    others = {part: rows for part, rows in parts.items() if part not in VERSIONED}
    shared = [{part: rows[n * CHUNK : (n + 1) * CHUNK] for part, rows in others.items()} for n in range(count)]
    shared[-1] |= {part: rows for part, rows in parts.items() if part in VERSIONED}
    return shared
