"""An operator's day at the console: jobs are submitted, watched, mended and searched for, and messages given up on."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser as Chromium
from playwright.sync_api import Locator, expect
from tests.browser.conftest import Browser
from tests.browser.console.callers import Caller
from tests.browser.console.conftest import StartSite
from tests.browser.console.signals import Signals
from tests.browser.console.site import ADMIN_KEY
from tests.browser.console.visitor import LIVELY_MS, Visitor, visiting
from tests.e2e.eventually import eventually

CHILDREN = 1000
SHOWN_CHILDREN = 100
LONGEST_TASK_MS = 100
MOST_ELEMENTS = 3000
STEPS_OF_FAN_OUT = ["start", "prepare", "split", "gather", "summarize", "end"]


@pytest.mark.timeout(300)
def test_an_operators_day(folder: Path, start_site: StartSite, browser: Browser, pictures: Path) -> None:
    signals = Signals(folder / "signals")
    admin = Caller(start_site(**signals.settings).until_ready(), ADMIN_KEY)

    def story(chromium: Chromium) -> None:
        with visiting(chromium, admin.url, pictures) as visitor:
            signs_in_by_keyboard(visitor, admin)
            nothing_needs_attention(visitor)
            a_job_is_submitted_from_the_form(visitor)
            its_graph_becomes_green_by_itself(visitor, admin, signals)
            a_failed_job_goes_on_from_its_failed_node(visitor, signals)
            a_thousand_children_are_one_node(visitor)
            what_happened_can_be_read(visitor)
            jobs_are_found(visitor, admin)
            given_up = two_tasks_are_given_up(admin)
            the_overview_tells_of_them(visitor)
            one_is_requeued_and_one_discarded(visitor, admin, signals, given_up)
            what_keeps_it_running_can_be_seen(visitor)
            a_client_gets_a_key_that_is_shown_once(visitor, admin)
            a_platform_is_added(visitor)

    browser.lend(story)


def signs_in_by_keyboard(visitor: Visitor, admin: Caller) -> None:
    visitor.open()
    visitor.page.keyboard.type(admin.key)
    visitor.page.keyboard.press("Enter")
    visitor.sees_title("Overview")
    visitor.sees("admin · Admin")


def nothing_needs_attention(visitor: Visitor) -> None:
    visitor.settle()
    visitor.sees("Nothing needs attention.")
    expect(visitor.page.get_by_role("link", name="Completed 0 jobs")).to_be_visible()
    expect(visitor.page.get_by_text("Live", exact=True)).to_be_visible()


def a_job_is_submitted_from_the_form(visitor: Visitor) -> None:
    """What is wrong is told at its field, before anything is sent."""
    visitor.go_to("Workflows")
    visitor.examine("workflows", light="workflows.png")
    visitor.page.get_by_role("link", name="Tide survey").click()
    visitor.sees_title("Tide survey")
    gauge = visitor.page.get_by_label("gauge (required)")
    days = visitor.page.get_by_label("days", exact=True)
    visitor.button("Submit").click()
    expect(gauge).to_be_focused()
    visitor.sees("This is required.")
    gauge.fill("north-pier")
    days.fill("99")
    visitor.button("Submit").click()
    visitor.sees("This must be at most 31.")
    assert visitor.asked("POST /api/gateway/submit") == []
    days.fill("14")
    visitor.page.get_by_label("datum", exact=True).select_option("lowest")
    visitor.examine("workflow", light="workflow.png")
    days.press("Enter")
    visitor.page.wait_for_url(re.compile(r"/jobs/[0-9a-f]{32}"))
    visitor.sees_title("Tide survey version 3")


def its_graph_becomes_green_by_itself(visitor: Visitor, admin: Caller, signals: Signals) -> None:
    """The stream tells of it: the page does not wait until it would ask anyway."""
    visitor.tell("() => { window.isTheSamePage = true }")
    stands(visitor, "running", start="completed", measure="running", report="pending", archive="pending")
    signals.give("north-pier")
    admin.until_job(job_of(visitor), lambda job: job["status"] == "completed")
    expect(step(visitor, "end")).to_have_attribute("data-status", "completed", timeout=LIVELY_MS)
    stands(visitor, "completed", measure="completed", report="completed", archive="completed")
    assert visitor.tell("() => window.isTheSamePage")
    visitor.page.get_by_role("tab", name="Inputs & result").click()
    expect(visitor.page.get_by_role("region", name="Inputs")).to_contain_text('"days": 14')


def a_failed_job_goes_on_from_its_failed_node(visitor: Visitor, signals: Signals) -> None:
    submit(visitor, "Calibration")
    stands(visitor, "failed", prepare="completed", read_gauge="failed", adjust="pending")
    expect(visitor.page.get_by_role("alert").first).to_contain_text("The tide gauge does not answer.")
    visitor.button("Show the node").click()
    expect(visitor.page.locator(".job-node")).to_contain_text("signal.need")
    visitor.examine("failed_job")
    signals.give("repaired")
    visitor.button("Resume from this node").click()
    visitor.confirm("Resume from this node")
    stands(visitor, "completed", prepare="completed", read_gauge="completed", adjust="completed")
    assert events_of(visitor, "node_completed", "prepare") == 1
    assert events_of(visitor, "node_completed", "read_gauge") == 1


def a_thousand_children_are_one_node(visitor: Visitor) -> None:
    """They stay folded, the page stays small, and the browser is never busy for long."""
    with visitor.timing_tasks() as tasks:
        submit(visitor, "Fan-out", many_that_take_a_while)
        expect(visitor.page.locator("[data-node=split]")).to_contain_text(re.compile("[1-9][0-9]{0,2} / 1,000"))
        stands(visitor, "completed", split="completed", gather="completed")
        assert sorted(steps_of(visitor)) == sorted(STEPS_OF_FAN_OUT)
        expect(visitor.page.locator("[data-node=split]")).to_contain_text("1,000 / 1,000")
        step(visitor, "split").click()
        children = visitor.page.get_by_role("list", name="Children, by index").get_by_role("listitem")
        expect(children).to_have_count(SHOWN_CHILDREN)
        visitor.button("Show more").click()
        expect(children).to_have_count(2 * SHOWN_CHILDREN)
    assert 0 < max(tasks) < LONGEST_TASK_MS
    assert visitor.tell("() => document.querySelectorAll('*').length") < MOST_ELEMENTS
    visitor.page.get_by_test_id("children-counts").scroll_into_view_if_needed()
    visitor.examine("job", light="job.png", dark="job_dark.png")


def many_that_take_a_while(form: Locator) -> None:
    form.get_by_label("items", exact=True).fill(json.dumps([f"tile-{number}" for number in range(CHILDREN)]))
    form.get_by_label("seconds", exact=True).fill("0.1")


def what_happened_can_be_read(visitor: Visitor) -> None:
    visitor.page.get_by_role("tab", name="Timeline").click()
    expect(visitor.page.get_by_role("list", name="Timeline of the nodes")).to_be_visible()
    visitor.examine("timeline", light="timeline.png")
    visitor.page.get_by_role("tab", name="Events").click()
    visitor.page.get_by_label("What happened").select_option("Job completed")
    expect(visitor.page.get_by_text(re.compile("^1 of .* events$"))).to_be_visible()
    visitor.examine("events")


def jobs_are_found(visitor: Visitor, admin: Caller) -> None:
    """By state, by workflow, by the beginning of an id; and jobs that come meanwhile appear by themselves."""
    visitor.go_to("Jobs")
    jobs = [{"workflow_id": f"{kind}_test", "submitted_by": "tide-office"} for kind in ("echo", "conditional") * 30]
    made = admin.post("/api/gateway/submit/batch", items=jobs)
    rows = visitor.page.get_by_role("table").locator("tbody tr")
    newest = rows.first.get_by_title(admin.get("/api/status/jobs")["items"][0]["job_id"])
    expect(newest).to_be_visible(timeout=LIVELY_MS)
    expect(rows.first).to_contain_text("tide-office")
    expect(rows).to_have_count(50)
    visitor.button("Older").click()
    expect(rows).to_have_count(len(jobs) + 3 - 50)
    expect(rows.last).to_contain_text("tide_survey")
    expect(rows.last).to_contain_text("admin")
    visitor.button("Newer").click()
    expect(rows).to_have_count(50)
    visitor.examine("jobs", light="jobs.png")
    visitor.page.get_by_label("Workflow").select_option("calibration")
    expect(rows).to_have_count(1)
    visitor.page.reload()
    expect(rows).to_have_count(1)
    visitor.button("Clear filters").click()
    visitor.page.get_by_label("State").select_option("Failed")
    visitor.sees("No job matches these filters.")
    visitor.button("Clear filters").first.click()
    job_id = made["items"][0]["job"]["job_id"]
    visitor.page.get_by_label("Search").fill(job_id)
    expect(rows).to_have_count(1)
    rows.get_by_role("link").first.click()
    visitor.page.wait_for_url(f"**/jobs/{job_id}")


def two_tasks_are_given_up(admin: Caller) -> dict[str, str]:
    """Have the worker die with two tasks of which this is the last delivery; give their jobs by their gauges."""
    jobs = {gauge: admin.submit_job("tide_survey", gauge=gauge) for gauge in ("harbour", "lagoon")}
    last = "UPDATE dagapp.dag_tasks SET max_deliveries = 1 WHERE status = 'leased' RETURNING task_id"
    eventually(lambda: len(admin.site.query(last)) == len(jobs), "two tasks at work")
    with admin.site.down("worker"):
        admin.site.query("UPDATE dagapp.dag_tasks SET lease_expires_at = now() WHERE status = 'leased'")
    for job_id in jobs.values():
        admin.until_job(job_id, lambda job: job["status"] == "failed")
    admin.site.until_ready()
    return jobs


def the_overview_tells_of_them(visitor: Visitor) -> None:
    visitor.go_to("Overview")
    expect(visitor.page.get_by_role("link", name="Failed 2 jobs")).to_be_visible()
    letters = visitor.page.get_by_role("link", name="dead letters")
    expect(visitor.page.get_by_role("listitem").filter(has=letters)).to_contain_text("2")
    visitor.examine("overview", light="overview.png", phone="overview_phone.png")
    letters.click()
    visitor.sees_title("Operations")


def one_is_requeued_and_one_discarded(visitor: Visitor, admin: Caller, signals: Signals, jobs: dict[str, str]) -> None:
    letters = visitor.page.get_by_role("table").locator("tbody tr:not(.row-details)")
    expect(letters).to_have_count(2)
    one, other = (letters.filter(has=visitor.page.get_by_title(job_id)) for job_id in jobs.values())
    expect(one).to_contain_text("poison task: delivered 1 times without a result")
    one.get_by_role("button", name="Inspect").click()
    expect(visitor.page.get_by_role("region", name="Parameters of the task")).to_contain_text("harbour")
    visitor.examine("operations", light="operations.png")
    signals.give("harbour")
    one.get_by_role("button", name="Requeue").click()
    visitor.confirm("Requeue")
    expect(letters).to_have_count(1)
    admin.until_job(jobs["harbour"], lambda job: job["status"] == "completed")
    other.get_by_role("button", name="Discard").click()
    visitor.confirm("Discard")
    visitor.sees("There is no dead letter.")


def what_keeps_it_running_can_be_seen(visitor: Visitor) -> None:
    for tab, told in {
        "Queues": "functionapp-tasks",
        "Processes": "signal.wait",
        "Schema": "The database is as this release wants it.",
    }.items():
        visitor.page.get_by_role("tab", name=tab).click()
        expect(visitor.page.get_by_role("tabpanel")).to_contain_text(told)
        visitor.examine(tab)


def a_client_gets_a_key_that_is_shown_once(visitor: Visitor, admin: Caller) -> None:
    visitor.page.get_by_role("tab", name="Clients").click()
    visitor.button("Add a client").click()

    def fill(dialog: Locator) -> None:
        dialog.get_by_label("Id", exact=True).fill("night-watch")
        dialog.get_by_label("Name", exact=True).fill("The watch of the night")
        dialog.get_by_label(re.compile("^Operator")).check()

    visitor.confirm("Add a client", fill)
    key = visitor.page.get_by_role("group", name="The key of night-watch").locator("code").inner_text()
    assert Caller(admin.site, key).get("/api/status/jobs")["items"]
    visitor.examine("clients")
    visitor.button("I have stored it").click()
    assert key not in visitor.page.content()
    visitor.button("Disable: night-watch").click()
    visitor.confirm("Disable")
    expect(visitor.page.get_by_role("row", name=re.compile("night-watch"))).to_contain_text("Disabled")


def a_platform_is_added(visitor: Visitor) -> None:
    visitor.page.get_by_role("tab", name="Platforms").click()
    visitor.button("Add a platform").click()

    def fill(dialog: Locator) -> None:
        dialog.get_by_label("Id", exact=True).fill("tide_office")
        dialog.get_by_label("Name", exact=True).fill("Tide office")
        dialog.get_by_label("Required references").fill("gauge, series")
        dialog.get_by_label("Field of the version").fill("edition")

    visitor.confirm("Add a platform", fill)
    expect(visitor.page.get_by_role("row", name=re.compile("tide_office"))).to_contain_text("gauge, series")
    visitor.examine("platforms")


# What is done and looked at again and again


def submit(visitor: Visitor, workflow: str, fill: Any = lambda form: None) -> None:
    """Submit a job from the form of its workflow, and come to its page."""
    visitor.go_to("Workflows")
    visitor.page.get_by_role("link", name=workflow, exact=True).click()
    visitor.sees_title(workflow)
    fill(visitor.page.get_by_role("main"))
    visitor.button("Submit").click()
    visitor.page.wait_for_url(re.compile(r"/jobs/[0-9a-f]{32}"))


def stands(visitor: Visitor, status: str, **nodes: str) -> None:
    """See how the job stands, and its nodes in the graph."""
    for node, state in nodes.items():
        expect(step(visitor, node)).to_have_attribute("data-status", state)
    expect(visitor.page.get_by_test_id("job-state")).to_have_attribute("data-status", status)


def step(visitor: Visitor, node: str) -> Locator:
    return visitor.page.locator(f".graph-step[data-node={node}]")


def steps_of(visitor: Visitor) -> list[str]:
    return [str(each.get_attribute("data-node")) for each in visitor.page.locator(".graph-step").all()]


def job_of(visitor: Visitor) -> str:
    """Give the job on the page."""
    (job_id,) = re.findall("/jobs/([0-9a-f]{32})", visitor.page.url)
    return str(job_id)


def events_of(visitor: Visitor, event_type: str, node: str) -> int:
    """Count events of the job on the page."""
    answer = visitor.page.request.get(f"{visitor.url}/api/status/job/{job_of(visitor)}/events?limit=200").json()
    return sum((each["event_type"], each["node_id"]) == (event_type, node) for each in answer["items"])
