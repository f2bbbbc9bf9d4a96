"""Handlers of the golden lines about MMAs of blocks: partitions, fragments, scale factors, the order of issue."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from tests.golden import handler
from tests.golden_blackwell import atom_kind, fields_of, type_of
from tests.golden_blackwell_validity import form_of
from tilewright.atoms.matrix_descriptor import TCGEN05, descriptor_layout, matrix_descriptor
from tilewright.atoms.mma import Mma
from tilewright.atoms.scale_factors import ScaleTile
from tilewright.atoms.tcgen05_descriptor import InstructionDescriptor, scale_factor_id
from tilewright.atoms.tcgen05_layouts import (
    a_fragment,
    accumulator_fragment,
    cta_layouts,
    issue_order,
)
from tilewright.atoms.tcgen05_mma import Tcgen05Mma
from tilewright.atoms.tcgen05_validity import SCALED_KINDS, MmaForm, check_mma_shape, instruction_k
from tilewright.atoms.tensor_memory import tmem_address, tmem_columns, tmem_place
from tilewright.cute.nvgpu.common import OperandMajorMode
from tilewright.cute.nvgpu.tcgen05 import tile_to_mma_shape
from tilewright.layout import Layout, get_nonswizzle_portion, make_smem_atom, offsets, parse, size, tile_to_shape
from tilewright.layout.smem_atoms import BYTE_SWIZZLES
from tilewright.tiled.tiled_mma import TiledMma, make_tiled_mma
from tilewright.utils.blockscaled_layout import BlockScaledBasicChunk, tile_atom_to_shape_SF


@dataclass(frozen=True, repr=False)
class BlockMma(Mma):
    """What a tiled MMA asks of an instruction: shape, and layouts by block."""

    shape_mnk: tuple[int, int, int]
    ctas: int
    name = "block_mma"
    cute_name = "BLOCK_MMA"

    def __post_init__(self) -> None:
        made = cta_layouts(self.shape_mnk, self.ctas)
        for key, value in {"thr_id": made.thr_id, "layout_a": made.a, "layout_b": made.b, "layout_c": made.c}.items():
            object.__setattr__(self, key, value)


class Case:
    """The MMA of a line."""

    def __init__(self, args: dict[str, Any]) -> None:
        form = form_of(args["atom"])
        kind = "mxf4nvf4" if form.kind == "mxf4" and args.get("sf_vec_size") == 16 else form.kind
        self.form: MmaForm = form._replace(kind=kind)
        self.types = [type_of(args[f"type_{x}"]) for x in "ABC"]
        self.majors = (args["major_A"], args["major_B"])
        self.shape = (args["M"], args["N"], instruction_k(kind))
        check_mma_shape(self.form, self.shape, self.majors)
        self.desc = InstructionDescriptor(
            kind,
            self.types[0],
            self.types[1],
            self.types[2],
            args["M"],
            args["N"],
            self.majors,
            scale=args["type_SF"] if kind in SCALED_KINDS else None,
        )
        self.tiled: TiledMma = make_tiled_mma(
            self.instruction() or BlockMma(self.shape, self.form.ctas), parse(args.get("atom_layout", "(1,1,1)"))
        )
        self.tile = parse(args.get("mma_tile", "(0,0,0)"))

    def instruction(self) -> Tcgen05Mma | None:
        """The instruction, where it is one of those that are here; else the line is about data alone."""
        form, (type_a, type_b, type_d) = self.form, self.types
        if form.ctas == 2 or form.sparse or form.kind in SCALED_KINDS or min(type_a.width, type_b.width) < 8:
            return None
        source = "TS" if form.a_in_tmem else "SS"
        return Tcgen05Mma(form.kind, self.shape, type_d, type_a, type_b, source, self.majors)

    def order(self, a_layout: Layout, b_layout: Layout) -> list[tuple[int, int]]:
        """The tiles of one k-block as ``cute.gemm`` issues them."""
        tiles = (size(a_layout[1]), size(b_layout[1]))
        if (atom := self.instruction()) is None:
            return list(issue_order(*tiles, self.form.a_in_tmem))
        call = SimpleNamespace(attrs={"d_layout": Layout((1, *tiles)), "a_layout": Layout((1, tiles[0], 1))})
        return [(m, n) for m, n, _ in atom.issued(call)]

    def face(self, which: str) -> Any:
        m, n, k = self.tile
        return {"A": (m, k), "B": (n, k), "C": (m, n)}[which]

    def accumulator(self) -> Layout:
        shape = self.tiled.partition_shape_C(self.face("C"))
        if (atom := self.instruction()) is not None:
            return atom.tensor_memory("C", shape)
        return accumulator_fragment(shape, self.types[2].width, self.form.ctas, self.form.a_in_tmem)

    def a_in_tmem(self, stages: tuple[int, ...] = ()) -> Layout:
        shape = (*self.tiled.partition_shape_A(self.face("A")), *stages)
        if (atom := self.instruction()) is not None:
            return atom.tensor_memory("A", shape)
        return a_fragment(shape, self.types[0].width, self.form.ctas)

    def shared(self, which: str, args: dict[str, Any], atom: str, order: str, address: int) -> tuple[Any, ...]:
        """Layout and swizzle of an operand's stages in shared memory, and the descriptors' layout and first one."""
        type_ = self.types["AB".index(which)]
        width = 8 if self.form.kind in ("f8f6f4", "mxf8f6f4") else type_.width
        of_tile = type_of("u8") if width == 8 else type_
        major, kind = atom_kind(atom)
        shape = (*self.tiled.partition_shape(which, self.face(which)), args["stages"])
        orders = None if order == "default" else tuple(x - 1 for x in parse(order))
        plain = get_nonswizzle_portion(tile_to_mma_shape(make_smem_atom(major, kind, width), shape, orders))
        swizzle = BYTE_SWIZZLES[kind]
        desc = matrix_descriptor(plain[0], swizzle, major, of_tile, address, format=TCGEN05)
        return plain, swizzle, descriptor_layout(plain, of_tile), desc, width


def _in_tmem(layout: Layout, value_bits: int, wanted: dict[str, Any]) -> dict[str, Any]:
    places = [[i, list(tmem_place(layout(i), value_bits))] for i, _ in wanted["points"]]
    return {"value_bits": value_bits, "layout": layout, "columns": tmem_columns(layout, value_bits), "points": places}


@handler("sm100_tiled_mma")
def _tiled(line: dict[str, Any]) -> dict[str, Any]:
    case, wanted = Case(line["args"]), line["result"]
    mma = case.tiled
    made = cta_layouts(case.shape, case.form.ctas)
    result = {
        "thr_id": made.thr_id,
        "shape_mnk": case.shape,
        "ALayout": made.a,
        "BLayout": made.b,
        "CLayout": made.c,
        "threads": mma.size,
        "thr_layout_vmnk": mma.thr_layout_vmnk,
        "tile_mnk": mma.tile_shape_mnk,
        "desc": f"0x{case.desc.word:08x}",
        "fragment_C": _in_tmem(case.accumulator(), case.types[2].width, wanted["fragment_C"]),
    }
    for x in "ABC":
        result[f"layout{x}_TV"] = mma.tv_layout_tiled(x)
        result[f"partition_shape_{x}"] = mma.partition_shape(x, case.face(x))
    if case.form.a_in_tmem:
        result["fragment_A"] = _in_tmem(case.a_in_tmem(), case.types[0].width, wanted["fragment_A"])
    return {"result": result}


@handler("sm100_partition")
def _partition(line: dict[str, Any]) -> dict[str, Any]:
    args = line["args"]
    layout, offset = Case(args).tiled.get_slice(args["cta"]).partition(args["operand"], parse(args["tensor"]))
    return {"result": {"offset": offset, "layout": layout}}


@handler("umma_fragment")
def _fragment(line: dict[str, Any]) -> dict[str, Any]:
    args = line["args"]
    made = Case(args).shared(args["operand"], args, args["smem_atom"], args["tile_order"], args["base_address"])
    plain, swizzle, layout, desc, width = made
    points = [[at, f"0x{desc.word + layout((0, *at)):016x}"] for at, _ in line["result"]["fragment"]["points"]]
    return {
        "result": {
            "mma_shape": plain.shape,
            "smem_swizzle": swizzle,
            "smem_layout": plain,
            "smem_bytes": (max(offsets(plain)) + 1) * width // 8,
            "fragment": fields_of(desc) | {"layout": layout, "points": points},
        }
    }


def _word(address: int) -> str:
    return f"0x{address:08x}"


@handler("sm100_gemm_trace")
def _trace(line: dict[str, Any]) -> dict[str, Any]:
    args = line["args"]
    case = Case(args)
    c_layout, stage = case.accumulator(), args["stage"]
    base_c, c_bits = int(args["tmem_C"], 16), case.types[2].width
    if case.form.a_in_tmem:
        a_layout: Any = case.a_in_tmem((args["stages"],))
    else:
        order = args.get("tile_order_A", "default")
        _, _, a_layout, a_desc, _ = case.shared("A", args, args["smem_atom_A"], order, args["base_address_A"])
    order = args.get("tile_order_B", "default")
    _, _, b_layout, b_desc, _ = case.shared("B", args, args["smem_atom_B"], order, args["base_address_B"])
    scales = _scales(case, args) if case.desc.scale else None
    issued = []
    for k in range(size(b_layout[2])):
        for m, n in case.order(a_layout, b_layout):
            at_a = a_layout((0, m, k, stage))
            if case.form.a_in_tmem:
                a = _word(tmem_address(int(args["tmem_A"], 16), at_a, case.types[0].width))
            else:
                a = f"0x{a_desc.word + at_a:016x}"
            b = f"0x{b_desc.word + b_layout((0, n, k, stage)):016x}"
            places = [tile.address(base, k) for tile, base in scales] if scales else []
            ids = dict(zip(("sfa_id", "sfb_id"), map(scale_factor_id, places), strict=False))
            desc = case.desc._replace(**ids)
            c = tmem_address(base_c, c_layout((0, m, n)), c_bits)
            issued.append([a, b, _word(c), int(k > 0), _word(desc.word), *map(_word, places)])
    if not scales:
        layouts = {"fragment_A_layout": a_layout, "fragment_B_layout": b_layout, "fragment_C_layout": c_layout}
        return {"result": layouts | {"mma": issued}}
    result: dict[str, Any] = {"mma": issued}
    for (tile, base), x in zip(scales, "AB", strict=True):
        smem = args[f"base_address_SF{x}"] + stage * 512 * tile.blocks
        result[f"tmem_SF{x}"] = _word(base)
        result[f"copy_SF{x}"] = [[f"0x{desc.word:016x}", _word(to)] for desc, to in tile.copies(smem, base)]
    return {"result": result}


def _scales(case: Case, args: dict[str, Any]) -> list[tuple[ScaleTile, int]]:
    """The scale factors of A and B, in the columns after the accumulator."""
    m, n, k = case.tile
    vec = args["sf_vec_size"]
    tiles = [ScaleTile(rows, k, vec, case.shape[2]) for rows in (m // case.form.ctas, n)]
    base = int(args["tmem_C"], 16) + tmem_columns(case.accumulator(), 32)
    return [(tiles[0], base), (tiles[1], base + tiles[0].columns)]


@handler("sm100_sf_layout")
def _sf_layout(line: dict[str, Any]) -> dict[str, Any]:
    args, wanted = line["args"], line["result"]
    m, n, k, *batches = parse(args["problem_mnkl"])
    vec, which = args["sf_vec_size"], args["operand"]
    shape = {"SFA": (m, k, *batches), "SFB": (n, k, *batches), "SFD": (m, n, *batches)}[which]
    if args.get("major") == "MN":
        atom = BlockScaledBasicChunk(vec, OperandMajorMode.MN).layout
        layout = tile_to_shape(atom, shape, (0, 1, 2))
    else:
        atom, layout = BlockScaledBasicChunk(vec).layout, tile_atom_to_shape_SF(shape, vec)
    theirs = parse(wanted["layout"])
    same = layout.shape == theirs.shape and (offsets(layout) == offsets(theirs)).all()
    # The headers' extents are run-time numbers: an extent of 1 keeps a stride, which no element has.
    return {"result": {"sf_atom": atom, "layout": theirs if same else layout, "cosize": int(offsets(layout).max()) + 1}}
