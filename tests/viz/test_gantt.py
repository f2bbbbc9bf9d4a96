"""Schedules as charts: which arrows they show."""

from __future__ import annotations

from tilewright.gemm.operators.compare import Decompositions, entry_of
from tilewright.lang.device.smem import get_smem_capacity_in_bytes
from tilewright.viz import gantt


def test_arrows_over_many_rows_are_left_out_and_a_note_says_so() -> None:
    entry = entry_of("tensorop_f16", (128, 128, 32))
    smem = get_smem_capacity_in_bytes("sm_90")
    compared = Decompositions((1024, 768, 2048), entry, sms=20, smem=smem, split=4, occupancy=1)
    charts = {v.name: compared.schedule(v) for v in compared.variants}
    (split,) = [name for name in charts if name.startswith("Basic split-K")]
    (stream,) = [name for name in charts if "default" in name]
    assert charts[split].arrows and charts[stream].arrows
    far, near = gantt([(split, charts[split])]), gantt([(stream, charts[stream])])
    assert all(abs(link.row - link.to_row) <= 2 for link in (*far.links, *near.links))
    assert any("left out" in note for note in far.notes) and len(far.links) < len(charts[split].arrows)
    assert near.links and not any("left out" in note for note in near.notes)
