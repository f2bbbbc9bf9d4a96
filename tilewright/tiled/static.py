"""Objects that are the same for all threads and launches: atoms."""

from __future__ import annotations

from typing import Any


class Static:
    """What the language needs of objects that carry no run-time values into kernels and through control flow."""

    __carry_immutable__ = True
    """Control flow need not look into them: nothing in them changes while a kernel is staged."""

    def __extract_mlir_values__(self) -> list[Any]:
        return []

    def __get_mlir_types__(self) -> list[Any]:
        return []

    def __c_pointers__(self) -> list[Any]:
        return []

    def __new_from_mlir_values__(self, values: list[Any]) -> Any:
        return self
