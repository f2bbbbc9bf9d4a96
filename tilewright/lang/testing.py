"""Benchmarks, tuning and small helpers for tests: ``cute.testing``."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tilewright.errors import ArgumentError, TilewrightError
from tilewright.ir.builder import Builder
from tilewright.ir.runtime import DevicePointer
from tilewright.lang import timing
from tilewright.lang.arguments import is_array
from tilewright.lang.arrays import array_of
from tilewright.lang.compile import compile
from tilewright.lang.executor import Executor
from tilewright.lang.jit import JitFunction, jit
from tilewright.lang.kernel import kernel
from tilewright.lang.numeric import Int32
from tilewright.lang.staging.expressions import assert_ as _assert
from tilewright.lang.tensor import Tensor

_THREADS = 128


class CantImplementError(TilewrightError):
    """A configuration that a kernel cannot run; tuning skips it."""


class JitArguments:
    """Arguments of one call, kept together; what is added to the scope stays alive with them."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.args, self.kwargs = args, kwargs
        self.references: list[Any] = []

    def add_to_scope(self, references: Iterable[Any]) -> None:
        self.references += references


def benchmark(
    callable: Callable[..., Any], *, warmup_iterations: int = 10, iterations: int = 100, stream: Any = None,
    kernel_arguments: JitArguments | None = None, workspace_generator: Callable[[], JitArguments] | None = None,
    workspace_count: int = 1, use_cuda_graphs: bool = False,
) -> float:  # fmt: skip
    """The mean time of one call in microseconds.

    ``callable`` is a compiled function (or anything that can be called with the arguments). Calls go round
    ``workspace_count`` sets of arguments made by ``workspace_generator``, so that a cache does not hold them all; without a
    generator all calls get ``kernel_arguments``. GPU time is taken by events on ``stream`` (None: the current stream).
    """
    if iterations < 1 or warmup_iterations < 0 or workspace_count < 1:
        raise ArgumentError("benchmark: iterations and workspace_count are at least 1, warmup_iterations at least 0")
    if workspace_generator is not None:
        spaces = [workspace_generator() for _ in range(workspace_count)]
        if not all(isinstance(space, JitArguments) for space in spaces):
            raise ArgumentError("benchmark: workspace_generator must give JitArguments")
    else:
        spaces = [kernel_arguments or JitArguments()]
    calls = [lambda s=s: callable(*s.args, **s.kwargs) for s in spaces]
    turns = list(itertools.islice(itertools.cycle(calls), warmup_iterations + iterations))
    return timing.microseconds(turns, warmup_iterations, _device(spaces), stream, use_cuda_graphs)


def _device(spaces: Sequence[JitArguments]) -> str:
    for value in _leaves([s.args for s in spaces] + [list(s.kwargs.values()) for s in spaces]):
        if is_array(value):
            return array_of(value).device
        if isinstance(value, Tensor) and hasattr(value, "device"):
            return str(value.device)
        base = getattr(value, "base", None)
        if isinstance(base, DevicePointer):
            return base.device
    return "cpu"


def _leaves(value: Any) -> Iterable[Any]:
    if isinstance(value, (tuple, list)):
        for item in value:
            yield from _leaves(item)
    else:
        yield value


def get_workspace_count(one_workspace_bytes: int, warmup_iterations: int, iterations: int) -> int:
    """How many sets of arguments of this size must take turns so that L2 never holds the next one; not more than calls.

    >>> get_workspace_count(0, 2, 3), get_workspace_count(1 << 40, 2, 3)
    (1, 1)
    """
    if one_workspace_bytes <= 0:
        return 1
    wanted = math.ceil(3 * timing.l2_bytes() / one_workspace_bytes)
    return max(1, min(wanted, warmup_iterations + iterations))


def tune(
    func: Any, params_dict: Mapping[str, Sequence[Any]], *, kernel_arguments: JitArguments | None = None,
    warmup_iterations: int = 10, iterations: int = 100, stream: Any = None,
) -> dict[str, Any]:  # fmt: skip
    """The fastest of all combinations of keyword arguments of ``func``, a ``@cute.jit`` function, or a plain function that
    gives the call to time. Combinations that raise an error of this library are skipped."""
    given = kernel_arguments or JitArguments()
    best: tuple[float, dict[str, Any]] | None = None
    refused: list[str] = []
    for values in itertools.product(*params_dict.values()):
        chosen = dict(zip(params_dict, values, strict=True))
        try:
            call, arguments = _prepared(func, given, chosen)
            spent = benchmark(
                call, warmup_iterations=warmup_iterations, iterations=iterations, stream=stream, kernel_arguments=arguments
            )
        except TilewrightError as wrong:
            refused.append(f"{chosen}: {wrong}")
            continue
        if best is None or spent < best[0]:
            best = (spent, chosen)
    if best is None:
        raise ArgumentError("tune: no combination runs:\n" + "\n".join(refused))
    return best[1]


def _prepared(func: Any, given: JitArguments, chosen: dict[str, Any]) -> tuple[Any, JitArguments]:
    if isinstance(func, JitFunction):
        executor = compile(func, *given.args, **given.kwargs, **chosen)
        bound = func.signature.bind(given.args, {**given.kwargs, **chosen})
        names = {parameter.name for parameter in executor.parameters}
        return executor, JitArguments(**{name: value for name, value in bound.arguments.items() if name in names})
    made = func(*given.args, **given.kwargs, **chosen)
    if not isinstance(made, Executor) and not (hasattr(made, "__call__") and made is not None):
        raise ArgumentError("tune: a plain function must give what is to be timed (a compiled function or a closure)")
    return made, JitArguments() if not isinstance(made, Executor) else given


def autotune_jit(
    params_dict: Mapping[str, Sequence[Any]], update_on_change: Sequence[str] = (), *, warmup_iterations: int = 10,
    iterations: int = 100,
) -> Callable[[Any], Any]:  # fmt: skip
    """Decorator above ``@cute.jit``: at the first call, and whenever an argument named in ``update_on_change`` has changed, the
    combinations of ``params_dict`` are timed; the call then runs with the fastest."""

    def decorate(function: Any) -> Any:
        return Autotuned(function, params_dict, update_on_change, warmup_iterations, iterations)

    return decorate


class Autotuned:
    """A ``@cute.jit`` function with parameters that are found by timing. ``chosen`` holds what was found, by key."""

    def __init__(
        self, function: Any, params: Mapping[str, Sequence[Any]], keys: Sequence[str], warmup: int, iterations: int
    ) -> None:
        self.function = function if isinstance(function, JitFunction) else jit(function)
        self.params, self.keys, self.warmup, self.iterations = params, tuple(keys), warmup, iterations
        unknown = [name for name in (*params, *keys) if name not in self.function.signature.names]
        if unknown:
            raise ArgumentError(f"autotune_jit: {self.function!r} has no parameter {', '.join(unknown)}")
        self.chosen: dict[Any, dict[str, Any]] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        named = self.function.signature.python.bind_partial(*args, **kwargs).arguments
        key = tuple(_key(named.get(name)) for name in self.keys)
        if key not in self.chosen:
            self.chosen[key] = tune(
                self.function, self.params, kernel_arguments=JitArguments(*args, **kwargs), warmup_iterations=self.warmup,
                iterations=self.iterations,
            )  # fmt: skip
        return self.function(*args, **{**kwargs, **self.chosen[key]})


def _key(value: Any) -> Any:
    if is_array(value):
        return (str(value.dtype), tuple(value.shape))
    return str(value) if isinstance(value, Tensor) else value


def assert_(cond: Any, msg: str | None = None) -> None:
    """``assert cond, msg`` for code that is not rewritten: checked when the kernel runs, or now if it is known."""
    _assert(cond, (lambda: msg) if msg else None)


@kernel
def _convert_kernel(src: Tensor, dst: Tensor, count: Int32) -> None:
    builder = Builder.current()
    index = Int32(builder.sreg("ctaid.x")) * _THREADS + Int32(builder.sreg("tid.x"))
    if index < count:
        dst[index] = src[index].to(dst.element_type)


@jit
def _convert(src: Tensor, dst: Tensor) -> None:
    from tilewright.lang.algebra import size

    count = Int32(size(src.layout))
    _convert_kernel(src, dst, count).launch(grid=(count + (_THREADS - 1)) // _THREADS, block=_THREADS)


def convert(src: Any, dst: Any) -> None:
    """Convert every element of ``src`` to the type of ``dst``, a tensor of the same shape."""
    _convert(src, dst)
