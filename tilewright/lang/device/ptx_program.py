"""Inline PTX that reaches memory, at which threads meet, with instructions of ``tcgen05``, or with a loop that waits
for an mbarrier, taken apart: these statements become operations of the language, which the simulator and its checks
follow (:mod:`.ptx_memory` has those of memory); what computes registers between them stays PTX.

Registers that a text declares outside of braces belong to the function: other texts of the kernel name them, too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from tilewright.atoms.ptx import carries
from tilewright.atoms.ptx.inline import REGISTERS, InlinePtx
from tilewright.atoms.ptx.step import ACTIONS
from tilewright.atoms.ptx.text import Operand, Program, Statement, immediate, parse, parts
from tilewright.atoms.tcgen05_described import DescribedCopy, DescribedMma
from tilewright.atoms.tcgen05_validity import instruction_k
from tilewright.atoms.tensor_memory_shift import TmemShift
from tilewright.errors import ConstraintError
from tilewright.ir.arithmetic import normalise
from tilewright.ir.builder import Builder
from tilewright.ir.core import Constant, Value
from tilewright.ir.types import BOOL, I32, I64, U8, U16, U32, U64, MemSpace, PtrType, ScalarType
from tilewright.lang.device import mbarriers, ptx_memory
from tilewright.lang.device.ptx_instructions import constant_of, place_of, pointer_of, reaches, shared_place_of
from tilewright.lang.device.ptx_registers import into
from tilewright.lang.device.tensor_memory import (
    alloc_tmem,
    dealloc_tmem,
    fence_view_async_tmem_load,
    fence_view_async_tmem_store,
    relinquish_tmem_alloc_permit,
    tcgen05_commit,
    tcgen05_fence_after_thread_sync,
    tcgen05_fence_before_thread_sync,
)
from tilewright.lang.device.warps import elected
from tilewright.lang.numbers.numeric import Int16, Int32, Int64, Uint16, Uint32, Uint64, wrap
from tilewright.lang.staging.with_block import only_if
from tilewright.lang.tensors.algebra import make_rmem_tensor
from tilewright.lang.tensors.pointer import Pointer
from tilewright.lang.tensors.tensor import Tensor
from tilewright.lang.tensors.tensor_memory import TensorMemory

_LOOP = re.compile(
    r"(?P<loop>\w+):\s*mbarrier\.(?:try|test)_wait\.parity[.\w:]*\s+(?P<done>\w+),\s*(?P<place>\[[^]]+\]),\s*"
    r"(?P<parity>[\w$]+)(?:,\s*\w+)?;\s*@(?P=done)\s+bra(?:\.uni)?\s+(?P<end>\w+);\s*bra(?:\.uni)?\s+(?P=loop);\s*"
    r"(?P=end):"
)
"""A loop until the phase is over."""
WAIT = "mbarrier.wait.parity"
"""What stands for it here."""
_CANDIDATE = re.compile(
    r"tcgen05\.|\b(?:ld|st|atom|red|bar|barrier|mbarrier|fence|membar|griddepcontrol|setmaxnreg|elect|cp\.async|cp\.reduce|ldmatrix|stmatrix|mma\.sync)\b"
)
_PLACE = re.compile(r"\[\s*([\w$]+)\s*(?:(\+|-|\+\s*-)\s*(\w+)\s*)?\]")
"""``[register + bytes]``, ``[register + -bytes]``"""
_WITHOUT_RESULTS = {"nanosleep", "prefetch", "prefetchu"}
_OF_WARPS = ("shfl", "vote", "redux", "activemask")
_UNSIGNED = {8: U8, 16: U16, 32: U32, 64: U64}
_EFFECT = re.compile(r"tcgen05\.|mbarrier\.wait\.parity|elect\.sync")
_MMA = re.compile(
    r"tcgen05\.mma(?P<ws>\.ws)?(?P<sparse>\.sp)?\.cta_group::(?P<ctas>[12])\.kind::(?P<kind>\w+)"
    r"(?P<scaled>\.block_scale(?:\.scale_vec::(?P<factors>[124])X|\.block(?P<elements>16|32))?)?"
    r"(?:\.collector::(?P<collector>\w+::\w+))?"
)
_COMMIT = re.compile(
    r"tcgen05\.commit\.cta_group::([12])\.mbarrier::arrive::one(?:\.shared::cluster)?(\.multicast::cluster)?\.b64"
)
_SHIFT = re.compile(r"tcgen05\.shift\.(?:down\.)?cta_group::([12])(?:\.down)?")
_COLUMNS = re.compile(
    r"tcgen05\.(?P<does>alloc|dealloc|relinquish_alloc_permit)\.cta_group::(?P<ctas>[12])\.sync\.aligned"
    r"(?:\.shared::cta)?(?:\.b32)?"
)
_TO_TENSOR_MEMORY = re.compile(
    r"tcgen05\.cp\.cta_group::(?P<ctas>[12])\.(?P<shape>\d+x\d+b(?:\.warpx[24](?:::\d+_\d+)?)?)"
    r"(?:\.b8x16\.(?P<format>\w+))?"
)
_PLAIN = {
    "tcgen05.fence::before_thread_sync": tcgen05_fence_before_thread_sync,
    "tcgen05.fence::after_thread_sync": tcgen05_fence_after_thread_sync,
    "tcgen05.wait::ld.sync.aligned": fence_view_async_tmem_load,
    "tcgen05.wait::st.sync.aligned": fence_view_async_tmem_store,
}
_NAME = re.compile(r"(?<![\w$%])[A-Za-z_$][\w$]*")
_WIDTHS: dict[int, tuple[str, ScalarType, Any]] = {
    16: ("h", U16, Uint16),
    32: ("r", U32, Uint32),
    64: ("l", U64, Uint64),
}


def taken_apart(
    text: str, outputs: Sequence[str], inputs: Sequence[str], values: Sequence[Value]
) -> Sequence[Value] | None:
    """The results of a text that was emitted as operations: one that has such a statement, or declares registers of
    the function. None for a text that stays PTX, because it has none, or one that cannot be followed."""
    own = not text.lstrip().startswith(".reg")
    plain = _LOOP.sub(rf"{WAIT} \g<place>, \g<parity>;", text)
    if outputs and not own or re.search(r"\bbra\b|\w+:\s", plain) or "q" in (*outputs, *inputs):
        return None
    if own and not _CANDIDATE.search(plain):
        return None
    program = parse(plain)
    found = _Text(program, outputs, inputs, values, own)
    if own and not found.can_be_emitted():
        return None
    return found.emit()


class _Text:
    """One text in a kernel. ``own``: its registers are its own, not the function's."""

    def __init__(
        self, program: Program, outputs: Sequence[str], inputs: Sequence[str], values: Sequence[Value], own: bool
    ) -> None:
        self.statements, self.widths = program.statements, dict(program.registers)
        self.outputs = [REGISTERS[letter] for letter in outputs]
        self.values: dict[str, Value] = {}
        self.run: list[Statement] = []
        for i, register in enumerate(self.outputs):
            self.widths[f"${i}"] = f"b{register.width}"
        for i, (letter, value) in enumerate(zip(inputs, values, strict=True), len(outputs)):
            register = self.outputs[int(letter)] if letter.isdigit() else REGISTERS[letter]
            self.widths[f"${i}"] = f"b{register.width}"
            for name in (f"${i}", f"${letter}")[: 1 + letter.isdigit()]:
                self.values[name] = value if isinstance(value.type, PtrType) else into(value, register)
        self.shared: dict[str, Tensor] = Builder.current().ptx_registers
        if not own:
            for name, kind in program.registers.items():
                self.shared[name] = make_rmem_tensor(1, _WIDTHS[_bits(kind)][2])
        for name in {n for s in self.statements for n in _names(s)} - set(self.widths):
            if name in self.shared:
                self.widths[name] = f"b{self.shared[name].element_type.width}"

    def can_be_emitted(self) -> bool:
        """Whether a statement is an operation, all that are of such a kind can be followed, and the others compute
        registers."""
        kinds = [True if _EFFECT.match(s.opcode) else ptx_memory.follows(s, self) for s in self.statements]
        for statement, kind in zip(self.statements, kinds, strict=True):
            if kind is None and statement.opcode.split(".")[0] not in ACTIONS.keys() - _WITHOUT_RESULTS:
                return False
            if kind and statement.guard and any(self.widths.get(n) == "pred" for n in _written(statement)):
                return False
            if self.outputs and statement.opcode.startswith("tcgen05."):
                return False
        if carries.last_over([s.opcode for s in self.statements], [kind is True for kind in kinds]):
            return False
        known = all(kind == "pred" or _bits(kind) in _WIDTHS for kind in self.widths.values())
        return known and True in kinds and False not in kinds

    def emit(self) -> Sequence[Value]:
        """Emit the text, and give its results, in registers of their letters."""
        for i, statement in enumerate(self.statements):
            if _EFFECT.match(statement.opcode) or ptx_memory.follows(statement, self):
                self._flush(self.statements[i:])
                self._effect(statement)
            else:
                self.run.append(statement)
        self._flush(())
        return [Builder.current().bitcast(self._value(f"${i}"), kind) for i, kind in enumerate(self.outputs)]

    # -- runs of statements that compute registers ---------------------------------------------------------------------

    def _flush(self, rest: Sequence[Statement]) -> None:
        """Emit the run as one piece of PTX, whose results are what is read behind it."""
        run, self.run = self.run, []
        if not run:
            return
        written = list(dict.fromkeys(n for s in run for n in _written(s)))
        later = {n for s in rest for n in _names(s)}
        asked = {f"${i}" for i in range(len(self.outputs))}
        results = [n for n in written if n in later or n in self.shared or n in asked]
        operands = [n for n in dict.fromkeys(n for s in run for n in _names(s)) if n in self.widths and self._known(n)]
        local = {n: f"r{i}" for i, n in enumerate(dict.fromkeys([*operands, *written]))}
        letters, lines = [], [f".reg .{self.widths[n]} {local[n]};" for n in local]
        values = []
        for i, name in enumerate(operands, len(results)):
            value, letter = self._operand(name)
            values.append(value)
            letters.append(letter)
            lines.append(self._move(local[name], f"${i}", name, into=True))
        lines += [_NAME.sub(lambda m: local.get(m[0], m[0]), _written_out(s)) for s in run]
        lines += [self._move(local[name], f"${i}", name, into=False) for i, name in enumerate(results)]
        kinds = [_WIDTHS[32 if self.widths[n] == "pred" else _bits(self.widths[n])] for n in results]
        together = any(s.opcode.split(".")[0] in _OF_WARPS for s in run)
        atom = InlinePtx(f"{{ {' '.join(lines)} }}", tuple(k[0] for k in kinds), tuple(letters), together)
        made = Builder.current().call(atom, values, tuple(k[1] for k in kinds))
        for name, value in zip(results, made, strict=True):
            self._store(name, value)

    def _move(self, local: str, place: str, name: str, into: bool) -> str:
        """Between an operand of the piece and a register of it; predicates travel as numbers."""
        kind = self.widths[name]
        if kind == "pred":
            return f"setp.ne.b32 {local}, {place}, 0;" if into else f"selp.b32 {place}, 1, 0, {local};"
        kind = f"b{_bits(kind)}"
        return f"mov.{kind} {local}, {place};" if into else f"mov.{kind} {place}, {local};"

    def _known(self, name: str) -> bool:
        return name in self.values or name in self.shared

    def _operand(self, name: str) -> tuple[Value, str]:
        """A register's value in a register of its width, and the letter of that."""
        kind = self.widths[name]
        letter, type_, _ = _WIDTHS[32 if kind == "pred" else _bits(kind)]
        return self._as(self._value(name), type_), letter

    def _as(self, value: Value, kind: ScalarType) -> Value:
        """The lower bits of a register as a number of this type."""
        builder, found = Builder.current(), value.type
        assert isinstance(found, ScalarType)
        if found.is_float:
            value, found = builder.bitcast(value, _UNSIGNED[found.width]), _UNSIGNED[found.width]
        if not kind.is_float:
            return builder.cast(value, kind)
        return builder.bitcast(builder.cast(value, _UNSIGNED[kind.width]), kind)

    def _value(self, name: str) -> Value:
        if name in self.values:
            found = self.values[name]
            if isinstance(found.type, PtrType):
                found = Builder.current().emit("ptr.toint", (found,), (I64,)).result
            return found
        if name not in self.shared:
            raise ConstraintError(f"inline PTX: {name} is read before it is written")
        return self.shared[name][0].ir_value()

    def _store(self, name: str, value: Value) -> None:
        if name in self.shared:
            self.shared[name][0] = wrap(value)
        else:
            self.values[name] = Builder.current().cast(value, BOOL) if self.widths[name] == "pred" else value

    # -- instructions --------------------------------------------------------------------------------------------------

    def _effect(self, statement: Statement) -> None:
        opcode, operands = statement.opcode, statement.operands
        if opcode.startswith("elect.sync"):
            target = operands[0]
            self._store(target[-1] if isinstance(target, tuple) else target, elected().ir_value())
            return
        if not statement.guard:
            return self._instruction(opcode, operands)
        condition = self.number(statement.guard.lstrip("!"), BOOL)
        if statement.guard.startswith("!"):
            condition = Builder.current().emit("xor", (condition, Constant(BOOL, True)), (BOOL,)).result
        written = [n for n in _written(statement) if n in self.widths]
        cells = {n: make_rmem_tensor(1, _WIDTHS[_bits(self.widths[n])][2]) for n in written}
        for name, cell in cells.items():  # where the guard is false, a register stays as it was
            cell[0] = wrap(self._value(name)) if self._known(name) else 0
        with only_if(condition, "guard of an instruction"):
            self._instruction(opcode, operands)
            for name, cell in cells.items():
                cell[0] = wrap(self._value(name))
        for name, cell in cells.items():
            self._store(name, cell[0].ir_value())

    def _instruction(self, opcode: str, operands: tuple[Operand, ...]) -> None:
        if opcode == WAIT:
            mbarriers.mbarrier_wait(self._pointer(operands[0]), wrap(self.number(operands[1], I32)))
        elif opcode in _PLAIN:
            _PLAIN[opcode]()
        elif (mma := _MMA.fullmatch(opcode)) is not None:
            self._mma(mma, operands)
        elif (commit := _COMMIT.fullmatch(opcode)) is not None:
            mask = Int16(wrap(self.number(operands[1], I32))) if commit[2] else None
            tcgen05_commit(self._pointer(operands[0]), mask, int(commit[1]))
        elif (shift := _SHIFT.fullmatch(opcode)) is not None:
            Builder.current().call(TmemShift(int(shift[1])), [self._address(operands[0])], ())
        elif (columns := _COLUMNS.fullmatch(opcode)) is not None:
            self._columns(columns["does"], columns["ctas"] == "2", operands)
        elif (copy := _TO_TENSOR_MEMORY.fullmatch(opcode)) is not None:
            made = DescribedCopy(copy["shape"], int(copy["ctas"]), copy["format"] or "")
            Builder.current().call(made, [self._address(operands[0]), self.number(operands[1], I64)], ())
        elif ptx_memory.follows(statement := Statement(opcode, operands), self):
            ptx_memory.emit(statement, self)
        else:
            raise ConstraintError(f"inline PTX: {opcode} is not here yet")

    def _columns(self, does: str, pair: bool, operands: tuple[Operand, ...]) -> None:
        """Allocate columns of tensor memory, free them, or say that there will be no more."""
        if does == "relinquish_alloc_permit":
            return relinquish_tmem_alloc_permit(pair)
        place, number = operands
        known = self.constant(number)
        columns = wrap(self.number(number, I32)) if known is None else known
        if does == "alloc":
            return alloc_tmem(columns, Pointer(self._pointer(place).value(), Int32), pair)
        return dealloc_tmem(TensorMemory(wrap(self.number(place, I32)), Int32), columns, pair)

    def _mma(self, found: re.Match[str], operands: tuple[Operand, ...]) -> None:
        d, a, b, *rest = operands
        places = [rest.pop(0)] if found["sparse"] else []
        word, *rest = rest
        if found["scaled"]:
            places += [rest.pop(0), rest.pop(0)]
        lanes = rest.pop(0) if rest and isinstance(rest[0], tuple) else ()
        keep, *masks = rest
        scale = masks.pop() if masks and not found["ws"] else "0"
        if len(masks) > bool(found["ws"]) or not isinstance(keep, str) or not str(scale).isdecimal():
            raise ConstraintError(
                "inline PTX: behind the instruction descriptor tcgen05.mma takes the lanes of D to leave alone, "
                "whether it adds to D, and a scale of D, a number; .ws a zero-column mask instead"
            )
        kind, source = found["kind"], "TS" if str(a).startswith("[") else "SS"
        factors, elements = int(found["factors"] or 0), int(found["elements"] or 0)
        if found["scaled"] and not factors and not elements:
            factors = instruction_k(kind) // 32
        mma = DescribedMma(
            kind,
            int(found["ctas"]),
            source,
            factors,
            bool(found["sparse"]),
            bool(found["ws"]),
            bool(masks),
            found["collector"] or "",
            elements,
            len(lanes),
            int(str(scale)),
        )
        left = self._address(a) if source == "TS" else self.number(a, I64)
        values = [self._address(d), left, self.number(b, I64), self.number(word, I32), self.number(keep, BOOL)]
        values += [self._address(place) for place in places] + [self.number(mask, I64) for mask in masks]
        values += [self.number(word, I32) for word in lanes]
        Builder.current().call(mma, values, ())

    def number(self, token: Operand, kind: ScalarType) -> Value:
        """A register, or a number in the text, of this type."""
        if not isinstance(token, str):
            raise ConstraintError(f"inline PTX: a register is needed, not the vector {{{', '.join(token)}}}")
        if token in self.widths:
            return self._as(self._value(token), kind)
        number = immediate(token, kind)
        if number is None:
            raise ConstraintError(f"inline PTX: {token!r} is neither a declared register nor a number")
        return Constant(kind, normalise(kind, number))

    # -- what statements of memory ask for -------------------------------------------------------------------------

    def is_number(self, token: Operand, kind: ScalarType) -> bool:
        if not isinstance(token, str):
            return False
        return immediate(token, kind) is not None if token not in self.widths else self.widths[token] != "pred"

    def reaches(self, token: Operand, space: str | None) -> bool:
        found = _PLACE.fullmatch(str(token))
        if (
            found is None
            or _offset(found) is None
            or found[1] not in self.values
            or any(found[1] in _written(s) for s in self.statements)
        ):
            return False
        return reaches(self.values[found[1]], space)

    def declares(self, token: str, predicate: bool = False) -> bool:
        return token == "_" or token in self.widths and (self.widths[token] == "pred") is predicate

    def place(self, token: Operand, element: ScalarType, space: str | None, align: int) -> Pointer:
        found = _PLACE.fullmatch(str(token))
        assert found is not None
        return place_of(self.values[found[1]], element, align, _offset(found) or 0)

    def shared_place(self, token: Operand) -> tuple[Pointer, Value | None] | None:
        found = _PLACE.fullmatch(str(token))
        return (
            None if found is None or found[2] or found[1] not in self.values else shared_place_of(self.values[found[1]])
        )

    def constant(self, token: Operand) -> int | None:
        if isinstance(token, str) and token in self.widths:
            return constant_of(self.values[token]) if token in self.values else None
        number = immediate(token, I64) if isinstance(token, str) else None
        return number if isinstance(number, int) else None

    def write(self, token: str, value: Value) -> None:
        kind = value.type
        assert isinstance(kind, ScalarType)
        if token == "_":
            return
        if kind != BOOL:  # narrow integers are extended to the register, by their sign
            value = self._as(value, _UNSIGNED[_bits(self.widths[token])])
        self._store(token, value)

    def _address(self, token: Operand) -> Value:
        """``[register + number]`` as an address of tensor memory."""
        name, _, more = str(token).strip("[]").partition("+")
        found = wrap(self.number(name.strip(), I32))
        return (found + int(more, 0)).ir_value() if more.strip() else found.ir_value()

    def _pointer(self, token: Operand) -> Pointer:
        """``[register]`` as the pointer to an mbarrier that it was made of."""
        name = str(token).strip("[] ")
        found = pointer_of(self.values[name]) if name in self.values else None
        if found is None or not isinstance(found.type, PtrType) or found.type.space is not MemSpace.SMEM:
            raise ConstraintError(f"inline PTX: {token} is not the address of a pointer to shared memory")
        return Pointer(found, Int64)


def _bits(kind: str) -> int:
    return int(kind.lstrip("bsuf"))


def _names(statement: Statement) -> list[str]:
    """The registers that a statement names, and what looks like one."""
    tokens = [statement.guard, *(part for o in statement.operands for part in parts(o))]
    return [name for token in tokens for name in _NAME.findall(token)]


def _offset(place: re.Match[str]) -> int | None:
    """The bytes of ``[register + bytes]``; None where they are not a number in the text."""
    number = immediate(place[3] or "0", U32)
    return None if number is None else int(number) * (-1 if "-" in (place[2] or "") else 1)


def _written(statement: Statement) -> list[str]:
    if statement.opcode.split(".")[0] in ("bar", "barrier") or statement.opcode.startswith("tcgen05.dealloc"):
        return []
    return [part for part in parts(statement.operands[0]) if part != "_"] if statement.operands else []


def _written_out(statement: Statement) -> str:
    guard = f"@{statement.guard} " if statement.guard else ""
    pair = statement.opcode.startswith(("setp", "shfl"))  # two results, of which the second is a predicate
    operands = [
        o if isinstance(o, str) else "|".join(o) if pair and not i else f"{{{', '.join(o)}}}"
        for i, o in enumerate(statement.operands)
    ]
    return f"{guard}{statement.opcode} {', '.join(operands)};"
