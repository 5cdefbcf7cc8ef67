"""From where a request comes when a reverse proxy stands in front, as far as that proxy is one of ours."""

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

Network = IPv4Network | IPv6Network
_Address = IPv4Address | IPv6Address

_SCHEMES: Final = frozenset({"http", "https"})


class TrustedProxies:
    """The addresses whose `X-Forwarded-For` and `X-Forwarded-Proto` are believed; by default none."""

    def __init__(self, networks: Sequence[Network] = ()) -> None:
        self._networks = tuple(networks)

    def __contains__(self, host: str) -> bool:
        address = _parse(host) if self._networks else None
        return address is not None and self._trusts(address)

    def client_of(self, peer: str, forwarded_for: str) -> str:
        """Return the address nearest to us that is no proxy of ours.

        Each proxy appends whom it was called by, so what stands to the left of that address was sent by a stranger. An
        entry that is no address ends the search at the proxy that wrote it.
        """
        nearest = peer
        for entry in reversed(forwarded_for.split(",")):
            address = _parse(_without_port(entry.strip()))
            if address is None:
                return nearest
            nearest = str(address)
            if not self._trusts(address):
                return nearest
        return nearest

    def _trusts(self, address: _Address) -> bool:
        return any(address in network for network in self._networks)


class ForwardedAddress:
    """The application behind trusted proxies: `client` and `scheme` of its requests are those of the caller."""

    def __init__(self, app: ASGIApp, proxies: TrustedProxies) -> None:
        self._app = app
        self._proxies = proxies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on as the proxy received it."""
        client = scope.get("client")
        if scope["type"] == "http" and client is not None and client[0] in self._proxies:
            headers = Headers(scope=scope)
            forwarded_for = ",".join(headers.getlist("x-forwarded-for"))
            if forwarded_for:
                scope["client"] = (self._proxies.client_of(client[0], forwarded_for), 0)
            scheme = ",".join(headers.getlist("x-forwarded-proto")).rpartition(",")[2].strip().lower()
            if scheme in _SCHEMES:
                scope["scheme"] = scheme
        await self._app(scope, receive, send)


def _parse(text: str) -> _Address | None:
    try:
        address = ip_address(text)
    except ValueError:
        return None
    return address.ipv4_mapped or address if isinstance(address, IPv6Address) else address


def _without_port(entry: str) -> str:
    """Drop a port, which some proxies write: `192.0.2.1:50000`, `[2001:db8::1]:50000`."""
    if entry.startswith("["):
        return entry[1:].partition("]")[0]
    return entry.partition(":")[0] if entry.count(":") == 1 else entry
