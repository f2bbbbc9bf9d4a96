"""Arrays of the user's frameworks in one form: address, device, shape, strides in elements, numeric type, owner.

NumPy arrays (with ml_dtypes' bf16 and fp8) and PyTorch tensors are read directly, which is quicker than DLPack and
knows the types that DLPack does not; anything else comes through ``__cuda_array_interface__`` or a DLPack capsule.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tilewright.errors import ArgumentError
from tilewright.ir.types import BOOL, SCALARS
from tilewright.lang.numbers.dtypes import numeric_of_dtype
from tilewright.lang.numbers.facts import EXTENT_BOUND
from tilewright.lang.numbers.numeric import Float4E2M1FN, class_of
from tilewright.lang.tensors.pointer import element_bits, is_packed

SERVED = "_served_on_cuda"
"""An attribute of CPU tensors that the program treats as tensors of a simulated GPU."""


class Array(NamedTuple):
    """One array: ``address`` in bytes, ``stride`` in elements, ``device`` ``"cpu"`` or ``"cuda:N"``; ``readonly`` where
    its owner does not let it be written."""

    address: int
    device: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: Any
    owner: Any
    readonly: bool = False

    @property
    def bounds(self) -> tuple[int, int]:
        """``[low, high)``: the bytes that the elements take."""
        if 0 in self.shape:
            return self.address, self.address
        bits = element_bits(self.dtype)
        reach = [(n - 1) * d * bits for n, d in zip(self.shape, self.stride, strict=True)]
        low = self.address + sum(r for r in reach if r < 0) // 8
        return low, self.address - (-sum(r for r in reach if r > 0) - bits) // 8

    @property
    def on_cpu(self) -> bool:
        """Whether it is in the host's memory, also for the program: not where the CPU serves a CUDA device."""
        return self.device == "cpu" and self.owner is not None and not getattr(self.owner, SERVED, False)

    @property
    def is_wide(self) -> bool:
        """Whether offsets into the array need 64 bits."""
        return sum((n - 1) * abs(d) for n, d in zip(self.shape, self.stride, strict=True)) >= EXTENT_BOUND[32] - 1


def array_of(x: Any) -> Array:
    """Read ``x``; ArgumentError when it is not an array or has a type that kernels do not know."""
    kind = type(x)
    module = kind.__module__.partition(".")[0]
    if module == "torch" and hasattr(x, "data_ptr"):
        return _torch(x)
    if hasattr(x, "__cuda_array_interface__"):
        return _interface(x, x.__cuda_array_interface__, _cuda_device(x))
    if hasattr(x, "__array_interface__"):
        if hasattr(x, "mask") and hasattr(x, "filled"):
            raise ArgumentError("a masked array hides elements, which kernels would read: give .filled(...) or .data")
        return _interface(x, x.__array_interface__, "cpu")
    if hasattr(x, "__dlpack__"):
        return _capsule(x)
    raise ArgumentError(
        f"{kind.__module__}.{kind.__qualname__} is not an array: it has neither DLPack nor an array interface"
    )


def is_array(x: Any) -> bool:
    """Whether :func:`array_of` can read ``x``."""
    return any(hasattr(type(x), name) for name in ("__dlpack__", "__array_interface__", "__cuda_array_interface__"))


def array_behind(x: Any) -> Array | None:
    """The array that an argument is, or that a tensor of ``from_dlpack`` shows; None for one that a kernel has already.

    >>> array_behind(np.zeros((2, 3))).shape, array_behind(7)
    ((2, 3), None)
    """
    array: Array | None = getattr(x, "array", None)
    return array_of(x) if array is None and is_array(x) else array


_WITHOUT_MEMORY = ("FakeTensor", "FunctionalTensor")  # what PyTorch traces with: shapes and dtypes


NESTED = "a nested tensor of torch, which holds tensors of several shapes: give those of .unbind() one by one"


def is_nested(x: Any) -> bool:
    """Whether ``x`` is one of PyTorch's nested tensors, whose shape and strides cannot be asked for or are symbols."""
    return bool(getattr(x, "is_nested", False))


def _torch(x: Any) -> Array:
    if is_nested(x):
        raise ArgumentError(NESTED)
    if x.device.type not in ("cpu", "cuda"):
        raise ArgumentError(f"tensors on {x.device} cannot be used: move it to the CPU or to a CUDA device")
    if x.layout is not sys.modules["torch"].strided:
        raise ArgumentError(f"a torch tensor of layout {x.layout} has no strides")
    if x.is_neg() or x.is_conj():
        what, how = ("negative", "resolve_neg") if x.is_neg() else ("conjugate", "resolve_conj")
        raise ArgumentError(
            f"a torch tensor with the {what} bit: its memory has other numbers than it shows. Give .{how}()"
        )
    device = "cpu" if x.device.type == "cpu" else f"cuda:{x.device.index or 0}"
    if type(x).__name__ in _WITHOUT_MEMORY:
        address, shape, stride, owner = 0, tuple(map(int, x.shape)), tuple(map(int, x.stride())), None
    else:
        address, shape, stride, owner = x.data_ptr(), tuple(x.shape), tuple(x.stride()), x
        if not address and x.numel():
            raise ArgumentError("a torch tensor without memory (its address is 0). Give .clone()")
    if str(x.dtype) == PAIRS:
        return _in_pairs(address, device, shape, stride, owner)
    return Array(address, device, shape, stride, numeric_of_dtype(x.dtype), owner)


PAIRS = "torch.float4_e2m1fn_x2"
"""PyTorch's type of two 4-bit floats in a byte; its shapes and strides count bytes."""


def _in_pairs(address: int, device: str, shape: tuple[int, ...], stride: tuple[int, ...], owner: Any) -> Array:
    """A tensor of pairs as one of the 4-bit floats themselves: the mode of stride 1 is twice as long, and other strides
    are twice as large."""
    units = [i for i, d in enumerate(stride) if d == 1 and shape[i] > 1] or [i for i, d in enumerate(stride) if d == 1]
    if len(units) != 1:
        raise ArgumentError(
            f"a tensor of {PAIRS} with strides {stride} and shape {shape}: one mode of stride 1 has the pairs, and "
            f"{'several have it' if units else 'none has it'}"
        )
    (pairs,) = units
    doubled = tuple([2 * n if i == pairs else n for i, n in enumerate(shape)])
    steps = tuple([1 if i == pairs else 2 * d for i, d in enumerate(stride)])
    return Array(address, device, doubled, steps, Float4E2M1FN, owner)


def _interface(x: Any, interface: dict[str, Any], device: str) -> Array:
    import numpy as np

    dtype = x.dtype if isinstance(getattr(x, "dtype", None), np.dtype) else np.dtype(interface["typestr"])
    if not dtype.isnative:
        raise ArgumentError(
            f"the array's numbers have their bytes in the other order (dtype {dtype.str}); convert it "
            f"with .astype({dtype.newbyteorder('=').name!r})"
        )
    shape = tuple(int(n) for n in interface["shape"])
    strides = interface.get("strides")
    if strides is None:
        stride = _compact(shape)
    else:
        if any(s % dtype.itemsize for s in strides):
            raise ArgumentError(
                f"the strides {tuple(strides)} (bytes) are not multiples of the element's {dtype.itemsize} bytes"
            )
        stride = tuple(int(s) // dtype.itemsize for s in strides)
    address, readonly = interface["data"]
    numeric = numeric_of_dtype(dtype)
    if is_packed(numeric):
        raise ArgumentError(
            f"an array of dtype {dtype} keeps one number of {numeric.width} bits in a byte, and kernels read them "
            f"without gaps: pass the packed bytes (uint8) and see them by cute.recast_tensor(x, {numeric})"
        )
    return Array(int(address), device, shape, stride, numeric, x, bool(readonly) or _immutable(x))


def _cuda_device(x: Any) -> str:
    number = getattr(getattr(x, "device", None), "id", 0)
    return f"cuda:{number if isinstance(number, int) else 0}"


def _compact(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Row-major strides, as DLPack and NumPy mean them when none are given."""
    stride, step = [], 1
    for n in reversed(shape):
        stride.append(step)
        step *= max(n, 1)
    return tuple(reversed(stride))


# -- DLPack -----------------------------------------------------------------------------------------------------------


class _Device(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int32), ("index", ctypes.c_int32)]


class _Type(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("ndim", ctypes.c_int32),
        ("dtype", _Type),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _Versioned(ctypes.Structure):
    """DLManagedTensorVersioned, of DLPack 1."""

    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    ]


_READ_ONLY = 1  # among the flags


def _exported(x: Any) -> Any:
    """A capsule of ``x``, of DLPack 1 (which says whether it may be written) from those who know it."""
    try:
        return x.__dlpack__(max_version=(1, 0))
    except TypeError:
        return x.__dlpack__()


def _immutable(x: Any) -> bool:
    """JAX's arrays never change, and do not say so in any of the protocols."""
    return type(x).__module__.partition(".")[0] in ("jax", "jaxlib")


_CPU_KINDS, _CUDA_KINDS = (1, 3), (2, 13)


def _capsule(x: Any) -> Array:
    capsule = _exported(x)
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    valid = ctypes.pythonapi.PyCapsule_IsValid
    valid.restype, valid.argtypes = ctypes.c_int, [ctypes.py_object, ctypes.c_char_p]
    readonly = _immutable(x)
    if valid(capsule, b"dltensor_versioned"):
        managed = _Versioned.from_address(get(capsule, b"dltensor_versioned"))
        tensor, readonly = managed.tensor, readonly or bool(managed.flags & _READ_ONLY)
    else:
        tensor = _Tensor.from_address(get(capsule, b"dltensor"))  # a DLManagedTensor begins with its DLTensor
    if tensor.device.kind not in _CPU_KINDS + _CUDA_KINDS:
        raise ArgumentError(f"the array is on a DLPack device of kind {tensor.device.kind}; CPU and CUDA are known")
    device = "cpu" if tensor.device.kind in _CPU_KINDS else f"cuda:{tensor.device.index}"
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    stride = tuple(tensor.strides[i] for i in range(tensor.ndim)) if tensor.strides else _compact(shape)
    address = (tensor.data or 0) + tensor.byte_offset
    return Array(address, device, shape, stride, _dlpack_type(tensor.dtype), (x, capsule), readonly)


def _dlpack_type(dtype: _Type) -> Any:
    bits = 1 if dtype.code == BOOL.dlpack else dtype.bits
    scalar = next((kind for kind in SCALARS.values() if (kind.dlpack, kind.width) == (dtype.code, bits)), None)
    if dtype.lanes != 1 or scalar is None:
        raise ArgumentError(
            f"kernels do not know DLPack's type (code {dtype.code}, {dtype.bits} bits, {dtype.lanes} lanes)"
        )
    return class_of(scalar)


def looks_like(arrays: Sequence[Any]) -> Callable[..., bool]:
    """A quick test whether other arrays have the types, dtypes, devices, shapes and strides of these; it may be False
    of some that do. PyTorch has one, with which its compiler guards what it has compiled; of other arrays it is
    always False."""
    guards = _guards() if "torch" in sys.modules else None
    if guards is None or not all(isinstance(array, sys.modules["torch"].Tensor) for array in arrays):
        return unlike
    shapes, strides = [list(array.shape) for array in arrays], [list(array.stride()) for array in arrays]
    test: Callable[..., bool] = guards(*arrays, dynamic_dims_sizes=shapes, dynamic_dims_strides=strides).check
    return test if test(*arrays) else unlike


def unlike(*_: Any) -> bool:
    return False


@functools.cache
def _guards() -> Any:
    """PyTorch's class of such tests, where it tells what matters here apart (no documented interface says so)."""
    import torch

    try:
        guards: Any = torch._C._dynamo.guards.TensorGuards
        empty = functools.partial(torch.empty, device="cpu")
        first = empty(2, 3)
        same = guards(first, dynamic_dims_sizes=[[2, 3]], dynamic_dims_strides=[[3, 1]]).check
        others = (empty(3, 2), empty(3, 2).t(), empty(2, 3, dtype=torch.int32), empty(6), empty(2, 3).numpy(), None)
        return guards if same(first) and same(empty(2, 3)) and not any(map(same, others)) else None
    except (TypeError, AttributeError, RuntimeError):
        return None
