"""The timeline of a GEMM of sm_100: the tensor core as a unit, tensor memory, and the barriers of accumulators."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import numpy as np
import pytest

from tilewright import sim, viz
from tilewright.cute.runtime import from_dlpack
from tilewright.gemm import gemm
from tilewright.sim.tracing import Trace, costs

K = 256


@pytest.fixture(scope="module")
def trace() -> Trace:
    a, b = (np.ones((n, K), np.float16) for n in (128, 128))
    with sim.options(arch="sm_100a"), sim.trace() as found:
        report = gemm(a, b.T, kernel="blackwell_f16", machine="cpu")
    np.testing.assert_array_equal(report.d, K)
    return found


def test_roles(trace: Trace) -> None:
    roles = {
        role: [warp for _, block, warp in trace.roles if trace.roles[0, block, warp] == role]
        for role in set(trace.roles.values())
    }
    assert roles["loads"] and roles["multiplies"] and not set(roles["loads"]) & set(roles["multiplies"])
    assert len({w for role, warps in roles.items() if role.startswith("reads") for w in warps}) == 4, "the epilogue's"


def test_products_take_the_cycles_of_their_shape_one_after_the_other(trace: Trace) -> None:
    spans = trace.of("tcgen05", block=0)
    n = 128 if len(trace.of("tcgen05")) == len(spans) else 64
    assert sum(span.cycles for span in spans) == K // 16 * n / costs.TCGEN05_COLUMNS
    assert all(one.end <= other.start for one, other in zip(spans, spans[1:], strict=False))
    landed = {span.stage: span.end for span in trace.of("load", block=0)}
    assert all(span.start >= landed[span.stage] for span in spans[: len(landed)])


def test_waits_name_the_accumulators_and_what_ends_them(trace: Trace) -> None:
    ended = {stall.name: stall.ended_by for stall in trace.stalls()}
    assert ended["acc full"] == ended["empty"] == "tensor cores"
    assert ended["full"] == "TMA"
    assert ended["acc empty"] == "a warp"
    assert ended["tcgen05.wait::ld"] == "tensor memory"
    last = max(span.end for span in trace.of("tcgen05", block=0))
    loads = trace.of("tensor memory", block=0)
    assert loads and min(span.start for span in loads) >= last, "the accumulators are complete"


def test_the_picture_and_perfetto_show_them(trace: Trace, tmp_path: Path) -> None:
    rows = viz.timeline(trace).rows
    assert {"tcgen05", "tensor memory", "warp 1 (multiplies)"} <= set(rows)
    events = json.loads(trace.to_perfetto(tmp_path / "trace.json").read_text())["traceEvents"]
    assert "tcgen05 of warp 1" in {event["args"].get("name") for event in events if event["ph"] == "M"}


def test_a_pair_of_blocks() -> None:
    """Both tensor cores multiply; loads of pairs are no multicast; a warp that loads waits for accumulators, too."""
    program = runpy.run_path(str(Path(__file__).parents[2] / "examples/blackwell_gemm.py"))
    product = program["Gemm"]((256, 64, 64), (2, 1), 2)
    a, b, d = program["operands"](product)
    with sim.trace() as trace:
        product(*(from_dlpack(x, assumed_align=16) for x in (a, b, d)))
    issued, shared = (trace.of("tcgen05", block=block) for block in (0, 1))
    assert [s.stage for s in issued] == [0, 1, 0] and [s.source for s in shared] == [0, 0, 0]
    assert [(s.start, s.end) for s in issued] == [(s.start, s.end) for s in shared]
    assert len(trace.of("load", block=1)) == 6 and not trace.of("multicast")
    waits = {s.name for s in trace.of("wait", block=1) if s.name[-1] == "]"}
    assert waits == {"empty[0]", "empty[1]", "acc full[0]"}
    assert {s.ended_by for s in trace.stalls() if s.name == "empty"} == {"tensor cores"}
