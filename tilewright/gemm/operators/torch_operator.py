"""Operators of PyTorch, ``torch.ops.tilewright``: what ``torch.library.custom_op`` makes of a function, with a short
way for eager calls.

``custom_op`` hands each call from Python to the dispatcher and back twice more, 8 us of host time. Where nothing but a
gradient could see the call and none is asked for, the function is called at once.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch._library.infer_schema import infer_schema
from torch.nn import Parameter

from tilewright.errors import ArgumentError

LIBRARY = torch.library.Library("tilewright", "FRAGMENT")


def is_eager(*arguments: Any) -> bool:
    """Whether PyTorch only has to record a call with these arguments for gradients: nothing traces, transforms or
    replaces the tensors among them, which have memory."""
    for x in arguments:
        kind = x.__class__
        if x.is_meta if kind is Tensor or kind is Parameter else x is not None and isinstance(x, Tensor):
            return False
    return not (
        torch.compiler.is_compiling()
        or torch._C._are_functorch_transforms_active()
        or torch._C._len_torch_dispatch_stack()
    )


def asks_for_gradient(*arguments: Any) -> bool:
    """Whether one of the tensors among the arguments requires a gradient."""
    if torch.is_grad_enabled():
        for x in arguments:
            if isinstance(x, Tensor) and x.requires_grad:
                return True
    return False


class Operator:
    """``function`` as the operator of its ``name``; a decorator of functions that write no argument. Its arguments and
    their types are the operator's."""

    def __init__(self, name: str, function: Callable[..., Tensor], schema: str = "") -> None:
        """``schema``: the arguments, where annotations of the function do not say them."""
        self.name, self.function = name, function
        schema = schema or infer_schema(function, mutates_args=())
        LIBRARY.define(name + schema, tags=torch.Tag.pt2_compliant_tag)
        LIBRARY.impl(name, self.below_gradients, "CompositeExplicitAutograd")
        LIBRARY.impl(name, self.eager, "Autograd")
        self.default = getattr(torch.ops.tilewright, name).default
        self.defaults = [x.default for x in inspect.signature(function).parameters.values()]
        self.gradients: Callable[..., tuple[Any, ...]] | None = None
        self.save: Callable[..., None] | None = None
        self.recorded = recorded_form(self)

    def __call__(self, *arguments: Any, **named: Any) -> Tensor:
        result: Tensor = self.default(*arguments, **named)
        return result

    def register_fake(self, fake: Callable[..., Tensor]) -> Callable[..., Tensor]:
        """A decorator of the function that gives a result without elements."""
        torch.library.register_fake(f"tilewright::{self.name}", fake, lib=LIBRARY)
        return fake

    def register_autograd(self, gradients: Callable[..., tuple[Any, ...]], setup_context: Callable[..., None]) -> None:
        """The gradients of all arguments, for what ``setup_context(ctx, inputs, output)`` keeps."""
        self.gradients, self.save = gradients, setup_context

    def below_gradients(self, *arguments: Any) -> Tensor:
        with torch.no_grad():
            return self.function(*arguments)

    def eager(self, *arguments: Any) -> Tensor:
        """The operator where gradients may be recorded."""
        graded = asks_for_gradient(*arguments)
        if not graded and is_eager(*arguments):
            return self.function(*arguments)
        result: Tensor = self.recorded.apply(*arguments) if graded else self.dispatched(*arguments)
        return result

    def dispatched(self, *arguments: Any) -> Tensor:
        """The operator, handed on to whatever comes after the gradients in PyTorch's order."""
        with torch._C._AutoDispatchBelowAutograd():
            result: Tensor = self.default(*arguments)
        return result


def recorded_form(operator: Operator) -> Any:
    """The operator with its gradients, as PyTorch records them."""

    class Recorded(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *arguments: Any) -> Tensor:
            result = operator.dispatched(*arguments)
            if operator.save is not None:
                operator.save(ctx, (*arguments, *operator.defaults[len(arguments) :]), result)
            return result

        @staticmethod
        def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
            if operator.gradients is None:
                raise ArgumentError(
                    f"{operator.name} has no gradient: call it under torch.no_grad(), or detach its operands"
                )
            return operator.gradients(ctx, *grads)[: len(ctx.needs_input_grad)]

    return Recorded


def operator(name: str) -> Callable[[Callable[..., Tensor]], Operator]:
    """Registers a function as ``torch.ops.tilewright.name``."""
    return lambda function: Operator(name, function)
