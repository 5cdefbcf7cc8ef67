"""How many examples of a property are tried: all that it asks for by `make test-thorough`, and otherwise a share.

Continuous integration tries the same ones in each run; who looks for new ones has the time for all of them.
"""

import os
from typing import Final

import hypothesis

ALL: Final = 100  # of a property that does not say how many
SHARE: Final = 0.4


def choose(*, is_thorough: bool) -> None:
    """Say once, before the tests are read, how many there are to be."""
    # A busy machine is no failure, and a run of continuous integration can be repeated to the letter.
    hypothesis.settings.register_profile(
        "graticule",
        deadline=None,
        derandomize="CI" in os.environ,
        max_examples=ALL if is_thorough else round(ALL * SHARE),
    )
    hypothesis.settings.load_profile("graticule")


def examples(count: int) -> int:
    """Give how many are tried of a property that asks for so many."""
    return count * hypothesis.settings().max_examples // ALL
