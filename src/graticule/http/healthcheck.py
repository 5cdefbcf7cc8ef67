"""Ask the process of this container how it is, as a container engine does: `python -m graticule.http.healthcheck`.

It imports next to nothing, for it is started every few seconds.
"""

import os
import sys
from http.client import HTTPConnection, HTTPException
from typing import Final

TIMEOUT_SECONDS: Final = 5


def main(path: str = "/livez") -> int:
    """Give the exit status: 0 if the process answers well at the path, on the port of `GRATICULE_PORT`."""
    connection = HTTPConnection("127.0.0.1", int(os.environ["GRATICULE_PORT"]), timeout=TIMEOUT_SECONDS)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        sys.stdout.write(f"{answer.status} {answer.read(4096).decode(errors='replace')}\n")
    except (OSError, HTTPException) as error:
        sys.stdout.write(f"no answer: {error}\n")
        return 1
    finally:
        connection.close()
    return 0 if answer.status == 200 else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
