"""Can a process do its work: is the database reachable, and is its schema the one that we need?"""

from typing import Any

from graticule.core.errors import SchemaOutdated
from graticule.core.models import TABLES
from graticule.repositories.database import Database
from graticule.repositories.deployments import DeploymentRepository
from graticule.schema.ddl import fingerprint


class ReadinessService:
    """Answers the questions that probes ask."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._fingerprint = fingerprint(TABLES)

    async def database(self) -> dict[str, Any]:
        """Reach the database, or raise why not."""
        return {**await self._database.ping(), "pool": self._database.pool_statistics()}

    async def schema(self) -> dict[str, Any]:
        """Find our schema deployed, or raise how to deploy it."""
        async with self._database.connection() as connection:
            if not await DeploymentRepository(connection).is_deployed(self._fingerprint):
                raise SchemaOutdated(
                    "The database's schema is older than this program.", hint="Run `graticule schema migrate`."
                )
        return {"fingerprint": self._fingerprint}
