import os
import subprocess
from pathlib import Path

import pytest

from graticule.embedded import pidfile
from graticule.embedded.pidfile import PidFile, is_alive, is_server_on, read_pid_file

RUNNING = "4711\n{data}\n1760000000\n54330\n/run/sockets\n127.0.0.1\n  1234567  11\nready   \n"


def test_reads_a_running_server(tmp_path: Path) -> None:
    (tmp_path / "postmaster.pid").write_text(RUNNING.format(data=tmp_path))
    assert read_pid_file(tmp_path) == PidFile(4711, 54330, Path("/run/sockets"), ready=True)


@pytest.mark.parametrize(("content", "pid"), [("", 0), ("garbage\n", 0), ("-17\n/x\n", 17), ("17\n/x\n1\n", 17)])
def test_reads_half_written_files(tmp_path: Path, content: str, pid: int) -> None:
    (tmp_path / "postmaster.pid").write_text(content)
    assert read_pid_file(tmp_path) == PidFile(pid)


def test_no_file_is_none(tmp_path: Path) -> None:
    assert read_pid_file(tmp_path) is None


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (["/usr/lib/postgresql/15/bin/postgres", "-D", "{data}"], True),
        (["/usr/lib/postgresql/15/bin/postgres", "-D", "/another/folder"], False),
        (["postgres"], True),  # told by PGDATA, perhaps: better not taken for a stranger
        (["postgres", "-D", "relative"], True),
        (["postgres: graticule-1: checkpointer "], False),
        (["sleep", "-D", "{data}"], False),
        ([], False),
    ],
)
def test_a_pid_is_judged_by_its_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str], expected: bool
) -> None:
    shown = [part.format(data=tmp_path) for part in command]
    monkeypatch.setattr(pidfile, "_command_of", lambda _: shown)
    assert is_server_on(4711, tmp_path) is expected


def test_a_living_stranger_is_not_a_server(tmp_path: Path) -> None:
    assert is_alive(os.getpid())
    assert not is_server_on(os.getpid(), tmp_path)


def test_a_process_that_nobody_collected_is_not_a_server(tmp_path: Path) -> None:
    with subprocess.Popen(["true"]) as ended:
        os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
        assert is_alive(ended.pid)
        assert not is_server_on(ended.pid, tmp_path)
    assert not is_alive(ended.pid)


@pytest.fixture
def ps(tmp_path: Path) -> Path:
    """Give a `ps -ww -p PID -o command=` that prints what the real one does: a small system has none."""
    script = tmp_path / "ps"
    script.write_text('#!/bin/sh\ntr "\\0" " " < "/proc/$3/cmdline"\n')
    script.chmod(0o755)
    return script


@pytest.mark.parametrize("more", [[], ["-p", "54329"]])
def test_without_proc_the_command_is_asked_of_ps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ps: Path, more: list[str]
) -> None:
    monkeypatch.setattr(pidfile, "_PROCESSES", tmp_path / "not there")
    monkeypatch.setattr(pidfile, "_PS", ps)
    data = tmp_path / "with spaces"
    command: list[str | Path] = ["/opt/my pg/postgres", "-c", "read line", "-D", data, *more]
    with subprocess.Popen(command, executable="/bin/sh", stdin=subprocess.PIPE) as process:
        assert is_server_on(process.pid, data)
        assert not is_server_on(process.pid, tmp_path)
        process.kill()
    assert not is_server_on(process.pid, data)
