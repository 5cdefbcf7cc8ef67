"""Every link of every page leads to a file of the project, and to a heading that it has."""

from pathlib import Path

import pytest
from tests.unit.docs.pages import anchors, links
from tests.unit.docs.snippets import PROJECT, pages


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(PROJECT)))
def test_links_lead_somewhere(page: Path) -> None:
    for link in links(page.read_text(encoding="utf-8")):
        file, _, anchor = link.partition("#")
        target = page.parent / file if file else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target.read_text(encoding="utf-8")), link
