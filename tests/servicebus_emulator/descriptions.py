"""How the administration API describes queues: entries and feeds of ATOM, durations of ISO 8601."""

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final
from xml.etree import ElementTree as ET

from tests.servicebus_emulator.queue import Queue, QueueOptions

ATOM: Final = "http://www.w3.org/2005/Atom"
SERVICE_BUS: Final = "http://schemas.microsoft.com/netservices/2010/10/servicebus/connect"
_COUNTS: Final = "http://schemas.microsoft.com/netservices/2011/06/servicebus"
_FOR_EVER: Final = "P10675199DT2H48M5.4775807S"
_LONGEST: Final = 10_675_199 * 86_400.0
_DURATION: Final = re.compile(
    r"P(?:(?P<days>\d{1,9})D)?(?:T(?:(?P<hours>\d{1,9})H)?(?:(?P<minutes>\d{1,9})M)?(?:(?P<seconds>\d{1,12}(?:\.\d{1,9})?)S)?)?"
)
_SECONDS: Final = {"days": 86_400, "hours": 3600, "minutes": 60, "seconds": 1}
_LONGEST_LOCK: Final = 300
_MOST_DELIVERIES: Final = 2000


def options_of(body: bytes) -> QueueOptions:
    """Give the options that a request to make or to change a queue asks for; a ValueError tells what is wrong."""
    try:
        description = ET.fromstring(body).find(f"{{{ATOM}}}content/{{{SERVICE_BUS}}}QueueDescription")
    except ET.ParseError as error:
        raise ValueError("The body is no XML.") from error
    if description is None:
        raise ValueError("The body describes no queue.")
    given = {str(each.tag).rpartition("}")[2]: each.text or "" for each in description}
    ttl = seconds_of(given.get("DefaultMessageTimeToLive", _FOR_EVER))
    options = QueueOptions(
        lock_seconds=seconds_of(given.get("LockDuration", "PT1M")),
        max_deliveries=int(given.get("MaxDeliveryCount", "10")),
        ttl_seconds=None if ttl >= _LONGEST else ttl,
        duplicate_seconds=_window(given),
        dead_letter_on_expiry=given.get("DeadLetteringOnMessageExpiration") == "true",
    )
    if not 0 < options.lock_seconds <= _LONGEST_LOCK:
        raise ValueError("LockDuration is at most five minutes.")
    if not 1 <= options.max_deliveries <= _MOST_DELIVERIES:
        raise ValueError("MaxDeliveryCount is between 1 and 2000.")
    return options


def entry_of(queue: Queue, address: str) -> ET.Element:
    """Give the entry of a queue."""
    entry = ET.Element(_atom("entry"))
    ET.SubElement(entry, _atom("id")).text = f"{address}/{queue.name}"
    ET.SubElement(entry, _atom("title"), type="text").text = queue.name
    ET.SubElement(entry, _atom("updated")).text = datetime.now(UTC).isoformat()
    ET.SubElement(entry, _atom("link"), rel="self", href=f"{address}/{queue.name}")
    content = ET.SubElement(entry, _atom("content"), type="application/xml")
    description = ET.SubElement(content, _service_bus("QueueDescription"))
    for name, text in _description(queue).items():
        ET.SubElement(description, _service_bus(name)).text = text
    _add_counts(description, queue)
    return entry


def feed_of(entries: Iterable[ET.Element], address: str, following: str | None = None) -> ET.Element:
    """Give a feed of entries; the address of the following page, when there is one, is its second link."""
    feed = ET.Element(_atom("feed"))
    ET.SubElement(feed, _atom("title"), type="text").text = "Queues"
    ET.SubElement(feed, _atom("id")).text = address
    ET.SubElement(feed, _atom("link"), rel="self", href=address)
    if following is not None:
        ET.SubElement(feed, _atom("link"), rel="next", href=following)
    feed.extend(entries)
    return feed


def error_of(status: int, detail: str) -> ET.Element:
    """Give an error as the API tells it."""
    error = ET.Element("Error")
    ET.SubElement(error, "Code").text = str(status)
    ET.SubElement(error, "Detail").text = detail
    return error


def seconds_of(duration: str) -> float:
    """Give the seconds of a duration."""
    match = _DURATION.fullmatch(duration)
    if match is None or duration[-1] in "PT":
        raise ValueError(f"{duration[:40]} is no duration.")
    return sum(float(match[unit] or 0) * seconds for unit, seconds in _SECONDS.items())


def duration_of(seconds: float) -> str:
    """Give a duration of so many seconds."""
    return f"PT{seconds:.3f}".rstrip("0").rstrip(".") + "S"


def _window(given: dict[str, str]) -> float:
    if given.get("RequiresDuplicateDetection") != "true":
        return 0
    return seconds_of(given.get("DuplicateDetectionHistoryTimeWindow", "PT10M"))


def _description(queue: Queue) -> dict[str, str]:
    options = queue.options
    now = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    return {
        "LockDuration": duration_of(options.lock_seconds),
        "MaxSizeInMegabytes": "1024",
        "RequiresDuplicateDetection": _truth(options.duplicate_seconds > 0),
        "RequiresSession": "false",
        "DefaultMessageTimeToLive": _FOR_EVER if options.ttl_seconds is None else duration_of(options.ttl_seconds),
        "DeadLetteringOnMessageExpiration": _truth(options.dead_letter_on_expiry),
        "DuplicateDetectionHistoryTimeWindow": duration_of(options.duplicate_seconds or 600),
        "MaxDeliveryCount": str(options.max_deliveries),
        "EnableBatchedOperations": "true",
        "SizeInBytes": "0",
        "MessageCount": str(len(queue.messages) + queue.dead),
        "Status": "Active",
        "CreatedAt": now,
        "UpdatedAt": now,
        "AccessedAt": now,
    }


def _add_counts(description: ET.Element, queue: Queue) -> None:
    counts = ET.SubElement(description, _service_bus("CountDetails"))
    told = {
        "ActiveMessageCount": queue.active + queue.locked + queue.deferred,
        "DeadLetterMessageCount": queue.dead,
        "ScheduledMessageCount": queue.scheduled,
        "TransferMessageCount": 0,
        "TransferDeadLetterMessageCount": 0,
    }
    for name, count in told.items():
        ET.SubElement(counts, f"{{{_COUNTS}}}{name}").text = str(count)


def _truth(value: bool) -> str:
    return "true" if value else "false"


def _atom(name: str) -> str:
    return f"{{{ATOM}}}{name}"


def _service_bus(name: str) -> str:
    return f"{{{SERVICE_BUS}}}{name}"
