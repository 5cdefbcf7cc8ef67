"""What the models say is what PostgreSQL then has: read from its own catalogue."""

from datetime import date
from decimal import Decimal
from typing import Annotated, Any
from uuid import UUID

import psycopg
import pytest
from pydantic import BaseModel, Field, JsonValue
from tests.conftest import TestDatabase
from tests.integration.schema.bench import Bench, enum, parts

from graticule.core.models import TABLES
from graticule.core.models.fields import BigInt, CreatedAt, Identity, JsonObject, Priority
from graticule.core.table import Check, DatabaseRole, ForeignKey, Index
from graticule.schema.catalogue import ColumnState
from graticule.schema.ddl import Kind

Colour = enum("Colour", "red", "bl'ue", "green 地")


class Style(BaseModel):
    """A document."""

    width: int = 1


FIELDS: dict[str, tuple[Any, Any]] = {
    "number": (Identity, None),
    "label": (Annotated[str, Field(max_length=20)], ...),
    "text": (str, "it's"),
    "optional": (str | None, None),
    "small": (int, -1),
    "big": (BigInt, 0),
    "share": (Annotated[float, Field(gt=0, lt=1)], 0.5),
    "flag": (bool, False),
    "raw": (bytes | None, None),
    "made_at": (CreatedAt, Field(description="When it's made.")),
    "day": (date | None, None),
    "money": (Decimal | None, None),
    "uuid": (UUID, ...),
    "colour": (Colour, Colour("bl'ue")),
    "colours": (list[Colour], Field(default_factory=list)),  # type: ignore[valid-type]
    "tags": (list[Annotated[str, Field(max_length=9)]], Field(default_factory=list)),
    "sizes": (list[int] | None, None),
    "data": (JsonObject, Field(default_factory=dict)),
    "anything": (JsonValue, None),
    "style": (Style, ...),
    "styles": (list[Style] | None, None),
    "level": (Priority | None, None),
}


def _column(type_: str, default: str | None = None, *, null: bool = False, identity: bool = False) -> ColumnState:
    return ColumnState(type_, null, default, identity)


COLUMNS = {
    "number": _column("bigint", identity=True),
    "label": _column("character varying(20)"),
    "text": _column("text", "'it''s'::text"),
    "optional": _column("text", null=True),
    "small": _column("integer", "'-1'::integer"),
    "big": _column("bigint", "0"),
    "share": _column("double precision", "0.5"),
    "flag": _column("boolean", "false"),
    "raw": _column("bytea", null=True),
    "made_at": _column("timestamp with time zone", "now()"),
    "day": _column("date", null=True),
    "money": _column("numeric", null=True),
    "uuid": _column("uuid"),
    "colour": _column("it.colour", "'bl''ue'::it.colour"),
    "colours": _column("it.colour[]", "'{}'::it.colour[]"),
    "tags": _column("character varying(9)[]", "'{}'::character varying(9)[]"),
    "sizes": _column("integer[]", null=True),
    "data": _column("jsonb", "'{}'::jsonb"),
    "anything": _column("jsonb", null=True),
    "style": _column("jsonb"),
    "styles": _column("jsonb", null=True),
    "level": _column("integer", null=True),
    "id": _column("integer"),
    "name": _column("text", null=True),
}
METADATA: dict[str, Any] = {
    "primary_key": ("id", "label"),
    "unique": (("uuid",), ("label", "small")),
    "checks": (Check("text_is_short", "length(text) < 100"),),
    "foreign_keys": (ForeignKey(("small", "label"), "things", ("id", "label"), on_delete="CASCADE"),),
    "indexes": (
        Index(("small", "made_at DESC"), where="flag", comment="What's flagged."),
        Index(("data jsonb_path_ops",), method="gin"),
        Index(("tags",), method="gin"),
        Index(("made_at",), method="brin"),
        Index(("big",), unique=True, include=("flag", "day")),
        Index(("colour", "level"), where="colour = 'red' AND level IS NOT NULL", name="reds"),
    ),
    "grants": {
        DatabaseRole.ORCHESTRATOR: frozenset({"SELECT", "INSERT", "DELETE"}),
        DatabaseRole.GATEWAY: frozenset({"SELECT"}),
    },
}
CONSTRAINTS = {
    "things.things_pkey": "PRIMARY KEY (id, label)",
    "things.things_uuid_key": "UNIQUE (uuid)",
    "things.things_label_small_key": "UNIQUE (label, small)",
    "things.things_text_is_short": "CHECK ((length(text) < 100))",
    "things.things_share_range": ("CHECK (((share > (0)::double precision) AND (share < (1)::double precision)))"),
    "things.things_level_range": "CHECK (((level >= 0) AND (level <= 10)))",
    "things.things_small_label_fkey": ("FOREIGN KEY (small, label) REFERENCES it.things(id, label) ON DELETE CASCADE"),
}
INDEXES = {
    "things_small_made_at_idx": "CREATE INDEX {} ON it.things USING btree (small, made_at DESC) WHERE flag",
    "things_data_idx": "CREATE INDEX {} ON it.things USING gin (data jsonb_path_ops)",
    "things_tags_idx": "CREATE INDEX {} ON it.things USING gin (tags)",
    "things_made_at_idx": "CREATE INDEX {} ON it.things USING brin (made_at)",
    "things_big_idx": "CREATE UNIQUE INDEX {} ON it.things USING btree (big) INCLUDE (flag, day)",
    "reds": (
        "CREATE INDEX {} ON it.things USING btree (colour, level)"
        " WHERE ((colour = 'red'::it.colour) AND (level IS NOT NULL))"
    ),
}


@pytest.fixture
async def deployed(bench: Bench) -> Bench:
    """Give a bench with a model that uses everything."""
    report = await bench.deploy(bench.model(FIELDS, doc="A thing's table.\n\n    More.", **METADATA))
    assert report.current
    return bench


async def test_every_feature_of_a_model_is_in_the_catalogue(deployed: Bench) -> None:
    found = await deployed.catalogue()
    assert parts(found, Kind.COLUMN) == {f"things.{name}": state for name, state in COLUMNS.items()}
    assert parts(found, Kind.CONSTRAINT) == CONSTRAINTS
    assert parts(found, Kind.INDEX) == {name: text.format(name) for name, text in INDEXES.items()}
    assert parts(found, Kind.ENUM) == {"colour": ("red", "bl'ue", "green 地")}
    assert parts(found, Kind.TABLE) == {"things": ""}
    assert parts(found, Kind.COMMENT) == {
        "things": "A thing's table.",
        "things.made_at": "When it's made.",
        "things_small_made_at_idx": "What's flagged.",
    }
    assert set(parts(found, Kind.GRANT)) == {
        "things SELECT graticule_orchestrator",
        "things INSERT graticule_orchestrator",
        "things DELETE graticule_orchestrator",
        "things SELECT graticule_gateway",
        "it USAGE graticule_orchestrator",
        "it USAGE graticule_gateway",
    }


async def test_all_belongs_to_the_owner_role(deployed: Bench) -> None:
    owners = """
        SELECT DISTINCT pg_get_userbyid(relowner)::text FROM pg_class WHERE relnamespace = 'OURS'::regnamespace
        UNION SELECT pg_get_userbyid(typowner) FROM pg_type WHERE typnamespace = 'OURS'::regnamespace
        UNION SELECT pg_get_userbyid(nspowner) FROM pg_namespace WHERE nspname = 'OURS'
    """
    assert await deployed.execute(owners) == [("graticule_owner",)]


async def test_the_databases_defaults_are_the_models(deployed: Bench) -> None:
    await deployed.execute("INSERT INTO OURS.things (id, label, uuid, style) VALUES (-1, 'x', gen_random_uuid(), '{}')")
    found = await deployed.execute(
        "SELECT number, text, small, share, flag, colour::text, colours::text, tags, data, anything FROM OURS.things"
    )
    assert found == [(1, "it's", -1, 0.5, False, "bl'ue", "{}", [], {}, None)]


async def test_seeds_hold_any_value(bench: Bench) -> None:
    values = {"tags": ["é", "a\nb", 'q"'], "data": {"a": ["ü", None, 1]}, "colour": Colour("green 地"), "name": "it's"}
    fields = {"tags": (list[str], ...), "data": (JsonObject, ...), "colour": (Colour, ...)}
    await bench.deploy(bench.model(fields, seeds=({"id": 1, **values},)))
    found = await bench.execute("SELECT tags, data, colour::text, name FROM OURS.things")
    assert found == [(values["tags"], values["data"], "green 地", "it's")]


async def test_defaults_hold_any_value(bench: Bench) -> None:
    fields = {"tags": (list[str], ["é", "a\nb"]), "data": (JsonValue, 5), "flag": (JsonValue, True)}
    await bench.deploy(bench.model(fields))
    await bench.execute("INSERT INTO OURS.things (id) VALUES (1)")
    assert await bench.execute("SELECT tags, data, flag FROM OURS.things") == [(["é", "a\nb"], 5, True)]


# Of the real tables: what matters most, written down once more.
SPOT_CHECKS = [
    ("dag_jobs", "job_id", "character varying(64)", "NO", None),
    ("dag_jobs", "status", "dagapp.job_status", "NO", "'pending'::dagapp.job_status"),
    ("dag_jobs", "input_params", "jsonb", "NO", "'{}'::jsonb"),
    ("dag_jobs", "result", "jsonb", "YES", None),
    ("dag_jobs", "owner_epoch", "bigint", "NO", "0"),
    ("dag_jobs", "created_at", "timestamp with time zone", "NO", "now()"),
    ("dag_jobs", "ended_at", "timestamp with time zone", "YES", None),
    ("dag_jobs", "callback_url", "character varying(512)", "YES", None),
    ("dag_nodes", "node_id", "character varying(128)", "NO", None),
    ("dag_task_results", "result_id", "bigint", "NO", None),
    ("dag_job_events", "event_id", "bigint", "NO", None),
    ("dag_checkpoints", "artifacts", "character varying(1024)[]", "NO", "'{}'::character varying(1024)[]"),
    ("platforms", "platform_id", "character varying(50)", "NO", None),
    ("geospatial_assets", "asset_id", "character varying(32)", "NO", None),
    ("asset_versions", "last_error", "character varying(2000)", "YES", None),
    ("asset_versions", "revision", "integer", "NO", "1"),
    ("platform_requests", "request_id", "uuid", "NO", None),
    ("api_clients", "roles", "dagapp.client_role[]", "NO", None),
]


def test_every_column_of_every_model_is_in_the_database_and_no_other(shared_database: TestDatabase) -> None:
    with psycopg.connect(shared_database.url()) as connection:
        connection.execute("SET search_path = pg_catalog")
        found = connection.execute(
            "SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod),"
            "       CASE WHEN a.attnotnull THEN 'NO' ELSE 'YES' END, pg_get_expr(d.adbin, d.adrelid)"
            " FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid"
            " LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum"
            " WHERE c.relnamespace = 'dagapp'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition"
            "   AND a.attnum > 0"
        ).fetchall()
    named = {(model.table.name, name) for model in TABLES for name in model.model_fields}
    assert {row[:2] for row in found} == named
    assert [row for row in SPOT_CHECKS if row not in found] == []
