import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from graticule.core.errors import ConfigurationError
from graticule.embedded.ports import choose_port, free_port, is_free, remembered_port


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield int(listener.getsockname()[1])


def test_a_listener_takes_its_port(taken: int) -> None:
    assert not is_free(taken)
    assert is_free(free_port(taken))


def test_a_free_port_is_remembered(tmp_path: Path, taken: int) -> None:
    memory, said = tmp_path / "port", list[str]()
    memory.write_text(f"{free_port(taken)}\n")
    assert choose_port(None, memory, said.append) == remembered_port(memory)
    assert said == []


def test_a_taken_port_is_replaced_and_announced(tmp_path: Path, taken: int) -> None:
    memory, said = tmp_path / "port", list[str]()
    memory.write_text(str(taken))
    chosen = choose_port(None, memory, said.append)
    assert chosen != taken
    assert remembered_port(memory) == chosen
    assert said == [f"Port {taken} is taken by another program; PostgreSQL uses {chosen} instead."]


def test_a_fixed_port_is_never_replaced(tmp_path: Path, taken: int) -> None:
    with pytest.raises(ConfigurationError, match=f"Port {taken}"):
        choose_port(taken, tmp_path / "port", print)


@pytest.mark.parametrize("content", ["", "x", "0", "70000"])
def test_a_damaged_memory_is_ignored(tmp_path: Path, content: str) -> None:
    (tmp_path / "port").write_text(content)
    assert remembered_port(tmp_path / "port") is None
