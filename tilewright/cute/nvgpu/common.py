"""Operations that every architecture has, and the enumerations that several share."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar

from tilewright._names import attach
from tilewright.atoms.cp_async import LoadCacheMode
from tilewright.atoms.fma import UniversalFma
from tilewright.atoms.universal import UniversalCopy
from tilewright.errors import ConstraintError
from tilewright.ir.types import ScalarType, scalar_of

__all__ = [
    "CacheEvictionPriority",
    "CopyG2ROp",
    "CopyR2GOp",
    "CopyUniversalOp",
    "LoadCacheMode",
    "MemoryOrder",
    "MemoryScope",
    "MmaUniversalOp",
    "OperandMajorMode",
]


class CacheEvictionPriority(Enum):
    """How long the lines of a copy by TMA stay in the L2 cache (``cute.copy(..., cache_policy=...)``): evicted first,
    last, or in their turn. ``NO_ALLOCATE`` (no line at all) is a priority of L1, which copies by TMA do not use."""

    EVICT_NORMAL = "normal"
    EVICT_FIRST = "first"
    EVICT_LAST = "last"
    NO_ALLOCATE = "no_allocate"


class MemoryOrder(Enum):
    """How an access is ordered with those of other threads, by the names of PTX (``sem=`` of ``cute.arch.load``)."""

    WEAK = "weak"
    RELAXED = "relaxed"
    ACQUIRE = "acquire"
    RELEASE = "release"
    ACQ_REL = "acq_rel"
    VOLATILE = "volatile"


class MemoryScope(Enum):
    """Among which threads an access is ordered, by the names of PTX (``scope=`` of ``cute.arch.load``)."""

    CTA = "cta"
    CLUSTER = "cluster"
    GPU = "gpu"
    SYS = "sys"


class OperandMajorMode(Enum):
    """Which mode of an MMA operand is contiguous: ``MN`` or ``K``.

    >>> from tilewright.cute.nvgpu import OperandMajorMode
    >>> OperandMajorMode.K, OperandMajorMode.MN
    (<OperandMajorMode.K: 'k'>, <OperandMajorMode.MN: 'mn'>)
    """

    MN = "mn"
    K = "k"


@dataclass(frozen=True)
class MmaUniversalOp:
    """``d = a * b + c`` on one number of one thread; shape 1x1x1.

    >>> from tilewright.cute import Float32
    >>> MmaUniversalOp(Float32).instruction()
    UniversalFMA<float>
    """

    abacc_dtype: Any

    def instruction(self) -> UniversalFma:
        kind = scalar_of(self.abacc_dtype)
        if kind.kind == "bool" or kind.width < 16 and kind.is_float:
            raise ConstraintError(f"MmaUniversalOp: no multiply-add on {self.abacc_dtype}: use Float32")
        return UniversalFma(kind)


@dataclass(frozen=True)
class CopyUniversalOp:
    """A load, a store, or both, by one thread; ``num_bits_per_copy`` of make_copy_atom is its width.

    Without a width one element is the unit of the thread-value layouts, and ``cute.copy`` uses the widest accesses that
    the tensors allow.

    >>> from tilewright import Float16
    >>> cute.make_copy_atom(CopyUniversalOp(), Float16, num_bits_per_copy=128).num_val_src  # values of a thread
    8
    >>> cute.make_copy_atom(CopyUniversalOp(), Float16).num_val_src
    1
    """

    def copy_instruction(self, value_type: ScalarType, num_bits: int = 0) -> UniversalCopy:
        return UniversalCopy(num_bits or max(8, value_type.width), auto=not num_bits)


class CopyG2ROp(CopyUniversalOp):
    """:class:`CopyUniversalOp` as a load from global memory to registers: ``cute.copy`` refuses other memories.

    >>> from tilewright import Float16
    >>> cute.make_copy_atom(CopyG2ROp(), Float16, num_bits_per_copy=64).num_val_src
    4
    """

    memories: ClassVar = ("gmem", "rmem")


class CopyR2GOp(CopyUniversalOp):
    """:class:`CopyUniversalOp` as a store of registers to global memory: ``cute.copy`` refuses other memories.

    >>> from tilewright import Float16
    >>> cute.make_copy_atom(CopyR2GOp(), Float16, num_bits_per_copy=128).num_val_dst
    8
    """

    memories: ClassVar = ("rmem", "gmem")


attach(__name__)
