"""Named places around commits, at which a test can end, pause or deceive the process. Otherwise nothing happens there.

What a crash can leave behind is decided between two commits. So each commit of the loop, the workers and the queue has
a name, and two places: the one before it, and the one after it.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum


class Commit(StrEnum):
    """What is committed."""

    # Requests
    SUBMIT = "submit"
    CANCEL = "cancel"
    RESUME = "resume"
    REPORT = "report"  # a worker's, by HTTP
    DEAD_LETTERS = "dead_letters"  # an operator's decision on one
    CLIENTS = "clients"  # who may call, and when they last did
    PLATFORMS = "platforms"  # the registry of partners
    METADATA = "metadata"  # the description of a layer
    COMMAND = "command"  # one of the direct commands

    # The platform
    SUBMIT_VERSION = "submit_version"  # new data, a new revision, a retry
    CHANGE_ASSET = "change_asset"  # what a person decides of an asset or of a version

    # The loop
    STEP = "step"
    LARGE_STEP = "large_step"  # one of several statements
    TAKE_MESSAGES = "take_messages"
    MAKE_JOBS = "make_jobs"
    SET_ASIDE = "set_aside"
    GIVE_MESSAGES_BACK = "give_messages_back"
    JOIN = "join"
    BEAT = "beat"
    TAKE_OVER = "take_over"
    HAND_OVER = "hand_over"
    SHARE_WORKFLOWS = "share_workflows"  # which definition of each workflow is current
    REAP_TASKS = "reap_tasks"
    REAP_MESSAGES = "reap_messages"

    # Callbacks
    CLAIM_CALLBACKS = "claim_callbacks"
    RECORD_CALLBACK = "record_callback"
    REDELIVER = "redeliver"

    # The queue
    SEND = "send"
    CLAIM = "claim"
    RENEW = "renew"
    COMPLETE = "complete"
    ABANDON = "abandon"
    DEAD_LETTER = "dead_letter"

    # The worker
    FINISH = "finish"
    RUNNING = "running"
    CHECKPOINT = "checkpoint"
    WORKER_BEAT = "worker_beat"
    WORKER_STOP = "worker_stop"

    # Housekeeping
    PRUNE = "prune"


class Moment(StrEnum):
    """On which side of the commit."""

    BEFORE = "before"
    AFTER = "after"


Watcher = Callable[[Commit, Moment], None]
_watchers: list[Watcher] = []


def watch(watcher: Watcher) -> None:
    """Have every place told to a test, which may end the process there, or raise."""
    _watchers.append(watcher)


def reach(commit: Commit, moment: Moment) -> None:
    """Mark a place."""
    for watcher in _watchers:
        watcher(commit, moment)


@contextmanager
def committing(commit: Commit) -> Iterator[None]:
    """Mark both sides of a statement that commits by itself."""
    reach(commit, Moment.BEFORE)
    yield
    reach(commit, Moment.AFTER)
