"""``scaled_matmul``: a product of 8-bit numbers that were divided by scales when they were rounded.

The scales are float32 arrays of the operands' framework, and their shapes say what shares one: the whole operand, a
row of A or a column of B, or a block of 128 elements of K in one row, or in 128 rows. Argument names and shapes are
those of ``torch._scaled_mm``.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from tilewright import BFloat16, Float8E4M3FN, Float8E5M2, Float16, Int8
from tilewright.errors import ArgumentError
from tilewright.gemm.access import VECTOR
from tilewright.gemm.arrays import Matrix, check_types, dynamic
from tilewright.gemm.choice.registry import KERNELS, candidates
from tilewright.gemm.epilogue.activations import activation_of
from tilewright.gemm.epilogue.functions import Bias, Chain, EpilogueFunction, LinearCombination
from tilewright.gemm.epilogue.scales import BLOCK, Amax, BlockScales, NonSaturating, ResultScale, Scales
from tilewright.gemm.family.entry import KernelEntry
from tilewright.gemm.host.plan import Plan
from tilewright.gemm.host.problem import Problem, check_vector
from tilewright.gemm.host.recorded import decided
from tilewright.gemm.operators.arrays import Operands, framework, is_traced, namespace, new_result, row_major_copy
from tilewright.gemm.operators.forms import recorded_form
from tilewright.gemm.operators.matmul import Request
from tilewright.gemm.operators.open_extents import Modes, Place
from tilewright.gemm.operators.repeated_call import is_torch, repeated_call
from tilewright.gemm.operators.rows import planned_rows
from tilewright.gemm.operators.torch_state import any_recorded
from tilewright.gemm.tuning.stand_in import numeric_class
from tilewright.lang.arguments.arrays import array_of
from tilewright.lang.arguments.dlpack import from_dlpack
from tilewright.lang.numbers.dtypes import numeric_of_dtype
from tilewright.lang.numbers.numeric import Float32

FAST = {
    Float8E4M3FN: ["hopper_e4m3", "blackwell_e4m3", "sm120_e4m3", "tensorop_e4m3"],
    Float8E5M2: ["hopper_e5m2", "blackwell_e5m2", "sm120_e5m2", "tensorop_e5m2"],
    Int8: ["hopper_i8", "blackwell_i8", "sm120_i8", "tensorop_i8"],
}
"""Kernels whose sums stay in the tensor cores, by the type of the operands, the best first."""
PROMOTED = {
    Float8E4M3FN: ["hopper_e4m3_promoted", *FAST[Float8E4M3FN][1:]],
    Float8E5M2: ["hopper_e5m2_promoted", *FAST[Float8E5M2][1:]],
    Int8: FAST[Int8],
}
"""Kernels whose sums are exact to float32: promoted to registers every 128 elements of K, or those of mma.sync or
tcgen05, or integers."""

BLOCKWISE = {
    Float8E4M3FN: ["hopper_e4m3_promoted", "blackwell_e4m3", "sm120_e4m3"],
    Float8E5M2: ["hopper_e5m2_promoted", "blackwell_e5m2", "sm120_e5m2"],
}
"""Kernels that have the sums of each k tile on their own, for scales of blocks."""

RESULTS = (Float16, BFloat16, Float32, Float8E4M3FN, Float8E5M2)
"""The types of results."""


def scaled_matmul(
    a: Any,
    b: Any,
    scale_a: Any,
    scale_b: Any,
    bias: Any = None,
    *,
    out: Any = None,
    activation: str | None = None,
    out_dtype: Any = None,
    use_fast_accum: bool = False,
    kernel: str | KernelEntry | None = None,
    scale_result: Any = None,
    amax: Any = None,
    saturate: bool = True,
) -> Any:
    """activation((scale_a * a) @ (scale_b * b) + bias): matrices of 8 bits in, one of floats of 8, 16 or 32 bits out.

    Args:
        a: (M, K) of Float8E4M3FN, Float8E5M2 or Int8, rows contiguous: a PyTorch tensor, or a NumPy, CuPy or JAX array.
        b: (K, N) of the same type, or of the other kind of floats, columns contiguous (the transpose of a weight (N,
            K)).
        scale_a: float32: one number; (M, 1) or (M,), one for each row; (M, ceil(K / 128)), one for each 128 elements of
            a row; or (ceil(M / 128), ceil(K / 128)), one for each block of 128 x 128.
        scale_b: float32: one number; (1, N) or (N,), one for each column; (ceil(K / 128), N) or
            (ceil(K / 128), ceil(N / 128)). Both operands have scales of blocks, or none has; those of Int8 have none.
            Operands that kernels cannot read as they are, as views at odd addresses, are copied; with scales of blocks,
            also results whose rows are no multiples of 16 bytes, but with ``amax``.
        bias: a vector of N numbers, added to every row after the scales.
        out: where the result goes; made if it is None.
        activation: as for :func:`matmul`, applied last.
        out_dtype: of the result: a framework's dtype or a numeric class; BFloat16 by default.
        use_fast_accum: leave sums of floats in Hopper's tensor cores, which keep 14 bits of them or so; else they are
            promoted to float32 every 128 elements of K. Scales of blocks always promote.
        kernel: the name or the entry of a kernel, in place of the choice.
        scale_result: one float32 number, by which results of 8 bits are multiplied last, before they are rounded.
        amax: one float32 number, which is raised to the largest magnitude of the results before ``scale_result``:
            give 0 for theirs alone. Not of JAX, whose arrays are immutable.
        saturate: what is beyond the largest finite number of a result of 8 bits becomes that (NaN stays). False: it
            becomes NaN in e4m3 and infinity in e5m2, as PyTorch's conversions have it.

    A scale multiplies a sum: one that is infinite or NaN passes as IEEE says ("Scales that are not finite" in
    docs/matmul.md). In ``jax.jit`` and ``jax.vmap`` it is an operation of JAX, which has no gradient.

    Raises ArgumentError, before anything is launched, for operands and scales that do not go together.

    >>> import ml_dtypes
    >>> a = np.ones((16, 256), ml_dtypes.float8_e4m3fn)
    >>> b = np.ones((64, 256), ml_dtypes.float8_e4m3fn).T
    >>> rows, whole = np.arange(16, dtype=np.float32)[:, None], np.full((), 0.5, np.float32)
    >>> scaled_matmul(a, b, rows, whole)[:3, 0].tolist()  # 256 * row * 0.5
    [0.0, 128.0, 256.0]
    >>> blocks = np.array([[1, 2]] * 16, np.float32)  # the second 128 elements of each row count twice
    >>> scaled_matmul(a, b, blocks, np.ones((2, 1), np.float32))[0, 0].item()
    384.0
    """
    tensors = a, b, out, scale_a, scale_b, bias, amax, scale_result

    def request() -> ScaledRequest:
        return ScaledRequest(
            a=a,
            b=b,
            out=out,
            c=None,
            alpha=1.0,
            beta=0.0,
            bias=bias,
            activation=activation,
            out_dtype=out_dtype,
            precision="ieee",
            kernel=kernel,
            decomposition="auto",
            scale_a=scale_a,
            scale_b=scale_b,
            use_fast_accum=use_fast_accum,
            scale_result=scale_result,
            amax=amax,
            saturate=saturate,
        )

    if (kernel is None or isinstance(kernel, str)) and is_torch(a):
        options = activation, out_dtype, use_fast_accum, kernel, saturate
        if not any_recorded(sys.modules["torch"], *tensors):
            return repeated_call("scaled_matmul", tensors, out, options, lambda: request().run(), open_rows)
        return recorded_form("torch_scaled").recorded(
            a, b, scale_a, scale_b, bias, out, *options[:-1], scale_result, amax, saturate
        )
    if is_traced(*tensors) or request().turned_by_jax:
        return recorded_form("jax_products").of_request(request())
    return request().run()


def open_rows(tensors: Sequence[Any]) -> Sequence[Modes]:
    """The rows of a, out and scale_a."""
    return ((Place(0), Place(2), Place(3, vector=True)),) if tensors[0].ndim == 2 else ()


def check_bool(name: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise ArgumentError(f"{name} is True or False, not {value!r}")


def no_block_scales(entry: KernelEntry) -> ArgumentError:
    known = ", ".join(name for names in BLOCKWISE.values() for name in names)
    return ArgumentError(f"kernel {entry.name} cannot apply scales of blocks of {BLOCK} elements of K: {known} can")


@dataclass(frozen=True)
class ScaledRequest(Request):
    """A call of :func:`scaled_matmul`."""

    scale_a: Any
    scale_b: Any
    use_fast_accum: bool
    scale_result: Any
    amax: Any
    saturate: bool

    def given(self) -> dict[str, Any]:
        return {**super().given(), **self.scales}

    @property
    def scales(self) -> dict[str, Any]:
        """All that are given, by name."""
        found = {"scale_a": self.scale_a, "scale_b": self.scale_b, "amax": self.amax, "scale_result": self.scale_result}
        return {name: x for name, x in found.items() if name in ("scale_a", "scale_b") or x is not None}

    def entries(self, dtype: Any) -> list[KernelEntry]:
        """The kernels for these scales: those of blocks need one that has the sums of each k tile on their own."""
        if dtype not in FAST:
            known = " or ".join(x.__name__ for x in FAST)
            raise ArgumentError(f"a is {dtype.__name__}; scaled_matmul multiplies {known}")
        check_bool("use_fast_accum", self.use_fast_accum)
        if self.sums_nothing:  # by the kernels of one type and of scales of lines, which take no K
            dtype = numeric_of_dtype(self.b.dtype)
        names = (FAST if self.use_fast_accum else PROMOTED)[dtype]
        found = [KERNELS[name] for name in names] if self.kernel is None else candidates(dtype, self.kernel)
        kinds = self.kinds if len(self.a.shape) == len(self.b.shape) == 2 else None
        if kinds is None or not kinds.is_block:
            return found
        if dtype not in BLOCKWISE:
            raise ArgumentError(f"a is {dtype.__name__}, which has scales of rows and columns, not of blocks")
        if self.sums_nothing:
            return found
        if self.kernel is None:
            found = [KERNELS[name] for name in BLOCKWISE[dtype]]
        fitting = [entry.for_block_scales(kinds.a, kinds.b) for entry in found]
        if None in fitting:
            raise no_block_scales(found[0])
        return [entry for entry in fitting if entry is not None]

    @property
    def turned_by_jax(self) -> bool:
        """Whether operands are JAX's, whose rows XLA alone puts along K as kernels for scales of blocks read them."""
        whole = framework(self.a, "a") == "jax" and len(self.a.shape) == len(self.b.shape) == 2
        return whole and hasattr(self.scale_a, "shape") and hasattr(self.scale_b, "shape") and self.kinds.is_block

    @property
    def sums_nothing(self) -> bool:
        """Whether K is 0: no element of A is read, whose type is then that of B, and there are no scales of blocks."""
        return len(self.a.shape) == len(self.b.shape) == 2 and 0 == self.a.shape[1] == self.b.shape[0]

    def operands(self) -> Operands:
        """The matrices; those for scales of blocks along K, as their kernels read them: others are copied."""
        found = super().operands()
        check_two_matrices(self.a, self.b)
        if not self.kinds.is_block or self.sums_nothing or hasattr(self.a, "new_buffer"):
            return found
        b = found.b.mT if framework(found.b) == "torch" else found.b.T
        a, b = (x if array_of(x).stride[1] == 1 else row_major_copy(x) for x in (found.a, b))
        return found._replace(a=a, b=b.mT if framework(b) == "torch" else b.T)

    def operand_a(self, matrices: Operands) -> Any:
        A = Matrix.of("a", matrices.a)
        if not self.sums_nothing:
            return A
        dtype = numeric_of_dtype(self.b.dtype)
        check_types(A.dtype, dtype)
        return replace(A, array=A.array._replace(dtype=dtype))

    def check_result(self, entry: KernelEntry, problem: Problem) -> None:
        d = problem.D.dtype
        if d not in RESULTS:
            raise ArgumentError(f"scaled_matmul writes floats of 16 or 32 bits, e4m3 or e5m2, not {d}")
        if self.scale_result is not None and d.width != 8:
            raise ArgumentError(f"scale_result is for results of 8 bits, not for {d}: leave it out")
        check_bool("saturate", self.saturate)
        if not self.saturate and d.width != 8:
            raise ArgumentError(
                f"saturate=False is for results of 8 bits, not for {d}, which never saturate: leave it out"
            )

    def result_dtype(self, entry: KernelEntry) -> Any:
        return BFloat16 if self.out_dtype is None else numeric_class(self.out_dtype)

    @property
    def given_vectors(self) -> tuple[Any, ...]:
        _, _, *others = self.scales.values()
        return (*self.scales_of_sums, *super().given_vectors, *others)  # in the order in which the function has them

    @property
    def scales_of_sums(self) -> tuple[Any, ...]:
        """The scales that the function has: without K there is no block that has one."""
        return () if self.sums_nothing and self.kinds.is_block else (self.scale_a, self.scale_b)

    @property
    def kinds(self) -> ScaleKinds:
        return kinds(*(tuple(map(int, x.shape)) for x in (self.a, self.b, self.scale_a, self.scale_b)))

    def vectors(self, problem: Problem) -> tuple[Any, ...]:
        """The scales and the bias, checked: those of lines as vectors, those of blocks as (lines, K) matrices."""
        check_two_matrices(self.a, self.b)
        for name, x in self.scales.items():
            array = array_of(x)
            if array.dtype is not Float32:
                raise ArgumentError(f"{name} must be float32, got {array.dtype.__name__}")
            if array.device != problem.D.device:
                raise ArgumentError(f"{name} is on {array.device}, the matrices on {problem.D.device}")
            check_vector(name, array, problem)
        numbers = {name: x for name, x in self.scales.items() if name in ("amax", "scale_result")}
        for name, x in numbers.items():
            if math.prod(x.shape) != 1:
                raise ArgumentError(f"{name} is one number, not of shape {tuple(x.shape)}")
        self.check_amax()
        scales = self.scales_of_sums
        bias = super().vectors(problem)
        if scales and self.kinds.is_block:
            scales = self.scale_a, self.scale_b.mT if framework(self.scale_b) == "torch" else self.scale_b.T
        elif scales:
            scales = self.scale_a.reshape(-1), self.scale_b.reshape(-1)
        if self.fills_up:
            whole = VECTOR // problem.D.dtype.bytes
            kinds = (self.kinds.a, self.kinds.b)
            scales = tuple(filled_up(x, whole) if kind == 1 else x for x, kind in zip(scales, kinds, strict=True))
            bias = tuple(filled_up(x, whole) for x in bias)
        return (*scales, *bias, *(x.reshape(-1) for x in numbers.values()))

    @property
    def fills_up(self) -> bool:
        """Whether what has an element for each row or column of D may be read to whole accesses of these. Scales of
        blocks have kernels that store by TMA alone, of whose D a copy with longer rows is made; ``amax`` would be that
        of more numbers."""
        if hasattr(self.a, "new_buffer"):  # memory of XLA's on a GPU
            return False
        return self.kinds.is_block and not self.sums_nothing and self.amax is None

    def plan(self, problem: Problem, entries: list[KernelEntry]) -> Plan:
        if self.kinds.is_block:  # what shapes of scales mean depends on the rows
            decided(problem.shape[0], planned_rows)
        return super().plan(problem, entries)

    def check_amax(self) -> None:
        """ArgumentError for an ``amax`` that cannot be written, or that is read, too."""
        if self.amax is None:
            return
        if framework(self.a) == "jax":
            raise ArgumentError("JAX arrays are immutable: call scaled_matmul without amax")
        array = array_of(self.amax)
        if array.readonly:
            raise ArgumentError("amax is read-only: give an array that can be written")
        others = {"a": self.a, "b": self.b, "bias": self.bias, **self.scales}
        for name, x in others.items():
            if x is None or name == "amax":
                continue
            (low, high), (first, last) = array.bounds, array_of(x).bounds
            if low < last and first < high:
                raise ArgumentError(f"amax overlaps {name}: give it memory of its own")

    @property
    def may_pack(self) -> str:
        """Rows of D may become longer where nothing is read for each column, and ``amax`` is not that of more."""
        free = self.bias is None and self.amax is None and self.kinds == ScaleKinds("all", "all")
        return "ABCD" if free or self.fills_up else "ABcd"

    def function(self, entry: KernelEntry, problem: Problem, vectors: tuple[Any, ...]) -> EpilogueFunction:
        """The scales, the bias, the activation, amax and the scale of the result, applied in this order."""
        found = self.kinds
        tensors = list(map(from_dlpack, vectors))
        scales, others = tensors[: len(self.scales_of_sums)], tensors[len(self.scales_of_sums) :]
        bias = [others.pop(0)] if self.bias is not None else []
        amax = [others.pop(0)] if self.amax is not None else []
        first: Scales | BlockScales | LinearCombination
        if not scales:
            first = LinearCombination(entry.config.acc_dtype(1))
        elif found.is_block:
            of_a, of_b = map(dynamic, scales)
            first = BlockScales(of_a, of_b, found.a, found.b)
        else:
            first = Scales(
                *(
                    scale if kind == "all" else scale.mark_layout_dynamic()
                    for scale, kind in zip(scales, (found.a, found.b), strict=True)
                )
            )
        parts: list[Any] = [first, *(Bias(vector.mark_layout_dynamic()) for vector in bias)]
        if self.activation is not None:
            parts.append(activation_of(self.activation, Float32, problem.D.dtype))  # integer sums are scaled by then
        parts += [*map(Amax, amax), *map(ResultScale, others)]
        parts += [] if self.saturate else [NonSaturating(problem.D.dtype)]
        return parts[0] if len(parts) == 1 else Chain(tuple(parts))


def filled_up(x: Any, whole: int) -> Any:
    """A vector, or the rows of a matrix, with zeros behind them to a multiple of ``whole``; itself where it is one."""
    rows = int(x.shape[0])
    if rows % whole == 0:
        return x
    if framework(x) == "jax":
        return namespace(x).pad(x, ((0, -rows % whole), *(((0, 0),) * (x.ndim - 1))))
    made = new_result(x, (-(-rows // whole) * whole, *x.shape[1:]), array_of(x).dtype)
    made[rows:] = 0
    made[:rows] = x
    return made


def check_two_matrices(a: Any, b: Any) -> None:
    """ArgumentError for stacks and vectors."""
    if len(a.shape) != 2 or len(b.shape) != 2:
        raise ArgumentError(
            f"scaled_matmul multiplies two matrices, not arrays of shapes {tuple(a.shape)} and {tuple(b.shape)}"
        )


@dataclass(frozen=True)
class ScaleKinds:
    """What shares a scale of A and of B: "all" of an operand, one "line" (a row of A, a column of B), or a number of
    lines in a block of 128 elements of K."""

    a: str | int
    b: str | int

    @property
    def is_block(self) -> bool:
        return isinstance(self.a, int)


def kinds(a: tuple[int, ...], b: tuple[int, ...], scale_a: tuple[int, ...], scale_b: tuple[int, ...]) -> ScaleKinds:
    """What the scales' shapes mean for operands of shapes ``a`` (M, K) and ``b`` (K, N); ArgumentError for others.

    >>> kinds((64, 256), (256, 512), (64, 1), (1, 512))
    ScaleKinds(a='line', b='line')
    >>> kinds((64, 256), (256, 512), (64, 2), (2, 4))
    ScaleKinds(a=1, b=128)
    """
    (m, k), n = a, b[1]
    blocks = -(-k // BLOCK)
    found = []
    for name, shape, extent, upright in (("scale_a", scale_a, m, True), ("scale_b", scale_b, n, False)):
        line = (extent, 1) if upright else (1, extent)
        wide = {rows: (-(-extent // rows), blocks) for rows in (1, BLOCK)}
        of_blocks = [rows for rows, s in wide.items() if shape == (s if upright else s[::-1])]
        of_lines = ["all"] if math.prod(shape) == 1 else ["line"] if shape in (line, (extent,)) else []
        if not (of_blocks or of_lines):
            shapes = [s if upright else s[::-1] for s in (*wide.values(),)]
            raise ArgumentError(
                f"{name} has the shape {shape}; for operands {a} and {b} it is one number, {line}, or {shapes[0]} or "
                f"{shapes[1]} for blocks of {BLOCK} elements of K"
            )
        found.append((of_lines, of_blocks))
    (lines_a, blocks_a), (lines_b, blocks_b) = found
    if lines_a and lines_b:
        return ScaleKinds(lines_a[0], lines_b[0])
    if blocks_a and blocks_b:
        return ScaleKinds(blocks_a[0], blocks_b[0])
    raise ArgumentError(
        f"scale_a of shape {scale_a} and scale_b of shape {scale_b}: scales of blocks of {BLOCK} elements of K belong "
        "to both operands or to none"
    )
