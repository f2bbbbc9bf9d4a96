"""``stmatrix``: one, two or four 8x8 matrices of 16-bit cells from a warp's registers to shared memory (PTX ISA)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright.atoms.copy import as_index, split_operands
from tilewright.atoms.matrix_copy import MatrixCopy
from tilewright.errors import ConstraintError
from tilewright.ir.computed import computed, computed_once
from tilewright.ir.core import Op
from tilewright.ir.effects import Access
from tilewright.ir.instruction import Emitter, Lanes
from tilewright.ir.types import element_of
from tilewright.layout import Layout


@dataclass(frozen=True, repr=False)
class StMatrix(MatrixCopy):
    """``stmatrix.sync.aligned.m8n8.xN[.trans].shared.b16``; sm_90 and later.

    >>> StMatrix(2, True), StMatrix(2, True).src_bits
    (SM90_U16x4_STSM_T, ((4,8),(16,2,2)):((256,16),(1,128,1024)))
    """

    num_matrices: int = 1
    transpose: bool = False

    name = "stmatrix"
    min_arch = 90

    def __post_init__(self) -> None:
        self.check_parameters()

    @computed_once
    def accesses(self) -> tuple[Access, ...]:
        return self._sides("write", "read")[::-1]

    @computed
    def src_bits(self) -> Layout:
        return self.register_bits

    @computed
    def dst_bits(self) -> Layout:
        return self.memory_bits

    @property
    def cute_name(self) -> str:
        n = self.num_matrices
        return f"SM90_U16x{2 * n}_STSM_T" if self.transpose else f"SM90_U32x{n}_STSM_N"

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        import numpy as np

        (fragment,), pointers, _ = split_operands(op, operands)
        elem = element_of(op.operands[1].type)
        busy = self.busy_mask(lanes)
        for registers, pointer in zip(op.attrs["registers"], pointers, strict=True):
            values = np.ascontiguousarray(fragment[:, as_index(registers)])
            rows = self._to_rows(values.view("u2"))
            lanes.store(pointer, rows.view(elem.dtype), busy)
        return ()

    def form(self) -> str:
        """The instruction without its operands."""
        return f"stmatrix.sync.aligned.m8n8.x{self.num_matrices}{'.trans' if self.transpose else ''}.shared.b16"

    def emit(self, out: Emitter, op: Op) -> None:
        if out.arch < 90:
            raise ConstraintError(
                f"{self}: needs sm_90, but the kernel is compiled for sm_{out.arch}: store with CopyUniversalOp"
            )
        n = self.words
        name = self.mnemonic().replace(".", "_")
        registers = ", ".join(f"uint32_t r{i}" for i in range(n))
        slots = ", ".join(f"%{i + 1}" for i in range(n))
        ins = ", ".join(f'"r"(r{i})' for i in range(n))
        out.helper(
            name,
            f"__device__ __forceinline__ void {name}(uint32_t address, {registers}) {{\n"
            f'  asm volatile("{self.form()} [%0], {{{slots}}};" : : "r"(address), {ins} : "memory");\n'
            f"}}\n",
        )
        (fragment, *pointers), per = op.operands, 32 // element_of(op.operands[0].type).width
        for chosen, pointer in zip(op.attrs["registers"], pointers, strict=True):
            sources = ", ".join(out.register(fragment, r) for r in chosen[::per])
            out.line(f"{name}({out.shared_address(pointer)}, {sources});")
