"""The rules of a queue, without a wire and by a clock that is given: who gets which message, and what becomes of it.

All times are milliseconds since 1970.
"""

import heapq
import sys
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, Protocol
from uuid import UUID, uuid4

from tests.servicebus_emulator.deadlines import Deadlines
from tests.servicebus_emulator.message import Message
from tests.servicebus_emulator.refusal import NOT_ALLOWED, Refusal, lock_lost, message_not_found
from tests.servicebus_emulator.types import Int, Symbol, Timestamp

Clock = Callable[[], int]

REASON: Final = "DeadLetterReason"
DESCRIPTION: Final = "DeadLetterErrorDescription"
_SEQUENCE_NUMBER: Final = Symbol("x-opt-sequence-number")
_ENQUEUED: Final = Symbol("x-opt-enqueued-time")
_LOCKED_UNTIL: Final = Symbol("x-opt-locked-until")
_STATE: Final = Symbol("x-opt-message-state")
_DEAD_LETTER_SOURCE: Final = Symbol("x-opt-deadletter-source")


@dataclass(frozen=True)
class QueueOptions:
    """What a queue does with its messages."""

    lock_seconds: float = 60
    max_deliveries: int = 10
    ttl_seconds: float | None = None
    duplicate_seconds: float = 0  # how long the ids of messages are remembered
    dead_letter_on_expiry: bool = False


class State(Enum):
    """Where a message of a queue stands."""

    ACTIVE = "active"
    LOCKED = "locked"
    DEFERRED = "deferred"
    SCHEDULED = "scheduled"
    GONE = "gone"


_STATE_ON_THE_WIRE: Final = {State.DEFERRED: Int(1), State.SCHEDULED: Int(2)}


@dataclass(eq=False, slots=True)
class Entry:
    """A message in a queue."""

    message: Message
    sequence: int
    enqueued: int
    expires: int | None = None
    source: str | None = None  # the queue from which it was dead-lettered
    deliveries: int = 0  # that came to nothing
    state: State = State.GONE
    token: UUID | None = None
    locked_until: int = 0

    @property
    def id(self) -> Any:
        """Give the id of the message."""
        return self.message.id

    @property
    def body(self) -> bytes:
        """Give the body of the message."""
        return self.message.body

    @property
    def reason(self) -> Any:
        """Give why it was dead-lettered."""
        return self.message.application_property(REASON)

    @property
    def description(self) -> Any:
        """Give what was said when it was dead-lettered."""
        return self.message.application_property(DESCRIPTION)

    def encode(self) -> bytes:
        """Give its bytes for a receiver."""
        annotations: dict[Any, Any] = {
            _SEQUENCE_NUMBER: self.sequence,
            _ENQUEUED: Timestamp(self.enqueued),
            _STATE: _STATE_ON_THE_WIRE.get(self.state, Int(0)),
        }
        if self.locked_until:
            annotations[_LOCKED_UNTIL] = Timestamp(self.locked_until)
        if self.source:
            annotations[_DEAD_LETTER_SOURCE] = self.source
        return self.message.encode(self.deliveries, annotations)


class Consumer(Protocol):
    """Who takes messages from a queue: as many as its credit says, locked or for good."""

    credit: int
    locks: bool

    def deliver(self, entry: Entry) -> None:
        """Take a message, which uses one credit up."""


class Queue:
    """A queue; one without dead letters holds the dead letters of another."""

    def __init__(self, name: str, options: QueueOptions, clock: Clock, dead_letters: "Queue | None" = None) -> None:
        self.name = name
        self.options = options
        self.dead_letters = dead_letters
        self.when_due: Callable[[int], None] = lambda _: None  # told the time at which `tick` has something to do
        self._clock = clock
        self._sequence = 0
        self._entries: dict[int, Entry] = {}  # in the order of their numbers, since numbers only grow
        self._counts: Counter[State] = Counter()
        self._ready: list[tuple[int, Entry]] = []  # also some that have gone since
        self._locks: dict[UUID, Entry] = {}
        self._lock_ends: Deadlines[UUID] = Deadlines()
        self._expiries: Deadlines[int] = Deadlines()
        self._schedule: Deadlines[int] = Deadlines()
        self._seen: OrderedDict[Any, int] = OrderedDict()
        self._hungry: deque[Consumer] = deque()  # consumers with credit; who was served goes to the end

    @property
    def active(self) -> int:
        """Give how many messages wait for a consumer."""
        return self._counts[State.ACTIVE]

    @property
    def locked(self) -> int:
        """Give how many messages are with a consumer."""
        return self._counts[State.LOCKED]

    @property
    def deferred(self) -> int:
        """Give how many messages were put aside by a consumer."""
        return self._counts[State.DEFERRED]

    @property
    def scheduled(self) -> int:
        """Give how many messages wait for their time."""
        return self._counts[State.SCHEDULED]

    @property
    def dead(self) -> int:
        """Give how many messages are in the dead-letter queue."""
        return len(self.dead_letters._entries) if self.dead_letters else 0

    @property
    def messages(self) -> list[Entry]:
        """Give all messages that are here, in their order."""
        return list(self._entries.values())

    def change(self, options: QueueOptions) -> None:
        """Have other options from now on; locks that are held stay as they are."""
        self.options = options
        if self.dead_letters is not None:
            self.dead_letters.options = _for_dead_letters(options)

    def put(self, message: Message) -> int:
        """Take a message in, unless its id was seen lately; give its sequence number."""
        now = self._clock()
        if self._is_duplicate(message.id, now):
            return self._next_sequence()
        entry = self._enter(message, now)
        if message.scheduled > now:
            self._move(entry, State.SCHEDULED)
            self._due_at(self._schedule, entry.sequence, message.scheduled)
        else:
            self._activate(entry, now)
            self._serve()
        return entry.sequence

    def cancel_scheduled(self, sequences: Iterable[int]) -> None:
        """Take messages back whose time has not come."""
        for entry in self._all(sequences, State.SCHEDULED):
            self._remove(entry)

    def peek(self, first: int, count: int) -> list[Entry]:
        """Give messages without taking them, from a sequence number on."""
        found = []
        for sequence, entry in self._entries.items():
            if sequence >= first:
                found.append(entry)
                if len(found) >= count:
                    break
        return found

    def feed(self, consumer: Consumer) -> None:
        """Serve a consumer as long as it has credit."""
        if consumer.credit > 0 and consumer not in self._hungry:
            self._hungry.append(consumer)
        self._serve()

    def leave(self, consumer: Consumer) -> None:
        """Serve a consumer no more; what it has locked stays locked."""
        if consumer in self._hungry:
            self._hungry.remove(consumer)

    def complete(self, token: UUID) -> None:
        """Forget a message that was dealt with."""
        self._remove(self._held(token))

    def abandon(self, token: UUID) -> None:
        """Give a message to the next consumer, unless that was tried too often."""
        self._undelivered(self._held(token))
        self._serve()

    def release(self, token: UUID) -> None:
        """Give a message to the next consumer as if it had not been delivered."""
        self._activate(self._held(token), self._clock())
        self._serve()

    def defer(self, token: UUID) -> None:
        """Put a message aside until it is asked for by its number."""
        self._move(self._held(token), State.DEFERRED)

    def dead_letter(self, token: UUID, reason: str | None, description: str | None) -> None:
        """Put a message into the dead-letter queue."""
        entry = self._held(token)
        if self.dead_letters is None:
            raise Refusal(400, NOT_ALLOWED, "A dead letter cannot be dead-lettered again.")
        self._bury(entry, reason, description)

    def renew(self, token: UUID) -> int:
        """Let a lock last for its whole time from now on; give its end."""
        entry = self._held(token)
        self._set_lock(entry, token)
        return entry.locked_until

    def take_deferred(self, sequences: Iterable[int], *, locks: bool) -> list[Entry]:
        """Give messages that were put aside, locked or for good."""
        entries = self._all(sequences, State.DEFERRED)
        for entry in entries:
            if locks:
                self._lock(entry)
            else:
                self._remove(entry)
        return entries

    def expire_locks(self) -> None:
        """End all locks as if their time were over."""
        for entry in list(self._locks.values()):
            self._undelivered(entry)
        self._serve()

    def tick(self) -> int | None:
        """Do what is due; give when it is worth to look again."""
        now = self._clock()
        for token in self._lock_ends.take_due(now):
            self._undelivered(self._locks[token])
        for sequence in self._schedule.take_due(now):
            self._come_due(self._entries[sequence], now)
        for sequence in self._expiries.take_due(now):
            if self._entries[sequence].state is State.ACTIVE:  # a consumer may finish what it has begun
                self._expire(self._entries[sequence])
        self._serve()
        times = (self._lock_ends.next(), self._schedule.next(), self._expiries.next())
        return min((time for time in times if time is not None), default=None)

    def _is_duplicate(self, message_id: Any, now: int) -> bool:
        span = round(self.options.duplicate_seconds * 1000)
        while self._seen and next(iter(self._seen.values())) <= now - span:
            self._seen.popitem(last=False)
        if not span or message_id in self._seen:
            return bool(span)
        self._seen[message_id] = now
        return False

    def _next_sequence(self) -> int:
        self._sequence += 1
        return self._sequence

    def _enter(self, message: Message, now: int, source: str | None = None) -> Entry:
        entry = Entry(message, self._next_sequence(), now, source=source)
        if source is None:
            self._let_expire(entry, max(now, message.scheduled))
        self._entries[entry.sequence] = entry
        return entry

    def _let_expire(self, entry: Entry, begin: int) -> None:
        of_queue = None if self.options.ttl_seconds is None else round(self.options.ttl_seconds * 1000)
        ttls = [int(ttl) for ttl in (entry.message.ttl, of_queue) if ttl is not None]
        if ttls:
            entry.expires = begin + min(ttls)
            self._due_at(self._expiries, entry.sequence, entry.expires)

    def _come_due(self, entry: Entry, now: int) -> None:
        """Enqueue a scheduled message as if it were sent when it was due: with a new number."""
        self._remove(entry)
        self._activate(self._enter(entry.message, entry.message.scheduled), now)

    def _activate(self, entry: Entry, now: int) -> None:
        if entry.expires is not None and entry.expires <= now:
            self._expire(entry)
            return
        self._move(entry, State.ACTIVE)
        heapq.heappush(self._ready, (entry.sequence, entry))

    def _move(self, entry: Entry, state: State) -> None:
        self._unlock(entry)
        self._counts[entry.state] -= 1
        self._counts[state] += 1
        entry.state = state

    def _unlock(self, entry: Entry) -> None:
        if entry.token is not None:
            del self._locks[entry.token]
            self._lock_ends.drop(entry.token)
            entry.token, entry.locked_until = None, 0

    def _remove(self, entry: Entry) -> None:
        self._move(entry, State.GONE)
        self._schedule.drop(entry.sequence)
        self._expiries.drop(entry.sequence)
        del self._entries[entry.sequence]

    def _serve(self) -> None:
        while self._hungry:
            consumer = self._hungry[0]
            if consumer.credit <= 0:  # taken back since it was given
                self._hungry.popleft()
                continue
            entry = self._next_ready()
            if entry is None:
                return
            self._hungry.rotate(-1)
            if consumer.locks:
                self._lock(entry)
            else:
                self._remove(entry)
            consumer.deliver(entry)

    def _next_ready(self) -> Entry | None:
        while self._ready:
            entry = heapq.heappop(self._ready)[1]
            if entry.state is not State.ACTIVE:
                continue
            if entry.expires is None or entry.expires > self._clock():
                return entry
            self._expire(entry)
        return None

    def _lock(self, entry: Entry) -> None:
        self._move(entry, State.LOCKED)
        entry.token = uuid4()
        self._locks[entry.token] = entry
        self._set_lock(entry, entry.token)

    def _set_lock(self, entry: Entry, token: UUID) -> None:
        entry.locked_until = self._clock() + round(self.options.lock_seconds * 1000)
        self._due_at(self._lock_ends, token, entry.locked_until)

    def _held(self, token: UUID) -> Entry:
        entry = self._locks.get(token)
        if entry is None or entry.locked_until <= self._clock():
            raise lock_lost()
        return entry

    def _undelivered(self, entry: Entry) -> None:
        entry.deliveries += 1
        if entry.deliveries >= self.options.max_deliveries:
            text = f"Message could not be consumed after {entry.deliveries} delivery attempts."
            self._bury(entry, "MaxDeliveryCountExceeded", text)
        else:
            self._activate(entry, self._clock())

    def _expire(self, entry: Entry) -> None:
        if self.options.dead_letter_on_expiry:
            self._bury(entry, "TTLExpiredException", "The message expired and was dead lettered.")
        else:
            self._remove(entry)

    def _bury(self, entry: Entry, reason: str | None, description: str | None) -> None:
        self._remove(entry)
        if self.dead_letters is not None:
            said = {name: text for name, text in ((REASON, reason), (DESCRIPTION, description)) if text}
            self.dead_letters.bury(entry.message.with_application_properties(said), self.name)

    def bury(self, message: Message, source: str) -> None:
        """Take in a dead letter of another queue."""
        now = self._clock()
        self._activate(self._enter(message, now, source), now)
        self._serve()

    def _all(self, sequences: Iterable[int], state: State) -> list[Entry]:
        """Give the messages with these numbers; none of them when one is missing."""
        found = []
        for sequence in dict.fromkeys(sequences):
            entry = self._entries.get(sequence)
            if entry is None or entry.state is not state:
                raise message_not_found(sequence)
            found.append(entry)
        return found

    def _due_at(self, deadlines: Deadlines[Any], key: Any, when: int) -> None:
        deadlines.set(key, when)
        self.when_due(when)


def queue_with_dead_letters(name: str, options: QueueOptions, clock: Clock) -> Queue:
    """Give a queue and the one for its dead letters."""
    return Queue(name, options, clock, Queue(f"{name}/$DeadLetterQueue", _for_dead_letters(options), clock))


def _for_dead_letters(options: QueueOptions) -> QueueOptions:
    """Give the options under which messages stay until they are taken."""
    return QueueOptions(lock_seconds=options.lock_seconds, max_deliveries=sys.maxsize)
