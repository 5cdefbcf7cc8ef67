"""Where callbacks may go: to public addresses, and to what the installation allows besides.

A URL is taken apart here, once and strictly. Nobody else parses it, so nobody can find another host in it.
"""

import re
import socket
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final
from urllib.parse import SplitResult, urlsplit

from graticule.core.errors import ConfigurationError, InvalidInput

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

LONGEST_URL: Final = 512
_PORTS: Final = {"http": 80, "https": 443}
_PLAIN: Final = re.compile(r"[!-\[\]-~]+")  # printable ASCII but the backslash, which some read as a slash
_LABEL: Final = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME: Final = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
_NUMBER_AT_END: Final = re.compile(r"(?:^|\.)(?:[0-9]+|0x[0-9a-f]*)$")  # such a host is an IPv4 address, or nothing
_LOCAL_NAME: Final = re.compile(r"(?:^|\.)localhost$")
_LOOPBACK: Final = IPv4Address("127.0.0.1")
_GLOBAL_UNICAST: Final = IPv6Network("2000::/3")
_NAT64: Final = IPv6Network("64:ff9b::/96")
# What this version of Python takes for public, and a metadata service that has a public address.
_NOT_PUBLIC: Final = tuple(
    map(ip_network, ("192.0.0.0/24", "192.88.99.0/24", "168.63.129.16/32", "2001::/23", "3fff::/20"))
)


@dataclass(frozen=True, slots=True)
class Target:
    """A URL, taken apart."""

    scheme: str
    host: str  # in lower case, without brackets and final dots
    port: int
    authority: str  # as the header Host has it
    path: str  # with the query


@dataclass(frozen=True, slots=True)
class Allowance:
    """Hosts and networks that callbacks may reach although they are private."""

    names: frozenset[str] = frozenset()
    networks: tuple[Network, ...] = ()

    def admits(self, host: str, address: Address) -> bool:
        """Tell whether a callback to this host may go to this address."""
        meant = _meant(address)
        return host in self.names or _is_public(meant) or any(meant in network for network in self.networks)


def check_callback_url(url: str, allow: str) -> None:
    """Refuse a URL to which a callback would never be sent; what its name resolves to is checked with each try."""
    target = parse_target(url)
    address = _LOOPBACK if _LOCAL_NAME.search(target.host) else literal_address(target.host)
    if address is not None and not parse_allowance(allow).admits(target.host, address):
        raise InvalidInput(
            "The callback_url leads to a private address.",
            hint="Use a public one, or let an operator allow it: GRATICULE_CALLBACK_ALLOW.",
        )


def parse_target(url: str) -> Target:
    """Take a URL apart, or refuse it."""
    parts = _split(url)
    host = (parts.hostname or "").rstrip(".")
    if parts.scheme not in _PORTS:
        raise _refused("begins with neither http:// nor https://")
    if "@" in parts.netloc:
        raise _refused("holds a user name or a password")
    if "#" in url:
        raise _refused("has a fragment")
    if not _is_host(host, in_brackets="[" in parts.netloc):
        raise _refused("names no host")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Target(parts.scheme, host, _port(parts), parts.netloc.lower(), path)


def _split(url: str) -> SplitResult:
    if len(url) > LONGEST_URL:
        raise _refused(f"is longer than {LONGEST_URL} characters")
    if not _PLAIN.fullmatch(url):
        raise _refused("has characters that no URL has", hint="Write them percent-encoded, and host names as xn--….")
    try:
        return urlsplit(url)
    except ValueError:
        raise _refused("is no URL") from None


def _port(parts: SplitResult) -> int:
    try:
        port = parts.port
    except ValueError:
        port = 0
    if port == 0:
        raise _refused("has a port that does not exist")
    return port or _PORTS[parts.scheme]


def _is_host(host: str, *, in_brackets: bool) -> bool:
    address = literal_address(host)
    if address is not None or in_brackets:
        return isinstance(address, IPv6Address) is in_brackets
    return len(host) <= 253 and _NAME.fullmatch(host) is not None and not _NUMBER_AT_END.search(host)


def _refused(why: str, hint: str | None = None) -> InvalidInput:
    return InvalidInput(f"The callback_url {why}.", hint=hint)


@lru_cache
def parse_allowance(text: str) -> Allowance:
    """Read `GRATICULE_CALLBACK_ALLOW`: host names, addresses and networks, separated by commas."""
    entries = [entry.strip().lower().rstrip(".") for entry in text.split(",") if entry.strip()]
    networks = {entry: _network(entry) for entry in entries}
    names = frozenset(entry for entry, network in networks.items() if network is None)
    if unknown := [name for name in names if not _NAME.fullmatch(name)]:
        raise ConfigurationError(
            f"GRATICULE_CALLBACK_ALLOW has {unknown[0]!r}, which is neither a host nor a network.",
            hint="Write hosts and networks, separated by commas: hooks.internal, 10.1.0.0/16.",
        )
    return Allowance(names, tuple(network for network in networks.values() if network is not None))


def _network(entry: str) -> Network | None:
    try:
        return ip_network(entry)
    except ValueError:
        return None


def literal_address(host: str) -> Address | None:
    """Give the address that a host itself is, however it is spelt; None for a name."""
    try:
        return ip_address(host)
    except ValueError:
        pass
    if not _NUMBER_AT_END.search(host):
        return None
    try:
        return IPv4Address(socket.inet_aton(host))  # 127.1, 0x7f000001, 017700000001: all that resolvers understand
    except OSError:
        return None


def _meant(address: Address) -> Address:
    """Give the IPv4 address that some IPv6 addresses stand for."""
    if isinstance(address, IPv4Address):
        return address
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or address


def _is_public(address: Address) -> bool:
    if isinstance(address, IPv6Address) and address not in _GLOBAL_UNICAST:
        return False
    is_special = address.is_multicast or address.is_reserved or any(address in network for network in _NOT_PUBLIC)
    return address.is_global and not is_special
