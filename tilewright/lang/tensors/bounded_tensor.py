"""Tensors with the position of each element in the tensor they are a part of: elements outside can be left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.ir.core import Value
from tilewright.ir.types import Type
from tilewright.lang.tensors.algebra import make_identity_tensor
from tilewright.lang.tensors.tensor import Tensor


class BoundedTensor(Tensor):
    """A tensor beside a coordinate tensor of the same shape: ``coords[i]`` is the coordinate of element ``i`` in the
    whole tensor, of shape ``extents``. Divisions, slices and tiles act on both."""

    __slots__ = ("coords", "extents")

    def __init__(self, engine: Any, linear: Any, coords: Tensor, extents: Any) -> None:
        super().__init__(engine, linear)
        self.coords, self.extents = coords, extents

    @staticmethod
    def of(tensor: Tensor) -> BoundedTensor:
        """The whole tensor."""
        return BoundedTensor(tensor.engine, tensor.linear, make_identity_tensor(tensor.shape), tensor.shape)

    def _beside(self, part: Tensor, coords: Any) -> BoundedTensor:
        return BoundedTensor(part.engine, part.linear, coords, self.extents)

    def with_layout(self, layout: Any, offset: Any = 0) -> Tensor:
        return Tensor(self.advanced(offset), layout)  # an arbitrary layout says nothing of coordinates

    def through(self, f: Callable[[Any], Any]) -> BoundedTensor:
        return self._beside(super().through(f), self.coords.through(f))

    def moved(
        self, f: Callable[[Any, Any], tuple[Any, Any]], coord: Any, note: Callable[[Any], Any] = lambda moved: moved
    ) -> BoundedTensor:
        # Nothing is noted: a tile may be outside, since copies of it stay inside.
        return self._beside(super().moved(f, coord), self.coords.moved(f, coord))

    def _slice(self, coord: Any) -> BoundedTensor:
        return self._beside(super()._slice(coord), self.coords._slice(coord))

    # -- control flow: both tensors are carried -------------------------------------------------------------------

    def __extract_mlir_values__(self) -> list[Value]:
        return [*super().__extract_mlir_values__(), *self.coords.__extract_mlir_values__()]

    def __new_from_mlir_values__(self, values: list[Value]) -> BoundedTensor:
        count = len(super().__get_mlir_types__())
        part = super().__new_from_mlir_values__(values[:count])
        return self._beside(part, self.coords.__new_from_mlir_values__(values[count:]))

    def __get_mlir_types__(self) -> list[Type]:
        return [*super().__get_mlir_types__(), *self.coords.__get_mlir_types__()]

    def __carry_key__(self) -> Any:
        return (super().__carry_key__(), self.coords.__carry_key__())

    def __carry_facts__(self) -> Any:
        return (super().__carry_facts__(), self.coords.__carry_facts__())

    def __carry_join__(self, other: Any) -> Tensor | None:
        return None
