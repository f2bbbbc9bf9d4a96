"""A compiled kernel with its arguments: what is left to do is launch."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial, reduce
from typing import Any

from tilewright import Int32
from tilewright.errors import ArgumentError
from tilewright.gemm.arrays import Matrix
from tilewright.gemm.config import Major, Operand
from tilewright.gemm.epilogue.functions import EpilogueFunction, LinearCombination, partitionable
from tilewright.gemm.family.base import family_of
from tilewright.gemm.host.epilogue_state import note_staged, states_of
from tilewright.gemm.host.indirect import IndirectOperands
from tilewright.gemm.host.plan import Plan
from tilewright.gemm.host.problem import Problem
from tilewright.gemm.host.recorded import launch
from tilewright.gemm.host.transfer import uploader_beside, zeros_beside
from tilewright.gemm.kernel.reduce import ReduceSplitK
from tilewright.gemm.schedule.launch_arguments import decomposition_of, padded, workspace_of
from tilewright.gemm.schedule.splitk import SplitK
from tilewright.ir.target import architecture
from tilewright.lang.arguments.argument import argument_of
from tilewright.lang.arguments.arrays import Array, array_of
from tilewright.lang.arguments.streams import StreamHandle, stream_handle
from tilewright.lang.launch.compile import Compiler
from tilewright.lang.launch.options import CompileOptions

_COMPILED: dict[Any, Any] = {}
_COMPILING: dict[Any, threading.Lock] = {}
ELSEWHERE: dict[Any, Future[None]] = {}
"""Kernels that another process compiles and keeps on the disk; a future is done when its process is."""
MOST_SECONDS = 60.0
"""After which a kernel is compiled here though another process is at it."""

Zeros = Callable[[int, Any], Any]


@dataclass(frozen=True)
class Handle:
    """``executor`` takes ``args``: the tensors, the epilogue function and the decomposition. ``next_launch``
    follows it: the kernel that adds up the slices of parallel split-K, or the one that copies D to where it belongs."""

    executor: Any
    args: tuple[Any, ...]
    kernel: Any = None
    key: Any = None
    next_launch: Handle | None = None
    launch_context: Callable[[], Any] = nullcontext  # what has to be entered during a launch

    @classmethod
    def of(
        cls,
        plan: Plan,
        problem: Problem,
        function: EpilogueFunction,
        target: Any,
        zeros: Zeros | None = None,
        executor_of: Callable[..., Any] | None = None,
    ) -> Handle:
        """The kernel of the plan, compiled at first sight. ``target`` is the machine where the operands are; ``zeros``
        gives its workspace (n elements of a dtype, zero), which it leaves as it found it but for partial sums: first
        the partial sums, then the flags. ``executor_of`` may take the place of :func:`compiled`."""
        if isinstance(plan.shares, SplitK) and plan.shares.mode == "serial" and not partitionable(function):
            raise ArgumentError(
                f"{type(function).__name__} has no set_k_partition(k, partitions): serial split-K applies the epilogue "
                "to each part of K. Say what it is for a part, or take SplitK(..., mode='parallel')"
            )
        config, batch, most = plan.config, problem.shape[3], plan.config.most_batches
        if (
            most is not None and batch > most and plan.shares is None
        ):  # as many launches as the grid's limit makes necessary
            first, *others = (
                cls.of(plan, problem.batches(begin, min(begin + most, batch)), function, target, zeros, executor_of)
                for begin in range(0, batch, most)
            )
            return reduce(cls.followed_by, others, first)
        seen = problem.oriented(config.transposed).read_as(config.a.dtype)
        A, B, C, D = seen.matrices
        zeros = zeros or zeros_beside(target, D)
        needed = workspace_of(plan.shares, config, seen.shape, plan.dynamic)
        partials, flags = zeros(max(1, needed.partials), needed.dtype), zeros(max(1, needed.flags), Int32)
        how = decomposition_of(
            plan.shares, config, partials, flags, plan.multiprocessors, plan.dynamic, plan.reduction, plan.numbered
        )
        following = None
        if isinstance(plan.shares, SplitK) and plan.shares.mode == "parallel":
            slices = slices_matrix(partials, seen.shape, plan.shares.slices, config.acc_dtype)
            kept = Operand(config.acc_dtype, Major.K, 128)
            tensors: Any = slices.tensor(kept), C.tensor(config.c), D.tensor(config.c)
            indirect = seen.indirect.addressing(uploader_beside(target, D)) if seen.indirect is not None else None
            following = handle_of(
                ReduceSplitK(config.acc_dtype, config.transposed),
                tensors,
                (function, indirect.scatter_D if indirect else None),
                config,
                (C, D),
            )
            function, C, D = sums_as_they_are(config.acc_dtype), slices, slices
            config = config.with_operands(config.a, config.b, kept, architecture(plan.entry.arch).smem)
        objects: tuple[Any, ...] = function, how
        if seen.indirect is not None:
            addressing = seen.indirect.addressing(uploader_beside(target, D))
            if following is not None:  # the slices are in the workspace at strides
                addressing = replace(addressing, scatter_D=None)
            objects = function, how, addressing
        family = family_of(config)
        tensors = family.tensors(config, A, B.transposed(), C, D)
        first = handle_of(family.kernel(config), tensors, objects, config, (A, B, C, D), executor_of)
        context: Callable[[], Any] = nullcontext
        if seen.indirect is not None and seen.indirect.batches:
            context = partial(reachable, target, seen.indirect)
        return replace(first, next_launch=following, launch_context=context)

    def launches(self) -> Iterator[Handle]:
        """This launch and those that follow it."""
        yield self
        if self.next_launch is not None:
            yield from self.next_launch.launches()

    def followed_by(self, last: Handle | None) -> Handle:
        """This launch, those that follow it, and ``last``."""
        if last is None:
            return self
        return replace(self, next_launch=last if self.next_launch is None else self.next_launch.followed_by(last))

    def grid(self) -> tuple[int, int, int]:
        """The grid of the launch."""
        x, y, z = self.executor.configurations(*self.args)[0].grid
        return int(x), int(y), int(z)

    def __call__(self, stream: Any = None) -> None:
        """Launch on ``stream``; None: on the current one."""
        with self.launch_context():
            if stream is None:
                launch(self.executor, self.args)
            else:
                there = StreamHandle(stream_handle(stream) or 0)
                compiled(self.kernel, self.key, self.args, True)(*self.args, stream=there)
        if self.next_launch is not None:
            self.next_launch(stream)

    def bound(self) -> Callable[[], None]:
        """A callable that launches and does nothing else: arguments are read and checked now."""
        launch: Callable[[], None] = self.executor.bind(*self.args)
        if self.next_launch is None:
            return launch
        following = self.next_launch.bound()

        def both() -> None:
            launch()
            following()

        return both


def handle_of(
    kernel: Any,
    tensors: tuple[Any, ...],
    objects: tuple[Any, ...],
    config: Any,
    matrices: tuple[Matrix, ...],
    executor_of: Callable[..., Any] | None = None,
) -> Handle:
    """The kernel with its arguments, compiled at first sight: for all arguments that it reads in the same way. How it
    reads the ``tensors`` follows from ``config``, from the majors of the ``matrices``, and how far they reach."""
    backwards = tuple(stride < 0 for matrix in matrices for stride in matrix.stride)
    wide = tuple(tensor.engine.wide for one in tensors for tensor in parts_of(one))  # offsets of 64 bits
    read = tuple(argument_of("argument", x).key() for x in objects)
    key = type(kernel), config, read, backwards, wide, states_of(objects)
    args = *tensors, *objects
    return Handle((executor_of or compiled)(kernel, key, args, False), args, kernel, key)


def parts_of(argument: Any) -> list[Any]:
    """The tensors of an operand of a kernel: itself, or the fields of a dataclass."""
    if not is_dataclass(argument):
        return [argument]
    return [part for x in fields(argument) if (part := getattr(argument, x.name)) is not None]


def compiled(kernel: Any, key: Any, args: tuple[Any, ...], streamed: bool) -> Any:
    """The kernel for arguments of this kind; ``streamed``: with a stream as its last one."""
    kind = key, streamed
    if kind not in _COMPILED:
        with _COMPILING.setdefault(kind, threading.Lock()):  # a second thread waits for the first one's
            if kind not in _COMPILED:
                if (elsewhere := ELSEWHERE.pop(kind, None)) is not None:
                    wait([elsewhere], MOST_SECONDS)
                more: dict[str, Any] = {"stream": StreamHandle(0)} if streamed else {}
                _COMPILED[kind] = Compiler(CompileOptions(), kind)(kernel, *args, **more)
                note_staged(args, key[-1])
    return _COMPILED[kind]


@contextmanager
def reachable(target: Any, indirect: IndirectOperands) -> Iterator[None]:
    """Register with the simulator the matrices that a kernel finds by their addresses."""
    with ExitStack() as known:
        if hasattr(target, "exposed"):
            for matrix in (matrix for batch in indirect.batches for matrix in batch):
                known.enter_context(target.exposed(*matrix.array.bounds))
        yield


def slices_matrix(partials: Any, shape: tuple[int, int, int, int], slices: int, dtype: Any) -> Matrix:
    """The workspace of parallel split-K as a matrix for each slice, of whole vectors of columns."""
    m, n, _, _ = shape
    row = padded(n, dtype)
    flat = partials if isinstance(partials, Array) else array_of(partials)
    array = flat._replace(shape=(m, row, slices), stride=(row, 1, m * row))
    return Matrix("the workspace", partials, array)


def sums_as_they_are(dtype: Any) -> LinearCombination:
    """The epilogue function that writes the sums as they are."""
    return LinearCombination(dtype(1), dtype(0))
