"""Atomic memory operations and ordered loads and stores (PTX ISA, "atom", "red", "ld", "st").

``sem`` is the memory order and ``scope`` who sees it: relaxed, acquire, release, acq_rel; cta, cluster, gpu, sys.
Without a result the reduction form ``red`` is printed. The simulator performs the lanes' operations one after another,
in lane order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tilewright.errors import ConstraintError
from tilewright.ir.computed import computed, computed_once
from tilewright.ir.core import Op
from tilewright.ir.effects import Access
from tilewright.ir.instruction import Emitter, Instruction, Lanes, need
from tilewright.ir.target import CLUSTERS, LEAST_CAPABILITY, Architecture
from tilewright.ir.types import MemSpace, PtrType, ScalarType, Type, VecType, element_of

ANY_MEMORY = (MemSpace.GMEM, MemSpace.SMEM, MemSpace.DSMEM, MemSpace.GENERIC)
SCOPES = ("cta", "cluster", "gpu", "sys")
BITWISE = ("and", "or", "xor")
KINDS = ("add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec")
REGISTER = {"f32": "f", "f64": "d"}


def _check_order(name: str, sem: str, scope: str, allowed: tuple[str, ...]) -> None:
    if sem not in allowed:
        raise ConstraintError(f"{name}: no memory order {sem!r}; it is one of {', '.join(allowed)}")
    if scope not in SCOPES:
        raise ConstraintError(f"{name}: no scope {scope!r}; it is one of {', '.join(SCOPES)}")


def _least(scope: str) -> int:
    """The least compute capability that has the scope."""
    return CLUSTERS if scope == "cluster" else LEAST_CAPABILITY


def _ptx_type(kind: str, type_: Type) -> str | None:
    """The PTX type suffix of an atomic, or None where PTX has no such type."""
    elem = element_of(type_)
    if isinstance(type_, VecType):
        packed = kind == "add" and type_.n == 2 and elem.name in ("f16", "bf16")
        return f"noftz.{elem.name}x2" if packed else None
    if kind == "add" and elem.name in ("f16", "bf16"):
        return f"noftz.{elem.name}"
    if kind == "add" and elem.name in ("f32", "f64"):
        return elem.name
    if kind in ("exch", "cas"):
        return f"b{elem.width}" if elem.width in (32, 64) or (kind == "cas" and elem.width == 16) else None
    if not elem.is_integer or elem.width not in (32, 64):
        return None
    if kind in BITWISE:
        return f"b{elem.width}"
    if kind in ("inc", "dec"):
        return "u32" if elem.width == 32 and elem.kind == "uint" else None
    if kind == "add":
        return "s32" if elem.name == "i32" else f"u{elem.width}"
    return f"{'s' if elem.kind == 'int' else 'u'}{elem.width}"


def _register(type_: Type) -> tuple[str, str]:
    """The asm constraint of a value and the C++ type that it takes."""
    elem = element_of(type_)
    if isinstance(type_, VecType):
        return "r", "unsigned"
    if elem.name in REGISTER:
        return REGISTER[elem.name], elem.cuda
    return {16: ("h", "unsigned short"), 32: ("r", "unsigned"), 64: ("l", "unsigned long long")}[elem.width]


@dataclass(frozen=True)
class Atomic(Instruction):
    """``atom`` / ``red``. Operands (pointer, value), for cas (pointer, compare, value); the old value is an optional
    result.

    ``kind``: add min max and or xor exch cas inc dec. Values: 32- and 64-bit integers; add also f16, bf16, f32, f64 and
    pairs of f16 or bf16; exch and cas any 32 or 64 bits.
    """

    kind: str
    sem: str = "relaxed"
    scope: str = "gpu"
    name: ClassVar[str] = "atom"
    atomic = computed(lambda self: self.kind)
    quiet: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ConstraintError(f"no atomic {self.kind!r}; the kinds are {', '.join(KINDS)}")
        _check_order("atomic", self.sem, self.scope, ("relaxed", "acquire", "release", "acq_rel"))

    @computed
    def min_arch(self) -> int:
        return _least(self.scope)

    def lacking(self, arch: Architecture, op: Op | None = None) -> str:
        bf16 = op is not None and element_of(op.operands[-1].type).name == "bf16"
        return "sm_90 or later for bf16" if bf16 and arch.capability < 90 else super().lacking(arch, op)

    @computed_once
    def accesses(self) -> tuple[Access, ...]:
        return (Access("update", "address", ANY_MEMORY, order=self.sem, scope=self.scope),)

    @computed
    def results_optional(self) -> bool:
        return self.sem in ("relaxed", "release") and self.kind not in ("exch", "cas")

    def mnemonic(self) -> str:
        return f"atom.{self.sem}.{self.scope}.{self.kind}"

    def verify(self, op: Op) -> None:
        pointer, *values = op.operands
        need(op, isinstance(pointer.type, PtrType), "an atomic takes a pointer first")
        need(
            op,
            len(values) == (2 if self.kind == "cas" else 1),
            f"atomic {self.kind} takes {'compare and value' if self.kind == 'cas' else 'one value'}",
        )
        need(
            op,
            len({v.type for v in values}) == 1 and element_of(values[0].type) == element_of(pointer.type),
            "the value must have the pointer's element type",
        )
        need(
            op, _ptx_type(self.kind, values[0].type) is not None, f"there is no atomic {self.kind} on {values[0].type}"
        )
        need(op, [v.type for v in op.results] in ([], [values[0].type]), "an atomic gives the old value or nothing")
        need(
            op,
            bool(op.results) or self.sem in ("relaxed", "release") or self.kind in ("exch", "cas"),
            f"an atomic without a result cannot be {self.sem}: use its old value, or relaxed order",
        )

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        pointer, *values = operands
        old = lanes.atomic(pointer, self.kind, values[-1], values[0] if self.kind == "cas" else None)
        return (old,) if op.results else ()

    def emit(self, out: Emitter, op: Op) -> None:
        pointer, *values = op.operands
        type_ = values[0].type
        suffix = _ptx_type(self.kind, type_)
        red = not op.results and self.kind not in ("exch", "cas")
        constraint, ctype = _register(type_)
        name = f"tw_{'red' if red else 'atom'}_{self.kind}_{self.sem}_{self.scope}_{str(suffix).replace('.', '_')}"
        many = self.kind == "cas"
        inputs = ", ".join(f'"{constraint}"({v})' for v in (("compare", "value") if many else ("value",)))
        params = f"{ctype} compare, {ctype} value" if many else f"{ctype} value"
        head = f"{self.sem}.{self.scope}.{self.kind}.{suffix}"
        if red:
            body = f'  asm volatile("red.{head} [%0], %1;" :: "l"(pointer), {inputs} : "memory");'
            source = f"__device__ __forceinline__ void {name}(void* pointer, {params}) {{\n{body}\n}}"
        else:
            last = "%2, %3" if many else "%2"
            body = (
                f"  {ctype} old;\n"
                f'  asm volatile("atom.{head} %0, [%1], {last};"'
                f' : "={constraint}"(old) : "l"(pointer), {inputs} : "memory");\n'
                "  return old;"
            )
            source = f"__device__ __forceinline__ {ctype} {name}(void* pointer, {params}) {{\n{body}\n}}"
        out.helper(name, source)
        arguments = ", ".join(_as_register(out, out.value(v), v.type) for v in values)
        call = f"{name}((void*)({out.value(pointer)}), {arguments})"
        if op.results:
            result = out.declare(op.result)
            _assign(out, result, call, op.result.type)
        else:
            out.line(f"{call};")


BITS = """template <class To, class From>
__device__ __forceinline__ To tw_bits(const From& from) {
  static_assert(sizeof(To) == sizeof(From), "same size");
  To to;
  memcpy(&to, &from, sizeof(To));
  return to;
}"""


def _as_register(out: Emitter, text: str, type_: Type) -> str:
    _, ctype = _register(type_)
    if element_of(type_).cuda == ctype and not isinstance(type_, VecType):
        return text
    out.helper("tw_bits", BITS)
    return f"tw_bits<{ctype}>({text})"


def _assign(out: Emitter, result: str, call: str, type_: Type) -> None:
    elem = element_of(type_)
    _, ctype = _register(type_)
    if isinstance(type_, VecType):
        old = out.name("old")
        out.line(f"{ctype} {old} = {call};")
        out.line(f"memcpy(&{result}, &{old}, sizeof({old}));")
    elif elem.cuda == ctype:
        out.line(f"{result} = {call};")
    else:
        out.helper("tw_bits", BITS)
        out.line(f"{result} = tw_bits<{elem.cuda}>({call});")


@dataclass(frozen=True)
class OrderedLoad(Instruction):
    """``ld.{sem}.{scope}``: one 32- or 64-bit scalar that other blocks may write at any time. Operand: pointer;
    ``sem``: relaxed, acquire."""

    sem: str = "acquire"
    scope: str = "gpu"
    name: ClassVar[str] = "ld"
    quiet: ClassVar[bool] = True

    @computed
    def min_arch(self) -> int:
        return _least(self.scope)

    @computed_once
    def accesses(self) -> tuple[Access, ...]:
        return (Access("read", "address", ANY_MEMORY, order=self.sem, scope=self.scope),)

    def __post_init__(self) -> None:
        _check_order("ld", self.sem, self.scope, ("relaxed", "acquire"))

    def mnemonic(self) -> str:
        return f"ld.{self.sem}.{self.scope}"

    def verify(self, op: Op) -> None:
        _check_scalar(op, self.mnemonic(), len(op.operands) == 1 and len(op.results) == 1)
        need(
            op, op.result.type == element_of(op.operands[0].type), f"{self.mnemonic()} gives the pointer's element type"
        )

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        return (np.ascontiguousarray(lanes.load(operands[0], 1)[:, 0]),)

    def emit(self, out: Emitter, op: Op) -> None:
        constraint, ctype = _register(op.result.type)
        width = element_of(op.result.type).width
        suffix = f"f{width}" if constraint in "fd" else f"u{width}"
        name = f"tw_ld_{self.sem}_{self.scope}_{suffix}"
        out.helper(
            name,
            f"""__device__ __forceinline__ {ctype} {name}(const void* pointer) {{
  {ctype} value;
  asm volatile("{self.mnemonic()}.{suffix} %0, [%1];" : "={constraint}"(value) : "l"(pointer) : "memory");
  return value;
}}""",
        )
        result = out.declare(op.result)
        _assign(out, result, f"{name}((const void*)({out.value(op.operands[0])}))", op.result.type)


@dataclass(frozen=True)
class OrderedStore(Instruction):
    """``st.{sem}.{scope}``: one 32- or 64-bit scalar. Operands (pointer, value); ``sem``: relaxed, release."""

    sem: str = "release"
    scope: str = "gpu"
    name: ClassVar[str] = "st"

    @computed
    def min_arch(self) -> int:
        return _least(self.scope)

    @computed_once
    def accesses(self) -> tuple[Access, ...]:
        return (Access("write", "address", ANY_MEMORY, order=self.sem, scope=self.scope),)

    def __post_init__(self) -> None:
        _check_order("st", self.sem, self.scope, ("relaxed", "release"))

    def mnemonic(self) -> str:
        return f"st.{self.sem}.{self.scope}"

    def verify(self, op: Op) -> None:
        _check_scalar(op, self.mnemonic(), len(op.operands) == 2 and not op.results)
        need(
            op,
            op.operands[1].type == element_of(op.operands[0].type),
            f"{self.mnemonic()} takes the pointer's element type",
        )

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        lanes.store(operands[0], lanes.spread(operands[1])[:, None])
        return ()

    def emit(self, out: Emitter, op: Op) -> None:
        pointer, value = op.operands
        constraint, ctype = _register(value.type)
        width = element_of(value.type).width
        suffix = f"f{width}" if constraint in "fd" else f"u{width}"
        name = f"tw_st_{self.sem}_{self.scope}_{suffix}"
        out.helper(
            name,
            f"""__device__ __forceinline__ void {name}(void* pointer, {ctype} value) {{
  asm volatile("{self.mnemonic()}.{suffix} [%0], %1;" :: "l"(pointer), "{constraint}"(value) : "memory");
}}""",
        )
        out.line(f"{name}((void*)({out.value(pointer)}), {_as_register(out, out.value(value), value.type)});")


def _check_scalar(op: Op, name: str, shape: bool) -> None:
    need(op, shape and isinstance(op.operands[0].type, PtrType), f"{name} takes a pointer")
    kind = op.operands[0].type
    assert isinstance(kind, PtrType)
    need(op, kind.space in ANY_MEMORY, f"{name} reaches global or shared memory")
    need(
        op,
        isinstance(kind.elem, ScalarType) and kind.elem.width in (32, 64),
        f"{name} moves 32 or 64 bits, not {kind.elem}",
    )
