"""Scale factors of ``mma.sync`` (sm_120) in the hands of threads: which factors a thread's fragments need.

Factors are seen as a matrix with one for each element, (rows, K), of which the layout says that ``sf_vec_size``
elements share one (stride 0); partitions follow the instruction's table as those of A and B do
(include/cutlass/gemm/collective/sm120_blockscaled_mma_tma.hpp).
"""

from __future__ import annotations

from typing import Any

from tilewright.errors import ConstraintError
from tilewright.lang.numbers.numeric import class_of
from tilewright.lang.tensors.algebra import make_rmem_tensor
from tilewright.lang.tensors.tensor import Tensor
from tilewright.layout import Layout, make_fragment_like_layout, make_layout, size
from tilewright.tiled.tiled_mma import ThrMma, TiledMma
from tilewright.utils.hopper_helpers import sm90_get_smem_store_op

sm120_get_smem_store_op = sm90_get_smem_store_op
"""Registers of ``mma.sync`` go to shared memory as those of wgmma do."""


def thrfrg_SFA(sfatensor: Any, tiled_mma: TiledMma, *, loc: Any = None, ip: Any = None) -> Any:
    """A's factors (M, K, ...) as ((ThrV, (ThrM, ThrK)), (FrgV, (RestM, RestK, ...))).

    >>> from tilewright import Float8E4M3FN, Float8E8M0FNU, Float32
    >>> mma = cute.make_tiled_mma(cute.nvgpu.warp.MmaMXF8Op(Float8E4M3FN, Float32, Float8E8M0FNU), (2, 2, 1))
    >>> thrfrg_SFA(cute.make_layout((32, 32)), mma)
    (((2,2,8),(2,1)),(32,(1,1))):(((8,0,1),(16,0)),(32,(0,0)))
    """
    return tiled_mma.thrfrg("SFA", sfatensor)


def thrfrg_SFB(sfbtensor: Any, tiled_mma: TiledMma, *, loc: Any = None, ip: Any = None) -> Any:
    """B's factors; see :func:`thrfrg_SFA`."""
    return tiled_mma.thrfrg("SFB", sfbtensor)


def get_layoutSFA_TV(tiled_mma: TiledMma, *, loc: Any = None, ip: Any = None) -> Layout:
    """(thread, value) to the coordinate in a tile (M, K) of A's factors, for ``make_tiled_copy``.

    >>> from tilewright import Float8E4M3FN, Float8E8M0FNU, Float32
    >>> mma = cute.make_tiled_mma(cute.nvgpu.warp.MmaMXF8Op(Float8E4M3FN, Float32, Float8E8M0FNU), (2, 2, 1))
    >>> get_layoutSFA_TV(mma)
    ((2,2,8,2,2),(32,(1,1))):((8,0,1,16,0),(32,(0,0)))
    """
    return tiled_mma.tv_layout_tiled("SFA")


def get_layoutSFB_TV(tiled_mma: TiledMma, *, loc: Any = None, ip: Any = None) -> Layout:
    """(thread, value) to the coordinate in a tile (N, K) of B's factors; see :func:`get_layoutSFA_TV`."""
    return tiled_mma.tv_layout_tiled("SFB")


def partition_fragment_SFA(
    sfa_tensor: Tensor, thr_mma: ThrMma, tidx: Any = None, *, loc: Any = None, ip: Any = None
) -> Tensor:
    """Registers for the factors of A that a thread needs of a tile (M, K): (FrgV, RestM, RestK). ``tidx``: the thread,
    where ``thr_mma`` is not its slice."""
    return _fragment("SFA", sfa_tensor, thr_mma, tidx)


def partition_fragment_SFB(
    sfb_tensor: Tensor, thr_mma: ThrMma, tidx: Any = None, *, loc: Any = None, ip: Any = None
) -> Tensor:
    """Registers for the factors of B; see :func:`partition_fragment_SFA`."""
    return _fragment("SFB", sfb_tensor, thr_mma, tidx)


def _fragment(which: str, x: Tensor, mma: TiledMma, tidx: Any) -> Tensor:
    thread = mma if isinstance(mma, ThrMma) else mma.get_slice(tidx)
    part = thread.partition(which, x)
    # Where factors are shared the stride is 0, and stays so: registers hold each factor once.
    instruction: Any = mma.instruction
    return make_rmem_tensor(make_fragment_like_layout(part.layout), class_of(instruction.scale))


def get_permutation_mnk(
    tile_shape_mnk: Any, sf_vec_size: int, use_mxf8f6f4: bool, *, loc: Any = None, ip: Any = None
) -> tuple[int, Layout, int]:
    """The permutation of a tiled MMA with block scales: up to 128 rows; columns so that a warp has 16 that follow each
    other; K of one instruction.

    >>> get_permutation_mnk((128, 128, 128), 32, True)
    (128, (8,2,2):(1,16,8), 32)
    """
    if sf_vec_size not in (16, 32):
        raise ConstraintError(f"get_permutation_mnk: vectors of 16 or 32 elements share a factor, not {sf_vec_size}")
    rows = min(int(size(tile_shape_mnk[0])), 128)
    return rows, make_layout((8, 2, 2), stride=(1, 16, 8)), 32 if use_mxf8f6f4 else 64
