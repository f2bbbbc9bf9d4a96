"""The changes to a synchronisation operation: it is left out, or made weaker, in the ways that programmers do.

Each function takes a ``call`` and gives pairs of a description and the ops that take its place. The classes of
instructions that synchronise are known by name here and nowhere else; ``synchronises`` is what a kernel's ops are
filtered with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from tilewright.atoms.atomic import Atomic, OrderedLoad, OrderedStore
from tilewright.atoms.bulk import BulkCommit, BulkWait
from tilewright.atoms.cluster import ClusterArrive, ClusterWait
from tilewright.atoms.cp_async import CpAsyncCommit, CpAsyncWait
from tilewright.atoms.mbarrier import (
    CpAsyncMbarrierArrive,
    FenceMbarrierInit,
    MbarrierArrive,
    MbarrierExpectTx,
    MbarrierInit,
    MbarrierInval,
    MbarrierTest,
    MbarrierWait,
)
from tilewright.atoms.sync import BarrierArrive, BarrierSync, Fence, FenceProxy, SyncThreads, SyncWarp
from tilewright.atoms.tcgen05_sync import Tcgen05Commit, Tcgen05Fence
from tilewright.atoms.tensor_memory_alloc import TmemDealloc
from tilewright.atoms.tensor_memory_move import TmemWait
from tilewright.atoms.wgmma_sync import WgmmaCommit, WgmmaFence, WgmmaWait
from tilewright.ir.core import Constant, Op, Value
from tilewright.ir.types import I32

Change = tuple[str, list[Op]]
Operator = Callable[[Op, Any], Iterator[Change]]
OPERATORS: dict[type, Operator] = {}
REMOVED = "removed"


def changes(op: Op) -> list[Change]:
    """All that can be done to ``op``; nothing if it does not synchronise."""
    if op.opcode != "call":
        return []
    atom = op.attrs["atom"]
    operator = OPERATORS.get(type(atom))
    return [] if operator is None else list(operator(op, atom))


def _on(*kinds: type) -> Callable[[Operator], Operator]:
    def register(operator: Operator) -> Operator:
        for kind in kinds:
            OPERATORS[kind] = operator
        return operator

    return register


# -- making ops --------------------------------------------------------------------------------------------------------


def _with_atom(op: Op, atom: Any, operands: list[Value] | None = None) -> Op:
    changed = Op(
        "call", op.operands if operands is None else operands, op.results, {**op.attrs, "atom": atom}, [], op.loc
    )
    return changed


def _moved(op: Op, position: int, opcode: str, by: int) -> list[Op]:
    """``op`` with an operand changed by a constant: ``add``, ``sub`` or ``xor``."""
    old = op.operands[position]
    amount = Constant(I32, by)
    operands = list(op.operands)
    if isinstance(old, Constant):
        value = int(old.value)
        operands[position] = Constant(I32, {"add": value + by, "sub": value - by, "xor": value ^ by}[opcode])
        return [_with_atom(op, op.attrs["atom"], operands)]
    fresh = Value(I32)
    change = Op(opcode, [old, amount], [fresh], {}, [], op.loc)
    fresh.op = change
    operands[position] = fresh
    return [change, _with_atom(op, op.attrs["atom"], operands)]


def _always(op: Op) -> list[Op]:
    """An op that gives ``true`` in place of a test."""
    return [Op("eq", [Constant(I32, 0), Constant(I32, 0)], op.results, {}, [], op.loc)]


# -- barriers and fences -----------------------------------------------------------------------------------------------


@_on(
    SyncThreads,
    SyncWarp,
    FenceMbarrierInit,
    CpAsyncCommit,
    BulkCommit,
    WgmmaCommit,
    WgmmaFence,
    ClusterWait,
    MbarrierInval,
    TmemWait,
    TmemDealloc,
    Tcgen05Fence,
)
def _remove(op: Op, atom: Any) -> Iterator[Change]:
    yield REMOVED, []


@_on(BarrierSync)
def _barrier(op: Op, atom: BarrierSync) -> Iterator[Change]:
    yield REMOVED, []
    yield "arrives without waiting", [_with_atom(op, BarrierArrive(atom.aligned))]
    yield "counts 32 threads more", _moved(op, 1, "add", 32)


@_on(BarrierArrive)
def _barrier_arrive(op: Op, atom: BarrierArrive) -> Iterator[Change]:
    yield REMOVED, []
    yield "counts 32 threads more", _moved(op, 1, "add", 32)


@_on(ClusterArrive)
def _cluster_arrive(op: Op, atom: ClusterArrive) -> Iterator[Change]:
    yield REMOVED, []
    if not atom.relaxed:
        yield "relaxed", [_with_atom(op, replace(atom, relaxed=True))]


@_on(Fence)
def _fence(op: Op, atom: Fence) -> Iterator[Change]:
    yield REMOVED, []
    if atom.scope != "cta":
        yield "scope cta", [_with_atom(op, replace(atom, scope="cta"))]


@_on(FenceProxy)
def _fence_proxy(op: Op, atom: FenceProxy) -> Iterator[Change]:
    yield REMOVED, []
    if atom.kind == "async" and atom.space.startswith("shared"):
        yield "for global memory", [_with_atom(op, replace(atom, space="global"))]


# -- mbarriers ---------------------------------------------------------------------------------------------------------


@_on(MbarrierInit)
def _init(op: Op, atom: MbarrierInit) -> Iterator[Change]:
    yield REMOVED, []
    yield "one arrival more", _moved(op, 1, "add", 1)
    count = op.operands[1]
    if not isinstance(count, Constant) or int(count.value) > 1:
        yield "one arrival fewer", _moved(op, 1, "sub", 1)


@_on(MbarrierArrive)
def _arrive(op: Op, atom: MbarrierArrive) -> Iterator[Change]:
    yield REMOVED, []
    yield "arrives twice", [_with_atom(op, replace(atom, arrivals=atom.arrivals + 1))]
    if atom.remote:
        yield "at the block's own mbarrier", [_with_atom(op, replace(atom, remote=False), op.operands[:-1])]


@_on(MbarrierExpectTx)
def _expect(op: Op, atom: MbarrierExpectTx) -> Iterator[Change]:
    yield REMOVED, []
    yield "16 bytes more", _moved(op, 1, "add", 16)
    yield "16 bytes fewer", _moved(op, 1, "sub", 16)
    if atom.arrive:
        yield "expects without arriving", [_with_atom(op, replace(atom, arrive=False))]
        plain = MbarrierArrive(remote=atom.remote)
        yield "arrives without expecting", [_with_atom(op, plain, [op.operands[0], *op.operands[2:]])]


@_on(MbarrierWait)
def _wait(op: Op, atom: MbarrierWait) -> Iterator[Change]:
    yield REMOVED, []
    yield "waits for the other parity", _moved(op, 1, "xor", 1)


@_on(MbarrierTest)
def _test(op: Op, atom: MbarrierTest) -> Iterator[Change]:
    yield "always true", _always(op)
    yield "tests the other parity", _moved(op, 1, "xor", 1)


@_on(CpAsyncMbarrierArrive)
def _copies_arrive(op: Op, atom: CpAsyncMbarrierArrive) -> Iterator[Change]:
    yield REMOVED, []
    yield "at once, not after the copies", [_with_atom(op, MbarrierArrive())]


@_on(Tcgen05Commit)
def _commit(op: Op, atom: Tcgen05Commit) -> Iterator[Change]:
    yield REMOVED, []
    if not atom.remote:
        yield "at once, not behind the MMAs", [_with_atom(op, MbarrierArrive())]


# -- groups ------------------------------------------------------------------------------------------------------------


@_on(CpAsyncWait, WgmmaWait)
def _wait_group(op: Op, atom: CpAsyncWait | WgmmaWait) -> Iterator[Change]:
    yield REMOVED, []
    # wgmma.wait_group takes 0 to 7.
    if not (isinstance(atom, WgmmaWait) and atom.pending == 7):
        yield "leaves one group more", [_with_atom(op, replace(atom, pending=atom.pending + 1))]


@_on(BulkWait)
def _bulk_wait(op: Op, atom: BulkWait) -> Iterator[Change]:
    yield REMOVED, []
    yield "leaves one group more", [_with_atom(op, replace(atom, pending=atom.pending + 1))]
    if not atom.read:
        yield "waits for the reads only", [_with_atom(op, replace(atom, read=True))]


# -- memory orders -----------------------------------------------------------------------------------------------------

WEAKER = {"acq_rel": ("acquire", "release", "relaxed"), "acquire": ("relaxed",), "release": ("relaxed",)}


@_on(Atomic, OrderedLoad, OrderedStore)
def _ordered(op: Op, atom: Atomic | OrderedLoad | OrderedStore) -> Iterator[Change]:
    silent = isinstance(atom, Atomic) and not op.results and atom.kind not in ("exch", "cas")
    for sem in WEAKER.get(atom.sem, ()):
        if not (silent and sem == "acquire"):  # red has no acquire
            yield f"{sem}, not {atom.sem}", [_with_atom(op, replace(atom, sem=sem))]
    if atom.scope != "cta":
        yield "scope cta", [_with_atom(op, replace(atom, scope="cta"))]
