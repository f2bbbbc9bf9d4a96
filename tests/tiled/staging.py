"""Bodies of kernels staged and run on the simulator, for tests of single calls."""

from __future__ import annotations

from typing import Any

import tilewright as cutlass
from tests.machines import Memories
from tilewright import cute
from tilewright.cute.runtime import from_dlpack
from tilewright.layout import make_layout


def run(
    body: Any, *arrays: Any, threads: int = 128, dynamic: bool = False, aligned: bool = True, device: str = "cpu"
) -> None:
    """``body(tidx, *tensors)`` as a kernel of one block; with ``dynamic`` shapes and strides are run-time numbers.
    ``aligned``: the arrays are taken as multiples of 16 bytes, else by their addresses. ``device`` may be "cuda"."""

    @cute.kernel
    def kernel(tensors: Any):
        tidx, _, _ = cute.arch.thread_idx()
        body(tidx, *tensors)

    @cute.jit
    def host(tensors: Any):
        kernel(tensors).launch(grid=(1, 1, 1), block=(threads, 1, 1))

    # An address says no more than its largest power of two; beyond 16 bytes no copy needs to know it.
    known = [16 if aligned else min(16, x.ctypes.data & -x.ctypes.data) for x in arrays]
    memories = Memories(device)
    given = arrays if device == "cpu" else [memories.give(x) for x in arrays]
    tensors = [from_dlpack(x, assumed_align=align) for x, align in zip(given, known, strict=True)]
    host([x.mark_layout_dynamic() for x in tensors] if dynamic else tensors)
    memories.fetch()


def shared(layout: Any, dtype: Any = cutlass.Float16) -> Any:
    return cutlass.utils.SmemAllocator().allocate_tensor(dtype, layout, 1024)


def universal(bits: int, dtype: Any = cutlass.Float16) -> Any:
    return cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), dtype, num_bits_per_copy=bits)


def matrix(transpose: bool = False, store: bool = False) -> Any:
    kind = cute.nvgpu.warp.StMatrix8x8x16bOp if store else cute.nvgpu.warp.LdMatrix8x8x16bOp
    return cute.make_copy_atom(kind(transpose=transpose, num_matrices=4), cutlass.Float16)


def asynchronous(bits: int = 128, dtype: Any = cutlass.Float16) -> Any:
    return cute.make_copy_atom(cute.nvgpu.cpasync.CopyG2SOp(), dtype, num_bits_per_copy=bits)


def half_mma() -> Any:
    op = cute.nvgpu.warp.MmaF16BF16Op(cutlass.Float16, cutlass.Float32, (16, 8, 16))
    return cute.make_tiled_mma(op, make_layout((2, 2, 1)), permutation_mnk=(32, 32, 16))


def by_rows(atom: Any) -> Any:
    """128 threads over a tile of 16 x 64, eight neighbours of a row each."""
    return cute.make_tiled_copy_tv(atom, make_layout((16, 8), stride=(8, 1)), make_layout((1, 8)))
