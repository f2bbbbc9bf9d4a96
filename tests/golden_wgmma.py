"""Handlers of the golden lines about wgmma: descriptors, fragments, SM90 tiled MMAs, selectors of shared memory."""

from __future__ import annotations

from typing import Any

from tests.golden import handler
from tilewright.atoms.matrix_descriptor import MatrixDescriptor, descriptor_layout, matrix_descriptor
from tilewright.atoms.names import mma_by_name
from tilewright.atoms.value_types import BY_NAME
from tilewright.cute.nvgpu.warp import LdMatrix8x8x16bOp, StMatrix8x8x16bOp
from tilewright.lang.numbers.numeric import class_of
from tilewright.layout import (
    Layout,
    cosize,
    get_nonswizzle_portion,
    get_swizzle_portion,
    make_smem_atom,
    parse,
    size,
    tile_to_shape,
    widest_smem_atom,
    zipped_divide,
)
from tilewright.layout.swizzle import Swizzle
from tilewright.tiled.tiled_mma import TiledMma, make_tiled_mma
from tilewright.utils import sm90
from tilewright.utils.layout_enum import LayoutEnum


def _type(name: str) -> Any:
    return BY_NAME[name.upper()]


def _byte_swizzle(layout: Any) -> Swizzle:
    """The swizzle of a layout in elements, on bytes."""
    return Swizzle(get_swizzle_portion(layout).bits, 4, 3)


def _fields(desc: MatrixDescriptor) -> dict[str, Any]:
    return {
        "desc": f"0x{desc.word:016x}",
        "start_address": desc.start_address,
        "leading_byte_offset": desc.leading,
        "stride_byte_offset": desc.stride,
        "base_offset": 0,
        "layout_type": desc.layout_type,
    }


@handler("gmma_descriptor")
def _descriptor(line: dict[str, Any]) -> dict[str, Any]:
    args = line["args"]
    type_ = _type(args["type"])
    _, major, kind, _ = args["atom"].split("_")
    order = tuple(x - 1 for x in parse(args["tile_order"]))
    layout = tile_to_shape(make_smem_atom(major, kind, type_.width), parse(args["tile"]), order)
    plain = get_nonswizzle_portion(layout)
    assert str(plain) == args["smem_layout"] and str(_byte_swizzle(layout)) == args["smem_swizzle"]
    mn, _ = parse(args["tile"])
    blocks = zipped_divide(plain, (mn, 256 // type_.width))
    tile, rest = blocks[0], blocks[1]
    desc = matrix_descriptor(tile, _byte_swizzle(layout), major, type_, args["base_address"])
    steps = descriptor_layout(_with_rest(tile, rest[1]), type_)[1]
    words = [f"0x{desc.word + steps(i):016x}" for i in range(size(steps))]
    return {
        "result": _fields(desc)
        | {"instruction_tile": tuple(size(x) for x in tile), "kblock_layout": steps, "kblock_desc": words}
    }


def _with_rest(tile: Layout, rest: Layout) -> Layout:
    return Layout((tile.shape, rest.shape), (tile.stride, rest.stride))


def _tiled_mma(args: dict[str, Any]) -> TiledMma:
    name = args["atom"]
    if not name.endswith("_TN"):
        name += f"<{args['major_A']},{args['major_B']}>"
    return make_tiled_mma(mma_by_name(name), parse(args["atom_layout"]))


@handler("sm90_tiled_mma")
def _sm90_tiled_mma(line: dict[str, Any]) -> dict[str, Any]:
    mma = _tiled_mma(line["args"])
    m, n, k = parse(line["args"]["cta_tile"])
    shape = mma.partition_shape_C((m, n))
    return {
        "result": {
            "threads": mma.size,
            "thr_layout_vmnk": mma.thr_layout_vmnk,
            "tile_mnk": mma.tile_shape_mnk,
            "partition_shape_A": mma.partition_shape_A((m, k)),
            "partition_shape_B": mma.partition_shape_B((n, k)),
            "partition_shape_C": shape,
            "partition_fragment_C": mma.fragment_layout("C", shape),
            "layoutA_TV": mma.tv_layout_A_tiled,
            "layoutB_TV": mma.tv_layout_B_tiled,
            "layoutC_TV": mma.tv_layout_C_tiled,
        }
    }


@handler("sm90_partition")
def _sm90_partition(line: dict[str, Any]) -> dict[str, Any]:
    args = line["args"]
    thread = _tiled_mma(args).get_slice(args["thr"])
    layout, offset = thread.partition(args["operand"], parse(args["tensor"]))
    return {"result": {"offset": offset, "layout": layout, "fragment": thread.fragment_layout("C", layout)}}


@handler("gmma_fragment")
def _gmma_fragment(line: dict[str, Any]) -> dict[str, Any]:
    args = line["args"]
    mma, which = _tiled_mma(args), args["operand"]
    thread = mma.get_slice(args["thr"])
    layout, offset = thread.partition(which, parse(args["smem_layout"]))
    instruction = mma.instruction
    type_ = instruction.type_a if which == "A" else instruction.type_b
    address = args["base_address"] + offset * type_.width // 8
    if instruction.reads_shared(which):
        swizzle = parse(args["smem_swizzle"])
        desc = matrix_descriptor(layout[0], swizzle, instruction.major_of(which), type_, address)
        fragment: Any = _fields(desc) | {"layout": descriptor_layout(layout, type_)}
    else:
        fragment = mma.fragment_layout(which, layout)
    return {"result": {"partition": {"address": address, "layout": layout}, "fragment": fragment}}


# -- selectors ---------------------------------------------------------------------------------------------------------


def _atom(major: str, kind: str, type_: Any) -> dict[str, Any]:
    atom = make_smem_atom(major, kind, type_.width)
    return {
        "atom": f"Layout_{major}_{kind}_Atom",
        "smem_swizzle": _byte_swizzle(atom),
        "smem_layout": get_nonswizzle_portion(atom),
    }


@handler("smem_selector")
def _smem_selector(line: dict[str, Any]) -> dict[str, Any]:
    args = line["args"]
    type_, major = _type(args["type"]), args["major"]
    extent = args["blk_mn"] if major == "MN" else args["blk_k"]
    return {"result": _atom(major, widest_smem_atom(major, extent, type_.width, args["selector"] == "rs"), type_)}


@handler("smem_tile_to_shape")
def _smem_tile_to_shape(line: dict[str, Any]) -> dict[str, Any]:
    args = line["args"]
    _, major, kind, _ = args["atom"].split("_")
    order = tuple(x - 1 for x in parse(args["order"]))
    layout = tile_to_shape(make_smem_atom(major, kind, _type(args["type"]).width), parse(args["shape"]), order)
    plain = get_nonswizzle_portion(layout)
    return {"result": {"smem_swizzle": _byte_swizzle(layout), "smem_layout": plain, "cosize": cosize(plain)}}


@handler("sm90_epilogue_tile")
def _epilogue_tile(line: dict[str, Any]) -> dict[str, Any]:
    args = line["args"]
    tile = (*parse(args["cta_tile_mn"]), 64)
    cooperative = args["schedule"] == "cooperative"
    made = sm90.compute_tile_shape_or_override(tile, class_of(_type(args["type_D"])), is_cooperative=cooperative)
    return {"result": {"epilogue_tile": made}}


@handler("sm90_epilogue_smem")
def _epilogue_smem(line: dict[str, Any]) -> dict[str, Any]:
    args = line["args"]
    type_, (m, n) = _type(args["type_D"]), parse(args["epilogue_tile"])
    order = {"row": LayoutEnum.ROW_MAJOR, "column": LayoutEnum.COL_MAJOR}[args["layout_D"]]
    dtype = class_of(type_)
    matrices = sm90.matrices_of_epilogue(order, dtype, n)
    ops = ["AutoVectorizingCopy"] * 2
    if matrices is not None:
        ops = [op(*matrices).matrix_copy().cute_name for op in (StMatrix8x8x16bOp, LdMatrix8x8x16bOp)]
    kind = sm90.get_smem_layout_atom(order, dtype, n if args["layout_D"] == "row" else m)
    return {"result": {"store_op": ops[0], "load_op": ops[1]} | _atom(*kind.value.split("_"), type_)}
