"""A trace as Chrome's JSON: a process for each block, a thread for each warp and each unit, flows for arrows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tilewright.sim.tracing.record import Span, Trace

UNITS = {"load": 1000, "store": 1001, "wgmma": 1002, "cp.async": 1003}
"""Thread numbers of the units; those of a warp's wgmma are further on, one for each warp."""
NAMES = {"load": "TMA loads", "store": "TMA stores", "wgmma": "wgmma", "cp.async": "cp.async"}
SCALE = 1e-3  # times stand in microseconds: a cycle is a nanosecond


def write(trace: Trace, path: Path) -> Path:
    path.write_text(json.dumps({"traceEvents": events(trace), "displayTimeUnit": "ns"}))
    return path


def events(trace: Trace) -> list[dict[str, Any]]:
    found = _names(trace)
    for span in trace.spans:
        found.append({"ph": "X", "pid": _process(span.launch, span.block), "tid": _thread(span.kind, span.warp),
                      "ts": span.start * SCALE, "dur": span.cycles * SCALE, "name": span.name or span.kind,
                      "cat": span.kind, "args": _arguments(span)})  # fmt: skip
    for number, arrow in enumerate(trace.arrows):
        flow = {"name": arrow.name or "arrival", "cat": "arrival", "id": number}
        found.append({**flow, "ph": "s", "pid": _process(arrow.launch, arrow.block),
                      "tid": _thread(arrow.kind, arrow.warp), "ts": arrow.time * SCALE})  # fmt: skip
        found.append({**flow, "ph": "f", "bp": "e", "pid": _process(arrow.launch, arrow.to_block),
                      "tid": arrow.to_warp, "ts": arrow.to_time * SCALE})  # fmt: skip
    return found


def _process(launch: int, block: int) -> int:
    return (launch << 20) + block


def _thread(kind: str, warp: int) -> int:
    return warp if kind in ("run", "wait") else UNITS[kind] + 10 * warp


def _arguments(span: Span) -> dict[str, Any]:
    given = {"stage": span.stage, "line": str(span.loc) if span.loc else None, "bytes": span.bytes or None,
             "issued": span.begun, "phase": span.phase}  # fmt: skip
    return {name: value for name, value in given.items() if value is not None}


def _names(trace: Trace) -> list[dict[str, Any]]:
    threads = {(s.launch, s.block, s.kind if s.kind not in ("run", "wait") else "", s.warp) for s in trace.spans}
    found: list[dict[str, Any]] = []
    for launch, block in sorted({(launch, block) for launch, block, _, _ in threads}):
        name = f"{trace.launches[launch].name}, block {block}"
        found.append({"ph": "M", "pid": _process(launch, block), "name": "process_name", "args": {"name": name}})
    for launch, block, kind, warp in sorted(threads):
        role = trace.roles.get((launch, block, warp), "")
        name = f"warp {warp}{f' ({role})' if role else ''}" if not kind else f"{NAMES[kind]} of warp {warp}"
        found.append({"ph": "M", "pid": _process(launch, block), "tid": _thread(kind or "run", warp),
                      "name": "thread_name", "args": {"name": name}})  # fmt: skip
    return found
