"""``scaled_grouped_matmul`` with a factor for each 16 or 32 elements of K: mxfp8, mxfp4 and nvfp4."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar

from tilewright import BFloat16, Float8E4M3FN, Float8E8M0FNU, Int32, Int64
from tilewright.errors import ArgumentError
from tilewright.gemm.arrays import Matrix
from tilewright.gemm.block_scaled_config import BLOCK_BYTES, ROWS
from tilewright.gemm.choice.simulated import simulated_work
from tilewright.gemm.config import AnyConfig, Major, Operand
from tilewright.gemm.epilogue.functions import Chain
from tilewright.gemm.family.block_scaled import Format, block_scaled_entry
from tilewright.gemm.family.entry import KernelEntry
from tilewright.gemm.family.group_times import GroupTimes
from tilewright.gemm.family.plan_options import Limits
from tilewright.gemm.host.plan import capability_of, limits, simulated
from tilewright.gemm.host.problem import Problem, check_output, check_vector
from tilewright.gemm.kernel.group_table import GroupZeros
from tilewright.gemm.mainloop.factors import WORDS
from tilewright.gemm.operators.arrays import check_given_result, framework, namespace, new_result, one_framework
from tilewright.gemm.operators.block_scaled import (
    Elements,
    blocked_scales,
    blocks_of_factors,
    check_result,
    described,
    elements,
    factors_of,
    format_of,
    swapped,
)
from tilewright.gemm.operators.cut_choice import with_extent
from tilewright.gemm.operators.group_checks import check_offsets
from tilewright.gemm.operators.group_launch import TableLaunch, leading_stride
from tilewright.gemm.operators.offsets import OffsetLaunch, cut_mode_and_shape
from tilewright.gemm.operators.rows import planned_rows
from tilewright.gemm.tuning.stand_in import numeric_class
from tilewright.lang.arguments.arrays import array_of
from tilewright.lang.numbers.dtypes import numeric_of_dtype


def has_factors(scale: Any) -> bool:
    """Whether scales are factors of blocks in the tensor cores' own types."""
    return numeric_of_dtype(scale.dtype) in (Float8E8M0FNU, Float8E4M3FN)


def blocks_of_groups(rows: int, groups: int) -> int:
    """Blocks of 128 rows for the factors of ``groups`` groups of ``rows`` rows in all, each of which begins one.

    >>> blocks_of_groups(512, 1), blocks_of_groups(512, 3), blocks_of_groups(2, 1)
    (4, 6, 1)
    """
    return (rows + (ROWS - 1) * groups) // ROWS


def blocked_group_scales(scale: Any, offsets: Any) -> Any:
    """The factors (M, K / 32 or K / 16) of rows that ``offsets`` cut into groups, in the order in which tensor cores
    take them: as :func:`blocked_scales` for each group, in memory for any groups. The host waits for nothing.

    >>> import ml_dtypes
    >>> scale = np.arange(16, dtype=np.float32)[:8, None].astype(ml_dtypes.float8_e4m3fn)
    >>> found = blocked_group_scales(scale, np.array([3, 8], np.int32)).reshape(-1, 512)  # a block for each group
    >>> found[:, ::16][:, :6].astype(int).tolist()
    [[0, 1, 2, 0, 0, 0], [3, 4, 5, 6, 7, 0]]
    """
    found, ends = described("scale", scale), described("offsets", offsets)
    one_framework({"scale": scale, "offsets": offsets}, {})
    if len(found.shape) != 2 or found.dtype not in (Float8E8M0FNU, Float8E4M3FN):
        raise ArgumentError(
            "scale is a (rows, factors) matrix of Float8E8M0FNU or Float8E4M3FN, not "
            f"{found.dtype.__name__} of shape {tuple(found.shape)}"
        )
    if ends.dtype is not Int32 or len(ends.shape) != 1 or ends.shape[0] == 0 or ends.device != found.device:
        raise ArgumentError(
            f"offsets is a vector of int32{place(found)}, a number for each group, not {ends.dtype.__name__} of "
            f"shape {tuple(ends.shape)}{place(ends)}"
        )
    return in_order_of_groups(scale, offsets)


def place(found: Any) -> str:
    """Where an array is; a tracer of JAX is nowhere."""
    return "" if found.device is None else f" on {found.device}"


def in_order_of_groups(scale: Any, offsets: Any) -> Any:
    """:func:`blocked_group_scales` of operands that have been checked."""
    library, (rows, count), groups = namespace(scale), scale.shape, offsets.shape[0]
    kind = {"device": scale.device} if library.__name__ == "torch" else {}
    numbers = library.arange(rows, **kind)
    ends = offsets.astype(numbers.dtype) if not kind else offsets.to(numbers.dtype)
    begins = library.concatenate([ends[:1] * 0, ends[:-1]])
    blocks = (ends - begins + ROWS - 1) // ROWS
    places = ROWS * (library.cumsum(blocks, 0) - blocks) - begins  # of each group's row 0 of the matrix
    found = library.searchsorted(ends, numbers, side="right")
    at = numbers + places[library.minimum(found, library.full_like(found, groups - 1))]
    last = ROWS * blocks_of_groups(rows, groups)  # one more row, for what belongs to no group
    at = library.where((found < groups) & (at >= 0) & (at < last), at, last)
    is_jax = framework(scale) == "jax"
    as_it_is = kind or is_jax or scale.flags.c_contiguous
    seen = scale.view(library.uint8) if as_it_is else scale.copy().view(library.uint8)
    spread = library.zeros((last + 1, count), dtype=library.uint8, **kind)
    if is_jax:
        spread = spread.at[at].set(seen)
    else:
        spread[at] = seen
    return blocked_scales(spread[:-1].view(scale.dtype))


def block_scaled_groups(
    a: Any, b: Any, scale_a: Any, scale_b: Any, offsets: Any, out: Any, out_dtype: Any, stream: int | None = None
) -> Any:
    """The result of a product, launched on ``stream`` or the current one."""
    product = FactorsProduct.of(a, b, scale_a, scale_b, offsets, out, out_dtype)
    m, n, k = product.extents
    result = product.D.source
    if 0 in (m, n):
        return result
    if 0 in (k, product.groups):
        result[...] = 0
        return result
    FactorsLaunch(product).run(stream)
    return result


def shape_of_product(a: Any, b: Any, offsets: Any) -> tuple[int, ...]:
    """The shape of the result; ArgumentError for shapes that do not go together."""
    if (len(a.shape), len(b.shape)) != (2, 3):
        raise ArgumentError(
            "factors of blocks are for groups of rows, a matrix times a stack; not for shapes "
            f"{tuple(a.shape)} and {tuple(b.shape)}"
        )
    return cut_mode_and_shape(tuple(a.shape), tuple(b.shape), tuple(offsets.shape))[1]


def check_widths(a: Any, b: Any) -> None:
    """ArgumentError for elements of different widths."""
    if a.width != b.width:
        raise ArgumentError(f"a has elements of {a.width} bits, b of {b.width}: both have as many")


@dataclass(frozen=True)
class FactorsProduct:
    """The operands, checked: A and the stack of B (N, bytes), their factors in order, and the kernel in the sizes that
    take groups."""

    A: Elements
    B: Elements
    D: Matrix
    factors: tuple[Matrix, Matrix]
    offsets: Any
    form: Format
    entry: KernelEntry

    every: ClassVar[int] = 0
    """Groups begin where the one before ends: these products have no masked form."""

    @property
    def groups(self) -> int:
        return self.B.matrix.shape[2]

    @property
    def extents(self) -> tuple[int, int, int]:
        """M, N and K."""
        return self.A.rows, self.B.rows, self.A.extent

    @property
    def problem(self) -> Problem:
        return Problem(self.A.matrix, self.B.matrix.transposed(), self.D, self.D, False)

    @classmethod
    def of(cls, a: Any, b: Any, scale_a: Any, scale_b: Any, offsets: Any, out: Any, out_dtype: Any) -> FactorsProduct:
        """Check the operands against each other, and make the output where none is given."""
        shape = shape_of_product(a, b, offsets)
        A, B = elements("a", a), elements("b", swapped(b))
        check_widths(A, B)
        form = format_of(A.width, scale_a, scale_b)
        dtype = BFloat16 if out_dtype is None else numeric_class(out_dtype)
        D = Matrix.of("out", new_result(a, shape, dtype) if out is None else out)
        check_given_result(D, shape, None if out_dtype is None else dtype)
        problem = Problem(A.matrix, B.matrix.transposed(), D, D, False)
        check_output(A.matrix, problem.B, None, D, (A.rows, B.rows, 1))
        check_result(D)
        check_offsets(array_of(offsets), problem, offsets, A.rows)
        of_b = swapped(scale_b) if len(scale_b.shape) == 3 else scale_b
        of_a = factors_of_groups(scale_a, A, form, problem, offsets)
        factors = of_a, factors_of("scale_b", of_b, B, form, problem)
        entry = block_scaled_entry(A.dtype, B.dtype, D.dtype, form, capability_of(problem.machine))
        return cls(A, B, D, factors, offsets, form, entry)

    def tensors(self, config: Any) -> tuple[Any, ...]:
        """A row of A, a matrix of B and a row of D, after whose tensor maps the kernel makes those of the groups, and
        the factors."""
        a, b, d = (
            replace(x, array=x.array._replace(shape=(1, *x.shape[1:2], 1)))
            for x in (self.A.matrix, self.B.matrix, self.D)
        )
        stored = [x.tensor(replace(operand, dtype=x.dtype)) for x, operand in ((a, config.a), (b, config.b))]
        words = [x.tensor(Operand(Int64, Major.K, 128)) for x in self.factors]
        return *stored, *words, d.tensor(config.c)


def factors_of_groups(scale: Any, A: Elements, form: Format, problem: Problem, offsets: Any) -> Matrix:
    """The factors of A as (blocks of 128 rows, words, 1): those of a matrix are put in order first."""
    array, groups = array_of(scale), int(offsets.shape[0])
    if array.device != problem.D.device:
        raise ArgumentError(f"scale_a is on {array.device}, the matrices on {problem.D.device}")
    check_vector("scale_a", array, problem)
    in_rows = factors_are_in_rows(tuple(array.shape), A.rows, A.extent, groups, form)
    if 0 in array.shape or groups == 0:
        return A.matrix  # nothing reads it
    if in_rows:
        scale = in_order_of_groups(scale, offsets)
    elif tuple(array.stride) != (1,) or array.address % 16:
        raise ArgumentError("scale_a is contiguous and begins at a multiple of 16 bytes: make a copy")
    words = scale.view(namespace(scale).int64)
    *_, across = blocks_of_factors(A.rows, A.extent, form)
    return Matrix.of("scale_a", words.reshape(-1, WORDS * across))


def factors_are_in_rows(shape: tuple[int, ...], rows: int, extent: int, groups: int, form: Format) -> bool:
    """Whether the factors of A are a matrix; False where they are in the order of :func:`blocked_group_scales`.
    ArgumentError for other shapes."""
    count, _, across = blocks_of_factors(rows, extent, form)
    if shape == (rows, count):
        return True
    block = BLOCK_BYTES * across
    least = block * blocks_of_groups(rows, groups)
    if len(shape) != 1 or shape[0] < least or (shape[0] % block if block else shape[0]):
        raise ArgumentError(
            f"scale_a has the shape {shape}; it is ({rows}, {count}), or a vector of {least} numbers or more in the "
            f"order of blocked_group_scales: each of {groups} groups fills whole blocks of {ROWS} rows"
        )
    return False


class FactorsLaunch(OffsetLaunch):
    """The kernel for the groups of a product."""

    def __init__(self, product: FactorsProduct) -> None:
        gpu = limits(product.problem.machine)
        config = fastest_of_groups(product, gpu)
        TableLaunch.__init__(self, [product.problem], config, Chain((GroupZeros(),)), gpu)
        self.product, self.problem, self.mode = product, self.problems[0], 0
        self.rows = product.groups + 1  # what belongs to no group is one more
        self.groups = self.offset_groups(product, 1)

    def representatives(self) -> tuple[Any, ...]:
        return self.product.tensors(self.config)

    @property
    def extents(self) -> tuple[int, int, int]:
        return self.product.extents

    def pitch(self, matrix: Matrix, operand: Operand) -> int:
        """In elements, of which a byte may have two."""
        return leading_stride(matrix, replace(operand, dtype=matrix.dtype)) * matrix.dtype.width // operand.dtype.width

    def gathered_rows(self, product: Any) -> None:
        return None


def fastest_of_groups(product: FactorsProduct, gpu: Limits) -> AnyConfig:
    """The size for groups of which the host does not know how they cut the rows."""
    problem, times = product.problem, fitting_sizes(product.entry, gpu)
    (m, n, k), groups = with_extent(product.extents, 0, planned_rows(product.extents[0])), product.groups
    if problem.machine == "cpu" and simulated().sizes == "simulator":
        return min(times.sizes, key=lambda size: simulated_work(size, (-(-m // groups), n, k, 1)))
    read = m * product.A.matrix.shape[1] + math.prod(product.B.matrix.shape)  # operands are bytes
    written = m * n * product.D.dtype.bytes
    return times.fastest_cut((m, n, k), 0, groups, read, written)


@lru_cache(maxsize=64)
def fitting_sizes(entry: KernelEntry, gpu: Limits) -> GroupTimes:
    """The sizes of a kernel that take groups, and that the GPU has the shared memory for."""
    family = entry.family.grouped
    return GroupTimes.of(family, [size for size in entry.sizes if family.fits(size) and size.smem_bytes <= gpu[1]], gpu)
