"""``tcgen05.mma`` with block scales: each ``vec`` elements of a row of A and of B share a factor (PTX ISA,
"tcgen05.mma.block_scale"; CuTe: include/cute/atom/mma_traits_sm100.hpp).

The factors are in tensor memory, where ``tcgen05.cp`` brings them: see :mod:`tilewright.atoms.scale_factors`. Operands
of a call ``[d, a, b, accumulate, sfa, sfb]``; the last two (i32) are the addresses of the factors, with the byte of the
column at which those of this instruction begin in bits 30-31. A call is one instruction.

Products are exact, and summed in float64 before they become float32; the hardware's sums have fewer bits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from tilewright.atoms.scale_factors import BLOCK_COLUMNS, FACTORS, ROWS, SCALES, VECTORS, values_of
from tilewright.atoms.tcgen05_action import Further, Product
from tilewright.atoms.tcgen05_descriptor import InstructionDescriptor
from tilewright.atoms.tcgen05_mma import AGENT, Tcgen05Mma
from tilewright.atoms.tensor_memory import COLUMNS, LANES
from tilewright.atoms.tensor_memory_state import TensorMemory, uniform
from tilewright.errors import ConstraintError
from tilewright.ir.computed import computed_once
from tilewright.ir.core import Op
from tilewright.ir.effects import Access
from tilewright.ir.instruction import Lanes, need
from tilewright.ir.lanes import Array
from tilewright.ir.target import WARP
from tilewright.ir.types import E8M0, I32, MemSpace, ScalarType
from tilewright.layout.tuples import product


@dataclass(frozen=True, repr=False)
class Tcgen05ScaledMma(Tcgen05Mma):
    """``scale``: the type of the factors, ``vec``: how many elements share one, zeros of a sparse A counted.

    >>> from tilewright.ir.types import E2M1, E4M3, F32
    >>> Tcgen05ScaledMma("mxf4nvf4", (128, 128, 64), F32, E2M1, E2M1, scale=E4M3, vec=16)
    SM100_128x128x64_F32E2M1E2M1_SS<K,K>_E4M3x16
    """

    scale: ScalarType = E8M0
    vec: int = 32

    fields: ClassVar[tuple[str, ...]] = ("accum_c", "sf_a", "sf_b")

    def __post_init__(self) -> None:
        vectors = VECTORS.get(self.kind, {}).get(SCALES.get(self.scale, ""), ())
        if self.vec not in [self.sparsity * vec for vec in vectors]:
            forms = ", ".join(f"{s} of {self.sparsity * v}" for s, vs in VECTORS.get(self.kind, {}).items() for v in vs)
            raise ConstraintError(
                f"tcgen05.mma.kind::{self.kind}: no factors of type {self.scale} for {self.vec} elements each; there "
                f"are {forms or 'none: the kind has no block scales'}"
            )
        super().__post_init__()

    @property
    def descriptor(self) -> InstructionDescriptor:
        """The instruction descriptor, without the bytes in which factors begin: those are known at run time."""
        m, n, _ = self.shape_mnk
        types = (self.type_a, self.type_b, self.type_d)
        form, scale = self.form, SCALES.get(self.scale)
        rest: dict[str, Any] = {"sparse": form.sparse, "scale": scale, "k_96": form.k_96}
        made = InstructionDescriptor(self.kind, *types, m, n, self.majors, **rest)
        assert made.fields
        return made

    @computed_once
    def accesses(self) -> tuple[Access, ...]:
        factors = Access("read", "SFA", (MemSpace.TMEM,), 4, agent=AGENT)
        return (*self.products, factors, replace(factors, role="SFB", operand=5))

    @property
    def cute_name(self) -> str:
        return f"{super().cute_name}_{self.scale.cute}x{self.vec}"

    @property
    def further(self) -> tuple[str, ...]:
        return ("SFA", "SFB")

    @property
    def factors(self) -> int:
        """The factors of a row that one instruction takes."""
        return self.shape_mnk[2] // self.vec

    def mnemonic(self) -> str:
        size = f"block{self.vec}" if self.form.k_96 else f"scale_vec::{self.factors}X"
        return f"{super().mnemonic()}.block_scale.{size}"

    def verify(self, op: Op) -> None:
        places = op.operands[4:]
        need(op, [v.type for v in places] == [I32, I32], f"{self}: takes the places of SFA and SFB (i32) last")
        rests = [tuple(product(op.attrs[f"{x}_layout"][i].shape) for i in (1, 2)) for x in "dab"]
        need(
            op,
            rests == [(1, 1)] * 3,
            f"{self}: one call is one instruction, for its factors are set by hand, but the rest modes of D, A and B "
            f"are {', '.join(map(str, rests))}: slice the K block, and set Field.SFA and Field.SFB for it",
        )
        super().verify(op)

    def product_of(self, lanes: Lanes, operands: list[Any]) -> Any:
        sfa, sfb = (
            uniform(lanes, f"{self.mnemonic()}: the address of {name}", value).astype(np.int64) & 0xFFFFFFFF
            for name, value in zip(("SFA", "SFB"), operands[4:], strict=True)
        )

        def made(row: int, op: Op, at: int, sides: Any, words: Any) -> ScaledProduct:
            return ScaledProduct(self, lanes, op, at, sides, words, Further(factors=(int(sfa[row]), int(sfb[row]))))

        return made


class ScaledProduct(Product):
    """One call of one warp."""

    atom: Tcgen05ScaledMma

    @property
    def places(self) -> tuple[int, int]:
        """The addresses of SFA and SFB."""
        return self.further.factors

    def reads(self) -> list[tuple[Any, Any]]:
        m, n, _ = self.atom.shape_mnk
        return [*super().reads(), *(self._cells(p, rows) for p, rows in zip(self.places, (self.rows, n), strict=True))]

    def _factor_columns(self, place: int, rows: int) -> range:
        """The columns that hold the factors of ``rows`` rows: four factors of 32 rows each, then the same rows' next
        four behind those of all rows, which are padded to 128."""
        first, last = place & 0xFFFF, ((place >> 30) + self.atom.factors - 1) // FACTORS
        return range(first, first + last * self._step(rows) + -(-rows // WARP))

    @staticmethod
    def _step(rows: int) -> int:
        """Columns from four factors to the next four of a row."""
        return -(-rows // ROWS) * BLOCK_COLUMNS

    def _cells(self, place: int, rows: int) -> tuple[Any, Any]:
        """All lanes of these columns."""
        columns = self._factor_columns(place, rows)
        return slice(0, LANES), slice(columns.start, min(COLUMNS, columns.stop))

    def _check(self) -> None:
        super()._check()
        for name, place, rows in zip(("SFA", "SFB"), self.places, (self.rows, self.atom.shape_mnk[1]), strict=True):
            columns, byte, lane = self._factor_columns(place, rows), place >> 30, place >> 16 & 0x3FFF
            for _, memory in self.sides:
                wrong = memory.wrong(np.array([columns.start, columns.stop - 1]))
                if wrong is not None:
                    raise self.fault(f"({name}) {wrong[0]}", wrong[1])
            step = math.gcd(self.atom.factors, FACTORS)  # of K = 96: 3 or 6, which go on in the next columns
            if lane or byte % step:
                raise self.fault(
                    f"takes {name} from {place:#x}: lane {lane}, byte {byte} of the columns, where the "
                    f"{self.atom.factors} factors of a row begin in lane 0 and at a multiple of {step}",
                    "take the address of make_tmem_layout_sfa (sfb) for this K block: tensor[None, None, k].iterator",
                )

    def left(self, first: int, memory: TensorMemory) -> Array:
        elements = super().left(first, memory).astype(np.float64)
        return elements * self._factors(memory, "SFA", self.places[0], self.rows)

    def right_of(self, right: Array, memory: TensorMemory) -> Array:
        """Both blocks of a pair have the factors of all columns."""
        return right * self._factors(memory, "SFB", self.places[1], self.atom.shape_mnk[1])

    def _factors(self, memory: TensorMemory, name: str, place: int, rows: int) -> Array:
        """``[1, rows, k]``: the factor of each element. All four quarters of the lanes have them."""
        row, factor = np.arange(rows)[:, None], (place >> 30) + np.arange(self.atom.factors)
        lane, column = row % WARP, (place & 0xFFFF) + row // WARP + factor // FACTORS * self._step(rows)
        shift = (8 * (factor % FACTORS)).astype(np.uint32)
        quarters = [(lane + WARP * q, column) for q in range(LANES // WARP)]
        words = [memory.words[at] >> shift & 0xFF for at in quarters]
        if not all(memory.written[at].all() for at in quarters) or any((w != words[0]).any() for w in words):
            raise self.fault(
                f"reads factors ({name}) that are not in all four quarters of the lanes: nothing, or something else, "
                "has been written there",
                "copy them from shared memory by tcgen05.Cp4x32x128bOp before the MMA, in the same warp",
            )
        return np.repeat(values_of(self.atom.scale)[words[0]], self.atom.vec, axis=1)[None]
