"""Clusters: the barrier of all threads of a cluster, and the shared memory of its other blocks (PTX ISA,
"barrier.cluster", "mapa", "st.async"; sm_90).

A block's shared memory is reached from another block of its cluster through a *mapped* pointer, whose memory space is
``dsmem``. Every block must have begun before its memory is touched, and must not end while another block still does:
that is what the cluster's barrier is for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tilewright.atoms.mbarrier import BYTES, MAP_RANK
from tilewright.atoms.mbarrier_state import Touch
from tilewright.ir.computed import computed_once
from tilewright.ir.core import Op
from tilewright.ir.effects import Access, Ordering
from tilewright.ir.instruction import Emitter, Instruction, Lanes, need
from tilewright.ir.types import I32, MemSpace, PtrType, ScalarType


@dataclass(frozen=True)
class ClusterArrive(Instruction):
    """``barrier.cluster.arrive``: this thread has come so far; it goes on. No operands.

    ``relaxed``: without ordering memory (what was written before is not yet seen by those who wait). ``aligned``: all
    threads of the warp execute it together.
    """

    relaxed: bool = False
    aligned: bool = True
    name: ClassVar[str] = "barrier.cluster.arrive"
    min_arch: int = 90

    accesses = ()

    @computed_once
    def orders(self) -> tuple[Ordering, ...]:
        return () if self.relaxed else (Ordering("cluster", release=True, through="cluster barrier"),)

    def mnemonic(self) -> str:
        return f"{self.name}.{'relaxed' if self.relaxed else 'release'}{'.aligned' if self.aligned else ''}"

    def verify(self, op: Op) -> None:
        need(op, not op.operands and not op.results, "cluster_arrive takes no operands")

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        lanes.cluster_arrive(self.aligned)
        return ()

    def emit(self, out: Emitter, op: Op) -> None:
        out.line(f'asm volatile("{self.mnemonic()};" ::: "memory");')  # the clobber keeps the compiler's order, too


@dataclass(frozen=True)
class ClusterWait(Instruction):
    """``barrier.cluster.wait``: wait until every thread of the cluster that has not ended has arrived."""

    aligned: bool = True
    name: ClassVar[str] = "barrier.cluster.wait"
    blocking: ClassVar[bool] = True
    min_arch: int = 90
    accesses = ()
    orders = (Ordering("cluster", acquire=True, through="cluster barrier"),)

    def mnemonic(self) -> str:
        return f"{self.name}.acquire{'.aligned' if self.aligned else ''}"

    def verify(self, op: Op) -> None:
        need(op, not op.operands and not op.results, "cluster_wait takes no operands")

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        lanes.cluster_wait(self.aligned)
        return ()

    def emit(self, out: Emitter, op: Op) -> None:
        out.line(f'asm volatile("{self.mnemonic()};" ::: "memory");')


_MAP_POINTER = """template <class T> __device__ __forceinline__ T* map_shared_pointer(T* pointer, uint32_t rank) {
  T* mapped;
  asm("mapa.u64 %0, %1, %2;" : "=l"(mapped) : "l"(pointer), "r"(rank));
  return mapped;
}
"""


@dataclass(frozen=True)
class Mapa(Instruction):
    """``mapa``: the pointer to the same place in the shared memory of the block ``rank`` of the cluster.

    Operands (pointer into shared memory, rank: i32); the result points into ``dsmem``.
    """

    name: ClassVar[str] = "mapa"
    pure: ClassVar[bool] = True
    quiet: ClassVar[bool] = True
    min_arch: int = 90
    accesses = ()

    def verify(self, op: Op) -> None:
        need(op, len(op.operands) == 2 and op.operands[1].type == I32, "mapa takes (pointer, rank: i32)")
        kind = op.operands[0].type
        need(
            op,
            isinstance(kind, PtrType) and kind.space is MemSpace.SMEM,
            f"mapa maps a pointer into the block's own shared memory, not {kind}",
        )
        assert isinstance(kind, PtrType)
        required = PtrType(kind.elem, MemSpace.DSMEM, kind.align)
        need(op, [r.type for r in op.results] == [required], f"mapa gives {required}")

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        return (lanes.mapped(operands[0], operands[1]),)

    def emit(self, out: Emitter, op: Op) -> None:
        out.helper("map_shared_pointer", _MAP_POINTER)
        pointer, rank = (out.value(v) for v in op.operands)
        out.line(f"{out.declare(op.result)} = map_shared_pointer({pointer}, {rank});")


_CLUSTER_ADDRESS = """__device__ __forceinline__ uint32_t cluster_address(const void* pointer) {
  uint64_t address;
  asm("cvta.to.shared::cluster.u64 %0, %1;" : "=l"(address) : "l"(pointer));
  return uint32_t(address);
}
"""
_ASYNC_SUFFIX = {
    ("int", 32): "b32",
    ("uint", 32): "b32",
    ("float", 32): "b32",
    ("int", 64): "b64",
    ("uint", 64): "b64",
    ("float", 64): "b64",
}


@dataclass(frozen=True)
class StoreAsync(Instruction):
    """``st.async``: store a number of 4 or 8 bytes in another block's shared memory; when it is there, its bytes count
    at an mbarrier of that block.

    Operands (pointer, mbarrier, value, rank: i32): both pointers are of the own block, and mean the same places in the
    block ``rank``. Or (pointer, mbarrier, value): both are pointers of :class:`Mapa`. Only in launches with clusters of
    several blocks; in others a GPU stops at it.
    """

    name: ClassVar[str] = "st.async"
    min_arch: int = 90
    accesses = (
        Access("write", "destination", (MemSpace.SMEM, MemSpace.DSMEM), 0, align=4, agent="st.async", proxy="async"),
        Access("update", "mbarrier", (MemSpace.SMEM, MemSpace.DSMEM), 1, bits=64, agent="st.async", proxy="async"),
    )

    def verify(self, op: Op) -> None:
        need(
            op,
            [v.type for v in op.operands[3:]] in ([I32], []) and len(op.operands) >= 3 and not op.results,
            "st.async takes (pointer, mbarrier, value), and a rank: i32 if the pointers are those of the own block",
        )
        pointer, barrier, value = op.operands[:3]
        space = MemSpace.SMEM if len(op.operands) == 4 else MemSpace.DSMEM
        named = "a pointer of the own block and a rank" if space is MemSpace.SMEM else "a mapped pointer"
        for what, kind in (("it stores", pointer.type), ("its mbarrier is", barrier.type)):
            need(
                op,
                isinstance(kind, PtrType) and kind.space is space,
                f"st.async: {what} in shared memory, named by {named}, not by {kind}",
            )
        assert isinstance(pointer.type, PtrType) and isinstance(barrier.type, PtrType)
        kind = value.type
        need(
            op,
            isinstance(kind, ScalarType) and (kind.kind, kind.width) in _ASYNC_SUFFIX and kind == pointer.type.elem,
            f"st.async stores one number of 32 or 64 bits of the pointer's type, not {kind}",
        )
        assert isinstance(kind, ScalarType)
        need(op, pointer.type.align % kind.bytes == 0, f"st.async: {pointer.type} is not aligned to {kind.bytes} bytes")
        need(op, barrier.type.align % BYTES == 0, f"st.async: the mbarrier {barrier.type} is not aligned to 8 bytes")

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        pointer, barrier, value, *ranks = operands
        rank = ranks[0] if ranks else None
        if int(np.max(lanes.sreg("cluster_nctarank"))) == 1:
            raise lanes.fault(
                f"{self.name} in a launch without clusters, where a GPU has an illegal instruction",
                lanes.active(),
                "launch with cluster=(x, y, z) of two blocks or more, or store and arrive at the block's own mbarrier",
            )
        target = pointer if rank is None else lanes.mapped(pointer, rank)
        values = lanes.spread(value).copy()[:, None]
        size = values.dtype.itemsize

        def land() -> None:
            touch = Touch(lanes, barrier, rank, self.name).exists()
            lanes.store(target, values)
            touch.complete(touch.values(size))

        lanes.eventually(land)
        return ()

    def emit(self, out: Emitter, op: Op) -> None:
        pointer, barrier, value, *ranks = op.operands
        kind = value.type
        assert isinstance(kind, ScalarType)
        bits = _ASYNC_SUFFIX[kind.kind, kind.width]
        unsigned = "uint32_t" if kind.bytes == 4 else "uint64_t"
        register = "r" if kind.bytes == 4 else "l"
        if ranks:
            out.helper("map_shared_rank", MAP_RANK)
        else:
            out.helper("cluster_address", _CLUSTER_ADDRESS)
        name = out.helper(
            f"store_async_{bits}",
            f"__device__ __forceinline__ void store_async_{bits}(uint32_t to, uint32_t barrier, {unsigned} value) {{\n"
            f'  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.{bits} [%0], %1, [%2];"\n'
            f'               :: "r"(to), "{register}"(value), "r"(barrier) : "memory");\n'
            "}\n",
        )
        text = out.value(value)
        if kind.is_float:
            text = f"__float_as_uint({text})" if kind.bytes == 4 else f"__double_as_longlong({text})"
        if ranks:
            to, where = (f"map_shared_rank({out.shared_address(p)}, {out.value(ranks[0])})" for p in (pointer, barrier))
        else:
            to, where = (f"cluster_address({out.value(p)})" for p in (pointer, barrier))
        out.line(f"{name}({to}, {where}, {text});")
