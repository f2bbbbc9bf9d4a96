"""The numbers of arrays on the host, those of 4 and 6 bits among them, which lie in their bytes without gaps.

NumPy and PyTorch have no such arrays: here their numbers are read and written one by one, as ml_dtypes has them, with a
byte for each.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from tilewright.errors import ArgumentError
from tilewright.lang.arguments.arrays import Array
from tilewright.lang.arguments.dlpack import HostTensor
from tilewright.lang.tensors.address_space import is_packed
from tilewright.lang.tensors.packed import group


def numbers_of(tensor: HostTensor) -> Any:
    """The elements of a tensor as a NumPy array of its shape: of 4 and 6 bits a copy, else a view."""
    if not is_packed(tensor.element_type):
        return tensor.numpy()
    leading = packed_mode(tensor.array)
    stored = _bytes(tensor)
    codes = _codes(np.moveaxis(stored, leading, -1), tensor.element_type)
    return np.moveaxis(codes, -1, leading).astype(np.uint8).view(tensor.element_type.dtype)


def put_numbers(tensor: HostTensor, numbers: Any) -> None:
    """Write ``numbers`` (a NumPy array of the tensor's shape, of any type), rounded, to the elements of a tensor."""
    dtype = tensor.element_type
    if not is_packed(dtype):
        tensor.numpy()[...] = numbers.astype(dtype.dtype)
        return
    rounded = np.ascontiguousarray(np.moveaxis(numbers, packed_mode(tensor.array), -1).astype(dtype.dtype))
    packed = np.moveaxis(packed_bytes(rounded.view(np.uint8), dtype), -1, packed_mode(tensor.array))
    if tensor.device == "cpu":
        _bytes(tensor)[...] = packed
        return
    import torch

    there: Any = tensor.array.owner
    there.view(torch.uint8).copy_(torch.from_numpy(np.ascontiguousarray(packed)))


def packed_bytes(codes: Any, dtype: Any) -> Any:
    """``[..., bytes]`` of ``[..., n]`` bit patterns, the first in the low bits; n is a multiple of those of whole
    bytes.

    >>> from tilewright import Float4E2M1FN, Float6E3M2FN
    >>> packed_bytes(np.array([1, 2, 3, 4], np.uint8), Float4E2M1FN).tolist()
    [33, 67]
    >>> packed_bytes(np.array([1, 2, 3, 4], np.uint8), Float6E3M2FN).tolist()
    [129, 48, 16]
    """
    count, size = group(dtype)
    width, mask = dtype.width, (1 << dtype.width) - 1
    together = codes.reshape(*codes.shape[:-1], -1, count).astype(np.uint32) & mask
    words = sum(together[..., i] << (width * i) for i in range(count))
    split = np.stack([words >> (8 * i) & 255 for i in range(size)], -1).astype(np.uint8)
    return split.reshape(*codes.shape[:-1], -1)


def _codes(packed: Any, dtype: Any) -> Any:
    """``[..., n]`` bit patterns of ``[..., bytes]``."""
    count, size = group(dtype)
    width = dtype.width
    split = packed.reshape(*packed.shape[:-1], -1, size).astype(np.uint32)
    words = sum(split[..., i] << (8 * i) for i in range(size))
    codes = np.stack([words >> (width * i) & ((1 << width) - 1) for i in range(count)], -1)
    return codes.reshape(*packed.shape[:-1], -1)


def packed_mode(array: Array) -> int:
    """The mode of stride 1, along which numbers share bytes. ArgumentError where it is not whole bytes."""
    units = [i for i, step in enumerate(array.stride) if step == 1]
    longer = [i for i in units if array.shape[i] > 1] or units
    count, _ = group(array.dtype)
    if len(longer) != 1 or array.shape[longer[0]] % count:
        raise ArgumentError(
            f"{array.dtype} of shape {array.shape} and strides {array.stride}: {count} numbers fill whole bytes, so "
            f"one mode has stride 1 and a multiple of {count} elements"
        )
    return longer[0]


def in_bytes(shape: Any, stride: Any, mode: int, dtype: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shape and strides of the bytes of elements with ``mode`` of stride 1."""
    count, size = group(dtype)
    extents = tuple([n * size // count if i == mode else n for i, n in enumerate(shape)])
    return extents, tuple([1 if i == mode else step * size // count for i, step in enumerate(stride)])


def _bytes(tensor: HostTensor) -> Any:
    """The bytes of a packed tensor: of one on the CPU a view."""
    array = tensor.array
    extents, steps = in_bytes(array.shape, array.stride, packed_mode(array), array.dtype)
    if tensor.device != "cpu":
        import torch

        owner: Any = array.owner
        return owner.detach().view(torch.uint8).cpu().numpy()
    low, high = array.bounds
    memory: Any = (ctypes.c_char * (high - low)).from_address(low)
    memory.owner = array.owner
    return np.ndarray(extents, np.uint8, memory, array.address - low, steps)
