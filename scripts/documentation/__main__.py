"""`python -m scripts.documentation build` makes the site, `… serve` shows it and follows what is written."""

import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from scripts.documentation.site import CHECKOUT, build, copy_written, gather, generator

FOLDER: Final = CHECKOUT / "build" / "documentation"
LOOK_EVERY_SECONDS: Final = 0.5
ADDRESS: Final = "127.0.0.1:8009"  # beside the ports of an installation


def main(arguments: list[str]) -> int:
    """Do what is asked for; return the exit status."""
    match arguments:
        case ["build"]:
            return _build(FOLDER)
        case ["serve"]:
            return _serve(FOLDER)
    print("usage: python -m scripts.documentation build|serve", file=sys.stderr)
    return 2


def _build(folder: Path) -> int:
    gather(folder)
    done = build(folder)
    if done.returncode == 0:
        print(f"The site is in {(folder / 'site').relative_to(CHECKOUT)}: open index.html there.")
    else:
        print(done.stdout + done.stderr, file=sys.stderr)
    return done.returncode


def _serve(folder: Path) -> int:
    """Show the site, and bring in what is written meanwhile; what is made from the code stays as it was."""
    gather(folder)
    server = subprocess.Popen(generator("serve", folder, "--dev-addr", ADDRESS), cwd=folder)
    try:
        while server.poll() is None:
            time.sleep(LOOK_EVERY_SECONDS)
            copy_written(folder)
    except KeyboardInterrupt:
        server.terminate()
    return server.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
