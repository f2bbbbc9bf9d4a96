"""Staging by hand: a builder, some run-time values, and the verifier at the end."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tilewright.ir.builder import Builder
from tilewright.ir.core import Block, Function, Value
from tilewright.ir.types import F16, F32, I32, MemSpace, PtrType
from tilewright.ir.verify import verify


class Stage:
    """The function being staged: its builder and run-time ``n`` (i32), ``x`` (f32), ``p`` (f16*, align 16)."""

    def __init__(self) -> None:
        self.n, self.x = Value(I32, "n"), Value(F32, "x")
        self.p = Value(PtrType(F16, MemSpace.GMEM, 16), "p")
        self.builder = Builder(Block([self.n, self.x, self.p]))

    @property
    def block(self) -> Block:
        return self.builder.block

    def opcodes(self) -> list[str]:
        return [op.opcode for op in self.block.ops]

    def count(self, opcode: str) -> int:
        return self.opcodes().count(opcode)

    def verify(self) -> None:
        verify(Function("staged", "kernel", self.block))


@pytest.fixture
def stage() -> Iterator[Stage]:
    made = Stage()
    with made.builder.activate():
        yield made
        made.verify()
