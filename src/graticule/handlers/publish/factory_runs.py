"""Copies that Azure Data Factory makes or removes: one run for each, whatever happens to whoever waits for it."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from pydantic import JsonValue

from graticule.core.errors import GraticuleError, InvalidInput, NotFound, Unavailable
from graticule.handlers.answers import Stopped
from graticule.handlers.context import HandlerContext
from graticule.handlers.publish.copying import Notes, Zones
from graticule.handlers.publish.data_factory import DataFactory, Run, Unanswered
from graticule.handlers.publish.inputs import Export
from graticule.handlers.publish.pacing import Pace
from graticule.repositories.publications import Unwanted
from graticule.storage.protocol import BlobInfo

FIRST_SECONDS: Final = 0.25
LONGEST_SECONDS: Final = 15.0
CANCEL_SECONDS: Final = 3.0  # after that the worker ends us
OF_EXPORT: Final = "factory"  # the part of a checkpoint that reversals look at
Look = Callable[[], Awaitable[None]]


class FactoryRuns:
    """The runs that a task has started; what an earlier attempt has noted of them is known."""

    def __init__(
        self, ctx: HandlerContext, factory: DataFactory, pace: Pace, notes: Notes, part: str = OF_EXPORT
    ) -> None:
        self._ctx, self._factory, self._pace = ctx, factory, pace
        self._notes, self._part = notes, part

    async def export(self, zones: Zones, blobs: Sequence[BlobInfo]) -> str:
        """Have blobs copied, and give the run's id."""
        given: Export = self._ctx.params
        folder = _folder(zones, blobs)
        container, _, source = f"{zones.source}{folder}".rstrip("/").partition("/")
        public_container, _, target = f"{zones.target}{folder}".rstrip("/").partition("/")
        total = sum(blob.size for blob in blobs)

        async def look() -> None:
            done = sum([blob.size async for blob in self._ctx.storage.list(zones.target)])
            self._ctx.progress(min(done, total), total, "blobs, by Azure Data Factory")

        parameters: dict[str, JsonValue] = {
            **_subject(given.asset_id, given.version_ordinal),
            "revision": given.revision,
            "source_container": container,
            "source_folder": source,
            "target_container": public_container,
            "target_folder": target,
        }
        return await self._done(self._factory.export_pipeline, parameters, look)

    async def reverse(self, pipeline: str, asset_id: str, version_ordinal: int, folder: str) -> str:
        """Have all that lies in a folder removed, and give the run's id."""
        container, _, target = folder.rstrip("/").partition("/")

        async def look() -> None:
            left = sum([1 async for _ in self._ctx.storage.list(folder)])
            self._ctx.progress(0, None, f"Azure Data Factory removes blobs: {left} are left")

        where: dict[str, JsonValue] = {"target_container": container, "target_folder": target}
        run_id = await self._done(pipeline, {**_subject(asset_id, version_ordinal), **where}, look)
        await self.forget()
        return run_id

    async def forget(self) -> None:
        """Let the next attempt start a run of its own."""
        await self._note(run_id=None)

    async def end(self, run_id: str) -> None:
        """Let a run of another task be over: what it still copies would come after it was removed."""
        with contextlib.suppress(NotFound):  # runs are forgotten after some weeks
            run = await self._factory.run(run_id, self._pace.pause)
            if not run.has_ended:
                await self._factory.cancel(run_id, self._pace.pause)
                await self._watched(run_id, _unseen)

    async def _done(self, pipeline: str, parameters: Mapping[str, JsonValue], look: Look) -> str:
        run_id = await self._begun(pipeline, parameters)
        try:
            run = await self._watched(run_id, look)
        except (Stopped, Unwanted):
            if not self._ctx.shutdown_requested or self._ctx.cancelled:
                await self._cancel(run_id)
            raise
        if run.status != "Succeeded":
            await self.forget()
            raise _failed(run)
        return run_id

    async def _begun(self, pipeline: str, parameters: Mapping[str, JsonValue]) -> str:
        """Give the run that an earlier attempt has started, or start one; its id is noted before it is waited for."""
        noted = await self._notes.get(self._part)
        if noted.get("run_id") and noted.get("pipeline") == pipeline:
            return str(noted["run_id"])
        found = None
        if noted.get("started_at") and not noted.get("is_over"):  # and the answer was lost
            found = await self._found(pipeline, noted)
        else:
            number, now = int(noted.get("number", 0)) + 1, datetime.now(UTC).isoformat()
            token = f"{self._ctx.job_id}-{number}"
            noted = {"number": number, "token": token, "started_at": now, "pipeline": pipeline}
            await self._notes.put(self._part, noted)
        run_id = found or await self._started(pipeline, {**parameters, "run_token": noted["token"]}, noted)
        await self._note(run_id=run_id)
        return run_id

    async def _started(self, pipeline: str, parameters: Mapping[str, JsonValue], noted: Mapping[str, str]) -> str:
        try:
            return await self._factory.start(pipeline, parameters, self._pace.pause)
        except Unanswered:
            await self._pace.pause(FIRST_SECONDS)
            found = await self._found(pipeline, noted)
            if found is None:
                raise
            return found

    async def _found(self, pipeline: str, noted: Mapping[str, str]) -> str | None:
        since = datetime.fromisoformat(noted["started_at"])
        run = await self._factory.find(pipeline, noted["token"], since, self._pace.pause)
        return None if run is None else run.run_id

    async def _watched(self, run_id: str, look: Look) -> Run:
        """Wait for the end of a run."""
        wait = FIRST_SECONDS
        while True:
            run = await self._factory.run(run_id, self._pace.pause)
            await look()
            if run.has_ended:
                return run
            await self._pace.pause(wait)
            wait = min(2 * wait, LONGEST_SECONDS)

    async def _cancel(self, run_id: str) -> None:
        try:
            async with asyncio.timeout(CANCEL_SECONDS):
                await self._factory.cancel(run_id, asyncio.sleep)
        except (GraticuleError, TimeoutError) as error:
            self._ctx.logger.warning(
                "a run in Azure Data Factory could not be cancelled", run_id=run_id, error=str(error)
            )

    async def _note(self, run_id: str | None) -> None:
        noted = await self._notes.get(self._part)
        await self._notes.put(self._part, {**noted, "run_id": run_id, "is_over": run_id is None})


async def _unseen() -> None:
    """Look at nothing."""


def _subject(asset_id: str, version_ordinal: int) -> dict[str, JsonValue]:
    return {"asset_id": asset_id, "version_ordinal": version_ordinal}


def _failed(run: Run) -> Exception:
    """Give the error of a run that did not succeed; one that someone has cancelled is not started again."""
    told = f"The run {run.run_id} in Azure Data Factory ended as {run.status}" + (
        f": {run.message}" if run.message else "."
    )
    return InvalidInput(told) if run.status == "Cancelled" else Unavailable(told)


def _folder(zones: Zones, blobs: Sequence[BlobInfo]) -> str:
    """Give the one folder below the revision's, "" or with a slash at its end, in which the blobs lie."""
    folders = {blob.path.removeprefix(zones.source).rpartition("/")[0] for blob in blobs}
    if len(folders) != 1:
        raise InvalidInput("Azure Data Factory copies one folder, and the blobs of this revision lie in several.")
    folder = folders.pop()
    return f"{folder}/" if folder else ""
