"""``cutlass.torch``: PyTorch tensors to run programs with, and their tensors of the language."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from tilewright.errors import ArgumentError
from tilewright.lang.arguments.arrays import Array, array_of
from tilewright.lang.arguments.dlpack import HostTensor, from_dlpack, tensor_over
from tilewright.lang.arguments.packed_arrays import in_bytes, packed_mode, put_numbers
from tilewright.lang.arguments.streams import current_stream, default_stream
from tilewright.lang.numbers.numeric_class import numeric_type
from tilewright.lang.tensors.address_space import is_packed

if TYPE_CHECKING:
    import torch

__all__ = [
    "GaussianInitConfig",
    "RandomInitConfig",
    "ScalarInitConfig",
    "TensorInitType",
    "as_tensor",
    "convert_cute_tensor",
    "create_and_permute_torch_tensor",
    "current_stream",
    "cute_tensor_like",
    "default_stream",
    "dtype",
    "get_leading_dim",
    "matrix",
]


def dtype(ty: Any) -> torch.dtype:
    """The PyTorch dtype of a numeric class (of its bits, where PyTorch has no such type)."""
    return numeric_type("cutlass.torch.dtype", ty).torch_dtype


class TensorInitType(Enum):
    """How a tensor's elements begin."""

    SKIP = "skip"
    SCALAR = "scalar"
    RANDOM = "random"
    GAUSSIAN = "gaussian"


@dataclass
class ScalarInitConfig:
    """Every element is ``value``."""

    value: float = 0.0


@dataclass
class RandomInitConfig:
    """Random integers from ``min_val`` up to and without ``max_val``."""

    min_val: int = -2
    max_val: int = 2


@dataclass
class GaussianInitConfig:
    """Normal numbers of mean ``mean`` and deviation ``std``, times ``scale``."""

    mean: float = 0.0
    std: float = 1.0
    scale: float = 1.0


def create_and_permute_torch_tensor(
    shape: tuple[int, ...],
    dtype: torch.dtype,
    permute_order: tuple[int, ...] | None = None,
    init_type: TensorInitType = TensorInitType.RANDOM,
    init_config: Any = None,
    device: Any = None,
) -> torch.Tensor:
    """A tensor of ``shape`` begun as ``init_type`` says, then permuted (a view)."""
    import torch

    if init_type is TensorInitType.SKIP:
        made = torch.empty(*shape, dtype=dtype, device=device)
    else:
        made = _begun(shape, init_type, init_config).to(dtype=dtype, device=device)
    return made if permute_order is None else made.permute(permute_order)


def _begun(shape: tuple[int, ...], init_type: TensorInitType, config: Any) -> torch.Tensor:
    import torch

    config_type: Any = {
        TensorInitType.RANDOM: RandomInitConfig,
        TensorInitType.SCALAR: ScalarInitConfig,
        TensorInitType.GAUSSIAN: GaussianInitConfig,
    }[init_type]
    config = config_type() if config is None else config
    if not isinstance(config, config_type):
        raise ArgumentError(f"init_type {init_type} takes a {config_type.__name__}, not {config!r}")
    if isinstance(config, RandomInitConfig):
        return torch.randint(config.min_val, config.max_val, shape).float()
    if isinstance(config, ScalarInitConfig):
        return torch.full(shape, float(config.value))
    return torch.empty(shape).normal_(config.mean, config.std) * config.scale


def matrix(
    l: int,  # noqa: E741 (the documented name)
    mode0: int,
    mode1: int,
    is_mode0_major: bool,
    cutlass_dtype: Any,
    init_type: TensorInitType = TensorInitType.RANDOM,
    init_config: Any = None,
    device: Any = None,
) -> torch.Tensor:
    """``l`` matrices (mode0, mode1, l) in float32 (or the integer's own type); mode 0 contiguous if asked."""
    import torch

    shape = (l, mode1, mode0) if is_mode0_major else (l, mode0, mode1)
    order = (2, 1, 0) if is_mode0_major else (1, 2, 0)
    kept = torch.float32 if numeric_type("cutlass.torch.matrix", cutlass_dtype).is_float else cutlass_dtype.torch_dtype
    return create_and_permute_torch_tensor(shape, kept, order, init_type, init_config, device)


def cute_tensor_like(
    data_ref: torch.Tensor, cutlass_dtype: Any, is_dynamic_layout: bool, assumed_align: int | None = None
) -> tuple[HostTensor, torch.Tensor]:
    """(tensor, PyTorch tensor): the numbers of ``data_ref`` as ``cutlass_dtype`` with its strides.

    The data go to the GPU if PyTorch sees one, else they stay on the CPU, where the simulator runs them. Numbers of 4
    and 6 bits fill the bytes of the PyTorch tensor without gaps, along the mode of stride 1: its type is
    ``float4_e2m1fn_x2`` for Float4E2M1FN, else uint8.
    """
    import torch

    numeric_type("cutlass.torch.cute_tensor_like", cutlass_dtype)
    device = "cuda" if torch.cuda.is_available() else data_ref.device
    if is_packed(cutlass_dtype):
        return _packed_like(data_ref, cutlass_dtype, is_dynamic_layout, assumed_align, device)
    shape, stride = tuple(data_ref.shape), data_ref.stride()
    storage = torch.empty_strided(shape, stride, dtype=cutlass_dtype.torch_dtype, device=device)
    storage.copy_(data_ref.to(device).to(cutlass_dtype.torch_dtype))
    tensor = from_dlpack(storage, assumed_align=assumed_align)
    if tensor.element_type is not cutlass_dtype:
        tensor.element_type = cutlass_dtype
    if is_dynamic_layout:
        leading = next((i for i, d in enumerate(data_ref.stride()) if d == 1), None)
        tensor = tensor.mark_layout_dynamic(leading_dim=leading)
    return tensor, storage


def _packed_like(
    data_ref: torch.Tensor, dtype: Any, is_dynamic_layout: bool, assumed_align: int | None, device: Any
) -> tuple[HostTensor, torch.Tensor]:
    import torch

    shape, stride = tuple(data_ref.shape), tuple(data_ref.stride())
    leading = packed_mode(Array(0, "cpu", shape, stride, dtype, None))
    extents, steps = in_bytes(shape, stride, leading, dtype)
    storage = torch.empty_strided(extents, steps, dtype=torch.uint8, device=device)
    if dtype.ir_type.torch:
        storage = storage.view(dtype.torch_dtype)
    tensor = tensor_over(array_of(storage)._replace(dtype=dtype, shape=shape, stride=stride), assumed_align)
    put_numbers(tensor, data_ref.detach().cpu().float().numpy())
    return tensor.mark_layout_dynamic(leading_dim=leading) if is_dynamic_layout else tensor, storage


def convert_cute_tensor(
    f32_torch_tensor: torch.Tensor, cute_tensor: HostTensor, dtype: Any, is_dynamic_layout: bool = True
) -> HostTensor:
    """``cute_tensor`` filled with the numbers of a float32 tensor, rounded to ``dtype``."""
    owner, shape = cute_tensor.array.owner, cute_tensor.array.shape
    if tuple(shape) != tuple(f32_torch_tensor.shape):
        raise ArgumentError(f"the tensor has shape {tuple(shape)}, the numbers {tuple(f32_torch_tensor.shape)}")
    if is_packed(dtype):
        put_numbers(cute_tensor, f32_torch_tensor.detach().cpu().float().numpy())
        return cute_tensor
    converted = f32_torch_tensor.to(owner.device).to(dtype.torch_dtype)
    owner.copy_(converted if owner.dtype == converted.dtype else converted.view(owner.dtype))
    return cute_tensor


def get_leading_dim(torch_tensor: torch.Tensor) -> int | None:
    """The mode of stride 1 (the first of extent above 1, if several), or None."""
    units = [i for i, d in enumerate(torch_tensor.stride()) if d == 1]
    return next((i for i in units if torch_tensor.shape[i] > 1), units[0] if units else None)


def as_tensor(pointer: Any, shape: tuple[int, ...], torch_type: torch.dtype) -> torch.Tensor:
    """CPU memory at a pointer or address as a row-major PyTorch tensor, without a copy."""
    import ctypes
    import math

    import torch

    address = pointer.toint() if hasattr(pointer, "toint") else int(getattr(pointer, "value", pointer))
    size = torch.empty((), dtype=torch_type).element_size() * math.prod(shape)
    memory = (ctypes.c_char * size).from_address(address)
    return torch.frombuffer(memory, dtype=torch_type).reshape(shape)
