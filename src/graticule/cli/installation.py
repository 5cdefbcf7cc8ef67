"""All of Graticule on one machine: a database and one of each process, supervised."""

import asyncio
import contextlib
import os
import secrets
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from pathlib import Path

import httpx

from graticule.cli.local_database import Announce, DatabaseUrls, local_database
from graticule.cli.settings import absolute_home
from graticule.cli.supervisor import Child, start_log
from graticule.config import Settings
from graticule.core.errors import ConfigurationError, Unavailable
from graticule.embedded.files import write_atomically
from graticule.embedded.location import prepare_home
from graticule.embedded.ports import free_pair, is_free
from graticule.embedded.server_user import ServerUser

READY_WITHIN_SECONDS = 60.0
PROBE_EVERY_SECONDS = 0.1
NOT_INHERITED = frozenset(
    {
        "RUN_MODE",
        "GRATICULE_RUN_MODE",
        "GRATICULE_OWNER_DATABASE_URL",
        "GRATICULE_ADMIN_KEY",
        "POSTGRES_PASSWORD",
        "GRATICULE_POSTGRES_PASSWORD",
    }
)


@dataclass(frozen=True, slots=True)
class AdminKey:
    """The admin's key, where it is kept, and whether it was made just now."""

    place: Path | str
    value: str
    is_new: bool

    def __repr__(self) -> str:
        return f"AdminKey({self.place})"


@dataclass(frozen=True, slots=True)
class Installation:
    """What runs, and where to reach it."""

    gateway: str
    orchestrator: str
    database: str
    home: Path
    logs: Path
    admin_key: AdminKey


@contextlib.asynccontextmanager
async def run_installation(settings: Settings, host: str, port: int, announce: Announce) -> AsyncIterator[Installation]:
    """Start everything, give it when it is ready, and stop it in order at the end."""
    check_ports(port)
    home = prepare_home(absolute_home(settings), ServerUser.choose())
    key = admin_key(settings, home)
    async with local_database(settings, home, announce) as urls:
        running = Installation(
            gateway=_address(host, port),
            orchestrator=_address(host, port + 1),
            database=urls.place,
            home=home,
            logs=home / "logs",
            admin_key=key,
        )
        ports = {"orchestrator": port + 1, "gateway": port}
        children = [
            Child(
                name=name,
                arguments=(name, "--host", host, "--port", str(ports[name])),
                environment=environment,
                log=start_log(running.logs, name),
                announce=announce,
            )
            for name, environment in _environments(running, urls).items()
        ]
        async with _supervised(children):
            await _until_ready(running)
            yield running


def check_ports(port: int) -> None:
    """Refuse early, and clearly, when a port that we need is taken."""
    for wanted, process in ((port, "gateway"), (port + 1, "orchestrator")):
        if not is_free(wanted):
            raise ConfigurationError(
                f"Port {wanted}, which the {process} needs, is in use by another program.",
                hint=f"End that program, or choose another pair of ports: graticule up --port {free_pair(port)}.",
            )


def admin_key(settings: Settings, home: Path) -> AdminKey:
    """Give the admin's key: the one that is set, or the data folder's, which is made on the first start."""
    if settings.admin_key is not None:
        return AdminKey("GRATICULE_ADMIN_KEY", settings.admin_key.get_secret_value(), is_new=False)
    path = home / "admin.key"
    if path.exists():
        return AdminKey(path, path.read_text(encoding="ascii").strip(), is_new=False)
    value = secrets.token_urlsafe(32)
    write_atomically(path, value + "\n", mode=0o600)
    return AdminKey(path, value, is_new=True)


def _environments(running: Installation, urls: DatabaseUrls) -> dict[str, dict[str, str]]:
    """Give each process what it may know: the gateway not the key, and of the embedded database no other login."""
    shared = {name: value for name, value in os.environ.items() if name.upper() not in NOT_INHERITED}
    shared["GRATICULE_HOME"] = str(running.home)
    orchestrator = {
        "GRATICULE_DATABASE_URL": urls.orchestrator,
        "GRATICULE_OWNER_DATABASE_URL": urls.owner,
        "GRATICULE_ADMIN_KEY": running.admin_key.value,
    }
    return {"orchestrator": shared | orchestrator, "gateway": shared | {"GRATICULE_DATABASE_URL": urls.gateway}}


@contextlib.asynccontextmanager
async def _supervised(children: Iterable[Child]) -> AsyncIterator[None]:
    # No TaskGroup: it would wrap an error of ours in a group, and the command line could not tell it plainly.
    tasks = [asyncio.create_task(child.supervise(), name=child.name) for child in children]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _until_ready(running: Installation) -> None:
    """Wait until both processes answer that they are ready."""
    async with httpx.AsyncClient(timeout=5) as client:
        for address in (running.gateway, running.orchestrator):
            await _until_answer(client, f"{address}/readyz", running.logs)


async def _until_answer(client: httpx.AsyncClient, url: str, logs: Path) -> None:
    said = "nothing"
    try:
        async with asyncio.timeout(READY_WITHIN_SECONDS):
            while True:
                with contextlib.suppress(httpx.TransportError):
                    answer = await client.get(url)
                    if answer.is_success:
                        return
                    said = answer.text
                await asyncio.sleep(PROBE_EVERY_SECONDS)
    except TimeoutError:
        raise Unavailable(
            f"{url} did not become ready within {READY_WITHIN_SECONDS:.0f} s; it said: {said}.",
            hint=f"The logs are in {logs}.",
        ) from None


def _address(host: str, port: int) -> str:
    shown = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - told apart, not bound
    return f"http://[{shown}]:{port}" if ":" in shown else f"http://{shown}:{port}"
