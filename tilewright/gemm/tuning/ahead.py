"""Kernels compiled before there are operands: in other processes, say, while this one does something else.

Compiled code is kept on disk, so a process that comes to the same product later finds it there; the process that
compiles keeps the staged kernel, too, and has only to load it.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from tilewright.gemm.family.entry import KernelEntry
from tilewright.gemm.host.handle import Handle
from tilewright.gemm.host.plan import Decomposition, Plan
from tilewright.gemm.host.problem import Problem
from tilewright.gemm.host.universal import GemmUniversal, PreparedProblem
from tilewright.gemm.host.workspace import WorkspaceBuffer
from tilewright.lang.arguments.arrays import array_of


def compile_ahead(
    problem: Problem,
    kernel: str | KernelEntry | None = None,
    decomposition: Decomposition = "auto",
) -> tuple[Plan, list[Any]]:
    """What ``launcher(a, b, out, kernel=kernel, decomposition=decomposition)`` would launch for such operands on the
    GPU that is here (or an H100, where there is none): the plan, and the artifacts of its kernels in order.

    ``problem`` is a :func:`~tilewright.gemm.tuning.stand_in.stand_in`. Raises what ``launcher`` would raise.
    """
    return compile_prepared(GemmUniversal(kernel, decomposition).ready(problem, 1.0, 0.0, None, "gpu"))


def compile_prepared(ready: PreparedProblem) -> tuple[Plan, list[Any]]:
    """The same for a problem whose plan was made already."""
    needed = ready.needed
    workspace = np.zeros(max(4, needed.size // 4), np.int32)  # of pages that nothing touches
    ready.compile(WorkspaceBuffer(needed, workspace, array_of(workspace) if needed.size else None), machine="cpu")
    compiler = import_module("tilewright.cuda.machine")
    handle: Handle | None = ready.handle
    artifacts = []
    while handle is not None:
        artifacts += [compiler.artifact(function, handle.executor.options) for function in handle.executor.kernels]
        handle = handle.next_launch
    return ready.plan, artifacts
