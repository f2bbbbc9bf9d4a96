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


def named(name: str, thing: Any) -> Any:
    """Tell a fresh run-time value, or the registers of a tensor, the name of the variable that it is assigned to."""
    _tell(name, thing)
    _note(name, thing, 2)
    return thing


_is_ours: Callable[[type], bool] = functools.cache(lambda cls: module_of(cls).startswith("tilewright."))


def _tell(name: str, thing: Any) -> None:
    if not _is_ours(type(thing)):  # attributes of the user's objects may run code of theirs
        return
    value = getattr(thing, "value", None)
    if not isinstance(value, Value):
        value = getattr(getattr(thing, "engine", None), "frag", None)
    if isinstance(value, Value) and not isinstance(value, Constant):
        op = value.op
        # A special register is called tid_x until a variable names it: that says more.
        of_register = isinstance(op, Op) and op.opcode == "sreg" and value.hint == op.attrs["name"].replace(".", "_")
        if value.hint is None or of_register:
            value.hint = name


def _note(name: str, thing: Any, depth: int) -> None:
    """Keep what a variable stands for, for the simulator's debugger."""
    shown = isinstance(thing, (int, float)) or (
        _is_ours(type(thing)) and (hasattr(thing, "engine") or hasattr(thing, "value"))
    )
    if shown and name != "_" and Builder.active():
        frame = sys._getframe(depth)
        where = Location(frame.f_code.co_filename, frame.f_lineno)
        builder = Builder.current()
        after = builder.block.ops[-1] if builder.block.ops else None
        builder.variables.append(Variable(name, thing, where, after))


def names(wanted: tuple[str, ...], things: Any) -> Any:
    """The same for an assignment to a tuple of names; '' for other targets."""
    if type(things) is tuple and len(things) == len(wanted):
        for name, thing in zip(wanted, things, strict=True):
            if name and name != "_":
                _tell(name, thing)
                _note(name, thing, 2)
    return things
