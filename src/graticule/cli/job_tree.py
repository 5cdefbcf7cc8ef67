"""A job as a tree in the terminal: the nodes with their states, fan-outs folded into a bar and counters."""

import math
from datetime import UTC, datetime
from typing import Final

from rich.console import Group, RenderableType
from rich.text import Text
from rich.tree import Tree

from graticule.cli.job_picture import JobPicture, Retry, seconds_between, told_seconds
from graticule.client import Document

SIGNS: Final = {
    "pending": ("○", "dim"),
    "ready": ("◔", "yellow"),
    "dispatched": ("◌", "cyan"),
    "running": ("●", "cyan"),
    "completed": ("✓", "green"),
    "failed": ("✗", "red"),
    "cancelled": ("✗", "yellow"),
    "skipped": ("-", "dim"),
}
WORDS: Final = {"dispatched": "queued", "pending": "waiting"}
BAR: Final = 24
SHORT_BAR: Final = 12
NARROW: Final = 100  # columns; below, the bar is short, to leave room for the numbers
GAP: Final = "  "
GUIDE: Final = 4  # columns of the tree's lines before a node
MOST_RETRIES: Final = 5
LONGEST_ERROR: Final = 100


def render_job(picture: JobPicture, width: int, now: datetime | None = None) -> RenderableType:
    """Draw the job as it stands, in so many columns."""
    moment = now or datetime.now(UTC)
    tree = Tree(_headline(picture, width, moment), guide_style="dim")
    names = max((len(node["node_id"]) for node in picture.nodes), default=0)
    for node in picture.nodes:
        head = _node_head(node, names)
        branch = tree.add(_laid_out(head, _numbers(picture, node, width, moment), _words(node), width - GUIDE))
        for line in _retry_lines(picture, node, moment):
            branch.add(line)
    error = picture.job["error_message"]
    return Group(tree, Text(f"  {error}", "red")) if error else tree


def _headline(picture: JobPicture, width: int, now: datetime) -> Text:
    job = picture.job
    head = Text.assemble(_sign(picture.status), (f" {job['workflow_id']} ", "bold"), job["job_id"])
    return _laid_out(head, [Text(picture.status), Text(told_seconds(picture.elapsed(now)), "dim")], Text(), width)


def _node_head(node: Document, names: int) -> Text:
    return Text.assemble(
        _sign(node["status"]),
        (f" {node['node_id']:<{names}}  ", "dim" if node["status"] in {"pending", "skipped"} else ""),
        (f"{WORDS.get(node['status'], node['status']):<9}", SIGNS[node["status"]][1]),
    )


def _numbers(picture: JobPicture, node: Document, width: int, now: datetime) -> list[Text]:
    """Give how far a node is, how often it was tried again, and how long it took."""
    parts: list[Text] = []
    cells = SHORT_BAR if width < NARROW else BAR
    progress = node["progress"] or {}
    if node["children_total"]:
        parts.append(_bar(node["children_done"], node["children_failed"], node["children_total"], cells))
        parts.append(_counters(node, len(picture.retrying_of(node["node_id"], now))))
    elif node["status"] == "running" and progress.get("total"):
        parts.append(_bar(float(progress["done"]), 0, float(progress["total"]), cells))
        if (left := progress.get("eta_seconds")) is not None:
            parts.append(Text(f"{told_seconds(float(left))} left", "dim"))
    if retries := picture.retries.get(node["node_id"]):
        parts.append(Text(f"{retries} {'retry' if retries == 1 else 'retries'}", "yellow"))
    took = seconds_between(node["started_at"] or node["dispatched_at"] or node["ready_at"], node["ended_at"], now)
    if took >= 0.05:
        parts.append(Text(told_seconds(took), "dim"))
    return parts


def _words(node: Document) -> Text:
    """Give what a node says: why it failed, what it chose, what it does."""
    if node["status"] == "failed" and node["error_message"]:
        return Text(_short(node["error_message"]), "red")
    if node["status"] == "completed" and node["node_type"] == "conditional":
        return Text(f"→ {', '.join((node['output'] or {}).get('next', []))}")
    if node["status"] == "running" and not node["children_total"]:
        return Text(_short(str((node["progress"] or {}).get("message") or "")), "dim")
    return Text()


def _laid_out(head: Text, numbers: list[Text], words: Text, width: int) -> Text:
    """Put a node on one line; numbers for which there is no room go on below, and only words are cut."""
    lines = [head.copy()]
    longest = max((number.cell_len for number in numbers), default=0)
    indent = max(0, min(head.cell_len, width - longest - len(GAP)))
    for number in numbers:
        if lines[-1].cell_len + len(GAP) + number.cell_len > width:
            lines.append(Text(" " * indent))
        lines[-1].append(GAP).append_text(number)
    if words:
        lines[-1].append(GAP).append_text(words)
    for line in lines:
        line.rstrip()
    return _one_line(Text("\n").join(lines))


def _counters(node: Document, waiting: int) -> Text:
    done, failed, total = node["children_done"], node["children_failed"], node["children_total"]
    text = Text(f"{done}/{total}")
    if node["status"] == "running":
        under_way = max(0, node["children_started"] - done - failed - waiting)
        text.append(f", {under_way} under way", "cyan")
        text.append(f", {waiting} waiting" if waiting else "", "yellow")
    if failed:
        text.append(f", {failed} failed", "red")
    return text


def _bar(done: float, failed: float, total: float, cells: int) -> Text:
    """Draw how far it is; the bar is full only when nothing is left."""
    rest = max(0, math.ceil(cells * (total - done - failed) / total))
    failed_cells = min(cells - rest, round(cells * failed / total))
    done_cells = cells - rest - failed_cells
    return Text.assemble(("━" * done_cells, "green"), ("━" * failed_cells, "red"), ("─" * rest, "dim"))


def _retry_lines(picture: JobPicture, node: Document, now: datetime) -> list[Text]:
    waiting = [] if picture.ended else picture.retrying_of(node["node_id"], now)
    lines = [_retry_line(retry, now) for retry in waiting[:MOST_RETRIES]]
    if len(waiting) > MOST_RETRIES:
        lines.append(Text(f"and {len(waiting) - MOST_RETRIES} more", "dim"))
    return lines


def _retry_line(retry: Retry, now: datetime) -> Text:
    told = f"{retry.node_id}  retry {retry.number} in {retry.waits(now):.1f} s"
    return _one_line(Text.assemble(("↻ ", "yellow"), told, (f"  {_short(retry.error)}", "dim")))


def _one_line(line: Text) -> Text:
    """Cut a line where the terminal ends: a tree of broken lines cannot be read."""
    line.no_wrap, line.overflow = True, "ellipsis"
    return line


def _sign(status: str) -> tuple[str, str]:
    return SIGNS[status]


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_ERROR else f"{line[:LONGEST_ERROR]}…"
