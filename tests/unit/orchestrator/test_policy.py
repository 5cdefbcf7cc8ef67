"""What the evaluator is told of the settings."""

import pytest

from graticule.config import Settings
from graticule.orchestrator.engine import policy


def test_templates_see_the_variables_that_are_named_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REGION", "north")
    monkeypatch.setenv("STAGE", "test")
    monkeypatch.setenv("TOKEN", "secret")
    seen = policy(Settings(template_environment="REGION, STAGE,MISSING")).environment
    assert seen == {"REGION": "north", "STAGE": "test"}


def test_templates_see_no_variable_unless_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "secret")
    assert policy(Settings()).environment == {}


def test_a_queue_can_have_a_dispatch_timeout_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRATICULE_DISPATCH_TIMEOUT_SECONDS", "10")
    monkeypatch.setenv("GRATICULE_QUEUE_DISPATCH_TIMEOUTS", "container-tasks=7200, slow=0")
    decided = policy(Settings())
    timeouts = [decided.dispatch_timeout(queue) for queue in ("container-tasks", "slow", "functionapp-tasks")]
    assert timeouts == [7200, 0, 10]


def test_a_task_may_be_late_by_the_lease_of_its_worker() -> None:
    assert policy(Settings(worker_lease_seconds=45)).running_grace_seconds == 45
