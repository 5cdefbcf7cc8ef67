"""A message: its sections as the sender encoded them, and those that the broker reads or adds to."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any, Final, Self
from uuid import uuid4

from tests.servicebus_emulator.frames import described, padded
from tests.servicebus_emulator.types import Described, Malformed, Symbol, UInt, decode, encode, end_of

BATCH_FORMAT: Final = 0x80013700
SCHEDULED: Final = Symbol("x-opt-scheduled-enqueue-time")

_HEADER_FIELDS: Final = 5
_PROPERTIES_FIELDS: Final = 13
_TTL, _DELIVERY_COUNT = 2, 4
_MESSAGE_ID, _REPLY_TO, _CORRELATION_ID = 0, 4, 5


class Section(IntEnum):
    """The parts of a message."""

    HEADER = 0x70
    DELIVERY_ANNOTATIONS = 0x71
    ANNOTATIONS = 0x72
    PROPERTIES = 0x73
    APPLICATION_PROPERTIES = 0x74
    DATA = 0x75
    SEQUENCE = 0x76
    VALUE = 0x77
    FOOTER = 0x78


@dataclass(frozen=True)
class Message:
    """What a sender said; `rest` is the body and the footer."""

    id: Any
    properties: bytes
    header: list[Any] = field(default_factory=lambda: [None] * _HEADER_FIELDS)
    annotations: dict[Any, Any] = field(default_factory=dict)
    application_properties: bytes = b""
    rest: bytes = b""

    @classmethod
    def parse(cls, raw: bytes) -> Self:
        """Give the message that these bytes are; one without an id gets one."""
        parts: dict[str, Any] = {}
        rest = []
        properties: list[Any] = []
        for section, start, end in _sections(raw):
            if section == Section.HEADER:
                parts["header"] = padded(_list(raw, start), _HEADER_FIELDS)
            elif section == Section.ANNOTATIONS:
                parts["annotations"] = _map(raw, start)
            elif section == Section.PROPERTIES:
                properties, parts["properties"] = padded(_list(raw, start), _PROPERTIES_FIELDS), raw[start:end]
            elif section == Section.APPLICATION_PROPERTIES:
                parts["application_properties"] = raw[start:end]
            elif section != Section.DELIVERY_ANNOTATIONS:
                rest.append(raw[start:end])
        if not properties or properties[_MESSAGE_ID] is None:
            properties = [uuid4().hex, *padded(properties, _PROPERTIES_FIELDS)[1:]]
            parts["properties"] = encode(described(Section.PROPERTIES, properties))
        return cls(id=properties[_MESSAGE_ID], rest=b"".join(rest), **parts)

    @property
    def ttl(self) -> int | None:
        """Give how many milliseconds the sender lets it live."""
        return None if self.header[_TTL] is None else int(self.header[_TTL])

    @property
    def scheduled(self) -> int:
        """Give when it shall be enqueued, in milliseconds since 1970; 0 when at once."""
        return int(self.annotations.get(SCHEDULED) or 0)

    @property
    def body(self) -> bytes:
        """Give the body of a message that consists of bytes."""
        return b"".join(
            decode(self.rest, start)[0].value for section, start, _ in _sections(self.rest) if section == Section.DATA
        )

    def application_property(self, name: str) -> Any:
        """Give one of the properties that its sender, or the broker, has named."""
        return self._application_properties().get(name)

    def with_application_properties(self, more: Mapping[str, Any]) -> "Message":
        """Give it with more properties, and without the time for which it was scheduled."""
        properties = self._application_properties() | dict(more)
        return replace(
            self,
            application_properties=encode(described(Section.APPLICATION_PROPERTIES, properties)),
            annotations={key: value for key, value in self.annotations.items() if key != SCHEDULED},
        )

    def encode(self, deliveries: int, annotations: Mapping[Any, Any]) -> bytes:
        """Give its bytes for a receiver, with what the broker tells of it."""
        header = [*self.header[:_DELIVERY_COUNT], UInt(deliveries)]
        return b"".join(
            (
                encode(described(Section.HEADER, header)),
                encode(described(Section.ANNOTATIONS, {**self.annotations, **annotations})),
                self.properties,
                self.application_properties,
                self.rest,
            )
        )

    def _application_properties(self) -> dict[Any, Any]:
        return _map(self.application_properties, 0) if self.application_properties else {}


def messages_of(raw: bytes, message_format: int) -> list[Message]:
    """Give the messages of a transfer: one, or those of a batch, each of which is a section of data."""
    if message_format != BATCH_FORMAT:
        return [Message.parse(raw)]
    return [
        Message.parse(decode(raw, start)[0].value) for section, start, _ in _sections(raw) if section == Section.DATA
    ]


@dataclass(frozen=True)
class Request:
    """A message that asks a node of the broker for something."""

    id: Any
    application_properties: dict[Any, Any]
    body: Any

    @classmethod
    def parse(cls, raw: bytes) -> Self:
        """Give the request that these bytes are."""
        sections = {section: decode(raw, start)[0].value for section, start, _ in _sections(raw)}
        properties = padded(sections.get(Section.PROPERTIES) or [], _PROPERTIES_FIELDS)
        return cls(
            properties[_MESSAGE_ID], sections.get(Section.APPLICATION_PROPERTIES) or {}, sections.get(Section.VALUE)
        )

    def answer(self, application_properties: dict[str, Any], body: Any) -> bytes:
        """Give the bytes of the answer to it."""
        properties: list[Any] = [None] * _PROPERTIES_FIELDS
        properties[_CORRELATION_ID] = self.id
        return b"".join(
            (
                encode(described(Section.PROPERTIES, properties)),
                encode(described(Section.APPLICATION_PROPERTIES, application_properties)),
                encode(described(Section.VALUE, body)),
            )
        )


def _sections(raw: bytes) -> Iterator[tuple[int, int, int]]:
    """Give each section with where it begins and ends."""
    start = 0
    while start < len(raw):
        if raw[start] != 0:
            raise Malformed("A message does not consist of sections.")
        descriptor, value_start = decode(raw, start + 1)
        end = end_of(raw, value_start)
        if end > len(raw) or not isinstance(descriptor, int):
            raise Malformed("A section is cut short, or has no number.")
        yield descriptor, start, end
        start = end


def _value(raw: bytes, start: int) -> Any:
    section, _ = decode(raw, start)
    return section.value if isinstance(section, Described) else None


def _list(raw: bytes, start: int) -> list[Any]:
    value = _value(raw, start)
    if not isinstance(value, list):
        raise Malformed("A section should be a list.")
    return value


def _map(raw: bytes, start: int) -> dict[Any, Any]:
    value = _value(raw, start)
    if not isinstance(value, dict):
        raise Malformed("A section should be a map.")
    return value
