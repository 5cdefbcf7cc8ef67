"""What the handlers do, tried without a worker, and that the package brings what it says."""

from importlib.resources import files
from pathlib import Path

import pytest

from graticule.dag.compile import compile_workflow
from graticule.handlers import known_handlers
from graticule.handlers.trial import Trial

READINGS = """\
gauge,time,level
harbour,2026-03-01T00:00Z,1.00
harbour,2026-03-01T06:00Z,3.00
harbour,2026-03-02T00:00Z,2.50
lagoon,2026-03-01T00:00Z,0.25
"""


@pytest.fixture
def trial(tmp_path: Path) -> Trial:
    """Give a storage that has a file of readings."""
    (tmp_path / "bronze").mkdir()
    (tmp_path / "bronze" / "march.csv").write_text(READINGS)
    return Trial(tmp_path)


def test_the_gauges_are_found(trial: Trial) -> None:
    assert trial.run("tides.gauges", path="bronze/march.csv").output == {"gauges": ["harbour", "lagoon"]}


def test_a_file_that_is_not_there_is_not_tried_again(trial: Trial) -> None:
    result = trial.run("tides.gauges", path="bronze/april.csv")
    assert (result.error_message, result.retryable) == ("There is no file bronze/april.csv.", False)


def test_each_day_is_summed_up(trial: Trial) -> None:
    result = trial.run("tides.summarize", path="bronze/march.csv", gauge="harbour")
    path = "silver/tides/job/harbour.json"
    assert result.output == {"gauge": "harbour", "days": 2, "highest": "2026-03-02", "path": path, "resumed_at": 0}
    assert (trial.folder / path).read_text() == '{"2026-03-01": 2.0, "2026-03-02": 2.5}'
    assert [told["done"] for told in trial.progress] == [1, 2]


def test_it_goes_on_after_the_last_day_that_was_saved(trial: Trial) -> None:
    trial.run("tides.summarize", path="bronze/march.csv", gauge="harbour")
    with (trial.folder / "bronze" / "march.csv").open("a") as readings:
        readings.write("harbour,2026-03-03T00:00Z,1.50\n")
    result = trial.run("tides.summarize", path="bronze/march.csv", gauge="harbour")
    assert isinstance(result.output, dict)
    assert (result.output["days"], result.output["resumed_at"]) == (3, 2)


def test_a_worker_that_stops_gets_it_back(trial: Trial) -> None:
    trial.signals.shutdown_requested = True
    assert trial.run("tides.summarize", path="bronze/march.csv", gauge="harbour").is_interrupted


def test_the_workflow_compiles() -> None:
    file = files("tides.workflows") / "tide_summary.yaml"
    compiled = compile_workflow(file.read_text(), file=str(file), handlers=known_handlers())
    assert compiled.problems == ()
