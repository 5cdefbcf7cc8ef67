"""What a configuration comes to where it does not say so: shown below it by `graticule config`."""

from graticule.config import Settings, StorageKind, Transport, account_variable, broker_variable


def explain_settings(settings: Settings) -> list[str]:
    """Return what follows from the settings without being said in them."""
    broker = broker_variable(dict(settings))
    found = []
    if broker and "transport" not in settings.model_fields_set:
        found.append(
            f"Tasks travel by Service Bus because {broker} names a namespace. "
            "To keep them in PostgreSQL, set GRATICULE_TRANSPORT=postgres."
        )
    elif broker and settings.transport is Transport.POSTGRES:
        found.append(f"{broker} has no effect: GRATICULE_TRANSPORT=postgres keeps tasks in PostgreSQL.")
    account = account_variable(dict(settings))
    if account and "storage" not in settings.model_fields_set:
        found.append(
            f"Files are kept in Azure Blob Storage because {account} names an account. Name it for all processes, "
            "the orchestrator too. To keep files in folders, set GRATICULE_STORAGE=local."
        )
    elif account and settings.storage is StorageKind.LOCAL:
        found.append(f"{account} has no effect: GRATICULE_STORAGE=local keeps files in folders.")
    return [*found, *filter(None, (_login_note(settings), _worker_note(settings)))]


def _login_note(settings: Settings) -> str | None:
    """Say as whom an identity logs in when nobody has said so."""
    is_named = settings.database_url is not None or settings.postgres_user is not None
    if is_named or not (settings.use_managed_identity and settings.postgres_host):
        return None
    if login := settings.identity_login:
        return (
            f"The login at the database is {login}, the one of the identity of this process in the documentation. "
            "To log in as another one, set POSTGRES_USER."
        )
    return (
        "USE_MANAGED_IDENTITY does not say as whom to log in to the database: "
        "set POSTGRES_USER, or RUN_MODE for the login of that process."
    )


def _worker_note(settings: Settings) -> str | None:
    """Say what a worker that reports by HTTP is still without."""
    if settings.dag_callback_url is None or settings.database_url or settings.postgres_host:
        return None
    if settings.transport is Transport.POSTGRES:
        return (
            "DAG_CALLBACK_URL alone brings no tasks. For those of a broker, set SERVICE_BUS_FQDN as for the "
            "orchestrator; for those in PostgreSQL, set the variables of the database."
        )
    if settings.worker_token is None:
        return "The orchestrator refuses the reports of this worker: set GRATICULE_WORKER_TOKEN alike for both."
    return None
