"""The rules of a queue, with a clock that is moved by hand."""

from dataclasses import dataclass, field
from uuid import UUID, uuid4

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from tests.servicebus_emulator.message import SCHEDULED, Message
from tests.servicebus_emulator.queue import Entry, Queue, QueueOptions, State, queue_with_dead_letters
from tests.servicebus_emulator.refusal import Refusal
from tests.servicebus_emulator.types import Timestamp, UInt

BEGIN = 1_000_000


@dataclass
class Clock:
    """A clock that stands still."""

    now: int = BEGIN

    def __call__(self) -> int:
        return self.now


@dataclass(eq=False)
class Taker:
    """A consumer that keeps what it gets."""

    credit: int = 0
    locks: bool = True
    entries: list[Entry] = field(default_factory=list)

    def deliver(self, entry: Entry) -> None:
        self.credit -= 1
        self.entries.append(entry)


class Story:
    """A queue, its clock and one consumer."""

    def __init__(self, **options: float | bool | None) -> None:
        self.clock = Clock()
        self.queue: Queue = queue_with_dead_letters("q", QueueOptions(**options), self.clock)  # type: ignore[arg-type]
        self.taker = Taker()

    def put(self, message_id: str = "1", *, ttl: int | None = None, scheduled: int = 0) -> int:
        annotations = {SCHEDULED: Timestamp(scheduled)} if scheduled else {}
        header = [None, None, None if ttl is None else UInt(ttl), None, None]
        return self.queue.put(Message(message_id, b"", header=header, annotations=annotations))

    def take(self, taker: Taker | None = None) -> Entry:
        taker = taker or self.taker
        before = len(taker.entries)
        taker.credit += 1
        self.queue.feed(taker)
        [entry] = taker.entries[before:]
        return entry

    def gets_nothing(self) -> bool:
        taker = Taker(credit=1)
        self.queue.feed(taker)
        self.queue.leave(taker)
        return not taker.entries

    def wait(self, milliseconds: int) -> None:
        self.clock.now += milliseconds
        self.queue.tick()

    def token(self) -> UUID:
        token = self.take().token
        assert token is not None
        return token

    @property
    def dead(self) -> list[Entry]:
        assert self.queue.dead_letters is not None
        return self.queue.dead_letters.messages


def _counts(queue: Queue) -> tuple[int, int, int, int, int]:
    return (queue.active, queue.locked, queue.deferred, queue.scheduled, queue.dead)


def test_messages_are_taken_in_order_and_completed() -> None:
    story = Story()
    numbers = [story.put(name) for name in ("1", "2")]
    assert [story.take().id for _ in numbers] == ["1", "2"]
    assert _counts(story.queue) == (0, 2, 0, 0, 0)
    for entry in story.taker.entries:
        assert entry.token is not None
        story.queue.complete(entry.token)
    assert story.queue.messages == []


def test_consumers_take_turns() -> None:
    story = Story()
    takers = [Taker(credit=3), Taker(credit=1), Taker()]
    for taker in takers:
        story.queue.feed(taker)
    for name in "1234":
        story.put(name)
    assert [[entry.id for entry in taker.entries] for taker in takers] == [["1", "3", "4"], ["2"], []]


def test_a_consumer_whose_credit_was_taken_back_gets_nothing() -> None:
    story = Story()
    story.taker.credit = 1
    story.queue.feed(story.taker)
    story.taker.credit = 0
    story.put()
    assert story.taker.entries == []


def test_an_abandoned_message_keeps_its_place() -> None:
    story = Story()
    for name in "123":
        story.put(name)
    first, second = story.token(), story.token()
    story.queue.abandon(second)
    story.queue.abandon(first)
    assert [(story.take().id, story.taker.entries[-1].deliveries) for _ in "123"] == [("1", 1), ("2", 1), ("3", 0)]


def test_a_released_message_was_not_delivered() -> None:
    story = Story(max_deliveries=1)
    story.put()
    story.queue.release(story.token())
    assert story.take().deliveries == 0


def test_a_lock_lasts_to_the_millisecond() -> None:
    story = Story(lock_seconds=2)
    story.put()
    entry = story.take()
    story.wait(1999)
    assert entry.state is State.LOCKED
    story.wait(1)
    assert (entry.state, entry.deliveries) == (State.ACTIVE, 1)


def test_a_lock_that_is_over_is_refused_before_anybody_looks() -> None:
    story = Story(lock_seconds=2)
    story.put()
    token = story.token()
    story.clock.now += 2000
    with pytest.raises(Refusal, match="lock supplied is invalid"):
        story.queue.complete(token)
    assert story.queue.messages[0].state is State.LOCKED


def test_a_renewed_lock_lasts_from_then_on() -> None:
    story = Story(lock_seconds=2)
    story.put()
    token = story.token()
    story.wait(1500)
    assert story.queue.renew(token) == story.clock.now + 2000
    story.wait(1999)
    story.queue.complete(token)


def test_a_message_that_is_not_consumed_is_dead_lettered() -> None:
    story = Story(max_deliveries=2, lock_seconds=1)
    story.put("1")
    story.queue.abandon(story.token())
    story.take()
    story.wait(1000)
    assert [(entry.id, entry.reason, entry.source) for entry in story.dead] == [("1", "MaxDeliveryCountExceeded", "q")]
    assert _counts(story.queue) == (0, 0, 0, 0, 1)


def test_a_dead_letter_is_not_dead_lettered_again() -> None:
    story = Story()
    story.put()
    story.queue.dead_letter(story.token(), "why", None)
    assert story.queue.dead_letters is not None
    taker = Taker(credit=1)
    story.queue.dead_letters.feed(taker)
    assert (taker.entries[0].reason, taker.entries[0].description) == ("why", None)
    with pytest.raises(Refusal):
        story.queue.dead_letters.dead_letter(taker.entries[0].token or uuid4(), "why", None)


def test_a_deferred_message_is_taken_by_its_number() -> None:
    story = Story()
    number = story.put()
    story.queue.defer(story.token())
    assert story.gets_nothing()
    [entry] = story.queue.take_deferred([number, number], locks=True)
    assert entry.state is State.LOCKED
    with pytest.raises(Refusal, match="sequence number"):
        story.queue.take_deferred([number], locks=True)


def test_a_scheduled_message_comes_on_time_with_a_new_number() -> None:
    story = Story()
    number = story.put("later", scheduled=BEGIN + 1000)
    story.put("now")
    story.wait(999)
    assert story.take().id == "now"
    assert story.gets_nothing()
    story.wait(1)
    entry = story.take()
    assert (entry.id, entry.enqueued) == ("later", BEGIN + 1000)
    assert entry.sequence > number
    with pytest.raises(Refusal):
        story.queue.cancel_scheduled([number])


def test_none_is_cancelled_when_one_is_missing() -> None:
    story = Story()
    numbers = [story.put(name, scheduled=BEGIN + 1000) for name in "12"]
    with pytest.raises(Refusal):
        story.queue.cancel_scheduled([numbers[0], 99])
    assert story.queue.scheduled == 2
    story.queue.cancel_scheduled(numbers)
    story.wait(1000)
    assert story.queue.messages == []


@pytest.mark.parametrize(("of_queue", "of_message", "life"), [(None, 500, 500), (1, None, 1000), (1, 5000, 1000)])
def test_a_message_lives_as_long_as_the_shorter_limit(of_queue: int, of_message: int, life: int) -> None:
    story = Story(ttl_seconds=of_queue)
    story.put(ttl=of_message)
    story.wait(life - 1)
    assert story.queue.active == 1
    story.wait(1)
    assert _counts(story.queue) == (0, 0, 0, 0, 0)


def test_a_scheduled_message_lives_from_its_time_on() -> None:
    story = Story()
    story.put(ttl=500, scheduled=BEGIN + 1000)
    story.wait(1499)
    assert story.queue.active == 1
    story.wait(1)
    assert story.queue.messages == []


def test_a_message_does_not_expire_while_it_is_locked() -> None:
    story = Story(dead_letter_on_expiry=True, lock_seconds=10)
    story.put(ttl=1000)
    token = story.token()
    story.wait(5000)
    assert story.queue.locked == 1
    story.queue.abandon(token)
    assert [entry.reason for entry in story.dead] == ["TTLExpiredException"]


def test_an_id_is_remembered_for_a_while() -> None:
    story = Story(duplicate_seconds=1)
    story.put("1")
    story.wait(999)
    story.put("1")
    assert story.queue.active == 1
    story.wait(1)
    story.put("1")
    assert story.queue.active == 2


def test_messages_are_looked_at_in_every_state() -> None:
    story = Story()
    numbers = [story.put(name) for name in "123"] + [story.put("4", scheduled=BEGIN + 1000)]
    story.queue.defer(story.token())
    story.take()
    assert [entry.id for entry in story.queue.peek(0, 10)] == ["1", "2", "3", "4"]
    assert [entry.id for entry in story.queue.peek(numbers[1], 2)] == ["2", "3"]


def test_the_next_time_is_told_when_it_comes_nearer() -> None:
    story = Story(lock_seconds=10)
    told: list[int] = []
    story.queue.when_due = told.append
    story.put("later", scheduled=BEGIN + 60_000)
    story.put("now")
    story.take()
    assert told == [BEGIN + 60_000, BEGIN + 10_000]
    assert story.queue.tick() == BEGIN + 10_000


class AnyStory(RuleBasedStateMachine):
    """Whatever happens, no message is lost or doubled, and what is counted is what is there."""

    def __init__(self) -> None:
        super().__init__()
        self.story = Story(lock_seconds=1, max_deliveries=3)
        self.sent = 0
        self.completed = 0

    @rule(delay=st.integers(0, 3))
    def put(self, delay: int) -> None:
        self.sent += 1
        self.story.put(str(self.sent), scheduled=self.story.clock.now + 400 * delay if delay else 0)

    @precondition(lambda self: self.story.queue.active)
    @rule()
    def take(self) -> None:
        self.story.take()

    @rule(milliseconds=st.integers(1, 900))
    def wait(self, milliseconds: int) -> None:
        self.story.wait(milliseconds)

    @rule(how=st.sampled_from(["complete", "abandon", "release", "defer"]), data=st.data())
    def settle(self, how: str, data: st.DataObject) -> None:
        tokens = [entry.token for entry in self.story.queue.messages if entry.token]
        if tokens:
            getattr(self.story.queue, how)(data.draw(st.sampled_from(tokens)))
            self.completed += how == "complete"

    @invariant()
    def all_are_there(self) -> None:
        queue = self.story.queue
        assert len(queue.messages) + queue.dead + self.completed == self.sent
        assert len({entry.id for entry in [*queue.messages, *self.story.dead]}) == self.sent - self.completed
        states = [entry.state.value for entry in queue.messages]
        assert _counts(queue)[:4] == tuple(
            states.count(state) for state in ("active", "locked", "deferred", "scheduled")
        )
        assert [entry.sequence for entry in queue.messages] == sorted(entry.sequence for entry in queue.messages)


AnyStory.TestCase.settings = settings(max_examples=15, stateful_step_count=25)
TestAnyStory = AnyStory.TestCase
