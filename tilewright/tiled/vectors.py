"""``autovec_copy``: the universal copy, as wide as contiguity and alignment prove."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tilewright.atoms.universal import UniversalCopy
from tilewright.errors import ConstraintError
from tilewright.ir.builder import Builder
from tilewright.ir.core import Value
from tilewright.lang.tensors.access import WIDEST, SplitOffset, element_count, places, runs
from tilewright.lang.tensors.algebra import make_rmem_tensor
from tilewright.lang.tensors.pointer import Pointer, element_bytes, is_packed
from tilewright.lang.tensors.tensor import Tensor
from tilewright.layout import make_layout
from tilewright.tiled.provenance import remember_filled
from tilewright.tiled.sides import as_elements, check_types, in_registers


def autovec_copy(src: Tensor, dst: Tensor, *, l1c_evict_priority: Any = None, loc: Any = None, ip: Any = None) -> None:
    """Copy all elements; a side in memory is accessed with vectors of up to 16 bytes where its layout allows.

    Registers may hold the elements in any order: only memory decides about the width. ``l1c_evict_priority`` is advice,
    which changes nothing here.

    >>> def through_registers(t, p):
    ...     source, target = cute.make_tensor(p + 4 * t, 4), cute.make_tensor(p + (16 + 4 * t), 4)
    ...     registers = cute.make_fragment_like(source)
    ...     cute.autovec_copy(source, registers)
    ...     cute.autovec_copy(registers, target)
    >>> per_thread(through_registers, 4, memory=[*range(16), *[0] * 16])[1][16:]
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]
    """
    check_types("autovec_copy", src, dst)
    if is_packed(src.element_type):
        return dst.store(src.load())
    count = element_count(src.linear, "autovec_copy")
    if count != element_count(dst.linear, "autovec_copy"):
        raise ConstraintError(
            f"autovec_copy: {src} and {dst} differ in size, {count} and {element_count(dst.linear, 'autovec_copy')} "
            "elements: give both the same partition or tile"
        )
    if in_registers(src) and in_registers(dst):
        vector = src.engine.load([o for _, o in places(src.linear, count)])
        vector = Builder.current().bitcast(vector, _vector_like(vector, dst))
        dst.engine.store(vector, [o for _, o in places(dst.linear, count)])
    elif in_registers(src):
        _move(src, dst, count, store=True)
    elif in_registers(dst):
        _move(dst, src, count, store=False)
        remember_filled(dst, src)
    else:
        staging = make_rmem_tensor(make_layout(src.linear.shape), src.element_type)
        _move(staging, src, count, store=False)
        _move(staging, dst, count, store=True)
    return None


def _vector_like(vector: Value, dst: Tensor) -> Any:
    from tilewright.ir.types import with_element

    return with_element(vector.type, dst.element_type.ir_type)


def _vectors(pointer: Pointer, where: Sequence[SplitOffset]) -> Iterator[tuple[Pointer, int, list[int]]]:
    """(pointer, static offset, positions) of each access: as wide as a run of elements and its alignment allow."""
    width = element_bytes(pointer.dtype)
    for run in runs(where):
        dynamic, start = where[run[0]]
        at = pointer + dynamic
        while run:
            n = max(1, WIDEST // width)
            while n > 1 and (n > len(run) or (at + start).alignment % (n * width)):
                n //= 2
            yield at, start, run[:n]
            start, run = start + n, run[n:]


def _move(registers: Tensor, memory: Tensor, count: int, store: bool) -> None:
    """One call for each vector width that occurs."""
    base = registers.engine.offset
    if not isinstance(base, int) or registers.engine.is_recast:
        if store:
            memory.store(registers.load())
        else:
            registers.store(memory.load())
        return
    fragment, width = registers.engine.frag, memory.element_type.ir_type.bytes
    numbers = [base + o for _, o in places(registers.linear, count)]
    calls: dict[int, tuple[list[Value], list[tuple[int, ...]]]] = {}
    for at, offset, members in _vectors(memory.engine, places(memory.linear, count)):
        pointers, chosen = calls.setdefault(len(members), ([], []))
        pointers.append(as_elements(at.value(offset), fragment))
        chosen.append(tuple(numbers[i] for i in members))
    for n, (pointers, chosen) in calls.items():
        Builder.current().call(
            UniversalCopy(8 * n * width), [fragment, *pointers], registers=tuple(chosen), store=store, predicated=False
        )
