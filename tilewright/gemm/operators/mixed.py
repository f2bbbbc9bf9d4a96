"""``mixed_matmul``: rows of 16-bit floats times a weight of numbers of 4 or 8 bits with scales, arranged once by
``prepare_weight``."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from math import inf, prod
from typing import Any

from tilewright import BFloat16, Float16, Float32, Int4, cute
from tilewright.errors import ArgumentError
from tilewright.gemm.arrays import Matrix, operand_of
from tilewright.gemm.config import Major, Operand
from tilewright.gemm.epilogue.activations import activation_of, check_activation
from tilewright.gemm.epilogue.functions import Bias, Chain
from tilewright.gemm.family.entry import KernelEntry
from tilewright.gemm.host.plan import limits
from tilewright.gemm.host.problem import WIDEST, Problem, check_output, check_vector
from tilewright.gemm.host.universal import PreparedProblem
from tilewright.gemm.kernel.mixed_small_m import MixedSmallMGemm, PreparedOperand
from tilewright.gemm.kernel.widen import widen
from tilewright.gemm.mixed_config import DEPTH, KINDS
from tilewright.gemm.operators.arrays import framework, new_result, row_major_copy, view_of
from tilewright.gemm.operators.matmul import Request, matmul
from tilewright.gemm.operators.mixed_hopper import multiplied_by_wgmma
from tilewright.gemm.operators.prepare_weight import PreparedWeight, check_prepared
from tilewright.gemm.operators.torch_state import any_recorded
from tilewright.gemm.small_m_config import MixedSmallMConfig
from tilewright.gemm.tuning.stand_in import numeric_class
from tilewright.lang.arguments.argument import argument_of
from tilewright.lang.arguments.arrays import array_of
from tilewright.lang.arguments.dlpack import from_dlpack
from tilewright.lang.arguments.streams import StreamHandle

MOST_ROWS = 64
"""The kernel for few rows has sizes for so many; more are multiplied with the weight written out, but on sm_90."""
FEW_ROWS, LARGE = 16, 1 << 27
"""On sm_90 so many rows are multiplied by the kernel for few rows, by a weight of 4 bits and ``LARGE`` numbers half as
many, and more by wgmma (measured, as is what follows)."""
MOST_CONVERTED = 2048
"""On sm_90 more rows than that are multiplied by a weight written out, unless its numbers are converted in four
instructions a pair: integers of 4 bits with scales of the type of the rows."""
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


def mixed_matmul(
    a: Any,
    weight: PreparedWeight,
    bias: Any = None,
    *,
    out: Any = None,
    activation: str | None = None,
    out_dtype: Any = None,
) -> Any:
    """activation(a @ (scales * (weight - zeros)).T + bias), for a weight of numbers of 4 or 8 bits.

    Few rows, up to 64, on sm_90 up to 16, are multiplied by a kernel that reads 4 or 8 bits for each element of the
    weight, once; its sums of a group are exact to float32. For more rows the numbers times their scales are rounded to
    the type of ``a``: on sm_90 in registers, elsewhere by a kernel that writes the weight out.

    Args:
        a: (..., K) of Float16 or BFloat16.
        weight: what :func:`prepare_weight` gives, on the device of ``a``.
        bias: a vector of N numbers, added to every row.
        out: (..., N), where the result goes; made if it is None.
        activation: as for :func:`matmul`, applied last.
        out_dtype: of the result, by default that of ``out`` or of ``a``: floats of 16 or 32 bits.

    ``torch.compile`` keeps the call as one node, ``torch.ops.tilewright.mixed_matmul``; it has no gradient. With JAX
    arrays it is an operation of JAX, also in ``jax.jit`` and ``jax.vmap``.

    Raises ArgumentError, before anything is launched, for operands that do not go together.

    >>> import numpy as np
    >>> from tilewright.gemm import prepare_weight
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
    if framework(a) == "jax":
        from tilewright.gemm.operators.jax_call import mixed

        if out is not None:
            raise ArgumentError("JAX arrays are immutable: call mixed_matmul without out, and use its result")
        return mixed(a, weight, bias, activation, out_dtype)
    shape, dtype = checked_shape(a, weight, out, out_dtype)
    if activation is not None:
        check_activation(activation, Float32)
    rows = prod(shape[:-1])
    result = new_result(a, shape, dtype) if out is None else out
    if rows == 0 or shape[-1] == 0:
        return result
    flat, made = a.reshape(rows, a.shape[-1]), view_of(result, (rows, shape[-1]))
    if made is None:
        Matrix("out", result, array_of(result)).check_written()
    written = new_result(a, (rows, shape[-1]), dtype) if made is None else made
    MixedProduct.of(flat, weight, bias, written, activation).run()
    if made is None:
        result[...] = written.reshape(shape)
    return result


def checked_shape(a: Any, weight: PreparedWeight, out: Any, out_dtype: Any) -> tuple[tuple[int, ...], Any]:
    """The result's shape and numeric class; ArgumentError for operands that do not go together."""
    check_prepared(weight)
    array, words, (n, k) = array_of(a), array_of(weight.words), weight.shape
    dtype = checked_types(array.dtype, tuple(a.shape), (n, k), None if out is None else array_of(out).dtype, out_dtype)
    if words.device != array.device:
        raise ArgumentError(f"the weight is on {words.device}, a on {array.device}")
    shape = (*map(int, a.shape[:-1]), n)
    if out is not None and tuple(out.shape) != shape:
        raise ArgumentError(f"out must have the shape of the result, {shape}, not {tuple(out.shape)}")
    return shape, dtype


def checked_types(rows: Any, shape: tuple[int, ...], weight: tuple[int, int], out: Any, out_dtype: Any) -> Any:
    """The result's numeric class, for rows of a type and a shape and a weight (N, K); ArgumentError where they do not
    go together. ``out``: the numeric class of a result that is given."""
    if rows not in (Float16, BFloat16):
        raise ArgumentError(f"a is {rows.__name__}; mixed_matmul multiplies Float16 or BFloat16 with integers")
    if not shape or shape[-1] != weight[1]:
        raise ArgumentError(f"a of shape {shape} has not the {weight[1]} elements of K of the weight {weight}")
    asked = None if out_dtype is None else numeric_class(out_dtype)
    dtype = out or asked or rows
    if asked not in (None, dtype):
        raise ArgumentError(f"out is {dtype.__name__}, and out_dtype {asked.__name__}")
    if not dtype.is_float or dtype.width not in (16, 32):
        raise ArgumentError(f"mixed_matmul writes floats of 16 or 32 bits, not {dtype.__name__}")
    return dtype


def prepared_operand(weight: PreparedWeight) -> PreparedOperand:
    """The weight as kernels take it."""
    blocks = weight.blocks
    words = blocks.permute(3, 2, 1, 0) if framework(blocks) == "torch" else blocks.transpose()
    return PreparedOperand(
        from_dlpack(words, assumed_align=16).mark_layout_dynamic(leading_dim=0),
        from_dlpack(weight.scales.T).mark_layout_dynamic(leading_dim=0),
        None if weight.zeros is None else from_dlpack(weight.zeros.T).mark_layout_dynamic(leading_dim=0),
    )


def written_out(weight: PreparedWeight, like: Any, stream: int | None = None) -> Any:
    """The weight times its scales, (N, K), in the type of ``like``."""
    dense = new_result(like, weight.shape, array_of(like).dtype)
    if weight.shape[1] == 0:
        return dense
    target = from_dlpack(dense, assumed_align=16).mark_layout_dynamic(leading_dim=1)
    kind = "widen", weight.group, weight.dtype
    run(kind, widen, prepared_operand(weight), target, weight.group, KINDS.index(weight.dtype), stream=stream)
    return dense


def run(kind: Any, function: Any, *args: Any, stream: int | None = None) -> None:
    """Call a kernel, compiled once for arguments of one kind, on ``stream`` or the current one."""
    key = kind, stream is None, *(argument_of("argument", x).key() for x in args if not isinstance(x, int))
    there: dict[str, Any] = {} if stream is None else {"stream": StreamHandle(stream)}
    if key not in _COMPILED:
        _COMPILED[key] = cute.compile(function, *args, **there)
    _COMPILED[key](*(x for x in args if not isinstance(x, int)), **there)


@dataclass(frozen=True)
class MixedProduct:
    """A product, checked: ``problem`` has the rows and the result, ``function`` is the kernel's for the rest."""

    problem: Problem
    weight: PreparedWeight
    bias: Any
    activation: str | None
    function: Any

    @classmethod
    def of(cls, a: Any, weight: PreparedWeight, bias: Any, out: Any, activation: str | None) -> MixedProduct:
        """Check what is written against what is read."""
        n, k = weight.shape
        A = Matrix.of("a", a)
        if not MixedSmallMGemm.ACCESS.takes(A, Major.K):
            A = Matrix.of("a", row_major_copy(a))
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
        return cls(problem, weight, bias, activation, Chain(tuple(parts)))

    def run(self, stream: int | None = None) -> None:
        """By the kernel that is fastest for so many rows, of those that can take the operands, on ``stream`` or the
        current one."""
        rows, k = self.problem.A.shape[:2]
        if k == 0:
            return self.with_weight_written_out(stream)
        if self.least_by_wgmma < rows <= self.most_by_wgmma and self.by_wgmma(stream=stream):
            return
        if rows <= MOST_ROWS:
            self.few_rows(stream=stream)
        else:
            self.with_weight_written_out(stream)

    @property
    def least_by_wgmma(self) -> int:
        """On sm_90 the kernel for few rows is faster for so many rows."""
        large = self.weight.bits == 4 and prod(self.weight.shape) >= LARGE
        return FEW_ROWS // 2 if large else FEW_ROWS

    @property
    def most_by_wgmma(self) -> float:
        """For more rows than that a product of 16-bit matrices is faster."""
        scales, rows = array_of(self.weight.scales).dtype, self.problem.A.dtype
        return inf if self.weight.dtype is Int4 and scales is rows else MOST_CONVERTED

    def by_wgmma(self, entry: KernelEntry | None = None, stream: int | None = None) -> bool:
        """Convert in registers, where the Hopper kernel (of all sizes, or ``entry``) can: True, and D is written."""
        return multiplied_by_wgmma(self.problem, self.weight, self.function, self.bias, self.activation, entry, stream)

    def few_rows(self, config: MixedSmallMConfig | None = None, stream: int | None = None) -> None:
        """By mma.sync, in the usual size or another one."""
        A, D = self.problem.A, self.problem.D
        config = config or self.few_rows_config()
        a, d = A.tensor(config.a, True), D.tensor(config.c)
        run(config, MixedSmallMGemm(config), a, prepared_operand(self.weight), d, d, self.function, stream=stream)

    def few_rows_config(self) -> MixedSmallMConfig:
        """The usual size for these rows."""
        A, D = self.problem.A, self.problem.D
        c, multiprocessors = operand_of((D,), WIDEST), limits(self.problem.machine)[0]
        return few_rows_config(A.shape[0], Operand(A.dtype, Major.K, 128), c, self.weight, multiprocessors)

    def with_weight_written_out(self, stream: int | None = None) -> None:
        """By a product of 16-bit matrices."""
        a, out = self.problem.A.source, self.problem.D.source
        dense = written_out(self.weight, a, stream).T
        if stream is None:
            matmul(a, dense, out, bias=self.bias, activation=self.activation)
            return
        request = Request(a, dense, out, None, 1.0, 0.0, self.bias, self.activation, None, "ieee", None, "auto")
        given = request.read()
        PreparedProblem(given.problem, given.function, request.plan(given.problem, given.entries)).launch(stream)


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
