"""Names of people as the audit trail records them: each stands for one caller, and looks like no other's."""

import re
import unicodedata
from hashlib import sha256
from typing import Final

from graticule.core.permissions import RESERVED

ISSUER_PREFIX: Final = "oidc:"  # no client's id has a colon
MAX_NAME_LENGTH: Final = 128
HASH_LENGTH: Final = 12

_LIKE_CLIENT_ID: Final = re.compile(r"[^\W\d_][\w-]{1,62}")  # in any script: some have letters that look like ours
_INVISIBLE: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_LOOK_ALIKES: Final = frozenset({"LATIN", "GREEK", "CYRILLIC", "ARMENIAN", "CHEROKEE"})


def name_from_issuer(given: str) -> str:
    """Return the name to record for a caller of an issuer, or raise `ValueError` for one that would mislead.

    A name that could be the id of a client is qualified: `oidc:rev1` is not the client `rev1`. One that is written in
    another way than its plain form, such as with a no-break space, is recorded in that form behind a hash of what it
    is: `oidc:e9f9b35c6976:Ada Lovelace` is not `Ada Lovelace`, whom the issuer may know as someone else.
    """
    if not 0 < len(given) <= MAX_NAME_LENGTH:
        raise ValueError(f"a name that is empty or longer than {MAX_NAME_LENGTH} characters")
    name = unicodedata.normalize("NFKC", given)
    if any(unicodedata.category(char) in _INVISIBLE for char in name):
        raise ValueError("a name with characters that cannot be seen")
    name = " ".join(name.split())
    if not name:
        raise ValueError("a name of spaces")
    if len(_scripts(name) & _LOOK_ALIKES) > 1:
        raise ValueError("a name that mixes letters of scripts that look alike")
    plain = name.casefold()
    if plain in RESERVED:
        raise ValueError("a name under which only we act")
    recorded = _qualified(given, name, plain)
    if len(recorded) > MAX_NAME_LENGTH:
        raise ValueError(f"a name that is recorded as {recorded[:20]}…, with more than {MAX_NAME_LENGTH} characters")
    return recorded


def _qualified(given: str, name: str, plain: str) -> str:
    if name != given:
        return f"{ISSUER_PREFIX}{sha256(given.encode()).hexdigest()[:HASH_LENGTH]}:{name}"
    is_ambiguous = _LIKE_CLIENT_ID.fullmatch(name) is not None or plain.startswith(ISSUER_PREFIX)
    return f"{ISSUER_PREFIX}{name}" if is_ambiguous else name


def _scripts(name: str) -> set[str]:
    return {unicodedata.name(char, "").partition(" ")[0] for char in name if char.isalpha()}
