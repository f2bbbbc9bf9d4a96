"""Tensors of 8-bit floats from arrays that cannot hold them."""

from __future__ import annotations

from typing import Any

from tilewright.errors import ArgumentError
from tilewright.lang.arguments.dlpack import HostTensor, from_dlpack
from tilewright.lang.numbers.numeric import Float8E4M3FN, Float8E5M2


def is_fp8_dtype(dtype: Any) -> bool:
    """Whether ``dtype`` is one of the 8-bit floats.

    >>> import tilewright as cutlass
    >>> is_fp8_dtype(cutlass.Float8E4M3FN), is_fp8_dtype(cutlass.Float16)
    (True, False)
    """
    return dtype in (Float8E4M3FN, Float8E5M2)


def create_cute_tensor_for_fp8(
    storage_tensor: Any,
    dtype: Any,
    leading_dim: int | None = None,
    source_f32_tensor: Any = None,
    assumed_align: int = 16,
    mark_dynamic_layout: bool = True,
) -> HostTensor:
    """``storage_tensor`` (uint8) as a tensor of ``dtype``, filled from a source if given; its layout is dynamic unless
    ``mark_dynamic_layout`` is false.

    Raises ArgumentError where the two have different shapes.

    >>> storage = np.zeros((2, 4), np.uint8)
    >>> tensor = create_cute_tensor_for_fp8(storage, Float8E4M3FN, 1, np.ones((2, 4), np.float32))
    >>> storage[0].tolist()  # 1.0 in e4m3
    [56, 56, 56, 56]
    """
    tensor = from_dlpack(storage_tensor, assumed_align=assumed_align)
    if is_fp8_dtype(dtype):
        tensor.element_type = dtype
        if source_f32_tensor is not None:
            _fill(storage_tensor, source_f32_tensor, dtype)
    return tensor.mark_layout_dynamic(leading_dim) if mark_dynamic_layout else tensor


def _fill(storage: Any, source: Any, dtype: Any) -> None:
    if tuple(storage.shape) != tuple(source.shape):
        raise ArgumentError(f"the storage has shape {tuple(storage.shape)}, the source {tuple(source.shape)}")
    if hasattr(storage, "copy_"):
        storage.copy_(source.to(dtype.torch_dtype).view(storage.dtype))
    else:
        storage[...] = source.astype(dtype.dtype).view(storage.dtype)
