"""Printing loads, stores and shared memory.

An access is as wide as the pointer's known alignment allows, up to 16 bytes.
"""

from __future__ import annotations

import math

from tilewright.cuda.emitter import KernelEmitter, prints
from tilewright.cuda.expressions import Expr
from tilewright.cuda.vectors import materialise
from tilewright.ir.core import Op, Value
from tilewright.ir.types import PtrType, VecType

WIDEST = 16


def access_bytes(pointer: PtrType, count: int) -> int:
    """Bytes of one access when ``count`` contiguous elements are moved.

    >>> from tilewright.ir.types import F16, MemSpace
    >>> access_bytes(PtrType(F16, MemSpace.GMEM, 16), 8), access_bytes(PtrType(F16, MemSpace.GMEM, 4), 8)
    (16, 4)
    """
    return math.gcd(pointer.align, count * pointer.elem.bytes, WIDEST)


@prints("load")
def _load(e: KernelEmitter, op: Op) -> None:
    pointer = op.operands[0]
    kind = pointer.type
    assert isinstance(kind, PtrType)
    if not e.used(op.result):
        return
    if isinstance(op.result.type, VecType):
        count = op.result.type.n
        name = e.name(op.result.hint or "v")
        e.line(
            f"{e.declaration(op.result.type, name)} = "
            f"tw::load<{count}, {access_bytes(kind, count)}>({e.expr(pointer).text});"
        )
        e.alias(op.result, name)
    # An element that is not aligned to its size is read in pieces.
    # As in ``_load``: in pieces.
    elif kind.align < kind.elem.bytes:
        e.assign_new(op.result, Expr(f"tw::load<1, {access_bytes(kind, 1)}>({e.expr(pointer).text})[0]"))
    else:
        e.assign_new(op.result, Expr(element(e, pointer)))


@prints("store")
def _store(e: KernelEmitter, op: Op) -> None:
    pointer, value = op.operands
    kind = pointer.type
    assert isinstance(kind, PtrType)
    if isinstance(value.type, VecType):
        text = materialise(e, value)
        e.line(f"tw::store<{access_bytes(kind, value.type.n)}>({e.expr(pointer).text}, {text});")
    elif kind.align < kind.elem.bytes:
        text = f"tw::splat<{kind.elem.cuda}, 1>({e.expr(value).text})"
        e.line(f"tw::store<{access_bytes(kind, 1)}>({e.expr(pointer).text}, {text});")
    else:
        e.line(f"{element(e, pointer)} = {e.expr(value).text};")


def element(e: KernelEmitter, pointer: Value) -> str:
    """The lvalue that ``pointer`` points to: ``base[index]`` where the pointer is a sum that is printed here."""
    if pointer in e.parts:
        base, index = e.parts[pointer]
        return f"{base.atom}[{index.text}]"
    return f"*{e.expr(pointer).atom}"


@prints("smem.alloc")
def _smem_alloc(e: KernelEmitter, op: Op) -> None:
    if not e.used(op.result):
        return
    kind = op.result.type
    assert isinstance(kind, PtrType)
    offset = op.attrs["offset"]
    name = e.name(op.result.hint or "shared")
    # Shared memory is one dynamic array: offsets are those that the builder assigned, on the simulator as well.
    start = f"smem + {offset}" if offset else "smem"
    e.line(f"{kind.elem.cuda}* {name} = reinterpret_cast<{kind.elem.cuda}*>({start});")
    e.alias(op.result, name)
