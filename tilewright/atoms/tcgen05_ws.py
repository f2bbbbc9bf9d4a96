"""``tcgen05.mma.ws``: B is what stays in the tensor core ("weight stationary"), and M can be 32 (PTX ISA,
"tcgen05.mma.ws", "Zero-Column Mask Descriptor"; CuTe: ``tmem_frg_ws`` in include/cute/atom/mma_traits_sm100.hpp).

Below 128 rows D takes all lanes: those after the first M have the next part of N. It is for one block, and for kinds
without block scales. A descriptor may say that columns of B are taken as zeros, and at which column B begins.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tilewright.atoms.tcgen05_mma import Tcgen05Mma
from tilewright.atoms.tensor_memory import LANES, weight_stationary_layout
from tilewright.errors import ConstraintError
from tilewright.layout import Layout

BUFFERS = ("b0", "b1", "b2", "b3")
"""The collector buffers of B."""


@dataclass(frozen=True, repr=False)
class Tcgen05WsMma(Tcgen05Mma):
    """The data of one ``tcgen05.mma.ws``; fields as of :class:`.Tcgen05Mma`.

    >>> from tilewright.ir.types import BF16, F32
    >>> atom = Tcgen05WsMma("f16", (32, 128, 16), F32, BF16, BF16)
    >>> atom, atom.tensor_memory("C", ((32, 128), 1, 1))
    (SM100_32x128x16_F32BF16BF16_WS_SS<K,K>, ((32,(32,4)),1,1):((65536,(1,2097152)),0,0))
    """

    stationary: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.source == "TS" and self.shape_mnk[0] != LANES:
            raise ConstraintError(
                f"{self.form}: A of {self.shape_mnk[0]} rows in tensor memory is not here: where the parts of N find "
                f"it, PTX shows in a figure only. M = {LANES} is, and A in shared memory"
            )

    def tensor_memory(self, operand: str, shape: Any) -> Layout:
        if operand == "C":
            return weight_stationary_layout(shape, self.type_d.width)
        return super().tensor_memory(operand, shape)
