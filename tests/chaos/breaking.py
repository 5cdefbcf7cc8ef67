"""Guards that are broken by hand, in a member's process alone, to see that the checker finds what they keep away."""

import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from graticule.core.fault_points import Commit
from graticule.core.models import JobMessage
from graticule.orchestrator.intake import Intake
from graticule.repositories import step_parts, steps
from graticule.repositories.messages import MessageRepository
from graticule.repositories.queries import Queries
from graticule.repositories.tasks import TaskRepository
from graticule.services.jobs import PreparedJob


class Guard(StrEnum):
    """What can be broken."""

    EPOCH = "epoch"  # a step is written by the owner of the job, in its term, and as it was read
    LEASE = "lease"  # a result is written by the worker that holds the task
    ACKNOWLEDGE = "acknowledge"  # a message ends in the transaction that makes its job


def break_guard(guard: str) -> None:
    """Break a guard in this process."""
    BREAKERS[Guard(guard)]()


def _break_epoch() -> None:
    of_owner = re.compile(r"\s+AND job\.owner_id = %\(owner_id\)s")
    of_version = re.compile(r"\s+AND job\.(owner_epoch|updated_at) = \(%\(versions\)s[^\n]+")
    _edit(step_parts.QUERIES, "step", {of_owner: 1, of_version: 2})
    _edit(steps.QUERIES, "read_jobs", {of_owner: 1})
    step_parts.write_statement.cache_clear()


def _break_lease() -> None:
    of_holder = re.compile(r"\s+AND \(task\.status::text = 'leased' AND [^\n]+")
    of_delivery = re.compile(r"\s+AND task\.delivery_count = \(%\(reports\)s[^\n]+")
    query = TaskRepository.queries["finish_tasks"].partition("RETURNING")[0]
    _edit(TaskRepository.queries, "finish_tasks", {of_holder: 1, of_delivery: 1}, only=query)


def _break_acknowledge() -> None:
    async def submit(self: Intake, wanted: list[tuple[JobMessage, PreparedJob]]) -> None:
        for message, _ in wanted:
            async with self._database.committing(Commit.COMPLETE) as connection:
                await MessageRepository(connection).complete(message)
        async with self._database.transaction(Commit.MAKE_JOBS) as connection:
            await self._jobs.add_within(connection, [prepared for _, prepared in wanted])

    setattr(Intake, "_submit", submit)  # noqa: B010 - a method of another is replaced, on purpose


def _edit(queries: Queries, name: str, removed: Mapping[re.Pattern[str], int], only: str | None = None) -> None:
    """Take conditions out of a query; each must be there, as often as is said, or nothing would be broken."""
    whole = queries[name]
    before = edited = whole if only is None else only
    for condition, times in removed.items():
        edited, found = condition.subn("", edited)
        if found != times:
            raise AssertionError(f"{name} has {condition.pattern!r} {found} times: the guard stands elsewhere now")
    changed: dict[str, Any] = {each: queries[each] for each in queries}
    changed[name] = whole.replace(before, edited)
    vars(queries)["_queries"] = MappingProxyType(changed)
    vars(queries)["_numbered"] = {}


BREAKERS: Mapping[Guard, Callable[[], None]] = {
    Guard.EPOCH: _break_epoch,
    Guard.LEASE: _break_lease,
    Guard.ACKNOWLEDGE: _break_acknowledge,
}
