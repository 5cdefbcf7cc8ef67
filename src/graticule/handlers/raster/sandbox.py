"""Opens a partner's file in a process of its own, and writes the raster that is meant in it as a GeoTIFF.

The libraries behind NetCDF, HDF5, GRIB and others take a few damaged bytes for a reason to compute for hours, to take
all memory or to crash. Here that hurts nobody, and everybody else only opens what was written here.
"""

import contextlib
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Final

from pydantic import BaseModel, ConfigDict, ValidationError

from graticule.core.errors import Unavailable
from graticule.handlers.findings import Finding, Rejected
from graticule.handlers.raster.options import Resampling, Tier
from graticule.handlers.raster.raster_type import RasterType
from graticule.handlers.raster.selection import SourceSelection
from graticule.handlers.raster.validation_codes import Code, finding

OPEN_SECONDS: Final = 20  # to open a file and to find the raster in it
READ_SECONDS: Final = 120  # for each of the parts in which it is read
CPU_SECONDS: Final = 3600
MEMORY_BYTES: Final = 2 * 1024**3
MAX_FILE_BYTES: Final = 65 * 1024**3  # of each file it writes: what may be converted, and some tags
_UNAVAILABLE: Final = 75  # the exit status of one who may be asked again


class Warping(BaseModel):
    """How an image that has no grid of its own is brought to that of the output."""

    model_config = ConfigDict(frozen=True)

    target_crs: str | None = None
    raster_type: RasterType | None = None  # None when nobody has said what the pixels are
    output_tier: Tier = "analysis"
    resampling: Resampling = "auto"


class ConversionRequest(BaseModel):
    """Which file, which raster of it, and where it is written; nowhere when the file is only looked at."""

    model_config = ConfigDict(frozen=True)

    name: str  # as GDAL opens it; a file of this machine when something is to be written
    kind: str  # of `file_kinds`, found by the first bytes
    ending: str = ""  # of the name that it was sent by, by which GDAL tells NetCDF from HDF5
    is_remote: bool = False  # for all tasks but this one
    selection: SourceSelection = SourceSelection()
    sidecars: dict[str, str] = {}  # files of this machine, by their endings
    warping: Warping = Warping()
    output: str | None = None


class Conversion(BaseModel):
    """What was found, and whether it was, or has to be, written as a GeoTIFF."""

    findings: list[Finding] = []
    is_needed: bool = False
    driver: str = ""
    variable: str | None = None
    control_points: int = 0
    has_rpcs: bool = False
    has_grid: bool = True  # of its own, and not only points or polynomials that place it


def convert_in_sandbox(request: ConversionRequest, watch: Callable[[], None] = lambda: None) -> Conversion:
    """Look at a file, and write the raster that is meant in it if it cannot be read as it is.

    One that leads to other files, has nothing to be chosen, or cannot be opened within the limits is `Rejected`.
    """
    command = [sys.executable, "-m", __name__]
    with subprocess.Popen(  # noqa: S603 - our own module
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        try:  # the name may hold a signature, and arguments can be seen by others
            output = _communicate(process, request.model_dump_json().encode(), watch)
        except BaseException:
            process.kill()
            raise
    if process.returncode == _UNAVAILABLE:  # then nothing is known, so nobody may open it
        raise Unavailable("The source could not be read over the network.")
    done = _parse(process.returncode, output)
    if rejections := [each for each in done.findings if each.severity == "reject"]:
        raise Rejected(rejections)
    return done


def _communicate(process: subprocess.Popen[bytes], request: bytes, watch: Callable[[], None]) -> bytes:
    given: bytes | None = request
    while True:
        watch()
        try:
            return process.communicate(given, timeout=0.5)[0]
        except subprocess.TimeoutExpired:
            given = None  # it goes on to send what was given at first


def _parse(status: int, output: bytes) -> Conversion:
    with contextlib.suppress(ValidationError):
        if status == 0:
            return Conversion.model_validate_json(output)
    what = "The file could not be opened within the time and memory limits."
    raise Rejected([finding(Code.CORRUPT, what)]) from None


def _main() -> None:
    signal.alarm(OPEN_SECONDS)  # ends the process wherever it is
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))  # should the parent be gone
    resource.setrlimit(resource.RLIMIT_FSIZE, (MAX_FILE_BYTES, MAX_FILE_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    from graticule.handlers.raster.conversion import convert  # noqa: PLC0415 - after the limits

    request = ConversionRequest.model_validate_json(sys.stdin.buffer.read())
    try:
        done = convert(request, _allow_more_time)
    except Unavailable:
        sys.exit(_UNAVAILABLE)
    except Rejected as rejected:
        done = Conversion(findings=rejected.findings)
    sys.stdout.buffer.write(done.model_dump_json().encode())


def _allow_more_time() -> None:
    signal.alarm(READ_SECONDS)


if __name__ == "__main__":
    _main()
