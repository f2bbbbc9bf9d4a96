"""``gemm(a, b)``: arrays in, product out; and ``launcher``, which leaves only the launch to be done."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from tilewright.errors import ArgumentError
from tilewright.gemm.arrays import Matrix
from tilewright.gemm.choice.registry import candidates
from tilewright.gemm.choice.simulated import multiply_adds, warn_if_slow
from tilewright.gemm.epilogue.functions import EpilogueFunction
from tilewright.gemm.family.entry import KernelEntry
from tilewright.gemm.host.plan import Decomposition, kernel_of_gpu, simulated_gpu
from tilewright.gemm.host.problem import Problem, machine_name
from tilewright.gemm.host.transfer import fetch_result, transfer
from tilewright.gemm.host.universal import GemmUniversal
from tilewright.gemm.operators.repeated import torch_key
from tilewright.gemm.operators.repeated_call import REMEMBERED, is_torch, repeated_call
from tilewright.gemm.operators.torch_state import any_recorded
from tilewright.lang.launch.machine import machine_of
from tilewright.reports import Report, Row

MOST_NAMED = 8  # instructions in a report


@dataclass
class GemmReport(Report):
    """What ran. ``d`` is the product; ``decomposition`` "data_parallel", "dynamic", "split_k" or "stream_k";
    ``seconds`` the time of the kernel; ``instructions`` per warp by mnemonic and ``bank_conflicts`` (extra
    shared-memory wavefronts) are the simulator's alone; ``passed_over`` says why faster kernels could not be taken
    as the operands are; ``packed`` names the matrices (A, B, C, D) that were copied so that one of them could;
    ``on_gpu`` is the kernel that a GPU would get where the simulator took another, which it finishes sooner."""

    d: Any
    kernel: str
    machine: str
    tile: tuple[int, int, int]
    decomposition: str
    grid: tuple[int, int, int] = (0, 0, 0)
    seconds: float = 0.0
    instructions: dict[str, int] = field(default_factory=dict)
    bank_conflicts: int | None = None
    passed_over: dict[str, str] = field(default_factory=dict)
    packed: tuple[str, ...] = ()
    on_gpu: str = ""
    work: int = field(default=0, repr=False)
    """Multiply-adds, of which progress is a part."""

    def take(self, profile: Any) -> None:
        """What was measured."""
        self.seconds, self.bank_conflicts = profile.seconds, profile.bank_conflicts
        self.instructions = profile.instructions or {}
        self.grid = profile.launches[int(self.packed not in ((), ("D",)))][1].grid  # the first copies

    def heading(self) -> str:
        return f"{' x '.join(map(str, self.d.shape))} product by {self.kernel}"

    def rows(self) -> list[Row]:
        """The lines of the printed report."""
        rows = [
            ("machine", self.machine),
            ("tile", " x ".join(map(str, self.tile))),
            ("decomposition", self.decomposition),
            ("grid", " x ".join(map(str, self.grid))),
            ("time to simulate" if self.machine == "cpu" else "time of the kernel", f"{self.seconds * 1e6:.4g} us"),
        ]
        if self.instructions:
            most = sorted(self.instructions.items(), key=lambda item: -item[1])
            more = f" and {len(most) - MOST_NAMED} others" if len(most) > MOST_NAMED else ""
            named = ", ".join(f"{count:,} {name}" for name, count in most[:MOST_NAMED])
            rows.append(("instructions a warp", named + more))
        if self.bank_conflicts is not None:
            rows.append(("extra wavefronts of shared memory", f"{self.bank_conflicts:,}"))
        if self.on_gpu:
            rows.append(("kernel on a GPU (sm_90)", f"{self.on_gpu}, which takes longer to simulate"))
        if self.packed:
            rows.append(("copied for a faster kernel", ", ".join(self.packed)))
        return rows + [(f"not taken: {name}", why) for name, why in self.passed_over.items()]


def gemm(
    a: Any,
    b: Any,
    c: Any = None,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    kernel: str | KernelEntry | None = None,
    machine: str = "auto",
    out: Any = None,
    decomposition: Decomposition = "auto",
    reduction: str | None = None,
    epilogue: EpilogueFunction | None = None,
    progress: Callable[[float], None] | None = None,
    check: str = "",
) -> GemmReport:
    """D = alpha * a @ b + beta * c, or what ``epilogue`` makes of the sums (``gemm.epilogue.functions``).

    Args:
        a: (M, K) or (L, M, K): a NumPy array or torch tensor with any strides, of fp16, bf16 or fp32 and the other
            dtypes that kernels have; one dtype for all operands.
        b: (K, N) or (L, K, N).
        c: (M, N) or (L, M, N); left out, beta must be 0.
        alpha: the factor of the product.
        beta: the factor of ``c``.
        kernel: a kernel's name, as ``tilewright show`` lists them; by default the fastest one that takes the operands.
        machine: "cpu" is the simulator, "gpu" a CUDA device (NumPy arrays are copied there and back), "auto" follows
            the arrays.
        out: where D goes; it may be ``c`` itself. By default a new array.
        decomposition: "data_parallel" gives each block one tile; "dynamic" lets blocks draw tiles as they go (Hopper
            and Blackwell kernels; for a GPU with other work, too); "stream_k" deals the work out evenly where that
            pays; "auto" chooses between the first, the last, and clusters that split K; or a :class:`StreamK` of your
            own for the kernel's tile.
        reduction: how blocks that share a tile add up ("mixed", "atomic", "shared", or "none": no blocks share a tile);
            one that is named is for decompositions that share tiles (:class:`GemmUniversal`).
        epilogue: what is made of the sums (``gemm.epilogue.functions``), in place of alpha, beta and ``c``.
        progress: is called with the fraction of the work that is done, 0 to 1.
        check: which of the simulator's checks run (docs/checking.md); "default" unless it is set otherwise.

    Raises:
        ArgumentError: operands that do not fit together, or no kernel that takes them.

    >>> a = np.eye(32, dtype=np.float16)
    >>> report = gemm(a, 2 * a, a, alpha=3, beta=1)
    >>> float(report.d[0, 0]), report.machine
    (7.0, 'cpu')
    """
    if progress is not None and not callable(progress):
        raise ArgumentError(f"progress must be called with a fraction of the work, got {progress!r}")
    product = GemmCall(a, b, c, out, alpha, beta, kernel, machine, decomposition, reduction, epilogue)
    key = None if check else product.key()
    if key is None:
        return product.run(progress, check)
    return repeated(product, key, progress)


@dataclass(frozen=True)
class GemmCall:
    """A call of :func:`gemm`: what it multiplies, and how."""

    a: Any
    b: Any
    c: Any
    out: Any
    alpha: float
    beta: float
    kernel: str | KernelEntry | None
    machine: str
    decomposition: Decomposition
    reduction: str | None
    epilogue: EpilogueFunction | None

    @property
    def options(self) -> tuple[Any, ...]:
        return self.alpha, self.beta, self.kernel, self.machine, self.decomposition, self.reduction

    def key(self) -> Any:
        """The key of a product of PyTorch tensors that may be repeated where they are; None for any other."""
        arrays = self.a, self.b, self.c, self.out
        if self.epilogue is not None or not (is_torch(self.a) and is_torch(self.b)):
            return None
        if any(x is not None and not is_torch(x) for x in arrays) or any_recorded(sys.modules["torch"], *arrays):
            return None
        if self.machine not in ("auto", "cpu" if self.a.is_cpu else "gpu"):  # copies are there and back
            return None
        try:
            key = torch_key(*arrays), self.options, simulated_gpu() if self.a.is_cpu else None
            hash(key)
        except (RuntimeError, TypeError):  # no strides, no hash: whatever it is, it is an error or a StreamK
            return None
        return key

    def run(self, progress: Callable[[float], None] | None, check: str) -> GemmReport:
        """Check, choose, compile, launch and wait."""
        entries = candidates(Matrix.of("a", self.a).dtype, self.kernel)
        problem = Problem.of(self.a, self.b, self.c, self.out, entries[0].config.c.dtype)
        where = machine_name(self.machine, problem)
        target = machine_of("cpu" if where == "cpu" else "cuda")
        # A copy on another machine may have another layout than the array.
        elsewhere = where != problem.machine and not problem.is_empty
        moved = transfer(problem, target) if elsewhere else problem
        ready = GemmUniversal(self.kernel, self.decomposition, self.reduction).ready(
            moved, self.alpha, self.beta, self.epilogue, where
        )
        plan = ready.plan
        report = GemmReport(problem.D.source, plan.entry.name, where, plan.config.tile, plan.decomposition)
        report.passed_over, report.packed = plan.passed_over, plan.packing.names if plan.packing else ()
        if where == "cpu" and self.kernel is None:
            report.on_gpu = kernel_of_gpu(problem, entries, self.decomposition, self.reduction, plan)
        if problem.is_empty:
            return report
        ready.compile()
        report.work = multiply_adds(plan.config, problem.shape)
        if where == "cpu":
            warn_if_slow(plan.entry.name, plan.config, problem.shape)
        with target.checking(check) if check else nullcontext(), target.profile(progress, report.work) as profile:
            ready.handle()
        if moved is not problem:
            fetch_result(target, moved, problem)
        report.take(profile)
        return report


REPORTS: dict[Any, GemmReport] = {}
"""What ran for calls that are repeated, without results."""


def repeated(product: GemmCall, key: Any, progress: Callable[[float], None] | None) -> GemmReport:
    """The report of a call whose launches may be kept: to plan and to bind one takes 1.6 ms of a GPU's host."""
    made: list[GemmReport] = []

    def run() -> Any:
        made.append(product.run(progress, ""))
        return made[0].d

    tensors = product.a, product.b, product.c, product.out
    call = partial(repeated_call, "gemm", tensors, product.out, product.options, run)
    kept_report = REPORTS.get(key)
    if kept_report is None:
        call()
    else:
        with machine_of("cpu" if kept_report.machine == "cpu" else "cuda").profile(
            progress, kept_report.work
        ) as profile:
            result = call()
    if kept_report is None or made:  # it was planned: this is the first call, or it was not kept
        if len(REPORTS) >= REMEMBERED:
            REPORTS.clear()
        REPORTS[key] = replace(made[0], d=None)
        return made[0]
    report = replace(kept_report, d=result)
    report.take(profile)
    return report


def launcher(
    a: Any,
    b: Any,
    out: Any,
    c: Any = None,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    kernel: str | KernelEntry | None = None,
    decomposition: Decomposition = "auto",
    reduction: str | None = None,
    epilogue: EpilogueFunction | None = None,
) -> Callable[[], None]:
    """A callable that launches out = alpha * a @ b + beta * c on the arrays' machine and does nothing else.

    All checks and the compilation happen here, so the callable can be timed or captured into a CUDA graph. The arrays
    must stay alive, and so must the callable while a graph has captured it; extents must not be 0. Launches of one
    callable must not overlap: blocks that share or draw tiles do so through the callable's workspace.

    >>> a, out = np.eye(32, dtype=np.float16), np.empty((32, 32), np.float16)
    >>> launch = launcher(a, a, out)
    >>> launch()
    >>> bool((out == a).all())
    True
    """
    problem = Problem.of(a, b, c, out)
    ready = GemmUniversal(kernel, decomposition, reduction).ready(problem, alpha, beta, epilogue, problem.machine)
    if problem.is_empty:
        raise ArgumentError(f"out is empty ({problem.D.shape[:2]}): there is nothing to launch")
    ready.compile()
    return ready.handle.bound()
