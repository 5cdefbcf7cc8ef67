"""A reviewer's day at the console: what waits is looked at on the map, approved for everyone, or sent back."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser as Chromium
from playwright.sync_api import Locator, expect
from tests.browser.conftest import Browser
from tests.browser.console.callers import Caller
from tests.browser.console.conftest import StartSite
from tests.browser.console.island import (
    Sender,
    false_colours,
    natural_colours,
    write_beaches,
    write_picture,
    write_trees,
)
from tests.browser.console.site import ADMIN_KEY
from tests.browser.console.visitor import Visitor, visiting
from tests.browser.maps import Picture, decoded
from tests.conftest import TestDatabase
from tests.e2e.installation import Program
from tests.e2e.processes import free_ports

from graticule.cli.demo_island import Island
from graticule.core.table import DatabaseRole

TILE = "/tiles/WebMercatorQuad/11/675/939.png"  # in the middle of the island
NOTE = "Please send the next one with a land mask."
REASON = "The beaches of the north are missing. Send them all."
FOR_OPERATORS = "/api/(proxy|admin|status)/"
NEXT_FRAMES = "() => new Promise((shown) => requestAnimationFrame(() => requestAnimationFrame(shown)))"
TREES = 15_000  # more than a tile is made of while someone waits
CLOSE = 5  # of 255, in the mean


@dataclass(frozen=True)
class Waiting:
    """What waits for the reviewer: the second version of a picture, and the first of some beaches."""

    picture: str
    beaches: str
    sender: Sender


@pytest.mark.timeout(300)
def test_a_reviewers_day(
    database: TestDatabase, start_site: StartSite, start_process: Any, browser: Browser, pictures: Path
) -> None:
    public_port = free_ports()
    public_url = f"http://127.0.0.1:{public_port}"
    site = start_site(serve=True, GRATICULE_EXTERNAL_SERVE_URL=public_url)
    public_settings = {
        "GRATICULE_SERVE_AUDIENCE": "external",
        "GRATICULE_EXTERNAL_SERVE_URL": public_url,
        "GRATICULE_DATABASE_URL": database.url(DatabaseRole.SERVE_EXTERNAL),
    }
    admin = Caller(site.until_ready(), ADMIN_KEY)
    public: Program = start_process("serve", port=public_port, GRATICULE_HOME=str(site.home), **public_settings)
    waiting = processed(admin)
    public.until_status("/readyz", 200)

    def story(chromium: Chromium) -> None:
        with visiting(chromium, admin.url, pictures) as visitor:
            an_operator_cannot_decide(visitor, admin, waiting)
            visitor.sign_out()
            comes_to_the_review_by_keyboard(visitor, admin)
            both_versions_are_on_the_map(visitor)
            the_picture_can_be_changed(visitor)
            assert public.status(f"/tiles/{waiting.picture}{TILE}") == 404
            approves_by_keyboard(visitor)
            assert public.until_status(f"/tiles/{waiting.picture}{TILE}", 200).headers["content-type"] == "image/png"
            the_beaches_are_looked_at(visitor)
            what_is_overwritten_meanwhile_is_looked_at_again(visitor, waiting.sender)
            the_beaches_are_sent_back(visitor)
            assert visitor.asked(FOR_OPERATORS) == []
            visitor.sign_out()
            assets_are_found(visitor, admin)
            an_asset_tells_where_it_came_from_and_where_it_is(visitor, waiting, public_url)
            what_is_unpublished_is_gone(visitor)
            public.until_status(f"/tiles/{waiting.picture}{TILE}", 410)

    browser.lend(story)


@pytest.mark.timeout(300)
def test_a_reviewer_sees_how_many_features_are_shown(start_site: StartSite, browser: Browser, pictures: Path) -> None:
    admin = Caller(start_site(serve=True).until_ready(), ADMIN_KEY)
    sender = Sender.of(admin)
    wood = sender.send("vector", "wood", "2026", write_trees(sender.container / "wood.gpkg", TREES))
    sender.until_processed(wood)

    def story(chromium: Chromium) -> None:
        with visiting(chromium, admin.url, pictures) as reviewer:
            reviewer.open(f"/review/{wood['asset_id']}/0")
            reviewer.sign_in(admin.key)
            idle(reviewer.page.locator(".map-frame"))
            told = f"10 of {TREES + 10:,} features in view are shown individually; {TREES:,} are merged into shapes."
            expect(reviewer.page.locator(".map-counts")).to_have_text(f"{told} Zoom in to see more.")
            reviewer.examine("many_features")
            expect(reviewer.page.get_by_role("button", name=re.compile("Approve"))).to_be_visible()

    browser.lend(story)


def processed(admin: Caller) -> Waiting:
    """Have a partner send data, the first version of which is approved."""
    island, sender = Island.make(), Sender.of(admin)
    first = write_picture(sender.container / "island.tif", natural_colours(island))
    second = write_picture(sender.container / "island_false.tif", false_colours(island))
    beaches = write_beaches(sender.container / "beaches.gpkg", island)
    picture = sender.send("raster", "relief", "2025", first)
    shore = sender.send("vector", "beaches", "2025", beaches)
    sender.until_processed(picture, shore)
    admin.post("/api/platform/approve", asset_id=picture["asset_id"], clearance_level="ouo")
    sender.until_processed(sender.send("raster", "relief", "2026", second, clearance_level="public"))
    return Waiting(picture["asset_id"], shore["asset_id"], sender)


def an_operator_cannot_decide(operator: Visitor, admin: Caller, waiting: Waiting) -> None:
    olaf = admin.add_client("olaf-of-operations", "operator")
    operator.open(f"/review/{waiting.picture}/1")
    operator.sign_in(olaf.key)
    operator.sees_title("island / relief")
    operator.sees("Reviewers decide here. Your roles let you look on.")
    operator.sees("Previews of what waits for a decision are for reviewers.")
    operator.page.keyboard.press("a")
    expect(operator.page.get_by_role("dialog")).to_have_count(0)
    expect(operator.page.get_by_role("button", name=re.compile("Approve|Reject"))).to_have_count(0)
    assert operator.asked("/api/view/preview") == []
    refused = operator.page.request.post(
        f"{operator.url}/api/platform/approve",
        headers={"X-Graticule-Console": "1"},
        data={"asset_id": waiting.picture, "clearance_level": "public"},
    )
    assert refused.status == 403


def comes_to_the_review_by_keyboard(reviewer: Visitor, admin: Caller) -> None:
    """The longest waiting comes first; of the navigation there is what reviewers may see."""
    rita = admin.add_client("rita-of-review", "reviewer")
    reviewer.page.keyboard.type(rita.key)
    reviewer.page.keyboard.press("Enter")
    views = reviewer.page.get_by_role("navigation", name="Main").get_by_role("link")
    expect(views).to_have_text(["Review", "Assets"])
    reviewer.tab_to(views.first)
    reviewer.page.keyboard.press("Enter")
    reviewer.sees_title("Review")
    rows = reviewer.page.get_by_role("table").locator("tbody tr")
    expect(rows).to_have_count(2)
    expect(rows.nth(0)).to_contain_text("island / beaches")
    expect(rows.nth(1)).to_contain_text("version 0")  # which it would replace
    expect(rows.nth(1)).to_contain_text("Public")  # what its partner proposed; it is for official use only so far
    reviewer.examine("queue", light="queue.png")
    reviewer.tab_to(reviewer.page.get_by_role("link", name="island / relief"))
    reviewer.page.keyboard.press("Enter")
    reviewer.sees_title("island / relief")
    proposed = reviewer.page.locator("dt", has_text="Proposed clearance")
    expect(proposed.locator("xpath=following-sibling::dd[1]")).to_have_text("Public")


def both_versions_are_on_the_map(reviewer: Visitor) -> None:
    """What is in service is left of the divider, what waits is right of it; red and blue are exchanged in it."""
    reviewer.page.keyboard.press("s")
    swipe = reviewer.page.locator(".map-swipe")
    expect(swipe).to_be_visible()
    both = drawn(reviewer, swipe)
    reviewer.tab_to(reviewer.page.get_by_role("slider", name="Divider between In service and This version"))
    reviewer.page.keyboard.press("End")
    before = drawn(reviewer, swipe)
    reviewer.page.keyboard.press("Home")
    after = drawn(reviewer, swipe)
    for side in (left_of_the_middle, right_of_the_middle):
        assert apart(side(before), side(after)) > 2 * CLOSE
        assert apart(side(before), side(after)[:, :, ::-1]) < CLOSE
    assert apart(left_of_the_middle(both), left_of_the_middle(before)) < CLOSE
    assert apart(right_of_the_middle(both), right_of_the_middle(after)) < CLOSE
    for _ in range(5):
        reviewer.page.keyboard.press("PageUp")
    expect(reviewer.page.get_by_role("slider", name="Divider")).to_have_attribute("aria-valuenow", "50")
    drawn(reviewer, swipe)
    reviewer.examine("review", light="review.jpg")


def the_picture_can_be_changed(reviewer: Visitor) -> None:
    """Its opacity, its bands and the values between which they are drawn; all of it is in the address."""
    swipe = reviewer.page.locator(".map-swipe")
    whole = drawn(reviewer, swipe)
    for _ in range(5):
        reviewer.page.keyboard.press("[")
    expect(reviewer.page.get_by_label("Opacity: 50 %")).to_be_visible()
    assert apart(left_of_the_middle(drawn(reviewer, swipe)), left_of_the_middle(whole)) > CLOSE
    look = reviewer.page.get_by_role("group", name="Picture")
    look.get_by_label("Bands").select_option("A single one")
    look.get_by_label("Colours").select_option("Grey")
    grey = left_of_the_middle(drawn(reviewer, swipe))
    assert apart(grey, grey[:, :, ::-1]) < CLOSE
    highest = look.get_by_label("Band: highest value")
    highest.fill("60")
    highest.press("Enter")
    assert left_of_the_middle(drawn(reviewer, swipe)).mean() > grey.mean() + 2 * CLOSE
    assert "60" in reviewer.page.url


def approves_by_keyboard(reviewer: Visitor) -> None:
    reviewer.page.keyboard.press("a")
    dialog = reviewer.page.get_by_role("dialog", name="Approve island / relief")
    reviewer.tab_to(dialog.get_by_role("radio", name="Official use only"))
    reviewer.page.keyboard.press("ArrowDown")
    expect(dialog.get_by_role("radio", name="Public")).to_be_checked()
    expect(
        dialog.get_by_text(re.compile(r"^Version \d .* enters the public services at revision 1\.$"))
    ).to_be_visible()
    note = dialog.get_by_label("Note (optional)")
    reviewer.tab_to(note)
    reviewer.page.keyboard.type(NOTE)
    reviewer.examine("approve_dialog")
    reviewer.tab_to(dialog.get_by_role("button", name="Approve"))
    reviewer.page.keyboard.press("Enter")
    expect(dialog).to_have_count(0)
    reviewer.sees("Approved. It is in service.")
    reviewer.sees(NOTE)


def the_beaches_are_looked_at(reviewer: Visitor) -> None:
    reviewer.page.get_by_role("link", name="Next: island / beaches").click()
    reviewer.sees_title("island / beaches")
    frame = reviewer.page.locator(".map-frame")
    reviewer.page.get_by_label("Colour", exact=True).fill("#ff0000")
    rows, columns = np.nonzero(is_red(drawn(reviewer, frame)))
    assert len(rows) > 500
    middle = len(rows) // 2
    frame.click(position={"x": int(columns[middle]), "y": int(rows[middle])})
    expect(reviewer.page.get_by_role("region", name="Features here")).to_contain_text("Beach ")
    reviewer.examine("vector_review")
    reviewer.button("Close").click()


def what_is_overwritten_meanwhile_is_looked_at_again(reviewer: Visitor, sender: Sender) -> None:
    """What was on the map is not what a decision would be about; the page leads to what is."""
    reviewer.page.keyboard.press("r")
    dialog = reviewer.page.get_by_role("dialog")
    dialog.get_by_label("Reason").fill(REASON)
    file = sender.container / "beaches.gpkg"
    sender.until_processed(sender.send("vector", "beaches", "2025", file, overwrite=True))
    with reviewer.expecting("409.*/api/platform/reject"):
        dialog.get_by_role("button", name="Reject").click()
        expect(dialog).to_contain_text("You looked at revision 1. Revision 2 has taken its place.")
    reviewer.examine("overtaken")
    with reviewer.expecting("409.*/api/platform/reject"):  # the decision still names what was looked at
        dialog.get_by_role("button", name="Reject").click()
        expect(dialog).to_contain_text("You looked at revision 1. Revision 2 has taken its place.")
    dialog.get_by_role("button", name="Look at revision 2").click()
    expect(dialog).to_have_count(0)
    reviewer.sees("It changed while you looked: this is revision 2 now.")
    idle(reviewer.page.locator(".map-frame"))


def the_beaches_are_sent_back(reviewer: Visitor) -> None:
    reviewer.page.keyboard.press("r")
    reviewer.confirm("Reject", lambda dialog: dialog.get_by_label("Reason").fill(REASON))
    reviewer.sees("Rejected. The partner is told why.")
    reviewer.go_to("Review")
    reviewer.sees("Nothing waits for a decision.")


def assets_are_found(visitor: Visitor, admin: Caller) -> None:
    """By what they are called, by their kind, and by where they are."""
    visitor.sign_in(admin.key)
    visitor.go_to("Assets")
    rows = visitor.page.get_by_role("table").locator("tbody tr")
    expect(rows).to_have_count(2)
    idle(visitor.page.locator(".map-frame"))
    visitor.examine("assets", light="assets.png")
    visitor.page.get_by_label("Type", exact=True).select_option("Vector")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("Rejected")
    visitor.page.get_by_label("Text", exact=True).fill("relief")
    visitor.sees("No asset fits this search.")
    visitor.button("Clear the search").click()
    expect(rows).to_have_count(2)
    visitor.button("Zoom in").click()
    visitor.button("Search in this part of the map").click()
    visitor.sees("Within ")
    expect(rows).to_have_count(2)
    visitor.page.get_by_role("link", name="island / relief").click()


def an_asset_tells_where_it_came_from_and_where_it_is(visitor: Visitor, waiting: Waiting, public_url: str) -> None:
    visitor.sees_title("island / relief")
    public = visitor.page.get_by_role("group", name="Public")
    expect(public.get_by_role("link").first).to_have_attribute("href", f"{public_url}/tiles/{waiting.picture}")
    expect(visitor.page.get_by_role("group", name="Internal").get_by_role("link")).to_have_count(2)
    idle(visitor.page.locator(".map-frame"))
    visitor.examine("asset", light="asset.png")
    visitor.page.get_by_role("tab", name="Lineage").click()
    visitor.sees("by harbour-office")
    visitor.sees("Making public copies")
    visitor.examine("lineage")
    for tab, told in {
        "Revisions": "No version was processed anew",
        "Description": "Nobody has described this version.",
        "History": "was approved, and the asset cleared: Public",
    }.items():
        visitor.page.get_by_role("tab", name=tab).click()
        visitor.sees(told)


def what_is_unpublished_is_gone(visitor: Visitor) -> None:
    """It is not enough to click: what is to be removed has to be named."""
    visitor.button("Unpublish").click()
    dialog = visitor.page.get_by_role("dialog")
    dialog.get_by_role("button", name="Unpublish").click()
    expect(dialog.get_by_label("to confirm")).to_be_focused()
    assert visitor.asked("POST .*unpublish") == []
    label = dialog.get_by_text(re.compile("^Type [0-9a-f]+ to confirm$"))
    visitor.confirm("Unpublish", lambda _: dialog.get_by_label("to confirm").fill(label.inner_text().split()[1]))
    visitor.sees("This asset was unpublished by admin")
    visitor.sees("No version of this asset is in service.")


# What the map shows


def idle(frames: Locator) -> None:
    """Wait until all maps have drawn what is in sight."""
    for frame in frames.all():
        expect(frame).to_have_attribute("data-state", "idle")


def drawn(visitor: Visitor, frame: Locator) -> Picture:
    """Give what a map shows once all of it is drawn."""
    expect(visitor.page.locator(".map-frame").first).to_be_visible()
    visitor.tell(NEXT_FRAMES)  # by then the map knows what was changed
    idle(visitor.page.locator(".map-frame"))
    return decoded(frame.screenshot(animations="disabled"))


def left_of_the_middle(picture: Picture) -> Picture:
    """Cut out a part beside the divider's place, where nothing lies over the map."""
    height, width, _ = picture.shape
    return picture[int(0.3 * height) : int(0.7 * height), int(0.36 * width) : int(0.46 * width)]


def right_of_the_middle(picture: Picture) -> Picture:
    return left_of_the_middle(picture[:, ::-1])[:, ::-1]


def apart(one: Picture, other: Picture) -> float:
    """Tell by how much two pictures differ, in the mean of all pixels and colours."""
    return float(np.abs(one.astype(int) - other.astype(int)).mean())


def is_red(picture: Picture) -> Any:
    return (picture[:, :, 0] > 150) & (picture[:, :, 1] < 130) & (picture[:, :, 2] < 130)
