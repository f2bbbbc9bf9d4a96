"""The CUDA text of wgmma: one inline-PTX helper an instruction, one call for each step of the rest modes.

Accumulators are the ``"+"`` operands of the asm statement, so that they stay in their registers from the first
instruction to the last. What keeps others away until they are ready is :func:`emit_wait`: the compiler does not know
that the asm statement's results arrive later, so after a wait an empty asm statement "changes" each register in flight.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.atoms.mma_sync_text import registers
from tilewright.atoms.sparse_mma import SparseMma
from tilewright.atoms.wgmma_flow import AGENT, handed_over, in_flight
from tilewright.ir.core import Constant, Op, Value
from tilewright.ir.instruction import Emitter
from tilewright.ir.types import F32, I32, FragType, ScalarType
from tilewright.layout import size
from tilewright.layout.evaluate import static_offsets

if TYPE_CHECKING:
    from tilewright.atoms.wgmma import WgmmaAtom

DESCRIPTOR = "matrix_descriptor"
DESCRIPTOR_SOURCE = (
    f"__device__ __forceinline__ uint64_t {DESCRIPTOR}(uint32_t low, uint32_t high) {{\n"
    "  return uint64_t(high) << 32 | low;\n"
    "}\n"
)


def accumulator_type(type_: ScalarType) -> tuple[str, str]:
    """C++ type and asm constraint of an accumulator register."""
    return {F32: ("float", "f"), I32: ("int32_t", "r")}.get(type_, ("uint32_t", "r"))


def helper_source(atom: WgmmaAtom, name: str, selector: int = 0) -> str:
    """``name(d, a..., b, accumulate)``: ``d`` points to the accumulators of one instruction, changed in place. Of a
    sparse A the metadata come last; ``selector`` says which threads' count."""
    cpp, constraint = accumulator_type(atom.type_d)
    count = registers(atom.type_d, size(atom.layout_c[1]))
    ins, slots = [], [f"%{i}" for i in range(count)]
    parameters = [f"{cpp}* d"]
    if atom.reads_shared("A"):
        a_slot = f"%{count}"
        parameters.append("uint64_t a")
        ins.append('"l"(a)')
    else:
        words = registers(atom.type_a, size(atom.layout_a[1]))
        a_slot = "{" + ", ".join(f"%{count + i}" for i in range(words)) + "}"
        parameters += [f"uint32_t a{i}" for i in range(words)]
        ins += [f'"r"(a{i})' for i in range(words)]
    at = count + len(ins)
    sparse = atom.sparsity > 1
    parameters += ["uint64_t b", "int accumulate", *(["int metadata"] if sparse else [])]
    ins += ['"l"(b)', '"r"(accumulate)', *(['"r"(metadata)'] if sparse else [])]
    outs = [f'"+{constraint}"(d[{i}])' for i in range(count)]
    tail = [*([f"%{at + 2}", str(selector)] if sparse else []), "p"]
    if atom.type_d != I32:
        tail += ["1", "1"]  # scale-a, scale-b
    if atom.type_a.width == 16:
        tail += [str(int(atom.major_of(x) == "MN")) for x in "AB" if atom.reads_shared(x)]
    pad = 15 * " "
    rows = [", ".join(slots[i : i + 16]) for i in range(0, count, 16)]
    accumulators = ', "\n'.join(f'{pad}"{row}' for row in rows)
    return (
        f"__device__ __forceinline__ void {name}({', '.join(parameters)}) {{\n"
        f'  asm volatile("{{.reg .pred p; setp.ne.b32 p, %{at + 1}, 0;\\n"\n'
        f'{pad}"{atom.mnemonic()} {{"\n'
        f'{accumulators}"\n'
        f'{pad}"}}, {a_slot}, %{at}, {", ".join(tail)};}}"\n'
        f"{pad}: {_wrapped(outs)}\n"
        f"{pad}: {', '.join(ins)});\n"
        f"}}\n"
    )


def _wrapped(operands: list[str]) -> str:
    """The operands of an asm statement, eight a line."""
    return (",\n" + 17 * " ").join(", ".join(operands[i : i + 8]) for i in range(0, len(operands), 8))


def emit_wgmma(atom: WgmmaAtom, out: Emitter, op: Op) -> None:
    """K is the outermost loop. All steps are written out: descriptors differ by immediates."""
    name = "wgmma_" + atom.cute_name.lower().removeprefix("sm90_").translate(str.maketrans("<,", "__", ">"))
    out.helper(name, helper_source(atom, name))
    d, a, b, accumulate, *metadata = op.operands
    layouts = {x: op.attrs[f"{x}_layout"] for x in "dab"}
    rests = {x: (static_offsets(layout[1]), static_offsets(layout[2])) for x, layout in layouts.items()}
    for k, (a_k, b_k) in enumerate(zip(rests["a"][1], rests["b"][1], strict=True)):
        added = _flag(out, accumulate) if k == 0 else "1"
        for n, d_n in enumerate(rests["d"][1]):
            for m, d_m in enumerate(rests["d"][0]):
                into = _accumulators(out, atom, d, op.attrs["d_offset"] + d_m + d_n)
                b_text = _descriptor(out, b, rests["b"][0][n] + b_k, op.attrs["b_high"])
                a_step = rests["a"][0][m] + a_k
                if atom.reads_shared("A"):
                    a_text = _descriptor(out, a, a_step, op.attrs["a_high"])
                else:
                    per = max(1, 32 // atom.type_a.width)
                    places = [op.attrs["a_offset"] + a_step + v for v in static_offsets(layouts["a"][0])[::per]]
                    a_text = ", ".join(out.register(a, place) for place in places)
                called, more = name, ""
                if isinstance(atom, SparseMma):
                    place, selector = atom.metadata_of(op, m, k)
                    more = f", {out.value(metadata[0])}[{place}]"
                    if selector:
                        called = f"{name}_selector{selector}"
                        out.helper(called, helper_source(atom, called, selector))
                out.line(f"{called}({into}, {a_text}, {b_text}, {added}{more});")


def _accumulators(out: Emitter, atom: WgmmaAtom, d: Value, offset: int) -> str:
    name = out.value(d)
    if registers(atom.type_d, 2) == 2:
        return f"{name} + {offset}" if offset else name
    return f"&{out.register(d, offset)}"


def _descriptor(out: Emitter, low: Value, step: int, high: int) -> str:
    out.helper(DESCRIPTOR, DESCRIPTOR_SOURCE)
    text = out.value(low)
    return f"{DESCRIPTOR}({text}{f' + {step}' if step else ''}, {high:#x})"


def _flag(out: Emitter, accumulate: Value) -> str:
    return str(int(bool(accumulate.value))) if isinstance(accumulate, Constant) else out.value(accumulate)


# -- registers in flight -----------------------------------------------------------------------------------------------


def emit_fence(out: Emitter, op: Op) -> None:
    """The fence, and before it an empty asm statement on the registers that other code wrote: the compiler must
    not compute them behind it."""
    hold(out, handed_over(out.function).get(op, ()))
    out.line('asm volatile("wgmma.fence.sync.aligned;" ::: "memory");')


def emit_wait(out: Emitter, op: Op, pending: int) -> None:
    """The wait, and after it an empty asm statement on every register that an instruction may still own before it."""
    out.line(f'asm volatile("wgmma.wait_group.sync.aligned {pending};" ::: "memory");')
    hold(out, in_flight(out.function, AGENT).get(op, ()))


HELD_TOGETHER = 32
"""Operands of one statement. NVRTC's time grows with the square of their number: a statement of 192 costs a kernel with
three of them a sixth of its time, for the same machine code."""


def hold(out: Emitter, fragments: tuple[Value, ...]) -> None:
    """Keep the compiler from moving accesses of these registers across this place."""
    for fragment in fragments:
        kind = fragment.type
        assert isinstance(kind, FragType)
        cpp, constraint = accumulator_type(kind.elem)
        count = registers(kind.elem, kind.n)
        name = f"hold_{count}_{cpp}"
        held = [f'"+{constraint}"(r[{i}])' for i in range(count)]
        lines = [
            f'  asm volatile("" : {_wrapped(held[i : i + HELD_TOGETHER])} :: "memory");\n'
            for i in range(0, count, HELD_TOGETHER)
        ]
        out.helper(name, f"__device__ __forceinline__ void {name}({cpp}* r) {{\n{''.join(lines)}}}\n")
        out.line(f"{name}({_all_of(out, fragment, kind)});")


def _all_of(out: Emitter, fragment: Value, kind: FragType) -> str:
    return out.value(fragment) if kind.elem in (F32, I32) else f"&{out.register(fragment, 0)}"
