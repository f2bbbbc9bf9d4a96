"""Integers of 128 bits: numbers of the host program."""

from __future__ import annotations

from typing import Any

from tilewright.errors import StagingError
from tilewright.ir import types as ir
from tilewright.ir.core import Value
from tilewright.lang.numbers.numeric import Integer


class _Wide(Integer):
    """Known numbers only: no machine has such registers."""

    __slots__ = ()

    def ir_value(self, *, loc: Any = None, ip: Any = None) -> Value:
        raise StagingError(
            f"{type(self).__name__}: kernels have no integers of 128 bits; keep two Uint64, or move the bits as four "
            "Uint32 (cute.recast_tensor, or a copy atom of 128 bits)"
        )


class Int128(_Wide, ir_type=ir.I128):
    """A signed integer of 128 bits. Kernels have none: where one would be needed at run time, StagingError says so.

    >>> Int128(1 << 100) * 3 - 1, Int128(1 << 127), Int128(-7) // 2, Int128.width
    (Int128(3802951800684688204490109616127), Int128(-170141183460469231731687303715884105728), Int128(-4), 128)
    """

    __slots__ = ()


class Uint128(_Wide, ir_type=ir.U128):
    """An unsigned integer of 128 bits; see :class:`Int128`.

    >>> Uint128(-1) >> 120, Uint128(2.5), int(Uint128(1 << 127))
    (Uint128(255), Uint128(2), 170141183460469231731687303715884105728)
    """

    __slots__ = ()
