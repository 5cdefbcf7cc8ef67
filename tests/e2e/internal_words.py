"""What no partner may read: the names and ids of our jobs, machines, files and people, found in what it was told."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import httpx
from tests.e2e.asset_rows import Connection
from tests.e2e.running_platform import CLIENTS

FIELDS: Final = frozenset(
    {
        *("job_id", "current_job_id", "job_count", "node_id", "node_summary", "current_node", "current_nodes"),
        *("task_id", "worker_id", "owner_id", "queue", "handler", "workflow_id", "workflow_version"),
        *("blob_path", "external_blob_path", "export_run_id", "table_name", "stac_item_id", "outputs"),
        *(
            "reviewer",
            "approved_by",
            "seconded_by",
            "endorsed_by",
            "cleared_by",
            "made_public_by",
            "deleted_by",
            "submitted_by",
            "actor",
            "owner_epoch",
        ),
    }
)
WORDS: Final = (
    *(
        "convert_source",
        "functionapp-tasks",
        "container-tasks",
        "lifecycle.",
        "publish.",
        "silver",
        "external",
        "cog.tif",
    ),
    *("raster_ingest", "adf_export", "adf_reversal", "postgres", "graticule_", "Traceback", "no handler"),
    *(name for name in CLIENTS if "portal" not in name),
)
IDS: Final = """
    SELECT job_id AS word FROM dagapp.dag_jobs
    UNION SELECT owner_id FROM dagapp.dag_jobs WHERE owner_id IS NOT NULL
    UNION SELECT task_id FROM dagapp.dag_nodes WHERE task_id IS NOT NULL
    UNION SELECT worker_id FROM dagapp.dag_nodes WHERE worker_id IS NOT NULL
    UNION SELECT blob_path FROM dagapp.asset_versions WHERE blob_path IS NOT NULL
    UNION SELECT export_run_id FROM dagapp.asset_versions WHERE export_run_id IS NOT NULL
"""
NAMES: Final = "SELECT node_id AS word FROM dagapp.dag_nodes UNION SELECT workflow_id FROM dagapp.dag_jobs"


@dataclass(frozen=True)
class InternalWords:
    """All that must not be told."""

    parts: frozenset[str]  # nowhere in a text
    wholes: frozenset[str]  # common words, which are names of ours where they stand alone

    def in_answer(self, answer: httpx.Response) -> list[str]:
        """Tell where an answer holds something internal."""
        places = self.in_document({"headers": dict(answer.headers), "body": answer.json()})
        return [f"{answer.request.method} {answer.request.url.path}: {place} of {answer.text}" for place in places]

    def in_document(self, document: Any) -> list[str]:
        """Tell where a document holds something internal."""
        return [".".join(place) for place in self._places(document)]

    def _places(self, document: Any, place: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
        match document:
            case dict():
                yield from ((*place, name) for name in document if name in FIELDS)
                for name, value in document.items():
                    yield from self._places(value, (*place, name))
            case list():
                for number, value in enumerate(document):
                    yield from self._places(value, (*place, str(number)))
            case str() if document in self.wholes or any(part in document for part in self.parts):
                yield place


def internal_words(database: Connection) -> InternalWords:
    """Gather what is internal from the database."""
    ids, names = (frozenset(row["word"] for row in database.execute(query)) for query in (IDS, NAMES))
    return InternalWords(ids | set(WORDS), names)
