"""The dashboard and the alerts of deploy/monitoring name what there is, and each alert is explained and tried."""

import json
import re
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.measured import every_sample
from tests.unit.deploy.promql import TARGET, asked
from tests.unit.docs.pages import anchors, page

from graticule.services.state_metrics import COUNTED_UP_TO

FOLDER = Path(__file__).parents[3] / "deploy" / "monitoring"
DASHBOARD: dict[str, Any] = json.loads((FOLDER / "graticule-dashboard.json").read_text())
PANELS: list[dict[str, Any]] = DASHBOARD["panels"]
SHOWN = [panel for panel in PANELS if panel["type"] != "row"]
ALERTS: dict[str, Any] = {
    rule["alert"]: rule
    for group in yaml.safe_load((FOLDER / "graticule-alerts.yaml").read_text())["groups"]
    for rule in group["rules"]
}
PAGE = page("monitoring.md")
SAMPLES = {**every_sample(), "up": frozenset[str](), "process_start_time_seconds": frozenset[str]()}
EVERY_QUERY = {
    **{f"{panel['title']} {target['refId']}": target["expr"] for panel in SHOWN for target in panel["targets"]},
    **{name: rule["expr"] for name, rule in ALERTS.items()},
}


def test_every_query_reads_what_there_is_by_labels_that_it_has(subtests: pytest.Subtests) -> None:
    for place, query in EVERY_QUERY.items():
        with subtests.test(place):
            for name, labels in asked(query):
                assert name in SAMPLES
                assert labels <= SAMPLES[name], name


def test_a_query_for_what_is_not_there_would_be_found() -> None:
    assert asked('sum by (queue, job) (rate(graticule_x_total{a="b"}[5m])) / max(y) > 1 or absent(z)') == [
        ("graticule_x_total", {"queue", "a"}),
        ("y", frozenset()),
        ("z", frozenset()),
    ]


# The dashboard


def test_every_panel_has_a_number_a_place_and_a_title_of_its_own() -> None:
    assert len({panel["id"] for panel in PANELS}) == len({panel["title"] for panel in PANELS}) == len(PANELS)
    assert all(panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24 for panel in PANELS)
    for one, other in combinations((panel["gridPos"] for panel in PANELS), 2):
        assert _is_beside(one, other) or _is_beside(other, one)


def _is_beside(one: dict[str, int], other: dict[str, int]) -> bool:
    return one["x"] + one["w"] <= other["x"] or one["y"] + one["h"] <= other["y"]


def test_the_rows_go_from_what_users_see_to_what_is_behind_it() -> None:
    assert [panel["title"] for panel in PANELS if panel["type"] == "row"] == [
        *("What users see", "Jobs and nodes", "Queues", "Workers and handlers", "Orchestrators and reclaims"),
        *("Database", "HTTP", "Callbacks"),
    ]


def test_every_query_asks_the_data_source_that_is_chosen() -> None:
    (variable,) = DASHBOARD["templating"]["list"]
    assert (variable["type"], variable["query"]) == ("datasource", "prometheus")
    sources = [source["datasource"] for panel in SHOWN for source in (panel, *panel["targets"])]
    assert sources == [{"type": "prometheus", "uid": f"${{{variable['name']}}}"}] * len(sources)


def test_every_legend_names_labels_that_are_left() -> None:
    for panel in SHOWN:
        for target in panel["targets"]:
            named = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
            for name, labels in asked(target["expr"]):
                assert named <= (labels or SAMPLES[name]) | TARGET, target


def test_the_dashboard_says_how_far_is_counted() -> None:
    (waiting,) = (panel for panel in SHOWN if panel["title"] == "Waiting")
    assert f"{COUNTED_UP_TO:,}" in waiting["description"]


# The alerts


def test_every_alert_says_what_it_is_and_where_more_stands() -> None:
    for name, rule in ALERTS.items():
        assert rule["labels"]["severity"] in {"critical", "warning"}
        assert set(rule["annotations"]) == {"summary", "description", "runbook_url"}
        file, _, anchor = rule["annotations"]["runbook_url"].partition("#")
        assert (FOLDER.parents[1] / file).read_text() == PAGE
        assert anchor == name.lower()
        assert anchor in anchors(PAGE)


def test_an_alert_names_labels_that_its_query_leaves() -> None:
    for rule in ALERTS.values():
        told = json.dumps(rule["annotations"])
        for sample, labels in asked(rule["expr"]):
            assert set(re.findall(r"\$labels\.(\w+)", told)) <= (labels or SAMPLES[sample]) | TARGET


def test_the_page_explains_every_alert_and_no_other() -> None:
    explained = re.findall(r"^### (Graticule\w+)$", PAGE, re.MULTILINE)
    assert explained == [*ALERTS]
    for section in re.split(r"^### Graticule\w+$", PAGE, flags=re.MULTILINE)[1:]:
        assert [part for part in ("Means:", "Likely:", "Look:", "Mend:") if f"**{part}**" not in section] == []


def test_every_alert_is_tried_both_ways() -> None:
    """`promtool test rules` runs them, and no part of `make test` does: Debian has it only along with a server."""
    tries = yaml.safe_load((FOLDER / "graticule-alerts-test.yaml").read_text())["tests"]
    tried = [(test["alertname"], bool(test["exp_alerts"])) for each in tries for test in each["alert_rule_test"]]
    assert set(tried) == {(name, fires) for name in ALERTS for fires in (False, True)}


# The scrapes


def _jobs(text: str) -> Iterator[tuple[str, int]]:
    for job in yaml.safe_load(text)["scrape_configs"]:
        for place in job.get("dns_sd_configs", ()):
            yield job["job_name"], place["port"]
        for place in job.get("static_configs", ()):
            for target in place["targets"]:
                yield job["job_name"], int(target.rpartition(":")[2])


def test_prometheus_reads_the_processes_of_the_compose_file() -> None:
    services = yaml.safe_load((FOLDER.parent / "compose" / "compose.yaml").read_text())["services"]
    ports = {
        f"graticule-{name}": int(services[name]["environment"]["GRATICULE_PORT"])
        for name in ("gateway", "orchestrator", "worker", "serve")
    }
    assert dict(_jobs((FOLDER / "prometheus.yaml").read_text())) == ports
