"""``wgmma.mma_async.sp``: wgmma whose A is 2:4 sparse, so that K is twice as long in the same time.

A in shared memory or in registers has the stored elements alone, 64 x K / 2; its metadata comes in a register of each
thread (``sparsity``). Of 16- and 32-bit elements one register serves two instructions along K, one after the other: the
selector, a constant of the instruction, is the number of the instruction modulo 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tilewright.atoms.sparse_mma import SparseMma
from tilewright.atoms.sparsity import METADATA_ROWS, instruction_metadata_layout
from tilewright.atoms.wgmma import WgmmaAtom
from tilewright.atoms.wgmma_flow import AGENT
from tilewright.ir.computed import computed_once
from tilewright.ir.effects import Access
from tilewright.ir.types import MemSpace
from tilewright.layout import Layout


@dataclass(frozen=True, repr=False)
class SparseWgmmaAtom(SparseMma, WgmmaAtom):
    """The data of one sparse wgmma instruction; K of ``shape_mnk`` is that of B. Operands ``[d, a, b, accumulate, e]``:
    ``e`` is a fragment of Int32 with the metadata, ``e_layout (1, RestM, K / 64)`` (K / 32 of tf32) and ``e_offset``
    count registers.

    >>> from tilewright.ir.types import F16, F32
    >>> atom = SparseWgmmaAtom((64, 128, 32), F32, F16, F16)
    >>> atom, atom.layout_a
    (SM90_SPARSE_64x128x32_F32F16F16_SS<K,K>, (128,(64,16)):(0,(1,64)))
    >>> atom.layout_e
    ((2,2,8,4),(16,2)):((1024,0,1,16),(64,8))
    """

    name = "wgmma.sp"
    word_rows: ClassVar[int] = METADATA_ROWS

    @computed_once
    def accesses(self) -> tuple[Access, ...]:
        return (*self.dense_accesses(), Access("read", "E", (MemSpace.RMEM,), 4, agent=AGENT))

    @property
    def layout_e(self) -> Layout:
        """(thread, bit) -> (row, k) of the metadata; of tf32 k counts halves."""
        return instruction_metadata_layout(self.type_a.width)

    @property
    def cute_name(self) -> str:
        return super().cute_name.replace("SM90_", "SM90_SPARSE_", 1)

    def mnemonic(self) -> str:
        return super().mnemonic().replace("mma_async", "mma_async.sp", 1)
