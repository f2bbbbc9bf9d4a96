"""The arrays that epilogue functions read and write beside C and D, checked before a launch."""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.errors import ArgumentError
from tilewright.gemm.arrays import Matrix
from tilewright.gemm.epilogue.functions import EpilogueFunction, parts_of
from tilewright.gemm.host.problem import Problem, check_vector
from tilewright.lang.arguments.arrays import Array, array_behind


def check_epilogue(function: EpilogueFunction, problem: Problem) -> None:
    """ArgumentError for vectors and matrices of a function that do not fit D, or overlap with what is written.

    A tensor without an array of its own (made in a kernel, say) is the caller's to check.
    """
    m, n, _, _ = problem.shape
    if isinstance(function, type) or not callable(function):
        raise ArgumentError(f"epilogue is a function that is called with (accumulators, tile), not {function!r}")
    if hasattr(function, "check"):
        function.check(m, n)
    written: list[tuple[str, Array]] = []
    read: list[tuple[str, Array]] = []
    for part in parts_of(function):
        name = type(part).__name__
        if getattr(part, "one_product", False) and is_batch(problem):
            raise ArgumentError(
                f"{name} goes by the places of elements, which those of a stack of products share, and rows by index "
                "change: it is for one product of matrices"
            )
        numbers = (array_behind(tensor) for tensor in getattr(part, "numbers", ()))
        targets = (array_behind(tensor) for tensor in getattr(part, "targets", ()))
        read += [(f"the number of {name}", array) for array in numbers if array is not None]
        read += [(f"the vector of {name}", array) for array in checked_vectors(part, m, n)]
        written += [(f"the matrix of {name}", array) for array in targets if array is not None]
        for array, is_written in checked_matrices(part, problem):
            (written if is_written else read).append((f"the matrix of {name}", array))
    check_places(read, written, problem)


def is_batch(problem: Problem) -> bool:
    """Whether D is a stack of matrices, or its rows are named by an index."""
    return problem.shape[3] != 1 or problem.indirect is not None


def checked_vectors(part: EpilogueFunction, m: int, n: int) -> Iterator[Array]:
    """The vectors of one function of an epilogue. ArgumentError where they are not as long as a column or row of D."""
    for tensor, mode in getattr(part, "vectors", ()):
        if (array := array_behind(tensor)) is None:
            continue
        extent, lines = (n, "column") if mode else (m, "row")
        if tuple(array.shape) != (extent,):
            raise ArgumentError(
                f"{type(part).__name__}: a vector of {extent} elements, one for each {lines} of D, is wanted, not one "
                f"of shape {tuple(array.shape)}"
            )
        yield array


def checked_matrices(part: EpilogueFunction, problem: Problem) -> Iterator[tuple[Array, bool]]:
    """The matrices of a function of an epilogue, and whether it writes them. ArgumentError where one does not fit D."""
    name, (m, n, _, _) = type(part).__name__, problem.shape
    for tensor, is_written, *columns in getattr(part, "matrices", ()):
        if (array := array_behind(tensor)) is None:
            continue
        if is_batch(problem):
            raise ArgumentError(
                f"{name} has a matrix beside D, which belongs to one product of matrices: not to a stack of "
                "products, nor to rows by index"
            )
        each = columns[0] if columns else 1
        if n % each:
            raise ArgumentError(f"{name}: {n} columns of D are not whole groups of {each}")
        if tuple(array.shape) != (m, n // each):
            what = "of D's shape" if each == 1 else f"with a column for each {each} of D's"
            raise ArgumentError(
                f"{name}: a matrix {what}, {(m, n // each)}, is wanted, not one of shape {tuple(array.shape)}"
            )
        yield array, is_written


def check_places(read: list[tuple[str, Array]], written: list[tuple[str, Array]], problem: Problem) -> None:
    """ArgumentError where an array of an epilogue is on another device, or overlaps with what is written."""
    for what, array in (*read, *written):
        if array.device != problem.D.device:
            raise ArgumentError(f"{what} is on {array.device}, the matrices are on {problem.D.device}")
        check_vector(what, array, problem)
    others = [(matrix.name, matrix.array) for matrix in (problem.A, problem.B, problem.C)]
    for i, (what, array) in enumerate(written):
        if array.readonly:
            raise ArgumentError(f"{what} is written, and the array is read-only")
        if Matrix(what, None, array).overlaps_itself():
            raise ArgumentError(f"{what} is written, and several of its elements share one place")
        low, high = array.bounds
        for name, other in (*others, *read, *written[:i]):
            first, last = other.bounds
            if low < last and first < high:
                raise ArgumentError(f"{what} is written, and overlaps {name}: give it memory of its own")
