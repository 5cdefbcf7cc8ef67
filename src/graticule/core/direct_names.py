"""The namespace of hand-made jobs: what a job that belongs to no version of an asset may write.

`schema/outputs.sql` has the same rule, and is what holds; here it is applied before any work is done.
"""

import re
from collections.abc import Mapping
from typing import Final

from graticule.core.asset_names import DIRECT

_PART: Final = "[A-Za-z0-9_][A-Za-z0-9._-]*"
# By the names that parameters of handlers have for outputs.
PATTERNS: Final[Mapping[str, re.Pattern[str]]] = {
    "table_name": re.compile(rf"{DIRECT}_(?=.{{1,56}}\Z)[a-z0-9_]+", re.ASCII),
    "blob_prefix": re.compile(rf"{DIRECT}(/{_PART})+", re.ASCII),
    "stac_collection_id": re.compile(rf"{DIRECT}-[A-Za-z0-9._-]+", re.ASCII),
}
_SEPARATORS: Final = {"table_name": "_", "blob_prefix": "/", "stac_collection_id": "-"}


def is_direct(parameter: str, name: str) -> bool:
    """Whether a hand-made job may write an output of this name."""
    return PATTERNS[parameter].fullmatch(name) is not None


def direct_name(parameter: str, name: str) -> str:
    """Return a name like this one that a hand-made job may use, as a suggestion."""
    separator = _SEPARATORS[parameter]
    suggested = f"{DIRECT}{separator}{name}"
    return suggested if is_direct(parameter, suggested) else f"{DIRECT}{separator}my{separator}data"


def is_reserved_platform(platform_id: str) -> bool:
    """Whether the names of a partner's outputs would look like those of hand-made jobs."""
    return platform_id == DIRECT or platform_id.startswith(f"{DIRECT}_")
