"""Functions of the program's own in PyTorch's autograd: their ``backward`` sees tensors "on cuda", as ``forward`` does.

PyTorch calls ``backward`` from its engine, outside every function mode, with new tensors for gradients and saved
tensors: none of these has a mark. So a node notes that its forward had tensors with one. A parameter is a new tensor,
too, in the memory of the one that it is made of.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.autograd.function import BackwardCFunction, Function

_ON_CUDA = "_tilewright_on_cuda"


def autograd(
    mode: Callable[[], Any], marked: Callable[[Any], bool], mark: Callable[[Any], Any]
) -> dict[Any, dict[str, Any]]:
    """The replacements of names of PyTorch's classes: class -> name -> object."""
    forward: Any = Function.__dict__["apply"].__func__
    backward: Any = BackwardCFunction.apply
    saved: Any = torch._C._FunctionBase.saved_tensors

    def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
        results = forward(cls, *args, **kwargs)
        if marked(args):
            for result in results if isinstance(results, (tuple, list)) else (results,):
                if isinstance(getattr(result, "grad_fn", None), BackwardCFunction):
                    setattr(result.grad_fn, _ON_CUDA, True)
        return results

    def enter(node: Any, *gradients: Any) -> Any:
        if not getattr(node, _ON_CUDA, False):
            return backward(node, *gradients)
        with mode():
            return backward(node, *mark(gradients))

    def saved_tensors(node: Any) -> Any:
        tensors = saved.__get__(node)
        return mark(tensors) if getattr(node, _ON_CUDA, False) else tensors

    make: Any = torch.nn.Parameter.__dict__["__new__"].__func__

    def parameter(cls: Any, data: Any = None, requires_grad: bool = True) -> Any:
        made = make(cls, data, requires_grad)
        return mark(made) if marked((data,)) else made

    return {
        torch.nn.Parameter: {"__new__": staticmethod(parameter)},
        Function: {"apply": classmethod(apply)},
        BackwardCFunction: {"apply": enter, "saved_tensors": property(saved_tensors)},
    }
