"""``ldmatrix``: one, two or four 8x8 matrices of 16-bit cells from shared memory to a warp's registers (PTX ISA)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright.atoms.copy import split_operands, write_registers
from tilewright.atoms.matrix_copy import MatrixCopy
from tilewright.ir.computed import computed, computed_once
from tilewright.ir.core import Op
from tilewright.ir.effects import Access
from tilewright.ir.instruction import Emitter, Lanes
from tilewright.ir.types import element_of
from tilewright.layout import Layout


@dataclass(frozen=True, repr=False)
class LdMatrix(MatrixCopy):
    """``ldmatrix.sync.aligned.m8n8.xN[.trans].shared.b16``.

    >>> LdMatrix(4), LdMatrix(4).dst_bits
    (SM75_U32x4_LDSM_N, (32,(32,4)):(32,(1,1024)))
    """

    num_matrices: int = 1
    transpose: bool = False

    name = "ldmatrix"

    def __post_init__(self) -> None:
        self.check_parameters()

    @computed_once
    def accesses(self) -> tuple[Access, ...]:
        return self._sides("read", "write")

    @computed
    def src_bits(self) -> Layout:
        return self.memory_bits

    @computed
    def dst_bits(self) -> Layout:
        return self.register_bits

    @property
    def cute_name(self) -> str:
        n = self.num_matrices
        return f"SM75_U16x{2 * n}_LDSM_T" if self.transpose else f"SM75_U32x{n}_LDSM_N"

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        (fragment,), pointers, _ = split_operands(op, operands)
        elem = element_of(op.operands[1].type)
        busy = self.busy_mask(lanes)
        loaded = lanes.load_each(pointers, 128 // elem.width, busy)
        for registers, rows in zip(op.attrs["registers"], loaded, strict=True):
            cells = self.to_registers(rows.view("u2").reshape(-1, 32, 8))
            write_registers(fragment, registers, cells.view(fragment.dtype), lanes.mask)
        return ()

    def form(self) -> str:
        """The instruction without its operands."""
        return f"ldmatrix.sync.aligned.m8n8.x{self.num_matrices}{'.trans' if self.transpose else ''}.shared.b16"

    def emit(self, out: Emitter, op: Op) -> None:
        n = self.words
        name = self.mnemonic().replace(".", "_")
        registers = ", ".join(f"uint32_t& r{i}" for i in range(n))
        slots = ", ".join(f"%{i}" for i in range(n))
        outs = ", ".join(f'"=r"(r{i})' for i in range(n))
        out.helper(
            name,
            f"__device__ __forceinline__ void {name}(uint32_t address, {registers}) {{\n"
            f'  asm volatile("{self.form()} {{{slots}}}, [%{n}];" : {outs} : "r"(address));\n'
            f"}}\n",
        )
        (fragment, *pointers), per = op.operands, 32 // element_of(op.operands[0].type).width
        for chosen, pointer in zip(op.attrs["registers"], pointers, strict=True):
            targets = ", ".join(out.register(fragment, r) for r in chosen[::per])
            out.line(f"{name}({out.shared_address(pointer)}, {targets});")
