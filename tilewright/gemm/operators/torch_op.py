"""``torch.ops.tilewright.matmul``: the product as an operator of PyTorch.

torch.compile keeps it as one node (its fake form gives shape and dtype without a kernel); its gradient is two more
products; and a rule for DTensor names the placements that fit, so programs that spread a model over several GPUs use
it as they use torch.matmul. On the CPU it runs the simulator.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tilewright.errors import ArgumentError
from tilewright.gemm.arrays import check_types
from tilewright.gemm.choice.registry import candidates
from tilewright.gemm.epilogue.activations import ACTIVATIONS
from tilewright.gemm.operators.gradient_kernels import compile_gradients
from tilewright.gemm.operators.matmul import multiplied
from tilewright.gemm.operators.torch_gradients import operand_gradients, summed
from tilewright.gemm.operators.torch_operator import LIBRARY, is_eager
from tilewright.gemm.operators.torch_state import autocast
from tilewright.lang.arguments.arrays import NESTED
from tilewright.lang.numbers.dtypes import numeric_of_dtype

LIBRARY.define(
    "matmul(Tensor a, Tensor b, Tensor? c=None, Tensor? bias=None, float alpha=1.0, float beta=0.0, "
    "str? activation=None, ScalarType? out_dtype=None) -> Tensor",
    tags=torch.Tag.pt2_compliant_tag,
)


def operator(*arguments: Any) -> Tensor:
    """activation(alpha * a @ b + beta * c + bias) of matrices and stacks of them."""
    with torch.no_grad():
        return product_of(*arguments)


def product_of(
    a: Tensor,
    b: Tensor,
    c: Tensor | None = None,
    bias: Tensor | None = None,
    alpha: float = 1.0,
    beta: float = 0.0,
    activation: str | None = None,
    out_dtype: torch.dtype | None = None,
) -> Tensor:
    """:func:`matmul` by the operator's arguments, of tensors whose product is recorded already."""
    result: Tensor = multiplied(a, b, None, c, bias, (alpha, beta, activation, out_dtype, "ieee", None, "auto"))
    return result


LIBRARY.impl("matmul", operator, "CompositeExplicitAutograd")


def fake(
    a: Tensor,
    b: Tensor,
    c: Tensor | None = None,
    bias: Tensor | None = None,
    alpha: float = 1.0,
    beta: float = 0.0,
    activation: str | None = None,
    out_dtype: torch.dtype | None = None,
) -> Tensor:
    check_types(numeric_of_dtype(a.dtype), numeric_of_dtype(b.dtype))
    if a.shape[-1] != b.shape[-2]:
        raise ArgumentError(f"inner dimensions differ: a has shape {tuple(a.shape)}, b {tuple(b.shape)}")
    shape = (*torch.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1])
    return a.new_empty(shape, dtype=result_dtype(a, c, out_dtype))


torch.library.register_fake("tilewright::matmul", fake, lib=LIBRARY)


def result_dtype(a: Tensor, c: Tensor | None, out_dtype: torch.dtype | None) -> torch.dtype:
    if out_dtype is not None or c is not None:
        return out_dtype or c.dtype  # type: ignore[union-attr]  # one of both is there
    dtype: torch.dtype = candidates(numeric_of_dtype(a.dtype), None)[0].config.c.dtype.torch_dtype
    return dtype


def save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    a, b, c, bias, ctx.alpha, ctx.beta, activation, _ = inputs
    if activation is not None and any(ctx.needs_input_grad):
        raise ArgumentError("the operator has no gradient through an activation: apply it to the operator's result")
    ctx.save_for_backward(a, b)
    ctx.c, ctx.bias = (None if x is None else (x.shape, x.dtype) for x in (c, bias))


def gradients(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    """Two products, and the part of the result's gradient that belongs to ``c`` and the bias."""
    a, b = ctx.saved_tensors
    needed = ctx.needs_input_grad  # of as many arguments as were given
    wants_a, wants_b, wants_c, wants_bias = (*needed, False, False)[:4]
    grad_a, grad_b = operand_gradients(grad, a, b, ctx.alpha, wants_a, wants_b)
    grad_c = (grad * ctx.beta).to(ctx.c[1]) if wants_c else None
    grad_bias = gradient_of_bias(grad, *ctx.bias) if wants_bias else None
    return (grad_a, grad_b, grad_c, grad_bias, None, None, None, None, None)[: len(needed)]


def gradient_of_bias(grad: Tensor, shape: torch.Size, dtype: torch.dtype) -> Tensor:
    """The bias is added to each row."""
    return summed(grad, shape).to(dtype)


def batched(info: Any, in_dims: tuple[int | None, ...], *inputs: Any) -> tuple[Tensor, int]:
    """torch.vmap: one product of stacks, whose first mode is the mapped one; one after the other where the bias is
    mapped, as a product has one vector."""
    dims = (*in_dims, *[None] * (8 - len(in_dims)))
    arguments: tuple[Any, ...] = (*inputs, *DEFAULTS[len(inputs) - 2 :])
    a, b, c, bias, *rest = arguments
    size = info.batch_size
    if dims[3] is not None:
        each = [
            [x if x is None or d is None else x.select(d, i) for x, d in zip((a, b, c, bias), dims, strict=False)]
            for i in range(size)
        ]
        return torch.stack([call_of(*one)(*one, *rest) for one in each]), 0
    rank = max(x.ndim - (d is not None) for x, d in ((a, dims[0]), (b, dims[1])))

    def in_front(x: Tensor, dim: int | None) -> Tensor:
        """With the mapped mode before ``rank`` others, of which those that it lacks are 1."""
        x = x.movedim(dim, 0) if dim is not None else x[None]
        return x.reshape(x.shape[0], *[1] * (rank + 1 - x.ndim), *x.shape[1:])

    a, b = in_front(a, dims[0]), in_front(b, dims[1])
    if c is not None:
        c = in_front(c, dims[2]).expand(size, *[-1] * rank)
    result = call_of(a, b, c, bias)(a, b, c, bias, *rest)
    return result.expand(size, *result.shape[1:]), 0


torch.library.register_vmap("tilewright::matmul", batched, lib=LIBRARY)


class Product(torch.autograd.Function):
    """The operator and its gradient as eager PyTorch records them: what ``operator`` gives, without the dispatcher's
    calls of Python in between."""

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Tensor:
        wants_a, wants_b = ctx.needs_input_grad[:2]
        compile_gradients(inputs[0], inputs[1], wants_a, wants_b, inputs[3])
        result = product_of(*inputs)
        save(ctx, inputs, result)
        return result

    backward = staticmethod(gradients)


class PlainProduct(torch.autograd.Function):
    """:class:`Product` without C: PyTorch takes some 0.5 us for each argument of both passes. ``options`` are those of
    :func:`matmul`, from alpha to decomposition."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor, bias: Tensor | None, options: tuple[Any, ...]) -> Tensor:
        wants_a, wants_b, _, _ = ctx.needs_input_grad
        compile_gradients(a, b, wants_a, wants_b, bias)
        result: Tensor = multiplied(a, b, None, None, bias, options)
        ctx.save_for_backward(a, b)
        ctx.alpha, ctx.bias = options[0], None if bias is None else (bias.shape, bias.dtype)
        return result

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None, None]:
        a, b = ctx.saved_tensors
        wants_a, wants_b, wants_bias, _ = ctx.needs_input_grad
        grad_a, grad_b = operand_gradients(grad, a, b, ctx.alpha, wants_a, wants_b)
        return grad_a, grad_b, gradient_of_bias(grad, *ctx.bias) if wants_bias else None, None


class Dispatched(torch.autograd.Function):
    """The same where the call itself has to be seen below: by a trace, a mode or another class of tensors."""

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Tensor:
        result = below_autograd(*inputs)
        save(ctx, (*inputs, *DEFAULTS[len(inputs) - 2 :]), result)
        return result

    backward = staticmethod(gradients)


def below_autograd(*arguments: Any) -> Tensor:
    """The operator, handed on to whatever comes after the gradients in PyTorch's order."""
    with torch._C._AutoDispatchBelowAutograd():
        result: Tensor = torch.ops.tilewright.matmul.default(*arguments)
    return result


DEFAULTS = (None, None, 1.0, 0.0, None, None)
"""The defaults of the operator's arguments after the first two; the dispatcher omits arguments that were not given."""


def autograd(a: Tensor, b: Tensor, c: Tensor | None = None, bias: Tensor | None = None, *rest: Any) -> Tensor:
    """The operator where gradients are recorded. What nothing but a gradient can see is not dispatched once more: that
    takes 13 us a call in ``torch.library.custom_op``, this 3."""
    eager = is_eager(a, b, c, bias)
    graded = torch.is_grad_enabled() and (
        a.requires_grad
        or b.requires_grad
        or c is not None
        and c.requires_grad
        or bias is not None
        and bias.requires_grad
    )
    if eager and not graded:
        return product_of(a, b, c, bias, *rest)
    arguments = a, b, c, bias, *rest
    if not eager:
        return Dispatched.apply(*arguments) if graded else below_autograd(*arguments)
    return Product.apply(*arguments, *DEFAULTS[len(arguments) - 2 :])


LIBRARY.impl("matmul", autograd, "Autograd")


def cast_first(key: str) -> Any:
    """The operator under torch.autocast, by the dispatch key of a kind of device."""
    excluded = torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, key))

    def cast(a: Tensor, b: Tensor, c: Tensor | None = None, bias: Tensor | None = None, *rest: Any) -> Tensor:
        with torch._C._ExcludeDispatchKeyGuard(excluded):
            result: Tensor = torch.ops.tilewright.matmul.default(*autocast(torch, a, b, c, bias), *rest)
        return result

    return cast


for name in ("AutocastCUDA", "AutocastCPU"):
    LIBRARY.impl("matmul", cast_first(name), name)


class Transformed(Product):
    """The same for torch.func and torch.vmap, which want the context apart from the product: binding arguments to that
    form takes longer than eager calls should."""

    @staticmethod
    def forward(*inputs: Any) -> Tensor:  # PyTorch's second form, without the context
        result: Tensor = torch.ops.tilewright.matmul(*inputs)
        return result

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        save(ctx, inputs, output)

    vmap = staticmethod(batched)

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        """Refused: PyTorch would say that a method is missing."""
        raise ArgumentError(
            "matmul has no derivative in forward mode (torch.func.jvp, jacfwd, hessian): take torch.func.grad, vjp or "
            "jacrev, or torch.matmul"
        )


def is_differentiated() -> bool:
    """Whether a transform of torch.func takes derivatives here: what vmap gives it does not say so."""
    if torch.compiler.is_compiling():  # which puts the gradient's products into its own graph
        return False
    kinds = torch._C._functorch.TransformType.Grad, torch._C._functorch.TransformType.Jvp
    return any(level.key() in kinds for level in torch._C._functorch.get_interpreter_stack() or ())


def call_of(*tensors: Tensor | None) -> Any:
    """The form of the product for these tensors."""
    if is_eager(*tensors):
        return Product.apply
    if torch._C._are_functorch_transforms_active() and not torch.compiler.is_compiling():
        return Transformed.apply
    return torch.ops.tilewright.matmul


def recorded(
    a: Tensor,
    b: Tensor,
    out: Tensor | None,
    c: Tensor | None,
    alpha: float,
    beta: float,
    bias: Tensor | None,
    activation: str | None,
    out_dtype: torch.dtype | None,
) -> Tensor:
    """:func:`matmul` through the operator. Where a gradient is required the activation is PyTorch's, which keeps what
    its own gradient needs."""
    if a.is_nested or b.is_nested:
        raise ArgumentError(f"{'a' if a.is_nested else 'b'} is {NESTED}, or a stack to grouped_matmul")
    if activation is not None and not (isinstance(activation, str) and activation in ACTIVATIONS):
        raise ArgumentError(f"there is no activation {activation!r}; there are {', '.join(ACTIVATIONS)}")
    of_matrices = out is None and activation is None and a.ndim > 1 and b.ndim > 1
    if of_matrices and torch.is_grad_enabled() and is_eager(a, b, c, bias):  # a gradient is why it is recorded
        if c is None:
            return PlainProduct.apply(a, b, bias, (alpha, 0.0, None, out_dtype, "ieee", None, "auto"))
        return Product.apply(a, b, c, bias, alpha, beta, None, out_dtype)
    needs_gradient = any(x is not None and x.requires_grad for x in (a, b, c, bias)) or is_differentiated()
    graded = torch.is_grad_enabled() and needs_gradient
    if out is not None and graded:
        raise ArgumentError("PyTorch records this call for gradients, and cannot with out: call it without out")
    call, fused = call_of(a, b, c, bias), None if graded else activation
    result: Tensor = call(*as_matrices(a, b, c), bias, alpha, beta, fused, out_dtype)
    if graded and activation is not None:
        result = ACTIVATIONS[activation].of_torch(torch.nn.functional, result)
    if b.ndim == 1:
        result = result.squeeze(-1)
    if a.ndim == 1:
        result = result.squeeze(-1 if b.ndim == 1 else -2)
    return result if out is None else out.copy_(result)


def as_matrices(a: Tensor, b: Tensor, c: Tensor | None) -> tuple[Tensor, Tensor, Tensor | None]:
    """The operands of a product, with vectors as matrices: ``a`` as a row, ``b`` as a column, ``c`` as their result."""
    if c is not None and a.ndim == 1:
        c = c[None, None] if b.ndim == 1 else c.unsqueeze(-2)
    elif c is not None and b.ndim == 1:
        c = c[..., None]
    return a[None, :] if a.ndim == 1 else a, b[:, None] if b.ndim == 1 else b, c


def register_sharding() -> None:
    """Teach DTensor the operator: which placements of the result follow from which of the operands."""
    from torch.distributed.tensor import Partial, Replicate, Shard
    from torch.distributed.tensor.experimental import register_sharding as register

    def shardings(
        a: Any,
        b: Any,
        c: Any = None,
        bias: Any = None,
        alpha: float = 1.0,
        beta: float = 0.0,
        activation: str | None = None,
        out_dtype: Any = None,
    ) -> list[Any]:
        rank_a, rank_b = a.ndim, b.ndim
        rank = max(rank_a, rank_b)
        rest = [None] * 4  # alpha and all that follows are not tensors

        def way(result: Any, of_a: Any, of_b: Any, of_bias: Any) -> Any:
            of_c = result if c is not None else None
            return [result], [of_a, of_b, of_c, of_bias if bias is not None else None, *rest]

        placements = [
            way(Replicate(), Replicate(), Replicate(), Replicate()),
            way(Shard(rank - 2), Shard(rank_a - 2), Replicate(), Replicate()),
            way(Shard(rank - 1), Replicate(), Shard(rank_b - 1), Shard(0)),
        ]
        if c is None and bias is None and activation is None:
            placements.append(way(Partial(), Shard(rank_a - 1), Shard(rank_b - 2), None))
        for mode in range(rank - 2):
            in_a, in_b = mode - (rank - rank_a), mode - (rank - rank_b)
            sizes = [x.shape[i] if i >= 0 else 1 for x, i in ((a, in_a), (b, in_b))]
            whole = max(sizes)
            if whole > 1:
                of_a, of_b = (
                    Shard(i) if size == whole else Replicate() for i, size in zip((in_a, in_b), sizes, strict=True)
                )
                placements.append(way(Shard(mode), of_a, of_b, Replicate()))
        return placements

    register(torch.ops.tilewright.matmul.default)(shardings)


if torch.distributed.is_available():
    register_sharding()
