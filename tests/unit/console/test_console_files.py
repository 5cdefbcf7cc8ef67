"""The console's files: a page for browsers, files that never change, and nothing else of the machine."""

import gzip
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import httpx
import pytest
from fastapi import FastAPI
from starlette.types import Message

from graticule.config import Settings
from graticule.console.files import FOLDER, NO_PAGES, content_security_policy
from graticule.gateway.app import create_gateway

NO_DATABASE = "postgresql://nobody@127.0.0.1:1/nowhere"
HTML = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}  # as browsers ask for pages
PAGE = b"<!doctype html><title>Graticule</title>"
SCRIPT = "console.log('hello')"


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """Give a folder as the build leaves it, beside something that is none of anybody's business."""
    folder = tmp_path / "bundle"
    (folder / "static" / "hashed").mkdir(parents=True)
    (folder / "index.html").write_bytes(PAGE)
    (folder / "static" / "hashed" / "index-Bx3_9-aZ.js").write_text(SCRIPT)
    (folder / "static" / "hashed" / "index-D0cKs1zE.css").write_text("a{}")
    (folder / "static" / "icon.svg").write_text("<svg/>")
    (tmp_path / "secret.txt").write_text("treasure")
    (folder / "static" / "link.txt").symlink_to(tmp_path / "secret.txt")
    return folder


def gateway(folder: Path, **settings: Any) -> FastAPI:
    return create_gateway(Settings(service_key="x" * 40, **settings), NO_DATABASE, console_folder=folder)


@pytest.fixture
async def client(bundle: Path) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(gateway(bundle), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://gateway") as client:
        yield client


@pytest.mark.parametrize("path", ["/", "/reviews", "/jobs/0f/nodes", "/assets/a%20b", "/apis", "/a.b", "/é"])
async def test_a_browser_is_given_the_page_wherever_the_console_may_be(client: httpx.AsyncClient, path: str) -> None:
    answer = await client.get(path, headers=HTML)
    assert (answer.status_code, answer.content) == (200, PAGE)
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["cache-control"] == "no-cache"
    assert answer.headers["vary"] == "Accept"
    assert answer.headers["x-frame-options"] == "DENY"
    assert answer.headers["x-content-type-options"] == "nosniff"


async def test_the_page_loads_what_is_ours_and_runs_nothing_that_stands_in_it(client: httpx.AsyncClient) -> None:
    policy = (await client.get("/", headers=HTML)).headers["content-security-policy"]
    told = {name: sources for name, *sources in (part.split() for part in policy.split(";"))}
    assert told["default-src"] == ["'none'"]
    assert told["script-src"] == told["style-src"] == told["connect-src"] == told["worker-src"] == ["'self'"]
    assert told["img-src"] == ["'self'", "data:"]
    assert told["frame-ancestors"] == told["base-uri"] == told["form-action"] == ["'none'"]
    assert "unsafe" not in policy


async def test_a_file_is_given_compressed_where_it_is_and_the_browser_takes_it(
    bundle: Path, client: httpx.AsyncClient
) -> None:
    (bundle / "static" / "hashed" / "index-Bx3_9-aZ.js.gz").write_bytes(gzip.compress(SCRIPT.encode()))
    for accepted, encoding in {"gzip, deflate, br": "gzip", "br": None, "identity": None, "gzip;q=0": None}.items():
        answer = await client.get("/static/hashed/index-Bx3_9-aZ.js", headers={"Accept-Encoding": accepted})
        assert (answer.status_code, answer.text) == (200, SCRIPT)
        assert answer.headers.get("content-encoding") == encoding
        assert answer.headers["content-type"].startswith("text/javascript")
        assert answer.headers["vary"] == "Accept-Encoding"
        assert "immutable" in answer.headers["cache-control"]
    style = await client.get("/static/hashed/index-D0cKs1zE.css", headers={"Accept-Encoding": "gzip"})
    assert (style.text, style.headers.get("content-encoding")) == ("a{}", None)


async def test_programs_find_what_they_found_before(client: httpx.AsyncClient) -> None:
    for accept in ("*/*", "application/json", "", "text/plain"):
        answer = await client.get("/", headers={"Accept": accept})
        assert answer.json()["name"] == "Graticule"
        assert answer.headers["vary"] == "Accept"
        missing = await client.get("/reviews", headers={"Accept": accept})
        assert (missing.status_code, missing.json()["code"]) == (404, "not_found")
    for method in ("POST", "PUT", "DELETE"):
        assert (await client.request(method, "/reviews", headers=HTML)).status_code == 401


@pytest.mark.parametrize("first", sorted(NO_PAGES))
async def test_what_is_no_page_is_answered_as_before_also_to_browsers(client: httpx.AsyncClient, first: str) -> None:
    answer = await client.get(f"/{first}/nowhere", headers=HTML)
    expected = (403, "permission_denied") if first == "storage" else (404, "not_found")  # there, addresses are signed
    assert (answer.status_code, answer.json()["code"]) == expected


async def test_a_route_that_takes_another_method_says_so_also_to_browsers(client: httpx.AsyncClient) -> None:
    answer = await client.get("/api/platform/submit", headers=HTML)
    assert (answer.status_code, answer.json()["code"]) == (405, "method_not_allowed")


async def test_a_file_with_its_hash_in_its_name_is_kept_for_ever(client: httpx.AsyncClient) -> None:
    answer = await client.get("/static/hashed/index-Bx3_9-aZ.js")
    assert (answer.status_code, answer.text) == (200, SCRIPT)
    assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert answer.headers["content-type"].split(";")[0] in {"text/javascript", "application/javascript"}
    assert (await client.get("/static/hashed/index-D0cKs1zE.css")).headers["content-type"].startswith("text/css")
    again = await client.get("/static/hashed/index-Bx3_9-aZ.js", headers={"If-None-Match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    head = await client.head("/static/hashed/index-Bx3_9-aZ.js")
    assert (head.status_code, head.content) == (200, b"")
    icon = await client.get("/static/icon.svg")
    assert (icon.headers["cache-control"], icon.headers["content-type"]) == ("no-cache", "image/svg+xml")


OUTSIDE = [
    *("../index.html", "../../secret.txt", "..%2f..%2fsecret.txt", "%2e%2e/%2e%2e/secret.txt", "/etc/passwd"),
    *("//etc/passwd", "%2fetc%2fpasswd", "link.txt", "a%00b", "", ".", "a/" * 2000, "x" * 5000, "\\..\\secret.txt"),
]


@pytest.mark.parametrize("path", OUTSIDE)
async def test_nothing_outside_of_the_folder_is_given_out(bundle: Path, path: str) -> None:
    status, body = await ask_raw(gateway(bundle), f"/static/{path}")
    assert status == 404
    assert b"not_found" in body
    assert b"treasure" not in body


async def ask_raw(app: FastAPI, path: str) -> tuple[int, bytes]:
    """Ask for exactly this address, which a client would tidy up."""
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [],
        "client": ("test", 1),
        "server": ("gateway", 80),
    }
    await app(scope, receive, send)
    return int(sent[0]["status"]), b"".join(message.get("body", b"") for message in sent)


async def test_an_installation_without_the_bundle_says_what_to_do(tmp_path: Path) -> None:
    transport = httpx.ASGITransport(gateway(tmp_path / "nowhere"), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://gateway") as client:
        for path in ("/", "/reviews"):
            answer = await client.get(path, headers=HTML)
            assert answer.status_code == 503
            assert "make setup" in answer.json()["hint"]
        assert (await client.get("/")).json()["name"] == "Graticule"
        assert (await client.get("/static/index.js")).status_code == 404


def test_the_bundle_is_looked_for_where_the_build_puts_it() -> None:
    import graticule

    assert Path(graticule.__file__).parent / "console" / "static" == FOLDER


# The base map


@pytest.mark.parametrize(
    ("template", "origin"),
    [
        ("https://tiles.example/{z}/{x}/{y}.png", "https://tiles.example"),
        ("http://10.0.0.1:8080/a/{z}/{y}/{x}?key=a;b", "http://10.0.0.1:8080"),
    ],
)
def test_tiles_of_a_base_map_may_be_loaded_and_nothing_else_from_there(template: str, origin: str) -> None:
    told = content_security_policy(Settings(console_base_map=template).console_base_map)
    assert f"img-src 'self' data: {origin};" in told
    assert f"connect-src 'self' {origin};" in told
    assert told.count(origin) == 2
    assert told.replace(f" {origin}", "") == content_security_policy(None)


@pytest.mark.parametrize(
    "template",
    [
        "tiles.example/{z}/{x}/{y}.png",
        "ftp://tiles.example/{z}/{x}/{y}.png",
        "javascript:alert(1)//{z}/{x}/{y}",
        "https://tiles.example/{z}/{x}.png",
        "https://{s}.tiles.example/{z}/{x}/{y}.png",
        "https://user:password@tiles.example/{z}/{x}/{y}.png",
        "https://tiles.example; script-src */{z}/{x}/{y}.png",
        "https://tiles.example;script-src/{z}/{x}/{y}.png",
        "https://tiles.example/{z}/{x}/{y}.png\r\nX-Evil: 1",
        "https://tiles.example/{z}/{x}/{y} .png",
        "https:///{z}/{x}/{y}.png",
        "https://tiles.example/{z}/{x}/{y}" + "a" * 1024,
    ],
)
def test_what_is_no_address_of_tiles_is_refused(template: str) -> None:
    with pytest.raises(ValueError, match="console_base_map"):
        Settings(console_base_map=template)
