"""Requests seem to come to the configured address, whatever a proxy made of them."""

import httpx
import pytest
from fastapi import FastAPI, Request

from graticule.serve.addresses import PublicAddress


def application() -> FastAPI:
    inner = FastAPI()

    @inner.get("/there")
    def there(request: Request) -> dict[str, str]:
        return {"url": str(request.url_for("there")), "root": request.scope["root_path"]}

    outer = FastAPI()

    @outer.get("/here")
    def here(request: Request) -> dict[str, str]:
        return {"url": str(request.url_for("here")), "base": str(request.base_url)}

    outer.mount("/inner", inner)
    return outer


@pytest.mark.parametrize(
    ("address", "asked", "base"),
    [
        ("https://maps.example.org", "/here", "https://maps.example.org/"),
        ("https://maps.example.org/", "/here", "https://maps.example.org/"),
        ("https://maps.example.org/geo/", "/here", "https://maps.example.org/geo/"),
        ("https://maps.example.org/geo", "/geo/here", "https://maps.example.org/geo/"),
        ("https://user:secret@maps.example.org:8443/geo", "/here", "https://maps.example.org:8443/geo/"),
    ],
)
async def test_links_lead_to_the_configured_address(address: str, asked: str, base: str) -> None:
    app = application()
    app.add_middleware(PublicAddress, address=address)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://inside:8003") as client:
        told = (await client.get(asked, headers={"Host": "evil.example.org"})).json()
        mounted = (await client.get(asked.replace("here", "inner/there"))).json()
    assert told == {"url": f"{base}here", "base": base}
    assert mounted["root"].endswith("/inner")


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("maps.example.org", 200),
        ("maps.example.org:8443", 200),
        ("127.0.0.1:8003", 200),
        ("[::1]:8003", 200),
        ("localhost", 200),
        ("serve:8003", 200),
        ("evil.example.org", 421),
        ("maps.example.org.evil.org", 421),
        ("MAPS.example.org", 200),
        ("1.2.3.evil", 421),
        ("//x", 200),
        ("[", 200),
    ],
)
async def test_no_page_of_another_name_can_read_what_is_for_the_house(host: str, status: int) -> None:
    app = application()
    app.add_middleware(PublicAddress, address="https://maps.example.org/", own_names_only=True)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://inside:8003") as client:
        assert (await client.get("/here", headers={"Host": host})).status_code == status
