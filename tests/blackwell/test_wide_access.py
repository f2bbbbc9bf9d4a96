"""Copies of 256 bits between global memory and registers: one access on sm_100, two before."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tilewright.cute.nvgpu import CopyUniversalOp
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ConstraintError

LANES = 32


def aligned(values: Any) -> Any:
    """The values in memory whose address is a multiple of 64."""
    room = np.zeros(values.nbytes + 64, np.uint8)
    start = -room.ctypes.data % 64
    copy = room[start : start + values.nbytes].view(values.dtype)
    copy[:] = values
    return copy


@cute.kernel
def twice_kernel(x: cute.Tensor, y: cute.Tensor, through: cutlass.Constexpr[str]) -> None:
    t, _, _ = cute.arch.thread_idx()
    atom = cute.make_copy_atom(CopyUniversalOp(), x.element_type, num_bits_per_copy=256)
    own = 256 // x.element_type.width
    a, b = cute.zipped_divide(x, (own,))[(None, t)], cute.zipped_divide(y, (own,))[(None, t)]
    if cutlass.const_expr(through == "shared memory"):
        ring = cutlass.utils.SmemAllocator().allocate_tensor(x.element_type, cute.make_layout((own, LANES)), 128)
        cute.copy(atom, a, ring[None, t])
    registers = cute.make_rmem_tensor_like(a)
    if cutlass.const_expr(through == "predicates"):
        there = cute.make_rmem_tensor(1, cutlass.Boolean)
        there[0] = t < LANES // 2
        registers.fill(0)
        cute.copy(atom, a, registers, pred=there)
    else:
        cute.copy(atom, a, registers)
    registers.store(registers.load() + registers.load())
    cute.copy(atom, registers, b)


@cute.jit
def twice(x: cute.Tensor, y: cute.Tensor, through: cutlass.Constexpr[str] = "registers") -> None:
    twice_kernel(x, y, through).launch(grid=(1, 1, 1), block=(LANES, 1, 1))


def arrays(kind: Any, align: int = 32) -> list[Any]:
    x = aligned(np.arange(LANES * 32 // np.dtype(kind).itemsize).astype(kind))
    return [x, aligned(np.zeros_like(x)), align]


def tensors(x: Any, y: Any, align: int) -> list[cute.Tensor]:
    return [from_dlpack(v, assumed_align=align) for v in (x, y)]


@pytest.mark.parametrize("kind", [np.float32, np.float16, np.int8, np.float64])
def test_256_bits_at_a_time(kind: Any) -> None:
    x, y, align = arrays(kind)
    twice(*tensors(x, y, align))
    assert (y == x + x).all()


@pytest.mark.gpu
def test_256_bits_on_a_gpu() -> None:
    torch = pytest.importorskip("torch")
    x = torch.arange(LANES * 8, dtype=torch.float32, device="cuda")
    for through in ("registers", "predicates"):
        y = torch.zeros_like(x)
        twice(*tensors(x, y, 32), through)
        half = len(x) // 2
        assert (y[:half] == 2 * x[:half]).all()
        assert (y[half:] == (0 if through == "predicates" else 2 * x[half:])).all()


def test_wide_copies_with_predicates() -> None:
    x, y, align = arrays(np.float32)
    twice(*tensors(x, y, align), "predicates")
    half = len(x) // 2
    assert (y[:half] == 2 * x[:half]).all() and not y[half:].any()


def test_wide_copies_refuse_other_alignments_and_memories() -> None:
    with pytest.raises(
        ConstraintError, match=r"the source must be 32-byte aligned, .* a multiple of 16 bytes(.|\n)*wide"
    ):
        twice(*tensors(*arrays(np.float32, align=16)))
    with pytest.raises(
        ConstraintError, match=r"copies from global memory to registers or back, not from gmem (.|\n)*wide_access.py"
    ):
        twice(*tensors(*arrays(np.float32)), "shared memory")


@pytest.mark.parametrize(
    ("arch", "through"),
    [("sm_90a", "registers"), ("sm_100a", "registers"), ("sm_100a", "predicates"), ("sm_120a", "predicates")],
)
def test_their_machine_code(arch: str, through: str) -> None:
    pytest.importorskip("cuda.bindings.nvrtc")
    compiled = cute.compile(twice, *tensors(*arrays(np.float32)), through)
    artifact = cutlass.cuda.compile(compiled.kernels[0], arch)
    wide = tuple(len(re.findall(rf"{x}\.global\.\S*v[48]\.[bf](64|32)", artifact.ptx)) for x in ("ld", "st"))
    assert wide == ((1, 1) if int(arch[3:].rstrip("a")) >= 100 else (0, 0))
    assert artifact.spills == 0
