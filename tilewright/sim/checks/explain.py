"""Why two accesses are not ordered, and the likely repair, in words."""

from __future__ import annotations

from tilewright.atoms.tensor_memory import MMA
from tilewright.ir.core import Op
from tilewright.ir.effects import SCOPES
from tilewright.ir.target import WARP
from tilewright.ir.types import MemSpace
from tilewright.sim.checks.clocks import ClockColumns
from tilewright.sim.checks.sites import THREAD, KernelFacts, Site

READS_UNTIL = {
    "wgmma": "warpgroup.wait_group(n)",
    "cp.async.bulk.read": "cp_async_bulk_wait_group(0, read=True)",
    "tcgen05.mma": "tcgen05.commit(mbarrier) and mbarrier_wait(mbarrier, parity)",
}
"""By agent what its reads of shared memory are waited for with."""
SHOWN = 4  # the most places that are named where blocks could synchronise


def explain(
    layout: ClockColumns, now: Site, then: Site, threads: list[int], shared: bool, facts: KernelFacts
) -> tuple[str, str]:
    """(why, fix) for the accesses ``now`` and ``then`` by the identities ``threads`` (unit * 32 + lane) of the kernel
    of which these facts are known."""
    units = [thread // WARP for thread in threads]
    (block, warp, _), (other_block, other_warp, agent) = (layout.describe(unit) for unit in units)
    # From the particular to the general: the first case that applies names the repair best.
    if now.scope != THREAD and then.scope != THREAD:
        narrow = SCOPES[min(now.scope, then.scope)]
        return (
            f"both are strong, but scope {narrow} does not cover both threads",
            "give both the scope that covers the two threads: cluster, gpu",
        )
    if words := _of_a_copy_or_wgmma(agent, now.agent, now.verb == "load" and shared, then.agent):
        return words
    if (now.scope != THREAD) != (then.scope != THREAD) and block == other_block and warp != other_warp:
        return (
            "one of the two is strong (an atomic, or a load or store with an order), the other is a plain access, "
            "which nothing orders with it",
            'cute.arch.load(..., sem="acquire") and cute.arch.store(..., sem="release") for flags; a barrier '
            "between atomics and plain accesses",
        )
    if block != other_block:
        return _of_two_blocks(now, then, shared, facts)
    if now.op is not None and then.op is not None and now.op.loc is not None and now.op.loc == then.op.loc:
        return _one_line({now.verb, then.verb}, "sync_warp" if warp == other_warp else "sync_threads")
    if warp == other_warp:
        return (
            "lanes of one warp run apart; only a sync_warp (or a barrier) orders their accesses",
            "cute.arch.sync_warp() between the two",
        )
    fix = "cute.arch.sync_threads() (or a named barrier of the warps that take part) between the two"
    if facts.mbarriers:
        fix += (
            "; where an mbarrier or a pipeline guards these bytes: write before the arrival (commit), read after "
            "the wait and before the arrival that releases them"
        )
    return "no barrier, mbarrier or release and acquire is between the two on every path", fix


def _of_a_copy_or_wgmma(earlier: str, later: str, reads: bool, wrote: str = "") -> tuple[str, str] | None:
    """Words for the agents that act after the issue of an instruction; '' where the thread acts itself. ``reads``:
    whether the later one reads shared memory; ``wrote``: what did the earlier one (st.async is waited for like TMA)."""
    if earlier == "cp.async":
        return (
            "the cp.async copy has been issued, but its group has not been waited for (or only by its own thread)",
            "cp_async_commit_group(); cp_async_wait_group(n); then a barrier (sync_threads, or sync_warp) before "
            "other threads touch the bytes",
        )
    if earlier == "wgmma":
        return (
            "wgmma may still read its operands: its group has not been waited for",
            "warpgroup.wait_group(n) before the buffer is released or written again",
        )
    if earlier == "tma":
        what = "st.async" if wrote == "st.async" else "a TMA copy"
        return (
            f"the bytes of {what} have arrived when their mbarrier's phase is complete, and this thread has not waited "
            "for that",
            "mbarrier_wait(barrier, phase) (consumer_wait of a pipeline) before the access",
        )
    if earlier.startswith("cp.async.bulk"):
        what, how = ("written", "0") if earlier == "cp.async.bulk" else ("read", "0, read=True")
        return (
            f"the bulk copy has been issued, but nothing orders its end (all bytes {what}) before this access",
            f"cp_async_bulk_commit_group(); cp_async_bulk_wait_group({how}) by the thread that issued it, then a "
            "barrier before other threads touch the bytes",
        )
    if later:
        name = {"tma": "TMA", "cp.async.bulk.read": "the copy"}.get(later, later)
        if reads:
            wait = READS_UNTIL.get(later, "a wait for it")
            return (
                f"{name} may read at any time between its issue and the wait for its "
                f"{'commit' if later == MMA else 'group'}; nothing orders this write before the one or after the other",
                "where the write comes first, a barrier (sync_threads) between it and the issue; where it comes "
                f"later, {wait} by the thread that issued it, then a barrier, before the write",
            )
        return (
            f"{name} may act at any time between its issue and the wait for it; the other access comes before that "
            "wait, or nothing orders it before the issue",
            "wait for the copy (mbarrier_wait, wait_group) before the access; before a copy into bytes that were "
            "in use, a barrier",
        )
    return None


def _of_two_blocks(now: Site, then: Site, shared: bool, facts: KernelFacts) -> tuple[str, str]:
    if shared:
        return (
            "the two threads are in different blocks of the cluster",
            "cluster_arrive(); cluster_wait() between the two, or an mbarrier with cluster scope",
        )
    if (now.scope != THREAD) != (then.scope != THREAD):
        return (
            "one of the two is strong (an atomic, or a load or store with an order), the other is a plain "
            "access of another block, which nothing orders with it",
            'flags, locks and counters by strong accesses alone: cute.arch.load(..., sem="acquire"), '
            'cute.arch.store(..., sem="release"), atomics',
        )
    return (
        f"blocks run in any order, and no release and acquire of scope gpu orders these two; {_meeting(facts.calls)}",
        "let each block write its own elements, use an atomic, end the kernel between the two, or publish by "
        "a release (a fence or st.release, after the block's barrier) that the other acquires (ld.acquire or a "
        "fence, before its block's barrier)",
    )


def _one_line(verbs: set[str], barrier: str) -> tuple[str, str]:
    """Two accesses of one block by one line of Python, between which only the iterations of a loop can stand."""
    iterations = f"; where iterations of a loop hand elements from thread to thread: cute.arch.{barrier}() in each one"
    if verbs == {"store"}:
        return (
            "two threads write one element by this line",
            f"let one thread write it (if tidx == 0), or each its own element{iterations}",
        )
    return (
        "one thread reads by this line what another one writes by it",
        "to add to elements that threads share: cute.arch.atomic_add (or atomic_max, ...); to read what another "
        f"thread overwrites: read into a variable, cute.arch.{barrier}(), then write{iterations}",
    )


def _meeting(calls: list[Op]) -> str:
    """Where the blocks of a kernel could learn of each other's writes, and what all these places lack."""
    meetings: dict[str, None] = {}
    releases = acquires = False
    for op in calls:
        atom = op.attrs["atom"]
        flags = [
            a
            for a in atom.accesses
            if a.order != "weak" and a.role != "mbarrier" and {MemSpace.GMEM, MemSpace.GENERIC} & set(a.memories)
        ]
        fences = [o for o in atom.orders if not o.through and o.scope in ("gpu", "sys") and (o.acquire or o.release)]
        releases |= any(a.order in ("release", "acq_rel") for a in flags) or any(o.release for o in fences)
        acquires |= any(a.order in ("acquire", "acq_rel") for a in flags) or any(o.acquire for o in fences)
        if flags or fences:
            meetings[f"{atom.mnemonic()} at {op.loc}"] = None
    if not meetings:
        return "nothing in this kernel tells a block of what another one has written (no flag, lock or ticket)"
    places = list(meetings)
    more = f" and {len(places) - SHOWN} more" if len(places) > SHOWN else ""
    lack = [word for word, there in (("release", releases), ("acquire", acquires)) if not there]
    none = f"; no {' or '.join(lack)} is among them" if lack else ""
    return f"what blocks of this kernel could meet at: {', '.join(places[:SHOWN])}{more}{none}"
