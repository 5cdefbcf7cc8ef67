"""What the command line was told, as the model that is sent: a fault is told in the words of the command line."""

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from graticule.core.errors import InvalidInput

M = TypeVar("M", bound=BaseModel)


def asked(model: type[M], given: Mapping[str, Any]) -> M:
    """Make what is to be sent from what was given; None means that nothing was."""
    try:
        return model(**{name: value for name, value in given.items() if value is not None})
    except ValidationError as error:
        faults = [f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors()]
        raise InvalidInput(f"This cannot be sent. {'; '.join(faults)}.") from None
