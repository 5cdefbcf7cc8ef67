"""A real browser: the system's Chromium without a window, which draws WebGL with the processor."""

import os
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import pytest
from playwright.sync_api import Browser as Chromium
from playwright.sync_api import ConsoleMessage, Page, Request, sync_playwright
from tests.browser.maps import Picture, decoded

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
# Only WebGL is drawn as by a graphics processor: for pages that would cost the processor twice as much.
FLAGS = (
    *("--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--disable-gpu-compositing"),
    "--hide-scrollbars",
)
WAIT_MS = 30_000

Result = TypeVar("Result")


class Browser:
    """One browser, in a thread of its own: Playwright's loop would keep this thread's tests from running theirs."""

    def __init__(self, program: str) -> None:
        self._thread = ThreadPoolExecutor(1, "browser")
        self._thread.submit(self._start, program).result()

    def _start(self, program: str) -> None:
        flags = [*FLAGS, "--no-sandbox"] if os.geteuid() == 0 else list(FLAGS)
        self._playwright = sync_playwright().start()
        self._browser = self._playwright.chromium.launch(executable_path=program, args=flags)

    def stop(self) -> None:
        self._thread.submit(self._browser.close).result()
        self._thread.submit(self._playwright.stop).result()
        self._thread.shutdown()

    def lend(self, work: Callable[[Chromium], Result]) -> Result:
        """Have work done that opens pages by itself, in the browser's own thread."""
        return self._thread.submit(work, self._browser).result()

    def visit(
        self,
        url: str,
        look: Callable[[Page], Result],
        *,
        state: str = "idle",
        size: tuple[int, int] = (800, 600),
        colour_scheme: Any = "light",
    ) -> Result:
        """Open a page in a fresh context, wait until it says that it stands so, and look at it.

        A page that is idle has asked no other host, and the browser had nothing to complain of.
        """
        options = {"viewport": {"width": size[0], "height": size[1]}, "color_scheme": colour_scheme}
        return self._thread.submit(self._visit, url, look, state, options).result()

    def _visit(self, url: str, look: Callable[[Page], Result], state: str, options: dict[str, Any]) -> Result:
        with self._browser.new_context(**options) as context:
            page = context.new_page()
            complaints = complaints_of(page, url)
            page.goto(url)
            page.wait_for_function("() => document.documentElement.dataset.state !== 'loading'", timeout=WAIT_MS)
            message = page.locator("#message").text_content()
            assert page.locator("html").get_attribute("data-state") == state, (message, complaints)
            result = look(page)
            assert state != "idle" or complaints == []
            return result


def complaints_of(page: Page, url: str) -> list[str]:
    """Gather what goes wrong from now on: messages of the console, faults of scripts, requests to other hosts."""
    complaints: list[str] = []
    host = url.split("/")[2]

    def hear(message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"} and "GPU stall" not in message.text:  # reading pixels, in software
            complaints.append(f"{message.text} ({message.location['url']})")

    def see(request: Request) -> None:
        if request.url.startswith(("http:", "https:")) and request.url.split("/")[2] != host:
            complaints.append(f"asked {request.url}")

    page.on("console", hear)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", see)
    return complaints


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        pytest.fail("There is no Chromium, which `make test` installs where it can. Install it by hand.")
    browser = Browser(program)
    yield browser
    browser.stop()


@pytest.fixture
def screenshot_when_idle(browser: Browser) -> Callable[..., Picture]:
    """Draw the page at an address, with all its tiles."""

    def screenshot(url: str, **options: Any) -> Picture:
        return decoded(browser.visit(url, lambda page: page.screenshot(), **options))

    return screenshot
