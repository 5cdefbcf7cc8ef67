"""docs/how-to/monitoring.md: Prometheus as the page configures it asks all processes, by the rules that there are."""

import yaml
from tests.unit.docs.pages import DOCS, blocks, page
from typer.main import get_command

from graticule.cli.main import app

PROCESSES = ["graticule-gateway", "graticule-orchestrator", "graticule-worker", "graticule-serve"]


def test_prometheus_asks_the_processes_of_an_installation() -> None:
    (shown,) = map(yaml.safe_load, blocks(page("monitoring.md"), "yaml"))
    commands = get_command(app).commands  # type: ignore[attr-defined]
    (first,) = (each.default for each in commands["up"].params if each.name == "port")
    asked = {job["job_name"]: job["static_configs"][0]["targets"] for job in shown["scrape_configs"]}
    assert asked == {name: [f"127.0.0.1:{first + place}"] for place, name in enumerate(PROCESSES)}
    assert all(any((DOCS.parent / "deploy").rglob(name)) for name in shown["rule_files"])
