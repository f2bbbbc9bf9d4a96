"""``and``, ``or``, ``not``, conditional expressions, ``in``, ``min``/``max``/``any``/``all`` and ``assert``."""

from __future__ import annotations

import builtins
import functools
import operator
from collections.abc import Callable, Iterable
from types import BuiltinMethodType
from typing import Any

from tilewright.ir.builder import Builder
from tilewright.ir.core import Block, Value
from tilewright.lang.numbers import operators
from tilewright.lang.numbers.numeric import Boolean, NumberInMemory, Numeric
from tilewright.lang.staging.aliases import ONE_OF_TWO, AliasPairs
from tilewright.lang.staging.branch import emit_joined
from tilewright.lang.staging.location import fail, here
from tilewright.lang.staging.printing import print_
from tilewright.lang.staging.refusals import is_dynamic
from tilewright.lang.staging.region_state import RegionState
from tilewright.lang.staging.regions import Region, can_speculate, decide
from tilewright.lang.staging.text import Text, formatted, holds_dynamic, joined, modulo, text, watched
from tilewright.lang.staging.undefined import Undefined

Thunk = Callable[[], Any]
Objects = Callable[[], tuple[tuple[str, ...], tuple[Any, ...]]]
"""The names of variables, and the objects that they hold."""


def and_(first: Any, *rest: Thunk, reach: Objects | None = None) -> Any:
    """``first and rest[0]() and ...``: what decides now decides as Python does. ``reach()`` are the objects that the
    sides could change."""
    return _logical("and", first, rest, reach)


def or_(first: Any, *rest: Thunk, reach: Objects | None = None) -> Any:
    """``first or rest[0]() or ...``."""
    return _logical("or", first, rest, reach)


def _logical(word: str, first: Any, rest: tuple[Thunk, ...], reach: Objects | None = None) -> Any:
    for i, thunk in enumerate(rest):
        test = decide(first)
        # What is known decides now; the first run-time side takes all that follow into its region.
        if isinstance(test, Value):
            return _lazy(word, first, test, functools.partial(_rest, word, rest[i:]), reach)
        if test is (word == "or"):
            return first
        first = thunk()
    return first


def _rest(word: str, thunks: tuple[Thunk, ...]) -> Any:
    return _logical(word, thunks[0](), thunks[1:])


def _aside(region: Region, thunk: Thunk, reach: Objects | None) -> tuple[Any, Block]:
    """The result of ``thunk``, and its ops; it may not change Python objects that others see."""
    state = RegionState((), (), *reach()) if reach is not None else None
    block = Block()
    region.open(block)
    value = thunk()
    value = value.load() if isinstance(value, NumberInMemory) else value
    region.close()
    if state is not None:
        _unchanged(state, region)
    return value, block


def _unchanged(state: RegionState, region: Region) -> None:
    state.now((), region)
    for place in state.changed():
        raise fail(f"'{place.path}' changes in a side of the {region}, which may not run; write an `if` statement")


def _lazy(word: str, first: Any, test: Value, rest: Thunk, reach: Objects | None) -> Any:
    """``first and/or rest()`` for a run-time ``first``: the second side runs only where the first does not decide."""
    region = Region(f"`{word}`", here(4))
    second, block = _aside(region, lambda: _like(rest(), first), reach)
    # Two Booleans of which the second costs little: one `and` or `or` in place of a branch.
    if isinstance(first, Boolean) and isinstance(second, (bool, Boolean)):
        second = Boolean(second)
        if can_speculate(block):
            Builder.current().block.ops += block.ops
            return operators.binary(word, first, second)
        # Where the second side does not run, the first has decided: its value is known there.
        first = Boolean(word == "or")
    first = _like(first, second)
    if word == "and":
        return _choose(test, (second, first), (block, Block()), region)
    return _choose(test, (first, second), (Block(), block), region)


def _like(value: Any, other: Any) -> Any:
    """A Boolean next to a number is 1 or 0, as in Python, so that ``n & 4 and not done`` has one type."""
    number = isinstance(other, Numeric) and not isinstance(other, Boolean)
    return type(other)(value) if number and isinstance(value, (bool, Boolean)) else value


def not_(value: Any) -> Any:
    test = decide(value)
    return Boolean(Builder.current().unary("not", test)) if isinstance(test, Value) else not test


def if_(test: Any, then: Thunk, other: Thunk, reach: Objects | None = None) -> Any:
    """``then() if test else other()``; ``reach`` as for :func:`and_`."""
    decided = decide(test)
    if not isinstance(decided, Value):
        return then() if decided else other()
    region = Region("conditional expression", here(2))
    first, block = _aside(region, then, reach)
    second, rest = _aside(region, other, reach)
    return _choose(decided, (first, second), (block, rest), region)


def _choose(test: Value, sides: tuple[Any, Any], arms: tuple[Block, Block], region: Region) -> Any:
    if AliasPairs(RegionState((), (), (), ()), [sides]).of_two:
        raise fail(f"what the {region} gives has no value: {ONE_OF_TWO}")
    (chosen,) = emit_joined(test, arms, region, [""], [(None, *sides)])
    if isinstance(chosen, Undefined):
        raise fail(f"the two sides of the {region} do not agree: {chosen.reason}; convert one of them")
    return chosen


def contains(container: Any, item: Any) -> Any:
    """``item in container``, with an ``or`` of comparisons where a run-time number takes part."""
    if isinstance(container, (tuple, list, set, frozenset, range)):
        if is_dynamic(item) or (not isinstance(container, range) and any(map(is_dynamic, container))):
            # All comparisons are made, where Python stops at the first that is true: they may not change anything.
            state = RegionState((), (), ("a comparison",) * len(container), tuple(container))
            equal = [Boolean(item == x) for x in container]
            _unchanged(state, Region("`in`", here(2)))
            return functools.reduce(lambda a, b: operators.binary("or", a, b), equal, Boolean(False))
    return item in container


def excludes(container: Any, item: Any) -> Any:
    return not_(contains(container, item))


def is_(left: Any, right: Any) -> bool:
    """``left is right``, which asks for one object: of a number in a kernel there are many, so the answer would be a
    constant that has nothing to do with the numbers."""
    if isinstance(left, Numeric) or isinstance(right, Numeric):
        both = (left, right)
        if all(isinstance(side, (Numeric, bool, int, float)) for side in both):
            number = "" if not any(isinstance(side, bool) for side in both) else ", or leave `is True` out"
            raise fail(f"`is` compares objects, not numbers: write `==`{number}")
    return left is right


def is_not(left: Any, right: Any) -> bool:
    return not is_(left, right)


def is_literal(left: Any, right: Any) -> bool:
    """``left is True`` in ``const_expr``, which asks whether a number is known, and true: one of the run is not."""
    values = [x.value if isinstance(x, Numeric) and x.is_static else x for x in (left, right)]
    return values[0] is values[1]


def _extreme(opcode: str, python: Any) -> Any:
    def extreme(*args: Any, **options: Any) -> Any:
        if options or not args:
            return python(*args, **options)
        items = [x.load() if isinstance(x, NumberInMemory) else x for x in (args if len(args) > 1 else tuple(args[0]))]
        if any(isinstance(item, Numeric) or is_dynamic(item) for item in items):  # one type for both, known or not
            return functools.reduce(lambda a, b: operators.binary(opcode, a, b), items)
        return python(items)

    return extreme


def _quantifier(word: str, items: Iterable[Any], reach: Objects | None = None) -> Any:
    """``any`` and ``all``: what a generator does for an item happens only where those before have not decided."""
    rest = iter(items)
    for item in rest:
        test = decide(item)
        if isinstance(test, Value):
            return _lazy(word, Boolean(test), test, functools.partial(_quantifier, word, rest), reach)
        if test is (word == "or"):
            return test
    return word == "and"


def _bool(*args: Any) -> Any:
    return Boolean(args[0]) if args and is_dynamic(args[0]) else bool(*args)


def _shown(function: Callable[..., str], conversion: int) -> Callable[..., str]:
    """``str``, ``repr``, ``ascii`` and ``format``: of run-time numbers what an f-string gives, a text that is not
    known."""

    def shown(*args: Any, **options: Any) -> str:
        shown_text, unknown = ("", True) if args and holds_dynamic(args[0]) else watched(function, *args, **options)
        return text((args[0], conversion, *(args[1:] or ("",)))) if unknown and args and not options else shown_text

    return shown


def _reads_texts(function: Callable[..., Any]) -> Callable[..., Any]:
    """``int``, ``ord`` and other functions in C that read the characters of a text."""

    def reading(*args: Any, **options: Any) -> Any:
        for text_of_run in args[:1]:
            if isinstance(text_of_run, Text):
                text_of_run._fixed()
        return function(*args, **options)

    return reading


def _map(function: Any, *items: Any) -> Any:
    """``map``: of builtins their versions for run-time numbers."""
    return map(builtin(function), *items)


def mod(left: Any, right: Any, operate: Callable[[Any, Any], Any] = operator.mod) -> Any:
    """``left % right``: of a text and run-time numbers what an f-string gives."""
    if isinstance(left, str) and not isinstance(left, Text):
        values = tuple(right.values()) if isinstance(right, dict) else right
        if holds_dynamic(values) or any(isinstance(one, Text) for one in _items(values)):
            return modulo(left, right)
        result, unknown = watched(operate, left, right)
        return modulo(left, right) if unknown else result
    return operate(left, right)


def imod(left: Any, right: Any) -> Any:
    """What ``left %= right`` assigns."""
    return mod(left, right, operator.imod)


def _items(values: Any) -> tuple[Any, ...]:
    return values if isinstance(values, tuple) else (values,)


def _of_text(function: Any) -> Any:
    """A method of a text, ``format``, ``format_map`` or ``join``, that knows run-time numbers; other callables as they
    are."""
    template = getattr(function, "__self__", None)
    if not isinstance(template, str) or isinstance(template, Text):
        return function

    def filled(*args: Any, **named: Any) -> str:
        values = (*args, *named.values())
        if holds_dynamic(values) or any(isinstance(one, Text) for one in values):
            return formatted(template, *args, **named)
        text, unknown = watched(function, *args, **named)
        return formatted(template, *args, **named) if unknown else str(text)

    def joining(items: Any) -> str:
        listed = list(items)
        if not any(isinstance(one, Text) for one in listed):
            return str(function(listed))
        return joined(*[part for one in listed for part in (template, one)][1:])

    def mapped(mapping: Any) -> str:
        text, unknown = watched(function, mapping)
        return formatted(template, **mapping) if unknown else str(text)

    return {"format": filled, "format_map": mapped, "join": joining}.get(function.__name__, function)


def _unbound(name: str) -> Callable[..., Any]:
    """``str.format`` and its like, called with the text as first argument."""
    return lambda template, *args, **named: builtin(getattr(template, name))(*args, **named)


_BUILTINS: dict[Any, Any] = {
    builtins.min: _extreme("min", builtins.min),
    builtins.max: _extreme("max", builtins.max),
    builtins.any: functools.partial(_quantifier, "or"),
    builtins.all: functools.partial(_quantifier, "and"),
    builtins.bool: _bool,
    builtins.str: _shown(str, ord("s")),
    builtins.repr: _shown(repr, ord("r")),
    builtins.ascii: _shown(ascii, ord("a")),
    builtins.format: _shown(format, -1),
    builtins.map: _map,
    builtins.print: print_,
    **{function: _reads_texts(function) for function in (int, ord, complex, bytes, bytearray)},
    **{getattr(str, name): _unbound(name) for name in ("format", "format_map", "join")},
}


def builtin(function: Any, reach: Objects | None = None) -> Any:
    """The version of a Python builtin that also takes run-time numbers; other callables as they are. ``reach()`` are
    the objects that ``any`` and ``all`` could change by what they take item by item."""
    if function is builtins.globals and Builder.current().regions:
        raise fail(
            f"globals() in a {Builder.current().regions[-1]}: what is assigned through it would change once, while "
            "staging; keep the variable in an object (`state.x`), or call globals() before"
        )
    if isinstance(function, BuiltinMethodType):
        function = _of_text(function)
    try:
        replacement = _BUILTINS.get(function, function)
    except TypeError:  # an unhashable callable of the user's
        return function
    return (
        functools.partial(replacement, reach=reach)
        if reach is not None and replacement is not function
        else replacement
    )


def assert_(test: Any, message: Thunk | None = None) -> None:
    """``assert test, message``: at once for what is known now, when the kernel runs otherwise."""
    decided = decide(test)
    if isinstance(decided, Value):
        text = str(message()) if message else "assertion failed"
        Builder.current().emit("assert", (decided,), (), {"message": text})
    elif not decided:
        raise AssertionError(*((message(),) if message else ()))
