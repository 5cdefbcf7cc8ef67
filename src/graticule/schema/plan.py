"""Compare what the models ask for with what the database has: what can be added, and what cannot be made safely."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from graticule.core.columns import literal
from graticule.core.table import DatabaseRole
from graticule.schema.catalogue import Catalogue, ColumnState, Definition
from graticule.schema.ddl import Key, Kind, SchemaObject

UNTOUCHED = frozenset({Kind.PARTITION, Kind.COMMENT})  # kinds of which the database may have more than the models
REMADE = frozenset({Kind.COMMENT, Kind.INDEX})  # kinds that hold nothing of their own
VARCHAR = re.compile(r"character varying(?:\((\d+)\))?$")


@dataclass(frozen=True, slots=True)
class Change:
    """A statement that brings the database nearer to the models and can lose nothing."""

    key: Key
    sql: str

    @property
    def alters_column(self) -> bool:
        """Tell whether the change gives a column another type."""
        return self.key.kind is Kind.COLUMN and " ALTER COLUMN " in self.sql

    @property
    def is_new_enum_value(self) -> bool:
        """Tell whether the change adds a value to an enum: it must be committed before it can be used."""
        return self.key.kind is Kind.ENUM and "ADD VALUE" in self.sql


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference that is reported, because removing it could lose or refuse data."""

    key: Key
    reason: str
    by_hand: str | None = None
    harmless: bool = False  # programs of this release can work all the same

    def __str__(self) -> str:
        return f"{self.key}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Plan:
    """What separates the database from the models."""

    changes: tuple[Change, ...] = ()
    differences: tuple[Difference, ...] = ()

    @property
    def needed(self) -> tuple[Change, ...]:
        """The changes without which programs of this release cannot work: a month's partition is not one of them."""
        return tuple(change for change in self.changes if change.key.kind is not Kind.PARTITION)

    @property
    def hindrances(self) -> tuple[Difference, ...]:
        """The differences that keep programs of this release from working."""
        return tuple(difference for difference in self.differences if not difference.harmless)

    def creations(self, live: Catalogue) -> tuple[Change, ...]:
        """Give the changes that touch no table that is there already."""
        return tuple(change for change in self.changes if not _touches(change.key, live))


def _touches(key: Key, live: Catalogue) -> bool:
    return key in live or _table(key) in live


def _table(key: Key) -> Key:
    """Give the table to which an object belongs; for a schema or an enum, one that no database has."""
    return Key(Kind.TABLE, key.of)


def make_plan(objects: Sequence[SchemaObject], expected: Catalogue, live: Catalogue) -> Plan:
    """Compare object by object, in the order in which they can be made."""
    changes: list[Change] = []
    differences: list[Difference] = []
    for item in objects:
        for outcome in _compare(item, expected[item.key], live):
            (changes if isinstance(outcome, Change) else differences).append(outcome)  # type: ignore[arg-type]
    differences += _unknown(expected, live)
    return Plan(tuple(changes), tuple(differences))


def _compare(item: SchemaObject, wanted: Definition, live: Catalogue) -> Iterable[Change | Difference]:
    if item.key not in live:
        return [] if item.within is not None and item.within not in live else [Change(item.key, item.create)]
    found = live[item.key]
    if found == wanted or item.key.kind is Kind.PARTITION:
        return []
    if isinstance(wanted, tuple) and isinstance(found, tuple):
        return _compare_labels(item, wanted, found)
    if isinstance(wanted, ColumnState) and isinstance(found, ColumnState):
        return _compare_columns(item, wanted, found)
    if item.key.kind in REMADE:
        return [Change(item.key, f"{_drop_index(item)}{item.create}")]
    return [_otherwise(item, wanted, found)]


def _otherwise(item: SchemaObject, wanted: Definition, found: Definition) -> Difference:
    """Report a constraint or table that is there and is not what the models want."""
    there, ours = (" ".join(str(definition).split()) or "plain" for definition in (found, wanted))
    removal = f"{item.create.partition(' ADD ')[0]} DROP CONSTRAINT {item.key.name.partition('.')[2]}"
    by_hand = f"{removal}; {item.create}" if item.key.kind is Kind.CONSTRAINT else None
    return Difference(item.key, f"is {there} in the database, and the models want {ours}", by_hand)


def _drop_index(item: SchemaObject) -> str:
    if item.key.kind is not Kind.INDEX:
        return ""
    return f"DROP INDEX {item.create.partition(' ON ')[2].partition('.')[0]}.{item.key.name}; "


def _compare_labels(item: SchemaObject, wanted: tuple[str, ...], found: tuple[str, ...]) -> list[Change | Difference]:
    """Add missing labels at their places; a label that is gone, or another order, is reported."""
    type_name = item.create.split()[2]
    outcomes: list[Change | Difference] = []
    if extra := [label for label in found if label not in wanted]:
        outcomes.append(
            Difference(item.key, f"has values that the models do not know: {', '.join(extra)}", harmless=True)
        )
    if [label for label in found if label in wanted] != [label for label in wanted if label in found]:
        outcomes.append(Difference(item.key, "has its values in another order"))
        return outcomes
    for place, label in enumerate(wanted):
        if label not in found:
            where = f" AFTER {literal(wanted[place - 1], 'TEXT')}" if place else f" BEFORE {literal(found[0], 'TEXT')}"
            outcomes.append(Change(item.key, f"ALTER TYPE {type_name} ADD VALUE {literal(label, 'TEXT')}{where}"))
    return outcomes


def _compare_columns(item: SchemaObject, wanted: ColumnState, found: ColumnState) -> list[Change | Difference]:
    table, column = item.create.split()[2], item.key.name.partition(".")[2]
    alter = f"ALTER TABLE {table} ALTER COLUMN {column}"
    outcomes: list[Change | Difference] = []
    comparable = wanted.type == found.type or _widens(found.type, wanted.type)
    if wanted.type != found.type:
        widen = f"{alter} TYPE {wanted.type}"
        if _widens(found.type, wanted.type):
            outcomes.append(Change(item.key, widen))
        else:
            outcomes.append(Difference(item.key, f"is {found.type}, and the models want {wanted.type}", widen))
    if wanted.nullable and not found.nullable:
        outcomes.append(Change(item.key, f"{alter} DROP NOT NULL"))
    if found.nullable and not wanted.nullable:
        outcomes.append(Difference(item.key, "allows NULL, and the models do not", f"{alter} SET NOT NULL"))
    if wanted.default != found.default and comparable:
        default = "DROP DEFAULT" if wanted.default is None else f"SET DEFAULT {wanted.default}"
        outcomes.append(Change(item.key, f"{alter} {default}"))
    if wanted.identity != found.identity:
        outcomes.append(Difference(item.key, "is numbered by the database in one of the two only"))
    return outcomes


def _widens(old: str, new: str) -> bool:
    """Tell whether every value of the old type is one of the new, without rewriting the table."""
    before, after = VARCHAR.match(old), VARCHAR.match(new)
    if before and new == "text":
        return True
    if not before or not after:
        return False
    return after[1] is None or (before[1] is not None and int(before[1]) < int(after[1]))


def _unknown(expected: Catalogue, live: Catalogue) -> Iterable[Difference]:
    for key in sorted(set(live) - set(expected)):
        if key.kind not in UNTOUCHED and not _others_business(key, expected):
            reason = "is in the database, and the models do not know it; it is left as it is"
            yield Difference(key, reason, harmless=not _demands_a_value(live[key]))


def _demands_a_value(found: Definition) -> bool:
    """Tell whether it is a column that no row of ours could be inserted without."""
    return isinstance(found, ColumnState) and not (found.nullable or found.default or found.identity)


def _others_business(key: Key, expected: Catalogue) -> bool:
    """Leave out parts of unknown tables, which are reported whole, and what was granted to roles not ours."""
    if _table(key).name and _table(key) not in expected:
        return True
    return key.kind is Kind.GRANT and key.name.split()[-1] not in {*DatabaseRole, "PUBLIC"}
