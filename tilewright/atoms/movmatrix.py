"""``movmatrix``: an 8x8 matrix of 16-bit cells, spread over a warp's registers, transposed (PTX ISA, "movmatrix")."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright.atoms.copy import REGISTERS, CopyInstruction, as_index, write_registers
from tilewright.atoms.mma import active_warps
from tilewright.errors import ConstraintError
from tilewright.ir.core import Op
from tilewright.ir.effects import Access
from tilewright.ir.instruction import Emitter, Lanes
from tilewright.ir.types import FragType, element_of
from tilewright.layout import Layout


@dataclass(frozen=True, repr=False)
class MovMatrix(CopyInstruction):
    """``movmatrix.sync.aligned.m8n8.trans.b16``: lane ``l`` gives the neighbours at row ``l / 4``, columns
    ``2 (l % 4)`` and the next, and receives those of the transposed matrix.

    A call has operands ``[dst, src]`` and attributes ``registers`` and ``source_registers``. Its layouts are CuTe's:
    both sides count the bits of their own matrix, so the layouts do not show the transposition.

    >>> MovMatrix(), MovMatrix().dst_bits
    (SM75_U32x1_MOVM_T, (32,32):(32,1))
    """

    name = "movmatrix"
    accesses = (Access("read", "source", REGISTERS, bits=32), Access("write", "destination", REGISTERS, bits=32))
    exchanges = True
    thr_id = Layout(32, 1)
    src_bits = dst_bits = ref_bits = Layout((32, 32), (32, 1))

    @property
    def cute_name(self) -> str:
        return "SM75_U32x1_MOVM_T"

    def mnemonic(self) -> str:
        return "movmatrix.trans"

    def verify(self, op: Op) -> None:
        if [isinstance(v.type, FragType) for v in op.operands] != [True, True]:
            raise ConstraintError(f"{self}: transposes registers, not {[v.type for v in op.operands]}")
        for operand, side in zip(op.operands, ("registers", "source_registers"), strict=True):
            elem = element_of(operand.type)
            if elem.width not in (8, 16):
                raise ConstraintError(f"{self}: moves 16-bit cells, which would tear {elem} apart")
            per = 32 // elem.width
            for register in op.attrs[side]:
                if register != tuple(range(register[0], register[0] + per)) or register[0] % per:
                    raise ConstraintError(
                        f"{self}: one 32-bit register holds {per} neighbours, not the fragment elements "
                        f"{list(register)}: retile the fragment with this copy (thr_copy.retile)"
                    )

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        import numpy as np

        active_warps(lanes, self)
        target, source = operands
        for to_register, from_register in zip(op.attrs["registers"], op.attrs["source_registers"], strict=True):
            cells = (
                np.ascontiguousarray(source[:, as_index(from_register)]).view("u2").reshape(-1, 8, 8)
            )  # (warp, row, column)
            turned = np.ascontiguousarray(cells.swapaxes(1, 2)).reshape(-1, 2)
            write_registers(target, to_register, turned.view(target.dtype), lanes.mask)
        return ()

    def emit(self, out: Emitter, op: Op) -> None:
        name = "movmatrix_trans"
        out.helper(
            name,
            f"__device__ __forceinline__ void {name}(uint32_t& d, uint32_t s) {{\n"
            '  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(d) : "r"(s));\n'
            "}\n",
        )
        target, source = op.operands
        for to_register, from_register in zip(op.attrs["registers"], op.attrs["source_registers"], strict=True):
            out.line(f"{name}({out.register(target, to_register[0])}, {out.register(source, from_register[0])});")
