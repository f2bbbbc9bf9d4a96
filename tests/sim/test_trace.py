"""Traces: times by hand for small programs, what overlaps, who waits for whom, Chrome's JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tilewright import cute, sim
from tilewright.cute.runtime import from_dlpack
from tilewright.gemm import gemm, kernels
from tilewright.sim.tracing import Trace, costs, overlap
from tilewright.sim.tracing.clocks import CommitGroups, SerialUnit

STAGES, K_TILES = 3, 8


@pytest.fixture(scope="module")
def product() -> tuple[Trace, np.ndarray]:
    """One tile of the warp-specialised GEMM: eight k tiles through three stages."""
    entry = kernels()["hopper_f16"]
    config = next(c for c in entry.small if c.tile == (128, 128, 64) and not c.transposed)
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, (128, 64 * K_TILES)).astype(np.float16) for _ in range(2))
    with sim.trace() as trace:
        report = gemm(a, b.T, kernel=entry.only(replace(config, stages=STAGES, cluster=(1, 1))))
    np.testing.assert_array_equal(report.d, a.astype(np.float64) @ b.T.astype(np.float64))
    return trace, report.d


def test_a_load_takes_its_bytes_and_its_latency(product: tuple[Trace, np.ndarray]) -> None:
    trace, _ = product
    loads = trace.of("load")
    assert len(loads) == 2 * K_TILES
    for span in loads:
        assert span.bytes == 128 * 64 * 2 and span.warp == 0
        assert span.cycles == span.bytes / costs.GLOBAL_BYTES + costs.TMA_LATENCY
        assert span.begun is not None and span.start >= span.begun + costs.TMA_ISSUE
    begins = sorted(s.start for s in loads)
    assert min(np.diff(begins)) >= 128 * 64 * 2 / costs.GLOBAL_BYTES, "one unit moves one box at a time"
    assert [s.stage for s in loads] == [k % STAGES for k in range(K_TILES) for _ in range(2)]


def test_wgmma_takes_the_cycles_of_its_shape(product: tuple[Trace, np.ndarray]) -> None:
    trace, _ = product
    for warp in (4, 8):
        spans = trace.of("wgmma", warp=warp)
        assert [s.stage for s in spans] == [k % STAGES for k in range(K_TILES)]
        assert all(s.cycles >= 4 * 128 / costs.WGMMA_COLUMNS for s in spans)
    busy = 2 * K_TILES * 4 * 128 / costs.WGMMA_COLUMNS  # both warpgroups on the same tensor cores
    last = max(s.end for s in trace.of("wgmma"))
    assert last - min(s.start for s in trace.of("wgmma")) >= busy


def test_stages_are_read_after_landing_and_refilled_after_reading(product: tuple[Trace, np.ndarray]) -> None:
    trace, _ = product
    landed: dict[int, list[float]] = {}
    for span in trace.of("load"):
        landed.setdefault(span.stage or 0, []).append(span.end)
    for warp in (4, 8):
        for k, span in enumerate(trace.of("wgmma", warp=warp)):
            both = landed[k % STAGES][2 * (k // STAGES) : 2 * (k // STAGES) + 2]
            assert span.start >= max(both)
            later = [s for s in trace.of("load") if s.stage == k % STAGES][2 * (k // STAGES) + 2 :]
            assert all(s.start > span.end for s in later)


def test_loads_overlap_with_multiplication(product: tuple[Trace, np.ndarray]) -> None:
    trace, _ = product
    assert overlap(trace.of("load"), trace.of("wgmma")) > 0.5 * sum(s.cycles for s in trace.of("wgmma", warp=4))


def test_a_warp_is_in_one_place_at_a_time(product: tuple[Trace, np.ndarray]) -> None:
    trace, _ = product
    for warp in range(12):
        spans = sorted(trace.of(("run", "wait"), warp=warp), key=lambda s: s.start)
        assert spans[0].start == 0
        assert all(s.end == following.start for s, following in zip(spans, spans[1:], strict=False))


def test_waits_have_names_lines_and_arrows(product: tuple[Trace, np.ndarray]) -> None:
    trace, _ = product
    full = [s for s in trace.of("wait", warp=4) if s.name.startswith("full")]
    assert full and full[0].name == "full[0]" and full[0].stage == 0
    waits = sorted(trace.of("wait", warp=0), key=lambda s: s.start)
    emptied = [(s.stage, s.phase) for s in waits if s.name.startswith("empty")]
    assert emptied == sorted(emptied, key=lambda found: (found[1], found[0])) and emptied[0] == (0, 0)
    assert {phase for _, phase in emptied} == set(range((K_TILES - 1) // STAGES + 1))
    assert {Path(s.loc.file).name for s in full if s.loc} == {"tma.py"}
    assert any(s.name.startswith("empty[") for s in trace.of("wait", warp=0))
    first = next(a for a in trace.arrows if a.name == "full[0]" and a.to_warp == 4)
    assert (first.kind, first.warp, first.time) == ("load", 0, trace.of("load")[1].end)
    assert first.to_time == first.time + costs.BARRIER_LATENCY == full[0].end
    assert {a.kind for a in trace.arrows if a.name.startswith("empty")} == {"run"}
    assert {a.warp for a in trace.arrows if a.name.startswith("empty")} <= set(range(4, 12))
    roles = {warp: role for (_, _, warp), role in trace.roles.items()}
    assert roles[0] == "loads" and roles[4] == "multiplies, stores" and roles[5] == "multiplies"


def test_chrome_reads_the_file(product: tuple[Trace, np.ndarray], tmp_path: Path) -> None:
    trace, _ = product
    events = json.loads(trace.to_perfetto(tmp_path / "gemm.json").read_text())["traceEvents"]
    spans = [e for e in events if e["ph"] == "X" and e["cat"] != "barrier"]
    assert len(spans) == len(trace.spans)
    assert sum(e["dur"] for e in spans) == pytest.approx(1e-3 * sum(s.cycles for s in trace.spans))
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e.get("name") == "thread_name"}
    phases = [e for e in events if e["ph"] == "X" and e["cat"] == "barrier"]
    assert len(phases) == len(trace.phases)
    assert {(e["pid"], e["tid"]) for e in (*spans, *phases)} == set(names)
    marks = [e for e in events if e["ph"] == "i"]
    assert len(marks) == sum(len(phase.arrivals) for phase in trace.phases)
    assert {"full[0]", "empty[2]", "barrier 0"} <= set(names.values())
    for name in ("waiting warps", "bytes in flight"):
        levels = [e["args"][name] for e in events if e["ph"] == "C" and e["name"] == name]
        assert max(levels) > 0 and min(levels) == 0 and levels[-1] == 0
    assert "warp 0 (loads)" in names.values() and "TMA loads of warp 0" in names.values()
    starts, ends = ({e["id"]: e for e in events if e["ph"] == ph} for ph in "sf")
    assert starts.keys() == ends.keys() and len(starts) == len(trace.arrows)
    assert all((e["pid"], e["tid"]) in names for e in (*starts.values(), *ends.values()))
    assert all(starts[i]["ts"] <= ends[i]["ts"] for i in starts)


def test_phases_of_barriers(product: tuple[Trace, np.ndarray]) -> None:
    trace, _ = product
    names = {phase.name for phase in trace.phases}
    assert {f"full[{k}]" for k in range(STAGES)} | {f"empty[{k}]" for k in range(STAGES)} | {"barrier 0"} <= names
    full = [phase for phase in trace.phases if phase.name == "full[0]"]
    assert [phase.number for phase in full] == list(range(len(range(0, K_TILES, STAGES))))
    for phase in full:  # the loading warp arrives and expects bytes, then two boxes land
        assert [a.kind for a in phase.arrivals] == ["run", "load", "load"] and phase.start < phase.end
    landed = {span.end for span in trace.of("load")}
    assert all(phase.end in landed for phase in full)


def test_stalls_add_up_to_the_waits(product: tuple[Trace, np.ndarray]) -> None:
    trace, _ = product
    stalls = trace.stalls()
    assert sum(stall.cycles for stall in stalls) == pytest.approx(sum(span.cycles for span in trace.of("wait")))
    assert sum(stall.count for stall in stalls) == len(trace.of("wait"))
    assert [stall.cycles for stall in stalls] == sorted((stall.cycles for stall in stalls), reverse=True)
    by = {(stall.role, stall.name): stall for stall in stalls}
    assert by["loads", "empty"].ended_by == "a warp" and by["multiplies", "full"].ended_by == "TMA"
    assert all(0 < stall.share <= 1 and stall.loc is not None for stall in stalls)
    assert "ended by TMA at " in str(by["multiplies", "full"])
    assert trace.stalls(launch=0) == stalls and not trace.stalls(launch=1)


@cute.kernel
def relay(x: cute.Tensor) -> None:
    """Warp 0 loads from global memory before the barrier; warp 1 waits for it there."""
    t, b = cute.arch.thread_idx()[0], cute.arch.block_idx()[0]
    if t < 32:
        x[128 * b + t] = x[128 * b + t] + 1.0
    cute.arch.sync_threads()
    x[128 * b + t + 64] = 1.0


@cute.jit
def run_relay(x: cute.Tensor) -> None:
    relay(x).launch(grid=(2, 1, 1), block=(64, 1, 1))


def test_a_barrier_ends_when_the_last_warp_arrives() -> None:
    with sim.trace() as trace:
        run_relay(from_dlpack(np.zeros(256, np.float32)))
        run_relay(from_dlpack(np.zeros(256, np.float32)))
    assert [x.grid for x in trace.launches] == [(2, 1, 1)] * 2
    assert trace.launches[0].end == trace.launches[1].start
    waits = [s for s in trace.of("wait", block=1, warp=1) if s.launch == 0]
    assert len(waits) == 1 and waits[0].name == "barrier 0" and waits[0].cycles > costs.GLOBAL_LATENCY - 20
    (arrow,) = [a for a in trace.arrows if (a.launch, a.block, a.to_warp) == (0, 1, 1)]
    assert arrow.warp == 0 and arrow.time >= costs.GLOBAL_LATENCY


def test_the_times_do_not_depend_on_the_schedule() -> None:
    found = []
    for seed in range(3):
        with sim.options(seed=seed), sim.trace() as trace:
            run_relay(from_dlpack(np.zeros(256, np.float32)))
        found.append({replace(s, loc=None) for s in trace.spans})
    assert found[0] == found[1] == found[2]


def test_a_unit_takes_the_first_gap_that_is_long_enough() -> None:
    unit = SerialUnit()
    asked = [(0, 10), (20, 10), (0, 5), (0, 8), (12, 2)]
    assert [unit.take(at, duration) for at, duration in asked] == [0, 20, 10, 30, 15]


def test_groups_end_in_order() -> None:
    groups = CommitGroups()
    for end in (10.0, 30.0, 20.0):
        groups.open = end
        groups.commit(0.0)
    assert groups.wait(2) == 10 and groups.wait(1) == 30 and groups.wait(1) == 0 and groups.wait(0) == 30
