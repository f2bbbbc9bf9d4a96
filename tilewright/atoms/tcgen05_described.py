"""``tcgen05.mma`` and ``cp`` whose descriptors are numbers that the program has made: what inline PTX, and the
primitives of ``cutlass.experimental``, issue.

Operands of a call ``[d, a, b, descriptor, accumulate]``: the address of D (i32); the matrix descriptor of A (i64), or
its address in tensor memory (i32); that of B (i64); the instruction descriptor (i32); whether it adds to D (i1). With
block scales the addresses of SFA and SFB (i32) follow. Each thread that is here issues one. Types, shape and majors are
read from the descriptors when it is issued; what it then does is what :class:`.Tcgen05Mma` does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np

from tilewright.atoms.matrix_descriptor import TCGEN05 as DESCRIPTORS
from tilewright.atoms.matrix_descriptor import MatrixDescriptor
from tilewright.atoms.tcgen05_action import Product
from tilewright.atoms.tcgen05_descriptor import InstructionDescriptor
from tilewright.atoms.tcgen05_mma import AGENT, Tcgen05Mma
from tilewright.atoms.tcgen05_scaled import ScaledProduct, Tcgen05ScaledMma
from tilewright.atoms.tcgen05_text import mma_helper
from tilewright.atoms.tcgen05_validity import instruction_k
from tilewright.atoms.tensor_memory_alloc import TCGEN05
from tilewright.atoms.tensor_memory_cp import SmemToTmem, UnitCopy
from tilewright.atoms.tensor_memory_state import TensorMemories
from tilewright.errors import ConstraintError
from tilewright.ir.computed import computed
from tilewright.ir.core import Op
from tilewright.ir.effects import Access
from tilewright.ir.instruction import Emitter, Instruction, Lanes, need
from tilewright.ir.target import WARP
from tilewright.ir.types import BOOL, E4M3, E8M0, I32, I64, MemSpace
from tilewright.layout import Layout

_ONE = Layout((1, 1, 1), (0, 0, 0))
_SCALES = {"ue8m0": E8M0, "ue4m3": E4M3}


@dataclass(frozen=True)
class DescribedMma(Instruction):
    """``kind`` is PTX's, ``ctas`` the blocks of one MMA, ``source`` (``SS`` or ``TS``) where A is; ``factors``: of a
    kind with block scales, how many of a row one instruction takes."""

    kind: str
    ctas: int = 1
    source: str = "SS"
    factors: int = 0

    name: ClassVar[str] = "tcgen05.mma"
    min_arch: int = 100
    features: ClassVar[tuple[int, ...]] = TCGEN05

    @property
    def fields(self) -> tuple[str, ...]:
        return ("accum_c", "sf_a", "sf_b") if self.factors else ("accum_c",)

    @computed
    def accesses(self) -> tuple[Access, ...]:
        tile = Access("read", "B", (MemSpace.SMEM,), 2, align=16, agent=AGENT, proxy="async")
        tmem = Access("read", "A", (MemSpace.TMEM,), 1, agent=AGENT)
        factors = [replace(tmem, role=role, operand=i) for role, i in (("SFA", 5), ("SFB", 6))] if self.factors else []
        left = replace(tile, role="A", operand=1) if self.source == "SS" else tmem
        return (Access("update", "D", (MemSpace.TMEM,), 0, agent=AGENT), left, tile, *factors)

    def reads_shared(self, operand: str) -> bool:
        return operand == "B" or self.source == "SS"

    def mnemonic(self) -> str:
        scales = f".block_scale.scale_vec::{self.factors}X" if self.factors else ""
        return f"{self.name}.cta_group::{self.ctas}.kind::{self.kind}{scales}"

    def verify(self, op: Op) -> None:
        wanted = [I32, I64 if self.source == "SS" else I32, I64, I32, BOOL, *([I32, I32] if self.factors else [])]
        found = [v.type for v in op.operands]
        need(op, found == wanted, f"{self.mnemonic()}: takes operands of types {wanted}, not {found}")

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        by_lane = [lanes.spread(value) for value in operands]
        for row, lane, sides in _issuers(lanes, self.mnemonic(), self.ctas):
            words = tuple(int(value[lane]) for value in by_lane)
            product = self._product(lanes, row, sides, words)
            product.begin()
            lanes.eventually(product, lane=lane)
        return ()

    def _product(self, lanes: Lanes, row: int, sides: Any, words: tuple[int, ...]) -> Product:
        """What the unit does for one thread."""
        d, a, b, word, keep, *places = words
        try:
            atom = described(self, word & 0xFFFFFFFF)
            high = {"b_high": _high(b), "a_high": _high(a) if self.source == "SS" else 0}
        except ConstraintError as wrong:
            raise _fault(lanes, row, f"{self.mnemonic()}: {wrong}") from None
        op: Any = SimpleNamespace(attrs=_layouts(atom) | high)
        low = a if self.source == "TS" else a & 0xFFFFFFFF
        rest = (lanes, op, row, sides, (d & 0xFFFFFFFF, low, b & 0xFFFFFFFF, bool(keep)))
        if not isinstance(atom, Tcgen05ScaledMma):
            return Product(atom, *rest)
        made = InstructionDescriptor.of_word(self.kind, word & 0xFFFFFFFF)
        factors = [(p & 0x3FFFFFFF) | i << 30 for p, i in zip(places, (made.sfa_id, made.sfb_id), strict=True)]
        return ScaledProduct((factors[0], factors[1]), atom, *rest)

    def emit(self, out: Emitter, op: Op) -> None:
        d, a, b, word, keep, *places = (out.value(v) for v in op.operands)
        middle = "".join(f"{place}, " for place in places)
        out.line(f"{mma_helper(self, out)}({d}, {a}, {b}, {word}, {middle}{keep});")


@lru_cache(maxsize=256)
def described(form: DescribedMma, word: int) -> Tcgen05Mma:
    """The instruction that an instruction descriptor says. ConstraintError for one that the form does not have.

    >>> described(DescribedMma("f16"), 0x08200490)
    SM100_128x128x16_F32BF16BF16_SS<K,K>
    """
    made = InstructionDescriptor.of_word(form.kind, word)
    if made.sparse or any(made.negate) or made.max_shift:
        raise ConstraintError(
            f"the instruction descriptor 0x{word:08x} asks for a sparse A, a negated operand or a shift, which are "
            "not here yet"
        )
    k = 96 if made.k_96 else instruction_k(form.kind)
    types = (made.type_d, made.type_a, made.type_b)
    rest = (form.source, made.majors)
    shape = (made.m, made.n, k)
    if not form.factors:
        return Tcgen05Mma(form.kind, shape, *types, *rest, made.saturate, form.ctas)
    scale = _SCALES[made.scale or "ue8m0"]
    return Tcgen05ScaledMma(form.kind, shape, *types, *rest, ctas=form.ctas, scale=scale, vec=k // form.factors)


@lru_cache(maxsize=256)
def _layouts(atom: Tcgen05Mma) -> dict[str, Any]:
    """Where the tile of one instruction has its operands."""
    m, n, k = atom.shape_mnk
    in_memory = atom.source == "TS"
    return {
        "d_layout": atom.tensor_memory("C", ((m // atom.ctas, n), 1, 1)),
        "a_layout": atom.tensor_memory("A", ((m // atom.ctas, k), 1, 1)) if in_memory else _ONE,
        "b_layout": _ONE,
    }


@lru_cache(maxsize=1024)
def _checked(high: int) -> int:
    MatrixDescriptor.of_word(high << 32, DESCRIPTORS)
    return high


def _high(word: int) -> int:
    """The upper word of a matrix descriptor. ConstraintError for a word that is not one."""
    return _checked(word >> 32 & 0xFFFFFFFF)


@dataclass(frozen=True)
class DescribedCopy(Instruction):
    """``tcgen05.cp`` of a shape with its multicast (``"32x128b.warpx4"``). Operands ``[address, descriptor]``: the
    place in tensor memory (i32), and the matrix descriptor of the data (i64). Each thread that is here issues one."""

    shape: str
    ctas: int = 1

    name: ClassVar[str] = "tcgen05.cp"
    min_arch: int = 100
    features: ClassVar[tuple[int, ...]] = TCGEN05
    accesses = SmemToTmem.accesses

    def __post_init__(self) -> None:
        SmemToTmem(self.shape, self.ctas)

    def mnemonic(self) -> str:
        return f"{self.name}.cta_group::{self.ctas}.{self.shape}"

    def verify(self, op: Op) -> None:
        found = [v.type for v in op.operands]
        need(op, found == [I32, I64], f"{self.mnemonic()}: takes operands of types {[I32, I64]}, not {found}")

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        what, copy = self.mnemonic(), SmemToTmem(self.shape, self.ctas)
        for row, lane, sides in _issuers(lanes, what, self.ctas):
            to, word = (int(lanes.spread(value)[lane]) for value in operands)
            try:
                words = (word & 0xFFFFFFFF, _high(word))
            except ConstraintError as wrong:
                raise _fault(lanes, row, f"{what}: {wrong}") from None
            work = UnitCopy(copy, lanes, row, sides, words, to & 0xFFFFFFFF)
            work.begin()
            lanes.eventually(work, lane=lane)
        return ()

    def emit(self, out: Emitter, op: Op) -> None:
        to, word = map(out.value, op.operands)
        text = f"{self.mnemonic()} [%0], %1;"
        out.line(f'asm volatile("{text}" :: "r"({to}), "l"({word}) : "memory");')


def _issuers(lanes: Lanes, what: str, ctas: int) -> list[tuple[int, int, Any]]:
    """Of each active warp its row, the lane that issues, and the blocks that take part. A fault where several lanes of
    a warp are here."""
    memories = lanes.beside(TensorMemories)
    memories.agree(lanes, what, ctas)
    active = lanes.active().reshape(-1, WARP)
    many = active.sum(1) > 1
    if many.any():
        raise lanes.fault(
            f"{what} by {int(active[many][0].sum())} threads of a warp: each of them would issue one",
            np.repeat(many, WARP),
            "let one thread issue it: under elect.sync, or inside `with cute.arch.elect_one():`",
        )
    found = memories.sides(lanes, what, ctas, leads=True)
    return [(row, WARP * row + int(active[row].argmax()), sides) for row, sides in found]


def _fault(lanes: Lanes, row: int, text: str) -> Exception:
    return lanes.fault(text, np.arange(WARP * lanes.warps) // WARP == row)
