"""Every mutant is a kernel that differs, and the kernel is what it was when the mutant is taken back."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from tilewright.errors import ConstraintError
from tilewright.gemm import kernels, stage
from tilewright.ir.core import Function
from tilewright.ir.verify import verify
from tilewright.sim.mutation import mutants


def hopper(**changes: object) -> Function:
    entry = kernels()["hopper_f16"]
    config = next(c for c in (entry.config, *entry.small) if c.tile[:2] == (128, 128) and not c.transposed)
    function: Function = stage(replace(config, stages=2, **changes))
    return function


def text(function: Function) -> str:
    """With the parameters of the instructions that the printed form leaves out."""
    return str(function) + "".join(repr(op.attrs["atom"]) for op in function.walk() if op.opcode == "call")


@pytest.fixture(scope="module")
def kernel() -> Function:
    return hopper(cluster=(2, 1))


def test_each_mutation_changes_the_kernel_and_is_reverted(kernel: Function) -> None:
    before = text(kernel)
    for mutant in mutants(kernel, every=True):
        with mutant.applied() as changed:
            assert text(changed) != before
            try:
                verify(changed)
            except ConstraintError:  # the rules of wgmma may refuse it, but it is well formed
                assert "wgmma" in mutant.instruction
        assert text(kernel) == before
        verify(kernel)


def test_mutation_operators_for_each_instruction(kernel: Function) -> None:
    found = Counter((mutant.instruction.split(" ")[0], mutant.what) for mutant in mutants(kernel))
    for change in (
        ("mbarrier.init", "one arrival more"),
        ("mbarrier.arrive.expect_tx", "16 bytes fewer"),
        ("mbarrier.arrive.expect_tx", "expects without arriving"),
        ("mbarrier.arrive.cluster", "at the block's own mbarrier"),
        ("mbarrier.wait", "waits for the other parity"),
        ("wgmma.wait_group", "leaves one group more"),
        ("cp.async.bulk.wait_group.read", "removed"),
        ("fence.proxy.async.shared::cta", "for global memory"),
        ("barrier.cluster.arrive.relaxed.aligned", "removed"),
        ("barrier.cluster.wait.acquire.aligned", "removed"),
        ("bar.sync", "arrives without waiting"),
        ("fence.mbarrier_init", "all removed"),
    ):
        assert found[change], (change, sorted(found))


def test_operators_of_tensor_memory() -> None:
    found = {(m.instruction.split(" ")[0], m.what) for m in mutants(stage(kernels()["blackwell_f16"].config))}
    for change in (
        ("tcgen05.commit.cta_group::2.multicast", "removed"),
        ("tcgen05.fence::after_thread_sync", "removed"),
        ("tcgen05.wait::ld", "removed"),
        ("tcgen05.dealloc.cta_group::2", "removed"),
    ):
        assert change in found, (change, sorted(found))


def test_a_line_that_repeats_an_operation(kernel: Function) -> None:
    every, chosen = mutants(kernel, every=True), mutants(kernel)
    assert len(chosen) < len(every)
    assert all(mutant.repeats > 1 for mutant in every if mutant.instruction == "mbarrier.init")
    places = Counter((m.location, m.instruction, m.what) for m in chosen)
    assert max(places.values()) == 2
