"""``grouped_matmul``: products of groups that offsets on the device cut out of matrices.

Argument shapes are those of ``torch._grouped_mm``. The host never reads the offsets: it chooses the kernel for groups
of equal size, reserves memory for the table of ``kernel.group_table``, and the device fills that.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any

from tilewright import Int32, Int64
from tilewright.errors import ArgumentError
from tilewright.gemm.access import VECTOR
from tilewright.gemm.arrays import Matrix, check_types
from tilewright.gemm.choice.registry import candidates
from tilewright.gemm.config import Major, Operand
from tilewright.gemm.epilogue.functions import Chain, EpilogueFunction, is_untransposed, stores_result
from tilewright.gemm.family.accesses import OperandAccess, group_accesses
from tilewright.gemm.family.entry import KernelEntry
from tilewright.gemm.host.epilogue_operands import check_epilogue
from tilewright.gemm.host.plan import capability_of, limits
from tilewright.gemm.host.problem import Problem, check_output
from tilewright.gemm.host.recorded import decided
from tilewright.gemm.host.scales import check_result
from tilewright.gemm.kernel.group_offsets import MODES, GatheredRows, OffsetGroups
from tilewright.gemm.kernel.group_table import COLUMNS, GroupRows
from tilewright.gemm.operators.arrays import check_given_result, framework, new_result, unwritten_result
from tilewright.gemm.operators.counted_groups import clear_counted, tall_groups
from tilewright.gemm.operators.cut_choice import CutChoice, most_tiles, problem_extents, with_extent
from tilewright.gemm.operators.epilogues import (
    arrays_of,
    dtype_key,
    functions_of,
    in_place_of_result,
    key_of,
    lowered,
    seen_as_matrices,
)
from tilewright.gemm.operators.forms import recorded_form
from tilewright.gemm.operators.group_checks import (
    check_decomposition,
    check_frameworks,
    check_functions,
    check_offsets,
    check_reach,
    check_rows,
    check_rows_form,
)
from tilewright.gemm.operators.group_launch import MOST_ITERATIONS, TableLaunch, entry_of, leading_stride
from tilewright.gemm.operators.grouped import with_contiguous
from tilewright.gemm.operators.matmul import matmul
from tilewright.gemm.operators.open_extents import Modes, Place, closed, ranks
from tilewright.gemm.operators.repeated_call import is_torch, repeated_call
from tilewright.gemm.operators.rows import planned_rows
from tilewright.gemm.operators.torch_state import any_recorded, materialised
from tilewright.gemm.tuning.stand_in import numeric_class
from tilewright.lang.arguments.arrays import array_of
from tilewright.lang.arguments.dlpack import from_dlpack

ANYWHERE = "offsets that cut the contiguous mode of a matrix at any element want a kernel that loads it so: "
CUT = {(2, 3): 0, (3, 2): 1, (2, 2): 2}
"""The mode that offsets cut, M, N or K, by the numbers of dimensions of a and b."""


def grouped_matmul(
    a: Any,
    b: Any,
    offsets: Any = None,
    *,
    counts: Any = None,
    rows: Any = None,
    out: Any = None,
    out_dtype: Any = None,
    kernel: str | KernelEntry | None = None,
    epilogue: EpilogueFunction | Sequence[EpilogueFunction] | None = None,
    decomposition: str = "auto",
) -> Any:
    """The products of groups, whose sizes only the device has to know: mixtures of experts.

    Group i is what is between ``offsets[i - 1]`` (0 for the first group) and ``offsets[i]`` of the mode that is cut:

    | a | b | result | group i |
    |---|---|---|---|
    | (M, K) | (G, K, N) | (M, N) | rows of a, times b[i] |
    | (G, M, K) | (K, N) | (M, N) | columns of b, after a[i] |
    | (M, K) | (K, N) | (G, M, N) | columns of a times rows of b: the gradient of a weight |
    | (G, M, K) | (G, K, N) | (G, M, N) | a[i] times b[i], without offsets |
    | (G, M, K) | (G, K, N) | (G, M, N) | the first ``counts[i]`` rows of a[i], times b[i] |

    Args:
        a, b: of one dtype: PyTorch tensors, or NumPy, CuPy or JAX arrays. Groups may begin anywhere. Faster kernels
            take rows of the whole matrices that begin at multiples of 16 bytes, and, where the offsets cut the
            contiguous mode of a matrix, offsets at such multiples; the device decides between them and a slower one.
        offsets: G numbers of int32 on the device of ``a``, where the groups end. They do not fall. What is beyond the
            last one belongs to no group: rows or columns of the result are zero there.
        counts: in place of offsets, G numbers of int32 on the device of ``a``, from 0 to M: the rows that each group
            has of its place for M (the masked form of other libraries). The rows behind them are neither read nor
            written: a result that is made has zeros there, ``out`` keeps what it has. Not of JAX, nor beside ``rows``
            and ``epilogue``.
        rows: of groups of rows, M numbers of int32: row m of the product is ``a[rows[m]]``, read as the product needs
            it and not copied before. On a GPU rows that ``a`` does not have count as zeros.
        out: where the result goes; made if it is None.
        out_dtype: of the result, by default that of ``out`` or of ``a``: a framework's dtype or a numeric class.
        kernel: the name or the entry of a kernel, in place of the choice.
        epilogue: of groups of rows, a function or a sequence of them, as for :func:`matmul`: its arrays are those of
            the whole result, an element or a row for each of its rows. ``gemm.epilogue`` has ``Gated`` for SwiGLU on
            interleaved columns, ``ScatterAdd`` for adding to rows by index. Rows of no group have sums of zero.

        decomposition: "data_parallel": each tile is one block's; "stream_k": the k tiles of all tiles are dealt out to
            the blocks in even shares, which the device computes from the offsets, and blocks that share a tile add up
            their sums in a fixed order: for few tiles of long, or very different, K. "auto" is the first.

    Empty groups cost nothing; with K cut they give zeros. The host does not wait for the device, so a CUDA graph
    can capture the call and replay it with other offsets. PyTorch tensors have gradients, and torch.compile keeps the
    call as one node, ``torch.ops.tilewright.grouped_matmul``; the functions of an epilogue are then PyTorch's, applied
    to its result. Of JAX arrays it is an operation of JAX with gradients, also in ``jax.jit`` and ``jax.vmap``, without
    an epilogue.

    Raises ArgumentError for operands that do not go together. In the simulator also for offsets that fall, are negative
    or exceed the extent; a GPU cannot raise: there the whole result is zero.

    >>> rows, weights = np.ones((6, 16), np.float16), np.stack([np.full((16, 8), i, np.float16) for i in (1, 2, 3)])
    >>> grouped_matmul(rows, weights, np.array([2, 2, 5], np.int32))[:, 0].tolist()
    [16.0, 16.0, 48.0, 48.0, 48.0, 0.0]
    """
    if counts is not None:
        groups = tall_groups(a, b, counts, out, offsets, {"rows": rows, "epilogue": epilogue})
        options = out_dtype, kernel, None, decomposition
        result = cut_product(groups.a, b, counts, None, groups.out, *options, every=groups.every)
        return result.reshape(groups.shape) if out is None else out
    return cut_product(a, b, offsets, rows, out, out_dtype, kernel, epilogue, decomposition)


def cut_product(
    a: Any,
    b: Any,
    offsets: Any,
    rows: Any,
    out: Any,
    out_dtype: Any,
    kernel: str | KernelEntry | None,
    epilogue: EpilogueFunction | Sequence[EpilogueFunction] | None = None,
    decomposition: str = "auto",
    every: int = 0,
) -> Any:
    """:func:`grouped_matmul` of groups that offsets cut; where ``every`` is not 0, group i begins at i * every, and has
    as many elements as ``offsets[i]`` says."""
    check_decomposition(decomposition)
    tensors: tuple[Any, ...] = a, b, offsets, rows, out
    functions, instead = (), None
    if epilogue is not None:
        functions = functions_of(epilogue)
        check_functions(functions)
        instead = in_place_of_result(functions, out)
        tensors += tuple(arrays_of(functions))

    def run() -> Any:
        return multiplied(a, b, offsets, rows, out, out_dtype, kernel, functions, decomposition, every)

    if (kernel is None or isinstance(kernel, str)) and is_torch(a):
        if any_recorded(sys.modules["torch"], *tensors):
            check_frameworks(a, b, offsets, rows, out, functions)
            if decomposition == "stream_k":
                raise ArgumentError("decomposition cannot be given where PyTorch records the call: leave it out")
            more = kernel, functions, every
            result = recorded_form("torch_offsets").recorded(a, b, offsets, rows, out, out_dtype, *more)
        else:
            options = out_dtype, kernel, decomposition, key_of(functions, dtype_key) if functions else (), every
            modes = closed if every else open_modes
            result = repeated_call("grouped_matmul", tensors, out, options, run, modes)
    else:
        result = run()
    return result if instead is None else instead


def open_modes(tensors: Sequence[Any]) -> Sequence[Modes]:
    """Of groups of rows the rows of the product, with what has an element or a row for each, and where they are read by
    index those of a; of groups cut out of K, K."""
    a, b, _, rows, _, *arrays = tensors
    of_product = [Place(4 + number) for number in range(1 + len(arrays))]
    if ranks(a, b) == (2, 3):
        return ((Place(0), *of_product),) if rows is None else ((Place(3), *of_product), (Place(0),))
    return ((Place(0, 1), Place(1)),) if ranks(a, b) == (2, 2) else ()


def multiplied(
    a: Any,
    b: Any,
    offsets: Any,
    rows: Any,
    out: Any,
    out_dtype: Any,
    kernel: Any,
    functions: tuple[Any, ...],
    how: str,
    every: int,
) -> Any:
    """:func:`grouped_matmul` at length: everything is checked and planned."""
    check_frameworks(a, b, offsets, rows, out, functions)
    check_rows_form(functions, rows, a, b)
    if offsets is None and (len(a.shape), len(b.shape)) == (3, 3):
        if a.shape[0] != b.shape[0]:
            raise ArgumentError(f"a has {a.shape[0]} matrices, b has {b.shape[0]}")
        return matmul(a, b, out, out_dtype=out_dtype, kernel=kernel, decomposition=how)
    if framework(a) == "jax":
        if out is not None or functions:
            raise ArgumentError(
                "JAX arrays are immutable: call grouped_matmul without out and epilogue, and apply functions to its "
                "result"
            )
        products = recorded_form("jax_products")
        options = products.GroupOptions(out_dtype, kernel, how == "stream_k")
        return products.GROUPS(options, a=a, b=b, offsets=offsets, rows=rows)
    entries, sharing = partial(candidates, kernel=kernel), how == "stream_k"
    more_of = {"functions": functions, "rows": rows, "sharing": sharing, "every": every}
    return product_of(CutProduct, a, b, offsets, out, out_dtype, entries, **more_of)


def product_of(
    kind: type[CutProduct],
    a: Any,
    b: Any,
    offsets: Any,
    out: Any,
    *options: Any,
    stream: int | None = None,
    **more: Any,
) -> Any:
    """The result of a product, launched on ``stream`` or the current one."""
    product = kind.of(materialised(a), materialised(b), offsets, out, *options, **more)
    product.run(stream)
    return product.problem.D.source


@dataclass(frozen=True)
class CutProduct:
    """The operands, checked: ``problem`` has the whole matrices, and a stack of those that each group has its own of;
    ``mode`` is the one that the offsets cut."""

    problem: Problem
    offsets: Any
    mode: int
    groups: int
    entries: list[KernelEntry]
    functions: tuple[Any, ...] = field(default=(), kw_only=True)
    """The ``epilogue``'s."""
    rows: Any = field(default=None, kw_only=True)
    """Which rows of A the product has."""
    sharing: bool = field(default=False, kw_only=True)
    """Whether blocks share the k tiles of all tiles."""
    every: int = field(default=0, kw_only=True)
    """Where this is not 0, group i begins at i * every, and ``offsets`` are counts."""

    @classmethod
    def of(cls, a: Any, b: Any, offsets: Any, out: Any, out_dtype: Any, kernels: Any, **more: Any) -> CutProduct:
        """Check the operands against each other, and make the output where none is given. ``kernels`` gives those for
        a type, the best first."""
        rows = more.get("rows")
        seen = tuple(a.shape) if rows is None else (*rows.shape[:1], *a.shape[1:])
        mode, shape = cut_mode_and_shape(seen, tuple(b.shape), None if offsets is None else tuple(offsets.shape))
        A, B = Matrix.of("a", a), Matrix.of("b", b)
        check_types(A.dtype, B.dtype)
        entries = kernels(A.dtype)
        kind = cls.result_dtype(entries[0]) if out_dtype is None else numeric_class(out_dtype)
        if out is None and not stores_result(Chain(more.get("functions", ()))):
            D: Matrix = unwritten_result(a, shape, kind)
        else:
            made = new_result(a, shape, kind) if out is None else out
            if out is None and more.get("every") and mode != 2:  # behind the counts nothing is written
                made[...] = 0
            D = Matrix.of("out", made)
        check_given_result(D, shape, None if out_dtype is None else kind)
        m, n, batch = (*shape, 1) if len(shape) == 2 else (*shape[1:], shape[0])
        check_output(A, B, None, D, (m, n, batch))
        problem = Problem(A, B, D, D, False)
        check_offsets(array_of(offsets), problem, offsets, problem_extents(problem)[mode], more.get("every", 0))
        made = cls(problem, offsets, mode, int(offsets.shape[0]), entries, **more)
        made.check()
        return made

    @staticmethod
    def result_dtype(entry: KernelEntry) -> Any:
        """The numeric class of a result that is not given."""
        return entry.config.c.dtype

    def check(self) -> None:
        """ArgumentError where D cannot take what the kernel computes, or the epilogue's arrays do not fit it."""
        check_result(self.entries[0], self.problem)
        if self.rows is not None:
            check_rows(self.rows, self.problem)
        if self.functions:
            check_epilogue(Chain(tuple(self.lowered(self.entries[0].config))), self.problem)
            if 0 in (problem_extents(self.problem)[2], self.groups):
                raise ArgumentError("there is no group, or K is 0: nothing would apply the epilogue")

    def lowered(self, config: Any) -> list[Any]:
        """The epilogue's functions, as kernels take them."""
        return lowered(self.functions, seen_as_matrices(self.functions), config.acc_dtype, self.problem.D.dtype)

    def function(self, config: Any) -> Any:
        """The epilogue function of a kernel of this size."""
        moved = not config.persistent
        return Chain(tuple(GroupRows(part, fields_of_rows(part), moved) for part in self.lowered(config)))

    def run(self, stream: int | None = None) -> None:
        """Launch the product, on ``stream`` or the current one, between copies of matrices that the table of its groups
        cannot describe."""
        _, _, k = problem_extents(self.problem)
        result = self.problem.D.source
        if 0 in result.shape:
            return
        if k == 0 and self.every and self.groups:
            clear_counted(result, self.offsets, self.every)
            return
        if k == 0 or self.groups == 0:
            result[...] = 0
            return
        before, seen, after = with_contiguous([self.problem], self.accesses)
        for copy in before:
            copy(stream)
        replace(self, problem=seen[0]).launch(stream)
        for copy in after:
            copy(stream)

    def accesses(self, problem: Problem) -> list[OperandAccess]:
        """What all kernels that may be taken assume of the matrices: others are copied."""
        return group_accesses(problem)

    def launch(self, stream: int | None = None) -> None:
        """Choose the kernel, and launch it."""
        version, entries = capability_of(self.problem.machine), self.suited_entries()
        entry, _ = entry_of("", self.problem, entries, version)
        others = [other for other in entries if not other.config.persistent]
        step = VECTOR // self.problem.A.dtype.bytes if entry.config.persistent and self.cuts_rows else 1
        launches = [entry] if step == 1 else [entry, entry_of(ANYWHERE, self.problem, others, version)[0]]
        for one in launches:
            check_reach(one, self.problem)
        for one in launches:
            OffsetLaunch(self, one, step).run(stream)

    def suited_entries(self) -> list[KernelEntry]:
        """The kernels, in the sizes that the rows and the epilogue allow."""
        if self.rows is not None:
            taken = [entry for entry in self.entries if entry.takes_rows]
            if not taken:
                raise ArgumentError(
                    f"kernel {self.entries[0].name} reads no rows by index: those of Blackwell, Hopper and Ampere do"
                )
            return [entry.for_gathered_rows for entry in taken]
        if is_untransposed(Chain(self.functions)):
            return [entry.untransposed for entry in self.entries]
        return self.entries

    @property
    def cuts_rows(self) -> bool:
        """Whether the offsets cut the contiguous mode of a matrix, so that a group may begin between the multiples of
        16 bytes at which TMA begins."""
        matrices = self.problem.A, self.problem.B.transposed(), self.problem.D
        return any(
            self.mode in modes and modes.index(self.mode) == (1 if matrix.major() is Major.K else 0)
            for matrix, modes in zip(matrices, MODES, strict=True)
        )


def fields_of_rows(function: Any) -> tuple[str, ...]:
    """The fields of an epilogue function that have an element or a row for each row of D."""
    of_rows = [x for x, mode in getattr(function, "vectors", ()) if mode == 0]
    of_rows += [x for x, *_ in getattr(function, "matrices", ())]
    return tuple(x.name for x in fields(function) if any(getattr(function, x.name) is one for one in of_rows))


def cut_mode_and_shape(
    a: tuple[int, ...], b: tuple[int, ...], offsets: tuple[int, ...] | None
) -> tuple[int, tuple[int, ...]]:
    """The mode that the offsets cut, and the result's shape, for operands of these shapes; ArgumentError for others.

    >>> cut_mode_and_shape((64, 32), (4, 32, 16), (4,)), cut_mode_and_shape((64, 32), (32, 16), (4,))
    ((0, (64, 16)), (2, (4, 64, 16)))
    """
    mode = CUT.get((len(a), len(b)))
    if mode is None or offsets is None:
        raise ArgumentError(
            f"groups of shapes {a} and {b} {'without' if offsets is None else 'with'} offsets: one or both are "
            "matrices, cut at offsets, or both are stacks of matrices, without offsets"
        )
    if len(offsets) != 1:
        raise ArgumentError(f"offsets is a vector with a number for each group, not of shape {offsets}")
    if a[-1] != b[-2]:
        raise ArgumentError(f"inner dimensions differ: a has shape {a}, b {b}")
    stack = {0: b, 1: a, 2: (*offsets, 0, 0)}[mode]
    if stack[0] != offsets[0]:
        raise ArgumentError(f"offsets has {offsets[0]} numbers, for {stack[0]} matrices: one for each group")
    shape = (a[-2], b[-1])
    return mode, (offsets[0], *shape) if mode == 2 else shape


class OffsetLaunch(TableLaunch):
    """One kernel for the groups of a product."""

    sharing: bool = False
    """Whether the k tiles of all tiles are dealt out in even shares."""

    def __init__(self, product: CutProduct, entry: KernelEntry, step: int) -> None:
        problem, gpu = product.problem, limits(product.problem.machine)
        choice = CutChoice.of(problem, product.mode, product.groups, entry, gpu, product.sharing)
        extent = problem_extents(problem)[product.mode]
        config = choice.config(extent)
        if not product.sharing:
            decided(extent, choice.launched)
        super().__init__([problem], config, product.function(config), gpu)
        self.problem = self.problems[0]
        self.mode = (1, 0, 2)[product.mode] if config.transposed else product.mode
        # What belongs to no group is one more; behind counts nothing is written.
        self.rows = product.groups + (self.mode != 2 and not product.every)
        self.sharing = product.sharing
        self.groups = self.offset_groups(product, step)

    @property
    def extents(self) -> tuple[int, int, int]:
        """M, N and K as the kernel sees them."""
        return problem_extents(self.problem)

    def pitch(self, matrix: Matrix, operand: Operand) -> int:
        """Elements from one row (column) to the next."""
        return leading_stride(matrix, operand)

    def offset_groups(self, product: Any, step: int) -> OffsetGroups:
        config, problem = self.config, self.problem
        matrices, operands = (problem.A, problem.B.transposed(), problem.D), (config.a, config.b, config.c)
        stack = next(x for x, modes in zip(matrices, MODES, strict=True) if self.mode not in modes)
        return OffsetGroups(
            from_dlpack(product.offsets).mark_layout_dynamic(),
            tuple(Int64(x.array.address) for x in matrices),
            tuple(Int64(self.pitch(x, operand)) for x, operand in zip(matrices, operands, strict=True)),
            Int64(stack.stride[2] * stack.dtype.bytes if stack.shape[2] > 1 else 0),
            tuple(Int32(extent) for extent in self.extents),
            self.mode,
            not config.persistent,
            step,
            self.gathered_rows(product),
            self.sharing,
            Int32(product.every) if product.every else None,
        )

    def gathered_rows(self, product: Any) -> GatheredRows | None:
        if product.rows is None:
            return None
        return GatheredRows(from_dlpack(product.rows).mark_layout_dynamic(), Int32(self.problem.A.shape[0]))

    @property
    def planned(self) -> tuple[int, int, int]:
        """The same with as much of the mode that is cut as is planned for: what decides blocks and memory."""
        return with_extent(self.extents, self.mode, planned_rows(self.extents[self.mode]))

    def table(self) -> tuple[Any, int]:
        groups = self.rows - (self.mode != 2)
        return self.room(self.rows + 1, COLUMNS), most_tiles(self.config, self.planned, self.mode, groups)

    def blocks(self, tiles: int, at_once: int) -> int:
        """As many as run at the same time where tiles are shared, of which some may have nothing to do: the host knows
        only how many iterations there are at most."""
        if not self.sharing:
            return super().blocks(tiles, at_once)
        k_tiles = -(-self.planned[2] // self.config.tile[2])
        most = (tiles // self.rows) * (k_tiles + self.rows) if self.mode == 2 else tiles * k_tiles
        if most >= MOST_ITERATIONS:
            raise ArgumentError(f"the groups have up to {most} k tiles, more than 32-bit numbers hold")
        return self.share(most, at_once)
