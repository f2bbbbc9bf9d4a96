"""``mma.sync``: matrix instructions of one warp (and of SM70's quad pairs), with their thread-value layouts.

The layouts follow from one picture. A 32-bit register holds ``32 / width`` neighbours along K (one, for wider types).
Lane ``l`` has row ``l / 4`` and at the ``l % 4``-th register along K; further registers of the same lane step
first 8 rows down, then to the next four registers along K. C has two neighbours along N instead. See the PTX ISA,
"Matrix multiply-accumulate operation using mma instruction"; table of names: ``mma_sync_table.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tilewright.atoms.mma import Gather, MatrixIndices, Mma, gather
from tilewright.atoms.value_types import BY_NAME, shown
from tilewright.ir.computed import computed
from tilewright.ir.core import Op
from tilewright.ir.instruction import Emitter
from tilewright.ir.target import Architecture
from tilewright.ir.types import F16, F32, I32, ScalarType
from tilewright.layout import Layout

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

Shape3 = tuple[int, int, int]
_NAMES = {t: name for name, t in BY_NAME.items()}


def operand_layout(rows: int, k: int, width: int) -> Layout:
    """(lane, value) -> (row, k) of an A or B operand with ``width``-bit elements.

    >>> operand_layout(16, 16, 16)
    ((4,8),(2,2,2)):((32,1),(16,8,128))
    >>> operand_layout(8, 4, 64)
    ((4,8),1):((8,1),0)
    """
    per = max(1, 32 // width)
    modes = [(per, rows), (rows // 8, 8), (k // (4 * per), 4 * per * rows)]
    kept = [mode for mode in modes if mode[0] > 1]
    shape: Any = tuple(extent for extent, _ in kept)
    stride: Any = tuple(step for _, step in kept)
    if not kept:
        shape, stride = 1, 0
    elif len(kept) == 1 and width != 4:  # CuTe writes the lone mode of the 4-bit operands as a 1-tuple
        shape, stride = shape[0], stride[0]
    return Layout(((4, 8), shape), ((per * rows, 1), stride))


def accumulator_layout(m: int) -> Layout:
    """(lane, value) -> (m, n) of an accumulator with 8 columns.

    >>> accumulator_layout(16), accumulator_layout(8)
    (((4,8),(2,2)):((32,1),(16,8)), ((4,8),2):((16,1),8))
    """
    return operand_layout(m, 8, 16)


def quad_pair_layouts(majors: str, wide: bool) -> tuple[Layout, Layout, Layout]:
    """A, B and C of SM70's 8x8x4 for eight threads; ``majors`` is TN, NT, NN or TT, ``wide`` means float32 in C."""
    row, column = Layout((8, 4), (1, 8)), Layout(((4, 2), 4), ((8, 4), 1))
    c = Layout(((2, 2, 2), (2, 2, 2)), ((1, 16, 4), (8, 2, 32))) if wide else Layout((8, 8), (1, 8))
    return (row if majors[0] == "T" else column), (row if majors[1] == "N" else column), c


@dataclass(frozen=True, repr=False)
class MmaSync(Mma):
    """One ``mma.sync.aligned`` instruction. ``sm`` is the generation in CuTe's name of it.

    >>> MmaSync(80, (16, 8, 16), F32, F16, F16)
    SM80_16x8x16_F32F16F16F32_TN
    >>> MmaSync(80, (16, 8, 16), F32, F16, F16).layout_b
    ((4,8),(2,2)):((16,1),(8,64))
    """

    sm: int
    shape_mnk: Shape3
    type_d: ScalarType
    type_a: ScalarType
    type_b: ScalarType
    majors: str = "TN"
    saturate: bool = False
    bit_op: str = ""

    name = "mma.sync"

    @cached_property
    def thr_id(self) -> Layout:  # type: ignore[override]  # as `computed`, and kept
        return Layout((4, 2), (1, 16)) if self.sm == 70 else Layout(32, 1)

    @cached_property
    def _layouts(self) -> tuple[Layout, Layout, Layout]:
        m, n, k = self.shape_mnk
        if self.sm == 70:
            return quad_pair_layouts(self.majors, self.type_d == F32)
        return (
            operand_layout(m, k, self.type_a.width),
            operand_layout(n, k, self.type_b.width),
            accumulator_layout(m),
        )

    @computed
    def layout_a(self) -> Layout:
        return self._layouts[0]

    @computed
    def layout_b(self) -> Layout:
        return self._layouts[1]

    @computed
    def layout_c(self) -> Layout:
        return self._layouts[2]

    @computed
    def min_arch(self) -> int:
        return max(self.sm, 80)

    def lacking(self, arch: Architecture, op: Op | None = None) -> str:
        if self.bit_op == "xor" and arch.capability >= 90:
            return "a GPU before sm_90, from which on there is no .xor.popc (the .and.popc form, ANDPOPC, is on all)"
        return super().lacking(arch, op)

    @property
    def cute_name(self) -> str:
        types = "".join(_NAMES[t] for t in (self.type_d, self.type_a, self.type_b, self.type_d))
        suffix = ("_SATURATE" if self.saturate else "") + (f"_{self.bit_op.upper()}POPC" if self.bit_op else "")
        return f"SM{self.sm}_{'x'.join(map(str, self.shape_mnk))}_{types}_{self.majors}{suffix}"

    def mnemonic(self) -> str:
        m, n, k = self.shape_mnk
        a, b = ("row" if self.majors[0] == "T" else "col"), ("col" if self.majors[1] == "N" else "row")
        types = ".".join(shown(t) for t in (self.type_d, self.type_a, self.type_b, self.type_d))
        return (
            f"mma.sync.aligned.m{m}n{n}k{k}.{a}.{b}{'.satfinite' if self.saturate else ''}.{types}"
            f"{f'.{self.bit_op}.popc' if self.bit_op else ''}"
        )

    # -- action --------------------------------------------------------------------------------------------------

    def accumulate(self, d: Array, a: Array, b: Array, plan: MatrixIndices) -> None:
        """Products are exact, sums are in float32 (float64, integers: exact); float16 accumulators round after each
        instruction along K, and saturating ones clamp after each."""
        left = self._gather("a", a, plan.a, self.type_a)
        self.multiply_and_add(d, left, self._gather("b", b, plan.b, self.type_b), plan)

    def multiply_and_add(self, d: Array, left: Array, right: Array, plan: MatrixIndices) -> None:
        """``d += left * right`` of matrices ``[warps, G, rows, K]``."""
        if self.type_d == F16 or self.saturate:
            step = self.shape_mnk[2]
            for k in range(0, plan.steps * step, step):
                self.add(d, self._multiply(left[..., k : k + step], right[..., k : k + step]), plan)
        else:
            self.add(d, self._multiply(left, right), plan)

    def _gather(self, side: str, registers: Array, where: Gather, type_: ScalarType) -> Array:
        """The operand's matrices ``[warps, G, rows, K]`` as numbers that multiply exactly."""
        from tilewright.atoms import numbers

        patterns = numbers.raw(registers, type_)  # also sees registers of another type of this width as this one
        return numbers.widen(gather(side, patterns, where), type_)

    def _multiply(self, a: Array, b: Array) -> Array:
        import numpy as np

        from tilewright.atoms import numbers
        from tilewright.atoms.scratch import scratch

        exact = numbers.exact_float(a.shape[-1], self.type_a, self.type_b) if self.type_d == I32 else a.dtype
        a, b = a.astype(exact, copy=False), b.astype(exact, copy=False)
        both = np.matmul(a, b.swapaxes(-1, -2), out=scratch("products", (*a.shape[:-1], b.shape[-2]), exact))
        if self.type_d != I32:
            return both
        if self.bit_op == "xor":
            both = a.sum(axis=-1, keepdims=True) + b.sum(axis=-1)[..., None, :] - 2 * both
        return both.astype(np.int64 if self.saturate else np.int32)

    def add(self, d: Array, products: Array, plan: MatrixIndices) -> None:
        import numpy as np

        flat = products.reshape(len(d), -1)
        if plan.scatter is not None:
            where: Any = slice(None)
            flat = gather("scattered", flat, plan.scatter)
        else:
            where = plan.d.reshape(-1)
        if self.saturate:
            total = np.clip(d[:, where] + flat, -(1 << 31), (1 << 31) - 1)
            d[:, where] = total
        elif self.type_d == F16:
            with np.errstate(over="ignore"):
                d[:, where] = d[:, where].astype(np.float32) + flat
        elif plan.scatter is not None:
            np.add(d, flat, out=d)
        else:
            d[:, where] += flat

    # -- text ----------------------------------------------------------------------------------------------------

    def emit(self, out: Emitter, op: Op) -> None:
        from tilewright.atoms.mma_sync_text import emit_mma_sync

        emit_mma_sync(self, out, op)
