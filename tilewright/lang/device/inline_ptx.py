"""``llvm.inline_asm``: PTX in a kernel, as the text of LLVM's inline assembly.

>>> from tilewright import cutlass_dsl
>>> from tilewright._mlir.dialects import llvm
>>> @cutlass_dsl.dsl_user_op
... def relu(x, *, loc=None, ip=None):
...     return cute.Float32(llvm.inline_asm(cutlass_dsl.T.f32(), [cute.Float32(x).ir_value()],
...                                         "max.f32 $0, $1, 0f00000000;", "=f,f", loc=loc, ip=ip))
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from tilewright.atoms.ptx.inline import REGISTERS, InlinePtx
from tilewright.errors import ConstraintError
from tilewright.ir.builder import Builder
from tilewright.ir.core import Constant, Value
from tilewright.ir.types import MemSpace, PtrType, ScalarType, Type, VecType
from tilewright.lang.device import ptx_constraints
from tilewright.lang.device.calls import operand
from tilewright.lang.device.ptx_constraints import IMMEDIATE
from tilewright.lang.device.ptx_instructions import as_instruction
from tilewright.lang.device.ptx_program import taken_apart
from tilewright.lang.device.ptx_registers import bits_of, into, out_of
from tilewright.lang.numbers.numeric import wrap

_OPERAND = re.compile(r"\{\$([rw])(\d+)\}")


def inline_ptx(
    ptx: str,
    *,
    write_only_types: Sequence[Any] = (),
    read_only_args: Sequence[Any] = (),
    loc: Any = None,
    ip: Any = None,
) -> Any:
    """Emit PTX. ``{$r0}``, ``{$r1}``, ... in the text are the ``read_only_args``, in registers of their types;
    ``{$w0}``, ... the results, of the ``write_only_types``. One result is given as it is, several as a tuple.

    >>> from tilewright import Int32
    >>> per_thread(lambda t: (arch.inline_ptx("nanosleep.u32 {$r0};", read_only_args=[Int32(4)]), t)[1], 2)
    [0, 1]
    >>> def twice(t):
    ...     return arch.inline_ptx("add.s32 {$w0}, {$r0}, {$r0};", write_only_types=[Int32], read_only_args=[t])
    >>> per_thread(twice, 3)
    [0, 2, 4]
    """
    values, types = [operand(x) for x in read_only_args], [_type(x) for x in write_only_types]
    for kind, given, what in (("r", values, "read_only_args"), ("w", types, "write_only_types")):
        most = max((int(number) for letter, number in _OPERAND.findall(ptx) if letter == kind), default=-1)
        if most >= len(given):
            raise ConstraintError(f"inline_ptx({ptx!r}): {{${kind}{most}}} is not there: {what} has {len(given)}")
    text = _OPERAND.sub(lambda m: f"${int(m[2]) + (len(types) if m[1] == 'r' else 0)}", ptx)
    if "{$" in text:
        raise ConstraintError(f"inline_ptx({ptx!r}): operands are {{$r0}}, {{$r1}}, ..., results {{$w0}}, {{$w1}}, ...")
    constraints = ",".join([*("=" + _letter(t, ptx) for t in types), *(_letter(v.type, ptx) for v in values)])
    if not types:
        return inline_asm(None, values, text, constraints, has_side_effects=True)
    made = inline_asm(StructType(types), values, text, constraints, has_side_effects=True)
    results = tuple(wrap(value) for value in made)
    return results if len(results) > 1 else results[0]


def _letter(kind: Type, ptx: str) -> str:
    """The constraint of a register that holds a number or an address."""
    if isinstance(kind, PtrType):
        return "r" if kind.space is MemSpace.SMEM else "l"
    if not isinstance(kind, (ScalarType, VecType)) or bits_of(kind) not in (16, 32, 64, 128):
        raise ConstraintError(f"inline_ptx({ptx!r}): an operand of type {kind} fits no register")
    letters = {16: "h", 32: "r", 64: "l", 128: "q"}
    floats = {32: "f", 64: "d"}
    bits = bits_of(kind)
    return floats.get(bits, letters[bits]) if isinstance(kind, ScalarType) and kind.is_float else letters[bits]


class StructType:
    """Several results of one asm text; :func:`extractvalue` takes them out."""

    def __init__(self, body: Sequence[Any]) -> None:
        self.body = tuple(body)

    @classmethod
    def get_literal(
        cls, body: Sequence[Any], *, packed: bool = False, context: Any = None, loc: Any = None
    ) -> StructType:
        """The type of the results, in order."""
        return cls(body)


def inline_asm(
    res: Any,
    operands_: Sequence[Any],
    asm_string: str,
    constraints: str,
    *,
    has_side_effects: bool = False,
    is_align_stack: bool = False,
    asm_dialect: Any = None,
    operand_attrs: Any = None,
    tail_call_kind: Any = None,
    loc: Any = None,
    ip: Any = None,
) -> Any:
    """Emit PTX. ``asm_string`` names results and operands ``$0, $1, ...`` in the order of ``constraints``.

    A constraint is ``=`` for a result and a letter: ``h``, ``r``, ``l``, ``q`` a register of 16, 32, 64, 128 bits,
    ``f`` and ``d`` one of Float32 and Float64, ``n`` or ``i`` an integer known while staging, ``C`` a Python string
    that becomes part of the text; a digit shares that result's register; ``~{memory}`` tells that memory changes.
    ``+`` in place of ``=`` is a result that is read too: its first value is an operand, before all others.
    ``res`` is the result's type (``T.f32()``), a :class:`StructType` for several, None for none. Numbers of other
    types with as many bits go into registers as they are (two Float16 into an ``r``).

    Raises ConstraintError where constraints, operands and results do not agree. ``has_side_effects`` keeps the text
    even where its results are never read. Source: LLVM Language Reference, "Inline Assembler Expressions".
    """
    parsed = ptx_constraints.read(constraints, asm_string)
    outputs, inputs = parsed.outputs, parsed.inputs
    types = list(res.body) if isinstance(res, StructType) else [] if res is None else [res]
    intel = asm_dialect is not None and "INTEL" in str(asm_dialect).upper()
    if is_align_stack or operand_attrs or tail_call_kind or intel:
        raise ConstraintError("inline_asm: of LLVM's options only has_side_effects has a meaning for PTX")
    for what, named, count in (("result", outputs, types), ("operand", inputs, operands_)):
        if len(named) != len(count):
            raise ConstraintError(
                f"inline_asm({asm_string!r}): {len(named)} {what} constraints in {constraints!r} for "
                f"{len(count)} {what}s"
            )
    values: list[Any] = [x if isinstance(x, str) else operand(x) for x in operands_]
    values = values[parsed.read_write :] + values[: parsed.read_write]
    _check_operands(asm_string, constraints, len(outputs), inputs, values)
    if res is None and as_instruction(asm_string, values):
        return None
    text, inputs, values = _with_numbers(asm_string, len(outputs), inputs, values)
    made = taken_apart(text, outputs, inputs, values)
    if made is None:
        atom = InlinePtx(text, outputs, inputs, has_side_effects or not outputs, parsed.memory)
        ready = [into(v, REGISTERS[atom.letter(i)]) for i, v in enumerate(values)]
        made = Builder.current().call(atom, ready, tuple(REGISTERS[c] for c in outputs))
    results = [out_of(v, _type(t)) for v, t in zip(made, types, strict=True)]
    if isinstance(res, StructType):
        return results
    return results[0] if results else None


def _check_operands(text: str, constraints: str, outputs: int, inputs: Sequence[str], values: Sequence[Any]) -> None:
    """ConstraintError where the text names an operand that is not there, or a string has a register's constraint."""
    mentioned = (int(n) for n in re.findall(r"(?<!\$)\$\{?(\d+)", text))
    if beyond := [n for n in mentioned if n >= outputs + len(inputs)]:
        raise ConstraintError(f"inline_asm({text!r}): there is no ${beyond[0]} among {constraints!r}")
    for i, (letter, value) in enumerate(zip(inputs, values, strict=True)):
        if isinstance(value, str) and letter != "C":
            raise ConstraintError(f"inline_asm({text!r}): operand {i} is a string; its constraint is C, not {letter}")


def extractvalue(
    res: Any, container: Sequence[Value], position: Sequence[int], *, loc: Any = None, ip: Any = None
) -> Value:
    """Result ``position[0]`` of an :func:`inline_asm` that has several."""
    if not isinstance(container, list) or len(position) != 1 or not 0 <= position[0] < len(container):
        raise ConstraintError(f"extractvalue: {list(position)} is not a position among the results of one inline_asm")
    return container[position[0]]


def _with_numbers(
    text: str, first: int, inputs: tuple[str, ...], values: list[Any]
) -> tuple[str, tuple[str, ...], list[Any]]:
    """The text with the operands of constraints ``n``, ``i`` and ``C`` written into it."""
    kept = [i for i, c in enumerate(inputs) if c not in IMMEDIATE]
    if len(kept) == len(inputs):
        return text, inputs, values
    places = {first + i: f"${first + k}" for k, i in enumerate(kept)}
    for i, letter in enumerate(inputs):
        if letter in IMMEDIATE:
            places[first + i] = _written(text, i, letter, values[i])
    made = re.sub(
        r"(?<!\$)\$(?:\{(\d+)(?::\w+)?\}|(\d+))",
        lambda m: places.get(int(m.group(1) or m.group(2)), m.group(0)),
        text,
    )
    return made, tuple(inputs[i] for i in kept), [values[i] for i in kept]


def _written(text: str, i: int, letter: str, value: Any) -> str:
    """Operand ``i`` as it stands in the text."""
    if letter == "C" and isinstance(value, str):
        return value
    integer = isinstance(value, Constant) and isinstance(value.type, ScalarType) and not value.type.is_float
    if letter == "C" or not integer:
        required = "a Python string" if letter == "C" else "an integer known while staging"
        raise ConstraintError(f"inline_asm({text!r}): operand {i}, of constraint {letter}, is not {required}")
    return str(int(value.value))


def _type(dtype: Any) -> Type:
    type_ = dtype if isinstance(dtype, Type) else getattr(dtype, "ir_type", None)
    if not isinstance(type_, (ScalarType, VecType)):
        raise ConstraintError(f"inline_asm: {dtype!r} is not a result type; T.f32(), T.i32(), ... are")
    return type_
