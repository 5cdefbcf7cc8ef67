"""Azure Service Bus as the transport: it carries messages, and the rows decide."""

from graticule.core.errors import ConfigurationError

try:
    import azure.servicebus  # noqa: F401 - the extra is not always installed
except ImportError:
    raise ConfigurationError(
        "The transport is Service Bus, and the packages for it are not installed.",
        hint="Install graticule[azure], or leave GRATICULE_TRANSPORT at postgres.",
    ) from None
