"""Layers and rasters in every projected CRS are accepted, and lie where PROJ has them, to 1e-7 degrees.

`make test` walks one CRS of each method, and some at random; `make test-thorough` all. `GRATICULE_CRS_SEED=<number>`
repeats a walk at random: what failed names its seed.
"""

import os
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest
from tests.unit.handlers.crs_walk.systems import epsg_codes, one_of_each_method, placed
from tests.unit.handlers.crs_walk.walking import Walk

SEED: Final = "GRATICULE_CRS_SEED"
RANDOM: Final = 100
SHORT_PARTS: Final = 10  # for several processes, and for the time that a test has
PARTS: Final = 200
MOST_WITHOUT_A_WAY: Final = 0.02  # of the CRSs of EPSG: methods that PROJ does not have


@pytest.mark.parametrize("part", range(SHORT_PARTS))
def test_one_of_each_method(part: int, tmp_path: Path) -> None:
    assert _faults(one_of_each_method()[part::SHORT_PARTS], tmp_path) == []


@pytest.mark.parametrize("part", range(SHORT_PARTS))
def test_some_at_random(part: int, tmp_path: Path) -> None:
    seed = int(os.environ.get(SEED, random.randrange(10**6)))
    print(f"{SEED}={seed}")  # noqa: T201 - pytest shows it with what failed
    names = random.Random(seed + part).sample(epsg_codes(), RANDOM // SHORT_PARTS)
    assert (seed, _faults(names, tmp_path)) == (seed, [])


@pytest.mark.thorough
@pytest.mark.parametrize("part", range(PARTS))
def test_all_of_epsg(part: int, tmp_path: Path) -> None:
    assert _faults(epsg_codes()[part::PARTS], tmp_path) == []


@pytest.mark.thorough
def test_few_are_left_out() -> None:
    names = random.Random(0).sample(epsg_codes(), 500)
    left_out = [name for name in names if placed(name) is None]
    assert len(left_out) <= MOST_WITHOUT_A_WAY * len(names)


def _faults(names: Sequence[str], folder: Path) -> list[str]:
    walk, faults = Walk(folder), []
    for name in names:
        system = placed(name)
        if system is not None:
            faults += walk.faults(system)
        else:
            faults += [f"{name} is not refused" for told in walk.refusals(name) if told is None]
    return faults
