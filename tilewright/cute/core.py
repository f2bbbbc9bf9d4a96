"""``cute.core``: the older module of names that ``cute`` has."""

from tilewright import cute as _cute

__all__ = list(_cute.__all__)


def __getattr__(name: str) -> object:
    return getattr(_cute, name)
