"""A layer becomes batches of rows: numbered, with columns by their place, and prepared geometries."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyogrio.raw
import pytest
import shapely

from graticule.handlers.findings import Rejected
from graticule.handlers.vector.described import Chunk, Column, Opening, Shape, Source
from graticule.handlers.vector.preparing.attributes import ARROW_TYPES, column_type
from graticule.handlers.vector.preparing.columns import column_names
from graticule.handlers.vector.preparing.features import FeatureBatch, open_features
from graticule.handlers.vector.sources import reading
from graticule.handlers.vector.sources.source import Kind
from graticule.storage.blocking import BlockingStorage
from graticule.storage.local import LocalStorage

PATH = "bronze/parcels.gpkg"
COUNT = 30


@pytest.fixture
def storage(tmp_path: Path) -> Iterator[BlockingStorage]:
    with BlockingStorage(LocalStorage(tmp_path)) as opened:
        yield opened


@pytest.fixture
def source(tmp_path: Path, storage: BlockingStorage) -> Source:
    file = tmp_path / PATH
    file.parent.mkdir()
    numbers = np.arange(COUNT, dtype=np.int64)
    points: Any = shapely.to_wkb(shapely.points(500_000.0 + numbers, 1_500_000.0))
    points[1] = None
    fields = {"Select": numbers * 2**40, "Größe": numbers / 4, "geom name": numbers.astype(str).astype(object)}
    pyogrio.raw.write(
        file, points, list(fields.values()), list(fields), driver="GPKG", geometry_type="Point", crs="EPSG:32620"
    )
    known = storage.stat(PATH)
    opening = Opening(path=PATH, etag=known.etag, kind=Kind.GEOPACKAGE, layer="parcels", crs="EPSG:32620")
    with reading.open_layer(storage, opening) as reader:
        named = zip(reader.fields, column_names(reader.fields.names), strict=True)
        columns = [Column(field=field.name, name=name, type=column_type(field)) for field, name in named]
    return Source(
        source=PATH,
        etag=known.etag,
        content_hash="",
        size_bytes=known.size,
        opening=opening,
        feature_count=COUNT,
        shape=Shape(type="MultiPoint"),
        columns=columns,
        chunks=[],
        bbox=[0, 0, 1, 1],
        outcome="ok",
        findings=[],
        facts={},
    )


def batches(storage: BlockingStorage, source: Source, chunk: Chunk | None = None) -> list[FeatureBatch]:
    with open_features(storage, source, "EPSG:4326", chunk) as features:
        return list(features.batches())


def test_rows_have_numbers_columns_and_geometries(storage: BlockingStorage, source: Source) -> None:
    (batch,) = batches(storage, source)
    rows = batch.rows
    assert rows.schema.names == ["fid", "select_", "grosse", "geom_name", "geom"]
    types = [pa.int64(), *(ARROW_TYPES[column.type] for column in source.columns), pa.binary()]
    assert rows.schema.types == types
    assert rows.column("fid").to_pylist() == list(range(1, COUNT + 1))
    assert rows.column("select_").to_pylist() == [number * 2**40 for number in range(COUNT)]
    assert rows.column("geom")[1].as_py() is None
    first = shapely.from_wkb(rows.column("geom")[0].as_py())
    assert first.geom_type == "MultiPoint"
    assert batch.bounds is not None
    assert batch.bounds[:2] == pytest.approx(first.bounds[:2])


def test_a_chunk_goes_on_counting(storage: BlockingStorage, source: Source) -> None:
    (batch,) = batches(storage, source, Chunk(index=1, first_fid=11, row_count=5, begin=11, end=16))
    assert batch.rows.column("fid").to_pylist() == [11, 12, 13, 14, 15]
    assert batch.rows.column("geom_name").to_pylist() == ["10", "11", "12", "13", "14"]


def test_other_fields_than_before_are_rejected(storage: BlockingStorage, source: Source) -> None:
    changed = source.model_copy(update={"columns": source.columns[1:]})
    with pytest.raises(Rejected) as told:
        batches(storage, changed)
    assert told.value.findings[0].code == "source_changed"


def test_a_rejection_names_the_feature_and_the_column(storage: BlockingStorage, source: Source) -> None:
    polygons = source.model_copy(update={"shape": Shape(type="MultiPolygon")})
    with pytest.raises(Rejected) as told:
        batches(storage, polygons, Chunk(index=1, first_fid=11, row_count=5, begin=11, end=16))
    assert told.value.findings[0].where == "feature 11"
    smaller = [column.model_copy(update={"type": "integer"}) for column in source.columns[:1]]
    with pytest.raises(Rejected) as told:
        batches(storage, source.model_copy(update={"columns": [*smaller, *source.columns[1:]]}))
    assert told.value.findings[0].where == "column Select"
