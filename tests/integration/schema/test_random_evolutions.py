"""However small models evolve by additions, migrating leads to the same schema as a fresh deployment, with all rows."""

from dataclasses import dataclass
from typing import Annotated, Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import Field
from tests.integration.schema.bench import Bench, enum, new_schema

from graticule.core.models.fields import CreatedAt, JsonObject, Priority
from graticule.core.table import Check, Index, Row

# Each of these can be added to a table with rows.
COLUMNS: dict[str, tuple[Any, Any]] = {
    "size": (int, 3),
    "note": (str | None, Field(None, description="It's a note.")),
    "code": (Annotated[str, Field(max_length=9)], "x'y"),
    "data": (JsonObject, {"a": ["ü"]}),
    "tags": (list[str], Field(default_factory=list)),
    "made_at": (CreatedAt, ...),
    "level": (Priority | None, None),
}
VALUES = ("a", "b", "c", "d", "e")


@dataclass(frozen=True)
class Release:
    """A model of one release, as the parts that it has of all that there could be."""

    columns: frozenset[str]
    indexed: frozenset[str]
    checked: frozenset[str]
    values: frozenset[str]

    def model(self, bench: Bench) -> type[Row]:
        colour = enum("Colour", *(value for value in VALUES if value in self.values))
        fields = {name: COLUMNS[name] for name in COLUMNS if name in self.columns}
        indexed = [name for name in fields if name in self.indexed and name not in {"data", "tags"}]
        checked = [name for name in fields if name in self.checked]
        return bench.model(
            {"colour": (colour | None, None), "colours": (list[colour], []), **fields},  # type: ignore[valid-type]
            indexes=tuple(Index((f"{name} DESC", "id"), comment=f"By {name}.") for name in indexed),
            checks=tuple(Check(f"has_{name}", f"{name} IS NOT NULL OR id > 0") for name in checked),
        )

    def with_all_of(self, older: "Release") -> "Release":
        return Release(
            self.columns | older.columns,
            self.indexed | older.indexed,
            self.checked | older.checked,
            self.values | older.values,
        )


NAMES = st.frozensets(st.sampled_from(sorted(COLUMNS)))
RELEASES = st.builds(Release, NAMES, NAMES, NAMES, st.frozensets(st.sampled_from(VALUES), min_size=1))


@settings(derandomize=True, deadline=None, max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(first=RELEASES, additions=st.lists(RELEASES, min_size=1, max_size=2))
async def test_a_chain_of_migrations_is_the_same_as_a_fresh_deployment(
    bench: Bench, first: Release, additions: list[Release]
) -> None:
    migrated, fresh = (Bench(bench.connection, bench.url, new_schema()) for _ in range(2))
    await migrated.deploy(first.model(migrated))
    value = min(first.values)
    await migrated.execute(
        "INSERT INTO OURS.things (id, name, colour) VALUES (1, 'x', %(v)s), (2, NULL, NULL)", v=value
    )
    release = first
    for addition in additions:
        release = addition.with_all_of(release)
        report = await migrated.migrate(release.model(migrated))
        assert (report.pending, report.differences) == ([], [])
    await fresh.deploy(release.model(fresh))
    try:
        assert await migrated.catalogue() == await fresh.catalogue()
        rows = await migrated.execute("SELECT id, name, colour::text FROM OURS.things ORDER BY id")
        assert rows == [(1, "x", value), (2, None, None)]
        assert (await migrated.status(release.model(migrated))).pending == []
    finally:
        await migrated.execute("DROP SCHEMA OURS CASCADE")
        await fresh.execute("DROP SCHEMA OURS CASCADE")
