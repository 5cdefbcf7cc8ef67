"""Where callbacks may go: a URL that leads to something private is refused, however it is written."""

import pytest

from graticule.core.errors import ConfigurationError, InvalidInput
from graticule.services.callback_targets import (
    LONGEST_URL,
    Target,
    check_callback_url,
    literal_address,
    parse_allowance,
    parse_target,
)

PUBLIC = [
    "https://example.org/hook",
    "http://example.org:8080/hook?key=1&x=%20",
    "HTTPS://Example.ORG",
    "https://xn--bcher-kva.example/",
    "https://under_score.example/",
    "http://8.8.8.8/",
    "http://134744072/",  # the same, spelt as one number
    "http://[2606:4700::1111]/",
    "http://[::ffff:8.8.8.8]/",
    "http://[64:ff9b::8.8.8.8]/",
    "https://example.org./hook",
]
PRIVATE = [
    "10.1.2.3",
    "172.16.0.1",
    "192.168.1.1",
    "127.0.0.1",
    "127.1",
    "127.0.0.1.",
    "127.0.0.1..",
    "2130706433",
    "0x7f000001",
    "0x7f.1",
    "0X7F.0.0.1",
    "017700000001",
    "0177.0.0.01",
    "0",
    "0.0.0.0",
    "169.254.169.254",  # metadata
    "2852039166",  # the same
    "168.63.129.16",  # metadata with a public address
    "100.100.100.200",  # metadata within the addresses that providers share
    "192.0.0.192",
    "100.64.0.1",
    "198.18.0.1",
    "192.88.99.1",
    "203.0.113.9",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "[::1]",
    "[::]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::ffff:a9fe:a9fe]",
    "[::127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[64:ff9b:1::1]",
    "[2002:7f00:1::]",
    "[2001::1]",
    "[fe80::1]",
    "[fe80::1%25eth0]",
    "[fec0::1]",
    "[fc00::1]",
    "[fd00:ec2::254]",  # metadata
    "[ff02::1]",
    "[ff0e::1]",
    "[2001:db8::1]",
    "[3fff::1]",
    "localhost",
    "LOCALHOST",
    "localhost.",
    "hook.localhost",
]
MALFORMED = {
    "no scheme": "example.org/hook",
    "another scheme": "ftp://example.org/",
    "a file": "file:///etc/passwd",
    "no host": "http:///hook",
    "only dots": "http://./",
    "a user": "http://user@example.org/",
    "a password": "https://user:secret@example.org/",
    "an empty user": "https://@example.org/",
    "a user that looks like the host": "https://example.org@127.0.0.1/",
    "a fragment": "https://example.org/#x",
    "an empty fragment": "https://example.org/#",
    "a port too large": "https://example.org:65536/",
    "port 0": "https://example.org:0/",
    "no port at all": "https://example.org:x/",
    "two ports": "https://example.org:1:2/",
    "a space": "https://example.org/a b",
    "a line break": "https://example.org/\r\nHost: x",
    "a line break that parsers drop": "https://exam\nple.org/",
    "a backslash": "https://example.org\\@127.0.0.1/",
    "a NUL": "https://example.org/\0",
    "other digits": "http://①②⑦.0.0.1/",
    "another dot": "http://127。0。0。1/",
    "other letters": "https://bücher.example/",
    "a percent-encoded host": "http://%31%32%37.0.0.1/",
    "an address of five parts": "http://1.2.3.4.5/",
    "an address that is too large": "http://256.256.256.256/",
    "a number that is too large": "http://4294967296/",
    "hex that is none": "http://a.0x/",
    "an empty label": "http://a..b/",
    "a label too long": f"http://{'a' * 64}.org/",
    "a name too long": f"http://{'a.' * 127}org/",
    "a bracket alone": "http://[::1/",
    "a future address": "http://[v1.x]/",
    "too long": "https://example.org/" + "a" * LONGEST_URL,
    "nothing": "",
}


@pytest.mark.parametrize("url", PUBLIC)
def test_a_public_address_is_taken(url: str) -> None:
    check_callback_url(url, "")


@pytest.mark.parametrize("host", PRIVATE)
def test_a_private_address_is_refused_however_it_is_spelt(host: str) -> None:
    for url in (f"http://{host}/", f"https://{host}:8443/hook?key=secret"):
        with pytest.raises(InvalidInput, match=r"private address\.") as refusal:
            check_callback_url(url, "")
        assert "secret" not in str(refusal.value)


@pytest.mark.parametrize("url", MALFORMED.values(), ids=MALFORMED)
def test_what_is_no_plain_url_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(InvalidInput, match="The callback_url") as refusal:
        check_callback_url(url, "0.0.0.0/0, ::/0")
    assert not url or url not in str(refusal.value)


@pytest.mark.parametrize(
    ("host", "allow", "admitted"),
    [
        ("10.1.2.3", "10.0.0.0/8", True),
        ("10.1.2.3", "hooks.internal, 10.1.2.3", True),
        ("[::ffff:10.1.2.3]", "10.0.0.0/8", True),
        ("0x0a010203", "10.1.2.3", True),
        ("11.1.2.3.", "10.0.0.0/8", True),  # public
        ("192.168.1.1", "10.0.0.0/8", False),
        ("[::1]", "127.0.0.0/8", False),
        ("[::1]", "::1", True),
        ("localhost", "localhost", True),
        ("LocalHost.", "LOCALHOST.", True),
        ("localhost", "127.0.0.1", True),
        ("hook.localhost", "localhost", False),
        ("127.0.0.1", "localhost", False),
    ],
)
def test_what_is_allowed_is_admitted_and_nothing_beside_it(host: str, allow: str, *, admitted: bool) -> None:
    if admitted:
        check_callback_url(f"http://{host}/", allow)
    else:
        with pytest.raises(InvalidInput):
            check_callback_url(f"http://{host}/", allow)


@pytest.mark.parametrize("allow", ["10.0.0.0/33", "10.0.0.1/8", "http://hook", "a b", "*"])
def test_an_allowance_that_means_nothing_is_a_mistake_of_the_settings(allow: str) -> None:
    with pytest.raises(ConfigurationError, match="GRATICULE_CALLBACK_ALLOW"):
        parse_allowance(allow)


def test_a_url_is_taken_apart_once() -> None:
    assert parse_target("HTTP://Example.ORG.:8080?a=b") == Target(
        "http", "example.org", 8080, "example.org.:8080", "/?a=b"
    )
    assert parse_target("https://[2606:4700::1]/x") == Target("https", "2606:4700::1", 443, "[2606:4700::1]", "/x")


def test_names_are_no_addresses() -> None:
    assert literal_address("example.org") is None
    assert literal_address("face.b00c") is None
