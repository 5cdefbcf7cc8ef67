"""The mark of a login whose password is a token."""

from typing import Final

# It stands for the password of a login whose password is a token of Entra ID. Whoever connects puts the token of that
# moment in its place: see `graticule.repositories.login`.
TOKEN_FOR_PASSWORD: Final = "token-of-the-identity"  # noqa: S105 - nobody's
