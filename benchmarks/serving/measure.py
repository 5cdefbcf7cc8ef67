"""What is measured, in which order: plain and ours in turn, and in the same rounds what ours need not make again."""

import asyncio
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote

from benchmarks.installation import Place, deploy, private_cluster
from benchmarks.machine import CoreTimes, use_cores
from benchmarks.measure import Announce
from benchmarks.processes import Process, descendants_cpu_seconds
from benchmarks.raster.size import CORES
from benchmarks.report import Line
from benchmarks.serving import data, report, servers
from benchmarks.serving.load import Seen, Target, WrongAnswer
from benchmarks.serving.report import Case, Measured, Round, Way
from benchmarks.serving.size import ServingPart, ServingSize

NOT_MODIFIED = 304
NO_CACHE, WITH_CACHE = {"GRATICULE_SERVE_CACHE_MB": "0"}, {"GRATICULE_SERVE_CACHE_MB": "256"}
SIZES_DIFFER = 0.35  # ours have what lies in the buffer around a tile, too


@dataclass(frozen=True)
class Workload:
    """The same things, asked of both."""

    title: str
    plain_name: str
    plain: Sequence[str]  # paths
    ours: Sequence[str]
    same_bytes: bool


class ServingMeasurement:
    """One run of the benchmarks of the services."""

    def __init__(self, size: ServingSize, rounds: int, parts: Collection[ServingPart], announce: Announce) -> None:
        use_cores(CORES)
        self.measured: list[Measured] = []
        self._size = size
        self._rounds = rounds
        self._parts = parts
        self._announce = announce

    async def lines(self) -> AsyncIterator[Line]:
        """Measure, and give each line as soon as it is known."""
        async with private_cluster() as place, AsyncExitStack() as running:
            await deploy(place)
            storage = place.home / "served" / "storage"
            storage.mkdir(parents=True)
            await data.register(place.url())
            started = [
                await running.enter_async_context(servers.ours(place, storage, name, settings))
                for name, settings in (("ours", NO_CACHE), ("ours-with-cache", WITH_CACHE))
            ]
            if ServingPart.TILES in self._parts:
                async for line in self._tiles(place, storage, started):
                    yield line
            if ServingPart.FEATURES in self._parts:
                async for line in self._features(place, started):
                    yield line

    async def _tiles(self, place: Place, storage: Path, started: Sequence[Process]) -> AsyncIterator[Line]:
        self._announce(f"making a COG of {self._size.side} x {self._size.side} pixels")
        cog = await asyncio.to_thread(data.make_cog, storage, self._size.side)
        tiles = data.raster_tiles(cog, self._size.addresses)
        workload = Workload(
            f"tiles of a COG of {self._size.side:,}²",
            "TiTiler",
            [f"{tile.path}?url={quote(str(cog))}" for tile in tiles],
            [f"/tiles/{data.RASTER_ID}{tile.path}" for tile in tiles],
            same_bytes=True,
        )
        async with servers.plain_titiler(place) as plain:
            for line in await self._measure(workload, plain, *started):
                yield line

    async def _features(self, place: Place, started: Sequence[Process]) -> AsyncIterator[Line]:
        self._announce(f"making a table of {self._size.features:,} polygons")
        await data.make_table(place.url(), self._size.features)
        theirs, own = f"/collections/{data.SCHEMA}.{data.TABLE}", f"/features/{data.VECTOR_ID}/collections/features"
        tiles = [tile.path for tile in data.vector_tiles(self._size.addresses)]
        asked = [f"/items?{query}" for query in data.pages(self._size.addresses)]
        whole = f"{self._size.features:,} polygons"
        async with servers.plain_tipg(place) as plain:
            for title, paths in (
                (f"vector tiles of {whole}", tiles),
                (f"pages of {data.PAGE} of {whole}, in a box", asked),
            ):
                plain_paths, our_paths = [theirs + path for path in paths], [own + path for path in paths]
                workload = Workload(title, "TiPG", plain_paths, our_paths, same_bytes=False)
                for line in await self._measure(workload, plain, *started):
                    yield line

    async def _measure(self, workload: Workload, plain: Process, ours: Process, with_cache: Process) -> list[Line]:
        self._announce(f"{workload.title}: warming up")
        cases = await self._cases(workload, plain, ours, with_cache)
        found = Measured(workload.title, workload.plain_name, self._size.connections)
        machine, used = CoreTimes.now(), descendants_cpu_seconds()
        for number in range(1, self._rounds + 1):
            order = cases if number % 2 else cases[::-1]  # so that none profits from what changes with time
            for case in order:
                self._announce(f"{workload.title}: round {number} of {self._rounds}, {case.way}")
                found.rounds[case.way].append(await self._round(case))
        used, machine = descendants_cpu_seconds() - used, CoreTimes.now().since(machine)
        found.others_share = max(0.0, (machine.busy - used) / machine.total)
        self.measured.append(found)
        return report.lines(found)

    async def _round(self, case: Case) -> Round:
        count = self._size.light_requests if case.way.is_light else self._size.requests
        before = case.process.cpu_seconds()
        outcome = await case.target.run(count, self._size.connections)
        return Round(outcome, (case.process.cpu_seconds() - before) / count)

    async def _cases(self, workload: Workload, plain: Process, ours: Process, with_cache: Process) -> list[Case]:
        """Ask everyone for everything once, so that all are warm, and see that the answers are the same."""
        asked_of_plain = Target(plain.url, [(path, {}) for path in workload.plain])
        asked_of_ours = Target(ours.url, [(path, {}) for path in workload.ours])
        cached = replace(asked_of_ours, url=with_cache.url)
        theirs, own = [await each.look(self._size.connections) for each in (asked_of_plain, asked_of_ours)]
        _check_same(workload, theirs, own)
        tags = [seen.etag or "" for seen in await cached.look(self._size.connections)]
        known = [(path, {"If-None-Match": tag}) for path, tag in zip(workload.ours, tags, strict=True)]
        return [
            Case(Way.PLAIN, plain, asked_of_plain),
            Case(Way.OURS, ours, asked_of_ours),
            Case(Way.CACHED, with_cache, cached),
            Case(Way.KNOWN, with_cache, Target(with_cache.url, known, NOT_MODIFIED)),
        ]


def _check_same(workload: Workload, theirs: Sequence[Seen], own: Sequence[Seen]) -> None:
    for path, plain, ours in zip(workload.ours, theirs, own, strict=True):
        if workload.same_bytes and plain.sha256 != ours.sha256:
            raise WrongAnswer(f"{path} is not what {workload.plain_name} answers.")
    sizes = sum(each.size for each in own), sum(each.size for each in theirs)
    if abs(sizes[0] / sizes[1] - 1) > SIZES_DIFFER:
        raise WrongAnswer(f"{workload.title}: ours are {sizes[0]:,} bytes, {workload.plain_name}'s {sizes[1]:,}.")
