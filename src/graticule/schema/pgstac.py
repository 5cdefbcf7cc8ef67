"""The STAC catalogue's own schema, which `pypgstac` brings and migrates."""

import asyncio
import sys
from importlib.metadata import version
from importlib.resources import files
from typing import Any

from psycopg import AsyncConnection

from graticule.core.errors import ConfigurationError
from graticule.repositories.login import libpq_environment

ATTEMPTS = 5
COLLIDED = b"tuple concurrently updated"  # its roles are the server's, and another database's migration alters them


def wanted_version() -> str:
    """Give the version of pgstac that this program brings."""
    return version("pypgstac")


async def installed_version(connection: AsyncConnection[Any]) -> str | None:
    """Give the version of pgstac that the database has, or None."""
    there = await connection.execute("SELECT to_regprocedure('pgstac.get_version()') IS NOT NULL")
    if not (await there.fetchone() or [False])[0]:
        return None
    # pgstac resolves its own tables by search path; it wants to be set, not assumed.
    async with connection.transaction():
        await connection.execute("SET LOCAL search_path = pgstac, public")
        row = await (await connection.execute("SELECT pgstac.get_version()")).fetchone()
    return str(row[0]) if row else None


def script() -> str:
    """Give the SQL that makes pgstac where there is none, to the letter as `pypgstac migrate` sends it."""
    text = files("pypgstac").joinpath("migrations", f"pgstac.{wanted_version()}.sql").read_text(encoding="utf-8")
    return "\n".join(text.splitlines(keepends=True))  # it doubles line ends, and so do function bodies in the catalogue


async def migrate(url: str) -> None:
    """Run `pypgstac migrate` in a process of its own: importing it changes how psycopg reads JSON everywhere."""
    for _ in range(ATTEMPTS):
        code, output = await _run_migration(url)
        if COLLIDED not in output:
            break
    if code:
        raise ConfigurationError(
            f"`pypgstac migrate` could not bring pgstac to {wanted_version()}.",
            hint="The database needs the extensions btree_gist and unaccent, and a login that may create roles.",
            detail=output.decode(errors="replace")[-4000:],
        )


async def _run_migration(url: str) -> tuple[int | None, bytes]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "pypgstac.pypgstac", "migrate"),
        env=await libpq_environment(url),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        output, _ = await process.communicate()
    except BaseException:  # interrupted: it must not go on without the lock that we hold for it
        process.kill()
        await process.wait()
        raise
    return process.returncode, output
