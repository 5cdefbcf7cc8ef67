"""The page on tracing names the spans that there are, and the variables that turn them on."""

import re
from pathlib import Path

from tests.unit.docs.pages import page

import graticule
from graticule.telemetry.process import _ENDPOINTS

SOURCES = Path(graticule.__file__).parent


def test_every_span_by_name_is_on_the_page() -> None:
    text = page("tracing.md")
    written = "\n".join(path.read_text(encoding="utf-8") for path in SOURCES.rglob("*.py"))
    names = set(re.findall(r'\b(?:span|begun)\(\s*"([a-z_.]+)"', written))
    assert {"step", "callback", "gdal.render", "ogr.read"} <= names
    unnamed = {name for name in names if f"`{name}`" not in text}
    assert unnamed == {"request"}  # it is named by its route, when that is known


def test_the_variables_that_turn_it_on_are_on_the_page() -> None:
    assert all(f"`{name}`" in page("tracing.md") for name in (*_ENDPOINTS, "OTEL_SDK_DISABLED"))
