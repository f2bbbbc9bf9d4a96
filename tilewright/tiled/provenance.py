"""The origins of a kernel's partitions and fragments, remembered while staging: for errors that name the whole tensor.

A partition is an ordinary tensor; which tensor it was cut from is kept here, with the kernel's builder. Nothing depends
on it but what errors say and which errors there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from tilewright.ir.builder import Builder
from tilewright.ir.core import Value
from tilewright.lang.tensors.pointer import Pointer
from tilewright.lang.tensors.registers import Registers
from tilewright.layout import Layout, is_static, rank, size


@dataclass(frozen=True)
class Partition:
    """``by`` cut the layout ``whole`` (under ``swizzle``); ``operand`` is S or D of a copy, A, B or C of an MMA."""

    by: Any
    operand: str
    whole: Any
    swizzle: Any
    part: Layout


class _Known:
    def __init__(self) -> None:
        self.partitions: dict[Value, list[Partition]] = {}
        self.fragments: dict[Value, tuple[Any, str, Layout]] = {}


_OF_BUILDER: WeakKeyDictionary[Builder, _Known] = WeakKeyDictionary()


def _known() -> _Known | None:
    return _OF_BUILDER.setdefault(Builder.current(), _Known()) if Builder.active() else None


def remember_partition(part: Any, by: Any, operand: str, whole: Any) -> Any:
    """``part``, after noting that it is a thread's share of the tensor ``whole``."""
    remembered = _known()
    pointer = getattr(part, "engine", None)
    if remembered is not None and isinstance(pointer, Pointer) and isinstance(pointer.base, Value):
        origin = Partition(by, operand, whole.linear, pointer.swizzle, part.linear)
        remembered.partitions.setdefault(pointer.base, []).append(origin)
    return part


def partition_of(tensor: Any, by: Any = None) -> Partition | None:
    """The tensor from which ``tensor``, a partition (``by`` this copy) or a slice of one that keeps its first mode, was
    cut."""
    remembered = _known()
    base = getattr(getattr(tensor, "engine", None), "base", None)
    while remembered is not None and isinstance(base, Value):
        for origin in reversed(remembered.partitions.get(base, [])):
            if (by is None or origin.by._key() == by._key()) and _same_first_mode(origin.part, tensor.linear):
                return origin
        base = base.op.operands[0] if base.op is not None and base.op.opcode.startswith("ptr") else None
    return None


def _same_first_mode(a: Any, b: Any) -> bool:
    """Whether two layouts have one first mode: by its text where run-time strides do not compare."""
    a, b = _first(a), _first(b)
    return bool(a == b) if is_static(a) and is_static(b) else str(a) == str(b)


def _first(layout: Any) -> Any:
    return layout[0] if isinstance(layout.shape, tuple) else layout


def remember_fragment(fragment: Any, mma: Any, operand: str) -> Any:
    """``fragment``, after noting that its registers hold ``operand`` of ``mma`` in its layout."""
    remembered = _known()
    if remembered is not None and not fragment.engine.is_recast:
        remembered.fragments[fragment.engine.frag] = (mma, operand, fragment.linear)
    return fragment


def remember_filled(fragment: Any, source: Any) -> None:
    """Note of a fragment that was filled from an MMA's partition, element by element, what it holds since."""
    origin = partition_of(source)
    if origin is None or origin.operand not in "ABC" or rank(fragment.linear) != rank(origin.part):
        return
    if fragment.engine.count == size(fragment.linear):
        remember_fragment(fragment, origin.by, origin.operand)


def fragment_of(registers: Registers) -> tuple[Any, str, Layout] | None:
    """The tiled MMA, its operand and the layout that the registers were made for, or last filled from."""
    remembered = _known()
    return remembered.fragments.get(registers.frag) if remembered is not None else None
