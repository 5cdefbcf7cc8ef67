"""Lets partners of an older release send files from where they did, and reports who has more than the default."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, Final

from psycopg import AsyncConnection

from graticule.core.sources import MAX_PATTERNS, admits, default_patterns, pattern_fault
from graticule.repositories.queries import load_queries

QUERIES: Final = load_queries("sources.sql", package=__package__)
TABLE: Final = "platforms"
ADDED: Final = f"column {TABLE}.source_containers"  # the change of a database that was made before there were any


async def keep_used_sources(connection: AsyncConnection[Any]) -> None:
    """Let each partner name what it has named before."""
    for platform_id, patterns in (await _used(connection)).items():
        kept = covering(platform_id, patterns)
        if kept != default_patterns(platform_id):
            given = {"platform_id": platform_id, "patterns": kept}
            await connection.execute(QUERIES["keep_sources"], given)


async def describe_wide_sources(connection: AsyncConnection[Any]) -> list[str]:
    """Return one notice for each partner that has more than the default, and for each that has lost something."""
    found = await (await connection.execute(QUERIES["listed_sources"])).fetchall()
    wide = {platform_id: kept for platform_id, kept in found if kept != default_patterns(platform_id)}
    used = await _used(connection) if wide else {}
    notices = []
    for platform_id, kept in wide.items():
        notices.append(_notice(platform_id, kept))
        if left_out := _left_out(kept, used.get(platform_id, [])):
            notices.append(_notice_of_rest(platform_id, left_out))
    return notices


async def _used(connection: AsyncConnection[Any]) -> dict[str, list[str]]:
    used: defaultdict[str, list[str]] = defaultdict(list)
    for platform_id, pattern in await (await connection.execute(QUERIES["used_sources"])).fetchall():
        used[platform_id].append(pattern)
    return used


def _left_out(kept: list[str], used: list[str]) -> list[str]:
    """Return the containers for which there was no room; what an admin has taken away is none of them."""
    if len({_container(pattern) for pattern in used}) < MAX_PATTERNS:
        return []
    return sorted({_container(pattern) for pattern in used if not admits(kept, f"{pattern}/")})


def covering(platform_id: str, used: Iterable[str]) -> list[str]:
    """Return the default and what else covers all that was used: prefixes, or whole containers where they are many.

    Of more containers than a partner may have, the first are kept.
    """
    kept = default_patterns(platform_id)
    others = [_usable(pattern) for pattern in used if not admits(kept, pattern)]
    if len(kept) + len(set(others)) > MAX_PATTERNS:
        others = [*dict.fromkeys(_container(pattern) for pattern in others)][: MAX_PATTERNS - len(kept)]
    whole = {pattern for pattern in others if not pattern.endswith("/")}
    below = {pattern for pattern in others if _container(pattern) not in whole} - whole
    return [*(pattern for pattern in kept if _container(pattern) not in whole), *sorted(whole | below)]


def _usable(pattern: str) -> str:
    """Return a pattern, or its container if the name of the folder cannot stand in one."""
    return pattern if pattern_fault(pattern) is None else _container(pattern)


def _container(pattern: str) -> str:
    return pattern.partition("/")[0]


def _notice(platform_id: str, kept: Iterable[str]) -> str:
    narrow = " ".join(f"--source {pattern}" for pattern in default_patterns(platform_id))
    return (
        f"The platform {platform_id} may name files outside of its own folder: {', '.join(kept)}. "
        f"Once it does not need them: graticule platform change {platform_id} {narrow}"
    )


def _notice_of_rest(platform_id: str, containers: Iterable[str]) -> str:
    return (
        f"The platform {platform_id} has sent files from more than {MAX_PATTERNS} places and may no longer name: "
        f"{', '.join(containers)}. Move those files below {default_patterns(platform_id)[0]}."
    )
