"""Which allocations an address may have been derived from: through loops, branches and arithmetic."""

from __future__ import annotations

import numpy as np

import tilewright as cutlass
from tests.check.addresses import described
from tilewright import Int32, cute
from tilewright.cute.runtime import from_dlpack
from tilewright.sim.checks.provenance import derived_from


@cute.kernel
def addresses(y: cute.Tensor, n: Int32):
    """Stores an address each way that one is handed on, and one that is loaded."""
    a, b, c = (cute.arch.alloc_smem(cutlass.Int32, 32, 16).toint() for _ in cutlass.range_constexpr(3))
    first, second, third = a, b, c
    for _ in cutlass.range(n):
        first, second, third = second, third, first
    turned, other = a, c
    while n > 0:
        turned, other = other, turned
        n = n - 1
    chosen = b
    if n > 3:
        chosen = c
        y[5] = n  # so that the branch stays one
    y[0] = first + 16 * n
    y[1] = turned
    y[2] = chosen
    y[3] = y[4] + n


def test_an_address_has_the_allocations_of_all_that_it_may_be_made_of() -> None:
    @cute.jit
    def run(y: cute.Tensor, n: Int32):
        addresses(y, n).launch(grid=(1, 1, 1), block=(1, 1, 1))

    (kernel,) = cute.compile(run, from_dlpack(np.zeros(8, np.int32)), Int32(2)).kernels
    order = [op for op in kernel.walk() if op.opcode == "smem.alloc"]
    found = derived_from(kernel)
    stored = [op.operands for op in kernel.walk() if op.opcode == "store"]
    names = [{"abc"[order.index(of)] for value in values for of in found.get(value, ())} for values in stored]
    assert names == [set(), {"a", "b", "c"}, {"a", "c"}, {"b", "c"}, set()], kernel


def test_a_descriptor_of_all_shared_memory_has_no_bounds_of_an_allocation() -> None:
    described(bug=False, turns=1, from_start=True)
