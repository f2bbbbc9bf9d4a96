"""Single conditions of the IR: short forms, types, integers on lanes, passes, architectures, tensor maps, text."""

from __future__ import annotations

import dataclasses
import itertools
import math
from typing import Any, ClassVar

import numpy as np
import pytest

from tilewright.atoms.tensor_memory_cp import SmemToTmem
from tilewright.errors import ArgumentError, ConstraintError
from tilewright.ir import lanes
from tilewright.ir.arithmetic import TABLE, action, convert, evaluate, may_overflow
from tilewright.ir.builder import Builder
from tilewright.ir.casts import cast
from tilewright.ir.core import Block, Constant, Function, Op, Value, _attr
from tilewright.ir.instruction import Instruction
from tilewright.ir.passes.sink import _may_fail, _selections
from tilewright.ir.passes.written import origin, writes
from tilewright.ir.runtime import DevicePointer
from tilewright.ir.target import Architecture, architecture
from tilewright.ir.tensormap import REMEMBERED, Leaf, ModePart, TensorMapTemplate
from tilewright.ir.types import (
    BOOL,
    E4M3,
    E5M2,
    F16,
    F32,
    F64,
    I8,
    I16,
    I32,
    I64,
    I128,
    NUMBERS,
    TF32,
    U8,
    U16,
    U32,
    U128,
    WIDE,
    FragType,
    MemSpace,
    PtrType,
    ScalarType,
    VecType,
    element_of,
)
from tilewright.ir.verify import verify

GLOBAL, SHARED = PtrType(I32, MemSpace.GMEM, 16), PtrType(I32, MemSpace.SMEM, 16)


def function(builder: Builder, *params: Value) -> Function:
    builder.block.args[:] = params
    return Function("f", "kernel", builder.block)


# -- the builder -------------------------------------------------------------------------------------------------------


def test_short_forms_emit_nothing() -> None:
    b, x, v = Builder(Block([])), Value(I32, "x"), Value(VecType(I32, 4), "v")
    p = Value(GLOBAL, "p")
    one, other = Constant(BOOL, True), Constant(BOOL, False)
    assert b.select(one, x, v) is x and b.select(other, x, v) is v and b.select(Value(BOOL), x, x) is x
    assert b.cast(x, I32) is x and b.bitcast(x, I32) is x and b.ptr_cast(p, GLOBAL) is p and b.ptr_add(p, 0) is p
    assert b.shuffle(v, range(4)) is v
    assert all(isinstance(c, Constant) for c in (b.cast(one, I32), b.splat(one, 4), b.extract(b.splat(one, 4), 1)))
    assert isinstance(b.shuffle(b.splat(one, 4), [0, 1]), Constant) and isinstance(b.unary("neg", b.index(3)), Constant)
    assert not b.block.ops


@pytest.mark.parametrize("indices", [(0, 1, 2), (0, 1, 3, 2), (1, 2, 3, 0), (0, 1, 2, 3, 3), (0,)])
def test_a_shuffle_that_changes_something_is_an_op(indices: tuple[int, ...]) -> None:
    b = Builder(Block([]))
    found = b.shuffle(Value(VecType(I32, 4), "v"), indices)
    assert found.type == VecType(I32, len(indices)) and b.block.ops[0].attrs == {"indices": indices}


@pytest.mark.parametrize("elem", [I8, U8, I16, U16, I32, U32, I64, F32], ids=str)
def test_operations_that_need_a_wrapping_form(elem: ScalarType) -> None:
    """C++ computes narrow integers in ``int``, where only the product of two u16 does not fit."""
    wide = elem.kind == "int" and elem.width >= 32
    for opcode, row in TABLE.items():
        on = row.on(elem)
        if on is None or not on.wrapping:
            assert not may_overflow(opcode, elem)
        elif opcode not in ("shl", "shr"):
            assert may_overflow(opcode, elem) == (wide or (opcode == "mul" and elem == U16)), opcode
    x, y = Value(elem, "x"), Value(elem, "y")
    for opcode in ("add", "mul") + (("shl", "shr") if elem != F32 else ()):
        b = Builder(Block([]))
        shift = opcode in ("shl", "shr")
        b.binary(opcode, x, y)
        b.binary(opcode, x, y, fits=True)
        b.binary(opcode, x, Constant(elem, 7))
        b.binary(opcode, x, Constant(elem, elem.width))
        wraps = [bool(op.attrs.get("wraps")) for op in b.block.ops]
        plain = may_overflow(opcode, elem)
        assert wraps == ([True, False, False, True] if shift else [plain, False, plain, plain]), opcode
    b = Builder(Block([]))
    b.unary("neg", x)
    b.unary("neg", x, fits=True)
    b.fma(x, x, x)
    assert [bool(op.attrs.get("wraps")) for op in b.block.ops] == [wide, False, may_overflow("fma", elem)]


def test_literals_are_folded_only_beside_literals() -> None:
    b, x, p = Builder(Block([])), Value(I32, "x"), Value(GLOBAL, "p")
    null = Constant(GLOBAL, 0)
    for operands in ((x, b.index(1)), (b.index(1), x), (null, null), (null, p)):
        assert not isinstance(b.compare("eq", *operands), Constant)
    assert isinstance(b.compare("eq", b.index(1), b.index(1)), Constant)
    assert not isinstance(b.unary("exp", Constant(F32, 1.0)), Constant)  # the machine's to round
    assert isinstance(b.unary("neg", Constant(F32, 1.0)), Constant)


# -- types -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "elem", [kind for kind in (*NUMBERS, *WIDE) if kind.kind in ("int", "uint", "float", "bool")], ids=str
)
def test_element_types_allowed_in_memory_and_registers(elem: ScalarType) -> None:
    """Values of 128 bits lie nowhere; packed ones have no pointers, and only integers of 4 bits have registers."""
    packed, wide = elem.width in (4, 6), elem.width > 64
    assert elem.packed == packed and elem.has_struct == (packed or elem.is_float and elem.width < 32)
    for refused, make in (
        (packed or wide, lambda: PtrType(elem, MemSpace.GMEM, 16)),
        (wide or (packed and elem.is_float), lambda: FragType(elem, 4)),
        (wide, lambda: VecType(elem, 4)),
    ):
        if refused:
            with pytest.raises(ConstraintError, match="numbers of"):
                make()
        else:
            assert element_of(make()) == elem
    with pytest.raises(TypeError, match="has no elements"):
        element_of(object())


# -- numbers -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_integers_on_lanes(dtype: Any) -> None:
    """All pairs of some numbers at once, in mixed and in uniform arrays, and one by one."""
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    numbers = sorted({low, low + 1, 0, 1, 2, 3, 7, high - 1, high} | ({-1, -2, -7} if low else set()))
    pairs = [(a, b) for a, b in itertools.product(numbers, numbers) if b and (a, b) != (low, -1)]
    for chosen in (pairs, [(a, b) for a, b in pairs if a >= 0 and b > 0], *[[pair] for pair in pairs]):
        a, b = (np.array(x, dtype) for x in zip(*chosen, strict=True))
        quotient = [int(math.trunc(x / y)) for x, y in chosen]
        assert lanes.truncating_quotient(a, b).tolist() == quotient
        assert lanes.truncating_remainder(a, b).tolist() == [
            x - y * q for (x, y), q in zip(chosen, quotient, strict=True)
        ]
        assert lanes.floor_remainder(a, b).tolist() == [x % y for x, y in chosen]
    for a, b in [(a, b) for a, b in itertools.product(numbers, (-3, -2, -1, 0, 1, 2, 5)) if low <= b and (a or b >= 0)]:
        want = int(
            np.array(a**b % 256 if b >= 0 else math.trunc(1 / a**-b) % 256, np.uint8).astype(np.uint8).view(dtype)
        )
        for extra in ((), (1,), *([(-1,)] if low else [])):
            found = lanes.integer_power(np.array([a, *[1] * len(extra)], dtype), np.array([b, *extra], dtype))
            assert int(found[0]) == want, (a, b)


@pytest.mark.parametrize("half", [np.float64(0.5), np.array(0.5), np.full(7, 0.5)], ids=["number", "array", "lanes"])
@np.errstate(all="ignore")  # as the simulator runs it
def test_powers_with_one_half(half: Any) -> None:
    """NumPy takes a square root where the exponent is one number: -inf and -0.0 differ there."""
    found = lanes.power(np.array([4.0, 0.0, -0.0, -np.inf, np.inf, 2.0, 1.0]), half)
    assert found.tolist() == [2.0, 0.0, 0.0, np.inf, np.inf, 2.0**0.5, 1.0] and not np.signbit(found).any()
    assert lanes.power(np.array([-0.0, 3.0]), np.array([3.0, 2.0])).tolist() == [-0.0, 9.0]


@pytest.mark.parametrize("sign", [1, -1])
def test_a_sum_that_f64_rounds_to_a_tie_of_f32(sign: int) -> None:
    """16777217 lies between two numbers of f32, 2^-127 + 2^-150 between two below the least normal number."""
    f = np.float32
    tie = np.array([257], f), np.array([sign * 65281], f)
    for rest, want in ((0.0, 16777216), (2.0**-40, 16777218), (-(2.0**-40), 16777216)):
        assert lanes.fused_multiply_add(*tie, np.array([sign * rest], f))[0] == sign * want
    odd = f(2.0**-127) + f(2.0**-149)
    low = np.array([2.0**-75 * (1 + 2.0**-23)], f), np.array([sign * 2.0**-75 * (1 - 2.0**-23)], f)
    assert lanes.fused_multiply_add(*low, np.array([sign * odd], f))[0] == sign * odd


def test_fused_multiply_add_rounds_once() -> None:
    """Ties of f32 that the f64 sum makes or hides, and sums below the least normal number."""
    draw = np.random.default_rng(1)
    a, b = (draw.integers(1 << 23, 1 << 24, 400).astype(np.float32) for _ in range(2))
    exact = a.astype(object).astype(int) * b.astype(object).astype(int)
    shift = draw.integers(0, 60, 400)
    c = np.ldexp(draw.integers(-8, 8, 400).astype(np.float32), shift).astype(np.float32)
    found = lanes.fused_multiply_add(a, b, c)
    for i in range(400):
        total = int(exact[i]) + int(c[i])
        bits = max(abs(total).bit_length() - 24, 0)
        rounded = round_half_even(total, bits)
        assert int(found[i]) == rounded, (a[i], b[i], c[i])
    x = np.array([1.0009765625], np.float16)
    assert lanes.fused_multiply_add(x, x, np.array([-1.001953125], np.float16))[0] == np.float16(2.0**-20)
    # 2049 + 2**-20 rounds to 2050; rounded to f32 first it would be 2049, a tie, and 2048.
    low, c = np.array([2.0**-10 - 1], np.float16), np.array([2050], np.float16)
    assert lanes.fused_multiply_add(np.array([1 + 2.0**-10], np.float16), low, c)[0] == 2050
    # 2^-11 + 2^-34 more than 1: f32 would make it the tie between 1 and the next number of f16
    half = np.array([2.0**-11], np.float16)
    tiny = np.array([2.0**-17], np.float16)
    assert lanes.fused_multiply_add(np.array([1.0], np.float16), np.array([1.0], np.float16), half)[0] == 1
    assert lanes.fused_multiply_add(tiny, tiny, np.array([1.0], np.float16)).dtype == np.float16


def round_half_even(number: int, bits: int) -> int:
    whole, rest = divmod(abs(number), 1 << bits)
    half = 1 << bits >> 1
    whole += bool(bits) and (rest > half or (rest == half and whole & 1))
    return (whole << bits) * (1 if number >= 0 else -1)


@pytest.mark.parametrize(
    "value", [0.0, -1.5, 2.0**126, 2.0**127, 2.0**128, -(2.0**127), -(2.0**128), math.inf, -math.inf, math.nan]
)
@pytest.mark.parametrize("to", [I128, U128], ids=str)
@np.errstate(all="ignore")  # as the simulator runs it
def test_floats_as_128_bits(to: ScalarType, value: float) -> None:
    """Truncated, the nearest that fits, and 0 for a NaN; the same on lanes."""
    low, high = (-(1 << 127), (1 << 127) - 1) if to == I128 else (0, (1 << 128) - 1)
    want = (
        0
        if math.isnan(value)
        else low
        if value == -math.inf
        else high
        if value == math.inf
        else max(low, min(high, int(value)))
    )
    assert convert(F64, to, value) == want
    assert cast(F64, to)(np.array([value])).tolist() == [want]
    if math.isfinite(value):
        assert cast(to, F64)(np.array([want], object))[0] == float(want)


def test_operations_that_are_not_defined() -> None:
    with pytest.raises(TypeError, match="`and` is not defined on f32"):
        action("and", F32)


@pytest.mark.parametrize("elem", [E4M3, E5M2, F16, F32], ids=str)
def test_results_of_few_bits_saturate(elem: ScalarType) -> None:
    largest = float(np.float64(elem.largest)) if elem.largest is not None else math.inf
    assert evaluate("exp", elem, 100.0 if elem.width <= 16 else 1000.0) == largest


# -- passes ------------------------------------------------------------------------------------------------------------


def test_divisions_that_may_fail() -> None:
    b, x = Builder(Block([])), Value(I32, "x")
    for opcode, divisor, fails in (
        ("rem", x, True),
        ("rem", Constant(I32, 3), False),
        ("div", Constant(I32, 0), True),
        ("add", x, False),
    ):
        assert _may_fail(b.emit(opcode, (x, divisor), (I32,))) == fails


def test_runs_of_selections_share_a_condition_and_are_neighbours() -> None:
    b = Builder(Block([]))
    x, y, c, d = Value(I32, "x"), Value(I32, "y"), Value(BOOL, "c"), Value(BOOL, "d")
    lanes_ = Value(VecType(BOOL, 2), "lanes")
    first, second = b.emit("select", (c, x, y), (I32,)), b.emit("select", (c, y, x), (I32,))
    other, apart = b.emit("select", (d, x, y), (I32,)), b.emit("and", (c, d), (BOOL,))
    third = b.emit("select", (c, x, y), (I32,))
    b.emit("select", (lanes_, Value(VecType(I32, 2)), Value(VecType(I32, 2))), (VecType(I32, 2),))
    b.emit("min", (x, y), (I32,))
    last = b.emit("select", (c, x, y), (I32,))
    assert apart and _selections(b.block) == [[first, second], [other], [third], [last]]


def test_written_parameters_of_a_function() -> None:
    b, p, s = Builder(Block([])), Value(GLOBAL, "p"), Value(SHARED, "s")
    moved = b.ptr_cast(b.ptr_add(p, Value(I32, "i")), PtrType(U32, MemSpace.GMEM, 4))
    b.store(moved, Constant(U32, 1))
    b.store(s, Constant(I32, 1))
    b.load(p)
    assert origin(moved) is p and origin(p) is p
    assert [root for root, _ in writes(function(b, p, s))] == [p]
    made = b.emit("load", (p,), (I32,)).result
    assert origin(made) is made
    address = Value(I32, "columns")  # of tensor memory, which is a block's own
    b.call(SmemToTmem("128x256b"), [address, Value(I32, "descriptor")])
    assert [root for root, _ in writes(function(b, p, s))] == [p]


def test_a_use_of_what_is_not_defined_here() -> None:
    b, x = Builder(Block([])), Value(I32, "x")
    b.emit("add", (x, Constant(I32, 1)), (I32,))
    verify(function(b, x))
    with pytest.raises(Exception, match="scope"):
        verify(function(Builder(Block([], [Op("add", [x, x], [Value(I32)], {}, [], None)]))))


@pytest.mark.parametrize(
    ("opcode", "operands", "result", "words"),
    [
        ("bitcast", (Value(F32),), I32, ""),
        ("bitcast", (Value(VecType(I32, 2)),), F64, ""),
        ("bitcast", (Value(F32),), I16, "keeps the total width"),
        ("bitcast", (Value(GLOBAL),), I32, "keeps the total"),
        ("bitcast", (Value(I32),), GLOBAL, "keeps the total width"),
        ("load", (Value(GLOBAL),), I32, ""),
        ("load", (Value(GLOBAL),), F32, "must agree in element type"),
        ("load", (Value(GLOBAL),), GLOBAL, "must agree in element type"),
        ("load", (Value(I32),), I32, "needs a pointer"),
    ],
)
def test_rules_of_operations(opcode: str, operands: Any, result: Any, words: str) -> None:
    b = Builder(Block([]))
    b.emit(opcode, operands, (result,))
    made = function(b, *operands)
    if not words:
        verify(made)
        return
    with pytest.raises(Exception, match=words):
        verify(made)


# -- architectures, tensor maps, text ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["sm_80", "sm_90a", "sm_120a", "sm_100f"])
def test_names_of_architectures(name: str) -> None:
    assert str(architecture(name)) == name == str(architecture(name[3:], bare=True))
    for wrong, bare in ((name[3:], False), (name + "b", True), ("sm_", True), ("sm_1234", False), ("x" + name, False)):
        with pytest.raises(ArgumentError, match="unknown architecture"):
            architecture(wrong, bare)


def test_code_runs_on_its_generation() -> None:
    names = ["sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100"]
    runs = {("sm_80", "sm_86"), ("sm_80", "sm_89"), ("sm_86", "sm_89"), ("sm_90", "sm_90a"), ("sm_90a", "sm_90")}
    for one, other in itertools.product(names, names):
        assert architecture(one).runs_on(architecture(other)) == (one == other or (one, other) in runs), (one, other)
    with pytest.raises(ArgumentError, match="unknown compute capability 'sm_11'; known are sm_70"):
        _ = Architecture(11, "").smem


@dataclasses.dataclass(frozen=True)
class Plain(Instruction):
    min_arch: ClassVar[int] = 89


@dataclasses.dataclass(frozen=True)
class Featured(Instruction):
    features: ClassVar[tuple[int, ...]] = (90, 100)


@dataclasses.dataclass(frozen=True)
class Single(Instruction):
    features: ClassVar[tuple[int, ...]] = (90,)


@pytest.mark.parametrize(
    ("instruction", "arch", "lacking"),
    [
        (Plain, "sm_80", "sm_89 or later"),
        (Plain, "sm_89", ""),
        (Plain, "sm_90a", ""),
        (Featured, "sm_90a", ""),
        (Featured, "sm_100a", ""),
        (Featured, "sm_90", "sm_90a or sm_100a"),
        (Featured, "sm_120a", "sm_90a or sm_100a"),
        (Single, "sm_90", "sm_90a (no other GPU has it)"),
        (Single, "sm_90a", ""),
    ],
)
def test_instruction_lacking_on_an_architecture(instruction: Any, arch: str, lacking: str) -> None:
    assert instruction().lacking(architecture(arch)) == lacking


def test_remembered_tensor_maps_are_bounded() -> None:
    columns, rows = ModePart("mode 0", Leaf(0, 0), Leaf(1), True), ModePart("mode 1", Leaf(8), Leaf(0, 1), False)
    template = TensorMapTemplate("x", F16, F16, ((columns,), (rows,)), (8, 8), 0)
    first = template(0x1000, 8, 8)
    assert template(0x1000, 8, 8) is first and template(0x1000, 16, 8) != first and template(0x1000, 8, 16) != first
    for i in range(REMEMBERED - 3):
        template(0x2000 + 16 * i, 8, 8)
    assert template(0x1000, 8, 8) is first and len(template.known) == REMEMBERED
    template(0x1010, 8, 8)
    assert len(template.known) == 1


@pytest.mark.parametrize(
    ("extent", "stride", "words"), [(1, -8, ""), (2, -8, "is negative"), (2, 0, ""), (2, 8, ""), (1, 0, "")]
)
def test_negative_strides_that_something_steps_along(extent: int, stride: int, words: str) -> None:
    columns, rows = ModePart("mode 0", Leaf(8), Leaf(1), True), ModePart("mode 1", Leaf(extent), Leaf(stride), False)
    assert words in (found := TensorMapTemplate("x", F16, F16, ((columns,), (rows,)), (8, 8), 0).part_problem(()))
    assert bool(words) == bool(found)
    narrow = TensorMapTemplate("x", U8, F32, ((columns,), (ModePart("mode 1", Leaf(3), Leaf(8), False),)), (2, 3), 0)
    assert not narrow.part_problem(())


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ((0, 1, 2, 5), "[0..2, 5]"),
        ([3], "[3]"),
        ((1, "a"), "(1, 'a')"),
        ("a", "'a'"),
        (3, "3"),
        (((0, 1),), "((0, 1),)"),
        ((), "[]"),
    ],
)
def test_attributes_as_text(value: Any, text: str) -> None:
    assert _attr(value) == text


def test_values_by_name() -> None:
    assert ("x" in repr(Value(I32, "x"))) and ("_" in repr(Value(I32))) and TF32 != F32


def test_the_extents_of_a_pointer_are_its_own_or_its_owners() -> None:
    owner = np.zeros((3, 5), np.float32)
    plain = DevicePointer(0, "cpu", 0, 60, owner)
    assert plain.extents == (3, 5) and plain._replace(shape=(15,)).extents == (15,)
    assert plain._replace(owner=None).extents == ()
