"""Inline PTX that is an instruction of the language: it becomes that instruction, which the checker follows."""

from __future__ import annotations

import re
from typing import Any

from tilewright.atoms.cluster import Mapa, StoreAsync
from tilewright.atoms.ptx.inline import InlinePtx
from tilewright.ir.builder import Builder
from tilewright.ir.core import Constant, Value
from tilewright.ir.types import I32, U8, U32, U64, MemSpace, PtrType, ScalarType
from tilewright.lang.numbers.numeric import Int32, Int64, Uint8, class_of, wrap
from tilewright.lang.tensors.pointer import Pointer

_MAPA = re.compile(r"\s*mapa\.shared::cluster\.u32\s+\$0,\s*\$1,\s*\$2;\s*")
_STORE = re.compile(
    r"\s*st\.async(?:\.weak)?\.shared::cluster\.mbarrier::complete_tx::bytes\.[bsuf](?:32|64)\s+"
    r"\[\$0\],\s*\$1,\s*\[\$2\];\s*"
)
_VECTOR = re.compile(
    r"\s*\{\s*\.reg \.v4 \.([bsuf]32) (\w+);\s*mov\.\1 \2\.x, \$2;\s*mov\.\1 \2\.y, \$3;\s*mov\.\1 \2\.z, \$4;\s*"
    r"mov\.\1 \2\.w, \$5;\s*st\.async(?:\.weak)?\.shared::cluster\.mbarrier::complete_tx::bytes\.v4\.\1\s+"
    r"\[\$0\],\s*\2,\s*\[\$1\];\s*\}\s*"
)


def reaches(address: Value, space: str | None) -> bool:
    """Whether ``address`` was made from a pointer to a state space of PTX; None is the generic one."""
    base, _ = _base(address)
    if _mapped(base)[0] is not None:
        return space == "shared::cluster"
    pointer = pointer_of(base)
    return (
        pointer is not None and isinstance(pointer.type, PtrType) and pointer.type.space in _SPACES[space or "generic"]
    )


def place_of(address: Value, element: ScalarType, align: int, offset: int = 0) -> Pointer:
    """The pointer that an ``address`` which :func:`reaches` a space was made from, ``offset`` bytes on, to an
    ``element``; PTX asks for the alignment, and runs are checked."""
    builder = Builder.current()
    base, added = _base(address)
    mapped, rank = _mapped(base)
    place: Value | None
    if mapped is not None:
        assert isinstance(mapped.type, PtrType)
        kind = PtrType(mapped.type.elem, MemSpace.DSMEM, mapped.type.align)
        place = builder.call(Mapa(), [mapped, builder.cast(rank, I32)], (kind,))[0]
    else:
        place = pointer_of(base)
    assert place is not None and isinstance(place.type, PtrType)
    space = place.type.space
    if added or offset:
        bytes_ = builder.emit("ptr.cast", (place,), (PtrType(U8, space, place.type.align),)).result
        place = (Pointer(bytes_, Uint8) + sum(map(_signed, added), Int32(offset))).value()
    kind = PtrType(element, space, align)
    if place.type != kind:
        place = builder.emit("ptr.cast", (place,), (kind,)).result
    return Pointer(place, class_of(element))


def _signed(number: Value) -> Any:
    """What is added to an address, as a signed number of as many bits: addresses count modulo 2 to this power, so that
    a large number without sign goes backwards."""
    if number.type in (U32, U64):
        return (Int32 if number.type == U32 else Int64)(wrap(number))
    return wrap(number)


def shared_place_of(address: Value) -> tuple[Pointer, Value | None] | None:
    """The pointer to shared memory of the own block that ``address`` was made from, and the rank of the block that it
    was mapped to (None: its own); None where that is not known."""
    mapped, rank = _mapped(address)
    pointer = mapped if mapped is not None else pointer_of(address)
    if pointer is None or not isinstance(pointer.type, PtrType) or pointer.type.space is not MemSpace.SMEM:
        return None
    return Pointer(pointer, Int64), rank


_SPACES: dict[str, tuple[MemSpace, ...]] = {
    "generic": (MemSpace.GMEM, MemSpace.GENERIC),
    "global": (MemSpace.GMEM, MemSpace.GENERIC),
    "shared": (MemSpace.SMEM,),
    "shared::cta": (MemSpace.SMEM,),
    "shared::cluster": (MemSpace.SMEM, MemSpace.DSMEM),
}
"""The memories that a statement with a state space may reach."""


def as_instruction(text: str, values: list[Any]) -> bool:
    """Whether ``text`` was emitted as instructions: ``st.async`` of one number, or of four at once, to addresses that
    ``mapa`` made from pointers. Four numbers are stored one by one; their bytes still count."""
    if _STORE.fullmatch(text) is not None:
        to, number, barrier = values
        return _store([number], to, barrier)
    if _VECTOR.fullmatch(text) is not None:
        to, barrier, *numbers = values
        return _store(numbers, to, barrier)
    return False


def pointer_of(address: Value) -> Value | None:
    """The pointer that ``address`` is, or was made from."""
    source = _source(address)
    if source.op is not None and source.op.opcode == "ptr.toint":
        source = source.op.operands[0]
    return source if isinstance(source.type, PtrType) else None


def _base(address: Value) -> tuple[Value, list[Value]]:
    """The address to which ``address`` adds numbers of bytes, and these numbers: the address is the one that is made
    of a pointer."""
    source = _source(address)
    if source.op is None or source.op.opcode != "add":
        return source, []
    for one, other in (source.op.operands, reversed(source.op.operands)):
        base, offset = _base(one)
        if pointer_of(base) is not None or _mapped(base)[0] is not None:
            return base, [*offset, other]
    return source, []


def _store(numbers: list[Value], to: Value, at: Value) -> bool:
    """Store ``numbers`` from the address ``to`` on, with their bytes at the mbarrier ``at``, if both are mapped."""
    (pointer, rank), (barrier, other) = _mapped(to), _mapped(at)
    kinds = {value.type for value in numbers}
    if pointer is None or barrier is None or not same_number(rank, other) or len(kinds) > 1:
        return False
    builder, kind = Builder.current(), kinds.pop()
    assert isinstance(pointer.type, PtrType)
    if not isinstance(kind, ScalarType):
        return False
    if pointer.type.elem != kind:
        pointer = builder.emit("ptr.cast", (pointer,), (PtrType(kind, pointer.type.space, pointer.type.align),)).result
    first = Pointer(pointer, class_of(kind))
    for i, number in enumerate(numbers):
        builder.call(StoreAsync(), [(first + i).value(), barrier, number, builder.cast(rank, I32)], ())
    return True


def _mapped(address: Any) -> tuple[Any, Any]:
    """The pointer into the block's own shared memory and the rank that ``address`` was made from, else (None, None)."""
    op = _source(address).op
    if op is not None and op.opcode == "ptr.toint":
        op = op.operands[0].op
    if op is None or op.opcode != "call":
        return None, None
    atom = op.attrs["atom"]
    if isinstance(atom, Mapa):
        return op.operands[0], op.operands[1]
    if not isinstance(atom, InlinePtx) or _MAPA.fullmatch(atom.text) is None:
        return None, None
    made = _source(op.operands[0]).op
    own = made.operands[0] if made is not None and made.opcode == "ptr.toint" else None
    if own is None or not isinstance(own.type, PtrType) or own.type.space is not MemSpace.SMEM:
        return None, None
    return own, _source(op.operands[1])


def constant_of(value: Value) -> int | None:
    """The number, if it is known while staging."""
    source = _source(value)
    return int(source.value) if isinstance(source, Constant) else None


def _source(value: Any) -> Value:
    """The number of which ``value`` has the lower bits."""
    while value.op is not None and value.op.opcode in ("cast", "bitcast"):
        value = value.op.operands[0]
    return value


def same_number(a: Value, b: Value) -> bool:
    """Whether both are one value of the program, or the same constant."""
    a, b = _source(a), _source(b)
    return a is b or isinstance(a, Constant) and isinstance(b, Constant) and a.value == b.value
