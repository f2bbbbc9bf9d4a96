"""Which decompositions and scales the warp-specialised Hopper kernel can follow."""

from __future__ import annotations

from tilewright.errors import ConstraintError
from tilewright.gemm.config import HopperConfig
from tilewright.gemm.epilogue.functions import EpilogueFunction
from tilewright.gemm.epilogue.scales import BLOCK, block_scales, fits_block_scales
from tilewright.gemm.schedule.launch_arguments import Decomposition
from tilewright.gemm.schedule.shared import SharedTiles
from tilewright.gemm.schedule.splitk import ClusterSlices


def check_block_scales(config: HopperConfig, function: EpilogueFunction) -> None:
    """Raise ConstraintError where warpgroups that multiply cannot apply scales of blocks."""
    scales = block_scales(function)
    if scales is not None and not fits_block_scales(config, scales.rows, scales.columns):
        raise ConstraintError(
            f"scales of blocks are applied to the sums of {BLOCK} elements of K, in parts of tiles that divide "
            f"{BLOCK} x {BLOCK}: take a size with promote=1, not {config}"
        )


def check_decomposition(config: HopperConfig, decomposition: Decomposition) -> None:
    """Raise ConstraintError where the warpgroups cannot follow the decomposition."""
    if config.pingpong and decomposition.sums != "alone":
        raise ConstraintError(
            f"{type(decomposition).__name__} deals out parts of tiles, and warpgroups that take turns (pingpong) "
            "skip each other's tiles, which must have the same number of k tiles: take PersistentTiles, or "
            "pingpong=False"
        )
    if config.cluster_size > 1 and isinstance(decomposition, SharedTiles) and decomposition.separate:
        raise ConstraintError("reduction blocks are single blocks: take a cluster of (1, 1)")
    if (config.cluster_k > 1) != isinstance(decomposition, ClusterSlices):
        raise ConstraintError(
            f"cluster_k = {config.cluster_k} with {type(decomposition).__name__}: blocks of a cluster that "
            "share k tiles take ClusterSlices, and no others do"
        )
