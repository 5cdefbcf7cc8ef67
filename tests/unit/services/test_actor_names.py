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
        " rev1 ",
        "rev1\u00a0",
        "Ada  Lovelace",
        "Ada\u2003Lovelace",
        "ｒｅｖ１",  # noqa: RUF001
        "Zoe\u0308",  # in two characters what others write in one
        "ﬁona",
        "",
        "a" * 129,
        "\ufdfa" * 20,  # one character that is written as eighteen
    ],
)
def test_a_name_that_would_mislead_is_refused(given: str) -> None:
    with pytest.raises(ValueError, match="name"):
        name_from_issuer(given)
