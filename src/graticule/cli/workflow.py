"""`graticule workflow …`: workflow files."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graticule.cli.console import done, fail, out

if TYPE_CHECKING:
    from graticule.dag.compile import Compiled

app = typer.Typer(no_args_is_help=True, help="Check and draw workflow files.")

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of lines.")]


def _compile(file: Path) -> "Compiled":
    from graticule.handlers.registry import known_handlers
    from graticule.services.workflow_library import compile_file

    return compile_file(file, known_handlers())


@app.command()
def validate(
    files: Annotated[list[Path], typer.Argument(metavar="FILE…", help="Workflow files.")], as_json: AsJson = False
) -> None:
    """Compile workflow files and print all that is wrong with them. Exits with 1 when one has an error."""
    compiled = {file: _compile(file) for file in files}
    if as_json:
        out.print_json(data=[_shown(file, found) for file, found in compiled.items()])
    else:
        for file, found in compiled.items():
            _tell(file, found)
    if any(found.graph is None for found in compiled.values()):
        raise typer.Exit(1)


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


@app.command()
def graph(file: Annotated[Path, typer.Argument(metavar="FILE", help="A workflow file.")]) -> None:
    """Print a workflow as a Mermaid flowchart."""
    from graticule.dag.mermaid import to_mermaid

    compiled = _compile(file)
    if compiled.graph is None:
        _tell(file, compiled)
        raise typer.Exit(1)
    out.print(to_mermaid(compiled.graph), end="", soft_wrap=True)
