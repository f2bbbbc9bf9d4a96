"""PTX in the simulator: an action on registers for each instruction (PTX ISA, "Instruction Set").

The approximate functions (``ex2.approx`` ...) give the exact function rounded to the type: a GPU may differ in the
last bits.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from tilewright.atoms.bits import Permute
from tilewright.atoms.ptx import carries
from tilewright.atoms.ptx.registers import UNSIGNED, Array, Kind, Registers, to_numbers
from tilewright.atoms.ptx.step import ACTIONS, GIVEN, Step, Unknown, known
from tilewright.atoms.ptx.text import Statement
from tilewright.atoms.warp import Redux, Shuffle, Vote
from tilewright.errors import ConstraintError
from tilewright.ir.arithmetic import on_lanes
from tilewright.ir.casts import cast
from tilewright.ir.types import BOOL, I32, SCALARS, U32, U64

_ROUNDINGS = ("rn", "ftz", "sat", "relu")


def _floating(step: Step, opcode: str, count: int) -> None:
    step.only(*_ROUNDINGS)
    operands = [step.float_inputs(step.read(1 + i)) for i in range(count)]
    with np.errstate(all="ignore"):
        step.write(on_lanes(opcode, step.kind.elem)(*operands))


@known("add", "sub")
def _add(step: Step) -> None:
    elem = step.kind.elem
    if elem.is_float:
        return _floating(step, step.name, 2)
    step.only("sat", "cc")
    a, b = step.read(1), step.read(2)
    if "cc" in step.modifiers:
        return carries.add(step, a, b)
    if "sat" in step.modifiers:
        wide = a.astype(np.int64) + b if step.name == "add" else a.astype(np.int64) - b
        return step.write(np.clip(wide, -(1 << 31), (1 << 31) - 1).astype(elem.dtype))
    return step.write(on_lanes(step.name, elem)(a, b))


@known("mul", "mad", "madc", "mul24", "mad24")
def _mul(step: Step) -> None:
    """``lo`` and ``hi`` are the halves of the product, ``wide`` is all of it, in twice the bits."""
    kind = step.kind
    if kind.elem.is_float:
        return _floating(step, "mul", 2) if step.name == "mul" else _floating(step, "fma", 3)
    step.only("lo", "hi", "wide", *(["cc"] if step.name in ("mad", "madc") else []))
    if "24" in step.name:
        return _mul_24_bits(step)
    a, b = step.read(1), step.read(2)
    width, unsigned = kind.elem.width, kind.elem.kind == "uint"
    if "wide" in step.modifiers and "cc" not in step.modifiers:
        wide = Kind(SCALARS[f"{'u' if unsigned else 'i'}{2 * width}"])
        product = a.astype(wide.elem.dtype) * b.astype(wide.elem.dtype)
        return step.write(product + step.read(3, wide) if step.name == "mad" else product, wide)
    if "hi" in step.modifiers:
        product = np.array([int(x) * int(y) >> width for x, y in zip(a, b, strict=True)], object)
        product = (product & ((1 << width) - 1)).astype(f"u{width // 8}").view(kind.elem.dtype)
    else:
        product = a * b
    if step.name == "madc" or "cc" in step.modifiers:
        return carries.add(step, product, step.read(3))
    return step.write(product + step.read(3) if step.name == "mad" else product)


def _mul_24_bits(step: Step) -> None:
    """Of the product of the lowest 24 bits the lower 32 bits, or those from bit 16 on (``hi``)."""
    elem = step.kind.elem
    wide = np.int64 if elem.kind == "int" else np.uint64
    a, b = (step.read(i).astype(wide) << wide(40) >> wide(40) for i in (1, 2))
    value = (a * b >> wide(16 if "hi" in step.modifiers else 0)).astype(elem.dtype)
    step.write(value + step.read(3) if step.name == "mad24" else value)


_DOT_TYPES = [[a, b] for a in ("u32", "i32") for b in ("u32", "i32")]


@known("sad")
def _sad(step: Step) -> None:
    """|a - b| + c: the distance is unsigned, so it holds the distance of any two signed numbers."""
    step.only()
    if step.kind.elem.is_float:
        raise Unknown
    a, b = step.read(1), step.read(2)
    step.write((np.maximum(a, b) - np.minimum(a, b)) + step.read(3))


@known("dp4a", "dp2a")
def _dot_of_bytes(step: Step) -> None:
    """c + sum of a's bytes (dp2a: 16-bit halves) times b's (dp2a: its ``lo`` or ``hi`` two), modulo 2**32."""
    step.only(*(("lo", "hi") if step.name == "dp2a" else ()))
    if [kind.elem.name for kind in step.kinds] not in _DOT_TYPES or (step.name == "dp2a") != bool(step.modifiers):
        raise Unknown
    (signed_a, signed_b), words = (kind.elem.kind == "int" for kind in step.kinds), Kind(U32)
    lanes = [np.ascontiguousarray(step.read(i, words))[:, None] for i in (1, 2)]
    a = lanes[0].view(f"{'i' if signed_a else 'u'}{1 if step.name == 'dp4a' else 2}")  # (lanes, 4) or (lanes, 2)
    b = lanes[1].view(f"{'i' if signed_b else 'u'}1")  # (lanes, 4)
    if step.name == "dp2a":
        b = b[:, 2:] if "hi" in step.modifiers else b[:, :2]
    total = (a.astype(np.int64) * b.astype(np.int64)).sum(1) + step.read(3, words).astype(np.int64)
    step.write((total & 0xFFFFFFFF).astype(np.uint32), words)


@known("fma")
def _fma(step: Step) -> None:
    _floating(step, "fma", 3)


@known("min", "max")
def _least(step: Step) -> None:
    """Of a NaN and a number the number, but with ``.NaN`` the NaN."""
    if not step.kind.elem.is_float:
        step.only()
        return step.write(on_lanes(step.name, step.kind.elem)(step.read(1), step.read(2)))
    step.only("ftz", "NaN")
    a, b = (step.float_inputs(step.read(i)) for i in (1, 2))
    value = on_lanes(step.name, step.kind.elem)(a, b)
    if "NaN" in step.modifiers:
        value = np.where((a != a) | (b != b), value.dtype.type(np.nan), value)
    return step.write(value)


@known("div", "rem")
def _quotient(step: Step) -> None:
    """Division by zero, undefined in PTX, gives a quotient of all ones and the dividend as remainder, as on GPUs."""
    if step.kind.elem.is_float:
        step.modifiers = [m for m in step.modifiers if m not in ("approx", "full")]
        return _floating(step, step.name, 2)
    step.only()
    a, b = step.read(1), step.read(2)
    zero = b == 0
    with np.errstate(all="ignore"):
        value = on_lanes(step.name, step.kind.elem)(a, np.where(zero, b.dtype.type(1), b))
    return step.write(np.where(zero, ~(a - a) if step.name == "div" else a, value))


@known("abs", "neg")
def _sign(step: Step) -> None:
    step.only("ftz")
    step.write(on_lanes(step.name, step.kind.elem)(step.float_inputs(step.read(1))))


_FUNCTIONS = {
    "ex2": "exp2",
    "lg2": "log2",
    "sin": "sin",
    "cos": "cos",
    "tanh": "tanh",
    "sqrt": "sqrt",
    "rsqrt": "rsqrt",
    "rcp": "rcp",
}


@known(*_FUNCTIONS)
def _function(step: Step) -> None:
    """Computed in float64 and rounded once: exact for ``sqrt.rn``, better than a GPU's ``approx``."""
    step.only("approx", *_ROUNDINGS)
    step.modifiers = [m for m in step.modifiers if m != "approx"]
    value = step.float_inputs(step.read(1))
    wide = value.astype(np.float64)
    with np.errstate(all="ignore"):
        step.write(on_lanes(_FUNCTIONS[step.name], SCALARS["f64"])(wide).astype(step.kind.elem.dtype))


# -- bits --------------------------------------------------------------------------------------------------------------


@known("and", "or", "xor")
def _logic(step: Step) -> None:
    step.only()
    step.write(on_lanes(step.name, step.kind.elem)(step.read(1), step.read(2)))


@known("not", "cnot")
def _not(step: Step) -> None:
    step.only()
    value = step.read(1)
    step.write((value == 0).astype(value.dtype) if step.name == "cnot" else ~value)


@known("shl", "shr")
def _shift(step: Step) -> None:
    """Shifts by as many bits as the register has, or more, leave zeros (copies of the sign); NumPy's are undefined."""
    step.only()
    value, by = step.read(1), step.read(2, Kind(U32))
    most = step.kind.width - 1
    inside = np.minimum(by, most).astype(value.dtype)
    shifted = value << inside if step.name == "shl" else value >> inside
    gone = value >> value.dtype.type(most) if step.name == "shr" and step.kind.elem.kind == "int" else value - value
    step.write(np.where(by > most, gone, shifted))


@known("shf")
def _funnel(step: Step) -> None:
    """32 bits of the 64 of ``high:low``: the upper ones after a shift to the left, the lower ones after one to the
    right."""
    step.only("l", "r", "wrap", "clamp")
    low, high, by = (step.read(i, Kind(U32)).astype(np.uint64) for i in (1, 2, 3))
    by = by & np.uint64(31) if "wrap" in step.modifiers else np.minimum(by, np.uint64(32))
    both = high << np.uint64(32) | low
    step.write((both << by >> np.uint64(32) if "l" in step.modifiers else both >> by).astype(np.uint32), Kind(U32))


@known("lop3")
def _lop3(step: Step) -> None:
    """Bit i of the table is the result where the bits of (a, b, c) are those of i."""
    step.only()
    a, b, c = (step.read(i) for i in (1, 2, 3))
    table = int(step.read(4, Kind(U32))[0])
    value = np.zeros_like(a)
    for i in range(8):
        if table >> i & 1:
            value |= (a if i & 4 else ~a) & (b if i & 2 else ~b) & (c if i & 1 else ~c)
    step.write(value)


@known("prmt")
def _prmt(step: Step) -> None:
    step.only()
    words = [step.read(i, Kind(U32)) for i in (1, 2, 3)]
    (word,) = Permute().simulate(step.registers.lanes, None, words)  # type: ignore[arg-type]  # it reads nothing of the op
    step.write(word, Kind(U32))


@known("popc", "clz", "brev", "bfind")
def _count(step: Step) -> None:
    """Ones (popc), zeros above the highest one (clz), the place of the highest one or -1 (bfind; of a signed number the
    highest that differs from its sign), bits in the other order (brev)."""
    step.only()
    value, width = step.read(1), step.kind.width
    if step.name == "bfind" and step.kind.elem.kind == "int":
        value = value ^ value >> value.dtype.type(width - 1)
    if step.name == "popc":
        return step.write(np.bitwise_count(value).astype(np.uint32), Kind(U32))
    bits = (value.view(f"u{width // 8}")[:, None] >> np.arange(width, dtype=f"u{width // 8}")) & 1
    if step.name == "brev":
        weights = np.arange(width, dtype=f"u{width // 8}")[::-1]
        return step.write((bits << weights).sum(1, dtype=bits.dtype))
    highest = np.where(bits.any(1), width - 1 - np.argmax(bits[:, ::-1], 1), -1)
    position = highest if step.name == "bfind" else width - 1 - highest
    return step.write(position.astype(np.int32).view(np.uint32), Kind(U32))


@known("bfe", "bfi")
def _field(step: Step) -> None:
    """``length`` bits from ``start`` on, both of 8 bits: taken out (bfe) or put in (bfi). What lies beyond the register
    is left out; 64 bits hold the fields of both widths, and shifts are kept below 64."""
    step.only()
    unsigned = Kind(SCALARS[f"u{step.kind.width}"])
    first = 2 if step.name == "bfe" else 3
    start, length = (np.minimum(step.read(first + i, Kind(U32)) & 255, 64).astype(np.uint64) for i in (0, 1))
    field = np.where(length >= 64, ~np.uint64(0), (np.uint64(1) << np.minimum(length, 63)) - np.uint64(1))
    whole = np.uint64((1 << step.kind.width) - 1)
    if step.name == "bfi":
        a, b = (step.read(i, unsigned).astype(np.uint64) for i in (1, 2))
        moved = np.where(start < 64, field << np.minimum(start, 63), 0) & whole
        return step.write((b & ~moved | (a << np.minimum(start, 63)) & moved).astype(unsigned.elem.dtype), unsigned)
    value = step.read(1, unsigned).astype(np.uint64)
    extracted = np.where(start < 64, value >> np.minimum(start, 63), 0) & field
    if step.kind.elem.kind == "int":  # filled up with the field's highest bit, at most the register's
        last = np.minimum(start + length - np.uint64(1), step.kind.width - 1)
        negative = (length > 0) & (value >> last & np.uint64(1) == 1)
        inside = np.where(start <= last, last - start + np.uint64(1), 0)  # bits of the field inside the register
        extracted |= np.where(negative & (inside < 64), ~np.uint64(0) << np.minimum(inside, 63).astype(np.uint64), 0)
    return step.write((extracted & whole).astype(unsigned.elem.dtype), unsigned)


# -- moves, conversions, predicates ------------------------------------------------------------------------------------


@known("mov")
def _mov(step: Step) -> None:
    step.only()
    if step.kinds and step.kinds[-1].width == 128:
        return _move_128_bits(step)
    return step.write(step.read(1))


def _move_128_bits(step: Step) -> None:
    """To and from two registers of 64 bits, or as they are."""
    target, source = step.operands
    bits = step.registers.packed(source) if isinstance(source, tuple) else step.registers.raw(source)
    if bits.dtype.itemsize != 16:
        raise ConstraintError(f"inline PTX: mov.b128 moves 128 bits, and {source} has {8 * bits.dtype.itemsize}")
    if not isinstance(target, tuple):
        return step.registers.store(target, bits, step.where)
    parts = np.ascontiguousarray(bits)[:, None].view(UNSIGNED[128 // len(target)])
    for i, part in enumerate(target):
        step.registers.store(part, np.ascontiguousarray(parts[:, i]), step.where)
    return None


@known("selp")
def _selp(step: Step) -> None:
    step.only()
    step.write(np.where(step.read(3, Kind(BOOL)), step.read(1), step.read(2)))


_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "lo": np.less,
    "ls": np.less_equal,
    "hi": np.greater,
    "hs": np.greater_equal,
}


@known("setp")
def _setp(step: Step) -> None:
    """One or two predicates, the second the opposite. With a NaN comparisons fail, those that end in ``u`` hold."""
    compare, *rest = step.modifiers
    step.modifiers = rest
    step.only("ftz", "and", "or", "xor")
    a, b = (step.float_inputs(step.read(i)) for i in (1, 2))
    unordered = np.isnan(a) | np.isnan(b) if step.kind.elem.is_float else np.zeros(a.shape, bool)
    if compare in ("num", "nan"):
        holds = ~unordered if compare == "num" else unordered
    elif compare in _COMPARE:
        holds = _COMPARE[compare](a, b) & ~unordered
    elif compare[:-1] in _COMPARE and compare.endswith("u"):
        holds = _COMPARE[compare[:-1]](a, b) | unordered
    else:
        raise Unknown
    logic = next((m for m in rest if m != "ftz"), None)
    combine = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}
    targets = step.operands[0]
    for token, value in zip(targets if isinstance(targets, tuple) else (targets,), (holds, ~holds), strict=False):
        joined = combine[logic](value, step.read(3, Kind(BOOL))) if logic else value
        step.registers.store(token, joined, step.where)


_TO_INTEGER = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}


@known("cvt")
def _cvt(step: Step) -> None:
    step.only("rn", "rna", "rni", "rzi", "rmi", "rpi", "ftz", "sat", "satfinite", "relu", "rz")
    if len(step.kinds) != 2:
        raise Unknown
    to, source = step.kinds
    if to.count == 2 and source.count == 1:  # cvt.rn.f16x2.f32 d, a, b: a is the upper half
        step.only("rn", "ftz", "relu", "satfinite")
        values = np.stack([step.read(2, source), step.read(1, source)], 1)
        return step.write(cast(source.elem, to.elem)(step.float_inputs(values)), to)
    if "rz" in step.modifiers and to.elem.is_float and to.elem.width < source.elem.width:
        raise Unknown
    value = step.float_inputs(step.read(1, source))
    if source.elem.is_float:
        for name, function in _TO_INTEGER.items():
            if name in step.modifiers:
                value = function(value.astype(np.float64)).astype(value.dtype)
        if to.elem.name == "f32" and "sat" in step.modifiers:
            return step.write(value.astype(np.float32), to)
    elif "sat" in step.modifiers and to.elem.is_integer:
        info = np.iinfo(to.elem.dtype)
        value = np.clip(value.astype(object), info.min, info.max).astype(to.elem.dtype)
        return step.write(value, to)
    return step.write(cast(source.elem, to.elem)(value), to)


@known("cvta")
def _cvta(step: Step) -> None:
    raise Unknown


# -- warps -------------------------------------------------------------------------------------------------------------


def _whole_warp(step: Step) -> None:
    if step.where is not None:
        raise ConstraintError(f"inline PTX: {step.name} under a predicate: put it outside, all its lanes take part")


@known("shfl")
def _shfl(step: Step) -> None:
    """The value by :class:`~tilewright.atoms.warp.Shuffle`; the optional predicate says whether the source lane was in
    range (PTX ISA, ``shfl.sync``: ``j``, ``maxLane`` and ``pval``)."""
    _whole_warp(step)
    step.only("sync", "idx", "up", "down", "bfly")
    if "sync" not in step.modifiers:
        raise Unknown
    shuffle, lanes = Shuffle(step.modifiers[-1]), step.registers.lanes
    targets = step.operands[0]
    value, offset, control, mask = step.read(1), *(step.read(i, Kind(I32)) for i in (2, 3, 4))
    operands = [value, offset, mask, control]
    (moved,) = shuffle.simulate(lanes, None, operands)  # type: ignore[arg-type]  # it reads nothing of the op
    target, *valid = targets if isinstance(targets, tuple) else (targets,)
    step.registers.write(target, moved, step.kind, None)
    if valid:
        lane, by = lanes.lane(), offset & 31
        clamp, segment = control & 31, control >> 8 & 31
        last = lane & segment | clamp & ~segment
        sources = {"up": lane - by, "down": lane + by, "bfly": lane ^ by, "idx": lane & segment | by & ~segment}
        source = sources[shuffle.kind]
        step.registers.store(valid[0], source >= last if shuffle.kind == "up" else source <= last, None)


@known("vote")
def _vote(step: Step) -> None:
    _whole_warp(step)
    step.only("sync", "any", "all", "uni", "ballot")
    kind = step.modifiers[-1]
    op = SimpleNamespace(result=SimpleNamespace(type=U32))
    operands = [step.read(1, Kind(BOOL)), step.read(2, Kind(I32))]
    (votes,) = Vote(kind).simulate(step.registers.lanes, op, operands)  # type: ignore[arg-type]  # it reads attrs alone
    step.write(votes, Kind(U32) if kind == "ballot" else Kind(BOOL))


@known("redux")
def _redux(step: Step) -> None:
    _whole_warp(step)
    step.only("sync", "add", "min", "max", "and", "or", "xor")
    operands = [step.read(1), step.read(2, Kind(I32))]
    redux = Redux(step.modifiers[-1])
    (reduced,) = redux.simulate(step.registers.lanes, None, operands)  # type: ignore[arg-type]  # it reads nothing of the op
    step.write(reduced)


@known("match")
def _match(step: Step) -> None:
    """The lanes of the mask with this lane's value (``any``), or the mask where they all have one, else 0 (``all``)."""
    _whole_warp(step)
    kind, *rest = step.modifiers
    if kind not in ("any", "all") or rest != ["sync"]:
        raise Unknown
    target = step.operands[0]
    if isinstance(target, tuple):
        raise Unknown
    values, mask = step.read(1).reshape(-1, 32), step.read(2, Kind(U32))
    of_mask = (mask.reshape(-1, 32)[:, :, None] >> np.arange(32, dtype=np.uint32) & 1).astype(bool)
    same = (values[:, :, None] == values[:, None, :]) & of_mask
    if kind == "any":
        masks = (same.astype(np.uint64) << np.arange(32, dtype=np.uint64)).sum(2).astype(np.uint32).reshape(-1)
    else:
        masks = np.where((same == of_mask).all(2).reshape(-1), mask, np.uint32(0))
    step.write(masks, Kind(U32))


@known("nanosleep")
def _sleep(step: Step) -> None:
    step.only()
    step.read(0)  # how long a thread pauses changes nothing


@known("prefetch", "prefetchu")
def _prefetch(step: Step) -> None:
    """Nothing: which cache holds a line changes no result."""


@known("createpolicy")
def _cache_policy(step: Step) -> None:
    """A hint for caches, of which the simulator has none: no program may depend on its bits."""
    step.write(np.zeros(step.registers.count, np.uint64), Kind(U64))


@known("activemask")
def _activemask(step: Step) -> None:
    active = step.registers.lanes.active().reshape(-1, 32)
    step.write(np.repeat((active.astype(np.int64) << np.arange(32)).sum(1).astype(np.uint32), 32), Kind(U32))


def act(registers: Registers, statement: Statement) -> None:
    """Do one statement. Raises :class:`Unknown` for a statement without an action."""
    where: Array | None = None
    if statement.guard:
        where = registers.read(statement.guard, Kind(BOOL))
    step = Step(registers, statement, where)
    if (action := GIVEN.get(statement.opcode)) is not None:
        return _act_as_given(step, action)
    if step.name not in ACTIONS:
        raise Unknown
    return ACTIONS[step.name](step)


def _act_as_given(step: Step, function: Callable[..., Any]) -> None:
    """Do a statement by the function that a program has given for its opcode."""
    targets = step.operands[0] if isinstance(step.operands[0], tuple) else step.operands[:1]
    sources = [part for o in step.operands[1:] for part in (o if isinstance(o, tuple) else (o,))]
    registers = step.registers
    values = [to_numbers(registers.raw(t)) if t in registers.widths else registers.read(t, step.kind) for t in sources]
    results = function(*values)
    results = results if isinstance(results, tuple) else (results,)
    for name, value in zip(targets, results, strict=True):
        step.registers.store(str(name), np.broadcast_to(np.asarray(value), (step.registers.count,)), step.where)
