"""`graticule azure …`: what an installation needs in Azure."""

import asyncio
import re
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer
from rich.table import Table

from graticule.cli.console import out, warn
from graticule.cli.settings import load_settings
from graticule.config import Settings
from graticule.core.errors import ConfigurationError
from graticule.core.table import DatabaseRole

if TYPE_CHECKING:
    from graticule.schema.logins import Identity

app = typer.Typer(no_args_is_help=True, help="See to what an installation needs in Azure.")
queues = typer.Typer(no_args_is_help=True, help="The queues of Service Bus.")
app.add_typer(queues, name="queues")
logins = typer.Typer(no_args_is_help=True, help="The logins of identities in PostgreSQL.")
app.add_typer(logins, name="logins")

_IDENTITY = re.compile(r"([^:]+)(?::([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}))?", re.IGNORECASE)


@queues.command()
def ensure(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Further queues, which workflows of your own name.", show_default=False),
    ] = None,
    lock_seconds: Annotated[
        int, typer.Option(min=5, max=300, help="How long a received message is locked; workers renew it.")
    ] = 300,
    max_deliveries: Annotated[
        int, typer.Option(min=1, max=2000, help="After so many deliveries, the broker sets a message aside.")
    ] = 10,
) -> None:
    """Make the queues of the platform, and bring those that differ to these rules.

    They are the queue of job messages, those of GRATICULE_WORKER_QUEUE, functionapp-tasks and container-tasks. How long
    a message is kept is GRATICULE_SERVICE_BUS_MESSAGE_SECONDS. Needs the right Manage; the processes themselves need
    only Send and Listen.

    Examples:

      graticule azure queues ensure

      graticule azure queues ensure night-tasks --max-deliveries 20
    """
    from graticule.messaging.servicebus.administration import Administration, QueueRules

    settings = load_settings()
    rules = QueueRules(lock_seconds, max_deliveries, settings.service_bus_message_seconds)
    listing = Table("queue", "", box=None, header_style="bold")
    dropping = []
    for queue in Administration(settings).ensure(_names(settings, names or []), rules):
        listing.add_row(queue.name, queue.outcome)
        if queue.drops_duplicates:
            dropping.append(queue.name)
    out.print(listing)
    for name in dropping:
        warn(
            f"{name} drops messages whose id it has seen before: a task that is tried again may be lost to it. "
            "Make the queue anew without duplicate detection; workers discard duplicates by themselves."
        )


def _names(settings: Settings, further: list[str]) -> list[str]:
    from graticule.worker.app import DEFAULT_QUEUES

    served = [name.strip() for name in (settings.worker_queue or "").split(",") if name.strip()]
    return list(dict.fromkeys([settings.job_queue_name, *DEFAULT_QUEUES, *served, *further]))


@logins.command("ensure")
def ensure_logins(
    pairs: Annotated[
        list[str],
        typer.Argument(metavar="PROCESS=IDENTITY[:OBJECT_ID]…", help="Which identity a process has."),
    ],
) -> None:
    """Let identities of Azure log in to PostgreSQL, each as the role of its process.

    The processes are gateway, orchestrator, worker, serve_internal and serve_external. The roles are made by
    `graticule schema migrate`; run both as the administrator of the server (GRATICULE_OWNER_DATABASE_URL).

    An identity that was deleted and made anew has the name of the old one, and another object id (its principal id).
    With the object id given, the login of the old one is noticed, and made anew.

    Examples:

      graticule azure logins ensure gateway=graticule-gateway worker=graticule-worker

      graticule azure logins ensure worker=graticule-worker:0f6a4c52-8f0e-4c1b-b0a1-5d8b9e3a7c22
    """
    from graticule.cli.connection import owner_url
    from graticule.schema.logins import ensure_logins

    url = owner_url(load_settings())
    if url is None:
        raise ConfigurationError("No server of Azure is configured.", hint="Set POSTGRES_HOST and its companions.")
    listing = Table("role", "", box=None, header_style="bold")
    for role, found in asyncio.run(ensure_logins(url, _identities(pairs))).items():
        listing.add_row(role, found)
    out.print(listing)


def _identities(pairs: list[str]) -> "dict[DatabaseRole, Identity]":
    """Read the pairs; nobody but the administrator acts as the owner."""
    from graticule.schema.logins import Identity

    known = {role.removeprefix("graticule_"): role for role in DatabaseRole if role is not DatabaseRole.OWNER}
    found: dict[DatabaseRole, Identity] = {}
    for pair in pairs:
        process, _, identity = pair.partition("=")
        written = _IDENTITY.fullmatch(identity)
        if process not in known or written is None:
            raise ConfigurationError(
                f"{pair!r} is not a process and its identity.",
                hint=f"Write PROCESS=IDENTITY or PROCESS=IDENTITY:OBJECT_ID: {', '.join(known)}.",
            )
        name, object_id = written.groups()
        found[known[process]] = Identity(name, UUID(object_id) if object_id else None)
    return found
