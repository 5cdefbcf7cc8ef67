"""Settings: `GRATICULE_*` variables, and the platform's established names as aliases.

Every setting can be shown (`graticule config`, logs, the API) without giving a secret away: secrets
are `SecretStr`, the database address masks its password, and a refused value is never echoed.
"""

import math
import re
from collections.abc import Mapping
from enum import StrEnum
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import quote, urlencode

from pydantic import (
    AfterValidator,
    AliasChoices,
    AnyHttpUrl,
    BeforeValidator,
    Field,
    Secret,
    SecretStr,
    ValidationInfo,
    field_validator,
)
from pydantic_settings import BaseSettings, NoDecode, PydanticBaseSettingsSource, SettingsConfigDict

from graticule.core.audience import Audience
from graticule.core.compatibility import RESULT_PATH
from graticule.core.errors import ConfigurationError
from graticule.core.log_format import LogFormat
from graticule.core.token_login import TOKEN_FOR_PASSWORD


class RunMode(StrEnum):
    """The role that a process plays when none is named on the command line."""

    UP = "up"
    ORCHESTRATOR = "orchestrator"
    GATEWAY = "gateway"
    WORKER = "worker"
    SERVE = "serve"


class Transport(StrEnum):
    """What carries tasks to workers."""

    POSTGRES = "postgres"
    SERVICEBUS = "servicebus"


class StorageKind(StrEnum):
    """Where containers are."""

    LOCAL = "local"
    AZURE = "azure"


class DatabaseUrl(Secret[str]):
    """A PostgreSQL address (a URL, or `key=value` pairs) that shows where it leads and never its password."""

    def parts(self) -> dict[str, str]:
        """Give the connection's parameters, or raise `ValueError` (which does not quote the address)."""
        from psycopg import ProgrammingError  # noqa: PLC0415 - workers' child processes start without the driver
        from psycopg.conninfo import conninfo_to_dict  # noqa: PLC0415

        try:
            found = {name: str(value) for name, value in conninfo_to_dict(self.get_secret_value()).items()}
        except ProgrammingError:
            raise ValueError("not an address; write postgresql://user:password@host:port/database") from None
        # A password with such characters splits a URL at the wrong place, and parts of it seem to be something else.
        if "@" in found.get("host", "") + found.get("dbname", "") or re.search(r"[^\d,]", found.get("port", "")):
            raise ValueError("ambiguous; write special characters of the password percent-encoded (%40 for @)")
        return found

    def by_identity(self) -> "DatabaseUrl":
        """Give the address whose password is a token, unless it has one of its own; by TLS, unless it says how."""
        from psycopg.conninfo import make_conninfo  # noqa: PLC0415

        parts = self.parts()
        if "password" in parts:
            return self
        if "user" not in parts:
            raise ConfigurationError(
                "USE_MANAGED_IDENTITY is set, and the address of the database does not say as whom to log in.",
                hint="Name the identity's role in PostgreSQL: POSTGRES_USER, or the user of GRATICULE_DATABASE_URL.",
            )
        if parts.get("sslmode") in {"disable", "allow", "prefer"} and not _is_on_this_machine(parts):
            raise ConfigurationError(
                f"With sslmode={parts['sslmode']} the token of the identity could be read on its way to the database.",
                hint="Write sslmode=verify-full with sslrootcert, or leave sslmode out: then it is `require`.",
            )
        return DatabaseUrl(make_conninfo("", **{"sslmode": "require", **parts, "password": TOKEN_FOR_PASSWORD}))

    def _display(self) -> str:
        try:
            parts = self.parts()
        except ValueError:
            return "**********"
        login = f"{parts['user']}@" if "user" in parts else ""
        port = f":{parts['port']}" if "port" in parts else ""
        return f"postgresql://{login}{parts.get('host', '')}{port}/{parts.get('dbname', '')}"


def _is_on_this_machine(parts: dict[str, str]) -> bool:
    """Tell whether all hosts of a connection are sockets or the loopback; the address of a host wins over its name."""
    hosts = (parts.get("hostaddr") or parts.get("host", "")).split(",")
    return all(re.fullmatch(r"|/.*|@.*|localhost|::1|127(\.\d{1,3}){3}", host) for host in hosts)


class HttpAddress(Secret[AnyHttpUrl]):
    """An HTTP address that shows where it leads, without a login and without the query, which may hold a key."""

    def _display(self) -> str:
        url = self.get_secret_value()
        shown = AnyHttpUrl.build(
            scheme=url.scheme, host=url.host or "", port=url.port, path=(url.path or "").removeprefix("/")
        )
        return str(shown)


def _tiles_template(value: str) -> str:
    """Refuse what is no address of tiles: its host is named in a header of the console, and browsers ask it."""
    is_address = re.fullmatch(r"https?://[A-Za-z0-9.-]+(:\d{1,5})?/[!-~]*", value) is not None
    if not is_address or any(part not in value for part in ("{z}", "{x}", "{y}")):
        raise ValueError("not an address of tiles; write https://host/{z}/{x}/{y}.png")
    return value


def _account_template(value: str) -> str:
    """Refuse what is no address of storage accounts: blobs are read and written there."""
    if re.fullmatch(r"https://[A-Za-z0-9.{}-]+(:\d{1,5})?(/\{account\})?", value) is None or "{account}" not in value:
        raise ValueError("not an address of accounts; write https://{account}.blob.core.windows.net")
    return value


AccountTemplate = Annotated[str, AfterValidator(_account_template)]
TilesTemplate = Annotated[str, Field(max_length=1024), AfterValidator(_tiles_template)]
ContainerName = Annotated[str, Field(pattern=r"^[A-Za-z0-9$][A-Za-z0-9_.-]{0,62}$")]


def broker_variable(settings: Mapping[str, Any]) -> str | None:
    """Return the variable that names a namespace of Service Bus, or None."""
    names = ("service_bus_fqdn", "service_bus_namespace", "service_bus_connection_string")
    return next((name.upper() for name in names if settings.get(name)), None)


def account_variable(settings: Mapping[str, Any]) -> str | None:
    """Return the variable that names accounts of Azure Blob Storage, or None."""
    if settings.get("azure_storage_account_name"):
        return "AZURE_STORAGE_ACCOUNT_NAME"
    return "GRATICULE_AZURE_STORAGE_ACCOUNTS" if settings.get("azure_storage_accounts") else None


ALL_ADDRESSES = "with all addresses anyone could choose the one that is counted; name those of your proxies"


def _networks(value: Any) -> Any:
    """Read addresses and networks, separated by commas; one of all addresses would let callers choose theirs."""
    if not isinstance(value, str):
        return value
    if "*" in value:  # as uvicorn, which read this variable before, takes it
        raise ValueError(ALL_ADDRESSES)
    try:
        networks = tuple(ip_network(part.strip(), strict=False) for part in value.split(",") if part.strip())
    except ValueError:
        raise ValueError("not addresses or networks, separated by commas; write 10.0.0.5 or 10.0.0.0/24") from None
    if any(network.prefixlen == 0 for network in networks):
        raise ValueError(ALL_ADDRESSES)
    return networks


TrustedNetworks = Annotated[tuple[IPv4Network | IPv6Network, ...], NoDecode, BeforeValidator(_networks)]


def _either(name: str) -> AliasChoices:
    """Accept `GRATICULE_<NAME>`, and `<NAME>` itself, the platform's established spelling."""
    return AliasChoices(f"graticule_{name}", name)


DEFAULT_PARTNER_MAX_PRIORITY = 5


class Settings(BaseSettings):
    """All settings of all processes; each process reads what it needs."""

    model_config = SettingsConfigDict(
        env_prefix="GRATICULE_",
        env_ignore_empty=True,
        extra="ignore",
        frozen=True,
        hide_input_in_errors=True,
        populate_by_name=True,
    )

    # The process
    run_mode: RunMode | None = Field(None, validation_alias=_either("run_mode"))
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field("INFO", validation_alias=_either("log_level"))
    log_format: LogFormat = Field(LogFormat.CONSOLE, validation_alias=_either("log_format"))
    development: bool = Field(False, description="Allows destructive commands such as `schema rebuild`.")
    admin_key: SecretStr | None = Field(None, description="The key of an admin who needs no row in the database.")

    # HTTP
    trusted_proxies: TrustedNetworks = Field(
        (),
        validation_alias=AliasChoices("graticule_trusted_proxies", "forwarded_allow_ips"),
        description="Addresses and networks of reverse proxies whose `X-Forwarded-For` is believed.",
    )
    http_max_connections: int = Field(1024, ge=16, le=65536, description="Connections that a process serves at once.")
    http_max_connections_per_address: int = Field(
        256, ge=8, le=65536, description="The same for one address that is no trusted proxy."
    )
    http_head_seconds: float = Field(20.0, gt=0, le=600, description="How long a request's headers may take to come.")
    http_body_seconds: float = Field(
        30.0, gt=0, le=600, description="How long a body may pause; afterwards at least 1 KiB per second has to come."
    )

    # The disks
    min_free_mb: int = Field(
        256, ge=0, description="With less room than this on a disk that it writes to, in MiB, a process is not ready."
    )

    # The embedded default
    home: Path = Field(Path(".graticule"), description="The data folder.")
    pg_bin: Path | None = Field(None, description="The folder of the PostgreSQL programs, when not found.")

    # The database
    database_url: DatabaseUrl | None = Field(None, description="An existing server, instead of the embedded one.")
    owner_database_url: DatabaseUrl | None = Field(
        None, description="The login that may change the schema; default: the login of `database_url`."
    )
    postgres_host: str | None = Field(None, validation_alias=_either("postgres_host"))
    postgres_port: int = Field(5432, ge=1, le=65535, validation_alias=_either("postgres_port"))
    postgres_db: str = Field("graticule", validation_alias=_either("postgres_db"))
    postgres_user: str | None = Field(None, validation_alias=_either("postgres_user"))
    postgres_password: SecretStr | None = Field(None, validation_alias=_either("postgres_password"))
    use_managed_identity: bool = Field(
        False,
        validation_alias=_either("use_managed_identity"),
        description="Logins without a password show a token of the process's identity in Azure instead.",
    )
    managed_identity_client_id: str | None = Field(
        None,
        validation_alias=AliasChoices(
            "graticule_managed_identity_client_id", "managed_identity_client_id", "azure_client_id"
        ),
        description="Which of the managed identities of the machine this process uses.",
    )
    db_admin_managed_identity_client_id: str | None = Field(
        None,
        validation_alias=_either("db_admin_managed_identity_client_id"),
        description="The same for the database; also for all else when no other identity is named.",
    )
    database_pool_size: int = Field(10, ge=1, le=200)
    database_timeout_seconds: float = Field(5.0, gt=0, le=300, description="How long to wait for a connection.")

    # The orchestrator
    orchestrator_poll_interval: float = Field(5.0, gt=0, validation_alias=_either("orchestrator_poll_interval"))
    heartbeat_interval_seconds: float = Field(
        30.0,
        gt=0,
        validation_alias=AliasChoices("graticule_heartbeat_interval_seconds", "heartbeat_interval_sec"),
    )
    orphan_threshold_seconds: float = Field(
        120.0,
        gt=0,
        validation_alias=AliasChoices("graticule_orphan_threshold_seconds", "orphan_threshold_sec"),
    )
    orphan_scan_interval_seconds: float = Field(
        5.0,
        gt=0,
        validation_alias=AliasChoices("graticule_orphan_scan_interval_seconds", "orphan_scan_interval_sec"),
    )
    job_queue_name: str = Field("orchestrator-jobs", max_length=64, validation_alias=_either("job_queue_name"))
    partner_max_priority: int = Field(
        DEFAULT_PARTNER_MAX_PRIORITY,
        ge=0,
        le=10,
        description="A higher priority in a partner's submission is lowered to this.",
    )
    max_active_jobs: int = Field(
        1000, ge=1, description="Over so many active jobs, an orchestrator leaves job messages for the others."
    )
    dispatch_timeout_seconds: float = Field(
        3600.0, ge=0, description="A task that no worker takes within this time fails; 0: it waits for ever."
    )
    queue_dispatch_timeouts: Annotated[dict[str, Annotated[float, Field(ge=0)]], NoDecode] = Field(
        default_factory=dict, description="The same for queues that have their own: `container-tasks=7200,other=0`."
    )
    workflows: str = Field(
        "", description="Further folders of workflows, separated like the entries of PATH; a later one wins."
    )
    unknown_workflow_seconds: float = Field(
        120.0, ge=0, description="How long a job message for an unknown workflow is left to other orchestrators."
    )
    template_environment: str = Field(
        "", description="Names of variables, separated by commas, that templates may read as `env.NAME`."
    )

    # The worker
    worker_queue: str | None = Field(None, validation_alias=_either("worker_queue"))
    worker_type: str | None = Field(None, validation_alias=_either("worker_type"))
    dag_callback_url: HttpAddress | None = Field(None, validation_alias=_either("dag_callback_url"))
    worker_token: SecretStr | None = Field(None, description="What workers show when they report by HTTP.")
    worker_concurrency: int | None = Field(None, ge=1, le=1000, description="Tasks that one worker runs at once.")
    worker_lease_seconds: float = Field(60.0, gt=0, description="A worker that is silent so long loses its tasks.")
    worker_renew_seconds: float = Field(20.0, gt=0, description="How often a worker renews its leases.")
    worker_grace_seconds: float = Field(30.0, ge=0, description="How long a stopping worker waits for its tasks.")

    # Access
    service_key: SecretStr | None = Field(
        None, description="What the gateway signs with when it forwards a caller's request to the orchestrator."
    )
    oidc_issuer: str | None = Field(None, description="Whose bearer tokens are accepted; unset: nobody's.")
    oidc_audience: str | None = Field(None, description="For whom the tokens must be made out.")
    oidc_jwks_url: HttpAddress | None = Field(None, description="Its keys; default: found by OpenID discovery.")
    oidc_algorithms: str = Field("RS256", description="The signatures that are accepted, separated by commas.")
    oidc_role_claim: str = Field("roles", description="The claim that holds our roles.")
    oidc_platform_claim: str = Field("platform_id", description="The claim that names a submitter's platform.")
    oidc_name_claim: str = Field("sub", description="The claim under which deeds are recorded.")
    oidc_client_id: str | None = Field(
        None, min_length=1, max_length=255, description="As whom people sign in to the console at the issuer."
    )
    oidc_client_secret: SecretStr | None = Field(None, description="Its secret; without one, PKCE alone proves it.")
    oidc_scopes: str = Field("openid profile", max_length=1024, description="What is asked of the issuer.")
    oidc_label: str = Field("Sign in with your organization", max_length=64, description="The button that leads there.")
    session_minutes: int = Field(480, ge=1, le=7 * 24 * 60, description="How long one is signed in to the console.")
    rate_limit_per_minute: int = Field(600, ge=1, description="Requests that one client may make in a minute.")
    gateway_max_body_bytes: int = Field(1024 * 1024, ge=1024, description="The largest body that the gateway takes.")

    # The gateway
    orchestrator_url: HttpAddress = Field(
        HttpAddress(AnyHttpUrl("http://127.0.0.1:8001")), description="Where the gateway forwards changes to."
    )
    proxy_targets: Annotated[dict[str, HttpAddress], NoDecode] = Field(
        default_factory=dict, description="Further processes that operators reach: `worker=http://host:8002,serve=…`."
    )
    public_url: HttpAddress | None = Field(None, description="The gateway's address as partners know it.")
    console_base_map: TilesTemplate | None = Field(
        None, description="Tiles below the console's maps: `https://host/{z}/{x}/{y}.png`; unset: coastlines."
    )
    console_base_map_attribution: str = Field("", max_length=500, description="To whom the base map is owed.")

    # The services
    serve_audience: Audience = Field(Audience.INTERNAL, description="For whom `graticule serve` shows the data.")
    serve_key: SecretStr | None = Field(
        None, description="What the gateway signs with when it asks the services in a caller's name."
    )
    serve_url: HttpAddress | None = Field(None, description="The address of the tile, feature and STAC services.")
    external_serve_url: HttpAddress | None = Field(None, description="The address of those for the public.")
    serve_concurrency: int | None = Field(
        None,
        ge=1,
        le=256,
        description="Requests worked on at once; default: twice the processors, at least 8.",
    )
    serve_timeout_seconds: float = Field(30.0, gt=0, le=600, description="How long one request may take.")
    serve_cache_mb: int = Field(64, ge=0, le=65536, description="Memory for answers that are kept; 0: none are.")
    serve_max_age_seconds: int = Field(
        0, ge=0, le=31_536_000, description="How long others may keep an answer without asking; 0: they always ask."
    )
    serve_cors_origins: str = Field(
        "", description="Web sites, separated by commas, whose pages may read the services; `*`: all."
    )

    # Callbacks out
    webhook_secret: SecretStr | None = Field(
        None, description="What callbacks are signed with; each platform has a key derived from it."
    )
    callbacks_paused: bool = Field(False, description="Sends no callbacks; they wait until this is unset.")
    callback_allow: str = Field(
        "", description="Hosts and networks, separated by commas, that callbacks may reach although they are private."
    )

    # The storage
    storage_root: Path | None = Field(None, description="The folder of files; default: `storage` in the data folder.")
    default_container: ContainerName | None = Field(
        None, description="The container of sources that jobs are submitted without; unset: they must name it."
    )
    silver_container: ContainerName = Field("silver", description="The container of what the platform makes.")
    external_container: ContainerName = Field("external", description="The container of copies for the public.")
    storage_allow_hosts: str = Field(
        "", description="Hosts, separated by commas, from which sources may be read by HTTPS."
    )
    storage_allow_roots: str = Field(
        "", description="Folders outside of the storage, separated like PATH's, from which sources may be read."
    )

    # The transport of tasks, and of jobs that are asked for by message
    service_bus_fqdn: str | None = Field(
        None,
        validation_alias=_either("service_bus_fqdn"),
        description="The Service Bus namespace, reached with an identity: `name.servicebus.windows.net`.",
    )
    service_bus_namespace: str | None = Field(
        None, validation_alias=_either("service_bus_namespace"), description="The same by its name alone."
    )
    service_bus_connection_string: SecretStr | None = Field(
        None,
        validation_alias=_either("service_bus_connection_string"),
        description="The namespace with a key, instead of an identity.",
    )
    transport: Transport = Field(
        None, validate_default=True, description="What carries tasks to workers; by default the broker that is named."
    )
    service_bus_message_seconds: int = Field(
        86_400, ge=60, le=14 * 86_400, description="How long the broker keeps a message that nobody takes."
    )

    # Azure Blob Storage
    azure_storage_account_name: str | None = Field(
        None,
        validation_alias=_either("azure_storage_account_name"),
        description="The account of all containers that `azure_storage_accounts` does not name.",
    )
    azure_storage_accounts: Annotated[dict[str, str], NoDecode] = Field(
        default_factory=dict, description="Containers that have an account of their own: `bronze=name,external=other`."
    )
    storage: StorageKind = Field(
        None,
        validate_default=True,
        description="Where containers are: folders, or Azure Blob; by default the accounts that are named.",
    )
    azure_storage_endpoint: AccountTemplate = Field(
        "https://{account}.blob.core.windows.net",
        description="Where an account is reached; other clouds and emulators have others.",
    )
    azure_storage_key: SecretStr | None = Field(None, description="The key of the accounts, instead of an identity.")

    # Azure Data Factory
    adf_subscription_id: str | None = Field(None, description="The subscription of the factory that copies blobs.")
    adf_resource_group: str | None = Field(None, description="The resource group of the factory.")
    adf_factory_name: str | None = Field(None, description="The factory.")
    adf_export_pipeline: str | None = Field(None, description="The pipeline that copies blobs for the public.")
    adf_reversal_pipeline: str | None = Field(None, description="The one that removes them; unset: the worker does.")
    adf_endpoint: HttpAddress = Field(
        HttpAddress(AnyHttpUrl("https://management.azure.com")), description="Where Azure is managed."
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Read the environment and nothing else: to look for files that no setting is kept in takes as long again."""
        return init_settings, env_settings

    @field_validator("log_level", mode="before")
    @classmethod
    def _upper(cls, value: Any) -> Any:
        return value.upper() if isinstance(value, str) else value

    @field_validator("queue_dispatch_timeouts", "proxy_targets", "azure_storage_accounts", mode="before")
    @classmethod
    def _pairs(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        pairs = [pair.partition("=") for pair in value.split(",") if pair.strip()]
        if not all(name.strip() and equals for name, equals, _ in pairs):
            raise ValueError("not pairs; write name=value, separated by commas")
        return {name.strip(): given.strip() for name, _, given in pairs}

    @field_validator("database_url", "owner_database_url")
    @classmethod
    def _parses(cls, value: DatabaseUrl | None) -> DatabaseUrl | None:
        if value is not None:
            value.parts()
        return value

    @field_validator("transport", mode="before")
    @classmethod
    def _follows_the_broker(cls, value: Any, info: ValidationInfo) -> Any:
        if value is not None:
            return value
        return Transport.SERVICEBUS if broker_variable(info.data) else Transport.POSTGRES

    @field_validator("storage", mode="before")
    @classmethod
    def _follows_the_account(cls, value: Any, info: ValidationInfo) -> Any:
        if value is not None:
            return value
        return StorageKind.AZURE if account_variable(info.data) else StorageKind.LOCAL

    @field_validator("dag_callback_url")
    @classmethod
    def _names_the_server(cls, value: HttpAddress | None) -> HttpAddress | None:
        """Accept the address of the endpoint in full, as earlier workers need it."""
        text = "" if value is None else str(value.get_secret_value()).rstrip("/")
        if not text.endswith(RESULT_PATH):
            return value
        return HttpAddress(AnyHttpUrl(text.removesuffix(RESULT_PATH)))

    @field_validator("external_container")
    @classmethod
    def _zones_differ(cls, value: str, info: ValidationInfo) -> str:
        zones = [str(name).casefold() for name in (info.data.get("silver_container"), value, "outputs")]
        if len(set(zones)) < len(zones):
            raise ValueError("the containers must differ: GRATICULE_SILVER_CONTAINER, this one, and `outputs`")
        return value

    @field_validator("worker_renew_seconds")
    @classmethod
    def _renews_in_time(cls, value: float, info: ValidationInfo) -> float:
        if value >= info.data.get("worker_lease_seconds", math.inf):
            raise ValueError(
                "must be less than GRATICULE_WORKER_LEASE_SECONDS, or leases run out before they are renewed; "
                "set it to a third of that, or make the leases longer"
            )
        return value

    @field_validator("orphan_threshold_seconds")
    @classmethod
    def _outlives_heartbeats(cls, value: float, info: ValidationInfo) -> float:
        if value <= info.data.get("heartbeat_interval_seconds", 0):
            raise ValueError(
                "must be more than GRATICULE_HEARTBEAT_INTERVAL_SECONDS, or an orchestrator counts as gone between two "
                "heartbeats; set it to four times that"
            )
        return value

    @property
    def storage_folder(self) -> Path:
        """The folder in which files are kept."""
        return self.storage_root or self.home.expanduser().absolute() / "storage"

    @property
    def external_database(self) -> DatabaseUrl | None:
        """The address of an existing server, or None when the embedded one is meant."""
        if self.database_url is not None:
            return self._logged_in(self.database_url)
        return self._logged_in(DatabaseUrl(self._composed_url())) if self.postgres_host else None

    @property
    def owner_database(self) -> DatabaseUrl | None:
        """The address by which the schema is changed, or None when that is the embedded server's."""
        return self._logged_in(self.owner_database_url) if self.owner_database_url else self.external_database

    @property
    def identity_client_id(self) -> str | None:
        """The managed identity that is shown to the broker and to the storage."""
        return self.managed_identity_client_id or self.db_admin_managed_identity_client_id

    @property
    def database_client_id(self) -> str | None:
        """The managed identity that logs in to the database."""
        return self.db_admin_managed_identity_client_id or self.managed_identity_client_id

    @property
    def identity_login(self) -> str | None:
        """The login of this process's identity, by the name that the documentation of Azure gives it."""
        if not self.use_managed_identity or self.run_mode in {None, RunMode.UP}:
            return None
        audience = f"-{self.serve_audience}" if self.run_mode is RunMode.SERVE else ""
        return f"graticule-{self.run_mode}{audience}"

    def _logged_in(self, address: DatabaseUrl) -> DatabaseUrl:
        return address.by_identity() if self.use_managed_identity else address

    def _composed_url(self) -> str:
        query = {"host": str(self.postgres_host), "port": str(self.postgres_port)}
        if user := self.postgres_user or self.identity_login:
            query["user"] = user
        if self.postgres_password:
            query["password"] = self.postgres_password.get_secret_value()
        return f"postgresql:///{quote(self.postgres_db)}?{urlencode(query, quote_via=quote)}"

    def shown(self) -> dict[str, Any]:
        """All settings as JSON values, secrets masked."""
        return self.model_dump(mode="json")


def secret_variables() -> frozenset[str]:
    """Give the names, in capitals, of the environment variables that hold secrets of ours."""
    names: set[str] = set()
    for name, field in Settings.model_fields.items():
        if "Secret" in repr(field.annotation) or "DatabaseUrl" in repr(field.annotation):
            alias = field.validation_alias
            names |= set(map(str, alias.choices)) if isinstance(alias, AliasChoices) else {f"graticule_{name}"}
    return frozenset(name.upper() for name in names)
