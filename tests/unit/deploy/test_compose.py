"""deploy/compose: the file is one of its kind, starts nothing without passwords, and keeps the rules of the images."""

import re
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import yaml
from compose_spec.models import ComposeSpecification
from pydantic import ValidationError
from tests.unit.deploy import containerfile
from tests.unit.deploy.test_bicep import settings_variables
from tests.unit.docs.pages import blocks, codes, page, table
from tests.unit.docs.test_command_docs import commands
from typer.main import get_command

from graticule.cli.main import app
from graticule.config import secret_variables
from graticule.schema.passwords import LOGINS, SCALER

FOLDER = Path(__file__).parents[3] / "deploy" / "compose"
FILE: dict[str, Any] = yaml.safe_load((FOLDER / "compose.yaml").read_text(encoding="utf-8"))
SERVICES: dict[str, dict[str, Any]] = FILE["services"]
EXAMPLE = (FOLDER / ".env.example").read_text(encoding="utf-8")
DOCS = page("containers.md")
OURS = {name: each for name, each in SERVICES.items() if each["image"].startswith("graticule")}
PROCESSES = {name: each for name, each in OURS.items() if "healthcheck" in each and "test" in each["healthcheck"]}
PASSWORDS = {f"{role.upper()}_PASSWORD" for role in LOGINS if role != SCALER}
REFERENCE = re.compile(r"\$\{(\w+)(:[-?])?([^}]*)\}")


def references(text: str) -> dict[str, tuple[str, str]]:
    """Give the variables that a text takes from the environment, each with what stands for a missing one."""
    return {name: (kind, default) for name, kind, default in REFERENCE.findall(text)}


def _whole() -> dict[str, Any]:
    return {name: value for name, value in FILE.items() if not name.startswith("x-")}


def test_it_is_a_compose_file_without_a_field_that_nobody_knows() -> None:
    ComposeSpecification.model_validate(_whole(), extra="forbid")
    wrong = {**SERVICES, "worker": {**SERVICES["worker"], "readonly": True}}
    with pytest.raises(ValidationError, match="readonly"):
        ComposeSpecification.model_validate({**_whole(), "services": wrong}, extra="forbid")


def test_containers_change_nothing_but_their_volumes_and_can_gain_nothing() -> None:
    for name, service in SERVICES.items():
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert {"cpus", "memory"} <= set(service["deploy"]["resources"]["limits"]), name
        assert service["pids_limit"], name
        assert name in OURS or service["user"].partition(":")[0] not in {"", "0", "root"}, name


def test_every_password_and_key_is_asked_for_and_none_has_a_value_here() -> None:
    secret = secret_variables() | PASSWORDS | {"POSTGRES_PASSWORD", "GF_SECURITY_ADMIN_PASSWORD"}
    for name, service in SERVICES.items():
        for variable, value in service.get("environment", {}).items():
            if variable in secret:
                ((_, (kind, _)),) = references(value).items()
                assert kind == ":?", f"{name} would start without {variable}"
                assert REFERENCE.fullmatch(value), f"{name}: {variable}"


def test_the_example_has_every_variable_and_no_value_that_would_work() -> None:
    wanted = references((FOLDER / "compose.yaml").read_text(encoding="utf-8"))
    told = dict(re.findall(r"^#?(GRATICULE_\w+)=(.*)$", EXAMPLE, re.MULTILINE))
    assert set(told) == set(wanted)
    assert {name for name, (kind, _) in wanted.items() if kind == ":?"} == {
        name for name in told if re.search(rf"^{name}=$", EXAMPLE, re.MULTILINE)
    }


def test_the_code_knows_every_variable() -> None:
    known = settings_variables() | PASSWORDS
    for name, service in OURS.items():
        assert set(service["environment"]) <= known, name
        assert not set(service["environment"]) & PASSWORDS or name == "logins"


def test_each_process_has_the_login_of_its_own_role() -> None:
    roles = {"serve": "serve_internal"}
    assert len(PROCESSES) == 5
    for name, service in PROCESSES.items():
        role = roles.get(name, name.replace("-", "_"))
        environment = service["environment"]
        assert environment["GRATICULE_POSTGRES_USER"] == f"graticule_{role}"
        assert list(references(environment["GRATICULE_POSTGRES_PASSWORD"])) == [f"GRATICULE_{role.upper()}_PASSWORD"]
    assert set(SERVICES["logins"]["environment"]) >= PASSWORDS


def test_images_are_targets_of_the_container_file_and_run_what_they_have() -> None:
    known = set(commands(get_command(app)))
    for name, service in OURS.items():
        target = service["build"]["target"]
        assert service["image"] == f"{target}:${{GRATICULE_VERSION:-latest}}", name
        assert (FOLDER / service["build"]["context"] / service["build"]["dockerfile"]).samefile(containerfile.FILE)
        assert target in containerfile.stages()
        first = service["command"][0]
        assert target == {"worker": "graticule-worker", "serve": "graticule-serve"}.get(first, "graticule"), name
        assert any(" ".join(service["command"][:count]) in known for count in (1, 2, 3)), name


def test_processes_wait_for_the_schema_and_the_logins() -> None:
    assert SERVICES["migrate"]["depends_on"] == {"database": {"condition": "service_healthy"}}
    assert SERVICES["logins"]["depends_on"] == {"migrate": {"condition": "service_completed_successfully"}}
    for service in PROCESSES.values():
        assert service["depends_on"] == {"logins": {"condition": "service_completed_successfully"}}
        assert service["healthcheck"]["test"][-1] == "/readyz"
        assert service["stop_grace_period"] == "60s"


def test_ports_are_opened_on_this_machine_alone_unless_someone_says_otherwise() -> None:
    for name, service in SERVICES.items():
        for port in service.get("ports", ()):
            ((_, (kind, default)),) = references(port).items()
            assert kind == ":-"
            assert default.startswith("127.0.0.1:"), name
            if name in OURS:
                assert port.rpartition(":")[2] == service["environment"]["GRATICULE_PORT"]
    assert "ports" not in SERVICES["database"]


def test_who_needs_no_way_out_has_none() -> None:
    inside = {name for name, each in FILE["networks"].items() if each.get("internal")}
    closed = {name for name, service in SERVICES.items() if set(service["networks"]) <= inside}
    assert closed == {"database", "migrate", "logins", "worker"}


def test_what_is_mounted_is_there() -> None:
    for name, service in SERVICES.items():
        for mount in service.get("volumes", ()):
            source = mount.partition(":")[0]
            assert (FOLDER / source).is_file() if source.startswith(".") else source in FILE["volumes"], (name, mount)


def test_the_public_reaches_the_database_and_nobody_else() -> None:
    networks = set(SERVICES["serve-external"]["networks"])
    beside = {name for name, each in SERVICES.items() if networks & set(each["networks"])}
    assert beside == {"serve-external", "database"}
    assert networks & set(SERVICES["database"]["networks"]) == {"public-database"}


def test_the_database_is_new_when_it_is_made() -> None:
    """The image would make PostGIS's tables of addresses and topologies in it, over which no dump can be restored."""
    assert any(each.startswith("/docker-entrypoint-initdb.d:") for each in SERVICES["database"]["tmpfs"])


def test_the_public_is_given_no_key() -> None:
    given = set(SERVICES["serve-external"]["environment"])
    assert given & secret_variables() == {"GRATICULE_POSTGRES_PASSWORD"}


def test_the_public_sees_its_copies_alone() -> None:
    assert SERVICES["serve-external"]["volumes"] == ["external:/var/lib/graticule/storage/external:ro"]
    writers = {name for name, each in PROCESSES.items() if "storage:/var/lib/graticule/storage" in each["volumes"]}
    assert writers == {"orchestrator", "worker"}


def test_the_page_makes_a_value_for_every_name_that_has_none() -> None:
    (line,) = [
        each for each in chain.from_iterable(map(str.splitlines, blocks(DOCS, "console"))) if ".env.example" in each
    ]
    assert re.search(r"sed .*\^\(GRATICULE_\\w\+\)=\$", line), line
    profiles = set(chain.from_iterable(each.get("profiles", ()) for each in SERVICES.values()))
    assert {name for row in table(DOCS, "| profile |") for name in codes(row[0])} == profiles
