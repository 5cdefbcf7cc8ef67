"""The record of the schema's deployments, which tells a process whether it can work."""

from typing import ClassVar

from graticule.core.models import SchemaDeployment
from graticule.repositories.base import Repository
from graticule.repositories.errors import domain_errors
from graticule.repositories.queries import load_queries


class DeploymentRepository(Repository[SchemaDeployment]):
    """Reads what was deployed; the schema's commands write it."""

    model = SchemaDeployment
    subject: ClassVar = "deployment"
    queries: ClassVar = load_queries("deployments.sql")

    async def is_deployed(self, fingerprint: str) -> bool:
        """Tell whether the schema with this fingerprint was deployed here."""
        with domain_errors("look up the schema's version"):
            cursor = await self._connection.execute(self.queries["is_deployed"], {"fingerprint": fingerprint})
            row = await cursor.fetchone()
        return bool(row and row["deployed"])
