"""The names of mbarriers in a trace, from what happens at them: TMA fills ``full``, its issuers wait for ``empty``;
``tcgen05.commit`` completes ``acc full``, and who multiplies waits for ``acc empty`` before it overwrites them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tilewright.sim.tracing.record import Arrow, Phase, Span

if TYPE_CHECKING:
    from tilewright.sim.tracing.tracer import Tracer


def accumulators(tracer: Tracer, others: set[int]) -> dict[str, dict[int, int]]:
    """The mbarriers of accumulators in tensor memory, by name: those of no ring of shared memory at which a commit
    arrives, or that a warp waits for which commits."""
    multiply = {who for who, does in tracer.does.items() if "multiplies" in does} if tracer.committed else set()
    rest = sorted({*tracer.waited, *tracer.committed} - others)
    full = [offset for offset in rest if offset in tracer.committed]
    empty = [offset for offset in rest if offset not in tracer.committed and tracer.waited[offset] & multiply]
    return {
        name: {offset: stage for stage, offset in enumerate(offsets)}
        for name, offsets in (("acc full", full), ("acc empty", empty))
    }


def with_names(tracer: Tracer) -> tuple[list[Span], list[Arrow], list[Phase]]:
    """The spans, arrows and phases of a tracer with names and stages instead of offsets in shared memory."""
    full = {offset: stage for stage, offset in enumerate(sorted(tracer.filled))}
    loaders = {who for who, does in tracer.does.items() if "loads" in does}
    # With tcgen05 a warp that loads may wait for accumulators, too, and for its pair before tensor memory is freed:
    # only what it has waited for right before a load is ``empty`` there.
    waited = tracer.refilled if tracer.committed else tracer.waited
    emptied = sorted(o for o in waited if o not in full and tracer.waited[o] & loaders)
    empty = {offset: stage for stage, offset in enumerate(emptied)}
    rings = {"full": full, "empty": empty, **accumulators(tracer, {*full, *empty})}

    def name(text: str, offset: int | None) -> str:
        if text != "mbarrier" or offset is None:
            return text
        for ring, offsets in rings.items():
            if offset in offsets:
                return f"{ring}[{offsets[offset]}]"
        return f"mbarrier at {offset}"

    def stage(kind: str, offset: int | None) -> int | None:
        if kind in ("cp.async", "ldmatrix", "mma"):  # of a ring without mbarriers
            return None if offset is None else offset % tracer.rings.depth
        if offset is None or kind in ("wgmma", "tcgen05"):
            return None if offset is None else full.get(offset)
        return full.get(offset, empty.get(offset))

    spans = [replace(s, name=name(s.name, s.stage), stage=stage(s.kind, s.stage)) for s in tracer.spans]
    arrows = [replace(a, name=name(a.name, a.stage), stage=stage(a.kind, a.stage)) for a in tracer.arrows]
    phases = [
        Phase(tracer.number, block, name(text, offset), number, tuple(sorted(came, key=lambda source: source.time)))
        for block, text, offset, number, came in tracer.phases
        if came
    ]
    return spans, arrows, phases
