"""Lines carry what they should, in both forms, and no secret, wherever it stands."""

import io
import json
import logging
import math
import string
import sys
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import plain_logs

from graticule.core.log_format import LogFormat
from graticule.core.trace_context import TraceContext, continued
from graticule.logs import MASK, bound, configure_logging, get_logger, log_plainly, redact, redact_text

# Ends that no other part of a line has: a password of one letter would be found by accident.
passwords = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=30).map(lambda s: f"Zq7{s}Kx9")
unquoted = st.text(string.ascii_letters + string.digits + "!$%()*+-./:<=>?@[]^_{|}~#&;,", max_size=30).map(
    lambda s: f"Zq7{s}Kx9"
)
formats = st.sampled_from(LogFormat)


@pytest.fixture(autouse=True)
def _restored_logging() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers, root.level = handlers, level
    logging.captureWarnings(capture=False)
    plain_logs()


def configured(log_format: LogFormat = LogFormat.JSON, level: str = "DEBUG") -> io.StringIO:
    stream = io.StringIO()
    configure_logging(level, log_format, "gateway", stream)
    return stream


def only_line(stream: io.StringIO) -> dict[str, Any]:
    (line,) = stream.getvalue().splitlines()
    parsed: dict[str, Any] = json.loads(line)
    return parsed


def rendered(log_format: LogFormat, event: str, **values: object) -> str:
    stream = configured(log_format)
    get_logger("graticule.test").info(event, **values)
    return stream.getvalue()


def test_a_json_line_names_time_level_process_and_logger() -> None:
    stream = configured()
    get_logger("graticule.test").info("job started", count=3)
    line = only_line(stream)
    assert line.pop("timestamp").endswith("Z")
    assert line == {
        "event": "job started",
        "count": 3,
        "level": "info",
        "logger": "graticule.test",
        "process": "gateway",
    }


def test_bound_values_are_on_every_line_of_the_block_and_on_none_after_it() -> None:
    stream = configured()
    with bound(job_id=UUID(int=1), task_id="t"):
        get_logger("a").info("inside")
        logging.getLogger("b").warning("inside %s", "too")
    get_logger("a").info("outside")
    first, second, third = map(json.loads, stream.getvalue().splitlines())
    assert first["job_id"] == second["job_id"] == str(UUID(int=1))
    assert second["event"] == "inside too"
    assert "job_id" not in third


def test_lines_below_the_level_are_not_written() -> None:
    stream = configured(level="warning")
    get_logger("a").info("quiet")
    logging.getLogger("b").info("quiet")
    get_logger("a").warning("loud")
    assert only_line(stream)["event"] == "loud"


def test_libraries_do_not_tell_of_every_request() -> None:
    stream = configured(level="INFO")
    logging.getLogger("httpx").info("HTTP Request: GET https://example.test")
    logging.getLogger("uvicorn.error").error("worth knowing")
    assert only_line(stream)["event"] == "worth knowing"


def fail(password: str) -> None:
    raise RuntimeError(f"no way to postgresql://me:{password}@db/x with password='{password} too'")


@pytest.mark.parametrize("foreign", [False, True])
def test_an_exception_is_one_field_and_its_text_is_redacted(foreign: bool) -> None:
    stream = configured()
    try:
        fail("hunter2")
    except RuntimeError:
        if foreign:
            logging.getLogger("psycopg").exception("failed")
        else:
            get_logger("graticule.test").exception("failed")
    line = only_line(stream)
    assert "Traceback" in line["exception"]
    assert "postgresql://me:***@db/x" in line["exception"]
    assert "hunter2 too" not in line["exception"]


def test_a_command_that_configures_nothing_shows_neither_local_variables_nor_secrets(
    capsys: pytest.CaptureFixture[str],
) -> None:
    log_plainly()
    try:
        fail("hun" + "ter2" * len(sys.argv[:1]))
    except RuntimeError:
        get_logger("graticule.test").exception("it failed", api_key="Zq7" + "Kx9")
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "it failed" in printed.err
    assert "RuntimeError" in printed.err
    assert "hunter2" not in printed.err
    assert "Zq7Kx9" not in printed.err


def test_the_console_form_has_no_colours_off_a_terminal_and_no_local_variables() -> None:
    stream = configured(LogFormat.CONSOLE)
    try:
        fail("hun" + "ter2" * len(sys.argv[:1]))
    except RuntimeError:
        get_logger("a").exception("failed")
    assert "\x1b" not in stream.getvalue()
    assert "hunter2" not in stream.getvalue()
    assert "RuntimeError: no way to" in stream.getvalue()


def test_the_console_form_is_coloured_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    for no_color, coloured in (None, True), ("1", False):
        monkeypatch.delenv("NO_COLOR", raising=False)
        if no_color:
            monkeypatch.setenv("NO_COLOR", no_color)
        stream = Terminal()
        configure_logging("INFO", LogFormat.CONSOLE, "up", stream)
        get_logger("a").info("hello")
        assert ("\x1b[" in stream.getvalue()) is coloured


def test_control_characters_can_neither_forge_a_line_nor_steer_a_terminal() -> None:
    text = rendered(LogFormat.CONSOLE, "a\nb", path="c\x1b[2Jd\r\ne")
    assert text.count("\n") == 1
    assert "\x1b" not in text
    assert "\r" not in text


def test_configuring_twice_writes_each_line_once_and_leaves_the_handlers_of_others() -> None:
    other = logging.NullHandler()
    logging.getLogger().addHandler(other)
    first, second = configured(), configured()
    get_logger("a").info("once")
    assert first.getvalue() == ""
    assert only_line(second)["event"] == "once"
    assert other in logging.getLogger().handlers


@pytest.mark.parametrize(
    "key",
    [
        "password", "PGPASSWORD", "passwd", "client_secret", "token", "accessToken", "api_key", "apiKey",
        "X-API-Key", "x_api_key", "admin_key", "Authorization", "connection_string", "connectionString",
        "sas", "sas_url", "SharedAccessKey", "account_key", "set-cookie", "credentials",
    ],
)  # fmt: skip
def test_the_value_of_a_secret_key_is_masked(key: str) -> None:
    assert redact({key: "hunter2", "nested": [{key: ["hunter2"]}]}) == {key: MASK, "nested": [{key: MASK}]}


@pytest.mark.parametrize("key", ["event", "status", "sassafras", "signal", "key", "idempotency_key", "passenger"])
def test_other_keys_are_left_alone(key: str) -> None:
    assert redact({key: "seen"}) == {key: "seen"}


def test_headers_are_known_as_pairs_too() -> None:
    headers = [(b"Authorization", b"Basic abc"), ("accept", "*/*")]
    assert redact(headers) == [["b'Authorization'", MASK], ["accept", "*/*"]]


def test_whether_a_secret_is_there_may_be_told() -> None:
    assert redact({"password": None, "has_token": True}) == {"password": None, "has_token": True}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("amqps://:pw@host/v", "amqps://:***@host/v"),
        ("see http://localhost:8000/a?mail=x@y.z", "see http://localhost:8000/a?mail=x@y.z"),
        ("https://example.test/a:b", "https://example.test/a:b"),
        ("host=db password=pw user=me", "host=db password=*** user=me"),
        ("password = 'a \\' b' host=db", "password = *** host=db"),
        ("PGPASSWORD=pw psql", "PGPASSWORD=*** psql"),
        ("{'password': 'a b', 'host': 'db'}", "{'password': ***, 'host': 'db'}"),
        (
            "Endpoint=sb://x.test/;SharedAccessKeyName=n;SharedAccessKey=abc=;EntityPath=q",
            "Endpoint=sb://x.test/;SharedAccessKeyName=n;SharedAccessKey=***;EntityPath=q",
        ),
        ("AccountName=a;AccountKey=abc==;EndpointSuffix=x", "AccountName=a;AccountKey=***;EndpointSuffix=x"),
        ("https://a.test/b?sv=1&sig=ab%2F&se=2", "https://a.test/b?***"),
        (
            "<File>/vsicurl/https://a.test/b?sv=1&amp;sig=ab%2F&amp;se=2</File>",
            "<File>/vsicurl/https://a.test/b?***</File>",
        ),
        ("https://a.test/b?sig=ab https://a.test/c?sv=1", "https://a.test/b?*** https://a.test/c?sv=1"),
        ("sv=1&sig=ab%2F&se=2", "sv=1&sig=***&se=2"),
        (r"https://a.test/b?sv=1\u0026sig=ab%2F\u0026se=2 x", "https://a.test/b?*** x"),
        (r'{"asked": "{\"url\": \"b?sv=1\\u0026sig=ab\\u0026se=2\"}"}', r'{"asked": "{\"url\": \"b?***"}"}'),
        ("to=https%3A%2F%2Fa.test%2Fb%3Fsv%3D1%26sig%3Dab%252F%26se%3D2 x", "to=https%3A%2F%2Fa.test%2Fb?*** x"),
        ("to=b%253Fsv%253D1%2526sig%253Dab%25252F x", "to=b?*** x"),
        (r"sv=1\u0026sig=ab%2F", r"sv=1\u0026sig=***"),
        ("sv%3D1%26sig%3Dab%252F", "sv%3D1%26sig%3D***"),
        ("sv%253D1%2526sig%253Dab", "sv%253D1%2526sig%253D***"),
        (r"sv\u003d1\u0026sig\u003dab", r"sv\u003d1\u0026sig\u003d***"),
        ("https://a.test/b?design=7", "https://a.test/b?design=7"),
        ("https%3A%2F%2Fa.test%2Fb%3Fdesign%3D7", "https%3A%2F%2Fa.test%2Fb%3Fdesign%3D7"),
        ("given eyJhbGciOiJSUzI1NiJ9.eyJvaWQiOiIwIn0.ab-c_d, and more", "given ***, and more"),
        ("assertion%3DeyJhbGciOiJSUzI1NiJ9.eyJvaWQiOiIwIn0.ab", "assertion%3D***"),
        ("['eyJhbGciOiJSUzI1NiJ9.eyJvaWQiOiIwIn0.']", "['***']"),
        ("eyJhbGciOiJSUzI1NiJ9 is no token", "eyJhbGciOiJSUzI1NiJ9 is no token"),
        ("Authorization: Bearer abc.def", "Authorization: ***"),
        ("{'X-API-Key': 'abc'}", "{'X-API-Key': ***}"),
        ("[(b'authorization', b'Basic abc')]", "[(b'authorization', ***)]"),
        ("the password is wrong; the token has expired", "the password is wrong; the token has expired"),
    ],
)
def test_credentials_inside_a_text_are_masked(text: str, shown: str) -> None:
    assert redact_text(text) == shown


@settings(deadline=None)  # a busy machine is no failure
@given(passwords, formats)
def test_the_password_of_an_address_is_never_written(password: str, log_format: LogFormat) -> None:
    escaped = quote(password, safe="")
    text = rendered(log_format, f"connecting to postgresql://me:{escaped}@db:5432/x", url=f"redis://u:{escaped}@h")
    assert escaped not in text
    assert "Kx9" not in text


@settings(deadline=None)  # a busy machine is no failure
@given(unquoted, formats)
def test_nor_is_one_that_should_have_been_escaped(password: str, log_format: LogFormat) -> None:
    text = rendered(log_format, f"connecting to postgresql://me:{password}@db:5432/x")
    assert "Zq7" not in text
    assert "Kx9" not in text


@settings(deadline=None)  # a busy machine is no failure
@given(passwords, formats)
def test_the_password_of_a_connection_string_is_never_written(password: str, log_format: LogFormat) -> None:
    escaped = password.replace("\\", "\\\\").replace("'", "\\'")
    text = rendered(log_format, f"host=db password='{escaped}' user=me", error=ValueError(f"password='{escaped}'"))
    assert "Zq7" not in text
    assert "Kx9" not in text
    assert "user=me" in text


nested = st.recursive(
    st.sampled_from(["password", "api_key", "authorization", "sas"]),
    lambda inner: st.lists(inner, min_size=1, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, min_size=1),
    max_leaves=5,
)


def with_secrets(shape: Any, password: str) -> Any:
    match shape:
        case str():
            return {shape: password}
        case list():
            return [with_secrets(inner, password) for inner in shape]
        case _:
            return {key: with_secrets(inner, password) for key, inner in shape.items()}


@settings(deadline=None)  # a busy machine is no failure
@given(nested, passwords, formats)
def test_a_secret_is_not_written_however_deep_it_stands(shape: Any, password: str, log_format: LogFormat) -> None:
    text = rendered(log_format, "settings", shown=with_secrets(shape, password))
    assert "Zq7" not in text
    assert "Kx9" not in text


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.dates() | st.uuids(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.integers() | st.text(), inner, max_size=3),
)


@settings(deadline=None)  # a busy machine is no failure
@given(anything)
def test_any_value_gives_one_line_of_valid_json(value: object) -> None:
    stream = configured()
    get_logger("a").info("value", value=value)
    json.loads(stream.getvalue(), parse_constant=pytest.fail)
    assert stream.getvalue().count("\n") == 1


def test_what_cannot_be_shown_does_not_stop_the_line() -> None:
    class Unprintable:
        def __str__(self) -> str:
            raise RuntimeError

    endless: dict[str, object] = {"nan": math.nan}
    endless["self"] = endless
    stream = configured()
    get_logger("a").info("odd", value=Unprintable(), endless=endless)
    assert only_line(stream)["value"] == "<Unprintable>"


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "part",
    ["http://x:", "password='", "token\\", "password \t", "authorization", "a", "%3Fa%26", "%25", "sig\\", "eyJ"],
)
def test_a_long_text_does_not_take_quadratic_time(part: str) -> None:
    assert redact_text(part * 100_000)


@pytest.mark.parametrize("is_ours", [True, False])
def test_lines_name_the_trace_that_they_belong_to_whoever_writes_them(is_ours: bool) -> None:
    stream = configured()
    place = TraceContext("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7", is_ours=is_ours)
    with continued(place):
        get_logger("graticule.test").info("inside")
        logging.getLogger("library").warning("inside, too")
    get_logger("graticule.test").info("outside")
    *inside, outside = map(json.loads, stream.getvalue().splitlines())
    assert [line["trace_id"] for line in inside] == [place.trace_id] * 2
    assert [line.get("span_id") for line in inside] == [place.span_id if is_ours else None] * 2
    assert "trace_id" not in outside
