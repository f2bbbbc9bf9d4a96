"""``cutlass.base_dsl.runtime.cuda``: results of the CUDA driver's bindings as Python's."""

from __future__ import annotations

from typing import Any

from tilewright._names import attach
from tilewright.errors import MachineError


def checkCudaErrors(result: tuple[Any, ...]) -> Any:
    """What a call of ``cuda.bindings`` gave besides its error code: nothing, one value or several.

    Raises MachineError (``DSLCudaRuntimeError``) where the code is not success.

    >>> checkCudaErrors((0, 5)), checkCudaErrors((0,)), checkCudaErrors((0, 1, 2))
    (5, None, (1, 2))
    """
    error, *rest = result
    if int(error):
        name = getattr(error, "name", None) or f"error {int(error)}"
        raise MachineError(f"the CUDA driver answers {name} (code {int(error)})")
    return None if not rest else rest[0] if len(rest) == 1 else tuple(rest)


attach(__name__)
