"""A stand-in for a process behind the gateway."""

import asyncio
from collections.abc import AsyncIterator

from fastapi import FastAPI, Request, Response
from fastapi.responses import StreamingResponse


class Target:
    """A process behind the gateway that notes what reaches it."""

    def __init__(self) -> None:
        self.app = FastAPI()
        self.app.add_api_route("/{path:path}", self.answer, methods=["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"])
        self.requests: list[Request] = []
        self.bodies: list[bytes] = []
        self.gone = asyncio.Event()
        self.more = asyncio.Event()
        self.address = ""

    async def answer(self, request: Request, path: str) -> Response:
        self.requests.append(request)
        if path.endswith("events"):
            return StreamingResponse(self._events(), media_type="text/event-stream")
        self.bodies.append(await request.body())
        if path.endswith("moved"):
            return Response(status_code=307, headers={"Location": request.query_params["to"]})
        headers = {
            "Set-Cookie": "a=b",
            "X-Frame-Options": "ALLOWALL",
            "Cache-Control": "public, max-age=600",
            "Server": "secret/1.0",
            "Connection": "X-Secret",
            "X-Secret": "1",
            "ETag": '"e"',
            "WWW-Authenticate": "Basic",
        }
        status = {"teapot": 418, "stranger": 401}.get(path.rpartition("/")[2], 200)
        return Response(b"<p>hello</p>", status, headers, media_type="text/html")

    async def _events(self) -> AsyncIterator[bytes]:
        try:
            yield b"data: 1\n\n"
            await self.more.wait()
            yield b"data: 2\n\n"
            await asyncio.Event().wait()
        finally:
            self.gone.set()
