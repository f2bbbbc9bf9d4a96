"""``GemmUniversal``: a reusable handle of products, with CUTLASS's steps: can_implement, workspace_size, initialize,
update, run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tilewright.errors import ArgumentError, TilewrightError
from tilewright.gemm.choice.registry import candidates
from tilewright.gemm.epilogue.functions import EpilogueFunction, is_untransposed
from tilewright.gemm.family.entry import KernelEntry
from tilewright.gemm.host.arguments import SUCCESS, GemmUniversalArguments, GemmUniversalMode, Status
from tilewright.gemm.host.copies import with_copies
from tilewright.gemm.host.epilogue_operands import check_epilogue
from tilewright.gemm.host.handle import Handle
from tilewright.gemm.host.plan import Decomposition, Plan, alignment_of, limits
from tilewright.gemm.host.problem import Problem
from tilewright.gemm.host.scales import check_result, combination_of_arrays, is_array, linear_combination
from tilewright.gemm.host.transfer import zeros_beside
from tilewright.gemm.host.universal_problem import problem_of
from tilewright.gemm.host.workspace import WorkspaceBuffer, check_apart, check_stream, own_memory, workspace_memory
from tilewright.gemm.schedule.launch_arguments import Workspace, workspace_of
from tilewright.gemm.schedule.splitk import SplitK
from tilewright.lang.launch.machine import machine_of

Mode = GemmUniversalMode
MAY_PACK = {True: "ABCD", False: "AB"}
"""Matrices that may be copied to aligned rows: a function of the user's may read vectors as long as D's rows, so D is
not made longer for it."""


class GemmUniversal:
    """A product that is checked, planned and compiled once, and launched as often as wanted.

    Args:
        kernel: the name of a kernel of the library, an entry of ``kernels()``, or None for the best that can take the
            operands.
        decomposition: "auto", "data_parallel", "dynamic", "stream_k", a :class:`StreamK`, a :class:`SplitK`, or
            a :class:`StreamKScheduleSm90`.
        reduction: how blocks that share a tile add up: "mixed" (in a fixed order, which blocks is the plan's choice),
            "shared" (in a fixed order, a part of the tile each), "atomic", or "none": no blocks share a tile. None:
            as the decomposition has it. One that is named is for "stream_k", "auto" (then Stream-K), and plans whose
            blocks share tiles; it is refused where nothing would be added up, or by another rule (split-K).

    ::

        gemm = GemmUniversal(decomposition="stream_k")
        arguments = GemmUniversal.Arguments(A=a, B=b, D=d, alpha=2.0)
        workspace = torch.empty(gemm.workspace_size(arguments), dtype=torch.uint8, device="cuda")
        gemm.initialize(arguments, workspace)
        gemm.run()                         # as often as wanted, in order
        gemm.update(other_arguments)       # other matrices in the same shapes and strides, other scales
        gemm()

    Launches of one handle must follow each other (on one stream, say): their blocks use the same workspace. The arrays
    must stay alive as long as launches use them.

    >>> a, d = np.eye(32, dtype=np.float16), np.empty((32, 32), np.float16)
    >>> handle = GemmUniversal()
    >>> handle.initialize(GemmUniversal.Arguments(A=a, B=a, D=d, alpha=2.0))
    >>> handle.run()
    >>> float(d[0, 0])
    2.0
    """

    Arguments = GemmUniversalArguments

    def __init__(
        self,
        kernel: str | KernelEntry | None = None,
        decomposition: Decomposition = "auto",
        reduction: str | None = None,
    ) -> None:
        self.kernel, self.decomposition, self.reduction = kernel, decomposition, reduction
        self._ready: PreparedProblem | None = None

    def can_implement(self, arguments: GemmUniversalArguments) -> Status:
        """Whether the kernel can compute this; a :class:`Status` that is true or says why not. Nothing is launched."""
        try:
            self._plan(arguments)
        except TilewrightError as error:
            misaligned = self._misaligned(arguments)
            return misaligned[0] if misaligned else Status("kErrorInvalidProblem", str(error))
        return SUCCESS

    def workspace_size(self, arguments: GemmUniversalArguments) -> int:
        """Bytes of device memory that :meth:`initialize` wants for these arguments; 0 where it wants none."""
        return self._plan(arguments).needed.size

    def get_grid_shape(self, arguments: GemmUniversalArguments) -> tuple[int, int, int]:
        """The grid of the product's launch, in blocks; the kernel is compiled for it, and nothing is launched.

        >>> a, d = np.eye(256, dtype=np.float16), np.empty((256, 256), np.float16)
        >>> gemm = GemmUniversal("simt_f32")
        >>> gemm.get_grid_shape(GemmUniversal.Arguments(A=a.astype("f4"), B=a.astype("f4"), D=d.astype("f4")))
        (4, 1, 1)
        """
        ready = self._plan(arguments)
        ready.compile()
        return ready.product.grid()

    def maximum_active_blocks(self, arguments: GemmUniversalArguments, smem_capacity: int = -1) -> int:
        """Blocks of the kernel for these arguments that one multiprocessor holds: what its shared memory,
        ``smem_capacity`` bytes or the GPU's, registers and threads allow; 0 where a block does not fit."""
        ready = self._plan(arguments)
        smem = limits(ready.problem.machine)[1] if smem_capacity < 0 else smem_capacity
        config = ready.plan.config
        return config.blocks_at_once(smem) if config.smem_bytes <= smem else 0

    def initialize(self, arguments: GemmUniversalArguments, workspace: Any = None, stream: Any = None) -> None:
        """Check, plan and compile; set the workspace's flags to zero, on ``stream``.

        ``workspace``: a contiguous array on the operands' device, of at least :meth:`workspace_size` bytes, which
        begins at a multiple of 16. Raises ArgumentError, and launches nothing, for operands that do not go together
        and for a workspace that is missing, too small or elsewhere.
        """
        ready = self._plan(arguments)
        check_stream(stream, ready.problem.D.device)
        memory = workspace_memory(workspace, ready.needed, ready.problem.D.device)
        check_apart(memory, ready.problem.all_matrices)
        memory.clear(stream)
        ready.compile(memory)
        self._ready = ready

    def update(self, arguments: GemmUniversalArguments) -> None:
        """Go on with other matrices in the same shapes, strides and alignment, and other scales: nothing is planned,
        and the workspace stays. Raises ArgumentError for another geometry."""
        ready = self._need_ready("update")
        problem = problem_of(arguments)
        mode, count, available = ready.asked
        if (arguments.mode, arguments.batch_count) != (mode, count) or arguments.avail_sms not in (-1, available):
            raise ArgumentError(
                f"update goes on with the plan of initialize, for mode {mode.value!r}, batch_count = {count} and "
                f"avail_sms = {available}; other ones want another plan: call initialize"
            )
        if problem.geometry() != ready.problem.geometry():
            raise ArgumentError(
                f"update wants the geometry that initialize had, {ready.problem.describe()}; this is "
                f"{problem.describe()}. Call initialize"
            )
        check_apart(ready.memory, problem.all_matrices)
        function = epilogue_of(ready.plan.entry, problem, arguments.alpha, arguments.beta, arguments.epilogue)
        # The plan is the old one, so compiling finds the kernel in the cache: this makes the arguments again.
        made = PreparedProblem(problem, function, ready.plan)
        made.asked = ready.asked
        made.compile(ready.memory)
        self._ready = made

    def run(self, stream: Any = None) -> None:
        """Launch, on ``stream`` (PyTorch's, CUstream, or its handle; None: the current one)."""
        ready = self._need_ready("run")
        check_stream(stream, ready.problem.D.device)
        ready.handle(stream)

    def __call__(
        self, arguments: GemmUniversalArguments | None = None, workspace: Any = None, stream: Any = None
    ) -> None:
        """Launch; with ``arguments``, initialize first."""
        if arguments is not None:
            self.initialize(arguments, workspace, stream)
        self.run(stream)

    def bound(self) -> Callable[[], None]:
        """A callable that launches on the current stream and does nothing else."""
        return self._need_ready("bound").handle.bound()

    @property
    def plan(self) -> Plan:
        """What :meth:`initialize` chose: kernel, size, decomposition."""
        return self._need_ready("plan").plan

    def _need_ready(self, what: str) -> PreparedProblem:
        if self._ready is None:
            raise ArgumentError(f"{what}: call initialize first")
        return self._ready

    def _plan(self, arguments: GemmUniversalArguments) -> PreparedProblem:
        problem, how = problem_of(arguments), self.decomposition
        split = 1
        if arguments.mode is Mode.kGemmSplitKParallel:
            # CUTLASS gives these two modes the parts of K in batch_count, where they have no batch.
            parallel = SplitK(arguments.batch_count, "parallel")
            if how not in ("auto", parallel):
                raise ArgumentError(
                    f"mode 'gemm_split_k_parallel' with batch_count = {arguments.batch_count} is {parallel}, not "
                    f"{how!r}: call without a decomposition, or with mode 'gemm'"
                )
            how = parallel
        elif arguments.mode is Mode.kGemm and arguments.batch_count > 1:
            if how == "auto" and (self.reduction not in (None, "none") or arguments.avail_sms != -1):
                how = "stream_k"  # which alone takes these
            elif how in ("auto", "data_parallel"):
                how = SplitK(arguments.batch_count, "serial")
            elif how != "stream_k":
                raise ArgumentError(
                    f"batch_count = {arguments.batch_count} splits K in mode 'gemm', and decomposition {how!r} "
                    "divides the work by another rule: give one of them"
                )
            split = arguments.batch_count
        if problem.is_empty:
            raise ArgumentError(f"D is empty ({problem.describe()}): there is nothing to launch")
        ready = self.ready(
            problem,
            arguments.alpha,
            arguments.beta,
            arguments.epilogue,
            problem.machine,
            how,
            split,
            arguments.avail_sms,
        )
        ready.asked = GemmUniversalMode(arguments.mode), arguments.batch_count, arguments.avail_sms
        return ready

    def ready(
        self,
        problem: Problem,
        alpha: float,
        beta: float,
        epilogue: EpilogueFunction | None,
        machine: str,
        decomposition: Decomposition | None = None,
        split: int = 1,
        avail_sms: int = -1,
    ) -> PreparedProblem:
        """A problem that was read, with its epilogue function and its plan for ``machine``."""
        entries = candidates(problem.A.dtype, self.kernel)
        function = epilogue_of(entries[0], problem, alpha, beta, epilogue)
        # A kernel for D^T would call the function with D's rows and columns exchanged.
        if is_untransposed(function):
            entries = [entry.untransposed for entry in entries]
        how = self.decomposition if decomposition is None else decomposition
        packs = MAY_PACK[epilogue is None and not (is_array(alpha) or is_array(beta))]
        plan = Plan.of(problem, entries, how, machine, self.reduction, split, avail_sms, packs)
        return PreparedProblem(problem, function, plan)

    def _misaligned(self, arguments: GemmUniversalArguments) -> list[Status]:
        """The operand, if there is one, whose memory does not allow the accesses of the one kernel that was asked
        for."""
        try:
            problem = problem_of(arguments)
            (entry,) = candidates(problem.A.dtype, self.kernel)
        except (TilewrightError, ValueError):
            return []
        problems = []
        for name, needed, has in alignment_of(entry, problem):
            if has < needed:
                text = f"operand {name} needs accesses of {needed} elements; its strides and base allow {has}"
                problems.append(Status("kErrorMisalignedOperand", text, name, needed, has))
        return problems


class PreparedProblem:
    """A problem with its epilogue function and its plan; once compiled, with its memory and its handle."""

    memory: WorkspaceBuffer
    handle: Handle
    product: Handle  # the same without copies before and behind it
    asked: tuple[GemmUniversalMode, int, int]  # mode, batch_count and avail_sms of what it was made for

    def __init__(self, problem: Problem, function: EpilogueFunction, plan: Plan) -> None:
        self.problem, self.function, self.plan = problem, function, plan

    @property
    def needed(self) -> Workspace:
        plan, config = self.plan, self.plan.config
        packing = plan.packing
        seen = self.problem if packing is None else packing.placed(self.problem)
        needed = workspace_of(plan.shares, config, seen.oriented(config.transposed).shape, plan.dynamic)
        return needed if packing is None else replace(needed, packed=packing.bytes)

    def compile(self, memory: WorkspaceBuffer | None = None, machine: str | None = None) -> None:
        """Make the handle for ``machine`` (by default where the operands are), with memory of its own unless ``memory``
        is given."""
        problem = self.problem
        target = machine_of("cpu" if (machine or problem.machine) == "cpu" else "cuda")
        self.memory = memory or own_memory(self.needed, zeros_beside(target, problem.D))
        packing = self.plan.packing
        seen = problem if packing is None else packing.placed(problem, self.memory)
        handle = self.product = Handle.of(self.plan, seen, self.function, target, self.memory.parts())
        self.handle = handle if packing is None else with_copies(handle, packing, problem, seen)

    def launch(self, stream: Any = None) -> None:
        """Compile, and launch once, with memory of its own."""
        self.compile()
        self.handle(stream)


def epilogue_of(
    entry: KernelEntry, problem: Problem, alpha: float, beta: float, epilogue: EpilogueFunction | None
) -> EpilogueFunction:
    """The user's function, or alpha and beta as one."""
    check_result(entry, problem)
    if epilogue is None and (is_array(alpha) or is_array(beta)):
        function = combination_of_arrays(entry, problem, alpha, beta)
        check_epilogue(function, problem)
        return function
    if epilogue is None:
        return linear_combination(entry, problem, alpha, beta)
    if is_array(alpha) or is_array(beta) or (alpha, beta) != (1.0, 0.0):
        raise ArgumentError(
            f"alpha = {alpha} and beta = {beta} with an epilogue of your own: put them into it, for instance as "
            "Chain((LinearCombination(alpha, beta), yours))"
        )
    if not callable(epilogue):
        raise ArgumentError(f"epilogue must be called with (accumulators, tile), got {epilogue!r}")
    check_epilogue(epilogue, problem)
    return epilogue
