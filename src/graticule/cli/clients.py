"""`graticule client …`: who may call, and with which key."""

from typing import TYPE_CHECKING, Annotated

import typer

from graticule.cli.asking import AsJson, ServerAddress, ask, local_time, print_models
from graticule.cli.console import done, out, print_columns, say
from graticule.core.models.platform import ClientRole

if TYPE_CHECKING:
    from graticule.client.models import ClientView, ClientWithKey

app = typer.Typer(no_args_is_help=True, help="Give keys to partners and staff, change them and take them back.")

ClientArgument = Annotated[str, typer.Argument(metavar="NAME", help="The client's name, as `ddh-portal`.")]


@app.command()
def add(
    client: ClientArgument,
    *,
    role: Annotated[list[ClientRole], typer.Option(help="What it may do; may be repeated.")],
    platform: Annotated[
        str | None, typer.Option(help="The partner that a submitter speaks for; nobody else has one.")
    ] = None,
    display_name: Annotated[str | None, typer.Option(help="What people call it; by default its name.")] = None,
    server: ServerAddress = None,
    as_json: AsJson = False,
) -> None:
    """Add a client and print its key, which can never be shown again: only a hash of it is kept.

    Examples:

      graticule client add ddh-portal --role submitter --platform ddh

      graticule client add anna --role reviewer --role operator
    """
    from graticule.client import calls

    wanted = calls.add_client(client, display_name=display_name or client, roles=role, platform_id=platform)
    _tell_key(ask(server, wanted), as_json)


@app.command()
def rotate(client: ClientArgument, server: ServerAddress = None, as_json: AsJson = False) -> None:
    """Give a client another key and print it; the one before opens nothing any more."""
    from graticule.client import calls

    _tell_key(ask(server, calls.rotate_client(client)), as_json)


def _tell_key(found: "ClientWithKey", as_json: bool) -> None:
    """Print the key alone where programs read, and beside it what to do with it."""
    if as_json:
        print_models(found)
        return
    done(f"{found.client_id} has a new key. Keep it: it is not shown again.")
    out.print(found.key, soft_wrap=True)
    say("Programs send it in the header X-API-Key; this command line takes it from GRATICULE_API_KEY.")


@app.command("list")
def list_clients(server: ServerAddress = None, as_json: AsJson = False) -> None:
    """List the clients: what each may do, for whom it speaks, and when it last called."""
    from graticule.client import calls

    found = ask(server, calls.list_clients()).items
    if as_json:
        print_models(found)
    elif not found:
        say("There is no client yet: `graticule client add NAME --role operator`.")
    else:
        print_columns(("client", "roles", "platform", "active", "last call", "name"), [_row(each) for each in found])


def _row(client: "ClientView") -> tuple[str, ...]:
    active = "yes" if client.is_active else "no"
    last = local_time(client.last_used_at) or "never"
    return client.client_id, ", ".join(client.roles), client.platform_id or "", active, last, client.display_name


@app.command()
def disable(client: ClientArgument, server: ServerAddress = None) -> None:
    """Let a client's key open nothing; `enable` lets it count again."""
    from graticule.client import calls

    ask(server, calls.disable_client(client))
    done(f"The key of {client} opens nothing any more.")


@app.command()
def enable(client: ClientArgument, server: ServerAddress = None) -> None:
    """Let the key of a client that was disabled count again."""
    from graticule.client import calls

    ask(server, calls.enable_client(client))
    done(f"The key of {client} counts again.")
