"""What OpenAPI documents of all services say alike."""

import re
from typing import Any

import pytest
from starlette.exceptions import HTTPException

from graticule.serve.gate import _wanted_version


def assert_takes_versions(document: dict[str, Any]) -> None:
    """Expect every operation to take the versions that the gate takes."""
    operations = [operation for path in document["paths"].values() for operation in path.values()]
    for operation in operations:
        (version,) = [each for each in operation["parameters"] if each["name"] == "version"]
        assert (version["in"], version["required"], version["schema"]["default"]) == ("query", False, "latest")
    for text in ("latest", "0", "7", "10", "999999999"):
        assert re.search(version["schema"]["pattern"], text)
        _wanted_version(f"version={text}".encode())
    for text in ("", "01", "-1", "1.0", "newest", "1000000000"):
        assert not re.search(version["schema"]["pattern"], text)
        with pytest.raises(HTTPException):
            _wanted_version(f"version={text}".encode())
