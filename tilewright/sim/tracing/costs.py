"""The model behind the times of a trace, in cycles of one multiprocessor.

It is a model, not a measurement: it shows what overlaps with what, and what waits for what. A warp executes its
instructions in program order and each takes the cycles given here; the tensor cores of a quarter of the multiprocessor
and the multiprocessor's TMA unit do one thing after another; an asynchronous effect ends after its latency and its
bytes. Caches, the clock, contention for L2 and memory, and warps that share an issue slot are not modelled. Numbers are
those of an H100 as far as it is documented or commonly measured, rounded. Those of ``tcgen05`` and of tensor memory are
estimates from published peak rates: none has been measured.
"""

from __future__ import annotations

from typing import Any

from tilewright.atoms.cp_async import AGENT as CP_ASYNC
from tilewright.atoms.tensor_memory import LOAD, MMA, STORE
from tilewright.atoms.tensor_memory_cp import SmemToTmem
from tilewright.atoms.tma import AGENT as TMA
from tilewright.atoms.tma_engine import READS, WRITES
from tilewright.atoms.wgmma_flow import AGENT as WGMMA
from tilewright.ir.core import Op
from tilewright.ir.types import FragType, VecType

__all__ = ["CP_ASYNC", "READS", "TCGEN05", "TMA", "WGMMA", "WRITES"]
STORES = (READS, WRITES)
TCGEN05 = MMA
TENSOR_MEMORY = (LOAD, STORE)
ISSUE = 1.0
"""An instruction of a warp; one on a vector or fragment, for each element."""
SHARED_LATENCY = 30.0
"""From a load of shared memory to its value; each further wavefront takes a cycle."""
GLOBAL_LATENCY = 500.0
"""From a load of global memory, or an atomic, to its value."""
GLOBAL_BYTES = 64.0
"""Bytes a cycle between a multiprocessor and L2."""
TMA_ISSUE = 20.0
"""The thread that issues a TMA copy."""
TMA_LATENCY = 600.0
"""From the moment at which the unit takes up a copy until its first bytes are there."""
WGMMA_ISSUE = 4.0
WGMMA_COLUMNS = 2.0
"""Columns of N a cycle: an instruction on 64 rows and 32 bytes of K takes N / 2 cycles (m64n256k16: 128)."""
TCGEN05_ISSUE = 4.0
TCGEN05_COLUMNS = 2.0
"""Columns of N a cycle: an instruction on 128 rows and 32 bytes of K takes N / 2 cycles (4,096 products of fp16)."""
TCGEN05_COPY_BYTES = 128.0
"""Bytes a cycle that ``tcgen05.cp`` brings to tensor memory."""
TENSOR_MEMORY_LATENCY = 30.0
"""From ``tcgen05.ld`` to its registers, beside a cycle for each register."""
MMA_BITS = 256 * 16
"""``mma.sync``: products a cycle of a quarter of the multiprocessor, times the bits of an element."""
BARRIER_LATENCY = 20.0
"""From the last arrival to the first instruction behind the wait."""
CLUSTER_LATENCY = 180.0
"""An arrival at a barrier of another block of the cluster."""

FREE = frozenset(
    (
        "smem.alloc",
        "frag.alloc",
        "sreg",
        "bitcast",
        "vec.build",
        "vec.concat",
        "vec.extract",
        "vec.splat",
        "vec.shuffle",
        "ptr_add",
        "printf",
        "assert",
        "frag.load",
        "frag.store",
    )
)
"""Ops without cost: the compiler only names registers for them, or folds them into addresses."""


def cycles(op: Op) -> float:
    """The cycles that a warp spends on ``op``, without the memory accesses, which are counted where they happen."""
    if op.opcode in FREE:
        return 0.0
    if op.opcode != "call":
        kind = op.results[0].type if op.results else None
        return ISSUE * (kind.n if isinstance(kind, VecType | FragType) else 1)
    atom, count = op.attrs["atom"], op.attrs["atom"].count(op)
    agent = agent_of(op)
    if agent == WGMMA:
        return WGMMA_ISSUE * count
    if agent == TCGEN05:
        return TCGEN05_ISSUE * count
    if agent in TENSOR_MEMORY:
        return ISSUE * count
    if agent in (TMA, *STORES):
        return TMA_ISSUE * count
    if on_tensor_cores(atom):  # FMA units take the cycle of an issue
        m, n, k = atom.shape_mnk
        return float(count * max(ISSUE, m * n * k * atom.type_a.width / MMA_BITS))
    return ISSUE * count


def on_tensor_cores(atom: Any) -> bool:
    """Whether an instruction multiplies matrices."""
    return hasattr(atom, "shape_mnk") and atom.shape_mnk[0] > 1


def agent_of(op: Op) -> str:
    """The asynchronous agent that carries out what ``op`` begins, or ""."""
    if op.opcode != "call":
        return ""
    return next((access.agent for access in op.attrs["atom"].accesses if access.agent), "")


def wgmma_cycles(op: Op) -> float:
    """How long the tensor cores are busy with all instructions of ``op``."""
    atom = op.attrs["atom"]
    return float(atom.count(op) * atom.shape_mnk[1] / WGMMA_COLUMNS)


def tcgen05_cycles(op: Op) -> float:
    """How long the tensor core of a multiprocessor is busy with all instructions of ``op``: products, or copies to
    tensor memory. Of a pair each block has half of the rows, so that the time is that of one."""
    atom = op.attrs["atom"]
    if atom.name == "tcgen05.cp":
        copy = SmemToTmem(atom.shape)
        return atom.count(op) * copy.rows * copy.row_bytes / TCGEN05_COPY_BYTES
    # Of descriptors that the program makes, N is known at run time only: it counts as the largest.
    n = atom.shape_mnk[1] if on_tensor_cores(atom) else 256
    return float(atom.count(op) * n / TCGEN05_COLUMNS)


def tensor_memory_cycles(op: Op) -> float:
    """From the issue of a load or store of tensor memory by a warp until it is done."""
    return TENSOR_MEMORY_LATENCY + sum(len(chosen) for chosen in op.attrs["registers"])


def stored_bytes(op: Op) -> int:
    """Bytes of all bulk copies of ``op`` from shared to global memory, for each thread that issues it."""
    atom = op.attrs["atom"]
    return int(atom.count(op) * (op.attrs["bytes"] if "bytes" in op.attrs else atom.bits // 8))


def transfer_cycles(size: int) -> float:
    """Cycles that the TMA unit is busy with a copy of this many bytes."""
    return size / GLOBAL_BYTES
