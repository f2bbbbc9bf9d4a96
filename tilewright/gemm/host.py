"""``gemm(a, b)``: arrays in, product out. Chooses the kernel, checks the operands, runs on the machine where they
live."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from tilewright import cute
from tilewright.errors import ArgumentError
from tilewright.gemm.arrays import Matrix, operand_of
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
    m, n, k, batch = _problem(A, B, C, beta)
    where = _machine_name(machine, A)
    entry, plan = best(choose(A.dtype, kernel), decomposition, (m, n, k, batch), _room(where))
    if out is None:
        out = _empty(a, (m, n) if len(a.shape) == 2 else (batch, m, n), C.dtype if C else entry.config.c.dtype)
    D = Matrix.of("out", out)
    _check_output(A, B, C, D, (m, n, batch))
    alpha, beta = _scales(entry, D, alpha, beta)
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


def _problem(A: Matrix, B: Matrix, C: Matrix | None, beta: float) -> tuple[int, int, int, int]:
    (m, k, batch), (k_b, n, batch_b) = A.shape, B.shape
    if k != k_b:
        raise ArgumentError(f"inner dimensions differ: a is {m} x {k}, b is {k_b} x {n}")
    if batch != batch_b:
        raise ArgumentError(f"a has {batch} matrices, b has {batch_b}")
    if A.dtype is not B.dtype:
        raise ArgumentError(f"a is {A.dtype.__name__}, b is {B.dtype.__name__}; both must have one dtype")
    if C is None and beta:
        raise ArgumentError(f"beta = {beta} needs a matrix c")
    if C is not None and C.shape != (m, n, batch):
        raise ArgumentError(f"c must be {_shape((m, n, batch))}, got {_shape(C.shape)}")
    return m, n, k, batch


def _check_output(A: Matrix, B: Matrix, C: Matrix | None, D: Matrix, shape: tuple[int, int, int]) -> None:
    if D.shape != shape:
        raise ArgumentError(f"out must be {_shape(shape)}, got {_shape(D.shape)}")
    if C is not None and C.dtype is not D.dtype:
        raise ArgumentError(f"c is {C.dtype}, out is {D.dtype}; both must have one dtype")
    for other in (A, B):
        if D.overlaps(other):
            raise ArgumentError(f"out overlaps {other.name}; give it memory of its own")
    if C is not None and D.overlaps(C) and not D.same_view(C):
        raise ArgumentError("out overlaps c without being the same matrix; give it memory of its own or pass c itself")
    if 0 not in D.shape and any(s == 0 and extent > 1 for s, extent in zip(D.stride, D.shape, strict=True)):
        raise ArgumentError("out has a broadcast (zero) stride: several elements would share one place")
    devices = {matrix.device for matrix in (A, B, C, D) if matrix is not None}
    if len(devices) > 1:
        raise ArgumentError(f"the matrices live on different devices: {', '.join(sorted(devices))}")


def _shape(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape[:2] if shape[2] == 1 else (shape[2], *shape[:2])))


def _scales(entry: KernelEntry, D: Matrix, alpha: float, beta: float) -> tuple[Any, Any]:
    """alpha and beta in the accumulator's type; ArgumentError when D cannot take what the kernel computes."""
    acc = entry.config.acc_dtype
    if not acc.is_same_kind(D.dtype) or D.dtype.width > acc.width or D.dtype.width < 16:
        raise ArgumentError(f"kernel {entry.name} accumulates in {acc}, which cannot be written as {D.dtype}")
    for name, value in (("alpha", alpha), ("beta", beta)):
        if not isinstance(value, (numbers.Real, np.number)):
            raise ArgumentError(f"{name} must be a number, got {value!r}")
        if acc.is_integer and not float(value).is_integer():
            raise ArgumentError(f"{name} = {value}: kernel {entry.name} computes with integers, so it must be one")
    return (acc(int(alpha)), acc(int(beta))) if acc.is_integer else (acc(float(alpha)), acc(float(beta)))


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
    A, B = (matrix.read_as(entry.config.a.dtype) for matrix in (A, B))
    BN = B.transposed()
    bM, bN, bK = entry.config.tile
    config = entry.with_operands(
        operand_of((A,), {Major.K: bK, Major.MN: bM}),
        operand_of((BN,), {Major.K: bK, Major.MN: bN}),
        operand_of((D, C), {Major.K: bN, Major.MN: bM}),
    )
    tensors = [
        matrix.tensor(operand) for matrix, operand in ((A, config.a), (BN, config.b), (C, config.c), (D, config.c))
    ]
    args = [*tensors, alpha, beta, decomposition_of(plan, config, zeros)]
    key = config, type(args[-1])
    if key not in _COMPILED:
        _COMPILED[key] = cute.compile(MultistageGemm(config), *args)
    return _COMPILED[key], args


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
    m, n, k, batch = _problem(A, B, C, beta)
    _check_output(A, B, C, D, (m, n, batch))
    where = _machine_name("auto", A)
    entry, plan = best(choose(A.dtype, kernel), decomposition, (m, n, k, batch), _room(where))
    alpha, beta = _scales(entry, D, alpha, beta)
    target = machine_of("cpu" if where == "cpu" else "cuda")
    run, args = _prepare(entry, [A, B, C if C is not None else D, D], alpha, beta, plan, _zeros(target, D))
    bound: Callable[[], None] = run.bind(*args)
    return bound
