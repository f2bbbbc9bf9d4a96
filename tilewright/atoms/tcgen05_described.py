"""``tcgen05.mma`` and ``cp`` whose descriptors are numbers that the program has made: what inline PTX, and the
primitives of ``cutlass.experimental``, issue.

Operands of a call ``[d, a, b, descriptor, accumulate]``: the address of D (i32); the matrix descriptor of A (i64), or
its address in tensor memory (i32); that of B (i64); the instruction descriptor (i32); whether it adds to D (i1). Then
follow the address of the metadata (i32) of a sparse A, the addresses of SFA and SFB (i32) of block scales, the
zero-column mask descriptor (i64) of ``.ws``, and the lanes of D that it leaves alone, a bit each in 4 i32. Each thread
that is here issues one. Types, shape and majors are read from the descriptors when it is issued; what it then does is
what :class:`.Tcgen05Mma` and its subclasses do.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np

from tilewright.atoms.matrix_descriptor import ABSOLUTE, MatrixDescriptor
from tilewright.atoms.matrix_descriptor import TCGEN05 as DESCRIPTORS
from tilewright.atoms.tcgen05_action import Further, Product
from tilewright.atoms.tcgen05_descriptor import InstructionDescriptor
from tilewright.atoms.tcgen05_mma import AGENT, Tcgen05Mma
from tilewright.atoms.tcgen05_scaled import ScaledProduct, Tcgen05ScaledMma
from tilewright.atoms.tcgen05_sparse import (
    SparseProduct,
    SparseScaledProduct,
    Tcgen05SparseMma,
    Tcgen05SparseScaledMma,
    Tcgen05SparseWsMma,
)
from tilewright.atoms.tcgen05_text import mma_helper
from tilewright.atoms.tcgen05_unit import issuers
from tilewright.atoms.tcgen05_validity import SCALED_KINDS, MmaForm
from tilewright.atoms.tcgen05_ws import BUFFERS, Tcgen05WsMma
from tilewright.atoms.tcgen05_zero_columns import ZeroColumns
from tilewright.atoms.tensor_memory_alloc import TCGEN05
from tilewright.atoms.tensor_memory_cp import SmemToTmem, UnitCopy
from tilewright.errors import ConstraintError
from tilewright.ir.computed import computed_once
from tilewright.ir.core import Constant, Op
from tilewright.ir.effects import Access
from tilewright.ir.instruction import Emitter, Instruction, Lanes, lacking_features, need
from tilewright.ir.target import WARP, Architecture
from tilewright.ir.types import BOOL, E4M3, E8M0, I32, I64, MemSpace
from tilewright.layout import Layout

_ONE = Layout((1, 1, 1), (0, 0, 0))
_SCALES = {"ue8m0": E8M0, "ue4m3": E4M3}
_PRODUCTS: dict[tuple[bool, bool], type[Product]] = {
    (False, False): Product,
    (False, True): ScaledProduct,
    (True, False): SparseProduct,
    (True, True): SparseScaledProduct,
}
"""By whether A is sparse, and whether there are block scales."""
UNSCALED: dict[tuple[bool, bool], type[Tcgen05Mma]] = {
    (False, False): Tcgen05Mma,
    (False, True): Tcgen05WsMma,
    (True, False): Tcgen05SparseMma,
    (True, True): Tcgen05SparseWsMma,
}
"""The classes of instructions without block scales, by whether A is sparse and whether they are ``.ws``."""
COLLECTOR_OPS = ("fill", "use", "lastuse", "discard")


@dataclass(frozen=True)
class DescribedMma(Instruction):
    """``kind`` is PTX's, ``ctas`` the blocks of one MMA, ``source`` (``SS`` or ``TS``) where A is; ``factors``: of a
    kind with block scales, how many of a row one instruction takes, or with ``vec`` how many elements share one
    (``.block16``); ``sparse``: A is; ``stationary``: it is ``.ws``, with ``masks`` by a zero-column mask;
    ``collector``: what happens to a buffer of the tensor core, ``"a::fill"``, ``"b2::use"``; ``lanes``: how many words
    say which lanes of D it leaves alone, 4 for each block; ``scale_d``: D is multiplied by 2 ** -scale_d first."""

    kind: str
    ctas: int = 1
    source: str = "SS"
    factors: int = 0
    sparse: bool = False
    stationary: bool = False
    masks: bool = False
    collector: str = ""
    vec: int = 0
    lanes: int = 0
    scale_d: int = 0

    name: ClassVar[str] = "tcgen05.mma"
    min_arch: int = 100

    def __post_init__(self) -> None:
        if self.stationary and (self.ctas == 2 or self.kind in SCALED_KINDS):
            raise ConstraintError(f"{self.form}: .ws is for one block, and for kinds without block scales")
        if self.masks and not self.stationary:
            raise ConstraintError(f"{self.form}: only .ws takes a zero-column mask")
        if self.lanes and (self.stationary or self.scaled or self.lanes != 4 * self.ctas):
            raise ConstraintError(
                f"{self.form}: {4 * self.ctas} words say which lanes of D it leaves alone, and none with block scales "
                "or .ws"
            )
        if self.scale_d and (self.kind not in ("f16", "tf32") or self.stationary or not 0 <= self.scale_d < 16):
            raise ConstraintError(f"{self.form}: D is scaled by 2 ** -n, n 0 to 15, in kinds f16 and tf32 without .ws")
        buffer, _, does = self.collector.partition("::")
        buffers = BUFFERS if self.stationary else ("a",)
        if self.collector and (buffer not in buffers or does not in COLLECTOR_OPS):
            raise ConstraintError(
                f"{self.form}: there is no collector::{self.collector}; the buffers are {', '.join(buffers)}, and what "
                f"is done with one {', '.join(COLLECTOR_OPS)}"
            )

    @property
    def form(self) -> MmaForm:
        """Which of PTX's forms it is."""
        return MmaForm(self.kind, self.ctas, self.source == "TS", self.sparse, self.stationary)

    def lacking(self, arch: Architecture, op: Op | None = None) -> str:
        """``op``: K is 96 where its instruction descriptor is known while staging and says so."""
        word, form = op.operands[3] if op is not None else None, self.form
        if isinstance(word, Constant):
            with suppress(ConstraintError):  # a run says what is wrong with such a word
                form = described(self, int(word.value) & 0xFFFFFFFF).form
        return lacking_features(form.features, arch)

    @property
    def scaled(self) -> bool:
        """Whether there are block scales."""
        return self.factors > 0 or self.vec > 0

    @property
    def further(self) -> tuple[str, ...]:
        """The operands behind the first five."""
        metadata, factors = ("E",) * self.sparse, ("SFA", "SFB") * self.scaled
        lanes = (f"lanes {i}" for i in range(self.lanes))
        return (*metadata, *factors, *("zero columns",) * self.masks, *lanes)

    @computed_once
    def accesses(self) -> tuple[Access, ...]:
        tile = Access("read", "B", (MemSpace.SMEM,), 2, align=16, agent=AGENT, proxy="async")
        tmem = Access("read", "A", (MemSpace.TMEM,), 1, agent=AGENT)
        left = replace(tile, role="A", operand=1) if self.source == "SS" else tmem
        rest = [replace(tmem, role=x, operand=5 + i) for i, x in enumerate(self.further) if x in ("E", "SFA", "SFB")]
        return (Access("update", "D", (MemSpace.TMEM,), 0, agent=AGENT), left, tile, *rest)

    def reads_shared(self, operand: str) -> bool:
        return operand == "B" or self.source == "SS"

    def mnemonic(self) -> str:
        size = f"scale_vec::{self.factors}X" if self.factors else f"block{self.vec}"
        scales = f".block_scale.{size}" if self.scaled else ""
        return f"{self.form.mnemonic}{scales}{f'.collector::{self.collector}' if self.collector else ''}"

    def verify(self, op: Op) -> None:
        rest = [I64 if x == "zero columns" else I32 for x in self.further]
        required = [I32, I64 if self.source == "SS" else I32, I64, I32, BOOL, *rest]
        types = [v.type for v in op.operands]
        need(op, types == required, f"{self.mnemonic()}: takes operands of types {required}, not {types}")

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        by_lane = [lanes.spread(value) for value in operands]
        for row, lane, sides in issuers(lanes, self.mnemonic(), self.ctas):
            words = tuple(int(value[lane]) for value in by_lane)
            product = self._product(lanes, row, sides, words)
            product.begin()
            lanes.eventually(product, lane=lane)
        return ()

    def _product(self, lanes: Lanes, row: int, sides: Any, words: tuple[int, ...]) -> Product:
        """What the unit does for one thread."""
        d, a, b, word, keep, *rest = words
        try:
            atom = described(self, word & 0xFFFFFFFF)
            further = self._further(atom, word & 0xFFFFFFFF, dict(zip(self.further, rest, strict=True)))
            k_96 = atom.form.k_96
            high = {"b_high": _high(b, k_96), "a_high": _high(a, k_96) if self.source == "SS" else 0}
        except ConstraintError as wrong:
            raise _fault(lanes, row, f"{self.mnemonic()}: {wrong}") from None
        op: Any = SimpleNamespace(attrs=_layouts(atom) | high)
        low = a if self.source == "TS" else a & 0xFFFFFFFF
        product = _PRODUCTS[self.sparse, self.scaled]
        made = product(atom, lanes, op, row, sides, (d & 0xFFFFFFFF, low, b & 0xFFFFFFFF, bool(keep)), further)
        return made

    def _further(self, atom: Tcgen05Mma, word: int, numbers: dict[str, int]) -> Further:
        """What the unit is told beside the first operands. ConstraintError for a mask that there is not."""
        made = InstructionDescriptor.of_word(self.kind, word)
        columns = ZeroColumns.of_word(numbers["zero columns"]) if self.masks else None
        if columns is not None:
            columns.check(made.m, made.max_shift)
        words = np.array([numbers.get(f"lanes {i}", 0) & 0xFFFFFFFF for i in range(self.lanes)], np.uint32)
        if self.ctas == 2 and words.any():
            raise ConstraintError(
                "the lanes that an MMA of a pair leaves alone are not followed here: they must be none"
            )
        factors = [(numbers.get(x, 0) & 0x3FFFFFFF) | i << 30 for x, i in (("SFA", made.sfa_id), ("SFB", made.sfb_id))]
        buffer, _, does = (self.collector or ("b0::discard" if self.stationary else "a::discard")).partition("::")
        return Further(
            factors=(factors[0], factors[1]),
            metadata=numbers.get("E", 0) & 0xFFFFFFFF,
            selector=made.selector,
            columns=columns,
            negate=made.negate,
            collector=(buffer, does),
            alone=np.unpackbits(words.view(np.uint8), bitorder="little").astype(bool) if words.any() else None,
            scale_d=self.scale_d,
        )

    def emit(self, out: Emitter, op: Op) -> None:
        d, a, b, word, keep, *rest = map(out.value, op.operands)
        out.line(f"{mma_helper(self, out)}({', '.join([d, a, b, word, *rest, keep])});")


@lru_cache(maxsize=256)
def described(form: DescribedMma, word: int) -> Tcgen05Mma:
    """The instruction that an instruction descriptor says. ConstraintError for one that the form does not have.

    >>> described(DescribedMma("f16"), 0x08200490)
    SM100_128x128x16_F32BF16BF16_SS<K,K>
    """
    made = InstructionDescriptor.of_word(form.kind, word)
    if made.sparse != form.sparse:
        raise ConstraintError(
            f"the instruction descriptor 0x{word:08x} says that A is {'sparse' if made.sparse else 'dense'}, and the "
            f"instruction is {'' if form.sparse else 'not '}tcgen05.mma.sp"
        )
    if made.max_shift and not form.stationary:
        raise ConstraintError(f"the instruction descriptor 0x{word:08x} has a max_shift, which is for .ws")
    k = MmaForm(form.kind, sparse=form.sparse, k_96=made.k_96).k
    types = (made.type_d, made.type_a, made.type_b)
    common = (form.kind, (made.m, made.n, k), *types, form.source, made.majors, made.saturate, form.ctas)
    if form.scaled:
        scaled: Any = Tcgen05SparseScaledMma if form.sparse else Tcgen05ScaledMma
        vec = k // form.factors if form.factors else form.vec << form.sparse
        atom: Tcgen05Mma = scaled(*common, scale=_SCALES[made.scale or "ue8m0"], vec=vec)
        return atom
    return UNSCALED[form.sparse, form.stationary](*common)


@lru_cache(maxsize=256)
def _layouts(atom: Tcgen05Mma) -> dict[str, Any]:
    """Where the tile of one instruction has its operands."""
    m, n, _ = atom.shape_mnk
    in_memory = atom.source == "TS"
    return {
        "d_layout": atom.tensor_memory("C", ((m // atom.ctas, n), 1, 1)),
        "a_layout": atom.tensor_memory("A", ((m // atom.ctas, atom.stored_k), 1, 1)) if in_memory else _ONE,
        "b_layout": _ONE,
    }


@lru_cache(maxsize=1024)
def _checked(high: int) -> int:
    MatrixDescriptor.of_word(high << 32, DESCRIPTORS)
    return high


def _high(word: int, wraps: bool = False) -> int:
    """The upper word of a matrix descriptor. ConstraintError for a word that is not one. ``wraps``: it may name the
    address where the rows go on."""
    high = word >> 32 & 0xFFFFFFFF
    _checked(high & ~ABSOLUTE if wraps else high)
    return high


@dataclass(frozen=True)
class DescribedCopy(Instruction):
    """``tcgen05.cp`` of a shape with its multicast (``"32x128b.warpx4"``) and format. Operands ``[address,
    descriptor]``: the place in tensor memory (i32), and the matrix descriptor of the data (i64). Each thread that is
    here issues one."""

    shape: str
    ctas: int = 1
    source_format: str = ""

    name: ClassVar[str] = "tcgen05.cp"
    min_arch: int = 100
    features: ClassVar[tuple[int, ...]] = TCGEN05
    accesses = SmemToTmem.accesses

    def __post_init__(self) -> None:
        assert self.copy  # it checks shape and format

    @property
    def copy(self) -> SmemToTmem:
        """The copy as an atom."""
        return SmemToTmem(self.shape, self.ctas, self.source_format)

    def mnemonic(self) -> str:
        return self.copy.mnemonic()

    def verify(self, op: Op) -> None:
        types = [v.type for v in op.operands]
        need(op, types == [I32, I64], f"{self.mnemonic()}: takes operands of types {[I32, I64]}, not {types}")

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        what, copy = self.mnemonic(), self.copy
        for row, lane, sides in issuers(lanes, what, self.ctas):
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


def _fault(lanes: Lanes, row: int, text: str) -> Exception:
    return lanes.fault(text, np.arange(WARP * lanes.warps) // WARP == row)
