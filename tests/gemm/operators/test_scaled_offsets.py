"""Groups of scaled 8-bit operands: exact against float64 for small integers and powers of two, in all three forms."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright import Float32, sim
from tilewright.errors import ArgumentError
from tilewright.gemm import scaled_grouped_matmul

E4M3, E5M2 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


def drawn(mode: int, m: int, n: int, k: int, ends: list[int], dtype: Any, seed: int) -> tuple[list[Any], np.ndarray]:
    """a, b, scale_a, scale_b and offsets; and the exact result."""
    rng, groups = np.random.default_rng(seed), len(ends)

    def integers(*shape: int) -> np.ndarray:
        return rng.integers(-2, 3, shape).astype(dtype)

    def scales(*shape: int) -> np.ndarray:
        return np.exp2(rng.integers(-3, 4, shape)).astype(np.float32)

    a = integers(groups, m, k) if mode == 1 else integers(m, k)
    b = integers(groups, n, k).transpose(0, 2, 1) if mode == 0 else integers(n, k).T
    scale_a = scales(m) if mode == 0 else scales(groups, m)
    scale_b = scales(n) if mode == 1 else scales(groups, n)
    exact = np.zeros((groups, m, n) if mode == 2 else (m, n))
    left, right, begin = a.astype(np.float64), b.astype(np.float64), 0
    for i, end in enumerate(ends):
        cut = slice(begin, end)
        if mode == 0:
            exact[cut] = left[cut] @ right[i] * scale_a[cut, None] * scale_b[i]
        elif mode == 1:
            exact[:, cut] = left[i] @ right[:, cut] * scale_a[i][:, None] * scale_b[cut]
        else:
            exact[i] = left[:, cut] @ right[cut] * scale_a[i][:, None] * scale_b[i]
        begin = end
    flat = mode == 2  # as torch._scaled_grouped_mm has them
    return [
        a,
        b,
        scale_a.reshape(-1) if flat else scale_a,
        scale_b.reshape(-1) if flat else scale_b,
        np.array(ends, np.int32),
    ], exact


@settings(max_examples=10, deadline=None)
@given(
    mode=st.sampled_from([0, 1, 2]),
    extents=st.tuples(*[st.integers(1, 80)] * 2, st.integers(1, 12)),
    parts=st.lists(st.floats(0, 1), min_size=1, max_size=5),
    dtype=st.sampled_from([E4M3, E5M2, np.int8]),
    fast=st.booleans(),
    seed=st.integers(0, 99),
)
def test_exact_for_any_groups(mode: int, extents: Any, parts: list[float], dtype: Any, fast: bool, seed: int) -> None:
    m, n, k = extents[0], extents[1], 16 * extents[2]
    ends = [int(x * (m, n, k)[mode]) for x in sorted(parts)]
    operands, exact = drawn(mode, m, n, k, ends, dtype, seed)
    result = scaled_grouped_matmul(*operands, out_dtype=Float32, use_fast_accum=fast)
    np.testing.assert_array_equal(result, exact)


def of_arch(device: str) -> tuple[str, str]:
    """The simulator's architecture, and where arrays are."""
    return (device, "cpu") if device.startswith("sm_") else ("sm_90a", device)


@pytest.mark.parametrize("device", [*DEVICES, "sm_100a", "sm_120a"])
@pytest.mark.parametrize(
    ("dtypes", "columns"), [((E4M3, E4M3), 1), ((E4M3, E5M2), 128)], ids=["e4m3-1", "e4m3 e5m2-128"]
)
def test_scales_of_blocks(dtypes: tuple[Any, Any], columns: int, device: str) -> None:
    """Groups that begin within tiles, empty ones, and rows of no group whose scales are NaN."""
    torch, (arch, device) = pytest.importorskip("torch"), of_arch(device)
    rng, (m, n, k), ends = np.random.default_rng(5), (200, 144, 272), [7, 7, 130, 190]
    a = rng.integers(-2, 3, (m, k)).astype(dtypes[0])
    b = rng.integers(-2, 3, (len(ends), n, k)).astype(dtypes[1])
    scale_a = np.exp2(rng.integers(-3, 4, (m, 3))).astype(np.float32)
    scale_b = np.exp2(rng.integers(-3, 4, (len(ends), -(-n // columns), 3))).astype(np.float32)
    exact, deep = np.zeros((m, n)), np.arange(k) // 128
    left = a.astype(np.float64) * scale_a[:, deep]
    right = b.astype(np.float64) * scale_b[:, np.arange(n) // columns][:, :, deep]
    for i, (begin, end) in enumerate(zip([0, *ends], ends, strict=False)):
        exact[begin:end] = left[begin:end] @ right[i].T
    scale_a[ends[-1] :] = np.nan
    kinds = {E4M3: torch.float8_e4m3fn, E5M2: torch.float8_e5m2}
    a, b = (
        torch.from_numpy(x.view(np.uint8)).view(kinds[kind]).to(device) for x, kind in zip((a, b), dtypes, strict=True)
    )
    scales = (torch.from_numpy(x).to(device) for x in (scale_a, scale_b))
    scale_a, scale_b = scales
    offsets = torch.tensor(ends, dtype=torch.int32, device=device)
    with sim.options(arch=arch):
        result = scaled_grouped_matmul(a, b.mT, scale_a, scale_b.mT, offsets, out_dtype=torch.float32)
    np.testing.assert_array_equal(result.cpu().numpy(), exact)


@pytest.mark.parametrize("mode", [0, 1])
def test_one_group_with_one_block(mode: int) -> None:
    """All strides of the stack of scales are 1."""
    a, b = np.full((8, 128), 2, E4M3), np.full((16, 128), 3, E4M3).T
    one, ends = np.full((1, 1, 1), 0.5, np.float32), np.array([16 if mode else 8], np.int32)
    if mode:
        result = scaled_grouped_matmul(a[None], b, one, np.ones((1, 16), np.float32), ends)
    else:
        result = scaled_grouped_matmul(a, b[None], np.ones((8, 1), np.float32), one, ends)
    np.testing.assert_array_equal(result.astype(float), np.full((8, 16), 384.0))


@pytest.mark.parametrize("device", [*DEVICES, "sm_100a", "sm_120a"])
@pytest.mark.parametrize("rows", [1, 128])
def test_scales_of_blocks_of_groups_of_columns(rows: int, device: str) -> None:
    """As the gradient of a layer's input, transposed; columns of no group have scales that are NaN."""
    torch, (arch, device) = pytest.importorskip("torch"), of_arch(device)
    rng, (m, n, k), ends = np.random.default_rng(5), (144, 200, 272), [7, 7, 130, 190]
    a, b = (rng.integers(-2, 3, shape) for shape in ((len(ends), m, k), (n, k)))
    scale_a = np.exp2(rng.integers(-3, 4, (len(ends), -(-m // rows), 3))).astype(np.float32)
    scale_b = np.exp2(rng.integers(-3, 4, (3, n))).astype(np.float32)
    exact, deep = np.zeros((m, n)), np.arange(k) // 128
    left, right = a * scale_a[:, np.arange(m) // rows][:, :, deep], b.T * scale_b[deep].astype(np.float64)
    for i, (begin, end) in enumerate(zip([0, *ends], ends, strict=False)):
        exact[:, begin:end] = left[i] @ right[:, begin:end]
    scale_b[:, ends[-1] :] = np.nan
    eight = (torch.from_numpy(x).to(device, torch.float8_e4m3fn) for x in (a, b))
    given_a, given_b, first, second = (*eight, *(torch.from_numpy(x).to(device) for x in (scale_a, scale_b)))
    offsets = torch.tensor(ends, dtype=torch.int32, device=device)
    with sim.options(arch=arch):
        result = scaled_grouped_matmul(given_a, given_b.T, first, second, offsets, out_dtype=torch.float32)
    np.testing.assert_array_equal(result.cpu().numpy(), exact)
    import tilewright.gemm.operators.torch_scaled_offsets  # noqa: F401  registers the operator

    given = given_a, given_b.T, first, second, offsets
    torch.library.opcheck(torch.ops.tilewright.scaled_grouped_matmul, given, test_utils="test_faketensor")
    with pytest.raises(
        ArgumentError, match=r"for blocks of 128 elements of K they are \(4, 144, 3\) and \(3, 200\) or"
    ):
        scaled_grouped_matmul(given_a, given_b.T, first[:, :1].repeat(1, 3, 1), second, offsets)


@pytest.mark.parametrize("where", ["a", "b", "out"])
@pytest.mark.parametrize("mode", [0, 1])
def test_scales_of_blocks_at_odd_addresses(mode: int, where: str) -> None:
    """What TMA cannot access is copied."""
    torch = pytest.importorskip("torch")
    (m, n, k), ends = ((40, 64, 144), [7, 7, 40]) if mode == 0 else ((64, 40, 144), [7, 7, 40])
    operands, _ = drawn(mode, m, n, k, ends, np.int8, 5)
    a, b = (torch.from_numpy(x.copy(order="K")).float().to(torch.float8_e4m3fn) for x in operands[:2])
    deep = torch.ones((m, 2)), torch.ones((3, 2, 1))
    scale_a, scale_b = deep if mode == 0 else (torch.ones((3, 1, 2)), torch.ones((2, n)))
    out = torch.full((m, n), float("nan")) if mode == 0 else torch.full((n, m), float("nan")).T
    exact = np.zeros((m, n))
    for i, (begin, end) in enumerate(zip([0, *ends], ends, strict=False)):
        one, other = operands[0].astype(np.float64), operands[1].astype(np.float64)
        cut = slice(begin, end)
        if mode == 0:
            exact[cut] = one[cut] @ other[i]
        else:
            exact[:, cut] = one[i] @ other[:, cut]

    def moved(x: Any) -> Any:
        memory = torch.zeros((x.numel() + 1) * x.element_size(), dtype=torch.uint8).view(x.dtype)
        found = memory.as_strided(x.shape, x.stride(), 1)
        found.copy_(x)
        return found

    a, b, out = (moved(x) if where == name else x for name, x in (("a", a), ("b", b), ("out", out)))
    scaled_grouped_matmul(a, b, scale_a, scale_b, torch.tensor(ends, dtype=torch.int32), out=out)
    np.testing.assert_array_equal(out.numpy(), exact)


@pytest.mark.parametrize("kernel", [None, "tensorop_e4m3"])
def test_rows_of_no_group_are_zero_whatever_their_scales_are(kernel: str | None) -> None:
    operands, exact = drawn(0, 40, 32, 64, [5, 16], E4M3, 1)
    operands[2][16:] = np.nan
    result = scaled_grouped_matmul(*operands, out_dtype=Float32, kernel=kernel)
    np.testing.assert_array_equal(result, exact)


def test_scales_of_empty_groups_have_no_effect() -> None:
    operands, exact = drawn(0, 40, 32, 64, [0, 16, 16], E4M3, 1)
    operands[3][0] = operands[3][2] = np.nan
    result = scaled_grouped_matmul(*operands, out_dtype=Float32)
    np.testing.assert_array_equal(result[:16], exact[:16])


@pytest.mark.unchecked
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("mode", "name"),
    [(0, "hopper_e4m3"), *((mode, name) for mode in (0, 1, 2) for name in (None, "tensorop_e4m3"))],
)
def test_tensors_of_pytorch(mode: int, name: str | None, device: str) -> None:
    """Groups of 16s, and others, which one of two launches takes; each kernel by name."""
    torch = pytest.importorskip("torch")
    for ends in ([32, 32, 96, 240], [7, 100, 100, 255]):
        operands, exact = drawn(mode, 256, 272, 256, ends, np.int8, 2)
        tensors = [torch.from_numpy(x.copy(order="K")).to(device) for x in operands]
        for i in (0, 1):
            tensors[i] = tensors[i].to(torch.float32).to(torch.float8_e4m3fn)
        result = scaled_grouped_matmul(*tensors, out_dtype=torch.float32, kernel=name)
        np.testing.assert_array_equal(result.cpu().numpy(), exact)


@pytest.mark.parametrize("device", DEVICES)
def test_the_operator_of_pytorch(device: str) -> None:
    torch = pytest.importorskip("torch")
    operands, exact = drawn(0, 64, 48, 128, [10, 64], np.int8, 3)
    given = [torch.from_numpy(x.copy(order="K")).to(device) for x in operands]
    import tilewright.gemm.operators.torch_scaled_offsets  # noqa: F401  registers the operator

    torch.library.opcheck(torch.ops.tilewright.scaled_grouped_matmul, tuple(given), test_utils="test_faketensor")
    compiled = torch.compile(
        lambda *x: scaled_grouped_matmul(*x, out_dtype=torch.float32) + 1, backend="eager", fullgraph=True
    )
    np.testing.assert_array_equal(compiled(*given).cpu().numpy(), exact + 1)
    with pytest.raises(ArgumentError, match="scaled_grouped_matmul has no gradient"):
        scaled_grouped_matmul(*given[:2], given[2].requires_grad_(), *given[3:])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scale_a": np.ones(63, np.float32)}, r"scale_a has the shape \(63,\); for these operands it is \(64,\)"),
        ({"scale_b": np.ones(16, np.float32)}, r"scale_b has the shape \(16,\); for these operands it is \(2, 16\)"),
        ({"scale_b": np.ones((2, 16))}, "scale_b must be float32, got Float64"),
        ({"scale_a": 1.0}, "scale_a is builtins.float, not an array"),
        ({"a": np.ones((64, 128), np.float16), "b": np.ones((2, 128, 16), np.float16)}, "a is Float16; scaled_grouped"),
        ({"out_dtype": np.int32}, "writes floats of 16 or 32 bits, not Int32"),
        ({"offsets": np.array([9, 3], np.int32)}, "group 1 has the elements 9 to 3 of 64"),
    ],
)
def test_refusals(change: dict[str, Any], message: str) -> None:
    names = "a", "b", "scale_a", "scale_b", "offsets"
    usual = dict(zip(names, drawn(0, 64, 16, 128, [10, 64], E4M3, 4)[0], strict=True))
    with pytest.raises(ArgumentError, match=message):
        scaled_grouped_matmul(**{**usual, **change})
