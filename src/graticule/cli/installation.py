"""All of Graticule on one machine: a database and one of each process, supervised."""

import asyncio
import contextlib
import itertools
import os
import secrets
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import httpx
from pydantic import SecretStr

from graticule.cli.local_database import Announce, DatabaseUrls, local_database
from graticule.cli.running import RunningInstallation, noted
from graticule.cli.settings import absolute_home
from graticule.cli.supervisor import GRACE_SECONDS, Child, start_log
from graticule.config import HttpAddress, Settings, StorageKind
from graticule.core.audience import Audience
from graticule.core.errors import ConfigurationError, Unavailable
from graticule.embedded.files import write_atomically
from graticule.embedded.location import prepare_home
from graticule.embedded.ports import is_free
from graticule.embedded.server_user import ServerUser
from graticule.storage.privacy import make_private, write_privately

READY_WITHIN_SECONDS = 60.0
PROBE_EVERY_SECONDS = 0.1
WORKER_QUEUES = "functionapp-tasks,container-tasks"
STOPPING_SECONDS = 10.0  # what a worker needs beyond the grace that it gives to its tasks
LAST_PORT = 65535
NOT_INHERITED = frozenset(
    {
        "RUN_MODE",
        "GRATICULE_RUN_MODE",
        "GRATICULE_OWNER_DATABASE_URL",
        "GRATICULE_ADMIN_KEY",
        "GRATICULE_OIDC_CLIENT_SECRET",
        "GRATICULE_SERVE_KEY",
        "GRATICULE_SERVICE_KEY",
        "SERVICE_BUS_CONNECTION_STRING",
        "GRATICULE_SERVICE_BUS_CONNECTION_STRING",
        "GRATICULE_WEBHOOK_SECRET",
        "GRATICULE_WORKER_TOKEN",
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
    workers: tuple[str, ...]
    serve: str | None
    database: str
    home: Path
    logs: Path
    admin_key: AdminKey


@contextlib.asynccontextmanager
async def run_installation(
    settings: Settings, host: str, port: int, announce: Announce, *, workers: int = 1, serve: bool = True
) -> AsyncIterator[Installation]:
    """Start everything, give it when it is ready, and stop it in order at the end."""
    if workers:
        _has_extra("worker", "rasterio", "Rasters and vectors are not processed", announce)
    can_serve = serve and _has_extra("serve", "titiler", "Tiles, features and the catalogue are not served", announce)
    layout = _Layout(port, workers, serve=can_serve)
    check_ports(port, layout.names)
    home = prepare_home(absolute_home(settings), ServerUser.choose())
    key = admin_key(settings, home)
    async with local_database(settings, home, announce) as urls:
        if settings.storage is StorageKind.LOCAL:
            make_private(settings.storage_folder)
            write_privately(settings.storage_folder)
        running = Installation(
            gateway=_address(host, port),
            orchestrator=_address(host, port + 1),
            workers=tuple(_address(host, each) for each in layout.worker_ports),
            serve=_address(host, layout.serve_port) if layout.serve else None,
            database=urls.place,
            home=home,
            logs=home / "logs",
            admin_key=key,
        )
        environments = _environments(settings, running, urls)
        children = [
            [
                Child(
                    name=process.name,
                    arguments=(*process.command, "--host", host, "--port", str(process.port)),
                    environment=environments[process.command[0]],
                    log=start_log(running.logs, process.name),
                    announce=announce,
                    grace_seconds=process.grace_seconds,
                )
                for process in group
            ]
            for group in _processes(settings, layout)
        ]
        async with _supervised(children):
            await _until_ready(running)
            with noted(home, _note(running)):
                yield running


@dataclass(frozen=True, slots=True)
class _Process:
    """A process to start: its name, its command, its port, and how long it may take to stop."""

    name: str
    command: tuple[str, ...]
    port: int
    grace_seconds: float = GRACE_SECONDS


@dataclass(frozen=True, slots=True)
class _Layout:
    """Who has which port: the gateway the first, the orchestrator the next, then the workers, and the services last."""

    port: int
    workers: int
    serve: bool

    @property
    def worker_ports(self) -> range:
        return range(self.port + 2, self.port + 2 + self.workers)

    @property
    def serve_port(self) -> int:
        return self.port + 2 + self.workers

    @property
    def names(self) -> tuple[str, ...]:
        workers = (f"worker {number + 1}" for number in range(self.workers))
        return ("gateway", "orchestrator", *workers, *(["services"] if self.serve else []))


def _has_extra(extra: str, module: str, lack: str, announce: Announce) -> bool:
    """Tell whether an extra is installed, by a module that it brings, and say what is lacking if it is not."""
    if find_spec(module) is not None:
        return True
    announce(f"{lack}: `pip install 'graticule[{extra}]'` brings what that needs.")
    return False


def _processes(settings: Settings, layout: _Layout) -> list[list[_Process]]:
    """Give the processes in the order in which they stop.

    The gateway and the services take no more requests; the workers hand their tasks back; the orchestrator, last, its
    jobs.
    """
    grace = settings.worker_grace_seconds + STOPPING_SECONDS
    worker = ("worker", "--queues", WORKER_QUEUES)
    serve = [_Process("serve", ("serve", "--audience", Audience.INTERNAL), layout.serve_port)] if layout.serve else []
    return [
        [_Process("gateway", ("gateway",), layout.port), *serve],
        [_Process(f"worker-{number}", worker, port, grace) for number, port in enumerate(layout.worker_ports, start=1)],
        [_Process("orchestrator", ("orchestrator",), layout.port + 1)],
    ]


def _note(running: Installation) -> RunningInstallation:
    return RunningInstallation(os.getpid(), running.gateway, running.orchestrator, running.workers, running.serve)


def check_ports(port: int, names: Sequence[str]) -> None:
    """Refuse early, and clearly, when a port that we need is taken, or there is none of that number."""
    for wanted, process in enumerate(names, start=port):
        if wanted > LAST_PORT or not is_free(wanted):
            reason = "is in use by another program" if wanted <= LAST_PORT else "does not exist"
            proposed = free_ports(port, len(names))
            raise ConfigurationError(
                f"Port {wanted}, which the {process} needs, {reason}.",
                hint=f"End that program, or choose {len(names)} other ports: graticule up --port {proposed}.",
            )


def free_ports(start: int, count: int) -> int:
    """Give the first of so many neighbouring ports that are all free, at or after `start` when possible."""
    firsts = itertools.chain(range(start, LAST_PORT + 2 - count, count), range(1024, start, count))
    found = next((first for first in firsts if all(is_free(first + ahead) for ahead in range(count))), None)
    if found is None:
        raise ConfigurationError(
            f"There are no {count} free ports in a row on this machine.", hint="End some programs."
        )
    return found


def admin_key(settings: Settings, home: Path) -> AdminKey:
    """Give the admin's key: the one that is set, or the data folder's, which is made on the first start."""
    if settings.admin_key is not None:
        return AdminKey("GRATICULE_ADMIN_KEY", settings.admin_key.get_secret_value(), is_new=False)
    path = home / "admin.key"
    is_new = not path.exists()
    return AdminKey(path, kept_secret(None, path), is_new=is_new)


def with_kept_admin_key(settings: Settings) -> Settings:
    """Accept the admin key of the data folder, as the commands do, unless another one is set."""
    path = absolute_home(settings) / "admin.key"
    if settings.admin_key is not None or not path.exists():
        return settings
    return settings.model_copy(update={"admin_key": SecretStr(kept_secret(None, path))})


def kept_secret(given: SecretStr | None, path: Path) -> str:
    """Give a secret: the one that is set, or the data folder's, which is made on the first start."""
    if given is not None:
        return given.get_secret_value()
    if path.exists():
        return path.read_text(encoding="ascii").strip()
    value = secrets.token_urlsafe(32)
    write_atomically(path, value + "\n", mode=0o600)
    return value


def _environments(settings: Settings, running: Installation, urls: DatabaseUrls) -> Mapping[str, dict[str, str]]:
    """Give each process what it may know, and each of the logins its own.

    Those that read partners' files have no keys but that by which the services believe the gateway.
    """
    shared = {name: value for name, value in os.environ.items() if name.upper() not in NOT_INHERITED}
    shared["GRATICULE_HOME"] = str(running.home)
    given = {  # what orchestrators and workers show to each other, and to what carries their tasks
        "GRATICULE_WORKER_TOKEN": settings.worker_token,
        "GRATICULE_SERVICE_BUS_CONNECTION_STRING": settings.service_bus_connection_string,
    }
    between = {name: secret.get_secret_value() for name, secret in given.items() if secret is not None}
    serve_url = _told(settings.serve_url) or running.serve
    addresses = {"GRATICULE_PUBLIC_URL": _told(settings.public_url) or running.gateway}
    if serve_url is not None:
        addresses["GRATICULE_SERVE_URL"] = serve_url
    callers = {
        **addresses,
        "GRATICULE_ADMIN_KEY": running.admin_key.value,
        "GRATICULE_SERVICE_KEY": kept_secret(settings.service_key, running.home / "service.key"),
    }
    viewing = {}
    if running.serve is not None or settings.serve_key is not None:
        viewing["GRATICULE_SERVE_KEY"] = kept_secret(settings.serve_key, running.home / "serve.key")
    orchestrator = {
        "GRATICULE_DATABASE_URL": urls.orchestrator,
        "GRATICULE_OWNER_DATABASE_URL": urls.owner,
        "GRATICULE_WEBHOOK_SECRET": kept_secret(settings.webhook_secret, running.home / "webhook.key"),
    }
    gateway = {
        "GRATICULE_DATABASE_URL": urls.gateway,
        "GRATICULE_ORCHESTRATOR_URL": running.orchestrator,
        "GRATICULE_PROXY_TARGETS": ",".join(_targets(settings, running)),
    }
    if settings.oidc_client_secret is not None:
        gateway["GRATICULE_OIDC_CLIENT_SECRET"] = settings.oidc_client_secret.get_secret_value()
    return {
        "orchestrator": shared | between | callers | orchestrator,
        "gateway": shared | callers | viewing | gateway,
        "worker": shared | between | {"GRATICULE_DATABASE_URL": urls.worker},
        "serve": shared | addresses | viewing | {"GRATICULE_DATABASE_URL": urls.serve},
    }


def _targets(settings: Settings, running: Installation) -> Iterator[str]:
    """Name what operators reach through the gateway: the workers, the services, and what else is configured."""
    workers = {f"worker-{number}": address for number, address in enumerate(running.workers, start=1)}
    serve = {} if running.serve is None else {"serve": running.serve}
    configured = {name: str(address.get_secret_value()) for name, address in settings.proxy_targets.items()}
    for name, address in {**workers, **serve, **configured}.items():
        yield f"{name}={address}"


def _told(address: HttpAddress | None) -> str | None:
    return None if address is None else str(address.get_secret_value())


@contextlib.asynccontextmanager
async def _supervised(groups: Sequence[Sequence[Child]]) -> AsyncIterator[None]:
    """Start all at once; at the end, stop one group after the other."""
    # No TaskGroup: it would wrap an error of ours in a group, and the command line could not tell it plainly.
    tasks = [[asyncio.create_task(child.supervise(), name=child.name) for child in group] for group in groups]
    try:
        yield
    finally:
        for group in tasks:
            for task in group:
                task.cancel()
            await asyncio.gather(*group, return_exceptions=True)


async def _until_ready(running: Installation) -> None:
    """Wait until every process answers that it is ready."""
    # Plain HTTP on this machine: no certificates need be loaded.
    async with httpx.AsyncClient(timeout=5, trust_env=False, verify=False) as client:  # noqa: S501
        for address in filter(None, (running.gateway, running.orchestrator, *running.workers, running.serve)):
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
