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

_ASM = {"float": "f", "double": "d", "int32_t": "r", "uint32_t": "r"}


def register_type(type_: ScalarType, accumulator: bool) -> str:
    """The C++ type of one operand register."""
    if type_ in (F64, C64, GC64):
        return "double"
    return type_.cuda if accumulator and type_ in (F32, I32) else "uint32_t"


def registers(type_: ScalarType, values: int) -> int:
    return values if type_.width >= 32 else values * type_.width // 32


def helper_source(atom: MmaSync, name: str, selector: int | None = None) -> str:
    """The device function ``name(d..., a..., b...)``: ``d`` by reference, accumulated in place; of a sparse A, with a
    ``selector``, its last argument is a word of metadata."""
    kinds = [
        ("d", register_type(atom.type_d, True), registers(atom.type_d, size(atom.layout_c[1]))),
        ("a", register_type(atom.type_a, False), registers(atom.type_a, size(atom.layout_a[1]))),
        ("b", register_type(atom.type_b, False), registers(atom.type_b, size(atom.layout_b[1]))),
    ]
    parameters = [f"{cpp}{'&' if x == 'd' else ''} {x}{i}" for x, cpp, count in kinds for i in range(count)]
    slots: dict[str, str] = {}
    position = 0
    for x, _, count in kinds:
        slots[x] = "{" + ", ".join(f"%{position + i}" for i in range(count)) + "}"
        position += count
    (_, d_type, d_count), *inputs = kinds
    outs = ", ".join(f'"+{_ASM[d_type]}"(d{i})' for i in range(d_count))
    ins = ", ".join(f'"{_ASM[cpp]}"({x}{i})' for x, cpp, count in inputs for i in range(count))
    mnemonic = atom.mnemonic().replace("gc64", "f64").replace("c64", "f64")
    more = ""
    if selector is not None:
        parameters.append("uint32_t e")
        ins, more = f'{ins}, "r"(e)', f", %{position}, {selector:#x}"
    return (
        f"__device__ __forceinline__ void {name}({', '.join(parameters)}) {{\n"
        f'  asm volatile("{mnemonic} {slots["d"]}, {slots["a"]}, {slots["b"]}, {slots["d"]}{more};"\n'
        f"               : {outs}\n"
        f"               : {ins});\n"
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
            out.line(f"{name}({', '.join(r for group in operands for r in group)});")


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
    texts, types = [], (registers.type_d, registers.type_a, registers.type_b)
    for x, value, type_ in zip("dab", op.operands[:3], types, strict=True):
        texts += _registers(out, value, str(op.attrs[f"{x}_offset"]), op.attrs[f"{x}_layout"][0], type_, x == "d")
    out.line(f"{name}({', '.join([*texts, *map(out.value, op.operands[3:])])});")


def emit_sparse(atom: Any, out: Emitter, op: Op) -> None:
    """``mma.sp`` for each step over the rest modes, written out: the selector is a constant of the instruction."""
    d, a, b = (op.attrs[f"{x}_layout"] for x in "dab")
    starts = [op.attrs[f"{x}_offset"] for x in "dab"]
    d_m, d_n, a_m, a_k, b_n, b_k = (static_offsets(x) for x in (d[1], d[2], a[1], a[2], b[1], b[2]))
    stem, types = atom.cute_name.lower().split("_", 1)[1], (atom.type_d, atom.type_a, atom.type_b)
    for k in range(len(a_k)):
        for m in range(len(d_m)):
            word, selector = atom.metadata_of(op, m, k)
            name = f"mma_{stem}_{selector}"
            out.helper(name, helper_source(atom, name, selector))
            for n in range(len(d_n))[:: -1 if m & 1 else 1]:
                bases = (d_m[m] + d_n[n], a_m[m] + a_k[k], b_n[n] + b_k[k])
                texts: list[str] = []
                for x, value, start, base, type_ in zip("dab", op.operands, starts, bases, types, strict=False):
                    texts += _registers(out, value, str(start + base), op.attrs[f"{x}_layout"][0], type_, x == "d")
                out.line(f"{name}({', '.join([*texts, f'{out.value(op.operands[3])}[{word}]'])});")


def operand_registers(atom: MmaSync, out: Emitter, op: Op) -> Iterator[list[list[str]]]:
    """For each step over the rest modes, the C++ texts of the registers of D, A and B."""
    types = (atom.type_d, atom.type_a, atom.type_b)
    for bases in rest_loops(out, op):
        yield [
            _registers(out, value, base, op.attrs[f"{x}_layout"][0], type_, x == "d")
            for x, value, base, type_ in zip("dab", op.operands, bases, types, strict=True)
        ]


def _registers(out: Emitter, value: Value, base: str, v: Layout, type_: ScalarType, accumulator: bool) -> list[str]:
    where = static_offsets(v)
    if type_.width >= 32:
        if accumulator or type_ in (F64, C64):
            return [f"{out.value(value)}[{_sum(base, o)}]" for o in where]
        return [out.register(value, _sum(base, o)) for o in where]
    per = 32 // type_.width
    if type_.width < 8:
        pack = out.helper(f"pack_b{type_.width}", _pack_source(type_.width))
        return [f"{pack}(&{out.value(value)}[{_sum(base, o)}])" for o in where[::per]]
    return [out.register(value, _sum(base, o)) for o in where[::per]]


def _complex(out: Emitter, name: str, operands: list[list[str]]) -> None:
    """Four real products: (ar + i ai)(br + i bi), the negative one by negating ``ai``."""
    for d, a, b, sign in (("x", "x", "x", ""), ("x", "y", "y", "-"), ("y", "x", "y", ""), ("y", "y", "x", "")):
        of_d, of_a, of_b = operands
        parts = [f"{r}.{d}" for r in of_d] + [f"{sign}{r}.{a}" for r in of_a] + [f"{r}.{b}" for r in of_b]
        out.line(f"{name}({', '.join(parts)});")


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
    starts = [op.attrs[f"{x}_offset"] for x in "dab"]
    m, n, k = (size(x) for x in (d[1], d[2], a[2]))
    modes = (d[1], d[2], a[1], a[2], b[1], b[2])
    if m * n * k <= 4 or not all(_is_linear(x) for x in modes):
        yield from _written_out(op, starts)
        return
    d_m, d_n, a_m, a_k, b_n, b_k = (_step(x) for x in modes)
    names = [out.name(x) for x in "mnk"]
    with _loop(out, names[2], k) as k_, _loop(out, names[0], m) as m_, _loop(out, names[1], n) as n_:
        if m > 1 and n > 2:
            s = out.name("s")
            out.line(f"int const {s} = {m_} & 1 ? {n - 1} - {n_} : {n_};")
            n_ = s
        yield (
            _affine(starts[0], (d_m, m_), (d_n, n_)),
            _affine(starts[1], (a_m, m_), (a_k, k_)),
            _affine(starts[2], (b_n, n_), (b_k, k_)),
        )


def _written_out(op: Op, starts: list[int]) -> Iterator[tuple[str, str, str]]:
    d, a, b = (op.attrs[f"{x}_layout"] for x in "dab")
    d_m, d_n, a_m, a_k, b_n, b_k = (static_offsets(x) for x in (d[1], d[2], a[1], a[2], b[1], b[2]))
    for k in range(len(a_k)):
        for m in range(len(d_m)):
            for n in range(len(d_n))[:: -1 if m & 1 else 1]:
                first = (d_m[m] + d_n[n], a_m[m] + a_k[k], b_n[n] + b_k[k])
                d_, a_, b_ = (str(start + o) for start, o in zip(starts, first, strict=True))
                yield d_, a_, b_


def _is_linear(mode: Layout) -> bool:
    """Whether the offsets of the mode are ``i * step``."""
    where = static_offsets(mode)
    step = where[-1] // max(1, len(where) - 1)
    return all(place == i * step for i, place in enumerate(where))


def _step(mode: Layout) -> int:
    where = static_offsets(mode)
    return where[1] if len(where) > 1 else 0


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
    parts = [name if step == 1 else f"{step} * {name}" for step, name in terms if step and name != "0"]
    if start or not parts:
        parts.append(str(start))
    return " + ".join(parts)


def _sum(base: str, offset: int) -> str:
    """``base + offset`` as C++ text, computed when the base is a number."""
    if base.isdecimal():
        return str(int(base) + offset)
    return f"{base} + {offset}" if offset else base
