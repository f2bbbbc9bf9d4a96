"""Epilogues of groups of rows and weighted sums of rows: what a mixture of experts fuses. Exact for integers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.errors import ArgumentError
from tilewright.gemm import combine_rows, grouped_matmul, kernels, matmul
from tilewright.gemm.epilogue.activations import Activation, Gated
from tilewright.gemm.epilogue.functions import Bias, Residual, RowBias, Store
from tilewright.gemm.epilogue.scatter import ScatterAdd
from tilewright.gemm.operators import offsets

torch = pytest.importorskip("torch")

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
ROWS, K, N = 40, 24, 32


def drawn(seed: int, groups: int, rows: int = ROWS, k: int = K, n: int = N) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.integers(-2, 3, (rows, k)).astype(np.float16), rng.integers(-2, 3, (groups, k, n)).astype(np.float16)


def expected(a: np.ndarray, b: np.ndarray, ends: list[int]) -> np.ndarray:
    result = np.zeros((len(a), b.shape[2]))
    for i, (begin, end) in enumerate(zip([0, *ends], ends, strict=False)):
        result[begin:end] = a[begin:end].astype(np.float64) @ b[i]
    return result


@pytest.mark.parametrize("kernel", [None, "tensorop_f16"])
@settings(max_examples=4, deadline=None)
@given(st.lists(st.integers(0, ROWS), min_size=1, max_size=5), st.integers(0, 99))
def test_functions_see_the_rows_of_the_whole_result(kernel: str | None, cuts: list[int], seed: int) -> None:
    """On kernels whose coordinates are those of the whole matrix (TMA), and of a group; rows of no group have sums of
    zero."""
    ends, rng = sorted(cuts), np.random.default_rng(seed)
    a, b = drawn(seed, len(ends))
    exact = expected(a, b, ends)
    of_rows, of_columns = (rng.integers(-9, 10, extent).astype(np.float32) for extent in (ROWS, N))
    matrix, gated = rng.integers(-9, 10, (ROWS, N)).astype(np.float32), np.full((ROWS, N // 2), np.nan, np.float32)
    before = np.full((ROWS, N), np.nan, np.float32)
    epilogue = RowBias(of_rows), Bias(of_columns), Residual(matrix), Store(before), Gated("relu", gated)
    epilogue = (*epilogue, Activation("relu"))
    result = grouped_matmul(a, b, np.array(ends, np.int32), out_dtype=np.float32, kernel=kernel, epilogue=epilogue)
    exact += of_rows[:, None] + of_columns + matrix
    np.testing.assert_array_equal(before, exact)
    np.testing.assert_array_equal(gated, np.maximum(exact[:, ::2], 0) * exact[:, 1::2])
    np.testing.assert_array_equal(result, np.maximum(exact, 0))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kernel", [None, "tensorop_f16"])
def test_rows_are_added_by_index(kernel: str | None, device: str) -> None:
    """Indices that are not rows of the matrix are left out."""
    ends, tokens = [7, 7, 33], 11
    a, b = drawn(1, 3)
    rng = np.random.default_rng(2)
    rows, scales = rng.integers(-1, tokens + 1, ROWS).astype(np.int32), rng.integers(1, 4, ROWS).astype(np.float32)
    wanted, exact = np.ones((tokens, N)), expected(a, b, ends)
    for m, row in enumerate(rows):
        if 0 <= row < tokens:
            wanted[row] += scales[m] * exact[m]
    given_a, given_b, ends_there, at, by = (
        torch.from_numpy(x).to(device) for x in (a, b, np.array(ends, np.int32), rows, scales)
    )
    matrix = torch.ones(tokens, N, device=device)
    result = grouped_matmul(given_a, given_b, ends_there, kernel=kernel, epilogue=ScatterAdd(matrix, at, by))
    np.testing.assert_array_equal(matrix.cpu().numpy(), wanted)
    np.testing.assert_array_equal(result.cpu().numpy(), exact)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kernel", [None, "tensorop_f16"])
@pytest.mark.parametrize("tile", [None, (128, 256, 64)])
def test_rows_are_read_by_index(tile: Any, kernel: str | None, device: str) -> None:
    """More rows than a has, in any order; ends of groups, of tiles, and of k tiles; rows of no group."""
    if tile is not None:
        if kernel is not None:
            pytest.skip("a size of the Hopper kernel")
        entry = kernels()["hopper_f16"]
        kernel = entry.only(next(c for c in entry.sizes if c.tile == tile and c.cluster == (1, 1) and not c.transposed))
    ends, rng = [130, 130, 145, 290], np.random.default_rng(4)
    a, b = drawn(5, 4, rows=70, k=72, n=40)
    rows = rng.integers(0, 70, 300).astype(np.int32)
    given_a, given_b, there, at = (torch.from_numpy(x).to(device) for x in (a, b, np.array(ends, np.int32), rows))
    at = torch.stack((at, -at), 1)[:, 0]  # at a stride
    gated = torch.full((300, 20), float("nan"), device=device)
    result = grouped_matmul(given_a, given_b, there, rows=at, kernel=kernel, epilogue=Gated("relu", gated))
    exact = expected(a[rows], b, ends)
    np.testing.assert_array_equal(result.cpu().numpy(), exact)
    np.testing.assert_array_equal(gated.cpu().numpy(), np.maximum(exact[:, ::2], 0) * exact[:, 1::2])
    gated.fill_(float("nan"))
    gate = Gated("relu", gated, store_preact=False)
    assert grouped_matmul(given_a, given_b, there, rows=at, kernel=kernel, epilogue=gate) is gated
    np.testing.assert_array_equal(gated.cpu().numpy(), np.maximum(exact[:, ::2], 0) * exact[:, 1::2])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kernel", [None, "tensorop_f16"])
def test_rows_that_are_not_there_count_as_zeros(
    kernel: str | None, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a GPU, where nothing can be raised: no address outside of a is read."""
    monkeypatch.setattr(offsets, "check_rows", lambda rows, problem: None)
    a, b = drawn(6, 2, rows=30)
    rows = np.array([-1, 30, 29, 1 << 30, *range(10)] * 3, np.int32)
    given = [torch.from_numpy(x).to(device) for x in (a, b, np.array([20, 42], np.int32), rows)]
    result = grouped_matmul(*given[:3], rows=given[3], kernel=kernel)
    there = (rows >= 0) & (rows < 30)
    exact = expected(np.where(there[:, None], a[rows.clip(0, 29)], 0), b, [20, 42])
    np.testing.assert_array_equal(result.cpu().numpy(), exact)


@pytest.mark.parametrize("rows", [128, 64, 192])
def test_the_sizes_that_read_rows_by_index(rows: int) -> None:
    """Threads that load tiles of 192 rows would spill."""
    entry = kernels()["hopper_f16"].for_gathered_rows
    assert all(size.tile[0] <= 128 and not size.transposed for size in entry.sizes)
    assert any(size.tile[0] == rows for size in entry.sizes) == (rows <= 128)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("columns", [8, 1030])
def test_rows_are_combined(columns: int, name: str, device: str) -> None:
    """Rows of whole vectors, and others; places that are not rows; into a part of a larger matrix."""
    rng = np.random.default_rng(0)
    source, weights = rng.integers(-3, 4, (20, columns)).astype(np.float32), rng.integers(1, 4, (9, 3))
    places = rng.integers(-1, 21, (9, 3)).astype(np.int32)
    inside = ((places >= 0) & (places < 20))[..., None]
    wanted = (np.where(inside, source[places.clip(0, 19)], 0) * weights[..., None]).sum(1)
    given_source, given_places, given_weights = (torch.from_numpy(x).to(device) for x in (source, places, weights))
    whole = torch.full((9, columns + 3), 7.0, device=device, dtype=getattr(torch, name))
    out = whole[:, :columns]
    assert combine_rows(given_source.to(out.dtype), given_places, given_weights.float(), out=out) is out
    np.testing.assert_array_equal(out.float().cpu().numpy(), wanted)
    assert bool((whole[:, columns:] == 7).all())


def test_gradients_of_combined_rows() -> None:
    rng = np.random.default_rng(3)
    source = torch.from_numpy(rng.standard_normal((12, 16)).astype(np.float32)).requires_grad_()
    weights = torch.from_numpy(rng.standard_normal((5, 3)).astype(np.float32)).requires_grad_()
    places = torch.from_numpy(rng.integers(-1, 12, (5, 3)).astype(np.int32))
    import tilewright.gemm.operators.torch_combine  # noqa: F401  registers the operator

    given = source, places, weights
    torch.library.opcheck(torch.ops.tilewright.combine_rows, given, test_utils="test_faketensor")
    grad = torch.from_numpy(rng.standard_normal((5, 16)).astype(np.float32))
    found = torch.autograd.grad(combine_rows(source, places, weights), (source, weights), grad)
    kept = torch.where(places >= 0, weights, 0)[..., None] * source[places.clamp(0).long()]
    wanted = torch.autograd.grad(kept.sum(1), (source, weights), grad)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-5, atol=1e-5)


A, B = drawn(0, 2)
ENDS = np.array([20, 40], np.int32)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epilogue": RowBias(np.zeros(N, np.float32))}, "RowBias: a vector of 40 elements, one for each row of D"),
        ({"epilogue": Gated("silu", np.zeros((ROWS, N), np.float32))}, "Gated: a matrix with a column for each 2"),
        ({"epilogue": Gated("silu", np.zeros((ROWS, N // 2), np.float32)), "kernel": "simt_f32"}, "takes Float16"),
        ({"epilogue": Activation("swish")}, "there is no activation 'swish'"),
        ({"a": B, "epilogue": Activation("relu"), "offsets": None}, "epilogue is for groups of rows"),
        ({"rows": np.array([0, 40], np.int32), "offsets": ENDS // 20}, "rows has numbers of 0 to 40, and a has 40"),
        ({"rows": np.zeros(4), "offsets": ENDS // 20}, "rows is a vector of int32 on cpu, not of Float64"),
        ({"a": A.copy(order="F"), "rows": np.zeros(2, np.int32), "offsets": ENDS // 20}, "rows are read whole"),
        ({"a": A[:, :0], "b": B[:, :0], "epilogue": Activation("relu")}, "there is no group, or K is 0"),
        ({"epilogue": ScatterAdd(np.zeros((4, N)), *[np.zeros(ROWS, np.int32)] * 2)}, "matrix is of Float32, not of F"),
        (
            {
                "epilogue": ScatterAdd(
                    np.zeros((4, 8), np.float32), np.zeros(ROWS, np.int32), np.zeros(ROWS, np.float32)
                )
            },
            "matrix has 32 columns, as D has",
        ),
    ],
)
def test_bad_epilogues_are_refused(change: dict[str, Any], message: str) -> None:
    call = {"a": A, "b": B, "offsets": ENDS, **change}
    with pytest.raises(ArgumentError, match=message):
        grouped_matmul(call.pop("a"), call.pop("b"), call.pop("offsets"), **call)


def test_written_matrices_may_not_overlap_others() -> None:
    memory = np.zeros((ROWS, N), np.float32)
    scatter = ScatterAdd(memory, np.zeros(ROWS, np.int32), np.ones(ROWS, np.float32))
    with pytest.raises(ArgumentError, match="the matrix of ScatterAdd is written, and overlaps|out overlaps"):
        grouped_matmul(A, B, ENDS, out=memory, epilogue=scatter)
    with pytest.raises(ArgumentError, match="the matrix of ScatterAdd is written, and overlaps the matrix of Residual"):
        matmul(A, B[0], out_dtype=np.float32, epilogue=(Residual(memory), scatter))


@dataclass(frozen=True)
class Doubled:
    """A function that PyTorch does not know."""

    def __call__(self, acc: Any, tile: Any) -> None:
        acc.store(acc.load() * 2)


def test_functions_that_pytorch_does_not_know_have_no_gradient() -> None:
    a, b, ends = (torch.from_numpy(x) for x in (A, B, ENDS))
    a = a.clone().requires_grad_()
    with pytest.raises(ArgumentError, match="Doubled has no gradient, and PyTorch records this call"):
        grouped_matmul(a, b, ends, epilogue=Doubled())
    with pytest.raises(ArgumentError, match=r"Bias: an array of shape \(32,\) on cpu is wanted, not one of shape \(1,"):
        grouped_matmul(a, b, ends, epilogue=Bias(torch.ones(1)))


@pytest.mark.parametrize("device", DEVICES)
def test_gradients_of_rows_by_index_and_of_epilogues(device: str) -> None:
    """Against PyTorch in float64; rows that are not there count as zeros."""
    ends = [7, 7, 33]
    drawn_a, drawn_b = drawn(3, 3, k=16)
    rows = torch.from_numpy(np.random.default_rng(4).integers(-1, ROWS + 1, ROWS).astype(np.int32)).to(device)
    rows = rows.clamp(0, ROWS - 1) if device == "cpu" else rows  # the simulator refuses others
    a, b = (torch.from_numpy(x / 4).to(device, torch.float16).requires_grad_() for x in (drawn_a, drawn_b))
    scales = torch.rand(ROWS, device=device).requires_grad_()
    tokens, sums = torch.zeros(9, N // 2, device=device), torch.zeros(9, N // 2, device=device, dtype=torch.float64)
    places = (torch.arange(ROWS, device=device) % 9).int()
    there = torch.tensor(ends, dtype=torch.int32, device=device)
    gate = Gated("silu", torch.empty(ROWS, N // 2, device=device, dtype=torch.float16), store_preact=False)
    gated = grouped_matmul(a, b, there, rows=rows, epilogue=gate)
    given = grouped_matmul(gated, b[:, :, : N // 2].contiguous(), there)
    scattered = grouped_matmul(
        gated, b[:, :, : N // 2].contiguous(), there, epilogue=ScatterAdd(tokens, places, scales)
    )
    np.testing.assert_array_equal(scattered.detach().cpu(), given.detach().cpu())
    tokens.square().sum().backward()

    exact = [x.detach().double().requires_grad_() for x in (a, b, scales)]
    taken = torch.where(((rows >= 0) & (rows < ROWS))[:, None], exact[0][rows.clamp(0, ROWS - 1).long()], 0)

    def grouped(x: Any, w: Any) -> Any:
        parts = [x[begin:end] @ w[i] for i, (begin, end) in enumerate(zip([0, *ends], ends, strict=False))]
        return torch.cat([*parts, x.new_zeros(ROWS - ends[-1], w.shape[2])])

    both = grouped(taken, exact[1])
    inside = torch.nn.functional.silu(both[:, ::2]) * both[:, 1::2]
    last = grouped(inside, exact[1][:, :, : N // 2])
    sums.index_add(0, places.long(), last * exact[2][:, None]).square().sum().backward()
    for one, other in zip((a, b, scales), exact, strict=True):
        scale = float(other.grad.abs().max())
        assert float((one.grad.double() - other.grad).abs().max()) < 2e-2 * scale


PLACES, WEIGHTS = np.zeros((3, 2), np.int32), np.ones((3, 2), np.float32)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"places": PLACES.astype(np.int64)}, r"places is a \(T, k\) matrix of Int32"),
        ({"weights": WEIGHTS[0]}, r"weights is a \(T, k\) matrix of Float32"),
        ({"weights": WEIGHTS[:2]}, r"places has the shape \(3, 2\), weights \(2, 2\)"),
        ({"source": A.T}, "source is a matrix of .* with contiguous rows"),
        ({"source": np.repeat(A, 2, 1)[:, ::2]}, "source is a matrix of .* with contiguous rows, not of strides"),
        ({"source": A[:, ::-1]}, "source is a matrix of .* with contiguous rows, not of strides"),
        ({"out": np.zeros((3, 2 * A.shape[1]), A.dtype)[:, ::2]}, "out is a matrix of .* with contiguous rows"),
        ({"source": A.astype(np.int8)}, "source is a matrix of Float16, BFloat16, Float32"),
        ({"out": np.zeros((3, 8), np.float16)}, r"out must have the shape of the result, \(3, 24\)"),
        ({"out": np.zeros((3, K), np.float32)}, "out is a matrix of Float16"),
        ({"out": A[:3]}, "out overlaps source"),
    ],
)
def test_bad_rows_are_refused(change: dict[str, Any], message: str) -> None:
    call = {"source": A, "places": PLACES, "weights": WEIGHTS, **change}
    with pytest.raises(ArgumentError, match=message):
        combine_rows(call.pop("source"), call.pop("places"), call.pop("weights"), **call)
