"""The page with every command and its options, made from the command line itself."""

import inspect
import re
from collections.abc import Iterator
from enum import Enum
from typing import Any, Final

from scripts.documentation.markdown import anchor_of, code, heading, page, table
from typer.main import get_command

from graticule.cli.main import app

INTRODUCTION: Final = (
    "Every command with all that it takes, as `graticule COMMAND --help` tells it. [The command line](commands.md) has "
    "them on one screen, and what all commands share."
)
PROGRAM: Final = "graticule"


def pages() -> dict[str, str]:
    """Give the page."""
    told = [_command(names, command) for names, command in commands(get_command(app))]
    return {"reference/command_options.md": page("Commands and options", INTRODUCTION, *told)}


def commands(command: Any, names: tuple[str, ...] = (PROGRAM,)) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Give all commands that do something, with the words by which they are called."""
    further = getattr(command, "commands", {})
    if not further or command.invoke_without_command:
        yield names, command
    for name, each in further.items():
        if not each.hidden:
            yield from commands(each, (*names, name))


def _command(names: tuple[str, ...], command: Any) -> str:
    arguments = [each for each in command.params if each.param_type_name == "argument" and not each.hidden]
    options = [each for each in command.params if each.param_type_name == "option" and not each.hidden]
    usage = " ".join([*names, *(["[OPTIONS]"] if options else []), *map(_argument, arguments)])
    parts = (
        heading(2, code(" ".join(names)), anchor_of(*names)),
        _prose(command.help),
        code(usage),
        table(("argument", "what"), [(code(_placeholder(each)), _prose(each.help)) for each in arguments]),
        table(("option", "default", "what"), [(_names(each), _default(each), _prose(each.help)) for each in options]),
    )
    return "\n\n".join(part for part in parts if part)


def _argument(argument: Any) -> str:
    return _placeholder(argument) if argument.required else f"[{_placeholder(argument)}]"


def _placeholder(parameter: Any) -> str:
    return str(parameter.metavar or parameter.name.upper())


def _names(option: Any) -> str:
    names = ", ".join(map(code, [*option.opts, *option.secondary_opts]))
    if option.is_flag:
        return names
    annotation = option.type_descriptor.annotation
    if inspect.isclass(annotation) and issubclass(annotation, Enum):
        return f"{names} {', '.join(code(each.value) for each in annotation)}"
    return f"{names} {code(option.metavar or getattr(annotation, '__name__', str(annotation)).upper())}"


def _default(option: Any) -> str:
    if option.required:
        return "required"
    given = option.default.value if isinstance(option.default, Enum) else option.default
    if given is True:
        return "on"
    return "" if given in (None, False, "") or callable(given) else code(given)


def _prose(text: str | None) -> str:
    """Give the text of a help, whose square brackets may be marks of Rich."""
    return re.sub(r"\[/?(?:bold|dim|italic)\]", "", inspect.cleandoc(text or ""))
