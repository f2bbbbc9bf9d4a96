"""Kernels of the products that a gradient will need, compiled in threads while the forward pass goes on.

The first step of a training compiles some ten kernels one after the other. Those of the backward pass follow from the
shapes of the forward's, and NVRTC does not hold Python's lock. What a thread has compiled is found by its key, as any
kernel that was compiled before; what it has not finished is waited for, and what it got wrong is compiled when it is
needed. ``TILEWRIGHT_COMPILE_AHEAD=0`` switches this off.
"""

from __future__ import annotations

import contextlib
import os
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from torch import Tensor

from tilewright import disk_cache
from tilewright.errors import TilewrightError
from tilewright.gemm.choice.registry import candidates
from tilewright.gemm.host.plan import Plan
from tilewright.gemm.host.problem import Problem
from tilewright.gemm.host.universal import MAY_PACK, PreparedProblem, epilogue_of
from tilewright.gemm.operators.rows import plan_for_rows
from tilewright.gemm.tuning.ahead import compile_prepared
from tilewright.gemm.tuning.stand_in import stand_in

SWITCH = "TILEWRIGHT_COMPILE_AHEAD"
THREADS = 4
SEEN: set[Any] = set()
LOCK = threading.Lock()
Product = tuple[tuple[int, int, int], str, str]
"""(M, N, K) and the majors of A and B."""


def compile_gradients(a: Tensor, b: Tensor, wants_a: bool, wants_b: bool) -> list[Future[None]]:
    """Begin to compile the kernels of the gradients of ``a @ b``, where matrices lie as those of linear layers do, and
    ``a @ b`` was not seen before."""
    key = a.shape, a.dtype, b.shape, b.stride(), wants_a, wants_b
    if key in SEEN:
        return []
    with LOCK:
        SEEN.add(key)
    # Without a disk cache machine code is not kept between the thread and the launch.
    if not a.is_cuda or os.environ.get(SWITCH) == "0" or disk_cache.limit() <= 0:
        return []
    return [pool().submit(compile_product, product, a.dtype) for product in gradient_products(a, b, wants_a, wants_b)]


def gradient_products(a: Tensor, b: Tensor, wants_a: bool, wants_b: bool) -> list[Product]:
    """The products that ``torch_op.gradients`` computes of contiguous ``a`` and a matrix ``b``; none for others."""
    if b.ndim != 2 or a.ndim < 2 or not a.is_contiguous() or a.numel() == 0 or b.numel() == 0:
        return []
    (k, n), rows = b.shape, a.numel() // a.shape[-1]
    transposed = b.stride(0) == 1  # a weight (N, K), given as weight.mT
    if not (b.is_contiguous() or b.mT.is_contiguous()):
        return []
    found: list[Product] = []
    if wants_a:
        found.append(((rows, k, n), "k", "n" if transposed else "k"))
    if wants_b:
        found.append(((n, k, rows) if transposed else (k, n, rows), "m", "n"))
    return found


def compile_product(product: Product, dtype: Any) -> None:
    """Compile what ``matmul`` would launch for ``product`` on the GPU."""
    shape, a_major, b_major = product

    def plan(problem: Problem) -> Plan:
        return Plan.of(problem, candidates(problem.A.dtype, None), "auto", "gpu", may_pack=MAY_PACK[True])

    with contextlib.suppress(TilewrightError):  # which the product itself will raise
        problem = stand_in(shape, dtype, dtype, a_major, b_major)
        function = epilogue_of(candidates(problem.A.dtype, None)[0], problem, 1.0, 0.0, None)
        compile_prepared(PreparedProblem(problem, function, plan_for_rows(problem, plan)))


_POOL: list[ThreadPoolExecutor] = []


def pool() -> ThreadPoolExecutor:
    with LOCK:
        if not _POOL:
            _POOL.append(ThreadPoolExecutor(THREADS, "tilewright-gradients"))
        return _POOL[0]
