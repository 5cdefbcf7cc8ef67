"""Where the PostgreSQL programs are, and what that installation can do."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from graticule.core.errors import ConfigurationError

MINIMUM_VERSION = 15
_NEEDED_PROGRAMS = ("postgres", "initdb", "pg_ctl")
_FIX = "Run `graticule doctor --fix` to install PostgreSQL, or name its folder in GRATICULE_PG_BIN."


@dataclass(frozen=True)
class Binaries:
    """One installation of the PostgreSQL server."""

    bindir: Path
    version: int
    extensions: frozenset[str] = frozenset()
    has_lz4: bool = False

    @property
    def has_postgis(self) -> bool:
        """Whether PostGIS is installed for this server."""
        return "postgis" in self.extensions

    def program(self, name: str) -> Path:
        """The path of one program, such as `initdb`."""
        return self.bindir / name


@dataclass(frozen=True)
class Places:
    """Where to look: folders below a root, and the folders of a PATH (default: this process's)."""

    root: Path = Path("/")
    path: str | None = None
    patterns: tuple[str, ...] = (
        "usr/lib/postgresql/*/bin",
        "usr/pgsql-*/bin",
        "opt/homebrew/opt/postgresql@*/bin",
        "usr/local/opt/postgresql@*/bin",
        "Applications/Postgres.app/Contents/Versions/*/bin",
    )

    def folders(self) -> Iterator[Path]:
        """Every folder that may hold the programs, symbolic links resolved, each once."""
        seen: set[Path] = set()
        for folder in self._possible():
            resolved = folder.resolve()
            if resolved not in seen:
                seen.add(resolved)
                yield resolved

    def _possible(self) -> Iterator[Path]:
        if config := shutil.which("pg_config", path=self.path):
            yield from (Path(line) for line in _output_of(config, "--bindir").splitlines())
        for pattern in self.patterns:
            yield from sorted(self.root.glob(pattern))
        if server := shutil.which("postgres", path=self.path):
            yield Path(server).resolve().parent


EVERYWHERE = Places()


def candidates(places: Places = EVERYWHERE) -> list[Binaries]:
    """Every installation on this machine, also the ones that are too old, best first."""
    found = [binaries for folder in places.folders() if (binaries := _inspect(folder))]
    return sorted(found, key=lambda each: (each.has_postgis, each.version), reverse=True)


def find_binaries(
    preferred: Path | None,
    version: int | None = None,
    *,
    cluster: Path | None = None,
    places: Places = EVERYWHERE,
) -> Binaries:
    """The installation to use: the preferred folder when given, else the best one that is found.

    `version` is the major version that made an existing cluster (in the folder `cluster`): only that one
    can open it.
    """
    if preferred is not None:
        return _accepted(_preferred(preferred), version, cluster)
    found = candidates(places)
    usable = [each for each in found if each.version == version or (version is None and _new_enough(each))]
    if usable:
        return usable[0]
    raise _made_by_another(version, cluster) if version is not None else _not_found(found)


def _preferred(folder: Path) -> Binaries:
    if binaries := _inspect(folder.expanduser().absolute()):
        return binaries
    raise ConfigurationError(
        f"GRATICULE_PG_BIN is {folder}, and {', '.join(_NEEDED_PROGRAMS)} of PostgreSQL are not there.",
        hint="Name the folder that holds them, such as /usr/lib/postgresql/15/bin, or unset it.",
    )


def _accepted(binaries: Binaries, version: int | None, cluster: Path | None) -> Binaries:
    if version is not None and binaries.version != version:
        raise _made_by_another(version, cluster)
    if not _new_enough(binaries):
        raise _not_found([binaries])
    return binaries


def _new_enough(binaries: Binaries) -> bool:
    return binaries.version >= MINIMUM_VERSION


def _made_by_another(version: int, cluster: Path | None) -> ConfigurationError:
    where = f"The cluster in {cluster}" if cluster else "The existing cluster"
    return ConfigurationError(
        f"{where} was made by PostgreSQL {version}, and that version is not installed.",
        hint=f"Install PostgreSQL {version} (`graticule doctor --fix`), or move the folder away.",
    )


def _not_found(found: list[Binaries]) -> ConfigurationError:
    if not found:
        return ConfigurationError("The PostgreSQL programs are not installed on this machine.", hint=_FIX)
    old = ", ".join(f"PostgreSQL {each.version} in {each.bindir}" for each in found)
    return ConfigurationError(f"PostgreSQL {MINIMUM_VERSION} or newer is needed; found: {old}.", hint=_FIX)


def _inspect(bindir: Path) -> Binaries | None:
    """What is in a folder, or None when it does not hold a server that runs."""
    if not all(os.access(bindir / name, os.X_OK) for name in _NEEDED_PROGRAMS):
        return None
    told = re.search(r"\(PostgreSQL\) (\d+)", _output_of(bindir / "postgres", "--version"))
    if told is None:
        return None
    version = int(told[1])
    return Binaries(bindir, version, _extensions(bindir, version), has_lz4=_has_lz4(bindir))


def _extensions(bindir: Path, version: int) -> frozenset[str]:
    for share in _share_folders(bindir, version):
        if (share / "extension").is_dir():
            return frozenset(control.stem for control in (share / "extension").glob("*.control"))
    return frozenset()


def _has_lz4(bindir: Path) -> bool:
    """Tell whether the server can compress by LZ4; one that does not say so is taken for one that cannot."""
    return re.search(r"--with-lz4(?![\w=-])", _output_of(bindir / "pg_config", "--configure")) is not None


def _share_folders(bindir: Path, version: int) -> Iterator[Path]:
    """Where the extension files may be: what the installation says, then the known layouts."""
    if told := _output_of(bindir / "pg_config", "--sharedir").strip():
        yield Path(told)
    prefix = bindir.parent
    if len(bindir.parents) > 3:  # Debian: <prefix>/lib/postgresql/<version>/bin
        yield bindir.parents[3] / "share" / "postgresql" / str(version)
    yield prefix / "share" / f"postgresql@{version}"
    yield prefix / "share" / "postgresql"
    yield prefix / "share"


def _output_of(program: Path | str, argument: str) -> str:
    """What a program prints, or nothing when it does not run."""
    try:
        answer = subprocess.run(  # noqa: S603  programs in the folders where PostgreSQL is installed
            [program, argument],
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return answer.stdout if answer.returncode == 0 else ""
