"""Which of the layers of a source is meant."""

from graticule.handlers.vector.rejecting import Code, rejected


def chosen(names: list[str], wanted: str | None) -> str:
    """Give the layer that is meant, of all that there are."""
    if not names:
        raise rejected(Code.NO_LAYER, "The file has no layer of features.")
    if wanted is None and len(names) > 1:
        raise rejected(Code.SEVERAL_LAYERS, f"The file has {len(names)} layers: {', '.join(names)}.")
    if wanted is not None and wanted not in names:
        raise rejected(Code.UNKNOWN_LAYER, f"The file has no layer {wanted[:100]!r}; it has: {', '.join(names)}.")
    return wanted or names[0]
