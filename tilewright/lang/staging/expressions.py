"""``and``, ``or``, ``not``, conditional expressions, ``in``, ``min``/``max``/``any``/``all`` and ``assert``."""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable
from typing import Any

from tilewright.ir.builder import Builder
from tilewright.ir.core import Block, Value
from tilewright.lang.numbers import operators
from tilewright.lang.numbers.numeric import Boolean
from tilewright.lang.staging import cells
from tilewright.lang.staging.location import fail, here
from tilewright.lang.staging.refusals import is_dynamic
from tilewright.lang.staging.regions import Join, Region, can_speculate, capture, close_branch, decide

Thunk = Callable[[], Any]


Variables = tuple[tuple[str, ...], tuple[Any, ...]]


def and_(first: Any, *rest: Thunk, reach: Callable[[], Variables] | None = None, kept: Variables | None = None) -> Any:
    """``first and rest[0]() and ...``: what decides now decides as Python does.

    ``reach()`` names the objects that a side may change. ``kept`` are variables that the one thunk assigns: it takes
    them and gives them back after its value, as this function then does.
    """
    return _logical("and", first, rest, reach) if kept is None else _keeping("and", first, rest[0], reach, kept)


def or_(first: Any, *rest: Thunk, reach: Callable[[], Variables] | None = None, kept: Variables | None = None) -> Any:
    """``first or rest[0]() or ...``."""
    return _logical("or", first, rest, reach) if kept is None else _keeping("or", first, rest[0], reach, kept)


def _logical(word: str, first: Any, rest: tuple[Thunk, ...], reach: Any = None) -> Any:
    for i, thunk in enumerate(rest):
        test = decide(first)
        if isinstance(test, Value):
            return _lazy(word, first, test, functools.partial(_rest, word, rest[i:]), reach)
        if test is (word == "or"):
            return first
        first = thunk()
    return first


def _rest(word: str, thunks: tuple[Thunk, ...]) -> Any:
    return _logical(word, thunks[0](), thunks[1:])


def _keeping(word: str, first: Any, thunk: Callable[..., Any], reach: Any, kept: Variables) -> Any:
    test = decide(first)
    if not isinstance(test, Value):
        return (first, *kept[1]) if test is (word == "or") else thunk(*kept[1])
    region = Region(f"`{word}`", here(3))
    (second, *after), block = _aside(region, functools.partial(thunk, *kept[1]), reach)
    if isinstance(first, Boolean) and isinstance(second, (bool, Boolean)):
        first, second = Boolean(first), Boolean(second)
    sides = [(second, first), *zip(after, kept[1], strict=True)]
    if word == "and":
        return _choose(test, sides, (block, Block()), region, kept)
    return _choose(test, [(b, a) for a, b in sides], (Block(), block), region, kept)


def _aside(region: Region, thunk: Thunk, reach: Any) -> tuple[Any, Block]:
    """What ``thunk`` gives, and its ops; it may not change Python objects that others see."""
    watched = cells.Reach(zip(*reach(), strict=True)) if reach is not None else None
    found = capture(region.what, region.where, thunk)
    if watched is not None:
        watched.check(region)
        if path := watched.changed():
            raise fail(f"'{path}' changes in a side of the {region}, which may not run; write an `if` statement")
    return found


def _lazy(word: str, first: Any, test: Value, rest: Thunk, reach: Any) -> Any:
    """``first and/or rest()`` for a run-time ``first``: the second side runs only where the first does not decide."""
    region = Region(f"`{word}`", here(4))
    second, block = _aside(region, rest, reach)
    if isinstance(first, Boolean) and isinstance(second, (bool, Boolean)):
        second = Boolean(second)
        if can_speculate(block):
            Builder.current().block.ops += block.ops
            return operators.binary(word, first, second)
        first = Boolean(word == "or")
    sides, arms = ((second, first), (block, Block())) if word == "and" else ((first, second), (Block(), block))
    return _choose(test, [sides], arms, region)[0]


def not_(value: Any) -> Any:
    test = decide(value)
    return Boolean(Builder.current().unary("not", test)) if isinstance(test, Value) else not test


def if_(
    test: Any, then: Callable[..., Any], other: Callable[..., Any],
    reach: Callable[[], Variables] | None = None, kept: Variables | None = None,
) -> Any:  # fmt: skip
    """``then() if test else other()``; ``reach`` and ``kept`` as for :func:`and_`."""
    known = decide(test)
    before = kept[1] if kept is not None else ()
    if not isinstance(known, Value):
        return then(*before) if known else other(*before)
    region = Region("conditional expression", here(2))
    first, block_a = _aside(region, functools.partial(then, *before), reach)
    second, block_b = _aside(region, functools.partial(other, *before), reach)
    sides = [(first, second)] if kept is None else list(zip(first, second, strict=True))
    found = _choose(known, sides, (block_a, block_b), region, kept)
    return found[0] if kept is None else found


def _choose(
    test: Value, sides: list[tuple[Any, Any]], arms: tuple[Block, Block], region: Region, kept: Variables | None = None
) -> tuple[Any, ...]:
    """The value, whose sides come first, and the kept variables after the branch."""
    join = Join("", None, sides[0], arms, region)
    if join.poison is not None:
        raise fail(f"the two sides of the {region} do not agree: {join.poison.reason}; convert one of them")
    names, before = kept if kept is not None else ((), ())
    variables = zip(names, before, sides[1:], strict=True)
    joins = [Join(name, value, pair, arms, region) for name, value, pair in variables]
    return tuple(close_branch(test, arms, [join, *joins]))


def contains(container: Any, item: Any) -> Any:
    """``item in container``, with an ``or`` of comparisons where a run-time number takes part."""
    if isinstance(container, (tuple, list, set, frozenset, range)):
        if is_dynamic(item) or (not isinstance(container, range) and any(map(is_dynamic, container))):
            equal = (Boolean(item == x) for x in container)
            return functools.reduce(lambda a, b: operators.binary("or", a, b), equal, Boolean(False))
    return item in container


def excludes(container: Any, item: Any) -> Any:
    return not_(contains(container, item))


def _extreme(opcode: str, python: Any) -> Any:
    def extreme(*args: Any, **options: Any) -> Any:
        if options or not args:
            return python(*args, **options)
        items = args if len(args) > 1 else tuple(args[0])
        if any(map(is_dynamic, items)):
            return functools.reduce(lambda a, b: operators.binary(opcode, a, b), items)
        return python(items)

    return extreme


def _quantifier(word: str, python: Any) -> Any:
    def quantifier(items: Any) -> Any:
        listed = list(items)
        if not any(map(is_dynamic, listed)):
            return python(listed)
        return _logical(word, listed[0], tuple(functools.partial(_itself, x) for x in listed[1:]))

    return quantifier


def _itself(x: Any) -> Any:
    return x


def _bool(*args: Any) -> Any:
    return Boolean(args[0]) if args and is_dynamic(args[0]) else bool(*args)


_BUILTINS: dict[Any, Any] = {
    builtins.min: _extreme("min", builtins.min), builtins.max: _extreme("max", builtins.max),
    builtins.any: _quantifier("or", builtins.any), builtins.all: _quantifier("and", builtins.all), builtins.bool: _bool,
}  # fmt: skip


def builtin(function: Any) -> Any:
    """The version of a Python builtin that also takes run-time numbers; other callables as they are."""
    try:
        return _BUILTINS.get(function, function)
    except TypeError:  # an unhashable callable of the user's
        return function


def assert_(test: Any, message: Thunk | None = None) -> None:
    """``assert test, message``: at once for what is known now, when the kernel runs otherwise."""
    known = decide(test)
    if isinstance(known, Value):
        text = str(message()) if message else "assertion failed"
        Builder.current().emit("assert", (known,), (), {"message": text})
    elif not known:
        raise AssertionError(*((message(),) if message else ()))
