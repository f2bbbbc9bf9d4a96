"""Integers of 128 bits."""

from __future__ import annotations

from tilewright.ir import types as ir
from tilewright.lang.numbers.numeric import Integer


class Int128(Integer, ir_type=ir.I128):
    """A signed integer of 128 bits: a number of the host and of kernels, their arguments among them. Tensors have no
    such elements: split one, ``(x >> 64).to(Int64)`` and ``x.to(Uint64)``.

    >>> Int128(1 << 100) * 3 - 1, Int128(1 << 127), Int128(-7) // 2, Int128.width
    (Int128(3802951800684688204490109616127), Int128(-170141183460469231731687303715884105728), Int128(-4), 128)
    """

    __slots__ = ()


class Uint128(Integer, ir_type=ir.U128):
    """An unsigned integer of 128 bits; see :class:`Int128`.

    >>> Uint128(-1) >> 120, Uint128(2.5), int(Uint128(1 << 127))
    (Uint128(255), Uint128(2), 170141183460469231731687303715884105728)
    """

    __slots__ = ()
