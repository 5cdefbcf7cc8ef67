"""The tools beside which ours is measured: each in a process of its own, with the same output options."""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import rasterio
import rio_cogeo

from benchmarks.machine import make_ready

# In megabytes, as GDAL reads it from the environment.
ENVIRONMENT = {"GDAL_CACHEMAX": "1024", "GDAL_NUM_THREADS": "ALL_CPUS"}
CREATION = {
    "COMPRESS": "DEFLATE",
    "LEVEL": "6",
    "PREDICTOR": "2",
    "BLOCKSIZE": "512",
    "OVERVIEW_RESAMPLING": "AVERAGE",
    "NUM_THREADS": "ALL_CPUS",
}
# They are spared the mask that ours writes: it is more work, and not what a plain command does.
WARPED = {"TARGET_SRS": "EPSG:4326", "WARP_RESAMPLING": "NEAREST", "ADD_ALPHA": "NO"}
ROOT = Path(__file__).resolve().parents[2]  # from where our script is found
SCRIPT = (sys.executable, "-m", "benchmarks.raster.with_rasterio")
GDAL_PROGRAMS = ("gdalwarp", "gdal_translate")


class ToolFailed(Exception):
    """A tool did not make its file."""


@dataclass(frozen=True)
class Tool:
    """A command that makes a COG in EPSG:4326; the names of source and target are added to it."""

    name: str
    version: str
    command: tuple[str, ...]


@dataclass(frozen=True)
class ToolRun:
    """What a tool took."""

    tool: str
    version: str
    seconds: float
    cpu_seconds: float
    peak_mb: float
    size_bytes: int


def known_tools() -> list[Tool]:
    """Give the tools that are installed here."""
    warp = ("-t_srs", "EPSG:4326", "-r", "near", "-multi", "-wo", "NUM_THREADS=ALL_CPUS", "-wm", "512")
    own = f"GDAL {rasterio.__gdal_version__}"
    programs = [
        Tool("gdalwarp", _version("gdalwarp"), ("gdalwarp", "-q", *warp, "-of", "COG", *_options(CREATION))),
        Tool(
            "gdal_translate",
            _version("gdal_translate"),
            ("gdal_translate", "-q", "-of", "COG", *_options(CREATION | WARPED)),
        ),
    ]
    return [
        *(tool for tool in programs if tool.version),
        Tool("rasterio WarpedVRT to COG", own, (*SCRIPT, "copy")),
        Tool("rio cogeo", f"{rio_cogeo.__version__}, {own}", (*SCRIPT, "rio-cogeo")),
    ]


def missing_programs() -> list[str]:
    """Name the GDAL programs that are not installed; rasterio brings none."""
    return [name for name in GDAL_PROGRAMS if shutil.which(name) is None]


def run_tool(tool: Tool, source: Path, folder: Path) -> ToolRun:
    """Run a tool to its end."""
    folder.mkdir(parents=True, exist_ok=True)
    target, log = folder / "output.tif", folder / "output.log"
    target.unlink(missing_ok=True)
    make_ready(source)
    began = time.perf_counter()
    with log.open("wb") as output:
        process = subprocess.Popen(
            (*tool.command, str(source), str(target)),
            cwd=ROOT,
            env=os.environ | ENVIRONMENT,
            stdout=output,
            stderr=output,
        )
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode or not target.exists():
        raise ToolFailed(f"{tool.name} ended with {process.returncode}: {log.read_text(errors='replace')[-1000:]}")
    size = target.stat().st_size
    target.unlink()
    cpu_seconds = usage.ru_utime + usage.ru_stime
    return ToolRun(tool.name, tool.version, seconds, cpu_seconds, usage.ru_maxrss / 1024, size)


def _options(given: dict[str, str]) -> Sequence[str]:
    return [word for name, value in given.items() for word in ("-co", f"{name}={value}")]


def _version(program: str) -> str:
    """Give the version of a GDAL program; empty when it is not installed."""
    if shutil.which(program) is None:
        return ""
    said = subprocess.run((program, "--version"), capture_output=True, text=True, check=True).stdout
    found = re.search(r"GDAL [\d.]+", said)
    return found[0] if found else said.strip()
