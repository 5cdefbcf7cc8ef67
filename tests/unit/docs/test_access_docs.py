"""docs/reference/access.md says what the roles, the routes, the services and the settings say."""

import re

from tests.unit.docs.pages import code, codes, page, table

from graticule.api.app import ROUTERS
from graticule.config import Settings
from graticule.core.errors import CrossSiteRequest
from graticule.core.permissions import ALLOWED, RESERVED
from graticule.http.callers import MOST_BYTES_OF_STRANGERS
from graticule.http.rate_limits import FAILURES_PER_MINUTE, NAMELESS_PER_MINUTE
from graticule.http.sessions import CONSOLE_HEADER, FROM_CONSOLE
from graticule.services import access, issuer_documents, oidc, oidc_sign_in, service_tokens
from graticule.services.clients import USE_NOTED_EVERY

PAGE = page("access.md")
SETTINGS = page("settings.md")
ACCESS_SETTINGS = {"admin_key", "service_key", "session_minutes", "rate_limit_per_minute"} | {
    name for name in Settings.model_fields if name.startswith("oidc_")
}


def test_the_table_of_roles_is_the_one_that_is_asked() -> None:
    told = {code(deed): {*codes(roles)} for deed, _, roles in table(PAGE, "| deed |")}
    assert told == {deed.value: {role.value for role in roles} for deed, roles in ALLOWED.items()}


def test_every_request_of_the_page_is_a_route() -> None:
    routes = {
        f"{method} {getattr(route, 'path', '')}"
        for router in ROUTERS
        for route in router.routes
        for method in getattr(route, "methods", ())
    }
    told = [each for each in codes(PAGE) if re.match(r"(GET|POST) ", each)]
    assert len(told) == 7
    assert set(told) <= routes


def test_every_setting_of_access_is_told_with_its_default() -> None:
    rows = {
        match[1]: match[2].strip().strip("`")
        for match in re.finditer(r"^\| `(GRATICULE_\w+)` \| ([^|]*)\|", SETTINGS, re.MULTILINE)
    }
    for name in ACCESS_SETTINGS:
        default = Settings.model_fields[name].default
        told = rows[f"GRATICULE_{name}".upper()]
        assert default is None or told == str(default), name


def test_every_setting_that_the_page_names_is_one() -> None:
    named = {name.lower() for name in re.findall(r"GRATICULE_(\w+)", PAGE)}
    assert named <= set(Settings.model_fields)


def test_the_numbers_are_right() -> None:
    assert f"at most {access.CACHE_SECONDS:.0f} s" in PAGE
    assert f"After {FAILURES_PER_MINUTE} wrong credentials in a minute" in PAGE
    assert f"or {NAMELESS_PER_MINUTE} requests without any" in PAGE
    assert f"requests ({Settings().rate_limit_per_minute}) in a minute" in PAGE
    assert f"with {oidc.LEEWAY_SECONDS} s for clocks" in PAGE
    assert f"at most every\n{issuer_documents.AGAIN_SECONDS:.0f} s" in PAGE
    assert issuer_documents.LIFE_SECONDS == 3600
    assert f"good for {service_tokens.LIFE.seconds} s" in PAGE
    assert f"least {service_tokens.SHORTEST_KEY_BYTES} bytes" in PAGE
    assert USE_NOTED_EVERY.seconds == 60
    assert f"`GRATICULE_SESSION_MINUTES` ({Settings().session_minutes})" in PAGE
    assert f"may send {MOST_BYTES_OF_STRANGERS} bytes" in PAGE
    assert f"may take {oidc_sign_in.LIFE.seconds // 60} minutes" in PAGE
    assert all(f"`{reason}`" in PAGE for reason in oidc_sign_in.Failure)
    assert f"`{CONSOLE_HEADER}: {FROM_CONSOLE}`" in PAGE
    assert f"`{CrossSiteRequest.code}`" in PAGE
    assert service_tokens.ISSUER in PAGE
    assert all(each.audience in PAGE for each in (service_tokens.TO_ORCHESTRATOR, service_tokens.TO_SERVICES))
    assert all(f"`{name}`" in PAGE for name in RESERVED)
