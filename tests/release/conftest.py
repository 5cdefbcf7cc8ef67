"""The wheel that is released."""

from tests.wheel import wheel

__all__ = ["wheel"]
