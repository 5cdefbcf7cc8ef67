"""`graticule schema …`: the database's schema."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Final, TypeVar

import typer
from pydantic import BaseModel
from rich.table import Table

from graticule.cli.console import done, out, story, warn
from graticule.cli.settings import load_settings
from graticule.core.errors import ConfigurationError

if TYPE_CHECKING:
    from graticule.schema.report import Reported, SchemaReport
    from graticule.services.bootstrap import BootstrapService

app = typer.Typer(no_args_is_help=True, help="See, make and migrate the database's schema.")
T = TypeVar("T")
SHORTEST_PASSWORD: Final = 16

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]


def _with_service(action: "Callable[[BootstrapService], Awaitable[T]]", *, create: bool = False) -> T:
    from graticule.cli.connection import owner_connection
    from graticule.services.bootstrap import BootstrapService

    async def run() -> T:
        settings = load_settings()
        async with owner_connection(settings, create=create) as url:
            return await action(BootstrapService(url, development=settings.development))

    return asyncio.run(run())


@app.command()
def status(as_json: AsJson = False) -> None:
    """Compare the database with the models. Exits with 1 when the schema is not current."""
    found = _with_service(lambda service: service.status())
    if as_json:
        _print_json(found)
    else:
        for name, value in found.model_dump(exclude={"pending", "differences"}).items():
            out.print(f"{name.replace('_', ' '):>22}  {value if value is not None else 'none'}", soft_wrap=True)
        _print_items("to be made", found.pending)
        _print_items("different", found.differences)
    if not found.current:
        warn("The schema is not current: run `graticule schema migrate`.")
        raise typer.Exit(1)


@app.command()
def tables(as_json: AsJson = False) -> None:
    """List the tables with their row counts and sizes."""
    found = _with_service(lambda service: service.tables())
    if as_json:
        out.print_json(data=[table.model_dump() for table in found])
        return
    listing = Table("table", "rows", "KiB", "indexes", "holds", box=None, header_style="bold")
    for table in found:
        rows = f"~{table.rows}" if table.rows_estimated else str(table.rows)
        listing.add_row(table.name, rows, str(table.bytes // 1024), str(table.indexes), table.comment or "")
    out.print(listing)


@app.command()
def ddl() -> None:
    """Print the whole schema as a script for an empty database (`graticule schema ddl | psql …`)."""
    from graticule.schema.deploy import ddl_script

    typer.echo(ddl_script())


@app.command()
def deploy(as_json: AsJson = False) -> None:
    """Make what is missing; tables that are there are left as they are. May be repeated."""
    _finish(_with_service(lambda service: service.deploy(), create=True), as_json)


@app.command()
def migrate(as_json: AsJson = False) -> None:
    """Bring the schema up to date by additions; what cannot be made safely is reported."""
    _finish(_with_service(lambda service: service.migrate(), create=True), as_json)


@app.command()
def logins() -> None:
    """Let the roles of the processes log in, each with the password of its variable. May be repeated.

    GRATICULE_GATEWAY_PASSWORD is that of graticule_gateway; so are those of ORCHESTRATOR, WORKER, SERVE_INTERNAL and
    SERVE_EXTERNAL. GRATICULE_SCALER_PASSWORD makes graticule_scaler, which can only see how many tasks wait. A role
    whose variable is not set stays as it is. Run it as the administrator (GRATICULE_OWNER_DATABASE_URL), after
    `graticule schema migrate`.
    """
    from graticule.cli.connection import owner_connection
    from graticule.schema.passwords import LOGINS, set_passwords

    passwords = {role: password for role in LOGINS if (password := _password(role))}
    if not passwords:
        raise ConfigurationError(
            "No password is given.", hint=f"Set {', '.join(map(_password_variable, LOGINS))}, or those that are needed."
        )

    async def run() -> None:
        async with owner_connection(load_settings()) as url:
            await set_passwords(url, passwords)

    asyncio.run(run())
    done(f"{', '.join(passwords)} can log in.")


def _password_variable(role: str) -> str:
    return f"{role.upper()}_PASSWORD"


def _password(role: str) -> str | None:
    """Give the password of a role, if it has one."""
    found = os.environ.get(_password_variable(role))
    if found and len(found) < SHORTEST_PASSWORD:
        raise ConfigurationError(
            f"{_password_variable(role)} has fewer than {SHORTEST_PASSWORD} characters.",
            hint="Make one with `openssl rand -hex 32`.",
        )
    return found


@app.command()
def rebuild(
    confirm: Annotated[str, typer.Option(help="The name of the database: all of its rows will be gone.")],
    as_json: AsJson = False,
) -> None:
    """Drop the schema with every row and make it anew. Only in development mode."""
    _finish(_with_service(lambda service: service.rebuild(confirm)), as_json)


def _finish(report: "SchemaReport", as_json: bool) -> None:
    if as_json:
        _print_json(report)
    else:
        for notice in report.notices:
            done(notice)
        done(f"{len(report.applied)} changes made in {report.database}.")
        _print_items("to be made", report.pending)
        _print_items("different", report.differences)
    if not report.current:
        warn("The schema is not current: run `graticule schema migrate`, and mend what is reported above by hand.")
        raise typer.Exit(1)


def _print_items(title: str, items: "list[Reported]") -> None:
    for item in items:
        story.print(f"{title:>22}  {item.object}: {item.detail}", soft_wrap=True)
        if item.by_hand:
            story.print(f"{'by hand':>22}  {item.by_hand}", soft_wrap=True)


def _print_json(model: BaseModel) -> None:
    out.print_json(model.model_dump_json())
