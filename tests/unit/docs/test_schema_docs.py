"""docs/reference/schema.md shows a model as it is, and the columns that are made of it."""

import inspect
import re

from tests.unit.docs.pages import blocks, page

from graticule.core.models.engine import Checkpoint
from graticule.schema.ddl import TableDdl

(SHOWN,) = blocks(page("schema.md"), "python")


def test_the_model_of_the_page_is_ours() -> None:
    ours = {line.strip() for line in inspect.getsource(Checkpoint).splitlines()}
    assert [line for line in SHOWN.splitlines() if line.split("  # ")[0].strip() not in ours] == []


def test_its_columns_are_made_as_the_page_says() -> None:
    casts = re.compile(r"::\w+(\(\d+\))?(\[\])?")
    table = casts.sub("", TableDdl(Checkpoint, "dagapp").create_table().create)
    told = re.findall(r"^ +(\w+):.*  # (.+)$", SHOWN, re.MULTILINE)
    assert len(told) == 5
    assert [name for name, column in told if f"{name} {column}" not in table] == []
