"""Browsers of the gateway: each keeps its own cookies, and says that it is the console when it is."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import httpx
from fastapi import FastAPI

from graticule.http.sessions import CONSOLE_HEADER, SESSION_COOKIE

CONSOLE: Final = {CONSOLE_HEADER: "1", "Sec-Fetch-Site": "same-origin"}
SESSION: Final = "/api/session"


class Browser:
    """One browser, and the console in it."""

    def __init__(self, app: FastAPI, client: httpx.AsyncClient) -> None:
        self.app = app
        self.client = client

    async def sign_in(self, key: str, status: int = 200) -> Any:
        answer = await self.client.post(SESSION, json={"api_key": key}, headers=CONSOLE)
        assert answer.status_code == status, answer.text
        return answer.json()

    async def session(self) -> Any:
        answer = await self.client.get(SESSION)
        assert answer.status_code == 200, answer.text
        return answer.json()

    @property
    def cookie(self) -> str:
        """Give the session that is kept."""
        (value,) = [each.value for each in self.client.cookies.jar if each.name.endswith(SESSION_COOKIE.name)]
        assert value is not None
        return value


@asynccontextmanager
async def browser_of(app: FastAPI, base_url: str = "http://gateway") -> AsyncIterator[Browser]:
    """Open a browser that reaches an application at this address."""
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url=base_url, timeout=60) as client:
        yield Browser(app, client)


def cookies_of(answer: httpx.Response) -> dict[str, tuple[str, set[str]]]:
    """Give the cookies that an answer sets: value and attributes, in small letters."""
    found = {}
    for line in answer.headers.get_list("set-cookie"):
        pair, *attributes = line.split("; ")
        name, _, value = pair.partition("=")
        found[name] = (value, {each.lower() for each in attributes})
    return found
