"""`graticule workflow …`: workflow files."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graticule.cli.asking import AsJson, ServerAddress, ask, local_time, print_models
from graticule.cli.console import done, fail, out, print_columns, warn
from graticule.core.worker_command import missing_worker

if TYPE_CHECKING:
    from graticule.client.models import WorkflowPage
    from graticule.dag.compile import Compiled
    from graticule.dag.graph import Graph

app = typer.Typer(no_args_is_help=True, help="Check and draw workflow files; list and reload the workflows in use.")


def _compile(file: Path) -> "Compiled":
    from graticule.handlers.registry import known_handlers
    from graticule.services.workflow_library import compile_file

    return compile_file(file, known_handlers())


@app.command()
def validate(
    files: Annotated[list[Path], typer.Argument(metavar="FILE…", help="Workflow files.")],
    server: ServerAddress = None,
    as_json: AsJson = False,
) -> None:
    """Compile workflow files and print all that is wrong with them. Exits with 1 when one has an error.

    Where a server can be reached, queues that none of its workers serves are named, too.
    """
    compiled = {file: _compile(file) for file in files}
    if as_json:
        out.print_json(data=[_shown(file, found) for file, found in compiled.items()])
    else:
        for file, found in compiled.items():
            _tell(file, found)
    _warn_of_queues(server, [found.graph for found in compiled.values() if found.graph is not None])
    if any(found.graph is None for found in compiled.values()):
        raise typer.Exit(1)


def _warn_of_queues(server: str | None, graphs: "list[Graph]") -> None:
    from graticule.cli.unserved_queues import queues_of_server
    from graticule.services.unserved_queues import queues_of

    wanted = {queue for graph in graphs for queue in queues_of(graph)}
    queues = queues_of_server(server) if wanted else None
    if queues is not None:
        for queue in sorted(wanted - {each.queue for each in queues if each.workers}):
            warn(missing_worker(queue))


def _shown(file: Path, found: "Compiled") -> dict[str, object]:
    return {
        "file": str(file),
        "workflow_id": found.workflow_id,
        "valid": found.graph is not None,
        "problems": [asdict(problem) for problem in found.problems],
    }


def _tell(file: Path, found: "Compiled") -> None:
    for problem in found.problems:
        out.print(str(problem), soft_wrap=True)
    if found.graph is None:
        count = sum(problem.severity == "error" for problem in found.problems)
        fail(f"{file}: {count} error{'s' if count != 1 else ''}.")
    else:
        done(f"{file}: workflow {found.graph.workflow_id} with {len(found.graph.nodes)} nodes.")


@app.command("list")
def list_workflows(server: ServerAddress = None, as_json: AsJson = False) -> None:
    """List the workflows that can be submitted, and what keeps files from being used."""
    from graticule.client import calls

    _show_workflows(ask(server, calls.list_workflows()), as_json)


@app.command()
def reload(server: ServerAddress = None, as_json: AsJson = False) -> None:
    """Have an orchestrator read its workflow files again; what changed counts on all orchestrators."""
    from graticule.client import calls

    _show_workflows(ask(server, calls.reload_workflows()), as_json)


def _show_workflows(found: "WorkflowPage", as_json: bool) -> None:
    if as_json:
        print_models(found)
        return
    heads = ("workflow", "version", "source", "announced", "by", "name")
    rows = [
        (
            *(each.workflow_id, each.version, each.source or "", local_time(each.announced_at)),
            *(each.reloaded_by or each.announced_by or "", each.name),
        )
        for each in found.items
    ]
    print_columns(heads, rows)
    for problem in found.problems:
        if problem.severity == "error":
            warn(str(problem))
    for other in found.other_problems:
        for text in other.problems:
            warn(f"On {other.hostname}: {text}")


@app.command()
def graph(file: Annotated[Path, typer.Argument(metavar="FILE", help="A workflow file.")]) -> None:
    """Print a workflow as a Mermaid flowchart."""
    from graticule.dag.mermaid import to_mermaid

    compiled = _compile(file)
    if compiled.graph is None:
        _tell(file, compiled)
        raise typer.Exit(1)
    out.print(to_mermaid(compiled.graph), end="", soft_wrap=True)
