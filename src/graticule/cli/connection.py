"""Which database a command works on: an existing server, or the embedded one of the data folder."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from graticule.cli.console import say
from graticule.cli.settings import absolute_home
from graticule.config import Settings
from graticule.core.errors import ConfigurationError
from graticule.core.table import DatabaseRole
from graticule.embedded.cluster import Cluster, running_cluster_url
from graticule.embedded.credentials import ADMIN
from graticule.embedded.location import existing_location


def process_url(settings: Settings, role: DatabaseRole) -> str:
    """Give the address at which a process of its own reaches the database."""
    if external := settings.external_database:
        return external.get_secret_value()
    running = running_cluster_url(absolute_home(settings), role, settings.postgres_db)
    if running is None:
        raise _no_database(settings, role)
    return running


def _no_database(settings: Settings, role: DatabaseRole | None = None) -> ConfigurationError:
    hint = "Set GRATICULE_DATABASE_URL, or start everything with `graticule up`."
    if role is DatabaseRole.WORKER and settings.dag_callback_url is not None:
        hint = (
            "A worker that reports to DAG_CALLBACK_URL gets its tasks from a broker: set SERVICE_BUS_FQDN as the "
            "orchestrator has it, and GRATICULE_WORKER_TOKEN. With a database, set GRATICULE_DATABASE_URL."
        )
    home = absolute_home(settings)
    return ConfigurationError(
        f"There is no database to connect to: none is configured, and none runs in {home}.", hint=hint
    )


def owner_url(settings: Settings) -> str | None:
    """Give the address of the login that may change the schema, if one is configured."""
    owner = settings.owner_database
    return None if owner is None else owner.get_secret_value()


@asynccontextmanager
async def owner_connection(settings: Settings, *, create: bool = False) -> AsyncIterator[str]:
    """Give the owner's address; an embedded database that is not running is started for the while.

    One that does not exist is made only when asked for: a look into the wrong folder leaves nothing there.
    """
    home = absolute_home(settings)
    url = owner_url(settings) or running_cluster_url(home, ADMIN, settings.postgres_db)
    if url is not None:
        yield url
        return
    if not create and existing_location(home) is None:
        raise _no_database(settings)
    async with Cluster.of(home, preferred=settings.pg_bin, announce=say) as cluster:
        await cluster.ensure_database(settings.postgres_db)
        yield cluster.url(ADMIN, settings.postgres_db)
