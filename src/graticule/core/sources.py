"""Which files a partner may name: whole containers, or what lies below a prefix of one.

A pattern is a container, or `container/prefix/`. It is compared character by character: nothing in it is a wildcard,
nothing is decoded, and case counts.
"""

import re
from collections.abc import Sequence
from typing import Final

MAX_PATTERNS: Final = 50
MAX_PATTERN_LENGTH: Final = 512
_BRONZE: Final = "bronze"  # where partners put their files unless their row of the registry says otherwise
_PATTERN: Final = re.compile(r"[A-Za-z0-9$][A-Za-z0-9_.-]{0,62}(?:/(?:[^/\\*?\x00-\x1f\x7f-\x9f\u2028\u2029]+/)+)?")


def default_patterns(platform_id: str) -> list[str]:
    """Return where the files of a partner lie whose row of the registry names no place."""
    return [f"{_BRONZE}/{platform_id}/"]


def pattern_fault(pattern: str) -> str | None:
    """Say what is wrong with a pattern; None when it can be used."""
    if len(pattern) > MAX_PATTERN_LENGTH:
        return f"a pattern has at most {MAX_PATTERN_LENGTH} characters"
    parts = pattern.split("/")
    if _PATTERN.fullmatch(pattern) and not {".", ".."} & set(parts):
        return None
    shown = pattern[:100]
    if len(parts) > 1 and not pattern.endswith("/"):
        return f"{shown!r} is no prefix: write a container, or container/prefix/ with a slash at its end"
    return (
        f"{shown!r} is no pattern: write a container, or container/prefix/ without wildcards, '.', '..' and empty parts"
    )


def admits(patterns: Sequence[str], path: str) -> bool:
    """Whether `container/blob/path` is covered. The path must have been checked: it has no `..` and no empty parts."""
    container = path.partition("/")[0]
    return any(path.startswith(pattern) if pattern.endswith("/") else container == pattern for pattern in patterns)
