"""Which values a function writes memory through: its parameters, as far as pointers can be followed to them."""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.ir.core import Function, Op, Value
from tilewright.ir.launch import LaunchOperands
from tilewright.ir.types import MemSpace, PtrType

SHARED_SPACES = (MemSpace.SMEM, MemSpace.DSMEM)
OF_BLOCKS = {*SHARED_SPACES, MemSpace.TMEM}


def writes(function: Function) -> Iterator[tuple[Value, Op]]:
    """(what a pointer was made from, the op that writes through it) for each write to global memory."""
    for op in function.walk():
        for pointer in _targets(op):
            if not (isinstance(pointer.type, PtrType) and pointer.type.space in SHARED_SPACES):
                yield origin(pointer), op


def written_by_host(host: Function) -> dict[int, Op]:
    """The parameters of a host function that it, or a kernel that it launches, writes through; each with such an op."""
    writers: dict[Value, Op] = {}
    for op in host.walk():
        if op.opcode == "launch":
            kernel: Function = op.attrs["kernel"]
            arguments = dict(zip(kernel.params, LaunchOperands.of(op).arguments, strict=True))
            for root, write in writes(kernel):
                if root in arguments:
                    writers.setdefault(origin(arguments[root]), write)
    for root, write in writes(host):
        writers.setdefault(root, write)
    return {i: writers[p] for i, p in enumerate(host.params) if p in writers}


def _targets(op: Op) -> list[Value]:
    if op.opcode == "store":
        return [op.operands[0]]
    if op.opcode != "call":
        return []
    accessed = op.attrs["atom"].accessed(op)
    return [
        v
        for v, access in accessed
        if access.writes
        and not OF_BLOCKS.issuperset(access.memories)
        and access.role != "mbarrier"
        and not (access.registers and not isinstance(v.type, PtrType))
    ]


def origin(pointer: Value) -> Value:
    """The value that a pointer, or a tensor map, was made from by moving and casting."""
    while True:
        op = pointer.op
        if op is None or op.opcode not in ("ptr.add", "ptr.cast", "tensormap"):
            return pointer
        pointer = op.operands[0]
