"""Which server the commands talk to, with which key, and how its refusals are told to a person."""

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from graticule.cli.processes import ORCHESTRATOR_PORT
from graticule.cli.running import running_installation
from graticule.cli.settings import absolute_home
from graticule.client import ApiProblem, AsyncClient, UnexpectedAnswer
from graticule.config import Settings
from graticule.core.errors import ConfigurationError, Unavailable


@dataclass(frozen=True, slots=True)
class Server:
    """Where the API is, and the key that opens it."""

    address: str
    key: str | None = field(repr=False)

    @classmethod
    def locate(cls, settings: Settings, address: str | None) -> "Server":
        """Take the address that was given, else that of what runs in the data folder, else the usual one."""
        home = absolute_home(settings)
        running = None if address else running_installation(home)
        found = address or (running.orchestrator if running else f"http://127.0.0.1:{ORCHESTRATOR_PORT}")
        if urlsplit(found).scheme not in {"http", "https"}:
            raise ConfigurationError(
                f"{found!r} is not the address of a server.", hint="Write it as http://127.0.0.1:8001."
            )
        return cls(found.rstrip("/"), _key(settings, home))


def _key(settings: Settings, home: Path) -> str | None:
    if given := os.environ.get("GRATICULE_API_KEY"):
        return given
    if settings.admin_key is not None:
        return settings.admin_key.get_secret_value()
    try:
        return (home / "admin.key").read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return None


@asynccontextmanager
async def connected(server: Server) -> AsyncIterator[AsyncClient]:
    """Give a client of a server. It sends everything once: a person decides whether to try again."""
    with _told_to_a_person():
        async with AsyncClient(server.address, api_key=server.key, repeats=0) as client:
            yield client


@contextmanager
def _told_to_a_person() -> Iterator[None]:
    """Add to what went wrong the way to mend it from here."""
    try:
        yield
    except ApiProblem as problem:
        message = " ".join([problem.message, *map(str, problem.errors)])
        raise ApiProblem(problem.status, message, code=problem.code, hint=_hint(problem)) from problem
    except Unavailable as error:
        hint = "Start it with `graticule up`, or name another server with --server or GRATICULE_API_URL."
        raise Unavailable(error.message, hint=hint, detail=error.detail) from error


def _hint(problem: ApiProblem) -> str | None:
    if isinstance(problem, UnexpectedAnswer):
        return "Is it Graticule's orchestrator? --server or GRATICULE_API_URL names it."
    if problem.status == 401:
        return (
            "Set GRATICULE_API_KEY to a key that it knows, GRATICULE_ADMIN_KEY to its admin key, "
            "or GRATICULE_HOME to the data folder that has it."
        )
    return problem.hint
