"""Examples of the documentation, run as a reader would run them."""

import io
from contextlib import redirect_stdout


def ran(program: str) -> str:
    """Run a program, and give what it prints."""
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(compile(program, "example", "exec"), {"__name__": "__main__"})
    return printed.getvalue()
