"""``cutlass.base_dsl.arch``: GPU architectures."""

from __future__ import annotations

from enum import Enum

__all__ = ["Arch"]


class Arch(Enum):
    """Architectures by the compiler's names; the value is (major, minor, suffix).

    >>> Arch.from_string("sm_90a") is Arch.sm_90a, Arch.sm_80 < Arch.sm_90a
    (True, True)
    """

    sm_80 = (8, 0, "")
    sm_86 = (8, 6, "")
    sm_87 = (8, 7, "")
    sm_89 = (8, 9, "")
    sm_90 = (9, 0, "")
    sm_90a = (9, 0, "a")
    sm_100 = (10, 0, "")
    sm_100a = (10, 0, "a")
    sm_100f = (10, 0, "f")
    sm_101 = (10, 1, "")
    sm_101a = (10, 1, "a")
    sm_101f = (10, 1, "f")
    sm_103 = (10, 3, "")
    sm_103a = (10, 3, "a")
    sm_103f = (10, 3, "f")
    sm_110 = (11, 0, "")
    sm_110a = (11, 0, "a")
    sm_110f = (11, 0, "f")
    sm_120 = (12, 0, "")
    sm_120a = (12, 0, "a")
    sm_120f = (12, 0, "f")
    sm_121 = (12, 1, "")
    sm_121a = (12, 1, "a")
    sm_121f = (12, 1, "f")

    @property
    def major(self) -> int:
        return self.value[0]

    @property
    def minor(self) -> int:
        return self.value[1]

    @property
    def suffix(self) -> str:
        return self.value[2]

    def is_family_of(self, other: Arch) -> bool:
        """Whether ``self`` is of the same generation as ``other``, and not older.

        >>> Arch.sm_103a.is_family_of(Arch.sm_100f), Arch.sm_90a.is_family_of(Arch.sm_100f)
        (True, False)
        """
        return self.major == other.major and self.minor >= other.minor

    @classmethod
    def from_string(cls, text: str) -> Arch:
        """``"sm_90a"`` as an architecture; ValueError for an unknown name."""
        arch = cls.__members__.get(text)
        if arch is None:
            raise ValueError(f"{text!r} is not an architecture: there are {', '.join(cls.__members__)}")
        return arch

    def __lt__(self, other: Arch) -> bool:
        return bool(self.value < other.value)

    def __le__(self, other: Arch) -> bool:
        return bool(self.value <= other.value)

    def __gt__(self, other: Arch) -> bool:
        return bool(self.value > other.value)

    def __ge__(self, other: Arch) -> bool:
        return bool(self.value >= other.value)
