"""Fake installations of PostgreSQL: folders with small scripts that answer as the programs do."""

from collections.abc import Callable
from pathlib import Path

import pytest

MakePrograms = Callable[..., Path]


def _script(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


@pytest.fixture
def make_programs(tmp_path: Path) -> MakePrograms:
    """Make `<tmp_path>/<folder>` an installation: its version, its extensions, its share folder."""

    def make(
        folder: str,
        version: str,
        *,
        extensions: tuple[str, ...] = (),
        share: str | None = None,
        pg_config: bool = True,
        configure: str = "",
        without: str | None = None,
    ) -> Path:
        bindir = tmp_path / folder
        share_folder = tmp_path / share if share else bindir.parent / "share"
        for name in ("postgres", "initdb", "pg_ctl"):
            if name != without:
                _script(bindir / name, f"echo '{name} (PostgreSQL) {version}'")
        if pg_config:
            answers = {"sharedir": share_folder, "bindir": bindir, "configure": configure}
            cases = " ".join(f'--{asked}) echo "{answer}";;' for asked, answer in answers.items())
            _script(bindir / "pg_config", f'case "$1" in {cases} esac')
        for extension in extensions:
            control = share_folder / "extension" / f"{extension}.control"
            control.parent.mkdir(parents=True, exist_ok=True)
            control.touch()
        return bindir

    return make
