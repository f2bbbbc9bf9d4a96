"""Values of a program in the registers of inline PTX, and out of them; the registers of a text."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from tilewright.atoms.ptx.inline import REGISTERS
from tilewright.atoms.ptx.text import Operand, Program, Statement, immediate, parts
from tilewright.errors import ConstraintError
from tilewright.ir.arithmetic import normalise
from tilewright.ir.builder import Builder
from tilewright.ir.core import Constant, Value
from tilewright.ir.types import BOOL, I32, I64, U8, U16, U32, U64, MemSpace, PtrType, ScalarType, Type, VecType
from tilewright.lang.device.ptx_instructions import constant_of, place_of, pointer_of, reaches, shared_place_of
from tilewright.lang.numbers.numeric import Int64, Uint16, Uint32, Uint64, wrap
from tilewright.lang.tensors.algebra import make_rmem_tensor
from tilewright.lang.tensors.pointer import Pointer
from tilewright.lang.tensors.tensor import Tensor


def bits_of(kind: Type) -> int:
    """The width of a number, or of all numbers of a vector."""
    assert isinstance(kind, (ScalarType, VecType))
    return kind.width if isinstance(kind, ScalarType) else kind.elem.width * kind.n


def into(value: Value, register: ScalarType) -> Value:
    """A value in a register of the asm text."""
    builder = Builder.current()
    if isinstance(value.type, PtrType):  # of shared memory, 32 bits say all
        value = builder.emit("ptr.toint", (value,), (I64,)).result
        return builder.cast(value, register)
    kind = value.type
    if not isinstance(kind, (ScalarType, VecType)):
        raise ConstraintError(f"inline_asm: an operand of type {kind} fits no register")
    if isinstance(kind, ScalarType) and not kind.is_float and not register.is_float and kind.width < register.width:
        return builder.cast(value, register)  # as C does with small integers
    if bits_of(kind) != register.width:
        raise ConstraintError(
            f"inline_asm: an operand of type {kind} in a register of {register.width} bits; convert it"
        )
    return builder.bitcast(value, register)


def out_of(value: Value, kind: Type) -> Value:
    """A register of the asm text as a value of the type asked for."""
    builder, register = Builder.current(), value.type
    assert isinstance(register, ScalarType)
    if isinstance(kind, ScalarType) and not kind.is_float and not register.is_float and kind.width < register.width:
        return builder.cast(value, kind)
    if bits_of(kind) != register.width:
        raise ConstraintError(f"inline_asm: a result of type {kind} from a register of {register.width} bits")
    return builder.bitcast(value, kind)


# -- the registers of one text -----------------------------------------------------------------------------------------

WIDTHS: dict[int, tuple[str, ScalarType, Any]] = {
    16: ("h", U16, Uint16),
    32: ("r", U32, Uint32),
    64: ("l", U64, Uint64),
}
"""Widths of registers: the letter of an operand of ``asm``, the type of its values, and the class of its numbers."""
_UNSIGNED = {8: U8, 16: U16, 32: U32, 64: U64}
_NAME = re.compile(r"(?<![\w$%])[A-Za-z_$][\w$]*")
_ADDRESS = re.compile(r"\[\s*([\w$]+)\s*(?:(\+|-|\+\s*-)\s*(\w+)\s*)?\]")
"""``[register + bytes]``, ``[register + -bytes]``"""


class PtxRegisters:
    """The registers of a text of inline PTX while its statements are emitted, and the values that they hold.

    ``types`` has PTX's type of each register, ``b32`` or ``pred``, ``values`` the values so far; values of
    ``of_function``, which texts of a kernel share, are in register memory. ``$0``, ``$1`` are the operands of the text.
    """

    def __init__(
        self,
        program: Program,
        outputs: Sequence[ScalarType],
        inputs: Sequence[str],
        values: Sequence[Value],
        declares_for_function: bool,
    ) -> None:
        self.types = dict(program.registers)
        self.values: dict[str, Value] = {}
        self.of_function: dict[str, Tensor] = Builder.current().ptx_registers
        self.assigned = {name for statement in program.statements for name in written(statement)}
        for i, register in enumerate(outputs):
            self.types[f"${i}"] = f"b{register.width}"
        for i, (letter, value) in enumerate(zip(inputs, values, strict=True), len(outputs)):
            register = outputs[int(letter)] if letter.isdigit() else REGISTERS[letter]
            self.types[f"${i}"] = f"b{register.width}"
            held = value if isinstance(value.type, PtrType) else into(value, register)
            self.values[f"${i}"] = held
            if letter.isdigit():  # an operand that is read and written has two names
                self.values[f"${letter}"] = held
        if declares_for_function:
            for name, kind in program.registers.items():
                if kind == "pred" or width_of(kind) not in WIDTHS:
                    raise ConstraintError(
                        f"inline PTX: a register .{kind} {name} for the whole function is not supported; registers of "
                        f"{', '.join(map(str, WIDTHS))} bits are. Declare it inside braces, with what uses it"
                    )
                self.of_function[name] = make_rmem_tensor(1, WIDTHS[width_of(kind)][2])
        for name in {n for statement in program.statements for n in names(statement)} - set(self.types):
            if name in self.of_function:
                self.types[name] = f"b{self.of_function[name].element_type.width}"

    # -- registers -----------------------------------------------------------------------------------------------------

    def declares(self, token: str, predicate: bool = False) -> bool:
        """Whether ``token`` is a register of numbers, or a predicate, or ``_``."""
        return token == "_" or token in self.types and self.is_predicate(token) is predicate

    def is_predicate(self, name: str) -> bool:
        return self.types.get(name) == "pred"

    def is_readable(self, name: str) -> bool:
        """Whether a register has a value."""
        return name in self.values or name in self.of_function

    def read(self, name: str) -> Value:
        """The value of a register; of one that holds a pointer, its address."""
        if name in self.values:
            value = self.values[name]
            if isinstance(value.type, PtrType):
                value = Builder.current().emit("ptr.toint", (value,), (I64,)).result
            return value
        if name not in self.of_function:
            raise ConstraintError(f"inline PTX: {name} is read before it is written")
        return self.of_function[name][0].ir_value()

    def assign(self, name: str, value: Value) -> None:
        """Give a register a value of its width; a predicate takes any number."""
        if name in self.of_function:
            self.of_function[name][0] = wrap(value)
        else:
            self.values[name] = Builder.current().cast(value, BOOL) if self.is_predicate(name) else value

    def write(self, token: str, value: Value) -> None:
        """Put a number's bits into a register; narrow integers are extended by their sign."""
        if token != "_":
            fits = value.type == BOOL
            self.assign(token, value if fits else lower_bits(value, _UNSIGNED[width_of(self.types[token])]))

    def operand(self, name: str) -> tuple[Value, str]:
        """A register as an operand of ``asm``: its value, and its letter. Predicates are numbers of 32 bits."""
        letter, kind, _ = self.form(name)
        return lower_bits(self.read(name), kind), letter

    def form(self, name: str) -> tuple[str, ScalarType, Any]:
        """The row of ``WIDTHS`` of a register as an operand of ``asm``."""
        return WIDTHS[32 if self.is_predicate(name) else width_of(self.types[name])]

    # -- registers or numbers in the text ------------------------------------------------------------------------------

    def is_number(self, token: Operand, kind: ScalarType) -> bool:
        """Whether ``token`` is a register of numbers, or a number of this type in the text."""
        if not isinstance(token, str):
            return False
        return not self.is_predicate(token) if token in self.types else immediate(token, kind) is not None

    def number(self, token: Operand, kind: ScalarType) -> Value:
        """The bits of a register, or a number in the text, as a number of this type."""
        if not isinstance(token, str):
            raise ConstraintError(f"inline PTX: a register is needed, not the vector {{{', '.join(token)}}}")
        if token in self.types:
            return lower_bits(self.read(token), kind)
        number = immediate(token, kind)
        if number is None:
            raise ConstraintError(f"inline PTX: {token!r} is neither a declared register nor a number")
        return Constant(kind, normalise(kind, number))

    def constant(self, token: Operand) -> int | None:
        """The number of a register or in the text, if it is known while staging."""
        if not isinstance(token, str):
            return None
        if token in self.types:
            return constant_of(self.values[token]) if token in self.values else None
        number = immediate(token, I64)
        return number if isinstance(number, int) else None

    # -- addresses -----------------------------------------------------------------------------------------------------

    def reaches(self, token: Operand, space: str | None) -> bool:
        """Whether ``[register + bytes]`` was made from a pointer to a state space, and no statement changes the
        register."""
        match = _ADDRESS.fullmatch(str(token))
        if match is None or _offset(match) is None or match[1] not in self.values or match[1] in self.assigned:
            return False
        return reaches(self.values[match[1]], space)

    def place(self, token: Operand, element: ScalarType, space: str | None, align: int) -> Pointer:
        """The pointer of an address which :meth:`reaches` the space, to elements of this type."""
        match = _ADDRESS.fullmatch(str(token))
        assert match is not None
        return place_of(self.values[match[1]], element, align, _offset(match) or 0)

    def shared_place(self, token: Operand) -> tuple[Pointer, Value | None] | None:
        """The pointer to shared memory of the own block at ``[register]``, and the rank of the block of the cluster
        that is meant (None: its own); None where that is not known."""
        match = _ADDRESS.fullmatch(str(token))
        if match is None or match[2] or match[1] not in self.values:
            return None
        return shared_place_of(self.values[match[1]])

    def shared_pointer(self, token: Operand) -> Pointer:
        """The pointer to shared memory that ``[register]`` was made from, as one to an mbarrier."""
        name = str(token).strip("[] ")
        pointer = pointer_of(self.values[name]) if name in self.values else None
        if pointer is None or not isinstance(pointer.type, PtrType) or pointer.type.space is not MemSpace.SMEM:
            raise ConstraintError(f"inline PTX: {token} is not the address of a pointer to shared memory")
        return Pointer(pointer, Int64)

    def tensor_memory_address(self, token: Operand) -> Value:
        """``[register + number]`` as an address of tensor memory."""
        name, _, offset = str(token).strip("[]").partition("+")
        address = wrap(self.number(name.strip(), I32))
        return (address + int(offset, 0)).ir_value() if offset.strip() else address.ir_value()


def lower_bits(value: Value, kind: ScalarType) -> Value:
    """The lower bits of a register as a number of this type."""
    builder, source = Builder.current(), value.type
    assert isinstance(source, ScalarType)
    if source.is_float:
        value = builder.bitcast(value, _UNSIGNED[source.width])
    if not kind.is_float:
        return builder.cast(value, kind)
    return builder.bitcast(builder.cast(value, _UNSIGNED[kind.width]), kind)


def width_of(kind: str) -> int:
    """The width of PTX's type of a register: 32 of ``b32`` and of ``f16x2``."""
    return math.prod(map(int, kind.lstrip("bsuf").split("x")))


def names(statement: Statement) -> list[str]:
    """The registers that a statement names, and what is written like one."""
    tokens = [statement.guard, *(part for operand in statement.operands for part in parts(operand))]
    return [name for token in tokens for name in _NAME.findall(token)]


def renamed(text: str, new_names: Mapping[str, str]) -> str:
    """A text with other names for its registers."""
    return _NAME.sub(lambda name: new_names.get(name[0], name[0]), text)


def written(statement: Statement) -> list[str]:
    """The registers that a statement writes, and for one that writes none its first operand."""
    if statement.opcode.split(".")[0] in ("bar", "barrier") or statement.opcode.startswith("tcgen05.dealloc"):
        return []
    return [part for part in parts(statement.operands[0]) if part != "_"] if statement.operands else []


def _offset(address: re.Match[str]) -> int | None:
    """The bytes of ``[register + bytes]``; None where they are not a number in the text."""
    number = immediate(address[3] or "0", U32)
    return None if number is None else int(number) * (-1 if "-" in (address[2] or "") else 1)
