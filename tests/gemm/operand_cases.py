"""Products of operands in every layout, through every entry point: what a search draws, and compares with float64.

A case is a number: it says the kernel, the entry point and the operands. ``check(case)`` computes the product and fails
where a number of the result is wrong, or where a byte outside of the result has changed.

``python -m tests.gemm.operand_search`` (:mod:`.operand_search`) runs many of them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

from tilewright import cute
from tilewright.errors import ArgumentError, TilewrightError
from tilewright.gemm import GemmUniversal, gemm, gemm_grouped, kernels, launcher, matmul
from tilewright.gemm.epilogue.functions import LinearCombination
from tilewright.gemm.family.base import family_of, kernel_of
from tilewright.gemm.family.entry import KernelEntry
from tilewright.gemm.host.plan import Plan
from tilewright.gemm.host.problem import Problem
from tilewright.gemm.schedule.launch import decomposition_of

GUARD = 64
"""Elements before and after the memory of an operand: a wrong address lands there."""

EXTENTS = (0, 1, 1, 2, 3, 5, 8, 13, 16, 17, 24, 32, 40, 64, 72)


def small_integers(rng: np.random.Generator, size: int, dtype: Any) -> np.ndarray:
    return rng.integers(-3, 4, size).astype(np.int8).astype(dtype)


@dataclass
class Drawn:
    """An array in memory of its own: ``view`` in some layout, ``memory`` all of it, ``before`` a copy of that."""

    view: Any
    memory: np.ndarray
    before: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.before = self.memory.copy()

    def describe(self) -> str:
        item = self.view.itemsize
        first = (self.view.ctypes.data - self.memory.ctypes.data) // item - GUARD
        return f"{self.view.shape} strides {tuple(step // item for step in self.view.strides)} at {first}"


def drawn_array(
    rng: np.random.Generator, shape: tuple[int, ...], dtype: Any, result: bool = False, apart: bool = False
) -> Drawn:
    """Small integers in ``shape``, as slices, columns, transposes, reversed, broadcast and unaligned views lie.

    The modes come in any order; each steps over all that the modes inside of it reach, often over more. A step may go
    backwards, and, unless it is a ``result``, be zero. ``apart``: the first mode steps over all that others reach.
    """
    order = list(rng.permutation(len(shape))) if rng.random() < 0.5 else list(range(len(shape)))[::-1]
    order.sort(key=lambda mode: apart and mode == 0)
    strides, reach, low = [0] * len(shape), 1, 0
    for place, mode in enumerate(order):
        step = reach if rng.random() < 0.65 else reach * int(rng.integers(2, 4)) if place == 0 or rng.random() < 0.3 \
            else reach + int(rng.choice([1, 3, 8, 16]))  # fmt: skip
        if place == 1 and rng.random() < 0.5:
            step = -(-step // 16) * 16  # rows that begin at multiples of 16 bytes
        reach = step * max(shape[mode], 1)
        kind = rng.random()
        if kind < 0.08 and not result:
            step = 0
        elif kind < 0.16:
            low, step = low + step * max(shape[mode] - 1, 0), -step
        strides[mode] = step
    lead = int(rng.choice([0, 0, 0, 8, 1, 3, 5]))
    item = np.dtype(dtype).itemsize
    room = np.zeros((reach + lead + 2 * GUARD) * item + 128, np.uint8)
    start = -room.ctypes.data % 128
    memory = room[start : start + (reach + lead + 2 * GUARD) * item].view(dtype)
    memory[:] = small_integers(rng, memory.size, dtype)
    first = start + (GUARD + lead + low) * item
    return Drawn(np.ndarray(shape, dtype, room, first, [item * step for step in strides]), memory)


@dataclass
class Case:
    """One product: operands, numbers, and what it must give. ``c`` is None, or D itself (``in_place``), or its own."""

    rng: np.random.Generator
    entry: KernelEntry
    named: bool  # whether the kernel is asked for by name
    a: Drawn
    b: Drawn
    c: Drawn | None
    d: Drawn
    alpha: float
    beta: float
    in_place: bool
    expected: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.expected = self.product()

    @property
    def kernel(self) -> str | None:
        return self.entry.name if self.named else None

    @property
    def by(self) -> dict[str, Any]:
        """The kernel as matmul's arguments say it."""
        return {"kernel": self.kernel} | ({"precision": "tf32"} if self.entry.name.endswith("tf32") else {})

    @property
    def source(self) -> Any:
        return None if self.c is None else self.d.view if self.in_place else self.c.view

    def product(self) -> np.ndarray:
        """D in float64, from the operands as they are."""
        a, b = self.a.view.astype(np.float64), self.b.view.astype(np.float64)
        found = self.alpha * (a @ b)
        return found + self.beta * self.source.astype(np.float64) if self.beta else found

    @property
    def drawn(self) -> list[Drawn]:
        return [x for x in (self.a, self.b, self.c, self.d) if x is not None]

    def describe(self) -> str:
        names = [
            f"{name} {x.describe()}" for name, x in zip("abcd", (self.a, self.b, self.c, self.d), strict=True) if x
        ]
        how = f"{self.entry.name}{'' if self.named else ' (by dtype)'}, alpha {self.alpha}, beta {self.beta}"
        return f"{how}, {'in place, ' if self.in_place else ''}{'; '.join(names)}"


def drawn_case(rng: np.random.Generator, entry: KernelEntry, batch: int | None, apart: bool = False) -> Case:
    """A case for ``entry``; stacks of ``batch`` matrices, or single ones (None). ``apart``: no two results of a stack
    reach into each other."""
    config = entry.config
    few = "small_m" in entry.name
    m, n, k = (int(rng.choice(EXTENTS)) for _ in range(3))
    m, k = (min(m, 16) if few else m), max(k, 1) if rng.random() < 0.9 else k
    stack = () if batch is None else (batch,)
    ab, cd = numpy_of(config.a.dtype), numpy_of(config.c.dtype)
    a, b = drawn_array(rng, (*stack, m, k), ab), drawn_array(rng, (*stack, k, n), ab)
    with_c, in_place = rng.random() < 0.4, rng.random() < 0.3
    d = drawn_array(rng, (*stack, m, n), cd, result=True, apart=apart)
    c = None if not with_c else d if in_place else drawn_array(rng, (*stack, m, n), cd)
    beta = float(rng.choice([0.0, 1.0, -2.0])) if with_c else 0.0
    return Case(rng, entry, bool(rng.random() < 0.7), a, b, c, d, float(rng.choice([1.0, 1.0, 2.0, -1.0])), beta,
                with_c and in_place)  # fmt: skip


def numpy_of(dtype: Any) -> Any:
    """tf32 kernels take float32 arrays."""
    names = {"Float8E4M3FN": ml_dtypes.float8_e4m3fn, "Float8E5M2": ml_dtypes.float8_e5m2,
             "BFloat16": ml_dtypes.bfloat16, "TFloat32": np.float32}  # fmt: skip
    return names.get(dtype.__name__) or np.dtype(dtype.dtype)


class Skipped(Exception):
    """The entry point does not have such a product."""


# -- the entry points: each computes a case into case.d ----------------------------------------------------------------


def by_gemm(case: Case) -> np.ndarray:
    how = str(case.rng.choice(["auto", "auto", "data_parallel", "stream_k"]))
    kept = case.rng.random() < 0.2  # a result of its own
    report = gemm(case.a.view, case.b.view, case.source, alpha=case.alpha, beta=case.beta, kernel=case.kernel,
                  out=None if kept else case.d.view, decomposition=how)  # fmt: skip
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
    lists = {name: None if x is None else list(x) for name, x in
             (("A", case.a.view), ("B", case.b.view), ("C", case.source), ("D", case.d.view))}  # fmt: skip
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


def by_compiled(case: Case) -> np.ndarray:
    """The kernel compiled for other operands: it refuses what it was not compiled for."""
    if 0 in case.d.view.shape or case.a.view.shape[-1] == 0:
        raise Skipped
    other = corner(case) if case.rng.random() < 0.6 else \
        drawn_case(np.random.default_rng(int(case.rng.integers(1 << 30))), case.entry, None)  # fmt: skip
    for one in (case, other):
        one.alpha, one.beta, one.c = 1.0, 0.0, None
        one.expected = one.product()
    made_for, config, function, how = compiled_parts(other)
    executor = cute.compile(kernel_of(config), *tensors_of(made_for, config), function, how)
    executor(*tensors_of(made_for, config), function, how)
    verify(other, other.d.view)
    seen, _, _, _ = compiled_parts(case)
    executor(*[as_a_user_passes(x, case.rng) for x in plain_operands(seen)], function, how)
    return case.d.view


def corner(case: Case) -> Case:
    """The product of the first rows and columns, which lie as all of them do."""
    m, n, k = (int(case.rng.integers(1, extent + 1)) for extent in (*case.d.view.shape, case.a.view.shape[1]))
    views = case.a.view[:m, :k], case.b.view[:k, :n], case.d.view[:m, :n]
    a, b, d = (Drawn(view, x.memory) for view, x in zip(views, (case.a, case.b, case.d), strict=True))
    return Case(case.rng, case.entry, case.named, a, b, None, d, 1.0, 0.0, False)


def as_a_user_passes(x: np.ndarray, rng: np.random.Generator) -> Any:
    """An array as it is, or as a tensor with static or run-time extents and strides, with the alignment that it has."""
    kind, align = rng.random(), 16 if x.ctypes.data % 16 == 0 else x.itemsize
    if kind < 0.3:
        return cute.runtime.from_dlpack(x)
    tensor = cute.runtime.from_dlpack(x, assumed_align=align)
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
    vector = drawn_array(case.rng, case.d.view.shape[-1:], case.d.view.dtype)
    case.expected = np.maximum(case.expected + vector.view.astype(float), 0)
    return matmul(case.a.view, case.b.view, case.d.view, case.source, alpha=case.alpha, beta=case.beta,
                  **case.by, bias=vector.view, activation="relu")  # fmt: skip


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


def by_gradient(case: Case) -> np.ndarray:
    """The gradient with respect to A of a product: grad @ B^T, where grad is D's view."""
    import torch

    if case.entry.config.a.dtype.__name__ not in ("Float16", "BFloat16", "Float32") or case.a.view.ndim != 2:
        raise Skipped
    a, b = (torch_of(x).detach().requires_grad_() for x in (case.a.view, case.b.view))
    case.d.view[...] = np.clip(case.d.view.astype(float), -3, 3)
    case.d.before = case.d.memory.copy()
    grad = torch_of(case.d.view).to(a.dtype) if case.rng.random() < 0.5 else torch.ones_like(torch_of(case.d.view))
    as_float = grad.double().numpy()
    matmul(a, b, alpha=case.alpha).backward(grad)
    other = case.alpha * (case.a.view.astype(float).T @ as_float)
    np.testing.assert_array_equal(b.grad.double().numpy(), other, "the gradient of b")
    case.expected = case.alpha * (as_float @ case.b.view.astype(float).T)
    return a.grad.double().numpy()


@dataclass(frozen=True)
class EntryPoint:
    run: Callable[[Case], np.ndarray]
    stacks: str = "maybe"  # "maybe", "always", "never"
    chooses: bool = True  # a kernel, where none is named


ENTRY_POINTS = {
    "gemm": EntryPoint(by_gemm),
    "launcher": EntryPoint(by_launcher),
    "matmul": EntryPoint(by_matmul),
    "matmul with bias": EntryPoint(by_bias, "never"),
    "matmul by a vector": EntryPoint(by_vector, "never"),
    "GemmUniversal": EntryPoint(by_universal, "never"),
    "GemmUniversal serial split-K": EntryPoint(by_serial_split, "never"),
    "GemmUniversal parallel split-K": EntryPoint(by_parallel_split, "never"),
    "GemmUniversal batched": EntryPoint(by_batched, "always"),
    "GemmUniversal array": EntryPoint(by_array, "always"),
    "GemmUniversal by index": EntryPoint(by_index, "never"),
    "gemm_grouped": EntryPoint(by_grouped, "never"),
    "torch": EntryPoint(by_torch),
    "gradients": EntryPoint(by_gradient, "never"),
    "compiled function": EntryPoint(by_compiled, "never", False),
}


# -- running cases -----------------------------------------------------------------------------------------------------


def verify(case: Case, found: np.ndarray) -> None:
    """The result is right, and only the result has changed."""
    np.testing.assert_array_equal(found.astype(np.float64), case.expected, case.describe())
    for x in case.drawn:
        changed = x.memory.view(np.uint8) != x.before.view(np.uint8)
        if x is case.d and x.memory.size > 1:
            mine = np.zeros_like(x.memory, dtype=bool)
            inside(x, mine)[...] = True
            changed &= ~np.repeat(mine, x.memory.itemsize)
        assert not changed.any(), (
            f"{np.flatnonzero(changed).size} bytes outside of the result changed: {case.describe()}"
        )


def inside(x: Drawn, like: np.ndarray) -> np.ndarray:
    """The view ``x`` of ``like`` in the place of its memory."""
    item = x.memory.itemsize
    first = (x.view.ctypes.data - x.memory.ctypes.data) // item
    return np.lib.stride_tricks.as_strided(like[first:], x.view.shape, [s // item for s in x.view.strides])


def drawn(seed: int, entry: str | None = None, kernel: str | None = None) -> tuple[str, Case]:
    """The entry point and the case of a number."""
    rng = np.random.default_rng(seed)
    point = entry or str(rng.choice(list(ENTRY_POINTS)))
    name = kernel or str(rng.choice(list(kernels())))
    made = ENTRY_POINTS[point]
    stacked = made.stacks == "always" or made.stacks == "maybe" and rng.random() < 0.3
    batch = int(rng.integers(1, 4)) if stacked else None
    return point, drawn_case(rng, kernels()[name], batch, point.endswith("array"))


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
