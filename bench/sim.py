"""What simulating costs: programs against NumPy on one thread, and other simulators on the same matmul.

python bench/sim.py [--write]               # unchecked
python bench/sim.py --checks [--write]      # what the checks add (check_cost.py)

Process time of one core: what other processes do to the clock is left out, what they do to caches is not. Numba's CUDA
simulator and Triton's interpreter are measured where they are installed.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

os.environ.setdefault("NUMBA_ENABLE_CUDASIM", "1")  # both are read when the package is imported
os.environ.setdefault("TRITON_INTERPRET", "1")

import numpy as np
from check_cost import costs
from elementwise_add import add
from figures import table, write_results
from threadpoolctl import threadpool_limits

from tilewright import cute, sim
from tilewright.cute.runtime import from_dlpack
from tilewright.gemm import gemm

ROUNDS = 7
PEERS = 128  # extent of the matmul that the other simulators do, too


def cpu_seconds(run: Callable[[], Any], rounds: int = ROUNDS) -> float:
    """The median process time of ``run()`` after one call to warm up."""
    run()
    times = []
    for _ in range(rounds):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return statistics.median(times)


def normal(*shape: int, dtype: Any = np.float32) -> Any:
    return np.random.default_rng(0).standard_normal(shape).astype(dtype)


def record(what: str, seconds: float, **more: Any) -> dict[str, Any]:
    return {"what": what, "seconds": seconds, **more}


# -- products ----------------------------------------------------------------------------------------------------------


def product(kernel: str, n: int, dtype: Any, k_major: bool = False, rounds: int = ROUNDS) -> dict[str, Any]:
    a, b = normal(n, n, dtype=dtype), normal(n, n, dtype=dtype)
    if k_major:
        b = np.asfortranarray(b)
    wide = a.astype(np.float32), b.astype(np.float32)
    start = time.process_time()
    report = gemm(a, b, kernel=kernel, machine="cpu")
    ours, numpy = [time.process_time() - start], []
    error = float(np.abs(report.d - wide[0] @ wide[1]).max() / np.abs(wide[0] @ wide[1]).max())
    assert error < 2e-3, error
    # In turns, so that both see the same machine. Of a long product the first launch is the only one.
    ours = ours if rounds == 1 else []
    for _ in range(rounds):
        if rounds > 1:
            ours.append(cpu_seconds(partial(gemm, a, b, kernel=kernel, machine="cpu"), 1))
        numpy.append(cpu_seconds(partial(np.matmul, *wide), 5 if rounds > 1 else 1))
    seconds, reference = statistics.median(ours), statistics.median(numpy)
    figures = {"numpy_seconds": reference, "ratio": seconds / reference, "tile": report.tile, "grid": report.grid}
    return record(f"{kernel} {n}^3", seconds, **figures)


# -- element by element ------------------------------------------------------------------------------------------------


def elementwise(m: int, n: int, rounds: int = ROUNDS) -> dict[str, Any]:
    a, b, c = normal(m, n), normal(m, n), np.zeros((m, n), np.float32)
    tensors = [from_dlpack(x, assumed_align=16) for x in (a, b, c)]
    executor = cute.compile(add, *tensors)
    seconds = cpu_seconds(lambda: executor(*tensors), rounds)
    assert (c == a + b).all()
    return record(f"elementwise add {m} x {n}", seconds, elements_per_second=m * n / seconds)


# -- other simulators --------------------------------------------------------------------------------------------------


def numba_matmul(n: int) -> Callable[[], Any]:
    """The tiled product of Numba's documentation: 16 x 16 threads, a tile of A and B in shared memory."""
    global cuda, float32  # the simulator puts its own module in place of a global name, while a kernel runs
    from numba import cuda, float32

    @cuda.jit
    def kernel(A: Any, B: Any, C: Any) -> None:
        sA = cuda.shared.array(shape=(16, 16), dtype=float32)
        sB = cuda.shared.array(shape=(16, 16), dtype=float32)
        x, y = cuda.grid(2)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        total = float32(0.0)
        for i in range(A.shape[1] // 16):
            sA[ty, tx] = A[y, tx + i * 16]
            sB[ty, tx] = B[ty + i * 16, x]
            cuda.syncthreads()
            for j in range(16):
                total += sA[ty, j] * sB[j, tx]
            cuda.syncthreads()
        C[y, x] = total

    a, b, c = normal(n, n), normal(n, n), np.zeros((n, n), np.float32)

    def run() -> None:
        kernel[(n // 16, n // 16), (16, 16)](a, b, c)
        np.testing.assert_allclose(c, a @ b, atol=1e-3)

    return run


def triton_matmul(n: int) -> Callable[[], Any]:
    """Tiles of 32 x 32 x 32 by ``tl.dot``, in Triton's interpreter."""
    import torch
    import triton
    import triton.language as tl

    @triton.jit
    def kernel(a, b, c, N, BLOCK: tl.constexpr):
        rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
        k = tl.arange(0, BLOCK)
        total = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
        for start in range(0, N, BLOCK):
            left = tl.load(a + rows[:, None] * N + (start + k)[None, :])
            right = tl.load(b + (start + k)[:, None] * N + columns[None, :])
            total += tl.dot(left, right)
        tl.store(c + rows[:, None] * N + columns[None, :], total)

    a, b, c = torch.from_numpy(normal(n, n)), torch.from_numpy(normal(n, n)), torch.zeros(n, n)

    def run() -> None:
        kernel[(n // 32, n // 32)](a, b, c, n, BLOCK=32)
        torch.testing.assert_close(c, a @ b, atol=1e-3, rtol=1e-3)

    return run


def peers() -> list[dict[str, Any]]:
    """The same matmul, float32, on each simulator; what is not installed, or does not run here, is named."""
    a, b = normal(PEERS, PEERS), normal(PEERS, PEERS)
    found = [record(f"simt_f32 {PEERS}^3", cpu_seconds(partial(gemm, a, b, kernel="simt_f32", machine="cpu")))]
    for name, package, make in (
        ("Numba's CUDA simulator", "numba", numba_matmul),
        ("Triton's interpreter", "triton", triton_matmul),
    ):
        if importlib.util.find_spec(package) is None:
            print(f"{name}: {package} is not installed, left out")
            continue
        try:
            seconds = cpu_seconds(make(PEERS), 1)
        except Exception as error:  # another project's: whatever it is, the other rows are printed
            print(f"{name}: does not run here ({type(error).__name__}: {error}), left out")
            continue
        what = f"{name} ({package} {importlib.metadata.version(package)}) {PEERS}^3"
        found.append(record(what, seconds, ratio_to_ours=seconds / found[0]["seconds"]))
    return found


def checks() -> None:
    with threadpool_limits(1):
        records = costs([word for word in sys.argv[1:] if not word.startswith("--")])
    rows = [
        (r["what"], f"{r['none']:.4f}", f"{r['default_ratio']:.2f}", f"{r['all_ratio']:.2f}", f"{r['all']:.2f}")
        for r in records
    ]
    table("checks, process time", rows, ("what", "unchecked s", "default: times", "all: times", "all: s"))
    if "--write" in sys.argv:
        print(write_results("sim_checks", "cpu", records))


def main() -> None:
    with threadpool_limits(1), sim.options(check="none"):
        records = [
            product("hopper_f16", 512, np.float16, k_major=True),
            product("hopper_f16", 4096, np.float16, k_major=True, rounds=1),
            product("tensorop_f16", 1024, np.float16),
            product("simt_f32", 256, np.float32),
            elementwise(1024, 1024),
            elementwise(16384, 8192, rounds=1),
            *peers(),
        ]
    rows = [(r["what"], ", ".join(f"{k} {_shown(v)}" for k, v in r.items() if k != "what")) for r in records]
    table("simulating, process time in seconds", rows, ("what", "figures"))
    if "--write" in sys.argv:
        print(write_results("sim", "cpu", records))


def _shown(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    checks() if "--checks" in sys.argv else main()
