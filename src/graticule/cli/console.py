"""Where commands write: results to standard output, the story to standard error. Text is printed to the letter."""

from rich.console import Console
from rich.text import Text

out = Console(highlight=False, markup=False, emoji=False)
story = Console(stderr=True, highlight=False, markup=False, emoji=False)


def say(sentence: str) -> None:
    """Tell what is being done."""
    _tell("·", "dim", sentence)


def done(sentence: str) -> None:
    """Tell what came out well."""
    _tell("✓", "green", sentence)


def warn(sentence: str) -> None:
    """Tell what the user should look at."""
    _tell("!", "yellow", sentence)


def fail(message: str, hint: str | None = None) -> None:
    """Tell what went wrong, and how to mend it."""
    _tell("✗", "red", message)
    if hint:
        story.print(f"  {hint}", soft_wrap=True)


def _tell(sign: str, style: str, sentence: str) -> None:
    story.print(Text.assemble((sign, style), f" {sentence}"), soft_wrap=True)
