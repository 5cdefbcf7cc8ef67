"""`python -m tests.chaos`: the chaos suite, a guard that is broken by hand, or the recovery report."""

import argparse
import asyncio
import logging
import shutil
import sys
import tempfile
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from random import SystemRandom

from tests.chaos.breaking import Guard
from tests.chaos.driver import Plan, torment
from tests.chaos.installation import private_server
from tests.chaos.recovery import KINDS, Stage, table, write_json
from tests.chaos.scenarios import play

Work = Callable[[Path], Awaitable[bool]]


def main() -> int:
    """Do what is asked for; 1 when something was found that must never be."""
    options = _options()
    logging.getLogger("psycopg.pool").setLevel(logging.CRITICAL)  # that connections break is what is wanted
    if options.report:
        return _in_folder(partial(_report, kills=options.kills, file=options.json), keep=options.keep)
    if options.guard is not None:
        return _in_folder(partial(_break, Guard(options.guard)), keep=options.keep)
    plan = Plan(options.seed, options.seconds, options.jobs_per_second, options.minimum_kills)
    tell(f"seed {plan.seed}")
    try:
        return _in_folder(partial(_torment, plan), keep=options.keep)
    finally:
        tell(f"seed {plan.seed}; to repeat: {plan.command}")


async def _torment(plan: Plan, folder: Path) -> bool:
    verdict = await torment(plan, folder, tell)
    tell(verdict.told)
    for problem in verdict.problems:
        tell(f"PROBLEM: {problem}")
    return verdict.is_sound


async def _break(guard: Guard, folder: Path) -> bool:
    """Play the guard's scene with the guard and without it; the checker must tell them apart."""
    async with private_server(folder) as server:
        for is_broken in (False, True):
            name = "broken" if is_broken else "unbroken"
            (folder / name).mkdir()
            verdict = await play(guard, await server.clone(name), folder / name, is_broken=is_broken)
            tell(f"--- the guard '{guard}', {name}\n{verdict.told}")
            if not verdict.is_sound:
                return False
    tell(f"NOTHING WAS FOUND, although '{guard}' was broken")
    return True


async def _report(folder: Path, *, kills: int, file: Path | None) -> bool:
    measured = []
    async with private_server(folder) as server:
        for number, kind in enumerate(KINDS):
            found = await kind(await Stage.of(server, folder, f"kind_{number}", kills))
            measured.append(found)
            tell(f"{found.kind}: {len(found.seconds)} times, {found.summary['max']:.2f} s at most")
    tell(table(measured))
    if file is not None:
        write_json(measured, file)
    return True


def _in_folder(work: Work, *, keep: bool) -> int:
    """Work in a folder that the server's user can enter; it is kept when something was wrong."""
    folder = Path(tempfile.mkdtemp(prefix="gtc-chaos-"))
    folder.chmod(0o711)
    tell(f"the logs are in {folder / 'logs'}, and stay there if something is wrong")

    async def done() -> bool:
        return await work(folder)

    is_well = asyncio.run(done())
    if is_well and not keep:
        shutil.rmtree(folder, ignore_errors=True)
    return 0 if is_well else 1


def tell(line: str) -> None:
    """Print at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--seed", type=int, default=SystemRandom().randrange(10**6), help="what chance is drawn from")
    parser.add_argument("--seconds", type=float, default=600, help="how long the torment lasts")
    parser.add_argument("--jobs-per-second", type=float, default=2.0, help="how many jobs are asked for")
    parser.add_argument("--minimum-kills", type=int, help="go on until there were so many; by default one in 3 seconds")
    parser.add_argument("--break", dest="guard", choices=[*Guard], help="see that the checker finds a broken guard")
    parser.add_argument("--report", action="store_true", help="measure how long recoveries take")
    parser.add_argument("--kills", type=int, default=50, help="of each kind, for the report")
    parser.add_argument("--keep", action="store_true", help="keep the folder with the logs in any case")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the report's figures there")
    options = parser.parse_args()
    if options.minimum_kills is None:
        options.minimum_kills = round(options.seconds / 3)
    return options


if __name__ == "__main__":
    sys.exit(main())
