"""The configurations that tuning tries: one from each list of parameters, without those that are pruned, with what is
derived from them."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tilewright.errors import ArgumentError


def configurations(
    params: Mapping[str, Sequence[Any]],
    prune: Callable[..., bool] | None = None,
    derived: Mapping[str, Callable[..., Any]] | None = None,
) -> list[dict[str, Any]]:
    """Every choice of one value from each list of ``params`` for which ``prune`` is true, with the ``derived`` values.

    ``prune`` and the functions of ``derived`` name the parameters that they take.

    >>> configurations({"a": [1, 2], "b": [3, 4]}, lambda a, b: a + b != 5, {"c": lambda b: b * 10})
    [{'a': 1, 'b': 3, 'c': 30}, {'a': 2, 'b': 4, 'c': 40}]
    """
    made = []
    for choice in itertools.product(*params.values()):
        config = dict(zip(params, choice, strict=True))
        if prune is not None and not _call(prune, config, "prune_configs"):
            continue
        for name, function in (derived or {}).items():
            config[name] = _call(function, config, f"derived_params[{name!r}]")
        made.append(config)
    return made


def _call(function: Callable[..., Any], config: dict[str, Any], what: str) -> Any:
    parameters = inspect.signature(function).parameters
    unknown = [name for name in parameters if name not in config]
    if unknown:
        raise ArgumentError(f"{what}: {unknown[0]!r} is not a parameter; there are {', '.join(config)}")
    return function(**{name: config[name] for name in parameters})
