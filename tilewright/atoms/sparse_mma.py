"""What MMAs whose A is 2:4 sparse have in common: the operand with the metadata, and who reads which word of it."""

from __future__ import annotations

from typing import ClassVar

from tilewright.atoms.mma import Mma
from tilewright.atoms.sparsity import SPARSITY, word_k
from tilewright.errors import ConstraintError
from tilewright.ir.core import Op
from tilewright.ir.types import I32, FragType
from tilewright.layout.evaluate import static_offsets
from tilewright.layout.tuples import product


class SparseMma(Mma):
    """The metadata of A are the last operand of a call: a fragment of Int32. ``e_layout (1, RestM, K / word_k)`` and
    ``e_offset`` count registers."""

    sparsity: ClassVar[int] = SPARSITY
    word_rows: ClassVar[int]
    """Rows of A that a register of all threads serves."""

    @property
    def word_k(self) -> int:
        """Elements of K that a register of all threads serves."""
        return word_k(self.type_a.width)

    @property
    def instructions_a_word(self) -> int:
        """How many instructions along K a register serves, one after the other: the selector says which this one is."""
        return self.word_k // self.shape_mnk[2]

    def verify(self, op: Op) -> None:
        super().verify(op)
        e, layout = op.operands[-1].type, op.attrs["e_layout"]
        if not isinstance(e, FragType) or e.elem != I32:
            raise ConstraintError(f"{self}: the metadata of A are registers of Int32, not {e}")
        (_, am, ak), extents = op.attrs["a_layout"], tuple(product(mode.shape) for mode in layout)
        required = 1, product(am.shape), product(ak.shape) // self.instructions_a_word
        if product(ak.shape) % self.instructions_a_word or extents != required:
            raise ConstraintError(
                f"{self}: the metadata {layout} do not fit A {op.attrs['a_layout']}: a register serves {self.word_k} "
                f"elements of K of {self.word_rows} rows, so they are (1,{required[1]},{required[2]}) for whole "
                "registers"
            )
        last = op.attrs["e_offset"] + max(static_offsets(layout))
        if last >= e.n:
            raise ConstraintError(f"{self}: E {layout} reaches register {last} of a fragment of {e.n}")

    def metadata_of(self, op: Op, m: int, k: int) -> tuple[int, int]:
        """The register of the metadata of step (m, k) of a call, and the selector."""
        _, rest_m, rest_k = (static_offsets(mode) for mode in op.attrs["e_layout"])
        word, selector = divmod(k, self.instructions_a_word)
        return int(op.attrs["e_offset"] + rest_m[m] + rest_k[word]), selector

    def metadata_registers(self, op: Op) -> list[list[int]]:
        """``[RestM, K / word_k]`` the registers of a call's metadata."""
        _, rest_m, rest_k = (static_offsets(mode) for mode in op.attrs["e_layout"])
        return [[int(op.attrs["e_offset"] + row + word) for word in rest_k] for row in rest_m]
