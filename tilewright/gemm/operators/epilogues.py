"""``matmul``'s ``epilogue``: functions whose fields are arrays of a framework, as kernels take them.

Kernels read an epilogue function's fields in their order, and the functions here list them in the same order: the
arrays of a launch that is repeated are the arrays of the fields.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass, replace
from math import prod
from typing import Any

from tilewright.errors import ArgumentError
from tilewright.gemm.access import VECTOR
from tilewright.gemm.arrays import dynamic
from tilewright.gemm.epilogue.activations import (
    ACTIVATIONS,
    Activation,
    ActivationGradient,
    Gated,
    activation_of,
    check_activation,
)
from tilewright.gemm.epilogue.dropout import Dropout
from tilewright.gemm.epilogue.functions import EpilogueFunction, Residual, parts_of
from tilewright.gemm.host.epilogue_state import states_of
from tilewright.gemm.host.scales import check_scale
from tilewright.gemm.operators.arrays import framework, view_of
from tilewright.gemm.tuning.stand_in import numeric_class
from tilewright.lang.arguments.arrays import array_of, is_array
from tilewright.lang.arguments.dlpack import HostTensor, from_dlpack
from tilewright.lang.numbers.numeric import Float32, Float64, Int32, Numeric
from tilewright.lang.staging.objects import StaticKey

MOST_ARRAYS = 12
"""Arrays of all functions together."""


def functions_of(epilogue: Any) -> tuple[Any, ...]:
    """The functions that ``epilogue`` applies, one after the other; ArgumentError for what is no such function."""
    listed = epilogue if isinstance(epilogue, (tuple, list)) else (epilogue,)
    functions = tuple(part for one in listed for part in parts_of(one))
    for part in functions:
        if isinstance(part, type) or not callable(part) or not is_dataclass(part):
            raise ArgumentError(
                f"epilogue: a function is an object of a dataclass that is called with (accumulators, tile), or a "
                f"sequence of them; {part!r} is not"
            )
        for field in fields(part):
            if isinstance(getattr(part, field.name), HostTensor):
                raise ArgumentError(
                    f"epilogue: {field.name} of {type(part).__name__} is a tensor of from_dlpack: give the array itself"
                )
        targets = [(x,) for x in getattr(part, "targets", ())]
        for x, *_ in (*getattr(part, "vectors", ()), *getattr(part, "matrices", ()), *targets):
            if not is_array(x):
                raise ArgumentError(f"epilogue: {type(part).__name__} takes an array, not {x!r}")
    if any(hasattr(part, "weights") for part in functions):
        raise ArgumentError("epilogue: scales of blocks change along K: scaled_matmul takes them")
    if len(arrays_of(functions)) > MOST_ARRAYS:
        raise ArgumentError(f"epilogue: the functions have more than {MOST_ARRAYS} arrays together")
    return functions


def source_apart(
    a: Any, c: Any, beta: float, activation: str | None, epilogue: Any, out: Any, out_dtype: Any
) -> tuple[Any, float, str | None, Any]:
    """c, beta, activation and epilogue of a call: a c of another type than the result's is read by a function of the
    epilogue, behind which the activation is another one."""
    check_scale("beta", beta)
    if beta == 0:
        return c, beta, activation, epilogue
    for name, x in {"a": a, "c": c, "out": c if out is None else out}.items():
        framework(x, name)
    kinds = [numeric_class(x) for x in (c.dtype, out.dtype if out_dtype is None else out_dtype, a.dtype)]
    if kinds[0] is kinds[1]:
        return c, beta, activation, epilogue
    wide = Float64 if kinds[2] is Float64 else Int32 if kinds[2].is_integer else Float32
    if not wide.is_same_kind(kinds[0]) or kinds[0].width > wide.width:
        raise ArgumentError(f"c is {kinds[0]}, which is not added to sums of {wide}: convert it before")
    behind = () if activation is None else (Activation(activation),)
    return None, 0.0, None, (Residual(c, wide(beta)), *behind, *(() if epilogue is None else functions_of(epilogue)))


def in_place_of_result(functions: tuple[Any, ...], out: Any) -> Any:
    """The matrix that a product gives in the place of its result, which is not written; None where it is. ArgumentError
    for an ``out``, or functions whose effect would be on the result alone."""
    last = next((i for i, part in enumerate(functions) if not getattr(part, "stores_result", True)), None)
    if last is None:
        return None
    part = functions[last]
    if out is not None or last + 1 < len(functions):
        what = "out" if out is not None else type(functions[last + 1]).__name__
        raise ArgumentError(
            f"epilogue: {type(part).__name__} leaves the result unwritten here, and {what} is given: leave it out, or "
            "let the result be stored (store_preact of Gated, store_result of ScatterAdd)"
        )
    written = [matrix for matrix, is_written, *_ in getattr(part, "matrices", ()) if is_written]
    for matrix in (*written, *getattr(part, "targets", ())):
        return matrix
    raise ArgumentError(f"epilogue: {type(part).__name__} leaves the result unwritten, and writes no matrix itself")


def arrays_of(functions: tuple[Any, ...]) -> list[Any]:
    """The arrays in the fields of the functions, in order."""
    values = (getattr(part, field.name) for part in functions for field in fields(part))
    return [value for value in values if is_array(value)]


def key_of(functions: tuple[Any, ...], torch_key: Callable[..., Any]) -> tuple[Any, ...]:
    """The part of the functions in the key of a launch: everything but the addresses of their PyTorch tensors."""
    parts = [(type(part), *(value_key(getattr(part, x.name), torch_key) for x in fields(part))) for part in functions]
    return *parts, states_of(functions)


def dtype_key(array: Any) -> Any:
    """In the place of ``torch_key`` where the arrays' geometry is among those of a call's tensors."""
    return array.dtype


def value_key(value: Any, torch_key: Callable[..., Any]) -> Any:
    if is_array(value):
        return torch_key(value)
    if isinstance(value, Numeric):
        return type(value), repr(value.value)  # 0.0 and -0.0 are two numbers
    return StaticKey(value)


def seen_as_matrices(functions: tuple[Any, ...]) -> list[Any]:
    """The arrays as kernels take them: the rows of stacks as those of one matrix, as the product has them."""
    matrices = []
    whole = {id(x) for part in functions if getattr(part, "keeps_modes", False) for x in arrays_of((part,))}
    for x in arrays_of(functions):
        view = view_of(x, (prod(x.shape[:-1]), x.shape[-1])) if len(x.shape) > 2 and id(x) not in whole else x
        if view is None:
            raise ArgumentError(
                f"epilogue: an array of shape {tuple(x.shape)} is laid out so that its rows are not those of a matrix"
            )
        matrices.append(view)
    return matrices


def lowered(functions: tuple[Any, ...], arrays: Sequence[Any], acc_dtype: Any, result: Any) -> list[Any]:
    """The functions with the ``arrays`` of :func:`seen_as_matrices` as tensors, for sums of ``acc_dtype`` that become
    numbers of ``result``."""
    remaining = iter(arrays)
    made = []
    for part in functions:
        if isinstance(part, (Activation, ActivationGradient, Gated)):
            check_activation(part.name, acc_dtype)
        if isinstance(part, (Activation, Gated)):
            part = replace(part, quick=activation_of(part.name, acc_dtype, result).quick)
        names = [field.name for field in fields(part) if is_array(getattr(part, field.name))]
        made.append(replace(part, **{name: tensor_of(next(remaining)) for name in names}))
    return made


def tensor_of(array: Any) -> Any:
    """A tensor of run-time extents; of one number, a static one, which ``Scales`` takes for all rows or columns. Rows
    that are whole vectors, one after the other, are said to be: kernels can store them by TMA."""
    tensor = from_dlpack(array)
    if prod(array.shape) == 1:
        return tensor
    described = array_of(array)
    vector = VECTOR // described.dtype.bytes
    if len(described.shape) == 2 and described.stride == (described.shape[1], 1) and not described.shape[1] % vector:
        if described.address % VECTOR == 0 and described.shape[0] > 1:
            aligned = from_dlpack(array, assumed_align=VECTOR)
            return aligned.mark_compact_shape_dynamic(0).mark_compact_shape_dynamic(1, divisibility=vector)
    return dynamic(tensor)


def is_long(functions: tuple[Any, ...], result: Any) -> bool:
    """Whether one of the functions has many instructions for each element of type ``result``."""
    for part in functions:
        if isinstance(part, Dropout):
            return True
        row = ACTIVATIONS.get(getattr(part, "name", ""))
        if isinstance(part, (Activation, Gated)) and row is not None and row.is_long(result):
            return True
        if isinstance(part, ActivationGradient) and row is not None and row.long:
            return True
    return False


def written_numbers(function: EpilogueFunction) -> tuple[int, ...]:
    """Which of the arrays of a lowered function are written: their numbers in the order of the fields."""
    parts = parts_of(function)
    tensors = [value for part in parts for x in fields(part) if isinstance(value := getattr(part, x.name), HostTensor)]
    written = [id(x) for part in parts for x, is_written, *_ in getattr(part, "matrices", ()) if is_written]
    written += [id(x) for part in parts for x in getattr(part, "targets", ())]
    return tuple(i for i, tensor in enumerate(tensors) if id(tensor) in written)
