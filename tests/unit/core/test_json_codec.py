"""One rule for numbers in JSON, whoever writes or reads it."""

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
from tests.number_cases import NUMBERS

from graticule.core.json_codec import decode, encode, finite_number, named_number

SOURCE = Path(__file__).parents[3] / "src" / "graticule"
# Who writes no values of others: hashes whose text must never change, what people type or read, and other formats.
OWN_JSON = {
    "cli": "what people type and read",
    "client": "a body of the caller",
    "core/asset_names.py": "an id",
    "core/columns.py": "SQL of our own defaults",
    "dag/inputs.py": "an id, and texts of our own",
    "dag/graph.py": "a hash",
    "dag/compiling/declarations.py": "texts of our own",
    "dag/language/filters.py": "text of a template",
    "embedded/credentials.py": "a file of our own",
    "gateway/forwarding.py": "a body of the caller, NaN and all, which the orchestrator refuses",
    "http/json_bodies.py": "a body of the caller, looked at and passed on as it is",
    "handlers/vector": "GeoJSON, GeoParquet and PMTiles",
    "serve/features/cql2.py": "a filter of the caller, checked",
    "serve/tiles/dependencies.py": "a parameter of the caller, checked",
    "services/issuer_documents.py": "a document of an identity provider",
    "services/webhooks.py": "a body of our own",
    "worker/outcome.py": "a check for NaN",
}


@pytest.mark.parametrize("value", NUMBERS.values(), ids=NUMBERS)
def test_a_number_survives(value: float) -> None:
    text = encode({"value": value})
    assert decode(text) == {"value": value}
    assert type(decode(text)["value"]) is type(value)
    assert json.loads(text) == {"value": value}  # other readers see the same


@pytest.mark.parametrize("value", NUMBERS.values(), ids=NUMBERS)
def test_what_jsonb_makes_of_a_number_is_read_as_the_same(value: float) -> None:
    digits = f"{value:d}" if isinstance(value, int) else format(float(value), "f").rstrip("0").rstrip(".")
    assert decode(digits) == value or math.isclose(decode(digits), value, rel_tol=1e-15, abs_tol=1e-6)
    encode(decode(digits))


@pytest.mark.parametrize("value", [2**64, -(2**63) - 1, 10**39, -(10**308)])
def test_an_integer_beyond_64_bits_is_a_float(value: int) -> None:
    found = decode(encode({"deep": [{"in": (1, value)}]}))["deep"][0]["in"]
    assert found == [1, float(value)]
    assert isinstance(found[1], float)


@pytest.mark.parametrize("value", [10**400, object()])
def test_what_has_no_form_in_json_is_refused(value: Any) -> None:
    with pytest.raises(TypeError):
        encode([value])


def test_values_of_data_that_are_no_numbers_have_names_and_computed_ones_are_missing() -> None:
    assert [named_number(each) for each in (math.nan, math.inf, -math.inf, 5.0, 2**64 - 1, None)] == [
        *("nan", "inf", "-inf", 5.0, 2**64 - 1, None)
    ]
    assert [finite_number(each) for each in (math.nan, -math.inf, 1e308, 7, None)] == [None, None, 1e308, 7, None]


def test_nobody_reads_or_writes_json_in_another_way() -> None:
    pattern = re.compile(r"\b(orjson|json)\.(dumps|loads)\b")
    found = {
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        if path.name != "json_codec.py" and pattern.search(path.read_text(encoding="utf-8"))
    }
    assert {path for path in found if not path.startswith(tuple(OWN_JSON))} == set()
