"""Printing vectors and fragments.

A vector that is computed elementwise, used once and not named by the user stays *lazy*: a recipe for its element at a
loop index. Its consumer prints the whole chain as one unrolled loop. Recipes may read fragments; before such a fragment
is written they are made real (:func:`before_write`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tilewright.cuda.arithmetic import cast, elementwise
from tilewright.cuda.emitter import KernelEmitter, prints
from tilewright.cuda.expressions import ADD, Expr, call, literal
from tilewright.cuda.patterns import contiguous, formula, table
from tilewright.errors import CompileError
from tilewright.ir.arithmetic import TABLE, may_overflow
from tilewright.ir.core import Constant, Op, Value
from tilewright.ir.types import BF16, E8M0, F16, F32, F64, TF32, ScalarType, VecType, element_of

Recipe = Callable[[str], Expr]
REDUCED = {"add": "sum", "mul": "product", "max": "largest", "min": "smallest"}


@dataclass
class Lazy:
    """``element(i)`` is the element at index ``i``; ``pair(i)`` two neighbours as one register, if that is possible.

    ``reads`` are the fragments (with offsets) that the recipe reads when it is printed.
    """

    element: Recipe
    pair: Recipe | None = None
    reads: list[tuple[Value, tuple[int, ...]]] = field(default_factory=list)


def recipe(e: KernelEmitter, value: Value) -> Lazy:
    """How to print the elements of a vector (a lazy one is consumed) or of a scalar that is the same for all."""
    elem = element_of(value.type)
    packs = elem in (F16, BF16)
    if isinstance(value, Constant):
        number = literal(elem, value.value)
        return Lazy(lambda i: number, (lambda i: call("tw::pair", number, number)) if packs else None)
    if not isinstance(value.type, VecType):
        scalar = e.expr(value)
        return Lazy(lambda i: scalar, (lambda i: call("tw::pair", scalar, scalar)) if packs else None)
    if value in e.lazy:
        # A lazy vector has one use: printing it here consumes it.
        lazy = e.lazy.pop(value)
        assert isinstance(lazy, Lazy)
        return lazy
    return stored(e.value(value), packs and value.type.n % 2 == 0)


def stored(name: str, packs: bool) -> Lazy:
    """The recipe of a vector that is in a variable."""
    return Lazy(lambda i: Expr(f"{name}[{i}]"), (lambda i: Expr(f"tw::two({name}[{i}])")) if packs else None)


def define_vector(e: KernelEmitter, value: Value, lazy: Lazy) -> None:
    """Keep ``value`` lazy if it may be, else print its loop now."""
    if not e.used(value):
        return
    # Longer chains are printed as loops of their own: they would not be read as one expression.
    if e.inlines(value) and len(lazy.element("i").text) <= 96:
        e.lazy[value] = lazy
    else:
        name = e.name(value.hint or "v")
        e.line(f"{e.declaration(value.type, name)};")
        fill(e, name, _count(value), lazy)
        e.alias(value, name)


def materialise(e: KernelEmitter, value: Value) -> str:
    """The name of a variable that holds the vector."""
    if isinstance(value, Constant):
        elem, number = element_of(value.type), literal(element_of(value.type), value.value)
        return f"tw::splat<{elem.cuda}, {_count(value)}>({number.text})"
    if value in e.lazy:
        lazy = recipe(e, value)
        name = e.name(value.hint or "v")
        e.line(f"{e.declaration(value.type, name)};")
        fill(e, name, _count(value), lazy)
        e.alias(value, name)
    return e.expr(value).text


def fill(e: KernelEmitter, name: str, count: int, lazy: Lazy, target: Callable[[str], str] | None = None) -> None:
    """Print the loop that writes ``count`` elements of ``lazy`` to ``name[i]`` (or ``name[target(i)]``)."""
    place = target or (lambda i: i)
    if lazy.pair is not None and count % 2 == 0:
        with e.unrolled(count, step=2) as i:
            e.line(f"tw::two({name}[{place(i)}]) = {lazy.pair(i).text};")
    else:
        with e.unrolled(count) as i:
            e.line(f"{name}[{place(i)}] = {lazy.element(i).text};")


def before_write(e: KernelEmitter, fragment: Value) -> None:
    """Make every lazy vector real that reads ``fragment``."""
    # A copy of the items: ``materialise`` takes entries out.
    for value, lazy in list(e.lazy.items()):
        assert isinstance(lazy, Lazy)
        if any(frag is fragment for frag, _ in lazy.reads):
            materialise(e, value)


def settle(e: KernelEmitter) -> None:
    """Make every lazy vector real that reads a fragment: before regions, whose ops may write anything."""
    for value, lazy in list(e.lazy.items()):
        assert isinstance(lazy, Lazy)
        if lazy.reads:
            materialise(e, value)


def _count(value: Value) -> int:
    assert isinstance(value.type, VecType)
    return value.type.n


# -- elementwise -------------------------------------------------------------------------------------------------------


def elementwise_vector(e: KernelEmitter, op: Op) -> None:
    """Arithmetic, comparisons, casts and selections on vectors."""
    if not e.used(op.result):
        return
    if op.opcode == "cast" and _packed_cast(e, op):
        return
    for operand in op.operands:  # a scalar that is computed inside the loop would be printed for every element
        if (
            not isinstance(operand.type, VecType)
            and not e.expr(operand).text.isidentifier()
            and not isinstance(operand, Constant)
        ):
            e.assign_new(operand, e.expr(operand))
    parts = [recipe(e, v) for v in op.operands]
    # The chain reads what its parts read: a write to any of these fragments ends its laziness.
    reads = [read for part in parts for read in part.reads]
    row = TABLE.get(op.opcode)
    # Two neighbours at once (HADD2, HFMA2) where all operands come in pairs.
    paired = row is not None and row.real is not None and row.real.paired
    paired = paired and all(part.pair is not None for part in parts)
    wraps = op.result in e.wrapping

    def element(i: str) -> Expr:
        return elementwise(op, [part.element(i) for part in parts], op.operands, wraps)

    def pair(i: str) -> Expr:
        return elementwise(op, [part.pair(i) for part in parts if part.pair], op.operands, False)

    lazy = Lazy(element, pair if paired else None, reads)
    define_vector(e, op.result, lazy)


def _widens(elem: ScalarType) -> bool:
    """Whether numbers become f16 exactly, two at a time. The powers of two of E8M0 reach further than f16."""
    return elem.has_struct and elem.width <= 8 and elem != E8M0


def _packed_cast(e: KernelEmitter, op: Op) -> bool:
    """Casts that convert two numbers an instruction are functions of the whole vector."""
    source, to = element_of(op.operands[0].type), element_of(op.result.type)
    if _widens(source) and to == F16:
        text = f"tw::widen({materialise(e, op.operands[0])})"
    elif to.has_struct and (source in (F32, TF32) or source.has_struct):
        text = f"tw::narrow<{to.cuda}>({materialise(e, op.operands[0])})"
    elif _widens(source) and to in (F32, TF32, F64):
        # 8-bit floats become f32 by way of f16, exactly, two an instruction.
        halves = e.name("wide")
        e.line(f"const tw::vec<tw::f16, {_count(op.result)}> {halves} = tw::widen({materialise(e, op.operands[0])});")
        define_vector(e, op.result, Lazy(lambda i: cast(Expr(f"{halves}[{i}]"), F16, to)))
        return True
    else:
        return False
    name = e.name(op.result.hint or "v")
    e.line(f"{e.declaration(op.result.type, name)} = {text};")
    e.alias(op.result, name)
    return True


# -- making vectors ----------------------------------------------------------------------------------------------------


@prints("vec.build")
def _build(e: KernelEmitter, op: Op) -> None:
    if e.used(op.result):
        name = e.name(op.result.hint or "v")
        elements = ", ".join(e.expr(v).text for v in op.operands)
        e.line(f"{e.declaration(op.result.type, name)} = {{{{{elements}}}}};")
        e.alias(op.result, name)


@prints("vec.splat")
def _splat(e: KernelEmitter, op: Op) -> None:
    if not e.used(op.result):
        return
    (element,) = op.operands
    if not isinstance(element, Constant) and not e.expr(element).text.isidentifier():
        e.assign_new(element, e.expr(element))
    define_vector(e, op.result, recipe(e, element))


@prints("vec.extract")
def _extract(e: KernelEmitter, op: Op) -> None:
    if e.used(op.result):
        e.define(op.result, Expr(f"{materialise(e, op.operands[0])}[{op.attrs['index']}]"))


@prints("vec.shuffle")
def _shuffle(e: KernelEmitter, op: Op) -> None:
    if e.used(op.result):
        source, indices = materialise(e, op.operands[0]), op.attrs["indices"]
        if isinstance(op.operands[0], Constant):
            define_vector(e, op.result, recipe(e, op.operands[0]))
        else:
            define_vector(e, op.result, Lazy(picked(e, source, indices), None))


def picked(e: KernelEmitter, name: str, offsets: Sequence[int], base: str = "") -> Recipe:
    """The recipe ``name[base + offsets[i]]``; prints a table where the offsets follow no formula."""
    lead = f"{base} + " if base else ""
    if formula(offsets, "i") is not None:
        return lambda i: Expr(f"{name}[{lead}{formula(offsets, i)}]")
    places = e.name("at")
    e.line(f"constexpr int {places}[] = {table(offsets)};")
    return lambda i: Expr(f"{name}[{lead}{places}[{i}]]")


@prints("vec.concat")
def _concat(e: KernelEmitter, op: Op) -> None:
    """One loop for each vector, at its place in the result; scalars are assigned one by one."""
    if not e.used(op.result):
        return
    parts = [recipe(e, v) for v in op.operands]
    name = e.name(op.result.hint or "v")
    e.line(f"{e.declaration(op.result.type, name)};")
    start = 0
    for operand, part in zip(op.operands, parts, strict=True):
        if isinstance(operand.type, VecType):
            fill(e, name, operand.type.n, part, _shifted(start) if start else None)
            start += operand.type.n
        else:
            e.line(f"{name}[{start}] = {part.element('0').text};")
            start += 1
    e.alias(op.result, name)


def _shifted(start: int) -> Callable[[str], str]:
    return lambda i: f"{start} + {i}"


# -- reductions --------------------------------------------------------------------------------------------------------


@prints("vec.reduce")
def _reduce(e: KernelEmitter, op: Op) -> None:
    if not e.used(op.result):
        return
    source, groups = op.operands[0], op.attrs["groups"]
    init = op.operands[1] if len(op.operands) > 1 else None
    if isinstance(op.result.type, VecType):
        _reduce_groups(e, op, source, groups, init)
        return
    (group,) = groups
    name = e.name(op.result.hint or REDUCED[op.attrs["kind"]])
    # A whole vector in its order needs no variable: its recipe is read as it is summed.
    lazy = recipe(e, source) if contiguous(group) and group[0] == 0 else Lazy(picked(e, materialise(e, source), group))
    e.line(f"{e.type_name(op.result.type)} {name} = {(e.expr(init) if init else lazy.element('0')).text};")
    _fold(e, op, name, len(group), lazy, 0 if init else 1)
    e.alias(op.result, name)


def _reduce_groups(
    e: KernelEmitter, op: Op, source: Value, groups: Sequence[Sequence[int]], init: Value | None
) -> None:
    """Sums (products, ...) of several groups of equal size: a loop over the groups around the loop of one."""
    size = len(groups[0])
    if any(len(group) != size for group in groups):
        raise CompileError(
            f"vec.reduce over groups of different sizes has no CUDA form{f' at {op.loc}' if op.loc else ''}"
        )
    # All groups in one list of places, so that one table or formula serves both loops.
    at = picked(e, materialise(e, source), [i for group in groups for i in group])
    start = recipe(e, init) if init else None
    name = e.name(op.result.hint or REDUCED[op.attrs["kind"]])
    e.line(f"{e.declaration(op.result.type, name)};")
    with e.unrolled(len(groups), "g") as g:
        total = f"{name}[{g}]"
        flat = Lazy(lambda f: at(f"({g} * {size} + {f})"))
        e.line(f"{total} = {(start.element(g) if start else flat.element('0')).text};")
        _fold(e, op, total, size, flat, 0 if start else 1, "f")
    e.alias(op.result, name)


def _fold(e: KernelEmitter, op: Op, total: str, count: int, lazy: Lazy, first: int, index: str = "e") -> None:
    if first >= count:
        return
    elem = element_of(op.operands[0].type)
    # An op on two scalars of its own, to print one step of the reduction as elementwise arithmetic.
    step, wraps = Op(op.attrs["kind"], [], [Value(elem)], {}, [], op.loc), may_overflow(op.attrs["kind"], elem)
    scalar = [Value(elem), Value(elem)]
    e.line("#pragma unroll")
    head, element = f"for (int {index} = {first}; {index} < {count}; ++{index})", lazy.element(index)
    # Types with operators of their own; the others need functions of the device header.
    if op.attrs["kind"] in ("add", "mul") and elem in (F32, F64):
        e.line(f"{head} {total} {'+' if op.attrs['kind'] == 'add' else '*'}= {element.text};")
    else:
        e.line(f"{head} {total} = {elementwise(step, [Expr(total), element], scalar, wraps).text};")


# -- fragments ---------------------------------------------------------------------------------------------------------


@prints("frag.alloc")
def _frag_alloc(e: KernelEmitter, op: Op) -> None:
    if e.used(op.result):
        e.declare(op.result)


@prints("frag.load")
def _frag_load(e: KernelEmitter, op: Op) -> None:
    """Stays lazy if it can: the recipe reads the fragment where it is used, until something writes to it."""
    if not e.used(op.result):
        return
    fragment, offsets = op.operands[0], tuple(op.attrs["offsets"])
    name = e.value(fragment)
    index = e.expr(op.operands[1]).inside(ADD) if len(op.operands) > 1 else ""
    if not isinstance(op.result.type, VecType):
        e.assign_new(op.result, Expr(f"{name}[{_sum(index, offsets[0])}]"))
        return

    def pair(i: str) -> Expr:
        return Expr(f"tw::two({name}[{formula(offsets, i)}])")

    paired = not index and _pairs(op.result, offsets)
    lazy = Lazy(picked(e, name, offsets, index), pair if paired else None, [(fragment, offsets)])
    define_vector(e, op.result, lazy)


@prints("frag.store")
def _frag_store(e: KernelEmitter, op: Op) -> None:
    fragment, value, offsets = op.operands[0], op.operands[1], tuple(op.attrs["offsets"])
    name = e.value(fragment)
    index = e.expr(op.operands[2]).inside(ADD) if len(op.operands) > 2 else ""
    if not isinstance(value.type, VecType):
        before_write(e, fragment)
        e.line(f"{name}[{_sum(index, offsets[0])}] = {e.expr(value).text};")
        return
    lazy = recipe(e, value)
    # In one loop an element that is written may be one that a later iteration still reads.
    own = [at for frag, at in lazy.reads if frag is fragment]
    if index or any(at != offsets for at in own):  # reads other places than it writes: through a variable
        copy = e.name("v")
        e.line(f"{e.declaration(value.type, copy)};")
        fill(e, copy, value.type.n, lazy)
        lazy = stored(copy, lazy.pair is not None)
    before_write(e, fragment)
    # A run-time index may be odd: pairs would not be aligned.
    if index or not _pairs(value, offsets):
        lazy = Lazy(lazy.element)
    target = picked(e, "", offsets, index)
    fill(e, name, value.type.n, lazy, lambda i: target(i).text[1:-1])


def _pairs(value: Value, offsets: Sequence[int]) -> bool:
    """16-bit floats whose neighbours are neighbours in the fragment, and which begin at an even place."""
    packs = element_of(value.type) in (F16, BF16) and len(offsets) % 2 == 0
    return packs and all(offsets[i] % 2 == 0 and offsets[i + 1] == offsets[i] + 1 for i in range(0, len(offsets), 2))


def _sum(index: str, offset: int) -> str:
    return str(offset) if not index else f"{index} + {offset}" if offset else index
