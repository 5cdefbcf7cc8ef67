"""Watch a job: a live tree in a terminal, lines anywhere else, to the job's end."""

import asyncio
import contextlib
import time
from datetime import datetime
from typing import Final, Protocol

from rich.live import Live

from graticule.cli.console import out
from graticule.cli.event_lines import FoldedLines
from graticule.cli.job_picture import JobPicture
from graticule.cli.job_tree import render_job
from graticule.client import ApiProblem, AsyncClient, Document, calls, document, documents
from graticule.core.errors import Unavailable

FRAME_SECONDS: Final = 0.1
READ_EVERY_SECONDS: Final = 0.25


class View(Protocol):
    """How a job is shown while it runs."""

    def take(self, event: Document) -> None:
        """Hear of an event."""

    def show(self, picture: JobPicture) -> None:
        """Show the job as it stands."""

    def close(self, picture: JobPicture) -> None:
        """Show how it ended."""


class TreeView:
    """A tree that is drawn anew in its place."""

    def __init__(self) -> None:
        self._live = Live(console=out, auto_refresh=False, redirect_stdout=False, redirect_stderr=False)

    def take(self, event: Document) -> None:
        """Wait for the next frame: the picture holds what the event told."""

    def show(self, picture: JobPicture) -> None:
        """Draw a frame."""
        if not self._live.is_started:
            self._live.start()
        self._live.update(render_job(picture, out.width), refresh=True)

    def close(self, picture: JobPicture) -> None:
        """Draw the last frame, and leave it there."""
        self.show(picture)
        self._live.stop()


class LineView:
    """Lines as things happen, and the tree at the end: for logs."""

    def __init__(self, job: Document) -> None:
        self._lines = FoldedLines(datetime.fromisoformat(job["created_at"]))
        out.print(f"Job {job['job_id']} of {job['workflow_id']}", soft_wrap=True)

    def take(self, event: Document) -> None:
        """Print what the event is worth."""
        for line in self._lines.take(event):
            out.print(line, soft_wrap=True)

    def show(self, picture: JobPicture) -> None:
        """Nothing is drawn anew here."""

    def close(self, picture: JobPicture) -> None:
        """Print how the job ended."""
        out.print()
        out.print(render_job(picture, out.width), soft_wrap=True)


class NoView:
    """Waits in silence."""

    def take(self, event: Document) -> None:
        """Pass over."""

    def show(self, picture: JobPicture) -> None:
        """Pass over."""

    def close(self, picture: JobPicture) -> None:
        """Pass over."""


def view_for(job: Document) -> View:
    """Choose the view that suits where the output goes."""
    return TreeView() if out.is_terminal else LineView(job)


async def watch_job(client: AsyncClient, job_id: str, view: View | None = None) -> JobPicture:
    """Show a job until it has ended, and give the last picture of it."""
    picture = JobPicture(*await _rows(client, job_id))
    shown = view or view_for(picture.job)
    heard = asyncio.Event()
    feed = asyncio.create_task(_listen(client, picture, shown, heard))
    try:
        await _draw(client, picture, shown, feed, heard)
        await feed
        await _read(client, picture)
    finally:
        feed.cancel()
        await asyncio.gather(feed, return_exceptions=True)
        shown.close(picture)
    return picture


async def _listen(client: AsyncClient, picture: JobPicture, view: View, heard: asyncio.Event) -> None:
    async for event in client.stream(document(calls.follow_job_events(picture.job["job_id"]))):
        picture.take(event)
        view.take(event)
        heard.set()


async def _draw(
    client: AsyncClient, picture: JobPicture, view: View, feed: asyncio.Task[None], heard: asyncio.Event
) -> None:
    """Draw frame by frame; the rows are read again only when an event told of a change, and not too often."""
    read_at = time.monotonic()
    while not feed.done():
        view.show(picture)
        await asyncio.wait({feed}, timeout=FRAME_SECONDS)
        if heard.is_set() and time.monotonic() - read_at >= READ_EVERY_SECONDS:
            heard.clear()
            with contextlib.suppress(Unavailable, ApiProblem):  # the feed decides how long to wait for a server
                await _read(client, picture)
            read_at = time.monotonic()


async def _read(client: AsyncClient, picture: JobPicture) -> None:
    picture.job, picture.nodes = await _rows(client, picture.job["job_id"])


async def _rows(client: AsyncClient, job_id: str) -> tuple[Document, list[Document]]:
    """Give a job, and the nodes of its workflow in graph order."""
    job, nodes = await asyncio.gather(
        client.send(document(calls.get_job(job_id))), client.send(documents(calls.list_job_nodes(job_id)))
    )
    return job, nodes.items
