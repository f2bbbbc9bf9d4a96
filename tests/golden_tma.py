"""Handlers of the golden lines about TMA: tensor maps, boxes, coordinates, partitions, multicast masks."""

from __future__ import annotations

import ast
import re
from typing import Any

from tests.golden import handler
from tilewright.errors import ArgumentError, ConstraintError
from tilewright.ir.tensormap import TensorMap, swizzle_name
from tilewright.ir.types import SCALARS
from tilewright.layout import (
    Layout,
    ScaledBasis,
    SymbolicInt,
    composition,
    flat_divide,
    flatten_to_tuple,
    group_modes,
    local_tile,
    make_layout,
    parse,
    rank,
    zipped_divide,
)
from tilewright.layout.basis import add_coords
from tilewright.tiled.tma.partition import multicast_mask, partition_layouts
from tilewright.tiled.tma.plan import TmaPlan

TYPES = {**SCALARS, **{f"s{n}": SCALARS[f"i{n}"] for n in (8, 16, 32, 64)}}


class Case:
    """A copy as a golden line gives it. Integers with an underscore in ``gmem_typed`` are known at compile time; the
    others become unknowns, whose values ``env`` holds."""

    def __init__(self, args: dict[str, Any]) -> None:
        self.env: dict[str, int] = {}
        self.unknowns: list[SymbolicInt] = []
        gmem = Layout(*map(self.leaves, args["gmem_typed"].split(":")))
        bits = int(args["smem_swizzle"][3])  # Sw<B,4,3> of byte addresses
        self.plan = TmaPlan(
            gmem,
            parse(args["smem_layout"]),
            parse(args["cta_tiler"]),
            TYPES[args["type"]],
            TYPES[args["tma_type"]],
            bits,
            args["num_multicast"],
        )

    def leaves(self, text: str) -> Any:
        """A tree with unknowns in the places of numbers without underscore."""
        static = iter([token.startswith("_") for token in re.findall(r"_?\d+", text)])

        def walk(x: Any) -> Any:
            if isinstance(x, tuple):
                return tuple(map(walk, x))
            if next(static):
                return x
            name = f"n{len(self.unknowns)}"
            self.env[name] = x
            self.unknowns.append(SymbolicInt(name))
            return self.unknowns[-1]

        return walk(ast.literal_eval(re.sub(r"_?(\d+)", r"\1", text).replace(")", ",)").replace(",,", ",")))

    def known(self, x: Any) -> Any:
        """The numbers put in for the unknowns."""
        if isinstance(x, Layout):
            return Layout(self.known(x.shape), self.known(x.stride))
        if isinstance(x, tuple):
            return tuple(map(self.known, x))
        if isinstance(x, ScaledBasis):
            return ScaledBasis(self.known(x.value), x.mode)
        return x.substitute(self.env) if isinstance(x, SymbolicInt) else x

    def make(self) -> tuple[TensorMap, Layout]:
        """The tensor map, and the layout of the TMA tensor with unknowns in the places of run-time extents."""
        problems = [p for p in self.plan.problems() if "more than 256" in p]
        if problems:
            raise ConstraintError(problems[0])
        template = self.plan.template(places=lambda x: [x is y for y in self.unknowns].index(True))
        made, *scales = template.make(1 << 20, list(self.env.values()))
        return made, self.plan.coordinates(tuple(scales))

    def partition(self, x: Layout, cta: int) -> tuple[Any, Layout]:
        """What ``get_slice(cta).partition_S(x)`` of the tiled copy gives: (start, layout)."""
        tiler = self.plan.tiler_mn
        tile, rest = zipped_divide(x, tiler if isinstance(tiler, tuple) else (tiler,))
        threads, values = self.plan.layout_tv
        modes = rest if rank(x) > 1 else [rest]
        return tile(threads(cta)), make_layout(composition(tile, values[0]), *modes)


def _start(expected: str, coord: Any) -> Any:
    """A start as the file writes it: trailing zeros may be missing there, or in ours."""
    wanted = parse(expected)
    if not isinstance(coord, tuple) or not isinstance(wanted, tuple):
        return coord
    n = max(len(coord), len(wanted))
    same = (*coord, *[0] * (n - len(coord))) == (*wanted, *[0] * (n - len(wanted)))
    return wanted if same else coord


def _descriptor(made: TensorMap) -> dict[str, Any]:
    return {
        "data_type": made.element.tensor_map,
        "rank": made.rank,
        "global_dim": list(made.dims),
        "global_strides": list(made.strides),
        "box_dim": list(made.box),
        "element_strides": [1] * made.rank,
        "interleave": "NONE",
        "swizzle": swizzle_name(made.swizzle),
        "l2_promotion": "L2_128B",
        "oob_fill": "NONE",
    }


def _broken(plan: TmaPlan) -> list[str]:
    return [problem.partition(":")[0] for problem in plan.problems()]


def _shared(plan: TmaPlan) -> dict[str, Any]:
    n = plan.elements_per_instruction
    found = {
        "bytes_per_instruction": n * plan.source.bytes,
        "box_bytes": plan.box_bytes,
        "driver_rules_broken": _broken(plan),
    }
    leaves = zip(flatten_to_tuple(plan.smem.shape), flatten_to_tuple(plan.smem.stride), strict=True)
    if all(s == 1 or d for s, d in leaves):
        found["transaction_bytes"] = plan.tile_bytes
    return found


@handler("tma_copy")
def _tma_copy(line: dict[str, Any]) -> dict[str, Any]:
    case = Case(line["args"])
    plan = case.plan
    made, coordinates = case.make()
    tiles = flat_divide(coordinates, plan.tiler)
    sides = []
    for cta in range(plan.num_multicast):
        coord, layout = case.partition(tiles, cta)
        coord = _start(line["result"]["partition"][cta]["gmem"]["coord"], coord)
        offset, inside = case.partition(plan.smem, cta)
        sides.append(
            {
                "cta": cta,
                "gmem": {"coord": coord, "layout": case.known(layout)},
                "smem": {"byte_offset": offset * plan.source.bytes, "layout": inside},
            }
        )
    return {
        "result": {
            "descriptor": _descriptor(made),
            "tma_gbasis": plan.basis,
            "tma_tensor": case.known(coordinates),
            "elements_per_instruction": plan.elements_per_instruction,
            "layout_TV": plan.layout_tv,
            "tiler_MN": plan.tiler_mn,
            "flat_divide": case.known(tiles),
            "partition": sides,
            **_shared(plan),
        }
    }


@handler("tma_partition")
def _tma_partition(line: dict[str, Any]) -> dict[str, Any]:
    args = line["args"]
    case = Case(args)
    plan = case.plan
    made, coordinates = case.make()
    gmem, start = local_tile(coordinates, plan.tiler, parse(args["local_tile_coord"]))
    staged = parse(args["staged_smem_layout"])
    sides = []
    for cta in range(plan.num_multicast):
        smem_part, gmem_part, first = partition_layouts(
            plan.elements_per_instruction,
            cta,
            make_layout(plan.num_multicast),
            group_modes(staged, 0, 2),
            group_modes(gmem, 0, 2),
        )
        at = [layout(((first, 0), *[0] * (len(layout) - 1))) for layout in (gmem_part, smem_part)]
        sides.append(
            {
                "cta": cta,
                "gmem": {"coord": add_coords(start, at[0]), "layout": case.known(gmem_part)},
                "smem": {"byte_offset": at[1] * plan.source.bytes, "layout": smem_part},
            }
        )
    return {
        "result": {
            "descriptor": _descriptor(made),
            "tma_tensor": case.known(coordinates),
            "tma_partition": sides,
            "local_tile": {"coord": start, "layout": case.known(gmem)},
            **_shared(plan),
        }
    }


@handler("tma_reject")
def _tma_reject(line: dict[str, Any]) -> dict[str, Any]:
    try:
        Case(line["args"]).make()
    except (ArgumentError, ConstraintError) as error:
        violated = line["result"]["violated"]
        what, mode, rule = re.fullmatch(r"(.*TMA mode (?=\d))(\d)(.*)", violated).groups()
        told = str(error)  # which names the mode of the tensor, too, between the two halves
        found = f"{what}{mode} (" in told and f"){rule}" in told
        return {"result": {"violated": violated if found else told}}
    return {"result": {"violated": "nothing"}}


@handler("multicast_mask")
def _multicast_mask(line: dict[str, Any]) -> dict[str, Any]:
    layout, coord = parse(line["args"]["cta_layout_vmnk"]), parse(line["args"]["cta_coord_vmnk"])
    names = [name for name in line["result"] if name != "cta_rank"]
    masks = {name: multicast_mask(layout, coord, tuple(map(int, re.findall(r"\d", name)))) for name in names}
    return {"result": {"cta_rank": layout(coord), **masks}}
