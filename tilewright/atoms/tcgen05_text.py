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
    name = _helper_name(atom)
    a_type, a_constraint = _IN_SHARED if atom.reads_shared("A") else _WORD
    kinds = {x: _IN_SHARED if x == "zero columns" else _WORD for x in atom.further}
    names = {x: _PARAMETERS.get(x, x.replace(" ", "_")) for x in atom.further}
    parameters = "".join(f"{kinds[x][0]} {names[x]}, " for x in atom.further)
    inputs = "".join(f', "{kinds[x][1]}"({names[x]})' for x in atom.further)
    return out.helper(
        name,
        f"__device__ __forceinline__ void {name}(uint32_t d, {a_type} a, uint64_t b, uint32_t descriptor, "
        f"{parameters}uint32_t accumulate) {{\n"
        '  asm volatile("{ .reg .pred p; setp.ne.b32 p, %4, 0;\\n"\n'
        f'               "{atom.mnemonic()} {", ".join(_ptx_operands(atom))}; }}"\n'
        f'               :: "r"(d), "{a_constraint}"(a), "l"(b), "r"(descriptor), "r"(accumulate){inputs} '
        ': "memory");\n'
        "}\n",
    )


_IN_SHARED, _WORD = ("uint64_t", "l"), ("uint32_t", "r")
"""Type and constraint of a matrix descriptor, and of an address of tensor memory or a register."""
_PARAMETERS = {"E": "metadata", "SFA": "sfa", "SFB": "sfb"}


def _ptx_operands(atom: Tcgen05Mma | DescribedMma) -> list[str]:
    """``[d], a, b, [metadata], idesc, [scale A], [scale B], {disabled lanes}, enable input d``, then the mask of
    columns that are zero or the scale of d. ``a`` is a descriptor, or in brackets an address of tensor memory."""
    registers = {x: f"%{5 + i}" for i, x in enumerate(atom.further)}
    operands = ["[%0]", "%1" if atom.reads_shared("A") else "[%1]", "%2"]
    if "E" in registers:
        operands.append(f"[{registers['E']}]")
    operands.append("%3")
    operands += [f"[{registers[x]}]" for x in ("SFA", "SFB") if x in registers]
    disabled_lanes = [register for x, register in registers.items() if x.startswith("lanes")]
    if disabled_lanes:
        operands.append(f"{{{', '.join(disabled_lanes)}}}")
    operands.append("p")
    if "zero columns" in registers:
        operands.append(registers["zero columns"])
    if scale_d := _scale_d(atom):
        operands.append(str(scale_d))
    return operands


def _helper_name(atom: Tcgen05Mma | DescribedMma) -> str:
    """One name for each text."""
    qualifiers, _, collector = atom.mnemonic().removeprefix(atom.form.mnemonic).partition(".collector::")
    parts = ["tcgen05_mma", atom.kind, *["ws"] * atom.form.weight_stationary, *["sp"] * atom.form.sparse]
    parts += [atom.source.lower(), *["pair"] * (atom.ctas == 2)]
    if qualifiers:
        parts.append(qualifiers[-2:].lower())
    if collector:
        parts.append(collector.replace("::", "_"))
    parts += ["masked"] * ("zero columns" in atom.further) + ["lanes"] * ("lanes 0" in atom.further)
    if scale_d := _scale_d(atom):
        parts.append(f"scaled_{scale_d}")
    return "_".join(parts)


def _scale_d(atom: Tcgen05Mma | DescribedMma) -> int:
    """The exponent of the scale of D; only instructions whose descriptors are numbers have one."""
    return int(getattr(atom, "scale_d", 0))


def _moved(out: Emitter, address: Value, elements: int, width: int) -> str:
    """The address of tensor memory at an offset in elements. Tiles begin at whole columns."""
    assert elements % elements_per_column(width) == 0
    step = tmem_address(0, elements, width)
    return f"{out.value(address)} + {step:#x}" if step else out.value(address)


def _descriptor(out: Emitter, low: Value, step: int, high: int) -> str:
    out.helper(DESCRIPTOR, DESCRIPTOR_SOURCE)
    return f"{DESCRIPTOR}({out.value(low)}{f' + {step}' if step else ''}, {high:#x})"
