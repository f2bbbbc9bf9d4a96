"""The universal copy: 8 to 128 bits between any two memory spaces, registers included, optionally predicated; 256 bits
between global memory and registers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from tilewright.atoms.copy import (
    ANY_SPACE,
    VECTOR_TYPES,
    CopyInstruction,
    OneThreadCopy,
    check_fragment,
    check_pointer,
    check_width,
    combine,
    is_vector,
    split_operands,
)
from tilewright.errors import ConstraintError
from tilewright.ir.computed import computed, computed_once
from tilewright.ir.core import Constant, Op, Value
from tilewright.ir.effects import Access
from tilewright.ir.instruction import Emitter, Lanes
from tilewright.ir.types import MemSpace, PtrType, ScalarType, element_of
from tilewright.layout import Layout


@dataclass(frozen=True, repr=False)
class UniversalCopy(OneThreadCopy):
    """One load, store or both of ``bits`` contiguous bits by one thread.

    ``auto`` marks the copy whose width was left open: ``cute.copy`` then picks the widest that the layouts and the
    alignment allow, up to 128. 256 bits are one access on sm_100 and later, two before.

    One op stands for several repetitions, in one of two forms. With the attribute ``registers`` its operands are a
    fragment and a pointer for each repetition: ``registers`` are the fragment's elements of each, ``store`` says that
    they are written to memory. Without it the operands are as many source pointers as target pointers. A predicate for
    each repetition may follow.

    >>> UniversalCopy(128).src_bits, UniversalCopy(128)
    ((1,128):(0,1), UniversalCopy<uint128_t>)
    """

    bits: int
    auto: bool = False

    name = "copy"
    widths = tuple(VECTOR_TYPES)
    splits = True

    @computed_once
    def accesses(self) -> tuple[Access, ...]:
        spaces = ANY_SPACE if self.bits <= 128 else (MemSpace.GMEM, MemSpace.RMEM)
        source = Access("read", "source", spaces, bits=self.bits)
        return source, replace(source, does="write", role="destination")

    def __post_init__(self) -> None:
        if self.bits not in VECTOR_TYPES:
            raise ConstraintError(
                f"a copy moves 8, 16, 32, 64, 128 or 256 bits at a time, not {self.bits}: set num_bits_per_copy to one"
            )

    @property
    def direction(self) -> str:
        return super().direction if self.bits <= 128 else "global memory to registers or back"

    @property
    def cute_name(self) -> str:
        return f"UniversalCopy<uint{self.bits}_t>"

    def mnemonic(self) -> str:
        return f"copy.b{self.bits}"

    def verify(self, op: Op) -> None:
        first, second, _ = split_operands(op, op.operands)
        fix = (
            f"use num_bits_per_copy <= the known alignment, or state it (cute.assume, "
            f"from_dlpack(assumed_align={self.bits // 8}), make_ptr(assumed_align={self.bits // 8}))"
        )
        if "registers" in op.attrs:
            fragment = check_fragment(self, op, self.bits)
            access = self.destination if op.attrs["store"] else self.source
            for pointer in second:
                check_width(self, fragment.elem, check_pointer(self, access, pointer, fix).elem)
            return
        for source, target in zip(first, second, strict=True):
            a = check_pointer(self, self.source, source, fix)
            b = check_pointer(self, self.destination, target, fix)
            check_width(self, a.elem, b.elem)

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        first, second, predicates = split_operands(op, operands)
        if "registers" not in op.attrs:
            n = self.bits // (8 * element_of(op.operands[0].type).bytes)
            for source, target, predicate in zip(first, second, predicates, strict=True):
                mask = combine(lanes, predicate)
                lanes.store(target, lanes.load(source, n, mask), mask)
            return ()
        # One mask for one predicate, so that equal masks are one array.
        combined = {key: combine(lanes, predicate) for key, predicate in {id(p): p for p in predicates}.items()}
        masks = [combined[id(predicate)] for predicate in predicates]
        lanes.move(first[0], op.attrs["registers"], second, masks, op.attrs["store"])
        return ()

    def emit(self, out: Emitter, op: Op) -> None:
        first, second, predicates = split_operands(op, op.operands)
        if "registers" not in op.attrs:
            for source, target, predicate in zip(first, second, predicates, strict=True):
                text = f"{_wide(self.bits, out.value(target))} = {_wide(self.bits, out.value(source), 'const')};"
                _guarded(out, predicate, [text])
            return
        for registers, pointer, predicate in zip(op.attrs["registers"], second, predicates, strict=True):
            if predicate is not None and not isinstance(predicate, Constant) and self._predicates(registers, pointer):
                register, memory = f"&{out.value(first[0])}[{registers[0]}]", out.value(pointer)
                what, where = ("store", (memory, register)) if op.attrs["store"] else ("load", (register, memory))
                out.line(f"tw::{what}_if<{self.bits // 8}>({out.value(predicate)}, {', '.join(where)});")
            else:
                _guarded(out, predicate, self._register_lines(out, first[0], registers, pointer, op.attrs["store"]))

    def _predicates(self, registers: tuple[int, ...], pointer: Value) -> bool:
        """Whether the access is one predicated instruction: branches around hundreds of copies cost compile time."""
        in_global = isinstance(pointer.type, PtrType) and pointer.type.space == MemSpace.GMEM
        return in_global and self.bits in (16, 32, 64, 128) and is_vector(registers)

    def _register_lines(
        self, out: Emitter, fragment: Value, registers: tuple[int, ...], pointer: Value, store: bool
    ) -> list[str]:
        name, elem = out.value(fragment), element_of(fragment.type)
        memory = _wide(self.bits, out.value(pointer), "" if store else "const")
        if is_vector(registers):
            register = _wide(self.bits, f"&{name}[{registers[0]}]", "const" if store else "")
            return [f"{memory} = {register};" if store else f"{register} = {memory};"]
        parts = out.name("parts")
        declare = f"alignas({self.bits // 8}) {elem.cuda} {parts}[{len(registers)}]"
        if store:
            values = ", ".join(f"{name}[{r}]" for r in registers)
            return [f"{declare} = {{{values}}};", f"{memory} = {_wide(self.bits, parts, 'const')};"]
        moves = " ".join(f"{name}[{r}] = {parts}[{i}];" for i, r in enumerate(registers))
        return [f"{declare};", f"{_wide(self.bits, parts)} = {memory};", moves]


def _wide(bits: int, pointer: str, qualifier: str = "") -> str:
    kind = f"{VECTOR_TYPES[bits]} {qualifier}".strip()
    return f"*reinterpret_cast<{kind}*>({pointer})"


def _guarded(out: Emitter, predicate: Value | None, lines: list[str]) -> None:
    if isinstance(predicate, Constant):
        if not predicate.value:
            return
        predicate = None
    if predicate is not None:
        with out.block(f"if ({out.value(predicate)})"):
            for line in lines:
                out.line(line)
    elif len(lines) > 1:
        with out.block():
            for line in lines:
                out.line(line)
    else:
        out.line(lines[0])


@dataclass(frozen=True, repr=False)
class AutoVectorCopy(UniversalCopy):
    """The universal copy before its element type is set: one value of any type, vectorised up to ``bits``."""

    auto: bool = True

    @computed
    def src_bits(self) -> Layout:
        return Layout((1, 1), (0, 0))

    @property
    def cute_name(self) -> str:
        return f"AutoVectorizingCopyWithAssumedAlignment<{self.bits}>"

    def copy_instruction(self, value_type: ScalarType, num_bits: int = 0) -> CopyInstruction:
        return UniversalCopy(num_bits or max(8, value_type.width), auto=not num_bits)
