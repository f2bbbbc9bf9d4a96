"""Products with a weight of 4-bit integers: exact for small integers and powers of two, bounded for normal numbers,
the prepared layout, refusals, the operator of PyTorch."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright import Float16, Float32, cute
from tilewright.errors import ArgumentError, ConstraintError
from tilewright.gemm import Major, Operand, PreparedWeight, mixed_matmul, prepare_weight
from tilewright.gemm.kernel.mixed_small_m import MixedSmallMGemm
from tilewright.gemm.mainloop.prepared_weight import prepared_layout
from tilewright.gemm.operators.mixed import FEW_ROWS, MOST_ROWS, SIZES, MixedProduct, few_rows_config, prepared_operand
from tilewright.gemm.small_m_config import MixedSmallMConfig

F16, BF16 = np.float16, ml_dtypes.bfloat16
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


def drawn(seed: int, m: int, n: int, k: int, group: int, dtype: Any) -> tuple[Any, Any, Any, np.ndarray]:
    """Small integers, a 4-bit weight, scales that are powers of two, and the exact product."""
    rng = np.random.default_rng(seed)
    a, weight = rng.integers(-3, 4, (m, k)).astype(dtype), rng.integers(-8, 8, (n, k)).astype(np.int8)
    scales = np.exp2(rng.integers(-3, 4, (n, k // group))).astype(dtype)
    exact = a.astype(np.float64) @ (weight * np.repeat(scales.astype(np.float64), group, 1)).T
    return a, weight, scales, exact


@settings(max_examples=7, deadline=None)
@given(
    st.integers(1, 70),
    st.integers(1, 12),
    st.integers(1, 21),
    st.sampled_from([32, 64, 128]),
    st.sampled_from([F16, BF16]),
    st.sampled_from([F16, BF16, np.float32]),
    st.integers(0, 99),
)
def test_exact_for_any_extents(m: int, n: int, k: int, group: int, dtype: Any, kind: Any, seed: int) -> None:
    a, weight, scales, exact = drawn(seed, m, 8 * n, 128 * k, group, dtype)
    result = mixed_matmul(a, prepare_weight(weight, scales.astype(kind)), out_dtype=Float32)
    np.testing.assert_array_equal(result, exact)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", ["float16", "bfloat16"])
@pytest.mark.parametrize(("m", "group"), [(5, 32), (12, 128), (70, 64)])
def test_zero_points(m: int, group: int, name: str, device: str) -> None:
    """Of the kernel for few rows, and of the weight written out."""
    torch = pytest.importorskip("torch")
    a, weight, scales, _ = drawn(7, m, 40, 384, group, np.float32)
    numbers, zeros = weight + 8, np.random.default_rng(1).integers(0, 16, scales.shape).astype(np.uint8)
    shifted = numbers - np.repeat(zeros.astype(np.int64), group, 1)
    exact = a.astype(np.float64) @ (shifted * np.repeat(scales.astype(np.float64), group, 1)).T
    given, *parts = (torch.from_numpy(x).to(device) for x in (a, numbers, scales, zeros))
    result = mixed_matmul(given.to(getattr(torch, name)), prepare_weight(*parts), out_dtype=torch.float32)
    np.testing.assert_array_equal(result.cpu().numpy(), exact)


@pytest.mark.parametrize("rows", [3, 70])
@pytest.mark.parametrize("kind", ["int4", "int8", "e4m3", "e2m1", "zeros"])
def test_one_scale_for_each_column(kind: str, rows: int) -> None:
    rng = np.random.default_rng(5)
    a, scales = rng.integers(-2, 3, (rows, 384)).astype(F16), np.exp2(rng.integers(-2, 3, (24, 1))).astype(np.float32)
    numbers, more, dense = rng.integers(0, 5, (24, 384)).astype(np.int8), {}, scales
    if kind == "zeros":  # integers of 0 to 15 may be uint8
        zeros = rng.integers(0, 5, (24, 1)).astype(np.uint8)
        numbers, more, dense = numbers.view(np.uint8), {"zeros": zeros}, scales * (numbers - zeros.astype(float))
    elif kind == "e2m1":
        numbers, dense = numbers[:, ::2] | numbers[:, 1::2] << 4, scales * numbers / 2
        numbers = numbers.view(np.uint8)  # the numbers 0 to 4 are those of bits 0, 0.5, 1, 1.5, 2
    elif kind == "e4m3":
        numbers, dense = numbers.astype(ml_dtypes.float8_e4m3fn), scales * numbers
    else:
        more, dense = {"bits": int(kind[3:])}, scales * numbers
    prepared = prepare_weight(numbers, scales, **more)
    np.testing.assert_array_equal(mixed_matmul(a, prepared, out_dtype=Float32), a.astype(float) @ dense.T)
    more = {name: x.reshape(-1) if name == "zeros" else x for name, x in more.items()}
    vectors = prepare_weight(numbers, scales.reshape(-1), **more)
    assert vectors.settings == prepared.settings and (vectors.scales == prepared.scales).all()


@pytest.mark.unchecked
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("shape", "name"),
    [
        ((1, 4096, 1024), "float16"),
        ((1, 4096, 1024), "bfloat16"),
        ((16, 136, 2176), "bfloat16"),
        ((7, 8456, 256), "float16"),
        ((17, 1000, 640), "bfloat16"),
        ((31, 6344, 384), "float16"),
        ((63, 6344, 384), "bfloat16"),
        ((65, 520, 640), "float16"),
        ((65, 520, 640), "bfloat16"),
    ],
    ids=str,
)
def test_tensors_of_pytorch(shape: tuple[int, int, int], name: str, device: str) -> None:
    """Every size of the kernel for few rows, and more rows; with a bias and an activation, twice."""
    torch = pytest.importorskip("torch")
    m, n, k = shape
    a, weight, scales, exact = drawn(1, m, n, k, 128, np.float32)
    given, bias = torch.from_numpy(a).to(device, getattr(torch, name)), torch.arange(n, device=device) % 7 - 3.0
    prepared = prepare_weight(torch.from_numpy(weight).to(device), torch.from_numpy(scales).to(device))
    for _ in range(2):
        out = torch.full((m, n), float("nan"), device=device)
        if FEW_ROWS < m <= MOST_ROWS:  # mixed_matmul takes another kernel on sm_90
            MixedProduct.of(given, prepared, bias, out, "relu").few_rows()
        else:
            assert mixed_matmul(given, prepared, bias, out=out, activation="relu") is out
        np.testing.assert_array_equal(out.cpu().numpy(), np.maximum(exact + bias.cpu().numpy(), 0))


@pytest.mark.parametrize("m", [3, 16, 80])
def test_normal_numbers_round_once(m: int) -> None:
    """Few rows: sums of float32 are rounded once. More rows: the weight is rounded to the type of the rows, too."""
    rng = np.random.default_rng(0)
    a, weight = rng.standard_normal((m, 512)).astype(BF16), rng.integers(-8, 8, (64, 512)).astype(np.int8)
    scales = rng.uniform(0.5, 1, (64, 4)).astype(BF16)
    exact = a.astype(np.float64) @ (weight * np.repeat(scales.astype(np.float64), 128, 1)).T
    result = mixed_matmul(a, prepare_weight(weight, scales), out_dtype=Float32)
    error = np.linalg.norm(result - exact) / np.linalg.norm(exact)
    assert error < (1e-6 if m <= FEW_ROWS else 2.0**-8)


@pytest.mark.parametrize("rows", [0, 3, 40])
def test_an_activation_is_known_whatever_the_rows(rows: int) -> None:
    with pytest.raises(ArgumentError, match="no activation 'gelup'"):
        mixed_matmul(np.ones((rows, 128), F16), prepare_weight(WEIGHT[:, :128], SCALES[:, :1]), activation="gelup")


def test_the_layout_is_what_the_instruction_wants() -> None:
    """The two columns of the layout beside the fragments. mma.sync: of 32 elements of K, thread t of four holds 8t to
    8t + 7, and a lane's 32 numbers of 128 elements are neighbours. wgmma: thread t holds pair t of all chunks of 8, in
    four words, of which a warp reads 32 neighbours at once."""
    n, k = 16, 256
    layout = prepared_layout(n, k)
    for tile, row, thread in ((0, 0, 0), (1, 3, 2), (1, 7, 3)):
        lane = row + 8 * thread
        held = sorted(layout((row, 128 * tile + 32 * s + 8 * thread + j)) for s in range(4) for j in range(8))
        assert held == list(range(32 * (lane + 32 * tile), 32 * (lane + 32 * tile) + 32))
        pairs = sorted(layout((row, 128 * tile + 8 * c + 2 * thread + e)) for c in range(16) for e in range(2))
        words = [32 * i + 4 * row + thread + 128 * tile for i in range(4)]
        assert pairs == [8 * word + number for word in words for number in range(8)]
    weight = np.random.default_rng(0).integers(-8, 8, (n, k)).astype(np.int8)
    words = prepare_weight(weight, np.ones((n, 2), F16)).words.view(np.uint32)
    for at in ((0, 0), (5, 77), (15, 255), (9, 128)):
        place = layout(at)
        assert int(words[place // 8] >> 4 * (place % 8)) % 16 - 8 == weight[at]
    assert cute.cosize(layout) == n * k


def test_rows_at_strides_leading_dimensions_and_none() -> None:
    a, weight, scales, exact = drawn(3, 6, 24, 256, 64, F16)
    prepared = prepare_weight(weight, scales)
    apart = np.zeros((6, 259), F16)[:, 1:257]  # rows at odd addresses: copied
    apart[:] = a
    np.testing.assert_array_equal(mixed_matmul(apart, prepared, out_dtype=Float32), exact)
    stacked = mixed_matmul(a.reshape(2, 3, 256), prepared, out_dtype=Float32)
    np.testing.assert_array_equal(stacked, exact.reshape(2, 3, 24))
    np.testing.assert_array_equal(mixed_matmul(a[0], prepared, out_dtype=Float32), exact[0])
    apart_out = np.zeros((3, 2, 24), np.float32).transpose(1, 0, 2)  # no matrix
    assert mixed_matmul(a.reshape(2, 3, 256), prepared, out=apart_out) is apart_out
    np.testing.assert_array_equal(apart_out, exact.reshape(2, 3, 24))
    assert mixed_matmul(a[:0], prepared).shape == (0, 24)


@pytest.mark.parametrize("rows", [6, 70])
def test_contiguous_tensors_of_pytorch_at_odd_addresses(rows: int) -> None:
    """``contiguous()`` would give the same memory again; nothing but what the kernel reads may move."""
    torch = pytest.importorskip("torch")
    a, weight, scales, exact = drawn(3, rows, 24, 256, 64, F16)
    prepared = prepare_weight(torch.from_numpy(weight), torch.from_numpy(scales))
    moved = torch.zeros(a.size + 1, dtype=torch.float16)[1:].view(rows, 256)
    moved.copy_(torch.from_numpy(a))
    np.testing.assert_array_equal(mixed_matmul(moved, prepared, out_dtype=torch.float32), exact)


@pytest.mark.parametrize(("rows", "n", "k"), [(3, 8, 0), (70, 8, 0), (3, 0, 128), (0, 8, 128)])
def test_nothing_to_multiply(rows: int, n: int, k: int) -> None:
    prepared = prepare_weight(np.zeros((n, k), np.int8), np.ones((n, k // 128), F16))
    assert prepared.shape == (n, k)
    bias = np.arange(n, dtype=np.float16)
    found = mixed_matmul(np.ones((rows, k), F16), prepared, bias)
    np.testing.assert_array_equal(found, np.broadcast_to(bias, (rows, n)))


WEIGHT, SCALES = np.zeros((16, 256), np.int8), np.ones((16, 2), F16)


@pytest.mark.parametrize(
    ("weight", "scales", "message"),
    [
        (WEIGHT[:15], SCALES[:15], "with N in 8s and K in 128s, not Int8 of shape"),
        (WEIGHT.astype(F16), SCALES, "is an .* of int8 .* not Float16"),
        (WEIGHT, np.ones((16, 3), F16), r"scales has the shape \(16, 3\); for a weight \(16, 256\) it is \(16, 8\) or"),
        (WEIGHT.view(np.uint8), SCALES, "uint8 is pairs of 4-bit floats: integers of one byte each are int8"),
        (WEIGHT, np.ones((16, 2)), "scales are Float16, BFloat16 or Float32, not Float64"),
        (WEIGHT + 8, SCALES, "weight has numbers of 8 to 8, not of -8 to 7"),
        (WEIGHT, [1.0], "scales is builtins.list, not an array"),
    ],
)
def test_prepare_weight_refuses_wrong_operands(weight: Any, scales: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        prepare_weight(weight, scales)


ZEROS = np.zeros((16, 2), np.uint8)


@pytest.mark.parametrize(
    ("weight", "zeros", "message"),
    [
        (WEIGHT - 1, ZEROS, "weight has numbers of -1 to -1, not of 0 to 15"),
        (WEIGHT, ZEROS + 16, "zeros has numbers of 16 to 16, not of 0 to 15"),
        (WEIGHT, ZEROS[:, :1], r"zeros has the shape \(16, 1\), scales \(16, 2\)"),
        (WEIGHT, ZEROS.astype(F16), "zeros are int8 or uint8 on cpu"),
    ],
)
def test_zero_points_that_there_are_not(weight: Any, zeros: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        prepare_weight(weight, SCALES, zeros)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weight": WEIGHT}, "weight is ndarray: arrange it with prepare_weight first"),
        ({"a": np.ones((2, 256), np.float32)}, "a is Float32; mixed_matmul multiplies"),
        ({"a": np.ones((2, 128), F16)}, r"a of shape \(2, 128\) has not the 256 elements of K"),
        ({"bias": np.ones(15, F16)}, "bias is a vector of 16 elements"),
        ({"out": np.ones((2, 15), F16)}, r"out must have the shape of the result, \(2, 16\)"),
        ({"out": np.ones((2, 16), F16), "out_dtype": Float32}, "out is Float16, and out_dtype Float32"),
        ({"out_dtype": np.int32}, "writes floats of 16 or 32 bits, not Int32"),
        ({"activation": "swish"}, "there is no activation 'swish'"),
    ],
)
def test_refusals(change: dict[str, Any], message: str) -> None:
    usual = {"a": np.ones((2, 256), F16), "weight": prepare_weight(WEIGHT, SCALES)}
    with pytest.raises(ArgumentError, match=message):
        mixed_matmul(**{**usual, **change})


def unaligned(x: np.ndarray) -> np.ndarray:
    """A copy that begins 4 bytes after a multiple of 16."""
    memory = np.zeros(x.nbytes + 32, np.uint8)
    begin = -memory.ctypes.data % 16 + 4
    found = memory[begin : begin + x.nbytes].view(x.dtype).reshape(x.shape)
    found[...] = x
    return found


def test_scales_are_copied() -> None:
    """Scales of one group that begin anywhere, and are changed later: lanes read two at once."""
    scales = unaligned(np.arange(16, dtype=np.float32)[:, None])
    prepared = prepare_weight(np.ones((16, 128), np.int8), scales)
    scales[:] = 7
    assert mixed_matmul(np.ones((1, 128), F16), prepared)[0].tolist() == [128 * n for n in range(16)]


PREPARED = prepare_weight(np.ones((16, 256), np.int8), SCALES)


@pytest.mark.parametrize("rows", [1, 65])
@pytest.mark.parametrize(
    ("words", "scales", "message"),
    [
        (PREPARED.words, np.ones((2, 32), F16)[:, :16], "scales of a prepared weight are a part of a larger array"),
        (PREPARED.words, np.ones((2, 32), F16)[:, ::2], "scales of a prepared weight are a part of a larger array"),
        (PREPARED.words, unaligned(PREPARED.scales), "scales .* do not begin at a multiple of 16 bytes"),
        (unaligned(PREPARED.words), PREPARED.scales, "words .* do not begin at a multiple of 16 bytes"),
        (np.repeat(PREPARED.words, 2)[::2], PREPARED.scales, "words of a prepared weight are a part of"),
        (PREPARED.words.view(np.float32), PREPARED.scales, "words of a prepared weight are Int32, not Float32"),
    ],
)
def test_parts_of_prepared_weights(words: Any, scales: Any, message: str, rows: int) -> None:
    with pytest.raises(ArgumentError, match=message):
        mixed_matmul(np.ones((rows, 256), F16), PreparedWeight(words, scales))


def test_out_over_what_is_read() -> None:
    memory = np.zeros(4 * 256, F16)
    with pytest.raises(ArgumentError, match="out overlaps a"):
        mixed_matmul(memory[:512].reshape(2, 256), prepare_weight(WEIGHT, SCALES), out=memory[:32].reshape(2, 16))


def test_sizes_that_the_kernel_does_not_have() -> None:
    a, c = Operand(Float16, Major.K, 128), Operand(Float16, Major.K, 32)
    config = few_rows_config(3, a, c, prepare_weight(WEIGHT, SCALES), 132)
    assert config.tile == (8, 16, 128)
    for tile, stages, sides in (
        ((16, 8, 128), 2, 1),
        ((72, 16, 128), 2, 1),
        ((8, 16, 64), 2, 1),
        ((8, 16, 128), 0, 1),
        ((8, 48, 128), 2, 2),
    ):
        with pytest.raises(ConstraintError, match="8 to 64 rows in 8s, columns in 16s and 128 elements of K"):
            MixedSmallMConfig(a, config.b, c, Float32, tile, (sides, 8), stages).check()


@pytest.mark.parametrize(("rows", "arch"), [*zip(SIZES[4], ("sm_90a", "sm_80") * 2, strict=True)])
def test_mixed_matmul_compiles_with_few_spills(rows: int, arch: str) -> None:
    """None but for 16 and 32 rows, and with one lop3 for a register of two numbers: the mask is in a register, not
    moved to one each time."""
    cuda = pytest.importorskip("tilewright.cuda")
    from tilewright.gemm.arrays import Matrix
    from tilewright.gemm.epilogue.functions import Chain

    a, c = Operand(Float16, Major.K, 128), Operand(Float16, Major.K, 16)
    prepared = prepare_weight(WEIGHT, SCALES)
    x, d = Matrix.of("a", np.zeros((16, 256), F16)), Matrix.of("d", np.zeros((16, 16), F16))
    config = few_rows_config(rows, a, c, prepared, 132 if arch == "sm_80" else 0)
    operands = x.tensor(a), prepared_operand(prepared), d.tensor(c), d.tensor(c), Chain(())
    kernel = cute.compile(MixedSmallMGemm(config), *operands).kernels[0]
    found = cuda.compile(kernel, arch)
    # 16 rows: 16 warps a multiprocessor with 32 bytes spilled take 51 us where 8 without take 63.
    assert found.spills <= (32 if rows in (16, 32) else 0)
    assert found.registers <= 65536 // (config.threads * config.blocks)
    if arch == "sm_90a":
        assert "LOP3" in found.sass and "HMMA" in found.sass and "0xf000f" not in found.sass


@pytest.mark.parametrize("device", DEVICES)
def test_the_operator_of_pytorch(device: str) -> None:
    torch = pytest.importorskip("torch")
    a, weight, scales, exact = drawn(5, 4, 32, 256, 128, F16)
    x = torch.from_numpy(a).to(device)
    prepared = prepare_weight(torch.from_numpy(weight).to(device), torch.from_numpy(scales).to(device))
    import tilewright.gemm.operators.torch_mixed  # noqa: F401  registers the operator

    given = x, prepared.words, prepared.scales
    torch.library.opcheck(torch.ops.tilewright.mixed_matmul, given, test_utils="test_faketensor")
    compiled = torch.compile(
        lambda x: mixed_matmul(x, prepared, out_dtype=torch.float32) + 1, backend="eager", fullgraph=True
    )
    np.testing.assert_array_equal(compiled(x).cpu().numpy(), exact + 1)
    with pytest.raises(ArgumentError, match="mixed_matmul has no gradient"):
        mixed_matmul(x.requires_grad_(), prepared)
