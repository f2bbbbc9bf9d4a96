"""The tabs of threads and values, and of TMA."""

from __future__ import annotations

from typing import Any

from tilewright.atoms.mma import Mma
from tilewright.explorer.answer import Answer, Field, FieldError, Form, Tab
from tilewright.explorer.instructions import find, layouts, names
from tilewright.ir.tensormap import swizzle_name
from tilewright.ir.types import E4M3, F16, F32, F64, ScalarType
from tilewright.layout import Layout, format_tree
from tilewright.tiled import CopyAtom, make_tiled_copy_tv, make_tiled_mma
from tilewright.viz import copy_atom_figure, mma_atom_figure, tiled_copy_figure, tiled_mma_figure
from tilewright.viz.tma_box import tma_box_figure, tma_plan

ONE, MMA, COPY = "one instruction", "tiled MMA", "tiled copy"
TYPES: dict[str, ScalarType] = {"8": E4M3, "16": F16, "32": F32, "64": F64}


def threads(form: Form) -> Answer:
    """Who holds which element, of an instruction, a tiled MMA or a tiled copy."""
    thread = form.number("thread", 0, 1023) if form["thread"].strip() else None
    options: dict[str, Any] = {"thread": thread, "color_by": form["colour"]}
    bits = int(form["element_bits"])
    with form.at("atom"):
        atom = find(form["atom"].strip())
        done = Answer(texts=[("layouts", "\n".join(f"{title}: {shown}" for title, shown in layouts(atom, bits)))])
    if form["what"] == ONE:
        with form.at("atom"):
            picture = (
                mma_atom_figure(atom, **options) if isinstance(atom, Mma) else copy_atom_figure(atom, bits, **options)
            )
        done.python = f'tilewright atom "{form["atom"]}" --svg atom.svg'
    elif form["what"] == MMA:
        _need(form, isinstance(atom, Mma), "a copy instruction: choose a tiled copy, or an MMA instruction")
        atoms, tile = form.layout("atoms", Layout), form.expression("permutation")
        with form.at("permutation"):
            made = make_tiled_mma(atom, atoms, tile if isinstance(tile, tuple) else (tile,))
            picture = tiled_mma_figure(made, **options)
        done.texts.append(("tiled MMA", str(made)))
        done.python = (
            "from tilewright.atoms.names import mma_by_name\nfrom tilewright.layout import parse\n"
            "from tilewright.tiled import make_tiled_mma\nfrom tilewright.viz import tiled_mma_figure\n\n"
            f'tiled = make_tiled_mma(mma_by_name("{form["atom"]}"), parse("{atoms}"), parse("{format_tree(tile)}"))\n'
            'tiled_mma_figure(tiled).save("tiled_mma.svg")\n'
        )
    else:
        _need(form, not isinstance(atom, Mma), "an MMA instruction: choose a tiled MMA, or a copy instruction")
        by, values = form.layout("by", Layout), form.layout("values", Layout)
        with form.at("values"):
            tiled = make_tiled_copy_tv(CopyAtom(atom, TYPES[form["element_bits"]]), by, values)
            picture = tiled_copy_figure(tiled, **options)
        done.texts.append(("tiled copy", str(tiled)))
        done.python = (
            "from tilewright.atoms.names import copy_by_name\nfrom tilewright.ir.types import *\n"
            "from tilewright.layout import parse\nfrom tilewright.tiled import CopyAtom, make_tiled_copy_tv\n"
            "from tilewright.viz import tiled_copy_figure\n\n"
            f'atom = CopyAtom(copy_by_name("{form["atom"]}"), {TYPES[form["element_bits"]].name.upper()})\n'
            f'tiled = make_tiled_copy_tv(atom, parse("{by}"), parse("{values}"))\n'
            'tiled_copy_figure(tiled).save("tiled_copy.svg")\n'
        )
    done.pictures.append((form["what"], picture))
    return done


def _need(form: Form, fits: bool, otherwise: str) -> None:
    if not fits:
        raise FieldError("atom", f"{form['atom']} is {otherwise}")


def tma(form: Form) -> Answer:
    """A box of a matrix and the shared memory that it fills; the fields of its tensor map."""
    element = TYPES[form["element_bits"]]
    tensor, box, at = form.layout("tensor", Layout), form.pair("box"), form.pair("at")
    swizzle, blocks = int(form["swizzle"]), int(form["multicast"])
    if min(box) < 1:
        raise FieldError("box", "extents are positive")
    with form.at("box"):
        plan, tensor_map = tma_plan(tensor, box, element, swizzle, blocks)
        picture = tma_box_figure(tensor, box, at, element, swizzle=swizzle)
    shared = f", {format_tree(plan.whole_box)} of all {blocks}" if blocks > 1 else ""
    told = [
        f"element      {element}",
        f"dims         {format_tree(tensor_map.dims)}  (the contiguous mode first)",
        f"strides      {format_tree(tensor_map.strides)} bytes  (of all modes but the first)",
        f"box          {format_tree(plan.box)} of one block{shared}",
        f"swizzle      {swizzle_name(tensor_map.swizzle)}",
        f"coordinates  {format_tree(at if tensor.stride[0] == 1 else at[::-1])}",
        f"bytes        {plan.box_bytes} by this block; its mbarrier expects {plan.tile_bytes}",
    ]
    python = (
        "from tilewright.ir.types import *\nfrom tilewright.layout import parse\n"
        "from tilewright.viz.tma_box import tma_box_figure\n\n"
        f'tma_box_figure(parse("{tensor}"), {box}, {at}, {element.name.upper()}, swizzle={swizzle}).save("box.svg")\n'
    )
    return Answer([("the box", picture)], [("the tensor map", "\n".join(told))], python=python)


def _only(what: str) -> tuple[str, tuple[str, ...]]:
    return "what", (what,)


THREADS = Tab(
    "threads", "Threads and values", "Who holds which element: of an instruction, a tiled MMA, a tiled copy.",
    (
        Field("what", "Of what", ONE, (ONE, MMA, COPY)),
        Field("atom", "Instruction", "SM80_16x8x16_F32F16F16F32_TN", tuple(names()), open=True),
        Field("element_bits", "Bits of an element (copies)", "16", tuple(TYPES)),
        Field("atoms", "Layout of atoms (M, N, K)", "(2,2,1):(1,2,4)", where=_only(MMA)),
        Field("permutation", "Tile (M, N, K), _ for its own", "(32,32,16)", where=_only(MMA)),
        Field("by", "Layout of threads", "(16,8):(8,1)", where=_only(COPY)),
        Field("values", "Layout of values", "(1,8):(0,1)", where=_only(COPY)),
        Field("colour", "Colour", "thread", ("thread", "warp", "lane", "value")),
        Field("thread", "Only this thread", ""),
    ),
    threads,
)  # fmt: skip
TMA = Tab(
    "tma", "TMA box", "What one TMA load brings, where it lands in shared memory, and its tensor map.",
    (
        Field("tensor", "Tensor", "(100,72):(72,1)"),
        Field("element_bits", "Bits of an element", "16", tuple(TYPES)),
        Field("box", "Box", "(16,64)"),
        Field("at", "Coordinates", "(88,32)"),
        Field("swizzle", "Swizzle in bytes", "128", ("0", "32", "64", "128")),
        Field("multicast", "Blocks that share it (multicast)", "1", ("1", "2", "4")),
    ),
    tma,
)  # fmt: skip
