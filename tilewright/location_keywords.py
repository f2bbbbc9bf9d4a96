"""``loc`` and ``ip``, the keywords that programs for the CuTe DSL may pass to any operation."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

Target = TypeVar("Target")


def takes_location(target: Target) -> Target:
    """Make a function, or every public method of a class, take ``loc`` and ``ip``, which have no effect: each operation
    finds the line of the program by itself. Functions that name them already stay as they are.

    >>> @takes_location
    ... def double(x):
    ...     return 2 * x
    >>> double(4, loc=None, ip=None)
    8
    >>> import inspect
    >>> list(inspect.signature(double).parameters)
    ['x', 'loc', 'ip']
    """
    if isinstance(target, type):
        for name, member in list(vars(target).items()):
            if not name.startswith("_"):
                setattr(target, name, _of_member(member))
        return target
    return _of_function(target)  # type: ignore[arg-type,return-value]  # a function of the same parameters, and two more


def _of_member(member: Any) -> Any:
    if isinstance(member, staticmethod | classmethod):
        return type(member)(_of_function(member.__func__))
    return _of_function(member) if inspect.isfunction(member) else member


def _of_function(function: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(function)
    parameters = list(signature.parameters.values())
    if "loc" in signature.parameters:
        return function

    @functools.wraps(function)
    def call(*args: Any, loc: Any = None, ip: Any = None, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    rest = [parameters.pop()] if parameters and parameters[-1].kind is inspect.Parameter.VAR_KEYWORD else []
    added = [
        inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY, default=None, annotation="Any") for n in ("loc", "ip")
    ]
    call.__signature__ = signature.replace(parameters=[*parameters, *added, *rest])  # type: ignore[attr-defined]  # functions have attributes
    return call
