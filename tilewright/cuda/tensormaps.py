"""Tensor maps as the GPU reads them: 128 bytes that the driver makes (``cuTensorMapEncodeTiled``, ``Im2col``)."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

from tilewright.cuda import libcuda
from tilewright.ir.tensormap import BYTES, TensorMap, swizzle_name

# CUtensorMapDataType, CUtensorMapSwizzle, CUtensorMapL2promotion
DATA_TYPE_CODES = {
    "UINT8": 0,
    "UINT16": 1,
    "UINT32": 2,
    "INT32": 3,
    "UINT64": 4,
    "INT64": 5,
    "FLOAT16": 6,
    "FLOAT32": 7,
    "FLOAT64": 8,
    "BFLOAT16": 9,
    "FLOAT32_FTZ": 10,
    "TFLOAT32": 11,
    "TFLOAT32_FTZ": 12,
    "16U4_ALIGN8B": 13,
    "16U4_ALIGN16B": 14,
    "16U6_ALIGN16B": 15,
}
SWIZZLE_CODES = {"NONE": 0, "32B": 1, "64B": 2, "128B": 3, "128B_ATOM_32B": 4}
L2_128B, INTERLEAVE_NONE, FILL_ZEROS = 2, 0, 0
ALIGNMENT = 64


def encoded(tensor_map: TensorMap | bytes) -> bytes:
    """The 128 bytes of a tensor map; made once. Raises MachineError when the driver refuses it."""
    if tensor_map.__class__ is not TensorMap:
        return bytes(tensor_map)  # type: ignore[arg-type]  # a ctypes structure
    encoding: bytes | None = tensor_map.encoded
    if encoding is None:
        encoding = tensor_map.encoded = encode(tensor_map)
    return encoding


@functools.cache
def words_of(numbers: tuple[int, ...]) -> Any:
    """A C array that nothing changes; boxes are few. Negative numbers are those of an ``int``."""
    return (ctypes.c_uint32 * len(numbers))(*numbers)


def encode(tensor_map: TensorMap) -> bytes:
    """The same, by the driver. It needs no context and leaves the device alone, so that graphs can be captured."""
    rank = tensor_map.rank
    buffer = ctypes.create_string_buffer(BYTES + ALIGNMENT)
    # The driver writes to 64-byte aligned memory only, which ctypes does not promise.
    start = -(-ctypes.addressof(buffer) // ALIGNMENT) * ALIGNMENT
    dims = (ctypes.c_uint64 * rank)(*tensor_map.dims)
    strides = (ctypes.c_uint64 * max(1, rank - 1))(*tensor_map.strides)  # of rank 1 the driver wants a pointer, too
    kind = DATA_TYPE_CODES[tensor_map.element.tensor_map]
    tensor = (start, kind, rank, tensor_map.address, dims, strides)
    how = (INTERLEAVE_NONE, SWIZZLE_CODES[swizzle_name(tensor_map.swizzle)], L2_128B, FILL_ZEROS)
    driver, im2col = libcuda.library(), tensor_map.im2col
    if im2col is None:
        whole = words_of((1,) * rank)  # no elements are skipped inside the box
        code = driver.cuTensorMapEncodeTiled(*tensor, words_of(tensor_map.box), whole, *how)
    else:
        corners, steps = (words_of(im2col.lower), words_of(im2col.upper)), words_of((1, *im2col.steps, 1))
        code = driver.cuTensorMapEncodeIm2col(*tensor, *corners, *tensor_map.box, steps, *how)
    if code:
        libcuda.check(code, f"encoding the {tensor_map}")
    return ctypes.string_at(start, BYTES)
