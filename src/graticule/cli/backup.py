"""`graticule backup` and `graticule restore`: the database as a file, and back."""

import asyncio
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graticule.cli.console import done, say
from graticule.cli.settings import absolute_home, load_settings
from graticule.config import Settings, StorageKind
from graticule.core.errors import ConfigurationError, Conflict, NotFound

if TYPE_CHECKING:
    from graticule.schema.archive import Programs, Settled

KEYS = ("admin.key", "service.key", "serve.key", "webhook.key")


def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file to make; it must not be there yet.")],
) -> None:
    """Write the whole database into a file, as it is at this moment, while everything goes on.

    It is a dump of `pg_dump` in its custom format. The files in the storage and the keys are not in it: copy the
    storage afterwards, so that it has every file that the dump names.

    Examples:

      graticule backup graticule-2026-03-01.dump
    """
    if file.exists():
        raise Conflict(f"There is a file {file} already.", hint="Name another one, or move it away.")
    settings = load_settings()
    asyncio.run(_backup(settings, file))
    done(f"{file} has the whole database: {file.stat().st_size / 1024 / 1024:,.1f} MiB.")
    is_local = settings.storage is StorageKind.LOCAL
    say(f"Copy the storage now, not before: {settings.storage_folder if is_local else 'the containers in Azure'}.")
    home = absolute_home(settings)
    kept = [name for name in KEYS if (home / name).exists()]
    say(f"Keep the keys apart from both: {', '.join(kept)} of {home}." if kept else "Keep the keys apart from both.")


def restore(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE]",
            help="What `graticule backup`, or `pg_dump --format=custom`, has made.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Make an empty database what it was when FILE was made, with the roles and rights that belong to it.

    Without FILE, a database that was restored by other means (to a point in time, from a snapshot) is made ready: what
    was in someone's hands is free, what was under way gets its whole time again, and tasks that a broker was given are
    given to it anew. Do either before the processes start.

    Examples:

      graticule restore graticule-2026-03-01.dump
    """
    if file is not None and not file.is_file():
        raise NotFound(f"There is no file {file}.")
    settled = asyncio.run(_restore(load_settings(), file))
    done(f"The database is ready. Jobs that go on when an orchestrator starts: {settled.jobs:,}.")
    if settled.tasks:
        say(f"Tasks that a broker was given, and is given anew: {settled.tasks:,}.")


async def _backup(settings: Settings, file: Path) -> None:
    from graticule.cli.connection import owner_connection
    from graticule.schema.archive import dump

    programs = _programs(settings)
    async with owner_connection(settings) as url:
        await dump(url, programs, file)


async def _restore(settings: Settings, file: Path | None) -> "Settled":
    from graticule.cli import connection
    from graticule.schema import archive

    if file is None:
        async with connection.owner_connection(settings) as url:
            return await archive.settle_restored(url)
    programs = _programs(settings)
    async with connection.owner_connection(settings, create=True) as url:
        return await archive.restore(url, programs, file)


def _programs(settings: Settings) -> "Programs":
    from graticule.embedded.binaries import candidates
    from graticule.schema.archive import Programs

    folders = [settings.pg_bin] if settings.pg_bin else [each.bindir for each in candidates()]
    return Programs(*(_program(name, folders) for name in ("pg_dump", "pg_restore", "psql")))


def _program(name: str, folders: list[Path]) -> Path:
    """Give a program of the best PostgreSQL here, or that of the PATH; newer ones know older servers too."""
    known = next((folder / name for folder in folders if (folder / name).is_file()), None)
    found = known or shutil.which(name)
    if found is None:
        raise ConfigurationError(
            f"The program {name} of PostgreSQL is not installed here.",
            hint="Install the client of the server's version or a newer one, or name its folder in GRATICULE_PG_BIN.",
        )
    return Path(found)
