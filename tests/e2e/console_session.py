"""The console blocks of a page, run one after the other as a reader would, and compared with what the page shows.

A line that begins with `$ ` is a command; what follows it, up to the next one, is what it prints. `…` stands for
anything: alone in a line for any lines, within one for any text. Ids, times and the widths of columns differ each time
and are not compared. Of a job that is watched the page shows what a terminal draws: the tree.

Commands of ours run in processes that have imported everything already, all others in bash.
"""

import re
import shlex
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.forks import ForkedCommand
from tests.unit.docs.pages import blocks

SECONDS = 60.0
LOOKS_ON = re.compile(r"\bgraticule asset status\b")  # what it tells may take a moment to come true
OURS = re.compile(r"(?P<settings>(?:[A-Z_]+=\S+ )*)graticule (?P<arguments>[^|]*)(?:\| (?P<rest>.*))?", re.DOTALL)
ASSIGNED = re.compile(r"(?P<name>[a-z]\w*)=\$\((?P<command>.*)\)", re.DOTALL)
DIFFERENT_EACH_TIME = (
    (re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b[0-9a-f]{32}\b"), "<id>"),
    (re.compile(r"\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\b"), "<when>"),
    (re.compile(r"(?<=127\.0\.0\.1:)\d{4,5}\b"), "<port>"),
    (re.compile(r"(?:(?<=completed)|(?<=failed)) +[\d.]+ s(?= |$)"), ""),  # a moment is not told
    (re.compile(r"\b\d+(\.\d+)? s\b"), "<time>"),
    (re.compile(r"[ \t]+"), " "),
)


@dataclass(frozen=True)
class Step:
    """A command, and the lines that the page shows of what it prints."""

    command: str
    shown: tuple[str, ...]


def steps(text: str) -> Iterator[Step]:
    """Give the commands of a page in order."""
    for block in blocks(text, "console"):
        lines = block.splitlines()
        while lines:
            first = lines.pop(0)
            assert first.startswith("$ "), f"no command: {first}"
            command = first.removeprefix("$ ")
            while not _is_whole(command):
                command += f"\n{lines.pop(0)}"
            shown = []
            while lines and not lines[0].startswith("$ "):
                shown.append(lines.pop(0))
            yield Step(command, tuple(shown))


def _is_whole(command: str) -> bool:
    if found := re.search(r"<<'(\w+)'", command):
        return command.endswith(f"\n{found[1]}")
    try:
        shlex.split(command)
    except ValueError:  # a quotation that goes on in the next line
        return False
    return True


def plain(line: str) -> str:
    """Take out of a line what is different each time."""
    for pattern, instead in DIFFERENT_EACH_TIME:
        line = pattern.sub(instead, line)
    return line.strip()


def is_shown(shown: tuple[str, ...], printed: str) -> bool:
    """Tell whether this was printed, and nothing else."""
    wanted = ""
    for line in shown:
        if line.strip() == "…":
            wanted += r"(?:.*\n)*?"
        else:
            wanted += ".*?".join(re.escape(plain(part)) for part in line.split("…")) + r"\n"
    told = "".join(f"{plain(line)}\n" for line in printed.strip("\n").splitlines())
    return re.fullmatch(wanted, told) is not None


@dataclass
class Session:
    """A terminal in a folder: its variables, and what a reader's folder and addresses are called here."""

    folder: Path
    variables: dict[str, str]
    called_here: dict[str, str] = field(default_factory=dict)

    def play(self, text: str, page: str) -> None:
        """Run all commands of a page, or of a part of one."""
        for step in steps(text):
            self.take(step, page)

    def take(self, step: Step, page: str) -> None:
        """Run one command, and compare; one that looks on is run again until it sees what the page shows."""
        deadline = time.monotonic() + SECONDS
        while not is_shown(step.shown, printed := self._run(self._here(step.command))):
            again = LOOKS_ON.search(step.command) and time.monotonic() < deadline
            shown = "\n".join(step.shown)
            assert again, f"{page}:\n$ {step.command}\n--- the page shows\n{shown}\n--- it printed\n{printed}"
            time.sleep(0.2)

    def _here(self, command: str) -> str:
        for name, here in self.called_here.items():
            command = command.replace(name, here)
        return command

    def _run(self, command: str) -> str:
        if assigned := ASSIGNED.fullmatch(command):
            given, told = self._parts(assigned["command"])
            self.variables[assigned["name"]] = given.strip()
            return told
        given, told = self._parts(command)
        return told + given

    def _parts(self, command: str) -> tuple[str, str]:
        """Run a command, and give what it prints to standard output and to standard error."""
        if ours := OURS.fullmatch(command):
            given, told = self._graticule(ours["settings"], ours["arguments"])
            return (given, told) if ours["rest"] is None else (self._bash(ours["rest"], given), told)
        return self._bash(command), ""

    def _bash(self, command: str, given: str = "") -> str:
        ran = subprocess.run(
            ["bash", "-c", command],
            cwd=self.folder,
            env=self.variables,
            input=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=SECONDS,
        )
        return ran.stdout

    def _graticule(self, settings: str, arguments: str) -> tuple[str, str]:
        expanded = self._bash(f"printf '%s\\n' {settings} -- {arguments}").splitlines()
        place = expanded.index("--")
        more = dict(each.split("=", 1) for each in expanded[:place] if each)
        out, err = self.folder / "command.out", self.folder / "command.err"
        out.write_text("")
        err.write_text("")
        ForkedCommand(expanded[place + 1 :], self.folder, self.variables | more, out, err).wait(SECONDS)
        watched = "--watch" in expanded or expanded[place + 1] == "watch"
        return drawn(out.read_text()) if watched else out.read_text(), err.read_text()


def drawn(printed: str) -> str:
    """Give what a terminal draws of a job: the tree, with the job in its first line."""
    return printed[printed.rindex("\n\n") + 2 :] if "\n\n" in printed else printed
