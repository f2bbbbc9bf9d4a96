"""``mma.sp``: ``mma.sync`` whose A is 2:4 sparse, so that K is twice as long in the same time (PTX ISA, "mma.sp";
CUTLASS: include/cutlass/arch/mma_sparse_sm80.h).

Registers of A are those of the dense instruction of half of K. A word of metadata of each of the 32 lanes makes those
of 16 rows and 64 elements of K (32 of tf32): 4 bits for each four neighbours along K, as wgmma's of each warp. It
serves several instructions along K, which read it from some of the lanes of four; the selector, a constant of the
instruction, says from which. An element of tf32 counts as two halves, which are stored together: of two neighbours one
is stored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tilewright.atoms.mma import active_warps, make_plan
from tilewright.atoms.mma_sync import MmaSync, operand_layout
from tilewright.atoms.sparse_mma import SparseMma
from tilewright.atoms.sparsity import chunk_of, misplaced, stored_places, written_out
from tilewright.ir.computed import computed, computed_once
from tilewright.ir.core import Op
from tilewright.ir.effects import Access
from tilewright.ir.instruction import Emitter, Lanes
from tilewright.ir.types import MemSpace
from tilewright.layout import Layout

if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]

ROWS = 16
"""Rows of the metadata of a warp."""


def warp_metadata_layout(width: int) -> Layout:
    """(lane, bit) -> (row, k) of the metadata of 16 rows and 64 elements of ``width`` bits; of 32 bits: of 64 halves.

    >>> warp_metadata_layout(16), warp_metadata_layout(8)
    (((2,2,8),(16,2)):((256,512,1),(16,8)), ((2,2,8),32):((8,512,1),16))
    """
    if width == 8:
        return Layout(((2, 2, 8), 32), ((ROWS // 2, 32 * ROWS, 1), ROWS))
    return Layout(((2, 2, 8), (16, 2)), ((16 * ROWS, 32 * ROWS, 1), (ROWS, ROWS // 2)))


@dataclass(frozen=True, repr=False)
class SparseMmaSync(SparseMma, MmaSync):
    """The data of one ``mma.sp``; K of ``shape_mnk`` is that of B. Operands ``[d, a, b, e]``: ``e`` is a fragment of
    Int32 with the metadata, ``e_layout (1, RestM, K / 64)`` (K / 32 of tf32) and ``e_offset`` count registers.

    >>> from tilewright.ir.types import F16, F32
    >>> atom = SparseMmaSync(80, (16, 8, 32), F32, F16, F16)
    >>> atom, atom.layout_a
    (SM80_SPARSE_16x8x32_F32F16F16F32_TN, ((4,8),(2,2,2)):((32,1),(16,8,128)))
    >>> atom.mnemonic(), atom.instructions_a_word
    ('mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32', 2)
    """

    name = "mma.sp"
    word_rows: ClassVar[int] = ROWS

    @computed
    def layout_a(self) -> Layout:
        return operand_layout(self.shape_mnk[0], self.stored_k, self.type_a.width)

    @computed_once
    def accesses(self) -> tuple[Access, ...]:
        return (*MmaSync.accesses, Access("read", "E", (MemSpace.RMEM,), 3))

    @property
    def cute_name(self) -> str:
        return super().cute_name.replace("_", "_SPARSE_", 1)

    def mnemonic(self) -> str:
        return super().mnemonic().replace("mma.", "mma.sp::ordered_metadata.", 1)

    # -- action --------------------------------------------------------------------------------------------------

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        d, a, b, e = operands
        attrs = op.attrs
        call = (attrs["a_layout"], attrs["a_offset"], attrs["b_layout"], attrs["b_offset"])
        plan = make_plan(self, attrs["d_layout"], attrs["d_offset"], (call,), d.shape[1], a.shape[1], b.shape[1])
        chosen = active_warps(lanes, self)
        warps = slice(None) if chosen is None else chosen
        sums, left, right = (x.reshape(len(d) // 32, -1)[warps] for x in (d, a, b))
        stored = self._gather("a", left, plan.a, self.type_a)
        words = e.reshape(len(d) // 32, 32, -1)[warps]
        dense = self.dense(lanes, op, stored[:, 0], words)[:, None]
        self.multiply_and_add(sums, dense, self._gather("b", right, plan.b, self.type_b), plan)
        if chosen is not None:
            d.reshape(len(d) // 32, -1)[chosen] = sums
        return ()

    def dense(self, lanes: Lanes, op: Op, stored: Array, words: Array) -> Array:
        """``[warps, rows, K]`` of A, whose stored elements are ``[warps, rows, K / 2]``; ``words``: ``[warps, 32,
        registers]`` of the metadata."""
        held = words[:, :, np.array(self.metadata_registers(op))].transpose(0, 2, 3, 1)  # [warps, RestM, words, lanes]
        places = stored_places(held, warp_metadata_layout(self.type_a.width))
        places = places.reshape(len(stored), stored.shape[1], -1, 2)  # [warps, rows, groups of four, 2]
        self.check_places(lanes, places, *misplaced(stored, places, self.type_a.width))
        return written_out(stored, places, self.type_a.width)

    def check_places(self, lanes: Lanes, places: Array, wrong: Array, rule: str) -> None:
        """An error for metadata that name places which the instruction does not take."""
        if wrong.any():
            warp, row, group = np.argwhere(wrong)[0].tolist()
            first, second = places[warp, row, group].tolist()
            width = chunk_of(self.type_a.width)
            raise lanes.fault(
                f"{self.mnemonic()}: the metadata of row {row}, elements {width * group} to "
                f"{width * group + width - 1} of A name the places {first} and {second}, {rule}",
                None,
                "set four bits for each four neighbours along K: the lower place, then the higher one",
            )

    # -- text ----------------------------------------------------------------------------------------------------

    def emit(self, out: Emitter, op: Op) -> None:
        from tilewright.atoms.mma_sync_text import emit_sparse

        emit_sparse(self, out, op)
