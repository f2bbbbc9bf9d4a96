"""The inline PTX of every instruction passes the real assembler; no GPU is needed."""

from __future__ import annotations

import pytest

from tests.atoms.fake import FakeEmitter, call, mma_call, pointer_type
from tilewright.atoms.copy import CopyInstruction
from tilewright.atoms.copy_table import COPIES
from tilewright.atoms.cp_async import CpAsync, CpAsyncCommit, CpAsyncWait
from tilewright.atoms.fma import FMA
from tilewright.atoms.mma_sync_table import MMA_SYNC
from tilewright.atoms.movmatrix import MovMatrix
from tilewright.atoms.shuffle import ShuffleTranspose
from tilewright.atoms.stmatrix import StMatrix
from tilewright.atoms.universal import UniversalCopy
from tilewright.ir.core import Op
from tilewright.ir.target import Architecture, architecture
from tilewright.ir.types import BF16, BOOL, F16, F32, F64, U8, FragType, MemSpace, PtrType

pytest.importorskip("cuda.bindings.nvrtc")


def copy_calls(atom: CopyInstruction) -> list[Op]:
    if isinstance(atom, ShuffleTranspose):
        return [call(atom, [FragType(F32, 2)] * 2, registers=((0, 1),), source_registers=((1, 0),))]
    if isinstance(atom, MovMatrix):
        return [call(atom, [FragType(F16, 2)] * 2, registers=((0, 1),), source_registers=((0, 1),))]
    if isinstance(atom, CpAsync):
        types = [pointer_type(U8, MemSpace.GMEM), pointer_type(U8), BOOL]
        return [
            call(atom, types, count=1, predicated=True),
            call(atom, types[:2], count=1, predicated=False),
        ]
    if isinstance(atom, UniversalCopy):
        n = atom.bits // 8
        apart = [tuple(range(n)), tuple(range(0, 2 * n, 2))]
        types = [FragType(U8, 2 * n), pointer_type(U8, MemSpace.GMEM), BOOL]
        return [call(atom, types, registers=(r,), store=s, predicated=True) for r in apart for s in (False, True)]
    n = 2 * atom.num_matrices
    types = [FragType(F16, n), pointer_type(F16)]
    return [call(atom, types, registers=(tuple(range(n)),), store=isinstance(atom, StMatrix), predicated=False)]


def program(ops: list[Op], arch: int) -> str:
    """One kernel for each op, with its operands as local arrays and pointers."""
    names: dict[object, str] = {}
    helpers: dict[str, str] = {}
    kernels = []
    for i, op in enumerate(ops):
        declared = []
        for j, operand in enumerate(op.operands):
            name, kind = f"x{j}", operand.type
            names[operand] = name
            if isinstance(kind, FragType):
                declared.append(f"alignas(16) {kind.elem.cuda} {name}[{kind.n}] = {{}};")
            elif isinstance(kind, PtrType) and kind.space is MemSpace.SMEM:
                declared.append(f"extern __shared__ uint4 s[]; auto* {name} = reinterpret_cast<{kind.elem.cuda}*>(s);")
            elif isinstance(kind, PtrType):
                declared.append(f"auto* {name} = reinterpret_cast<{kind.elem.cuda}*>(out);")
            else:
                declared.append(f"bool {name} = threadIdx.x < 7;")
        out = FakeEmitter(names, arch)
        op.attrs["atom"].emit(out, op)
        helpers |= out.helpers
        frag = next((names[v] for v in op.operands if isinstance(v.type, FragType)), None)
        use = f"if (out) *out = reinterpret_cast<unsigned char&>({frag}[0]);" if frag else ""
        body = "\n".join([*declared, *out.lines, use])
        kernels.append(f'extern "C" __global__ void k{i}(unsigned char* out) {{\n{body}\n}}\n')
    return '#include "tilewright.cuh"\n' + "\n".join(helpers.values()) + "\n".join(kernels)


def everything(arch: Architecture) -> list[Op]:
    ops = [mma_call(a, 1, 1, 1) for a in (*MMA_SYNC.values(), *FMA.values()) if not a.lacking(arch)]
    ops += [mma_call(MMA_SYNC["SM80_16x8x16_F32F16F16F32_TN"], 2, 4, 2), mma_call(FMA["UniversalFMA<double>"], 4, 4, 2)]
    copies = {a for a in COPIES.values() if not a.lacking(arch)}
    ops += [op for a in sorted(copies, key=str) for op in copy_calls(a)]
    return ops + [call(CpAsyncCommit(), []), call(CpAsyncWait(2), [])]


@pytest.mark.parametrize("arch", ["sm_80", "sm_89", "sm_90a", "sm_100a", "sm_120a"])
def test_every_instruction_assembles(arch: str) -> None:
    from tilewright.cuda.nvrtc import compile_source
    from tilewright.cuda.source import Source

    target = architecture(arch)
    ops = everything(target)
    text = program(ops, target.capability)
    made = compile_source(Source("k0", text, (None,) * len(text.splitlines())), arch)
    assert len(made.cubin) > 10_000 and len(ops) > 90
    assert {F64, BF16} <= {a.type_a for a in MMA_SYNC.values()}
