"""The view that an epilogue function gets of its accumulators: coordinates, values, other matrices."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from tilewright import Constexpr, const_expr, cute, range_constexpr
from tilewright.errors import ConstraintError
from tilewright.gemm.epilogue.quads import store_vectors, vectors_of_quads


@dataclass(frozen=True)
class EpilogueTile:
    """One part of an output tile as the calling thread holds it.

    ``coordinates`` is the (m, n) of each accumulator as the kernel counts them, a coordinate tensor of the
    accumulators' shape; ``extent`` the (M, N) of the output. ``read_source`` brings C's elements of this part; it may
    synchronise the threads of the tile, so all of them ask for it or none. ``transposed``: the kernel computes the
    transposed product, whose rows are the user's columns: the methods take that into account.
    """

    coordinates: Any
    extent: tuple[Any, Any]
    read_source: Callable[[], Any]
    transposed: bool = False
    ahead: dict[tuple[int, int], Any] = field(default_factory=dict)
    """Elements of vectors that are in registers already, by the vector's id and the mode."""
    numbers: dict[int, Any] = field(default_factory=dict)
    """Numbers that are in registers already, by the id of their vector of one element."""
    kept: dict[int, Any] = field(default_factory=dict)
    """What was written of matrices that the kernel stores, by the matrix's id: None, then a fragment of its type."""
    quads: bool = False
    """Whether lanes 4i .. 4i + 3 hold 8 neighbouring columns of a row, two each (``quads.quads_hold_rows``)."""
    inside: bool = False
    """Whether all coordinates are known to be within the extent."""

    def source(self) -> Any:
        """C's elements, a TensorSSA of C's type; zero outside the matrix."""
        return self.read_source()

    def row(self, vector: Any) -> Any:
        """``vector[n]`` for each accumulator, a TensorSSA of the vector's type; zero outside the matrix."""
        return self._along(vector, self._mode(1))

    def column(self, vector: Any) -> Any:
        """``vector[m]`` for each accumulator, a TensorSSA of the vector's type; zero outside the matrix."""
        return self._along(vector, self._mode(0))

    def number(self, vector: Any) -> Any:
        """``vector[0]``, of a vector of one element."""
        return self.numbers.get(id(vector), vector)[0]

    @cute.jit
    def read(self, matrix: Any) -> Any:
        """``matrix[m, n]`` for each accumulator, a TensorSSA of the matrix's type; zero outside the matrix."""
        loaded = cute.make_rmem_tensor(self.coordinates.shape, matrix.element_type)
        loaded.fill(0)
        for i in range_constexpr(cute.size(loaded)):
            at = self.coordinates[i]
            if cute.elem_less(at, self.extent):
                loaded[i] = matrix[self.of_user(at)]
        return loaded.load()

    def write(self, matrix: Any, values: Any) -> None:
        """``matrix[m, n] = values``, a TensorSSA of the accumulators' shape, rounded to the matrix's type."""
        stored = cute.make_rmem_tensor(self.coordinates.shape, matrix.element_type)
        stored.store(values.to(matrix.element_type))
        if id(matrix) in self.kept:
            self.kept[id(matrix)] = stored
        else:
            self._write_elements(matrix, stored)

    def written(self) -> list[Any]:
        """What was written of the matrices that the kernel stores. ConstraintError where one was not written."""
        if None in self.kept.values():
            raise ConstraintError(
                "an epilogue function says that it writes its matrices in each call (writes_always), and did not write "
                "all of them: call tile.write for each, or leave out writes_always"
            )
        return list(self.kept.values())

    @cute.jit
    def _write_elements(self, matrix: Any, stored: Any) -> None:
        for i in range_constexpr(cute.size(stored)):
            at = self.coordinates[i]
            if cute.elem_less(at, self.extent):
                matrix[self.of_user(at)] = stored[i]

    def column_pairs(self) -> tuple[list[int], int]:
        """The accumulators of even columns, counted as ``acc[i]``, and how many accumulators further that of the next
        column is. ConstraintError where threads do not hold pairs of neighbouring columns."""
        step, columns = 1, 0 if self.transposed else 1
        layout = self.coordinates.layout
        for extent, stride in zip(cute.flatten(layout.shape), cute.flatten(layout.stride), strict=True):
            if stride != 0 and stride.mode[0] == columns and stride.value == 1 and extent % 2 == 0:
                return [i for i in range(cute.size(layout)) if i // step % 2 == 0], step
            step *= extent
        raise ConstraintError(
            "pairs of neighbouring columns are wanted, and this kernel's threads hold other ones: take a kernel that "
            "does not compute the transposed product"
        )

    @cute.jit
    def write_pairs(self, matrix: Any, values: Any, first: Constexpr) -> None:
        """``matrix[m, n // 2] = values``, a fragment with an element for each accumulator in ``first``, of column n; in
        vectors where the lanes of a quad can exchange them: all lanes of a warp call it."""
        stored = cute.make_rmem_tensor(values.shape, matrix.element_type)
        stored.store(values.load().to(matrix.element_type))
        exchanges = vectors_of_quads(self, matrix, first)
        if const_expr(exchanges is not None):
            store_vectors(self, matrix, stored, first, exchanges)
        else:
            for i in range_constexpr(len(first)):
                at = self.coordinates[first[i]]
                if cute.elem_less(at, self.extent):
                    m, n = self.of_user(at)
                    matrix[m, n // 2] = stored[i]

    def of_user(self, at: tuple[Any, Any]) -> tuple[Any, Any]:
        """The user's (m, n) of a coordinate of the kernel's."""
        return (at[1], at[0]) if self.transposed else (at[0], at[1])

    def first(self, mode: int) -> Any:
        """The smallest coordinate ``mode`` of the thread's accumulators, or the matrix's last if that is smaller."""
        at = self.coordinates[0][mode]
        return at if self.inside else cute.min(at, self.extent[mode] - 1)

    def groups(self, mode: int, group: int) -> int:
        """The number of groups of ``group`` lines along ``mode`` in which the thread's accumulators are."""
        return max(self.offsets(mode)) // group + 1

    def fetch(self, vectors: Iterable[tuple[Any, int]]) -> None:
        """Load what :meth:`row` (1) and :meth:`column` (0) will be asked for: (vector, 0 or 1). The loads take as long
        as a part of an epilogue, so they are issued one part earlier."""
        for vector, kind in vectors:
            mode = self._mode(kind)
            self.ahead[id(vector), mode] = self.elements(vector, mode)

    def has(self, vector: Any, kind: int) -> bool:
        """Whether :meth:`fetch` need not load a vector."""
        return (id(vector), self._mode(kind)) in self.ahead

    def _mode(self, kind: int) -> int:
        """The kernel's mode that follows the user's rows (0) or columns (1)."""
        return 1 - kind if self.transposed else kind

    def _along(self, vector: Any, mode: int) -> Any:
        found = self.ahead.get((id(vector), mode))
        return self.repeated(self.elements(vector, mode) if found is None else found, mode)

    @cute.jit
    def elements(self, vector: Any, mode: int) -> Any:
        """The elements of ``vector`` at coordinate ``mode`` of the accumulators, each once, in registers; zero outside
        the matrix.

        A register mode that does not step along ``mode`` repeats the same elements: each is loaded once.
        """
        once = self._once(mode)
        loaded = cute.make_rmem_tensor(once, vector.element_type)
        loaded.fill(0)
        flat = cute.make_tensor(self.coordinates.iterator, cute.flatten(self.coordinates.layout))
        for i in range_constexpr(cute.size(loaded)):
            at = flat[cute.idx2crd(i, once)][mode]
            if self._has(at, mode):
                loaded[i] = vector[at]
        return loaded

    def _has(self, at: Any, mode: int) -> Any:
        """Whether the matrix has a coordinate ``mode`` of ``at``."""
        return True if self.inside else at < self.extent[mode]

    def offsets(self, mode: int) -> list[int]:
        """How far the elements of :meth:`elements` are from the first one."""
        once, layout = self._once(mode), self.coordinates.layout
        flat = cute.make_layout(cute.flatten(layout.shape), stride=cute.flatten(layout.stride))
        return [flat(cute.idx2crd(i, once))[mode] for i in range(cute.size(once))]

    def distinct(self, kind: int) -> list[int]:
        """For each accumulator, the number of its row (0) or column (1) among those that the thread has; rows and
        columns are numbered as they come first."""
        mode, layout = self._mode(kind), self.coordinates.layout
        flat = cute.make_layout(cute.flatten(layout.shape), stride=cute.flatten(layout.stride))
        places = [flat(i)[mode] for i in range(cute.size(layout))]
        numbers = {place: number for number, place in enumerate(dict.fromkeys(places))}
        return [numbers[place] for place in places]

    def repeated(self, elements: Any, mode: int, group: int = 1) -> Any:
        """``elements``, one for each ``group`` lines along ``mode`` in which the thread has accumulators, for each
        accumulator, as a TensorSSA."""
        layout, shape, strides, step = self.coordinates.layout, [], [], 1
        extents = cute.flatten(layout.shape)
        for extent, stride, moves in zip(extents, cute.flatten(layout.stride), _steps(layout, mode), strict=True):
            inside = min(extent, -(-group // stride.value)) if moves else extent
            shape += [inside, extent // inside]
            strides += [0, step if moves and extent > inside else 0]
            step *= extent // inside if moves else 1
        repeated = cute.make_layout(tuple(shape), stride=tuple(strides))
        return cute.make_tensor(elements.iterator, repeated).load().reshape(self.coordinates.shape)

    def _once(self, mode: int) -> tuple[int, ...]:
        """The register modes of the accumulators; 1 in place of those that do not step along ``mode``."""
        moves = _steps(self.coordinates.layout, mode)
        shape = cute.flatten(self.coordinates.shape)
        return tuple(extent if moves[i] else 1 for i, extent in enumerate(shape))


def no_source() -> Any:
    """In place of C before a tile's sums are complete."""
    raise ConstraintError("C belongs to the complete sums of a tile, not to those of one k tile")


def _steps(layout: Any, mode: int) -> list[bool]:
    """For each flat mode of a coordinate layout: whether it changes coordinate ``mode``. A stride is a plain 0 where
    the extent is 1, else a basis such as ``8@1``: 8 along mode 1."""
    return [stride != 0 and stride.mode[0] == mode for stride in cute.flatten(layout.stride)]
