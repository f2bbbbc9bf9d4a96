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
    """Raise ConstraintError where warpgroups that multiply cannot apply scales of blocks, or wait for other ones."""
    scales = block_scales(function)
    if scales is None:
        if config.block_scales is not None:
            raise ConstraintError(
                f"the size waits for scales of blocks of {config.block_scales} rows and columns, which the epilogue "
                "does not have: take the kernel's own sizes"
            )
        return
    groups = scales.rows, scales.columns
    in_stages = None not in groups  # the scales of one operand are loaded by the threads that multiply
    known = config.block_scales == groups if in_stages else fits_block_scales(config, *groups)
    if not known:
        raise ConstraintError(
            f"scales of blocks are applied to the sums of {BLOCK} elements of K, by a size that is made for them: for "
            f"groups of (rows, columns) {groups} take one of KernelEntry.for_block_scales, not {config}"
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
