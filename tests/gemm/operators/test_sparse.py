"""Products with a 2:4 sparse matrix: exact for integers over shapes, sizes and decompositions; the compressor, and what
is refused."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright import Float32, sim
from tilewright.atoms.sparsity import chunk_of, metadata_layout, stored_places, written_out
from tilewright.errors import ArgumentError, ConstraintError
from tilewright.gemm import CompressedMatrix, SplitK, compress_2_4, cross_compile, gemm, sparse_matmul
from tilewright.gemm.choice.registry import sparse_kernels
from tilewright.gemm.epilogue.functions import Relu, Residual, Store
from tilewright.gemm.epilogue.permute import Permuted

F16, BF16, E4M3 = np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


def sparse(seed: int, m: int, k: int, dtype: Any = F16) -> np.ndarray:
    """Small integers, at most two of four that are not zero; of 32 bits one of two."""
    rng, each = np.random.default_rng(seed), 2 if np.dtype(dtype).itemsize == 4 else 4
    chunks = rng.integers(-3, 4, (m, k // each, each))
    chunks[rng.random(chunks.shape).argsort(-1) < each // 2] = 0
    return chunks.reshape(m, k).astype(dtype)


def integers(seed: int, shape: Any, dtype: Any = F16) -> np.ndarray:
    return np.random.default_rng(seed).integers(-3, 4, shape).astype(dtype)


@settings(max_examples=20, deadline=None)
@given(
    st.integers(1, 130),
    st.integers(1, 20),
    st.sampled_from([F16, BF16, np.float32, E4M3, ml_dtypes.float8_e5m2, np.int8]),
    st.integers(0, 99),
)
def test_compressed_matrix_expands_to_the_original(m: int, k: int, dtype: Any, seed: int) -> None:
    """The metadata, read as wgmma.sp reads them, put the stored elements where they were."""
    a = sparse(seed, m, 32 * k, dtype)
    values, metadata = compress_2_4(a)
    blocks = metadata.reshape(metadata.shape[0], -1, 128).transpose(1, 0, 2)  # (M / 64, K / 64, threads)
    places = stored_places(blocks, metadata_layout(8 * values.itemsize))
    assert (places[..., 0] < places[..., 1]).all()
    places = places.reshape(-1, *places.shape[2:])[:m, : 32 * k // chunk_of(8 * values.itemsize)]
    whole = written_out(values, places, 8 * values.itemsize)
    np.testing.assert_array_equal(whole.astype(np.float64), a.astype(np.float64))
    np.testing.assert_array_equal(compress_2_4(a).to_dense().astype(np.float64), a.astype(np.float64))
    torch = pytest.importorskip("torch")
    if dtype in (F16, np.float32, np.int8):
        again = compress_2_4(torch.from_numpy(a))
        np.testing.assert_array_equal(again.values.numpy(), values)
        np.testing.assert_array_equal(again.metadata.numpy(), metadata)


@settings(max_examples=6, deadline=None)
@given(
    st.integers(1, 200),
    st.integers(1, 150),
    st.integers(1, 20),
    st.sampled_from([F16, BF16, np.float32]),
    st.booleans(),
    st.integers(0, 99),
)
def test_exact_for_any_extents(m: int, n: int, k: int, dtype: Any, columns: bool, seed: int) -> None:
    """Ends of tiles in all modes; B along K or along N, copied to aligned rows where it has to be."""
    a, b = sparse(seed, m, 16 * k, dtype), integers(seed, (n, 16 * k) if columns else (16 * k, n), dtype)
    b = b.T if columns else b
    result = sparse_matmul(compress_2_4(a), b, out_dtype=Float32)
    np.testing.assert_array_equal(result, a.astype(np.float64) @ b.astype(np.float64))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", ["int8", "float8_e4m3fn", "float8_e5m2"])
def test_eight_bits(name: str, device: str) -> None:
    torch = pytest.importorskip("torch")
    a, b = sparse(0, 136, 320, np.int8), integers(1, (72, 320), np.int8)
    given_a, given_b = (torch.from_numpy(x).to(device, getattr(torch, name)) for x in (a, b))
    result = sparse_matmul(compress_2_4(given_a), given_b.T, out_dtype=torch.int32 if name == "int8" else torch.float32)
    np.testing.assert_array_equal(result.cpu().numpy(), a.astype(np.float64) @ b.T)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kernel", ["hopper_sparse_tf32", "tensorop_sparse_tf32"])
def test_tf32(kernel: str, device: str) -> None:
    """One of two neighbours is stored. Integers of 10 bits are tf32's own; the gradients are dense products."""
    torch = pytest.importorskip("torch")
    for m, n, k in ((136, 72, 320), (64, 8, 32)):
        a, b = sparse(m, m, k, np.float32), integers(1, (k, n), np.float32) * 100
        given_a, given_b = (torch.from_numpy(x).to(device) for x in (a, b))
        compressed = compress_2_4(given_a)
        assert torch.equal(compressed.to_dense(), given_a)
        result = sparse_matmul(compressed, given_b, kernel=kernel, activation="relu")
        np.testing.assert_array_equal(result.cpu().numpy(), np.maximum(a.astype(np.float64) @ b, 0))
    values = compressed.values.clone().requires_grad_()
    given_b.requires_grad_()
    weights = torch.from_numpy(integers(2, (64, 8), np.float32)).to(device)
    product = sparse_matmul(CompressedMatrix(values, compressed.metadata), given_b)
    of_values, of_b = torch.autograd.grad((product * weights).sum(), (values, given_b))
    assert torch.equal(of_b, given_a.T @ weights)
    whole = (weights @ given_b.detach().T).view(64, 16, 2)
    assert torch.equal(of_values, whole.gather(2, compressed.places()).view(64, 16))


SIZES: dict[str, Any] = {
    "turns": {"tile": (128, 128, 64), "pingpong": True, "stages": 4, "epilogue_columns": 32},
    "clusters": {"tile": (128, 64, 128), "cluster": (2, 1), "stages": 3},
    "shared A": {"tile": (64, 96, 64), "consumers": (1, 1), "cluster": (1, 2), "stages": 5, "epilogue_columns": 32},
    "columns": {"tile": (64, 128, 64), "consumers": (1, 2), "stages": 3},
    "tall": {"tile": (256, 64, 64), "stages": 4},
}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("size", SIZES)
def test_sizes(size: str, device: str) -> None:
    """With odd and even numbers of k tiles, and more than the ring has stages; alpha, beta, bias and activation."""
    torch = pytest.importorskip("torch")
    entry = sparse_kernels()["hopper_sparse_f16"]
    entry = entry.only(replace(entry.config, **SIZES[size]))
    for m, n, k in ((200, 72, 448), (64, 136, 512)):
        a, b, c = sparse(m, m, k), integers(n, (k, n)), integers(k, (m, n), np.float32)
        bias = integers(1, n, np.float32)
        given_a, given_b, given_c, given_bias = (torch.from_numpy(x).to(device) for x in (a, b, c, bias))
        out = torch.full((m, n), float("nan"), device=device)
        result = sparse_matmul(
            compress_2_4(given_a),
            given_b,
            out,
            given_c,
            alpha=2,
            beta=-1,
            bias=given_bias,
            activation="relu",
            kernel=entry,
        )
        assert result is out
        exact = 2 * (a.astype(np.float64) @ b) - c + bias
        np.testing.assert_array_equal(out.cpu().numpy(), np.maximum(exact, 0))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("how", ["stream_k", "dynamic", "serial", "parallel"])
def test_decompositions(how: str, device: str) -> None:
    torch = pytest.importorskip("torch")
    decomposition: Any = SplitK(3, how) if how in ("serial", "parallel") else how
    a, b = sparse(3, 192, 640), integers(4, (640, 144))
    given_a, given_b = (torch.from_numpy(x).to(device) for x in (a, b))
    with sim.options(sms=5 if isinstance(decomposition, str) else 132):
        result = sparse_matmul(compress_2_4(given_a), given_b, decomposition=decomposition, out_dtype=torch.float32)
    np.testing.assert_array_equal(result.cpu().numpy(), a.astype(np.float64) @ b)


@pytest.mark.gpu
def test_large_products_on_a_gpu() -> None:
    """Normal numbers, with the sizes that the model chooses, twice; beside the product with the zeros written out."""
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    for m, n, k in ((4096, 4096, 4096), (1000, 520, 4112), (8192, 64, 2048)):
        dense = torch.randn(m, k // 4, 4, device="cuda", dtype=torch.float16)
        dense[torch.rand_like(dense).argsort(-1) < 2] = 0
        a, b = dense.reshape(m, k), torch.randn(k, n, device="cuda", dtype=torch.float16)
        compressed, exact = compress_2_4(a), a.double() @ b.double()
        for _ in range(2):
            result = sparse_matmul(compressed, b, out=torch.full((m, n), float("nan"), device="cuda"))
            assert float((result.double() - exact).norm() / exact.norm()) < 1e-5


A = sparse(0, 64, 64)
COMPRESSED = compress_2_4(A)
B = np.ones((64, 8), F16)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: compress_2_4(np.ones((64, 64), F16)), "row 0 has 4 elements that are not zero in columns 0 to 3"),
        (lambda: compress_2_4(np.eye(40, dtype=F16)[:, :40]), "K in 16s, not Float16 of shape"),
        (
            lambda: compress_2_4(np.zeros((64, 64), np.float64)),
            "of Float16, BFloat16, Float32, Float8E4M3FN, Float8E5M2, Int8, K in",
        ),
        (
            lambda: compress_2_4(np.ones((64, 64), np.float32)),
            "a is not 1:2 sparse: row 0 has 2 elements that are not zero in columns 0 to 1",
        ),
        (lambda: sparse_matmul(A, B), "a is ndarray: compress it with compress_2_4 first"),
        (lambda: sparse_matmul(COMPRESSED, B[:32]), r"a of shape \(64, 64\), of which half is stored, and b of shape"),
        (lambda: sparse_matmul(COMPRESSED, B.astype(BF16)), "a is Float16, b is BFloat16"),
        (
            lambda: sparse_matmul(CompressedMatrix(COMPRESSED.values, COMPRESSED.metadata[:, :64]), B),
            r"the metadata of a sparse matrix \(64, 64\) are int32 of shape \(1, 128\)",
        ),
        (lambda: sparse_matmul(COMPRESSED, B, kernel="hopper_f16"), "no kernel 'hopper_f16' of sparse_matmul"),
        (
            lambda: sparse_matmul(COMPRESSED, B, COMPRESSED.metadata.view(np.float32).reshape(-1)[:64].reshape(8, 8)),
            "out must have the shape of the result",
        ),
        (lambda: gemm(A, B, kernel=sparse_kernels()["hopper_sparse_f16"]), "this one is dense: compress it"),
    ],
)
def test_bad_input_is_refused(call: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        call()


def test_a_result_over_the_metadata_is_refused() -> None:
    memory = np.zeros(128, np.int32)
    memory[:] = COMPRESSED.metadata[0]
    out = memory.view(F16)[:64].reshape(64, 1)
    with pytest.raises(ArgumentError, match="out overlaps the metadata"):
        sparse_matmul(CompressedMatrix(COMPRESSED.values, memory[None]), B[:, :1], out)


def test_sizes_that_there_are_not() -> None:
    config = sparse_kernels()["hopper_sparse_f16"].config
    for change in ({"tile": (128, 256, 32)}, {"transposed": True}, {"roles": "one"}, {"promote": 1}):
        with pytest.raises(ConstraintError, match="a sparse Hopper GEMM takes a K tile in steps of 64"):
            replace(config, **change).check()


@pytest.mark.parametrize("device", DEVICES)
def test_gradients(device: str) -> None:
    """Of small integers, against float64: b, the bias and the stored elements, also behind an activation."""
    torch = pytest.importorskip("torch")
    compressed = CompressedMatrix(*(torch.from_numpy(x).to(device) for x in COMPRESSED))
    values = compressed.values.clone().requires_grad_()
    b = torch.from_numpy(integers(1, (64, 16))).to(device).requires_grad_()
    bias = torch.from_numpy(integers(2, (16,))).to(device).requires_grad_()
    y = sparse_matmul(CompressedMatrix(values, compressed.metadata), b, bias=bias, activation="relu")
    grad = torch.from_numpy(integers(3, tuple(y.shape))).to(device)
    y.backward(grad)
    a, right = A.astype(np.float64), b.detach().cpu().double().numpy()
    passed = np.where(a @ right + bias.detach().cpu().numpy() > 0, grad.cpu().numpy(), 0).astype(np.float64)
    np.testing.assert_array_equal(b.grad.cpu(), a.T @ passed)
    np.testing.assert_array_equal(bias.grad.cpu(), passed.sum(0))
    whole = (passed @ right.T).reshape(len(a), -1, 4)
    places = compressed.places().cpu().numpy()
    np.testing.assert_array_equal(values.grad.cpu(), np.take_along_axis(whole, places, 2).reshape(values.shape))
    np.testing.assert_array_equal(compressed.to_dense().cpu(), A)


@pytest.mark.parametrize("device", DEVICES)
def test_gradients_of_epilogues(device: str) -> None:
    """alpha, beta and C, a second output, and functions whose arrays have gradients, too; compiled as well."""
    torch = pytest.importorskip("torch")
    compressed = CompressedMatrix(*(torch.from_numpy(x).to(device) for x in COMPRESSED))
    b, c, x = (
        torch.from_numpy(integers(seed, shape)).to(device).requires_grad_()
        for seed, shape in ((1, (64, 16)), (2, (64, 16)), (3, (64, 16)))
    )
    before = torch.empty(64, 16, dtype=torch.float16, device=device)
    epilogue = Store(before), Residual(x, Float32(2)), Relu()

    def product(b: Any, c: Any) -> Any:
        return sparse_matmul(compressed, b, c=c, alpha=2.0, beta=-1.0, epilogue=epilogue)

    exact = 2 * A.astype(np.float64) @ b.detach().cpu().double().numpy() - c.detach().cpu().numpy()
    with torch.no_grad():
        fused = product(b, c)
        np.testing.assert_array_equal(before.cpu(), exact)
        before.zero_()
    y = product(b, c)
    assert torch.equal(y, fused)
    np.testing.assert_array_equal(before.detach().cpu(), exact)
    passed = (y.detach() > 0).cpu().numpy().astype(np.float64)
    found = torch.autograd.grad(y, (b, c, x), torch.ones_like(y))
    for grad, wanted in zip(found, (2 * A.astype(np.float64).T @ passed, -passed, 2 * passed), strict=True):
        np.testing.assert_array_equal(grad.cpu(), wanted)
    with pytest.raises(ArgumentError, match="beta = 1.0 needs a matrix c"):
        sparse_matmul(compressed, b, beta=1.0)


def test_what_is_written_in_place_of_the_result_is_given() -> None:
    matrix = np.full((16, 64), np.nan, np.float32)
    part = matrix[:8]  # (8, 64), the transposed result
    assert sparse_matmul(COMPRESSED, B, epilogue=Permuted(part, (1, 0), 1)) is part
    np.testing.assert_array_equal(matrix[:8], (A.astype(np.float64) @ B).T)
    with pytest.raises(ArgumentError, match="Permuted leaves the result unwritten here, and out is given"):
        sparse_matmul(COMPRESSED, B, np.empty((64, 8), F16), epilogue=Permuted(part, (1, 0), 1))


def test_other_gpus_are_refused() -> None:
    with sim.options(arch="sm_80"), pytest.raises(ArgumentError, match="it needs wgmma"):
        sparse_matmul(COMPRESSED, B, kernel="hopper_sparse_f16")


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2"])
def test_eight_bit_floats_by_mma_sync(name: str) -> None:
    """From sm_89 on, which has such instructions: one program in each size, without spills; sm_80 is refused."""
    dtype = getattr(ml_dtypes, name)
    entry = sparse_kernels()[f"tensorop_sparse_{name[7:11]}"]
    a, b = sparse(0, 136, 320, np.int8).astype(dtype), integers(1, (72, 320), np.int8).astype(dtype)
    exact = a.astype(np.float64) @ b.T.astype(np.float64)
    with sim.options(arch="sm_89"):
        for kernel in (None, *(entry.only(size) for size in entry.sizes)):
            result = sparse_matmul(compress_2_4(a), b.T, kernel=kernel, out_dtype=np.float32)
            np.testing.assert_array_equal(result, exact)
    artifact = cross_compile(entry.config, "sm_89")
    assert artifact.spills == 0 and re.search(rf"mma\.sp\S*\.m16n8k64.*\.{name[7:11]}", artifact.ptx)
    with sim.options(arch="sm_80"), pytest.raises(ArgumentError, match="its mma.sync needs sm_89, and sm_80 has none"):
        sparse_matmul(compress_2_4(a), b.T)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", ["tensorop_sparse_f16", "tensorop_sparse_i8"])
def test_products_by_mma_sync(name: str, device: str) -> None:
    """In each size, with ragged rows, columns and k tiles, also where blocks share tiles."""
    torch = pytest.importorskip("torch")
    rng, kind = np.random.default_rng(6), np.int8 if name.endswith("i8") else np.float16
    for (m, n, k), how in (((136, 72, 320), "auto"), ((200, 144, 64), "auto"), ((16, 8, 192), "stream_k")):
        a = rng.integers(-3, 4, (m, k // 4, 4))
        np.put_along_axis(a, rng.permuted(np.tile(np.arange(4), (m, k // 4, 1)), axis=-1)[..., :2], 0, -1)
        left, right = a.reshape(m, k).astype(kind), rng.integers(-3, 4, (n, k)).astype(kind)
        whole, b = torch.from_numpy(left).to(device), torch.from_numpy(right).to(device).mT
        out_dtype = torch.int32 if kind is np.int8 else torch.float32
        for size in sparse_kernels()[name].sizes:
            entry = sparse_kernels()[name].only(size)
            result = sparse_matmul(compress_2_4(whole), b, kernel=entry, out_dtype=out_dtype, decomposition=how)
            np.testing.assert_array_equal(result.cpu().numpy(), left.astype(np.float64) @ right.T.astype(np.float64))


def test_older_gpus_take_mma_sync() -> None:
    with sim.options(arch="sm_80"):
        np.testing.assert_array_equal(sparse_matmul(COMPRESSED, B), A.astype(np.float64) @ B.astype(np.float64))
        narrow = CompressedMatrix(COMPRESSED.values[:, :24], COMPRESSED.metadata)
        with pytest.raises(ArgumentError, match="K is 48, not a multiple of 64: fill A and B up with zeros"):
            sparse_matmul(narrow, B[:48])


@pytest.mark.parametrize("device", DEVICES)
def test_the_operator_of_pytorch(device: str) -> None:
    torch = pytest.importorskip("torch")
    import tilewright.gemm.operators.torch_sparse  # noqa: F401  registers the operator

    b = torch.from_numpy(integers(0, (64, 16))).to(device)
    compressed = CompressedMatrix(*(torch.from_numpy(x).to(device) for x in COMPRESSED))
    torch.library.opcheck(torch.ops.tilewright.sparse_matmul, (*compressed, b), test_utils="test_faketensor")
    compiled = torch.compile(
        lambda b: sparse_matmul(compressed, b, out_dtype=torch.float32) + 1, backend="eager", fullgraph=True
    )
    np.testing.assert_array_equal(compiled(b).cpu().numpy(), A.astype(np.float64) @ integers(0, (64, 16)) + 1)
    b.requires_grad_()
    with pytest.raises(ArgumentError, match="kernel and decomposition cannot be given where PyTorch records the call"):
        sparse_matmul(compressed, b, kernel="hopper_sparse_f16")
    eight = CompressedMatrix(compressed.values.to(torch.int8), compressed.metadata)
    with pytest.raises(ArgumentError, match="sparse_matmul of 8-bit elements has no gradient: call it under torch.no_"):
        sparse_matmul(eight, b)
    with torch.no_grad():
        assert tuple(sparse_matmul(compressed, b).shape) == (64, 16)


def test_stored_elements_of_pytorch_at_odd_addresses() -> None:
    torch = pytest.importorskip("torch")
    dense = torch.zeros(64, 128, dtype=torch.float16)
    dense[:, ::2] = 1
    packed = compress_2_4(dense)
    values = torch.zeros(packed.values.numel() + 1, dtype=torch.float16)[1:].view(packed.values.shape)
    values.copy_(packed.values)
    found = sparse_matmul(CompressedMatrix(values, packed.metadata), torch.ones(128, 64, dtype=torch.float16))
    assert bool((found == 64).all())


@pytest.mark.parametrize(("m", "k", "n"), [(0, 0, 8), (64, 0, 8), (0, 64, 8), (64, 64, 0), (40, 64, 42)])
def test_nothing_to_store_and_columns_of_any_number_with_a_bias(m: int, k: int, n: int) -> None:
    bias = np.arange(n, dtype=np.float16)
    a, b = np.ones((m, k), np.float16), np.ones((k, n), np.float16)
    a[:, ::2] = 0
    found = sparse_matmul(compress_2_4(a), b, bias=bias)
    np.testing.assert_array_equal(found, np.broadcast_to(k // 2 + bias, (m, n)))
