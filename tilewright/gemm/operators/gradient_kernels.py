"""Kernels of the products that a gradient will need, compiled by other processes while the forward pass goes on.

The first step of a training compiles some ten kernels one after the other. Those of the backward pass follow from the
shapes of the forward's. ``TILEWRIGHT_COMPILE_AHEAD=0`` switches this off.
"""

from __future__ import annotations

import contextlib
import threading
from concurrent.futures import Future
from importlib import import_module
from typing import Any

from torch import Tensor

from tilewright.errors import TilewrightError
from tilewright.gemm.choice.registry import candidates
from tilewright.gemm.host.plan import Plan
from tilewright.gemm.host.problem import Problem
from tilewright.gemm.host.universal import MAY_PACK
from tilewright.gemm.operators.rows import plan_for_rows
from tilewright.gemm.tuning.jobs import Job, Product
from tilewright.gemm.tuning.processes import compile_elsewhere, is_on

SEEN: set[Any] = set()
LOCK = threading.Lock()
Extents = tuple[tuple[int, int, int], str, str]
"""(M, N, K) and the majors of A and B."""


def compile_gradients(
    a: Tensor, b: Tensor, wants_a: bool, wants_b: bool, bias: Tensor | None = None
) -> list[Future[None]]:
    """Begin to compile the kernels of the gradients of ``a @ b + bias``, where matrices lie as those of linear layers
    do, and such a product was not seen before. Of a process's first product, the kernel of its other form, without a
    bias or with one, too: layers of a model have one where its head has none, and processes are idle then."""
    key = a.shape, a.dtype, b.shape, b.stride(), wants_a, wants_b
    if key in SEEN:
        return []
    with LOCK:
        is_first = not SEEN
        SEEN.add(key)
    if not a.is_cuda or not is_on():
        return []
    gradients = gradient_products(a, b, wants_a, wants_b)
    begun = [compile_product(*product, a.dtype) for product in gradients]
    if is_first and gradients:
        extents = (a.numel() // a.shape[-1], b.shape[1], b.shape[0]), "k", "k" if b.stride(0) == 1 else "n"
        begun.append(compile_product(*extents, a.dtype, has_bias=bias is None))
    return [future for future in begun if future is not None]


def gradient_products(a: Tensor, b: Tensor, wants_a: bool, wants_b: bool) -> list[Extents]:
    """The products that ``torch_op.gradients`` computes of contiguous ``a`` and a matrix ``b``; none for others."""
    if b.ndim != 2 or a.ndim < 2 or not a.is_contiguous() or a.numel() == 0 or b.numel() == 0:
        return []
    (k, n), rows = b.shape, a.numel() // a.shape[-1]
    transposed = b.stride(0) == 1  # a weight (N, K), given as weight.mT
    if not (b.is_contiguous() or b.mT.is_contiguous()):
        return []
    products: list[Extents] = []
    if wants_a:
        products.append(((rows, k, n), "k", "n" if transposed else "k"))
    if wants_b:
        products.append(((n, k, rows) if transposed else (k, n, rows), "m", "n"))
    return products


def compile_product(
    shape: tuple[int, int, int], a_major: str, b_major: str, dtype: Any, has_bias: bool = False
) -> Future[None] | None:
    """Begin to compile what ``matmul`` would launch for a product on the GPU, unless it is compiled."""
    name = str(dtype).removeprefix("torch.")
    product = Product(shape, name, name, a_major, b_major, name if has_bias else None)

    def plan(problem: Problem) -> Plan:
        return Plan.of(problem, candidates(problem.A.dtype, None), "auto", "gpu", may_pack=MAY_PACK[True])

    with contextlib.suppress(TilewrightError):  # which the product itself will raise
        chosen = plan_for_rows(product.problem, plan)
        if chosen.packing is None:
            arch = import_module("tilewright.cuda.machine").default_architecture()
            return compile_elsewhere(Job(product, chosen, arch))
    return None
