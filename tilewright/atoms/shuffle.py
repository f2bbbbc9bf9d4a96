"""SM50's register transposes: two registers of neighbouring lanes change places by one warp shuffle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright.atoms.copy import REGISTERS, CopyInstruction, write_registers
from tilewright.atoms.mma import active_warps
from tilewright.errors import ConstraintError
from tilewright.ir.computed import computed
from tilewright.ir.core import Op
from tilewright.ir.effects import Access
from tilewright.ir.instruction import Emitter, Lanes
from tilewright.ir.types import FragType
from tilewright.layout import Layout


@dataclass(frozen=True, repr=False)
class ShuffleTranspose(CopyInstruction):
    """``dst[r](lane) = src[bit](lane with the bit set to r)``, ``bit`` being the lane's bit of weight ``xor`` (1 or 4).

    A call has operands ``[dst, src]`` and attributes ``registers`` and ``source_registers``: two elements a repetition.
    """

    xor: int

    name = "shfl.trans"
    exchanges = True
    accesses = (Access("read", "source", REGISTERS, bits=64), Access("write", "destination", REGISTERS, bits=64))
    thr_id = Layout(32, 1)
    src_bits = Layout((32, 64), (64, 1))
    ref_bits = Layout((32, 64), (64, 1))

    @computed
    def dst_bits(self) -> Layout:
        if self.xor == 1:
            return Layout(((2, 16), (32, 2)), ((32, 128), (1, 64)))
        return Layout(((4, 2, 4), (32, 2)), ((64, 32, 512), (1, 256)))

    @property
    def cute_name(self) -> str:
        return f"SM50_Shuffle_U32_2x2Trans_XOR{self.xor}"

    def mnemonic(self) -> str:
        return f"shfl.trans.xor{self.xor}"

    def verify(self, op: Op) -> None:
        if [isinstance(v.type, FragType) and v.type.elem.width for v in op.operands] != [32, 32]:
            raise ConstraintError(
                f"{self}: exchanges 32-bit registers of two fragments, not {[v.type for v in op.operands]}"
            )

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        import numpy as np

        active_warps(lanes, self)
        target, source = operands
        lane = np.arange(len(source))
        bit = (lane & self.xor != 0).astype(np.intp)
        for to_register, from_register in zip(op.attrs["registers"], op.attrs["source_registers"], strict=True):
            pair = source[:, list(from_register)]
            swapped = np.stack([pair[lane & ~self.xor, bit], pair[lane | self.xor, bit]], axis=1)
            write_registers(target, to_register, swapped, lanes.mask)
        return ()

    def emit(self, out: Emitter, op: Op) -> None:
        name = f"transpose_xor{self.xor}"
        out.helper(
            name,
            f"__device__ __forceinline__ void {name}(uint32_t s0, uint32_t s1, uint32_t& d0, uint32_t& d1) {{\n"
            f"  bool const high = threadIdx.x & {self.xor};\n"
            f"  uint32_t const received = __shfl_xor_sync(0xffffffffu, high ? s0 : s1, {self.xor});\n"
            f"  d0 = high ? received : s0;\n"
            f"  d1 = high ? s1 : received;\n"
            f"}}\n",
        )
        target, source = op.operands
        for to_register, from_register in zip(op.attrs["registers"], op.attrs["source_registers"], strict=True):
            texts = [out.register(source, r) for r in from_register] + [out.register(target, r) for r in to_register]
            out.line(f"{name}({', '.join(texts)});")
