"""What an expression may call: a few methods of texts, lists and mappings, and `range`."""

from collections.abc import Callable, Mapping
from typing import Final

from graticule.dag.language.filters import capitalize, items, join, lower, replace, title, trim, upper
from graticule.dag.language.operators import contained
from graticule.dag.language.values import (
    Kind,
    Run,
    as_list,
    as_text,
    as_whole,
    kind,
    list_of_size,
    made_text,
    pay_for_reading,
    text_of_size,
)

Method = Callable[..., object]


def number_range(run: Run, *bounds: object) -> list[int]:
    """Give the whole numbers from one to before another."""
    numbers = range(*(as_whole(bound, "range") for bound in bounds))
    list_of_size(run, _size(numbers))
    return list(numbers)


def _size(numbers: range) -> int:
    try:
        return len(numbers)
    except OverflowError:
        return 1 << 62


def _starts(run: Run, text: str, prefix: object) -> bool:
    pay_for_reading(run, prefix)
    return text.startswith(as_text(prefix, "startswith"))


def _ends(run: Run, text: str, suffix: object) -> bool:
    pay_for_reading(run, suffix)
    return text.endswith(as_text(suffix, "endswith"))


def _split(run: Run, text: str, separator: object = None, most: object = -1) -> list[str]:
    list_of_size(run, len(made_text(run, text).split(_separator(separator), as_whole(most, "split"))))
    return text.split(_separator(separator), as_whole(most, "split"))


def _rsplit(run: Run, text: str, separator: object = None, most: object = -1) -> list[str]:
    list_of_size(run, len(made_text(run, text).rsplit(_separator(separator), as_whole(most, "rsplit"))))
    return text.rsplit(_separator(separator), as_whole(most, "rsplit"))


def _separator(separator: object) -> str | None:
    return None if separator is None else as_text(separator, "split")


def _splitlines(run: Run, text: str) -> list[str]:
    return made_text(run, text).splitlines()


def _lstrip(run: Run, text: str, chars: object = None) -> str:
    return made_text(run, text.lstrip(None if chars is None else as_text(chars, "lstrip")))


def _rstrip(run: Run, text: str, chars: object = None) -> str:
    return made_text(run, text.rstrip(None if chars is None else as_text(chars, "rstrip")))


def _remove_prefix(run: Run, text: str, prefix: object) -> str:
    return made_text(run, text.removeprefix(as_text(prefix, "removeprefix")))


def _remove_suffix(run: Run, text: str, suffix: object) -> str:
    return made_text(run, text.removesuffix(as_text(suffix, "removesuffix")))


def _find(run: Run, text: str, part: object) -> int:
    pay_for_reading(run, text)
    return text.find(as_text(part, "find"))


def _count_text(run: Run, text: str, part: object) -> int:
    pay_for_reading(run, text)
    return text.count(as_text(part, "count"))


def _zfill(run: Run, text: str, width: object) -> str:
    text_of_size(run, as_whole(width, "zfill"))
    return made_text(run, text.zfill(as_whole(width, "zfill")))


def _is_digit(run: Run, text: str) -> bool:
    return made_text(run, text).isdigit()


def _join(run: Run, text: str, parts: object) -> str:
    return join(run, parts, text)


def _keys(run: Run, value: object) -> list[object]:
    return list(as_list(run, value, "keys"))


def _values(run: Run, value: Mapping[str, object]) -> list[object]:
    run.budget.spend(len(value))
    return list(value.values())


def _get(run: Run, value: Mapping[str, object], key: object, default: object = None) -> object:
    return value[str(key)] if contained(run, key, value) else default


def _index(run: Run, value: list[object], item: object) -> int:
    pay_for_reading(run, value)
    return value.index(item)


def _count_items(run: Run, value: list[object], item: object) -> int:
    pay_for_reading(run, value)
    return value.count(item)


FUNCTIONS: Final[Mapping[str, Method]] = {"range": number_range}

_METHODS: Final[Mapping[Kind, Mapping[str, Method]]] = {
    Kind.TEXT: {
        "capitalize": capitalize,
        "count": _count_text,
        "endswith": _ends,
        "find": _find,
        "isdigit": _is_digit,
        "join": _join,
        "lower": lower,
        "lstrip": _lstrip,
        "removeprefix": _remove_prefix,
        "removesuffix": _remove_suffix,
        "replace": replace,
        "rsplit": _rsplit,
        "rstrip": _rstrip,
        "split": _split,
        "splitlines": _splitlines,
        "startswith": _starts,
        "strip": trim,
        "title": title,
        "upper": upper,
        "zfill": _zfill,
    },
    Kind.MAPPING: {"get": _get, "items": items, "keys": _keys, "values": _values},
    Kind.LIST: {"count": _count_items, "index": _index},
}
NAMES: Final = frozenset(name for methods in _METHODS.values() for name in methods)


def method_of(value: object, name: str) -> Method | None:
    """Give a method that may be called on this value."""
    return _METHODS.get(kind(value), {}).get(name)
