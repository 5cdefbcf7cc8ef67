"""The command `graticule`."""

import gc
import json
import sys
from typing import Annotated

import typer

from graticule import __version__
from graticule.cli import (
    assets,
    azure,
    backup,
    callbacks,
    clients,
    commands,
    dead_letters,
    demo,
    doctor,
    jobs,
    platforms,
    processes,
    prune,
    schema,
    stats,
    up,
    verify,
    worker,
    workflow,
)
from graticule.cli.config_notes import explain_settings
from graticule.cli.console import fail, out, warn
from graticule.cli.settings import load_settings
from graticule.core.errors import GraticuleError

app = typer.Typer(
    name="graticule",
    help="Graticule: partners' rasters and vectors in, reviewed and versioned map services out.",
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
DATA, JOBS, PROCESSES, CARE = "Data and partners", "Jobs", "Processes", "Care"
app.command(rich_help_panel=PROCESSES)(up.up)
app.command(rich_help_panel=PROCESSES)(processes.orchestrator)
app.command(rich_help_panel=PROCESSES)(processes.gateway)
app.command(rich_help_panel=PROCESSES)(worker.worker)
app.command(rich_help_panel=PROCESSES)(processes.serve)
app.command(rich_help_panel=PROCESSES)(demo.demo)
for command in (jobs.submit, jobs.jobs, jobs.watch, jobs.events, jobs.cancel, jobs.retry):
    app.command(rich_help_panel=JOBS)(command)
app.add_typer(dead_letters.app, name="dead-letters", rich_help_panel=JOBS)
app.add_typer(workflow.app, name="workflow", rich_help_panel=JOBS)
app.add_typer(assets.app, name="asset", rich_help_panel=DATA)
app.add_typer(platforms.app, name="platform", rich_help_panel=DATA)
app.add_typer(clients.app, name="client", rich_help_panel=DATA)
app.add_typer(callbacks.app, name="callbacks", rich_help_panel=DATA)
app.add_typer(stats.app, name="stats", rich_help_panel=DATA)
app.add_typer(commands.app, name="command", rich_help_panel=CARE)
app.add_typer(schema.app, name="schema", rich_help_panel=CARE)
app.add_typer(azure.app, name="azure", rich_help_panel=CARE)
app.command(rich_help_panel=CARE)(backup.backup)
app.command(rich_help_panel=CARE)(backup.restore)
app.command(rich_help_panel=CARE)(prune.prune)
app.command(rich_help_panel=CARE)(verify.verify)
app.command(rich_help_panel=CARE)(doctor.doctor)


def _print_version(wanted: bool) -> None:
    if wanted:
        out.print(f"graticule {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def choose(
    context: typer.Context,
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Graticule: partners' rasters and vectors in, reviewed and versioned map services out.

    Without a command, the variable RUN_MODE chooses the role: up, orchestrator, gateway, worker or serve.
    """
    if context.invoked_subcommand is not None:
        return
    mode = load_settings().run_mode
    if mode is None:
        out.print(context.get_help())
    else:
        # As if it had been typed, so that the options' variables count.
        context.command.main(args=[mode.value], prog_name="graticule", standalone_mode=False)


@app.command(rich_help_panel=CARE)
def config() -> None:
    """Print all settings as JSON, with secrets masked."""
    settings = load_settings()
    out.print_json(json.dumps(settings.shown()))
    for note in explain_settings(settings):
        warn(note)


def main() -> None:
    """Run the command line; an error that we foresaw is told in two lines, not as a traceback."""
    gc.set_threshold(50_000)  # a command loads modules first, among which there is much to look at and no garbage
    try:
        app()
    except GraticuleError as error:
        fail(error.message, error.hint)
        sys.exit(1)
