"""docs/how-to/kubernetes.md: an overlay of one's own begins with one of ours, and renames an image that it has."""

import yaml
from tests.unit.docs.pages import DOCS, blocks, page

PROJECT = DOCS.parent


def test_the_overlay_of_the_page_changes_what_is_there() -> None:
    (shown,) = map(yaml.safe_load, blocks(page("kubernetes.md"), "yaml"))
    (resource,) = shown["resources"]
    overlay = PROJECT / resource.removeprefix("../graticule/")
    ours = yaml.safe_load((overlay / "kustomization.yaml").read_text(encoding="utf-8"))
    assert {each["name"] for each in shown["images"]} <= {each["newName"] for each in ours["images"]}
