"""Dead code: what no effect depends on goes, with what is carried for it; what has an effect stays."""

from __future__ import annotations

import pytest

from tilewright.atoms.sync import SyncThreads
from tilewright.ir.builder import Builder
from tilewright.ir.core import Block, Constant, Function, Op, Value
from tilewright.ir.passes.dce import eliminate_dead_code
from tilewright.ir.types import BOOL, F32, I32, MemSpace, PtrType
from tilewright.ir.verify import verify


class Kernel(Builder):
    """A builder over a float pointer ``p``, an index ``n`` and a flag ``c``."""

    def __init__(self) -> None:
        self.p, self.n, self.c = Value(PtrType(F32, MemSpace.GMEM, 4), "p"), Value(I32, "n"), Value(BOOL, "c")
        super().__init__(Block([self.p, self.n, self.c]))

    def loop(self, *init: Value) -> tuple[Op, Block]:
        body = Block([Value(I32), *(Value(v.type) for v in init)])
        zero, one = Constant(I32, 0), Constant(I32, 1)
        return self.emit("for", (zero, self.n, one, *init), [v.type for v in init], {}, [body]), body

    def left(self) -> list[str]:
        """The opcodes that are left, in program order, without what ends a region."""
        function = Function("kernel", "kernel", self.block)
        verify(function)
        eliminate_dead_code(function)
        verify(function)
        return [op.opcode for op in function.walk() if op.opcode not in ("yield", "condition")]


ZERO = Constant(F32, 0.0)


def test_unused_values_go_and_effects_stay_with_all_they_need() -> None:
    k = Kernel()
    k.unary("exp", k.load(k.p))  # dead, the load with it
    k.sreg("tid.x")
    dead = k.frag_alloc(F32, 4)
    k.frag_load(dead, (0,), scalar=True)
    k.store(k.ptr_add(k.p, k.n), k.unary("neg", k.load(k.p)))
    k.emit("call", (), (), {"atom": SyncThreads()})
    k.emit("printf", (k.n,), (), {"format": "{}"})
    assert k.left() == ["ptr.add", "load", "neg", "store", "call", "printf"]


def test_registers_that_are_only_written_keep_their_writes() -> None:
    """A store into a fragment is an effect: the pass does not follow registers."""
    k = Kernel()
    k.frag_store(k.frag_alloc(F32, 4), ZERO, (0,))
    assert k.left() == ["frag.alloc", "frag.store"]


def test_a_carried_value_that_feeds_only_itself_is_not_carried() -> None:
    k = Kernel()
    loop, body = k.loop(ZERO, ZERO)
    with k.inside(body):
        dead = k.binary("add", body.args[1], body.args[1])
        live = k.binary("mul", body.args[2], Constant(F32, 3.0))
        k.emit("yield", (dead, live))
    k.store(k.p, loop.results[1])
    kept = loop.results[1]
    assert k.left() == ["for", "mul", "store"]
    assert loop.results == [kept] and len(loop.operands) == 4 and len(body.args) == 2
    assert len(body.ops[-1].operands) == 1


def test_a_value_that_is_read_inside_the_loop_only_is_carried_on() -> None:
    k = Kernel()
    loop, body = k.loop(ZERO)
    with k.inside(body):
        k.store(k.p, body.args[1])
        k.emit("yield", (k.unary("neg", body.args[1]),))
    assert k.left() == ["for", "store", "neg"]
    assert len(loop.results) == 1


def test_the_bounds_of_a_loop_that_stays_stay() -> None:
    k = Kernel()
    body = Block([Value(I32)])
    with k.inside(body):
        k.store(k.p, ZERO)
        k.emit("yield")
    k.emit("for", (Constant(I32, 0), k.binary("mul", k.n, k.n), Constant(I32, 1)), (), {}, [body])
    assert k.left() == ["mul", "for", "store"]


def test_loops_and_branches_without_effect_go() -> None:
    k = Kernel()
    _, body = k.loop(ZERO)
    with k.inside(body):
        k.emit("yield", (k.unary("neg", body.args[1]),))
    sides = [Block(), Block()]
    for side in sides:
        with k.inside(side):
            k.emit("yield", (k.load(k.p),))
    k.emit("if", (k.c,), (F32,), {}, sides)
    assert k.left() == []


def test_a_branch_keeps_the_results_that_are_read() -> None:
    k = Kernel()
    sides = [Block(), Block()]
    for side in sides:
        with k.inside(side):
            k.emit("yield", (k.unary("neg", k.load(k.p)), k.unary("exp", k.load(k.p))))
    branch = k.emit("if", (k.c,), (F32, F32), {}, sides)
    k.store(k.p, branch.results[1])
    assert k.left() == ["if", "load", "exp", "load", "exp", "store"]
    assert len(branch.results) == 1 and [len(side.ops[-1].operands) for side in sides] == [1, 1]


def test_an_effect_deep_inside_keeps_what_is_around_it() -> None:
    k = Kernel()
    _, body = k.loop()
    with k.inside(body):
        sides = [Block(), Block()]
        with k.inside(sides[0]):
            k.store(k.p, ZERO)
            k.emit("yield")
        with k.inside(sides[1]):
            k.emit("yield")
        flag = k.compare("lt", body.args[0], k.n)
        k.emit("if", (flag,), (), {}, sides)
        k.emit("yield")
    assert k.left() == ["for", "lt", "if", "store"]


@pytest.mark.parametrize("effect", (True, False))
@pytest.mark.parametrize("read", ("before", "after", "result", ""))
def test_a_while_loop_carries_what_is_read(effect: bool, read: str) -> None:
    """Of two carried values, one may be read, in a region or behind the loop; the other feeds itself only."""
    k = Kernel()
    before, after = (Block([Value(F32), Value(F32)]) for _ in range(2))
    with k.inside(before):
        if read == "before":
            k.store(k.p, before.args[1])
        k.emit("condition", (k.c, *before.args))
    with k.inside(after):
        if effect or read == "after":
            k.store(k.p, after.args[1] if read == "after" else ZERO)
        k.emit("yield", (k.unary("neg", after.args[0]), k.unary("abs", after.args[1])))
    loop = k.emit("while", (ZERO, ZERO), (F32, F32), {}, [before, after])
    if read == "result":
        k.store(k.p, loop.results[1])
    left = k.left()
    if not effect and not read:
        assert not left
        return
    assert "neg" not in left and ("abs" in left) == bool(read)
    carried = (
        loop.operands,
        loop.results,
        before.args,
        after.args,
        after.ops[-1].operands,
        before.ops[-1].operands[1:],
    )
    assert [len(x) for x in carried] == [1 if read else 0] * 6


@pytest.mark.parametrize("reads", (True, False))
def test_a_loop_that_waits_for_memory_stays(reads: bool) -> None:
    k = Kernel()
    before, after = Block(), Block()
    with k.inside(before):
        flag = k.compare("lt", k.load(k.p), ZERO) if reads else k.c
        k.emit("condition", (flag,))
    with k.inside(after):
        k.emit("yield")
    k.emit("while", (), (), {}, [before, after])
    assert k.left() == (["while", "load", "lt"] if reads else [])
