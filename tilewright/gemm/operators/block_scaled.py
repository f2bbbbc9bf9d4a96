"""``block_scaled_matmul``: products of 8- and 4-bit floats with a factor for each 16 or 32 elements of K, which the
tensor cores of sm_100 and sm_120 multiply in: the formats mxfp8, mxfp4 and nvfp4."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from types import SimpleNamespace
from typing import Any

from tilewright import BFloat16, Float4E2M1FN, Float8E4M3FN, Float8E5M2, Float8E8M0FNU, Float16, Float32, Int32, Int64
from tilewright.errors import ArgumentError
from tilewright.gemm.arrays import Matrix
from tilewright.gemm.block_scaled_config import BLOCK_BYTES, FACTORS, ROWS
from tilewright.gemm.choice.choose import fastest
from tilewright.gemm.config import Major, Operand
from tilewright.gemm.epilogue.activations import activation_of
from tilewright.gemm.epilogue.functions import Bias, Chain, LinearCombination
from tilewright.gemm.family.block_scaled import FORMATS, Format, block_scaled_entry, block_scaled_kernel
from tilewright.gemm.family.entry import KernelEntry
from tilewright.gemm.host.plan import capability_of, limits
from tilewright.gemm.host.problem import Problem, check_output, check_vector
from tilewright.gemm.host.scales import check_scale
from tilewright.gemm.mainloop.factors import WORDS
from tilewright.gemm.operators.arrays import (
    check_given_result,
    framework,
    namespace,
    new_result,
    one_framework,
    row_major_copy,
)
from tilewright.gemm.operators.forms import recorded_form
from tilewright.gemm.operators.mixed import run as run_compiled
from tilewright.gemm.operators.open_extents import Modes, Place
from tilewright.gemm.operators.repeated_call import is_torch, repeated_call
from tilewright.gemm.operators.rows import planned_rows
from tilewright.gemm.operators.torch_state import any_recorded, materialised
from tilewright.gemm.schedule.decomposition import PersistentTiles
from tilewright.gemm.tuning.stand_in import numeric_class
from tilewright.lang.arguments.arrays import array_of
from tilewright.lang.arguments.dlpack import from_dlpack
from tilewright.lang.numbers.dtypes import numeric_of_dtype
from tilewright.lang.tools.hardware import clusters_at_once

RESULTS = (BFloat16, Float16, Float32)


def blocked_scales(scale: Any) -> Any:
    """The factors (rows, K / 32 or K / 16) of a matrix (rows, K), in the order in which tensor cores take them: blocks
    of 128 rows and four factors, filled up with zeros; rows r, r + 32, r + 64 and r + 96 of a block are neighbours. Of
    a stack (L, rows, ...) the result is (L, numbers of a matrix).

    Args:
        scale: of Float8E8M0FNU or Float8E4M3FN: a PyTorch tensor, or a NumPy, CuPy or JAX array.

    >>> import ml_dtypes
    >>> rows = np.arange(128, dtype=np.float32)[:, None] % 16
    >>> blocked_scales(np.tile(rows, 3).astype(ml_dtypes.float8_e4m3fn))[:20].astype(int).tolist()
    [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 0]
    """
    kind, found = framework(scale, "scale"), described("scale", scale)
    if len(found.shape) not in (2, 3) or found.dtype not in (Float8E8M0FNU, Float8E4M3FN):
        raise ArgumentError(
            "scale is a (rows, factors) matrix of Float8E8M0FNU or Float8E4M3FN, or a stack of such, not "
            f"{found.dtype.__name__} of shape {tuple(found.shape)}"
        )
    library, (*stack, rows, count) = namespace(scale), map(int, found.shape)
    down, across = -(-rows // ROWS), -(-count // FACTORS)
    as_it_is = kind in ("torch", "jax") or scale.flags.c_contiguous
    seen = scale.view(library.uint8) if as_it_is else scale.copy().view(library.uint8)
    shape = *stack, down * ROWS, across * FACTORS
    if kind == "jax":
        padded = library.zeros(shape, library.uint8).at[..., :rows, :count].set(seen)
    else:
        padded = seen.new_zeros(shape) if kind == "torch" else library.zeros(shape, library.uint8)
        padded[..., :rows, :count] = seen
    blocks = padded.reshape(prod(stack), down, FACTORS, ROWS // FACTORS, across, FACTORS)
    order = 0, 1, 4, 3, 2, 5
    blocks = blocks.permute(*order) if kind == "torch" else blocks.transpose(*order)
    return blocks.reshape(*stack, -1).view(scale.dtype)


def described(name: str, x: Any) -> Any:
    """The shape, the numeric class and the device of an array, or of a tracer of JAX, which has no memory."""
    if framework(x, name) != "jax":
        return array_of(x)
    return SimpleNamespace(shape=tuple(x.shape), dtype=numeric_of_dtype(x.dtype), device=None)


def block_scaled_matmul(
    a: Any,
    b: Any,
    scale_a: Any,
    scale_b: Any,
    bias: Any = None,
    *,
    out: Any = None,
    alpha: float = 1.0,
    activation: str | None = None,
    out_dtype: Any = None,
) -> Any:
    """activation(alpha * (scale_a * a) @ (scale_b * b) + bias) on the tensor cores of sm_100a, sm_120a and their like.

    Args:
        a: (M, K) of Float8E4M3FN or Float8E5M2, rows contiguous: a PyTorch tensor, or a NumPy, CuPy or JAX array. Or
            4-bit floats (e2m1), two in a byte, the first in its low bits: (M, K / 2) of PyTorch's
            ``float4_e2m1fn_x2``, or of uint8. K is a multiple of 16 (8 bits) or 32 (4 bits). Or a stack (L, M, K) of
            such, as all others then are but for the bias. Matrices whose rows do not begin at multiples of 16 bytes are
            copied.
        b: (K, N), or (K / 2, N), of as many bits, columns contiguous (the transpose of a weight (N, K)).
        scale_a: (M, ceil(K / 32)) of Float8E8M0FNU, or for 4 bits also (M, ceil(K / 16)) of Float8E4M3FN (nvfp4); or
            what :func:`blocked_scales` gives for that.
        scale_b: (ceil(K / 32), N) or (ceil(K / 16), N) of the same type; or what :func:`blocked_scales` gives for its
            transpose.
        bias: a vector of N numbers.
        out: (M, N); made if it is None. N is such that rows are multiples of 16 bytes.
        alpha: a number for the whole product: nvfp4's two scales of whole matrices, multiplied.
        activation: as for :func:`matmul`.
        out_dtype: BFloat16 (the default), Float16 or Float32.

    It has no gradient; ``torch.compile`` keeps it as one operator, and of JAX arrays it is an operation of JAX. On
    other GPUs it raises ArgumentError, as it does, before anything is launched, for operands that do not go together.

    >>> import ml_dtypes
    >>> from tilewright import sim
    >>> a, b = np.full((64, 64), 2, ml_dtypes.float8_e4m3fn), np.ones((32, 64), ml_dtypes.float8_e4m3fn)
    >>> scale_a, scale_b = (np.full((rows, 2), 0.5, ml_dtypes.float8_e8m0fnu) for rows in (64, 32))
    >>> with sim.options(arch="sm_100a"):
    ...     block_scaled_matmul(a, b.T, scale_a, scale_b.T)[0, :2].astype(float).tolist()  # 64 * 2 * 0.5 * 0.5
    [32.0, 32.0]
    """
    tensors, options = (a, b, scale_a, scale_b, bias, out), (alpha, activation, out_dtype)
    run = partial(launched, *tensors, *options)
    if is_torch(a) and not any_recorded(sys.modules["torch"], *tensors):
        return repeated_call("block_scaled_matmul", tensors, out, options, run, open_rows)
    kind = one_framework({"a": a, "b": b, "scale_a": scale_a, "scale_b": scale_b}, {"bias": bias, "out": out})
    if kind == "torch":
        return recorded_form("torch_block_scaled").recorded(*tensors, *options)
    if kind == "jax":
        if out is not None:
            raise ArgumentError("JAX arrays are immutable: call block_scaled_matmul without out, and use its result")
        return recorded_form("jax_products").block_scaled(*tensors[:-1], *options)
    return run()


def open_rows(tensors: Sequence[Any]) -> Sequence[Modes]:
    """The rows of a and out."""
    return ((Place(0), Place(5)),) if tensors[0].ndim == 2 else ()


def launched(
    a: Any,
    b: Any,
    scale_a: Any,
    scale_b: Any,
    bias: Any,
    out: Any,
    alpha: float,
    activation: str | None,
    out_dtype: Any,
    stream: int | None = None,
) -> Any:
    """:func:`block_scaled_matmul` at length, launched on ``stream`` or the current one: all is checked and planned."""
    one_framework({"a": a, "b": b, "scale_a": scale_a, "scale_b": scale_b}, {"bias": bias, "out": out})
    A, B = elements("a", a), elements("b", swapped(b))
    form = check_product(A, B, scale_a, scale_b)
    m, n, batch = A.rows, B.rows, A.matrix.shape[2]
    dtype = BFloat16 if out_dtype is None else numeric_class(out_dtype)
    rank = len(a.shape)
    shape = (m, n) if rank == 2 else (batch, m, n)
    result = new_result(a, shape, dtype) if out is None else out
    D = Matrix.of("out", result)
    check_given_result(D, shape, None if out_dtype is None else dtype)
    check_output(A.matrix, B.matrix, None, D, (m, n, batch))
    if not in_rows_of_16(D) and D.dtype in RESULTS:  # kernels store by TMA
        D = Matrix.of("out", new_result(a, tuple(result.shape), D.dtype))
    check_result(D)
    problem = Problem(A.matrix, B.matrix, D, D, False)
    of_b = swapped(scale_b) if len(getattr(scale_b, "shape", ())) == rank else scale_b
    factors = [
        factors_of(name, x, operand, form, problem)
        for name, x, operand in (("scale_a", scale_a, A), ("scale_b", of_b, B))
    ]
    entry = block_scaled_entry(A.dtype, B.dtype, D.dtype, form, capability_of(problem.machine))
    function = epilogue_of(problem, n, alpha, bias, activation)
    if 0 in (m, n, batch):
        return result
    if A.extent == 0:
        raise ArgumentError("block_scaled_matmul multiplies matrices with K > 0")
    launch(problem, A, B, factors, entry, function, stream)
    if D.source is not result:
        result[...] = D.source
    return result


@dataclass(frozen=True)
class Elements:
    """An operand, (rows, bytes), and what its bytes are."""

    matrix: Matrix
    dtype: Any

    @property
    def width(self) -> int:
        return int(self.dtype.width)

    @property
    def rows(self) -> int:
        return self.matrix.shape[0]

    @property
    def extent(self) -> int:
        """Elements along K."""
        return self.matrix.shape[1] * 8 // self.width


def check_product(A: Elements, B: Elements, scale_a: Any, scale_b: Any) -> Format:
    """The format of operands that can be multiplied with each other; ArgumentError for others."""
    if (A.width, A.extent) != (B.width, B.extent):
        raise ArgumentError(
            f"a has {A.extent} elements of {A.width} bits along K, b {B.extent} of {B.width}: both have as many"
        )
    if A.matrix.shape[2] != B.matrix.shape[2] or len(A.matrix.source.shape) != len(B.matrix.source.shape):
        shapes = tuple(A.matrix.source.shape), tuple(B.matrix.source.shape)
        raise ArgumentError(
            f"a and b, as (N, K), have the shapes {shapes[0]} and {shapes[1]}: stacks of as many matrices"
        )
    return format_of(A.width, scale_a, scale_b)


def swapped(x: Any) -> Any:
    """Matrices, transposed; anything else as it is."""
    return x.swapaxes(-1, -2) if len(getattr(x, "shape", ())) in (2, 3) else x


def elements(name: str, x: Any) -> Elements:
    """An operand (rows, K or K / 2), checked."""
    if framework(x, name) == "torch":
        x, torch = materialised(x), sys.modules["torch"]
        if x.dtype is getattr(torch, "float4_e2m1fn_x2", None):
            x = x.view(torch.uint8)
    matrix = Matrix.of(name, x)
    if not in_rows_of_16(matrix) and matrix.stride[1] == 1 and matrix.shape[1] * matrix.dtype.bytes % 16 == 0:
        matrix = Matrix.of(name, row_major_copy(x))
    dtype = type_of_elements(name, matrix.dtype, matrix.shape)
    if not in_rows_of_16(matrix):
        raise ArgumentError(
            f"{name} has contiguous bytes along K, multiples of 16 of them, not shape {tuple(matrix.source.shape)}, "
            f"strides {tuple(array_of(matrix.source).stride)}"
        )
    return Elements(matrix, dtype)


def type_of_elements(name: str, stored: Any, shape: tuple[int, ...]) -> Any:
    """What the bytes of an operand are."""
    if stored in (Float8E4M3FN, Float8E5M2):
        return stored
    if stored.__name__ != "Uint8":
        raise ArgumentError(
            f"{name} is a matrix of Float8E4M3FN, Float8E5M2, or pairs of 4-bit floats (float4_e2m1fn_x2, uint8), not "
            f"{stored.__name__} of shape {tuple(shape)}"
        )
    return Float4E2M1FN


def format_of(width: int, scale_a: Any, scale_b: Any) -> Format:
    """What the types of the factors say."""
    a, b = numeric_of_dtype(scale_a.dtype), numeric_of_dtype(scale_b.dtype)
    if a is not b or (width, a) not in FORMATS:
        known = " or ".join(factor.__name__ for bits, factor in FORMATS if bits == width)
        raise ArgumentError(
            f"scale_a is {a.__name__}, scale_b {b.__name__}; both are {known} for elements of {width} bits"
        )
    return FORMATS[width, a]


def in_rows_of_16(matrix: Matrix) -> bool:
    """Whether TMA can read and write the rows of a stack: contiguous ones, of and at multiples of 16 bytes."""
    (_, columns, _), (down, across, apart), size = matrix.shape, matrix.stride, matrix.dtype.bytes
    if 0 in matrix.shape:
        return True
    steps = [step * size for step, extent in ((down, matrix.shape[0]), (apart, matrix.shape[2])) if extent > 1]
    whole = all(step > 0 and step % 16 == 0 for step in (*steps, columns * size))
    return whole and (across == 1 or columns == 1) and matrix.array.address % 16 == 0


def factors_of(name: str, scale: Any, operand: Elements, form: Format, problem: Problem) -> Matrix:
    """The factors of an operand's elements as (blocks of rows, words, L); those of matrices are put in order first."""
    rows, batch = operand.rows, operand.matrix.shape[2]
    stack = () if len(operand.matrix.source.shape) == 2 else (batch,)
    count, down, across = blocks_of_factors(rows, operand.extent, form)
    array = array_of(scale)
    if array.device != problem.D.device:
        raise ArgumentError(f"{name} is on {array.device}, the matrices on {problem.D.device}")
    check_vector(name, array, problem)
    strides = (BLOCK_BYTES * down * across, 1)[-len(array.shape) :]
    if are_in_rows(name, tuple(array.shape), stack, rows, operand.extent, form):
        scale = blocked_scales(scale)
    elif tuple(array.stride) != strides or array.address % 16:
        scale = row_major_copy(scale)
    if 0 in (rows, count, batch):
        return Matrix.of(name, new_result(scale, (*stack, down, WORDS * across), Int64))
    words = scale.view(namespace(scale).int64)
    return Matrix.of(name, words.reshape(*stack, down, WORDS * across))


def blocks_of_factors(rows: int, extent: int, form: Format) -> tuple[int, int, int]:
    """Factors of a row of ``extent`` elements, and the blocks of the factors of ``rows`` rows, down and across."""
    count = -(-extent // form.vector)
    return count, -(-rows // ROWS), -(-count // FACTORS)


def are_in_rows(
    name: str, shape: tuple[int, ...], stack: tuple[int, ...], rows: int, extent: int, form: Format
) -> bool:
    """Whether factors are a matrix, or a ``stack`` of such; False where they are in the order of
    :func:`blocked_scales`. ArgumentError for other shapes."""
    count, down, across = blocks_of_factors(rows, extent, form)
    numbers = BLOCK_BYTES * down * across
    if shape == (*stack, rows, count):
        return True
    if shape == (*stack, numbers):
        return False
    raise ArgumentError(
        f"{name} has the shape {shape}; {rows} rows of {extent} elements have {count} factors each, {numbers} numbers "
        f"in the order of blocked_scales{f', in {stack[0]} matrices' if stack else ''}"
    )


def check_result(D: Matrix) -> None:
    if D.dtype not in RESULTS or not in_rows_of_16(D):
        strides = f", strides {tuple(array_of(D.source).stride)}"
        raise no_result(D.dtype, f"shape {tuple(D.source.shape)}{strides}")


def no_result(dtype: Any, form: str) -> ArgumentError:
    """The refusal of a result that kernels cannot store by TMA."""
    known = ", ".join(x.__name__ for x in RESULTS)
    return ArgumentError(
        f"products with factors of blocks write {known} in rows that are multiples of 16 bytes and begin there, not "
        f"{dtype.__name__} of {form}"
    )


def epilogue_of(problem: Problem, n: int, alpha: float, bias: Any, activation: str | None) -> Any:
    """The function of the sums."""
    check_scale("alpha", alpha)
    parts: list[Any] = [LinearCombination(Float32(float(alpha)))]
    if bias is not None:
        if tuple(bias.shape) != (n,) or array_of(bias).device != problem.D.device:
            raise ArgumentError(
                f"bias is a vector of {n} elements on {problem.D.device}, not of shape {tuple(bias.shape)}"
            )
        check_vector("bias", array_of(bias), problem)
        parts.append(Bias(from_dlpack(bias).mark_layout_dynamic()))
    if activation is not None:
        parts.append(activation_of(activation, Float32, problem.D.dtype))
    return Chain(tuple(parts))


def launch(
    problem: Problem,
    A: Elements,
    B: Elements,
    factors: list[Matrix],
    entry: KernelEntry,
    function: Any,
    stream: int | None,
) -> None:
    """Run the kernel in the size that suits the problem, compiled once for operands of a kind."""
    gpu, D = limits(problem.machine), problem.D
    shape = planned_rows(A.rows), B.rows, A.extent, D.shape[2]
    config = fastest(entry, "data_parallel", shape, gpu)[0].config
    stored = [x.matrix.tensor(replace(operand, dtype=x.matrix.dtype)) for x, operand in ((A, config.a), (B, config.b))]
    words = [x.tensor(Operand(Int64, Major.K, 128)) for x in factors]
    d = D.tensor(config.c)
    workers = PersistentTiles(Int32(clusters_at_once(gpu[0], config.cluster_size)))
    run_compiled(config, block_scaled_kernel(config), *stored, *words, d, d, function, workers, stream=stream)
