"""Handler of the golden lines about TMA loads of operands of MMAs of blocks."""

from __future__ import annotations

import math
import re
from typing import Any

from tests.golden import handler
from tests.golden_blackwell_mma import BlockMma
from tests.golden_blackwell_validity import form_of
from tests.golden_tma import TYPES, Case, _broken, _descriptor, _start
from tilewright.atoms.tcgen05_validity import instruction_k
from tilewright.atoms.value_types import BY_NAME
from tilewright.ir.tensormap import ATOM_32B, expands
from tilewright.ir.types import B4X16, EXPANDED
from tilewright.layout import (
    Layout,
    composition,
    filter_zeros,
    group_modes,
    local_tile,
    make_identity_layout,
    make_layout,
    parse,
    size,
)
from tilewright.layout.basis import add_coords
from tilewright.tiled.tiled_mma import ThrMma, make_tiled_mma
from tilewright.tiled.tma.cluster import cluster_layout_vmnk, operand_mask
from tilewright.tiled.tma.partition import partition_layouts
from tilewright.tiled.tma.plan import TmaPlan


class Load(Case):
    """A load of operand A or B; extents and strides of the tensor are run-time numbers but for the stride 1."""

    def __init__(self, args: dict[str, Any]) -> None:
        self.env, self.unknowns = {}, []
        form = form_of(args["atom"])
        self.which, self.ctas = args["operand"], form.ctas
        shape, stride = args["gmem"].split(":")
        gmem = Layout(self.leaves(shape), self.leaves(re.sub(r"\b1\b", "_1", stride)))
        self.mma = make_tiled_mma(BlockMma((args["M"], args["N"], instruction_k(form.kind)), form.ctas))
        m, n, k = parse(args["mma_tile"])
        self.tile = (m, k) if self.which == "A" else (n, k)
        self.vmnk = cluster_layout_vmnk(parse(args["cluster_shape"]), form.ctas)
        across = size(self.vmnk[2 if self.which == "A" else 1])
        self.multicast = across if "MULTICAST" in args["copy"] else 1
        identity = make_identity_layout(gmem.shape)
        whole = make_layout(*[Layout(x, identity[i].stride) for i, x in enumerate(self.tile)])
        values, _ = self.mma.get_slice(0).partition(self.which, whole)
        name, _, unpacked = args["type"].partition("_")
        type_ = BY_NAME.get(name.upper()) or TYPES[name]
        element = EXPANDED[type_.width] if unpacked else B4X16 if type_.width == 4 else type_
        swizzle = ATOM_32B if args["smem_swizzle"] == "Sw<2,5,2>" else int(args["smem_swizzle"][3])
        self.plan = TmaPlan(
            gmem, parse(args["smem_layout"]), self.tile, type_, element, swizzle, self.multicast, values
        )

    def slices(self, cta: int) -> tuple[int, int, int]:
        """Of block ``cta``: which tile of the tensor its MMA has, which part of the MMA, which part of the load."""
        v, m, n, _ = self.vmnk.get_flat_coord(cta)
        return {"A": (m, v, n), "B": (n, v, m), "SFA": (m, v, n), "SFB": (n, v, m)}[self.which]

    def parts(self, coordinates: Layout, cta: int) -> tuple[Any, ...]:
        """What block ``cta`` of the first cluster loads: the MMA's part, its start, and the parts of the copies."""
        tile, part_of_mma, share = self.slices(cta)
        tiles, start = local_tile(coordinates, self.tile, (tile, None))
        part, offset = ThrMma(self.mma, part_of_mma).partition(self.which[-1], tiles)
        smem, gmem, first = partition_layouts(
            self.plan.elements_per_instruction,
            share,
            make_layout(self.multicast),
            group_modes(make_layout(*self.plan.smem), 0, 3),
            group_modes(part, 0, 3),
        )
        return part, add_coords(start, offset), smem, gmem, first


class ScaleLoad(Load):
    """A load of scale factors, two to an element of the tensor map. The layout of an atom is known while staging.

    SFB is padded to 128 rows, and both blocks of a pair have all of it: it is partitioned as by an MMA of one block.
    """

    def __init__(self, args: dict[str, Any]) -> None:
        self.env, self.unknowns = {}, []
        form = form_of(args["atom"])
        self.which, self.ctas = args["operand"], form.ctas
        vec = args["sf_vec_size"]
        shape = re.sub(r"\(32,4\)", "(_32,_4)", args["gmem"].split(":")[0], count=1)
        shape = shape.replace(f",(({vec},4)", f",((_{vec},_4)").replace("(1,", "(_1,")
        stride = args["gmem"].split(":")[1].replace("(16,4)", "(_16,_4)").replace("(0,1),512", "(_0,_1),_512")
        gmem = Layout(self.leaves(shape), self.leaves(stride.replace("(0,", "(_0,")))
        m, n, k = parse(args["mma_tile"])
        padded = -(-n // 128) * 128
        of_mma = (args["M"], args["N"], instruction_k(form.kind))
        one = (args["M"] // form.ctas, -(-args["N"] // 128) * 128, of_mma[2])
        self.mma = make_tiled_mma(BlockMma(of_mma, form.ctas) if self.which == "SFA" else BlockMma(one, 1))
        self.tile = (m, k) if self.which == "SFA" else (padded, k)
        self.vmnk = cluster_layout_vmnk(parse(args["cluster_shape"]), form.ctas if self.which == "SFA" else 1)
        across = size(self.vmnk[2 if self.which == "SFA" else 1])
        self.multicast = across if "MULTICAST" in args["copy"] else 1
        values, _ = self.mma.get_slice(0).partition(
            self.which[-1], composition(make_identity_layout(gmem.shape), self.tile)
        )
        self.plan = TmaPlan(
            gmem, parse(args["smem_layout"]), self.tile, TYPES["u8"], TYPES["u16"], 0, self.multicast, values
        )


def _answer(load: Load, wanted: dict[str, Any]) -> dict[str, Any]:
    plan = load.plan
    made, coordinates = load.make()
    sides = []
    layouts: dict[str, Any] = {}
    for side in wanted["partition"]:
        coord = load.vmnk.get_flat_coord(side["cta"])
        part, begin, smem, gmem, first = load.parts(coordinates, side["cta"])
        ahead = [x(((first, 0), *[0] * (len(x) - 1))) for x in (gmem, smem)]
        layouts = {"mma_gmem_layout": load.known(part), "tma_gmem_layout": load.known(gmem), "tma_smem_layout": smem}
        sides.append(
            {
                "cta": side["cta"],
                "cta_coord_vmnk": coord,
                "multicast_mask": operand_mask(load.vmnk, coord, load.which),
                "mma_gmem_coord": _start(side["mma_gmem_coord"], begin),
                "smem_byte_offset": ahead[1] * (8 if expands(plan.element) else plan.source.width) // 8,
                "tma_gmem_coord": _start(side["tma_gmem_coord"], add_coords(begin, ahead[0])),
            }
        )
    arrive = int(size(filter_zeros(plan.smem))) * plan.source.width // 8
    return {
        "cluster_layout_vmnk": load.vmnk,
        "descriptor": _descriptor(made),
        "tma_tensor": load.known(coordinates),
        "box_elements": math.prod(plan.box),
        "transaction_bytes_cta": arrive,
        "transaction_bytes_mma": arrive * load.ctas,
        "partition": sides,
        "driver_rules_broken": _broken(plan),
        **layouts,
    }


@handler("sm100_tma")
def _tma(line: dict[str, Any]) -> dict[str, Any]:
    load = Load(line["args"])
    count = {"elements_per_instruction": load.plan.elements_per_instruction}
    return {"result": count | _answer(load, line["result"])}


@handler("sm100_tma_sf")
def _tma_sf(line: dict[str, Any]) -> dict[str, Any]:
    load = ScaleLoad(line["args"])
    m, n, k = parse(line["args"]["mma_tile"])
    tile = (m // load.ctas, load.tile[0], k) if load.which == "SFB" else (m, n, k)
    return {"result": {"tile": tile} | _answer(load, line["result"])}
