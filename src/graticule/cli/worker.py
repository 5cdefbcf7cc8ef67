"""`graticule worker`: a process that runs handlers."""

from typing import Annotated

import typer

from graticule.cli.processes import Host, Port, begin, run
from graticule.config import RunMode, Settings
from graticule.core.errors import ConfigurationError
from graticule.core.table import DatabaseRole

WORKER_PORT = 8002
LONGEST_QUEUE_NAME = 64


def worker(
    queues: Annotated[
        str | None,
        typer.Option(
            help="The queues to serve, separated by commas; "
            "by default GRATICULE_WORKER_QUEUE or else functionapp-tasks and container-tasks."
        ),
    ] = None,
    concurrency: Annotated[
        int | None,
        typer.Option(min=1, max=1000, help="Tasks to run at once; by default GRATICULE_WORKER_CONCURRENCY or else 64."),
    ] = None,
    host: Host = "127.0.0.1",
    port: Port = WORKER_PORT,
) -> None:
    """Run a worker: it takes tasks from queues and runs their handlers, until Ctrl-C.

    Start as many as are needed, on any machine that reaches the database; or,
    with GRATICULE_TRANSPORT=servicebus and GRATICULE_DAG_CALLBACK_URL, the broker
    and an orchestrator: then a worker needs no database. One
    that stops waits for its tasks (GRATICULE_WORKER_GRACE_SECONDS) and hands back
    what is left; a second Ctrl-C ends the waiting. On its port it only tells how
    it is: /livez, /readyz, /health and /metrics.

    Examples:

      graticule worker

      graticule worker --queues container-tasks --concurrency 4 --port 8003
    """
    from graticule.cli.connection import process_url
    from graticule.worker.app import DEFAULT_QUEUES, create_worker
    from graticule.worker.ways import needs_no_database

    settings = begin(RunMode.WORKER)
    served = _queues(queues, settings) or DEFAULT_QUEUES
    url = None if needs_no_database(settings) else process_url(settings, DatabaseRole.WORKER)
    run(create_worker(settings, url, queues=served, concurrency=concurrency), settings, host, port)


def _queues(given: str | None, settings: Settings) -> tuple[str, ...]:
    named = [name.strip() for name in (given or settings.worker_queue or "").split(",")]
    queues = tuple(dict.fromkeys(name for name in named if name))
    if any(len(name) > LONGEST_QUEUE_NAME for name in queues):
        raise ConfigurationError(
            f"The name of a queue has at most {LONGEST_QUEUE_NAME} characters.", hint="Mend --queues."
        )
    return queues
