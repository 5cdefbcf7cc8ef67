"""What goes in comes out: made-up tables in every format, through all steps, and asked for as a client does."""

import os
import re
import shutil
from typing import Any

import pytest
import shapely
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.integration.handlers.vector.ingesting import Ingestion, Loaded, original
from tests.integration.handlers.vector.tables import Table, promoted, tables
from tests.integration.handlers.vector.written import FORMATS, Format

# Few in each run of all tests; ROUND_TRIPS=200 looks closer.
EXAMPLES = int(os.environ.get("ROUND_TRIPS", "4"))
PHASES = [Phase.explicit, Phase.generate]  # to make a failing table smaller takes minutes
NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: type(form).__name__)
@pytest.mark.timeout(3600 if "ROUND_TRIPS" in os.environ else 120)
def test_what_goes_in_comes_out(ingestion: Ingestion, form: Format) -> None:
    @settings(max_examples=EXAMPLES, phases=PHASES, suppress_health_check=list(HealthCheck))
    @given(tables(form.able), st.sampled_from([None, 1, 3]))
    def run(table: Table, rows_per_chunk: int | None) -> None:
        file = ingestion.new_file(form.ending)
        form.write(file, table)
        try:
            loaded = ingestion.load(file, rows_per_chunk=rows_per_chunk, **form.options)
            check(form, table, loaded)
        finally:
            ingestion.rows.forget()
            shutil.rmtree(file.parent)

    run()


def check(form: Format, table: Table, loaded: Loaded) -> None:
    """Compare a table with what was served."""
    assert [feature["id"] for feature in loaded.features] == list(range(1, len(table.shapes) + 1))
    check_shapes(table, loaded)
    own = [column for column in loaded.columns if form.is_own(original(column))]
    check_names(table, own)
    for column, made in zip(table.columns, own, strict=True):
        expected = form.expected(column)
        assert made["type"] in expected.types, (column, made)
        found = loaded.values(made["name"])
        for value, seen in zip(expected.values, found, strict=True):
            assert form.is_same(column.kind, value, seen), (column, made, value, seen)


def check_shapes(table: Table, loaded: Loaded) -> None:
    for sent, found in zip(map(promoted, table.shapes), loaded.shapes, strict=True):
        if sent is None or found is None:
            assert sent is found
            continue
        assert found.has_z == table.has_z
        assert shapely.equals_exact(sent.normalize(), found.normalize(), 1e-7), (sent, found)
        assert shapely.get_coordinates(sent.normalize(), include_z=table.has_z) == pytest.approx(
            shapely.get_coordinates(found.normalize(), include_z=table.has_z), abs=1e-7
        )


def check_names(table: Table, columns: list[dict[str, Any]]) -> None:
    """Each column has a plain name of its own, and tells the one that it came with."""
    names = [column["name"] for column in columns]
    assert all(NAME.fullmatch(name) for name in names), names
    assert len({*names, "fid", "geom"}) == len(names) + 2
    assert [original(column) for column in columns] == [column.name for column in table.columns]
