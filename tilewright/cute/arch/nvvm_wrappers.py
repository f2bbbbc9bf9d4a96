"""``cute.arch.nvvm_wrappers``: the older module of names that ``cute.arch`` has."""

from tilewright.cute import arch as _arch

__all__ = list(_arch.__all__)


def __getattr__(name: str) -> object:
    return getattr(_arch, name)
