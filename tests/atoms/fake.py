"""A minimal stand-in for the simulator: enough of Lanes to execute one instruction, and builders of call ops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilewright.atoms.copy import move_each
from tilewright.errors import SimulationError
from tilewright.ir.core import Op, Value
from tilewright.ir.types import FragType, MemSpace, PtrType, ScalarType
from tilewright.layout import Layout, cosize


class Memory:
    """One array of elements; a pointer is (memory, element index for each lane)."""

    def __init__(self, values: np.ndarray[Any, Any]) -> None:
        self.values = values.reshape(-1)


class FakeLanes:
    def __init__(self, warps: int, mask: np.ndarray[Any, Any] | None = None) -> None:
        self.warps, self.mask = warps, mask
        self.deferred: list[Callable[[], None]] = []
        self.groups: list[list[Callable[[], None]]] = []

    def lane(self) -> np.ndarray[Any, Any]:
        return np.arange(32 * self.warps) % 32

    def active(self) -> np.ndarray[Any, Any]:
        return np.ones(32 * self.warps, bool) if self.mask is None else self.mask

    def spread(self, value: Any) -> np.ndarray[Any, Any]:
        return np.broadcast_to(value, (32 * self.warps,))

    def load(self, pointer: Any, count: int, mask: Any = None) -> np.ndarray[Any, Any]:
        memory, index = pointer
        mask = self.active() if mask is None else mask
        out = np.zeros((32 * self.warps, count), dtype=memory.values.dtype)
        out[mask] = memory.values[index[mask, None] + np.arange(count)]
        return out

    def load_each(self, pointers: Any, count: int, mask: Any = None) -> list[np.ndarray[Any, Any]]:
        return [self.load(pointer, count, mask) for pointer in pointers]

    def store(self, pointer: Any, values: np.ndarray[Any, Any], mask: Any = None) -> None:
        memory, index = pointer
        mask = self.active() if mask is None else mask
        memory.values[index[mask, None] + np.arange(values.shape[1])] = values[mask]

    def move(self, *repetitions: Any) -> None:
        move_each(self, *repetitions)

    def defer(self, agent: str, effect: Callable[[], None]) -> None:
        assert agent == "cp.async"
        self.deferred.append(effect)

    def fault(self, text: str, lanes: Any = None, fix: str = "") -> Exception:
        return SimulationError(f"{text}: {fix}")

    def commit(self, agent: str) -> None:
        self.groups.append(self.deferred)
        self.deferred = []

    def wait(self, agent: str, pending: int) -> None:
        while len(self.groups) > pending:
            for effect in self.groups.pop(0):
                effect()


def call(atom: Any, types: list[Any], **attrs: Any) -> Op:
    return Op("call", [Value(t) for t in types], [], {"atom": atom, **attrs}, [], None)


def compact(shape: Any) -> Layout:
    return Layout(shape)


def mma_call(
    atom: Any, m: int, n: int, k: int, d: Layout | None = None, a: Layout | None = None, b: Layout | None = None
) -> Op:
    """A call of ``atom`` with m x n x k rest modes on compact fragments."""
    d = d or Layout((atom.layout_c[1].shape, m, n))
    a = a or Layout((atom.layout_a[1].shape, m, k))
    b = b or Layout((atom.layout_b[1].shape, n, k))
    types = [FragType(t, cosize(x)) for t, x in ((atom.type_d, d), (atom.type_a, a), (atom.type_b, b))]
    return call(atom, types, d_layout=d, a_layout=a, b_layout=b, d_offset=0, a_offset=0, b_offset=0)


def pointer_type(elem: ScalarType, space: MemSpace = MemSpace.SMEM, align: int = 16) -> PtrType:
    return PtrType(elem, space, align)


class FakeEmitter:
    """Collects the lines and helpers that an instruction prints."""

    def __init__(self, names: dict[Value, str], arch: int = 90) -> None:
        self.names, self.arch = names, arch
        self.lines: list[str] = []
        self.helpers: dict[str, str] = {}
        self.depth = 0
        self.used: dict[str, int] = {}

    def value(self, value: Value) -> str:
        return self.names[value]

    def declare(self, value: Value) -> str:
        return self.names[value]

    def line(self, text: str) -> None:
        self.lines.append("  " * self.depth + text)

    def helper(self, name: str, source: str) -> str:
        self.helpers[name] = source
        return name

    def block(self, head: str = "") -> Any:
        import contextlib

        @contextlib.contextmanager
        def inside() -> Any:
            self.line(f"{head} {{".strip())
            self.depth += 1
            yield
            self.depth -= 1
            self.line("}")

        return inside()

    def name(self, hint: str) -> str:
        self.used[hint] = self.used.get(hint, -1) + 1
        return hint if not self.used[hint] else f"{hint}{self.used[hint]}"

    def register(self, fragment: Value, offset: int | str, bits: int = 32) -> str:
        return f"reinterpret_cast<uint{bits}_t&>({self.names[fragment]}[{offset}])"

    def shared_address(self, pointer: Value | str) -> str:
        text = pointer if isinstance(pointer, str) else self.names[pointer]
        return f"static_cast<uint32_t>(__cvta_generic_to_shared({text}))"


def emit(op: Op, names: list[str], arch: int = 90) -> FakeEmitter:
    out = FakeEmitter(dict(zip(op.operands, names, strict=True)), arch)
    op.attrs["atom"].emit(out, op)
    return out
