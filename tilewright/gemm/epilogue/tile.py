"""What an epilogue function may ask about the accumulators that it is given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tilewright import cute, range_constexpr


@dataclass(frozen=True)
class EpilogueTile:
    """One part of an output tile as the calling thread holds it.

    ``coordinates`` is the (m, n) of each accumulator, a coordinate tensor of the accumulators' shape; ``extent`` the
    (M, N) of the output. ``read_source`` brings C's elements of this part; it may synchronise the threads of the
    tile, so all of them ask for it or none. ``transposed``: the kernel computes the transposed product, whose rows are
    the user's columns.
    """

    coordinates: Any
    extent: tuple[Any, Any]
    read_source: Callable[[], Any]
    transposed: bool = False

    def source(self) -> Any:
        """C's elements, a TensorSSA of C's type; zero outside the matrix."""
        return self.read_source()

    def row(self, vector: Any) -> Any:
        """``vector[n]`` for each accumulator, a TensorSSA of the vector's type; zero outside the matrix."""
        return self._along(vector, 0 if self.transposed else 1)

    def column(self, vector: Any) -> Any:
        """``vector[m]`` for each accumulator, a TensorSSA of the vector's type; zero outside the matrix."""
        return self._along(vector, 1 if self.transposed else 0)

    @cute.jit
    def _along(self, vector: Any, mode: int) -> Any:
        """``vector`` at coordinate ``mode`` of each accumulator.

        A register mode that does not step along ``mode`` repeats the same elements: each is loaded once.
        """
        moves = _steps(self.coordinates.layout, mode)
        shape = cute.flatten(self.coordinates.shape)
        once = tuple(extent if moves[i] else 1 for i, extent in enumerate(shape))
        loaded = cute.make_rmem_tensor(once, vector.element_type)
        loaded.fill(0)
        flat = cute.make_tensor(self.coordinates.iterator, cute.flatten(self.coordinates.layout))
        for i in range_constexpr(cute.size(loaded)):
            at = flat[cute.idx2crd(i, once)][mode]
            if at < self.extent[mode]:
                loaded[i] = vector[at]
        strides = tuple(s if moves[i] else 0 for i, s in enumerate(_compact(once)))
        repeated = cute.make_layout(shape, stride=strides)
        return cute.make_tensor(loaded.iterator, repeated).load().reshape(self.coordinates.shape)


def _steps(layout: Any, mode: int) -> list[bool]:
    """For each flat mode of a coordinate layout: whether it changes coordinate ``mode``. A stride is a plain 0 where
    the extent is 1, else a basis such as ``8@1``: 8 along mode 1."""
    return [stride != 0 and stride.mode[0] == mode for stride in cute.flatten(layout.stride)]


def _compact(shape: tuple[int, ...]) -> list[int]:
    strides, step = [], 1
    for extent in shape:
        strides.append(step)
        step *= extent
    return strides
