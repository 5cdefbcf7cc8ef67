"""`graticule platform …`: the registry of partners."""

from typing import TYPE_CHECKING, Annotated

import typer

from graticule.cli.asking import AsJson, ServerAddress, ask, print_models
from graticule.cli.console import done, out, print_columns, say
from graticule.core.errors import InvalidInput

if TYPE_CHECKING:
    from graticule.core.models import Platform

app = typer.Typer(no_args_is_help=True, help="See, add and change the partners who send data.")

PlatformArgument = Annotated[str, typer.Argument(metavar="PLATFORM", help="The partner's id, as `ddh`.")]
RequiredRef = typer.Option("--required-ref", help="A field that identifies a dataset; may be repeated.")
OptionalRef = typer.Option("--optional-ref", help="A field that is kept beside them; may be repeated.")
Source = typer.Option(
    "--source",
    help="A container, or container/prefix/, in which its files may lie; may be repeated.",
    show_default=False,
)
FourEyes = Annotated[
    bool | None,
    typer.Option(
        "--four-eyes/--no-four-eyes",
        help="Nobody approves what they submitted, and two reviewers approve what the public is to see.",
        show_default=False,
    ),
]
VersionRef = typer.Option("--version-ref", help="The partner's field that carries the version.")


@app.command("list")
def list_platforms(
    inactive: Annotated[bool, typer.Option("--inactive", help="Also those that take no submissions.")] = False,
    server: ServerAddress = None,
    as_json: AsJson = False,
) -> None:
    """List the partners: which fields identify their datasets, and which one is the version."""
    from graticule.client import calls

    found = ask(server, calls.list_platforms(inactive=inactive)).items
    if as_json:
        print_models(found)
    elif not found:
        say("There is no partner yet: `graticule platform add`.")
    else:
        heads = ("platform", "name", "identified by", "version", "sources", "active")
        print_columns(heads, [_row(each) for each in found])


def _row(platform: "Platform") -> tuple[str, ...]:
    active = "yes" if platform.is_active else "no"
    refs = ", ".join(platform.required_refs)
    sources = ", ".join(platform.source_containers or ())
    return platform.platform_id, platform.display_name, refs, platform.version_ref, sources, active


@app.command()
def show(platform: PlatformArgument, server: ServerAddress = None, as_json: AsJson = False) -> None:
    """Show one partner."""
    from graticule.client import calls

    found = ask(server, calls.get_platform(platform))
    if as_json:
        print_models(found)
        return
    for name, value in found.model_dump(mode="json").items():
        told = ", ".join(value) if isinstance(value, list) else value
        out.print(f"{name.replace('_', ' '):>17}  {'' if told is None else told}".rstrip(), soft_wrap=True)


@app.command()
def add(
    platform: PlatformArgument,
    *,
    name: Annotated[str, typer.Option(help="What people call it.")],
    required_refs: Annotated[list[str], RequiredRef],
    version_ref: Annotated[str, VersionRef],
    optional_refs: Annotated[list[str] | None, OptionalRef] = None,
    sources: Annotated[list[str] | None, Source] = None,
    description: Annotated[str | None, typer.Option(help="What it is.")] = None,
    four_eyes: FourEyes = None,
    server: ServerAddress = None,
    as_json: AsJson = False,
) -> None:
    """Add a partner: a row of the registry, and no change of the program.

    Its files lie in bronze/PLATFORM/ unless --source names other places.

    Example:

      graticule platform add atlas --name Atlas --required-ref sheet --version-ref release
    """
    from graticule.client import calls

    wanted = calls.add_platform(
        platform,
        display_name=name,
        required_refs=required_refs,
        version_ref=version_ref,
        optional_refs=optional_refs or [],
        source_containers=sources or None,
        description=description,
        four_eyes=bool(four_eyes),
    )
    _finish(ask(server, wanted), as_json)


@app.command()
def change(
    platform: PlatformArgument,
    *,
    name: Annotated[str | None, typer.Option(help="What people call it.")] = None,
    description: Annotated[str | None, typer.Option(help="What it is.")] = None,
    required_refs: Annotated[list[str] | None, RequiredRef] = None,
    optional_refs: Annotated[list[str] | None, OptionalRef] = None,
    version_ref: Annotated[str | None, VersionRef] = None,
    sources: Annotated[list[str] | None, Source] = None,
    active: Annotated[
        bool | None, typer.Option("--active/--inactive", help="Whether it takes new submissions.")
    ] = None,
    four_eyes: FourEyes = None,
    server: ServerAddress = None,
    as_json: AsJson = False,
) -> None:
    """Change a partner; what is not named stays. What identifies datasets can change only while there are none."""
    from graticule.client import calls

    wanted = calls.change_platform(
        platform,
        display_name=name,
        description=description,
        required_refs=required_refs or None,
        optional_refs=optional_refs or None,
        version_ref=version_ref,
        source_containers=sources or None,
        is_active=active,
        four_eyes=four_eyes,
    )
    if not wanted.body:
        raise InvalidInput("Nothing is to be changed.", hint="`graticule platform change --help` lists what can be.")
    _finish(ask(server, wanted), as_json)


def _finish(platform: "Platform", as_json: bool) -> None:
    if as_json:
        print_models(platform)
    else:
        takes = "takes submissions" if platform.is_active else "takes no new submissions"
        refs = ", ".join(platform.required_refs)
        done(f"{platform.platform_id} {takes}; its datasets are identified by {refs}.")


@app.command("webhook-secret")
def webhook_secret(platform: PlatformArgument, server: ServerAddress = None) -> None:
    """Print the secret with which a partner verifies our callbacks (Standard Webhooks)."""
    from graticule.client import calls

    found = ask(server, calls.get_webhook_secret(platform))
    out.print(found.secret, soft_wrap=True)
    say(f"Give it to {found.recipient} by a safe way: whoever has it can sign callbacks in our name.")
