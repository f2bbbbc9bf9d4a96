"""Refusals of products of groups: arguments that do not go together, wrong offsets, wrong indices of rows."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from tilewright import Int32
from tilewright.errors import ArgumentError
from tilewright.gemm.config import Major
from tilewright.gemm.family.entry import KernelEntry
from tilewright.gemm.host.problem import Problem, check_vector
from tilewright.gemm.host.recorded import check_elements
from tilewright.gemm.operators.arrays import one_framework
from tilewright.gemm.operators.epilogues import arrays_of
from tilewright.gemm.operators.grouped import DECOMPOSITIONS, MOST_ELEMENTS
from tilewright.lang.arguments.arrays import array_of


def check_functions(functions: tuple[Any, ...]) -> None:
    """ArgumentError for functions of an epilogue that groups cannot have."""
    for part in functions:
        if getattr(part, "one_product", False):
            raise ArgumentError(
                f"epilogue: {type(part).__name__} goes by the places of elements in one product, not in groups"
            )


def check_frameworks(a: Any, b: Any, offsets: Any, rows: Any, out: Any, functions: tuple[Any, ...]) -> None:
    """ArgumentError for arrays of different frameworks."""
    more = {f"array {i} of the epilogue": x for i, x in enumerate(arrays_of(functions))}
    one_framework({"a": a, "b": b}, {"offsets": offsets, "rows": rows, "out": out, **more})


def check_decomposition(decomposition: str) -> None:
    """ArgumentError for one that there is not."""
    if decomposition not in DECOMPOSITIONS:
        known = ", ".join(DECOMPOSITIONS)
        raise ArgumentError(f"there is no decomposition {decomposition!r} of groups: it is one of {known}")


def check_rows_form(functions: tuple[Any, ...], rows: Any, a: Any, b: Any) -> None:
    """ArgumentError for an epilogue, or rows by index, of products that are not those of groups of rows."""
    if rows is not None and len(rows.shape) != 1:
        raise ArgumentError(f"rows is a vector of int32, not of shape {tuple(rows.shape)}")
    if (functions or rows is not None) and (len(a.shape), len(b.shape)) != (2, 3):
        raise ArgumentError(
            f"{'epilogue is' if functions else 'rows are'} for groups of rows, a matrix times a stack; not for shapes "
            f"{tuple(a.shape)} and {tuple(b.shape)}"
        )


def check_offsets(array: Any, problem: Problem, offsets: Any, extent: int, every: int = 0) -> None:
    """ArgumentError for offsets that the kernels cannot read, or, on the CPU, that are not valid ends of groups; where
    ``every`` is not 0, they are counts of at most that."""
    name = "counts" if every else "offsets"
    if array.dtype is not Int32:
        raise ArgumentError(f"{name} must be int32, got {array.dtype}")
    if array.device != problem.A.device:
        raise ArgumentError(
            f"{name} are on {array.device}, the matrices on {problem.A.device}: put them there, where they are read"
        )
    check_vector(name, array, problem)
    if array.device != "cpu":
        return
    check_elements(partial(check_counts, every) if every else partial(check_ends, extent), offsets)


def check_counts(every: int, counts: Any) -> None:
    """ArgumentError for counts on the CPU that are negative or larger than the place of a group."""
    numbers = np.asarray(counts.numpy() if hasattr(counts, "numpy") else counts, np.int64)
    for i in np.flatnonzero((numbers < 0) | (numbers > every))[:1].tolist():
        raise ArgumentError(f"group {i} has a count of {numbers[i]}, and its place {every} rows")


def check_ends(extent: int, offsets: Any) -> None:
    """ArgumentError for offsets on the CPU that are not valid ends of groups."""
    ends = np.asarray(offsets.numpy() if hasattr(offsets, "numpy") else offsets, np.int64)
    begins = np.concatenate([[0], ends[:-1]])
    for i in np.flatnonzero((ends < begins) | (ends > extent))[:1].tolist():
        raise ArgumentError(
            f"group {i} has the elements {begins[i]} to {ends[i]} of {extent}: offsets do not fall, and the last is at "
            "most the extent of the mode that they cut"
        )


def check_rows(rows: Any, problem: Problem) -> None:
    """ArgumentError for indices that kernels cannot read, or, on the CPU, that name no row of A."""
    array, count = array_of(rows), problem.A.shape[0]
    if array.dtype is not Int32 or len(array.shape) != 1 or array.device != problem.A.device:
        raise ArgumentError(
            f"rows is a vector of int32 on {problem.A.device}, not of {array.dtype} and shape {tuple(array.shape)} on "
            f"{array.device}"
        )
    check_vector("rows", array, problem)
    if problem.A.major() is not Major.K:
        raise ArgumentError("rows are read whole: a has its columns contiguous, not its rows")
    if array.device == "cpu" and 0 not in array.shape:
        check_elements(partial(check_numbers, count), rows)


def check_numbers(count: int, rows: Any) -> None:
    """ArgumentError for indices on the CPU that name none of ``count`` rows."""
    numbers = np.asarray(rows.numpy() if hasattr(rows, "numpy") else rows)
    if numbers.min() < 0 or numbers.max() >= count:
        raise ArgumentError(f"rows has numbers of {numbers.min()} to {numbers.max()}, and a has {count} rows")


def check_reach(entry: KernelEntry, problem: Problem) -> None:
    """ArgumentError where a group might be larger than the kernel's offsets of 32 bits reach."""
    if entry.config.persistent:  # TMA counts in coordinates
        return
    for matrix in (problem.A, problem.B, problem.D):
        reach = sum((n - 1) * abs(d) for n, d in zip(matrix.shape[:2], matrix.stride[:2], strict=True))
        if reach >= MOST_ELEMENTS:
            raise ArgumentError(
                f"{matrix.name} spans {reach} elements, more than the 32-bit offsets of kernel {entry.name} reach"
            )
