"""Kernels of the library without arrays: staged with stand-in operands, compiled for any architecture."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np

from tilewright import cute
from tilewright.errors import ArgumentError
from tilewright.gemm.arrays import Matrix
from tilewright.gemm.config import AnyConfig, Major
from tilewright.gemm.epilogue.functions import LinearCombination
from tilewright.gemm.family.base import family_of, kernel_of
from tilewright.gemm.schedule.launch_arguments import decomposition_of
from tilewright.gemm.schedule.shared import REDUCTIONS
from tilewright.gemm.schedule.streamk import StreamK
from tilewright.ir.core import Function


def stage(config: AnyConfig, decomposition: str = "data_parallel", reduction: str | None = None) -> Function:
    """The IR of ``config``'s kernel, staged with stand-in operands; needs no GPU and runs nothing.

    ``decomposition``: "data_parallel", "stream_k" for the kernel whose blocks share tiles and add up as ``reduction``
    says (None: "mixed"), or "dynamic" for the one whose blocks draw them. ArgumentError for what the kernel cannot do.

    >>> from tilewright.gemm import kernels
    >>> stage(kernels()["simt_f32"].config).kind
    'kernel'
    """
    check(config, decomposition, reduction)
    bM, bN, bK = config.tile
    shapes = (((bM, bK), config.a), ((bN, bK), config.b), ((bM, bN), config.c), ((bM, bN), config.c))
    matrices = []
    for (rows, columns), operand in shapes:
        kept = operand.dtype.ir_type.dtype if operand.dtype.width >= 8 else np.uint8
        data = np.zeros((rows, columns) if operand.major is Major.K else (columns, rows), kept)
        matrices.append(Matrix.of("operand", data if operand.major is Major.K else data.T))
    family = family_of(config)
    tensors = family.tensors(config, family.stand_in(config, matrices[0]), *matrices[1:])
    plan = StreamK.of(config.tile, config.tile, multiprocessors=1, occupancy=1, fragments=1, split=2)
    plan = replace(plan, shared_reduction=reduction == "shared")
    memory = np.zeros(4, config.acc_dtype.ir_type.dtype), np.zeros(4, np.int32)
    shared = plan if decomposition == "stream_k" else None
    how = decomposition_of(
        shared, config, *memory, 2 * config.cluster_size, decomposition == "dynamic", reduction or "mixed"
    )
    args = [*tensors, LinearCombination(config.acc_dtype(1), config.acc_dtype(0)), how]
    kernel: Function = cute.compile(kernel_of(config), *args).kernels[0]
    return kernel


def check(config: AnyConfig, decomposition: str, reduction: str | None) -> None:
    """ArgumentError where there is no such kernel, or none in which the reduction has an effect."""
    if decomposition not in ("data_parallel", "dynamic", "stream_k"):
        raise ArgumentError(f"there is no kernel for {decomposition!r}: it is data_parallel, dynamic or stream_k")
    if decomposition == "dynamic" and not config.producers:
        raise ArgumentError("only warp-specialised Hopper kernels have a warp that draws tiles")
    if decomposition != "data_parallel" and config.cluster_k > 1:
        raise ArgumentError(f"blocks of a cluster that share k tiles (cluster_k) have no kernel for {decomposition!r}")
    if decomposition == "stream_k" and not family_of(config).takes_shares:
        raise ArgumentError(f"the kernel cannot share tiles: {family_of(config).sharing_refusal((config,))}")
    if reduction is not None and reduction not in REDUCTIONS:
        raise ArgumentError(f"reduction must be one of {', '.join(REDUCTIONS)}, got {reduction!r}")
    if reduction is not None and decomposition != "stream_k":
        raise ArgumentError(
            f"reduction {reduction!r} says how blocks that share a tile add up; with {decomposition!r} none do"
        )
    if reduction == "shared" and not config.persistent:
        raise ArgumentError("reduction 'shared' wants blocks that all run at once: Hopper kernels have them")


def cross_print(config: AnyConfig, arch: str) -> dict[str, str]:
    """``config``'s kernel for ``arch`` as text: ``"ir"`` and ``"cuda"``. Needs neither a GPU nor a compiler."""
    kernel = stage(config)
    return {"ir": str(kernel), "cuda": import_module("tilewright.cuda").emit(kernel, arch).text}


def cross_compile(
    config: AnyConfig, arch: str, decomposition: str = "data_parallel", reduction: str | None = None
) -> Any:
    """Compile ``config``'s kernel for ``arch``; needs no GPU."""
    return import_module("tilewright.cuda").compile(stage(config, decomposition, reduction), arch)
