"""What PyTorch has in mind for tensors beside their memory: who records a call, autocast, lazy negation."""

from __future__ import annotations

from typing import Any

from tilewright.gemm.operators.arrays import framework


def autocast(torch: Any, *tensors: Any) -> list[Any]:
    """The operands as torch.matmul has them under torch.autocast: floats of 16 and 32 bits become the type of that."""
    cast, taken = torch.get_autocast_dtype(tensors[0].device.type), (torch.float16, torch.bfloat16, torch.float32)
    return [x.to(cast) if x is not None and x.dtype in taken else x for x in tensors]


def any_recorded(torch: Any, *tensors: Any) -> bool:
    """Whether PyTorch has to see what is done with one of the tensors: torch.compile traces the call, a tensor asks for
    a gradient, or stands for something else than memory of its own (DTensor, tensors of torch.compile, of torch.vmap).
    Operands that are not given are None."""
    if torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active():
        return True
    graded, tensor, parameter = torch.is_grad_enabled(), torch.Tensor, torch.nn.Parameter
    for x in tensors:
        if x is None:
            continue
        kind = x.__class__
        if graded and x.requires_grad if kind is tensor or kind is parameter else isinstance(x, tensor):
            return True
    return False


def materialised(x: Any) -> Any:
    """A PyTorch tensor whose elements are what its memory says."""
    if framework(x) != "torch":
        return x
    return x.resolve_neg() if x.is_neg() else x
