"""A workflow that one of two orchestrators knows: none of a thousand messages for it is lost, whoever takes it."""

from typing import Final, LiteralString

from tests.upgrade.installation import Installation, Instance

MESSAGES: Final = 1000
WORKFLOW: Final = """workflow_id: brandnew
version: 1
inputs: {number: {type: integer, required: true}}
nodes:
  start: {type: start, next: end}
  end: {type: end}
"""
JOBS: LiteralString = """
    SELECT count(*), count(DISTINCT input_params ->> 'number')
    FROM dagapp.dag_jobs WHERE workflow_id = 'brandnew' AND status = 'completed'
"""
OTHER_MESSAGES: LiteralString = "SELECT count(*) FROM dagapp.dag_job_messages WHERE status <> 'done'"


def start_with_workflow(site: Installation) -> Instance:
    """Start an orchestrator of the present release that has the workflow in a folder of its own."""
    folder = site.folder / "workflows"
    folder.mkdir()
    (folder / "brandnew.yaml").write_text(WORKFLOW)
    return site.start_new("orchestrator", GRATICULE_WORKFLOWS=str(folder)).until_ready()


def assert_each_message_is_one_job(site: Installation) -> None:
    site.until((MESSAGES, MESSAGES), JOBS)
    site.until(0, OTHER_MESSAGES)


def test_messages_that_the_previous_release_sets_aside_become_jobs(site: Installation) -> None:
    old = site.start_old("orchestrator").until_ready()
    site.migrate()
    start_with_workflow(site)
    site.send_many(MESSAGES, "brandnew")
    assert_each_message_is_one_job(site)
    assert "a job message is set aside" in old.told  # it took its share, and knows no better


def test_orchestrators_with_different_files_share_the_messages(site: Installation) -> None:
    site.migrate()
    without = site.start_new("orchestrator").until_ready()
    unknown = without.ask("POST", "/api/v1/jobs", {"workflow_id": "brandnew"})
    assert (unknown.status_code, "graticule workflow list" in unknown.text) == (404, True)
    site.send_many(MESSAGES, "brandnew")  # nobody knows it yet
    site.until(MESSAGES, "SELECT count(unknown_since) FROM dagapp.dag_job_messages WHERE status = 'queued'")
    knowing = start_with_workflow(site)
    assert_each_message_is_one_job(site)
    assert "a job message is set aside" not in without.told + knowing.told
    assert without.ask("GET", "/api/v1/workflows/brandnew").json()["source"] == "database"

    (site.folder / "workflows" / "later.yaml").write_text(WORKFLOW.replace("brandnew", "later"))
    assert knowing.ask("POST", "/api/v1/workflows/reload").status_code == 200
    assert without.ask("POST", "/api/v1/jobs", {"workflow_id": "later", "input_params": {"number": 1}}).is_success
