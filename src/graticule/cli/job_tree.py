"""A job as a tree in the terminal: the nodes with their states, fan-outs folded into a bar and counters."""

from datetime import UTC, datetime
from typing import Final

from rich.console import Group, RenderableType
from rich.text import Text
from rich.tree import Tree

from graticule.cli.client import Document
from graticule.cli.job_picture import JobPicture, Retry, seconds_between, told_seconds

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
MOST_RETRIES: Final = 5
LONGEST_ERROR: Final = 100


def render_job(picture: JobPicture, now: datetime | None = None) -> RenderableType:
    """Draw the job as it stands."""
    moment = now or datetime.now(UTC)
    tree = Tree(_headline(picture, moment), guide_style="dim")
    width = max((len(node["node_id"]) for node in picture.nodes), default=0)
    for node in picture.nodes:
        branch = tree.add(_node_line(picture, node, width, moment))
        for line in _retry_lines(picture, node, moment):
            branch.add(line)
    error = picture.job["error_message"]
    return Group(tree, Text(f"  {error}", "red")) if error else tree


def _headline(picture: JobPicture, now: datetime) -> Text:
    job = picture.job
    return _one_line(
        Text.assemble(
            _sign(picture.status),
            (f" {job['workflow_id']} ", "bold"),
            f"{job['job_id']}  {picture.status}  ",
            (told_seconds(picture.elapsed(now)), "dim"),
        )
    )


def _node_line(picture: JobPicture, node: Document, width: int, now: datetime) -> Text:
    line = Text.assemble(
        _sign(node["status"]),
        (f" {node['node_id']:<{width}}  ", "dim" if node["status"] in {"pending", "skipped"} else ""),
        (f"{WORDS.get(node['status'], node['status']):<9}  ", SIGNS[node["status"]][1]),
    )
    for part in _details(picture, node, now):
        line.append_text(part).append("  ")
    line.rstrip()
    return _one_line(line)


def _details(picture: JobPicture, node: Document, now: datetime) -> list[Text]:
    """Give what there is to say of a node: how far it is, what it chose, what it waits for, how long it took."""
    parts: list[Text] = []
    progress = node["progress"] or {}
    if node["children_total"]:
        parts += [_bar(node["children_done"], node["children_failed"], node["children_total"])]
        parts.append(_counters(node, len(picture.retrying_of(node["node_id"], now))))
    elif node["status"] == "running" and progress.get("total"):
        parts.append(_bar(float(progress["done"]), 0, float(progress["total"])))
        parts.append(Text(str(progress.get("message") or ""), "dim"))
    elif node["node_type"] == "conditional" and node["status"] == "completed":
        parts.append(Text(f"→ {', '.join((node['output'] or {}).get('next', []))}"))
    if retries := picture.retries.get(node["node_id"]):
        parts.append(Text(f"{retries} {'retry' if retries == 1 else 'retries'}", "yellow"))
    if node["status"] == "failed" and node["error_message"]:
        parts.append(Text(_short(node["error_message"]), "red"))
    took = seconds_between(node["started_at"] or node["dispatched_at"] or node["ready_at"], node["ended_at"], now)
    if took >= 0.05:
        parts.append(Text(told_seconds(took), "dim"))
    return parts


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


def _bar(done: float, failed: float, total: float) -> Text:
    failed_cells = round(BAR * failed / total) if failed else 0
    done_cells = min(BAR - failed_cells, round(BAR * done / total))
    rest = BAR - failed_cells - done_cells
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
    """Cut the line where the terminal ends: a tree of broken lines cannot be read."""
    line.no_wrap, line.overflow = True, "ellipsis"
    return line


def _sign(status: str) -> tuple[str, str]:
    return SIGNS[status]


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_ERROR else f"{line[:LONGEST_ERROR]}…"
