"""Run every benchmark on a private, durable cluster and print the table."""

import asyncio
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.repositories import COMPARISONS
from graticule.core.table import DatabaseRole
from graticule.embedded.cluster import Cluster
from graticule.embedded.credentials import ADMIN
from graticule.repositories.database import Database
from graticule.services.bootstrap import BootstrapService

ROUNDS = 5


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="gtc-bench-") as folder:
        Path(folder).chmod(0o711)
        asyncio.run(run(Path(folder)))


async def run(home: Path) -> None:
    async with Cluster.of(home) as cluster:
        await cluster.ensure_database("graticule")
        url = cluster.url(ADMIN)
        await BootstrapService(url, development=False).deploy()
        async with Database(url, DatabaseRole.ORCHESTRATOR, pool_size=2) as database:
            await compare(database)


async def compare(database: Database) -> None:
    """Measure each pair in turn, several times, and show the best of each: the least disturbed."""
    table = Table("what", "rows", "raw", "ours", "ours / raw", title="Repositories against raw psycopg")
    for comparison in COMPARISONS:
        async with database.connection() as connection:
            await comparison.prepare(connection)
            raw, ours = [], []
            for _ in range(ROUNDS):
                raw.append(await comparison.time(connection, comparison.raw))
                ours.append(await comparison.time(connection, comparison.ours))
        best_raw, best_ours = min(raw), min(ours)
        table.add_row(
            comparison.name,
            str(comparison.rows),
            f"{best_raw * 1000:.0f} ms",
            f"{best_ours * 1000:.0f} ms",
            f"{best_ours / best_raw:.2f}",
        )
    Console().print(table)


main()
