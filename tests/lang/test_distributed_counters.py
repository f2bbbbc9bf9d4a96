"""``utils.distributed``: blocks that wait for each other at counters in global memory."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as cutlass
from tests.machines import MACHINES, OnMachine
from tilewright import cute, sim
from tilewright.errors import ConstraintError, SimulationError
from tilewright.testing import per_thread
from tilewright.utils import distributed

BLOCKS, THREADS = 4, 32


@cute.kernel
def all_sums(x: cute.Tensor, parts: cute.Tensor, y: cute.Tensor, flags: cute.Tensor, how: cutlass.Constexpr):
    """Each block writes a part; y[block] is the sum of all parts, which each reads behind the counters."""
    t, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    parts[block, t] = 2 * x[block, t]
    cute.arch.sync_threads()
    if t < BLOCKS:
        distributed.red_add1(flags.iterator + t, scope="gpu", order="release" if how != "no release" else "relaxed")
    if t == 0:
        if cutlass.const_expr(how == "at least"):
            distributed.spin_lock_ld_lt_relaxed_wait(flags.iterator + block, expected_val=BLOCKS, scope="gpu")
        elif cutlass.const_expr(how == "relaxed"):
            distributed.spin_lock_atom_cas_relaxed_wait(
                lock_ptr=flags.iterator + block, expected_val=BLOCKS, reset_val=0, scope="gpu"
            )
        else:
            distributed.spin_lock_atom_cas_acquire_wait(
                flags.iterator + block, expected_val=cutlass.Int32(BLOCKS), reset_val=0, scope="gpu"
            )
    if cutlass.const_expr(how in ("at least", "relaxed")):
        cute.arch.fence_acq_rel_gpu()
    cute.arch.sync_threads()
    total = cutlass.Int32(0)
    for i in cutlass.range_constexpr(BLOCKS):
        total += parts[i, t]
    y[block, t] = total


@cute.jit
def run(x: cute.Tensor, parts: cute.Tensor, y: cute.Tensor, flags: cute.Tensor, how: cutlass.Constexpr):
    all_sums(x, parts, y, flags, how).launch(grid=(BLOCKS, 1, 1), block=(THREADS, 1, 1))


@MACHINES
@pytest.mark.parametrize("how", ["acquire", "relaxed", "at least"])
def test_each_block_sees_what_all_wrote(machine: OnMachine, how: str) -> None:
    x = np.arange(BLOCKS * THREADS, dtype=np.int32).reshape(BLOCKS, THREADS)
    parts, y, flags = np.zeros_like(x), np.zeros_like(x), np.zeros(BLOCKS, np.int32)
    machine.run(run, x, parts, y, flags, how)
    np.testing.assert_array_equal(y, np.broadcast_to(2 * x.sum(0), x.shape))
    assert flags.tolist() == [BLOCKS if how == "at least" else 0] * BLOCKS


def test_a_counter_that_is_beyond_the_number_is_not_waited_for() -> None:
    def passes(t: cutlass.Int32, p: cute.Pointer) -> cutlass.Int32:
        distributed.spin_lock_ld_lt_relaxed_wait(p, expected_val=3, scope="gpu")
        return t

    assert per_thread(passes, 2, memory=[5]) == ([0, 1], [5])


def test_mistakes() -> None:
    x = np.ones((BLOCKS, THREADS), np.int32)
    with sim.options(check="all"), pytest.raises(SimulationError, match="race"):
        run(x, np.zeros_like(x), np.zeros_like(x), np.zeros(BLOCKS, np.int32), "no release")
    with pytest.raises(ConstraintError, match="scope"):
        per_thread(lambda t, p: distributed.red_add1(p, scope="world", order="release"), 1, memory=[0])
    with pytest.raises(ConstraintError, match="multimem_st is not here yet: it needs memory that several GPUs map"):
        distributed.multimem_st(1)
