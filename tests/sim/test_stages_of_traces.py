"""Stages in a trace: those of cp.async, with the ldmatrix and mma that read them; loads that fill several blocks."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from tests.page_programs import run_program
from tilewright import sim
from tilewright.gemm import gemm
from tilewright.sim import Trace

DOCS = Path(__file__).resolve().parents[2] / "docs"


def traced(page: str, folder: Path) -> Trace:
    """The trace of a page's program."""
    program = "\n".join(re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL))
    found = run_program(program, folder)[1]["trace"]
    assert isinstance(found, Trace)
    return found


def stages(trace: Trace, kind: str, block: int = 0, warp: int = 0) -> list[int | None]:
    """The stages of the spans of a warp in the order of time, equal neighbours once."""
    spans = sorted(trace.of(kind, block, warp), key=lambda span: span.start)
    return [s.stage for i, s in enumerate(spans) if i == 0 or s.stage != spans[i - 1].stage]


def test_a_ring_of_cp_async(tmp_path: Path) -> None:
    trace = traced("path/08_cp_async_pipeline.md", tmp_path)
    order = [0, 1, 2, 0, 1, 2, 0, 1]  # eight k tiles through three stages
    for kind in ("cp.async", "ldmatrix", "mma"):
        assert stages(trace, kind) == order, kind
    for copies, mma in zip(range(8), trace.of("mma", 0, 0), strict=True):
        landed = max(s.end for s in sorted(trace.of("cp.async", 0, 0), key=lambda s: s.start)[: 2 * copies + 2])
        assert mma.start >= landed, "operands are there"


def test_the_kernel_that_loads_registers_ahead() -> None:
    """The multistage kernel has the fragments of the next k block in registers while it multiplies."""
    with sim.trace() as trace:
        gemm(np.ones((128, 256), np.float16), np.ones((256, 256), np.float16), kernel="tensorop_f16", machine="cpu")
    filled, read, multiplied = (stages(trace, kind) for kind in ("cp.async", "ldmatrix", "mma"))
    assert multiplied == read[:8] and len(multiplied) == 8 and set(multiplied) == set(filled)
    depth = max(s for s in filled if s is not None) + 1
    assert multiplied == [k % depth for k in range(8)]


def test_a_multicast_load_fills_the_blocks_of_its_mask(tmp_path: Path) -> None:
    trace = traced("five_posts/4_tma_multicast.md", tmp_path)
    loads, received = trace.of("load"), trace.of("multicast")
    assert len(loads) == len(received) == 12
    key = [(s.source, s.start, s.end, s.stage, s.bytes) for s in received]
    assert sorted(key) == sorted((s.block, s.start, s.end, s.stage, s.bytes) for s in loads)
    assert {(s.source, s.block) for s in received} == {(0, 1), (1, 0)}
