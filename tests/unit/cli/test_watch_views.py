"""What a watched job looks like: the tree in a terminal, the lines in a log, and the feed behind both."""

from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any

import httpx
import pytest
from rich.console import Console
from tests.unit.cli.api import CREATED, JOB_ID, FakeApi, event, job, node, watched

from graticule.cli import watch
from graticule.cli.event_lines import FoldedLines, event_line
from graticule.cli.job_picture import JobPicture, told_seconds
from graticule.cli.job_tree import render_job
from graticule.client import AsyncClient, event_stream
from graticule.core.errors import Unavailable

BEGAN = datetime.fromisoformat(CREATED)
NOW = BEGAN + timedelta(seconds=3)


def drawn(picture: JobPicture, now: datetime = NOW, width: int = 120) -> list[str]:
    console = Console(file=StringIO(), width=width, force_terminal=False)
    console.print(render_job(picture, width, now))
    assert isinstance(console.file, StringIO)
    return console.file.getvalue().splitlines()


def fan_out(**counters: Any) -> dict[str, Any]:
    values = {"status": "running", "node_type": "fan_out", "children_total": 20, "children_started": 14}
    return node("split", **{**values, **counters})


def retry(number: int, node_id: str, seconds: float) -> dict[str, Any]:
    ready = (NOW + timedelta(seconds=seconds)).isoformat()
    return event(number, "node_retry", node_id, retry_count=2, ready_at=ready, delay_seconds=seconds)


# the tree


def test_nodes_are_shown_in_the_given_order_with_their_states() -> None:
    nodes = [node("start"), node("check", "running"), node("other", "skipped"), node("end", "pending")]
    lines = drawn(JobPicture(job(), nodes))
    assert lines[0] == f"● demo {JOB_ID}  running  3.0 s"
    assert [line.split()[1:4] for line in lines[1:]] == [
        ["✓", "start", "completed"],
        ["●", "check", "running"],
        ["-", "other", "skipped"],
        ["○", "end", "waiting"],
    ]


def test_a_fan_out_is_folded_into_a_bar_and_counters() -> None:
    (_, line) = drawn(JobPicture(job(), [fan_out(children_done=10, children_failed=2)]))
    assert "━" * 14 + "─" * 10 in line  # 10 done and 2 failed of 20, on 24 cells
    assert "10/20, 2 under way, 2 failed" in line


def test_the_last_bar_is_full_and_an_empty_fan_out_has_none() -> None:
    done = node("split", "completed", "fan_out", children_total=7, children_started=7, children_done=7)
    assert f"{'━' * 24}  7/7" in drawn(JobPicture(job(), [done]))[1]
    assert "/" not in drawn(JobPicture(job(), [node("split", "completed", "fan_out")]))[1]


@pytest.mark.parametrize("width", [80, 120])
def test_a_bar_is_full_only_when_nothing_is_left(width: int) -> None:
    nearly = fan_out(children_total=1000, children_started=1000, children_done=998, children_failed=1)
    assert "━─  998/1000" in drawn(JobPicture(job(), [nearly]), width=width)[1]
    assert "━  999/1000" in drawn(JobPicture(job(), [nearly | {"children_done": 999}]), width=width)[1]


def test_retries_that_wait_are_shown_below_their_node_until_their_time_has_come() -> None:
    picture = JobPicture(job(), [fan_out(children_done=10)])
    picture.take(event(1, "node_failed", "split__3", error="it\nbroke", will_retry=True))
    picture.take(retry(2, "split__3", 1.5))
    lines = drawn(picture)
    assert "1 waiting" in lines[1]
    assert "1 retry" in lines[1]
    assert lines[2].split("↻ ")[1] == "split__3  retry 2 in 1.5 s  it broke"
    assert len(drawn(picture, NOW + timedelta(seconds=2))) == 2
    picture.take(event(3, "node_completed", "split__3"))
    assert len(drawn(picture)) == 2


def test_of_many_retries_the_next_ones_are_shown_and_the_others_counted() -> None:
    picture = JobPicture(job(), [fan_out()])
    for number in range(30):
        picture.take(retry(number, f"split__{number}", 30 - number))
    lines = drawn(picture)
    assert [line.split("split__")[1].split()[0] for line in lines[2:7]] == ["29", "28", "27", "26", "25"]
    assert "and 25 more" in lines[7]


def test_an_ended_job_waits_for_nothing() -> None:
    picture = JobPicture(job("failed", error_message="node 'a' failed: [bold]x[/bold]"), [fan_out()])
    picture.take(retry(1, "split__1", 5))
    lines = drawn(picture)
    assert len(lines) == 3
    assert lines[2] == "  node 'a' failed: [bold]x[/bold]"


def test_what_a_conditional_chose_what_failed_and_how_far_a_task_is() -> None:
    nodes = [
        node("route", node_type="conditional", output={"branch": 0, "next": ["heavy", "log"]}),
        node("a", "failed", error_message="it [red]broke\nhere", started_at=CREATED, ended_at="2026-03-14T15:00:02Z"),
        node("b", "running", progress={"done": 3, "total": 12, "message": "phase 3"}),
    ]
    lines = drawn(JobPicture(job(), nodes))
    assert "→ heavy, log" in lines[1]
    assert lines[2].endswith("2.0 s  it [red]broke here")
    assert f"{'━' * 6}{'─' * 18}  phase 3" in lines[3]


def demo_picture(status: str, **counters: Any) -> JobPicture:
    """Give a fan-out among the nodes of the demonstration, with 31 retries of which some wait."""
    split = fan_out(children_total=40, children_started=40, started_at=CREATED, status=status, **counters)
    picture = JobPicture(job(), [node("start"), split, node("process_whole", "skipped"), node("end", "pending")])
    for number in range(31):
        picture.take(retry(number, f"split__{number % 20}", 5))
    return picture


def test_a_line_with_numbers_that_ended_fits_80_columns() -> None:
    lines = drawn(demo_picture("completed", children_done=40, ended_at="2026-03-14T15:00:02.3+00:00"), width=80)
    assert lines[2] == f"├── ✓ split          completed  {'━' * 12}  40/40  31 retries  2.3 s"


def test_numbers_for_which_there_is_no_room_go_on_below() -> None:
    lines = drawn(demo_picture("running", children_done=9), width=80)
    assert lines[2] == f"├── ● split          running    {'━' * 2}{'─' * 10}  9/40, 11 under way, 20 waiting"
    assert lines[3] == f"│{' ' * 31}31 retries  3.0 s"
    assert lines[4].startswith("│   ├── ↻ split__")


@pytest.mark.parametrize("width", range(50, 130, 5))
def test_no_width_cuts_a_number(width: int) -> None:
    lines = drawn(demo_picture("running", children_done=9, children_failed=1), width=width)
    shown = " ".join(" ".join(line.strip("│├└─ ") for line in lines).split())
    for number in (f"{JOB_ID} running 3.0 s", "9/40, 10 under way, 20 waiting, 1 failed", "31 retries 3.0 s"):
        assert number in shown
    assert all(len(line) <= width for line in lines)


def test_words_are_cut_where_the_terminal_ends() -> None:
    failed = node("a", "failed", error_message="x" * 300, started_at=CREATED, ended_at="2026-03-14T15:00:02Z")
    *_, line = drawn(JobPicture(job(), [failed]), width=40)
    assert line == f"└── ✗ a  failed     2.0 s  {'x' * 12}…"


@pytest.mark.parametrize(
    ("seconds", "told"), [(0, "0.0 s"), (9.94, "9.9 s"), (42, "42 s"), (150, "2 min 30 s"), (7384, "2 h 03 min")]
)
def test_times_are_written_as_people_say_them(seconds: float, told: str) -> None:
    assert told_seconds(seconds) == told


# the views


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> StringIO:
    file = StringIO()
    monkeypatch.setattr(watch, "out", Console(file=file, width=100, height=30, force_terminal=True, color_system=None))
    return file


async def watched_in(api: FakeApi) -> JobPicture:
    async with AsyncClient("http://127.0.0.1:1", repeats=0, transport=httpx.MockTransport(api)) as client:
        return await watch.watch_job(client, JOB_ID)


async def test_a_terminal_shows_the_tree_and_keeps_its_last_state(terminal: StringIO) -> None:
    nodes = (node("a"), node("end", "completed"))
    picture = await watched_in(watched(job("completed"), event(1, "job_created"), nodes=nodes))
    assert picture.status == "completed"
    assert f"{JOB_ID}  completed" in terminal.getvalue().rpartition("demo")[2]
    assert terminal.getvalue().count("\x1b[?25l") == terminal.getvalue().count("\x1b[?25h") == 1


async def test_a_terminal_gets_its_cursor_back_when_the_server_is_lost(
    terminal: StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_stream, "PATIENCE_SECONDS", 0)
    api = watched(job())
    api.answers[f"GET /api/v1/jobs/{JOB_ID}/events/stream"] = httpx.ConnectError("refused")
    with pytest.raises(Unavailable):
        await watched_in(api)
    assert terminal.getvalue().count("\x1b[?25l") == terminal.getvalue().count("\x1b[?25h") == 1


# lines


def test_an_event_is_one_line_whatever_its_data_holds() -> None:
    line = event_line(event(2, "node_failed", "a", error="x\n" * 500, will_retry=True), BEGAN)
    assert line.startswith("    2.00 s  node_failed       a  x x")
    assert len(line.splitlines()) == 1
    assert len(line) < 220


def test_a_fan_out_tells_its_progress_by_quarters_and_its_first_retries() -> None:
    lines = FoldedLines(BEGAN)
    told = [*lines.take(event(1, "node_running", "split", children=40))]
    told += [*lines.take(event(1, "node_dispatched", "split", fan_out=True, children=40))]
    for number in range(40):
        if number % 2:
            told += lines.take(event(2, "node_failed", f"split__{number}", error="chance", will_retry=True))
            told += lines.take(retry(2, f"split__{number}", 1))
        told += lines.take(event(3, "node_completed", f"split__{number}"))
    told += lines.take(event(4, "node_completed", "split", children=40, failed=0))
    assert [line.split("split  ")[1] for line in told if "progress" in line] == [
        "10/40 done, 5 retries so far",
        "20/40 done, 10 retries so far",
        "30/40 done, 15 retries so far",
        "40/40 done, 20 retries so far",
    ]
    assert sum("node_retry" in line for line in told) == 3
    assert sum("node_failed" in line for line in told) == 3
    assert len(told) == 1 + 6 + 1 + 4 + 1


def test_a_child_that_failed_for_good_is_always_told() -> None:
    lines = FoldedLines(BEGAN)
    for number in range(50):
        assert [*lines.take(event(1, "node_failed", f"split__{number}", error="x", will_retry=False))]


def test_now_is_the_default_moment() -> None:
    started = datetime.now(UTC) - timedelta(seconds=100)
    assert 99 < JobPicture(job(created_at=started.isoformat())).elapsed() < 160
