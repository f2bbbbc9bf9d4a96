"""A trace as Chrome's JSON: a process for each block, a thread for each warp, unit and barrier, flows for arrows,
counters."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tilewright.sim.tracing.record import Span, Trace

UNITS = {
    "load": 1000,
    "store": 1001,
    "wgmma": 1002,
    "cp.async": 1003,
    "ldmatrix": 1004,
    "mma": 1005,
    "multicast": 1006,
    "tcgen05": 1007,
    "tensor memory": 1008,
}
"""Thread numbers of the units; those of a warp's wgmma are further on, one for each warp."""
NAMES = {
    "load": "TMA loads",
    "store": "TMA stores",
    "wgmma": "wgmma",
    "cp.async": "cp.async",
    "ldmatrix": "ldmatrix",
    "mma": "mma.sync",
    "multicast": "multicast to this block",
    "tcgen05": "tcgen05",
    "tensor memory": "tensor memory",
}
BARRIERS = 1 << 16  # thread numbers of barriers begin here
SCALE = 1e-3  # times are in microseconds: a cycle is a nanosecond


def write(trace: Trace, path: Path) -> Path:
    path.write_text(json.dumps({"traceEvents": events(trace), "displayTimeUnit": "ns"}), encoding="utf-8")
    return path


def events(trace: Trace) -> list[dict[str, Any]]:
    """The events of the trace-event format: ``X`` spans, ``s`` and ``f`` the two ends of an arrow, ``M`` names, ``C``
    counters, ``i`` instants."""
    records = _names(trace)
    for span in trace.spans:
        records.append(
            {
                "ph": "X",
                "pid": _process(span.launch, span.block),
                "tid": _thread(span.kind, span.warp),
                "ts": span.start * SCALE,
                "dur": span.cycles * SCALE,
                "name": span.name or span.kind,
                "cat": span.kind,
                "args": _arguments(span),
            }
        )
    records += _barriers(trace)
    records += _counters(trace)
    for number, arrow in enumerate(trace.arrows):
        flow = {"name": arrow.name or "arrival", "cat": "arrival", "id": number}
        records.append(
            {
                **flow,
                "ph": "s",
                "pid": _process(arrow.launch, arrow.block),
                "tid": _thread(arrow.kind, arrow.warp),
                "ts": arrow.time * SCALE,
            }
        )
        records.append(
            {
                **flow,
                "ph": "f",
                "bp": "e",
                "pid": _process(arrow.launch, arrow.to_block),
                "tid": arrow.to_warp,
                "ts": arrow.to_time * SCALE,
            }
        )
    return records


def _barriers(trace: Trace) -> list[dict[str, Any]]:
    """A thread for each barrier of a block: its phases, and who arrived."""
    records: list[dict[str, Any]] = []
    for number, (launch, block, name) in enumerate(sorted({(p.launch, p.block, p.name) for p in trace.phases})):
        thread = {"pid": _process(launch, block), "tid": BARRIERS + number}
        records.append({"ph": "M", **thread, "name": "thread_name", "args": {"name": name}})
        for phase in trace.phases:
            if (phase.launch, phase.block, phase.name) == (launch, block, name):
                records.append(
                    {
                        "ph": "X",
                        **thread,
                        "ts": phase.start * SCALE,
                        "dur": (phase.end - phase.start) * SCALE,
                        "name": f"phase {phase.number}",
                        "cat": "barrier",
                        "args": {"arrivals": len(phase.arrivals)},
                    }
                )
                records += [
                    {
                        "ph": "i",
                        **thread,
                        "s": "t",
                        "ts": a.time * SCALE,
                        "cat": "barrier",
                        "name": f"warp {a.warp} of block {a.block}" if a.kind == "run" else f"{NAMES[a.kind]}",
                    }
                    for a in phase.arrivals
                ]
    return records


def _counters(trace: Trace) -> list[dict[str, Any]]:
    """How many warps of a block wait, and how many bytes its asynchronous units are moving."""
    changes: dict[tuple[int, str], dict[float, int]] = defaultdict(lambda: defaultdict(int))
    for span in trace.spans:
        if span.kind == "wait" or span.bytes:
            name, amount = ("waiting warps", 1) if span.kind == "wait" else ("bytes in flight", span.bytes)
            begun = span.start if span.begun is None else span.begun
            # Changes by time, summed up below: spans begin and end in any order.
            changes[_process(span.launch, span.block), name][begun] += amount
            changes[_process(span.launch, span.block), name][span.end] -= amount
    records = []
    for (process, name), steps in sorted(changes.items()):
        level = 0
        for time, change in sorted(steps.items()):
            level += change
            records.append({"ph": "C", "pid": process, "ts": time * SCALE, "name": name, "args": {name: level}})
    return records


def _process(launch: int, block: int) -> int:
    return (launch << 20) + block


def _thread(kind: str, warp: int) -> int:
    return warp if kind in ("run", "wait") else UNITS[kind] + 10 * warp


def _arguments(span: Span) -> dict[str, Any]:
    arguments = {
        "stage": span.stage,
        "line": str(span.loc) if span.loc else None,
        "bytes": span.bytes or None,
        "issued": span.begun,
        "phase": span.phase,
    }
    return {name: value for name, value in arguments.items() if value is not None}


def _names(trace: Trace) -> list[dict[str, Any]]:
    threads = {(s.launch, s.block, s.kind if s.kind not in ("run", "wait") else "", s.warp) for s in trace.spans}
    records: list[dict[str, Any]] = []
    for launch, block in sorted({(launch, block) for launch, block, _, _ in threads}):
        name = f"{trace.launches[launch].name}, block {block}"
        records.append({"ph": "M", "pid": _process(launch, block), "name": "process_name", "args": {"name": name}})
    for launch, block, kind, warp in sorted(threads):
        role = trace.roles.get((launch, block, warp), "")
        name = f"warp {warp}{f' ({role})' if role else ''}" if not kind else f"{NAMES[kind]} of warp {warp}"
        records.append(
            {
                "ph": "M",
                "pid": _process(launch, block),
                "tid": _thread(kind or "run", warp),
                "name": "thread_name",
                "args": {"name": name},
            }
        )
    return records
