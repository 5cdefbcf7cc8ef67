"""The schema's commands under the settings' rules, for the command line and the API alike."""

from graticule.schema.deploy import database_schema, ddl_script
from graticule.schema.report import SchemaReport, SchemaStatus, TableReport


class BootstrapService:
    """Inspects and changes the schema with the login that may do so."""

    def __init__(self, owner_url: str, *, development: bool) -> None:
        self._url = owner_url
        self._development = development

    async def status(self) -> SchemaStatus:
        """Compare the database with the models."""
        async with database_schema(self._url) as schema:
            return await schema.status()

    async def tables(self) -> list[TableReport]:
        """List the tables with row counts and sizes."""
        async with database_schema(self._url) as schema:
            return await schema.tables()

    def ddl(self) -> str:
        """Give the whole schema as a script."""
        return ddl_script()

    async def deploy(self) -> SchemaReport:
        """Make what is missing as a whole."""
        async with database_schema(self._url) as schema:
            return await schema.deploy()

    async def migrate(self) -> SchemaReport:
        """Add what is missing, in existing tables too."""
        async with database_schema(self._url) as schema:
            return await schema.migrate()

    async def rebuild(self, confirm: str) -> SchemaReport:
        """Drop everything and make it anew; only in development mode."""
        async with database_schema(self._url) as schema:
            return await schema.rebuild(confirm=confirm, development=self._development)
