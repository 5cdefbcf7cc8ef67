"""The page on the storage tells what is there."""

import re
from datetime import timedelta

import pytest
from tests.unit.docs.pages import DOCS, codes, page, table

from graticule.config import Settings
from graticule.core.errors import InvalidInput
from graticule.serve.tiles.signed_names import KEPT_SECONDS
from graticule.services.retention import UNFINISHED_AFTER
from graticule.storage.azure import READ_SECONDS
from graticule.storage.azure_accounts import KEY_SECONDS
from graticule.storage.azure_blocks import AT_ONCE, BLOCK_BYTES
from graticule.storage.local import LocalStorage
from graticule.storage.options import OUTPUTS, StorageOptions
from graticule.storage.paths import LONGEST_PATH, scratch_name
from graticule.storage.pieces import PIECE_BYTES
from graticule.storage.protocol import Storage
from graticule.storage.signing import LONGEST_SECONDS, PREFIX

PAGE = page("storage.md")


def test_every_method_is_told() -> None:
    told = {name for row in table(PAGE, "| method |") for name in codes(row[0])}
    assert told == {name for name in vars(Storage) if not name.startswith("_")} - {"options", "silver"}


def test_the_containers_are_ours_or_not_as_it_says() -> None:
    for names, whose, _ in table(PAGE, "| container |"):
        for name in codes(names):
            assert StorageOptions().is_ours(name) is not whose.startswith("the partners"), name
    assert OUTPUTS in codes(PAGE)


@pytest.mark.parametrize("refused", ["a/../b", "http://host/a", "/vsizip/a", "a/b\\c", "https://u:p@host/a", "vrt://a"])
def test_what_it_says_is_refused_is_refused(refused: str) -> None:
    with pytest.raises(InvalidInput):
        LocalStorage(DOCS).source(refused)


def test_its_numbers_are_those_of_the_code() -> None:
    assert f"more\nthan {LONGEST_PATH} characters" in PAGE
    assert PIECE_BYTES == 1024 * 1024
    assert "1 MiB" in PAGE
    assert LONGEST_SECONDS == 7 * 24 * 3600
    assert (READ_SECONDS, KEY_SECONDS, KEPT_SECONDS) == (3600, 4 * 3600, 1800)
    assert (BLOCK_BYTES, AT_ONCE) == (8 * 1024 * 1024, 4)
    assert timedelta(days=1) == UNFINISHED_AFTER
    assert f"{PREFIX}/<path>" in PAGE
    assert scratch_name("0123456789abcdef" * 2) == "89abcdef"
    assert scratch_name("0123456789abcdef" * 4) == "0123456789abcdef" * 4


def test_its_settings_exist() -> None:
    named = {word for each in codes(PAGE) for word in re.split(r"[\s<>=]+", each)}
    settings = {word.lower().removeprefix("graticule_") for word in named if word.startswith("GRATICULE_")}
    assert settings <= set(Settings.model_fields)
