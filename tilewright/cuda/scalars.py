"""Printing scalars and pointers: arithmetic, casts, bits, special registers, instructions."""

from __future__ import annotations

from tilewright.cuda.arithmetic import elementwise
from tilewright.cuda.emitter import KernelEmitter, prints
from tilewright.cuda.expressions import ADD, Expr, call, infix, literal
from tilewright.cuda.vectors import before_write, elementwise_vector, materialise
from tilewright.ir.core import Constant, Op
from tilewright.ir.ops import ELEMENTWISE
from tilewright.ir.types import BOOL, U8, FragType, MemSpace, PtrType, Type, VecType, element_of

BUILTIN = {
    f"{name}.{axis}": f"{builtin}.{axis}"
    for axis in "xyz"
    for name, builtin in (("tid", "threadIdx"), ("ntid", "blockDim"), ("ctaid", "blockIdx"), ("nctaid", "gridDim"))
}
FUNCTIONS = {"laneid": "lane", "warpid": "warp", "smid": "sm"}


@prints(*ELEMENTWISE, "select", "cast")
def _elementwise(e: KernelEmitter, op: Op) -> None:
    if isinstance(op.result.type, VecType):
        elementwise_vector(e, op)
    elif e.used(op.result):
        e.define(op.result, elementwise(op, [e.expr(v) for v in op.operands], op.operands, op.result in e.wrapping))


@prints("bitcast")
def _bitcast(e: KernelEmitter, op: Op) -> None:
    if not e.used(op.result):
        return
    source, to = op.operands[0], op.result.type
    if BOOL in (element_of(source.type), element_of(to)):
        _bits(e, op)
    elif isinstance(source.type, VecType) or isinstance(to, VecType):
        text = materialise(e, source) if isinstance(source.type, VecType) else e.expr(source).text
        name = e.name(op.result.hint or "bits")
        e.line(f"{e.type_name(to)} {name} = {_same_bits(e, text, source.type, to)};")
        e.alias(op.result, name)
    else:
        e.define(op.result, call(f"tw::bitcast<{e.type_name(to)}>", e.expr(source)))


def _same_bits(e: KernelEmitter, text: str, source: Type, to: Type) -> str:
    """The bits of ``text`` as ``to``; numbers of fewer than 8 bits, a byte each in vectors, go through their bytes."""
    old, new = element_of(source), element_of(to)
    if old.width == new.width or min(old.width, new.width) >= 8:
        return f"tw::bitcast<{e.type_name(to)}>({text})"
    if old.width < 8:
        text, source = f"tw::pack<{old.width}>({text})", U8
    if new.width < 8:
        count = to.n * new.width // 8 if isinstance(to, VecType) else 1
        text = text if old.width < 8 or old == U8 else f"tw::bitcast<tw::vec<uint8_t, {count}>>({text})"
        return f"tw::unpack<{new.width}, {new.cuda}>({text})"
    return text if new == U8 else f"tw::bitcast<{e.type_name(to)}>({text})"


def _bits(e: KernelEmitter, op: Op) -> None:
    """Between Booleans and the bits of an integer (bit i is element i)."""
    source, to = op.operands[0], op.result.type
    text = e.value(source)
    name = e.name(op.result.hint or "bits")
    if element_of(source.type) == BOOL:
        count = source.type.n if isinstance(source.type, VecType) else 1
        e.line(f"{e.type_name(to)} {name}{{}};" if isinstance(to, VecType) else f"{e.type_name(to)} {name} = 0;")
        width = element_of(to).width
        with e.unrolled(count) as i:
            element = f"{text}[{i}]" if isinstance(source.type, VecType) else text
            target = f"{name}[{i} / {width}]" if isinstance(to, VecType) else name
            e.line(f"{target} |= {element_of(to).cuda}({element}) << {i} % {width};")
    else:
        e.line(f"{e.declaration(to, name)};")
        width = element_of(source.type).width
        with e.unrolled(to.n if isinstance(to, VecType) else 1) as i:
            element = f"{text}[{i} / {width}]" if isinstance(source.type, VecType) else text
            target = f"{name}[{i}]" if isinstance(to, VecType) else name
            e.line(f"{target} = {element} >> {i} % {width} & 1;")
    e.alias(op.result, name)


@prints("sreg")
def _sreg(e: KernelEmitter, op: Op) -> None:
    if not e.used(op.result):
        return
    name = op.attrs["name"]
    if name in BUILTIN:
        builtin = Expr(BUILTIN[name])
        if e.inlines(op.result):
            e.define(op.result, call("int", builtin))
        else:
            e.assign_new(op.result, builtin)
        return
    expr = Expr(f"tw::{FUNCTIONS.get(name, name.replace('.', '_'))}()")
    # Read where the program reads it, not where its value is used.
    if name == "clock":
        e.assign_new(op.result, expr)
    else:
        e.define(op.result, expr)


@prints("ptr.add")
def _ptr_add(e: KernelEmitter, op: Op) -> None:
    pointer, index = op.operands
    base, offset = e.expr(pointer), e.expr(index)
    if isinstance(index, Constant) and index.value < 0:
        expr = infix("-", base, literal(element_of(index.type), -index.value))
    else:
        expr = Expr(
            f"{base.inside(ADD)} + {offset.inside(ADD)}" if offset.prec > ADD else infix("+", base, offset).text, ADD
        )
    # Kept apart, too: an access prints base[index] instead of *(base + index).
    e.parts[op.result] = (base, offset)
    e.define(op.result, expr)


@prints("ptr.cast")
def _ptr_cast(e: KernelEmitter, op: Op) -> None:
    source, to = op.operands[0].type, op.result.type
    assert isinstance(source, PtrType) and isinstance(to, PtrType)
    expr = e.expr(op.operands[0])
    if source.elem != to.elem:
        expr = Expr(f"reinterpret_cast<{e.type_name(to)}>({expr.text})")
    elif op.operands[0] in e.parts:
        e.parts[op.result] = e.parts[op.operands[0]]
    e.define(op.result, expr)


@prints("ptr.toint")
def _ptr_toint(e: KernelEmitter, op: Op) -> None:
    pointer, elem = op.operands[0], element_of(op.result.type)
    assert isinstance(pointer.type, PtrType)
    if pointer.type.space == MemSpace.SMEM:
        text = e.shared_address(pointer)
        expr = Expr(text if elem.cuda == "uint32_t" else f"{elem.cuda}({text})")
    else:
        expr = Expr(f"reinterpret_cast<uint64_t>({e.expr(pointer).text})")
        expr = expr if elem.cuda == "uint64_t" else Expr(f"{elem.cuda}({expr.text})")
    e.define(op.result, expr)


@prints("ptr.fromint")
def _ptr_fromint(e: KernelEmitter, op: Op) -> None:
    to = op.result.type
    assert isinstance(to, PtrType)
    address = e.expr(op.operands[0]).text
    if to.space == MemSpace.SMEM:
        expr = Expr(f"static_cast<{e.type_name(to)}>(__cvta_shared_to_generic({address}))")
    else:
        expr = Expr(f"reinterpret_cast<{e.type_name(to)}>({address})")
    e.define(op.result, expr)


@prints("call")
def _call(e: KernelEmitter, op: Op) -> None:
    e.check_arch(op)
    for operand in op.operands:
        if isinstance(operand.type, FragType):
            before_write(e, operand)
    op.attrs["atom"].emit(e, op)
