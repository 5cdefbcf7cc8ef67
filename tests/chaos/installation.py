"""An installation to be tormented: a PostgreSQL of its own, a bad network before it, orchestrators and workers."""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, LiteralString, Protocol

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from tests.chaos import handlers
from tests.chaos.ledger import Ledger
from tests.chaos.member import Fault, Member, Orders
from tests.chaos.proxy import Proxy, Streams
from tests.chaos.workflows import ChaosWorkflow, write_workflows
from tests.e2e.processes import free_ports

from graticule.core.table import DatabaseRole
from graticule.embedded.cluster import Cluster
from graticule.embedded.credentials import ADMIN, Credentials
from graticule.embedded.logins import allow_logins
from graticule.services.bootstrap import BootstrapService

DATABASE: Final = "graticule"
TOLD_TO_END: Final = (0, -signal.SIGKILL, -signal.SIGTERM)  # the last: before it could listen to signals
OPERATOR_KEY: Final = "a-key-for-the-operators-of-chaos"
# A power cut is not among what is tried, so nobody waits for the disk. A server that is killed recovers from its
# journal all the same, and forgets what it was told not to write at once.
NO_POWER_CUTS: Final = {"fsync": "off", "full_page_writes": "off", "restart_after_crash": "on"}
# The product's times, made short.
QUICK: Final = {
    "GRATICULE_HEARTBEAT_INTERVAL_SECONDS": "1",
    "GRATICULE_ORPHAN_SCAN_INTERVAL_SECONDS": "1",
    "GRATICULE_ORPHAN_THRESHOLD_SECONDS": "4",
    "GRATICULE_ORCHESTRATOR_POLL_INTERVAL": "1",
    "GRATICULE_UNKNOWN_WORKFLOW_SECONDS": "3",
    "GRATICULE_WORKER_LEASE_SECONDS": "4",
    "GRATICULE_WORKER_RENEW_SECONDS": "1",
    "GRATICULE_WORKER_GRACE_SECONDS": "2",
}
# A task that ends its workers is given up sooner than the product would: it costs a worker each time.
POISON_DELIVERIES: LiteralString = """
CREATE OR REPLACE FUNCTION dagapp.chaos_poison() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.max_deliveries := 3;
    RETURN NEW;
END $$;
CREATE OR REPLACE TRIGGER chaos_poison BEFORE INSERT ON dagapp.dag_tasks
FOR EACH ROW WHEN (NEW.handler = 'chaos.poison') EXECUTE FUNCTION dagapp.chaos_poison();
"""
WAITING: LiteralString = """
SELECT (SELECT count(*) FROM dagapp.dag_jobs WHERE status IN ('pending', 'running'))
     + (SELECT count(*) FROM dagapp.dag_task_results WHERE processed_at IS NULL)
     + (SELECT count(*) FROM dagapp.dag_tasks WHERE status IN ('queued', 'leased'))
     + (SELECT count(*) FROM dagapp.dag_job_messages WHERE status IN ('queued', 'leased'))
"""
ENDED: Final = "SELECT count(*) FROM dagapp.dag_jobs WHERE ended_at IS NOT NULL"


class Place(Protocol):
    """A database, by its addresses."""

    def url(self, role: str = ADMIN) -> str:
        """Give the address for a role; the administrator's by default."""


# The server


@dataclass(frozen=True)
class Server:
    """A private PostgreSQL with our schema, which can be killed."""

    cluster: Cluster
    database: str = DATABASE

    def url(self, role: str = ADMIN) -> str:
        """Give the address for a role, without the network between."""
        return self.cluster.url(role, self.database)

    async def clone(self, name: str) -> "Server":
        """Give the same server with another database, which is as the first is now; nobody may be connected to that."""
        async with await psycopg.AsyncConnection.connect(self.cluster.url(ADMIN, "postgres"), autocommit=True) as admin:
            names = sql.Identifier(name), sql.Identifier(self.database)
            await admin.execute(sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(*names))
        return Server(self.cluster, name)

    async def connect(self) -> Streams:
        """Open a connection of bytes, for a proxy."""
        parts = conninfo_to_dict(self.url())
        return await asyncio.open_unix_connection(f"{parts['host']}/.s.PGSQL.{parts['port']}")

    async def end(self, number: signal.Signals) -> None:
        """End the server: at once and without order by SIGQUIT or SIGKILL, or fast by SIGINT."""
        if (pid := self.cluster.pid) is not None:
            os.kill(pid, number)
            await self.cluster.wait()

    async def restart(self, number: signal.Signals) -> None:
        """End the server, and start it again."""
        await self.end(number)
        await self.cluster.start()

    def backends(self) -> list[int]:
        """Give the server's processes for clients; when one is killed, the server ends all others and begins anew."""
        return [pid for pid in self._children() if b"[local]" in _command(pid)]

    def _children(self) -> list[int]:
        pid = self.cluster.pid
        with contextlib.suppress(OSError):
            return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
        return []


def _command(pid: int) -> bytes:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


@asynccontextmanager
async def private_server(home: Path) -> AsyncIterator[Server]:
    """Make a server, with our schema in it, and stop it at the end."""
    async with Cluster.of(home, settings=NO_POWER_CUTS) as cluster:
        server = Server(cluster)
        await cluster.ensure_database(DATABASE)
        await BootstrapService(server.url(), development=False).deploy()
        await allow_logins(server.url(), Credentials.load(home))
        async with await psycopg.AsyncConnection.connect(server.url(), autocommit=True) as connection:
            await connection.execute(POISON_DELIVERIES)
        yield server


# The members


@dataclass
class Post:
    """What one member is to be; when its process has ended, another takes the post."""

    name: str
    orders: Orders
    port: int
    member: Member | None = None
    is_kept: bool = True
    ended: int = 0  # how many of its processes have

    @property
    def is_orchestrator(self) -> bool:
        return self.orders.command[0] == "orchestrator"

    def fill(self) -> Member:
        """Give the process that has the post, and start one if there is none."""
        if self.member is None:
            self.member = Member(self.orders)
        return self.member

    def leave(self) -> int | None:
        """Note that the process has ended, and give its exit code."""
        code = None if self.member is None else self.member.exit_code
        self.member = None
        self.ended += 1
        return code


@dataclass
class Crew:
    """Orchestrators and workers on one database, in one folder."""

    folder: Path
    place: Place
    timings: Mapping[str, str] = field(default_factory=lambda: QUICK)
    proxy: Proxy | None = None
    posts: list[Post] = field(default_factory=list)
    mishaps: list[str] = field(default_factory=list)

    @property
    def ledger(self) -> Ledger:
        return Ledger(self.folder / "ledger.jsonl")

    @property
    def orchestrators(self) -> list[Post]:
        return [post for post in self.posts if post.is_orchestrator]

    @property
    def workers(self) -> list[Post]:
        return [post for post in self.posts if not post.is_orchestrator]

    def write(self, workflows: Sequence[ChaosWorkflow]) -> None:
        """Write the workflows that orchestrators load when they start."""
        write_workflows(workflows, self.folder / "workflows")

    def url(self, role: DatabaseRole) -> str:
        """Give the address at which members reach the database: through the bad network, if there is one."""
        if self.proxy is None:
            return self.place.url(role)
        return make_conninfo(self.place.url(role), host="127.0.0.1", port=self.proxy.port, sslmode="disable")

    def hire(
        self,
        orchestrators: int = 0,
        workers: int = 0,
        *,
        skews: Sequence[float] = (0.0,),
        fault: Fault | None = None,
        broken: str | None = None,
        concurrency: int = 8,
    ) -> list[Post]:
        """Add members and start them; their clocks are wrong by these seconds, in turn."""
        serving = ("worker", "--queues", handlers.QUEUE, "--concurrency", str(concurrency))
        commands: list[tuple[str, ...]] = [*[("orchestrator",)] * orchestrators, *[serving] * workers]
        hired = []
        for number, command in enumerate(commands):
            name, port = f"{command[0]}-{len(self.posts)}", self._free_port()
            orders = Orders(
                command=(*command, "--port", str(port)),
                log=self.folder / "logs" / f"{name}.log",
                environment=self._environment(command[0]),
                clock_ahead_seconds=skews[number % len(skews)],
                fault=fault,
                handlers=(handlers.__name__,),
                broken=broken,
            )
            hired.append(Post(name, orders, port))
            self.posts.append(hired[-1])
        (self.folder / "logs").mkdir(exist_ok=True)
        for post in hired:
            post.fill()
        return hired

    def _free_port(self) -> int:
        taken = {post.port for post in self.posts}
        while (port := free_ports()) in taken:
            continue
        return port

    def _environment(self, role: str) -> dict[str, str]:
        as_role = DatabaseRole.ORCHESTRATOR if role == "orchestrator" else DatabaseRole.WORKER
        return {
            "GRATICULE_HOME": str(self.folder),
            "GRATICULE_ADMIN_KEY": OPERATOR_KEY,
            "GRATICULE_WORKFLOWS": str(self.folder / "workflows"),
            "GRATICULE_DATABASE_URL": self.url(as_role),
            handlers.LEDGER_VARIABLE: str(self.ledger.path),
            **self.timings,
        }

    async def keep(self) -> None:
        """Fill posts that became free, for ever; note who ended without having been told to."""
        while True:
            for post in self.posts:
                self.look_after(post)
            await asyncio.sleep(0.05)

    def look_after(self, post: Post) -> None:
        """Fill a post if it is free."""
        if post.member is not None and not post.member.running:
            code = post.leave()
            if code not in TOLD_TO_END:
                self.mishaps.append(f"{post.name} ended with {code}; see {post.orders.log}")
        if post.member is None and post.is_kept:
            post.fill()

    def dismiss(self) -> None:
        """End everyone at once, for good."""
        for post in self.posts:
            if post.member is not None:
                post.member.kill()
                post.leave()
        self.posts.clear()

    def heal(self) -> None:
        """Let those go on that were paused."""
        for post in self.posts:
            if post.member is not None:
                post.member.send(signal.SIGCONT)


@asynccontextmanager
async def crew_at_work(crew: Crew) -> AsyncIterator[Crew]:
    """Keep the posts filled inside the block, and end everyone afterwards."""
    keeping = asyncio.create_task(crew.keep())
    try:
        yield crew
    finally:
        keeping.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await keeping
        crew.dismiss()


# Waiting


async def ask(url: str, query: LiteralString, *given: object) -> list[tuple[object, ...]]:
    """Ask the database one thing."""
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        return await (await connection.execute(query, given)).fetchall()


async def settled(place: Place, seconds: float) -> bool:
    """Wait until all jobs have ended and nothing is left to do; False when it does not come to that."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with contextlib.suppress(psycopg.OperationalError):
            if (await ask(place.url(), WAITING))[0][0] == 0:
                return True
        await asyncio.sleep(0.2)
    return False
