"""Partners, clients, commands and callbacks out at the orchestrator: for operators and admins."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pydantic import JsonValue

from graticule.client.call import Call, change, get
from graticule.client.models import (
    ClientView,
    ClientWithKey,
    CommandListItem,
    CommandResult,
    Delivery,
    Page,
    WebhookSecret,
)
from graticule.core.models import Platform
from graticule.core.models.platform import ClientRole

PLATFORM = "/api/v1/platforms/{platform_id}"
CLIENT = "/api/v1/clients/{client_id}"


def list_platforms(*, inactive: bool = False) -> Call[Page[Platform]]:
    """List the partner systems by id; those that take no submissions only if wanted."""
    return get(Page[Platform], "/api/v1/platforms", {"inactive": inactive})


def get_platform(platform_id: str) -> Call[Platform]:
    """Give one partner system: which fields identify its datasets, and which one is the version."""
    return get(Platform, PLATFORM, platform_id=platform_id)


def add_platform(
    platform_id: str,
    *,
    display_name: str,
    required_refs: Sequence[str],
    version_ref: str,
    optional_refs: Sequence[str] = (),
    source_containers: Sequence[str] | None = None,
    description: str | None = None,
    four_eyes: bool = False,
) -> Call[Platform]:
    """Add a partner system; the very same again changes nothing."""
    body = {
        "platform_id": platform_id,
        "display_name": display_name,
        "description": description,
        "required_refs": list(required_refs),
        "optional_refs": list(optional_refs),
        "version_ref": version_ref,
        **({} if source_containers is None else {"source_containers": list(source_containers)}),
        **({"four_eyes": True} if four_eyes else {}),
    }
    return change("POST", Platform, "/api/v1/platforms", body)


def change_platform(
    platform_id: str,
    *,
    display_name: str | None = None,
    description: str | None = None,
    required_refs: Sequence[str] | None = None,
    optional_refs: Sequence[str] | None = None,
    version_ref: str | None = None,
    source_containers: Sequence[str] | None = None,
    is_active: bool | None = None,
    four_eyes: bool | None = None,
) -> Call[Platform]:
    """Change a partner system; what is None stays as it is."""
    wanted = {
        "display_name": display_name,
        "description": description,
        "required_refs": None if required_refs is None else list(required_refs),
        "optional_refs": None if optional_refs is None else list(optional_refs),
        "version_ref": version_ref,
        "source_containers": None if source_containers is None else list(source_containers),
        "is_active": is_active,
        "four_eyes": four_eyes,
    }
    body = {name: value for name, value in wanted.items() if value is not None}
    return change("PATCH", Platform, PLATFORM, body, platform_id=platform_id)


def get_webhook_secret(platform_id: str) -> Call[WebhookSecret]:
    """Give the secret that signs the callbacks to a partner."""
    return get(WebhookSecret, f"{PLATFORM}/webhook-secret", platform_id=platform_id)


def get_operators_webhook_secret() -> Call[WebhookSecret]:
    """Give the secret that signs the callbacks of operators' jobs."""
    return get(WebhookSecret, "/api/v1/deliveries/webhook-secret")


def list_clients() -> Call[Page[ClientView]]:
    """List who has a key, by id."""
    return get(Page[ClientView], "/api/v1/clients")


def get_client(client_id: str) -> Call[ClientView]:
    """Give one client."""
    return get(ClientView, CLIENT, client_id=client_id)


def add_client(
    client_id: str, *, display_name: str, roles: Sequence[ClientRole], platform_id: str | None = None
) -> Call[ClientWithKey]:
    """Add a client; its key is in the answer, and can never be shown again."""
    body = {"client_id": client_id, "display_name": display_name, "roles": list(roles), "platform_id": platform_id}
    return change("POST", ClientWithKey, "/api/v1/clients", body)


def rotate_client(client_id: str) -> Call[ClientWithKey]:
    """Give a client another key; the one before opens nothing any more."""
    return change("POST", ClientWithKey, f"{CLIENT}/rotate", client_id=client_id)


def disable_client(client_id: str) -> Call[ClientView]:
    """Let a client's key open nothing."""
    return change("POST", ClientView, f"{CLIENT}/disable", client_id=client_id)


def enable_client(client_id: str) -> Call[ClientView]:
    """Let a client's key count again."""
    return change("POST", ClientView, f"{CLIENT}/enable", client_id=client_id)


def list_commands() -> Call[Page[CommandListItem]]:
    """List the direct commands with the schemas of their parameters."""
    return get(Page[CommandListItem], "/api/v1/commands")


def run_command(name: str, parameters: Mapping[str, JsonValue] | None = None) -> Call[CommandResult]:
    """Carry out a direct command; to repeat one does no harm."""
    call = change("POST", CommandResult, "/api/v1/commands/{name}", parameters or {}, name=name)
    return replace(call, repeatable=True)


def list_deliveries(
    *, state: str | None = None, job_id: str | None = None, limit: int | None = None
) -> Call[Page[Delivery]]:
    """List callbacks out, newest first."""
    return get(Page[Delivery], "/api/v1/deliveries", {"state": state, "job_id": job_id, "limit": limit})


def get_delivery(callback_id: int) -> Call[Delivery]:
    """Give one callback."""
    return get(Delivery, "/api/v1/deliveries/{callback_id}", callback_id=callback_id)


def redeliver(callback_id: int) -> Call[Delivery]:
    """Send a callback anew, also one that was delivered."""
    return change("POST", Delivery, "/api/v1/deliveries/{callback_id}/redeliver", callback_id=callback_id)
