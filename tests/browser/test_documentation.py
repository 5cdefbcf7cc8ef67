"""The diagrams of the documentation, in a real browser: Mermaid understands all of them."""

from playwright.sync_api import Browser as Chromium
from scripts.documentation import engine, vocabulary
from scripts.documentation.site import ASSETS
from tests.browser.conftest import Browser
from tests.unit.docs.pages import blocks
from tests.unit.docs.snippets import snippets

MERMAID = ASSETS["docs/assets/mermaid.js"]
PARSE = """async diagrams => {
    const wrong = [];
    for (const [place, text] of Object.entries(diagrams)) {
        await mermaid.parse(text).catch(error => wrong.push(`${place}: ${error.message}`));
    }
    return wrong;
}"""


def diagrams() -> dict[str, str]:
    """Give those that people wrote, and those that are made."""
    written = {str(each): each.text for each in snippets() if each.language == "mermaid"}
    made = {
        f"{place} {number}": text
        for part in (engine, vocabulary)
        for place, page in part.pages().items()
        for number, text in enumerate(blocks(page, "mermaid"), 1)
    }
    return written | made


def test_every_diagram_can_be_drawn(browser: Browser) -> None:
    def parsed(chromium: Chromium) -> list[str]:
        with chromium.new_context() as context:
            page = context.new_page()
            page.add_script_tag(path=MERMAID)
            found: list[str] = page.evaluate(PARSE, diagrams())
            assert page.evaluate(PARSE, {"broken": "sequenceDiagram\\n A->>B: one; two"}) != []
            return found

    assert browser.lend(parsed) == []
