"""Every statement that moves rows, against its rivals: two sessions, the same row, one between the other's steps.

The first session runs its move and keeps its transaction open. The second runs its own meanwhile:

- it `waits` for the first (a session is seen to wait for a lock), and goes on when the first has ended;
- it `skips` what the first has locked or not yet committed, and ends at once;
- it `passes`, because it needs no lock, and ends at once.

Then the first commits, and the tables say what the second gave and how the row is left. Or the first rolls back. Then
it was never there: the second did what it does alone, or nothing, if it skipped.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Final, LiteralString

import pytest
import pytest_asyncio
from _pytest.mark import ParameterSet
from tests.conftest import SharedDatabase
from tests.integration.repositories import rivals
from tests.integration.repositories.arena import (
    CHILD_ROW,
    INSTANCE_ROW,
    JOB_ROW,
    MESSAGE_ROW,
    TASK_ROW,
    WORKER_ROW,
    Arena,
    row_of,
)
from tests.integration.repositories.rivals import MESSAGE_MOVES, Move

from graticule.core.table import DatabaseRole
from graticule.repositories import ownership, processes, steps
from graticule.repositories.checkpoints import CheckpointRepository
from graticule.repositories.database import Database
from graticule.repositories.messages import MessageRepository
from graticule.repositories.queries import Queries
from graticule.repositories.reports import ReportRepository
from graticule.repositories.tasks import TaskRepository

MOVES: Final = {
    **rivals.WORKERS_MOVES,
    **rivals.API_MOVES,
    **rivals.INSTANCE_MOVES,
    **rivals.CHANGES_OF_HANDS,
    **rivals.STEP_MOVES,
}


@dataclass(frozen=True)
class Expected:
    """What a move gives, and how it leaves the row."""

    gives: str
    leaves: str


@dataclass(frozen=True)
class Rivalry:
    """A row in dispute."""

    start: str
    row: LiteralString
    alone: str  # what each move gives and leaves that has no rival
    moves: Mapping[str, Move]


@dataclass(frozen=True)
class Pair:
    """Two moves at once."""

    rivalry: Rivalry
    first: str
    second: str
    meets: str
    expected: Expected  # when the first commits

    @property
    def alone(self) -> Expected:
        """Give what the second does when there is no first."""
        found = {name: Expected(*told) for name, *told in _lines(self.rivalry.alone)}
        return found[self.second]

    def __str__(self) -> str:
        return f"{self.rivalry.start}: {self.first}, {self.second}"


def rivalry(start: str, row: LiteralString, alone: str, pairs: str, moves: Mapping[str, Move] = MOVES) -> list[Pair]:
    """Give the pairs of a table."""
    about = Rivalry(start, row, alone, moves)
    return [
        Pair(about, first, second, meets, Expected(gives, leaves))
        for first, second, meets, gives, leaves in _lines(pairs)
    ]


def _lines(table: str) -> Iterator[list[str]]:
    for line in filter(str.strip, table.splitlines()):
        yield [cell.strip() for cell in line.split("|")]


PAIRS: Final[list[Pair]] = [
    *rivalry(
        "queued task",
        TASK_ROW,
        alone="""
            claim      | moved | leased by second #1
            http first | done  | leased by second #1
            withdraw   | done  | withdrawn #0
        """,
        pairs="""
            claim      | claim      | skips | nothing | leased by first #1
            claim      | http first | waits | done    | leased by first #1
            claim      | withdraw   | waits | done    | withdrawn #1
            http first | claim      | skips | nothing | leased by first #1
            http first | http first | waits | done    | leased by first #1
            http first | withdraw   | waits | done    | withdrawn #1
            withdraw   | claim      | skips | nothing | withdrawn #0
            withdraw   | http first | waits | done    | withdrawn #0
            withdraw   | withdraw   | waits | done    | withdrawn #0
        """,
    ),
    *rivalry(
        "held task",  # its lease is over, and nobody has reaped it yet: worker and orchestrators may all act
        TASK_ROW,
        alone="""
            claim         | nothing  | overdue by me #1
            take          | moved    | leased by second #2
            renew         | held     | leased by me #1
            finish        | moved    | done #1 + completed by me
            tell          | moved    | overdue by me #1 + running
            complete      | moved    | done #1
            abandon       | moved    | queued #1
            make room     | moved    | queued #0
            give rest     | moved    | queued #1
            set aside     | moved    | dead #1 + failed by me
            save          | moved    | overdue by me #1 + running + saved second
            reap          | moved    | queued #1
            withdraw      | done     | withdrawn #1
            http result   | moved    | done #1 + completed by me
            http progress | moved    | overdue by me #1 + running
            http save     | moved    | overdue by me #1 + running + saved second
            requeue       | not_dead | overdue by me #1
        """,
        pairs="""
            take          | renew         | waits  | lost      | leased by first #2
            take          | finish        | waits  | nothing   | leased by first #2
            renew         | take          | waits  | nothing   | leased by me #1
            finish        | take          | waits  | nothing   | done #1 + completed by me

            finish        | finish        | waits  | nothing   | done #1 + completed by me
            finish        | http result   | waits  | nothing   | done #1 + completed by me
            finish        | complete      | waits  | nothing   | done #1 + completed by me
            finish        | renew         | waits  | lost      | done #1 + completed by me
            finish        | tell          | passes | moved     | done #1 + completed by me + running
            finish        | save          | waits  | nothing   | done #1 + completed by me
            finish        | abandon       | waits  | nothing   | done #1 + completed by me
            finish        | set aside     | waits  | nothing   | done #1 + completed by me
            finish        | reap          | skips  | nothing   | done #1 + completed by me
            finish        | withdraw      | waits  | done      | done #1 + completed by me

            http result   | http result   | waits  | nothing   | done #1 + completed by me
            http result   | finish        | waits  | nothing   | done #1 + completed by me
            http result   | http progress | waits  | nothing   | done #1 + completed by me
            http result   | http save     | waits  | nothing   | done #1 + completed by me
            http result   | renew         | waits  | lost      | done #1 + completed by me
            http result   | reap          | skips  | nothing   | done #1 + completed by me
            http result   | withdraw      | waits  | done      | done #1 + completed by me

            complete      | complete      | waits  | nothing   | done #1
            complete      | finish        | waits  | nothing   | done #1
            complete      | reap          | skips  | nothing   | done #1

            renew         | renew         | waits  | held      | leased by me #1
            renew         | finish        | waits  | moved     | done #1 + completed by me
            renew         | reap          | skips  | nothing   | leased by me #1
            renew         | withdraw      | waits  | done      | withdrawn #1

            tell          | tell          | passes | moved     | overdue by me #1 + running + running
            tell          | finish        | passes | moved     | done #1 + running + completed by me
            tell          | reap          | passes | moved     | queued #1 + running

            save          | save          | waits  | moved     | overdue by me #1 + running + running + saved second
            save          | finish        | waits  | moved     | done #1 + running + completed by me + saved first
            save          | reap          | skips  | nothing   | overdue by me #1 + running + saved first
            save          | withdraw      | waits  | done      | withdrawn #1 + running + saved first

            http progress | http progress | waits  | moved     | overdue by me #1 + running + running
            http progress | finish        | waits  | moved     | done #1 + running + completed by me
            http progress | reap          | skips  | nothing   | overdue by me #1 + running

            http save     | http save     | waits  | moved     | overdue by me #1 + running + running + saved second
            http save     | save          | waits  | moved     | overdue by me #1 + running + running + saved second
            http save     | finish        | waits  | moved     | done #1 + running + completed by me + saved first
            http save     | reap          | skips  | nothing   | overdue by me #1 + running + saved first

            abandon       | abandon       | waits  | nothing   | queued #1
            abandon       | finish        | waits  | nothing   | queued #1
            abandon       | claim         | skips  | nothing   | queued #1
            abandon       | reap          | skips  | nothing   | queued #1
            abandon       | withdraw      | waits  | done      | withdrawn #1
            make room     | make room     | waits  | nothing   | queued #0
            make room     | finish        | waits  | nothing   | queued #0
            give rest     | give rest     | waits  | nothing   | queued #1
            give rest     | finish        | waits  | nothing   | queued #1
            give rest     | reap          | skips  | nothing   | queued #1
            give rest     | withdraw      | waits  | done      | withdrawn #1
            finish        | give rest     | waits  | nothing   | done #1 + completed by me
            renew         | give rest     | waits  | moved     | queued #1
            reap          | give rest     | waits  | nothing   | queued #1
            withdraw      | give rest     | waits  | nothing   | withdrawn #1

            set aside     | set aside     | waits  | nothing   | dead #1 + failed by me
            set aside     | finish        | waits  | nothing   | dead #1 + failed by me
            set aside     | reap          | skips  | nothing   | dead #1 + failed by me
            set aside     | withdraw      | waits  | done      | dead #1 + failed by me
            set aside     | requeue       | waits  | requeued  | queued #0 + failed by me

            reap          | reap          | skips  | nothing   | queued #1
            reap          | claim         | skips  | nothing   | queued #1
            reap          | finish        | waits  | nothing   | queued #1
            reap          | http result   | waits  | nothing   | queued #1
            reap          | http progress | waits  | nothing   | queued #1
            reap          | http save     | waits  | nothing   | queued #1
            reap          | complete      | waits  | nothing   | queued #1
            reap          | renew         | waits  | lost      | queued #1
            reap          | tell          | passes | moved     | queued #1 + running
            reap          | save          | waits  | nothing   | queued #1
            reap          | abandon       | waits  | nothing   | queued #1
            reap          | make room     | waits  | nothing   | queued #1
            reap          | set aside     | waits  | nothing   | queued #1
            reap          | withdraw      | waits  | done      | withdrawn #1

            withdraw      | withdraw      | waits  | done      | withdrawn #1
            withdraw      | finish        | waits  | moved     | done #1 + completed by me
            withdraw      | http result   | waits  | moved     | done #1 + completed by me
            withdraw      | http progress | waits  | nothing   | withdrawn #1
            withdraw      | http save     | waits  | nothing   | withdrawn #1
            withdraw      | complete      | waits  | nothing   | withdrawn #1
            withdraw      | renew         | waits  | withdrawn | withdrawn #1
            withdraw      | save          | waits  | nothing   | withdrawn #1
            withdraw      | abandon       | waits  | nothing   | withdrawn #1
            withdraw      | set aside     | waits  | nothing   | withdrawn #1
            withdraw      | reap          | skips  | nothing   | withdrawn #1

            lose          | finish        | waits  | nothing   | leased by first #2
            lose          | http result   | waits  | nothing   | leased by first #2
            lose          | complete      | waits  | nothing   | leased by first #2
            lose          | renew         | waits  | lost      | leased by first #2
            lose          | tell          | passes | moved     | leased by first #2 + running
            lose          | http progress | waits  | nothing   | leased by first #2
            lose          | save          | waits  | nothing   | leased by first #2
            lose          | http save     | waits  | nothing   | leased by first #2
            lose          | abandon       | waits  | nothing   | leased by first #2
            lose          | set aside     | waits  | nothing   | leased by first #2
            lose          | give rest     | waits  | nothing   | leased by first #2

            have anew     | finish        | waits  | nothing   | leased by me #2
            have anew     | http result   | waits  | nothing   | leased by me #2
            have anew     | complete      | waits  | nothing   | leased by me #2
            have anew     | renew         | waits  | lost      | leased by me #2
            have anew     | tell          | passes | moved     | leased by me #2 + running
            have anew     | http progress | waits  | nothing   | leased by me #2
            have anew     | save          | waits  | nothing   | leased by me #2
            have anew     | http save     | waits  | nothing   | leased by me #2
            have anew     | abandon       | waits  | nothing   | leased by me #2
            have anew     | set aside     | waits  | nothing   | leased by me #2

            pass on       | finish        | waits  | nothing   | leased by first #1
            pass on       | http result   | waits  | nothing   | leased by first #1
            pass on       | complete      | waits  | nothing   | leased by first #1
            pass on       | renew         | waits  | lost      | leased by first #1
            pass on       | tell          | passes | moved     | leased by first #1 + running
            pass on       | http progress | waits  | nothing   | leased by first #1
            pass on       | save          | waits  | nothing   | leased by first #1
            pass on       | http save     | waits  | nothing   | leased by first #1
            pass on       | abandon       | waits  | nothing   | leased by first #1
            pass on       | set aside     | waits  | nothing   | leased by first #1
        """,
    ),
    *rivalry(
        "task in its last delivery",
        TASK_ROW,
        alone="""
            finish  | moved    | done #1 + completed by me
            renew   | held     | leased by me #1
            reap    | moved    | dead #1 + failed by nobody
            requeue | not_dead | overdue by me #1
            claim   | nothing  | overdue by me #1
        """,
        pairs="""
            reap   | reap    | skips | nothing | dead #1 + failed by nobody
            reap   | finish  | waits | nothing | dead #1 + failed by nobody
            reap   | renew   | waits | lost    | dead #1 + failed by nobody
            reap   | requeue | waits | requeued | queued #0 + failed by nobody
            reap   | claim   | skips | nothing | dead #1 + failed by nobody
            finish | reap    | skips | nothing | done #1 + completed by me
            renew  | reap    | skips | nothing | leased by me #1
        """,
    ),
    *rivalry(
        "unsent task",
        TASK_ROW,
        alone="""
            take      | moved | leased by second #1
            note sent | done  | queued #0 + sent
        """,
        pairs="""
            note sent | note sent | waits | done  | queued #0 + sent
            note sent | take      | waits | moved | leased by second #1 + sent
            take      | note sent | waits | done  | leased by first #1
        """,
    ),
    *rivalry(
        "task of a broker",
        TASK_ROW,
        alone="""
            take        | moved   | leased by second #1 + sent
            withdraw    | done    | withdrawn #0 + sent
            send again  | moved   | queued #0
            send first  | moved   | queued #0
            http result | nothing | queued #0 + sent
        """,
        pairs="""
            take       | take        | waits  | nothing | leased by first #1 + sent
            take       | withdraw    | waits  | done    | withdrawn #1 + sent
            take       | send again  | waits  | nothing | leased by first #1 + sent
            take       | http result | passes | nothing | leased by first #1 + sent
            withdraw   | take        | waits  | nothing | withdrawn #0 + sent
            send again | take        | waits  | moved   | leased by second #1
            send again | send again  | waits  | nothing | queued #0
            send first | send first  | skips  | nothing | queued #0
            send first | take        | waits  | moved   | leased by second #1
            take       | send first  | skips  | nothing | leased by first #1 + sent
        """,
    ),
    *rivalry(
        "task with a checkpoint",
        TASK_ROW,
        alone="""
            save   | moved | overdue by me #1 + running + saved second
            forget | done  | overdue by me #1
        """,
        pairs="""
            forget | forget | waits | done  | overdue by me #1
            forget | save   | waits | moved | overdue by me #1 + running + saved second
            save   | forget | waits | done  | overdue by me #1 + running
        """,
    ),
    *rivalry(
        "dead letter",
        TASK_ROW,
        alone="""
            requeue  | requeued | queued #0
            discard  | moved    | withdrawn #1
            claim    | nothing  | dead #1
            fail job | done     | dead #1
        """,
        pairs="""
            requeue  | requeue  | waits | not_dead   | queued #0
            requeue  | discard  | waits | nothing    | queued #0
            requeue  | claim    | skips | nothing    | queued #0
            requeue  | fail job | waits | done       | withdrawn #0
            discard  | discard  | waits | nothing    | withdrawn #1
            discard  | requeue  | waits | not_dead   | withdrawn #1
            fail job | requeue  | waits | job_failed | dead #1
        """,
    ),
    *rivalry(
        "job",
        JOB_ROW,
        alone="""
            step             | done    | running of owner #1 + node_ready
            hold             | done    | running of owner #1
            complete job     | done    | completed of owner #1 + job_completed
            ask to cancel    | moved   | running of owner #1 + cancel by second
            take orphans     | moved   | running of second #2 + job_reclaimed
            hand over        | moved   | running of nobody #2
            give away        | moved   | running of nobody #2
            take failed      | nothing | running of owner #1
            withdraw         | done    | running of owner #1
            remove children  | done    | running of owner #1
            abandon children | done    | running of owner #1
            forget           | done    | running of owner #1
            close dead       | done    | running of owner #1
        """,
        pairs="""
            step          | step             | waits  | stale   | running of owner #1 + node_ready
            step          | complete job     | waits  | stale   | running of owner #1 + node_ready
            step          | hold             | waits  | stale   | running of owner #1 + node_ready
            step          | withdraw         | waits  | stale   | running of owner #1 + node_ready
            step          | ask to cancel    | waits  | moved   | running of owner #1 + cancel by second + node_ready
            step          | take orphans     | skips  | nothing | running of owner #1 + node_ready
            step          | hand over        | waits  | moved   | running of nobody #2 + node_ready

            hold          | hold             | waits  | done    | running of owner #1
            hold          | step             | waits  | done    | running of owner #1 + node_ready
            hold          | ask to cancel    | waits  | moved   | running of owner #1 + cancel by second
            hold          | take orphans     | skips  | nothing | running of owner #1
            hold          | hand over        | waits  | moved   | running of nobody #2

            complete job  | step             | waits  | stale   | completed of owner #1 + job_completed
            complete job  | complete job     | waits  | stale   | completed of owner #1 + job_completed
            complete job  | ask to cancel    | waits  | nothing | completed of owner #1 + job_completed
            complete job  | take orphans     | skips  | nothing | completed of owner #1 + job_completed
            complete job  | hand over        | waits  | nothing | completed of owner #1 + job_completed
            fail job      | take failed      | skips  | nothing | failed of owner #1 + job_failed

            ask to cancel | ask to cancel    | waits  | moved   | running of owner #1 + cancel by first
            ask to cancel | step             | waits  | stale   | running of owner #1 + cancel by first
            ask to cancel | complete job     | waits  | stale   | running of owner #1 + cancel by first
            ask to cancel | hold             | waits  | stale   | running of owner #1 + cancel by first
            ask to cancel | take orphans     | skips  | nothing | running of owner #1 + cancel by first
            ask to cancel | hand over        | waits  | moved   | running of nobody #2 + cancel by first

            take orphans  | take orphans     | skips  | nothing | running of first #2 + job_reclaimed
            take orphans  | step             | waits  | stale   | running of first #2 + job_reclaimed
            take orphans  | complete job     | waits  | stale   | running of first #2 + job_reclaimed
            take orphans  | hold             | waits  | stale   | running of first #2 + job_reclaimed
            take orphans  | withdraw         | waits  | stale   | running of first #2 + job_reclaimed
            take orphans  | remove children  | waits  | stale   | running of first #2 + job_reclaimed
            take orphans  | abandon children | waits  | stale   | running of first #2 + job_reclaimed
            take orphans  | forget           | waits  | stale   | running of first #2 + job_reclaimed
            take orphans  | ask to cancel    | waits  | moved   | running of first #2 + cancel by second + job_reclaimed
            take orphans  | hand over        | waits  | nothing | running of first #2 + job_reclaimed
            take orphans  | close dead       | passes | done    | running of first #2 + job_reclaimed

            take back     | step             | waits  | stale   | running of owner #3 + job_reclaimed
            take back     | hold             | waits  | stale   | running of owner #3 + job_reclaimed
            take back     | complete job     | waits  | stale   | running of owner #3 + job_reclaimed
            take back     | withdraw         | waits  | stale   | running of owner #3 + job_reclaimed
            take back     | remove children  | waits  | stale   | running of owner #3 + job_reclaimed
            take back     | abandon children | waits  | stale   | running of owner #3 + job_reclaimed

            hand over     | hand over        | waits  | nothing | running of nobody #2
            hand over     | step             | waits  | stale   | running of nobody #2
            hand over     | complete job     | waits  | stale   | running of nobody #2
            hand over     | hold             | waits  | stale   | running of nobody #2
            hand over     | take orphans     | skips  | nothing | running of nobody #2
            hand over     | ask to cancel    | waits  | moved   | running of nobody #2 + cancel by second
            hand over     | give away        | skips  | nothing | running of nobody #2

            give away     | give away        | skips  | nothing | running of nobody #2
            give away     | step             | waits  | stale   | running of nobody #2
            give away     | hold             | waits  | stale   | running of nobody #2
            give away     | ask to cancel    | waits  | moved   | running of nobody #2 + cancel by second
            give away     | take orphans     | skips  | nothing | running of nobody #2
            give away     | hand over        | waits  | nothing | running of nobody #2
            step          | give away        | skips  | nothing | running of owner #1 + node_ready
            ask to cancel | give away        | skips  | nothing | running of owner #1 + cancel by first
            take orphans  | give away        | skips  | nothing | running of first #2 + job_reclaimed
        """,
    ),
    *rivalry(
        "fan-out",
        CHILD_ROW,
        alone="""
            complete child   | done  | completed
            remove children  | done  | none
            abandon children | done  | failed
            take orphans     | moved | dispatched
        """,
        pairs="""
            complete child   | complete child   | waits | stale   | completed
            complete child   | remove children  | waits | stale   | completed
            complete child   | abandon children | waits | stale   | completed
            remove children  | remove children  | waits | done    | none
            remove children  | complete child   | waits | stale   | none
            remove children  | take orphans     | skips | nothing | none
            abandon children | abandon children | waits | done    | failed
            abandon children | complete child   | waits | stale   | failed
            abandon children | take orphans     | skips | nothing | failed
        """,
    ),
    *rivalry(
        "failed job",  # of an instance that is closed; a result came late
        JOB_ROW,
        alone="""
            take failed   | moved   | failed of second #2
            take late     | moved   | failed of second #2
            take orphans  | nothing | failed of owner #1
            resume        | done    | running of second #2 + job_resumed
            start over    | done    | running of second #2 + job_resumed
            note          | done    | failed of owner #1 + result_ignored + noted
            ask to cancel | nothing | failed of owner #1
        """,
        pairs="""
            take failed | take failed   | waits | moved   | failed of second #3
            take failed | note          | waits | stale   | failed of first #2
            take failed | take late     | skips | nothing | failed of first #2
            resume      | resume        | waits | stale   | running of first #2 + job_resumed
            resume      | take failed   | waits | nothing | running of first #2 + job_resumed
            resume      | take late     | skips | nothing | running of first #2 + job_resumed
            resume      | take orphans  | skips | nothing | running of first #2 + job_resumed
            resume      | note          | waits | stale   | running of first #2 + job_resumed
            resume      | ask to cancel | skips | nothing | running of first #2 + job_resumed
            start over  | start over    | waits | stale   | running of first #2 + job_resumed
            start over  | resume        | waits | stale   | running of first #2 + job_resumed
            start over  | note          | waits | stale   | running of first #2 + job_resumed
            resume      | start over    | waits | stale   | running of first #2 + job_resumed
            take late   | take late     | skips | nothing | failed of first #2
            take late   | take failed   | waits | moved   | failed of second #3
            take late   | resume        | waits | done    | running of second #3 + job_resumed
            take late   | note          | waits | stale   | failed of first #2
            note        | note          | waits | stale   | failed of owner #1 + result_ignored + noted
            note        | take late     | skips | nothing | failed of owner #1 + result_ignored + noted
            note        | resume        | waits | done    | running of second #2 + result_ignored + job_resumed + noted
        """,
    ),
    *rivalry(
        "no job",  # of an instance that has none
        INSTANCE_ROW,
        alone="""
            submit     | moved   | open + of second
            close dead | done    | closed
            hand over  | nothing | closed
            beat       | moved   | open + beaten
            rejoin     | moved   | open + beaten
            stop       | moved   | closed
        """,
        pairs="""
            submit     | submit     | waits  | nothing | open + of first
            submit     | close dead | passes | done    | closed + of first
            close dead | close dead | waits  | done    | closed
            close dead | beat       | waits  | nothing | closed
            close dead | rejoin     | waits  | moved   | open + beaten
            close dead | hand over  | waits  | nothing | closed
            hand over  | beat       | waits  | nothing | closed
            hand over  | close dead | waits  | done    | closed
            beat       | beat       | waits  | moved   | open + beaten
            beat       | close dead | waits  | done    | closed + beaten
            rejoin     | close dead | waits  | done    | closed + beaten
            rejoin     | rejoin     | waits  | moved   | open + beaten
            stop       | stop       | waits  | nothing | closed
            stop       | beat       | waits  | nothing | closed
        """,
    ),
    *rivalry(
        "worker",
        WORKER_ROW,
        alone="""
            worker beats | moved | open + beaten
            worker stops | moved | closed
        """,
        pairs="""
            worker beats | worker beats | waits | moved   | open + beaten
            worker beats | worker stops | waits | moved   | closed + beaten
            worker stops | worker beats | waits | nothing | closed
            worker stops | worker stops | waits | nothing | closed
        """,
    ),
    *rivalry(
        "no message",
        MESSAGE_ROW,
        alone="""
            send | moved | queued #0
        """,
        pairs="""
            send | send | waits | nothing | queued #0
        """,
        moves=rivals.API_MOVES,
    ),
    *rivalry(
        "queued message",
        MESSAGE_ROW,
        alone="""
            claim | moved | leased by second #1
        """,
        pairs="""
            claim | claim | skips | nothing | leased by first #1
        """,
        moves=MESSAGE_MOVES,
    ),
    *rivalry(
        "held message",
        MESSAGE_ROW,
        alone="""
            claim     | nothing | overdue by owner #1
            complete  | moved   | done #1
            abandon   | moved   | queued #1
            give all  | moved   | queued #1
            set aside | moved   | dead #1
            reap      | moved   | queued #1
            requeue   | nothing | overdue by owner #1
            leave     | moved   | queued #0
        """,
        pairs="""
            complete  | complete  | waits | nothing | done #1
            complete  | abandon   | waits | nothing | done #1
            complete  | set aside | waits | nothing | done #1
            complete  | reap      | skips | nothing | done #1
            abandon   | abandon   | waits | nothing | queued #1
            abandon   | complete  | waits | nothing | queued #1
            abandon   | reap      | skips | nothing | queued #1
            abandon   | claim     | skips | nothing | queued #1
            set aside | set aside | waits | nothing | dead #1
            set aside | complete  | waits | nothing | dead #1
            set aside | reap      | skips | nothing | dead #1
            set aside | requeue   | skips | nothing | dead #1
            leave     | leave     | waits | nothing | queued #0
            leave     | complete  | waits | nothing | queued #0
            leave     | claim     | skips | nothing | queued #0
            reap      | leave     | waits | nothing | queued #1
            reap      | reap      | skips | nothing | queued #1
            reap      | complete  | waits | nothing | queued #1
            reap      | abandon   | waits | nothing | queued #1
            reap      | set aside | waits | nothing | queued #1
            reap      | claim     | skips | nothing | queued #1
            give all  | give all  | waits | nothing | queued #1
            give all  | complete  | waits | nothing | queued #1
            give all  | reap      | skips | nothing | queued #1
            complete  | give all  | waits | nothing | done #1
            reap      | give all  | waits | nothing | queued #1
        """,
        moves=MESSAGE_MOVES,
    ),
    *rivalry(
        "message in its last delivery",
        MESSAGE_ROW,
        alone="""
            complete | moved | done #1
            abandon  | moved | dead #1
            reap     | moved | dead #1
        """,
        pairs="""
            reap     | complete | waits | nothing | dead #1
            reap     | abandon  | waits | nothing | dead #1
            abandon  | reap     | skips | nothing | dead #1
            complete | reap     | skips | nothing | done #1
        """,
        moves=MESSAGE_MOVES,
    ),
    *rivalry(
        "dead message",
        MESSAGE_ROW,
        alone="""
            requeue | moved   | queued #0
            discard | moved   | withdrawn #1
            claim   | nothing | dead #1
        """,
        pairs="""
            requeue | requeue | waits | nothing | queued #0
            requeue | discard | waits | nothing | queued #0
            requeue | claim   | skips | nothing | queued #0
            discard | discard | waits | nothing | withdrawn #1
            discard | requeue | waits | nothing | withdrawn #1
        """,
        moves=MESSAGE_MOVES,
    ),
    *rivalry(
        "message of an unknown workflow",
        MESSAGE_ROW,
        alone="""
            claim dead | moved | leased by second #1
            requeue    | moved | queued #0
        """,
        pairs="""
            claim dead | claim dead | skips | nothing | leased by first #1
            claim dead | requeue    | waits | nothing | leased by first #1
            requeue    | claim dead | skips | nothing | queued #0
        """,
        moves=MESSAGE_MOVES,
    ),
]


SKIPPING: Final = {"reap", "take over", "give away"}
# A move of several statements, into which another comes after each of them.
TRANSACTIONS: Final = [
    *(
        ("held task", first, second)
        for first in ("fail job", "cancel", "take over")
        for second in ("finish", "reap", "step", "ask to cancel", "cancel", "take over", "hand over", "give away")
    ),
    *(("failed job", "resume", second) for second in ("resume", "take over", "note", "ask to cancel")),
]


def _param(pair: Pair) -> ParameterSet:
    return pytest.param(pair, id=str(pair))


# The sessions


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def arena(shared_clone: SharedDatabase) -> AsyncIterator[Arena]:
    """Give connections to all these tests: there are many, and a connection for each would be most of their time."""
    database = shared_clone.database
    async with AsyncExitStack() as stack:
        connections = {}
        for role in (DatabaseRole.ORCHESTRATOR, DatabaseRole.WORKER):
            pool = await stack.enter_async_context(Database(database.url(role), role, pool_size=3))
            for name in ("first", "second", "looking on"):
                connections[name, role] = await stack.enter_async_context(pool.connection())
        yield Arena(connections, connections["looking on", DatabaseRole.ORCHESTRATOR])
    shared_clone.empty()


# The tests


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("end", ["commit", "roll back"])
@pytest.mark.parametrize("pair", [_param(pair) for pair in PAIRS])
async def test_of_two_moves_at_once(arena: Arena, pair: Pair, end: str) -> None:
    first, second = (pair.rivalry.moves[name] for name in (pair.first, pair.second))
    await arena.begin(pair.rivalry.start)
    before = await row_of(arena.looking_on, pair.rivalry.row)
    session = arena.session("first", first)
    async with session.connection.transaction(force_rollback=end == "roll back"):
        for statement in first.statements:
            await statement.run(session)
        running = asyncio.create_task(second.run(arena.session("second", second)))
        waits = await arena.blocked(running)
    seen = Expected(await running, await row_of(arena.looking_on, pair.rivalry.row))
    if end == "commit":
        expected = pair.expected
    else:
        expected = Expected("nothing", before) if pair.meets == "skips" else pair.alone
    assert (seen, waits) == (expected, pair.meets == "waits")


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(("start", "first", "second"), TRANSACTIONS)
async def test_of_a_move_between_any_two_statements_of_another(
    arena: Arena, start: str, first: str, second: str
) -> None:
    """It is as if one had come after the other, or as if the second had skipped what the first had locked."""
    one, other = ("first", MOVES[first]), ("second", MOVES[second])
    expected = {await arena.left_by(start, one, other), await arena.left_by(start, other, one)}
    if second in SKIPPING:
        expected.add(await arena.left_by(start, one))
    for gap in range(1, len(MOVES[first].statements) + 1):
        seen = await arena.left_by_interleaved(start, MOVES[first], MOVES[second], gap)
        assert seen in expected, f"after {gap} statements"


def test_every_statement_that_moves_rows_meets_itself_in_the_table() -> None:
    met = {query for pair in PAIRS for query in _queries(pair, pair.first) & _queries(pair, pair.second)}
    files: tuple[Queries, ...] = (
        *(TaskRepository.queries, MessageRepository.queries, ReportRepository.queries, CheckpointRepository.queries),
        *(ownership.QUERIES, processes.QUERIES, steps.QUERIES),
    )
    moving = {name for queries in files for name in queries if re.search(r"\b(UPDATE|INSERT|DELETE)\b", queries[name])}
    assert sorted((moving | {"step"}) - met) == []


def _queries(pair: Pair, name: str) -> set[str]:
    return {statement.query for statement in pair.rivalry.moves[name].statements}
