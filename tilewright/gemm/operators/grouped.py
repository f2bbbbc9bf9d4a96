"""``gemm_grouped``: products of different sizes in one launch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tilewright import Int32
from tilewright.errors import ArgumentError
from tilewright.gemm.arrays import Matrix
from tilewright.gemm.choice.registry import candidates
from tilewright.gemm.epilogue.activations import activation_of
from tilewright.gemm.epilogue.functions import Chain
from tilewright.gemm.family.accesses import OperandAccess, group_accesses
from tilewright.gemm.family.entry import KernelEntry
from tilewright.gemm.host.copies import copies
from tilewright.gemm.host.handle import Handle
from tilewright.gemm.host.packing import Packing
from tilewright.gemm.host.plan import capability_of, limits
from tilewright.gemm.host.problem import Problem, check_vector
from tilewright.gemm.host.scales import check_result, check_scale, linear_combination
from tilewright.gemm.host.transfer import zeros_beside
from tilewright.gemm.host.workspace import own_memory
from tilewright.gemm.kernel.group_table import GroupBias
from tilewright.gemm.operators.arrays import new_result
from tilewright.gemm.operators.group_launch import Launch, entry_of, majors
from tilewright.gemm.schedule.launch_arguments import Workspace
from tilewright.lang.arguments.arrays import array_of
from tilewright.lang.launch.machine import machine_of

MOST_ELEMENTS = 2**31
DECOMPOSITIONS = ("auto", "data_parallel", "stream_k")


@dataclass(frozen=True)
class GroupLaunch:
    """A launch of :func:`gemm_grouped`: its kernel and tile, the numbers of its problems in the list, why faster
    kernels could not take them, by name, and how tiles are dealt out."""

    kernel: str
    tile: tuple[int, int, int]
    problems: tuple[int, ...]
    passed_over: dict[str, str]
    decomposition: str = "data_parallel"


class GroupResults(list[Any]):
    """The results of :func:`gemm_grouped`, in the order of the problems, and the ``launches`` that made them."""

    launches: tuple[GroupLaunch, ...] = ()


def gemm_grouped(
    problems: Sequence[Sequence[Any]],
    out: Sequence[Any] | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    bias: Sequence[Any] | None = None,
    activation: str | None = None,
    kernel: str | KernelEntry | None = None,
    decomposition: str = "auto",
) -> GroupResults:
    """D_i = activation(alpha * A_i @ B_i + beta * C_i + bias_i) for a list of problems of any sizes, in one launch.

    Persistent blocks take the tiles of all problems in turn, so small
    ones fill the GPU together. Problems whose operands have other layouts (row- or column-major) need other kernels:
    there is one launch for each kind. Matrices without a contiguous mode (slices with steps, reversed or broadcast
    along both modes), and a C that is row-major where D is column-major, are copied first. On Hopper problems that TMA
    cannot take (rows that do not begin at multiples of 16 bytes, K = 0) take the mma.sync kernel; the result's
    ``launches`` says which kernel took which, and why.

    Args:
        problems: (a, b) or (a, b, c) for each: (M_i, K_i), (K_i, N_i) and (M_i, N_i), matrices of one framework on one
            device, with one dtype for all.
        out: an array (M_i, N_i) for each result; made if it is None.
        alpha: the factor of the products.
        beta: the factor of c; where it is not 0, each problem has one.
        bias: a vector of N_i numbers for each problem, of one dtype.
        activation: a name, as in :func:`matmul`, applied last, before rounding.
        kernel: a kernel's name, or its entry; by default the one that is chosen.
        decomposition: "data_parallel": each tile is one block's, "stream_k": the k tiles of all tiles of all problems,
            laid end to end, are dealt out to the blocks in even shares, and blocks that share a tile add up their sums
            in a fixed order: for few tiles of long, or very different, K. "auto" is the first.

    Raises:
        ArgumentError: operands that do not go together; nothing is launched.

    >>> sizes = ((3, 16, 8), (70, 24, 40), (2, 8, 13))
    >>> found = gemm_grouped([(np.ones((m, k), np.float16), np.ones((k, n), np.float16)) for m, n, k in sizes])
    >>> [(d.shape, d[0, 0].item()) for d in found]
    [((3, 16), 8.0), ((70, 24), 40.0), ((2, 8), 13.0)]
    >>> [(launch.kernel, launch.problems) for launch in found.launches]
    [('hopper_f16', (0, 1)), ('tensorop_f16', (2,))]
    """
    if decomposition not in DECOMPOSITIONS:
        known = ", ".join(DECOMPOSITIONS)
        raise ArgumentError(f"there is no decomposition {decomposition!r} of groups: it is one of {known}")
    for name, factor in (("alpha", alpha), ("beta", beta)):
        check_scale(name, factor)
    made = [problem_of(i, one, None if out is None else out[i], kernel) for i, one in enumerate(checked(problems, out))]
    if not made:
        return GroupResults()
    first = made[0]
    check_one_kind(made, beta)
    check_apart(made)
    vectors = biases(bias, made)
    entries = candidates(first.A.dtype, kernel)
    function = epilogue_of(entries[0], first, alpha, beta, vectors, activation)
    launches, listed = [], []
    before, seen, after = with_contiguous(made)
    for entry, numbers, reasons in kinds_of(seen, entries):
        addresses = [0 if vectors is None else vectors[i].address for i in numbers]
        launch = Launch(
            [seen[i] for i in numbers], entry, function, addresses, limits(first.machine), decomposition == "stream_k"
        )
        launches.append(launch)
        how = "stream_k" if launch.sharing else "data_parallel"
        listed.append(GroupLaunch(entry.name, launch.config.tile, tuple(numbers), reasons, how))
    for copy in before:
        copy()
    for launch in launches:
        launch.run()
    for copy in after:
        copy()
    results = GroupResults(problem.D.source for problem in made)
    results.launches = tuple(listed)
    return results


def with_contiguous(
    problems: list[Problem], accesses: Callable[[Problem], list[OperandAccess]] = group_accesses
) -> tuple[list[Handle], list[Problem], list[Handle]]:
    """The problems as kernels of groups can take them, with the copies that this wants before and after the launches:
    of matrices that have no contiguous mode, and of C where its layout is not that of D. ``accesses``: what more the
    only kernels that there are assume. What is read for each column is as long as D's rows, which stay as they are."""
    before, seen, after = [], [], []
    for problem in problems:
        packing = None if problem.is_empty else Packing.needed(problem, accesses(problem))
        if packing is not None and not packing.longer:
            given, target = problem, machine_of(problem.D.device)
            needed = Workspace(0, Int32, 0, packing.bytes)
            problem = packing.placed(given, own_memory(needed, zeros_beside(target, given.D)))
            first, last = copies(packing, given, problem)
            before += [first] if first is not None else []
            after += [last] if last is not None else []
        seen.append(problem)
    return before, seen, after


def check_one_kind(problems: list[Problem], beta: float) -> None:
    """Refuse problems of several types or devices, and those without the c that is to be added."""
    first = problems[0]
    for i, problem in enumerate(problems):
        for name, one, other in (("a", problem.A, first.A), ("out", problem.D, first.D)):
            if (one.dtype, one.device) != (other.dtype, other.device):
                raise ArgumentError(
                    f"problem {i}: {name} is {one.dtype} on {one.device}, that of problem 0 {other.dtype} on "
                    f"{other.device}: all problems of a group have one type and device"
                )
        if beta and not problem.has_c:
            raise ArgumentError(f"problem {i}: beta = {beta} needs a matrix c")


def kinds_of(
    problems: list[Problem], entries: list[KernelEntry]
) -> Iterator[tuple[KernelEntry, list[int], dict[str, str]]]:
    """A kernel, the numbers of the problems that it takes in one launch, and why entries before it were passed over."""
    kinds: dict[Any, list[int]] = {}
    reasons: dict[str, dict[str, str]] = {}
    version = capability_of(problems[0].machine)
    for i, problem in enumerate(problems):
        check_result(entries[0], problem)
        if not problem.is_empty:
            entry, passed_over = entry_of(f"problem {i}: ", problem, entries, version)
            reasons.setdefault(entry.name, passed_over)
            kinds.setdefault((entry, majors(problem)), []).append(i)
    for (entry, _), numbers in kinds.items():
        yield entry, numbers, reasons[entry.name]


def biases(bias: Sequence[Any] | None, problems: list[Problem]) -> list[Any] | None:
    """The arrays of the vectors, which fit their problems and are of one type."""
    if bias is None:
        return None
    if len(bias) != len(problems):
        raise ArgumentError(f"bias has {len(bias)} vectors for {len(problems)} problems")
    arrays: list[Any] = []
    for i, (vector, problem) in enumerate(zip(bias, problems, strict=True)):
        array = array_of(vector)
        n = problem.shape[1]
        if array.shape != (n,) or (n > 1 and array.stride != (1,)):
            raise ArgumentError(
                f"problem {i}: bias must be a contiguous vector of {n} elements, one for each column of the result, "
                f"not of shape {tuple(array.shape)} and strides {tuple(array.stride)}"
            )
        if array.device != problem.D.device or array.dtype is not (arrays[0] if arrays else array).dtype:
            raise ArgumentError(
                f"problem {i}: bias is {array.dtype} on {array.device}: all vectors are of one type, on the device of "
                f"the matrices ({problem.D.device})"
            )
        for j, other in enumerate(problems):
            try:
                check_vector(f"the bias of problem {i}", array, other)
            except ArgumentError as error:
                raise ArgumentError(f"problem {j}: {error}") from None
        arrays.append(array)
    return arrays


def epilogue_of(
    entry: KernelEntry, first: Problem, alpha: float, beta: float, vectors: list[Any] | None, activation: str | None
) -> Any:
    """Gives the epilogue function of a kernel that computes the problems as they are, or ``transposed``."""
    parts: list[Any] = [linear_combination(entry, first, alpha, beta)]
    after = [] if activation is None else [activation_of(activation, entry.config.acc_dtype, first.D.dtype)]

    def function(transposed: bool) -> Any:
        vector = [] if vectors is None else [GroupBias(vectors[0].dtype, 0 if transposed else 1)]
        whole = (*parts, *vector, *after)
        return whole[0] if len(whole) == 1 else Chain(whole)

    return function


def checked(problems: Any, out: Any) -> Sequence[Any]:
    """The list, if it is one of (a, b) and (a, b, c), and ``out`` as long."""
    if not isinstance(problems, Sequence):
        raise ArgumentError(f"gemm_grouped takes a list of problems, got {type(problems).__name__}")
    listed = list(problems)
    for i, one in enumerate(listed):
        if not isinstance(one, (tuple, list)) or len(one) not in (2, 3):
            raise ArgumentError(f"problem {i} must be (a, b) or (a, b, c), got {type(one).__name__}")
    if out is not None and len(out) != len(listed):
        raise ArgumentError(f"out has {len(out)} arrays for {len(listed)} problems")
    return listed


def problem_of(number: int, arrays: Sequence[Any], out: Any, kernel: Any) -> Problem:
    """One problem; errors say which of the list it is."""
    try:
        a, b, c = (*arrays, None)[:3]
        A, B = Matrix.of("a", a), Matrix.of("b", b)
        if len(a.shape) != 2 or len(b.shape) != 2:
            raise ArgumentError("a and b must be matrices (2 dimensions)")
        kind = candidates(A.dtype, kernel)[0].config.c.dtype
        if out is None:
            out = new_result(a, (A.shape[0], B.shape[1]), Matrix.of("c", c).dtype if c is not None else kind)
        problem = Problem.of(a, b, c, out)
        if problem.source is not None:
            raise ArgumentError(f"c is {problem.source.dtype}, out is {problem.D.dtype}; in lists both have one dtype")
        for matrix in problem.matrices:
            reach = sum((n - 1) * abs(d) for n, d in zip(matrix.shape, matrix.stride, strict=True) if n)
            if reach >= MOST_ELEMENTS:
                raise ArgumentError(f"{matrix.name} spans {reach} elements, more than 32-bit offsets reach")
    except ArgumentError as error:
        raise ArgumentError(f"problem {number}: {error}") from None
    return problem


def check_apart(problems: list[Problem]) -> None:
    """No result may overlap with what another problem reads or writes: problems run in any order."""
    writes = sorted((*problem.D.array.bounds, i) for i, problem in enumerate(problems))
    for (_, high, i), (low, _, j) in zip(writes, writes[1:], strict=False):
        if low < high:
            raise ArgumentError(f"the results of problems {i} and {j} overlap")
    for i, problem in enumerate(problems):
        low, high = problem.D.array.bounds
        for j, other in enumerate(problems):
            for matrix in (other.A, other.B, other.C) if i != j else ():
                start, end = matrix.array.bounds
                if low < end and start < high:
                    raise ArgumentError(f"the result of problem {i} overlaps {matrix.name} of problem {j}")
