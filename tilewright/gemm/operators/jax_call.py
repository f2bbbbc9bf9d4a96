"""Products as operations of JAX: XLA calls the library through the foreign function of ``tilewright.jax.ffi``, with the
addresses of buffers and its own stream."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import fields, replace
from math import prod
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np

from tilewright.errors import ArgumentError
from tilewright.gemm.host.universal import PreparedProblem
from tilewright.gemm.operators.arrays import operands
from tilewright.gemm.operators.matmul import Request
from tilewright.gemm.operators.mixed import MixedProduct, check_scale_of_rows, checked_types
from tilewright.gemm.operators.prepare_weight import PreparedWeight
from tilewright.gemm.operators.scaled import ScaledRequest, check_two_matrices
from tilewright.gemm.operators.sparse import SparseRequest, sparse_shape
from tilewright.jax import ffi
from tilewright.lang.arguments.arrays import array_of
from tilewright.lang.launch.machine import machine_of
from tilewright.lang.numbers.dtypes import numeric_of_dtype

_numbers: dict[Any, int] = {}

jax.tree_util.register_dataclass(PreparedWeight, ["words", "scales", "zeros"], [])


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
        wanted = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple) else shape
        known = -prod(wanted)
        wanted = tuple(prod(self.shape) // known if n == -1 else int(n) for n in wanted)
        if self.strides != row_major_strides(self.shape, self.dtype) or prod(wanted) != prod(self.shape):
            raise ArgumentError(f"a buffer of shape {self.shape} and strides {self.strides} has no view {wanted}")
        return DeviceBuffer(self.address, wanted, self.dtype, owner=self.owner)

    def transpose(self, *order: int) -> DeviceBuffer:
        order = order or tuple(reversed(range(len(self.shape))))
        shape, strides = (tuple(x[i] for i in order) for x in (self.shape, self.strides))
        return DeviceBuffer(self.address, shape, self.dtype, strides, self.owner)

    @property
    def T(self) -> DeviceBuffer:
        return self.transpose()

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


def called(execute: Callable[..., None], options: Any, given: dict[str, Any], shape: Any, dtype: Any) -> Any:
    """The result, of this shape and dtype, of ``execute(options, arrays, stream)``, which XLA calls: ``arrays`` are
    those of ``given`` that are not None, by name, and ``out``; ``stream`` is XLA's, None in the simulator. Calls of
    equal ``options`` are one for XLA."""
    ffi.register()
    names = tuple(name for name, x in given.items() if x is not None)

    def run(inputs: Any, outputs: Any, stream: int | None) -> None:
        arrays = [array_over(x, stream is not None) for x in (*inputs, *outputs)]
        execute(options, dict(zip((*names, "out"), arrays, strict=True)), stream)

    number = _numbers.setdefault((execute, options, names), len(_numbers))
    key = -1 - number  # the numbers of ``cutlass_call`` are positive
    ffi.CALLS[key] = run
    result = jax.ShapeDtypeStruct(shape, dtype.dtype)
    return jax.ffi.ffi_call(ffi.TARGET, result, vmap_method="sequential")(
        *(given[name] for name in names), call=np.int64(key)
    )


# -- products whose requests are those of matmul -----------------------------------------------------------------------


ARRAYS = ("a", "b", "c", "bias", "scale_a", "scale_b", "scale_result", "metadata")


def of_request(request: Request) -> Any:
    """:func:`scaled_matmul` or :func:`sparse_matmul` of JAX arrays and tracers."""
    request.given()
    if request.functions:
        raise ArgumentError("epilogue cannot be given with JAX arrays: apply the function to the result")
    if isinstance(request, ScaledRequest) and request.amax is not None:
        raise ArgumentError("JAX arrays are immutable: call scaled_matmul without amax")
    shape: tuple[int, ...]
    if isinstance(request, SparseRequest):
        shape = sparse_shape(request.a, request.b)
    else:
        check_two_matrices(request.a, request.b)
        shape = operands(request.a, request.b).shape
    entry = request.entries(numeric_of_dtype(request.a.dtype))[0]
    is_c = request.out_dtype is None and request.c is not None
    dtype = numeric_of_dtype(request.c.dtype) if is_c else request.result_dtype(entry)
    arrays: dict[str, Any] = {x.name: getattr(request, x.name) for x in fields(request) if x.name in ARRAYS}
    none: dict[str, Any] = dict.fromkeys(arrays)
    blank = replace(request, out_dtype=None, **none)
    turned = np.dtype(request.b.dtype).itemsize != 2  # kernels read B of 8 and 32 bits along K: XLA has rows only
    if turned:
        arrays["b"] = request.b.T
    return called(execute_request, (blank, turned), arrays, shape, dtype)


def execute_request(options: tuple[Request, bool], arrays: dict[str, Any], stream: int | None) -> None:
    blank, turned = options
    request = replace(blank, **arrays)
    if turned:
        request = replace(request, b=request.b.T)
    given = request.read()
    if not given.problem.is_empty:
        plan = request.plan(given.problem, given.entries)
        PreparedProblem(given.problem, given.function, plan).launch(stream)


# -- weights of 4 and 8 bits -------------------------------------------------------------------------------------------


def mixed(a: Any, weight: PreparedWeight, bias: Any, scale_a: Any, activation: str | None, out_dtype: Any) -> Any:
    """:func:`mixed_matmul` of JAX arrays and tracers."""
    n, k = weight.shape
    rows = numeric_of_dtype(a.dtype)
    dtype = checked_types(rows, tuple(a.shape), (n, k), None, out_dtype)
    if bias is not None and tuple(bias.shape) != (n,):
        raise ArgumentError(f"bias is a vector of {n} elements, not of shape {tuple(bias.shape)}")
    if scale_a is not None:
        check_scale_of_rows(tuple(scale_a.shape), tuple(a.shape[:-1]))
        if scale_a.dtype != np.float32:
            raise ArgumentError(f"scale_a is float32, not {scale_a.dtype}")
    arrays = {
        "scale_a": scale_a,
        "a": a,
        "words": weight.words,
        "scales": weight.scales,
        "zeros": weight.zeros,
        "bias": bias,
    }
    return called(execute_mixed, activation, arrays, (*a.shape[:-1], n), dtype)


def execute_mixed(activation: str | None, arrays: dict[str, Any], stream: int | None) -> None:
    a, out = arrays["a"], arrays["out"]
    weight = PreparedWeight(arrays["words"], arrays["scales"], arrays.get("zeros"))
    rows = prod(a.shape[:-1])
    if rows and out.shape[-1]:
        flat, made = a.reshape((rows, a.shape[-1])), out.reshape((rows, out.shape[-1]))
        scale = arrays["scale_a"].reshape(-1) if "scale_a" in arrays else None
        MixedProduct.of(flat, weight, arrays.get("bias"), made, activation, scale).run(stream)
