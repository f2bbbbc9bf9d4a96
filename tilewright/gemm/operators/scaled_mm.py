"""``scaled_mm``: :func:`scaled_matmul` and :func:`block_scaled_matmul` by the arguments of
``torch.nn.functional.scaled_mm``, which names what a scale belongs to where the two others see it by its shape."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from tilewright import BFloat16, Float32
from tilewright.errors import ArgumentError
from tilewright.gemm.block_scaled_config import FACTORS
from tilewright.gemm.epilogue.scales import BLOCK
from tilewright.gemm.operators.arrays import framework
from tilewright.gemm.operators.block_scaled import block_scaled_matmul
from tilewright.gemm.operators.scaled import check_bool, scaled_matmul
from tilewright.gemm.tuning.stand_in import numeric_class

RECIPES = ("TensorWise", "RowWise", "BlockWise1x16", "BlockWise1x32", "BlockWise1x128", "BlockWise128x128")
"""PyTorch's ``ScalingType``; a recipe's number is its place."""
SWIZZLES = ("NO_SWIZZLE", "SWIZZLE_32_4_4")
"""PyTorch's ``SwizzleType``, likewise."""
FACTOR_RECIPES = {"BlockWise1x32": 32, "BlockWise1x16": 16}
"""Recipes whose scales tensor cores multiply in, and the elements of K that share one."""


def scaled_mm(
    mat_a: Any,
    mat_b: Any,
    scale_a: Any,
    scale_recipe_a: Any,
    scale_b: Any,
    scale_recipe_b: Any,
    swizzle_a: Any = None,
    swizzle_b: Any = None,
    bias: Any = None,
    output_dtype: Any = BFloat16,
    contraction_dim: Sequence[int] = (),
    use_fast_accum: bool = False,
) -> Any:
    """mat_a @ mat_b + bias, of 8- or 4-bit operands with scales, by ``torch.nn.functional.scaled_mm``'s arguments.

    | recipe | ``scale_a`` for mat_a (M, K) | ``scale_b`` for mat_b (K, N) |
    |---|---|---|
    | TensorWise | one number | one number |
    | RowWise | (M, 1) | (1, N), or N numbers |
    | BlockWise1x128 | (M, K / 128) | (N, K / 128), or (K / 128, N) as ``torch._scaled_mm`` has it |
    | BlockWise128x128 | (K / 128, M / 128), or (M / 128, K / 128) | (K / 128, N / 128) |
    | BlockWise1x32 | factors of Float8E8M0FNU | the same |
    | BlockWise1x16 | factors of Float8E4M3FN; [factors, number] with [BlockWise1x16, TensorWise] | the same |

    Args:
        mat_a: (M, K) of 8-bit floats or Int8, or (M, K / 2) pairs of 4-bit floats, rows contiguous: a PyTorch tensor,
            or a NumPy, CuPy or JAX array.
        mat_b: (K, N) or (K / 2, N), columns contiguous.
        scale_a, scale_b: an array, or a list of one; of any strides. K / 128 is rounded up; where K / 128 comes first
            it may also be rounded up to a multiple of 4, the rows behind being unused. A shape that is both ways round
            is taken as the first one.
        scale_recipe_a, scale_recipe_b: members of ``torch.nn.functional.ScalingType``, their names or their numbers.
        swizzle_a, swizzle_b: members of ``SwizzleType``, their names or numbers, for factors: SWIZZLE_32_4_4 is the
            order of :func:`blocked_scales`; without one they are (M, K / 32) and (K / 32, N).
        bias: a vector of N numbers.
        output_dtype: of the result; None: BFloat16.
        contraction_dim: empty, or the modes of K: (-1, -2).
        use_fast_accum: as for :func:`scaled_matmul`.

    Factors are for kernels of sm_100 and sm_120. Raises ArgumentError, before anything is launched, for operands and
    scales that do not go together. ``torch.compile`` keeps the product as one node; it has no gradient.

    >>> import ml_dtypes
    >>> a, b = np.ones((16, 256), ml_dtypes.float8_e4m3fn), np.ones((64, 256), ml_dtypes.float8_e4m3fn)
    >>> rows, blocks = np.full((16, 2), 0.5, np.float32), np.array([[1], [2], [0], [0]], np.float32)
    >>> scaled_mm(a, b.T, rows, "BlockWise1x128", blocks, "BlockWise128x128")[0, 0].item()  # 128 * 0.5 * (1 + 2)
    192.0
    """
    check_bool("use_fast_accum", use_fast_accum)
    for name, x in (("mat_a", mat_a), ("mat_b", mat_b)):
        framework(x, name)
        if len(x.shape) != 2:
            raise ArgumentError(f"{name} is a matrix, not of shape {tuple(x.shape)}")
    modes = tuple(contraction_dim) if isinstance(contraction_dim, Sequence) else (contraction_dim,)
    if modes not in ((), (-1, -2), (1, 0), (-1, 0), (1, -2)):
        raise ArgumentError(f"contraction_dim is empty or (-1, -2), not {contraction_dim!r}")
    recipe_a, scales_a = recipe_of("a", scale_recipe_a, scale_a)
    recipe_b, scales_b = recipe_of("b", scale_recipe_b, scale_b)
    dtype = BFloat16 if output_dtype is None else output_dtype
    if recipe_a in FACTOR_RECIPES or recipe_b in FACTOR_RECIPES:
        if recipe_a != recipe_b or len(scales_a) != len(scales_b):
            raise ArgumentError(f"both operands have factors of one recipe, not {recipe_a} and {recipe_b}")
        factors_a, factors_b = (
            factors(f"swizzle_{name}", scales, swizzle)
            for name, scales, swizzle in (("a", scales_a, swizzle_a), ("b", scales_b, swizzle_b))
        )
        if use_fast_accum:
            raise ArgumentError("use_fast_accum is not for factors: tensor cores add in float32")
        if len(scales_a) == 1:
            return block_scaled_matmul(mat_a, mat_b, factors_a, factors_b, bias, out_dtype=dtype)
        # The scales of whole operands are on the device, and the host does not wait for them.
        sums = block_scaled_matmul(mat_a, mat_b, factors_a, factors_b, out_dtype=Float32) * (scales_a[1] * scales_b[1])
        return cast(sums if bias is None else sums + bias, dtype)
    for name, swizzle in (("swizzle_a", swizzle_a), ("swizzle_b", swizzle_b)):
        if choice(name, swizzle, SWIZZLES, 0) != SWIZZLES[0]:
            raise ArgumentError(f"{name} is for factors of 8 bits; scales of float32 have none")
    (m, k), n = map(int, mat_a.shape), int(mat_b.shape[1])
    left, right = (
        seen("scale_a", scales_a[0], recipe_a, m, k, True),
        seen("scale_b", scales_b[0], recipe_b, n, k, False),
    )
    return scaled_matmul(mat_a, mat_b, left, right, bias, out_dtype=dtype, use_fast_accum=use_fast_accum)


def choice(name: str, value: Any, known: tuple[str, ...], default: int) -> str:
    """The name of a member of an enumeration, given as it is, by name or number; ArgumentError for others."""
    if isinstance(value, (list, tuple)) and len(value) == 1:
        (value,) = value
    if value is None:
        return known[default]
    given = getattr(value, "name", value)
    if isinstance(given, int) and not isinstance(given, bool) and 0 <= given < len(known):
        return known[given]
    if given not in known:
        raise ArgumentError(f"{name} is one of {', '.join(known)}, not {value!r}")
    return str(given)


def recipe_of(operand: str, recipe: Any, scale: Any) -> tuple[str, list[Any]]:
    """The recipe of an operand and its scales: those of blocks, and of the whole where there are two."""
    scales = list(scale) if isinstance(scale, (list, tuple)) else [scale]
    recipes = list(recipe) if isinstance(recipe, (list, tuple)) else [recipe]
    names = [choice(f"scale_recipe_{operand}", x, RECIPES, len(RECIPES)) if x is not None else "None" for x in recipes]
    if len(names) != len(scales) or names not in ([x] for x in RECIPES) and names != ["BlockWise1x16", "TensorWise"]:
        raise ArgumentError(
            f"scale_recipe_{operand} is one of {', '.join(RECIPES)} with one scale, or [BlockWise1x16, TensorWise] "
            f"with two, not {', '.join(names)} with {len(scales)}"
        )
    for x in scales:
        framework(x, f"scale_{operand}")
    if len(scales) == 2 and prod(scales[1].shape) != 1:
        raise ArgumentError(f"the second scale_{operand} is one number, not of shape {tuple(scales[1].shape)}")
    return names[0], scales


def factors(name: str, scales: list[Any], swizzle: Any) -> Any:
    """The factors among an operand's scales as :func:`block_scaled_matmul` takes them."""
    several = isinstance(swizzle, (list, tuple)) and len(swizzle) == len(scales) > 1
    if several and choice(name, swizzle[1], SWIZZLES, 0) != SWIZZLES[0]:
        raise ArgumentError(f"{name}: the scale of the whole operand has no order of factors")
    order = choice(name, swizzle[0] if several else swizzle, SWIZZLES, 0)
    return scales[0] if order == SWIZZLES[0] else scales[0].reshape(-1)


def seen(name: str, scale: Any, recipe: str, lines: int, k: int, upright: bool) -> Any:
    """A scale of float32 as :func:`scaled_matmul` takes it, of ``lines`` rows of A (``upright``) or columns of B;
    ArgumentError where its shape is not that of the recipe."""
    shape, deep = tuple(map(int, scale.shape)), -(-k // BLOCK)
    blocks, filled = -(-lines // BLOCK), -(-deep // FACTORS) * FACTORS

    def wrong(*listed: tuple[int, ...]) -> ArgumentError:
        return ArgumentError(f"{name} of recipe {recipe} has the shape {' or '.join(map(str, listed))}, not {shape}")

    def turned(x: Any) -> Any:
        return x.swapaxes(0, 1)

    if recipe == "TensorWise":
        if prod(shape) != 1:
            raise wrong((1,))
        return scale.reshape(())
    if recipe == "RowWise":
        if prod(shape) != lines or (upright and shape != (lines, 1)):
            raise wrong((lines, 1) if upright else (1, lines))
        return scale.reshape((lines, 1) if upright else (1, lines))
    if recipe == "BlockWise1x128":
        if shape == (lines, deep):
            return scale if upright else turned(scale)
        if not upright and shape == (deep, lines):
            return scale
        raise wrong((lines, deep), *(() if upright else ((deep, lines),)))
    if shape in ((deep, blocks), (filled, blocks)):
        return turned(scale[:deep]) if upright else scale[:deep]
    if upright and shape == (blocks, deep):
        return scale
    raise wrong((filled, blocks), (deep, blocks), *(((blocks, deep),) if upright else ()))


def cast(x: Any, dtype: Any) -> Any:
    """An array of numbers of another type."""
    kind = numeric_class(dtype)
    return x.to(kind.torch_dtype) if framework(x) == "torch" else x.astype(kind.dtype)
