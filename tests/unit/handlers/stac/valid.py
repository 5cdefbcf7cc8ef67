"""Validation of documents as a reader of the catalogue would do it, without the network."""

import copy
from typing import Any

import pystac
from pystac import STACObjectType
from tests.unit.handlers.stac.schemas import validator

VALIDATOR = validator()


class NoNetwork(pystac.StacIO):
    """Refuses to fetch anything: whatever a validator needs is here, or the test is wrong."""

    def read_text(self, source: Any, *_: Any, **__: Any) -> str:
        raise AssertionError(f"{source} was asked for")

    def write_text(self, dest: Any, *_: Any, **__: Any) -> None:
        raise AssertionError(f"{dest} was written")


def assert_valid(document: dict[str, Any]) -> None:
    """Validate an item or a collection against the core and all its extensions, and read it with pystac."""
    is_item = document["type"] == "Feature"
    kind = STACObjectType.ITEM if is_item else STACObjectType.COLLECTION
    before, default = copy.deepcopy(document), pystac.StacIO._default_io
    pystac.StacIO.set_default(NoNetwork)
    try:
        checked = VALIDATOR.validate(document, kind, document["stac_version"], document.get("stac_extensions", []))
        assert len(checked) == 1 + len(document.get("stac_extensions", []))
        read = pystac.Item.from_dict(document) if is_item else pystac.Collection.from_dict(document)
    finally:
        pystac.StacIO._default_io = default
    assert read.to_dict(include_self_link=False, transform_hrefs=False)["id"] == document["id"]
    assert document == before
