"""Who is let in, by what, and for how long; real processes, an OpenID issuer on loopback, and a real browser."""

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import httpx
import pytest
from playwright.sync_api import Browser as Chromium
from playwright.sync_api import expect
from tests.browser.conftest import Browser
from tests.browser.console.callers import ORCHESTRATOR, Caller
from tests.browser.console.conftest import StartSite
from tests.browser.console.site import ADMIN_KEY
from tests.browser.console.visitor import Visitor, visiting
from tests.e2e.eventually import eventually
from tests.unit.services.issuer import AuthorizationServer, issuer_running

LABEL = "Sign in with the survey"
REFUSED = "status of 401"
READ_ANEW = "() => document.dispatchEvent(new Event('visibilitychange'))"  # as when the page is shown again
BROKEN = "ERR_CONNECTION_REFUSED|ERR_CONNECTION_RESET|ERR_INCOMPLETE_CHUNKED|ERR_EMPTY_RESPONSE"
WRONG_KEY = "gtc_" + "x" * 43


@pytest.fixture
def issuer() -> Iterator[AuthorizationServer]:
    with issuer_running() as (issuer, _):
        yield issuer


@pytest.mark.timeout(180)
def test_signing_in_and_staying_signed_in(
    start_site: StartSite, browser: Browser, issuer: AuthorizationServer, pictures: Path
) -> None:
    site = start_site(
        GRATICULE_OIDC_ISSUER=issuer.url,
        GRATICULE_OIDC_AUDIENCE=issuer.client_id,
        GRATICULE_OIDC_CLIENT_ID=issuer.client_id,
        GRATICULE_OIDC_LABEL=LABEL,
    )
    admin = Caller(site.until_ready(), ADMIN_KEY)
    issuer.redirect_uris.add(f"{admin.url}/api/session/oidc/callback")

    def story(chromium: Chromium) -> None:
        with visiting(chromium, admin.url, pictures) as visitor:
            visitor.open()
            a_wrong_key_is_refused(visitor)
            a_partner_is_told_that_the_console_is_not_for_partners(visitor, admin)
            somebody_without_a_role_is_told_so(visitor, issuer)
            an_account_of_the_organization_opens_the_page_that_was_wanted(visitor, issuer)
            a_session_ends_with_its_client(visitor, admin)
            no_script_can_read_or_add_anything(visitor, admin)
            with visiting(chromium, admin.url, pictures) as reviewer:
                a_lost_connection_is_told_and_comes_back(visitor, reviewer, admin)
            what_happens_in_another_window_counts_here(visitor, admin)
            who_cannot_sign_out_is_told_so(visitor, admin)
            signing_out_leaves_nothing(visitor)

    browser.lend(story)


def a_wrong_key_is_refused(visitor: Visitor) -> None:
    visitor.sees_title("Graticule")
    visitor.examine("sign_in", light="sign_in.png")
    with visitor.expecting(REFUSED):
        visitor.sign_in(WRONG_KEY)
        expect(visitor.page.get_by_role("alert")).to_be_visible()
    assert visitor.page.context.cookies() == []
    assert WRONG_KEY not in visitor.page.url


def a_partner_is_told_that_the_console_is_not_for_partners(visitor: Visitor, admin: Caller) -> None:
    partner = admin.add_client("ddh-portal", "submitter", platform_id="ddh")
    visitor.sign_in(partner.key)
    visitor.sees("This console is for operators and reviewers.")
    visitor.sees("ddh-portal is a partner")
    expect(visitor.page.get_by_role("navigation")).to_have_count(0)
    assert visitor.asked("/api/status|/api/admin|/api/proxy") == []
    visitor.sign_out()


def somebody_without_a_role_is_told_so(visitor: Visitor, issuer: AuthorizationServer) -> None:
    issuer.claims = {"roles": ["gardener"]}
    with visitor.expecting(f"asked {re.escape(issuer.url)}/authorize"):
        visitor.page.get_by_role("link", name=LABEL).click()
        expect(visitor.page.get_by_role("alert")).to_contain_text("Your account has no role here.")
    assert visitor.page.context.cookies() == []


def an_account_of_the_organization_opens_the_page_that_was_wanted(
    visitor: Visitor, issuer: AuthorizationServer
) -> None:
    issuer.claims = {"roles": ["operator"], "sub": "ada@example.org"}
    visitor.open(f"/jobs?{urlencode({'status': 'failed'})}")
    with visitor.expecting(f"asked {re.escape(issuer.url)}/authorize"):
        visitor.page.get_by_role("link", name=LABEL).click()
        visitor.sees_title("Jobs")
    assert visitor.page.url == f"{visitor.url}/jobs?status=failed"
    visitor.sees("ada@example.org · Operator")
    assert len(issuer.used) == 2
    visitor.sign_out()


def a_session_ends_with_its_client(visitor: Visitor, admin: Caller) -> None:
    olaf = admin.add_client("olaf-of-operations", "operator")
    visitor.open("/jobs")
    visitor.sign_in(olaf.key)
    visitor.sees_title("Jobs")
    visitor.sees("olaf-of-operations · Operator")
    with visitor.expecting(REFUSED, surely=False):  # the session may be heard of first, and the pages ask no more
        admin.post(f"{ORCHESTRATOR}/clients/olaf-of-operations/disable")
        eventually(lambda: is_refused(olaf), "the end of the key")
        visitor.tell(READ_ANEW)
        visitor.sees("The session has ended. Sign in again.")
    visitor.sign_in(admin.key)
    visitor.sees_title("Jobs")


def is_refused(caller: Caller) -> bool:
    answer = httpx.get(f"{caller.url}/api/status/jobs", headers={"X-API-Key": caller.key}, verify=False)
    return answer.status_code == 401


def no_script_can_read_or_add_anything(visitor: Visitor, admin: Caller) -> None:
    """The session is in a cookie that scripts do not see; nothing is kept beside it, and no inline script runs."""
    (cookie,) = visitor.page.context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    assert visitor.tell("() => document.cookie") == ""
    kept = visitor.tell("() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }])")
    assert admin.key not in kept
    assert cookie["value"] not in kept
    assert visitor.page.locator("script:not([src]), style").count() == 0
    refusal = "Content Security Policy"
    with visitor.expecting(refusal), visitor.page.expect_console_message(lambda message: refusal in message.text):
        taken = visitor.tell("""() => {
            const script = document.createElement('script')
            script.textContent = 'window.taken = true'
            document.body.append(script)
            return window.taken ?? null
        }""")
    assert taken is None


def a_lost_connection_is_told_and_comes_back(visitor: Visitor, reviewer: Visitor, admin: Caller) -> None:
    """Those who are told by the stream notice at once, those who ask every few seconds with their next question."""
    rita = admin.add_client("rita-of-review", "reviewer")
    reviewer.open()
    reviewer.sign_in(rita.key)
    reviewer.sees_title("Review")
    expect(visitor.page.get_by_text("Live", exact=True)).to_be_visible()
    expect(reviewer.page.get_by_text("Every 5 s", exact=True)).to_be_visible()
    with visitor.expecting(BROKEN), reviewer.expecting(BROKEN):
        with admin.site.down("gateway"):
            for each in (visitor, reviewer):
                each.sees("The connection is lost.")
        admin.site.until_ready()
        for each in (visitor, reviewer):
            expect(each.page.get_by_text("The connection is lost.")).to_have_count(0)
    expect(visitor.page.get_by_text("Live", exact=True)).to_be_visible()
    expect(reviewer.page.get_by_text("Every 5 s", exact=True)).to_be_visible()


def what_happens_in_another_window_counts_here(visitor: Visitor, admin: Caller) -> None:
    """Both have the same cookie: who signs out in one is signed out in the other when it is looked at again."""
    other = visitor.page.context.new_page()
    other.goto(visitor.url)
    with visitor.expecting(REFUSED, surely=False):  # by the stream of events, too, which ends with the session
        other.get_by_role("button", name="Sign out").click()
        expect(other.get_by_label("API key")).to_be_visible()
        other.close()
        visitor.tell(READ_ANEW)
        visitor.sees("The session has ended. Sign in again.")
    visitor.sign_in(admin.key)
    visitor.sees("admin · Admin")


def who_cannot_sign_out_is_told_so(visitor: Visitor, admin: Caller) -> None:
    visitor.settle()
    with visitor.expecting(BROKEN):
        with admin.site.down("gateway"):
            visitor.button("Sign out").click()
            visitor.sees("You are still signed in")
        admin.site.until_ready()
        expect(visitor.page.get_by_text("Live", exact=True)).to_be_visible()


def signing_out_leaves_nothing(visitor: Visitor) -> None:
    visitor.sign_out()
    assert visitor.page.context.cookies() == []
    visitor.page.reload()
    expect(visitor.page.get_by_label("API key")).to_be_visible()
