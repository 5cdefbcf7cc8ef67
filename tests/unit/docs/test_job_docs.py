"""docs/how-to/jobs.md names every option of `graticule submit`, and shows a job as it is drawn."""

import re
from datetime import datetime, timedelta
from importlib import resources
from io import StringIO
from typing import Any

import pytest
import yaml
from rich.console import Console
from tests.unit.cli.api import CREATED, event, job, node
from tests.unit.docs.pages import DOCS, codes, page, table
from typer.main import get_command

from graticule.cli.job_picture import JobPicture
from graticule.cli.job_tree import render_job
from graticule.cli.main import app

PAGE = page("jobs.md")
README = (DOCS.parent / "README.md").read_text(encoding="utf-8")
BEGAN = datetime.fromisoformat(CREATED)
CHOSEN = node("is_large", node_type="conditional", output={"next": ["split"]})


def test_every_option_of_submit_is_told() -> None:
    told = {codes(row[0])[0].split()[0] for row in table(PAGE, "| option | what |")}
    command = get_command(app).get_command(None, "submit")  # type: ignore[attr-defined]
    options = [set(each.opts) for each in command.params if each.param_type_name == "option"]
    assert [names for names in options if not names & (told | {"--server"})] == []


def drawn(picture: JobPicture, now: datetime) -> list[str]:
    console = Console(file=StringIO(), width=80)
    console.print(render_job(picture, 80, now))
    assert isinstance(console.file, StringIO)
    return console.file.getvalue().splitlines()


def nodes_around(split: dict[str, Any], after: str) -> list[dict[str, Any]]:
    last = [node(name, after) for name in ("gather", "report", "end")]
    return [node("start"), node("check_size"), CHOSEN, split, node("process_whole", "skipped"), *last]


def fan_out(status: str, **values: Any) -> dict[str, Any]:
    return node("split", status, "fan_out", children_total=40, children_started=40, ready_at=CREATED, **values)


def test_a_job_that_runs_is_shown_as_it_is_drawn() -> None:
    now = BEGAN + timedelta(seconds=0.6)
    job_id = "01a1def48bfcb83ba59a8506e726643d"
    picture = JobPicture(job(job_id=job_id), nodes_around(fan_out("running", children_done=34), "pending"))
    for number in range(16):
        picture.take(event(number, "node_retry", "split__1", retry_count=1, ready_at=CREATED))
    for node_id, count, waits in (("split__38", 2, 0.1), ("split__20", 3, 0.5)):
        picture.take(event(20, "node_failed", node_id, error="failed by chance (rate 0.35)"))
        ready_at = (now + timedelta(seconds=waits)).isoformat()
        picture.take(event(21, "node_retry", node_id, retry_count=count, ready_at=ready_at))
    assert "\n".join(drawn(picture, now)) in PAGE


def shown_tree(workflow_id: str) -> tuple[str, float, list[dict[str, Any]]]:
    """Give a job as README.md shows it: its id, its seconds, and its nodes."""
    shown = re.search(rf"^✓ {workflow_id} (\w{{32}})  completed  ([\d.]+) s\n((?:[├└]── .+\n)+)", README, re.MULTILINE)
    assert shown is not None
    nodes = []
    for line in shown[3].splitlines():
        name, status, told = re.fullmatch(r"[├└]── \S (\w+) +(\w+) *(.*)", line).groups()  # type: ignore[union-attr]
        if told.startswith("→ "):
            nodes.append(node(name, status, "conditional", output={"next": [told.removeprefix("→ ")]}))
            continue
        *bar, took = told.removesuffix(" s").split("  ")
        done = {"children_total": 1, "children_started": 1, "children_done": 1} if bar else {}
        ended = (BEGAN + timedelta(seconds=float(took or 0))).isoformat()
        nodes.append(node(name, status, "fan_out" if bar else "task", started_at=CREATED, ended_at=ended, **done))
    return shown[1], float(shown[2]), nodes


@pytest.mark.parametrize("workflow_id", ["raster_ingest", "vector_ingest"])
def test_the_readme_shows_the_jobs_of_the_demonstration_as_they_are_drawn(workflow_id: str) -> None:
    job_id, seconds, nodes = shown_tree(workflow_id)
    ended = (BEGAN + timedelta(seconds=seconds)).isoformat()
    picture = JobPicture(job("completed", job_id=job_id, workflow_id=workflow_id, ended_at=ended), nodes)
    assert "\n".join(drawn(picture, BEGAN)) in README
    text = resources.files("graticule.workflows").joinpath(f"{workflow_id}.yaml").read_text(encoding="utf-8")
    assert {each["node_id"] for each in nodes} == set(yaml.safe_load(text)["nodes"])
