"""``utils.gemm.sm100.epilogue`` and ``epilogue_tma_store``: what they refuse. tests/compat/programs/
blackwell_persistent_gemm.py runs them beside the same epilogue written out."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tilewright import Int32, pipeline
from tilewright.errors import ConstraintError
from tilewright.testing import per_thread
from tilewright.utils.gemm import sm100


@pytest.mark.parametrize(
    ("arrivals", "ctas", "fits"),
    [(4, 1, True), (128, 1, True), (8, 2, True), (256, 2, True), (8, 1, False), (4, 2, False)],
)
def test_accumulators_are_released_as_the_consumers_count(arrivals: int, ctas: int, fits: bool) -> None:
    """The mbarrier's next phase begins after as many arrivals: of a thread of each warp, or of all threads."""
    kernel = SimpleNamespace(epilogue_warp_id=(0, 1, 2, 3), use_2cta_instrs=ctas == 2)

    def released(t: Any) -> Any:
        group = pipeline.CooperativeGroup(pipeline.Agent.Thread, arrivals)
        sums = pipeline.PipelineUmmaAsync.create(num_stages=1, consumer_group=group)
        state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, 1)
        for _block in range(ctas):
            sm100._release(kernel, sums, state)
        sums.sync_object_empty.wait(0, 0)
        return Int32(t)

    if fits:
        assert per_thread(released, 128)[:2] == [0, 1]
        return
    with pytest.raises(ConstraintError, match=f"has {arrivals} arrivals; the epilogue makes {4 * ctas} "):
        per_thread(released, 128)


def test_what_is_refused() -> None:
    with pytest.raises(ConstraintError, match="SimpleNamespace has no attribute epilog_sync_bar_id: the kernel object"):
        sm100._barrier(SimpleNamespace(epilogue_warp_id=(0,)))
    rest: Any = (None,) * 9
    with pytest.raises(ConstraintError, match="stages of accumulators that overlap in tensor memory are not here"):
        sm100.epilogue(*rest, overlapping_accum=True)
    with pytest.raises(ConstraintError, match="stages of accumulators that overlap in tensor memory are not here"):
        sm100._check_stages(SimpleNamespace(overlapping_accum=True))
    with pytest.raises(ConstraintError, match="c_pipeline has 3 stages, and sC 2 buffers"):
        sm100._check_buffers(3, 2)
