"""``wgmma.mma_async.sp``: wgmma whose A is 2:4 sparse, so that K is twice as long in the same time.

A in shared memory or in registers has the stored elements alone, 64 x K / 2; its metadata comes in a register of each
thread (``sparsity``). Of 16-bit elements one register serves two instructions along K, one after the other: the
selector, a constant of the instruction, is the number of the instruction modulo 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tilewright.atoms.sparsity import METADATA_K, SPARSITY, instruction_metadata_layout
from tilewright.atoms.wgmma import AGENT, WgmmaAtom
from tilewright.errors import ConstraintError
from tilewright.ir.computed import computed
from tilewright.ir.core import Op
from tilewright.ir.effects import Access
from tilewright.ir.types import I32, FragType, MemSpace
from tilewright.layout import Layout
from tilewright.layout.evaluate import static_offsets
from tilewright.layout.tuples import product


@dataclass(frozen=True, repr=False)
class SparseWgmmaAtom(WgmmaAtom):
    """The data of one sparse wgmma instruction; K of ``shape_mnk`` is that of B. Operands ``[d, a, b, accumulate, e]``:
    ``e`` is a fragment of Int32 with the metadata, ``e_layout (1, RestM, K / 64)`` and ``e_offset`` count registers.

    >>> from tilewright.ir.types import F16, F32
    >>> atom = SparseWgmmaAtom((64, 128, 32), F32, F16, F16)
    >>> atom, atom.layout_a
    (SM90_SPARSE_64x128x32_F32F16F16_SS<K,K>, (128,(64,16)):(0,(1,64)))
    >>> atom.layout_e
    ((2,2,8,4),(16,2)):((1024,0,1,16),(64,8))
    """

    name = "wgmma.sp"
    sparsity: ClassVar[int] = SPARSITY

    @computed
    def accesses(self) -> tuple[Access, ...]:
        return (*self.dense_accesses(), Access("read", "E", (MemSpace.RMEM,), 4, agent=AGENT))

    @property
    def layout_e(self) -> Layout:
        """(thread, bit) -> (row, k) of the metadata."""
        return instruction_metadata_layout(self.type_a.width)

    @property
    def instructions_a_word(self) -> int:
        """How many instructions along K one word of a thread serves."""
        return METADATA_K // self.shape_mnk[2]

    @property
    def cute_name(self) -> str:
        return super().cute_name.replace("SM90_", "SM90_SPARSE_", 1)

    def mnemonic(self) -> str:
        return super().mnemonic().replace("mma_async", "mma_async.sp", 1)

    def verify(self, op: Op) -> None:
        super().verify(op)
        e, layout = op.operands[4].type, op.attrs["e_layout"]
        if not isinstance(e, FragType) or e.elem != I32:
            raise ConstraintError(f"{self}: the metadata of A are registers of Int32, not {e}")
        (_, am, ak), given = op.attrs["a_layout"], tuple(product(mode.shape) for mode in layout)
        wanted = 1, product(am.shape), product(ak.shape) // self.instructions_a_word
        if product(ak.shape) % self.instructions_a_word or given != wanted:
            raise ConstraintError(
                f"{self}: the metadata {layout} do not fit A {op.attrs['a_layout']}: a register serves "
                f"{METADATA_K} elements of K of 64 rows, so they are (1,{wanted[1]},{wanted[2]}) for whole registers"
            )
        last = op.attrs["e_offset"] + max(static_offsets(layout))
        if last >= e.n:
            raise ConstraintError(f"{self}: E {layout} reaches register {last} of a fragment of {e.n}")

    def metadata_of(self, op: Op, m: int, k: int) -> tuple[int, int]:
        """The register of the metadata of step (m, k) of a call, and the selector."""
        _, rest_m, rest_k = (static_offsets(mode) for mode in op.attrs["e_layout"])
        word, selector = divmod(k, self.instructions_a_word)
        return int(op.attrs["e_offset"] + rest_m[m] + rest_k[word]), selector

    def registers_of(self, op: Op) -> Any:
        """``[RestM, K / 64]`` the registers of a call's metadata."""
        words = product(op.attrs["e_layout"][2].shape)
        rows = product(op.attrs["e_layout"][1].shape)
        per = self.instructions_a_word
        return [[self.metadata_of(op, m, per * word)[0] for word in range(words)] for m in range(rows)]
