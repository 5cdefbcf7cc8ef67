"""Logging: one renderer for our own lines and for those of the libraries, and no secret in any of them.

A line is an event with named values. What is bound with `bound(job_id=…)` appears on every line that is
written inside the block, whoever writes it, and so does the trace that the work belongs to.
"""

import logging
import math
import os
import re
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Final, TextIO, cast

import structlog
from pydantic import JsonValue
from structlog.dev import ConsoleRenderer, plain_traceback
from structlog.processors import JSONRenderer, TimeStamper, format_exc_info
from structlog.stdlib import LoggerFactory, ProcessorFormatter, add_log_level, add_logger_name
from structlog.typing import EventDict, FilteringBoundLogger, Processor, WrappedLogger

from graticule.core.log_format import LogFormat
from graticule.core.trace_context import current_trace

MASK: Final = "***"

# Libraries that tell of their daily business, or of headers, below the level of a warning.
_CHATTY: Final = ("uvicorn", "uvicorn.error", "httpx", "httpcore", "asyncio", "azure", "rasterio", "urllib3")

_DEEPEST: Final = 12


def get_logger(name: str) -> FilteringBoundLogger:
    """Return the logger of a module."""
    return cast(FilteringBoundLogger, structlog.stdlib.get_logger(name))


def bound(**values: object) -> AbstractContextManager[None]:
    """Put these values (`job_id`, `node_id`, `task_id`, `request_id` …) on every line of the block."""
    return structlog.contextvars.bound_contextvars(**values)


def configure_logging(settings_level: str, log_format: LogFormat, process: str, stream: TextIO | None = None) -> None:
    """Send every line of this process, the libraries' too, to `stream` (standard error by default)."""
    stream = stream or sys.stderr
    chain = _chain(process)
    _install(_Handler(stream), _formatter(log_format, stream, chain))
    _set_levels(logging.getLevelNamesMapping()[settings_level.upper()])
    logging.captureWarnings(capture=True)
    structlog.configure(
        processors=[*chain, ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(settings_level.lower()),
        logger_factory=LoggerFactory(),
        # Modules make their loggers on import, before the command line has read the settings.
        cache_logger_on_first_use=False,
    )


def log_plainly() -> None:
    """Send the lines of who has configured nothing, such as a command, to standard error, as carefully as all others.

    structlog by itself writes them among what a command prints, and shows the local variables of a traceback.
    """
    chain: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        add_log_level,
        TimeStamper(fmt="iso", utc=True),
        format_exc_info,
    ]
    renderer = ConsoleRenderer(colors=False, exception_formatter=plain_traceback)
    structlog.configure(
        processors=[*chain, redact_event, escape_controls, renderer],
        logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),
    )


class _Handler(logging.StreamHandler[TextIO]):
    """Ours, to be told from handlers that others have put on the root logger."""


def _install(handler: _Handler, formatter: logging.Formatter) -> None:
    handler.setFormatter(formatter)
    root = logging.getLogger()
    others = [other for other in root.handlers if not isinstance(other, _Handler)]
    root.handlers = [*others, handler]


def _set_levels(level: int) -> None:
    logging.getLogger().setLevel(level)
    for name in _CHATTY:
        logging.getLogger(name).setLevel(logging.INFO if level <= logging.DEBUG else max(level, logging.WARNING))


def _chain(process: str) -> list[Processor]:
    """What every line goes through, whether structlog or the standard library took it."""

    def name_process(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
        event.setdefault("process", process)
        return event

    return [
        structlog.contextvars.merge_contextvars,
        name_trace,
        add_log_level,
        add_logger_name,
        name_process,
        TimeStamper(fmt="iso", utc=True),
        format_exc_info,
    ]


def name_trace(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Name the trace, and the span if it is one of ours: a structlog processor."""
    place = current_trace()
    if place is not None:
        event.setdefault("trace_id", place.trace_id)
        if place.is_ours:
            event.setdefault("span_id", place.span_id)
    return event


def _formatter(log_format: LogFormat, stream: TextIO, chain: list[Processor]) -> logging.Formatter:
    ours: list[Processor] = [ProcessorFormatter.remove_processors_meta, redact_event]
    if log_format is LogFormat.JSON:
        ours += [JSONRenderer()]
    else:
        colors = stream.isatty() and "NO_COLOR" not in os.environ
        # Not the default formatter of exceptions: it shows local variables.
        ours += [escape_controls, ConsoleRenderer(colors=colors, exception_formatter=plain_traceback)]
    return ProcessorFormatter(processors=ours, foreign_pre_chain=chain)


# What must not be seen

_SECRET_KEY = re.compile(
    r"passw(or)?d|passphrase|secret|token|(api|admin|access|account|private|signing)[-_ ]?key"
    r"|authorization|cookie|credential|connection[-_ ]?string|(?<![a-z])(sas|sig|pwd)(?![a-z])"
)

# The end of a value that has no quotes depends on its grammar: a space ends one in a connection string of
# PostgreSQL, `;` one of Azure, `&` one in a query. Signatures and keys contain none of these.
_QUOTED = r"""\\*'(?:[^'\\]|\\.)*(?:'|\Z)|\\*"(?:[^"\\]|\\.)*(?:"|\Z)"""
_EQUALS = r"=|%(?:25)*3D|\\+u003d"  # also inside of an address or of JSON that stands in another
_ASSIGNED = rf"""(?:\\*["'])?\s*(?:{_EQUALS})\s*|\\*["']\s*:\s*"""

# scheme://user:password@host; `://host:8000/` is an address without a user. It is sought only in what ends
# with an @, where it is found at the first try: text of many addresses would take quadratic time.
_BEFORE_AT = re.compile(r"(?<!\S)\S+@")
_ADDRESS = re.compile(r"([a-z][a-z0-9+.-]{0,30}://[^\s:/?#@]*:)(?!\d{1,5}[/?#])\S*@", re.IGNORECASE)

# A query with a signature goes as a whole: what it lets one do, and until when, is of no use without it.
_BEGIN = r"\?|%(?:25)*3F"
_AND = r"&amp;|&|%(?:25)*26|\\+u0026"
_SIGNED_QUERY: Final = re.compile(
    rf"(?:{_BEGIN})(?:(?:(?!{_BEGIN})[^\s\"'<>])*?(?:{_AND}))?(?:sig|signature)(?:{_EQUALS})[^\s\"'<>]*", re.IGNORECASE
)

_ASSIGNMENTS: Final = (
    (_SIGNED_QUERY, f"?{MASK}"),
    (
        re.compile(
            rf"((?:passw(?:or)?d|passphrase|(?<![a-z])pwd|secret|token|(?:api|admin)[-_]?key)(?:{_ASSIGNED}))"
            rf"(?:{_QUOTED}|\S+)",
            re.IGNORECASE | re.DOTALL,
        ),
        rf"\1{MASK}",
    ),
    (
        re.compile(
            rf"((?:SharedAccessKey|AccountKey|(?:(?<![a-z0-9])|(?<=26))sig)(?:{_ASSIGNED}))"  # 26: an & by its code
            rf"(?:{_QUOTED}|[^\s;&,\"']+)",
            re.IGNORECASE | re.DOTALL,
        ),
        rf"\1{MASK}",
    ),
    (
        re.compile(
            rf"""((?:authorization|x-api-key)(?:(?:\\*["'])?\s*[:=]|\\*["']\s*,)\s*)"""
            rf"(?:b?(?:{_QUOTED})|(?:(?:bearer|basic)\s+)?[^\s,}}]+)",
            re.IGNORECASE | re.DOTALL,
        ),
        rf"\1{MASK}",
    ),
    # A token of three parts or more, whoever names it: its head is JSON in Base64.
    (re.compile(r"(?:(?<![\w-])|(?<=%3D)|(?<=%20))eyJ[\w-]{8,}(?:\.[\w-]*){2,4}", re.ASCII), MASK),
    (re.compile(r"(\bbearer\s+)[a-z0-9._~+/=-]{20,}", re.IGNORECASE), rf"\1{MASK}"),
)


def redact_event(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Mask the secrets of one line: a structlog processor."""
    return cast(EventDict, redact(event))


def redact(value: object, *, depth: int = 0) -> JsonValue:
    """Return the value as plain JSON values without secrets."""
    if value is None or isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if depth > _DEEPEST:
        return "…"
    if isinstance(value, Mapping):
        return {redact_text(str(key)): _redact_entry(str(key), item, depth + 1) for key, item in value.items()}
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str | bytes):
        # A header, as ASGI and httpx hold them.
        return [redact_text(_text(value[0])), _redact_entry(_text(value[0]), value[1], depth + 1)]
    if isinstance(value, list | tuple | set | frozenset):
        return [redact(item, depth=depth + 1) for item in value]
    return redact_text(_text(value))


def redact_text(text: str) -> str:
    """Mask the credentials that stand inside a text."""
    text = _BEFORE_AT.sub(lambda found: _ADDRESS.sub(rf"\1{MASK}@", found[0]), text)
    for pattern, masked in _ASSIGNMENTS:
        text = pattern.sub(masked, text)
    return text


def _redact_entry(key: str, value: object, depth: int) -> JsonValue:
    # Whether a secret is there at all may be told.
    if value is None or isinstance(value, bool):
        return value
    return MASK if _is_secret_key(key) else redact(value, depth=depth)


def _is_secret_key(key: str) -> bool:
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", key)
    return _SECRET_KEY.search(spaced.lower()) is not None


def _text(value: object) -> str:
    # A line is written even when what it tells of cannot be shown.
    try:
        return str(value)
    except Exception:
        return f"<{type(value).__name__}>"


_CONTROLS: Final = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0))}
_CONTROLS_OF_A_TRACE: Final = {code: shown for code, shown in _CONTROLS.items() if code not in (0x09, 0x0A)}


def escape_controls(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Show control characters as text, so that no value can forge a line or steer a terminal."""
    return {
        key: value.translate(_CONTROLS_OF_A_TRACE if key in {"exception", "stack"} else _CONTROLS)
        if isinstance(value, str)
        else value
        for key, value in event.items()
    }


if not structlog.is_configured():  # by a program of which we are a part
    log_plainly()
