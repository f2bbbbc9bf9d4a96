"""Products with scales, weights of few bits, sparse matrices and groups, and sums of rows, as operations of JAX."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from math import prod
from typing import Any

import jax
import numpy as np

from tilewright import BFloat16
from tilewright.atoms.sparsity import chunk_of
from tilewright.errors import ArgumentError
from tilewright.gemm.arrays import check_types
from tilewright.gemm.choice.registry import candidates
from tilewright.gemm.host.scales import check_scale
from tilewright.gemm.host.universal import PreparedProblem
from tilewright.gemm.operators.arrays import framework, operands
from tilewright.gemm.operators.block_scaled import (
    RESULTS,
    are_in_rows,
    blocked_scales,
    described,
    format_of,
    no_result,
    swapped,
    type_of_elements,
)
from tilewright.gemm.operators.block_scaled import launched as launched_with_factors
from tilewright.gemm.operators.block_scaled_offsets import (
    block_scaled_groups,
    check_widths,
    factors_are_in_rows,
    in_order_of_groups,
    shape_of_product,
)
from tilewright.gemm.operators.combine import combined_shape, launched
from tilewright.gemm.operators.jax_call import Arrays, Operation, jnp, transposed
from tilewright.gemm.operators.jax_op import check_arrays, check_traced
from tilewright.gemm.operators.matmul import Request, matmul
from tilewright.gemm.operators.mixed import MixedProduct, check_scale_of_rows, checked_types
from tilewright.gemm.operators.offsets import CutProduct, cut_mode_and_shape, grouped_matmul, product_of
from tilewright.gemm.operators.prepare_weight import PreparedWeight
from tilewright.gemm.operators.scaled import ScaledRequest, check_two_matrices
from tilewright.gemm.operators.scaled_offsets import (
    ScaledCutProduct,
    check_float_result,
    check_scales,
    cuts_columns_of_blocks,
    scaled_kernels,
)
from tilewright.gemm.operators.sparse import CompressedMatrix, SparseRequest, sparse_shape
from tilewright.gemm.tuning.stand_in import numeric_class
from tilewright.lang.numbers.dtypes import numeric_of_dtype

jax.tree_util.register_dataclass(PreparedWeight, ["words", "scales", "zeros"], [])
Outcome = tuple[tuple[int, ...], Any]
"""A result's shape and numeric class."""


def along_k(arrays: Arrays) -> Arrays:
    """B of 8 and 32 bits turned: kernels read it along K, and XLA has rows only."""
    b = arrays["b"]
    return arrays if np.dtype(b.dtype).itemsize == 2 else {**arrays, "b": transposed(b)}


def as_given(arrays: Arrays) -> Arrays:
    """What :func:`along_k` had before."""
    return along_k(arrays)


# -- products whose requests are those of matmul -----------------------------------------------------------------------


ARRAYS = ("a", "b", "c", "bias", "scale_a", "scale_b", "scale_result", "metadata")


def of_request(request: Request) -> Any:
    """:func:`scaled_matmul` or :func:`sparse_matmul` of JAX arrays and tracers."""
    check_arrays(request)
    if request.functions:
        raise ArgumentError("epilogue cannot be given with JAX arrays: apply the function to the result")
    if isinstance(request, ScaledRequest) and request.amax is not None:
        raise ArgumentError("JAX arrays are immutable: call scaled_matmul without amax")
    arrays: Arrays = {x.name: getattr(request, x.name) for x in fields(request) if x.name in ARRAYS}
    none: dict[str, Any] = dict.fromkeys(arrays)
    operation = SPARSE if isinstance(request, SparseRequest) else SCALED
    return operation(replace(request, **none), **arrays)


def result_of_request(blank: Request, arrays: Arrays) -> Outcome:
    request = replace(blank, **arrays)
    shape: tuple[int, ...]
    if isinstance(request, SparseRequest):
        shape = sparse_shape(request.a, request.b)
    else:
        check_two_matrices(request.a, request.b)
        shape = operands(request.a, request.b).shape
    check_traced(request, shape[-1])
    entry = request.entries(numeric_of_dtype(request.a.dtype))[0]
    is_c = request.out_dtype is None and request.c is not None
    return shape, numeric_of_dtype(request.c.dtype) if is_c else request.result_dtype(entry)


def execute_request(blank: Request, arrays: Arrays, stream: int | None) -> None:
    request = replace(blank, out_dtype=None, **as_given(arrays))
    given = request.read()
    if not given.problem.is_empty:
        plan = request.plan(given.problem, given.entries)
        PreparedProblem(given.problem, given.function, plan).launch(stream)


def gradients_of_sparse(blank: Request, arrays: Arrays, grad: Any) -> Arrays:
    """Of the stored elements, B, C and the bias, by dense products: the transposed matrix is not 2:4 sparse along its
    rows."""
    values, b = arrays["a"], arrays["b"]
    if np.dtype(values.dtype).itemsize == 1:
        raise ArgumentError(
            "sparse_matmul of 8-bit elements has no gradient: take jax.lax.stop_gradient of its operands"
        )
    a, scaled = CompressedMatrix(values, arrays["metadata"]), grad.astype(b.dtype)
    whole = matmul(scaled, transposed(b), alpha=blank.alpha).reshape(
        a.shape[0], -1, chunk_of(8 * values.dtype.itemsize)
    )
    found = {
        "a": jnp.take_along_axis(whole, a.places(), 2).reshape(values.shape).astype(values.dtype),
        "b": matmul(transposed(a.to_dense()), scaled, alpha=blank.alpha, out_dtype=b.dtype),
    }
    if "c" in arrays:
        found["c"] = (grad * blank.beta).astype(arrays["c"].dtype)
    if "bias" in arrays:
        found["bias"] = grad.sum(0).astype(arrays["bias"].dtype)
    return found


SCALED = Operation(result_of_request, execute_request, handed=along_k)
SPARSE = Operation(result_of_request, execute_request, gradients_of_sparse, along_k)


# -- weights of 4 and 8 bits -------------------------------------------------------------------------------------------


def mixed(a: Any, weight: PreparedWeight, bias: Any, scale_a: Any, activation: str | None, out_dtype: Any) -> Any:
    """:func:`mixed_matmul` of JAX arrays and tracers."""
    for name, x in (("a", a), ("bias", bias), ("scale_a", scale_a)):
        if x is not None or name == "a":
            framework(x, name)
    parts = {"words": weight.words, "scales": weight.scales, "zeros": weight.zeros}
    return MIXED((activation, out_dtype), a=a, **parts, bias=bias, scale_a=scale_a)


def weight_of(arrays: Arrays) -> PreparedWeight:
    return PreparedWeight(arrays["words"], arrays["scales"], arrays.get("zeros"))


def result_of_mixed(options: tuple[str | None, Any], arrays: Arrays) -> Outcome:
    a, (n, k), bias, scale_a = arrays["a"], weight_of(arrays).shape, arrays.get("bias"), arrays.get("scale_a")
    dtype = checked_types(numeric_of_dtype(a.dtype), tuple(a.shape), (n, k), None, options[1])
    if bias is not None and tuple(bias.shape) != (n,):
        raise ArgumentError(f"bias is a vector of {n} elements, not of shape {tuple(bias.shape)}")
    if scale_a is not None:
        check_scale_of_rows(tuple(scale_a.shape), tuple(a.shape[:-1]))
        if scale_a.dtype != np.float32:
            raise ArgumentError(f"scale_a is float32, not {scale_a.dtype}")
    return (*a.shape[:-1], n), dtype


def execute_mixed(options: tuple[str | None, Any], arrays: Arrays, stream: int | None) -> None:
    a, out = arrays["a"], arrays["out"]
    rows = prod(a.shape[:-1])
    if rows and out.shape[-1]:
        flat, made = a.reshape((rows, a.shape[-1])), out.reshape((rows, out.shape[-1]))
        scale = arrays["scale_a"].reshape(-1) if "scale_a" in arrays else None
        MixedProduct.of(flat, weight_of(arrays), arrays.get("bias"), made, options[0], scale).run(stream)


MIXED = Operation(result_of_mixed, execute_mixed)


# -- groups ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class GroupOptions:
    """The arguments of :func:`grouped_matmul` that are not arrays."""

    out_dtype: Any
    kernel: Any
    sharing: bool

    def kernels(self, dtype: Any) -> Any:
        return candidates(dtype, self.kernel)


def shape_of_groups(arrays: Arrays) -> tuple[int, ...]:
    """The shape of the result; ArgumentError for operands that do not go together."""
    a, rows = tuple(arrays["a"].shape), arrays.get("rows")
    if rows is not None and (rows.ndim != 1 or rows.dtype != np.int32):
        raise ArgumentError(f"rows is a vector of int32, not of {rows.dtype} and shape {rows.shape}")
    seen = a if rows is None else (*rows.shape, *a[1:])
    offsets = arrays.get("offsets")
    if offsets is None:
        return cut_mode_and_shape(seen, tuple(arrays["b"].shape), None)[1]
    if offsets.dtype != np.int32:
        raise ArgumentError(f"offsets must be int32, got {offsets.dtype}")
    return cut_mode_and_shape(seen, tuple(arrays["b"].shape), tuple(offsets.shape))[1]


def have_no_sums(arrays: Arrays) -> bool:
    """Whether there is no group, or nothing to add: extents of 0."""
    of_a = arrays["a"].shape[-1:] if "rows" in arrays else arrays["a"].shape  # indices of no row are refused later
    return 0 in (*of_a, *arrays["b"].shape, *arrays["offsets"].shape)


def result_of_groups(options: GroupOptions, arrays: Arrays) -> Outcome:
    a, b = (numeric_of_dtype(arrays[name].dtype) for name in ("a", "b"))
    check_types(a, b)
    usual = CutProduct.result_dtype(options.kernels(a)[0])
    return shape_of_groups(arrays), usual if options.out_dtype is None else numeric_class(options.out_dtype)


def execute_groups(options: GroupOptions, arrays: Arrays, stream: int | None) -> None:
    given = as_given(arrays)
    operands_of = (given["a"], given["b"], given["offsets"], given["out"], None, options.kernels)
    product_of(CutProduct, *operands_of, rows=given.get("rows"), sharing=options.sharing, stream=stream)


def gradients_of_groups(options: GroupOptions, arrays: Arrays, grad: Any) -> Arrays:
    """Two more of the forms of the same product. Rows of a have one gradient each, or the sum of those of all rows of
    the product that they are."""
    a, b, offsets, rows = arrays["a"], arrays["b"], arrays["offsets"], arrays.get("rows")
    scaled = grad.astype(a.dtype)
    of_a = grouped_matmul(scaled, transposed(b), offsets, out_dtype=a.dtype)
    if rows is not None:
        inside, at = (rows >= 0) & (rows < len(a)), rows.clip(0, max(len(a) - 1, 0))
        of_rows = jnp.where(inside[:, None], of_a, 0).astype(jnp.float32)
        of_a = jnp.zeros(a.shape, jnp.float32).at[at].add(of_rows).astype(a.dtype)
        a = jnp.where(inside[:, None], a[at], 0)
    return {"a": of_a, "b": grouped_matmul(transposed(a), scaled, offsets, out_dtype=b.dtype)}


GROUPS = Operation(result_of_groups, execute_groups, gradients_of_groups, along_k, have_no_sums)


@dataclass(frozen=True)
class ScaledGroupOptions:
    """The arguments of :func:`scaled_grouped_matmul` that are not arrays; ``by_columns``: the result's are
    contiguous."""

    out_dtype: Any
    use_fast_accum: bool
    kernel: Any
    by_columns: bool

    def kernels(self, dtype: Any) -> Any:
        return scaled_kernels(self.use_fast_accum, self.kernel, dtype)


def scaled_groups(
    a: Any, b: Any, scale_a: Any, scale_b: Any, offsets: Any, out_dtype: Any, use_fast_accum: bool, kernel: Any
) -> Any:
    """:func:`scaled_grouped_matmul` of JAX arrays and tracers."""
    by_columns = cuts_columns_of_blocks(a, b, scale_a)
    options = ScaledGroupOptions(out_dtype, use_fast_accum, kernel, by_columns)
    found = SCALED_GROUPS(options, a=a, b=b, scale_a=scale_a, scale_b=scale_b, offsets=offsets)
    return transposed(found) if by_columns else found


def result_of_scaled_groups(options: ScaledGroupOptions, arrays: Arrays) -> Outcome:
    a, b = (numeric_of_dtype(arrays[name].dtype) for name in ("a", "b"))
    check_types(a, b)
    options.kernels(a)
    shape = shape_of_groups(arrays)
    dtype = BFloat16 if options.out_dtype is None else numeric_class(options.out_dtype)
    check_float_result(dtype)
    (m, k), n, (groups,) = arrays["a"].shape[-2:], arrays["b"].shape[-1], arrays["offsets"].shape
    mode, _ = cut_mode_and_shape(arrays["a"].shape, arrays["b"].shape, (groups,))
    check_scales(mode, (m, n, k), groups, *(described(name, arrays[name]) for name in ("scale_a", "scale_b")))
    return shape[::-1] if options.by_columns else shape, dtype


def execute_scaled_groups(options: ScaledGroupOptions, arrays: Arrays, stream: int | None) -> None:
    given = as_given(arrays)
    out = transposed(given["out"]) if options.by_columns else given["out"]
    scales = {name: given[name] for name in ("scale_a", "scale_b")}
    operands_of = given["a"], given["b"], given["offsets"], out, None, options.kernels
    product_of(ScaledCutProduct, *operands_of, stream=stream, **scales)


SCALED_GROUPS = Operation(result_of_scaled_groups, execute_scaled_groups, handed=along_k, is_zero=have_no_sums)


# -- weighted sums of rows ---------------------------------------------------------------------------------------------


def result_of_combination(options: None, arrays: Arrays) -> Outcome:
    source = arrays["source"]
    return combined_shape(source, arrays["places"], arrays["weights"]), numeric_of_dtype(source.dtype)


def execute_combination(options: None, arrays: Arrays, stream: int | None) -> None:
    launched(arrays["source"], arrays["places"], arrays["weights"], arrays["out"], stream)


def gradients_of_combination(options: None, arrays: Arrays, grad: Any) -> Arrays:
    """A row of the source gets the gradient of its token times its weight; a weight, the product of both rows."""
    source, places, weights = (arrays[name] for name in ("source", "places", "weights"))
    rows, wide = source.shape[0], grad[:, None, :].astype(jnp.float32)
    inside, at = (places >= 0) & (places < rows), places.clip(0, max(rows - 1, 0))
    of_rows = jnp.where(inside, weights, 0)[..., None] * wide
    of_source = jnp.zeros(source.shape, jnp.float32).at[at].add(of_rows).astype(source.dtype)
    return {"source": of_source, "weights": jnp.where(inside, (source[at].astype(jnp.float32) * wide).sum(-1), 0)}


COMBINATION = Operation(result_of_combination, execute_combination, gradients_of_combination)


# -- factors of blocks -------------------------------------------------------------------------------------------------


def block_scaled(
    a: Any, b: Any, scale_a: Any, scale_b: Any, bias: Any, alpha: float, activation: str | None, out_dtype: Any
) -> Any:
    """:func:`block_scaled_matmul` of JAX arrays and tracers. Factors are put in order here, by JAX."""
    check_scale("alpha", alpha)
    turned, of_b = swapped(b), swapped(scale_b) if len(scale_b.shape) == len(b.shape) else scale_b
    check_block_scaled(a, turned)
    dtype, _ = types_of_elements(a, turned)
    form, extent = format_of(dtype.width, scale_a, scale_b), a.shape[-1] * 8 // dtype.width
    factors = {}
    for name, scale, x in (("scale_a", scale_a, a), ("scale_b", of_b, turned)):
        in_rows = are_in_rows(name, tuple(scale.shape), tuple(x.shape[:-2]), x.shape[-2], extent, form)
        factors[name] = blocked_scales(scale) if in_rows else scale
    return BLOCK_SCALED((float(alpha), activation, out_dtype), a=a, b=turned, **factors, bias=bias)


def check_block_scaled(a: Any, b: Any) -> None:
    """ArgumentError for operands (M, K) and (N, K) that do not go together."""
    if len(a.shape) not in (2, 3) or len(a.shape) != len(b.shape) or a.shape[:-2] != b.shape[:-2]:
        raise ArgumentError(
            f"a and b, as (N, K), have the shapes {a.shape} and {b.shape}: matrices, or stacks of as many"
        )
    if a.shape[-1] != b.shape[-1]:
        raise ArgumentError(f"a has {a.shape[-1]} bytes along K, b {b.shape[-1]}: both have as many")


def types_of_elements(a: Any, b: Any) -> list[Any]:
    """What the bytes of operands (M, K) and (N, K), or stacks of them, are; ArgumentError where they are no elements,
    or not in rows that TMA reads."""
    found = []
    for name, x in (("a", a), ("b", b)):
        found.append(type_of_elements(name, numeric_of_dtype(x.dtype), x.shape))
        if x.shape[-1] % 16 and 0 not in x.shape:
            raise ArgumentError(f"{name} has multiples of 16 bytes along K, not {x.shape[-1]}")
    return found


def stored_by_tma(shape: tuple[int, ...], out_dtype: Any) -> Outcome:
    """A result of this shape; ArgumentError for one that kernels cannot store."""
    dtype = BFloat16 if out_dtype is None else numeric_class(out_dtype)
    if dtype not in RESULTS or (shape[-1] * dtype.bytes % 16 and 0 not in shape):
        raise no_result(dtype, f"shape {shape}")
    return shape, dtype


def result_of_block_scaled(options: tuple[float, str | None, Any], arrays: Arrays) -> Outcome:
    a, b, bias = arrays["a"], arrays["b"], arrays.get("bias")
    check_block_scaled(a, b)
    if bias is not None and tuple(bias.shape) != (b.shape[-2],):
        raise ArgumentError(f"bias is a vector of {b.shape[-2]} elements, not of shape {tuple(bias.shape)}")
    return stored_by_tma((*a.shape[:-1], b.shape[-2]), options[2])


def execute_block_scaled(options: tuple[float, str | None, Any], arrays: Arrays, stream: int | None) -> None:
    alpha, activation, _ = options
    bias, out = arrays.get("bias"), arrays["out"]
    factors = arrays["scale_a"], arrays["scale_b"]
    launched_with_factors(arrays["a"], transposed(arrays["b"]), *factors, bias, out, alpha, activation, None, stream)


BLOCK_SCALED = Operation(result_of_block_scaled, execute_block_scaled)


def result_of_groups_with_factors(out_dtype: Any, arrays: Arrays) -> Outcome:
    a, b, scale_a, scale_b = (arrays[name] for name in ("a", "b", "scale_a", "scale_b"))
    shape_of_product(a, b, arrays["offsets"])
    turned, of_b = swapped(b), swapped(scale_b) if len(scale_b.shape) == 3 else scale_b
    types = types_of_elements(a, turned)
    check_widths(*types)
    form, extent = format_of(types[0].width, scale_a, scale_b), a.shape[-1] * 8 // types[0].width
    groups, columns, _ = turned.shape
    factors_are_in_rows(tuple(scale_a.shape), a.shape[0], extent, groups, form)
    are_in_rows("scale_b", tuple(of_b.shape), (groups,), columns, extent, form)
    return stored_by_tma(shape_of_groups(arrays), out_dtype)


def factors_in_order(arrays: Arrays) -> Arrays:
    """JAX puts factors in order, and turns B."""
    scale_a, scale_b = arrays["scale_a"], arrays["scale_b"]
    if len(scale_a.shape) == 2:
        scale_a = in_order_of_groups(scale_a, arrays["offsets"])
    if len(scale_b.shape) == 3:
        scale_b = blocked_scales(swapped(scale_b))
    return along_k({**arrays, "scale_a": scale_a, "scale_b": scale_b})


def execute_groups_with_factors(out_dtype: Any, arrays: Arrays, stream: int | None) -> None:
    block_scaled_groups(**as_given(arrays), out_dtype=None, stream=stream)


GROUPS_WITH_FACTORS = Operation(
    result_of_groups_with_factors, execute_groups_with_factors, handed=factors_in_order, is_zero=have_no_sums
)
