"""How sessions that read features are set."""

from typing import Final

SESSION_SETTINGS: Final[dict[str, str]] = {
    "search_path": "public",  # where PostGIS is; tables are always named with their schema
    "default_transaction_read_only": "on",
    "TimeZone": "UTC",
    "jit": "off",  # to compile a tile's query takes longer than to run it
    "plan_cache_mode": "force_custom_plan",  # the best way to a tile depends on how much of the table it covers
}
"""What every session of the pool is set to; a limit of time comes from the role's connection."""
