"""Products of operands in any layout, by every kernel and every entry point, are right and change nothing else.

``TILEWRIGHT_SEARCH=2000`` runs as many drawn cases more; ``python -m tests.gemm.operand_search`` counts them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.export.harness import COMPILER, needs_compiler
from tests.export.simulated import SimulatedFunction
from tests.gemm.operand_cases import ENTRY_POINTS, check, parts_of, tensors_of, verify
from tests.gemm.operand_draws import Drawn, drawn_case, numpy_of
from tilewright import cute
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ArgumentError
from tilewright.gemm import GemmUniversal, gemm, gemm_grouped, kernels, launcher, matmul
from tilewright.gemm.family.base import kernel_of
from tilewright.gemm.host.problem import Problem

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.unchecked

SIMULATED = [name for name, known in kernels().items() if known.min_arch <= 90]
PAIRS = [
    (entry, kernel)
    for i, entry in enumerate(ENTRY_POINTS)
    for j, kernel in enumerate(SIMULATED)
    if (i + 3 * j) % len(ENTRY_POINTS) == 0 and ENTRY_POINTS[entry].has(kernel)
]
PAIRS += [
    ("scaled_matmul", "hopper_e4m3_promoted"),
    ("scaled_matmul", "tensorop_i8"),
    ("grouped_matmul", "tensorop_f16"),
    ("grouped_matmul", "simt_f32"),
    ("mixed_matmul", "tensorop_bf16"),
    ("sparse_matmul", "hopper_i8"),
]
"""Each kernel once, each entry point at least once; and those with a mechanism of their own again."""


@pytest.mark.parametrize(("entry", "kernel"), PAIRS)
def test_a_kernel_by_an_entry_point(entry: str, kernel: str) -> None:
    if entry == "exported function" and COMPILER is None:
        pytest.skip("no C compiler here")
    seeds = range(5, 60, 5)
    assert any(check(seed, entry, kernel) == "right" for seed in seeds)


@pytest.mark.parametrize("seed", range(int(os.environ.get("TILEWRIGHT_SEARCH", "12"))))
def test_a_drawn_case(seed: int) -> None:
    check(10_000 + seed)


def compiled(kernel: str, form: str, m: int, n: int, k: int) -> Callable[..., np.ndarray]:
    """A product of this size, compiled, as a function of A, B and D; ``form``: how it is called."""
    entry = kernels()[kernel]
    dtype = numpy_of(entry.config.a.dtype)
    a, b, d = np.zeros((m, k), dtype), np.zeros((k, n), dtype), np.zeros((m, n), numpy_of(entry.config.c.dtype))
    seen, config, function, how = parts_of(Problem.of(a, b, None, d), entry)
    assert not config.transposed
    executor = cute.compile(kernel_of(config), *tensors_of(seen, config), function, how)

    in_c = SimulatedFunction(executor) if form == "in C" else None

    def run(a: np.ndarray, b: np.ndarray, d: np.ndarray) -> np.ndarray:
        given: list[Any] = [x[:, :, None] for x in (a, b.T, d, d)]
        if in_c is not None:
            in_c(given, (function, how), [x if x.base is None else x.base for x in (a, b, d)])
            return d
        given = [from_dlpack(x, assumed_align=16) for x in given]
        if form == "marked":
            given = [x.mark_all_dynamic(i) for x, i in zip(given, (1, 0, 1, 1), strict=True)]
        executor(*given, function, how)
        return d

    return run


@pytest.mark.parametrize("form", ["static", "marked", pytest.param("in C", marks=needs_compiler)])
def test_a_compiled_function_takes_what_its_loader_takes(form: str) -> None:
    """TMA leaves out what lies behind the ends of A's rows; D is written in whole vectors."""
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((16, 40), (40, 32)))
    whole = np.full((16, 32), -7, np.float16)
    hopper, tensorop = (compiled(kernel, form, 16, 16, 32) for kernel in ("hopper_f16", "tensorop_f16"))
    for k in (1, 13, 20, 32):
        found = hopper(a[:, :k], b[:k, :16], whole[:, :16])
        np.testing.assert_array_equal(found, a[:, :k].astype(float) @ b[:k, :16].astype(float))
    fault = "13.* multiples? of 8"
    with pytest.raises(ArgumentError, match=fault):
        tensorop(a[:, :13], b[:13, :16], whole[:, :16])
    for run in (hopper, tensorop):
        with pytest.raises(ArgumentError, match=fault):
            run(a, b[:, :13], whole[:, :13])
    assert (whole[:, 16:] == -7).all()


def test_a_column_of_a_matrix() -> None:
    a, b = np.eye(16, dtype=np.float16), np.arange(256).reshape(16, 16).astype(np.float16)
    np.testing.assert_array_equal(matmul(a, b[:, 1]), b[:, 1])


def test_every_second_column_and_a_head_of_packed_heads() -> None:
    rng = np.random.default_rng(0)
    x, w = rng.integers(-3, 4, (8, 32)).astype(np.float16)[:, ::2], rng.integers(-3, 4, (16, 8)).astype(np.float16)
    np.testing.assert_array_equal(matmul(x, w), x.astype(float) @ w.astype(float))
    heads = rng.integers(-3, 4, (16, 16, 3)).astype(np.float16)[:, :, 1]
    np.testing.assert_array_equal(matmul(heads, w), heads.astype(float) @ w.astype(float))


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_a_group_writes_only_its_results(dtype: type) -> None:
    whole = np.full((16, 48), -7, np.float32 if dtype == np.float32 else dtype)
    gemm_grouped([(np.ones((16, 32), dtype), np.ones((32, 24), dtype))], [whole[:, ::2]])
    assert (whole[:, ::2] == 32).all() and (whole[:, 1::2] == -7).all()


def test_a_group_reads_c_in_another_major_than_d() -> None:
    rng = np.random.default_rng(1)
    a, b, c = (rng.integers(-3, 4, (128, 128)).astype(np.float16) for _ in range(3))
    (d,) = gemm_grouped([(a, b, c)], [np.zeros((128, 128), np.float16).T], beta=1)
    np.testing.assert_array_equal(d, a.astype(float) @ b.astype(float) + c)


def tensor_of(memory: Any, x: Drawn) -> Any:
    """The view of ``x`` in ``memory``, a tensor of the bytes that ``x`` has."""
    item = x.memory.itemsize
    kind = {2: torch.float16, 4: torch.float32}[item]
    first = (x.view.ctypes.data - x.memory.ctypes.data) // item
    return torch.as_strided(memory.view(kind), x.view.shape, [step // item for step in x.view.strides], first)


def run_on(device: str, seed: int) -> None:
    """A drawn case of float16 or float32 on tensors of ``device``: right, and no other byte changes."""
    rng = np.random.default_rng(seed)
    how = ("matmul", "gemm", "grouped", "batched", "launcher")[seed % 5]
    entry = kernels()[("hopper_f16", "tensorop_f16", "simt_f32")[int(rng.integers(3))]]
    case = drawn_case(rng, entry, {"grouped": None, "batched": 3}.get(how, None if rng.random() < 0.7 else 2))
    if any(step < 0 for x in case.drawn for step in x.view.strides) or 0 in case.d.view.shape:
        return  # PyTorch has no strides below zero; there is nothing to launch
    memories = {id(x): torch.from_numpy(x.memory.view(np.uint8).copy()).to(device) for x in case.drawn}
    a, b, d = (tensor_of(memories[id(x)], x) for x in (case.a, case.b, case.d))
    c = None if case.c is None else d if case.in_place else tensor_of(memories[id(case.c)], case.c)
    scales = {"alpha": case.alpha, "beta": case.beta}
    if how == "matmul":
        matmul(a, b, d, c, **scales)
    elif how == "gemm":
        gemm(a, b, c, out=d, **scales)
    elif how == "grouped":
        gemm_grouped([(a, b) if c is None else (a, b, c)], [d], **scales)
    elif how == "batched":
        handle = GemmUniversal()
        arguments = GemmUniversal.Arguments(a, b, d, c, **scales, mode="batched")
        assert handle.can_implement(arguments)
        handle(arguments, torch.zeros(handle.workspace_size(arguments) + 16, dtype=torch.uint8, device=device))
    else:
        launcher(a, b, d, c, **scales)()
    case.d.memory.view(np.uint8)[:] = memories[id(case.d)].cpu().numpy()
    for x in case.drawn:
        if x is not case.d:
            assert np.array_equal(memories[id(x)].cpu().numpy(), x.before.view(np.uint8)), case.describe()
    verify(case, case.d.view)


@pytest.mark.parametrize("seed", range(5))
def test_tensors_of_the_cpu(seed: int) -> None:
    run_on("cpu", seed)


@pytest.mark.gpu
@pytest.mark.parametrize("seed", range(int(os.environ.get("TILEWRIGHT_SEARCH", "60"))))
def test_tensors_of_a_gpu(seed: int) -> None:
    run_on("cuda", seed)
