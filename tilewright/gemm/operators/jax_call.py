"""Products as operations of JAX: XLA calls the library through the foreign function of ``tilewright.jax.ffi``, with the
addresses of buffers and its own stream. An :class:`Operation` is all that a product says of itself; ``jax_op`` has
matmul's, ``jax_products`` the others'."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np

from tilewright.errors import ArgumentError
from tilewright.gemm.epilogue.activations import ACTIVATIONS
from tilewright.jax import ffi
from tilewright.lang.arguments.arrays import array_of
from tilewright.lang.launch.machine import machine_of
from tilewright.lang.numbers.dtypes import numeric_of_dtype

_numbers: dict[Any, int] = {}
jnp = jax.numpy
JAX_ACTIVATIONS = {
    "relu": jax.nn.relu,
    "squared_relu": lambda x: jnp.square(jax.nn.relu(x)),
    "sigmoid": jax.nn.sigmoid,
    "gelu": partial(jax.nn.gelu, approximate=False),
    "gelu_tanh": partial(jax.nn.gelu, approximate=True),
    "silu": jax.nn.silu,
    "tanh": jnp.tanh,
}
assert JAX_ACTIVATIONS.keys() == ACTIVATIONS.keys()


class DeviceBuffer:
    """Memory of XLA's on a GPU as the library reads it: with the methods of an array that move no element."""

    def __init__(
        self,
        address: int,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        strides: tuple[int, ...] | None = None,
        owner: Any = None,
    ) -> None:
        """``strides`` are bytes; None: rows follow each other. ``owner`` keeps memory that is not XLA's."""
        self.address, self.shape, self.dtype, self.owner = address, shape, dtype, owner
        self.device = SimpleNamespace(id=ffi.current_gpu())
        self.strides = row_major_strides(shape, dtype) if strides is None else strides
        self.__cuda_array_interface__ = {
            "shape": shape,
            "typestr": dtype.str,
            "data": (address, False),
            "strides": strides,
            "version": 3,
        }

    def reshape(self, *shape: Any) -> DeviceBuffer:
        extents = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple) else shape
        stated = -prod(extents)
        extents = tuple(prod(self.shape) // stated if n == -1 else int(n) for n in extents)
        if self.strides != row_major_strides(self.shape, self.dtype) or prod(extents) != prod(self.shape):
            raise ArgumentError(f"a buffer of shape {self.shape} and strides {self.strides} has no view {extents}")
        return DeviceBuffer(self.address, extents, self.dtype, owner=self.owner)

    def transpose(self, *order: int) -> DeviceBuffer:
        order = order or tuple(reversed(range(len(self.shape))))
        shape, strides = (tuple(x[i] for i in order) for x in (self.shape, self.strides))
        return DeviceBuffer(self.address, shape, self.dtype, strides, self.owner)

    @property
    def T(self) -> DeviceBuffer:
        return self.transpose()

    def swapaxes(self, i: int, j: int) -> DeviceBuffer:
        order = list(range(len(self.shape)))
        order[i], order[j] = order[j], order[i]
        return self.transpose(*order)

    def view(self, dtype: Any) -> DeviceBuffer:
        """The bytes of contiguous rows as elements of another dtype."""
        kind, (*others, last) = np.dtype(dtype), self.shape
        if self.strides != row_major_strides(self.shape, self.dtype) or last * self.dtype.itemsize % kind.itemsize:
            raise ArgumentError(f"a buffer of shape {self.shape}, strides {self.strides} has no view of {kind}")
        shape = *others, last * self.dtype.itemsize // kind.itemsize
        return DeviceBuffer(self.address, shape, kind, owner=self.owner)

    def new_buffer(self, shape: tuple[int, ...], dtype: Any) -> DeviceBuffer:
        """Other memory of the device, of the numeric class ``dtype``."""
        target: Any = machine_of("cuda")
        memory = target.zeros(prod(shape), dtype.dtype, f"cuda:{self.device.id}")
        return DeviceBuffer(array_of(memory).address, shape, np.dtype(dtype.dtype), owner=memory)

    def __getitem__(self, first: slice) -> DeviceBuffer:
        """The first elements of a vector."""
        return DeviceBuffer(self.address, (first.stop,), self.dtype)


def row_major_strides(shape: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[int, ...]:
    return tuple(prod(shape[i + 1 :]) * dtype.itemsize for i in range(len(shape)))


def array_over(buffer: ffi.Buffer, on_gpu: bool) -> Any:
    """A row-major array in the memory of a buffer."""
    dtype = np.dtype(numeric_of_dtype(buffer.dtype).dtype)
    if on_gpu:
        return DeviceBuffer(buffer.address, buffer.shape, dtype)
    size = int(np.prod(buffer.shape)) * dtype.itemsize
    memory = (ctypes.c_uint8 * size).from_address(buffer.address) if size else bytearray()
    return np.ndarray(buffer.shape, dtype, memory)


def called(execute: Callable[..., None], options: Any, operands: dict[str, Any], shape: Any, dtype: Any) -> Any:
    """The result, of this shape and dtype, of ``execute(options, arrays, stream)``, which XLA calls: ``arrays`` are
    those of ``operands`` that are not None, by name, and ``out``; ``stream`` is XLA's, None in the simulator. Calls of
    equal ``options`` are one for XLA."""
    ffi.register()
    names = tuple(name for name, x in operands.items() if x is not None)

    def run(inputs: Any, outputs: Any, stream: int | None) -> None:
        arrays = [array_over(x, stream is not None) for x in (*inputs, *outputs)]
        execute(options, dict(zip((*names, "out"), arrays, strict=True)), stream)

    number = _numbers.setdefault((execute, options, names), len(_numbers))
    key = -1 - number  # the numbers of ``cutlass_call`` are positive
    ffi.CALLS[key] = run
    result = jax.ShapeDtypeStruct(shape, dtype.dtype)
    return jax.ffi.ffi_call(ffi.TARGET, result, vmap_method="sequential")(
        *(operands[name] for name in names), call=np.int64(key)
    )


# -- operations --------------------------------------------------------------------------------------------------------

Arrays = dict[str, Any]
"""The arrays of a call, by name; those that are not given are left out."""


@dataclass(frozen=True)
class Operation:
    """A product as an operation of JAX. ``options`` of a call are what JAX knows while it traces: an object that can be
    hashed. If it has an ``activation``, a dataclass, and gradients are wanted, JAX applies that to the sums."""

    result: Callable[[Any, Arrays], tuple[tuple[int, ...], Any]]
    """(options, arrays) to the result's shape and numeric class; ArgumentError for what does not go together."""
    execute: Callable[[Any, Arrays, int | None], None]
    """(options, arrays with ``out``, XLA's stream) computes the result."""
    gradients: Callable[[Any, Arrays, Any], Arrays] | None = None
    """(options, arrays, the gradient of the result) to the gradients of arrays by name; None: the product has none."""
    handed: Callable[[Arrays], Arrays] = dict
    """The arrays as XLA hands them to ``execute``, where kernels want others than rows one after the other."""
    is_zero: Callable[[Arrays], bool] = lambda given: False
    """Whether the result is zeros, for which no kernel runs."""

    def __call__(self, options: Any, **arrays: Any) -> Any:
        given = {name: x for name, x in arrays.items() if x is not None}
        return self.run(options, given) if self.gradients is None else differentiable(self, options, given)

    def run(self, options: Any, given: Arrays) -> Any:
        shape, dtype = self.result(options, given)
        if self.is_zero(given):
            return jnp.zeros(shape, dtype.dtype)
        return called(self.execute, options, self.handed(given), shape, dtype)


@partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def differentiable(operation: Operation, options: Any, given: Arrays) -> Any:
    """A call of an operation that has gradients."""
    return operation.run(options, given)


def forward(operation: Operation, options: Any, given: Arrays) -> tuple[Any, Any]:
    """The gradient of an activation wants what came before it."""
    activation = getattr(options, "activation", None)
    if activation is None:
        return operation.run(options, given), (given, None)
    sums = operation.run(replace(options, activation=None), given)
    return JAX_ACTIVATIONS[activation](sums), (given, sums)


def backward(operation: Operation, options: Any, kept: Any, grad: Any) -> tuple[Arrays]:
    given, sums = kept
    if sums is not None:
        (grad,) = jax.vjp(JAX_ACTIVATIONS[options.activation], sums)[1](grad)
    assert operation.gradients is not None
    by_name = operation.gradients(options, given, grad)
    return ({name: by_name.get(name) for name in given},)


differentiable.defvjp(forward, backward)


def transposed(x: Any) -> Any:
    """A matrix, or each one of a stack, transposed."""
    return x.swapaxes(-1, -2)
