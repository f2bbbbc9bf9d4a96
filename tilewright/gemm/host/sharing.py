"""The options of a call for blocks that share tiles: which reduction, over how many multiprocessors. What would have no
effect is refused before anything is planned."""

from __future__ import annotations

from typing import Any

from tilewright.errors import ArgumentError
from tilewright.gemm.schedule.shared import REDUCTIONS
from tilewright.gemm.schedule.sm90_streamk import StreamKScheduleSm90
from tilewright.gemm.schedule.splitk import SplitK
from tilewright.gemm.schedule.streamk import StreamK

TAKERS = "decomposition 'stream_k', a StreamK or StreamKScheduleSm90 whose blocks share tiles, or 'auto', take one"
OWN_RULES = {
    "serial": "its blocks add themselves to D by turns",
    "parallel": "another kernel adds up its slices",
    "cluster": "the blocks of a cluster add up through their shared memory",
}
WHOLE = {"data_parallel": "each tile has a block of its own", "dynamic": "each tile is drawn by one block"}


def checked(decomposition: Any, reduction: str | None, split: int, available: int, batch: int) -> Any:
    """The decomposition, with "auto" as what takes the options that were named: Stream-K where there is a reduction or
    a number of multiprocessors to balance over, a tile for each block where nothing may be shared ("none").

    ``split`` is 1 and ``available`` -1 where they were not said. ArgumentError for options that do not exist, and for
    those that would have no effect: with a decomposition that has nothing to add up, or adds up by a rule of its own.
    """
    if reduction is not None and reduction not in ("none", *REDUCTIONS):
        raise ArgumentError(f"reduction must be one of none, {', '.join(REDUCTIONS)}, got {reduction!r}")
    check_available(decomposition, reduction, available, batch)
    if reduction == "none":
        check_none(decomposition, split)
        return "data_parallel" if decomposition in ("auto", "stream_k") else decomposition
    if reduction is not None:
        check_named(decomposition, reduction)
    return "stream_k" if decomposition == "auto" and (reduction is not None or available != -1) else decomposition


def check_named(decomposition: Any, reduction: str) -> None:
    """ArgumentError where a reduction has nothing to add up, or contradicts another argument."""
    request = f"reduction {reduction!r} says how blocks that share a tile add up, and "
    if isinstance(decomposition, str) and decomposition in WHOLE:
        raise ArgumentError(f"{request}with {decomposition!r} {WHOLE[decomposition]}: leave it out; {TAKERS}")
    if isinstance(decomposition, SplitK):
        rule = OWN_RULES[decomposition.mode]
        raise ArgumentError(
            f"{request}split-K of mode {decomposition.mode!r} has a rule of its own ({rule}): leave it out; {TAKERS}"
        )
    if isinstance(decomposition, StreamK) and not decomposition.sk_tiles:
        raise ArgumentError(f"{request}the blocks of this plan share no tile: leave it out; {TAKERS}")
    if isinstance(decomposition, StreamKScheduleSm90):
        if not shares_tiles(decomposition):
            raise ArgumentError(f"{request}the blocks of this schedule share no tile: leave it out; {TAKERS}")
        if reduction == "mixed" and decomposition.reduction_mode == "Nondeterministic":
            raise ArgumentError("reduction 'mixed' with a schedule whose reduction_mode is Nondeterministic")


def check_none(decomposition: Any, split: int) -> None:
    """ArgumentError where tiles are shared although none may be."""
    if split != 1:
        raise ArgumentError(f"reduction 'none' with batch_count = {split}, which splits K: its parts are added up")
    if isinstance(decomposition, StreamK) and decomposition.sk_tiles:
        raise ArgumentError(f"reduction 'none' with a plan whose blocks share {decomposition.sk_tiles} tiles")
    if isinstance(decomposition, StreamKScheduleSm90) and shares_tiles(decomposition):
        raise ArgumentError("reduction 'none' with a schedule whose blocks share tiles")
    if isinstance(decomposition, SplitK):
        raise ArgumentError(f"reduction 'none' with split-K, whose {decomposition.slices} slices are added up")


def check_available(decomposition: Any, reduction: str | None, available: int, batch: int) -> None:
    """ArgumentError where no plan is made that ``avail_sms`` could balance."""
    if available == -1:
        return
    request = f"avail_sms = {available} says over how many multiprocessors Stream-K balances, and "
    if decomposition not in ("auto", "stream_k"):
        raise ArgumentError(f"{request}{decomposition!r} does not: leave it out, or take decomposition 'stream_k'")
    if reduction == "none":
        raise ArgumentError(f"{request}reduction 'none' shares no tiles: leave one of them out")
    if batch != 1:
        raise ArgumentError(f"{request}it does so for single products, not for a batch of {batch}: leave it out")


def shares_tiles(schedule: StreamKScheduleSm90) -> bool:
    """Whether the schedule's units share tiles, as Stream-K or as split-K."""
    return bool(schedule.sk_units) or schedule.splits > 1
