"""The passwords of the private cluster's roles, kept in one file of the data folder."""

import json
import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Self

from graticule.core.errors import ConfigurationError
from graticule.core.table import DatabaseRole
from graticule.embedded.files import write_atomically

ADMIN = "graticule_admin"
ROLES = (ADMIN, *(role.value for role in DatabaseRole))


class Credentials:
    """The password of each role; shown, it gives none of them away."""

    def __init__(self, passwords: Mapping[str, str]) -> None:
        self._passwords = dict(passwords)

    @staticmethod
    def path(home: Path) -> Path:
        """The file that holds the passwords of a data folder."""
        return home / "credentials.json"

    @classmethod
    def load(cls, home: Path) -> Self:
        """Read the passwords of an existing cluster."""
        passwords = _read(cls.path(home))
        if ADMIN not in passwords:
            raise _damaged(cls.path(home), f"the password of {ADMIN} is not in it")
        return cls(passwords)

    @classmethod
    def load_or_create(cls, home: Path) -> Self:
        """Read the passwords, and make those that are not there yet (all of them at first)."""
        path = cls.path(home)
        known = _read(path) if path.exists() else {}
        missing = [role for role in ROLES if role not in known]
        if missing:
            known |= _made(missing)
            write_atomically(path, json.dumps(known, indent=2) + "\n", mode=0o600)
        return cls(known)

    def password(self, role: str) -> str:
        """The password of a role."""
        try:
            return self._passwords[role]
        except KeyError:
            raise ConfigurationError(
                f"There is no password for the database role {role}.",
                hint=f"The roles of the embedded database are {', '.join(self._passwords)}.",
            ) from None

    def __repr__(self) -> str:
        return f"Credentials({', '.join(f'{role}=***' for role in self._passwords)})"


def _made(roles: Iterable[str]) -> dict[str, str]:
    return {role: secrets.token_urlsafe(32) for role in roles}


def _read(path: Path) -> dict[str, str]:
    try:
        content = _private_text(path)
    except FileNotFoundError:
        raise _lost(path) from None
    except OSError as error:
        raise _damaged(path, error.strerror or "it cannot be read") from error
    return _parsed(path, content)


def _private_text(path: Path) -> str:
    """The file's text; a file that others may read (a careless copy) is closed to them first."""
    if path.stat().st_mode & 0o077:
        path.chmod(0o600)
    return path.read_text(encoding="utf-8")


def _parsed(path: Path, content: str) -> dict[str, str]:
    try:
        found: Any = json.loads(content)
    except ValueError:  # the parser's message is dropped: it may quote a password
        raise _damaged(path, "it is not JSON") from None
    if not isinstance(found, dict) or not all(isinstance(each, str) for each in found.values()):
        raise _damaged(path, "it is not an object of role and password")
    return found


def _lost(path: Path) -> ConfigurationError:
    return ConfigurationError(
        f"The database passwords are missing: {path} is not there, while its PostgreSQL cluster is.",
        hint="Put it back from a backup, or move the cluster's folder away to begin with an empty database.",
    )


def _damaged(path: Path, why: str) -> ConfigurationError:
    return ConfigurationError(
        f"The database passwords in {path} cannot be used: {why}.",
        hint="Put the file back from a backup, and run this as the user who owns it.",
    )
