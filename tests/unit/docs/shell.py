"""The commands that pages show: taken out of their blocks, and taken apart.

A block called `console` shows a terminal: a line that begins with `$ ` is a command, which goes on while a quotation, a
backslash or a here-document does, and all else is what it prints. A block called `sh` is a script.
"""

import re
import shlex
from collections.abc import Iterator

from tests.unit.docs.snippets import Snippet

_HERE = re.compile(r"<<-?\s*['\"]?(\w+)['\"]?")
_ASSIGNMENT = re.compile(r"[\w$]+=")
_OPERATOR = re.compile(r"[();|&]+")
_REDIRECTION = re.compile(r"[<>&]*[<>][<>&]*")
_OPENING_WORDS = frozenset({"do", "then", "else", "if", "while", "!", "time", "{"})
_CLOSING_WORDS = frozenset({"for", "done", "fi", "}"})


def commands(snippet: Snippet) -> Iterator[str]:
    """Give the commands of a block as they are typed."""
    prompt = "$ " if snippet.language == "console" else ""
    lines = snippet.text.splitlines()
    while lines:
        command = lines.pop(0)
        if not command.startswith(prompt) or not command.strip():
            continue
        while not _is_whole(command):
            assert lines, f"{snippet}: a command does not end: {command}"
            command += f"\n{lines.pop(0)}"
        yield command.removeprefix(prompt)


def _is_whole(command: str) -> bool:
    if found := _HERE.search(command):
        return command.endswith(f"\n{found[1]}")
    try:
        shlex.split(command, comments=True)
    except ValueError:  # a quotation, or a backslash at the end
        return False
    return not command.endswith("\\")


def simple_commands(command: str) -> Iterator[tuple[dict[str, str], list[str]]]:
    """Give each program that a command runs, as its words, with the variables that are set for it."""
    for words in _parts(_HERE.split(command)[0].replace("\\\n", " ")):
        while words and words[0] in _OPENING_WORDS:
            words.pop(0)
        if words and words[0] in ("export", "env"):
            words.pop(0)
        variables = {}
        while words and _ASSIGNMENT.match(words[0]):
            name, _, value = words.pop(0).partition("=")
            variables[name] = value
        if variables or (words and words[0] not in _CLOSING_WORDS):
            yield variables, words


def _parts(command: str) -> Iterator[list[str]]:
    """Give the words between operators, without redirections and their files."""
    tokens = shlex.shlex(command, posix=True, punctuation_chars=True)
    tokens.whitespace_split = True
    words: list[str] = []
    is_file = False
    for token in tokens:
        if is_file:
            is_file = False
        elif _REDIRECTION.fullmatch(token):
            is_file = True
        elif _OPERATOR.fullmatch(token):
            yield words
            words = []
        else:
            words.append(token)
    yield words
