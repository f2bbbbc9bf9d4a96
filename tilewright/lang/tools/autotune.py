"""Functions and classes that choose their own parameters: ``autotune_jit`` for each problem, ``autotune_suite`` one for
many."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from typing import Any

from tilewright.errors import ArgumentError, unknown_keyword
from tilewright.lang.tools.benchmark import JitArguments, benchmark
from tilewright.lang.tools.configurations import configurations
from tilewright.lang.tools.tuning import CantImplementError, tune


def autotune_jit(
    params_dict: dict[str, Sequence[Any]] | None = None,
    update_on_change: Sequence[str] | None = None,
    warmup_iterations: int = 10,
    iterations: int = 100,
    derived_params: Mapping[str, Callable[..., Any]] | None = None,
    prune_configs: Callable[..., bool] | None = None,
) -> Callable[[Any], Any]:
    """Decorator of a ``@cute.jit`` function: its keyword parameters in ``params_dict`` are chosen by timing. Of a
    class, those of its constructor are, and its ``__call__`` is timed.

    They are chosen at the first call, and again for each new combination of the arguments named in
    ``update_on_change``; ``_best_config`` of the function (of the instance) has what was chosen last.
    ``prune_configs`` is called with the parameters that it names and returns whether to try them; the values of
    ``derived_params`` are functions that compute further parameters from them.
    """
    tried = configurations(params_dict or {}, prune_configs, derived_params)
    if not tried:
        raise ArgumentError("autotune_jit: prune_configs leaves no configuration to try")

    def choose(function_of: Callable[[dict[str, Any]], Any], args: Any, kwargs: Any) -> dict[str, Any]:
        """The best of the configurations of ``function_of(config)`` when it is called with ``args`` and ``kwargs``."""

        def make(*given: Any, config: dict[str, Any], **named: Any) -> Callable[[], Any]:
            function = function_of(config)
            return lambda: function(*given, **named)

        best: dict[str, Any] = tune(
            make,
            {"config": tried},
            JitArguments(*args, **kwargs),
            warmup_iterations=warmup_iterations,
            iterations=iterations,
        )["config"]
        return best

    def decorate(target: Any) -> Any:
        if inspect.isclass(target):
            return _tuned_class(target, tried, update_on_change or (), choose)
        signature = inspect.signature(getattr(target, "function", target))
        key_of = _keys(target.__name__, signature, update_on_change or (), params_dict or {})
        chosen: dict[Any, dict[str, Any]] = {}

        @wraps(target)
        def call(*args: Any, **kwargs: Any) -> Any:
            key = key_of(args, kwargs)
            if key not in chosen:
                chosen[key] = choose(lambda config: functools.partial(target, **config), args, kwargs)
            call._best_config = chosen[key]  # type: ignore[attr-defined]  # functions take attributes
            return target(*args, **kwargs, **chosen[key])

        call._best_config = None  # type: ignore[attr-defined]  # functions take attributes
        return call

    return decorate


def _tuned_class(target: type, tried: list[dict[str, Any]], names: Sequence[str], choose: Any) -> type:
    """``target`` without the tuned parameters of its constructor."""

    class Tuned:
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            self._made: dict[Any, Any] = {}
            self._make = lambda config: target(*args, **kwargs, **config)
            self._best_config: dict[str, Any] | None = None
            self._configs: dict[Any, dict[str, Any]] = {}
            call = inspect.getattr_static(target, "__call__")
            signature = inspect.signature(getattr(call, "function", call))
            rest = list(signature.parameters.values())[1:]
            self._key = _keys(f"{target.__name__}.__call__", signature.replace(parameters=rest), names)

        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            key = self._key(args, kwargs)
            if key not in self._configs:
                made = {id(config): self._make(config) for config in tried}
                config = choose(lambda config: made[id(config)], args, kwargs)
                self._configs[key], self._made[key] = config, made[id(config)]
            self._best_config = self._configs[key]
            return self._made[key](*args, **kwargs)

    Tuned.__name__, Tuned.__qualname__, Tuned.__doc__ = target.__name__, target.__qualname__, target.__doc__
    Tuned.__module__ = target.__module__
    return Tuned


def _keys(
    function: str, signature: inspect.Signature, names: Sequence[str], tuned: Iterable[str] = ()
) -> Callable[[Any, Any], tuple[Any, ...]]:
    """The values of the arguments ``names`` in a call of ``function``, as a key; the call passes none of ``tuned``."""
    untuned = [name for name in signature.parameters if name not in tuned]
    passes_on = any(p.kind is p.VAR_KEYWORD for p in signature.parameters.values())
    for name in names:
        if name not in signature.parameters:
            raise ArgumentError(f"autotune_jit: update_on_change names {name!r}, which is not a parameter")

    def key(args: Any, kwargs: Any) -> tuple[Any, ...]:
        for name in kwargs:
            if name in tuned:
                raise ArgumentError(f"{function}: {name} is chosen by autotune_jit (params_dict); do not pass it")
            if name not in untuned and not passes_on:
                raise unknown_keyword(function, name, untuned)
        bound = signature.bind_partial(*args, **kwargs).arguments
        return tuple(_hashable(bound.get(name)) for name in names)

    return key


def _hashable(value: Any) -> Any:
    try:
        hash(value)
    except TypeError:
        return repr(value)
    return value


def autotune_suite(
    func: Any,
    make_arguments: Callable[..., Sequence[Any]],
    cases: Sequence[Sequence[Any]],
    params_dict: dict[str, Sequence[Any]],
    *,
    prune_configs: Callable[..., bool] | None = None,
    derived_params: Mapping[str, Callable[..., Any]] | None = None,
    accept_percentile: float = 50,
    workspace_count: int = 1,
    warmup_iterations: int = 10,
    iterations: int = 100,
    print_summary: bool = False,
    stream: Any = None,
) -> tuple[list[list[dict[str, Any]]], list[dict[str, Any]]]:
    """Times every configuration of ``func`` (a jit function, or a class whose constructor takes the parameters) on
    every case, and ranks them.

    ``make_arguments(*case)`` gives fresh arguments; ``workspace_count`` sets of them are used in turn. Returns
    ``reports``, for each case a list of ``{"config", "time_us"}``, fastest first (``time_us`` is None and ``"error"``
    the exception where it cannot run), and ``recommended``, a list of ``{"config", "accepted", "mean_time_us"}``: first
    those that most cases accept, which is to say have within their fastest ``accept_percentile`` per cent.
    Raises CantImplementError where a case has no configuration that runs.
    """
    tried = configurations(params_dict, prune_configs, derived_params)
    reports = []
    for case in cases:
        sets = [JitArguments(*make_arguments(*case)) for _ in range(workspace_count)]
        rows = [_timed(func, config, sets, warmup_iterations, iterations, stream) for config in tried]
        rows.sort(key=lambda row: (row["time_us"] is None, row["time_us"] or 0))
        if not rows or rows[0]["time_us"] is None:
            reason = f": {rows[0]['error']}" if rows else ""
            raise CantImplementError(f"autotune_suite: no configuration runs the case {tuple(case)}{reason}")
        reports.append(rows)
    recommended = _ranked(tried, reports, accept_percentile)
    if print_summary:
        _print_summary(cases, reports, recommended)
    return reports, recommended


def _timed(func: Any, config: dict[str, Any], sets: list[JitArguments], warmup: int, count: int, stream: Any) -> Any:
    try:
        run: Any = func(**config) if inspect.isclass(func) else _with(func, config)
        turn = iter(range(1 << 62))
        took = benchmark(
            run,
            warmup_iterations=warmup,
            iterations=count,
            stream=stream,
            workspace_count=len(sets),
            workspace_generator=lambda: sets[next(turn)],
        )
    except Exception as error:
        return {"config": config, "time_us": None, "error": error}
    return {"config": config, "time_us": took}


def _with(func: Any, config: dict[str, Any]) -> Callable[..., Any]:
    return lambda *args, **kwargs: func(*args, **kwargs, **config)


def _ranked(
    tried: list[dict[str, Any]], reports: list[list[dict[str, Any]]], percentile: float
) -> list[dict[str, Any]]:
    ranked = []
    for config in tried:
        accepted, times = 0, []
        for rows in reports:
            ran = [row for row in rows if row["time_us"] is not None]
            best = ran[: max(1, math.ceil(len(ran) * percentile / 100))]
            accepted += any(row["config"] is config for row in best)
            times += [row["time_us"] for row in ran if row["config"] is config]
        if len(times) == len(reports):  # it runs every case
            ranked.append({"config": config, "accepted": accepted, "mean_time_us": sum(times) / len(times)})
    return sorted(ranked, key=lambda row: (-row["accepted"], row["mean_time_us"]))


def _print_summary(cases: Any, reports: Any, recommended: Any) -> None:
    def text(config: dict[str, Any]) -> str:
        return ", ".join(f"{name}={value!r}" for name, value in config.items())

    for case, rows in zip(cases, reports, strict=True):
        print(f"case {tuple(case)}:")
        for row in rows:
            took = "does not run" if row["time_us"] is None else f"{row['time_us']:10.2f} us"
            print(f"  {took}  {text(row['config'])}")
    print("recommended:")
    for row in recommended:
        print(f"  accepted by {row['accepted']} of {len(reports)} cases, {text(row['config'])}")
