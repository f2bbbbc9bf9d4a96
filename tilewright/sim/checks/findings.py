"""Findings: what a checker has to say, once for each pair of places, with a count; and their text."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.ir.core import Location, Op
from tilewright.ir.types import PtrType
from tilewright.sim.checks.sites import origin
from tilewright.sim.messages import place

if TYPE_CHECKING:
    from tilewright.sim.engine import Launch

MOST = 12  # findings that a report writes out


@dataclass
class Party:
    """One of the two sides of a finding: what it did (``"writes"``), where, and who."""

    does: str
    op: Op | None
    who: str

    def text(self) -> str:
        return f"{self.does} by {self.who}, {place(self.op) or 'at an unknown place'}"

    @property
    def location(self) -> Location | None:
        return self.op.loc if self.op is not None else None


@dataclass
class Finding:
    """``rule``: its name, such as ``data-race``. ``what``: one line; ``memory``: which bytes; ``why``: what ordered the
    parties or failed to; ``fix``: the likely repair; ``count``: how often."""

    rule: str
    what: str
    parties: list[Party]
    memory: str = ""
    why: str = ""
    fix: str = ""
    count: int = 1

    def text(self) -> str:
        lines = [self.what, *[party.text() for party in self.parties]]
        lines += [f"{name}: {text}" for name, text in (("memory", self.memory), ("why", self.why)) if text]
        if self.count > 1:
            lines.append(f"{self.count} times at these lines")
        if self.fix:
            lines.append(f"to fix: {self.fix}")
        return "\n    ".join(lines)


@dataclass
class Findings:
    """Those of a launch, by rule and places."""

    found: dict[Any, Finding] = field(default_factory=dict)

    def known(self, key: Any, count: int) -> bool:
        """Whether the pair of places has been reported; then only counts."""
        if key in self.found:
            self.found[key].count += count
            return True
        return False

    def add(self, key: Any, finding: Finding) -> None:
        self.found[key] = finding

    def report(self, name: str) -> str:
        """The text of all; empty when there are none."""
        if not self.found:
            return ""
        listed = list(self.found.values())
        rest = len(listed) - MOST
        texts = [f"{f.rule}: {f.text()}" for f in listed[:MOST]]
        if rest > 0:
            texts.append(f"and {rest} more pairs of places")
        count = f"{len(listed)} finding{'s' if len(listed) > 1 else ''}"
        return f"checks of kernel {name!r}: {count}\n  " + "\n  ".join(texts)


def who(launch: Launch, block: Any, warp: int, lane: int | None, agent: str = "") -> str:
    """A thread in words; ``block``: its coordinates."""
    where = f"block {tuple(int(v) for v in block)}, warp {warp}"
    if lane is not None:
        where += f", lane {lane}"
        where += f" (thread {tuple(int(v) for v in launch.geometry.thread_of(warp, lane))})"
    return f"{agent} for {where}" if agent else where


def shared_memory(op: Op | None, offset: int, size: int, allocations: list[Op]) -> str:
    """The place in shared memory: the allocation that it lies in, the element, the bytes."""
    for alloc in allocations:
        start, length = int(alloc.attrs["offset"]), int(alloc.attrs["bytes"])
        kind = alloc.result.type
        if start <= offset < start + length and isinstance(kind, PtrType):
            name = alloc.result.hint or "shared memory"
            line = f" (allocated {place(alloc)})" if alloc.loc is not None else ""
            element = (offset - start) // kind.elem.bytes
            return f"element {element} of {name}{line}: {size} bytes at shared-memory offset {offset}"
    return f"{size} bytes at shared-memory offset {offset}"


def global_memory(op: Op | None, buffer: Any, offset: int, size: int) -> str:
    """The place in global memory: the tensor's name, the coordinate in the caller's array, the bytes."""
    name = ""
    for value in op.operands if op is not None else ():
        if isinstance(value.type, PtrType):
            name = origin(value).hint or name
    at = offset - buffer.low
    coordinate = _coordinate(buffer.owner, at)
    where = f"{name or 'an array'}{coordinate or f' at byte {at}'}"
    return f"{where}: {size} bytes at address {buffer.base + offset:#x}"


def _coordinate(owner: Any, at: int) -> str:
    """The index of the element at byte ``at`` of an array, as ``[i, j]``."""
    if not isinstance(owner, np.ndarray) or not owner.ndim or any(s <= 0 for s in owner.strides):
        return ""
    found = [0] * owner.ndim
    for mode in sorted(range(owner.ndim), key=lambda k: -owner.strides[k]):
        found[mode], at = divmod(at, owner.strides[mode])
        if found[mode] >= owner.shape[mode]:
            return ""
    return f"[{', '.join(map(str, found))}]"
