"""The tabs of threads and values, and of TMA."""

from __future__ import annotations

from typing import Any

from tilewright.atoms.copy_table import COPIES
from tilewright.atoms.mma import Mma
from tilewright.atoms.names import copy_by_name
from tilewright.explorer.answer import Answer, Field, FieldError, Form, Tab
from tilewright.explorer.instructions import find, layouts, names
from tilewright.ir.tensormap import swizzle_name
from tilewright.ir.types import E4M3, F16, F32, F64, ScalarType
from tilewright.layout import Layout, format_tree
from tilewright.tiled import (
    CopyAtom,
    TiledMma,
    make_tiled_copy_A,
    make_tiled_copy_B,
    make_tiled_copy_C,
    make_tiled_copy_tv,
    make_tiled_mma,
)
from tilewright.viz import (
    Figure,
    copy_atom_figure,
    mma_atom_figure,
    retile_figure,
    tiled_copy_figure,
    tiled_mma_figure,
)
from tilewright.viz.tma_box import tma_box_figure, tma_plan

ONE, MMA, COPY, RETILE = "one instruction", "tiled MMA", "tiled copy", "retile"
LARGE = 2048  # cells from which a picture has colours alone, so that it fits a screen
TYPES: dict[str, ScalarType] = {"8": E4M3, "16": F16, "32": F32, "64": F64}


def threads(form: Form) -> Answer:
    """The thread that holds each element of an instruction, a tiled MMA or a tiled copy; or what retile does."""
    thread = form.number("thread", 0, 1023) if form["thread"].strip() else None
    bits = int(form["element_bits"])
    with form.at("atom"):
        atom = find(form["atom"].strip())
        done = Answer(texts=[("layouts", "\n".join(f"{title}: {shown}" for title, shown in layouts(atom, bits)))])
    if form["what"] == RETILE:
        picture = _retile(form, done, atom, thread or 0)
    else:
        draw = {ONE: _one, MMA: _tiled_mma, COPY: _tiled_copy}[form["what"]]
        picture = draw(form, done, atom, {"thread": thread, "color_by": form["colour"]})
    done.pictures.append((form["what"], picture))
    return done


def _one(form: Form, done: Answer, atom: Any, options: dict[str, Any]) -> Figure:
    done.python = f'tilewright atom "{form["atom"]}" --svg atom.svg'
    with form.at("atom"):
        if isinstance(atom, Mma):
            figure = mma_atom_figure(atom, **options)
            if sum(len(panel.cells) for panel in figure.panels) <= LARGE:
                return figure
            done.python = (
                "from tilewright.atoms.names import mma_by_name\nfrom tilewright.viz import mma_atom_figure\n\n"
                f'mma_atom_figure(mma_by_name("{form["atom"]}")).small().save("atom.svg")\n'
            )
            return figure.small()
        return copy_atom_figure(atom, int(form["element_bits"]), **options)


def _mma_of(form: Form, atom: Any) -> tuple[TiledMma, str]:
    """The tiled MMA of the fields, and the Python that makes it."""
    if not isinstance(atom, Mma):
        raise FieldError("atom", f"{form['atom']} is a copy instruction: choose a tiled copy, or an MMA instruction")
    atoms, tile = form.layout("atoms", Layout), form.expression("permutation")
    with form.at("permutation"):
        made = make_tiled_mma(atom, atoms, tile if isinstance(tile, tuple) else (tile,))
    text = f'make_tiled_mma(mma_by_name("{form["atom"]}"), parse("{atoms}"), parse("{format_tree(tile)}"))'
    return made, text


def _tiled_mma(form: Form, done: Answer, atom: Any, options: dict[str, Any]) -> Figure:
    made, text = _mma_of(form, atom)
    done.texts.append(("tiled MMA", str(made)))
    done.python = (
        "from tilewright.atoms.names import mma_by_name\nfrom tilewright.layout import parse\n"
        "from tilewright.tiled import make_tiled_mma\nfrom tilewright.viz import tiled_mma_figure\n\n"
        f'tiled = {text}\ntiled_mma_figure(tiled).save("tiled_mma.svg")\n'
    )
    with form.at("permutation"):
        return tiled_mma_figure(made, **options)


def _tiled_copy(form: Form, done: Answer, atom: Any, options: dict[str, Any]) -> Figure:
    if isinstance(atom, Mma):
        raise FieldError("atom", f"{form['atom']} is an MMA instruction: choose a tiled MMA, or a copy instruction")
    by, values = form.layout("by", Layout), form.layout("values", Layout)
    element = TYPES[form["element_bits"]]
    with form.at("values"):
        tiled = make_tiled_copy_tv(CopyAtom(atom, element), by, values)
        done.texts.append(("tiled copy", str(tiled)))
        done.python = (
            "from tilewright.atoms.names import copy_by_name\nfrom tilewright.ir.types import *\n"
            "from tilewright.layout import parse\nfrom tilewright.tiled import CopyAtom, make_tiled_copy_tv\n"
            "from tilewright.viz import tiled_copy_figure\n\n"
            f'atom = CopyAtom(copy_by_name("{form["atom"]}"), {element.name.upper()})\n'
            f'tiled = make_tiled_copy_tv(atom, parse("{by}"), parse("{values}"))\n'
            'tiled_copy_figure(tiled).save("tiled_copy.svg")\n'
        )
        return tiled_copy_figure(tiled, **options)


def _retile(form: Form, done: Answer, atom: Any, thread: int) -> Figure:
    made, text = _mma_of(form, atom)
    element, operand = TYPES[form["element_bits"]], form["operand"]
    make = {"A": make_tiled_copy_A, "B": make_tiled_copy_B, "C": make_tiled_copy_C}[operand]
    with form.at("copy"):
        tiled = make(CopyAtom(copy_by_name(form["copy"].strip()), element), made)
        done.texts.append(("tiled copy", str(tiled)))
        done.python = (
            "from tilewright.atoms.names import copy_by_name, mma_by_name\nfrom tilewright.ir.types import *\n"
            "from tilewright.layout import parse\nfrom tilewright.tiled import *\n"
            "from tilewright.viz import retile_figure\n\n"
            f'mma = {text}\natom = CopyAtom(copy_by_name("{form["copy"].strip()}"), {element.name.upper()})\n'
            f'retile_figure({make.__name__}(atom, mma), mma, "{operand}", {thread}).save("retile.svg")\n'
        )
        return retile_figure(tiled, made, operand, thread)


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
    lines = [
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
    return Answer([("the box", picture)], [("the tensor map", "\n".join(lines))], python=python)


def _only(*what: str) -> tuple[str, tuple[str, ...]]:
    return "what", what


THREADS = Tab(
    "threads",
    "Threads and values",
    "Who holds which element: of an instruction, a tiled MMA, a tiled copy; what retile does.",
    (
        Field("what", "Of what", ONE, (ONE, MMA, COPY, RETILE)),
        Field("atom", "Instruction", "SM80_16x8x16_F32F16F16F32_TN", tuple(names()), open=True),
        Field("element_bits", "Bits of an element (copies)", "16", tuple(TYPES)),
        Field("atoms", "Layout of atoms (M, N, K)", "(2,2,1):(1,2,4)", where=_only(MMA, RETILE)),
        Field("permutation", "Tile (M, N, K), _ for its own", "(32,32,16)", where=_only(MMA, RETILE)),
        Field("copy", "Copy instruction", "SM75_U32x4_LDSM_N", tuple(COPIES), open=True, where=_only(RETILE)),
        Field("operand", "Operand", "A", ("A", "B", "C"), where=_only(RETILE)),
        Field("by", "Layout of threads", "(16,8):(8,1)", where=_only(COPY)),
        Field("values", "Layout of values", "(1,8):(0,1)", where=_only(COPY)),
        Field("colour", "Colour", "thread", ("thread", "warp", "lane", "value"), where=_only(ONE, MMA, COPY)),
        Field("thread", "Only this thread (of retile: 0)", ""),
    ),
    threads,
)
TMA = Tab(
    "tma",
    "TMA box",
    "What one TMA load brings, where it lands in shared memory, and its tensor map.",
    (
        Field("tensor", "Tensor", "(100,72):(72,1)"),
        Field("element_bits", "Bits of an element", "16", tuple(TYPES)),
        Field("box", "Box", "(16,64)"),
        Field("at", "Coordinates", "(88,32)"),
        Field("swizzle", "Swizzle in bytes", "128", ("0", "32", "64", "128")),
        Field("multicast", "Blocks that share it (multicast)", "1", ("1", "2", "4")),
    ),
    tma,
)
