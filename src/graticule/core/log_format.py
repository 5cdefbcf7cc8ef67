"""How log lines look: apart from the settings, which a worker's child process need not import."""

from enum import StrEnum


class LogFormat(StrEnum):
    """How log lines look."""

    CONSOLE = "console"
    JSON = "json"
