"""Looks in a process of its own whether a file leads to others, and whether GDAL can open it at all.

The libraries behind NetCDF and HDF5 take a few damaged bytes for a reason to compute for hours or to crash. A file
with which they do is found out here, where that hurts nobody.
"""

import resource
import subprocess
import sys
from typing import Final

from pydantic import TypeAdapter, ValidationError

from graticule.core.errors import Unavailable
from graticule.handlers.findings import Finding, Rejected
from graticule.handlers.raster.validation_codes import Code, finding

SECONDS: Final = 20
_MEMORY_BYTES: Final = 2 * 1024**3
_UNAVAILABLE: Final = 75  # the exit status of one who may be asked again
_FINDINGS: Final = TypeAdapter(list[Finding])


def check_in_a_process(name: str) -> None:
    """Reject a file that leads to others, or that GDAL does not open within the time and the memory."""
    command = [sys.executable, "-m", __name__]
    try:  # the name may hold a signature, and arguments can be seen by others
        ended = subprocess.run(  # noqa: S603 - our own module
            command, input=name.encode(), capture_output=True, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise _not_opened() from None
    if ended.returncode == _UNAVAILABLE:  # then nothing is known, so nobody may open it
        raise Unavailable("The source could not be read over the network.")
    if found := _told(ended):
        raise Rejected(found)


def _told(ended: subprocess.CompletedProcess[bytes]) -> list[Finding]:
    if ended.returncode:
        raise _not_opened()
    try:
        return _FINDINGS.validate_json(ended.stdout)
    except ValidationError:
        raise _not_opened() from None


def _not_opened() -> Rejected:
    what = "It cannot be opened, or not within the time and the memory that a raster needs."
    return Rejected([finding(Code.CORRUPT, what)])


def _main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))  # should the parent be gone
    try:
        found = _findings(sys.stdin.buffer.read().decode())
    except Unavailable:
        sys.exit(_UNAVAILABLE)
    sys.stdout.buffer.write(_FINDINGS.dump_json(found))


def _findings(name: str) -> list[Finding]:
    from graticule.handlers.raster.opening import gdal_environment, open_raster  # noqa: PLC0415 - after the limits

    try:
        with gdal_environment(16), open_raster(name):
            return []
    except Rejected as rejected:
        return rejected.findings


if __name__ == "__main__":
    _main()
