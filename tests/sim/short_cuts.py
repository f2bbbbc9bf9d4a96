"""The short cuts of the simulator itself, each with the plain rule that may stand in its place.

As ``tests/check/short_cuts.py`` has those of the checks: a short cut changes no result and no count of a profile.
``test_short_cuts.py`` compares both with and without it, ``bench/short_cuts.py --simulator`` measures what it gains.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any
from unittest import mock

import numpy as np

from tests.check.short_cuts import ShortCut, no, nothing
from tilewright.gemm.host import handle
from tilewright.sim import direct_copies, forwarding, fusion, lowering, matrix_form, moves
from tilewright.sim.direct_copies import DirectCopies
from tilewright.sim.events import Observer
from tilewright.sim.forwarding import Fragment
from tilewright.sim.fusion import MatrixRun, Place
from tilewright.sim.group import Group
from tilewright.sim.memory import Buffer
from tilewright.sim.offsets import Offsets
from tilewright.sim.profiling import LaunchProfiler, WavefrontCounter, wavefronts
from tilewright.sim.thread_products import ThreadProducts

_items, _arranged, _rows = Offsets.items, Offsets.arranged, Offsets.rows
_range: Any = Offsets.range


def found_again(offsets: Offsets) -> Any:
    offsets._range = None
    return _range.fget(offsets)


def items_again(offsets: Offsets, *rest: Any) -> Any:
    offsets._items.clear()
    return _items(offsets, *rest)


def arranged_again(offsets: Offsets, *rest: Any) -> Any:
    offsets._arranged.clear()
    return _arranged(offsets, *rest)


def in_bytes(group: Group, index: Any, size: int) -> Offsets:
    return Offsets(index.astype(np.int64) * size)


def alone(chain: list[Place]) -> list[MatrixRun]:
    """Each product as a run of its own."""

    def fuses(op: Any) -> bool:
        if op.opcode != "call" or len(op.operands) != 3:
            return False
        return op.attrs["atom"].multiplies and not op.attrs["atom"].agents

    return [MatrixRun(place) for place in chain if place.at >= 0 and fuses(place.op)]


def nodes_alone(nodes: list[Any]) -> list[list[Place]]:
    return [[Place(node, at, op) for at, op in enumerate(node.ops)] for node in nodes]


SHORT_CUTS = [
    ShortCut("registers that a stretch stored", lowering, ("forward",), nothing),
    ShortCut("views in place of loads", Fragment, ("view_loads",), nothing),
    ShortCut("fragments made by their first use", Fragment, ("make_at_first_use",), nothing),
    ShortCut("vectors as pieces", forwarding, ("use_columns",), nothing),
    ShortCut("predicates that hold in all lanes", forwarding, ("_shorten_predicates",), nothing),
    ShortCut(
        "registers in the order of matrices",
        lowering,
        ("use_matrices",),
        lambda *_: matrix_form.MatrixForms({}, {}, {}),
    ),
    ShortCut("products of a stretch as one", fusion, ("_runs",), alone),
    ShortCut("products behind a wait with those before it", fusion, ("_chains",), nodes_alone),
    ShortCut("multiply-adds as one product a warp", ThreadProducts, ("step", "finish"), nothing),
    ShortCut("copies by distances from one pointer", lowering, ("is_direct",), no),
    ShortCut("pointers that are not made", DirectCopies, ("drop_pointers",), nothing),
    ShortCut("repetitions of cp.async at once", lowering, ("is_async_copy",), no),
    ShortCut("arithmetic of a loop on values from outside", lowering, ("invariant_ops",), lambda function: set()),
    # From here on they are taken when a kernel runs.
    ShortCut("copies by the plan of an earlier execution", [moves, direct_copies], ("move_by_plan",), no),
    ShortCut("accesses proved to be inside by their pointers", Buffer, ("_quick",), nothing),
    ShortCut("the range of offsets found once", Offsets, ("range",), property(found_again)),
    ShortCut("the items of offsets found once", Offsets, ("items",), items_again),
    ShortCut("arranged items found once", Offsets, ("arranged",), arranged_again),
    ShortCut("accesses of whole warps as rows", Offsets, ("rows",), nothing),
    ShortCut("offsets of an index made once", Group, ("in_bytes",), in_bytes),
    ShortCut("patterns of banks counted once", WavefrontCounter, ("count",), lambda _, *access: wavefronts(*access)),
    ShortCut("loads reported together", LaunchProfiler, ("pointed_together",), Observer.pointed_together),
    ShortCut("loads of a stretch counted at the last", LaunchProfiler, ("loaded",), Observer.loaded),
    ShortCut("registers released when a group ends", Group, ("retire",), nothing),
]


def is_lowered(cut: ShortCut) -> bool:
    """Whether it is taken when a kernel is lowered, not when it runs."""
    return SHORT_CUTS.index(cut) < [row.name for row in SHORT_CUTS].index("copies by the plan of an earlier execution")


@contextlib.contextmanager
def without(cut: Any, compiled: dict[Any, Any]) -> Iterator[None]:
    """Without a short cut, inside the block; kernels of the library are those of ``compiled``."""
    with cut.off(), mock.patch.object(handle, "_COMPILED", compiled):
        yield


def owners(cut: ShortCut) -> list[Any]:
    return cut.owner if isinstance(cut.owner, list) else [cut.owner]
