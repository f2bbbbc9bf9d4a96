"""``clusterlaunchcontrol``: a running block takes over the work of a cluster that has not begun (PTX ISA,
"clusterlaunchcontrol.try_cancel", "query_cancel"; CUTLASS: include/cutlass/gemm/kernel/sm100_tile_scheduler.hpp).

The answer to a request are 16 bytes in shared memory, which count at an mbarrier. Their meaning is the hardware's; here
they are the coordinates of the cluster's first block, and whether it was cancelled.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tilewright.atoms.mbarrier_state import Touch
from tilewright.ir.core import Op
from tilewright.ir.effects import Access
from tilewright.ir.instruction import Emitter, Instruction, Lanes, need
from tilewright.ir.types import I32, MemSpace, PtrType, element_of

AGENT = "tma"
BYTES = 16
SHARED = (MemSpace.SMEM,)


class Declined:
    """The blocks that have read that a request was declined: they must not request again."""

    def __init__(self) -> None:
        self.blocks: set[int] = set()


def _check_response(op: Op) -> None:
    kind = op.operands[0].type
    fits = isinstance(kind, PtrType) and kind.space is MemSpace.SMEM and kind.align % BYTES == 0
    need(op, fits, f"{op.attrs['atom'].name}: the answer are 16 bytes of shared memory, aligned to 16, not {kind}")


@dataclass(frozen=True)
class TryCancel(Instruction):
    """``clusterlaunchcontrol.try_cancel``: ask that a cluster which has not begun be cancelled. Operands: where the
    answer is written, and the mbarrier at which its 16 bytes count. Each thread that is here asks.

    ``multicast``: to these places in all blocks of the cluster.
    """

    multicast: bool = True

    name = "clusterlaunchcontrol.try_cancel"
    min_arch = 100
    cancels: ClassVar[bool] = True
    accesses = (
        Access("write", "destination", SHARED, 0, align=BYTES, lanes=1, agent=AGENT, proxy="async"),
        Access("update", "mbarrier", SHARED, 1, align=8, lanes=1, agent=AGENT, order="release", scope="cluster"),
    )

    def verify(self, op: Op) -> None:
        _check_response(op)
        kind = op.operands[1].type
        fits = isinstance(kind, PtrType) and kind.space is MemSpace.SMEM and kind.align % 8 == 0
        need(op, fits, f"{self.name}: an mbarrier is an Int64 in shared memory, not {kind}")

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        response, mbarrier = operands
        own, declined = lanes.places(response), lanes.beside(Declined)
        ranks = range(int(lanes.sreg("cluster_nctarank")[0])) if self.multicast else (None,)
        every = [
            (lanes.places(response, rank), lanes.places(mbarrier, rank))
            for rank in (None if r is None else np.full(32 * lanes.warps, r) for r in ranks)
        ]
        for lane in map(int, np.flatnonzero(lanes.active())):
            if int(own[lane]) >> 32 in declined.blocks:
                chosen = np.arange(32 * lanes.warps) == lane
                raise lanes.fault(
                    f"{self.name} after the answer that no cluster is left to cancel: a further request is undefined",
                    chosen,
                    "end the loop over tiles when clc_response says that its tile is not valid",
                )
            where = [(int(places[lane]), int(mbarriers[lane])) for places, mbarriers in every]
            lanes.eventually(_Answer(lanes, where), lane=lane, size=BYTES)
        return ()

    def emit(self, out: Emitter, op: Op) -> None:
        cast = ".multicast::cluster::all" if self.multicast else ""
        text = f"{self.name}.async.shared::cta.mbarrier::complete_tx::bytes{cast}.b128 [%0], [%1];"
        addresses = ", ".join(f'"r"({out.shared_address(value)})' for value in op.operands)
        out.line(f'asm volatile("{text}" :: {addresses} : "memory");')


class _Answer:
    """The moment at which the answer to a request arrives; ``where``: (place, mbarrier) in each block."""

    def __init__(self, lanes: Lanes, where: list[tuple[int, int]]) -> None:
        self.lanes, self.where = lanes, where

    def __call__(self) -> None:
        first = self.lanes.cancel_cluster()
        words = np.array([0, 0, 0, 0] if first is None else [*first, 1], np.int32)
        for place, mbarrier in self.where:
            self.lanes.shared_bytes(place, BYTES, True)[...] = words.view(np.uint8)
            Touch.at(self.lanes, np.array([mbarrier]), TryCancel.name).exists().complete(np.array([BYTES]))


@dataclass(frozen=True)
class QueryCancel(Instruction):
    """``clusterlaunchcontrol.query_cancel``: what an answer says. Operand: its place; results (i32): the coordinates of
    the cancelled cluster's first block, and 1, or four zeros. What the thread does to shared memory is fenced for the
    unit that writes the next answer."""

    name = "clusterlaunchcontrol.query_cancel"
    min_arch = 100
    accesses = (Access("read", "response", SHARED, 0, bits=8 * BYTES),)

    def verify(self, op: Op) -> None:
        _check_response(op)
        need(op, element_of(op.operands[0].type) == I32, f"{self.name}: takes a pointer to Int32")

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        (response,) = operands
        response_words = lanes.load(response, 4)
        none = lanes.active() & (response_words[:, 3] == 0)
        if none.any():
            lanes.beside(Declined).blocks |= {int(place) >> 32 for place in lanes.places(response)[none]}
        return tuple(response_words[:, i] for i in range(4))

    def emit(self, out: Emitter, op: Op) -> None:
        names = [out.declare(value) for value in op.results]
        for name in names:
            out.line(f"{name} = 0;")
        text = (
            "{ .reg .pred p; .reg .b128 r; ld.shared.b128 r, [%4]; "
            f"{self.name}.is_canceled.pred.b128 p, r; selp.u32 %3, 1, 0, p; "
            f"@p {self.name}.get_first_ctaid.v4.b32.b128 {{%0, %1, %2, _}}, r; fence.proxy.async.shared::cta; }}"
        )
        results = ", ".join(f'"+r"({name})' for name in names)
        out.line(f'asm volatile("{text}" : {results} : "r"({out.shared_address(op.operands[0])}) : "memory");')
