"""The CUDA text of ``tcgen05.mma``: one thread, which the warp elects, issues the instructions of a call in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.atoms.tensor_memory import elements_per_column, tmem_address
from tilewright.atoms.warp import elect
from tilewright.atoms.wgmma_text import DESCRIPTOR, DESCRIPTOR_SOURCE
from tilewright.ir.core import Constant, Op, Value
from tilewright.ir.instruction import Emitter
from tilewright.layout.evaluate import static_offsets

if TYPE_CHECKING:
    from tilewright.atoms.tcgen05_described import DescribedMma
    from tilewright.atoms.tcgen05_mma import Tcgen05Mma


def emit_mma(atom: Tcgen05Mma, out: Emitter, op: Op) -> None:
    """All instructions of a call are written out: their operands differ by immediates."""
    name = mma_helper(atom, out)
    d, a, b, accumulate, *factors = op.operands
    rests = {x: [static_offsets(op.attrs[f"{x}_layout"][i]) for i in (1, 2)] for x in "dab"}
    first = str(int(bool(accumulate.value))) if isinstance(accumulate, Constant) else out.value(accumulate)
    word = f"{atom.descriptor.word:#x}"
    if factors:
        sfa, sfb = map(out.value, factors)
        word = f"{word}u | ({sfa} >> 30 & 3u) << 29 | ({sfb} >> 30 & 3u) << 4, {sfa}, {sfb}"
    with out.block(f"if ({elect(out)}())"):
        for m, n, k in atom.issued(op):
            into = _moved(out, d, rests["d"][0][m] + rests["d"][1][n], atom.type_d.width)
            step = rests["a"][0][m] + rests["a"][1][k]
            if atom.reads_shared("A"):
                left = _descriptor(out, a, step, op.attrs["a_high"])
            else:
                left = _moved(out, a, step, atom.stored_type("A").width)
            right = _descriptor(out, b, rests["b"][0][n] + rests["b"][1][k], op.attrs["b_high"])
            out.line(f"{name}({into}, {left}, {right}, {word}, {first if k == 0 else '1'});")


def mma_helper(atom: Tcgen05Mma | DescribedMma, out: Emitter) -> str:
    """The name of the device function that issues one instruction. Its arguments are those of :class:`.DescribedMma`,
    but that ``accumulate`` is the last."""
    shared, further = atom.reads_shared("A"), atom.further
    scale_d = int(getattr(atom, "scale_d", 0))  # only those whose descriptors are numbers have one
    form = atom.form
    ends = [atom.kind, *["ws"] * form.weight_stationary, *["sp"] * form.sparse, atom.source.lower()]
    ends += ["pair"] * (atom.ctas == 2)
    rest = atom.mnemonic().removeprefix(form.mnemonic)
    ends += [f"{part[-2:].lower()}" for part in [rest.partition(".collector")[0]] if part]
    ends += [part.replace("::", "_") for part in [rest.partition(".collector::")[2]] if part]
    ends += ["masked"] * ("zero columns" in further) + ["lanes"] * ("lanes 0" in further)
    ends += [f"scaled_{scale_d}"] * bool(scale_d)
    name = "_".join(["tcgen05_mma", *ends])
    a_type, constraint, slot = ("uint64_t", "l", "%1") if shared else ("uint32_t", "r", "[%1]")
    slots = {x: f"%{5 + i}" for i, x in enumerate(further)}
    metadata = f", [{slots['E']}]" if "E" in slots else ""
    scales = f", [{slots['SFA']}], [{slots['SFB']}]" if "SFA" in slots else ""
    mask = f", {slots['zero columns']}" if "zero columns" in slots else ""
    words = [x for x in further if x.startswith("lanes")]
    alone = f", {{{', '.join(slots[x] for x in words)}}}" if words else ""
    mask += f", {scale_d}" if scale_d else ""
    names = {"E": "metadata", "SFA": "sfa", "SFB": "sfb", "zero columns": "zero_columns"}
    names |= {x: x.replace(" ", "_") for x in words}
    types = {x: ("uint64_t", "l") if x == "zero columns" else ("uint32_t", "r") for x in further}
    parameters = "".join(f"{types[x][0]} {names[x]}, " for x in further)
    bound = "".join(f', "{types[x][1]}"({names[x]})' for x in further)
    return out.helper(
        name,
        f"__device__ __forceinline__ void {name}(uint32_t d, {a_type} a, uint64_t b, uint32_t descriptor, "
        f"{parameters}uint32_t accumulate) {{\n"
        '  asm volatile("{ .reg .pred p; setp.ne.b32 p, %4, 0;\\n"\n'
        f'               "{atom.mnemonic()} [%0], {slot}, %2{metadata}, %3{scales}{alone}, p{mask}; }}"\n'
        f'               :: "r"(d), "{constraint}"(a), "l"(b), "r"(descriptor), "r"(accumulate){bound} : "memory");\n'
        "}\n",
    )


def _moved(out: Emitter, address: Value, elements: int, width: int) -> str:
    """The address of tensor memory at an offset in elements. Tiles begin at whole columns."""
    assert elements % elements_per_column(width) == 0
    step = tmem_address(0, elements, width)
    return f"{out.value(address)} + {step:#x}" if step else out.value(address)


def _descriptor(out: Emitter, low: Value, step: int, high: int) -> str:
    out.helper(DESCRIPTOR, DESCRIPTOR_SOURCE)
    return f"{DESCRIPTOR}({out.value(low)}{f' + {step}' if step else ''}, {high:#x})"
