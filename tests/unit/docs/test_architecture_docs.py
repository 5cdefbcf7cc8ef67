"""docs/explanation/architecture.md and security.md say what the layers, the roles, the settings and the limits are."""

import re
import tomllib

from tests.unit.docs.pages import DOCS, code, codes, page, table

from graticule.config import Settings, secret_variables
from graticule.core.exchange import MOST_REFS
from graticule.core.models import TABLES
from graticule.core.table import DatabaseRole
from graticule.dag import compile as compiler
from graticule.dag import inputs
from graticule.dag.compiling import drafts, yaml_source
from graticule.dag.state import Policy
from graticule.gateway.submissions import MOST_IN_A_BATCH
from graticule.http.callers import MOST_BYTES_OF_STRANGERS
from graticule.http.connections import MAX_DRAINED, MAX_UNSENT, MIN_BODY_RATE
from graticule.http.framing import EVENTS_PER_TURN, FREE_CHUNKS, MAX_HEAD_BYTES, MAX_HEADER_LINES, MIN_CHUNK_BYTES
from graticule.http.json_bodies import BYTES_PER_ELEMENT, BYTES_PER_NAME
from graticule.http.limits import DEFAULT_MAX_BODY_BYTES
from graticule.http.paging import MOST_ITEMS
from graticule.http.rate_limits import FAILURES_PER_MINUTE
from graticule.services import reviewed_files, reviews, service_tokens
from graticule.storage.paths import LONGEST_PATH
from graticule.worker import outcome, process_output

ARCHITECTURE = page("architecture.md")
SECURITY = page("security.md")
PROCESSES = {"orchestrator", "gateway", "worker", "serve"}
WORDS = {"SELECT": "read", "INSERT": "add", "UPDATE": "update", "DELETE": "delete"}


def test_the_layers_are_those_of_the_linter() -> None:
    (contract,) = [
        each
        for each in tomllib.loads((DOCS.parent / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
        if each["type"] == "layers"
    ]
    told = [" | ".join(codes(row[0])) for row in table(ARCHITECTURE, "| layer | what |")]
    assert told == contract["layers"]


def test_every_process_has_its_role() -> None:
    rows = table(ARCHITECTURE, "| process | does | writes | database role |")
    assert {row[0] for row in rows} == PROCESSES
    told = {role for row in rows for role in codes(row[3])}
    assert told == {*DatabaseRole} - {DatabaseRole.OWNER}
    assert {row[0] for row in rows if row[2] == "nothing"} == {"gateway", "serve"}


def test_the_grants_are_those_of_the_models() -> None:
    header = next(line for line in SECURITY.splitlines() if line.startswith("| table | `graticule_"))
    roles = [DatabaseRole(code(cell.strip())) for cell in header.split("|")[2:-1]]
    told = {
        code(name): {role: set(filter(None, cell.split(", "))) for role, cell in zip(roles, cells, strict=True)}
        for name, *cells in table(SECURITY, "| table | `graticule_")
    }
    assert told == {
        model.table.name: {role: {WORDS[each] for each in model.table.grants.get(role, ())} for role in roles}
        for model in TABLES
    }
    unnamed = {*DatabaseRole} - {*roles} - {DatabaseRole.OWNER}
    assert unnamed == {DatabaseRole.SERVE_EXTERNAL}
    assert not any(model.table.grants.get(DatabaseRole.SERVE_EXTERNAL) for model in TABLES)


def test_every_secret_is_told_with_who_needs_it() -> None:
    told = {name for row in table(SECURITY, "| secret | who needs it |") for name in codes(row[0])}
    assert told == {name for name in secret_variables() if name.startswith("GRATICULE_")}


def test_the_ports_are_those_of_the_settings() -> None:
    told = {row[0]: row[1] for row in table(SECURITY, "| process | port |")}
    settings = page("settings.md")
    for process, number in (("gateway", 8000), ("orchestrator", 8001), ("worker", 8002), ("internal services", 8003)):
        assert told[process] == str(number)
        assert str(number) in settings


def test_every_setting_that_the_pages_name_is_one() -> None:
    for text in (ARCHITECTURE, SECURITY, page("operating.md")):
        named = {name.lower() for name in re.findall(r"GRATICULE_(\w+)", text)}
        assert named - {*Settings.model_fields} <= {"host"}  # where a process listens is asked by its command


def test_the_limits_are_those_of_the_code() -> None:
    told = {row[0]: row[1] for row in table(SECURITY, "| what | at most |")}
    mebibyte = 1024 * 1024
    body = Settings.model_fields["gateway_max_body_bytes"].default
    assert told["a body at the gateway"].endswith(
        f": {body} bytes; of someone who is not known yet, {MOST_BYTES_OF_STRANGERS}"
    )
    assert told["a body at the orchestrator"] == f"{DEFAULT_MAX_BODY_BYTES // mebibyte} MiB"
    names, elements = body // BYTES_PER_NAME, body // BYTES_PER_ELEMENT
    assert told["the JSON of a body"] == (
        f"a name for every {BYTES_PER_NAME} bytes that the body may have at most, and an element for every"
        f" {BYTES_PER_ELEMENT}: at the gateway and the services {names} and {elements}"
    )
    settings = Settings()
    assert f"{settings.rate_limit_per_minute} a minute" in told["requests of a client"]
    assert told["connections of a process"].startswith(
        f"`GRATICULE_HTTP_MAX_CONNECTIONS`: {settings.http_max_connections}, and"
        f" `GRATICULE_HTTP_MAX_CONNECTIONS_PER_ADDRESS`: {settings.http_max_connections_per_address} of one address"
    )
    assert told["the chunks of a body"] == (
        f"{MIN_CHUNK_BYTES} bytes on average, once there are more than {FREE_CHUNKS};"
        f" {EVENTS_PER_TURN} are parsed before other connections get their turn"
    )
    assert told["answers that clients have not read yet"].startswith(f"{MAX_UNSENT // mebibyte} MiB for a process")
    assert told["what is read of a body after the answer"] == f"{MAX_DRAINED // mebibyte} MiB"
    assert told["the headers of a request"] == (
        f"{MAX_HEADER_LINES} lines, {MAX_HEAD_BYTES // 1024} KiB,"
        f" in `GRATICULE_HTTP_HEAD_SECONDS`: {settings.http_head_seconds:g} s"
    )
    assert told["the time for a body"] == (
        f"a pause of `GRATICULE_HTTP_BODY_SECONDS`: {settings.http_body_seconds:g} s, or"
        f" {MIN_BODY_RATE // 1024} KiB per second for longer"
    )
    assert told["the priority of a partner's submission"] == (
        f"`GRATICULE_PARTNER_MAX_PRIORITY`: {settings.partner_max_priority}"
    )
    assert f"up to {reviews.MAX_BYTES_HASHED // mebibyte} MB, has other rows" in SECURITY
    assert f"up to {reviewed_files.MAX_BYTES_HASHED // mebibyte} MB has another SHA-256" in SECURITY
    assert f"at most {reviewed_files.CHECK_SECONDS:g} seconds" in SECURITY
    assert told["wrong credentials of an address"] == f"{FAILURES_PER_MINUTE} a minute"
    assert told["a page of a list"] == f"{MOST_ITEMS} items"
    assert told["jobs in a batch"] == str(MOST_IN_A_BATCH)
    assert told["refs of a dataset"] == str(MOST_REFS)
    assert told["the inputs of a job"] == f"{inputs.MAX_BYTES:,} bytes"
    assert told["a workflow"] == (
        f"{yaml_source.MAX_CHARACTERS:,} characters, {compiler.MAX_NODES:,} nodes, "
        f"{drafts.MAX_CHILDREN:,} children of a fan-out"
    )
    assert Policy().max_children == drafts.MAX_CHILDREN
    assert told["an output of a handler"] == f"{outcome.MAX_OUTPUT_BYTES // mebibyte} MiB"
    assert told["what a child process prints"] == f"{process_output.MAX_BYTES_PER_TASK // 1024} KiB for each task"
    assert told["a name or path of a file"] == f"{LONGEST_PATH} characters"
    assert f"service token, {service_tokens.LIFE.seconds} s" in SECURITY
    assert f"({settings.session_minutes} minutes)" in SECURITY
