"""``mixed_matmul``: rows of 16- or 8-bit floats times a weight of numbers of 4 or 8 bits with scales, arranged once by
``prepare_weight``."""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import inf, prod
from typing import Any

from tilewright import BFloat16, Float4E2M1FN, Float16, Float32, Int4, cute
from tilewright.errors import ArgumentError
from tilewright.gemm.arrays import EIGHT_BIT_FLOATS, Matrix, operand_of
from tilewright.gemm.choice.registry import candidates
from tilewright.gemm.config import Major, Operand
from tilewright.gemm.epilogue.activations import activation_of, check_activation
from tilewright.gemm.epilogue.functions import Bias, Chain
from tilewright.gemm.epilogue.scales import PerRowLinComb
from tilewright.gemm.family.entry import KernelEntry
from tilewright.gemm.host.plan import capability_of, limits
from tilewright.gemm.host.problem import WIDEST, Problem, check_output, check_vector
from tilewright.gemm.host.recorded import decided, launch
from tilewright.gemm.host.universal import MAY_PACK, PreparedProblem
from tilewright.gemm.kernel.mixed_small_m import MixedSmallMGemm, PreparedOperand
from tilewright.gemm.kernel.widen import widen, widen_rows
from tilewright.gemm.mixed_config import COLUMNS, DEPTH, KINDS, LANES, NARROW, WORDS
from tilewright.gemm.operators.arrays import framework, new_result, one_framework, row_major_copy, view_of
from tilewright.gemm.operators.forms import recorded_form
from tilewright.gemm.operators.matmul import matmul
from tilewright.gemm.operators.mixed_hopper import multiplied_as_narrow, multiplied_by_wgmma
from tilewright.gemm.operators.open_extents import Modes, Place
from tilewright.gemm.operators.planned import by_the_model
from tilewright.gemm.operators.prepare_weight import PreparedWeight, check_prepared
from tilewright.gemm.operators.repeated_call import is_torch, repeated_call
from tilewright.gemm.operators.rows import plan_for_rows
from tilewright.gemm.operators.torch_state import any_recorded
from tilewright.gemm.small_m_config import MixedSmallMConfig
from tilewright.gemm.tuning.stand_in import numeric_class
from tilewright.lang.arguments.argument import argument_of
from tilewright.lang.arguments.arrays import array_of
from tilewright.lang.arguments.dlpack import from_dlpack
from tilewright.lang.arguments.streams import StreamHandle

ROWS = Float16, BFloat16, *EIGHT_BIT_FLOATS
"""The types of rows."""
MOST_ROWS = 64
"""The kernel for few rows has sizes for so many; more are multiplied with the weight written out, but on sm_90."""
FEW_ROWS, FEW_ROWS_OF_8_BITS, LARGE = 8, 16, 1 << 27
"""On sm_90 so many rows, of 16 or of 8 bits, are multiplied by the kernel for few rows, and more by wgmma (measured, as
is what follows); by a weight of 4 bits and ``LARGE`` numbers no more of 8 bits than of 16."""
MOST_CONVERTED = 2048
"""On sm_90 more rows than that are multiplied by a weight written out, unless its numbers are converted in four
instructions a pair: integers of 4 bits with scales of the type of the rows."""
MOST_NARROWED = {Int4: 1024, Float4E2M1FN: 1536}
"""On sm_90 more rows of 8-bit floats than that are multiplied by a weight that was written out as Float8E4M3FN, where
groups of K are as long as a k tile: so many rows take as long by the loop that converts the weight each time (measured:
920 and 1,060 rows for two weights of integers, 1,460 for floats; the loop hides the conversion of Float8E4M3FN)."""
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
    scale_a: Any = None,
    out: Any = None,
    activation: str | None = None,
    out_dtype: Any = None,
) -> Any:
    """activation(scale_a * a @ (scales * (weight - zeros)).T + bias), for a weight of numbers of 4 or 8 bits.

    What scales that are infinite or NaN give is in docs/matmul.md ("Scales that are not finite").

    Few rows, up to 64, on sm_90 up to 8, are multiplied by a kernel that reads 4 or 8 bits for each element of the
    weight, once; its sums of a group are exact to float32. For more rows the numbers times their scales are rounded to
    the type of ``a``: on sm_90 in registers, elsewhere by a kernel that writes the weight out.

    Few rows of 8-bit floats (on sm_90 up to 16, up to 8 by large weights of 4 bits) are multiplied as Float16, which
    has all of them, so that they are as exact as above. On sm_90 more rows are multiplied as they are, by wgmma, with
    numbers of 4 bits or Float8E4M3FN, which become Float8E4M3FN without a rounding: the sums of a group have the bits
    that the tensor cores keep of 8-bit floats (14), and are multiplied by its scale and added to the others in float32.
    For more than ``MOST_NARROWED`` rows and groups of 128 a kernel writes the numbers of 4 bits out as such, N * K
    bytes. Otherwise the rows become BFloat16, or Float16 where the scales of the weight are.

    Args:
        a: (..., K) of Float16, BFloat16, Float8E4M3FN or Float8E5M2.
        weight: what :func:`prepare_weight` gives, on the device of ``a``.
        bias: a vector of N numbers, added to every row.
        scale_a: float32, what ``a`` was divided by: one number, or (...) or (..., 1), one for each row. The sums are
            multiplied by it, before the bias is added.
        out: (..., N), where the result goes; made if it is None.
        activation: as for :func:`matmul`, applied last.
        out_dtype: of the result, by default that of ``out`` or of ``a`` (of 8 bits: BFloat16): floats of 16 or 32
            bits.

    ``torch.compile`` keeps the call as one node, ``torch.ops.tilewright.mixed_matmul``; it has no gradient. With JAX
    arrays it is an operation of JAX, also in ``jax.jit`` and ``jax.vmap``.

    Raises ArgumentError, before anything is launched, for operands that do not go together.

    >>> from tilewright.gemm import prepare_weight
    >>> weight = prepare_weight(np.full((16, 256), -3, np.int8), np.array([[1, 2]] * 16, np.float16))
    >>> mixed_matmul(np.ones((2, 256), np.float16), weight)[0, :3].tolist()  # -3 * (128 + 2 * 128)
    [-1152.0, -1152.0, -1152.0]
    """
    if not isinstance(weight, PreparedWeight):
        raise ArgumentError(f"weight is {type(weight).__name__}: arrange it with prepare_weight first")
    if is_torch(a):
        tensors = a, weight.words, weight.scales, weight.zeros, bias, scale_a, out
        if any_recorded(sys.modules["torch"], *tensors):
            return recorded_form("torch_mixed").recorded(a, weight, bias, scale_a, out, activation, out_dtype)
        return repeated_call(
            "mixed_matmul",
            tensors,
            out,
            (activation, out_dtype),
            lambda: multiplied(a, weight, bias, scale_a, out, activation, out_dtype),
            open_rows,
        )
    if framework(a, "a") == "jax":
        if out is not None:
            raise ArgumentError("JAX arrays are immutable: call mixed_matmul without out, and use its result")
        return recorded_form("jax_products").mixed(a, weight, bias, scale_a, activation, out_dtype)
    return multiplied(a, weight, bias, scale_a, out, activation, out_dtype)


def open_rows(tensors: Sequence[Any]) -> Sequence[Modes]:
    """The rows of a, scale_a and out."""
    return ((Place(0), Place(5, vector=True), Place(6)),) if tensors[0].ndim == 2 else ()


def multiplied(
    a: Any, weight: PreparedWeight, bias: Any, scale_a: Any, out: Any, activation: str | None, out_dtype: Any
) -> Any:
    """:func:`mixed_matmul` at length: everything is checked and planned."""
    one_framework({"a": a, "the weight": weight.words}, {"bias": bias, "scale_a": scale_a, "out": out})
    shape, dtype = checked_shape(a, weight, out, out_dtype)
    if activation is not None:
        check_activation(activation, Float32)
    rows = prod(shape[:-1])
    scale = None if scale_a is None else scale_of_rows(scale_a, shape[:-1], array_of(a).device)
    result = new_result(a, shape, dtype) if out is None else out
    if rows == 0 or shape[-1] == 0:
        return result
    flat, made = a.reshape(rows, a.shape[-1]), view_of(result, (rows, shape[-1]))
    if made is None:
        Matrix("out", result, array_of(result)).check_written()
    written = new_result(a, (rows, shape[-1]), dtype) if made is None else made
    MixedProduct.of(flat, weight, bias, written, activation, scale).run()
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
    if rows not in ROWS:
        known = ", ".join(x.__name__ for x in ROWS)
        raise ArgumentError(f"a is {rows.__name__}; mixed_matmul multiplies {known} by prepared weights")
    if not shape or shape[-1] != weight[1]:
        raise ArgumentError(f"a of shape {shape} has not the {weight[1]} elements of K of the weight {weight}")
    asked = None if out_dtype is None else numeric_class(out_dtype)
    dtype = out or asked or (BFloat16 if rows in EIGHT_BIT_FLOATS else rows)
    if asked not in (None, dtype):
        raise ArgumentError(f"out is {dtype.__name__}, and out_dtype {asked.__name__}")
    if not dtype.is_float or dtype.width not in (16, 32):
        raise ArgumentError(f"mixed_matmul writes floats of 16 or 32 bits, not {dtype.__name__}")
    return dtype


def scale_of_rows(scale: Any, rows: tuple[int, ...], device: str) -> Any:
    """The scales of ``rows`` as a vector, of one number or of one for each; ArgumentError for others."""
    framework(scale, "scale_a")
    check_scale_of_rows(tuple(map(int, scale.shape)), rows)
    array = array_of(scale)
    if array.dtype is not Float32 or array.device != device:
        raise ArgumentError(f"scale_a is float32 on {device}, not {array.dtype.__name__} on {array.device}")
    return scale.reshape(-1)


def check_scale_of_rows(shape: tuple[int, ...], rows: tuple[int, ...]) -> None:
    """ArgumentError for a shape that scales of ``rows`` do not have."""
    if prod(shape) != 1 and shape not in (rows, (*rows, 1)):
        raise ArgumentError(f"scale_a is one number, or of shape {rows} or {(*rows, 1)}, not {shape}")


def prepared_operand(weight: PreparedWeight) -> PreparedOperand:
    """The weight as kernels take it."""
    if framework(weight.words) == "torch":  # the same by one call of PyTorch in place of three, 5 us less
        (n, k), block = weight.shape, LANES * WORDS
        tiles = k * weight.bits // (4 * DEPTH)
        words = weight.words.as_strided((WORDS, LANES, tiles, n // COLUMNS), (1, WORDS, block, block * tiles))
    else:
        words = weight.blocks.transpose()
    return PreparedOperand(
        from_dlpack(words, assumed_align=16).mark_layout_dynamic(leading_dim=0),
        from_dlpack(weight.scales.T).mark_layout_dynamic(leading_dim=0),
        None if weight.zeros is None else from_dlpack(weight.zeros.T).mark_layout_dynamic(leading_dim=0),
    )


def write_out(weight: PreparedWeight, dense: Any, stream: int | None = None) -> None:
    """``dense`` (N, K) = the weight times its scales; of Float8E4M3FN, without them."""
    target = from_dlpack(dense, assumed_align=16).mark_layout_dynamic(leading_dim=1)
    kind = "widen", weight.group, weight.dtype
    run(kind, widen, prepared_operand(weight), target, weight.group, KINDS.index(weight.dtype), stream=stream)


def run(kind: Any, function: Any, *args: Any, stream: int | None = None) -> None:
    """Call a kernel, compiled once for arguments of one kind, on ``stream`` or the current one."""
    key = kind, stream is None, *(argument_of("argument", x).key() for x in args if not isinstance(x, int))
    there: dict[str, Any] = {} if stream is None else {"stream": StreamHandle(stream)}
    if key not in _COMPILED:
        _COMPILED[key] = cute.compile(function, *args, **there)
    given = tuple(x for x in args if not isinstance(x, int))
    if stream is None:
        launch(_COMPILED[key], given)
    else:
        _COMPILED[key](*given, **there)


@dataclass(frozen=True)
class MixedProduct:
    """A product, checked: ``problem`` has the rows and the result, ``function`` is the kernel's for the rest."""

    problem: Problem
    weight: PreparedWeight
    bias: Any
    activation: str | None
    function: Any
    scale_a: Any = None

    @classmethod
    def of(
        cls, a: Any, weight: PreparedWeight, bias: Any, out: Any, activation: str | None, scale_a: Any = None
    ) -> MixedProduct:
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
        if scale_a is not None:
            check_vector("scale_a", array_of(scale_a), problem)
            vector = from_dlpack(scale_a)
            parts.append(PerRowLinComb(vector if scale_a.shape[0] == 1 else vector.mark_layout_dynamic()))
        if bias is not None:
            if tuple(bias.shape) != (n,) or array_of(bias).device != D.device:
                raise ArgumentError(f"bias is a vector of {n} elements on {D.device}, not of shape {tuple(bias.shape)}")
            check_vector("bias", array_of(bias), problem)
            parts.append(Bias(from_dlpack(bias).mark_layout_dynamic()))
        if activation is not None:
            parts.append(activation_of(activation, Float32, D.dtype))
        return cls(problem, weight, bias, activation, Chain(tuple(parts)), scale_a)

    def run(self, stream: int | None = None) -> None:
        """By the kernel that is fastest for so many rows, of those that can take the operands, on ``stream`` or the
        current one."""
        rows, k = self.problem.A.shape[:2]
        decided(rows, partial(bisect_left, self.thresholds))
        few, wgmma = rows <= MOST_ROWS and k > 0, k > 0 and capability_of(self.problem.machine) == 90
        if few and (rows <= self.least_by_wgmma or not wgmma):
            self.few_rows(stream=stream)
            return
        if wgmma and self.is_narrow:
            if rows > self.most_by_narrow_loop and self.with_narrow_weight_written_out(stream):
                return
            if self.by_wgmma(stream=stream):
                return
        wide = self.of_16_bits(stream)
        if wgmma and rows <= wide.most_by_wgmma and wide.by_wgmma(stream=stream):
            return
        if few:
            self.few_rows(stream=stream)
        else:
            wide.with_weight_written_out(stream)

    @property
    def is_narrow(self) -> bool:
        """Whether wgmma of 8-bit floats takes the rows and the numbers of the weight."""
        return self.problem.A.dtype in EIGHT_BIT_FLOATS and self.weight.dtype in NARROW

    def of_16_bits(self, stream: int | None = None) -> MixedProduct:
        """The same product; of rows of 8-bit floats with a copy of them in 16 bits."""
        A = self.problem.A
        if A.dtype not in EIGHT_BIT_FLOATS:
            return self
        scales = array_of(self.weight.scales).dtype
        wide = new_result(A.source, A.shape[:2], Float16 if scales is Float16 else BFloat16)
        given, target = (from_dlpack(x, assumed_align=16).mark_layout_dynamic(leading_dim=1) for x in (A.source, wide))
        if 0 not in A.shape:
            run("widen rows", widen_rows, given, target, stream=stream)
        D, copy = self.problem.D, Matrix.of("a", wide)
        return replace(self, problem=Problem(copy, copy, D, D, False))

    @property
    def thresholds(self) -> list[float]:
        """Numbers of rows behind which another kernel may be taken, or another size of that for few rows."""
        of_narrow = self.most_by_narrow_loop
        return sorted({*SIZES[self.weight.bits], MOST_ROWS, self.least_by_wgmma, MOST_CONVERTED, of_narrow})

    @property
    def least_by_wgmma(self) -> int:
        """On sm_90 the kernel for few rows is faster for so many rows."""
        large = self.weight.bits == 4 and prod(self.weight.shape) >= LARGE
        return FEW_ROWS if large or self.problem.A.dtype.width == 16 else FEW_ROWS_OF_8_BITS

    @property
    def most_by_wgmma(self) -> float:
        """For more rows than that a product of 16-bit matrices is faster."""
        scales, rows = array_of(self.weight.scales).dtype, self.problem.A.dtype
        return inf if self.weight.dtype is Int4 and scales is rows else MOST_CONVERTED

    @property
    def most_by_narrow_loop(self) -> float:
        """For more rows of 8-bit floats than that it is faster to write the weight out."""
        return MOST_NARROWED.get(self.weight.dtype, inf) if self.weight.group == DEPTH else inf

    def by_wgmma(self, entry: KernelEntry | None = None, stream: int | None = None) -> bool:
        """Convert in registers, where the Hopper kernel (of all sizes, or ``entry``) can: True, and D is written."""
        vectors = self.bias, self.scale_a
        return multiplied_by_wgmma(self.problem, self.weight, self.function, vectors, entry, stream)

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
        a = Operand(A.dtype, Major.K, 8 * A.dtype.width)
        return few_rows_config(A.shape[0], a, c, self.weight, multiprocessors)

    def with_narrow_weight_written_out(self, stream: int | None = None) -> bool:
        """By a product of 8-bit floats on sm_90, for groups of 128: True, and D is written."""
        vectors, write = (self.bias, self.scale_a), partial(write_out, self.weight, stream=stream)
        return multiplied_as_narrow(self.problem, self.weight, self.function, vectors, write, stream)

    def with_weight_written_out(self, stream: int | None = None) -> None:
        """By a product of 16-bit matrices."""
        a, out = self.problem.A.source, self.problem.D.source
        dense = new_result(a, self.weight.shape, self.problem.A.dtype)
        if self.weight.shape[1]:
            write_out(self.weight, dense, stream)
        dense = dense.T
        if stream is None and self.scale_a is None:
            matmul(a, dense, out, bias=self.bias, activation=self.activation)
            return
        problem, entries = Problem.of(a, dense, None, out), candidates(self.problem.A.dtype, None)
        plan = plan_for_rows(problem, partial(by_the_model, entries, "auto", MAY_PACK[False], ()))
        PreparedProblem(problem, self.function, plan).launch(stream)


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
