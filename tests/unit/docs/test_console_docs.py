"""The page of the console shows each picture that the stories in the browser take, and no other."""

import re
from pathlib import Path

from tests.unit.docs.pages import DOCS, page

PICTURES = DOCS / "images/console"
STORIES = Path(__file__).parents[2] / "browser/console"


def test_the_pictures_are_those_that_the_stories_take() -> None:
    stories = "\n".join(path.read_text(encoding="utf-8") for path in STORIES.glob("test_*.py"))
    taken = set(re.findall(r'(?:light|dark|phone)="(\w+\.(?:png|jpg))"', stories))
    shown = set(re.findall(r"\(\.\./images/console/([\w.]+)\)", page("console.md")))
    assert shown == taken
    assert {path.name for path in PICTURES.iterdir()} == taken
