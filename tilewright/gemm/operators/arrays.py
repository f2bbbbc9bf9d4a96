"""Arrays of any framework as the stacks of matrices that kernels take, and results as arrays of the framework."""

from __future__ import annotations

import sys
from math import prod
from typing import Any, NamedTuple

import numpy as np

from tilewright.errors import ArgumentError
from tilewright.gemm.access import VECTOR
from tilewright.gemm.arrays import Matrix
from tilewright.gemm.host.problem import Problem, check_vector
from tilewright.lang.arguments.arrays import NESTED, array_of, is_array, is_nested


class Operands(NamedTuple):
    """``a`` (M, K) or (L, M, K) and ``b`` (K, N) or (L, K, N); ``shape`` is what the result looks like to the user,
    ``stack`` what it looks like to a kernel."""

    a: Any
    b: Any
    shape: tuple[int, ...]
    stack: tuple[int, ...]


def namespace(array: Any) -> Any:
    """The module with the array's framework's functions: torch, numpy, cupy or jax.numpy."""
    name = type(array).__module__.partition(".")[0]
    if name in ("jax", "jaxlib"):
        return sys.modules["jax.numpy"]
    return sys.modules[name] if name in ("torch", "cupy") else np


def framework(array: Any, name: str = "") -> str:
    """``torch``, ``numpy``, ``cupy`` or ``jax``; for anything that is not an array an ArgumentError, which has the
    operand's ``name``."""
    module = type(array).__module__.partition(".")[0]
    if module == "torch" and is_nested(array):
        raise ArgumentError(f"{name or 'an operand'} is {NESTED}, or a stack to grouped_matmul")
    if module in ("torch", "cupy") and hasattr(array, "shape"):  # others of their objects are a dtype, a device
        return module
    if module in ("jax", "jaxlib"):
        return "jax"
    if not is_array(array):
        what = f"{type(array).__module__}.{type(array).__qualname__}"
        raise ArgumentError(f"{name or 'an operand'} is {what}, not an array of PyTorch, NumPy, CuPy or JAX")
    return "numpy"


def one_framework(needed: dict[str, Any], others: dict[str, Any]) -> str:
    """The framework of all arrays, by their names; ``others`` may be None. ArgumentError for several."""
    names = [*needed, *(name for name, x in others.items() if x is not None)]
    first, *more = [framework((needed | others)[name], name) for name in names]
    for name, other in zip(names[1:], more, strict=True):
        if other != first:
            raise ArgumentError(f"{names[0]} is an array of {first}, {name} of {other}: give all of one framework")
    return first


def is_traced(*arrays: Any) -> bool:
    """Whether JAX traces one of the arrays: those are known when XLA runs the program."""
    jax = sys.modules.get("jax")
    return jax is not None and any(isinstance(x, jax.core.Tracer) for x in arrays)


def as_numpy(name: str, x: Any) -> Any:
    """A JAX array's elements, for what is made of them once; ArgumentError for a tracer, which has none yet."""
    if is_traced(x):
        raise ArgumentError(f"{name} is traced by JAX: arrange the weight once, outside of jax.jit")
    return np.ascontiguousarray(np.asarray(x))


def as_jax(like: Any, *arrays: Any) -> list[Any]:
    """NumPy arrays on the device of a JAX array; None stays."""
    put = sys.modules["jax"].device_put
    return [None if x is None else put(x, like.sharding) for x in arrays]


def operands(a: Any, b: Any) -> Operands:
    """``a`` and ``b`` as matrices or stacks of them, by the rules of torch.matmul and numpy.matmul.

    A vector counts as a row of ``a`` or a column of ``b``, which the result does not have; leading dimensions are
    broadcast. With a single matrix ``b`` the rows of all matrices of ``a`` become one matrix.
    """
    ranks = {name: len(x.shape) for name, x in (("a", a), ("b", b))}
    for name, rank in ranks.items():
        if rank == 0:
            raise ArgumentError(f"{name} is a number: matmul takes vectors, matrices and stacks of them")
    if ranks == {"a": 2, "b": 2}:
        check_inner(a, b, a.shape[1], b.shape[0])
        shape = (int(a.shape[0]), int(b.shape[1]))
        return Operands(a, b, shape, shape)
    matrix_a = a[None, :] if ranks["a"] == 1 else a
    matrix_b = b[:, None] if ranks["b"] == 1 else b
    (*batch_a, m, k), (*batch_b, k_b, n) = map(tuple, (matrix_a.shape, matrix_b.shape))
    check_inner(a, b, k, k_b)
    try:
        batch = np.broadcast_shapes(tuple(batch_a), tuple(batch_b))
    except ValueError:
        raise ArgumentError(
            f"the leading dimensions of a and b, {tuple(batch_a)} and {tuple(batch_b)}, cannot be broadcast"
        ) from None
    rows = () if ranks["a"] == 1 else (m,)
    shape = (*batch, *rows, *(() if ranks["b"] == 1 else (n,)))
    if not batch_b:
        tall = prod(batch) * m
        return Operands(matrix_a.reshape((tall, k)), matrix_b, shape, (tall, n))
    return Operands(stack_of(matrix_a, batch), stack_of(matrix_b, batch), shape, (prod(batch), m, n))


def check_inner(a: Any, b: Any, k_a: int, k_b: int) -> None:
    if k_a != k_b:
        raise ArgumentError(
            f"inner dimensions differ: a of shape {tuple(a.shape)} has {k_a}, b of shape {tuple(b.shape)} has {k_b}"
        )


def stack_of(x: Any, batch: tuple[int, ...]) -> Any:
    """The matrices ``x`` repeated over ``batch``, as one stack: a view where strides allow it."""
    *_, rows, columns = x.shape
    broadcast = namespace(x).broadcast_to(x, (*batch, rows, columns))
    return broadcast if len(batch) == 1 else broadcast.reshape((prod(batch), rows, columns))


def view_of(x: Any, shape: tuple[int, ...]) -> Any | None:
    """``x`` in another shape without a copy; None where its strides do not allow that."""
    if tuple(x.shape) == shape:
        return x
    if framework(x) == "torch":
        try:
            return x.view(shape)
        except RuntimeError:
            return None
    seen = x.reshape(shape)
    return seen if namespace(x).may_share_memory(seen, x) else None


def new_result(like: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """An array for the result on the device of ``like``, of the numeric class ``dtype``."""
    kind = framework(like)
    if kind == "torch":
        return like.new_empty(shape, dtype=dtype.torch_dtype)
    if kind == "jax":
        # It must not be written later than by the kernel.
        return sys.modules["jax.numpy"].zeros(shape, dtype.dtype, device=like.device).block_until_ready()
    if hasattr(like, "new_buffer"):  # memory of XLA's
        return like.new_buffer(shape, dtype)
    return namespace(like).empty(shape, dtype.dtype)


def row_major_copy(x: Any) -> Any:
    """A copy with its rows one after the other, that begins where memory of its own does: ``contiguous()`` of PyTorch
    is no copy of a contiguous tensor, wherever it begins."""
    if framework(x) == "torch":
        return x.clone(memory_format=sys.modules["torch"].contiguous_format)
    return x.copy(order="C")


def unwritten_result(like: Any, shape: tuple[int, ...], dtype: Any) -> Matrix:
    """In place of a result that no kernel writes or reads: of its shape, with rows 16 bytes apart, as kernels take
    nothing but its extents."""
    step = VECTOR // dtype.bytes
    m, n = shape
    memory = new_result(like, (step * m + n,), dtype)
    if framework(like) == "torch":
        return Unwritten.of("out", memory.as_strided(shape, (step, 1)))
    strided = namespace(like).lib.stride_tricks.as_strided  # of integers, as it does not know ml_dtypes' e5m2
    numbers = strided(memory.view(f"u{dtype.bytes}"), shape, (step * dtype.bytes, dtype.bytes))
    return Unwritten.of("out", numbers.view(dtype.dtype))


class Unwritten(Matrix):
    """A matrix whose elements no kernel writes: that rows share memory does not matter."""

    def overlaps_itself(self) -> bool:
        return False


class Unseen:
    """The memory of a new JAX array, to be written once: JAX arrays do not change when others have seen them."""

    def __init__(self, array: Any) -> None:
        self.array, self.shape, self.dtype = array, tuple(array.shape), array.dtype
        interface = getattr(array, "__cuda_array_interface__", None)
        name = "__array_interface__" if interface is None else "__cuda_array_interface__"
        described = np.asarray(array).__array_interface__ if interface is None else interface
        setattr(self, name, {**described, "data": (described["data"][0], False)})
        self.device = getattr(array, "device", None)


def check_given_result(D: Matrix, shape: tuple[int, ...], out_dtype: Any) -> None:
    """ArgumentError for an ``out`` of another shape than the result's, or of another type than ``out_dtype``."""
    if tuple(D.source.shape) != shape:
        raise ArgumentError(f"out must have the shape of the result, {shape}, not {tuple(D.source.shape)}")
    if out_dtype is not None and D.dtype is not out_dtype:
        raise ArgumentError(f"out is {D.dtype}, and out_dtype {out_dtype}: give one of them")


def contiguous_bias(bias: Any, problem: Problem) -> Any:
    """The bias of a product, checked, with its elements one after the other."""
    array = array_of(bias)
    if array.shape != (problem.shape[1],):
        raise ArgumentError(
            f"bias must be a vector of {problem.shape[1]} elements, one for each column of the result, not of "
            f"shape {tuple(array.shape)}"
        )
    if array.device != problem.D.device:
        raise ArgumentError(f"bias is on {array.device}, the matrices on {problem.D.device}")
    check_vector("bias", array, problem)
    if array.stride == (1,) or array.shape == (1,):
        return bias
    return bias.contiguous() if framework(bias) == "torch" else bias.copy()
