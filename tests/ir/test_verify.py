"""The verifier: for every check in it a malformed function that it alone refuses, and well-formed ones that pass."""

from __future__ import annotations

import ast
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tilewright.atoms.sync import SyncThreads
from tilewright.errors import StagingError, VerifyError
from tilewright.ir import ops
from tilewright.ir.arithmetic import DIVISIONS, TABLE
from tilewright.ir.core import Block, Constant, Function, Location, Op, Value
from tilewright.ir.types import BOOL, F16, F32, I32, I64, FragType, MemSpace, PtrType, ScalarType, Type, VecType
from tilewright.ir.verify import verify

GLOBAL, SHARED = PtrType(F32, MemSpace.GMEM, 4), PtrType(F32, MemSpace.SMEM, 4)
V4, V2, FRAG = VecType(F32, 4), VecType(F32, 2), FragType(F32, 4)
FLAGS = VecType(BOOL, 4)
ONE, ZERO = Constant(I32, 1), Constant(I32, 0)


def op(
    opcode: str,
    operands: Sequence[Value | Type] = (),
    results: Sequence[Type] = (),
    regions: Sequence[Block] = (),
    **attrs: Any,
) -> Op:
    """An op; a type among the operands stands for a value of it that the function is given."""
    values = [v if isinstance(v, Value) else Value(v, "given") for v in operands]
    made = Op(opcode, values, [], attrs, list(regions), Location("user.py", 7))
    made.results = [Value(t, None, made) for t in results]
    return made


def function(*ops: Op, kind: str = "kernel") -> Function:
    given = [v for o in ops for v in o.operands if v.op is None and v.hint == "given"]
    return Function("f", kind, Block(given, list(ops)))


def region(*operands: Value | Type, args: Sequence[Value] = (), end: str = "yield", before: Sequence[Op] = ()) -> Block:
    """A block that ends in ``yield`` or ``condition`` of its first arguments' like; types become constants."""
    values = [v if isinstance(v, Value) else Constant(v, 1) for v in operands]
    return Block(list(args), [*before, op(end, values)])


def loop(*bounds: Value | Type, body: Block | None = None, results: Sequence[Type] = (), **attrs: Any) -> Op:
    return op("for", bounds, results, [body or region(args=[Value(I32)])], **attrs)


def loops(before: Block, after: Block, operands: Sequence[Type] = (), results: Sequence[Type] = ()) -> Op:
    return op("while", operands, results, [before, after])


def condition(flag: Type = BOOL, *carried: Type, args: Sequence[Value] = ()) -> Block:
    return region(flag, *carried, args=args, end="condition")


KERNEL = Function("k", "kernel", Block([Value(GLOBAL)]))
SMEM = {"offset": 0, "bytes": 16, "align": 16}

WELL_FORMED: dict[str, Op] = {
    "add": op("add", (F32, F32), (F32,)),
    "lt of pointers": op("lt", (GLOBAL, GLOBAL), (BOOL,)),
    "lt of vectors": op("lt", (V4, V4), (FLAGS,)),
    "select": op("select", (BOOL, V4, V4), (V4,)),
    "select by element": op("select", (FLAGS, V4, V4), (V4,)),
    "cast": op("cast", (V4,), (VecType(F16, 4),)),
    "bitcast": op("bitcast", (VecType(F16, 2),), (F32,)),
    "vec.build": op("vec.build", (F32, F32), (V2,)),
    "vec.concat": op("vec.concat", (V2, F32, F32), (V4,)),
    "vec.splat": op("vec.splat", (F32,), (V4,)),
    "vec.extract": op("vec.extract", (V4,), (F32,), index=3),
    "vec.shuffle": op("vec.shuffle", (V4,), (V2,), indices=(3, 3)),
    "vec.reduce": op("vec.reduce", (V4, F32), (F32,), kind="add", groups=((0, 1),)),
    "ptr.add": op("ptr.add", (GLOBAL, I64), (PtrType(F32, MemSpace.GMEM, 16),)),
    "ptr.cast": op("ptr.cast", (GLOBAL,), (PtrType(F16, MemSpace.GMEM, 2),)),
    "ptr.toint": op("ptr.toint", (GLOBAL,), (I64,)),
    "ptr.fromint": op("ptr.fromint", (I64,), (GLOBAL,)),
    "load": op("load", (GLOBAL,), (V4,)),
    "store": op("store", (GLOBAL, F32)),
    "frag.alloc": op("frag.alloc", (), (FRAG,)),
    "frag.load": op("frag.load", (FRAG,), (V2,), offsets=(0, 3)),
    "frag.load at run time": op("frag.load", (FRAG, I32), (F32,), offsets=(9,)),
    "frag.store": op("frag.store", (FRAG, F32), offsets=(3,)),
    "smem.alloc": op("smem.alloc", (), (SHARED,), **SMEM),
    "the least of shared memory": op("smem.alloc", (), (SHARED,), offset=0, bytes=0, align=1),
    "the least of a fragment": op("frag.alloc", (), (FragType(F32, 1),)),
    "the first and the last element": op("vec.shuffle", (V4,), (V2,), indices=(0, 3)),
    "sreg": op("sreg", (), (I32,), name="tid.x"),
    "for once": loop(I32, I32, I32, unroll=1),
    "for": loop(I32, I32, I32, I32, body=region(I32, args=[Value(I32), Value(I32)]), results=(I32,), unroll="full"),
    "if": op("if", (BOOL,), (F32,), [region(F32), region(F32)]),
    "while": loops(condition(BOOL, F32, args=[Value(F32)]), region(F32, args=[Value(F32)]), (F32,), (F32,)),
    "printf": op("printf", (F32,), format="{}"),
    "assert": op("assert", (BOOL,), message="m"),
    "call": op("call", atom=SyncThreads()),
}

twice = Value(I32)
foreign = op("sreg", (), (I32,), name="tid.x")
later = op("neg", (F32,), (F32,))
inner = op("neg", (F32,), (F32,))

MALFORMED: dict[str, tuple[str, Op | list[Op]]] = {
    # every op
    "operands missing": ("1 operands given", op("add", (F32,), (F32,))),
    "operands too many": ("3 operands given", op("store", (GLOBAL, F32, F32))),
    "result missing": ("0 results given", op("add", (F32, F32))),
    "result of a store": ("1 results given", op("store", (GLOBAL, F32), (F32,))),
    "region missing": ("has 0 regions, not 1", op("for", (I32, I32, I32))),
    "attribute missing": ("needs the attributes name", op("sreg", (), (I32,))),
    "unknown op": ("'frobnicate' is an unknown op", op("frobnicate")),
    "use before definition": ("neg uses %_: f32 outside its scope", [op("neg", (later.result,), (F32,)), later]),
    "use of an inner value": (
        "outside its scope",
        [op("if", (BOOL,), (), [region(before=[inner]), region()]), op("neg", (inner.result,), (F32,))],
    ),
    "yield in the middle": ("yield must be the last op", [op("yield"), op("sreg", (), (I32,), name="tid.x")]),
    "defined twice": ("sreg defines %_: i32 again", [foreign, foreign]),
    "argument twice": ("a block defines %_: i32 again", [loop(I32, I32, I32, body=region(args=[twice, twice]))]),
    "launch in a kernel": ("only host functions launch", op("launch", (I32,) * 11, kernel=KERNEL)),
    # elementwise
    "mixed types": ("operands must have one type", op("add", (F32, I32), (F32,))),
    "sum of pointers": ("needs numbers", op("add", (GLOBAL, GLOBAL), (GLOBAL,))),
    "sine of an integer": ("is not defined on i32", op("sin", (I32,), (I32,))),
    "comparison that gives a number": ("gives i1", op("lt", (F32, F32), (F32,))),
    "sum of another type": ("gives f32", op("add", (F32, F32), (F16,))),
    "condition of pointers": ("the condition is i1", op("select", (PtrType(BOOL, MemSpace.GMEM, 1), F32, F32), (F32,))),
    "condition of another length": ("the condition is i1", op("select", (VecType(BOOL, 2), V4, V4), (V4,))),
    "select of two types": ("both sides and the result", op("select", (BOOL, F32, F16), (F32,))),
    "cast to another length": ("keeps the number of elements", op("cast", (V4,), (VecType(F16, 2),))),
    "bitcast to another width": ("keeps the total width", op("bitcast", (F32,), (F16,))),
    "select to another type": ("both sides and the result", op("select", (BOOL, F32, F32), (F16,))),
    "cast of a pointer": ("keeps the number of elements", op("cast", (GLOBAL,), (F32,))),
    "bitcast of a pointer": ("keeps the total width", op("bitcast", (GLOBAL,), (I64,))),
    "bitcast to a pointer": ("keeps the total width", op("bitcast", (I64,), (GLOBAL,))),
    # vectors
    "scalar built": ("gives a vector", op("vec.build", (F32,), (F32,))),
    "built of others": ("elements must have the vector's type", op("vec.build", (F32, F16), (V2,))),
    "built of too few": ("1 elements given for 2", op("vec.build", (F32,), (V2,))),
    "extract from a scalar": ("needs a vector", op("vec.extract", (F32,), (F32,), index=0)),
    "extract outside": ("is outside 4 elements", op("vec.extract", (V4,), (F32,), index=4)),
    "extract of another type": ("gives f32", op("vec.extract", (V4,), (F16,), index=0)),
    "reduce by what": ("a known kind", op("vec.reduce", (V4,), (F32,), kind="sub", groups=((0,),))),
    "reduce nothing": ("elements in every group", op("vec.reduce", (V4,), (F32,), kind="add", groups=((),))),
    "reduce from a vector": ("starts from an element", op("vec.reduce", (V4, V4), (F32,), kind="add", groups=((0,),))),
    "reduce outside": ("reaches outside", op("vec.reduce", (V4,), (F32,), kind="add", groups=((4,),))),
    "reduce to a scalar": ("gives vec<f32, 2>", op("vec.reduce", (V4,), (F32,), kind="add", groups=((0,), (1,)))),
    "extract before the first": ("is outside 4 elements", op("vec.extract", (V4,), (F32,), index=-1)),
    "reduce a scalar": ("needs a vector", op("vec.reduce", (F32,), (F32,), kind="add", groups=((0,),))),
    "reduce in no group": ("elements in every group", op("vec.reduce", (V4,), (F32,), kind="add", groups=())),
    "reduce before the first": ("reaches outside", op("vec.reduce", (V4,), (F32,), kind="add", groups=((-1,),))),
    # pointers and memory
    "offset of a number": ("needs a pointer and an index", op("ptr.add", (F32, I32), (F32,))),
    "offset by a float": ("the index is an integer", op("ptr.add", (GLOBAL, F32), (GLOBAL,))),
    "offset into shared memory": ("gives a pointer of the same kind", op("ptr.add", (GLOBAL, I32), (SHARED,))),
    "pointer from a number": ("takes and gives a pointer", op("ptr.cast", (I64,), (GLOBAL,))),
    "float from a pointer": ("needs pointer and integer", op("ptr.toint", (GLOBAL,), (F32,))),
    "load from a number": ("needs a pointer", op("load", (I64,), (F32,))),
    "load of another type": ("must agree in element type", op("load", (GLOBAL,), (F16,))),
    "empty fragment": ("a fragment of one register or more", op("frag.alloc", (), (FragType(F32, 0),))),
    "load from a vector": ("needs a fragment", op("frag.load", (V4,), (F32,), offsets=(0,))),
    "two registers as one": ("must agree", op("frag.load", (FRAG,), (F32,), offsets=(0, 1))),
    "float index": ("the index is an integer", op("frag.load", (FRAG, F32), (F32,), offsets=(0,))),
    "register outside": ("is outside 4 registers", op("frag.store", (FRAG, F32), offsets=(4,))),
    "shared memory as global": ("a pointer to shared memory", op("smem.alloc", (), (GLOBAL,), **SMEM)),
    "negative size": ("are sizes", op("smem.alloc", (), (SHARED,), **{**SMEM, "bytes": -1})),
    "misaligned place": ("multiple of the alignment", op("smem.alloc", (), (SHARED,), **{**SMEM, "offset": 8})),
    "unknown register": ("unknown special register 'tid.w'", op("sreg", (), (I32,), name="tid.w")),
    "float register": ("gives an integer", op("sreg", (), (F32,), name="tid.x")),
    "offset by a pointer": ("needs a pointer and an index", op("ptr.add", (GLOBAL, GLOBAL), (GLOBAL,))),
    "offset to a number": ("gives a pointer of the same kind", op("ptr.add", (GLOBAL, I32), (I64,))),
    "offset to another element": (
        "gives a pointer of the same kind",
        op("ptr.add", (GLOBAL, I32), (PtrType(F16, MemSpace.GMEM, 4),)),
    ),
    "number from a pointer": ("takes and gives a pointer", op("ptr.cast", (GLOBAL,), (I64,))),
    "integer from an integer": ("needs pointer and integer", op("ptr.toint", (I64,), (I64,))),
    "integers from a pointer": ("needs pointer and integer", op("ptr.toint", (GLOBAL,), (VecType(I64, 2),))),
    "pointer from a float": ("needs pointer and integer", op("ptr.fromint", (F32,), (GLOBAL,))),
    "vector of registers": ("a fragment of one register or more", op("frag.alloc", (), (V4,))),
    "register of another type": ("must agree", op("frag.load", (FRAG,), (F16,), offsets=(0,))),
    "index of several": ("the index is an integer", op("frag.load", (FRAG, VecType(I32, 2)), (F32,), offsets=(0,))),
    "register before the first": ("is outside 4 registers", op("frag.store", (FRAG, F32), offsets=(-1,))),
    "shared memory as a number": ("a pointer to shared memory", op("smem.alloc", (), (I64,), **SMEM)),
    "negative offset": ("are sizes", op("smem.alloc", (), (SHARED,), **{**SMEM, "offset": -16})),
    "no alignment": ("are sizes", op("smem.alloc", (), (SHARED,), **{**SMEM, "align": 0})),
    "registers as one": ("gives an integer", op("sreg", (), (VecType(I32, 2),), name="tid.x")),
    # control
    "loop without index": ("a region with an index", loop(I32, I32, I32, body=region())),
    "index of another type": ("must have one type", loop(I32, I32, I64)),
    "loop in floats": ("counts in integers", loop(F32, F32, F32, body=region(args=[Value(F32)]))),
    "bound of another type": ("must have one type", loop(I64, I32, I32)),
    "end of another type": ("must have one type", loop(I32, I64, I32)),
    "step of another type": ("must have one type", loop(I32, I32, I64, body=region(args=[Value(I32)]))),
    "loop in vectors": ("counts in integers", loop(*[VecType(I32, 2)] * 3, body=region(args=[Value(VecType(I32, 2))]))),
    "unrolled half": ("cannot unroll 'half' times", loop(I32, I32, I32, unroll="half")),
    "unrolled backwards": ("cannot unroll -1 times", loop(I32, I32, I32, unroll=-1)),
    "step of zero": ("a step of 0", loop(ZERO, ONE, ZERO)),
    "unrolled how": ("cannot unroll 0 times", loop(I32, I32, I32, unroll=0)),
    "loop without yield": ("a region must end in yield", loop(I32, I32, I32, body=Block([Value(I32)], []))),
    "carried as another type": (
        "carried types differ",
        loop(I32, I32, I32, F32, body=region(F16, args=[Value(I32), Value(F32)]), results=(F32,)),
    ),
    "branch on a number": ("the condition is i1", op("if", (I32,), (), [region(), region()])),
    "branch with arguments": ("take nothing", op("if", (BOOL,), (), [region(args=[Value(I32)]), region()])),
    "sides of two types": ("carried types differ", op("if", (BOOL,), (F32,), [region(F32), region(F16)])),
    "while on a number": ("the condition is i1", loops(condition(I32), region())),
    "while without condition": ("must end in condition", loops(region(), region())),
    "while that carries another type": ("carried types differ", loops(condition(), region(), (F32,), (F32,))),
    "while whose body yields another": (
        "carried types differ",
        loops(condition(BOOL, F32, args=[Value(F32)]), region(F16, args=[Value(F32)]), (F32,), (F32,)),
    ),
    "assert of a number": ("the condition is i1", op("assert", (I32,), message="m")),
    "call of nothing": ("needs an instruction", op("call", atom="bar.sync")),
    "call of what only prints": ("needs an instruction", op("call", atom=SimpleNamespace(emit=None))),
    "call of what only simulates": ("needs an instruction", op("call", atom=SimpleNamespace(simulate=None))),
    "map of a number": ("takes a pointer", op("tensormap", (I64,), (I64,), template=None)),
    "map with pointers": ("extents and strides", op("tensormap", (GLOBAL, GLOBAL), (I64,), template=None)),
}
HOST: dict[str, tuple[str, Op]] = {
    "launch of what": ("needs a kernel", op("launch", (I32,) * 11, kernel=Function("h", "host", Block()))),
    "launch of a name": ("needs a kernel", op("launch", (I32,) * 11, kernel="k")),
    "launch sized by vectors": ("sizes are integers", op("launch", (V2,) * 10 + (GLOBAL,), kernel=KERNEL)),
    "launch sized by a float": ("sizes are integers", op("launch", (F32,) * 10 + (GLOBAL,), kernel=KERNEL)),
    "launch without arguments": ("0 arguments for the 1", op("launch", (I32,) * 11, kernel=KERNEL, has_stream=True)),
}


@pytest.mark.parametrize("name", WELL_FORMED)
def test_well_formed_functions_pass(name: str) -> None:
    verify(function(WELL_FORMED[name]))


def test_a_launch_passes() -> None:
    verify(function(op("launch", (*[I32] * 10, GLOBAL), kernel=KERNEL), kind="host"))
    verify(function(op("launch", (*[I32] * 10, I64, GLOBAL), kernel=KERNEL, has_stream=True), kind="host"))


def refusal(name: str) -> VerifyError:
    text, ops_ = (MALFORMED | HOST)[name]
    made = function(*(ops_ if isinstance(ops_, list) else [ops_]), kind="host" if name in HOST else "kernel")
    with pytest.raises(VerifyError) as caught:
        verify(made)
    assert text in str(caught.value), caught.value
    assert name == "argument twice" or "at user.py:7" in str(caught.value), "the user's line"
    return caught.value


@pytest.mark.parametrize("name", [*MALFORMED, *HOST])
def test_malformed_functions_are_refused_with_reason_and_line(name: str) -> None:
    refusal(name)


def test_a_result_that_names_another_op_is_refused() -> None:
    wrong = op("sreg", (), (I32,), name="tid.x")
    wrong.results = [Value(I32)]
    with pytest.raises(VerifyError, match="names another op"):
        verify(function(wrong))


def test_an_instruction_checks_its_own_operands() -> None:
    class Picky(SyncThreads):
        def verify(self, op: Op) -> None:
            raise VerifyError("picky")

    with pytest.raises(VerifyError, match="picky"):
        verify(function(op("call", atom=Picky())))


def test_every_rule_has_a_malformed_op() -> None:
    """Each ``need`` of the rules fails for some case above, so that taking it out fails a test."""
    tree = ast.parse(Path(ops.__file__).read_text())
    calls = (n for f in tree.body if isinstance(f, ast.FunctionDef) for n in ast.walk(f) if isinstance(n, ast.Call))
    rules = ("need", "_carried", "_terminator")
    written = {n.lineno for n in calls if isinstance(n.func, ast.Name) and n.func.id in rules}
    reached: set[int] = set()
    for name in [*MALFORMED, *HOST]:
        frames = traceback.extract_tb(refusal(name).__traceback__)
        reached |= {f.lineno for f in frames if f.filename == ops.__file__ and f.lineno is not None}
    missing = {n: Path(ops.__file__).read_text().splitlines()[n - 1].strip() for n in sorted(written - reached)}
    assert not missing
    assert set(ops.RULES) == set(ops.FORMS)


@pytest.mark.parametrize("elem", [I32, F32], ids=str)
@pytest.mark.parametrize("opcode", sorted(DIVISIONS))
def test_an_integer_is_not_divided_by_a_literal_zero(opcode: str, elem: ScalarType) -> None:
    """Floats are: the quotient is infinite or NaN."""
    if TABLE[opcode].on(elem) is None:
        return
    verify(function(op(opcode, (elem, Constant(elem, 1)), (elem,))))
    if elem.is_float:
        verify(function(op(opcode, (elem, Constant(elem, 0)), (elem,))))
    else:
        with pytest.raises(StagingError, match=f"user.py:7: {elem} division by zero"):
            verify(function(op(opcode, (elem, Constant(elem, 0)), (elem,))))
