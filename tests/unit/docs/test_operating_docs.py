"""docs/how-to/operating.md: its commands exist, its connections and settings are those of the code."""

import re

from tests.unit.docs.pages import blocks, code, codes, page, table
from tests.unit.docs.test_command_docs import commands
from typer.main import get_command

from graticule.cli.main import app
from graticule.config import Settings
from graticule.embedded.configuration import DEFAULTS, QUICK_COMPRESSION
from graticule.orchestrator.engine import BROKER_CONNECTIONS, LOOP_CONNECTIONS
from graticule.worker.ways import LEASE_CONNECTIONS

PAGE = page("operating.md")


def test_every_command_that_is_named_exists() -> None:
    known = set(commands(get_command(app)))
    groups = {name.split()[0] for name in known if " " in name}
    shown = [
        *codes(PAGE),
        *(line for language in ("console", "sh") for line in "".join(blocks(PAGE, language)).splitlines()),
    ]
    named = [match for text in shown for match in re.findall(r"\bgraticule ([a-z-]+)(?: ([a-z-]+))?", text)]
    assert len(named) > 20
    for first, second in named:
        assert first in known or f"{first} {second}".strip() in known or (first in groups and not second), (
            first,
            second,
        )


def test_the_connections_are_those_that_are_opened() -> None:
    pool = Settings.model_fields["database_pool_size"].default
    told = {row[0]: (row[1], int(row[2])) for row in table(PAGE, "| process | connections | with P")}
    heard = sent = 1
    wanted = {
        "gateway": pool,
        "orchestrator": pool + LOOP_CONNECTIONS + heard + sent,
        "orchestrator with Service Bus": pool + LOOP_CONNECTIONS + BROKER_CONNECTIONS + heard + sent,
        "worker": pool + LEASE_CONNECTIONS + heard,
        "serve": 3 * pool + heard,
    }
    assert {process: number for process, (_, number) in told.items()} == wanted
    for process, (formula, number) in told.items():
        terms = formula.partition(":")[0]
        times, more = re.fullmatch(r"(\d*) ?P(?: \+ (\d+))?", terms).groups()  # type: ignore[union-attr]
        assert int(times or 1) * pool + int(more or 0) == number, process
    two_of_each = 2 * sum(wanted[process] for process in ("gateway", "orchestrator", "worker", "serve"))
    assert f"are {two_of_each}, so {DEFAULTS['max_connections']} will do" in PAGE


def test_the_settings_of_the_server_are_those_of_the_embedded_one() -> None:
    told = {code(row[0]): codes(row[1])[0] for row in table(PAGE, "| setting | embedded | why |")}
    known = {**DEFAULTS, **QUICK_COMPRESSION}
    assert told == {name: known[name] for name in told}
    assert len(told) == 12
