"""``mixed_matmul``: rows of 16-bit floats times a weight of 4- or 8-bit integers with scales, arranged once by
``prepare_weight``."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from math import prod
from typing import Any

from tilewright import BFloat16, Float8E4M3FN, Float16, Float32, Int4, Int8, Int32, Uint8, cute
from tilewright.errors import ArgumentError
from tilewright.gemm.access import VECTOR
from tilewright.gemm.arrays import Matrix, operand_of
from tilewright.gemm.config import Major, Operand
from tilewright.gemm.epilogue.activations import activation_of, check_activation
from tilewright.gemm.epilogue.functions import Bias, Chain
from tilewright.gemm.host.plan import limits
from tilewright.gemm.host.problem import WIDEST, Problem, check_output, check_vector
from tilewright.gemm.kernel.mixed_small_m import MixedSmallMGemm, PreparedOperand
from tilewright.gemm.kernel.widen import widen
from tilewright.gemm.mainloop.prepared_weight import (
    COLUMNS,
    DEPTH,
    KINDS,
    LANES,
    OFFSET,
    OFFSET_OF_BYTES,
    WORDS,
    prepared_layout,
)
from tilewright.gemm.operators.arrays import framework, namespace, new_result, view_of
from tilewright.gemm.operators.matmul import matmul
from tilewright.gemm.operators.torch_state import any_recorded
from tilewright.gemm.small_m_config import MixedSmallMConfig
from tilewright.gemm.tuning.stand_in import numeric_class
from tilewright.lang.arguments.argument import argument_of
from tilewright.lang.arguments.arrays import array_of
from tilewright.lang.arguments.dlpack import from_dlpack

GROUPS = (32, 64, 128)
MOST_ROWS = 64
"""So many rows are multiplied by the kernel for few rows, for more the weight is written out."""
SIZES = {
    4: {
        8: (32, (32, 2, (1, 8), 2), (16, 4, (1, 8), 2)),
        16: (32, (32, 2, (1, 8), 2), (16, 4, (1, 8), 2)),
        32: (48, (64, 2, (4, 4), 1), (32, 2, (2, 8), 1)),
        64: (48, (64, 2, (4, 2), 1), (32, 2, (2, 4), 1)),
    },
    8: {
        8: (32, (16, 2, (1, 8), 2), (16, 2, (1, 8), 2)),
        16: (32, (16, 2, (1, 8), 2), (16, 2, (1, 8), 2)),
        32: (48, (64, 2, (4, 2), 1), (32, 2, (2, 4), 1)),
        64: (48, (64, 1, (4, 2), 1), (32, 1, (2, 4), 1)),
    },
}
"""By the bits of the numbers and the most rows: the columns of a product for each multiprocessor from which on it is a
wide one; for wide and for narrow products the columns of a block, tiles of K in flight, warps that share the columns
and that share K, and blocks of which a multiprocessor has the registers."""
_COMPILED: dict[Any, Any] = {}


@dataclass(frozen=True)
class PreparedWeight:
    """A weight (N, K) of integers of 4 or 8 ``bits``, or of Float8E4M3FN (``floats``), in the order in which kernels
    read it, with its scales.

    ``words`` is (N / 8, K / 128, 32, 4) of int32, of 8 bits (N / 8, K / 64, 32, 4), ``scales`` (K / group, N),
    ``zeros`` None or (K / group, N) of uint8. :func:`prepare_weight` makes it.

    >>> import numpy as np
    >>> prepare_weight(np.zeros((8, 128), np.int8), np.ones((8, 4), np.float16)).group
    32
    """

    words: Any
    scales: Any
    zeros: Any = None
    bits: int = 4
    floats: bool = False

    @property
    def dtype(self) -> Any:
        """The numeric class of the numbers."""
        return Float8E4M3FN if self.floats else Int4 if self.bits == 4 else Int8

    @property
    def shape(self) -> tuple[int, int]:
        """(N, K)"""
        return int(self.words.shape[0]) * COLUMNS, int(self.words.shape[1]) * DEPTH * 4 // self.bits

    @property
    def group(self) -> int:
        """The elements of K that share a scale."""
        return self.shape[1] // max(1, int(self.scales.shape[0]))


def prepare_weight(weight: Any, scales: Any, zeros: Any = None, *, bits: int = 4) -> PreparedWeight:
    """Arrange a weight of integers of 4 or 8 bits for :func:`mixed_matmul`, once, on its device.

    Args:
        weight: (N, K) of Float8E4M3FN, or integers of -8 to 7 as int8, with ``zeros`` of 0 to 15; N in 8s, K in 128s: a
            PyTorch tensor, or a NumPy or CuPy array.
        scales: (N, K / group) of Float16, BFloat16 or Float32: what the integers of a group of 32, 64 or 128 elements
            of K are multiplied by.
        zeros: (N, K / group) integers of 0 to 15 as int8 or uint8: the zero point of each group, which is subtracted
            before that.
        bits: 4, or 8 for integers of -128 to 127, which have no zero points.

    Raises ArgumentError for others.

    >>> import numpy as np
    >>> prepared = prepare_weight(np.full((16, 256), -3, np.int8), np.ones((16, 2), np.float16))
    >>> prepared.shape, prepared.group, prepared.words.shape
    ((16, 256), 128, (2, 2, 32, 4))
    """
    kind = framework(weight, "weight")
    if kind == "jax" or framework(scales, "scales") != kind:
        raise ArgumentError("weight and scales are arrays of PyTorch, of NumPy or of CuPy, both of the same")
    found = array_of(weight)
    floats = found.dtype is Float8E4M3FN
    whole = len(found.shape) == 2 and not (found.shape[0] % COLUMNS or found.shape[1] % DEPTH)
    if not whole or not (floats or found.dtype is Int8):
        raise ArgumentError(
            f"weight is an (N, K) matrix of int8 or Float8E4M3FN with N in {COLUMNS}s and K in {DEPTH}s, not "
            f"{found.dtype.__name__} of shape {tuple(found.shape)}: fill it up with zeros"
        )
    (n, k), given = found.shape, array_of(scales)
    if tuple(given.shape) not in [(n, k // group) for group in GROUPS]:
        shapes = " or ".join(str((n, k // group)) for group in GROUPS)
        raise ArgumentError(f"scales has the shape {tuple(given.shape)}; for a weight {(n, k)} it is {shapes}")
    if given.dtype not in (Float16, BFloat16, Float32):
        raise ArgumentError(f"scales are Float16, BFloat16 or Float32, not {given.dtype.__name__}")
    if given.device != found.device:
        raise ArgumentError(f"scales are on {given.device}, the weight on {found.device}")
    bits = 8 if floats else bits
    if bits not in SIZES or (bits == 8 and zeros is not None):
        raise ArgumentError(f"bits is 4, or 8 without zeros, not {bits}{'' if zeros is None else ' with zeros'}")
    offset = OFFSET if zeros is None else 0
    if bits == 4:
        check_range("weight", weight, -offset)
    words = words_of_bytes(weight, n, k, floats) if bits == 8 else words_of_pairs(weight + offset, n, k)
    by_group = new_result(scales, (given.shape[1], n), given.dtype)  # aligned, and not the caller's memory
    by_group[...] = scales.T
    return PreparedWeight(words, by_group, None if zeros is None else zero_points(zeros, scales), bits, floats)


def words_of_bytes(weight: Any, n: int, k: int, floats: bool) -> Any:
    """The words of numbers of 8 bits."""
    library = namespace(weight)
    kept = weight.view(library.uint8) if floats else weight.view(library.uint8) ^ OFFSET_OF_BYTES  # q + 128
    words = new_result(weight, (n // COLUMNS, 2 * k // DEPTH, LANES, WORDS), Int32)
    words.view(library.uint8)[...] = arranged(kept, n, k, 8).reshape((*words.shape[:3], 4 * WORDS))
    return words


def words_of_pairs(numbers: Any, n: int, k: int) -> Any:
    """The words of numbers of 0 to 15."""
    library = namespace(numbers)
    pairs = arranged(numbers, n, k).reshape(n // COLUMNS, k // DEPTH, LANES, 4 * WORDS, 2)
    pairs = pairs.to(library.uint8) if framework(numbers) == "torch" else pairs.astype(library.uint8)
    return (pairs[..., 0] | pairs[..., 1] << 4).view(library.int32)


def check_range(name: str, x: Any, least: int) -> None:
    """ArgumentError for numbers that 4 bits do not hold."""
    if prod(x.shape) and (int(x.min()) < least or int(x.max()) > least + 15):
        found = f"{int(x.min())} to {int(x.max())}"
        raise ArgumentError(f"{name} has numbers of {found}, not of {least} to {least + 15}")


def zero_points(zeros: Any, scales: Any) -> Any:
    """The zero points as kernels read them, (K / group, N) of uint8; ArgumentError for others than one for each
    scale."""
    kind, given, wanted = framework(zeros, "zeros"), array_of(zeros), array_of(scales)
    if kind != framework(scales) or given.dtype not in (Int8, Uint8) or given.device != wanted.device:
        raise ArgumentError(f"zeros are int8 or uint8 on {wanted.device}, as scales are, not {given.dtype.__name__}")
    if tuple(given.shape) != tuple(wanted.shape):
        raise ArgumentError(f"zeros has the shape {tuple(given.shape)}, scales {tuple(wanted.shape)}")
    check_range("zeros", zeros, 0)
    made = new_result(zeros, (given.shape[1], given.shape[0]), Uint8)
    made[...] = zeros.T
    return made


def arranged(weight: Any, n: int, k: int, bits: int = 4) -> Any:
    """The elements of a matrix in the order of the prepared layout: its modes by falling stride."""
    layout = prepared_layout(n, k, bits)
    modes: list[tuple[int, int]] = []
    for mode in (0, 1):  # the first mode of a layout is the fastest, the last one of an array
        shape, stride = (cute.flatten(x[mode]) for x in (layout.shape, layout.stride))
        modes += reversed(list(zip(shape, stride, strict=True)))
    order = sorted(range(len(modes)), key=lambda i: -modes[i][1])
    split = weight.reshape([extent for extent, _ in modes])
    return split.permute(order) if framework(weight) == "torch" else split.transpose(order)


def mixed_matmul(
    a: Any,
    weight: PreparedWeight,
    bias: Any = None,
    *,
    out: Any = None,
    activation: str | None = None,
    out_dtype: Any = None,
) -> Any:
    """activation(a @ (scales * (weight - zeros)).T + bias), for a weight of 4- or 8-bit integers.

    Up to 64 rows are multiplied by a kernel that reads 4 or 8 bits for each element of the weight, once; its sums of a
    group are exact to float32. More rows are multiplied with the weight written out in the type of ``a``, rounded to
    that.

    Args:
        a: (..., K) of Float16 or BFloat16.
        weight: what :func:`prepare_weight` gives, on the device of ``a``.
        bias: a vector of N numbers, added to every row.
        out: (..., N), where the result goes; made if it is None.
        activation: as for :func:`matmul`, applied last.
        out_dtype: of the result, by default that of ``out`` or of ``a``: floats of 16 or 32 bits.

    ``torch.compile`` keeps the call as one node, ``torch.ops.tilewright.mixed_matmul``; it has no gradient.

    Raises ArgumentError, before anything is launched, for operands that do not go together.

    >>> import numpy as np
    >>> weight = prepare_weight(np.full((16, 256), -3, np.int8), np.array([[1, 2]] * 16, np.float16))
    >>> mixed_matmul(np.ones((2, 256), np.float16), weight)[0, :3].tolist()  # -3 * (128 + 2 * 128)
    [-1152.0, -1152.0, -1152.0]
    """
    if not isinstance(weight, PreparedWeight):
        raise ArgumentError(f"weight is {type(weight).__name__}: arrange it with prepare_weight first")
    if framework(a, "a") == "torch":
        torch = sys.modules["torch"]
        tensors = a, weight.words, weight.scales, weight.zeros, bias, out
        if any_recorded(torch, *tensors):
            from tilewright.gemm.operators.torch_mixed import recorded

            return recorded(a, weight, bias, out, activation, out_dtype)
    shape, dtype = checked_shape(a, weight, out, out_dtype)
    if activation is not None:
        check_activation(activation, Float32)
    rows = prod(shape[:-1])
    result = new_result(a, shape, dtype) if out is None else out
    if rows == 0 or shape[-1] == 0:
        return result
    if rows > MOST_ROWS:
        return matmul(a, written_out(weight, a).T, result, bias=bias, activation=activation)
    flat, made = a.reshape(rows, a.shape[-1]), view_of(result, (rows, shape[-1]))
    if made is None:
        Matrix("out", result, array_of(result)).check_written()
    written = new_result(a, (rows, shape[-1]), dtype) if made is None else made
    FewRows.of(flat, weight, bias, written, activation).run()
    if made is None:
        result[...] = written.reshape(shape)
    return result


def checked_shape(a: Any, weight: PreparedWeight, out: Any, out_dtype: Any) -> tuple[tuple[int, ...], Any]:
    """The result's shape and numeric class; ArgumentError for operands that do not go together."""
    check_prepared(weight)
    array, words, (n, k) = array_of(a), array_of(weight.words), weight.shape
    if array.dtype not in (Float16, BFloat16):
        raise ArgumentError(f"a is {array.dtype.__name__}; mixed_matmul multiplies Float16 or BFloat16 with integers")
    if not a.shape or a.shape[-1] != k:
        raise ArgumentError(f"a of shape {tuple(a.shape)} has not the {k} elements of K of the weight {(n, k)}")
    if words.device != array.device:
        raise ArgumentError(f"the weight is on {words.device}, a on {array.device}")
    shape = (*map(int, a.shape[:-1]), n)
    if out is not None and tuple(out.shape) != shape:
        raise ArgumentError(f"out must have the shape of the result, {shape}, not {tuple(out.shape)}")
    asked = None if out_dtype is None else numeric_class(out_dtype)
    dtype = array_of(out).dtype if out is not None else asked or array.dtype
    if asked not in (None, dtype):
        raise ArgumentError(f"out is {dtype.__name__}, and out_dtype {asked.__name__}")
    if not dtype.is_float or dtype.width not in (16, 32):
        raise ArgumentError(f"mixed_matmul writes floats of 16 or 32 bits, not {dtype.__name__}")
    return shape, dtype


def check_prepared(weight: PreparedWeight) -> None:
    """ArgumentError for parts that :func:`prepare_weight` did not make and that kernels cannot read: they take both to
    lie in memory without gaps, and to begin at a multiple of 16 bytes."""
    words, scales = array_of(weight.words), array_of(weight.scales)
    of_bits = (weight.bits == 4 and not weight.floats) or (weight.bits == 8 and weight.zeros is None)
    if not of_bits:
        raise ArgumentError(f"a prepared weight has 4 bits, or 8 without zero points, not {weight.bits}")
    n, k = weight.shape
    whole = (n // COLUMNS, k // DEPTH * weight.bits // 4, LANES, WORDS)
    if tuple(words.shape) != whole or words.dtype is not Int32 or len(scales.shape) != 2 or scales.shape[1] != n:
        raise ArgumentError(
            f"a prepared weight has words of Int32 and shape (N / {COLUMNS}, K / {DEPTH}, {LANES}, {WORDS}) and "
            f"scales of shape (K / group, N), not {words.dtype.__name__} of {tuple(words.shape)} and "
            f"{tuple(scales.shape)}"
        )
    if weight.group not in GROUPS or weight.group * scales.shape[0] != k:
        raise ArgumentError(f"{scales.shape[0]} rows of scales do not divide K = {k} into groups of 32, 64 or 128")
    for name, array in (("words", words), ("scales", scales)):
        dense = [prod(array.shape[i + 1 :]) for i in range(len(array.shape))]
        gaps = any(
            extent > 1 and stride != expected
            for extent, stride, expected in zip(array.shape, array.stride, dense, strict=True)
        )
        if gaps or array.address % VECTOR:
            raise ArgumentError(
                f"the {name} of a prepared weight are a part of a larger array, or do not begin at a multiple of "
                f"{VECTOR} bytes: make a copy of that part"
            )


def prepared_operand(weight: PreparedWeight) -> PreparedOperand:
    """The weight as kernels take it."""
    words = weight.words.permute(3, 2, 1, 0) if framework(weight.words) == "torch" else weight.words.transpose()
    return PreparedOperand(
        from_dlpack(words, assumed_align=16).mark_layout_dynamic(leading_dim=0),
        from_dlpack(weight.scales.T).mark_layout_dynamic(leading_dim=0),
        None if weight.zeros is None else from_dlpack(weight.zeros.T).mark_layout_dynamic(leading_dim=0),
    )


def written_out(weight: PreparedWeight, like: Any) -> Any:
    """The weight times its scales, (N, K), in the type of ``like``."""
    dense = new_result(like, weight.shape, array_of(like).dtype)
    target = from_dlpack(dense, assumed_align=16).mark_layout_dynamic(leading_dim=1)
    kind = "widen", weight.group, weight.dtype
    run(kind, widen, prepared_operand(weight), target, weight.group, KINDS.index(weight.dtype))
    return dense


def run(kind: Any, function: Any, *args: Any) -> None:
    """Call a kernel, compiled once for arguments of one kind."""
    key = kind, *(argument_of("argument", x).key() for x in args if not isinstance(x, int))
    if key not in _COMPILED:
        _COMPILED[key] = cute.compile(function, *args)
    _COMPILED[key](*(x for x in args if not isinstance(x, int)))


@dataclass(frozen=True)
class FewRows:
    """A product of few rows."""

    problem: Problem
    weight: PreparedWeight
    function: Any
    config: MixedSmallMConfig

    @classmethod
    def of(cls, a: Any, weight: PreparedWeight, bias: Any, out: Any, activation: str | None) -> FewRows:
        """Check what is written against what is read, and choose a size."""
        n, k = weight.shape
        A = Matrix.of("a", a)
        if not MixedSmallMGemm.ACCESS.takes(A, Major.K):
            A = Matrix.of("a", a.contiguous() if framework(a) == "torch" else a.copy(order="C"))
        D = Matrix.of("out", out)
        check_output(A, A, None, D, (A.shape[0], n, 1))
        problem = Problem(A, A, D, D, False)
        arrays = {"the weight": weight.words, "the scales": weight.scales, "the zero points": weight.zeros}
        for name, array in arrays.items():
            if array is not None:
                check_vector(name, array_of(array), problem)
        parts: list[Any] = []
        if bias is not None:
            if tuple(bias.shape) != (n,) or array_of(bias).device != D.device:
                raise ArgumentError(f"bias is a vector of {n} elements on {D.device}, not of shape {tuple(bias.shape)}")
            check_vector("bias", array_of(bias), problem)
            parts.append(Bias(from_dlpack(bias).mark_layout_dynamic()))
        if activation is not None:
            parts.append(activation_of(activation, Float32, D.dtype))
        a_operand = Operand(A.dtype, Major.K, 128)
        c = operand_of((D,), WIDEST)
        config = few_rows_config(A.shape[0], a_operand, c, weight, limits(problem.machine)[0])
        return cls(problem, weight, Chain(tuple(parts)), config)

    def run(self) -> None:
        A, D, config = self.problem.A, self.problem.D, self.config
        a, d = A.tensor(config.a, True), D.tensor(config.c)
        run(config, MixedSmallMGemm(config), a, prepared_operand(self.weight), d, d, self.function)


def few_rows_config(m: int, a: Operand, c: Operand, weight: PreparedWeight, multiprocessors: int) -> MixedSmallMConfig:
    """All rows in one tile; more columns a block where these leave a block for most multiprocessors."""
    sizes = SIZES[weight.bits]
    rows = next(rows for rows in sizes if m <= rows)
    least, wide, narrow = sizes[rows]
    columns, stages, warps, blocks = wide if weight.shape[0] >= least * multiprocessors else narrow
    b = Operand(weight.dtype, Major.K, 128)
    config = MixedSmallMConfig(
        a,
        b,
        c,
        acc_dtype=Float32,
        tile=(rows, columns, DEPTH),
        warps=warps,
        stages=stages,
        depth=weight.group,
        blocks=blocks,
    )
    found: MixedSmallMConfig = config.with_operands(a, config.b, c, 0)
    return found
