"""Jobs that are asked for by message: taken from the queue while this instance has room for them."""

import math
from datetime import timedelta
from typing import Final

from pydantic import ValidationError

from graticule.config import Settings
from graticule.core.errors import PASSING, Conflict, GraticuleError, InvalidInput, NotFound, fault_message
from graticule.core.fault_points import Commit
from graticule.core.ids import OwnerId
from graticule.core.models import JobMessage
from graticule.logs import get_logger
from graticule.orchestrator.metrics import OrchestratorMetrics
from graticule.repositories.database import Database
from graticule.repositories.messages import MessageRepository
from graticule.repositories.ownership import OwnershipRepository
from graticule.services.jobs import JobService, PreparedJob, Submission
from graticule.services.workflow_library import UnknownWorkflow

_log = get_logger(__name__)
MESSAGES_AT_ONCE: Final = 50
LEASE_SECONDS: Final = 60.0
COURTESY_SECONDS: Final = 1.0  # for others to take their share of the messages
MOST_COUNTED: Final = 1000
FEW: Final = 5  # messages: so few that it matters little who takes them
NEVER_VALID: Final = (NotFound, InvalidInput, ValidationError)


class Intake:
    """Takes job messages, as one of many consumers."""

    def __init__(
        self,
        settings: Settings,
        database: Database,
        jobs: JobService,
        owner_id: OwnerId,
        metrics: OrchestratorMetrics | None = None,
    ) -> None:
        self._metrics = metrics or OrchestratorMetrics()
        self._database = database
        self._jobs = jobs
        self._owner_id = owner_id
        self._queue = settings.job_queue_name
        self._limit = settings.max_active_jobs
        self._threshold = settings.orphan_threshold_seconds
        self._unknown_seconds = settings.unknown_workflow_seconds
        self._unknown: list[JobMessage] = []  # to be left to those who may know their workflows
        self._may_hold_some = False  # after an error: messages that were leased to us, and that nobody works on
        self.is_full = False  # it left messages, for there was no room
        self.leaves_some = False  # it left messages to those who have fewer jobs

    async def take(self) -> None:
        """Make jobs of the messages that wait, until there are none or this instance has enough."""
        await self._give_back()
        self._may_hold_some = True
        while messages := await self._claim():
            await self._jobs.learn_workflows([_workflow_of(message) for message in messages])
            wanted = [(message, prepared) for message in messages if (prepared := await self._prepared(message))]
            await self._submit_all(wanted)
            await self._leave_unknown()
        self._may_hold_some = False

    async def _give_back(self) -> None:
        self._unknown.clear()
        if self._may_hold_some:
            async with self._database.committing(Commit.GIVE_MESSAGES_BACK) as connection:
                returned = await MessageRepository(connection).abandon_all(self._owner_id)
            self._metrics.messages_returned(returned)

    async def _claim(self) -> list[JobMessage]:
        """Take messages up to a fair share of the jobs, and beyond it those that nobody else has taken."""
        async with self._database.committing(Commit.TAKE_MESSAGES) as connection:
            ownership, messages = OwnershipRepository(connection), MessageRepository(connection)
            room = min(self._limit - await ownership.count_active(self._owner_id), MESSAGES_AT_ONCE)
            self.is_full, self.leaves_some = room <= 0, False
            if self.is_full:
                return []
            waiting, fair = await messages.count_waiting(self._queue, MOST_COUNTED), math.inf
            if waiting > FEW:
                fair = (await ownership.load(self._owner_id, self._threshold)).room(more=waiting)
            self.leaves_some = fair <= 0
            waited, limit = (COURTESY_SECONDS, room) if self.leaves_some else (0, int(min(room, fair)))
            known = self._jobs.workflow_ids()
            claimed = await messages.claim(
                *(self._owner_id, self._queue, limit, LEASE_SECONDS),
                waited_seconds=waited,
                workflows=known,
                unknown_seconds=self._unknown_seconds,
            )
            return claimed or await messages.claim_dead(
                self._owner_id, self._queue, limit, LEASE_SECONDS, workflows=known
            )

    async def _prepared(self, message: JobMessage) -> PreparedJob | None:
        """Check a message; one that can never become a job is set aside with the reason."""
        try:
            return self._jobs.prepare(Submission.model_validate(message.body | {"message_id": message.message_id}))
        except UnknownWorkflow as error:
            await self._leave_or_set_aside(message, error)
        except NEVER_VALID as error:
            await self._set_aside(message, error.message if isinstance(error, GraticuleError) else _told(error))
        except Exception as error:
            _log.exception("a job message cannot be read", message_id=message.message_id)
            await self._set_aside(message, f"The message could not be read: {type(error).__name__}")
        return None

    async def _leave_or_set_aside(self, message: JobMessage, error: UnknownWorkflow) -> None:
        """Leave a message to those who may know its workflow, for a bounded time."""
        waited = timedelta() if message.unknown_since is None else self._database.now() - message.unknown_since
        if waited < timedelta(seconds=self._unknown_seconds):
            self._unknown.append(message)
        else:
            for_how_long = f" No orchestrator knew it for {waited.total_seconds():.0f} s." if waited else ""
            await self._set_aside(message, f"{error.message}{for_how_long}")

    async def _leave_unknown(self) -> None:
        if self._unknown:
            ids = [message.message_id for message in self._unknown]
            async with self._database.committing(Commit.GIVE_MESSAGES_BACK) as connection:
                await MessageRepository(connection).leave(self._owner_id, ids)
            _log.info("messages for unknown workflows were left to the other orchestrators", messages=len(ids))
            self._unknown.clear()

    async def _set_aside(self, message: JobMessage, reason: str) -> None:
        _log.warning("a job message is set aside", message_id=message.message_id, reason=reason)
        async with self._database.committing(Commit.SET_ASIDE) as connection:
            is_ours = await MessageRepository(connection).dead_letter(message, reason)
        if is_ours:
            self._metrics.message_set_aside(message.queue)

    async def _submit_all(self, wanted: list[tuple[JobMessage, PreparedJob]]) -> None:
        """Make the jobs together; when that fails, each alone, so that one cannot hold up the others."""
        if not wanted:
            return
        try:
            await self._submit(wanted)
        except PASSING:
            raise
        except Exception as error:
            if len(wanted) > 1:
                for each in wanted:
                    await self._submit_all([each])
            else:
                _log.exception("a job message cannot become a job", message_id=wanted[0][0].message_id)
                reason = error.message if isinstance(error, GraticuleError) else type(error).__name__
                await self._set_aside(wanted[0][0], f"The job could not be made: {reason}")

    async def _submit(self, wanted: list[tuple[JobMessage, PreparedJob]]) -> None:
        """Make the jobs and end their messages in one transaction: a message that is lost makes no job."""
        async with self._database.transaction(Commit.MAKE_JOBS) as connection:
            await self._jobs.add_within(connection, [prepared for _, prepared in wanted])
            for message, _ in wanted:
                if not await MessageRepository(connection).complete(message):
                    raise Conflict(f"The lease of message {message.message_id} was lost.")


def _workflow_of(message: JobMessage) -> str:
    workflow_id = message.body.get("workflow_id")
    return workflow_id if isinstance(workflow_id, str) else ""


def _told(error: ValidationError) -> str:
    """Say what is wrong with each field, or with the message as a whole."""
    faults = error.errors(include_url=False, include_input=False, include_context=False)
    said = [": ".join(filter(None, (".".join(map(str, item["loc"])), fault_message(item)))) for item in faults]
    return "; ".join(said)
