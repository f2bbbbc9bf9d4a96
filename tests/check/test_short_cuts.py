"""Short cuts of the checks change no finding; those of the rule of data races say what the rule for one lane says."""

from __future__ import annotations

import contextlib
import random
from collections import Counter
from typing import Any

import numpy as np
import pytest

from tests.check.drawn_cases import drawn_cases, report_as_it_is, report_of
from tests.check.short_cuts import SHORT_CUTS, ShortCut
from tilewright.sim.checks import race_cells
from tilewright.sim.checks.race_cells import CellCheck
from tilewright.sim.checks.written_cells import WrittenCells

NOTICED_BY = {
    "accesses kept without a look at their cells": ("bug", "a_buffer_changed_while_the_neighbour_reads"),
    "loads like the one before": ("bug", "a_consumer_that_asks_and_does_not_look"),
    "reads by an agent like those before": ("bug", "a_product_of_an_operand_that_is_not_announced"),
    "writes to other lines": ("bug", "tma_bytes_read_without_a_wait"),
    "last writers of lines": ("tiles", "8"),
    "warps that reach the same bytes": ("bug", "stages_that_are_read_without_a_wait"),
    "tiles read as rectangles": ("bug", "operands_multiplied_before_their_copy_has_come"),
    "cells of a few accesses": ("bug", "pieces_of_four_at_a_distance_of_three"),
    "records written over": ("tiles", "22"),
    "records known to all": ("tiles", "6"),
    "records of several accesses": ("tiles", "39"),
    "records before a barrier": ("bug", "a_lane_spins_on_a_plain_flag"),
    "entries before a barrier": ("tiles", "9"),
    "one entry for each warp": ("bug", "a_true_token_that_leaves_out_all_later_waits"),
    "rows of clocks": ("tiles", "30"),
    "each pair asked once": ("tiles", "7"),
    "reads kept in a list": ("tiles", "17"),
    "accesses told together": ("tiles", "5"),
    "issues told together": ("bug", "one_of_the_lanes_that_copy_does_not_wait"),
    "effects of several blocks land together": (
        "bug",
        "operands_that_the_last_block_refills_before_the_commit_arrived",
    ),
    "boxes of several blocks as one access": ("bug", "tma_bytes_that_the_last_block_does_not_wait_for"),
    "loads of several ops told together": ("threads", "3"),
    "places accessed again": ("bug", "part_sums_of_warps_read_too_early"),
    "accesses through several pointers": ("bug", "one_warp_releases_what_the_threads_of_four_have_read"),
    "stores of an op kept as one": ("several", "1"),
    "one effect for a call of cp.async": ("several", "2"),
    "stores of whole rows": ("bug", "lanes_exchange_through_global_memory"),
    "entries of a warp from one": ("tiles", "17"),
    "facts of a group found once": ("bug", "a_rotation_in_place"),
    "lanes with something unfinished": ("lanes", "37"),
    "columns of elected lanes": ("lanes", "38"),
    "lanes that issue alone": ("lanes", "35"),
    "whole warps at mbarriers": ("twin", "tma_bytes_that_the_last_block_does_not_wait_for"),
    "barriers that are reached together": ("tiles", "23"),
    "rows that clocks share": ("lanes", "25"),
    "one snapshot for the copies of an op": ("twin", "stages_that_are_read_without_a_wait"),
    "flags that are read again": ("twin", "block_0_adds_up_without_waiting"),
    "fences asked once for a warp": ("bug", "a_ticket_without_the_blocks_barrier"),
    "accumulators written again": ("bug", "no_fence_before_the_barrier"),
    "all warps fenced": ("bug", "a_proxy_fence_by_one_lane"),
    "writes of a warp fenced as one": ("bug", "tma_reads_what_is_written_again"),
    "cells known to be written": ("lanes", "8"),
    "asleep until something is undefined": ("bug", "part_sums_of_warps_read_too_early"),
    "cells of 16 bytes": ("bug", "shared_memory_written_up_to_the_last_element"),
    "copies of defined values": ("bug", "a_shuffle_from_a_lane_that_takes_no_part"),
    "fragments proved to be written": ("bug", "a_product_with_its_first_operand_not_loaded"),
    "checks that concern the kernel": ("bug", "wgmma_of_a_tile_without_a_fence"),
    "pointers in place of offsets": ("tiles", "20"),
}
"""For each short cut a case that a wrong form of it was seen to change, mostly one that says "ordered" or "the same" of
everything."""

BY_DEFAULT = (  # short cuts that all checks do not take
    "asleep until something is undefined",
    "cells of 16 bytes",
    "loads of several ops told together",
    "places accessed again",
)


@pytest.mark.parametrize("cut", SHORT_CUTS, ids=lambda cut: cut.name.replace(" ", "_"))
def test_the_findings_are_the_same_without(cut: ShortCut) -> None:
    check = "default" if cut.name in BY_DEFAULT else "all"
    kind, which = NOTICED_BY[cut.name]
    with cut.off():
        plain = report_of(kind, which, check)
    assert report_as_it_is(kind, which, check) == plain, f"{kind} {which}"


def test_the_findings_are_the_same_without_any() -> None:
    for kind, which in drawn_cases("short cuts", 3, 3):
        with contextlib.ExitStack() as stack:
            for cut in SHORT_CUTS:
                stack.enter_context(cut.off())
            plain = report_of(kind, which)
        assert report_as_it_is(kind, which) == plain, f"{kind} {which}"


def test_accesses_of_an_op_one_by_one() -> None:
    """Kernels whose ops make two accesses each, of which short cuts take many as one: also the counts of races."""
    for which in (46, *random.Random("several").sample(range(200), 3)):
        with contextlib.ExitStack() as stack:
            for cut in SHORT_CUTS:
                stack.enter_context(cut.off())
            plain = report_of("several", str(which))
        assert plain and report_as_it_is("several", str(which)) == plain, which


def test_the_rule_for_one_lane(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each time that accesses are compared: what the short cuts say of all lanes, and the rule for each of them."""
    compare, said = CellCheck._compare, Counter[str]()

    def both(self: CellCheck, access: Any, before: Any, floors: Any) -> None:
        racing = [k for k in np.flatnonzero(before).tolist() if not self._happened_before(access, before, k)]
        short = {
            "older": race_cells._older(before, *floors),
            "warps": self._known_by_warps(before, access.acting),
        }
        said.update(name for name, ordered in short.items() if ordered and before.any())
        assert not (racing and any(short.values()))
        assert self._unordered(access, before).tolist() == racing
        said["racing" if racing else "ordered"] += 1
        compare(self, access, before, floors)

    monkeypatch.setattr(CellCheck, "_compare", both)
    for kind, which in drawn_cases("rule", 7, 4):
        report_of(kind, which)
    assert min(said[name] for name in ("older", "warps", "racing", "ordered")) > 10, said


def test_cells_written_in_some_blocks() -> None:
    """What is kept of sets of blocks, against a look at their cells."""
    draw, blocks, cells, said = random.Random("written"), 5, 12, Counter[bool]()
    memory = np.ones(blocks * cells, np.int16)
    written, rows = WrittenCells(memory, cells, blocks), memory.reshape(blocks, cells)
    for _ in range(3000):
        start = draw.randrange(cells)
        where = slice(start, draw.randrange(start, cells) + 1)
        if draw.random() < 0.3:
            rows[draw.randrange(blocks), where] = 0
            written.writes += 1
        elif draw.random() < 0.02:
            rows[draw.randrange(blocks), where] = 7
            written.forget()
        chosen = draw.randrange(1, 1 << blocks)
        plain = not rows[[row for row in range(blocks) if chosen >> row & 1], where].any()
        assert not written.known(chosen, where.start, where.stop) or plain
        assert written.has(chosen, where.start, where.stop) == plain
        said[plain] += 1
    assert min(said.values()) > 300, said
