"""``scaled_grouped_matmul``: products of groups of 8-bit numbers that were divided by scales of their rows and
columns. Argument names and shapes are those of ``torch._scaled_grouped_mm``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from tilewright import BFloat16
from tilewright.errors import ArgumentError
from tilewright.gemm.arrays import dynamic
from tilewright.gemm.choice.registry import KERNELS, candidates
from tilewright.gemm.epilogue.scales import BLOCK
from tilewright.gemm.family.accesses import OperandAccess
from tilewright.gemm.family.entry import KernelEntry
from tilewright.gemm.host.problem import Problem, check_vector
from tilewright.gemm.kernel.group_table import GroupBlockScales, GroupScales
from tilewright.gemm.operators.arrays import framework, namespace, new_result, one_framework
from tilewright.gemm.operators.block_scaled_offsets import block_scaled_groups, has_factors
from tilewright.gemm.operators.counted_groups import tall_groups, tall_scale
from tilewright.gemm.operators.cut_choice import problem_extents
from tilewright.gemm.operators.forms import recorded_form
from tilewright.gemm.operators.offsets import CutProduct, product_of
from tilewright.gemm.operators.open_extents import Modes, Place, closed, ranks
from tilewright.gemm.operators.repeated_call import is_torch, repeated_call
from tilewright.gemm.operators.scaled import FAST, PROMOTED, check_bool, no_block_scales
from tilewright.gemm.operators.torch_state import any_recorded, materialised
from tilewright.gemm.tuning.stand_in import numeric_class
from tilewright.lang.arguments.arrays import array_of
from tilewright.lang.arguments.dlpack import from_dlpack
from tilewright.lang.numbers.numeric import Float32


def scaled_grouped_matmul(
    a: Any,
    b: Any,
    scale_a: Any,
    scale_b: Any,
    offsets: Any = None,
    *,
    counts: Any = None,
    out: Any = None,
    out_dtype: Any = None,
    use_fast_accum: bool = False,
    kernel: str | KernelEntry | None = None,
) -> Any:
    """The products of groups, as :func:`grouped_matmul` has them, of scaled operands of 8 bits.

    | a | b | scale_a | scale_b | result |
    |---|---|---|---|---|
    | (M, K) | (G, K, N) | (M,) | (G, N) | (M, N) |
    | (G, M, K) | (K, N) | (G, M) | (N,) | (M, N) |
    | (M, K) | (K, N) | (G * M,) | (G * N,) | (G, M, N) |
    | (M, K) | (G, K, N) | (M, K / 128) | (G, K / 128, N / 128) or (G, K / 128, N) | (M, N) |
    | (G, M, K) | (K, N) | (G, M / 128, K / 128) or (G, M, K / 128) | (K / 128, N) | (M, N), columns contiguous |
    | (G, M, K), counts | (G, K, N) | (G, M) or (G, M, K / 128) | (G, N) or (G, K / 128, ...) as above | (G, M, N) |
    | (M, K) | (G, K, N) | (M, K / 32) or (M, K / 16) | (G, K / 32, N) or (G, K / 16, N) | (M, N) |

    Args:
        a: of Float8E4M3FN, Float8E5M2 or Int8, rows contiguous: a PyTorch tensor, or a NumPy, CuPy or JAX array. In
            the last form 8- or 4-bit floats, as :func:`block_scaled_matmul` takes them.
        b: of the same type, columns contiguous.
        scale_a, scale_b: float32, for each row of a group's A and each column of its B, finite or not (docs/matmul.md,
            "Scales that are not finite"). The two forms with K / 128 have
            scales of blocks: of 128 elements of a line of the operand that is cut (of the last ones, where K is not a
            multiple of 128), and of 128 x 128 elements of the other one, or 128 of a line. They always promote, by
            kernels for sm_90 and later. In the last form they are factors of Float8E8M0FNU or Float8E4M3FN (mxfp8,
            mxfp4, nvfp4), for kernels of sm_100 and sm_120; or what :func:`blocked_group_scales` and
            :func:`blocked_scales` give.
        offsets: where the groups end, int32 on the device.
        counts: in place of offsets, the rows that each group has, as :func:`grouped_matmul` takes them.
        out: where the result goes; made if it is None.
        out_dtype: of the result: BFloat16 by default, Float16 or Float32.
        use_fast_accum: leave sums of floats in the tensor cores, as for :func:`scaled_matmul`.
        kernel: the name or the entry of a kernel, in place of the choice.

    ``torch.compile`` keeps the call as one node, ``torch.ops.tilewright.scaled_grouped_matmul``; it has no gradient.
    Of JAX arrays it is an operation of JAX.

    Raises ArgumentError for operands that do not go together, and for offsets as :func:`grouped_matmul` does.

    >>> rows, weights = np.ones((6, 128), np.int8), np.ones((2, 64, 128), np.int8).transpose(0, 2, 1)
    >>> scales = np.arange(6, dtype=np.float32), np.array([[1] * 64, [0.5] * 64], np.float32)
    >>> scaled_grouped_matmul(rows, weights, *scales, np.array([3, 6], np.int32))[:, 0].astype(float).tolist()
    [0.0, 128.0, 256.0, 192.0, 256.0, 320.0]
    """
    if counts is not None:
        groups = tall_groups(a, b, counts, out, offsets, {})
        scale_a = tall_scale("scale_a", scale_a, groups.shape)
        operands = groups.a, b, scale_a, scale_b, counts, groups.out
        result = scaled_cut_product(*operands, out_dtype, use_fast_accum, kernel, groups.every)
        return result.reshape(groups.shape) if out is None else out
    if offsets is None:
        raise ArgumentError("scaled_grouped_matmul wants offsets, where the groups end, or counts of their rows")
    return scaled_cut_product(a, b, scale_a, scale_b, offsets, out, out_dtype, use_fast_accum, kernel)


def scaled_cut_product(
    a: Any,
    b: Any,
    scale_a: Any,
    scale_b: Any,
    offsets: Any,
    out: Any,
    out_dtype: Any,
    use_fast_accum: bool,
    kernel: str | KernelEntry | None,
    every: int = 0,
) -> Any:
    """:func:`scaled_grouped_matmul` of groups that offsets cut, or at places as ``cut_product`` has them."""
    tensors = a, b, scale_a, scale_b, offsets, out
    run = partial(multiplied, *tensors, out_dtype, use_fast_accum, kernel, every)
    if not (kernel is None or isinstance(kernel, str)) or not is_torch(a):
        return run()
    if any_recorded(sys.modules["torch"], *tensors):
        check_frameworks(*tensors)
        return recorded_form("torch_scaled_offsets").recorded(*tensors, out_dtype, use_fast_accum, kernel, every)
    options, modes = (out_dtype, use_fast_accum, kernel, every), closed if every else open_rows
    return repeated_call("scaled_grouped_matmul", tensors, out, options, run, modes)


def open_rows(tensors: Sequence[Any]) -> Sequence[Modes]:
    """Of groups of rows, the rows of a, scale_a and out."""
    return ((Place(0), Place(2), Place(5)),) if ranks(*tensors[:2]) == (2, 3) else ()


def check_frameworks(a: Any, b: Any, scale_a: Any, scale_b: Any, offsets: Any, out: Any) -> str:
    """The framework of all arrays; ArgumentError for several."""
    return one_framework({"a": a, "b": b, "scale_a": scale_a, "scale_b": scale_b, "offsets": offsets}, {"out": out})


def multiplied(
    a: Any,
    b: Any,
    scale_a: Any,
    scale_b: Any,
    offsets: Any,
    out: Any,
    out_dtype: Any,
    use_fast_accum: bool,
    kernel: str | KernelEntry | None,
    every: int = 0,
) -> Any:
    """:func:`scaled_grouped_matmul` at length: everything is checked and planned."""
    kind, factors = check_frameworks(a, b, scale_a, scale_b, offsets, out), has_factors(scale_a) or has_factors(scale_b)
    if factors and kernel is not None:
        raise ArgumentError("factors of blocks have one kernel on each GPU: leave out kernel")
    if kind == "jax":
        if out is not None:
            raise ArgumentError("JAX arrays are immutable: call scaled_grouped_matmul without out, and use its result")
        products = recorded_form("jax_products")
        if factors:
            arrays = {"a": a, "b": b, "scale_a": scale_a, "scale_b": scale_b, "offsets": offsets}
            return products.GROUPS_WITH_FACTORS(out_dtype, **arrays)
        return products.scaled_groups(a, b, scale_a, scale_b, offsets, out_dtype, use_fast_accum, kernel)
    if factors and every:
        raise ArgumentError("counts are for scales of float32, not for factors of blocks: sort the rows, give offsets")
    if factors:
        return block_scaled_groups(materialised(a), materialised(b), scale_a, scale_b, offsets, out, out_dtype)
    entries = partial(scaled_kernels, use_fast_accum, kernel)
    if out is None and cuts_columns_of_blocks(a, b, scale_a):
        result = BFloat16 if out_dtype is None else numeric_class(out_dtype)
        out = new_result(a, (b.shape[1], a.shape[1]), result).swapaxes(0, 1)
    more = {"scale_a": scale_a, "scale_b": scale_b, "every": every}
    return product_of(ScaledCutProduct, a, b, offsets, out, out_dtype, entries, **more)


def cuts_columns_of_blocks(a: Any, b: Any, scale_a: Any) -> bool:
    """Whether groups are columns of B, with scales of blocks: the result then has contiguous columns, since a group may
    begin at any column, and TMA, which alone writes it, at multiples of 16 bytes."""
    return (len(a.shape), len(b.shape), len(scale_a.shape)) == (3, 2, 3)


def scaled_kernels(use_fast_accum: bool, kernel: Any, dtype: Any) -> list[KernelEntry]:
    """The kernels for operands of a type."""
    if dtype not in FAST:
        known = " or ".join(x.__name__ for x in FAST)
        raise ArgumentError(f"a is {dtype.__name__}; scaled_grouped_matmul multiplies {known}")
    check_bool("use_fast_accum", use_fast_accum)
    names = (FAST if use_fast_accum else PROMOTED)[dtype]
    return [KERNELS[name] for name in names] if kernel is None else candidates(dtype, kernel)


def check_float_result(dtype: Any) -> None:
    """ArgumentError for a result of a type that the scales do not go to."""
    if not dtype.is_float or dtype.width not in (16, 32):
        raise ArgumentError(f"scaled_grouped_matmul writes floats of 16 or 32 bits, not {dtype}")


def check_scales(
    cut: int, extents: tuple[int, int, int], groups: int, scale_a: Any, scale_b: Any
) -> tuple[int, int] | None:
    """How many rows of A and columns of B share a scale of 128 elements of K, where the offsets cut mode ``cut`` of (M,
    N, K); None where scales are those of rows and columns. ArgumentError for other shapes and types."""
    scales = {"scale_a": scale_a, "scale_b": scale_b}
    for name, scale in scales.items():
        if scale.dtype is not Float32:
            raise ArgumentError(f"{name} must be float32, got {scale.dtype.__name__}")
    found = tuple(scale_a.shape), tuple(scale_b.shape)
    if tuple(map(len, found)) == {0: (2, 3), 1: (3, 2)}.get(cut):
        return lines_of_blocks(cut, extents, groups, found)
    for mode, (name, scale) in enumerate(scales.items()):
        listed = [shape_of_lines(mode, cut, extents, groups)]
        if cut == 2:
            listed.append((groups * extents[mode],))
        if tuple(scale.shape) not in listed:
            raise ArgumentError(f"{name} has the shape {tuple(scale.shape)}; for these operands it is {listed[-1]}")
    return None


def lines_of_blocks(
    cut: int, extents: tuple[int, int, int], groups: int, found: tuple[tuple[int, ...], tuple[int, ...]]
) -> tuple[int, int]:
    """How many rows of A and columns of B share a scale of these shapes; ArgumentError for others."""
    m, n, k = extents
    deep = -(-k // BLOCK)
    # By the lines that share a scale: groups begin anywhere among the lines that they cut.
    shapes: dict[tuple[int, int], tuple[tuple[int, ...], ...]] = {}
    for lines in (1, BLOCK):
        if cut == 0:
            shapes[1, lines] = (m, deep), (groups, deep, -(-n // lines))
        else:
            shapes[lines, 1] = (groups, -(-m // lines), deep), (deep, n)
    for blocks, wanted in shapes.items():
        if found == wanted:
            return blocks
    listed = " or ".join(f"{a} and {b}" for a, b in shapes.values())
    raise ArgumentError(
        f"scale_a and scale_b have the shapes {found[0]} and {found[1]}; for blocks of {BLOCK} elements of K they are "
        f"{listed}"
    )


def shape_of_lines(mode: int, cut: int, extents: tuple[int, int, int], groups: int) -> tuple[int, ...]:
    """The shape of the scales of rows (0) or columns (1), as a kernel reads them."""
    return (extents[mode],) if mode == cut else (groups, extents[mode])


@dataclass(frozen=True)
class ScaledCutProduct(CutProduct):
    """The operands and scales, checked."""

    scale_a: Any
    scale_b: Any

    @staticmethod
    def result_dtype(entry: KernelEntry) -> Any:
        return BFloat16

    @cached_property
    def blocks(self) -> tuple[int, int] | None:
        """How many rows of A and columns of B share a scale of 128 elements of K; None where the scales are those of
        rows and columns. ArgumentError where they do not fit the operands."""
        scales = array_of(self.scale_a), array_of(self.scale_b)
        return check_scales(self.mode, problem_extents(self.problem), self.groups, *scales)

    def check(self) -> None:
        """ArgumentError where D is not of floats, or scales do not fit the operands."""
        check_float_result(self.problem.D.dtype)
        _ = self.blocks
        for name in ("scale_a", "scale_b"):
            array = array_of(getattr(self, name))
            if array.device != self.problem.A.device:
                raise ArgumentError(f"{name} is on {array.device}, the matrices on {self.problem.A.device}")
            check_vector(name, array, self.problem)

    def shape(self, mode: int) -> tuple[int, ...]:
        """The shape in which a kernel reads the scales of rows (0) or columns (1)."""
        return shape_of_lines(mode, self.mode, problem_extents(self.problem), self.groups)

    def suited_entries(self) -> list[KernelEntry]:
        if self.blocks is None:
            return super().suited_entries()
        dtype, entries = self.problem.A.dtype, self.entries
        if [entry.name for entry in entries] == FAST[dtype]:  # scales of blocks always promote
            entries = scaled_kernels(False, None, dtype)
        fitting = [entry.for_block_scales(*self.blocks) for entry in entries]
        found = [entry for entry in fitting if entry is not None]
        if not found:
            raise no_block_scales(self.entries[0])
        return found

    def accesses(self, problem: Problem) -> list[OperandAccess]:
        """Scales of blocks are Hopper kernels', which load and store by TMA."""
        if self.blocks is None:
            return super().accesses(problem)
        (entry, *_) = self.suited_entries()
        return entry.family.accesses(entry.config, problem)

    def function(self, config: Any) -> GroupScales | GroupBlockScales:
        """The scales of the group of each tile."""
        if self.blocks is not None:
            a, b = (dynamic(from_dlpack(x)) for x in (self.scale_a, self.scale_b.swapaxes(-1, -2)))
            return GroupBlockScales(a, b, *self.blocks, self.mode)
        found = (contiguous(x).reshape(self.shape(mode)) for mode, x in enumerate((self.scale_a, self.scale_b)))
        a, b = (dynamic(from_dlpack(x)) for x in found)
        return GroupScales(a, b, self.mode, not config.persistent)


def contiguous(x: Any) -> Any:
    if hasattr(x, "new_buffer"):  # XLA's memory has no gaps
        return x
    return x.contiguous() if framework(x) == "torch" else namespace(x).ascontiguousarray(x)
