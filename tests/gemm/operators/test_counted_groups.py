"""Groups of counts on the device, each at a place of its own: exact on both machines, rows behind the counts untouched,
scales, gradients, the operators of PyTorch, refusals."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright import sim
from tilewright.errors import ArgumentError
from tilewright.gemm import grouped_matmul, scaled_grouped_matmul

F16, E4M3 = np.float16, ml_dtypes.float8_e4m3fn
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


def drawn(rng: np.random.Generator, groups: int, m: int, n: int, k: int, turned: bool) -> tuple[Any, Any, np.ndarray]:
    a, b = (rng.integers(-2, 3, shape).astype(F16) for shape in ((groups, m, k), (groups, k, n)))
    if turned:  # columns of the weights contiguous
        b = np.ascontiguousarray(b.transpose(0, 2, 1)).transpose(0, 2, 1)
    return a, b, a.astype(np.float64) @ b


def within(counts: Any, m: int) -> np.ndarray:
    """(G, M, 1)"""
    return (np.arange(m) < np.asarray(counts)[:, None])[:, :, None]


@settings(max_examples=12, deadline=None)
@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=7),
    st.integers(1, 90),
    st.sampled_from([1, 16, 33, 40]),
    st.sampled_from([0, 1, 16, 17, 64]),
    st.booleans(),
    st.sampled_from(["auto", "stream_k"]),
    st.sampled_from(["sm_80", "sm_90a", "sm_100a"]),
    st.booleans(),
    st.integers(0, 99),
)
def test_exact_and_nothing_behind_the_counts(
    parts: list[float], m: int, n: int, k: int, turned: bool, how: str, arch: str, given: bool, seed: int
) -> None:
    counts = np.array([round(part * m) for part in parts], np.int32)
    a, b, exact = drawn(np.random.default_rng(seed), len(parts), m, n, k, turned)
    for i, count in enumerate(counts):
        a[i, count:] = np.nan  # rows behind the counts are not read
    out = np.full((len(parts), m, n), 7, F16) if given else None
    with sim.options(arch=arch):
        result = grouped_matmul(a, b, counts=counts, out=out, decomposition=how)
    assert out is None or result is out
    np.testing.assert_array_equal(result, np.where(within(counts, m), exact, 7 if given else 0))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", ["lines", "1x128", "128x128"])
def test_scales(kind: str, device: str) -> None:
    """Also repeated with other counts and numbers; rows behind the counts have scales that are NaN."""
    torch, rng = pytest.importorskip("torch"), np.random.default_rng(3)
    groups, m, n, k = 3, 150, 144, 272
    deep = np.arange(k) // 128
    for counts in ([150, 0, 7], [1, 130, 149]):
        a, b = (rng.integers(-2, 3, x).astype(E4M3) for x in ((groups, m, k), (groups, n, k)))
        shapes = ((groups, m, 3), (groups, n, 3)) if kind == "1x128" else ((groups, m, 3), (groups, 2, 3))
        shapes = ((groups, m), (groups, n)) if kind == "lines" else shapes
        scale_a, scale_b = (np.exp2(rng.integers(-2, 3, x)).astype(np.float32) for x in shapes)
        if kind == "lines":
            full = scale_a[:, :, None], scale_b[:, :, None]
        else:
            columns = scale_b if kind == "1x128" else scale_b[:, np.arange(n) // 128]
            full = scale_a[:, :, deep], columns[:, :, deep]
        exact = (a.astype(np.float64) * full[0]) @ (b.astype(np.float64) * full[1]).transpose(0, 2, 1)
        scale_a[~within(counts, m)[:, :, 0]] = np.nan
        eights = (torch.from_numpy(x.view(np.uint8)).view(torch.float8_e4m3fn).to(device) for x in (a, b))
        left, right = eights
        scales = [torch.from_numpy(x).to(device) for x in (scale_a, scale_b)]
        scales[1] = scales[1] if kind == "lines" else scales[1].mT
        out = torch.full((groups, m, n), 7.0, device=device)
        on_device = torch.tensor(counts, dtype=torch.int32, device=device)
        scaled_grouped_matmul(left, right.mT, *scales, counts=on_device, out=out)
        np.testing.assert_array_equal(out.cpu().numpy(), np.where(within(counts, m), exact, 7))


@pytest.mark.parametrize("device", DEVICES)
def test_gradients_and_torch_compile(device: str) -> None:
    torch = pytest.importorskip("torch")
    a, b, _ = (torch.from_numpy(x).to(device) for x in drawn(np.random.default_rng(1), 3, 40, 16, 32, True))
    counts = torch.tensor([40, 0, 9], dtype=torch.int32, device=device)
    inside = torch.from_numpy(within([40, 0, 9], 40)).to(device)
    grad = torch.randint(-2, 3, (3, 40, 16), device=device).half()
    given = [x.clone().requires_grad_() for x in (a, b)]
    result = grouped_matmul(*given, counts=counts)
    found = torch.autograd.grad(result, given, grad)
    kept = torch.where(inside, grad.double(), 0)
    product = torch.where(inside, a.double() @ b.double(), 0)
    assert torch.equal(result.double(), product)
    assert torch.equal(found[0].double(), kept @ b.double().mT)
    assert torch.equal(found[1].double(), torch.where(inside, a.double(), 0).mT @ kept)
    step = torch.compile(lambda x, y, z: grouped_matmul(x, y, counts=z), backend="aot_eager", fullgraph=True)
    assert torch.equal(step(a, b, counts).double(), product)

    def into(x: Any, y: Any, z: Any, out: Any) -> Any:
        return grouped_matmul(x, y, counts=z, out=out)

    out = torch.full((3, 40, 16), 7.0, device=device).half()
    torch.compile(into, backend="aot_eager", fullgraph=True)(a, b, counts, out)
    assert torch.equal(out.double(), torch.where(inside, product, 7))


def test_rows_within_the_counts_are_zeros_without_k() -> None:
    torch = pytest.importorskip("torch")
    out, counts = torch.full((2, 3, 8), 7.0).half(), torch.tensor([1, 3], dtype=torch.int32)
    grouped_matmul(torch.zeros(2, 3, 0).half(), torch.zeros(2, 0, 8).half(), counts=counts, out=out)
    np.testing.assert_array_equal(out.numpy(), np.where(within([1, 3], 3), 0, np.full((2, 3, 8), 7)))


A, B, COUNTS = np.ones((3, 8, 32), F16), np.ones((3, 32, 16), F16), np.array([2, 0, 8], np.int32)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"counts": np.array([2, -1, 8], np.int32)}, "group 1 has a count of -1, and its place 8 rows"),
        ({"counts": np.array([9, 0, 8], np.int32)}, "group 0 has a count of 9, and its place 8 rows"),
        ({"counts": COUNTS[:2]}, r"groups with counts are \(G, M, K\) times .* with counts of shape \(2,\)"),
        ({"counts": COUNTS.astype(np.int64)}, "counts must be int32, got Int64"),
        ({"counts": [2, 0, 8]}, "counts is builtins.list, not an array"),
        ({"a": A[0]}, r"groups with counts are \(G, M, K\) times \(G, K, N\), with G counts; not \(8, 32\)"),
        ({"b": B[:2]}, r"groups with counts are .* not \(3, 8, 32\) times \(2, 32, 16\)"),
        ({"offsets": COUNTS}, "counts and offsets: groups have one of them"),
        ({"rows": COUNTS}, "rows is for groups that offsets cut"),
        ({"out": np.zeros((3, 8, 15), F16)}, r"out must have the shape of the result, \(3, 8, 16\)"),
        ({"out": np.zeros((3, 9, 16), F16)[:, :8]}, "the matrices of out do not follow each other"),
        ({"b": B[:, :31]}, "inner dimensions differ"),
        ({"decomposition": "split_k"}, "there is no decomposition 'split_k' of groups"),
    ],
)
def test_refusals(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        grouped_matmul(**{"a": A, "b": B, "counts": COUNTS, **change})


def test_scales_that_do_not_fit() -> None:
    eight = A.astype(E4M3), np.ones((3, 16, 32), E4M3).transpose(0, 2, 1)
    ones = np.ones((3, 16), np.float32)
    for scale_a, more, message in (
        (
            np.ones(24, np.float32),
            {"counts": COUNTS},
            r"scale_a has the shape \(24,\); with counts its first modes are",
        ),
        (np.ones((3, 8), np.float32), {}, "wants offsets, where the groups end, or counts"),
        (np.ones((3, 8, 1), ml_dtypes.float8_e8m0fnu), {"counts": COUNTS}, "counts are for scales of float32"),
    ):
        with pytest.raises(ArgumentError, match=message):
            scaled_grouped_matmul(*eight, scale_a, ones, **more)
