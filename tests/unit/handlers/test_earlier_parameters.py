"""A source that earlier workflows name in two parameters is one path."""

from typing import Any

import pytest
from pydantic import ValidationError

from graticule.handlers.raster.cogs import CreateCog
from graticule.handlers.raster.tiles import TilingScheme
from graticule.handlers.raster.validation import Validate

IN_CONTAINER = {"container_name": "bronze", "blob_path": "ddh/a.tif"}
WITH_CONTAINER = {"container_name": "bronze", "blob_path": "bronze/ddh/a.tif"}
ALONE = {"container_name": None, "blob_path": "bronze/ddh/a.tif"}


@pytest.mark.parametrize("params", [IN_CONTAINER, WITH_CONTAINER, ALONE])
@pytest.mark.parametrize("model", [CreateCog, TilingScheme])
def test_the_path_of_a_blob_is_in_the_container_beside_it(
    model: type[CreateCog | TilingScheme], params: dict[str, Any]
) -> None:
    assert model.model_validate(params).source == "bronze/ddh/a.tif"


@pytest.mark.parametrize("params", [IN_CONTAINER, WITH_CONTAINER, ALONE])
def test_validation_reads_the_same_blob(params: dict[str, Any]) -> None:
    read = Validate.model_validate(params)
    assert "/".join(filter(None, (read.container_name, read.blob_name))) == "bronze/ddh/a.tif"


def test_only_a_path_may_name_its_container_again() -> None:
    """A folder may be called as its container is, and `blob_name` is always the name within it."""
    assert CreateCog.model_validate({"container_name": "bronze", "blob_name": "bronze/a.tif"}).source == (
        "bronze/bronze/a.tif"
    )
    assert CreateCog.model_validate({"container_name": "bronze", "blob_path": "bronze_2/a.tif"}).source == (
        "bronze/bronze_2/a.tif"
    )


@pytest.mark.parametrize("more", [{}, {"source_url": "bronze/a.tif"}, {"source": "bronze/a.tif"}])
def test_a_container_without_a_blob_is_refused(more: dict[str, str]) -> None:
    with pytest.raises(ValidationError, match="container_name"):
        CreateCog.model_validate({"container_name": "bronze", **more})
