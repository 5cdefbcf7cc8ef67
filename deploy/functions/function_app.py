# ruff: noqa: INP001 - the host wants this file in the folder itself
"""What the Azure Functions host looks for: the gateway, as one function that answers at every address."""

from graticule.gateway.functions import create_function_app

app = create_function_app()
