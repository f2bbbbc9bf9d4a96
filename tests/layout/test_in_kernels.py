"""Each function of the algebra under its name in ``tilewright.cute``: in plain Python, in a kernel, in host code.

A case is a function of an extent ``n`` and of the layout ``(n,(2,4)):(8,(4,1))``. Plain Python gives it a number; the
kernel, run on the simulator, gives it the same number as a static Int32 and as a run-time argument, and stores what it
got. Layouts are compared as functions, since a run-time extent may keep two modes apart that numbers would merge.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
from tilewright import cute
from tilewright.cute.runtime import from_dlpack
from tilewright.layout import ComposedLayout, Layout, ScaledBasis

N = 16
CASES: dict[str, Callable[[Any, Any], Any]] = {
    "append": lambda n, a: cute.append(a, cute.make_layout(3, stride=n)),
    "append_ones": lambda n, a: cute.append_ones(a, up_to_rank=4),
    "assume": lambda n, a: cute.assume(n, divby=2),
    "basis_get": lambda n, a: cute.basis_get(cute.E((1, 0)), (2, (n, 4))),
    "basis_value": lambda n, a: cute.basis_value(cute.E(1) * n),
    "blocked_product": lambda n, a: cute.blocked_product(cute.make_layout((4, 2)), cute.make_layout((3, n))),
    "ceil_div": lambda n, a: cute.ceil_div((n, 12), (8, 5)),
    "coalesce": lambda n, a: cute.coalesce(cute.make_layout((2, 4, n), stride=(1, 2, 8))),
    "complement": lambda n, a: cute.complement(cute.make_layout((4, 2), stride=(1, 8)), n * 8),
    "composition": lambda n, a: cute.composition(a, (cute.make_layout(4, stride=2), None)),
    "coshape": lambda n, a: cute.coshape(a),
    "cosize": lambda n, a: cute.cosize(a),
    "crd2idx": lambda n, a: cute.crd2idx((n - 1, (1, 1)), a),
    "depth": lambda n, a: cute.depth(a),
    "dice": lambda n, a: cute.dice(a, (None, (0, 0))),
    "domain_offset": lambda n, a: cute.domain_offset((1, (1, n)), a),
    "downcast": lambda n, a: cute.downcast(cute.make_layout((8, n), stride=(1, 16)), 4),
    "elem_less": lambda n, a: cute.elem_less((3, 4), (n, 5)),
    "E": lambda n, a: cute.make_layout((4, n), stride=(cute.E(0), cute.E(1) * 2)),
    "filter": lambda n, a: cute.filter(cute.make_layout((2, 4, n), stride=(0, 1, 8))),
    "filter_zeros": lambda n, a: cute.filter_zeros(cute.make_layout((2, 4, n), stride=(0, 1, 8))),
    "filter_tuple": lambda n, a: cute.filter_tuple((n, 2, 3), f=lambda x: (x, 1) if x is n else ()),
    "find": lambda n, a: cute.find((n, 2, 3), 3),
    "find_if": lambda n, a: cute.find_if((n, 2, 3), lambda x, _: x is not n and x > 2),
    "flat_divide": lambda n, a: cute.flat_divide(a, (4, 2)),
    "flat_product": lambda n, a: cute.flat_product(cute.make_layout((4, 2)), cute.make_layout((3, n))),
    "flatten": lambda n, a: cute.flatten(a),
    "flatten_to_tuple": lambda n, a: cute.flatten_to_tuple((n, (2, (3,)))),
    "front": lambda n, a: (cute.front(a), cute.front((n, 2))),
    "get": lambda n, a: cute.get(a, mode=[1, 0]),
    "get_nonswizzle_portion": lambda n, a: cute.get_nonswizzle_portion(swizzled(a)),
    "get_swizzle_portion": lambda n, a: cute.get_swizzle_portion(swizzled(a)).num_bits,
    "group_modes": lambda n, a: cute.group_modes(cute.flatten(a), 0, 2),
    "has_scaled_basis": lambda n, a: (cute.has_scaled_basis(a), cute.has_scaled_basis(cute.make_identity_layout(n))),
    "has_underscore": lambda n, a: (cute.has_underscore((n, 1)), cute.has_underscore((n, None))),
    "idx2crd": lambda n, a: (cute.idx2crd(n + 3, (8, 4)), cute.idx2crd(n + 3, (n, 4))),
    "increment_coord": lambda n, a: (
        cute.increment_coord((n - 1, 1, 2), (n, 3, 3)),
        cute.increment_coord((1, (n, 0)), (2, (n + 1, 3))),
    ),
    "inner_partition": lambda n, a: cute.inner_partition(a, (4, 2), (1, None)),
    "is_congruent": lambda n, a: cute.is_congruent(a, cute.make_identity_layout((n, (2, 2)))),
    "is_major": lambda n, a: (cute.is_major(0, a.stride), cute.is_major([1, 1], a.stride)),
    "is_static": lambda n, a: cute.is_static((N, (2, None))),
    "is_weakly_congruent": lambda n, a: cute.is_weakly_congruent((n, 2), a),
    "leading_dim": lambda n, a: cute.leading_dim(a.shape, a.stride),
    "left_inverse": lambda n, a: cute.left_inverse(cute.make_layout((4, n), stride=(1, 4))),
    "local_partition": lambda n, a: cute.local_partition(a, cute.make_layout((4, 2)), n - 9),
    "local_tile": lambda n, a: cute.local_tile(a, (4, 2), (n - 15, None)),
    "logical_divide": lambda n, a: cute.logical_divide(a, (4, 2)),
    "logical_product": lambda n, a: cute.logical_product(cute.make_layout((4, 2)), cute.make_layout((3, n))),
    "make_composed_layout": lambda n, a: cute.zipped_divide(swizzled(a), (4, 2)),
    "make_identity_layout": lambda n, a: cute.make_identity_layout((4, n)),
    "make_identity_tensor": lambda n, a: cute.local_tile(cute.make_identity_tensor((n, 8)), (4, 2), (1, 2))[1, 1],
    "make_layout": lambda n, a: cute.make_layout(a, cute.make_layout(n)),
    "make_layout_image_mask": lambda n, a: cute.make_layout_image_mask(cute.make_layout((2, 4)), (n - 15, 0), 1),
    "make_layout_like": lambda n, a: cute.make_layout_like(cute.make_layout((4, n), stride=(8, 1))),
    "make_tile": lambda n, a: cute.zipped_divide(a, cute.make_tile(cute.make_layout(4, stride=2), 2)),
    "make_layout_tv": lambda n, a: cute.make_layout_tv(cute.make_layout((4, 8)), cute.make_layout((2, 2)))[1],
    "make_ordered_layout": lambda n, a: cute.make_ordered_layout((4, n, 3), order=(1, 0, 2)),
    "make_swizzle": lambda n, a: cute.make_swizzle(2, 0, 3)(n + 9),
    "max_alignment": lambda n, a: cute.max_alignment(cute.make_layout((8, n), stride=(1, 16))),
    "max_common_layout": lambda n, a: cute.max_common_layout(
        cute.make_layout((4, n), stride=(1, 8)), cute.make_layout((4, n), stride=(1, 16))
    ),
    "max_common_vector": lambda n, a: cute.max_common_vector(
        cute.make_layout((4, n), stride=(1, 8)), cute.make_layout((4, n), stride=(1, 16))
    ),
    "nullspace": lambda n, a: cute.nullspace(cute.make_layout((4, n, 2), stride=(0, 1, 0))),
    "outer_partition": lambda n, a: cute.outer_partition(a, (4, 2), (1, 1)),
    "prepend": lambda n, a: cute.prepend(a, cute.make_layout(3, stride=n)),
    "prepend_ones": lambda n, a: cute.prepend_ones(a, up_to_rank=4),
    "product": lambda n, a: cute.product((n, (2, 3))),
    "product_each": lambda n, a: cute.product_each((n, (2, 3))),
    "product_like": lambda n, a: cute.product_like(((n, 2), 3), (1, 1)),
    "raked_product": lambda n, a: cute.raked_product(cute.make_layout((4, 2)), cute.make_layout((3, n))),
    "rank": lambda n, a: cute.rank(a),
    "recast_layout": lambda n, a: cute.recast_layout(16, 8, cute.make_layout((8, n), stride=(1, 16))),
    "repeat": lambda n, a: cute.repeat(n, 3),
    "repeat_as_tuple": lambda n, a: cute.repeat_as_tuple(n, 1),
    "repeat_like": lambda n, a: cute.repeat_like(n, (1, (2, 3))),
    "right_inverse": lambda n, a: cute.right_inverse(cute.make_layout((n, 4), stride=(4, 1))),
    "round_up": lambda n, a: cute.round_up((n, 12), (8, 5)),
    "select": lambda n, a: cute.select(a, mode=[1]),
    "shape": lambda n, a: cute.shape(a),
    "shape_div": lambda n, a: cute.shape_div((n, 12), (8, 4)),
    "size": lambda n, a: (cute.size(a), cute.size(a, mode=[1])),
    "size_in_bytes": lambda n, a: cute.size_in_bytes(cutlass.Float16, a),
    "slice_": lambda n, a: cute.slice_(a, (n - 1, (None, 0))),
    "slice_and_offset": lambda n, a: cute.slice_and_offset((1, (None, n - 13)), a),
    "stride": lambda n, a: cute.stride(a, mode=[1]),
    "tile_to_shape": lambda n, a: cute.tile_to_shape(cute.make_layout((8, 4)), (n, 8), (0, 1)),
    "tiled_divide": lambda n, a: cute.tiled_divide(a, (4, 2)),
    "tiled_product": lambda n, a: cute.tiled_product(cute.make_layout((4, 2)), cute.make_layout((3, n))),
    "transform_apply": lambda n, a: cute.transform_apply((n, 2), (3, 4), f=lambda x, y: x * y, g=lambda x, y: x + y),
    "transform_leaf": lambda n, a: cute.transform_leaf(lambda x: x + 1, (n, (2, 3))),
    "tuple_cat": lambda n, a: cute.tuple_cat((n, 2), (3,)),
    "unflatten": lambda n, a: cute.unflatten((n, 2, 3), (0, (0, 0))),
    "unwrap": lambda n, a: cute.unwrap(((n, 2),)),
    "upcast": lambda n, a: cute.upcast(cute.make_layout((8, n), stride=(1, 16)), 4),
    "with_shape": lambda n, a: cute.with_shape(cute.make_layout((8, n), stride=(1, 8)), (4, 2, n)),
    "wrap": lambda n, a: cute.wrap(n),
    "zipped_divide": lambda n, a: cute.zipped_divide(a, (4, 2)),
    "zipped_product": lambda n, a: cute.zipped_product(cute.make_layout((4, 2)), cute.make_layout((3, n))),
}
NEED_ELEMENTS = {"make_fragment", "make_fragment_like", "make_rmem_tensor", "make_rmem_tensor_like", "recast_tensor"}


def layout_of(n: Any) -> Layout:
    return cute.make_layout((n, (2, 4)), stride=(8, (4, 1)))


def swizzled(layout: Layout) -> ComposedLayout:
    return cute.make_composed_layout(cute.make_swizzle(2, 0, 3), 0, layout)


def numbers(x: Any) -> list[Any]:
    """A result as numbers: a layout as its size and some of its offsets, a tree as its leaves."""
    if isinstance(x, Layout | ComposedLayout):
        return [cute.size(x), *(leaf for i in (0, 1, 3, 7) for leaf in numbers(x(i)))]
    if isinstance(x, ScaledBasis):
        return [*x.mode, x.value]
    if isinstance(x, tuple):
        return [leaf for part in x for leaf in numbers(part)]
    return [x]


@pytest.mark.parametrize("name", CASES)
def test_plain_python_kernel_and_host_agree(name: str) -> None:
    expected = [int(x) for x in numbers(CASES[name](N, layout_of(N)))]
    results = {where: np.full(len(expected), -99, np.int32) for where in ("static", "kernel", "host")}

    def store(out: Any, n: Any) -> None:
        for i, x in enumerate(numbers(CASES[name](n, layout_of(n)))):
            out[i] = cutlass.Int32(x)

    @cute.kernel
    def kernel(static: cute.Tensor, out: cute.Tensor, n: cutlass.Int32) -> None:
        store(static, cutlass.Int32(N))
        store(out, cute.assume(n, divby=8))

    @cute.jit
    def host(static: cute.Tensor, out: cute.Tensor, on_host: cute.Tensor, n: cutlass.Int32) -> None:
        store(on_host, cute.assume(n, divby=8))
        kernel(static, out, n).launch(grid=(1, 1, 1), block=(1, 1, 1))

    host(*map(from_dlpack, results.values()), cutlass.Int32(N))
    assert {where: out.tolist() for where, out in results.items()} == dict.fromkeys(results, expected)


def test_no_public_function_is_left_out() -> None:
    algebra = {
        name
        for name in cute.__all__
        if isinstance(f := getattr(cute, name), FunctionType)
        and f.__module__.startswith(("tilewright.layout", "tilewright.lang.tensors.algebra"))
    }
    assert algebra - NEED_ELEMENTS == set(CASES)
