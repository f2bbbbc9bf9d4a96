"""The functions that rewritten code calls, under short names: it knows this module as ``_tw``."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

from tilewright.ir.builder import Builder
from tilewright.ir.core import Constant, Location, Op, Value, Variable
from tilewright.lang.staging.branch import If
from tilewright.lang.staging.builder import depth
from tilewright.lang.staging.class_modules import module_of
from tilewright.lang.staging.expressions import (
    and_,
    assert_,
    builtin,
    contains,
    excludes,
    if_,
    imod,
    is_,
    is_literal,
    is_not,
    mod,
    not_,
    or_,
)
from tilewright.lang.staging.for_loop import For, range_
from tilewright.lang.staging.refusals import known, leave
from tilewright.lang.staging.text import text
from tilewright.lang.staging.undefined import Undefined, defined, deleted, undefined
from tilewright.lang.staging.while_loop import While
from tilewright.lang.staging.with_block import With
from tilewright.layout import ComposedLayout, Layout

__all__ = [
    "For",
    "If",
    "Undefined",
    "While",
    "With",
    "and_",
    "assert_",
    "builtin",
    "contains",
    "defined",
    "depth",
    "excludes",
    "if_",
    "deleted",
    "imod",
    "is_",
    "is_literal",
    "is_not",
    "known",
    "leave",
    "mod",
    "named",
    "names",
    "not_",
    "or_",
    "range_",
    "text",
    "undefined",
]


def named(name: str, value: Any) -> Any:
    """Give a new run-time value, or the registers of a tensor, the name of the variable that it is assigned to."""
    _give_hint(name, value)
    _record_variable(name, value, 2)
    return value


_is_ours: Callable[[type], bool] = functools.cache(lambda cls: module_of(cls).startswith("tilewright."))


def _give_hint(name: str, value: Any) -> None:
    if not _is_ours(type(value)):  # attributes of the user's objects may run code of theirs
        return
    held = getattr(value, "value", None)
    if not isinstance(held, Value):
        held = getattr(getattr(value, "engine", None), "frag", None)
    if isinstance(held, Value) and not isinstance(held, Constant):
        op = held.op
        # A special register is called tid_x until a variable names it: that says more.
        of_register = isinstance(op, Op) and op.opcode == "sreg" and held.hint == op.attrs["name"].replace(".", "_")
        if held.hint is None or of_register:
            held.hint = name


def _record_variable(name: str, value: Any, depth: int) -> None:
    """Keep what a variable stands for, for the simulator's debugger."""
    shown = isinstance(value, (int, float)) or (
        _is_ours(type(value))
        and not isinstance(value, Layout | ComposedLayout)
        and (hasattr(value, "engine") or hasattr(value, "value"))
    )
    if shown and name != "_" and Builder.active():
        frame = sys._getframe(depth)
        where = Location(frame.f_code.co_filename, frame.f_lineno)
        builder = Builder.current()
        after = builder.block.ops[-1] if builder.block.ops else None
        builder.variables.append(Variable(name, value, where, after))


def names(targets: tuple[str, ...], values: Any) -> Any:
    """The same for an assignment to a tuple of names; '' for other targets."""
    if type(values) is tuple and len(values) == len(targets):
        for name, value in zip(targets, values, strict=True):
            if name and name != "_":
                _give_hint(name, value)
                _record_variable(name, value, 2)
    return values
