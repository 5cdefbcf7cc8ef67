"""The previous release is taken out of the history; a clone without it is told how to get it."""

from pathlib import Path

import pytest
from tests.upgrade.previous_release import unpack


def test_a_history_without_the_previous_release_fails_and_says_how_to_mend_it(tmp_path: Path) -> None:
    with pytest.raises(pytest.fail.Exception, match="git fetch --unshallow"):
        unpack(tmp_path, commit="0" * 40)
