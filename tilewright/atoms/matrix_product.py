"""Products of matrices as ``wgmma`` and ``tcgen05.mma`` make them, for the simulator.

Sums are in float32 (integers: exact); the hardware adds the products of 8-bit floats with fewer bits (about 14 of the
mantissa), which is not modelled.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.atoms import numbers
from tilewright.atoms.scratch import scratch
from tilewright.ir.lanes import Array
from tilewright.ir.types import F16, I32


def rounds_each_step(atom: Any) -> bool:
    """Whether the accumulators change with each instruction along K in a way that one longer sum does not have."""
    return bool(atom.type_d == F16 or atom.saturate)


def multiplied(atom: Any, left: Array, right: Array) -> Array:
    """The products of ``[units, rows, k]`` and ``[units, columns, k]``; floats are scratch, gone with the next call."""
    if atom.type_d == I32:
        exact = numbers.exact_float(left.shape[-1], atom.type_a, atom.type_b)
        product = np.matmul(left.astype(exact), right.astype(exact).transpose(0, 2, 1))
        return product.astype(np.int64 if atom.saturate else np.int32)
    out = scratch("products", (*left.shape[:2], right.shape[1]), left.dtype)
    return np.matmul(left, right.transpose(0, 2, 1), out=out)


def added(atom: Any, old: Array | None, new: Array) -> Array:
    """The accumulators after a product: those before, which may be changed in place, plus ``new``; None: ``new``
    overwrites them."""
    dtype = atom.type_d.dtype
    if atom.saturate:
        total = new if old is None else old + new
        return np.clip(total, -(1 << 31), (1 << 31) - 1).astype(dtype)
    if atom.type_d == F16:
        with np.errstate(over="ignore"):
            return (new if old is None else old.astype(np.float32) + new).astype(dtype)
    if old is None:
        return new.astype(dtype)  # a copy: ``new`` is scratch
    np.add(old, new, out=old, casting="unsafe")
    return old
