"""The filters of expressions: those of Jinja2 that make sense for JSON values, each bounded by what it makes."""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

from graticule.dag.language.operators import add
from graticule.dag.language.tests import TESTS
from graticule.dag.language.values import (
    MAX_TEXT,
    Kind,
    Missing,
    Refused,
    Run,
    as_list,
    as_number,
    as_text,
    as_whole,
    kind,
    made_text,
    pay_for_reading,
    plain,
    text_of_size,
    there,
    to_text,
)

MAX_LEVELS: Final = 64  # of nested lists
Filter = Callable[..., object]


def look_up(value: object, name: object) -> object:
    """Give a key of a mapping or an item of a list; what is not there is `Missing`."""
    found = kind(value)
    try:
        if found is Kind.MAPPING:
            return value[name]  # type: ignore[index]
        if found in {Kind.LIST, Kind.TEXT} and isinstance(name, int) and not isinstance(name, bool):
            return value[name]  # type: ignore[index]
    except LookupError:
        pass
    return Missing(f"{found} has no {name!r}")


def attribute_of(value: object, path: object) -> object:
    """Follow a dotted path, as `map(attribute='a.b')` writes it."""
    if isinstance(path, int):
        return there(look_up(value, path))
    for name in as_text(path, "attribute").split("."):
        value = there(look_up(value, int(name) if name.isdigit() and kind(value) is not Kind.MAPPING else name))
    return value


# Texts


def upper(run: Run, value: object) -> str:
    """Give the text in capitals."""
    return made_text(run, as_text(value, "upper").upper())


def lower(run: Run, value: object) -> str:
    """Give the text in small letters."""
    return made_text(run, as_text(value, "lower").lower())


def title(run: Run, value: object) -> str:
    """Give each word with a capital."""
    return made_text(run, as_text(value, "title").title())


def capitalize(run: Run, value: object) -> str:
    """Give the text with a capital first."""
    return made_text(run, as_text(value, "capitalize").capitalize())


def trim(run: Run, value: object, chars: object = None) -> str:
    """Take white space, or the given characters, off both ends."""
    return made_text(run, as_text(value, "trim").strip(None if chars is None else as_text(chars, "trim")))


def replace(run: Run, value: object, old: object, new: object, count: object = -1) -> str:
    """Put one text in the place of another."""
    text, before, after = (as_text(part, "replace") for part in (value, old, new))
    pay_for_reading(run, text)
    most, wanted = text.count(before), as_whole(count, "replace")
    places = most if wanted < 0 else min(most, wanted)
    text_of_size(run, len(text) + places * max(len(after) - len(before), 0))
    return text.replace(before, after, places)


def center(run: Run, value: object, width: object = 80) -> str:
    """Put the text into the middle of a line."""
    text_of_size(run, as_whole(width, "center"))
    return made_text(run, as_text(value, "center").center(as_whole(width, "center")))


def indent(run: Run, value: object, width: object = 4, first: object = False) -> str:
    """Move every line but the first (and it too, when asked) to the right."""
    text = as_text(value, "indent")
    margin = as_text(width, "indent") if isinstance(width, str) else _spaces(run, as_whole(width, "indent"))
    text_of_size(run, len(text) + (text.count("\n") + 1) * len(margin))
    lines = text.split("\n")
    moved = [lines[0], *(margin + line if line else line for line in lines[1:])]
    return (margin if first else "") + "\n".join(moved)


def _spaces(run: Run, width: int) -> str:
    text_of_size(run, width)
    return " " * width


def truncate(run: Run, value: object, length: object = 255, end: object = "...") -> str:
    """Cut a text to so many characters, its end mark included."""
    text, most, mark = as_text(value, "truncate"), as_whole(length, "truncate"), as_text(end, "truncate")
    return made_text(run, text if len(text) <= most else text[: max(most - len(mark), 0)] + mark)


def string(run: Run, value: object) -> str:
    """Write the value as text."""
    return to_text(run, value)


def tojson(run: Run, value: object, indent: object = None) -> str:
    """Write the value as JSON."""
    pay_for_reading(run, value)
    width = None if indent is None else min(as_whole(indent, "tojson"), 8)
    return made_text(run, json.dumps(plain(value, MAX_TEXT), ensure_ascii=False, indent=width))


def urlencode(run: Run, value: object) -> str:
    """Write a text so that it can stand in an address."""
    text = to_text(run, value)
    text_of_size(run, len(text) * 4)
    return quote(text, safe="/")


def wordcount(run: Run, value: object) -> int:
    """Count the words of a text."""
    return len(made_text(run, as_text(value, "wordcount")).split())


_PLACE: Final = re.compile(r"%(?:\((?P<name>\w+)\))?(?P<form>[#0\- +]*)(?P<width>\d*)(?:\.(?P<digits>\d+))?(?P<type>.)")


def format_text(run: Run, value: object, *arguments: object, **named: object) -> str:
    """Write values into the places (`%s`, `%05d`, `%(name)s`) of a text."""
    text, written, end, rest = as_text(value, "format"), [], 0, iter(arguments)
    size = len(text)
    for place in _PLACE.finditer(text):
        piece = "%" if place["type"] == "%" else _formatted(run, place, rest, named)
        size += len(piece)
        text_of_size(run, size)
        written += [text[end : place.start()], piece]
        end = place.end()
    return "".join([*written, text[end:]])


def _formatted(run: Run, place: re.Match[str], rest: Any, named: Mapping[str, object]) -> str:
    if place["type"] not in "sdfgeixX":
        raise Refused(f"format does not know {place[0]!r}")
    if len(place["width"]) > 4 or len(place["digits"] or "") > 3:
        raise Refused(f"format: {place[0]!r} is too wide")
    argument = named.get(place["name"], Missing("")) if place["name"] else next(rest, Missing(""))
    if isinstance(argument, Missing):
        raise Refused(f"format has no value for {place[0]!r}")
    fitting = to_text(run, argument) if place["type"] == "s" else as_number(argument, "format")
    digits = "" if place["digits"] is None else f".{place['digits']}"
    return f"%{place['form']}{place['width']}{digits}{place['type']}" % (fitting,)


def join(run: Run, value: object, separator: object = "", attribute: object = None) -> str:
    """Join the items of a list to one text."""
    items = _attributes(run, as_list(run, value, "join"), attribute)
    between = as_text(separator, "join")
    size, texts = 0, []
    for item in items:
        texts.append(to_text(run, item))
        size += len(texts[-1]) + len(between)
        if size > MAX_TEXT:
            text_of_size(run, size)
    return made_text(run, between.join(texts))


# Numbers


def absolute(run: Run, value: object) -> object:
    """Give a number without its sign."""
    return abs(as_number(value, "abs"))


def integer(run: Run, value: object, default: object = 0, base: object = 10) -> object:
    """Make a whole number of a number or a text; the default when that cannot be done."""
    try:
        if isinstance(value, str):
            return int(value, as_whole(base, "int")) if base != 10 or "." not in value else int(float(value))
        return int(value)  # type: ignore[call-overload]
    except (TypeError, ValueError, OverflowError):
        return default


def floating(run: Run, value: object, default: object = 0.0) -> object:
    """Make a number with a fraction; the default when that cannot be done."""
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return default


def rounded(run: Run, value: object, precision: object = 0, method: object = "common") -> object:
    """Round a number: `common`, or always `ceil` or `floor`."""
    number, digits = as_number(value, "round"), as_whole(precision, "round")
    if method == "common":
        return round(float(number), digits)
    if method not in {"ceil", "floor"} or abs(digits) > 300:
        raise Refused(f"round knows common, ceil and floor, not {method!r}")
    factor = 10.0**digits
    down = number * factor // 1
    return float(down + (method == "ceil" and down != number * factor)) / factor


# Lists and mappings


def length(run: Run, value: object) -> int:
    """Count the items of a list or mapping, or the characters of a text."""
    if kind(value) not in {Kind.LIST, Kind.MAPPING, Kind.TEXT}:
        raise Refused(f"length needs a list, a mapping or text, and got {kind(value)}")
    return len(value)  # type: ignore[arg-type]


def first(run: Run, value: object) -> object:
    """Give the first item."""
    return _end(value, 0, "first")


def last(run: Run, value: object) -> object:
    """Give the last item."""
    return _end(value, -1, "last")


def _end(value: object, place: int, use: str) -> object:
    if kind(value) not in {Kind.LIST, Kind.TEXT}:
        raise Refused(f"{use} needs a list or text, and got {kind(value)}")
    return value[place] if value else Missing(f"an empty list has no {use} item")  # type: ignore[index]


def to_list(run: Run, value: object) -> list[object]:
    """Give the items of a list, the keys of a mapping, or the characters of a text."""
    return list(made_text(run, value)) if isinstance(value, str) else list(as_list(run, value, "list"))


def items(run: Run, value: object) -> list[object]:
    """Give the pairs of a mapping."""
    if not isinstance(value, Mapping):
        raise Refused(f"items needs a mapping, and got {kind(value)}")
    run.budget.spend(len(value))
    return [[key, part] for key, part in value.items()]


def dictsort(run: Run, value: object) -> list[object]:
    """Give the pairs of a mapping in the order of its keys."""
    return sort(run, items(run, value), attribute=0)


def reverse(run: Run, value: object) -> object:
    """Give the list, or the text, from its end to its beginning."""
    return made_text(run, value)[::-1] if isinstance(value, str) else as_list(run, value, "reverse")[::-1]


def sort(
    run: Run, value: object, reverse: object = False, case_sensitive: object = False, attribute: object = None
) -> list[object]:
    """Put a list in order, by the items or by one attribute of theirs."""
    listed = as_list(run, value, "sort")
    keys = [_comparable(run, key, case_sensitive) for key in _attributes(run, listed, attribute)]
    _check_alike(keys, "sort")
    run.budget.spend(len(listed) * len(listed).bit_length())
    order = sorted(range(len(listed)), key=keys.__getitem__, reverse=bool(reverse))
    return [listed[place] for place in order]


def unique(run: Run, value: object, case_sensitive: object = False, attribute: object = None) -> list[object]:
    """Leave out what was there before."""
    listed = as_list(run, value, "unique")
    seen: dict[tuple[Kind, object], object] = {}
    for item, key in zip(listed, _attributes(run, listed, attribute), strict=True):
        if kind(key) in {Kind.LIST, Kind.MAPPING}:
            raise Refused(f"unique cannot compare {kind(key)}; name an attribute")
        seen.setdefault((kind(key), _comparable(run, key, case_sensitive)), item)
    return list(seen.values())


def smallest(run: Run, value: object, case_sensitive: object = False, attribute: object = None) -> object:
    """Give the smallest item."""
    return first(run, sort(run, value, case_sensitive=case_sensitive, attribute=attribute))


def largest(run: Run, value: object, case_sensitive: object = False, attribute: object = None) -> object:
    """Give the largest item."""
    return last(run, sort(run, value, case_sensitive=case_sensitive, attribute=attribute))


def total(run: Run, value: object, attribute: object = None, start: object = 0) -> object:
    """Add the numbers of a list; with `start=[]`, join the lists in it."""
    if isinstance(start, list):
        return _joined(run, start, _attributes(run, as_list(run, value, "sum"), attribute), "sum")
    for number in _attributes(run, as_list(run, value, "sum"), attribute):
        start = add(run, start, as_number(number, "sum"))
    return start


def flatten(run: Run, value: object, levels: object = None) -> list[object]:
    """Put the items of inner lists in their place, down to so many levels or, without a number, to the innermost."""
    remaining = MAX_LEVELS if levels is None else min(as_whole(levels, "flatten"), MAX_LEVELS)
    listed = list(as_list(run, value, "flatten"))
    while remaining > 0 and any(kind(item) is Kind.LIST for item in listed):
        listed = _joined(run, [], [item if kind(item) is Kind.LIST else [item] for item in listed], "flatten")
        remaining -= 1
    return listed


def _joined(run: Run, start: Sequence[object], lists: Iterable[object], use: str) -> list[object]:
    joined = list(start)
    for item in lists:
        joined += as_list(run, item, use)
    run.budget.spend(len(joined))
    return joined


def batch(run: Run, value: object, size: object, fill: object = None) -> list[object]:
    """Cut a list into lists of so many items; the last is filled up when a filler is given."""
    listed, most = as_list(run, value, "batch"), as_whole(size, "batch")
    if most < 1:
        raise Refused("batch needs a size of at least 1")
    made = [listed[place : place + most] for place in range(0, len(listed), most)]
    if fill is not None and made:
        run.budget.spend(most)
        made[-1] = made[-1] + [fill] * (most - len(made[-1]))
    return made  # type: ignore[return-value]


def mapped(run: Run, value: object, *names: object, attribute: object = None, default: object = None) -> list[object]:
    """Give one attribute of each item, or send each item through a filter."""
    listed = as_list(run, value, "map")
    if attribute is not None:
        return [_attribute_or(item, attribute, default) for item in listed]
    name, arguments = _first_name(names, "map")
    if name not in FILTERS or name in {"map", "select", "reject", "selectattr", "rejectattr"}:
        raise Refused(f"map cannot use a filter {name!r}")
    return [there(FILTERS[name](run, item, *arguments)) for item in listed]


def _attribute_or(item: object, attribute: object, default: object) -> object:
    try:
        return attribute_of(item, attribute)
    except Refused:
        if default is None:
            raise
        return default


def _first_name(names: tuple[object, ...], use: str) -> tuple[str, tuple[object, ...]]:
    if not names:
        raise Refused(f"{use} needs the name of what to apply")
    return as_text(names[0], use), names[1:]


def _selection(use: str, *, by_attribute: bool, keep: bool) -> Filter:
    """Make `select`, `reject`, `selectattr` and `rejectattr`: the same walk with another choice."""

    def select(run: Run, value: object, *names: object) -> list[object]:
        attribute, rest = (names[0], names[1:]) if by_attribute and names else (None, names)
        if by_attribute and attribute is None:
            raise Refused(f"{use} needs the name of an attribute")
        listed = as_list(run, value, use)
        return [item for item in listed if _passes(run, item, attribute, rest, use) is keep]

    return select


def _passes(run: Run, item: object, attribute: object, names: tuple[object, ...], use: str) -> bool:
    value = item
    if attribute is not None:
        value = (
            look_up(item, attribute) if names[:1] in {("defined",), ("undefined",)} else attribute_of(item, attribute)
        )
    if not names:
        return bool(there(value))
    name, arguments = _first_name(names, use)
    if name not in TESTS:
        raise Refused(f"{use} does not know the test {name!r}")
    return TESTS[name](run, value, *arguments)


def _attributes(run: Run, listed: list[object], attribute: object) -> list[object]:
    return listed if attribute is None else [attribute_of(item, attribute) for item in listed]


def _comparable(run: Run, value: object, case_sensitive: object) -> Any:
    return value if case_sensitive or not isinstance(value, str) else lower(run, value)


def _check_alike(keys: list[object], use: str) -> None:
    kinds = {kind(key) for key in keys}
    if len(kinds) > 1 or not kinds <= {Kind.NUMBER, Kind.TEXT, Kind.BOOLEAN}:
        raise Refused(f"{use} cannot compare {' with '.join(sorted(kinds))}")


# `default` is not here: it is the one filter that may see a missing value, so the compiler knows it.
FILTERS: Final[Mapping[str, Filter]] = {
    "abs": absolute,
    "batch": batch,
    "capitalize": capitalize,
    "center": center,
    "count": length,
    "dictsort": dictsort,
    "first": first,
    "flatten": flatten,
    "float": floating,
    "format": format_text,
    "indent": indent,
    "int": integer,
    "items": items,
    "join": join,
    "last": last,
    "length": length,
    "list": to_list,
    "lower": lower,
    "map": mapped,
    "max": largest,
    "min": smallest,
    "reject": _selection("reject", by_attribute=False, keep=False),
    "rejectattr": _selection("rejectattr", by_attribute=True, keep=False),
    "replace": replace,
    "reverse": reverse,
    "round": rounded,
    "select": _selection("select", by_attribute=False, keep=True),
    "selectattr": _selection("selectattr", by_attribute=True, keep=True),
    "sort": sort,
    "string": string,
    "sum": total,
    "title": title,
    "tojson": tojson,
    "trim": trim,
    "truncate": truncate,
    "unique": unique,
    "upper": upper,
    "urlencode": urlencode,
    "wordcount": wordcount,
}
