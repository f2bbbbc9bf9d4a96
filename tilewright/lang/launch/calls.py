"""From the arguments of a call to the run-time values of a program.

Every argument reads itself, with all its checks (:meth:`~tilewright.lang.arguments.kinds.Argument.read`): the long way.
Most calls repeat another one with other addresses. What a machine is handed follows from each array's dtype, shape,
strides, device and address. The first four were checked when such a call was made before; from then on one look-up of
them replaces the checks, and the address alone is checked for its alignment. Arrays that look like those of the call
before need no look-up either (:func:`~tilewright.lang.arguments.arrays.looks_like`). This short way is one generated
function for each list of parameters, host code included; whatever is unusual takes the long way, which converts it or
says what is wrong.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from tilewright.errors import ArgumentError
from tilewright.ir.runtime import DevicePointer
from tilewright.lang.arguments.arrays import looks_like, unlike
from tilewright.lang.arguments.dlpack import HostTensor
from tilewright.lang.arguments.kinds import Argument
from tilewright.lang.launch.host import HostCode
from tilewright.lang.launch.short_call import ShortCall
from tilewright.lang.staging.location import GENERATED

REMEMBERED = 1024
"""Combinations of shapes that a function keeps; more than that are forgotten together."""
MISS = object()
"""The result of an ``exact`` call for arguments of another specialisation."""


class Parameter(NamedTuple):
    """A parameter of a compiled function that is passed at each call."""

    name: str
    argument: Argument
    default: Any = inspect.Parameter.empty


class Calls:
    """Calls of ``code`` with ``parameters``, by :attr:`call`.

    With ``exact``, arguments that would rather be another specialisation are not converted: MISS is given back.
    """

    def __init__(self, code: HostCode, parameters: list[Parameter], exact: bool = False) -> None:
        self.code, self.parameters, self.exact = code, parameters, exact
        self.known: dict[Any, tuple[Any, ...]] = {}
        """What was seen of the arrays of a call, to its plan: a test for arrays that look like them, and what else host
        code reads. Of an array these are its bounds, relative to its address, and its run-time extents and strides."""
        self.call: Callable[..., Any] = self.general
        scope: dict[str, Any] = {
            **code.scope,
            "general": self.general,
            "learn": self.learn,
            "known": self.known,
            "HostTensor": HostTensor,
            "DevicePointer": DevicePointer,
            "last": (unlike,),
            "Unlike": ValueError,
        }
        self._short = ShortCall(scope, exact)
        if text := self._short.of(parameters, code):
            exec(compile(text, f"{GENERATED}calls of {code.function.name}>", "exec"), scope)
            self.call = scope["call"]

    def general(self, *args: Any) -> Any:
        """The long way: every argument reads itself."""
        pairs = zip(self.parameters, args, strict=True)
        if not self.exact:
            return self.code.run([value for p, a in pairs for value in p.argument.read(a)])
        try:
            values = [value for p, a in pairs for value in p.argument.exact(a)]
        except ArgumentError:
            return MISS
        return self.code.run(values)

    def learn(self, seen: Any, args: tuple[Any, ...], arrays: tuple[Any, ...]) -> Any:
        """Call without a plan, and keep the plan for arguments that look the same. ``arrays`` are those of ``args``,
        and of the tuples among them."""
        result = self.general(*args)
        if result is not MISS and all(whole.by_fields(args[i]) for i, whole in self._short.opened):
            if len(self.known) >= REMEMBERED:
                self.known.clear()
            reads = [argument.read(array) for argument, array in zip(self._short.tensors, arrays, strict=True)]
            plan = (looks_like(arrays), *self.code.ready(reads[0][0].device))
            for pointer, *leaves in reads:
                plan += (pointer.low - pointer.address, pointer.high - pointer.address, *leaves)
            self.known[seen] = plan
        return result
