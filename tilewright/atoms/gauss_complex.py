"""Complex matrix instructions by Gauss' three products, each a real ``mma.sync`` of float64.

An accumulator is (t0, t1, t2) with ``t0 += ar br``, ``t1 += ai bi``, ``t2 += (ar + ai) (br + bi)``: the complex sum is
``t0 - t1`` and, imaginary, ``t2 - t0 - t1``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tilewright.atoms.mma import MatrixIndices, gather
from tilewright.atoms.mma_sync import MmaSync
from tilewright.atoms.mma_sync_text import helper_source, operand_registers
from tilewright.ir.core import Op
from tilewright.ir.instruction import Emitter

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]


@dataclass(frozen=True, repr=False)
class GaussComplexMma(MmaSync):
    """``D += A B`` of complex numbers with accumulators of three float64.

    >>> from tilewright.atoms.value_types import C64, GC64
    >>> GaussComplexMma(80, (8, 8, 4), GC64, C64, C64)
    SM80_8x8x4_GC64C64C64GC64_TN
    """

    def accumulate(self, d: Array, a: Array, b: Array, plan: MatrixIndices) -> None:
        import numpy as np

        left, right = gather("a", a, plan.a), gather("b", b, plan.b).swapaxes(-1, -2)  # (warp, group, M K and K N)
        products = np.stack(
            [
                np.matmul(left.real, right.real),
                np.matmul(left.imag, right.imag),
                np.matmul(left.real + left.imag, right.real + right.imag),
            ],
            axis=-1,
        )
        parts = d.view(np.float64).reshape(*d.shape, 3)  # the accumulators' (t0, t1, t2)
        parts[:, plan.d.reshape(-1)] += products.reshape(len(d), plan.d.size, 3)

    def emit(self, out: Emitter, op: Op) -> None:
        name = "mma_8x8x4_gc64c64c64gc64_tn"
        out.helper(name, helper_source(self, name))
        for of_d, of_a, of_b in operand_registers(self, out, op):
            for part, form in (("x", "{0}.x"), ("y", "{0}.y"), ("z", "({0}.x + {0}.y)")):
                parts = [f"{r}.{part}" for r in of_d] + [form.format(r) for r in (*of_a, *of_b)]
                out.line(f"{name}({', '.join(parts)});")
