"""Choosing the fastest of several configurations, and small helpers for tests of kernels."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tilewright.errors import ArgumentError, TilewrightError
from tilewright.ir.builder import Builder
from tilewright.lang.arguments.packed_arrays import numbers_of, put_numbers
from tilewright.lang.numbers.numeric import Boolean
from tilewright.lang.tensors.address_space import is_packed
from tilewright.lang.tools.benchmark import JitArguments, time_of
from tilewright.lang.tools.configurations import configurations


class CantImplementError(TilewrightError):
    """A configuration that a kernel cannot run; :func:`tune` passes over it."""


def tune(
    func: Callable[..., Callable[[], Any]],
    params_dict: dict[str, Sequence[Any]] | None = None,
    kernel_arguments: JitArguments | None = None,
    warmup_iterations: int = 10,
    iterations: int = 100,
    stream: Any = None,
) -> dict[str, Any]:
    """The fastest choice of parameters, one from each list of ``params_dict``.

    ``func(*arguments, **parameters)`` compiles one configuration and gives a function without arguments that runs it.
    A configuration that cannot be made or run, whatever its exception, is passed over; a :class:`SkippedWarning` lists
    all of them with their reasons. If none is left, a CantImplementError lists them.
    """
    arguments = kernel_arguments or JitArguments()
    if not isinstance(arguments, JitArguments):
        raise ArgumentError(f"tune: kernel_arguments is JitArguments(...), not {type(arguments).__name__}")
    if iterations < 1 or warmup_iterations < 0:
        raise ArgumentError("tune: iterations must be positive, warmup_iterations not negative")
    best: tuple[float, dict[str, Any]] | None = None
    skipped: list[tuple[dict[str, Any], Exception]] = []
    for parameters in configurations(params_dict or {}):
        try:
            runner = func(*arguments.args, **{**arguments.kwargs, **parameters})
            took = time_of(_repeated(runner), [arguments], warmup_iterations, iterations, stream)
        except Exception as error:
            skipped.append((parameters, error))
            continue
        if best is None or took < best[0]:
            best = took, parameters
    if best is None:
        if not skipped:
            raise ArgumentError("tune: there is no configuration to try")
        raise CantImplementError(f"tune: {_listed(skipped)}") from skipped[-1][1]
    if skipped:
        warnings.warn(f"tune: {_listed(skipped)}", SkippedWarning, stacklevel=2)
    return best[1]


class SkippedWarning(UserWarning):
    """Configurations that :func:`tune` passed over."""


def _listed(skipped: list[tuple[dict[str, Any], Exception]]) -> str:
    lines = [f"{len(skipped)} of the configurations cannot be made:"]
    for parameters, error in skipped:
        text = ", ".join(f"{name}={value!r}" for name, value in parameters.items())
        reason = (str(error).splitlines() or [""])[0]
        lines.append(f"  {text}: {type(error).__name__}: {reason}")
    return "\n".join(lines)


def _repeated(runner: Callable[[], Any]) -> Callable[[int], None]:
    def calls(count: int) -> None:
        for _ in range(count):
            runner()

    return calls


def convert(src: Any, dst: Any) -> None:
    """Copy the elements of tensor ``src`` into ``dst`` (on the same device), converted to its element type."""
    if src.array.shape != dst.array.shape:
        raise ArgumentError(f"convert: the shapes {src.array.shape} and {dst.array.shape} differ")
    if dst.device == "cpu" and src.device == "cpu":
        put_numbers(dst, numbers_of(src))
        return
    if is_packed(dst.element_type) or is_packed(src.element_type):  # by way of the host
        return _convert_packed(src, dst)
    target, source = dst.array.owner, src.array.owner
    converted = source.to(dst.element_type.torch_dtype)
    target.copy_(converted if converted.dtype == target.dtype else converted.view(target.dtype))


def _convert_packed(src: Any, dst: Any) -> None:
    import torch

    numbers = numbers_of(src).astype(np.float32)
    if is_packed(dst.element_type):
        put_numbers(dst, numbers)
        return
    converted = torch.from_numpy(numbers).to(dst.element_type.torch_dtype)
    dst.array.owner.copy_(
        converted if converted.dtype == dst.array.owner.dtype else converted.view(dst.array.owner.dtype)
    )


def assert_(cond: Any, msg: str | None = None, *, loc: Any = None, ip: Any = None) -> None:
    """Stop the program when ``cond`` is false as it runs (or at once, if ``cond`` is known now).

    >>> from tilewright.cute import testing
    >>> @cute.jit
    ... def positive(n: cute.Int32):
    ...     testing.assert_(n > 0, "n is positive")
    >>> positive(3)
    >>> positive(-1)
    Traceback (most recent call last):
        ...
    tilewright.errors.MachineError: ... n is positive
    """
    condition = Boolean(cond)
    if condition.is_static:
        if not condition.value:
            raise AssertionError(msg or "assertion failed")
        return
    Builder.current().emit("assert", (condition.ir_value(),), (), {"message": msg or "assertion failed"})
