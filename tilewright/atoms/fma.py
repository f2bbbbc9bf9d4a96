"""Matrix "instructions" of one thread: the universal fused multiply-add (1x1x1) and SM61's dot products."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from tilewright.atoms.mma import CallLayouts, Gather, MatrixIndices, Mma, call_layouts, gather, neighbours
from tilewright.errors import ConstraintError
from tilewright.ir.computed import computed
from tilewright.ir.core import Op
from tilewright.ir.instruction import Emitter, Lanes
from tilewright.ir.types import BF16, F16, F32, F64, I8, I16, I32, ScalarType
from tilewright.layout import Layout
from tilewright.layout.evaluate import static_offsets

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

_CPP = {"f32": "float", "f64": "double", "f16": "half_t", "bf16": "bfloat16_t", "i32": "int32_t"}


class Block(NamedTuple):
    """Registers ``[K, M]``: ``first`` where they are side by side, else ``where`` they are."""

    shape: tuple[int, int]
    first: int | None
    where: Gather

    @classmethod
    def at(cls, places: Array) -> Block:
        flat = places.reshape(-1)
        together = bool((flat == flat[0] + range(flat.size)).all())
        return cls(places.shape, int(flat[0]) if together else None, neighbours(places))

    def of(self, purpose: str, registers: Array) -> Array:
        """``[L, K, M]``: a view, or valid until the next request for the same purpose."""
        if self.first is None:
            return gather(purpose, registers, self.where)
        k, m = self.shape
        return registers[:, self.first : self.first + k * m].reshape(-1, k, m)


class ThreadPlan(NamedTuple):
    """Register numbers of one call: ``a [K, M]``, ``b [K, N]``; D's as a slice or an array over ``n * M + m``."""

    a: Array
    b: Array
    d: Any
    whole_a: Block
    whole_b: Block


class ThreadMma(Mma):
    """A matrix instruction that one thread executes alone: ``m = n = 1``, all of K in its own registers."""

    thr_id = Layout(1, 0)
    layout_c = Layout((1, 1), (0, 0))

    @computed
    def layout_a(self) -> Layout:
        k = self.shape_mnk[2]
        return Layout((1, k), (0, 1 if k > 1 else 0))

    @computed
    def layout_b(self) -> Layout:
        return self.layout_a

    def simulate_run(self, lanes: Lanes, ops: list[Op], operands: list[Any]) -> None:
        """All of M, N and K at once for all lanes."""
        import numpy as np

        from tilewright.atoms.scratch import scratch

        d, a, b = operands
        plan = thread_plan(ops[0].attrs["d_layout"], ops[0].attrs["d_offset"], call_layouts(ops))
        ks, m = plan.a.shape
        n = plan.b.shape[1]
        in_place = isinstance(plan.d, slice) and lanes.mask is None and self._in_place
        total = d[:, plan.d] if in_place else self._widen(d[:, plan.d])  # [L, N * M], as are the products of one k
        products = scratch("outer", (len(d), n, m), total.dtype)
        flat = products.reshape(len(d), n * m)
        if ks > 1 and self._sums_first:
            left, right = plan.whole_a.of("a", a), plan.whole_b.of("b", b)  # [L, K, M], [L, K, N]
            np.matmul(right.swapaxes(1, 2), left, out=products)
        else:
            for k in range(ks):  # the products of the last k are added below
                left, right = self._widen(a[:, plan.a[k]]), self._widen(b[:, plan.b[k]])
                np.multiply(right[:, :, None], left[:, None, :], out=products)
                if k < ks - 1:
                    total = np.add(total, flat, out=total if in_place or k else None)
        total = np.add(total, flat, out=total if in_place else None)
        if not in_place:
            rows = slice(None) if lanes.mask is None else lanes.mask.nonzero()[0]
            if not isinstance(rows, slice):
                total, rows = total[rows], rows if isinstance(plan.d, slice) else rows[:, None]
            d[rows, plan.d] = total

    @property
    def _sums_first(self) -> bool:
        """Whether the products of a thread are summed before they are added, as NumPy's matmul does it: wide floats."""
        return False

    _in_place = True

    def _widen(self, values: Array) -> Array:
        return values

    def accumulate(self, d: Array, a: Array, b: Array, plan: MatrixIndices) -> None:
        raise ConstraintError(f"{self}: acts on single threads, not on warps")


@lru_cache(maxsize=1024)
def thread_plan(d_layout: Layout, d_offset: int, calls: CallLayouts) -> ThreadPlan:
    """Register numbers with K (the instruction's own, then the rest mode, call after call) outermost."""
    import numpy as np

    from tilewright.atoms.tables import offsets

    def grid(layout: Layout, offset: int) -> Array:
        v, rest, k = (offsets(mode) for mode in layout)
        where = offset + v[None, :, None] + k[:, None, None] + rest[None, None, :]
        return where.reshape(-1, rest.size)

    d = d_offset + (offsets(d_layout[1])[None, :] + offsets(d_layout[2])[:, None]).reshape(-1)
    together = bool((d == d[0] + np.arange(d.size)).all())
    all_a = np.concatenate([grid(a, at) for a, at, _, _ in calls])
    all_b = np.concatenate([grid(b, at) for _, _, b, at in calls])
    where = slice(int(d[0]), int(d[0]) + d.size) if together else d
    return ThreadPlan(all_a, all_b, where, Block.at(all_a), Block.at(all_b))


@dataclass(frozen=True, repr=False)
class UniversalFma(ThreadMma):
    """``d = a * b + d`` on one number each. The GPU fuses multiplication and addition. The simulator sums the products
    of all k of a stretch of straight code first (``sim/fusion.py``), with NumPy's matmul, and adds the sum; a single
    product it rounds before it adds.

    >>> UniversalFma(F32).layout_c, UniversalFma(F32).shape_mnk
    ((1,1):(0,0), (1, 1, 1))
    """

    type_d: ScalarType

    name = "fma"
    shape_mnk = (1, 1, 1)

    @computed
    def type_a(self) -> ScalarType:
        return self.type_d

    @computed
    def type_b(self) -> ScalarType:
        return self.type_d

    @property
    def cute_name(self) -> str:
        return f"UniversalFMA<{_CPP.get(self.type_d.name, self.type_d.cuda)}>"

    def mnemonic(self) -> str:
        return f"fma.{self.type_d}"

    @computed
    def _in_place(self) -> bool:
        return self.type_d not in (F16, BF16)

    @property
    def _sums_first(self) -> bool:
        return self.type_d in (F32, F64)

    def _widen(self, values: Array) -> Array:
        """Half types are computed in float32 and rounded once."""
        return values if self._in_place else values.astype("float32")

    def emit(self, out: Emitter, op: Op) -> None:
        from tilewright.atoms.mma_sync_text import rest_loops

        d, a, b = (out.value(v) for v in op.operands)
        for i, j, k in rest_loops(out, op):
            if self.type_d in (F32, F64):
                out.line(f"{d}[{i}] = {'fmaf' if self.type_d == F32 else 'fma'}({a}[{j}], {b}[{k}], {d}[{i}]);")
            elif self.type_d in (F16, BF16):
                out.line(f"{d}[{i}] = tw::fma({a}[{j}], {b}[{k}], {d}[{i}]);")
            else:
                out.line(f"{d}[{i}] += {a}[{j}] * {b}[{k}];")


@dataclass(frozen=True, repr=False)
class DotProduct(ThreadMma):
    """``d += a . b``: SM61's dp4a on four 8-bit integers, or two 16-bit ones (two integer multiply-adds).

    >>> DotProduct(4).layout_a
    (1,4):(0,1)
    """

    length: int

    name = "dot"
    type_d = I32

    @computed
    def shape_mnk(self) -> tuple[int, int, int]:
        return (1, 1, self.length)

    @computed
    def type_a(self) -> ScalarType:
        return I8 if self.length == 4 else I16

    @computed
    def type_b(self) -> ScalarType:
        return self.type_a

    @property
    def cute_name(self) -> str:
        return f"SM61_DP{self.length}A"

    def mnemonic(self) -> str:
        return f"dp{self.length}a.s32.s32"

    def _widen(self, values: Array) -> Array:
        return values if values.dtype.itemsize == 4 else values.astype("int32")

    def emit(self, out: Emitter, op: Op) -> None:
        from tilewright.atoms.mma_sync_text import rest_loops, sum_text

        d, a, b = (out.value(v) for v in op.operands)
        for i, j, k in rest_loops(out, op):
            if self.length == 4:
                left, right = out.register(op.operands[1], j), out.register(op.operands[2], k)
                out.line(f"{d}[{i}] = __dp4a(int({left}), int({right}), {d}[{i}]);")
                continue
            va, vb = (static_offsets(op.attrs[f"{x}_layout"][0]) for x in "ab")
            terms = [f"{a}[{sum_text(j, p)}] * {b}[{sum_text(k, q)}]" for p, q in zip(va, vb, strict=True)]
            out.line(f"{d}[{i}] += {' + '.join(terms)};")


FMA: dict[str, Mma] = {
    atom.cute_name: atom
    for atom in (*(UniversalFma(t) for t in (F32, F64, F16, BF16, I32)), DotProduct(2), DotProduct(4))
}
