"""Kernels by hand: a small harness over ir.Builder for the simulator's tests."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tilewright.atoms.sync import BarrierArrive, BarrierSync, SyncThreads
from tilewright.ir import builder
from tilewright.ir.builder import Builder
from tilewright.ir.core import Block, Constant, Function, Location, Value
from tilewright.ir.runtime import DevicePointer, LaunchConfig
from tilewright.ir.types import I32, MemSpace, PtrType, ScalarType, Type
from tilewright.ir.verify import verify
from tilewright.sim.machine import machine


def c(value: int | float | bool, type_: ScalarType = I32) -> Constant:
    return Constant(type_, value)


def gptr(elem: ScalarType, align: int | None = None) -> PtrType:
    return PtrType(elem, MemSpace.GMEM, align or elem.bytes)


class Kernel(Builder):
    """A builder of one kernel with shorthands; every op is located at the test's own line."""

    def __init__(self, *params: Type, name: str = "kernel", kind: str = "kernel", **attrs: Any) -> None:
        super().__init__(Block([Value(t, f"p{i}") for i, t in enumerate(params)]))
        self.function = Function(name, kind, self.block, attrs)
        self.args = self.block.args

    def emit(self, *args: Any, **kwargs: Any) -> Any:
        frame = sys._getframe(1)
        while frame.f_code.co_filename in (__file__, builder.__file__, contextlib.__file__):
            frame = frame.f_back
        self.loc = Location(frame.f_code.co_filename, frame.f_lineno)
        return super().emit(*args, **kwargs)

    def add(self, a: Value, b: Value | int) -> Value:
        return self.binary("add", a, c(b, a.type) if isinstance(b, int) else b)

    def mul(self, a: Value, b: Value | int) -> Value:
        return self.binary("mul", a, c(b, a.type) if isinstance(b, int) else b)

    def tid(self) -> Value:
        return self.sreg("tid.x")

    def at(self, pointer: Value, index: Value | int) -> Value:
        return self.ptr_add(pointer, index)

    def global_id(self) -> Value:
        return self.add(self.mul(self.sreg("ctaid.x"), self.sreg("ntid.x")), self.tid())

    @contextlib.contextmanager
    def if_(self, cond: Value) -> Iterator[None]:
        then, other = Block(), Block()
        with self.inside(then):
            yield
            self.emit("yield")
        with self.inside(other):
            self.emit("yield")
        self.emit("if", (cond,), (), {}, (then, other))

    def choose(self, cond: Value, then: Any, other: Any, types: Sequence[Type]) -> list[Value]:
        """An if with results; ``then`` and ``other`` are callables that give the yielded values."""
        blocks = []
        for side in (then, other):
            block = Block()
            with self.inside(block):
                self.emit("yield", side())
            blocks.append(block)
        return self.emit("if", (cond,), tuple(types), {}, tuple(blocks)).results

    def loop(self, lo: Any, hi: Any, body: Any, init: Sequence[Value] = (), step: Any = 1) -> list[Value]:
        """``body(i, *carried)`` gives the next carried values."""
        lo, hi, step = (c(v) if isinstance(v, int) else v for v in (lo, hi, step))
        block = Block([Value(I32, "i"), *(Value(v.type) for v in init)])
        with self.inside(block):
            self.emit("yield", body(*block.args) or ())
        return self.emit("for", (lo, hi, step, *init), tuple(v.type for v in init), {"unroll": None}, (block,)).results

    def while_(self, init: Sequence[Value], before: Any, after: Any) -> list[Value]:
        """``before(*carried)`` gives ``(cond, *values)``; ``after(*values)`` gives the next carried values."""
        types = tuple(v.type for v in init)
        first, second = Block([Value(t) for t in types]), Block([Value(t) for t in types])
        with self.inside(first):
            self.emit("condition", before(*first.args))
        with self.inside(second):
            self.emit("yield", after(*second.args) or ())
        return self.emit("while", tuple(init), types, {}, (first, second)).results

    def sync(self) -> None:
        self.call(SyncThreads(), ())

    def bar_sync(self, barrier: Any, count: Any) -> None:
        self.call(BarrierSync(), [c(v) if isinstance(v, int) else v for v in (barrier, count)])

    def bar_arrive(self, barrier: Any, count: Any) -> None:
        self.call(BarrierArrive(), [c(v) if isinstance(v, int) else v for v in (barrier, count)])

    def run(self, *args: Any, grid: Any = 1, block: Any = 32, **config: Any) -> None:
        verify(self.function)
        launch(self.function, *args, grid=grid, block=block, **config)


def launch(function: Function, *args: Any, grid: Any = 1, block: Any = 32, **config: Any) -> None:
    values = [pointer(a) if isinstance(a, np.ndarray) else a for a in args]
    machine().load(function)(LaunchConfig(_three(grid), _three(block), **config), values)


def pointer(array: np.ndarray) -> DevicePointer:
    start = array.__array_interface__["data"][0]
    return DevicePointer(start, "cpu", start, start + array.nbytes, array)


def _three(size: Any) -> tuple[int, int, int]:
    size = (size,) if isinstance(size, int) else tuple(size)
    return (*size, 1, 1)[:3]
