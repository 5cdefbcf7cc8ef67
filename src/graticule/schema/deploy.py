"""Deploy, migrate, rebuild and inspect the schema of a database."""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from importlib.resources import files
from typing import Any, LiteralString

import psycopg
from psycopg import AsyncConnection, sql
from psycopg.rows import dict_row

from graticule import __version__
from graticule.core.errors import Conflict, PermissionDenied, Unavailable
from graticule.core.models import TABLES
from graticule.core.table import DatabaseRole, Row
from graticule.repositories.deployments import DeploymentRepository
from graticule.repositories.errors import domain_errors
from graticule.repositories.login import connected
from graticule.repositories.queries import load_queries
from graticule.schema import pgstac, rules, serving, sources
from graticule.schema.catalogue import QUERIES as CATALOGUE
from graticule.schema.catalogue import Catalogue, read_catalogue
from graticule.schema.ddl import create_statements, fingerprint, schema_objects, seed_statements
from graticule.schema.plan import Change, Difference, Plan, make_plan
from graticule.schema.report import Reported, SchemaReport, SchemaStatus, TableReport

STATE = load_queries("state.sql", package=__package__)
SHADOW = "{}__expected"
MAX_TRIES = 5  # of a transaction that other sessions keep from its locks by holding some and waiting for others
WAIT_BRIEFLY: LiteralString = "SET LOCAL lock_timeout = '10s'"  # others wait behind whoever waits for a table
WAIT_A_MOMENT: LiteralString = "SET LOCAL lock_timeout = '1s'"  # readers of a table wait meanwhile
HARDLY_WAIT: LiteralString = "SET LOCAL lock_timeout = '10ms'"
MAX_NAMED = 20  # tables, of those that somebody has to look at
AGAIN = "Then migrate again: graticule schema migrate"
COUNTED_UP_TO = 100_000  # larger tables answer with the planner's estimate
Models = Sequence[type[Row]]
VIEWS = Reported(object="schema serving", detail="the views of what the services may show")
RULES = Reported(object="triggers", detail="the rules of rows that triggers keep")
UNPREPARED = Reported(object="database", detail="its extensions, roles and privileges, and then the schema")
# What the rows, or a change that was refused before, do not allow.
REFUSALS = (
    psycopg.IntegrityError,
    psycopg.DataError,
    psycopg.NotSupportedError,
    psycopg.errors.UndefinedColumn,
    psycopg.errors.UndefinedTable,
    psycopg.errors.UndefinedObject,
)


def ddl_script(models: Models = TABLES, today: date | None = None) -> str:
    """Give the whole schema as a script for an empty database, as `deploy` would make it."""
    objects = schema_objects(models, today or _today())
    ours = [f"SET ROLE {DatabaseRole.OWNER}", *create_statements(objects), *seed_statements(models)]
    record = _recorded(models)
    parts = [
        "-- Graticule's schema, made from its models. Run it as a superuser on an empty database.",
        "-- Part 1: extensions and roles\n\n" + _script("prepare.sql"),
        "-- Part 2: the models' tables\n\n" + ";\n\n".join([*ours, record]) + ";\n\nRESET ROLE;",
        "-- Part 3: what triggers keep\n\nBEGIN;\n\n" + rules.script() + "\n\nCOMMIT;",
        f"-- Part 4: pgstac {pgstac.wanted_version()}, the STAC catalogue\n\n" + pgstac.script().strip(),
        "-- Part 5: least privilege\n\nRESET ROLE;\n\n" + _script("restrict.sql"),
        "-- Part 6: what the services may show\n\nBEGIN;\n\n" + serving.script() + "\n\nCOMMIT;",
    ]
    return "\n\n".join(parts) + "\n"


@dataclass(slots=True)
class _Outcome:
    """What a run of changes came to."""

    applied: list[Change] = field(default_factory=list)
    differences: list[Difference] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)


class DatabaseSchema:
    """The schema of one database, on a connection of a login that may change it."""

    def __init__(self, connection: AsyncConnection[Any], url: str, models: Models = TABLES) -> None:
        self._connection = connection
        self._url = url
        self._models = models
        self._schemas = sorted({model.table.schema for model in models})

    async def deploy(self) -> SchemaReport:
        """Make what is missing as a whole; tables that are there are left as they are."""
        async with self._exclusive():
            outcome = await self._prepare()
            plan, live = await self._plan()
            return await self._carry_out(plan, plan.creations(live), outcome)

    async def migrate(self) -> SchemaReport:
        """Add what is missing, in existing tables too; report what cannot be made safely."""
        async with self._exclusive():
            outcome = await self._prepare()
            plan, _ = await self._plan()
            return await self._carry_out(plan, plan.changes, outcome)

    async def rebuild(self, *, confirm: str, development: bool) -> SchemaReport:
        """Drop our schemas with all their rows and make them anew; only in development mode."""
        if not development:
            raise PermissionDenied(
                "A rebuild removes every row, and this server does not run in development mode.",
                hint="Set GRATICULE_DEVELOPMENT=true where the data may be lost.",
            )
        with domain_errors("look at the database"):
            database = (await self._server())["database"]
        if confirm != database:
            raise Conflict("The rebuild was not confirmed.", hint=f"Confirm it with the database's name: {database}.")
        async with self._exclusive():
            await self._hide()  # with its marker: the views go with the tables, and are made again
            for schema in self._schemas:
                drop = sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(schema))
                await self._connection.execute(drop)
        return await self.deploy()

    async def status(self) -> SchemaStatus:
        """Compare the database with the models and change nothing."""
        with domain_errors("compare the schema"):
            return await self._status()

    async def _status(self) -> SchemaStatus:
        server = await self._server()
        plan = (await self._plan())[0] if server["prepared"] else Plan()
        last = await self._row("last_deployment") if server["deployed"] else None
        return SchemaStatus(
            **{name: server[name] for name in ("database", "server_version", "postgis_version", "deployed")},
            pgstac_version=await pgstac.installed_version(self._connection),
            pgstac_wanted=pgstac.wanted_version(),
            current=await self._is_current(plan, server),
            fingerprint=fingerprint(self._models),
            deployed_fingerprint=last["fingerprint"] if last else None,
            deployed_at=last["deployed_at"] if last else None,
            pending=_pending(plan, server),
            differences=_reported(plan.differences),
        )

    async def _is_current(self, plan: Plan, server: Mapping[str, Any]) -> bool:
        known = bool(server["deployed"]) and await self._is_deployed(fingerprint(self._models))
        complete = bool(server["prepared"]) and not plan.needed and not plan.hindrances
        return complete and known and not _missing_scripts(server)

    async def tables(self) -> list[TableReport]:
        """List the tables with their row counts and sizes."""
        with domain_errors("list the tables"):
            async with self._connection.cursor(row_factory=dict_row) as cursor:
                await cursor.execute(CATALOGUE["sizes"], {"schemas": self._schemas})
                return [await self._table_report(row) for row in await cursor.fetchall()]

    async def _table_report(self, row: dict[str, Any]) -> TableReport:
        estimated = row["estimate"] > COUNTED_UP_TO
        rows = row["estimate"] if estimated else await self._count(row["schema"], row["name"])
        name = f"{row['schema']}.{row['name']}"
        return TableReport(
            name=name,
            comment=row["comment"],
            rows=rows,
            rows_estimated=estimated,
            bytes=row["bytes"],
            indexes=row["indexes"],
        )

    async def _count(self, schema: str, table: str) -> int:
        query = sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(schema, table))
        row = await (await self._connection.execute(query)).fetchone()
        return int(row[0]) if row else 0

    @asynccontextmanager
    async def _exclusive(self) -> AsyncIterator[None]:
        with domain_errors("change the schema"):
            await self._connection.execute(STATE["lock"])
            try:
                yield
            finally:
                if not self._connection.broken:
                    await self._connection.execute(STATE["unlock"])

    async def _prepare(self) -> _Outcome:
        outcome = _Outcome()
        await self._connection.execute(_script("prepare.sql").encode())
        if await pgstac.installed_version(self._connection) != pgstac.wanted_version():
            await pgstac.migrate(self._url)
            outcome.notices.append(f"pgstac {pgstac.wanted_version()} was installed.")
        await self._connection.execute(_script("restrict.sql").encode())
        return outcome

    async def _plan(self) -> tuple[Plan, Catalogue]:
        """Compare, letting PostgreSQL itself write both sides: the models' one is made aside and rolled back."""
        objects = schema_objects(self._models, _today())
        shadows = {schema: SHADOW.format(schema) for schema in self._schemas}
        async with self._connection.transaction(force_rollback=True):
            await self._act_as_owner()
            live = await read_catalogue(self._connection, {schema: schema for schema in self._schemas})
            for statement in create_statements(schema_objects(self._models, _today(), shadows)):
                await self._connection.execute(statement.encode())
            told = {shadow: schema for schema, shadow in shadows.items()}
            expected = await read_catalogue(self._connection, told)
        return make_plan(objects, expected, live), live

    async def _carry_out(self, plan: Plan, changes: Iterable[Change], outcome: _Outcome) -> SchemaReport:
        chosen = list(changes)
        was_current = await self._is_current(plan, await self._server())
        if any(change.alters_column for change in chosen):  # a view holds the columns that it shows as they are
            await self._hide()
        await self._apply([change for change in chosen if change.is_new_enum_value], outcome)
        await self._apply([change for change in chosen if not change.is_new_enum_value], outcome)
        unfinished = {change.key.of for change in plan.changes if change not in outcome.applied}
        await self._seed([model for model in self._models if model.table.name not in unfinished])
        pending = [change for change in plan.changes if change not in outcome.applied]
        # A month whose rows are in the default partition already stays there; nothing is lost by it.
        needed = [change for change in plan.needed if change in pending]
        current = not needed and not plan.hindrances
        if current:
            await self._enforce()
            await self._show()
            outcome.notices += await self._take_live_tables()
            outcome.notices += await self._reserved_platforms()
        # A run that failed on its way has said nothing: all is read from the rows until the schema is recorded.
        if not was_current and sources.TABLE not in unfinished:
            outcome.notices += await sources.describe_wide_sources(self._connection)
        if current:
            await self._connection.execute(_recorded(self._models).encode())
        return SchemaReport(
            database=(await self._server())["database"],
            fingerprint=fingerprint(self._models),
            current=current,
            applied=_reported(outcome.applied),
            pending=_reported(pending),
            differences=_reported([*plan.differences, *outcome.differences]),
            notices=outcome.notices,
        )

    async def _apply(self, changes: Sequence[Change], outcome: _Outcome) -> None:
        """Apply changes in one transaction; one that existing rows do not allow is left out and reported."""
        for tries_left in reversed(range(MAX_TRIES)):
            made = _Outcome()
            try:
                await self._apply_once(changes, made)
            except psycopg.errors.DeadlockDetected:  # with statements of running processes; all of it was undone
                if not tries_left:
                    raise
            else:
                outcome.applied += made.applied
                outcome.differences += made.differences
                return

    async def _apply_once(self, changes: Sequence[Change], outcome: _Outcome) -> None:
        async with self._connection.transaction():
            await self._act_as_owner()
            await self._connection.execute(WAIT_BRIEFLY)
            for change in changes:
                try:
                    async with self._connection.transaction():
                        await self._connection.execute(change.sql.encode())
                    outcome.applied.append(change)
                except REFUSALS as error:
                    outcome.differences.append(_refused(change, error))
                except psycopg.errors.LockNotAvailable as error:
                    raise _locked(str(change.key)) from error
            if any(str(change.key) == sources.ADDED for change in outcome.applied):
                await sources.keep_used_sources(self._connection)

    async def _enforce(self) -> None:
        """Let triggers keep the rules of rows, unless they do already."""
        if (await self._server())["rules"] != rules.marker():
            await self._run(rules.script(), RULES)

    async def _show(self) -> None:
        """Let the services see what they may, unless they do already."""
        if (await self._server())["serving"] != serving.marker():
            await self._run(serving.script(), VIEWS)

    async def _run(self, script: str, made: Reported) -> None:
        """Run a script in one transaction, and again when others keep it from its locks; they go on in between."""
        for tries_left in reversed(range(MAX_TRIES)):
            try:
                async with self._connection.transaction():
                    await self._connection.execute(WAIT_BRIEFLY)
                    await self._connection.execute(script.encode())
            except psycopg.errors.DeadlockDetected:
                if not tries_left:
                    raise
            except psycopg.errors.LockNotAvailable as error:
                if not tries_left:
                    raise _locked(made.object) from error
            else:
                return

    async def _take_live_tables(self) -> list[str]:
        """Let live tables that workers own belong to the owner of the schema, each in a transaction of its own.

        The locks of all of them at once may be more than the server has room for, and readers would wait for the last.
        """
        in_use: list[str] = []
        refused: list[str] = []
        for in_schema, name in await (await self._connection.execute(STATE["tables_of_workers"])).fetchall():
            wait = WAIT_A_MOMENT if len(in_use) < MAX_TRIES else HARDLY_WAIT  # a backup uses all of them
            try:
                objection = await self._take_table(in_schema, name, wait)
            except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected):
                in_use.append(f"{in_schema}.{name}")
            else:
                refused += [] if objection is None else [f"{in_schema}.{name}: {objection}"]
        notices = [f"A table still belongs to the workers: {each}. {AGAIN}" for each in refused[:MAX_NAMED]]
        if more := len(refused[MAX_NAMED:]):
            notices.append(f"Tables that still belong to the workers and are not named here: {more}.")
        if in_use:
            left = f"Tables that are in use still belong to the workers: {len(in_use)}, such as {in_use[0]}."
            notices.append(f"{left} Migrate again when it is quiet: graticule schema migrate")
        return notices

    async def _take_table(self, in_schema: str, name: str, wait: LiteralString) -> str | None:
        """Return why a table cannot be taken over; None when it was, or is no longer there."""
        named = {"in_schema": in_schema, "name": name}
        try:
            async with self._connection.transaction():
                await self._act_as_owner()
                await self._connection.execute(wait)
                if await self._value("take_table", named):
                    return None
                return str(await self._value("objection_to_table", named))
        except psycopg.errors.UndefinedTable:
            return None  # it was replaced or dropped

    async def _value(self, query: str, named: Mapping[str, str]) -> Any:
        row = await (await self._connection.execute(STATE[query], named)).fetchone()
        return row[0] if row else None

    async def _reserved_platforms(self) -> list[str]:
        rows = await (await self._connection.execute(STATE["reserved_platforms"])).fetchall()
        return [
            f"The platform {platform_id} has a name that is kept for hand-made jobs; it stays as it is."
            for (platform_id,) in rows
        ]

    async def _hide(self) -> None:
        async with self._connection.transaction():
            await self._act_as_owner()
            await self._connection.execute("DROP SCHEMA IF EXISTS serving, dagapp_compat CASCADE")

    async def _seed(self, models: Models) -> None:
        async with self._connection.transaction():
            await self._act_as_owner()
            for statement in seed_statements(models):
                await self._connection.execute(statement.encode())

    async def _act_as_owner(self) -> None:
        await self._connection.execute(f"SET LOCAL ROLE {DatabaseRole.OWNER}".encode())

    async def _server(self) -> dict[str, Any]:
        row = await self._row("server")
        assert row is not None  # noqa: S101 - a SELECT without FROM has one row
        return row

    async def _is_deployed(self, ours: str) -> bool:
        """Ask as the processes' readiness does."""
        query = DeploymentRepository.queries["is_deployed"]
        row = await (await self._connection.execute(query, {"fingerprint": ours})).fetchone()
        return bool(row and row[0])

    async def _row(self, query: str) -> dict[str, Any] | None:
        async with self._connection.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(STATE[query])
            return await cursor.fetchone()


@asynccontextmanager
async def database_schema(url: str, models: Models = TABLES) -> AsyncIterator[DatabaseSchema]:
    """Connect as the login of `url` and give the database's schema."""
    with domain_errors("connect to the database"):
        connection = await connected(url, autocommit=True, connect_timeout=10)
    async with connection:
        await connection.execute("SET lock_timeout = '60s'")  # another deployment may be under way, but not for ever
        yield DatabaseSchema(connection, url, models)


def _pending(plan: Plan, server: Mapping[str, Any]) -> list[Reported]:
    if not server["prepared"]:
        return [UNPREPARED]
    return [*_reported(plan.changes), *_missing_scripts(server)]


def _missing_scripts(server: Mapping[str, Any]) -> list[Reported]:
    """List what this release makes by scripts of its own, and the database does not have as it is here."""
    wanted = ((RULES, server["rules"] == rules.marker()), (VIEWS, server["serving"] == serving.marker()))
    return [reported for reported, is_there in wanted if not is_there]


def _locked(what: str) -> Unavailable:
    return Unavailable(f"Another session holds a lock that `{what}` needs.", hint="Try again when it is quiet.")


def _script(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8").strip()


def _recorded(models: Models) -> str:
    """Give the statement that records this schema as deployed; run by psql too, hence with values written in."""
    values = {"fingerprint": f"'{fingerprint(models)}'", "program_version": f"'{__version__}'"}
    return STATE["record_deployment"] % values


def _refused(change: Change, error: psycopg.Error) -> Difference:
    reason = error.diag.message_primary or "the database refused it"
    return Difference(change.key, f"cannot be made with the rows that are there: {reason}", change.sql)


def _reported(items: Iterable[Change | Difference]) -> list[Reported]:
    return [
        Reported(object=str(item.key), detail=item.sql)
        if isinstance(item, Change)
        else Reported(object=str(item.key), detail=item.reason, by_hand=item.by_hand)
        for item in items
    ]


def _today() -> date:
    return datetime.now(UTC).date()
