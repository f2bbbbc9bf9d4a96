"""``gemm(a, b)``: arrays in, product out. Chooses the kernel, checks the operands, runs on the machine where they
live."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np

from tilewright import cute
from tilewright.errors import ArgumentError
from tilewright.gemm.arrays import Matrix, operand_of
from tilewright.gemm.checks import check_output, problem_of, scales_of
from tilewright.gemm.choice import best
from tilewright.gemm.config import GemmConfig, Major
from tilewright.gemm.decomposition import decomposition_of
from tilewright.gemm.multistage import MultistageGemm
from tilewright.gemm.registry import KernelEntry, choose
from tilewright.gemm.streamk import StreamK
from tilewright.lang.device.smem import get_smem_capacity_in_bytes
from tilewright.lang.launch.machine import machine_of
from tilewright.lang.tools.hardware import HardwareInfo

_COMPILED: dict[tuple[GemmConfig, type], Any] = {}


@dataclass
class GemmReport:
    """What ran. ``d`` is the product; ``decomposition`` "data_parallel" or "stream_k"; ``seconds`` the time of the
    kernel; ``instructions`` per warp by mnemonic and ``bank_conflicts`` (extra shared-memory wavefronts) are counted by
    the simulator only."""

    d: Any
    kernel: str
    machine: str
    tile: tuple[int, int, int]
    decomposition: str
    grid: tuple[int, int, int]
    seconds: float
    instructions: dict[str, int] = field(default_factory=dict)
    bank_conflicts: int | None = None


def gemm(
    a: Any, b: Any, c: Any = None, *, alpha: float = 1.0, beta: float = 0.0, kernel: str | KernelEntry | None = None,
    machine: str = "auto", out: Any = None, decomposition: str | StreamK = "auto",
    progress: Callable[[float], None] | None = None,
) -> GemmReport:  # fmt: skip
    """D = alpha * a @ b + beta * c.

    ``a`` is (M, K) or (L, M, K), ``b`` (K, N) or (L, K, N), ``c`` and ``out`` (M, N) or (L, M, N): NumPy arrays or
    torch tensors, any strides, fp16, bf16 or fp32 (one dtype for all). ``machine``: "cpu" is the simulator, "gpu" a
    CUDA device (NumPy arrays travel there and back), "auto" follows the arrays. D goes into ``out`` when given; ``out``
    may be ``c`` itself. ``decomposition``: "data_parallel" gives each block one tile, "stream_k" deals the work out
    evenly where that pays, "auto" chooses; or a :class:`StreamK` of your own for the kernel's tile. Raises
    ArgumentError for operands that do not fit together.
    """
    A, B = Matrix.of("a", a), Matrix.of("b", b)
    C = Matrix.of("c", c) if c is not None else None
    m, n, k, batch = problem_of(A, B, C, beta)
    where = _machine_name(machine, A)
    entry = choose(A.dtype, kernel)
    if out is None:
        out = _empty(a, (m, n) if len(a.shape) == 2 else (batch, m, n), C.dtype if C else entry.config.c.dtype)
    D = Matrix.of("out", out)
    check_output(A, B, C, D, (m, n, batch))
    alpha, beta = scales_of(entry, D, alpha, beta)
    entry, plan = best(_suited(entry, A, B, C, D), decomposition, (m, n, k, batch), _room(where))
    how = "data_parallel" if plan is None else "stream_k"
    report = GemmReport(out, entry.name, where, entry.config.tile, how, (0, 0, 0), 0.0)
    if 0 in (m, n, batch):
        return report
    target = machine_of("cpu" if where == "cpu" else "cuda")
    moved = where != ("cpu" if A.device == "cpu" else "gpu")
    operands = [A, B, C if C is not None else D, D]
    arrays = [_travel(target, matrix) for matrix in operands] if moved else operands
    run, args = _prepare(entry, arrays, alpha, beta, plan, _zeros(target, arrays[3]))
    with target.profile(progress) as profile:
        run(*args)
    if moved:
        _bring_home(target, arrays[3], D)
    report.seconds, report.bank_conflicts = profile.seconds, profile.bank_conflicts
    report.instructions = profile.instructions or {}
    report.grid = profile.launches[-1][1].grid
    return report


def _machine_name(machine: str, A: Matrix) -> str:
    if machine not in ("auto", "cpu", "gpu"):
        raise ArgumentError(f"machine must be auto, cpu or gpu, got {machine!r}")
    home = "cpu" if A.device == "cpu" else "gpu"
    return home if machine == "auto" else machine


@cache
def _room(where: str) -> tuple[int, int]:
    """(multiprocessors, shared memory of a block in bytes) of the GPU, or of the H100 that the simulator stands for."""
    hardware = HardwareInfo()
    if where == "cpu":
        return 132, get_smem_capacity_in_bytes("sm_90")
    major, minor = hardware.get_compute_capability()
    return hardware.get_device_multiprocessor_count(), get_smem_capacity_in_bytes(f"sm_{major}{minor}")


def _prepare(
    entry: KernelEntry, matrices: list[Matrix], alpha: Any, beta: Any, plan: StreamK | None, zeros: Callable[..., Any]
) -> tuple[Any, list[Any]]:  # fmt: skip
    A, B, C, D = matrices
    config = _with_operands(entry, A, B, C, D)
    A, B = (matrix.read_as(entry.config.a.dtype) for matrix in (A, B))
    BN = B.transposed()
    tensors = [
        matrix.tensor(operand) for matrix, operand in ((A, config.a), (BN, config.b), (C, config.c), (D, config.c))
    ]
    args = [*tensors, alpha, beta, decomposition_of(plan, config, zeros)]
    key = config, type(args[-1])
    if key not in _COMPILED:
        _COMPILED[key] = cute.compile(MultistageGemm(config), *args)
    return _COMPILED[key], args


def _with_operands(entry: KernelEntry, A: Matrix, B: Matrix, C: Matrix, D: Matrix) -> GemmConfig:
    """The entry's configuration for matrices that lie as these do."""
    A, B = (matrix.read_as(entry.config.a.dtype) for matrix in (A, B))
    bM, bN, bK = entry.config.tile
    return entry.with_operands(
        operand_of((A,), {Major.K: bK, Major.MN: bM}),
        operand_of((B.transposed(),), {Major.K: bK, Major.MN: bN}),
        operand_of((D, C), {Major.K: bN, Major.MN: bM}),
    )


def _suited(entry: KernelEntry, A: Matrix, B: Matrix, C: Matrix | None, D: Matrix) -> KernelEntry:
    """The entry for matrices that lie as these do; in its form for narrow accesses where it takes them."""
    matrices = (A, B, C if C is not None else D, D)
    config = _with_operands(entry, *matrices)
    if min(x.copy_bits for x in (config.a, config.b, config.c)) == 128:
        return entry
    narrow = entry.for_narrow
    config, *small = (_with_operands(narrow.only(c), *matrices) for c in (narrow.config, *narrow.small))
    return replace(narrow, config=config, small=tuple(small))


def _zeros(target: Any, beside: Matrix) -> Callable[[int, Any], Any]:
    """Makes arrays of zeros where ``beside`` is."""

    def zeros(n: int, dtype: Any) -> Any:
        if _is_torch(beside.source):
            return beside.source.new_zeros(n, dtype=dtype.torch_dtype)
        return target.upload(np.zeros(n, dtype.dtype))

    return zeros


def _is_torch(array: Any) -> bool:
    return type(array).__module__.partition(".")[0] == "torch"


def _empty(like: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    return like.new_empty(shape, dtype=dtype.torch_dtype) if _is_torch(like) else np.empty(shape, dtype.dtype)


def _bits(tensor: Any, matrix: Matrix) -> Any:
    """A torch tensor as integers of its width: bf16 and fp8 have no NumPy dtype that torch knows."""
    import torch

    return tensor.view(getattr(torch, f"int{8 * matrix.dtype.bytes}"))


def _travel(target: Any, matrix: Matrix) -> Matrix:
    """The matrix on the other machine; NumPy is the common ground."""
    source = matrix.source
    if _is_torch(source):
        source = _bits(source.cpu(), matrix).numpy().view(matrix.dtype.dtype)
    return Matrix.of(matrix.name, source if matrix.device != "cpu" else target.upload(source))


def _bring_home(target: Any, result: Matrix, home: Matrix) -> None:
    if home.device != "cpu":
        import torch

        size = home.dtype.bytes
        _bits(home.source, home).copy_(torch.from_numpy(result.source.view(f"i{size}")))
    else:
        store = home.source
        target.download(result.source, _bits(store, home).numpy().view(home.dtype.dtype) if _is_torch(store) else store)


def launcher(
    a: Any,
    b: Any,
    out: Any,
    c: Any = None,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    kernel: str | KernelEntry | None = None,
    decomposition: str | StreamK = "auto",
) -> Callable[[], None]:
    """A callable that launches out = alpha * a @ b + beta * c on the arrays' machine and does nothing else.

    All checks and the compilation happen here, so the callable can be timed or captured into a CUDA graph. The arrays
    must stay alive, and so must the callable while a graph has captured it; extents must not be 0. Launches of one
    callable must not overlap: where blocks share tiles they share the callable's workspace.
    """
    A, B, D = Matrix.of("a", a), Matrix.of("b", b), Matrix.of("out", out)
    C = Matrix.of("c", c) if c is not None else None
    m, n, k, batch = problem_of(A, B, C, beta)
    check_output(A, B, C, D, (m, n, batch))
    where = _machine_name("auto", A)
    entry = choose(A.dtype, kernel)
    alpha, beta = scales_of(entry, D, alpha, beta)
    entry, plan = best(_suited(entry, A, B, C, D), decomposition, (m, n, k, batch), _room(where))
    target = machine_of("cpu" if where == "cpu" else "cuda")
    run, args = _prepare(entry, [A, B, C if C is not None else D, D], alpha, beta, plan, _zeros(target, D))
    bound: Callable[[], None] = run.bind(*args)
    return bound
