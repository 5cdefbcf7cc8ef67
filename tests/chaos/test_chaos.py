"""The chaos suite in short, the guards that it watches over, and that recoveries happen at all."""

import asyncio
from pathlib import Path
from random import Random

import pytest
from tests.chaos.breaking import Guard
from tests.chaos.driver import Plan, torment
from tests.chaos.installation import private_server
from tests.chaos.monkey import Deed
from tests.chaos.recovery import KINDS, Measured, Stage, Times, table
from tests.chaos.rules import Rule
from tests.chaos.scenarios import play
from tests.chaos.workflows import many_workflow, one_workflow, poison_workflow, random_workflows
from tests.conftest import TestDatabase

from graticule.dag.compile import compile_workflow
from graticule.handlers.registry import known_handlers

SEEDS = [20261115]
SHORT = Times(lease_seconds=1, threshold_seconds=2, scan_seconds=1)
FOUND = {
    Guard.EPOCH: {Rule.OVERLAPPING_TERMS},
    Guard.LEASE: {Rule.SUPERSEDED, Rule.RAN_AGAIN},
    Guard.ACKNOWLEDGE: {Rule.LOST_JOB},
}


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder with a short path that the server's user can enter."""
    made = tmp_path_factory.mktemp("chaos")
    for each in (made, *made.parents[:2]):
        each.chmod(0o711)
    return made


@pytest.mark.parametrize("seed", range(3))
def test_the_workflows_are_valid(seed: int) -> None:
    for workflow in [*random_workflows(Random(seed), 40), poison_workflow(), one_workflow(), many_workflow()]:
        compiled = compile_workflow(workflow.text, file=workflow.workflow_id, handlers=known_handlers())
        assert compiled.problems == (), workflow.text


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_is_lost_doubled_or_stuck(seed: int, folder: Path) -> None:
    plan = Plan(seed, seconds=12, minimum_kills=8)
    verdict = asyncio.run(torment(plan, folder))
    assert verdict.is_sound, "\n".join([verdict.told, *verdict.problems, f"logs: {folder}", plan.command])
    assert all(str(deed) in verdict.told for deed in Deed), verdict.told


@pytest.mark.timeout(120)
@pytest.mark.parametrize("guard", Guard)
async def test_the_checker_sees_what_a_guard_keeps_away(
    guard: Guard, emptied_database: TestDatabase, own_database: TestDatabase, tmp_path: Path
) -> None:
    folders = tmp_path / "unbroken", tmp_path / "broken"
    for each in folders:
        each.mkdir()
    unbroken, broken = await asyncio.gather(
        play(guard, emptied_database, folders[0], is_broken=False),
        play(guard, own_database, folders[1], is_broken=True),
    )
    assert unbroken.is_sound, unbroken.told
    assert {each.rule for each in broken.violations} == FOUND[guard], broken.told


@pytest.mark.timeout(300)
def test_whatever_is_killed_jobs_go_on(folder: Path) -> None:
    """As the recovery report does it, with short times; kinds that spare the server go side by side."""

    async def measured() -> list[Measured]:
        async with private_server(folder) as server:
            stages = [await Stage.of(server, folder, f"kind_{number}", 1, SHORT) for number in range(len(KINDS))]
            *beside, alone = zip(KINDS, stages, strict=True)
            found = await asyncio.gather(*(kind(stage) for kind, stage in beside))
            return [*found, await alone[0](alone[1])]

    found = asyncio.run(measured())
    assert [len(each.seconds) for each in found] == [1, 1, 1, 1], table(found)
