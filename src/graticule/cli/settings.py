"""Settings for commands: from the environment, with what the command line says on top."""

import os
from pathlib import Path
from typing import Any

from pydantic import AliasChoices, ValidationError

from graticule.config import Settings
from graticule.core.errors import ConfigurationError


def load_settings(**overrides: Any) -> Settings:
    """Read the settings; a bad one is named with the reason and never with its value."""
    given = {name: value for name, value in overrides.items() if value is not None}
    try:
        return Settings(**given)
    except ValidationError as error:
        problems = "; ".join(f"{_variable(str(item['loc'][0]))}: {item['msg']}" for item in error.errors())
        raise ConfigurationError(
            f"The settings are not valid: {problems}.", hint="docs/reference/settings.md lists them."
        ) from None


def absolute_home(settings: Settings) -> Path:
    """Give the data folder as an absolute path: child processes may start elsewhere."""
    return settings.home.expanduser().absolute()


def _variable(told: str) -> str:
    """Give the variable that a setting came from, as the user wrote it; `told` is one of the setting's names."""
    for name, field in Settings.model_fields.items():
        choices = field.validation_alias.choices if isinstance(field.validation_alias, AliasChoices) else []
        variables = [str(choice).upper() for choice in choices] or [f"GRATICULE_{name}".upper()]
        if told == name or told.upper() in variables:
            given = {variable.upper() for variable in os.environ}
            return next((variable for variable in variables if variable in given), variables[0])
    return told.upper()
