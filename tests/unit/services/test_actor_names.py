"""What an issuer calls its people cannot be mistaken for a client, for one of our parts, or for someone else."""

import pytest

from graticule.services.actor_names import name_from_issuer


@pytest.mark.parametrize(
    ("given", "recorded"),
    [
        ("ada@example.org", "ada@example.org"),
        ("Zoë O'Neill <zoe@example.org>", "Zoë O'Neill <zoe@example.org>"),
        ("Анна Петрова", "Анна Петрова"),
        ("東京 太郎", "東京 太郎"),
        ("5f0c1d1e-8c1a-4b7e", "5f0c1d1e-8c1a-4b7e"),
        ("rev1", "oidc:rev1"),
        ("Rev1", "oidc:Rev1"),
        ("REV-1", "oidc:REV-1"),
        ("арех", "oidc:арех"),  # noqa: RUF001 - all of it Cyrillic, and not the client apex
        ("Анна", "oidc:Анна"),
        ("oidc:rev1", "oidc:oidc:rev1"),
        ("OIDC:rev1", "oidc:OIDC:rev1"),
    ],
)
def test_a_name_that_could_be_a_clients_is_qualified(given: str, recorded: str) -> None:
    assert name_from_issuer(given) == recorded


@pytest.mark.parametrize(
    ("given", "plain"),
    [
        ("Ada\u00a0Lovelace", "Ada Lovelace"),
        ("Ada  Lovelace", "Ada Lovelace"),
        ("Ada\u2003Lovelace", "Ada Lovelace"),
        ("Zoe\u0308 Washburne", "Zoë Washburne"),  # in two characters what others write in one
        ("Zoe\u0308", "Zoë"),
        ("rev1\u00a0", "rev1"),
        (" rev1 ", "rev1"),
        ("ｒｅｖ１", "rev1"),  # noqa: RUF001
        ("ﬁona", "fiona"),
        ("oidc:  rev1", "oidc: rev1"),
        ("Ada  Lovelace" + "!" * 97, "Ada Lovelace" + "!" * 97),
    ],
)
def test_a_name_in_another_form_is_recorded_in_the_plain_one_and_stays_apart(given: str, plain: str) -> None:
    recorded = name_from_issuer(given)
    prefix, mark, name = recorded.split(":", 2)
    assert (prefix, len(mark), name) == ("oidc", 12, plain)
    assert name_from_issuer(given) == recorded
    assert recorded not in {name_from_issuer(other) for other in (plain, f"{given} ", recorded[5:], recorded[-100:])}
    if len(recorded) <= 120:
        assert name_from_issuer(recorded) != recorded


def test_names_in_different_forms_are_different_callers() -> None:
    forms = ["Ada Lovelace", "Ada\u00a0Lovelace", "Ada  Lovelace", "Ada Lovelace ", "Ａda Lovelace"]  # noqa: RUF001
    assert len({name_from_issuer(form) for form in forms}) == len(forms)


def test_a_name_that_is_too_long_once_it_is_qualified_is_refused_as_such() -> None:
    assert name_from_issuer("oidc:" + "a" * 118) == "oidc:oidc:" + "a" * 118
    with pytest.raises(ValueError, match="is recorded as oidc:oidc:aaaaaaaaaa…, with more than 128 characters"):
        name_from_issuer("oidc:" + "a" * 119)


@pytest.mark.parametrize(
    "given",
    [
        "Admin\u200b",
        "Ad\u00admin",
        "\u202enimda",
        "admin\ufeff",
        "ada\u2028",
        "ad\ue000a",
        "\u0410dmin",  # a Cyrillic A
        "adm\u03b9n",  # a Greek iota
        "ＡＤＭＩＮ",  # noqa: RUF001
        " Worker ",
        "Worker",
        "",
        " ",
        "\u00a0",
        "a" * 129,
        "oidc:" + "a" * 119 + "!" * 4,
        "Ada  Lovelace" + "!" * 115,
        "\ufdfa" * 20,  # one character that is written as eighteen
    ],
)
def test_a_name_that_would_mislead_is_refused(given: str) -> None:
    with pytest.raises(ValueError, match="name"):
        name_from_issuer(given)
