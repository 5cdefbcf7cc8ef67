"""The server's settings: durable first, then sized for one machine."""

import re
from collections.abc import Mapping
from pathlib import Path

from graticule.core.errors import ConfigurationError
from graticule.embedded.files import write_atomically
from graticule.embedded.server_user import ServerUser

FILE_NAME = "graticule.conf"
_INCLUDE = f"include '{FILE_NAME}'"

DEFAULTS: Mapping[str, str] = {
    # What was committed stays committed.
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    # Who may come in.
    "listen_addresses": "127.0.0.1",
    "password_encryption": "scram-sha-256",
    "max_connections": "200",
    # Memory.
    "shared_buffers": "256MB",
    "work_mem": "16MB",
    "maintenance_work_mem": "128MB",
    # Checkpoints far apart, because loads of rasters and vectors write in bursts.
    "checkpoint_timeout": "15min",
    "max_wal_size": "2GB",
    "min_wal_size": "256MB",
    "wal_compression": "on",
    # The planner: solid-state disks, and short statements that compiling would only slow down.
    "random_page_cost": "1.1",
    "jit": "off",
    # Queue tables change fast, and pgstac has many partitions.
    "autovacuum_naptime": "15s",
    "max_locks_per_transaction": "256",
    # The log. Parameters stay out of it: they may be secret.
    "log_line_prefix": "%m [%p] %q%u@%d ",
    "log_lock_waits": "on",
    "log_min_duration_statement": "10s",
    "log_parameter_max_length": "0",
    "log_parameter_max_length_on_error": "0",
    "logging_collector": "off",
    "log_destination": "stderr",
    "log_timezone": "UTC",
    "timezone": "UTC",
}

# Where the server has it. With checksums, whoever first reads a new page after a checkpoint writes all of it to the
# log: the load of 10,000,000 features took a third longer with PostgreSQL's own compression.
QUICK_COMPRESSION: Mapping[str, str] = {"wal_compression": "lz4"}


def rendered(settings: Mapping[str, str]) -> str:
    """The text of a PostgreSQL configuration file."""
    lines = [f"{_name(name)} = {_quoted(name, value)}" for name, value in settings.items()]
    return "\n".join(["# Written by graticule at each start; put your own changes into postgresql.conf.", *lines, ""])


def write_configuration(data: Path, user: ServerUser, settings: Mapping[str, str]) -> None:
    """Put the settings into the cluster, over the defaults."""
    owner = (user.uid, user.gid) if user.switched else None
    write_atomically(data / FILE_NAME, rendered({**DEFAULTS, **settings}), mode=0o600, owner=owner)
    main = data / "postgresql.conf"
    content = main.read_text(encoding="utf-8")
    if _INCLUDE not in content.splitlines():
        write_atomically(main, f"{content.rstrip()}\n\n{_INCLUDE}\n", mode=0o600, owner=owner)


def _name(name: str) -> str:
    if not re.fullmatch(r"[a-z_][a-z0-9_.]*", name):
        raise ConfigurationError(
            f"{name!r} is not the name of a PostgreSQL setting.", hint="Names are like `work_mem`."
        )
    return name


def _quoted(name: str, value: str) -> str:
    if "\n" in value or "\r" in value:
        raise ConfigurationError(
            f"The PostgreSQL setting {name} has a value of several lines.", hint="Give it in one line."
        )
    escaped = value.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"
