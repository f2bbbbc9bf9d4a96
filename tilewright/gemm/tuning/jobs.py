"""What a process needs to know to compile the kernels of a product as another one would."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from tilewright.gemm.choice.registry import candidates
from tilewright.gemm.epilogue.activations import activation_of
from tilewright.gemm.epilogue.functions import Bias, Chain
from tilewright.gemm.host.handle import Handle, compiled
from tilewright.gemm.host.plan import Plan
from tilewright.gemm.host.problem import Problem
from tilewright.gemm.host.scales import linear_combination
from tilewright.gemm.host.workspace import WorkspaceBuffer
from tilewright.gemm.schedule.launch_arguments import workspace_of
from tilewright.gemm.tuning.stand_in import numeric_class, stand_in
from tilewright.lang.arguments.dlpack import from_dlpack


@dataclass(frozen=True)
class Product:
    """activation(A @ B + bias) of contiguous matrices without operands: the names of dtypes stand for arrays."""

    shape: tuple[int, int, int]
    dtype: str
    out_dtype: str
    a_major: str
    b_major: str
    bias: str | None = None
    activation: str | None = None

    @property
    def problem(self) -> Problem:
        return stand_in(self.shape, self.dtype, self.out_dtype, self.a_major, self.b_major)

    def function(self, problem: Problem) -> Any:
        """The epilogue function that ``matmul`` gives the kernel, for arguments of the same kinds."""
        entry = candidates(problem.A.dtype, None)[0]
        parts: list[Any] = [linear_combination(entry, problem, 1.0, 0.0)]
        if self.bias is not None:
            vector = np.zeros(self.shape[1], numeric_class(self.bias).dtype)
            parts.append(Bias(from_dlpack(vector).mark_layout_dynamic()))
        if self.activation is not None:
            parts.append(activation_of(self.activation, entry.config.acc_dtype, problem.D.dtype))
        return parts[0] if len(parts) == 1 else Chain(tuple(parts))


@dataclass(frozen=True)
class Job:
    """A product, its plan, which copies nothing, and the architecture of the GPU that will multiply."""

    product: Product
    plan: Plan
    arch: str

    def handle(self, executor_of: Any) -> None:
        """Everything before the launch, with ``executor_of`` in place of :func:`handle.compiled`."""
        problem = self.product.problem
        config = self.plan.config
        needed = workspace_of(self.plan.shares, config, problem.oriented(config.transposed).shape, self.plan.dynamic)
        memory = WorkspaceBuffer(needed, None, None)
        Handle.of(self.plan, problem, self.product.function(problem), None, memory.parts(), executor_of)

    def kinds(self) -> list[Any]:
        """The keys of its kernels, by which ``handle.compiled`` finds them."""
        kinds_of: list[Any] = []
        self.handle(lambda kernel, key, args, streamed: kinds_of.append((key, streamed)))
        return kinds_of

    def run(self) -> None:
        """Stage and compile: what is made is on the disk then."""
        compiler = import_module("tilewright.cuda.compiler")

        def executor_of(*arguments: Any) -> Any:
            executor = compiled(*arguments)
            for kernel in executor.kernels:
                compiler.compile(kernel, self.arch)
            return executor

        self.handle(executor_of)
