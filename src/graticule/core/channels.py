"""The channels on which processes notify each other. A name is hashed: a channel has at most 63 bytes."""

from hashlib import md5

EVENTS = "graticule_events"  # events were written
ORPHANS = "graticule_orphans"  # jobs have no owner any more
OF_THE_DEAD = "dead"  # payload: their owners are dead, and whoever says so is certain
ASSETS = "graticule_assets"  # what is remembered of an asset is out of date; payload: the asset, or "" for all of them
CALLBACKS = "graticule_callbacks"  # callbacks are to be sent
OUTBOX = "graticule_outbox"  # tasks are to be sent by a broker; payload: the owner of their jobs, or "" for all
WORKFLOWS = "graticule_workflows"  # a workflow was announced or withdrawn
CANCELLED = "graticule_cancel"  # payload: the job whose tasks are to end


def queue_channel(queue: str) -> str:
    """Give the channel that tells of new messages in a queue; in SQL `'graticule_queue_' || md5(queue)`."""
    return f"graticule_queue_{_hashed(queue)}"


def owner_channel(owner_id: str) -> str:
    """Give the channel that tells an orchestrator which of its jobs to look at; the payload is the job's id."""
    return f"graticule_owner_{_hashed(owner_id)}"


def _hashed(name: str) -> str:
    return md5(name.encode(), usedforsecurity=False).hexdigest()
