"""Replay golden files: ``python -m tests.golden FILE...``.

A golden file has one JSON object a line, ``{"op": ..., "args": [...], "result": ...}``, computed with the public
CUTLASS C++ headers. Handlers are registered by op with :func:`handler`; they take the line and return what Tilewright
computes, as a dict of the keys they answer for (``result``, ``offset``, ...).
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from tilewright import layout as L
from tilewright.errors import LayoutError
from tilewright.layout import (
    ComposedLayout,
    Layout,
    Swizzle,
    format_tree,
    make_identity_layout,
    make_smem_atom,
    parse,
    swizzle_of_masks,
)
from tilewright.layout.basis import add_coords
from tilewright.layout.inverse import complement_of

Handler = Callable[[dict[str, Any]], dict[str, Any]]
HANDLERS: dict[str, Handler] = {}
DATA = Path(__file__).parent / "data" / "golden"


def handler(*ops: str) -> Callable[[Handler], Handler]:
    """Register a function as the handler of ``ops``."""

    def register(function: Handler) -> Handler:
        for op in ops:
            HANDLERS[op] = function
        return function

    return register


def on_args(*ops: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function of the parsed arguments that returns the result alone."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        def run(line: dict[str, Any]) -> dict[str, Any]:
            return {"result": function(*map(parse, line["args"]))}

        handler(*ops)(run)
        return function

    return register


def on_args_with_offset(*ops: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function of the parsed arguments that returns a pair (layout, offset)."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        def run(line: dict[str, Any]) -> dict[str, Any]:
            result, offset = function(*map(parse, line["args"]))
            return {"result": result, "offset": offset}

        handler(*ops)(run)
        return function

    return register


def text_of(x: Any) -> Any:
    """Results in the notation of the file."""
    if isinstance(x, dict):
        return {key: text_of(y) for key, y in x.items()}
    return [text_of(y) for y in x] if isinstance(x, list) else format_tree(x)


def equal(expected: Any, got: Any) -> bool:
    if isinstance(expected, list):
        return isinstance(got, list) and len(expected) == len(got) and all(map(equal, expected, got))
    if isinstance(expected, dict):
        return isinstance(got, dict) and all(key in got and equal(value, got[key]) for key, value in expected.items())
    return str(expected) == text_of(got)


def is_not_the_function(line: dict[str, Any]) -> bool:
    """Whether the recorded result provably is not what the operation promises, so that an error is the right answer.

    C++ checks divisibility mode by mode only. Two laws are tried on all elements: a composition has the values of its
    left operand at those of its right one, and a product holds the copies of the block that the tiler names.
    """
    op = line["op"]
    product = op.endswith("_product") or op == "tile_to_shape"
    if not product and op not in ("composition", "composition_identity"):
        return False
    operands = list(map(parse, line["args"]))
    if not product:
        a, b, r = operands[0], operands[1], parse(line["result"])
        if not isinstance(b, Layout):
            return False
        if op.endswith("identity"):  # a coordinate past its extent names the index just as well
            origin = L.idx2crd(0, a)
            return [L.crd2idx(add_coords(origin, c), a) for c in _evaluate(r)] != _evaluate(b)
        return bool(_evaluate(r) != [a(b(i)) for i in range(L.size(b))])
    block, tiler = operands[:2]
    if op == "tile_to_shape":
        copies = L.ceil_div(tiler, L.product_each(block.shape))
        tiler = L.make_ordered_layout(copies, *operands[2:]) if operands[2:] else Layout(copies)
    return sorted(_evaluate(parse(line["result"]))) != sorted(product_values(block, tiler))


def product_values(block: Layout, tiler: Any) -> list[int]:
    """The offsets of ``(block, complement(block) o tiler)`` element by element."""
    if isinstance(tiler, tuple):
        values = [0]
        for i, mode in enumerate(block):
            part = product_values(mode, tiler[i]) if i < len(tiler) else _evaluate(mode)
            values = [x + y for y in part for x in values]
        return values
    tiler = Layout(tiler) if isinstance(tiler, int) else tiler
    reach = L.size(block) * L.cosize(tiler) + 2 * L.cosize(block)  # beyond the holes of the block in any case
    places, _ = complement_of(block, reach, covers=False)
    return [x + places(tiler(i)) for i in range(L.size(tiler)) for x in _evaluate(block)]


def check(line: dict[str, Any]) -> str:
    """Empty if the line is reproduced, or refused where it is not the function asked for; else what differs."""
    try:
        answers = HANDLERS[line["op"]](line)
    except LayoutError as error:
        return "" if is_not_the_function(line) else f"{type(error).__name__}: {error}"
    except Exception as error:  # a golden run reports every line, whatever goes wrong in it
        return f"{type(error).__name__}: {error}"
    for key, got in answers.items():
        if key in line and not equal(line[key], got):
            return f"{key}: expected {line[key]}, got {text_of(got)}"
    return ""


def read(path: Path) -> Iterable[dict[str, Any]]:
    with path.open() as lines:
        for line in lines:
            if line.strip():
                yield json.loads(line)


def main(files: list[str]) -> int:
    for extra in sorted(Path(__file__).parent.glob("golden_*.py")):
        importlib.import_module(f"tests.{extra.stem}")
    passed = failed = 0
    for name in files:
        for line in read(Path(name)):
            problem = check(line)
            if problem:
                failed += 1
                if failed <= 50:
                    print(f"{line['op']} {json.dumps(line['args'])}: {problem}")
            else:
                passed += 1
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


def _on_identity(op: Callable[[Any, Any], Any], shape: Any, tiler: Any) -> Any:
    return op(make_identity_layout(shape), tiler)


def _evaluate(layout: Any) -> list[Any]:
    return [layout(i) for i in range(L.size(layout))]


on_args("composed")(lambda swizzle, offset, outer: L.make_composed_layout(swizzle, offset, outer))
on_args("eval")(_evaluate)
on_args("composed_eval")(lambda swizzle, offset, outer: _evaluate(ComposedLayout(swizzle, offset, outer)))
on_args("size")(L.size)
on_args("rank")(L.rank)
on_args("depth")(L.depth)
on_args("cosize", "composed_cosize")(L.cosize)
on_args("coshape")(L.coshape)
on_args("coalesce", "composed_coalesce")(L.coalesce)
on_args("coalesce_by")(lambda a, p: L.coalesce(a, target_profile=p))
on_args("filter")(L.filter)
on_args("filter_by")(lambda a, p: L.filter(a, target_profile=p))
on_args("filter_zeros")(L.filter_zeros)
on_args("flatten")(L.flatten)
on_args("select")(L.select)
on_args("group")(L.group_modes)
on_args("dice")(lambda c, a: L.dice(a, c))
on_args("with_shape")(L.with_shape)
on_args("composition", "composed_composition", "composition_swizzles")(L.composition)
on_args("complement")(L.complement)
on_args("left_inverse")(L.left_inverse)
on_args("right_inverse")(L.right_inverse)
on_args("composed_right_inverse_eval")(lambda a: _evaluate(L.right_inverse(a)))
on_args("max_common_layout")(L.max_common_layout)
on_args("max_common_vector", "composed_max_common_vector")(L.max_common_vector)
on_args("nullspace")(L.nullspace)
on_args("logical_divide", "composed_logical_divide")(L.logical_divide)
on_args("zipped_divide", "composed_zipped_divide")(L.zipped_divide)
on_args("tiled_divide")(L.tiled_divide)
on_args("flat_divide")(L.flat_divide)
on_args("logical_product")(L.logical_product)
on_args("zipped_product")(L.zipped_product)
on_args("tiled_product")(L.tiled_product)
on_args("flat_product")(L.flat_product)
on_args("blocked_product")(L.blocked_product)
on_args("raked_product")(L.raked_product)
on_args("tile_to_shape", "composed_tile_to_shape")(L.tile_to_shape)
on_args("make_ordered_layout")(L.make_ordered_layout)
on_args("make_layout_like")(L.make_layout_like)
on_args("make_fragment_like")(L.make_fragment_like_layout)
on_args("make_identity_layout")(L.make_identity_layout)
on_args("upcast", "swizzle_upcast", "composed_upcast")(L.upcast)
on_args("downcast", "swizzle_downcast", "composed_downcast")(L.downcast)
on_args("recast_layout")(lambda a, old, new: L.recast_layout(new, old, a))
on_args("max_alignment", "composed_max_alignment")(L.max_alignment)
on_args("domain_distribute")(L.domain_distribute)
on_args("ceil_div_layout")(L.ceil_div)
on_args("crd2idx")(L.crd2idx)
on_args("idx2crd")(L.idx2crd)
on_args("get_hier_coord")(lambda a, i: a.get_hier_coord(i))
on_args("get_flat_coord")(lambda a, i: a.get_flat_coord(i))
on_args("get_1d_coord")(lambda a, i: a.get_1d_coord(i))
on_args("make_swizzle")(swizzle_of_masks)
on_args_with_offset("local_tile")(L.local_tile)
on_args_with_offset("local_partition")(L.local_partition)
on_args_with_offset("slice_and_offset")(L.slice_and_offset)
on_args_with_offset("composed_slice")(lambda a, c: L.slice_and_offset(c, a))
on_args_with_offset("local_tile_identity")(lambda s, *rest: L.local_tile(make_identity_layout(s), *rest))
on_args_with_offset("local_partition_identity")(lambda s, *rest: L.local_partition(make_identity_layout(s), *rest))
on_args_with_offset("slice_and_offset_identity")(lambda c, s: L.slice_and_offset(c, make_identity_layout(s)))
for _op in ("composition", "logical_divide", "zipped_divide", "tiled_divide", "flat_divide"):
    on_args(f"{_op}_identity")(partial(_on_identity, getattr(L, _op)))
on_args("eval_identity")(lambda s: _evaluate(make_identity_layout(s)))


@handler("swizzle")
def _swizzle(line: dict[str, Any]) -> dict[str, Any]:
    swizzle = parse(line["args"][0])
    assert isinstance(swizzle, Swizzle)
    return {"result": [swizzle(i) for i in range(len(line["result"]))]}


def _gmma(name: str, bits: str) -> Any:
    _, major, kind, _ = name.split("_")
    return make_smem_atom(major, kind, int(bits))


@handler("gmma_atom")
def _gmma_atom(line: dict[str, Any]) -> dict[str, Any]:
    name, bits = line["args"]
    atom = _gmma(name, bits)
    swizzle = Swizzle(L.get_swizzle_portion(atom).bits, 4, 3)
    return {"result": f"{swizzle} o smem_ptr[{bits}b] o {L.get_nonswizzle_portion(atom)}", "element_layout": atom}


@handler("gmma_atom_eval")
def _gmma_atom_eval(line: dict[str, Any]) -> dict[str, Any]:
    return {"result": _evaluate(_gmma(*line["args"]))}


@handler("gmma_tile_to_shape")
def _gmma_tile_to_shape(line: dict[str, Any]) -> dict[str, Any]:
    name, bits, *rest = line["args"]
    return {"result": L.tile_to_shape(_gmma(name, bits), *map(parse, rest))}


if __name__ == "__main__":
    # Handlers of other files register themselves with this very module, not with a second copy called __main__.
    sys.exit(importlib.import_module("tests.golden").main(sys.argv[1:]))
