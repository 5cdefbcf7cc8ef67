"""POST to addresses that others have named: no request reaches what is private, whatever its name resolves to.

The name is resolved once, every address that it has is checked, and the connection goes to a checked address itself:
a name that resolves otherwise a moment later gains nothing. Redirects are not followed, and no proxy is asked.
"""

import asyncio
import contextlib
import socket
import ssl
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from functools import cached_property
from ipaddress import ip_address
from typing import Any, Final

import httpcore

from graticule.core.errors import InvalidInput
from graticule.services.callback_targets import Address, Allowance, Target, literal_address, parse_target

CONNECT_SECONDS: Final = 5.0
ALL_SECONDS: Final = 15.0
MOST_ANSWER_BYTES: Final = 4096

Resolver = Callable[[str], Awaitable[list[str]]]


class RequestFailed(Exception):
    """No answer came. The text is for operators; it tells neither the URL nor what was found behind a private one."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What was answered; the rest of the answer is nobody's concern."""

    status: int
    retry_after: str | None = None


class SafeHttp:
    """Sends requests to public addresses, and to those that are allowed besides."""

    def __init__(
        self,
        allowance: Allowance,
        *,
        resolve: Resolver | None = None,
        tls: ssl.SSLContext | None = None,
        seconds: float = ALL_SECONDS,
    ) -> None:
        self._allowance = allowance
        self._resolve = resolve or resolved
        self._given_tls = tls
        self._seconds = seconds

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        return self._given_tls or httpcore.default_ssl_context()

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """Send a body and give the answer's status, or raise `RequestFailed`."""
        answers: list[Answer] = []  # the status decides: what comes, or does not come, after it changes nothing
        try:
            async with asyncio.timeout(self._seconds):
                await self._exchange(parse_target(url), headers, body, answers)
        except (TimeoutError, InvalidInput, httpcore.TimeoutException, *_BROKEN) as error:
            if not answers:
                raise RequestFailed(self._told(error)) from error
        return answers[0]

    async def _exchange(self, target: Target, headers: Mapping[str, str], body: bytes, answers: list[Answer]) -> None:
        url = httpcore.URL(scheme=target.scheme, host=target.host, port=target.port, target=target.path)
        sent = {"Host": target.authority, "Connection": "close", **headers}
        more = {"timeout": {"connect": CONNECT_SECONDS}}
        async with (
            aclosing(_CheckedNetwork(self._allowance, self._resolve)) as network,
            httpcore.AsyncConnectionPool(ssl_context=self._tls_for(target), network_backend=network) as pool,
            pool.stream("POST", url, headers=list(sent.items()), content=body, extensions=more) as response,
        ):
            answers.append(_answer(response))
            await _read_some(response)

    def _tls_for(self, target: Target) -> ssl.SSLContext | None:
        return self._tls if target.scheme == "https" else None

    def _told(self, error: Exception) -> str:
        match error:
            case InvalidInput() | _Refused():
                return str(error)
            case httpcore.ConnectTimeout():
                return f"no connection within {CONNECT_SECONDS:g} s"
            case TimeoutError() | httpcore.TimeoutException():
                return f"no answer within {self._seconds:g} s"
            case httpcore.ConnectError():
                return _told_connect(error)
            case httpcore.ProtocolError():
                return "no valid HTTP answer came"
        return "the connection was lost"


class _Refused(httpcore.ConnectError):
    """The name leads nowhere, or where no callback may go."""


_BROKEN: Final = (httpcore.NetworkError, httpcore.ProtocolError)


class _CheckedNetwork(httpcore.AsyncNetworkBackend):
    """Connects to an address that was checked, and never to a name."""

    def __init__(self, allowance: Allowance, resolve: Resolver) -> None:
        self._allowance = allowance
        self._resolve = resolve
        self._network = httpcore.AnyIOBackend()
        self._opened: list[httpcore.AsyncNetworkStream] = []

    async def aclose(self) -> None:
        """Close what was opened: the library forgets a connection whose TLS was cut off half-way."""
        for stream in self._opened:
            await stream.aclose()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the library's signature
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Resolve a host, check all its addresses, and connect to the first that answers."""
        try:
            async with asyncio.timeout(timeout):
                self._opened.append(await self._connect(await self._checked(host), port))
                return self._opened[-1]
        except TimeoutError as error:
            raise httpcore.ConnectTimeout from error

    async def _checked(self, host: str) -> list[Address]:
        literal = literal_address(host)
        addresses = [literal] if literal is not None else [ip_address(each) for each in await self._found(host)]
        if not all(self._allowance.admits(host, address) for address in addresses):
            raise _Refused("the address is private")
        return addresses

    async def _found(self, host: str) -> list[str]:
        with contextlib.suppress(OSError):
            if found := await self._resolve(host):
                return found
        raise _Refused("the host name cannot be resolved")

    async def _connect(self, addresses: list[Address], port: int) -> httpcore.AsyncNetworkStream:
        for address in addresses[:-1]:
            with contextlib.suppress(httpcore.ConnectError):
                return await self._network.connect_tcp(str(address), port)
        return await self._network.connect_tcp(str(addresses[-1]), port)


async def resolved(host: str) -> list[str]:
    """Give the addresses of a name, at least one.

    A thread of its own asks: a name server that keeps silent holds up neither those who need the loop's threads nor
    the end of the process.
    """
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[list[str]] = loop.create_future()

    def give(found: list[str] | OSError) -> None:
        if answer.done():  # nobody waits any more
            return
        if isinstance(found, OSError):
            answer.set_exception(found)
        else:
            answer.set_result(found)

    def ask() -> None:
        found = _addresses(host)
        with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(give, found)

    threading.Thread(target=ask, name="callback-resolver", daemon=True).start()
    return await answer


def _addresses(host: str) -> list[str] | OSError:
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError as error:
        return error
    except UnicodeError:  # of its encoding of names
        return OSError("not a name")
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


def _answer(response: httpcore.Response) -> Answer:
    given = [value for name, value in response.headers if name.lower() == b"retry-after"]
    return Answer(response.status, given[0].decode("latin-1") if given else None)


async def _read_some(response: httpcore.Response) -> None:
    """Let a receiver finish what it says, if that is short: it would take a cut connection for an error."""
    size = 0
    async with aclosing(response.aiter_stream()) as chunks:  # type: ignore[type-var]  # an async generator can be closed
        async for chunk in chunks:
            size += len(chunk)
            if size >= MOST_ANSWER_BYTES:
                return


def _told_connect(error: httpcore.ConnectError) -> str:
    causes = list(_causes(error))
    if any(isinstance(cause, ssl.SSLCertVerificationError) for cause in causes):
        return "the TLS certificate is not valid for this host"
    if any(isinstance(cause, ssl.SSLError) for cause in causes):
        return "TLS could not be agreed on"
    return "the host cannot be connected to"


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
