"""`graticule schema …` on a database that is named by its address."""

import json
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from tests.conftest import TestDatabase, new_database
from tests.unit.cli.conftest import Result, assert_told_in_two_lines, run

from graticule.core.models import TABLES
from graticule.core.table import DatabaseRole
from graticule.schema.ddl import fingerprint
from graticule.schema.deploy import ddl_script
from graticule.schema.report import SchemaReport, SchemaStatus, TableReport

AWAY = "postgresql://someone:hunter2@127.0.0.1:1/nowhere"


def schema(database: TestDatabase, *arguments: str, **variables: str) -> Result:
    """Run a command of the schema on a database, as its administrator."""
    return run("schema", *arguments, variables={"GRATICULE_DATABASE_URL": database.url(), **variables})


def change(database: TestDatabase, statement: str) -> None:
    with psycopg.connect(database.url(), autocommit=True) as connection:
        connection.execute(statement.encode())


@pytest.fixture(scope="module")
def deployed() -> Iterator[TestDatabase]:
    """Give a database that is current, to look at; the privileges on a database are not part of its copies."""
    with new_database() as created:
        assert schema(created, "deploy").code == 0
        yield created


def test_status_of_a_current_schema_ends_with_0(deployed: TestDatabase) -> None:
    result = schema(deployed, "status", "--json")
    assert result.code == 0, result
    status = SchemaStatus.model_validate_json(result.out)
    assert status.database == deployed.name
    assert status.current
    assert result.err == ""


def test_status_of_an_empty_database_ends_with_1_and_says_what_to_do(empty_databases: list[TestDatabase]) -> None:
    result = schema(empty_databases[0], "status", "--json")
    assert result.code == 1
    assert not SchemaStatus.model_validate_json(result.out).current
    assert "graticule schema migrate" in result.err


def test_status_is_readable_line_by_line_also_through_a_pipe(deployed: TestDatabase) -> None:
    result = schema(deployed, "status")
    assert result.code == 0
    lines = [line.split(maxsplit=1) for line in result.out.splitlines()]
    assert ["fingerprint", fingerprint(TABLES)] in lines
    assert ["current", "True"] in lines


def test_status_tells_what_is_missing_to_the_letter(database: TestDatabase) -> None:
    assert schema(database, "deploy").code == 0
    change(database, "ALTER TABLE dagapp.platforms DROP CONSTRAINT platforms_platform_id_form")
    result = schema(database, "status")
    assert result.code == 1
    assert "'^[a-z][a-z0-9_]*$'" in result.err
    assert "graticule schema migrate" in result.err


def test_tables_as_json_are_the_documented_model(emptied_database: TestDatabase) -> None:
    result = schema(emptied_database, "tables", "--json")
    assert result.code == 0
    tables = [TableReport.model_validate(item) for item in json.loads(result.out)]
    assert {table.name for table in tables} == {f"{model.table.schema}.{model.table.name}" for model in TABLES}


def test_tables_are_listed_with_their_whole_names_also_through_a_pipe(emptied_database: TestDatabase) -> None:
    result = schema(emptied_database, "tables")
    assert result.code == 0
    first = {line.split()[0] for line in result.out.splitlines() if line.strip()}
    assert {f"{model.table.schema}.{model.table.name}" for model in TABLES} <= first


def test_ddl_needs_no_database() -> None:
    result = run("schema", "ddl", variables={"GRATICULE_DATABASE_URL": AWAY})
    assert result.code == 0
    assert result.out.rstrip() == ddl_script().rstrip()
    assert result.err == ""


@pytest.mark.parametrize("command", ["deploy", "migrate"])
def test_a_command_makes_everything_once_and_nothing_twice(empty_databases: list[TestDatabase], command: str) -> None:
    first, again = (schema(empty_databases[0], command, "--json") for _ in range(2))
    assert (first.code, again.code) == (0, 0)
    assert len(SchemaReport.model_validate_json(first.out).applied) > len(TABLES)
    assert SchemaReport.model_validate_json(again.out).applied == []
    assert schema(empty_databases[0], "status", "--json").code == 0


def test_a_command_tells_a_person_what_it_did(empty_databases: list[TestDatabase]) -> None:
    result = schema(empty_databases[0], "migrate")
    assert result.code == 0
    assert f"changes made in {empty_databases[0].name}." in result.err
    assert result.out == ""


def test_deploy_ends_with_1_when_a_table_lacks_something_and_migrate_mends_it(database: TestDatabase) -> None:
    change(database, "ALTER TABLE dagapp.platforms DROP COLUMN description")
    deploy = schema(database, "deploy")
    assert deploy.code == 1
    assert "platforms.description" in deploy.err
    assert "graticule schema migrate" in deploy.err
    assert schema(database, "migrate").code == 0


def test_migrate_ends_with_1_when_rows_are_in_the_way_and_names_them(database: TestDatabase) -> None:
    change(database, "ALTER TABLE dagapp.platforms DROP CONSTRAINT platforms_platform_id_form")
    change(database, "UPDATE dagapp.platforms SET platform_id = 'UPPER' WHERE platform_id = 'geonode'")
    result = schema(database, "migrate", "--json")
    assert result.code == 1
    report = SchemaReport.model_validate_json(result.out)
    assert not report.current
    assert any("platform_id_form" in item.object for item in report.differences)


def test_rebuild_needs_a_confirmation(emptied_database: TestDatabase) -> None:
    assert schema(emptied_database, "rebuild", GRATICULE_DEVELOPMENT="true").code == 2


def test_rebuild_is_refused_outside_development_mode(emptied_database: TestDatabase) -> None:
    _, hint = assert_told_in_two_lines(schema(emptied_database, "rebuild", "--confirm", emptied_database.name))
    assert "GRATICULE_DEVELOPMENT" in hint


def test_rebuild_is_refused_with_a_wrong_confirmation(emptied_database: TestDatabase) -> None:
    _, hint = assert_told_in_two_lines(
        schema(emptied_database, "rebuild", "--confirm", "yes", GRATICULE_DEVELOPMENT="true")
    )
    assert emptied_database.name in hint


def test_rebuild_in_development_mode_makes_everything_anew(database: TestDatabase) -> None:
    result = schema(database, "rebuild", "--confirm", database.name, "--json", GRATICULE_DEVELOPMENT="true")
    assert result.code == 0
    assert len(SchemaReport.model_validate_json(result.out).applied) > len(TABLES)


@pytest.mark.parametrize("command", [["status"], ["tables"], ["deploy"], ["migrate"], ["rebuild", "--confirm", "x"]])
def test_a_database_that_is_away_is_told_in_two_lines(command: list[str]) -> None:
    result = run("schema", *command, variables={"GRATICULE_DATABASE_URL": AWAY, "GRATICULE_DEVELOPMENT": "true"})
    assert_told_in_two_lines(result)
    assert "hunter2" not in result.err


@pytest.mark.parametrize(
    ("wrong", "reason"), [({"password": "hunter2"}, "the login was refused"), ({"dbname": "x"}, "no such database")]
)
def test_a_server_that_refuses_is_told_from_one_that_is_away(
    emptied_database: TestDatabase, wrong: dict[str, str], reason: str
) -> None:
    """To try again, as with one that is away, would help nobody."""
    url = make_conninfo(emptied_database.url(DatabaseRole.OWNER), **wrong)
    problem, hint = assert_told_in_two_lines(run("schema", "status", variables={"GRATICULE_DATABASE_URL": url}))
    assert reason in problem
    assert "GRATICULE_DATABASE_URL" in hint


@pytest.mark.parametrize("role", [DatabaseRole.ORCHESTRATOR, DatabaseRole.GATEWAY])
@pytest.mark.parametrize("command", ["status", "deploy", "migrate"])
def test_a_login_that_may_not_change_the_schema_is_told_in_two_lines(
    emptied_database: TestDatabase, command: str, role: DatabaseRole
) -> None:
    result = run("schema", command, variables={"GRATICULE_DATABASE_URL": emptied_database.url(role)})
    assert_told_in_two_lines(result)


def test_the_owner_login_is_used_for_the_schema(deployed: TestDatabase) -> None:
    variables = {"GRATICULE_DATABASE_URL": AWAY, "GRATICULE_OWNER_DATABASE_URL": deployed.url()}
    result = run("schema", "status", "--json", variables=variables)
    assert result.code == 0
    assert SchemaStatus.model_validate_json(result.out).database == deployed.name


def test_the_running_database_of_a_data_folder_is_found_by_its_name(deployed: TestDatabase) -> None:
    variables = {"GRATICULE_HOME": str(deployed.home), "POSTGRES_DB": deployed.name}
    result = run("schema", "status", "--json", variables=variables)
    assert result.code == 0, result.err
    assert SchemaStatus.model_validate_json(result.out).database == deployed.name


@pytest.mark.parametrize("command", [["status"], ["tables"], ["rebuild", "--confirm", "graticule"]])
def test_a_look_into_the_wrong_folder_leaves_nothing_there(command: list[str], tmp_path: Path) -> None:
    home = tmp_path / "wrong"
    problem, _ = assert_told_in_two_lines(run("schema", *command, variables={"GRATICULE_HOME": str(home)}))
    assert str(home) in problem
    assert not home.exists()
