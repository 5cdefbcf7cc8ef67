"""Names of people as the audit trail records them: each stands for one caller, and looks like no other's."""

import re
import unicodedata
from typing import Final

from graticule.core.permissions import RESERVED

ISSUER_PREFIX: Final = "oidc:"  # no client's id has a colon
MAX_NAME_LENGTH: Final = 128

_CLIENT_ID: Final = re.compile(r"[a-z][a-z0-9-]{1,62}")
_INVISIBLE: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_LOOK_ALIKES: Final = frozenset({"LATIN", "GREEK", "CYRILLIC", "ARMENIAN", "CHEROKEE"})


def name_from_issuer(given: str) -> str:
    """Return the name to record for a caller of an issuer, or raise `ValueError` for one that would mislead.

    A name that could be the id of a client is qualified: `oidc:rev1` is not the client `rev1`.
    """
    name = unicodedata.normalize("NFKC", given)
    if not 0 < len(name) <= MAX_NAME_LENGTH:
        raise ValueError(f"a name that is empty or longer than {MAX_NAME_LENGTH} characters")
    if any(unicodedata.category(char) in _INVISIBLE for char in name):
        raise ValueError("a name with characters that cannot be seen")
    if len(_scripts(name) & _LOOK_ALIKES) > 1:
        raise ValueError("a name that mixes letters of scripts that look alike")
    plain = name.strip().casefold()
    if plain in RESERVED:
        raise ValueError("a name under which only we act")
    is_ambiguous = _CLIENT_ID.fullmatch(plain) is not None or plain.startswith(ISSUER_PREFIX)
    return f"{ISSUER_PREFIX}{name.strip()}" if is_ambiguous else name


def _scripts(name: str) -> set[str]:
    return {unicodedata.name(char, "").partition(" ")[0] for char in name if char.isalpha()}
