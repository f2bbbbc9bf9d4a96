"""Ready epilogue functions through ``matmul``: exact on every family of kernels, for all majors of D and of a second
output; their keys, their refusals."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.covering import covering
from tests.gemm.test_activations import EXACT
from tests.gemm.test_hopper import sized
from tilewright import Constexpr, Float32, cute, sim
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ArgumentError, ConstraintError
from tilewright.gemm import Bias, Chain, LinearCombination, Relu, SplitK, gemm, kernels, matmul
from tilewright.gemm.epilogue.activations import ACTIVATIONS, Activation, ActivationGradient, Gated
from tilewright.gemm.epilogue.bias_gradient import BiasGradient
from tilewright.gemm.epilogue.functions import Residual, RowBias, Store
from tilewright.gemm.epilogue.scales import Amax, PerRowLinComb, Scales
from tilewright.gemm.epilogue.scatter import ScatterAdd
from tilewright.gemm.epilogue.tile import EpilogueTile, no_source

LINE = from_dlpack(np.arange(-4, 4).astype(np.float32))
MODULE = importlib.import_module("tilewright.gemm.operators.matmul")
KERNELS: dict[str, dict[str, Any]] = {
    "simt": {"kernel": "simt_f32"},
    "tensorop": {"kernel": "tensorop_f16"},
    "few rows": {"kernel": "small_m_f16"},  # B is contiguous along K
    "hopper": {"kernel": sized((128, 128))},
    "hopper, transposed": {"kernel": sized((64, 32), transposed=True)},
    "hopper, turns": {"kernel": sized((128, 128), pingpong=True, stages=4, epilogue_columns=32)},
    "serial split-K": {"kernel": "tensorop_f16", "decomposition": SplitK(2, "serial")},
    "parallel split-K": {"kernel": sized((64, 32), transposed=True), "decomposition": SplitK(2, "parallel")},
    "stream-K": {"kernel": sized((128, 128)), "decomposition": "stream_k"},
}


@dataclass
class Case:
    """Operands of small integers, and what D and the second output should be."""

    a: np.ndarray
    b: np.ndarray
    d: np.ndarray
    before: np.ndarray
    functions: tuple[Any, ...]
    expected: np.ndarray
    expected_before: np.ndarray


def case(kernel: str, m: int, n: int, k: int, majors: str) -> Case:
    """``majors``: R or C (rows or columns contiguous) for D and for the matrices of the epilogue."""
    rng = np.random.default_rng(m * n + k)
    dtype = np.float32 if kernel == "simt" else np.float16

    def draw(shape: Any, kind: Any, major: str = "R") -> Any:
        return np.asarray(rng.integers(-2, 3, shape), kind, order="F" if major == "C" else "C")

    a, b = draw((m, k), dtype), draw((k, n), dtype, "C" if kernel == "few rows" else "R")
    rows, columns, scale = draw(m, np.float32), draw(n, dtype), draw(n, np.float32)
    residual, gate = (draw((m, n), np.float32, majors[1]) for _ in range(2))
    d, before = (
        np.empty((m, n), dtype, majors[0].replace("R", "C") if majors[0] == "R" else "F"),
        draw((m, n), dtype, majors[1]),
    )
    functions = (
        RowBias(rows),
        Chain((Bias(columns), Scales(np.full(1, 2, np.float32), scale))),
        Store(before),
        Relu(),
        Residual(residual, Float32(3)),
        ActivationGradient("relu", gate),
    )
    sums = (a.astype(np.float64) @ b.astype(np.float64) + rows[:, None] + columns) * 2 * scale
    return Case(a, b, d, before, functions, (np.maximum(sums, 0) + 3.0 * residual) * (gate > 0), sums)


@pytest.mark.parametrize(
    ("kernel", "of_d", "of_epilogue"),
    [
        pytest.param(*row, marks=pytest.mark.unchecked) if row[1] == "C" else row
        for row in covering(KERNELS, "RC", "RC")
    ],
)
def test_epilogue_functions_on_all_families(kernel: str, of_d: str, of_epilogue: str) -> None:
    one = case(kernel, 8 if kernel == "few rows" else 136, 72, 96, of_d + of_epilogue)
    matmul(one.a, one.b, one.d, epilogue=one.functions, **KERNELS[kernel])
    np.testing.assert_array_equal(one.before, one.expected_before)
    np.testing.assert_array_equal(one.d, one.expected)


@pytest.mark.gpu
@pytest.mark.parametrize("majors", ["RR", "RC", "CR", "CC"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_epilogue_functions_on_a_gpu(kernel: str, majors: str) -> None:
    import torch

    one = case(kernel, 8 if kernel == "few rows" else 520, 264, 192, majors)

    def on_gpu(x: np.ndarray) -> Any:
        return torch.from_numpy(x).cuda()

    before = on_gpu(one.before)
    made = []
    for part in (part for one in one.functions for part in getattr(one, "functions", (one,))):
        values = [
            before if x is one.before else on_gpu(x) if isinstance(x, np.ndarray) else x for x in vars(part).values()
        ]
        made.append(type(part)(*values))
    for _ in range(2):
        d = on_gpu(one.d)
        matmul(on_gpu(one.a), on_gpu(one.b), d, epilogue=made, **KERNELS[kernel])
        np.testing.assert_array_equal(before.cpu().numpy(), one.expected_before)
        np.testing.assert_array_equal(d.cpu().numpy(), one.expected)
        before.zero_()


def check_gradient_of_a_bias(how: dict[str, Any], m: int, dtype: Any, put: Any) -> None:
    """The sums of the columns of what ActivationGradient leaves, added to what is there. The bias between them makes
    accumulators beyond the last row differ from 0."""
    rng = np.random.default_rng(m)
    a, b = (rng.integers(-2, 3, shape).astype(dtype) for shape in ((m, 96), (96, 136)))
    b, gate = np.asfortranarray(b), rng.integers(-2, 3, (m, 136)).astype(np.float16)
    bias = rng.integers(1, 3, 136).astype(np.float32)
    exact = a.astype(np.float64) @ b * (gate > 0) + bias
    sums, d = put(np.full(136, 3, np.float32)), put(np.empty((m, 136), dtype))
    functions = ActivationGradient("relu", put(gate)), Bias(put(bias)), BiasGradient(sums)
    matmul(put(a), put(b), d, epilogue=functions, **how)
    np.testing.assert_array_equal(np.asarray(d.cpu() if hasattr(d, "cpu") else d), exact)
    np.testing.assert_array_equal(np.asarray(sums.cpu() if hasattr(sums, "cpu") else sums), 3 + exact.sum(0))


def test_the_sums_of_columns_leave_out_what_a_bias_gives_behind_the_last_row() -> None:
    a, b, bias = (np.ones(x, np.float16) for x in ((40, 32), (32, 24), 24))
    sums = np.zeros_like(bias, np.float32)
    matmul(a, b, epilogue=(Bias(bias), BiasGradient(sums)))
    np.testing.assert_array_equal(sums, 40 * (32 + 1))


@pytest.mark.parametrize("kernel", [*KERNELS, "blackwell"])
def test_the_gradient_of_a_bias(kernel: str) -> None:
    dtype, m = np.float32 if kernel == "simt" else np.float16, 8 if kernel == "few rows" else 136
    how = {"kernel": "blackwell_f16"} if kernel == "blackwell" else KERNELS[kernel]
    with sim.options(arch="sm_100a" if kernel == "blackwell" else "", sms=4):
        check_gradient_of_a_bias(how, m, dtype, np.asarray)


@pytest.mark.gpu
@pytest.mark.parametrize("kernel", KERNELS)
def test_the_gradient_of_a_bias_on_a_gpu(kernel: str) -> None:
    import torch

    dtype, m = np.float32 if kernel == "simt" else np.float16, 8 if kernel == "few rows" else 1000
    check_gradient_of_a_bias(KERNELS[kernel], m, dtype, lambda x: torch.from_numpy(x).cuda())


def test_derivatives_and_sums_where_pytorch_records_the_call() -> None:
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(4)
    a, b, at = (torch.from_numpy(rng.standard_normal(x).astype(np.float32)) for x in ((9, 16), (16, 8), (9, 8)))

    def step(*given: Any) -> tuple[Any, ...]:
        a, b, at, rows = given
        sums, largest = torch.zeros(8), torch.zeros(1)
        functions = (ActivationGradient("gelu", at), PerRowLinComb(rows), BiasGradient(sums), Amax(largest))
        return matmul(a, b, epilogue=functions), sums, largest

    given = a, b, at, torch.rand(9)
    compiled = torch.compile(step, backend="aot_eager", fullgraph=True)(*given)
    for found, eager in zip(compiled, step(*given), strict=True):
        torch.testing.assert_close(found, eager, rtol=1e-5, atol=1e-5)
    graded = a.clone().requires_grad_()
    for function, message in (
        (BiasGradient(torch.zeros(1)), "BiasGradient: a vector of 8 numbers of Float32 is wanted"),
        (BiasGradient(torch.zeros(8).half()), "not an array of torch.float16"),
        (Amax(torch.zeros(2)), "Amax: one number of Float32 is wanted"),
        (
            ScatterAdd(torch.zeros(3, 7), torch.zeros(9, dtype=torch.int32), torch.ones(9)),
            "ScatterAdd: a matrix with 8 columns",
        ),
        (PerRowLinComb(torch.ones(9), torch.ones(9)), "PerRowLinComb with beta is not one"),
    ):
        with pytest.raises(ArgumentError, match=message):
            matmul(graded, b, epilogue=function)


GATING = [name for name in KERNELS if "transposed" not in name and name != "parallel split-K"]


@pytest.mark.parametrize("majors", ["RR", pytest.param("CC", marks=pytest.mark.unchecked)])
@pytest.mark.parametrize("kernel", GATING)
def test_gated_columns(kernel: str, majors: str) -> None:
    """The second output has half of the columns; D has the sums."""
    one = case(kernel, 8 if kernel == "few rows" else 136, 72, 96, majors)
    gated = np.empty((one.d.shape[0], 36), one.d.dtype, "F" if majors[1] == "C" else "C")
    matmul(one.a, one.b, one.d, epilogue=Gated("relu", gated), **KERNELS[kernel])
    sums = one.a.astype(np.float64) @ one.b.astype(np.float64)
    np.testing.assert_array_equal(one.d, sums)
    np.testing.assert_array_equal(gated, (np.maximum(sums[:, ::2], 0) * sums[:, 1::2]).astype(one.d.dtype))


@pytest.mark.parametrize("kernel", [*GATING, "parallel split-K"])
def test_numbers_before_the_gate_need_not_be_written(kernel: str) -> None:
    """What ``matmul`` gives is the gate's matrix then; D stays as it is, but where parts of K meet in it."""
    untransposed = {"kernel": sized((64, 32)), "decomposition": SplitK(2, "parallel")}
    how = untransposed if kernel == "parallel split-K" else KERNELS[kernel]
    one = case(kernel, 8 if kernel == "few rows" else 136, 80, 96, "RR")
    gated, there = (np.full((one.d.shape[0], 40), np.nan, one.d.dtype) for _ in range(2))
    given = matmul(one.a, one.b, epilogue=Gated("relu", gated, store_preact=False), **how)
    sums = one.a.astype(np.float64) @ one.b.astype(np.float64)
    expected = (np.maximum(sums[:, ::2], 0) * sums[:, 1::2]).astype(one.d.dtype)
    assert given is gated
    np.testing.assert_array_equal(gated, expected)
    one.d.fill(np.nan)
    gate = Gated("relu", from_dlpack(there), store_preact=False)
    gemm(one.a, one.b, out=one.d, epilogue=gate, **how)
    np.testing.assert_array_equal(there, expected)
    assert np.isnan(one.d).all() == (kernel != "serial split-K")


def test_a_result_that_is_not_written_is_not_asked_for() -> None:
    gate, d = Gated("relu", np.empty((8, 4), np.float16), store_preact=False), np.empty((8, 8), np.float16)
    for more in ({"out": d, "epilogue": gate}, {"epilogue": (gate, Relu())}):
        with pytest.raises(ArgumentError, match="Gated leaves the result unwritten here, and (out|Relu) is given"):
            matmul(x, y, **more)


def test_pairs_of_columns_are_found_by_their_strides() -> None:
    """Not by their place among the registers."""
    apart, next_row, beside = cute.ScaledBasis(8, 1), cute.ScaledBasis(1, 0), cute.ScaledBasis(1, 1)

    def pairs(transposed: bool, shape: Any, *stride: Any) -> Any:
        coordinates: Any = SimpleNamespace(layout=cute.make_layout(shape, stride=stride))
        return EpilogueTile(coordinates, (8, 16), no_source, transposed).column_pairs()

    assert pairs(False, (2, 2, 2), apart, next_row, beside) == ([0, 1, 2, 3], 4)
    assert pairs(True, (2, 2, 2), apart, next_row, beside) == ([0, 1, 4, 5], 2)
    for shape, stride in (((2, 2), (apart, next_row)), ((2, 3), (apart, beside))):
        with pytest.raises(ConstraintError, match="pairs of neighbouring columns"):
            pairs(False, shape, *stride)


@pytest.mark.gpu
@pytest.mark.parametrize("kernel", GATING)
def test_gated_columns_on_a_gpu(kernel: str) -> None:
    import torch

    one = case(kernel, 8 if kernel == "few rows" else 520, 272, 192, "RR")  # vectors of the gates
    a, b, d = (torch.from_numpy(x).cuda() for x in (one.a, one.b, one.d))
    gated = d.new_empty(d.shape[0], 136)
    matmul(a, b, d, epilogue=Gated("relu", gated), **KERNELS[kernel])
    sums = one.a.astype(np.float64) @ one.b.astype(np.float64)
    np.testing.assert_array_equal(d.cpu().numpy(), sums)
    expected = (np.maximum(sums[:, ::2], 0) * sums[:, 1::2]).astype(one.d.dtype)
    np.testing.assert_array_equal(gated.cpu().numpy(), expected)


@pytest.mark.parametrize("name", ["silu", "gelu", "gelu_tanh", "sigmoid"])
def test_gates(name: str) -> None:
    rng = np.random.default_rng(3)
    a, b, gated = rng.normal(size=(8, 16)), rng.normal(size=(16, 24)), np.empty((8, 12), np.float32)
    sums = matmul(a.astype(np.float16), b.astype(np.float16), epilogue=Gated(name, gated), out_dtype=np.float32)
    gates = np.vectorize(EXACT[name])(sums[:, ::2].astype(np.float64))
    np.testing.assert_allclose(gated, gates * sums[:, 1::2], rtol=1e-5, atol=1e-6)


def test_kernels_of_the_transposed_product_are_not_taken_for_gates() -> None:
    entry = kernels()["hopper_f16"]
    assert any(size.transposed for size in entry.sizes)
    assert not any(size.transposed for size in entry.untransposed.sizes)
    assert kernels()["tensorop_f16"].untransposed is kernels()["tensorop_f16"]
    with pytest.raises(ArgumentError, match="computes the transposed product"):
        matmul(x, y, epilogue=Gated("relu", np.empty((8, 4), np.float16)), kernel=sized((64, 32), transposed=True))
    with pytest.raises(ArgumentError, match="7 columns of D are not whole groups of 2"):
        matmul(x, y[:, :7], epilogue=Gated("relu", np.empty((8, 3), np.float16)))
    with pytest.raises(ArgumentError, match=r"a column for each 2 of D's, \(8, 4\), is wanted"):
        matmul(x, y, epilogue=Gated("relu", np.empty((8, 8), np.float16)))


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_derivatives(name: str) -> None:
    """Against central differences of the exact function in float64."""
    x = np.linspace(-6, 6, 96).reshape(8, 12).astype(np.float32) + np.float32(0.01)
    a = np.ones((8, 1), np.float32)
    found = matmul(a, np.ones((1, 12), np.float32), epilogue=ActivationGradient(name, x))
    step = 1e-5
    exact = [(EXACT[name](v + step) - EXACT[name](v - step)) / (2 * step) for v in map(float, x.flat)]
    np.testing.assert_allclose(found.ravel(), exact, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize(
    "function",
    [
        Chain((LinearCombination(Float32(2), Float32(0)), Scales(from_dlpack(np.full(1, 3, np.float32)), LINE))),
        Scales(from_dlpack(np.full(1, 6, np.float32)), LINE),
        Chain((Relu(), Scales(from_dlpack(np.full(1, 6, np.float32)), LINE))),
    ],
)
def test_serial_split_k_scales_the_whole_sum_once(function: Any) -> None:
    """Functions that do not add C themselves: D has the parts before."""
    a, b = np.ones((16, 96), np.float16), np.ones((96, 8), np.float16)
    d = gemm(a, b, kernel="tensorop_f16", epilogue=function, decomposition=SplitK(3, "serial")).d
    np.testing.assert_array_equal(d, np.tile(6 * 96.0 * np.arange(-4, 4), (16, 1)))


def test_stacks_and_integers() -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, s).astype(np.int8) for s in ((2, 3, 32), (32, 16)))
    more, before = rng.integers(-9, 9, (2, 3, 16)).astype(np.int32), np.zeros((2, 3, 16), np.int32)
    found = matmul(a, b, epilogue=(Residual(more), Store(before), Activation("relu")))
    exact = a.astype(np.int64) @ b.astype(np.int64) + more
    np.testing.assert_array_equal(before, exact)
    np.testing.assert_array_equal(found, np.maximum(exact, 0))


# -- repeated launches -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Shift:
    """A function of a program's own, with a number that the kernel knows and one that it is given."""

    known: Constexpr
    given: float

    def __call__(self, acc: Any, tile: Any) -> None:
        acc.store(acc.load() + float(self.known) + self.given)


def test_every_component_is_in_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """One call after the other, each of which differs from one before in a single component."""
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(MODULE, "REPEATED_PRODUCTS", {})
    a, b = torch.ones(16, 32).half(), torch.ones(32, 16).half()
    x = torch.arange(256.0).view(16, 16)
    wide = torch.arange(16.0 * 40).view(16, 40)
    one, whole, rows = torch.full((1,), 2.0), torch.full((16,), 2.0), torch.arange(16.0)
    calls: list[tuple[Any, Any]] = [
        (Residual(x), 32 + x),
        (Residual(x, Float32(2)), 32 + 2 * x),
        (Residual(x.half()), 32 + x),
        (Residual(x.T), 32 + x.T),
        (Residual(wide[:, :16]), 32 + wide[:, :16]),
        (Residual(wide[:, 1:17]), 32 + wide[:, 1:17]),
        (RowBias(rows), (32 + rows[:, None]).expand(16, 16)),
        (Bias(rows), (32 + rows).expand(16, 16)),
        (Bias(torch.arange(32.0)[::2]), (32 + 2 * rows).expand(16, 16)),
        (Scales(one, rows), (64 * rows).expand(16, 16)),
        (Scales(whole, rows), (64 * rows).expand(16, 16)),
        (Scales(rows, one), (64 * rows[:, None]).expand(16, 16)),
        (Activation("relu"), torch.full((16, 16), 32.0)),
        (Activation("squared_relu"), torch.full((16, 16), 1024.0)),
        (Shift(1, 2.0), torch.full((16, 16), 35.0)),
        (Shift(2, 2.0), torch.full((16, 16), 36.0)),
        (Shift(1, 3.0), torch.full((16, 16), 36.0)),
        ((Shift(1, 0.0), Residual(x)), 33 + x),
        ((Residual(x), Shift(4, 0.0)), 36 + x),
        (None, torch.full((16, 16), 32.0)),
    ]
    for _ in range(2):
        for number, (epilogue, expected) in enumerate(calls):
            assert torch.equal(matmul(a, b, epilogue=epilogue, out_dtype=torch.float32), expected), number
    assert len(MODULE.REPEATED_PRODUCTS) == len(calls)


def test_a_launch_is_repeated_on_other_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(MODULE, "REPEATED_PRODUCTS", {})
    monkeypatch.setattr(MODULE, "_ROWS", {})
    a, b = torch.ones(16, 32).half(), torch.ones(32, 16).half()
    for value in (1.0, 2.0, 3.0):
        more, before = torch.full((16, 16), value), torch.zeros(16, 16)
        found = matmul(a, b, bias=torch.full((16,), value).half(), epilogue=(Residual(more), Store(before)))
        assert (before == 32 + 2 * value).all() and (found == before.half()).all()
    assert len(MODULE.REPEATED_PRODUCTS) == 1 and not MODULE._ROWS
    rows = torch.ones(24, 32).half()  # another number of rows has other vectors
    assert (matmul(rows, b, epilogue=RowBias(torch.arange(24.0)))[:, 0] == 32 + torch.arange(24.0)).all()
    assert (matmul(a, b, epilogue=RowBias(torch.arange(16.0)))[:, 0] == 32 + torch.arange(16.0)).all()


@pytest.mark.parametrize("place", ["a", "b", "out", "c", "other"])
def test_an_output_over_an_operand_is_refused_in_repeated_launches_too(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(MODULE, "REPEATED_PRODUCTS", {})
    a, b, c, out, other, before = (torch.ones(16, 16).half() for _ in range(6))
    for _ in range(2):
        matmul(a, b, out, c, beta=1.0, epilogue=(Residual(other), Store(before)))
    bad = {"a": a, "b": b, "c": c, "out": out, "other": other}[place]
    was = bad.clone()
    with pytest.raises(ArgumentError, match="overlaps"):
        matmul(a, b, out, c, beta=1.0, epilogue=(Residual(other), Store(bad)))
    assert torch.equal(bad, was)


# -- refusals ----------------------------------------------------------------------------------------------------------

x, y = np.ones((8, 16), np.float16), np.ones((16, 8), np.float16)
square, vector = np.ones((8, 8), np.float32), np.ones(8, np.float32)
READ_ONLY = np.ones((8, 8), np.float32)
READ_ONLY.flags.writeable = False


@pytest.mark.parametrize(
    ("epilogue", "message"),
    [
        ("relu", "a function is an object of a dataclass"),
        (Relu, "a function is an object of a dataclass"),
        (lambda acc, tile: None, "a function is an object of a dataclass"),
        (RowBias(np.ones(7, np.float32)), "RowBias: a vector of 8 elements, one for each row of D"),
        (Bias(np.ones((8, 1), np.float32)), "Bias: a vector of 8 elements, one for each column of D"),
        (Chain((Relu(), Residual(x))), r"Residual: a matrix of D's shape, \(8, 8\), is wanted, not .* \(8, 16\)"),
        (Store(READ_ONLY), "the matrix of Store is written, and the array is read-only"),
        (Store(np.lib.stride_tricks.as_strided(np.ones(20, np.float32), (8, 8), (4, 4))), "share one place"),
        ((Residual(square), Store(square)), "the matrix of Store is written, and overlaps the matrix of Residual"),
        ((Store(square), Store(square)), "the matrix of Store is written, and overlaps the matrix of Store"),
        ((Bias(square[0]), Store(square)), "the matrix of Store is written, and overlaps the vector of Bias"),
        ((Residual(square), BiasGradient(square[0])), "the matrix of BiasGradient is written, and overlaps the matrix"),
        (Store(x[:, :8]), "the matrix of Store is written, and overlaps a"),
        (Activation("swoosh"), "there is no activation 'swoosh'"),
        (ActivationGradient("swoosh", square), "there is no activation 'swoosh'"),
        (tuple(Residual(square) for _ in range(13)), "more than 12 arrays"),
        (BiasGradient(np.ones(7, np.float32)), "BiasGradient: a vector of 8 numbers of Float32, one for each column"),
        (Bias(from_dlpack(vector)), "give the array itself"),
        (Store(3), "Store takes an array, not 3"),
        ((Relu(), Bias(None)), "Bias takes an array, not None"),
    ],
)
def test_refusals(epilogue: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        matmul(x, y, epilogue=epilogue)


def test_refusals_of_frameworks() -> None:
    torch = pytest.importorskip("torch")
    a, b, more = torch.ones(8, 16), torch.ones(16, 8), torch.ones(8, 8)
    with pytest.raises(ArgumentError, match="give all of one framework"):
        matmul(a, b, epilogue=Residual(square))
    for given in ((a.clone().requires_grad_(), more), (a, more.clone().requires_grad_())):
        with pytest.raises(ArgumentError, match="its epilogue is PyTorch's: call it without out"):
            matmul(given[0], b, more.clone(), epilogue=Residual(given[1]))
        result = matmul(given[0], b, epilogue=(Residual(given[1]), Relu()))
        result.sum().backward()
        assert result.detach().equal(torch.full((8, 8), 17.0))
    with pytest.raises(ArgumentError, match="belongs to one product of matrices"):
        matmul(torch.ones(2, 8, 16), torch.ones(2, 16, 8), epilogue=Residual(torch.ones(2, 8, 8)))


@pytest.mark.parametrize("kernel", [pytest.param("tensorop_f16", marks=pytest.mark.unchecked), "hopper_f16"])
@pytest.mark.parametrize("how", ["data_parallel", "stream_k", SplitK(3, "serial"), SplitK(3, "parallel")], ids=str)
def test_scales_by_row_and_by_pointer(how: Any, kernel: str) -> None:
    """C counts once where K is split, and has no effect in rows whose beta is 0."""
    rng = np.random.default_rng(0)
    a, b = rng.integers(-3, 4, (72, 192)).astype(np.float16), rng.integers(-3, 4, (192, 80)).astype(np.float16)
    c, rows = rng.integers(-3, 4, (72, 80)).astype(np.float32), rng.integers(0, 3, 72).astype(np.float32)
    c[rows == 0] = np.nan
    added = np.where(rows[:, None] == 0, 0, np.nan_to_num(c) * rows[:, None])
    sums, two = a.astype(np.float64) @ b.astype(np.float64), np.full(1, 2, np.float32)
    of_rows = from_dlpack(rows).mark_layout_dynamic()
    for alpha, beta, wanted in (
        (of_rows, of_rows, sums * rows[:, None] + added),
        (from_dlpack(two), of_rows, 2 * sums + added),
        (of_rows, None, sums * rows[:, None]),
    ):
        d = np.zeros((72, 80), np.float32)
        source = None if beta is None else c
        with sim.options(sms=4):
            gemm(a, b, source, out=d, epilogue=PerRowLinComb(alpha, beta), kernel=kernel, decomposition=how)
        np.testing.assert_array_equal(d, wanted)
