"""``cute.core``: the older home of names that ``cute`` bears."""

from tilewright import cute as _cute

__all__ = list(_cute.__all__)


def __getattr__(name: str) -> object:
    return getattr(_cute, name)
