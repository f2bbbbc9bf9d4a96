"""``combine_rows``: weighted sums of rows by index in a fixed order, the last step of a mixture of experts."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from functools import partial
from typing import Any

from tilewright import BFloat16, Float16, Float32, Int32
from tilewright.errors import ArgumentError
from tilewright.gemm.access import VECTOR, aligned_elements, contiguous
from tilewright.gemm.arrays import Matrix
from tilewright.gemm.config import Major
from tilewright.gemm.host.problem import check_output
from tilewright.gemm.host.recorded import decided
from tilewright.gemm.kernel.combine import combine
from tilewright.gemm.operators.arrays import check_given_result, new_result, one_framework
from tilewright.gemm.operators.forms import recorded_form
from tilewright.gemm.operators.mixed import run
from tilewright.gemm.operators.open_extents import Modes, Place, ranks
from tilewright.gemm.operators.repeated_call import is_torch, repeated_call
from tilewright.gemm.operators.torch_state import any_recorded, materialised
from tilewright.lang.arguments.arrays import array_of
from tilewright.lang.arguments.dlpack import from_dlpack
from tilewright.lang.numbers.dtypes import numeric_of_dtype

TYPES = (Float16, BFloat16, Float32)


def combine_rows(source: Any, places: Any, weights: Any, *, out: Any = None) -> Any:
    """out[t] = the sum over i of weights[t, i] * source[places[t, i]], in the order of i, in float32, rounded once.

    What the experts of a token give it: ``source`` has a row for each token and expert, sorted by expert, and
    ``places`` says which rows are a token's. Each launch gives the same bits, which atomic additions
    (``epilogue.scatter.ScatterAdd``) do not.

    Args:
        source: (M, N) of Float16, BFloat16 or Float32, rows contiguous: a PyTorch tensor, or a NumPy, CuPy
            or JAX array.
        places: (T, k) of int32, on the same device. Places below 0 or not below M are left out.
        weights: (T, k) of float32.
        out: (T, N) of the type of ``source``; made if it is None.

    PyTorch tensors have gradients with respect to ``source`` and ``weights``. Of JAX arrays it is an operation of JAX
    with the same gradients.

    Raises ArgumentError for operands that do not go together.

    >>> source, places = np.arange(8, dtype=np.float32).reshape(4, 2), np.array([[3, 0], [1, -1]], np.int32)
    >>> combine_rows(source, places, np.array([[1, 2], [3, 4]], np.float32)).tolist()
    [[6.0, 9.0], [6.0, 9.0]]
    """
    tensors = source, places, weights, out
    if not is_torch(source):
        return combined(*tensors)
    if any_recorded(sys.modules["torch"], source, weights, out):
        check_frameworks(*tensors)
        return recorded_form("torch_combine").recorded(*tensors)
    return repeated_call("combine_rows", tensors, out, (), partial(combined, *tensors), open_rows)


def open_rows(tensors: Sequence[Any]) -> Sequence[Modes]:
    """The tokens, and the rows of source."""
    source, places, _, _ = tensors
    return ((Place(1), Place(2), Place(3)), (Place(0),)) if ranks(source, places) == (2, 2) else ()


def check_frameworks(source: Any, places: Any, weights: Any, out: Any) -> str:
    """The framework of all arrays; ArgumentError for several."""
    return one_framework({"source": source, "places": places, "weights": weights}, {"out": out})


def combined(source: Any, places: Any, weights: Any, out: Any) -> Any:
    """:func:`combine_rows` at length: everything is checked."""
    if check_frameworks(source, places, weights, out) == "jax":
        if out is not None:
            raise ArgumentError("JAX arrays are immutable: call combine_rows without out, and use its result")
        return recorded_form("jax_products").COMBINATION(None, source=source, places=places, weights=weights)
    return launched(source, places, weights, out)


def combined_shape(source: Any, places: Any, weights: Any) -> tuple[int, int]:
    """The shape of the result, of arrays with shapes and dtypes; ArgumentError where they do not go together."""
    for name, x, dtype in (("places", places, Int32), ("weights", weights, Float32)):
        if len(x.shape) != 2 or numeric_of_dtype(x.dtype) is not dtype:
            raise ArgumentError(
                f"{name} is a (T, k) matrix of {dtype.__name__}, not {numeric_of_dtype(x.dtype).__name__} of shape "
                f"{tuple(x.shape)}"
            )
    if tuple(places.shape) != tuple(weights.shape):
        raise ArgumentError(f"places has the shape {tuple(places.shape)}, weights {tuple(weights.shape)}")
    if len(source.shape) != 2 or numeric_of_dtype(source.dtype) not in TYPES:
        known = ", ".join(x.__name__ for x in TYPES)
        raise ArgumentError(
            f"source is a matrix of {known}, not {numeric_of_dtype(source.dtype).__name__} of shape "
            f"{tuple(source.shape)}"
        )
    return int(places.shape[0]), int(source.shape[1])


def launched(source: Any, places: Any, weights: Any, out: Any, stream: int | None = None) -> Any:
    """The result, by a launch on ``stream`` or the current one; ``out`` is made if it is None."""
    shape = combined_shape(source, places, weights)
    S = Matrix.of("source", materialised(source))
    for name, x in (("places", places), ("weights", weights)):
        if array_of(x).device != S.device:
            raise ArgumentError(f"{name} is on {array_of(x).device}, source on {S.device}")
    if not contiguous(S, Major.K):
        raise ArgumentError(f"source is a matrix of numbers with contiguous rows, not of strides {S.stride[:2]}")
    result = new_result(source, shape, S.dtype) if out is None else out
    D = Matrix.of("out", result)
    check_given_result(D, shape, None)
    P, W = Matrix.of("places", places), Matrix.of("weights", weights)
    check_output(S, P, None, D, (*shape, 1))
    check_output(W, P, None, D, (*shape, 1))
    if D.dtype is not S.dtype or not contiguous(D, Major.K):
        raise ArgumentError(f"out is a matrix of {S.dtype.__name__} with contiguous rows, not {D.dtype}, {D.stride}")
    if 0 in result.shape:
        return result
    vector = math.gcd(*(aligned_elements(x, Major.K, True) for x in (S, D)), VECTOR // S.dtype.bytes)
    align = vector * S.dtype.bytes
    tensors = (
        from_dlpack(S.source, assumed_align=align),
        from_dlpack(places),
        from_dlpack(weights),
        from_dlpack(result, assumed_align=align),
    )
    dynamic = [x.mark_all_dynamic(contiguous=None) for x in tensors]
    decided(shape[0], lambda tokens: None)  # there is one kernel
    run(("combine", vector), combine, *dynamic, vector, stream=stream)
    return result
