"""A handler is tried without a worker: with what it is given, and what it leaves behind."""

from pathlib import Path

import pytest
from pydantic import BaseModel, ValidationError

from graticule.core.errors import NotFound
from graticule.handlers import Checkpoint, HandlerContext, ProcessContext, register_handler, registry
from graticule.handlers.trial import Trial


class Asked(BaseModel):
    count: int


@pytest.fixture
def trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Trial:
    monkeypatch.setattr(registry, "_registered", dict(registry.handlers()))

    @register_handler("trial.awaited", params=Asked)
    async def awaited(ctx: HandlerContext) -> dict[str, int]:
        before = await ctx.checkpoint.load()
        done = 0 if before is None else len(before.artifacts)
        await ctx.storage.put(f"silver/{done}", b"made")
        await ctx.checkpoint.save(f"phase {done}", artifacts=[f"silver/{each}" for each in range(done + 1)])
        ctx.progress(done + 1, ctx.params.count)
        return {"done": done}

    @register_handler("trial.called")
    def called(ctx: ProcessContext) -> bool:
        if ctx.params.get("fail"):
            raise ValueError("as asked")
        return ctx.cancelled

    return Trial(tmp_path)


def test_runs_are_attempts_of_one_node(trial: Trial) -> None:
    assert [trial.run("trial.awaited", count=4).output for _ in range(3)] == [{"done": 0}, {"done": 1}, {"done": 2}]
    assert [told["percent"] for told in trial.progress] == [25, 50, 75]
    assert trial.checkpoint == Checkpoint("phase 2", {}, ("silver/0", "silver/1", "silver/2"))


def test_a_checkpoint_whose_file_is_gone_is_not_found(trial: Trial) -> None:
    trial.run("trial.awaited", count=4)
    (trial.folder / "silver" / "0").unlink()
    assert trial.run("trial.awaited", count=4).output == {"done": 0}


def test_parameters_that_do_not_fit_are_refused(trial: Trial) -> None:
    with pytest.raises(ValidationError, match="count"):
        trial.run("trial.awaited", count="many")


def test_a_plain_value_is_a_success_and_an_error_is_seen(trial: Trial) -> None:
    assert trial.run("trial.called").output is False
    trial.signals.cancelled = True
    assert trial.run("trial.called").output is True
    with pytest.raises(ValueError, match="as asked"):
        trial.run("trial.called", fail=True)


def test_a_handler_that_is_not_there_is_told_with_what_may_be_the_matter(trial: Trial) -> None:
    with pytest.raises(NotFound, match=r"There is no handler 'trial.caled': its package is not installed here"):
        trial.run("trial.caled")
