"""Files of partners, for submissions of which only the way through the platform matters."""

from pathlib import Path
from typing import Any


def put_source(storage: Path, name: str, content: bytes = b"a file of a partner") -> None:
    """Put a file at `container/path` into a storage of this machine."""
    file = storage / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)


def put_source_of(storage: Path, submission: Any) -> None:
    """Put the file where a submission says that it is; what it cannot be found under is left out."""
    container, name = submission["container_name"], submission["file_name"]
    if container == "bronze" and not {"", ".", ".."} & set(name.split("/")):
        put_source(storage, f"{container}/{name}")
