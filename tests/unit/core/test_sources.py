"""Patterns of sources: literal, case-sensitive, and never wider than they read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graticule.core.sources import admits, default_patterns, pattern_fault

NAME = st.text(st.sampled_from("abAB.-_%é *"), min_size=1, max_size=4).filter(lambda name: name not in {".", ".."})
CONTAINER = st.from_regex(r"[A-Za-z0-9$][A-Za-z0-9_.-]{0,5}", fullmatch=True)
PATH = st.builds(lambda container, names: "/".join([container, *names]), CONTAINER, st.lists(NAME, min_size=1))
PREFIX = st.builds(lambda container, names: "/".join([container, *names, ""]), CONTAINER, st.lists(NAME, min_size=1))


@pytest.mark.parametrize(
    "pattern", ["bronze", "bronze/ddh/", "$web", "a.b-c_d/x y/", "bronze/é/", "bronze/%2e%2e/", "x/.../", "b/a/c/d/"]
)
def test_a_container_or_a_prefix_is_a_pattern(pattern: str) -> None:
    assert pattern_fault(pattern) is None


@pytest.mark.parametrize(
    "pattern",
    [
        *("", "/", "bronze/", "bronze/ddh", "/bronze/", "bronze//", "bronze//ddh/", "bronze/../", "bronze/./"),
        *("bronze/../arcgis/", "bronze/ddh/../arcgis/", "*", "bronze/*/", "bronze/d?h/", "bronze/d\\h/", "é/", "a b"),
        *("bronze/\0/", "bronze/\n/", "bronze\n", "https://host/", "..", ".", ".a", "a" * 64, f"a/{'b' * 512}/"),
    ],
)
def test_what_is_neither_is_refused_with_the_form_to_write(pattern: str) -> None:
    fault = pattern_fault(pattern)
    assert fault is not None
    assert "container/prefix/" in fault or "characters" in fault


@pytest.mark.parametrize(
    ("pattern", "path"),
    [("bronze/ddh/", "bronze/ddh/a.tif"), ("bronze/ddh/", "bronze/ddh/b/c.tif"), ("bronze", "bronze/arcgis/a.tif")],
)
def test_what_lies_below_is_admitted(pattern: str, path: str) -> None:
    assert admits([pattern], path)


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        *(
            ("bronze/ddh/", path)
            for path in ("bronze/ddh", "bronze/ddh2/a", "bronze/DDH/a", "Bronze/ddh/a", "bronze/a")
        ),
        *(("bronze/ddh/", path) for path in ("bronze/arcgis/ddh/a", "x/bronze/ddh/a", "bronze/d%64h/a")),
        ("bronze/é/", "bronze/e\N{COMBINING ACUTE ACCENT}/a"),
        *(("bronze", path) for path in ("bronze2/a", "bronze.a/a", "Bronze/a", "a/bronze")),
    ],
)
def test_what_only_resembles_it_is_not(pattern: str, path: str) -> None:
    assert not admits([pattern], path)


@given(st.lists(PREFIX | CONTAINER, max_size=4), PATH)
def test_a_path_is_admitted_by_its_container_or_by_one_of_its_folders_and_by_nothing_else(
    patterns: list[str], path: str
) -> None:
    names = path.split("/")
    folders = {"/".join([*names[:length], ""]) for length in range(2, len(names))}
    assert admits(patterns, path) == bool({names[0], *folders} & {*patterns})


@given(st.from_regex(r"[a-z][a-z0-9_]{0,49}", fullmatch=True), st.from_regex(r"[a-z][a-z0-9_]{0,49}", fullmatch=True))
def test_the_defaults_of_two_partners_share_no_file(one: str, other: str) -> None:
    assert pattern_fault(*default_patterns(one)) is None
    assert admits(default_patterns(one), f"bronze/{one}/a.tif")
    assert admits(default_patterns(one), f"bronze/{other}/a.tif") == (one == other)
