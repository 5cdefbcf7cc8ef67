"""docs/reference/metrics.md has every metric, and docs/how-to/monitoring.md names only what there is."""

from typing import Any

from tests.measured import OURS, PARTS, every_sample, measured
from tests.unit.docs.pages import codes, page, table
from typer.main import get_command

from graticule.cli.main import app
from graticule.services.state_metrics import COUNTED_UP_TO, KEPT_SECONDS, PATIENCE_SECONDS

METRICS, MONITORING = page("metrics.md"), page("monitoring.md")


def test_every_metric_is_told_in_the_table_of_its_part() -> None:
    sections = {text.partition("\n")[0].lower(): text for text in METRICS.split("\n## ")[1:]}
    assert [*sections] == [*PARTS]
    for part, section in sections.items():
        assert table(section, "| metric | type | labels | meaning |") == [
            [f"`{each.shown_name}`", each.type, ", ".join(f"`{label}`" for label in each.labels), each.meaning]
            for each in measured(part).values()
        ]


def test_the_pages_name_no_other_metric() -> None:
    known = {*every_sample(), *(each.name for part in PARTS for each in measured(part).values())}
    assert {name for text in (METRICS, MONITORING) for name in OURS.findall(text)} <= known


def test_the_pages_say_how_the_state_is_read() -> None:
    assert f"counted up to {COUNTED_UP_TO:,}" in " ".join(METRICS.split())
    assert f"at most every {KEPT_SECONDS:g} seconds" in " ".join(MONITORING.split())
    assert f"wait {PATIENCE_SECONDS:g} seconds" in " ".join(MONITORING.split())


def test_every_command_of_the_page_is_one_with_these_options() -> None:
    named = [text.split() for text in codes(MONITORING) if text.startswith("graticule ")]
    assert len(named) > 10
    for words in named:
        command: Any = get_command(app)
        rest = words[1:]
        while rest and rest[0] in getattr(command, "commands", {}):
            command = command.commands[rest.pop(0)]
        assert command is not get_command(app), words
        assert {word for word in rest if word.startswith("--")} <= {
            option for parameter in command.params for option in parameter.opts
        }, words
