"""``mma.sync`` with block scales (sm_120): each ``vec`` elements of a row of A and of B share a factor (PTX ISA,
"mma.sync with block scaling"; CuTe: include/cute/atom/mma_traits_sm120.hpp).

Registers are those of ``mma.sync.m16n8k32`` on bytes: a byte has two numbers of 4 bits (kinds mxf4 and mxf4nvf4, K 64),
or one of up to 8 (kind mxf8f6f4, K 32; 4 bits in its middle, :func:`~tilewright.atoms.tensor_memory.container_shift`).
Operands of a call ``[d, a, b, sfa, sfb]``: fragments, of which the layouts count bytes, and a word of factors each, the
first one lowest: of row r of A in lane ``4 * (r % 8) + r / 8``, of column n of B in lane ``4 * n``. A call is one
instruction.

Products are exact, and summed in float64 before they become float32; the hardware's sums have fewer bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tilewright.atoms import numbers
from tilewright.atoms.matrix_tiles import unpacked
from tilewright.atoms.mma import Mma, active_warps, gather, make_plan
from tilewright.atoms.mma_sync import MmaSync, accumulator_layout, operand_layout
from tilewright.atoms.scale_factors import SCALES, VECTORS, values_of
from tilewright.atoms.tcgen05_validity import PACKED_KINDS, instruction_k
from tilewright.atoms.tensor_memory import container_shift
from tilewright.atoms.value_types import BY_NAME, shown
from tilewright.errors import ConstraintError
from tilewright.ir.computed import computed
from tilewright.ir.core import Op
from tilewright.ir.instruction import Emitter, Lanes, need
from tilewright.ir.lanes import Array
from tilewright.ir.types import E4M3, E8M0, F32, I32, U8, FragType, ScalarType
from tilewright.layout import Layout, make_layout
from tilewright.layout.tuples import product

BYTES = MmaSync(89, (16, 8, 32), F32, E4M3, E4M3)
"""The instruction whose registers are the same."""
ARCHITECTURES = (120, 121)
_NAMES = {t: name for name, t in BY_NAME.items()}
_ROW, _COLUMN = np.arange(16), np.arange(8)


@dataclass(frozen=True, repr=False)
class ScaledMmaSync(Mma):
    """``kind`` is PTX's; ``scale``: the type of the factors, ``vec``: how many elements share one.

    >>> from tilewright.ir.types import E2M1
    >>> ScaledMmaSync("mxf4", E2M1, E2M1), ScaledMmaSync("mxf4", E2M1, E2M1).layout_b
    (SM120_16x8x64_F32E2M1E2M1F32_TN_UE8M0x32, ((4,8),(8,2)):((64,1),(8,256)))
    """

    kind: str
    type_a: ScalarType
    type_b: ScalarType
    scale: ScalarType = E8M0
    vec: int = 32

    name = "mma.sync"
    type_d = F32
    thr_id = Layout(32, 1)
    layout_c = accumulator_layout(16)
    min_arch = 120
    features: ClassVar[tuple[int, ...]] = ARCHITECTURES
    register_fields: ClassVar[tuple[str, ...]] = ("sf_a", "sf_b")

    def __post_init__(self) -> None:
        vectors = VECTORS.get(self.kind, {}).get(SCALES.get(self.scale, ""), ())
        if self.vec not in vectors:
            forms = ", ".join(f"{s} of {v}" for s, vs in VECTORS.get(self.kind, {}).items() for v in vs)
            raise ConstraintError(
                f"mma.sync.kind::{self.kind}: no factors of type {self.scale} for {self.vec} elements each; there are "
                f"{forms or 'none: there is no such kind'}"
            )

    @computed
    def shape_mnk(self) -> tuple[int, int, int]:
        return 16, 8, instruction_k(self.kind)

    @property
    def width(self) -> int:
        """Bits of a register that an element takes."""
        return 4 if self.kind in PACKED_KINDS else 8

    @computed
    def layout_a(self) -> Layout:
        return operand_layout(16, self.shape_mnk[2], self.width)

    @computed
    def layout_b(self) -> Layout:
        return operand_layout(8, self.shape_mnk[2], self.width)

    def layout_of_factors(self, operand: str) -> Layout:
        """(lane, element of K) to (row, element of K): factors seen as one for each element. Four lanes
        have those of a column of B, and two those of a row of A."""
        lanes = Layout((2, 2, 8), (8, 0, 1)) if operand == "SFA" else Layout((4, 8), (0, 1))
        return make_layout(lanes, Layout(self.shape_mnk[2], 16 if operand == "SFA" else 8))

    def stored_type(self, operand: str) -> ScalarType:
        """The type in memory: with kind mxf8f6f4, numbers of 4 and 6 bits have a byte each."""
        type_ = super().stored_type(operand)
        return U8 if type_.width < self.width else type_

    @property
    def factors(self) -> int:
        """The factors of a row that one instruction takes, a byte each."""
        return self.shape_mnk[2] // self.vec

    @property
    def cute_name(self) -> str:
        a, b = _NAMES[self.type_a], _NAMES[self.type_b]
        return f"SM120_16x8x{self.shape_mnk[2]}_F32{a}{b}F32_TN_{self.scale.cute}x{self.vec}"

    def mnemonic(self) -> str:
        types = f"f32.{shown(self.type_a)}.{shown(self.type_b)}.f32.{SCALES[self.scale]}"
        scales = f"kind::{self.kind}.block_scale.scale_vec::{self.factors}X"
        return f"mma.sync.aligned.{scales}.m16n8k{self.shape_mnk[2]}.row.col.{types}"

    def verify(self, op: Op) -> None:
        d, a, b, *factors = op.operands
        need(op, [v.type for v in factors] == [I32, I32], f"{self}: takes a word (i32) of SFA and one of SFB last")
        for role, operand, tv, required in (
            ("D", d, BYTES.layout_c, F32),
            ("A", a, BYTES.layout_a, U8),
            ("B", b, BYTES.layout_b, U8),
        ):
            kind, layout = operand.type, op.attrs[f"{role.lower()}_layout"]
            if isinstance(kind, FragType) and kind.elem.width == required.width:
                required = kind.elem
            BYTES._verify_operand(role, kind, layout, op.attrs[f"{role.lower()}_offset"], tv, required)
        rests = [tuple(product(op.attrs[f"{x}_layout"][i].shape) for i in (1, 2)) for x in "dab"]
        need(
            op,
            rests == [(1, 1)] * 3,
            f"{self}: one call is one instruction, for its factors are set by hand, but the rest modes of D, A and B "
            f"are {', '.join(map(str, rests))}: slice them, and set Field.SFA and Field.SFB for each",
        )

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        d, a, b, *words = operands
        attrs = op.attrs
        call = (attrs["a_layout"], attrs["a_offset"], attrs["b_layout"], attrs["b_offset"])
        plan = make_plan(BYTES, attrs["d_layout"], attrs["d_offset"], (call,), d.shape[1], a.shape[1], b.shape[1])
        chosen = active_warps(lanes, self)
        warps = slice(None) if chosen is None else chosen
        sums, left, right = (x.reshape(len(d) // 32, -1)[warps] for x in (d, a.view(np.uint8), b.view(np.uint8)))
        sfa, sfb = (lanes.spread(word).astype(np.uint32).reshape(-1, 32)[warps] for word in words)
        rows = self._numbers(gather("a", left, plan.a), self.type_a)
        columns = self._numbers(gather("b", right, plan.b), self.type_b)
        rows *= self._factors(sfa[:, 4 * (_ROW % 8) + _ROW // 8])
        columns *= self._factors(sfb[:, 4 * _COLUMN])
        BYTES.add(sums, np.matmul(rows, columns.swapaxes(-1, -2)), plan)
        if chosen is not None:
            d.reshape(len(d) // 32, -1)[chosen] = sums
        return ()

    def _numbers(self, bytes_: Array, type_: ScalarType) -> Array:
        """``[warps, 1, rows, K]`` numbers, in float64."""
        if self.width == 4:
            bytes_ = unpacked(bytes_, 4)
        elif type_.width < 8:
            bytes_ = bytes_ >> container_shift(type_.width) & (1 << type_.width) - 1
        return numbers.widen(numbers.raw(bytes_, type_), type_).astype(np.float64)

    def _factors(self, words: Array) -> Array:
        """``[warps, 1, rows, K]``: the factor of each element."""
        shift = (8 * np.arange(self.factors)).astype(np.uint32)
        values = values_of(self.scale)[words[..., None] >> shift & 0xFF]
        return np.repeat(values, self.vec, axis=-1)[:, None]

    def emit(self, out: Emitter, op: Op) -> None:
        from tilewright.atoms.mma_sync_text import emit_scaled

        emit_scaled(self, BYTES, out, op)
