"""A compiled kernel with its arguments: what is left to do is launch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tilewright import Int32, cute
from tilewright.gemm.epilogue.functions import EpilogueFunction
from tilewright.gemm.host.plan import Plan
from tilewright.gemm.host.problem import Problem
from tilewright.gemm.host.transfer import zeros_beside
from tilewright.gemm.kernel.select import kernel_of
from tilewright.gemm.schedule.launch import decomposition_of, workspace_of
from tilewright.lang.arguments.argument import argument_of

_COMPILED: dict[Any, Any] = {}


@dataclass(frozen=True)
class Handle:
    """``executor`` takes ``args``, the tensors, the epilogue function and the decomposition."""

    executor: Any
    args: tuple[Any, ...]

    @classmethod
    def of(
        cls, plan: Plan, problem: Problem, function: EpilogueFunction, target: Any,
        zeros: Callable[[int, Any], Any] | None = None,
    ) -> Handle:  # fmt: skip
        """The kernel of the plan, compiled at first sight. ``target`` is the machine where the operands are; ``zeros``
        gives its workspace (n elements of a dtype, zero), which it leaves as it found it but for partial sums."""
        config = plan.config
        A, B, C, D = problem.oriented(config.transposed).read_as(config.a.dtype).matrices
        operands = ((A, config.a), (B.transposed(), config.b), (C, config.c), (D, config.c))
        tensors = [matrix.tensor(operand) for matrix, operand in operands]
        zeros = zeros or zeros_beside(target, D)
        needed = workspace_of(plan.shares, config, problem.oriented(config.transposed).shape, plan.dynamic)
        memory = zeros(max(1, needed.partials), needed.dtype), zeros(max(1, needed.flags), Int32)
        decomposition = decomposition_of(plan.shares, config, *memory, plan.multiprocessors, plan.dynamic)
        args = (*tensors, function, decomposition)
        backwards = tuple(stride < 0 for matrix in (A, B, C, D) for stride in matrix.stride)
        key = config, argument_of("function", function).key(), kind_of(decomposition), backwards
        if key not in _COMPILED:
            _COMPILED[key] = cute.compile(kernel_of(config), *args)
        return cls(_COMPILED[key], args)

    def __call__(self) -> None:
        self.executor(*self.args)

    def bound(self) -> Callable[[], None]:
        """A callable that launches and does nothing else: arguments are read and checked now."""
        launch: Callable[[], None] = self.executor.bind(*self.args)
        return launch


def kind_of(decomposition: Any) -> tuple[Any, ...]:
    """What of a decomposition is compiled into the kernel."""
    static = (value for value in vars(decomposition).values() if isinstance(value, str | bool | int))
    return (type(decomposition), *static)
