"""`graticule doctor`: 0 on a fit machine, 1 when something that is needed is missing, and how to mend it."""

import socket
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from tests.conftest import TestDatabase
from tests.unit.cli.conftest import run

from graticule.cli.installation import free_ports
from graticule.handlers import HandlerContext, register_handler, registry

AWAY = "postgresql://someone:hunter2@127.0.0.1:1/nowhere"


@pytest.fixture
def settings(tmp_path: Path) -> dict[str, str]:
    return {"GRATICULE_HOME": str(tmp_path)}


def test_a_fit_machine_ends_with_0_and_every_finding_is_listed(settings: dict[str, str]) -> None:
    result = run("doctor", variables=settings)
    assert result.code == 0, result
    findings = ("Python", "PostgreSQL", "postgis", "btree_gist", "pypgstac", "data folder", "disk space", "port 8000")
    assert [name for name in findings if name not in result.out] == []


def test_a_package_with_a_handler_of_our_name_is_told_and_is_no_reason_to_fail(
    settings: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def own(ctx: HandlerContext) -> None:
        """Validate in its own way."""

    def load(_: EntryPoint) -> None:
        register_handler("raster.validate")(own)

    points = [EntryPoint("oldpkg", "oldpkg", "graticule.handlers")]
    monkeypatch.setattr(registry, "entry_points", lambda group: points)
    monkeypatch.setattr(EntryPoint, "load", load)
    for name, value in (("_registered", dict(registry._registered)), ("_loaded", []), ("_failures", {})):
        monkeypatch.setattr(registry, name, value)
    result = run("doctor", variables=settings)
    assert result.code == 0
    (line,) = [line for line in result.out.splitlines() if "handlers of oldpkg" in line]
    assert "Two handlers are called 'raster.validate'" in line
    assert "Give one of them another name." in line


def test_quiet_says_nothing_of_what_is_well(settings: dict[str, str]) -> None:
    result = run("doctor", "--quiet", variables=settings)
    assert (result.code, result.out, result.err) == (0, "", "")


def test_missing_programs_end_with_1_and_the_way_to_mend_it(settings: dict[str, str], tmp_path: Path) -> None:
    result = run("doctor", "--quiet", variables=settings | {"GRATICULE_PG_BIN": str(tmp_path / "nowhere")})
    assert result.code == 1
    problem, mend = result.err.splitlines()
    assert str(tmp_path / "nowhere") in problem
    assert mend.strip()


def test_a_taken_port_is_told_and_is_no_reason_to_fail(settings: dict[str, str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = run("doctor", "--port", str(port), variables=settings)
    assert result.code == 0
    assert f"port {port}" in result.out
    assert "--port" in result.out


def test_the_ports_of_the_gateway_the_orchestrator_and_the_workers_health_are_checked(settings: dict[str, str]) -> None:
    first = free_ports(20_000, 3)
    with socket.create_server(("127.0.0.1", first + 2)):
        lines = run("doctor", "--port", str(first), variables=settings).out.splitlines()
    ports = [line.split() for line in lines if line.split()[1] == "port"]
    assert [(sign, int(port), state) for sign, _, port, state, *_ in ports] == [
        ("✓", first, "free"),
        ("✓", first + 1, "free"),
        ("!", first + 2, "taken"),
    ]


def test_a_port_without_two_more_after_it_is_refused(settings: dict[str, str]) -> None:
    assert run("doctor", "--port", "65533", variables=settings).code == 0
    assert run("doctor", "--port", "65534", variables=settings).code == 2


def test_a_folder_that_cannot_be_written_ends_with_1(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = run("doctor", variables={"GRATICULE_HOME": str(tmp_path / "file")})
    assert result.code == 1
    assert "data folder" in result.err


@pytest.mark.parametrize(
    "address", [AWAY, AWAY + "?password=hunter2", "host=127.0.0.1 port=1 user=u dbname=x password=hunter2"]
)
def test_a_database_that_is_away_ends_with_1_and_its_password_is_not_shown(
    settings: dict[str, str], address: str
) -> None:
    result = run("doctor", variables=settings | {"GRATICULE_DATABASE_URL": address})
    assert result.code == 1
    assert "GRATICULE_DATABASE_URL" in result.err
    assert "hunter2" not in result.out + result.err


def test_an_existing_server_makes_programs_of_our_own_unnecessary(
    settings: dict[str, str], database: TestDatabase, tmp_path: Path
) -> None:
    variables = {"GRATICULE_DATABASE_URL": database.url(), "GRATICULE_PG_BIN": str(tmp_path / "nowhere")}
    result = run("doctor", variables=settings | variables)
    assert result.code == 0, result
    assert "database extensions" in result.out
