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
from tilewright.lang.arguments.kinds import Argument, ScalarArgument, StaticArgument, StreamArgument
from tilewright.lang.arguments.protocol import ProtocolArgument, implicit_tensor
from tilewright.lang.launch.host import HostCode
from tilewright.lang.numbers.numeric import Boolean
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
        if text := self._short(scope):
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

    def learn(self, seen: Any, args: tuple[Any, ...]) -> Any:
        """Call the long way, and remember the plan for arguments that look the same."""
        result = self.general(*args)
        if result is not MISS:
            if len(self.known) >= REMEMBERED:
                self.known.clear()
            tensors = [(p.argument, a) for p, a in zip(self.parameters, args, strict=True) if _is_tensor(p.argument)]
            reads = [argument.read(array) for argument, array in tensors]
            plan = (looks_like([array for _, array in tensors]), *self.code.ready(reads[0][0].device))
            for pointer, *leaves in reads:
                plan += (pointer.low - pointer.address, pointer.high - pointer.address, *leaves)
            self.known[seen] = plan
        return result

    def _short(self, scope: dict[str, Any]) -> str:
        """``call(a0, a1, ...)``, whose constants go into ``scope``; '' where an argument is of a kind that has no short
        way, or none is an array."""
        made = ShortCall(scope)
        passed = iter(self.code.names)
        for i, (_, argument, _) in enumerate(self.parameters):
            if not made.add(i, argument, [next(passed) for _ in argument.types()]):
                return ""
        return made.text(len(self.parameters), self.code.lines) if made.arrays else ""


class ShortCall:
    """The text of a function ``call(a0, a1, ...)``, put together from the lines that each parameter needs."""

    def __init__(self, scope: dict[str, Any]) -> None:
        self.scope = scope
        """The globals of the function."""
        self.reads: list[str] = []
        """Statements that read arguments without a plan; those of ``looks`` also say in ``s<i>`` how an array looks."""
        self.looks: list[str] = []
        self.addresses: list[str] = []
        """As ``looks``, for arrays that look like those of the call before."""
        self.checks = ["not plan"]
        """Conditions under which the call takes the long way."""
        self.planned = ["_", "kernels", "device"]
        """The names of what a plan holds."""
        self.pointers: list[str] = []
        """Statements that make the pointers that a machine takes."""
        self.arrays: list[int] = []

    def add(self, i: int, argument: Argument, values: list[str]) -> bool:
        """Pass ``a<i>`` as the host code's ``values``; False: there is no short way for it."""
        if isinstance(argument, StaticArgument):
            self.scope[f"fixed{i}"] = argument.value
            self.checks.append(f"a{i} is not fixed{i}")
        elif isinstance(argument, ScalarArgument):
            self.checks.append(f"not ({_needs_no_conversion(i, argument)})")
            self.reads.append(f"{values[0]} = a{i}")
        elif isinstance(argument, StreamArgument):
            self.scope[f"read{i}"] = argument.read
            self.reads.append(f"{values[0]} = a{i} if type(a{i}) is int else read{i}(a{i})[0]")
        elif _is_tensor(argument):
            self._add_tensor(i, argument, *values)
        else:
            return False
        return True

    def _add_tensor(self, i: int, argument: Argument, at: str, *leaves: str) -> None:
        kind: Any = argument.types()[0]
        self.scope[f"token{i}"] = argument.token  # type: ignore[attr-defined]  # of a usual Protocol
        self.looks += [
            f"if type(a{i}) is HostTensor:",
            f"    token, leaves = a{i}.passed",
            f"    if token is not token{i}: raise Unlike",  # not general(): its errors would be caught here
            f"    {at}, s{i} = leaves[0].address, (leaves[0].device, *leaves[1:])",
            "else:",
            f"    {at}, s{i} = a{i}.data_ptr(), (a{i}.dtype, a{i}.shape, a{i}.stride(), a{i}.get_device())",
        ]
        self.addresses.append(f"{at} = a{i}.data_ptr()")
        if kind.align > 1:
            self.checks.append(f"{at} & {kind.align - 1}")
        self.planned += [f"low{i}", f"high{i}", *leaves]
        self.pointers.append(f"{at} = DevicePointer({at}, device, {at} + low{i}, {at} + high{i}, a{i})")
        self.arrays.append(i)

    def text(self, count: int, host_code: list[str]) -> str:
        """The function of ``count`` parameters, whose last lines are those of the host code."""
        args = ", ".join(f"a{i}" for i in range(count))
        seen = "".join(f"s{i}, " for i in self.arrays)
        return "\n".join(
            [
                f"def call({args}):",
                "    global last",
                "    plan = last",
                "    try:",
                *(f"        {line}" for line in self.reads),
                f"        if plan[0]({', '.join(f'a{i}' for i in self.arrays)}):",
                *(f"            {line}" for line in self.addresses),
                "        else:",
                *(f"            {line}" for line in self.looks),
                f"            plan = known.get(({seen}))",
                "            if plan: last = plan",
                "    except Exception: plan = ()",  # general() runs outside the handler: its errors stand alone
                f"    if plan is None: return learn(({seen}), ({args}, ))",
                f"    if {' or '.join(self.checks)}: return general({args})",
                f"    {', '.join(self.planned)} = plan",
                "    if device is not None:",
                *(f"        {line}" for line in self.pointers),
                *host_code,
                "",
            ]
        )


def _needs_no_conversion(i: int, argument: ScalarArgument) -> str:
    """The test whether the argument is a Python number that is passed as it is."""
    if argument.cls is Boolean:
        return f"a{i} is True or a{i} is False"
    if argument.span is None:
        return f"type(a{i}) is float"
    low, high = argument.span
    return f"type(a{i}) is int and {low} <= a{i} <= {high}"


def _is_tensor(argument: Argument) -> bool:
    """Whether the argument is a tensor of the library, or an array that becomes one in the usual way."""
    usual = isinstance(argument, ProtocolArgument) and argument.convert in (None, implicit_tensor)
    return usual and isinstance(argument.template, HostTensor)  # type: ignore[attr-defined]  # a Protocol
