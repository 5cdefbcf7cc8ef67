"""Who calls, and who may do what: the one table that both HTTP processes ask."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from graticule.core.ids import ClientId, PlatformId
from graticule.core.models.platform import ClientRole


class Deed(StrEnum):
    """What a caller may be allowed to do."""

    SUBMIT = "submit"  # send data, and retry what failed
    READ = "read"  # requests, assets and their versions, the registry
    INSPECT = "inspect"  # all that is known of the assets of all partners
    REVIEW = "review"  # approve, reject, revoke, clearance, addresses, descriptions
    REMOVE = "remove"  # delete a version, unpublish an asset
    OPERATE = "operate"  # jobs, nodes, events, queues, commands, reprocessing
    ADMINISTER = "administer"  # clients, platforms, the schema
    REPORT = "report"  # what workers tell of their tasks


RESERVED: Final = frozenset({"admin", "gateway", "orchestrator", "worker"})  # our own parts, in the audit trail
STAFF: Final = frozenset({ClientRole.REVIEWER, ClientRole.OPERATOR, ClientRole.ADMIN})
ALLOWED: Final[Mapping[Deed, frozenset[ClientRole]]] = {
    Deed.SUBMIT: frozenset({ClientRole.SUBMITTER, ClientRole.OPERATOR, ClientRole.ADMIN}),
    Deed.READ: frozenset({ClientRole.SUBMITTER, ClientRole.REVIEWER, ClientRole.OPERATOR, ClientRole.ADMIN}),
    Deed.INSPECT: STAFF,
    Deed.REVIEW: frozenset({ClientRole.REVIEWER, ClientRole.ADMIN}),
    Deed.REMOVE: frozenset({ClientRole.REVIEWER, ClientRole.OPERATOR, ClientRole.ADMIN}),
    Deed.OPERATE: frozenset({ClientRole.OPERATOR, ClientRole.ADMIN}),
    Deed.ADMINISTER: frozenset({ClientRole.ADMIN}),
    Deed.REPORT: frozenset({ClientRole.WORKER}),
}


@dataclass(frozen=True, slots=True)
class Caller:
    """Someone whose credential was found good."""

    name: str  # under which deeds are recorded
    roles: frozenset[ClientRole]
    platform_id: PlatformId | None = None  # the only partner whose data this caller sees, unless it is staff
    client_id: ClientId | None = None  # of the API key, if it came by one

    @property
    def is_staff(self) -> bool:
        """Tell whether the caller is one of us, who see the data of all partners."""
        return not self.roles.isdisjoint(STAFF)

    def may(self, deed: Deed) -> bool:
        """Tell whether one of the caller's roles allows this."""
        return not self.roles.isdisjoint(ALLOWED[deed])

    def sees(self, platform_id: str) -> bool:
        """Tell whether a platform's data exist for this caller at all."""
        return self.is_staff or (self.platform_id is not None and self.platform_id == platform_id)
