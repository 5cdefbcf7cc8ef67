"""Somebody who uses the console in a browser, and what no page may do meanwhile."""

import json
import re
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from playwright.sync_api import Browser as Chromium
from playwright.sync_api import Locator, Page, Request, Response, ViewportSize, expect
from playwright.sync_api import TimeoutError as PlaywrightTimeout
from tests.browser.conftest import complaints_of

AXE: Final = Path(__file__).parents[3] / "console/node_modules/axe-core/axe.min.js"
SERIOUS: Final = {"serious", "critical"}
CONTRAST: Final = ["color-contrast"]
DESK: Final[ViewportSize] = {"width": 1280, "height": 800}
PHONE: Final[ViewportSize] = {"width": 390, "height": 844}
PATIENCE_MS: Final = 20_000
LIVELY_MS: Final = 4_000  # less than the pause of pages that ask again and again
FITS_MS: Final = 3_000  # charts are drawn anew for another width
LOADING: Final = "Loading…"
MOST_TABS: Final = 80
JPEG_QUALITY: Final = 80

# Pictures name no machine, wherever they are taken.
RENAME_HOST: Final = """
    (name) => {
        const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
        while (texts.nextNode()) {
            const text = texts.currentNode
            if (text.data.includes(name)) text.data = text.data.replaceAll(name, 'host-1')
        }
    }
"""
FIND_FAULTS: Final = """
    async (rules) => {
        const options = rules ? { runOnly: { type: 'rule', values: rules } } : {}
        const { violations } = await axe.run(document, { ...options, resultTypes: ['violations'] })
        return violations.map(({ impact, nodes }) => ({ impact, where: nodes.map(({ html, failureSummary }) =>
            `${html} ${failureSummary}`) }))
    }
"""


@dataclass
class Visitor:
    """One browser with its cookies, and one page in it."""

    page: Page
    url: str
    pictures: Path
    complaints: list[str]
    answers: list[str] = field(default_factory=list)  # status, method and path of each
    asking: set[Request] = field(default_factory=set)  # what was not answered yet

    def open(self, path: str = "/") -> None:
        self.page.goto(f"{self.url}{path}")
        self.settle()

    def settle(self) -> None:
        """Wait until all that was asked for is there."""
        expect(self.page.locator("h1")).to_be_visible()
        expect(self.page.get_by_text(LOADING)).to_have_count(0)

    def sign_in(self, key: str) -> None:
        self.page.get_by_label("API key").fill(key)
        self.page.get_by_role("button", name="Sign in", exact=True).click()

    def sign_out(self) -> None:
        """Leave the window to somebody else; what was asked so far is forgotten."""
        self.settle()
        self.button("Sign out").click()
        expect(self.page.get_by_label("API key")).to_be_visible()
        self.answers.clear()

    def go_to(self, view: str) -> None:
        """Choose a view in the navigation."""
        self.page.get_by_role("navigation", name="Main").get_by_role("link", name=view, exact=True).click()
        self.sees_title(view)
        self.settle()

    def sees_title(self, title: str | re.Pattern[str]) -> None:
        expect(self.page.get_by_role("heading", level=1)).to_have_text(title)

    def sees(self, text: str | re.Pattern[str]) -> None:
        expect(self.page.get_by_text(text).first).to_be_visible()

    def button(self, name: str | re.Pattern[str]) -> Locator:
        return self.page.get_by_role("button", name=name, exact=isinstance(name, str))

    def confirm(self, action: str, within: Callable[[Locator], None] = lambda dialog: None) -> None:
        """Do in a dialog what it asks for, and say yes."""
        dialog = self.page.get_by_role("dialog")
        within(dialog)
        dialog.get_by_role("button", name=action, exact=True).click()
        expect(dialog).to_have_count(0)

    def tab_to(self, element: Locator) -> None:
        """Go on by keyboard until an element has the focus."""
        expect(element).to_be_visible()
        for _ in range(MOST_TABS):
            if element.evaluate("(element) => element === document.activeElement"):
                return
            self.page.keyboard.press("Tab")
        raise AssertionError(f"The keyboard does not lead to {element}.")

    def tell(self, script: str, *arguments: Any) -> Any:
        return self.page.evaluate(script, *arguments)

    @contextmanager
    def expecting(self, pattern: str, *, surely: bool = True) -> Iterator[None]:
        """Take complaints of this kind for what the story tells; there has to be one, unless that is chance."""
        before, answered = len(self.complaints), len(self.answers)
        yield
        self._until_answered()
        self._until_complained(before, sum(answer[0] in "45" for answer in self.answers[answered:]))
        new = self.complaints[before:]
        assert not surely or any(re.search(pattern, each) for each in new), new
        self.complaints[before:] = [each for each in new if not re.search(pattern, each)]

    def note_question(self, request: Request) -> None:
        if request.resource_type != "eventsource":  # which has no end
            self.asking.add(request)

    def note_answer(self, response: Response) -> None:
        self.asking.discard(response.request)
        parts = urlsplit(response.url)
        query = f"?{parts.query}" if parts.query else ""
        self.answers.append(f"{response.status} {response.request.method} {parts.path}{query}")

    def note_failure(self, request: Request) -> None:
        self.asking.discard(request)

    def _until_answered(self) -> None:
        """Wait for the answers to all that was asked so far: they may be complained of as well."""
        waited_for = set(self.asking)
        deadline = time.monotonic() + PATIENCE_MS / 1000
        while waited_for & self.asking and time.monotonic() < deadline:
            self.page.wait_for_timeout(20)

    def _until_complained(self, before: int, refused: int) -> None:
        """Wait for the complaints of answers that were refusals: they come a moment later."""
        deadline = time.monotonic() + PATIENCE_MS / 1000
        while len(self.complaints) - before < refused and time.monotonic() < deadline:
            self.page.wait_for_timeout(20)

    @contextmanager
    def timing_tasks(self) -> Iterator[list[float]]:
        """Gather how many milliseconds each task of the pages took of the processor, which does not depend on others.

        While a task lasts, nothing is drawn and no key is heard.
        """
        chromium = self.page.context.browser
        assert chromium is not None
        taken: list[float] = []
        chromium.start_tracing(categories=["toplevel"])
        try:
            yield taken
        finally:
            taken += _task_times(json.loads(chromium.stop_tracing())["traceEvents"])

    def asked(self, pattern: str) -> list[str]:
        """Give the requests so far, with the status of their answers, that look so."""
        return [each for each in self.answers if re.search(pattern, each)]

    # What holds for every view

    def examine(
        self, name: str, *, light: str | None = None, dark: str | None = None, phone: str | None = None
    ) -> None:
        """See that everybody can use what is shown: in light and in dark, and on a small screen.

        Pictures are taken of those for which a file is named.
        """
        self.settle()
        self._find_faults(name)
        self._take_picture(light)
        self.page.emulate_media(color_scheme="dark")
        self._find_faults(f"{name}, dark", CONTRAST)
        self._take_picture(dark)
        self.page.emulate_media(color_scheme="light")
        self.page.set_viewport_size(PHONE)
        self._find_what_is_beside_the_screen(name)
        self._take_picture(phone)
        self.page.set_viewport_size(DESK)

    def _find_faults(self, name: str, rules: list[str] | None = None) -> None:
        if not self.tell("() => 'axe' in window"):
            self.page.evaluate(AXE.read_text(encoding="utf-8"))
        faults = [each for each in self.tell(FIND_FAULTS, rules) if each["impact"] in SERIOUS]
        self.complaints += [f"{name}: {where}" for fault in faults for where in fault["where"]]

    def _find_what_is_beside_the_screen(self, name: str) -> None:
        """See that the page as a whole needs no scrolling sideways; tables scroll within their frames."""
        try:
            self.page.wait_for_function("() => document.documentElement.scrollWidth <= innerWidth", timeout=FITS_MS)
        except PlaywrightTimeout:
            self.complaints.append(f"{name} is wider than the screen")

    def _take_picture(self, file: str | None) -> None:
        if file is not None:
            self.tell(RENAME_HOST, socket.gethostname())
            quality = JPEG_QUALITY if file.endswith(".jpg") else None
            self.page.screenshot(path=self.pictures / file, quality=quality, animations="disabled")


@contextmanager
def visiting(chromium: Chromium, url: str, pictures: Path, **options: Any) -> Iterator[Visitor]:
    """Open a browser window for somebody new; nothing may have gone wrong in it when it is closed."""
    with chromium.new_context(viewport=DESK, **options) as context:
        context.set_default_timeout(PATIENCE_MS)
        page = context.new_page()
        visitor = Visitor(page, url, pictures, complaints_of(page, url))
        page.on("request", visitor.note_question)
        page.on("response", visitor.note_answer)
        page.on("requestfailed", visitor.note_failure)
        try:
            yield visitor
        except BaseException as error:
            error.add_note("\n".join([page.url, page.locator("body").inner_text()[:4000], *visitor.complaints]))
            raise
        assert not visitor.complaints, "\n".join(visitor.complaints)


def _task_times(trace: list[dict[str, Any]]) -> list[float]:
    """Give the times of the tasks in the threads of pages, but for those in which the test itself looks at the page."""
    named = (event for event in trace if event["name"] == "thread_name" and event["args"]["name"] == "CrRendererMain")
    threads = {(event["pid"], event["tid"]) for event in named}
    events = [event for event in trace if event["ph"] == "X" and (event["pid"], event["tid"]) in threads]
    ours = [event["ts"] for event in events if "DevTools" in _sender(event)]
    tasks = [event for event in events if event["name"] == "ThreadControllerImpl::RunTask"]
    undisturbed = [task for task in tasks if not any(0 <= at - task["ts"] <= task["dur"] for at in ours)]
    # A task that began before the trace has no time of its thread.
    return [task.get("tdur", task["dur"]) / 1000 for task in undisturbed]


def _sender(event: dict[str, Any]) -> str:
    return str(event["args"].get("chrome_mojo_event_info", {}).get("mojo_interface_tag"))
