"""A product that was checked, planned and compiled once, launched again and again on other arrays of the same geometry.

Its launches (``launches.py``) are bound at first sight. Blocks that share tiles do so through a workspace, of which
each stream has its own; launches on one stream follow each other. A launch that is captured into a CUDA graph gets a
workspace from the graph's own memory, which is set to zero in the graph: replays may overlap with other work, and their
memory is theirs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any

from tilewright import Int32
from tilewright.gemm.host.copies import copy_of
from tilewright.gemm.host.handle import Handle
from tilewright.gemm.host.plan import Plan
from tilewright.gemm.host.problem import Problem
from tilewright.gemm.host.transfer import zeros_apart
from tilewright.gemm.host.workspace import WorkspaceBuffer
from tilewright.gemm.operators.launches import CAPTURED, Binding, Launches, PreparedLaunch, Slot
from tilewright.gemm.schedule.launch_arguments import Workspace
from tilewright.ir.runtime import DevicePointer
from tilewright.lang.arguments.arrays import array_of
from tilewright.lang.launch.machine import machine_of

Zeros = Callable[[int, Any], Any]
MOST_VECTORS = 16
"""Arrays that an epilogue function of ``matmul`` and similar operators reads beside C."""


class Workspaces:
    """Memory that blocks exchange sums through, by stream: one buffer for each role, as large as the largest launch
    wanted. Flags are zero between launches."""

    def __init__(self) -> None:
        self.buffers: dict[Any, Any] = {}
        self.lock = threading.Lock()

    def zeros(self, stream: Any, beside: Zeros) -> Zeros:
        """``zeros(n, dtype)`` for one launch on ``stream``; ``beside`` makes new memory on its device."""
        role = 0

        def zeros(n: int, dtype: Any) -> Any:
            nonlocal role
            key, role = (stream, role, dtype), role + 1
            with self.lock:
                buffer = self.buffers.get(key)
                if buffer is None or buffer.shape[0] < n:
                    buffer = self.buffers[key] = beside(n, dtype)
            # What cannot be sliced is as long as the largest launch wanted: kernels do not ask for its length.
            return buffer[:n] if hasattr(buffer, "__getitem__") else buffer

        return zeros


WORKSPACES = Workspaces()


Owners = list[int | None | list[int | None]]
"""Whose address the pointers of each argument are, or each of its pointers: the number of an operand, or none."""


class Prepared(Launches):
    """``plan`` for all products that look like ``problem``. The addresses of a launch are those of A, B, C (D's without
    a C), D, the ``parts`` of A and B, and the vectors of the epilogue in the order of its fields."""

    def __init__(self, problem: Problem, plan: Plan, function: Any, rows: int | None = None) -> None:
        """``rows``: other ones than the problem's."""
        super().__init__(problem.D.device, plan.shares is not None or plan.dynamic or plan.packing is not None)
        self._problem, self._rows, self.plan, self.function = problem, rows, plan, function
        self.workspaces: list[Any] = []  # of the bindings, which know their addresses only

    @property
    def problem(self) -> Problem:
        """Made with its rows when it is asked for: most products of other rows are launched without."""
        if self._rows is not None:
            self._problem, self._rows = self._problem.with_rows(self._rows), None
        return self._problem

    def with_rows(self, rows: int, plan: Plan) -> Prepared:
        """A product that differs in its rows, by the same kernel. ``plan`` says nothing else to the kernel."""
        made = Prepared(self._problem, plan, self.function, rows)
        result = 1 if plan.config.transposed else 0  # the mode of C and D that rows are to the kernel
        for stream, binding in self.bindings.items():
            made.bindings[stream] = [step.with_rows(rows, made, {0: 0, 2: result, 3: result}) for step in binding]
        made.workspaces = self.workspaces
        return made

    def release(self) -> None:
        """Drop the PyTorch tensors that it was made with: from now on only their geometry matters."""
        self._problem = self.problem.without_sources()

    def bind(self, stream: Any) -> Binding:
        """The values of a launch on ``stream``; the kernels are compiled and loaded where that was not done."""
        D, target = self.problem.D, machine_of(self.device)
        spare: Zeros
        if stream is CAPTURED:
            zeros, spare = captured(D.source), lambda n, dtype: D.source.new_empty(n, dtype=dtype.torch_dtype)
        else:
            beside = zeros_apart(target, D)
            zeros, spare = (WORKSPACES.zeros((self.device, stream, use), beside) for use in ("shared", "packed"))
        arguments: list[Any] = []

        def memory(n: int, dtype: Any) -> Any:
            arguments.append(zeros(n, dtype))
            return arguments[-1]

        packing = self.plan.packing
        if packing is None:
            product = Handle.of(self.plan, self.problem, self.function, target, memory)
            binding = [self.step(launch, self.owners()) for launch in product.launches()]
        else:
            arguments.append(spare(packing.bytes // 4, Int32))
            there = WorkspaceBuffer(Workspace(0, Int32, 0, packing.bytes), arguments[-1], array_of(arguments[-1]))
            seen = packing.placed(self.problem, there)
            product = Handle.of(self.plan, seen, self.function, target, memory)
            binding = [self.step(launch, self.owners(packing.names)) for launch in product.launches()]
            before = [name for name in packing.names if name != "D"]
            if before:
                copies = copy_of([(getattr(self.problem, name), getattr(seen, name)) for name in before])
                binding.insert(0, self.step(copies, [[x for name in before for x in ("ABC".index(name), None)]]))
            if "D" in packing.names:
                binding.append(self.step(copy_of([(seen.D, self.problem.D)]), [[None, 3]]))
        if stream is not CAPTURED:
            self.bindings[stream if self.workspace else 0] = binding
            self.workspaces += arguments
        return binding

    def owners(self, copied: Sequence[str] = ()) -> Owners:
        """Whose addresses the product's arguments have: A, B, C, D, the epilogue function's; of copied matrices, and of
        the C that is D, none."""
        gone = {*copied, *("C" for name in copied if name == "D" and not self.problem.has_c)}
        first, second = (1, 0) if self.plan.config.transposed else (0, 1)
        matrices: Owners = [None if "ABCD"[number] in gone else number for number in (first, second, 2, 3)]
        next_number = 4
        for number, matrix in enumerate(self.problem.matrices[:2]):
            if matrix.parts:
                last = next_number + len(matrix.parts)
                matrices[matrices.index(number)] = [number, *range(next_number, last)]
                next_number = last
        return [*matrices, list(range(next_number, next_number + MOST_VECTORS))]

    def step(self, handle: Handle, owners: Owners) -> PreparedLaunch:
        """One launch with the values that it has now."""
        code = handle.executor._code
        if self.device not in code.loaded:
            code.load(self.device)
        values, slots = list(code.ready(self.device)), []
        bases = [matrix.array.address for matrix in self.problem.matrices]
        arguments = handle.executor.arrange(handle.args, {})
        listed = [*owners, *[None] * len(arguments)]
        for parameter, argument, owner in zip(handle.executor.parameters, arguments, listed, strict=False):
            each = iter(owner) if isinstance(owner, list) else repeat(owner)
            for value in parameter.argument.read(argument):
                if isinstance(value, DevicePointer):
                    operand = next(each)
                    if operand is not None:
                        low, high = value.low - value.address, value.high - value.address
                        shift = value.address - bases[operand] if operand < len(bases) else 0
                        slots.append(Slot(len(values), operand, low, high, shift))
                        value = value._replace(owner=None)
                    value = value if values[1] is not None else value.address
                values.append(value)
        handle.executor.release()  # the kernel may have been compiled with these tensors
        return PreparedLaunch(code, values, slots)


def captured(like: Any) -> Zeros:
    """Memory for one launch inside of a graph, which PyTorch takes from the graph's own. The first that is asked for
    is for partial sums, which are written before they are read; the flags after it are set to zero by a node."""
    make = like.new_empty

    def zeros(n: int, dtype: Any) -> Any:
        nonlocal make
        made, make = make(n, dtype=dtype.torch_dtype), like.new_zeros
        return made

    return zeros
