"""``cutlass.utils.gemm.sm100``: how an epilogue of four warps takes an accumulator out of tensor memory, part by part.

The kernel object that they are given has ``cta_tile_shape_mnk``, ``c_layout``, ``c_dtype`` and ``acc_dtype``.
"""

from __future__ import annotations

from typing import Any

from tilewright._names import attach
from tilewright.cute.nvgpu.tcgen05 import make_tmem_copy
from tilewright.lang.tensors.algebra import make_rmem_tensor
from tilewright.lang.tensors.layout_functions import flat_divide
from tilewright.lang.tensors.tensor import Tensor, make_tensor
from tilewright.layout import make_layout, rank
from tilewright.tiled.make_copy import make_tiled_copy_D
from tilewright.tiled.tiled_copy import TiledCopy
from tilewright.utils.blackwell_helpers import get_smem_store_op, get_tmem_load_op

__all__ = [
    "epilogue_smem_copy_and_partition",
    "epilogue_tmem_copy_and_partition",
    "transform_partitioned_tensor_layout",
]


def transform_partitioned_tensor_layout(tensor: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """What ``partition_C`` gives, ((MMA_M, MMA_N), RestM, RestN, ...), as tiles of M and N: ((MMA_M, RestM), (MMA_N,
    RestN), ...). Of a layout or a tensor.

    >>> transform_partitioned_tensor_layout(cute.make_layout(((128, 64), 1, 2, 3), stride=((64, 1), 0, 8192, 16384)))
    ((128,1),(64,2),3):((64,0),(1,8192),16384)
    """
    layout = tensor.layout if isinstance(tensor, Tensor) else tensor
    m, n = (make_layout(layout[0][mode], layout[1 + mode]) for mode in range(2))
    made = make_layout(m, n, *(layout[mode] for mode in range(3, rank(layout))))
    return make_tensor(tensor.iterator, made) if isinstance(tensor, Tensor) else made


def epilogue_tmem_copy_and_partition(
    gemm_kernel: Any,
    tidx: Any,
    tAcc: Tensor,
    tCgC: Tensor,
    epi_tile: Any,
    use_2cta_instrs: bool,
    *,
    loc: Any = None,
    ip: Any = None,
) -> tuple[TiledCopy, Tensor, Tensor]:
    """The copy of a part ``epi_tile`` of the accumulator to registers; thread ``tidx``'s elements of the accumulator
    (T2R, T2R_M, T2R_N, EPI_M, EPI_N, STAGE); and its registers for one part. ``tAcc`` and ``tCgC``: see
    :func:`transform_partitioned_tensor_layout`."""
    kernel = gemm_kernel
    atom = get_tmem_load_op(
        kernel.cta_tile_shape_mnk, kernel.c_layout, kernel.c_dtype, kernel.acc_dtype, epi_tile, use_2cta_instrs
    )
    parts: Any = flat_divide(tAcc, epi_tile)
    first = (None, None, *(0,) * (rank(parts) - 2))
    tiled_copy = make_tmem_copy(atom, parts[first])
    thread = tiled_copy.get_slice(tidx)
    of_c: Any = thread.partition_D(flat_divide(tCgC, epi_tile))
    registers = make_rmem_tensor(of_c[(None, None, None, *(0,) * (rank(of_c) - 3))].shape, kernel.acc_dtype)
    return tiled_copy, thread.partition_S(parts), registers


def epilogue_smem_copy_and_partition(
    gemm_kernel: Any,
    tiled_copy_t2r: TiledCopy,
    tTR_rC: Tensor,
    tidx: Any,
    sC: Tensor,
    *,
    loc: Any = None,
    ip: Any = None,
) -> tuple[TiledCopy, Tensor, Tensor]:
    """The copy on to shared memory of the registers that ``tiled_copy_t2r`` has loaded, as elements of C; ``tTR_rC`` as
    that copy takes them; and thread ``tidx``'s elements of ``sC`` (R2S, R2S_M, R2S_N, STAGE)."""
    atom = get_smem_store_op(gemm_kernel.c_layout, gemm_kernel.c_dtype, gemm_kernel.acc_dtype, tiled_copy_t2r)
    tiled_copy = make_tiled_copy_D(atom, tiled_copy_t2r)
    return tiled_copy, tiled_copy.retile(tTR_rC), tiled_copy.get_slice(tidx).partition_D(sC)


attach(__name__)
