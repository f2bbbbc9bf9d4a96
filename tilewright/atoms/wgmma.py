"""``wgmma``: matrix instructions of four warps, as data: shapes, types and thread-value layouts.

B always, and A in the SS form, is in shared memory and is read by the whole warpgroup: its layout gives every thread
the whole tile (thread stride 0). A in the RS form and C are registers; their pattern is that of mma.sync with a fourth
thread mode, the warp, that steps 16 rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

from tilewright.atoms.matrix_descriptor import WGMMA as DESCRIPTORS
from tilewright.atoms.matrix_descriptor import DescriptorFormat
from tilewright.atoms.mma import DescriptorMma
from tilewright.atoms.value_types import BY_NAME, shown
from tilewright.atoms.wgmma_flow import AGENT, missing_fences
from tilewright.errors import ConstraintError
from tilewright.ir.computed import computed, computed_once
from tilewright.ir.core import Function, Op
from tilewright.ir.effects import Access
from tilewright.ir.instruction import Emitter, Lanes
from tilewright.ir.types import BF16, E4M3, E5M2, F16, F32, I8, I32, TF32, U8, MemSpace, ScalarType
from tilewright.layout import Layout

_NAMES = {t: name for name, t in BY_NAME.items()}


def shared_operand_layout(rows: int, k: int) -> Layout:
    """(thread, value) -> (row, k) of an operand in shared memory: every thread holds all of it.

    >>> shared_operand_layout(256, 16)
    (128,(256,16)):(0,(1,256))
    """
    return Layout((128, (rows, k)), (0, (1, rows)))


def register_a_layout(k: int, width: int) -> Layout:
    """(thread, value) -> (m, k) of A in registers, 64 rows.

    >>> register_a_layout(16, 16)
    ((4,8,4),(2,2,2)):((128,1,16),(64,8,512))
    """
    per = 32 // width
    modes = [(per, 64), (2, 8), (k // (4 * per), 4 * per * 64)]
    kept = [mode for mode in modes if mode[0] > 1]
    return Layout(((4, 8, 4), tuple(e for e, _ in kept)), ((64 * per, 1, 16), tuple(d for _, d in kept)))


def accumulator_layout(n: int) -> Layout:
    """(thread, value) -> (m, n) of the accumulator.

    >>> accumulator_layout(64)
    ((4,8,4),(2,2,8)):((128,1,16),(64,8,512))
    """
    return Layout(((4, 8, 4), (2, 2, n // 8)), ((128, 1, 16), (64, 8, 512)))


@dataclass(frozen=True, repr=False)
class WgmmaAtom(DescriptorMma):
    """The data of one wgmma instruction; ``source`` (``SS``, ``RS``) is where A is, ``majors`` are A's and B's.

    >>> WgmmaAtom((64, 128, 16), F32, F16, F16)
    SM90_64x128x16_F32F16F16_SS<K,K>
    """

    shape_mnk: tuple[int, int, int]
    type_d: ScalarType
    type_a: ScalarType
    type_b: ScalarType
    source: str = "SS"
    majors: tuple[str, str] = ("K", "K")
    saturate: bool = False

    name = "wgmma"
    min_arch = 90
    features = (90,)
    in_flight = True
    fields = ("accum_c",)
    descriptor_format: ClassVar[DescriptorFormat | None] = DESCRIPTORS

    @computed_once
    def accesses(self) -> tuple[Access, ...]:
        return self.dense_accesses()

    def dense_accesses(self) -> tuple[Access, ...]:
        """The accesses to D, A and B."""
        tile = Access("read", "B", (MemSpace.SMEM,), 2, align=16, agent=AGENT, proxy="async")
        return (
            Access("update", "D", (MemSpace.RMEM,), 0, agent=AGENT),
            replace(tile, role="A", operand=1)
            if self.source == "SS"
            else Access("read", "A", (MemSpace.RMEM,), 1, agent=AGENT),
            tile,
        )

    @computed
    def thr_id(self) -> Layout:
        return Layout(128, 1)

    @cached_property
    def layout_a(self) -> Layout:  # type: ignore[override]  # as `computed`, and kept
        m, k = self.shape_mnk[0], self.stored_k
        return shared_operand_layout(m, k) if self.source == "SS" else register_a_layout(k, self.type_a.width)

    @cached_property
    def layout_b(self) -> Layout:  # type: ignore[override]  # as `computed`, and kept
        return shared_operand_layout(self.shape_mnk[1], self.shape_mnk[2])

    @cached_property
    def layout_c(self) -> Layout:  # type: ignore[override]  # as `computed`, and kept
        return accumulator_layout(self.shape_mnk[1])

    @property
    def cute_name(self) -> str:
        types = "".join(_NAMES[t] for t in (self.type_d, self.type_a, self.type_b))
        form = f"<{','.join(self.majors)}>" if self.type_a in (F16, BF16) else "_TN"
        shape = "x".join(map(str, self.shape_mnk))
        return f"SM90_{shape}_{types}_{self.source}{form}{'_SATURATE' if self.saturate else ''}"

    def reads_shared(self, operand: str) -> bool:
        return operand == "B" or operand == "A" and self.source == "SS"

    # -- checks, action, text --------------------------------------------------------------------------------------

    def verify(self, op: Op) -> None:
        from tilewright.atoms import wgmma_operands

        wgmma_operands.verify(self, op)

    @classmethod
    def doubts(cls, function: Function) -> list[str]:

        return [
            f"{op.attrs['atom'].mnemonic()} at {op.loc} uses registers that are accessed before, at {access.loc}, with "
            "no wgmma.fence between the two; ptxas may insert one. Call cute.nvgpu.warpgroup.fence() before the gemm"
            for op, access in missing_fences(function).items()
        ]

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        from tilewright.atoms.wgmma_action import issue

        issue(self, lanes, op, operands)
        return ()

    def emit(self, out: Emitter, op: Op) -> None:
        from tilewright.atoms.wgmma_text import emit_wgmma

        emit_wgmma(self, out, op)

    def mnemonic(self) -> str:
        m, n, k = self.shape_mnk
        types = ".".join(str(t).replace("i", "s") for t in (self.type_d, self.type_a, self.type_b))
        return f"wgmma.mma_async.sync.aligned.m{m}n{n}k{k}{'.satfinite' if self.saturate else ''}.{types}"


_PAIRS: dict[ScalarType, tuple[ScalarType, ...]] = {
    F16: (F16,),
    BF16: (BF16,),
    TF32: (TF32,),
    E4M3: (E4M3, E5M2),
    E5M2: (E4M3, E5M2),
    I8: (I8, U8),
    U8: (I8, U8),
}
_ACCUMULATORS: dict[ScalarType, tuple[ScalarType, ...]] = {
    F16: (F16, F32),
    BF16: (F32,),
    TF32: (F32,),
    E4M3: (F16, F32),
    E5M2: (F16, F32),
    I8: (I32,),
    U8: (I32,),
}


def instruction_k(type_a: ScalarType) -> int:
    """K of the instruction: 32 bytes of A, twice as much where A is sparse."""
    return 256 // type_a.width


def is_known(atom: WgmmaAtom) -> bool:
    """Whether the hardware has this combination of shape, types, source and majors."""
    m, n, k = atom.shape_mnk
    return (
        m == 64
        and n % 8 == 0
        and 8 <= n <= 256
        and k == instruction_k(atom.type_a) * atom.sparsity
        and atom.type_b in _PAIRS.get(atom.type_a, ())
        and atom.type_d in _ACCUMULATORS[atom.type_a]
        and (atom.type_a.width == 16 or atom.majors == ("K", "K"))
        and (atom.source == "SS" or atom.majors[0] == "K")
        and (not atom.saturate or atom.type_d == I32)
    )


def check_known(atom: WgmmaAtom) -> WgmmaAtom:
    """``atom`` if the hardware has it; else a ConstraintError with the rule that it breaks."""
    if is_known(atom):
        return atom
    m, n, k = atom.shape_mnk
    what = f"{shown(atom.type_a)} x {shown(atom.type_b)}"
    pairs, sums = _PAIRS.get(atom.type_a, ()), _ACCUMULATORS.get(atom.type_a, ())
    if atom.type_b not in pairs:
        why = f"no instruction for {what}"
    elif atom.type_d not in sums:
        why = f"{what} accumulates in {' or '.join(map(shown, sums))}, not in {shown(atom.type_d)}"
    elif m != 64 or k != instruction_k(atom.type_a) * atom.sparsity:
        why = f"its shape is 64xNx{instruction_k(atom.type_a) * atom.sparsity} for {what}"
    elif not (8 <= n <= 256 and n % 8 == 0):
        why = "N is 8 to 256 in steps of 8"
    elif atom.type_a.width != 16 and atom.majors != ("K", "K"):
        why = f"{what} takes K-major operands only; transpose on the way into shared memory"
    elif atom.source == "RS" and atom.majors[0] != "K":
        why = "A in registers is K-major"
    else:
        why = "only integer accumulators saturate"
    shape = "x".join(map(str, atom.shape_mnk))
    raise ConstraintError(
        f"no {atom.name} of shape {shape}, {what} into {shown(atom.type_d)}, A {atom.majors[0]}-major in "
        f"{'shared memory' if atom.source == 'SS' else 'registers'}, B {atom.majors[1]}-major: {why}"
    )
