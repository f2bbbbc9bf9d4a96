"""``GemmUniversal``: modes, workspace, reuse, what it refuses and when."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.gemm.test_hopper import operands, product
from tests.gemm.test_reductions import HOPPER, LOOPS, PLANS, made
from tilewright.errors import ArgumentError
from tilewright.gemm import GemmUniversal, GemmUniversalMode, SplitK, gemm

pytestmark = pytest.mark.unchecked

M, N, K = 72, 104, 320
Arguments = GemmUniversal.Arguments


def problem(**more: Any) -> tuple[Any, np.ndarray, np.ndarray]:
    """Arguments, D and the product."""
    a, b = operands("hopper_f16", M, N, K)
    d = np.full((M, N), 77, np.float16)
    return Arguments(**({"A": a, "B": b, "D": d} | more)), d, product(a, b)


def memory(size: int) -> Any:
    """A workspace full of ones, at a multiple of 16 bytes."""
    raw = np.full(size + 16, 0xFF, np.uint8)
    start = -raw.ctypes.data % 16
    return raw[start : start + size]


@pytest.mark.parametrize(
    ("decomposition", "mode", "count"),
    [
        ("auto", "gemm", 1),
        ("data_parallel", "gemm", 3),
        ("stream_k", "gemm", 2),
        (SplitK(2), "gemm", 1),
        ("auto", GemmUniversalMode.kGemmSplitKParallel, 3),
    ],
)
@pytest.mark.parametrize("kernel", ["tensorop_f16", HOPPER], ids=["ampere", "hopper"])
def test_steps(kernel: Any, decomposition: Any, mode: Any, count: int) -> None:
    more = {"avail_sms": 8} if decomposition == "stream_k" else {}  # blocks that the simulator runs
    arguments, d, expected = problem(mode=mode, batch_count=count, alpha=2.0, **more)
    handle = GemmUniversal(kernel, decomposition)
    assert handle.can_implement(arguments)
    workspace = memory(handle.workspace_size(arguments))
    handle.initialize(arguments, workspace)
    for launch in (handle.run, handle, lambda: handle.run(0)):
        d[:] = 77
        launch()
        np.testing.assert_array_equal(d, (2 * expected).astype(np.float16))
    assert handle.plan.decomposition == (
        "split_k" if count == 3 or decomposition == SplitK(2) else {2: "stream_k"}.get(count, "data_parallel")
    )
    needed = handle._need_ready("test").needed
    assert not workspace[needed.flags_offset : needed.flags_offset + 4 * needed.flags].any()
    # Other matrices, another scale, the same plan and workspace.
    other, d, _ = problem(mode=mode, batch_count=count, alpha=-1.0)
    handle.update(other)
    handle()
    np.testing.assert_array_equal(d, (-expected).astype(np.float16))


def test_a_call_with_arguments_initialises() -> None:
    arguments, d, expected = problem()
    GemmUniversal(decomposition="data_parallel")(arguments)
    np.testing.assert_array_equal(d, expected.astype(np.float16))


def test_batches() -> None:
    a, b = operands("hopper_f16", M, N, K)
    d = np.zeros((2, M, N), np.float16)
    stacks = Arguments(A=np.stack([a, -a]), B=np.stack([b, b]), D=d, mode="batched", batch_count=2)
    GemmUniversal("tensorop_f16")(stacks)
    np.testing.assert_array_equal(d, np.stack([product(a, b), -product(a, b)]).astype(np.float16))


@pytest.mark.parametrize("order", ["C", "F"])
def test_transposed_problem(order: str) -> None:
    """The same memory, seen the other way round."""
    a, b = operands("hopper_f16", M, N, K)
    c = np.asarray(np.arange(M * N).reshape(M, N) % 7, np.float16, order=order)
    d = np.zeros((M, N), np.float16, order=order)
    arguments = Arguments(A=a, B=b, C=c, D=d, beta=3.0)
    GemmUniversal("tensorop_f16", "data_parallel")(arguments.transposed_problem())
    np.testing.assert_array_equal(d, (product(a, b) + 3 * c).astype(np.float16))


@pytest.mark.parametrize("how", ["data_parallel", "stream_k", SplitK(2), SplitK(2, "parallel")], ids=str)
@pytest.mark.parametrize("kernel", ["tensorop_f16", "hopper_f16"])
def test_factors_that_the_device_knows(kernel: str, how: Any) -> None:
    """One number, a vector of one for each row, beside a number; read by each launch."""
    c, rows = np.full((M, N), 3, np.float16), np.arange(M, dtype=np.float32) % 5
    for alpha, beta, launches in (
        (np.full((), 2, np.float32), rows, 2),
        (rows, 0.5, 2),
        (rows, 0.0, 1),
        (-1.0, np.full(1, 2, np.float32), 1),
    ):
        arguments, d, expected = problem(C=c, alpha=alpha, beta=beta)
        handle = GemmUniversal(kernel, how)
        handle.initialize(arguments, memory(handle.workspace_size(arguments)))
        for _ in range(launches):
            handle()
            a, b = (x[:, None] if np.size(x) > 1 else x for x in (alpha, beta))
            np.testing.assert_array_equal(d, (a * expected + b * c).astype(np.float16))
            rows += 1


def test_factors_of_rows_are_not_those_of_columns() -> None:
    arguments, _, _ = problem(alpha=np.ones(M, np.float32))
    with pytest.raises(ArgumentError, match="would be those of its columns"):
        arguments.transposed_problem()
    arguments, _, _ = problem(alpha=np.ones(M, np.int32))
    assert "alpha is an array of Int32, which does not multiply sums of Float32" in (
        GemmUniversal().can_implement(arguments).message
    )
    torch = pytest.importorskip("torch")
    arguments, _, _ = problem(alpha=torch.ones(1, requires_grad=True))
    assert "alpha asks for a gradient" in GemmUniversal().can_implement(arguments).message
    c = np.ones((M, N), np.float32)
    arguments, d, expected = problem(C=c, alpha=np.full(1, 2, np.float32), beta=3.0)
    GemmUniversal()(arguments)
    np.testing.assert_array_equal(d, (2 * expected + 3).astype(np.float16))


def test_avail_sms() -> None:
    """1 is data-parallel; a few make as many shares."""
    handle = GemmUniversal("tensorop_f16", "stream_k")
    alone, _, _ = problem(avail_sms=1)
    assert handle.workspace_size(alone) == 0
    a, b = operands("hopper_f16", M, N, 2048)
    few, d, _ = problem(A=a, B=b, avail_sms=7)
    expected = product(a, b)
    handle.initialize(few, memory(handle.workspace_size(few)))
    assert handle.plan.shares is not None and handle.plan.shares.avail_sms == 7
    handle()
    np.testing.assert_array_equal(d, expected.astype(np.float16))


def test_misaligned_operands_are_named() -> None:
    arguments, _, _ = problem(A=np.zeros((M, K + 1), np.float16)[:, :K])
    status = GemmUniversal("hopper_f16").can_implement(arguments)
    assert not status and status.code == "kErrorMisalignedOperand"
    assert (status.operand, status.needed, status.found) == ("A", 8, 1)
    assert GemmUniversal().can_implement(arguments)  # another kernel can


SHARED = GemmUniversal("tensorop_f16", SplitK(3))


@pytest.mark.parametrize(
    ("changes", "workspace", "message"),
    [
        ({"A": np.zeros((0, K), np.float16), "D": np.zeros((0, N), np.float16)}, None, "D is empty .0 x 104 x 320."),
        ({"alpha": float("nan")}, None, "alpha is nan: a scale must be finite"),
        ({"alpha": float("inf")}, None, "alpha is inf: a scale must be finite"),
        ({"alpha": 10**400}, None, "alpha is beyond what"),
        ({"beta": 1.0}, None, "beta = 1.0 needs a matrix c"),
        ({"mode": "batched"}, None, "mode 'batched' wants stacks of matrices"),
        ({}, None, "the workspace is missing: this product needs 128 bytes"),
        ({}, memory(64), "the workspace has 64 bytes; this product needs 128"),
        ({}, memory(512)[::2], "the workspace must be contiguous"),
        ({}, memory(512)[4:], "not a multiple of 16 bytes"),
        ({"D": np.broadcast_to(np.zeros((1, N), np.float16), (M, N))}, None, "read-only|share one place"),
        ({"C": np.zeros((N, M), np.float16)}, None, "c must be 72 x 104"),
    ],
)
def test_bad_input_ends_before_the_launch(changes: dict[str, Any], workspace: Any, message: str) -> None:
    arguments, d, _ = problem(**changes)
    with pytest.raises(ArgumentError, match=message):
        SHARED(arguments, workspace)
    assert (d == 77).all()


def test_overlaps() -> None:
    buffer = np.zeros(M * N + M * K, np.float16)
    a, d = buffer[: M * K].reshape(M, K), buffer[M * K - N : M * K - N + M * N].reshape(M, N)
    with pytest.raises(ArgumentError, match="out overlaps a"):
        GemmUniversal()(problem(A=a, D=d)[0])
    shifted = buffer[1 : 1 + M * N].reshape(M, N)
    with pytest.raises(ArgumentError, match="out overlaps c without being the same matrix"):
        GemmUniversal()(problem(C=shifted, D=buffer[: M * N].reshape(M, N), beta=1.0)[0])
    rows = np.lib.stride_tricks.as_strided(buffer, (M, N), (2 * (N - 8), 2))
    with pytest.raises(ArgumentError, match="several elements of out share one place: it is 72 x 104 with strides"):
        GemmUniversal()(problem(D=rows)[0])
    interleaved = np.lib.stride_tricks.as_strided(np.zeros(3 * M + 2 * N, np.float16), (M, N), (6, 4))
    with pytest.raises(ArgumentError, match="several elements of out share one place"):
        GemmUniversal()(problem(D=interleaved)[0])


def test_read_only_results() -> None:
    frozen = np.zeros((M, N), np.float16)
    frozen.flags.writeable = False
    with pytest.raises(ArgumentError, match="out is read-only"):
        GemmUniversal()(problem(D=frozen)[0])


def test_steps_out_of_order() -> None:
    arguments, _, _ = problem()
    for step in (GemmUniversal().run, lambda: GemmUniversal().update(arguments)):
        with pytest.raises(ArgumentError, match="call initialize first"):
            step()
    handle = GemmUniversal("tensorop_f16", "data_parallel")
    handle.initialize(arguments)
    with pytest.raises(ArgumentError, match="update wants the geometry that initialize had, 72 x 104 x 320; this is"):
        handle.update(problem(A=np.zeros((M, 64), np.float16), B=np.zeros((64, N), np.float16))[0])


def moved(matrix: np.ndarray[Any, Any], step: int = 1, offset: int = 0) -> Any:
    """The numbers of a matrix with rows ``step`` times as far apart, that begin ``offset`` elements later."""
    rows, columns = matrix.shape
    flat = np.zeros(rows * columns * step + offset, matrix.dtype)
    return np.lib.stride_tricks.as_strided(flat[offset:], matrix.shape, (columns * step * 2, 2))


A_, B_, D_ = (np.zeros(shape, np.float16) for shape in ((M, K), (K, N), (M, N)))
OTHER_GEOMETRY = [
    {"A": moved(A_, step=2)},
    {"A": moved(A_, offset=1)},
    {"A": A_.astype(ml_dtypes.bfloat16), "B": B_.astype(ml_dtypes.bfloat16)},
    {"B": np.asfortranarray(B_)},
    {"B": moved(B_, offset=4)},
    {"D": moved(D_, offset=2)},
    {"D": D_.astype(np.float32)},
    {"C": D_, "beta": 1.0},
    {"D": moved(D_, step=2)},
]
"""Each component of what a plan depends on, changed alone; of both operands where their types must agree."""


@pytest.mark.parametrize("other", OTHER_GEOMETRY, ids=lambda other: ",".join(other))
def test_a_plan_is_for_one_geometry(other: dict[str, Any]) -> None:
    handle = GemmUniversal("tensorop_f16", "data_parallel")
    handle.initialize(Arguments(A=A_, B=B_, D=D_.copy()))
    handle.update(Arguments(A=A_.copy(), B=B_.copy(), D=D_.copy()))
    with pytest.raises(ArgumentError, match="update wants the geometry that initialize had"):
        handle.update(Arguments(**({"A": A_, "B": B_, "D": D_.copy()} | other)))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"mode": "kGemm"}, "mode must be one of gemm, gemm_split_k_parallel, batched, array, got 'kGemm'"),
        ({"batch_count": 0}, "batch_count must be a positive integer"),
        ({"avail_sms": 0}, "avail_sms must be a positive integer, got 0: -1 stands for all"),
    ],
)
def test_arguments_are_checked(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        problem(**arguments)


def test_torch_tensors_whose_bits_stand_for_other_numbers() -> None:
    torch = pytest.importorskip("torch")
    ones = torch.ones(64, 64)
    negative = torch.complex(torch.zeros(64, 64), ones).conj().imag
    assert negative.is_neg()
    for a, out in ((negative, None), (ones, negative)):
        with pytest.raises(ArgumentError, match="negative bit: its memory has other numbers"):
            gemm(a, ones, out=out)
    assert gemm(negative.resolve_neg(), ones).d[0, 0] == -64


def test_progress_is_called() -> None:
    a, b = operands("hopper_f16", M, N, K)
    with pytest.raises(ArgumentError, match="progress must be called with a fraction"):
        gemm(a, b, progress=3)


WAYS = [*PLANS, SplitK(3), SplitK(3, "parallel")]


def on_gpu(loop: str, how: Any) -> tuple[Any, Any, Any]:
    """Handle, arguments and workspace of a random product."""
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    m, n, k = 136, 200, 608
    a, b = (torch.randn(s, device="cuda", dtype=torch.float16) for s in ((m, k), (k, n)))
    out = torch.empty((m, n), device="cuda", dtype=torch.float16)
    handle = GemmUniversal(LOOPS[loop], made(how, LOOPS[loop], (m, n, k)) if isinstance(how, str) else how)
    arguments = Arguments(A=a, B=b, D=out)
    workspace = torch.empty(handle.workspace_size(arguments) + 16, device="cuda", dtype=torch.uint8)
    return handle, arguments, workspace


@pytest.mark.gpu
@pytest.mark.parametrize("how", WAYS, ids=str)
@pytest.mark.parametrize("loop", LOOPS)
def test_the_same_bits_each_time_and_a_clean_workspace(loop: str, how: Any) -> None:
    torch = pytest.importorskip("torch")
    handle, arguments, workspace = on_gpu(loop, how)
    handle(arguments, workspace)
    out, needed = arguments.D, handle._need_ready("test").needed
    first, flags = out.clone(), workspace[needed.flags_offset : needed.flags_offset + 4 * needed.flags]
    for _ in range(1000):
        out.fill_(float("nan"))
        handle()
        assert torch.equal(out, first) and not flags.any()
    exact = arguments.A.double() @ arguments.B.double()
    assert (first.double() - exact).norm() / exact.norm() < 2e-3


@pytest.mark.gpu
@pytest.mark.parametrize("how", WAYS, ids=str)
@pytest.mark.parametrize("loop", LOOPS)
def test_two_streams_at_once(loop: str, how: Any) -> None:
    torch = pytest.importorskip("torch")
    streams, ready = [torch.cuda.Stream() for _ in range(2)], []
    for stream in streams:
        handle, arguments, workspace = on_gpu(loop, how)
        torch.cuda.synchronize()
        handle.initialize(arguments, workspace, stream)
        ready.append((handle, arguments))
    for _ in range(200):
        for stream, (handle, _) in zip(streams, ready, strict=True):
            handle.run(stream)
    torch.cuda.synchronize()
    results = [arguments.D for _, arguments in ready]
    exact = ready[0][1].A.double() @ ready[0][1].B.double()
    assert torch.equal(*results) and (results[0].double() - exact).norm() / exact.norm() < 2e-3


@pytest.mark.gpu
def test_a_workspace_elsewhere() -> None:
    handle, arguments, workspace = on_gpu("ampere", SplitK(3))
    with pytest.raises(ArgumentError, match="the workspace is on cpu, the operands are on cuda:0"):
        handle(arguments, workspace.cpu())


def test_plans_of_the_librarys_own_keep_the_hardwares_numbers() -> None:
    """One block for each share and each other tile; a plan that is given is followed."""
    a, b = operands("hopper_f16", M, N, 2048)
    own = GemmUniversal("tensorop_f16", "stream_k")
    own.initialize(Arguments(A=a, B=b, D=np.zeros((M, N), np.float16)), memory(1 << 22))
    assert not own.plan.numbered and own.plan.shares is not None and own.plan.shares.reduction_blocks == 0
    report = gemm(a, b, kernel="tensorop_f16", decomposition="stream_k")
    shares = own.plan.shares
    tiles = shares.tiled_shape[0] * shares.tiled_shape[1]
    assert report.grid[0] == shares.sk_blocks + tiles - shares.sk_tiles
    np.testing.assert_array_equal(report.d, product(a, b).astype(np.float16))


@pytest.mark.parametrize("kernel", ["tensorop_f16", "hopper_f16", None])
@pytest.mark.parametrize("how", ["data_parallel", "stream_k"])
def test_the_grid_and_the_blocks_of_a_multiprocessor(kernel: str | None, how: str) -> None:
    """The grid is that of the launch, also between copies to aligned rows."""
    k = 130 if kernel is None else 128
    a, b, d = np.ones((304, k), np.float16), np.ones((k, 272), np.float16), np.full((304, 272), 7, np.float16)
    handle, arguments = GemmUniversal(kernel, how), GemmUniversal.Arguments(A=a, B=b, D=d)
    assert handle.get_grid_shape(arguments) == tuple(gemm(a, b, kernel=kernel, decomposition=how).grid)
    assert (d == 7).all(), "nothing is launched"
    assert handle.maximum_active_blocks(arguments) >= 1 and handle.maximum_active_blocks(arguments, 1000) == 0
