"""`graticule prune`: how an age is written, and what is refused."""

from datetime import timedelta
from pathlib import Path

import pytest
from tests.unit.cli.conftest import assert_told_in_two_lines, run

from graticule.cli.prune import parse_age
from graticule.core.errors import InvalidInput


@pytest.mark.parametrize(
    ("text", "age"),
    [("90d", timedelta(days=90)), ("12h", timedelta(hours=12)), ("4w", timedelta(weeks=4)), (" 0d ", timedelta())],
)
def test_an_age_is_a_number_of_hours_days_or_weeks(text: str, age: timedelta) -> None:
    assert parse_age(text) == age


WRONG = ["", "90", "d", "-1d", "1.5d", "90 d", "90m", "90D", "1d2h", "9999999d", "99999w", "\u0663d"]


@pytest.mark.parametrize("text", WRONG)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        parse_age(text)


def test_a_wrong_age_is_told_with_the_way_to_write_it() -> None:
    _, hint = assert_told_in_two_lines(run("prune", "--older-than", "soon"))
    assert "90d" in hint


def test_everything_is_removed_only_when_that_is_said_twice(tmp_path: Path) -> None:
    _, hint = assert_told_in_two_lines(run("prune", "--older-than", "0d", variables={"GRATICULE_HOME": str(tmp_path)}))
    assert "--yes" in hint


def test_the_age_has_to_be_said() -> None:
    assert run("prune").code == 2


def test_a_look_into_the_wrong_folder_leaves_nothing_there(tmp_path: Path) -> None:
    problem, _ = assert_told_in_two_lines(
        run("prune", "--older-than", "90d", "--dry-run", variables={"GRATICULE_HOME": str(tmp_path / "none")})
    )
    assert "There is no database" in problem
    assert not (tmp_path / "none").exists()
