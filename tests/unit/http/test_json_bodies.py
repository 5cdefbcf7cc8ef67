"""A JSON body that readers take differently is refused before anything is done with it."""

import json
from collections.abc import AsyncIterator
from typing import Annotated, Any

import httpx
import pytest
from fastapi import Body, FastAPI, Request
from pydantic import JsonValue

from graticule.http import json_bodies
from graticule.http.application import create_application
from graticule.http.json_bodies import REPORTS

JSON = {"Content-Type": "application/json"}
NO_NUMBERS = ("NaN", "Infinity", "-Infinity", "[NaN]", '{"a": {"b": [1, -Infinity]}}', '{"a":NaN}')
TOO_LARGE = ("1e999", "-1e999", '{"a": [1.0e400]}', "1" * 400 + ".5")
TWICE = {
    '{"a": 1, "a": 2}': "'a' twice",
    '{"a": 1, "a": 1}': "'a' twice",
    '{"a": 1, "\\u0061": 2}': "'a' twice",
    '[{"x": {"a": 1, "b": 2, "a": 3}}]': "'a' twice",
    '{"": 1, "": 2}': "'' twice",
    '{"\\ud800": 1, "\\ud800": 2}': "'\\ud800' twice",
}


@pytest.fixture
def app() -> FastAPI:
    app = create_application(process="test", title="Test", checks={}, max_body_bytes=2**20)

    @app.post("/values")
    async def take(value: Annotated[JsonValue, Body()]) -> str:
        return repr(value)

    @app.post("/raw")
    async def take_raw(request: Request) -> int:
        return len(await request.body())

    app.add_api_route(f"{REPORTS}task-result", take, methods=["POST"])
    return app


@pytest.fixture
async def client(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        yield client


def refusal(answer: httpx.Response) -> str:
    assert (answer.status_code, answer.headers["content-type"]) == (400, "application/problem+json"), answer.text
    problem: dict[str, Any] = answer.json()
    assert (problem["code"], problem["status"]) == ("malformed_request", 400)
    return str(problem["detail"])


@pytest.mark.parametrize(
    ("text", "why"),
    {**dict.fromkeys(NO_NUMBERS, "no number"), **dict.fromkeys(TOO_LARGE, "too large"), **TWICE}.items(),
)
@pytest.mark.parametrize("path", ["/values", "/raw"])
@pytest.mark.parametrize("kind", ["application/json", "Application/JSON; charset=utf-8", "application/geo+json"])
async def test_an_ambiguous_body_is_refused(
    client: httpx.AsyncClient, text: str, why: str, path: str, kind: str
) -> None:
    assert why in refusal(await client.post(path, content=text, headers={"Content-Type": kind}))


@pytest.mark.parametrize("path", ["/values", "/raw"])
async def test_no_depth_hides_a_name_that_comes_twice(client: httpx.AsyncClient, path: str) -> None:
    """Python gives up at some depth; the check must not be the first to, and let the body pass."""
    for depth in [*range(800, 1000, 5), 2000, 10_000]:
        text = '{"a": 1, "a": 2, "b": ' + '{"b": ' * depth + "1" + "}" * depth + "}"
        told = refusal(await client.post(path, content=text, headers=JSON))
        assert "'a' twice" in told or told == "The body is not valid JSON: it is nested too deeply.", depth


@pytest.mark.parametrize(("number", "text"), [("NaN", "nan"), ("Infinity", "inf"), ("-Infinity", "-inf")])
async def test_a_refusal_says_how_the_number_can_be_written(client: httpx.AsyncClient, number: str, text: str) -> None:
    detail = f'The body is not valid JSON: JSON has no number {number}; write the text "{text}" or null.'
    assert refusal(await client.post("/values", content=f'{{"nodata": {number}}}', headers=JSON)) == detail


async def test_a_body_in_pieces_is_looked_at_as_a_whole(client: httpx.AsyncClient) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for piece in (b'{"rev', b'ision": 1, "revisi', b'on": 2}'):
            yield piece

    assert "'revision' twice" in refusal(await client.post("/values", content=pieces(), headers=JSON))


@pytest.mark.parametrize(
    "value", [None, 1, -0.5, 1e308, 5e-324, 2**70, [{"a": 1}, {"a": 1}], {"a": {"a": "NaN"}}, "1e999"]
)
async def test_what_is_unambiguous_is_taken_as_it_is(client: httpx.AsyncClient, value: Any) -> None:
    answer = await client.post("/values", content=json.dumps(value), headers=JSON)
    assert (answer.status_code, answer.json()) == (200, repr(value))


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "\xff", '{"a" 1}', "9" * 5000])
async def test_what_is_no_json_is_refused_by_its_reader(client: httpx.AsyncClient, text: str) -> None:
    answer = await client.post("/values", content=text.encode("latin-1"), headers=JSON)
    assert answer.status_code in {400, 422}
    assert answer.headers["content-type"] == "application/problem+json"


TOO_ELABORATE = {
    "names": "{" + ",".join(f'"{number:x}":0' for number in range(10_486)) + "}",
    "numbers": "[" + ",".join(["1"] * 52_430) + "]",
    "objects in each other": '{"a":' * 10_486 + "1" + "}" * 10_486,
    "empty objects": "[" + ",".join(["{}"] * 52_430) + "]",
}


@pytest.mark.parametrize("text", TOO_ELABORATE.values(), ids=TOO_ELABORATE)
async def test_a_body_of_too_many_values_is_refused_before_it_is_parsed(
    client: httpx.AsyncClient, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[bytes] = []
    monkeypatch.setattr(json_bodies, "check_json", parsed.append)
    answer = await client.post("/values", content=text, headers=JSON)
    problem = answer.json()
    assert (answer.status_code, problem["code"], parsed) == (413, "content_too_large", [])
    assert problem["detail"] == (
        "The JSON body has too many values: it may have at most 10485 colons and 52428 commas here. Send less at once."
    )


@pytest.mark.parametrize(
    "value",
    [
        {"intersects": {"type": "Polygon", "coordinates": [[[number / 7, 1.5] for number in range(10_000)]]}},
        {"items": [{f"input_{number}": "x" for number in range(100)} for _ in range(100)]},
        {"text": "x" * 1_000_000},
    ],
    ids=["a shape of 10,000 vertices", "a hundred jobs", "a long text"],
)
async def test_large_bodies_of_ordinary_requests_are_taken(client: httpx.AsyncClient, value: Any) -> None:
    answer = await client.post("/values", json=value)
    assert (answer.status_code, answer.json()) == (200, repr(value))


async def test_other_bodies_and_reports_of_workers_are_not_looked_at(client: httpx.AsyncClient) -> None:
    assert (await client.post("/raw", content="NaN", headers={"Content-Type": "text/yaml"})).json() == 3
    report = await client.post(f"{REPORTS}task-result", content='{"mean": NaN}', headers=JSON)
    assert (report.status_code, report.json()) == (200, "{'mean': nan}")
