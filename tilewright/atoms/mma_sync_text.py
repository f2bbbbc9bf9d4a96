"""The CUDA text of mma.sync: one inline-PTX helper an instruction, called from unrolled loops over the rest modes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tilewright.atoms.value_types import C64, GC64
from tilewright.ir.core import Op, Value
from tilewright.ir.instruction import Emitter
from tilewright.ir.types import F32, F64, I32, ScalarType
from tilewright.layout import Layout, size
from tilewright.layout.evaluate import static_offsets

if TYPE_CHECKING:
    from tilewright.atoms.mma_sync import MmaSync

_CONSTRAINTS = {"float": "f", "double": "d", "int32_t": "r", "uint32_t": "r"}
"""The letters by which inline assembly asks for a register of a C++ type."""


def register_type(type_: ScalarType, accumulator: bool) -> str:
    """The C++ type of one operand register."""
    if type_ in (F64, C64, GC64):
        return "double"
    return type_.cuda if accumulator and type_ in (F32, I32) else "uint32_t"


def registers(type_: ScalarType, values: int) -> int:
    """How many operand registers hold so many values of a thread."""
    return values if type_.width >= 32 else values * type_.width // 32


def helper_source(atom: MmaSync, name: str, selector: int | None = None) -> str:
    """The device function ``name(d..., a..., b...)``: ``d`` by reference, accumulated in place; of a sparse A, with a
    ``selector``, its last argument is a word of metadata."""
    operands = [  # the letter in the names of parameters, their C++ type, how many there are
        ("d", register_type(atom.type_d, True), registers(atom.type_d, size(atom.layout_c[1]))),
        ("a", register_type(atom.type_a, False), registers(atom.type_a, size(atom.layout_a[1]))),
        ("b", register_type(atom.type_b, False), registers(atom.type_b, size(atom.layout_b[1]))),
    ]
    parameters = [f"{cpp}{'&' if x == 'd' else ''} {x}{i}" for x, cpp, count in operands for i in range(count)]
    groups: dict[str, str] = {}  # the numbers of the asm operands of D, of A and of B, as PTX writes a vector of them
    first = 0
    for x, _, count in operands:
        groups[x] = "{" + ", ".join(f"%{first + i}" for i in range(count)) + "}"
        first += count
    (_, d_type, d_count), *sources = operands
    outputs = ", ".join(f'"+{_CONSTRAINTS[d_type]}"(d{i})' for i in range(d_count))
    inputs = ", ".join(f'"{_CONSTRAINTS[cpp]}"({x}{i})' for x, cpp, count in sources for i in range(count))
    mnemonic = atom.mnemonic().replace("gc64", "f64").replace("c64", "f64")
    metadata = ""
    if selector is not None:
        parameters.append("uint32_t e")
        inputs, metadata = f'{inputs}, "r"(e)', f", %{first}, {selector:#x}"
    return (
        f"__device__ __forceinline__ void {name}({', '.join(parameters)}) {{\n"
        f'  asm volatile("{mnemonic} {groups["d"]}, {groups["a"]}, {groups["b"]}, {groups["d"]}{metadata};"\n'
        f"               : {outputs}\n"
        f"               : {inputs});\n"
        f"}}\n"
    )


def emit_mma_sync(atom: MmaSync, out: Emitter, op: Op) -> None:
    stem = atom.cute_name.lower().split("_", 1)[1]
    name = f"mma_{'sm70_' if atom.sm == 70 else ''}{stem}"
    out.helper(name, helper_source(atom, name))
    for operands in operand_registers(atom, out, op):
        if atom.type_a == C64:
            _complex(out, name, operands)
        else:
            _call(out, name, operands)


def emit_scaled(atom: Any, registers: MmaSync, out: Emitter, op: Op) -> None:
    """One instruction with block scales; ``registers``: the instruction whose operands have the same registers. The
    factors of a row are those of the first of the threads that may have them, from the first byte on."""
    name = f"mma_{atom.cute_name.lower().split('_', 1)[1]}"
    slots = ", ".join(f"{{{', '.join(f'%{i}' for i in group)}}}" for group in (range(4), range(4, 8), range(8, 10)))
    out.helper(
        name,
        f"__device__ __forceinline__ void {name}(float& d0, float& d1, float& d2, float& d3, uint32_t a0, uint32_t a1, "
        "uint32_t a2, uint32_t a3, uint32_t b0, uint32_t b1, uint32_t sfa, uint32_t sfb) {\n"
        f'  asm volatile("{atom.mnemonic()} {slots}, {{%0, %1, %2, %3}}, "\n'
        '               "{%10}, {%12, %12}, {%11}, {%12, %12};"\n'
        '               : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3)\n'
        '               : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1), "r"(sfa), "r"(sfb), '
        '"h"(static_cast<uint16_t>(0)));\n'
        "}\n",
    )
    first = tuple(str(op.attrs[f"{x}_offset"]) for x in "dab")
    _call(out, name, _register_texts(registers, out, op, first), *map(out.value, op.operands[3:]))


def emit_sparse(atom: Any, out: Emitter, op: Op) -> None:
    """``mma.sp`` for each step over the rest modes, written out: the selector is a constant of the instruction."""
    stem = atom.cute_name.lower().split("_", 1)[1]
    for m, k, first in _steps(op):
        word, selector = atom.metadata_of(op, m, k)
        name = f"mma_{stem}_{selector}"
        out.helper(name, helper_source(atom, name, selector))
        _call(out, name, _register_texts(atom, out, op, first), f"{out.value(op.operands[3])}[{word}]")


def operand_registers(atom: MmaSync, out: Emitter, op: Op) -> Iterator[list[list[str]]]:
    """For each step over the rest modes, the C++ texts of the registers of D, A and B."""
    for first in rest_loops(out, op):
        yield _register_texts(atom, out, op, first)


def _call(out: Emitter, name: str, operands: list[list[str]], *more: str) -> None:
    out.line(f"{name}({', '.join([*(register for group in operands for register in group), *more])});")


def _register_texts(atom: Any, out: Emitter, op: Op, first: tuple[str, ...]) -> list[list[str]]:
    """The C++ texts of the registers of D, A and B in one step, which begin at ``first`` in their fragments."""
    types = (atom.type_d, atom.type_a, atom.type_b)
    return [
        _registers(out, value, start, op.attrs[f"{x}_layout"][0], type_, x == "d")
        for x, value, start, type_ in zip("dab", op.operands[:3], first, types, strict=True)
    ]


def _registers(out: Emitter, value: Value, base: str, v: Layout, type_: ScalarType, accumulator: bool) -> list[str]:
    """The C++ texts of the registers with the elements ``base + v(i)`` of a fragment; elements of less than 32 bits
    share them."""
    offsets = static_offsets(v)
    if type_.width >= 32 and (accumulator or type_ in (F64, C64)):
        return [f"{out.value(value)}[{sum_text(base, offset)}]" for offset in offsets]
    firsts = offsets[:: max(1, 32 // type_.width)]
    if type_.width < 8:
        pack = out.helper(f"pack_b{type_.width}", _pack_source(type_.width))
        return [f"{pack}(&{out.value(value)}[{sum_text(base, offset)}])" for offset in firsts]
    return [out.register(value, sum_text(base, offset)) for offset in firsts]


def _complex(out: Emitter, name: str, operands: list[list[str]]) -> None:
    """Four real products: (ar + i ai)(br + i bi), the negative one by negating ``ai``."""
    of_d, of_a, of_b = operands
    for d, a, b, sign in (("x", "x", "x", ""), ("x", "y", "y", "-"), ("y", "x", "y", ""), ("y", "y", "x", "")):
        _call(out, name, [[f"{r}.{d}" for r in of_d], [f"{sign}{r}.{a}" for r in of_a], [f"{r}.{b}" for r in of_b]])


def _pack_source(bits: int) -> str:
    kind, mask = "uint32_t", (1 << bits) - 1
    return (
        f"template <class T> __device__ __forceinline__ {kind} pack_b{bits}(T const* cells) {{\n"
        f"  {kind} word = 0;\n"
        f"  #pragma unroll\n"
        f"  for (int i = 0; i < {32 // bits}; ++i) word |= ({kind}(int(cells[i])) & {mask}u) << ({bits} * i);\n"
        f"  return word;\n"
        f"}}\n"
    )


def rest_loops(out: Emitter, op: Op) -> Iterator[tuple[str, str, str]]:
    """For each step over the rest modes, the C++ text of the first register of D, A and B.

    K is the outermost loop; inside, N runs back and forth (serpentine), so that one of the operands is always reused.
    Modes that are not a single stride are written out step by step.
    """
    d, a, b = (op.attrs[f"{x}_layout"] for x in "dab")
    m, n, k = (size(x) for x in (d[1], d[2], a[2]))
    modes = (d[1], d[2], a[1], a[2], b[1], b[2])
    if m * n * k <= 4 or not all(_is_linear(x) for x in modes):
        yield from (first for _, _, first in _steps(op))
        return
    start_d, start_a, start_b = (op.attrs[f"{x}_offset"] for x in "dab")
    d_m, d_n, a_m, a_k, b_n, b_k = (_step(x) for x in modes)
    names = [out.name(x) for x in "mnk"]
    with _loop(out, names[2], k) as at_k, _loop(out, names[0], m) as at_m, _loop(out, names[1], n) as at_n:
        if m > 1 and n > 2:
            there_and_back = out.name("s")
            out.line(f"int const {there_and_back} = {at_m} & 1 ? {n - 1} - {at_n} : {at_n};")
            at_n = there_and_back
        yield (
            _affine(start_d, (d_m, at_m), (d_n, at_n)),
            _affine(start_a, (a_m, at_m), (a_k, at_k)),
            _affine(start_b, (b_n, at_n), (b_k, at_k)),
        )


def _steps(op: Op) -> Iterator[tuple[int, int, tuple[str, str, str]]]:
    """``(m, k)`` of each step over the rest modes, in the order of :func:`rest_loops`, and the first registers of D, A
    and B."""
    d, a, b = (op.attrs[f"{x}_layout"] for x in "dab")
    start_d, start_a, start_b = (op.attrs[f"{x}_offset"] for x in "dab")
    d_m, d_n, a_m, a_k, b_n, b_k = (static_offsets(x) for x in (d[1], d[2], a[1], a[2], b[1], b[2]))
    for k in range(len(a_k)):
        for m in range(len(d_m)):
            for n in range(len(d_n))[:: -1 if m & 1 else 1]:
                of_d, of_a, of_b = start_d + d_m[m] + d_n[n], start_a + a_m[m] + a_k[k], start_b + b_n[n] + b_k[k]
                yield m, k, (str(of_d), str(of_a), str(of_b))


def _is_linear(mode: Layout) -> bool:
    """Whether the offsets of the mode are ``i * step``."""
    offsets = static_offsets(mode)
    step = offsets[-1] // max(1, len(offsets) - 1)
    return all(offset == i * step for i, offset in enumerate(offsets))


def _step(mode: Layout) -> int:
    offsets = static_offsets(mode)
    return offsets[1] if len(offsets) > 1 else 0


class _loop:
    """``for (int i = 0; i < extent; ++i) {`` unrolled; nothing for an extent of one. Gives the text of the index."""

    def __init__(self, out: Emitter, name: str, extent: int) -> None:
        self.out, self.name, self.extent = out, name, extent

    def __enter__(self) -> str:
        if self.extent == 1:
            return "0"
        self.out.line("#pragma unroll")
        self.block = self.out.block(f"for (int {self.name} = 0; {self.name} < {self.extent}; ++{self.name})")
        self.block.__enter__()
        return self.name

    def __exit__(self, *error: object) -> None:
        if self.extent > 1:
            self.block.__exit__(None, None, None)


def _affine(start: int, *terms: tuple[int, str]) -> str:
    """``start`` plus ``step * name`` of each term, as C++ text."""
    parts = [name if step == 1 else f"{step} * {name}" for step, name in terms if step and name != "0"]
    if start or not parts:
        parts.append(str(start))
    return " + ".join(parts)


def sum_text(base: str, offset: int) -> str:
    """``base + offset`` as C++ text, computed when the base is a number."""
    if base.isdecimal():
        return str(int(base) + offset)
    return f"{base} + {offset}" if offset else base
