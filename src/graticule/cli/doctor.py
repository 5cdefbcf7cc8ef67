"""`graticule doctor`: is this machine fit, and if not, how is it mended?"""

from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from graticule.cli.console import done, fail, out, say
from graticule.cli.processes import GATEWAY_PORT
from graticule.cli.settings import load_settings

if TYPE_CHECKING:
    from graticule.embedded.machine import Finding


def doctor(
    fix: Annotated[
        bool, typer.Option("--fix", help="Install the system packages that are missing (apt or brew).")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Say nothing of what is well.")] = False,
    port: Annotated[
        int,
        typer.Option(min=1, max=65533, help="The port that `graticule up` would use; the next two are checked too."),
    ] = GATEWAY_PORT,
) -> None:
    """Check this machine (programs, extensions, ports, disk, versions) and say how to mend what is wrong."""
    from graticule.embedded.machine import examine, missing_packages
    from graticule.embedded.packages import install_packages

    findings = examine(load_settings(), port=port)
    if fix and (packages := missing_packages(findings)):
        install_packages(packages, say)
        findings = examine(load_settings(), port=port)
        done(f"Installed {', '.join(packages)}.")
    findings += [*_handler_findings(), *_queue_findings()]
    _show(findings, quiet)
    if any(finding.required and not finding.ok for finding in findings):
        raise typer.Exit(1)


def _handler_findings() -> "list[Finding]":
    """Name packages whose handlers are missing: with a name of ours among theirs, for example, none of them counts."""
    from graticule.embedded.machine import Finding
    from graticule.handlers.registry import failed_packages

    return [
        Finding(f"handlers of {name}", ok=False, detail=reason, required=False)
        for name, reason in failed_packages().items()
    ]


def _queue_findings() -> "list[Finding]":
    """Look at what runs in the data folder, if anything does: do tasks wait for a worker that is not there?"""
    from graticule.cli.unserved_queues import queues_of_server, unserved_queue
    from graticule.embedded.machine import Finding

    queues = queues_of_server(None)
    unserved = [queue for queue in queues or () if queue.unserved]
    return [Finding(f"queue {each.queue}", ok=False, detail=unserved_queue(each), required=False) for each in unserved]


def _show(findings: "list[Finding]", quiet: bool) -> None:
    for finding in findings:
        line = f"{finding.name:<22} {finding.detail}"
        if not finding.ok and finding.required:
            fail(line, finding.mend)
        elif not quiet:
            sign = Text("✓", "green") if finding.ok else Text("!", "yellow")
            mend = f" {finding.mend}" if finding.mend and not finding.ok else ""
            out.print(Text.assemble(sign, f" {line}{mend}"), soft_wrap=True)
