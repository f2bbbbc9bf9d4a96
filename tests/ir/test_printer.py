"""The text form: every construct as it is written, names, literals, attributes and places."""

from __future__ import annotations

from tilewright.atoms.sync import SyncThreads
from tilewright.ir.builder import Builder
from tilewright.ir.core import Block, Constant, Function, Location, Value, print_function
from tilewright.ir.types import BOOL, F32, I32, MemSpace, PtrType


def test_every_construct() -> None:
    p, n, c = Value(PtrType(F32, MemSpace.GMEM, 4), "p"), Value(I32, "n"), Value(BOOL, "c")
    b = Builder(Block([p, n, c]))
    body = Block([Value(I32, "i"), Value(F32, "sum")])
    with b.inside(body):
        x = b.load(b.ptr_add(p, body.args[0]))
        b.emit("yield", (b.binary("add", body.args[1], x),))
    loop = b.emit(
        "for", (Constant(I32, 0), n, Constant(I32, 1), Constant(F32, 0.0)), (F32,), {"unroll": 4}, [body], hint="sum"
    )
    sides = [Block(), Block()]
    for side, value in zip(sides, (loop.result, Constant(F32, -1.5)), strict=True):
        with b.inside(side):
            b.emit("yield", (value,))
    branch = b.emit("if", (c,), (F32,), {}, sides)
    before, after = Block([Value(F32, "x")]), Block([Value(F32, "x")])
    with b.inside(before):
        b.emit("condition", (Constant(BOOL, True), before.args[0]))
    with b.inside(after):
        b.emit("yield", (after.args[0],))
    b.emit("while", (branch.result,), (F32,), {}, [before, after])
    fragment = b.frag_alloc(F32, 8, "acc")
    b.frag_load(fragment, (0, 1, 2, 5, 6))
    b.emit("printf", (n,), (), {"format": "{}\n"})
    b.emit("call", (), (), {"atom": SyncThreads()})
    alone = [Block(), Block()]
    for side in alone:
        with b.inside(side):
            b.emit("yield")
    b.emit("if", (c,), (), {}, alone)
    attrs = {"smem_bytes": 64, "source": "hidden.py", "cluster": None}
    text = print_function(Function("k", "kernel", b.block, attrs))
    assert (
        text
        == """\
kernel @k(%p: ptr<f32, gmem, align 4>, %n: i32, %c: i1) {smem_bytes = 64} {
  %sum = for %i = 0:i32 to %n step 1:i32 unroll 4 carry (%sum_1 = 0.0:f32) -> f32 {
    %2 = ptr.add %p, %i : ptr<f32, gmem, align 4>
    %3 = load %2 : f32
    %4 = add %sum_1, %3 : f32
    yield %4
  }
  %5 = if %c -> f32 {
    yield %sum
  } else {
    yield -1.5:f32
  }
  %6 = while (%x = %5) -> f32 {
    condition true:i1, %x
  } do (%x_7) {
    yield %x_7
  }
  %acc = frag.alloc : frag<f32, 8>
  %8 = frag.load %acc {offsets=[0..2, 5, 6]} : vec<f32, 5>
  printf %n {format='{}\\n'}
  bar.sync.all
  if %c {
    yield
  }
}
"""
    )


def test_names_of_users_are_made_fit_and_kept_apart() -> None:
    b = Builder(Block([Value(I32, "a.b[0]"), Value(I32, "n"), Value(I32, "n"), Value(I32)]))
    assert "(%a_b_0_: i32, %n: i32, %n_1: i32, %2: i32)" in str(Function("k", "kernel", b.block))


def test_printer_shows_source_locations_on_request() -> None:
    b = Builder(Block([Value(BOOL, "c")]))
    b.loc = Location("user.py", 12)
    b.sreg("tid.x")
    sides = [Block(), Block()]
    for side in sides:
        with b.inside(side):
            b.emit("yield")
    b.emit("if", (b.block.args[0],), (), {}, sides)
    function = Function("k", "kernel", b.block)
    assert "//" not in str(function)
    assert print_function(function, locations=True).splitlines()[1:4] == [
        "  %tid_x = sreg {name='tid.x'} : i32  // user.py:12",
        "  if %c {  // user.py:12",
        "    yield  // user.py:12",
    ]


def test_printer_omits_an_empty_else() -> None:
    for ops, results, printed in ((0, 0, False), (1, 0, True), (2, 0, True), (0, 1, True)):
        flag, n = Value(BOOL, "c"), Value(I32, "n")
        builder = Builder(Block([flag, n]))
        sides = [Block(), Block()]
        for side in sides:
            with builder.inside(side):
                for _ in range(ops if side is sides[1] else 0):
                    builder.emit("printf", (n,), (), {"format": "{}"})
                builder.emit("yield", (n,) * results)
        builder.emit("if", (flag,), (I32,) * results, {}, sides)
        assert ("else" in print_function(Function("k", "kernel", builder.block))) == printed
