"""Answers whose tags are made of their content: of questions to which the answers are not known to stay the same."""

from starlette.types import ASGIApp, Receive, Scope, Send

from graticule.serve.answers import (
    Answer,
    Collector,
    header_of,
    headers_of_all,
    is_known,
    send_not_modified,
    tag_of,
)
from graticule.serve.encodings import compressed, offered_encoding


class Revalidated:
    """Gives the answers of an application tags made of their content: who has one already is not sent it again."""

    def __init__(self, app: ASGIApp, cache_control: str) -> None:
        self._app = app
        self._headers = headers_of_all(cache_control)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request of HTTP; what is no GET or HEAD is passed on."""
        if scope["type"] != "http" or scope["method"] not in {"GET", "HEAD"}:
            await self._app(scope, receive, send)
            return
        is_head = scope["method"] == "HEAD"
        collector = Collector(send, self._headers, without_body=is_head)
        await self._app({**scope, "method": "GET"}, receive, collector)
        if (answer := collector.answer) is not None:
            await self._finish(answer, scope, send, is_head=is_head)

    async def _finish(self, answer: Answer, scope: Scope, send: Send, *, is_head: bool) -> None:
        if answer.status != 200:
            await answer.send(send, [], without_body=is_head)
            return
        tag = tag_of(answer.body)
        headers = [*self._headers, (b"etag", tag.encode())]
        if is_known(tag, header_of(scope, b"if-none-match")):
            await send_not_modified(send, headers)
        else:
            shown = await compressed(answer, offered_encoding(scope))
            await shown.send(send, headers, without_body=is_head)
