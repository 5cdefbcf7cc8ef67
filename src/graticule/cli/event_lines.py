"""Events as lines of text: one for each, or, for a reader of logs, with the children of fan-outs folded."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

from graticule.cli.job_picture import CHILD, Children, static_node
from graticule.client import Document

SHOWN_RETRIES: Final = 3  # of each fan-out; the others are counted
QUARTERS: Final = 4
LONGEST: Final = 160
# What is told of an event's data; --json shows all of it.
TOLD: Final = {
    "children": "{} children",
    "count": "{} results",
    "failed": "{} failed",
    "phase": "phase {}",
    "reason": "{}",
}


def event_line(event: Document, began: datetime) -> str:
    """Give one event: when it was, what happened, to which node, and what there is to know of it."""
    offset = (datetime.fromisoformat(event["created_at"]) - began).total_seconds()
    return f"{offset:8.2f} s  {event['event_type']:<17} {_subject(event)}".rstrip()


def _subject(event: Document) -> str:
    parts = [event["node_id"] or "", _told(event["event_type"], event["data"] or {})]
    if event["actor"]:
        parts.append(f"by {event['actor']}")
    return _short("  ".join(part for part in parts if part))


def _told(event_type: str, data: dict[str, Any]) -> str:
    """Give the part of an event's data that a person wants to see."""
    if data.get("fan_out"):
        return _told_children(data)
    match event_type:
        case "node_failed" | "job_failed":
            return str(data.get("error", "")) + ("" if data.get("will_retry", True) else ", for good")
        case "node_retry":
            return f"retry {data['retry_count']} in {data['delay_seconds']:.1f} s"
        case "node_progress":
            return f"{data.get('done')}/{data.get('total')} {data.get('message') or ''}".rstrip()
        case "node_dispatched":
            return f"{data.get('handler')} on {data.get('queue')}"
        case _:
            return _told_otherwise(data)


def _told_children(data: dict[str, Any]) -> str:
    first, last = data.get("from"), data.get("to")
    if first is not None and first == last:
        return f"child {first}"
    return f"{data['children']} children" + ("" if first is None else f" ({first} to {last})")


def _told_otherwise(data: dict[str, Any]) -> str:
    if "next" in data:
        return f"→ {', '.join(data['next'])}"
    return ", ".join(words.format(data[name]) for name, words in TOLD.items() if data.get(name))


class FoldedLines:
    """Turns events into lines for a log: a fan-out tells its progress by quarters, and its first few retries."""

    def __init__(self, began: datetime) -> None:
        self._began = began
        self._children: dict[str, Children] = {}

    def take(self, event: Document) -> Iterator[str]:
        """Give the lines that an event is worth."""
        if CHILD in (event["node_id"] or ""):
            yield from self._child(event)
        elif self._is_news(event):
            yield event_line(event, self._began)
            self._remember_total(event)

    def _is_news(self, event: Document) -> bool:
        """Leave out what another line says as well."""
        folded = bool((event["data"] or {}).get("fan_out"))
        return not folded and event["event_type"] not in {"node_ready", "job_started"}

    def _remember_total(self, event: Document) -> None:
        total = (event["data"] or {}).get("children")
        if total and event["event_type"] == "node_running":
            self._children[event["node_id"]] = Children(total)

    def _child(self, event: Document) -> Iterator[str]:
        counts = self._children.setdefault(static_node(event["node_id"]), Children())
        match event["event_type"]:
            case "node_completed":
                counts.done += 1
                if counts.total and self._reached_quarter(counts):
                    yield self._progress(event, counts)
            case "node_retry":
                counts.retries += 1
                if counts.retries <= SHOWN_RETRIES:
                    yield event_line(event, self._began)
                elif counts.retries == SHOWN_RETRIES + 1:
                    yield f"{'':12}further retries of {static_node(event['node_id'])} are counted, not shown"
            case "node_failed":
                if not event["data"].get("will_retry"):
                    counts.failed += 1
                    yield event_line(event, self._began)
                elif counts.retries < SHOWN_RETRIES:
                    yield event_line(event, self._began)

    @staticmethod
    def _reached_quarter(counts: Children) -> bool:
        return counts.done * QUARTERS // counts.total > (counts.done - 1) * QUARTERS // counts.total

    def _progress(self, event: Document, counts: Children) -> str:
        offset = (datetime.fromisoformat(event["created_at"]) - self._began).total_seconds()
        told = f"{counts.done}/{counts.total} done"
        retries = f", {counts.retries} retries so far" if counts.retries else ""
        return f"{offset:8.2f} s  {'progress':<17} {static_node(event['node_id'])}  {told}{retries}"


def _short(text: str) -> str:
    line = " ".join(text.split(" ")).replace("\n", " ")
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}…"
