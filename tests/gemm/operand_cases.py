"""Products of operands in every layout, through every entry point: what a search draws, and compares with float64.

A case is a number: it says the kernel, the entry point and the operands. ``check(case)`` computes the product and fails
where a number of the result is wrong, or where a byte outside of the result has changed.

``python -m tests.gemm.operand_search`` (:mod:`.operand_search`) runs many of them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.export.harness import COMPILER
from tests.export.simulated import SimulatedFunction
from tests.gemm.operand_draws import Case, Drawn, aligned_case, drawn_array, drawn_case
from tests.gemm.operand_outputs import by_outputs
from tests.gemm.operand_scales import by_offsets, by_scaled
from tests.gemm.operand_weights import by_mixed, by_sparse
from tilewright import cute
from tilewright.errors import ArgumentError, TilewrightError
from tilewright.gemm import GemmUniversal, gemm, gemm_grouped, kernels, launcher, matmul
from tilewright.gemm.epilogue.functions import LinearCombination
from tilewright.gemm.family.base import family_of, kernel_of
from tilewright.gemm.family.entry import KernelEntry
from tilewright.gemm.host.plan import Plan
from tilewright.gemm.host.problem import Problem
from tilewright.gemm.schedule.launch_arguments import decomposition_of


class Skipped(Exception):
    """The entry point does not have such a product."""


# -- the entry points: each computes a case into case.d ----------------------------------------------------------------


def by_gemm(case: Case) -> np.ndarray:
    how = str(case.rng.choice(["auto", "auto", "data_parallel", "stream_k"]))
    kept = case.rng.random() < 0.2  # a result of its own
    report = gemm(
        case.a.view,
        case.b.view,
        case.source,
        alpha=case.alpha,
        beta=case.beta,
        kernel=case.kernel,
        out=None if kept else case.d.view,
        decomposition=how,
    )
    return report.d


def by_launcher(case: Case) -> np.ndarray:
    if 0 in case.d.view.shape:
        raise Skipped
    launcher(case.a.view, case.b.view, case.d.view, case.source, alpha=case.alpha, beta=case.beta, kernel=case.kernel)()
    return case.d.view


def by_matmul(case: Case) -> np.ndarray:
    out = None if case.rng.random() < 0.2 else case.d.view
    more = {"c": case.source, "beta": case.beta} if case.c is not None else {}
    return matmul(case.a.view, case.b.view, out, alpha=case.alpha, **case.by, **more)


def universal(case: Case, decomposition: Any = "auto", **more: Any) -> np.ndarray:
    if 0 in case.d.view.shape:
        raise Skipped
    given = {"A": case.a.view, "B": case.b.view, "C": case.source, "D": case.d.view} | more
    arguments = GemmUniversal.Arguments(alpha=case.alpha, beta=case.beta, **given)
    handle = GemmUniversal(case.kernel, decomposition)
    status = handle.can_implement(arguments)
    try:
        workspace = np.zeros(handle.workspace_size(arguments) + 16, np.uint8)
        handle.initialize(arguments, workspace[-workspace.ctypes.data % 16 :])
    except TilewrightError:
        assert not status, "can_implement says kSuccess for what initialize refuses"
        raise
    assert status, f"can_implement says {status}, and initialize takes it"
    handle.run()
    return case.d.view


def by_universal(case: Case) -> np.ndarray:
    return universal(case)


def by_serial_split(case: Case) -> np.ndarray:
    return universal(case, batch_count=2)


def by_parallel_split(case: Case) -> np.ndarray:
    return universal(case, mode="gemm_split_k_parallel", batch_count=2)


def by_batched(case: Case) -> np.ndarray:
    return universal(case, mode="batched")


def by_array(case: Case) -> np.ndarray:
    lists = {
        name: None if x is None else list(x)
        for name, x in (("A", case.a.view), ("B", case.b.view), ("C", case.source), ("D", case.d.view))
    }
    return universal(case, mode="array", **lists)


def by_index(case: Case) -> np.ndarray:
    """Rows of A and columns of B by index, and where D's rows go: a permutation of each."""
    (m, n), rng = case.d.view.shape, case.rng
    if 0 in (m, n):
        raise Skipped
    rows, columns, to = (rng.permutation(extent).astype(np.int32) for extent in (m, n, m))
    whole = case.alpha * (case.a.view.astype(float)[rows] @ case.b.view.astype(float)[:, columns])
    expected = np.zeros((m, n))
    expected[to] = whole
    if case.beta:
        expected += case.beta * case.source.astype(float)
    case.expected = expected
    return universal(case, gather_A_indices=rows, scatter_D_indices=to, gather_B_indices=columns)


def by_grouped(case: Case) -> np.ndarray:
    problem = (case.a.view, case.b.view) if case.c is None else (case.a.view, case.b.view, case.source)
    (found,) = gemm_grouped([problem], [case.d.view], alpha=case.alpha, beta=case.beta, kernel=case.kernel)
    return found


def compiled_for_another(case: Case) -> tuple[Any, Case, tuple[Any, ...], tuple[Any, Any], list[np.ndarray]]:
    """The kernel compiled for other operands than the case's: it refuses what it was not compiled for. With these
    operands, its arguments for them, those that are not tensors, and the case's arrays as the kernel sees them."""
    if 0 in case.d.view.shape or case.a.view.shape[-1] == 0:
        raise Skipped
    other = corner(case) if case.rng.random() < 0.6 else aligned_case(case.rng, case.entry)
    for one in (case, other):
        one.alpha, one.beta, one.c = 1.0, 0.0, None
        one.expected = one.product()
    made_for, config, function, how = compiled_parts(other)
    tensors = tensors_of(made_for, config)
    executor = cute.compile(kernel_of(config), *tensors, function, how)
    return executor, other, (*tensors, function, how), (function, how), plain_operands(compiled_parts(case)[0])


def by_compiled(case: Case) -> np.ndarray:
    executor, other, made_for, numbers, arrays = compiled_for_another(case)
    executor(*made_for)
    verify(other, other.d.view)
    tf32 = case.entry.name.endswith("tf32")
    executor(*[as_a_user_passes(x, case.rng, tf32 and i < 2) for i, x in enumerate(arrays)], *numbers)
    return case.d.view


def by_exported(case: Case) -> np.ndarray:
    """The same in C: what the launches of the exported function do in the simulator."""
    if COMPILER is None:
        raise Skipped
    executor, _, _, numbers, arrays = compiled_for_another(case)
    SimulatedFunction(executor)(arrays, numbers, [x.memory for x in case.drawn])
    return case.d.view


def corner(case: Case) -> Case:
    """The product of the first rows and columns, which lie as all of them do."""
    extents = *case.d.view.shape, case.a.view.shape[1]
    m, n, k = (n if case.rng.random() < 0.5 else int(case.rng.integers(1, n + 1)) for n in extents)
    views = case.a.view[:m, :k], case.b.view[:k, :n], case.d.view[:m, :n]
    a, b, d = (Drawn(view, x.memory) for view, x in zip(views, (case.a, case.b, case.d), strict=True))
    return Case(case.rng, case.entry, case.named, a, b, None, d, 1.0, 0.0, False)


def as_a_user_passes(x: np.ndarray, rng: np.random.Generator, tf32: bool) -> Any:
    """An array as it is, or as a tensor with static or run-time extents and strides, with the alignment that it has."""
    kind, align = rng.random(), 16 if x.ctypes.data % 16 == 0 else x.itemsize
    if kind < 0.3 and not tf32:
        return x
    tensor = cute.runtime.from_dlpack(x, assumed_align=align, force_tf32=tf32)
    inner = next((mode for mode, step in enumerate(x.strides) if step == x.itemsize), None)
    return tensor if kind < 0.5 else tensor.mark_all_dynamic(inner)


def compiled_parts(case: Case) -> tuple[Problem, Any, Any, Any]:
    """The problem as the kernel sees it, the configuration, the epilogue function and the decomposition."""
    if 0 in case.d.view.shape or case.a.view.shape[-1] == 0:
        raise Skipped
    return parts_of(Problem.of(case.a.view, case.b.view, case.source, case.d.view), case.entry, case.alpha, case.beta)


def parts_of(
    problem: Problem, entry: KernelEntry, alpha: float = 1.0, beta: float = 0.0
) -> tuple[Problem, Any, Any, Any]:
    config = Plan.of(problem, [entry], "data_parallel", "cpu").config
    function = LinearCombination(config.acc_dtype(alpha), config.acc_dtype(beta))
    memory = np.zeros(16, np.int64)
    how = decomposition_of(None, config, memory, memory.view(np.int32), 4)
    return problem.oriented(config.transposed).read_as(config.a.dtype), config, function, how


def tensors_of(seen: Problem, config: Any) -> list[Any]:
    """A, B, C and D as the library passes them."""
    matrices = seen.A, seen.B.transposed(), seen.C, seen.D
    return list(family_of(config).tensors(config, *matrices))


def plain_operands(seen: Problem) -> list[Any]:
    """A, B, D and D as a user passes them: views, with nothing promised."""
    found = []
    for matrix in (seen.A, seen.B.transposed(), seen.D, seen.D):
        array = matrix.array
        low, high = array.bounds
        memory = (ctypes.c_uint8 * (high - low)).from_address(low)
        strides = [step * array.dtype.bytes for step in matrix.stride]
        found.append(np.ndarray(matrix.shape, matrix.source.dtype, memory, array.address - low, strides))
    return found


def by_bias(case: Case) -> np.ndarray:
    """matmul with a bias and relu."""
    if case.d.view.ndim != 2:
        raise Skipped
    case.bias = drawn_array(case.rng, case.d.view.shape[-1:], case.d.view.dtype)
    case.expected = np.maximum(case.expected + case.bias.view.astype(float), 0)
    return matmul(
        case.a.view,
        case.b.view,
        case.d.view,
        case.source,
        alpha=case.alpha,
        beta=case.beta,
        **case.by,
        bias=case.bias.view,
        activation="relu",
    )


def by_vector(case: Case) -> np.ndarray:
    """A column of B, or a row of A: matrix by vector."""
    if 0 in case.a.view.shape + case.b.view.shape:
        raise Skipped
    a, b = case.a.view, case.b.view
    number = int(case.rng.integers(b.shape[1]))
    case.d, case.c, case.beta = Drawn(matmul(a, b[:, number], **case.by), np.zeros(1)), None, 0.0
    case.expected = a.astype(float) @ b[:, number].astype(float)
    return case.d.view


def torch_of(x: np.ndarray) -> Any:
    """The same memory as a PyTorch tensor; Skipped where PyTorch has no such one."""
    import torch

    if any(step < 0 for step in x.strides):
        raise Skipped
    kinds = {"bfloat16": torch.bfloat16, "float8_e4m3fn": torch.float8_e4m3fn, "float8_e5m2": torch.float8_e5m2}
    if x.dtype.name not in kinds:
        return torch.from_numpy(x)
    return torch.from_numpy(x.view({1: np.int8, 2: np.int16}[x.itemsize])).view(kinds[x.dtype.name])


def by_torch(case: Case) -> np.ndarray:
    """matmul of PyTorch tensors, twice: the second time by the way for geometries that were seen."""
    a, b, d = (torch_of(x) for x in (case.a.view, case.b.view, case.d.view))
    c = None if case.c is None else d if case.in_place else torch_of(case.c.view)
    for _ in range(1 if case.in_place else 2):
        matmul(a, b, d, c, alpha=case.alpha, beta=case.beta, **case.by)
    return case.d.view


def by_operator(case: Case) -> np.ndarray:
    """``torch.ops.tilewright.matmul``, which chooses the kernel itself."""
    result, _, _ = operator_call(case, torch_ops_matmul)
    return result.double().cpu().numpy()


def torch_ops_matmul(a: Any, b: Any, c: Any, bias: Any, alpha: float, beta: float) -> Any:
    import torch

    import tilewright.gemm.operators.torch_op  # noqa: F401 - registers the operator

    return torch.ops.tilewright.matmul(a, b, c, bias, alpha, beta)


def operator_call(case: Case, call: Callable[..., Any], graded: bool = False) -> tuple[Any, list[Any], list[Any]]:
    """The result of ``call(a, b, c, bias, alpha, beta)``, its tensors, and the same of float64."""
    case.named = False
    if case.rng.random() < 0.6:
        case.bias = drawn_array(case.rng, case.d.view.shape[-1:], case.d.view.dtype, signed=False)
    views = case.a.view, case.b.view, case.source, None if case.bias is None else case.bias.view
    given = [None if x is None else torch_of(x).detach().requires_grad_(graded) for x in views]
    wide = [None if x is None else x.detach().double().requires_grad_(graded) for x in given]
    if case.bias is not None:
        case.expected = case.expected + views[3].astype(float)
    return call(*given, case.alpha, case.beta), given, wide


def by_gradient(case: Case) -> np.ndarray:
    """The gradients with respect to A, B, C and the bias, by the operator and by matmul."""
    import torch

    case.d.view[...] = np.clip(case.d.view.astype(float), -3, 3)
    case.d.before = case.d.memory.copy()
    case.expected = case.product()
    call = (
        torch_ops_matmul
        if case.rng.random() < 0.5
        else lambda a, b, c, bias, alpha, beta: matmul(a, b, None, c, alpha=alpha, beta=beta, bias=bias)
    )
    result, given, wide = operator_call(case, call, graded=True)
    grad = torch_of(case.d.view).to(result.dtype) if case.rng.random() < 0.5 else torch.ones_like(result)
    result.backward(grad)
    a, b, c, bias = wide
    reference = case.alpha * (a @ b) + (0 if c is None else case.beta * c) + (0 if bias is None else bias)
    reference.backward(grad.double())
    for name, x, y in zip(("a", "b", "c", "the bias"), given, wide, strict=True):
        if x is not None:
            found = torch.zeros_like(x) if x.grad is None else x.grad
            np.testing.assert_array_equal(
                found.double().cpu(), y.grad.to(x.dtype).double().cpu(), f"the gradient of {name}"
            )
    return result.detach().double().cpu().numpy()


@dataclass(frozen=True)
class EntryPoint:
    run: Callable[[Case], np.ndarray]
    stacks: str = "maybe"  # "maybe", "always", "never"
    chooses: bool = True  # a kernel, where none is named
    types: tuple[str, ...] | None = None  # of A and B; None: all
    signed: bool = True  # arrays may have strides below 0

    def has(self, kernel: str) -> bool:
        """Whether there is such a product of the kernel's types, and the simulator's own architecture has it."""
        if kernels()[kernel].min_arch > 90:
            return False
        return self.types is None or kernels()[kernel].config.a.dtype.__name__ in self.types


ENTRY_POINTS = {
    "gemm": EntryPoint(by_gemm),
    "launcher": EntryPoint(by_launcher),
    "matmul": EntryPoint(by_matmul),
    "matmul with bias": EntryPoint(by_bias, "never"),
    "matmul with outputs": EntryPoint(by_outputs, "never"),
    "matmul by a vector": EntryPoint(by_vector, "never"),
    "GemmUniversal": EntryPoint(by_universal, "never"),
    "GemmUniversal serial split-K": EntryPoint(by_serial_split, "never"),
    "GemmUniversal parallel split-K": EntryPoint(by_parallel_split, "never"),
    "GemmUniversal batched": EntryPoint(by_batched, "always"),
    "GemmUniversal array": EntryPoint(by_array, "always"),
    "GemmUniversal by index": EntryPoint(by_index, "never"),
    "gemm_grouped": EntryPoint(by_grouped, "never"),
    "grouped_matmul": EntryPoint(by_offsets, "never"),
    "scaled_matmul": EntryPoint(by_scaled, "never", types=("Float8E4M3FN", "Float8E5M2", "Int8")),
    "mixed_matmul": EntryPoint(by_mixed, "never", types=("Float16", "BFloat16")),
    "sparse_matmul": EntryPoint(
        by_sparse, "never", types=("Float16", "BFloat16", "Float8E4M3FN", "Float8E5M2", "Int8")
    ),
    "torch": EntryPoint(by_torch, signed=False),
    "torch operator": EntryPoint(by_operator, signed=False),
    "gradients": EntryPoint(by_gradient, types=("Float16", "BFloat16", "Float32"), signed=False),
    "compiled function": EntryPoint(by_compiled, "never", False),
    "exported function": EntryPoint(by_exported, "never", False),
}


# -- running cases -----------------------------------------------------------------------------------------------------


def verify(case: Case, found: np.ndarray) -> None:
    """The result is right, and only the result has changed."""
    expected = case.expected.astype(case.d.view.dtype).astype(np.float64)
    np.testing.assert_array_equal(found.astype(np.float64), expected, case.describe())
    for x in case.drawn:
        changed = x.memory.view(np.uint8) != x.before.view(np.uint8)
        if any(x is result for result in (case.d, *case.written)) and x.memory.size > 1:
            mine = np.zeros_like(x.memory, dtype=bool)
            inside(x, mine)[...] = True
            changed &= ~np.repeat(mine, x.memory.itemsize)
        assert not changed.any(), (
            f"{np.flatnonzero(changed).size} bytes outside of the result changed: {case.describe()}"
        )


def inside(x: Drawn, like: np.ndarray) -> np.ndarray:
    """The view ``x`` of ``like`` in place of its memory."""
    item = x.memory.itemsize
    first = (x.view.ctypes.data - x.memory.ctypes.data) // item
    return np.lib.stride_tricks.as_strided(like[first:], x.view.shape, [s // item for s in x.view.strides])


def drawn(seed: int, entry: str | None = None, kernel: str | None = None) -> tuple[str, Case]:
    """The entry point and the case of a number."""
    rng = np.random.default_rng(seed)
    point = entry or str(rng.choice(list(ENTRY_POINTS)))
    made = ENTRY_POINTS[point]
    name = kernel or str(rng.choice([known for known in kernels() if made.has(known)]))
    stacked = made.stacks == "always" or made.stacks == "maybe" and rng.random() < 0.3
    batch = int(rng.integers(1, 4)) if stacked else None
    if not made.chooses and rng.random() < 0.75:
        return point, aligned_case(rng, kernels()[name])
    return point, drawn_case(rng, kernels()[name], batch, point.endswith("array"), made.signed)


def check(seed: int, entry: str | None = None, kernel: str | None = None) -> str:
    """Run one case; "right", "refused" or "skipped". AssertionError where the product is wrong."""
    return run(*drawn(seed, entry, kernel))


def run(point: str, case: Case) -> str:
    """As :func:`check`, of a case that is drawn."""
    made = ENTRY_POINTS[point]
    try:
        found = made.run(case)
    except Skipped:
        return "skipped"
    except ArgumentError as error:
        if case.named or not made.chooses:
            return "refused"
        raise AssertionError(f"{point} refuses {case.describe()}: {error}") from error
    verify(case, found)
    return "right"
