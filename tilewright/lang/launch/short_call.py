"""The short way of a call as the text of one function: see :mod:`calls`.

Arrays are recognised by how they look; numbers, streams and what is part of the program are read as they are. Tuples
and dataclasses are opened where an array is in them. All other arguments read themselves at each call, and what cannot
change, such as a named tuple of numbers that a library keeps, is read once.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any

from tilewright.ir.types import PtrType
from tilewright.lang.arguments.dlpack import HostTensor
from tilewright.lang.arguments.kinds import (
    Argument,
    CompoundArgument,
    ScalarArgument,
    StaticArgument,
    StreamArgument,
)
from tilewright.lang.arguments.protocol import ProtocolArgument, implicit_tensor
from tilewright.lang.launch.host import HostCode
from tilewright.lang.numbers.numeric import Boolean, Float32, Int32, Numeric

LOOK = ("dtype", "shape", "stride()", "get_device()", "is_neg()")
"""What is asked of a torch tensor beside its class. The long way checks more: the layout and the kind of the device.
Tensors that these refuse have no strides, or no memory and so no address (those of ``meta``, and FakeTensors)."""


class ShortCall:
    """The text of a function ``call(a0, a1, ...)``, put together from the lines that each argument needs.

    With ``exact``, a Python number is read only as the type that it has by itself.
    """

    def __init__(self, scope: dict[str, Any], exact: bool) -> None:
        self.scope, self.exact = scope, exact
        """``scope``: the globals of the function."""
        self.reads: list[str] = []
        """Statements that read arguments without a plan; those of ``looks`` also say in ``s_<a>`` how it looks."""
        self.looks: list[str] = []
        self.addresses: list[str] = []
        """As ``looks``, for arrays that look like those of the call before."""
        self.checks = ["not plan"]
        """Conditions under which the call takes the long way."""
        self.planned = ["_", "kernels", "device"]
        """The names of the fields of a plan."""
        self.pointers: list[str] = []
        """Statements that make the pointers that a machine takes."""
        self.arrays: list[str] = []
        """The variables that hold arrays, and in ``tensors`` what each of them is passed for."""
        self.tensors: list[ProtocolArgument] = []
        self.opened: list[tuple[int, ProtocolArgument]] = []
        """The parameters whose fields are read, not what their own methods pass: their numbers, and their arguments."""

    def of(self, parameters: Sequence[Any], code: HostCode) -> str:
        """The text; '' where an argument is of a kind that has no short way, or none is an array."""
        passed = iter(code.names)
        for i, (_, argument, _) in enumerate(parameters):
            if not self._add(f"a{i}", argument, [next(passed) for _ in argument.types()]):
                return ""
            if isinstance(argument, ProtocolArgument) and argument.fields is not None and _has_pointers(argument):
                self.opened.append((i, argument))
        return self._text(len(parameters), code.lines) if self.arrays else ""

    def _add(self, a: str, argument: Argument, values: list[str]) -> bool:
        """Pass the variable ``a`` as the host code's ``values``; False: there is no short way for it."""
        if isinstance(argument, StaticArgument):
            self.scope[f"fixed_{a}"] = argument.value
            self.scope[f"read_{a}"] = CachedArgument(argument, self.exact)
            self.reads.append(f"if {a} is not fixed_{a}: read_{a}({a})")
        elif isinstance(argument, ScalarArgument):
            self._add_number(a, argument, *values)
        elif isinstance(argument, StreamArgument):
            self.scope[f"read_{a}"] = argument.read
            self.reads.append(f"{values[0]} = {a} if type({a}) is int else read_{a}({a})[0]")
        elif isinstance(argument, ProtocolArgument) and _is_tensor(argument):
            self._add_tensor(a, argument, *values)
        elif not _has_pointers(argument):
            self.scope[f"read_{a}"] = CachedArgument(argument, self.exact)
            self.reads.append("".join(f"{v}, " for v in values) + f"{'= ' * bool(values)}read_{a}({a})")
        else:
            whole = argument.fields if isinstance(argument, ProtocolArgument) and "_" not in a else argument
            return isinstance(whole, CompoundArgument) and self._add_parts(a, whole, values)
        return True

    def _add_number(self, a: str, argument: ScalarArgument, value: str) -> None:
        self.scope[f"type_{a}"] = cls = argument.cls
        self.reads.append(f"{value} = {a}.value if type({a}) is type_{a} else {a}")
        number = _needs_no_conversion(value, argument)
        if self.exact and cls not in (Boolean, Int32, Float32):  # as Python's own number it would be one of these
            number = f"type({a}) is type_{a} and {number}"
        self.checks.append(f"not ({number})")

    def _add_tensor(self, a: str, argument: ProtocolArgument, at: str, *leaves: str) -> None:
        kind: Any = argument.types()[0]
        self.scope[f"token_{a}"] = argument.token
        look = ", ".join([f"type({a})", *(f"{a}.{part}" for part in LOOK)])
        self.looks += [
            f"if type({a}) is HostTensor:",
            f"    token, leaves = {a}.passed",
            f"    if token is not token_{a}: raise Unlike",  # not general(): its errors would be caught here
            f"    {at}, s_{a} = leaves[0].address, (leaves[0].device, *leaves[1:])",
            "else:",
            f"    {at}, s_{a} = {a}.data_ptr(), ({look})",
        ]
        self.addresses.append(f"{at} = {a}.data_ptr()")
        self.checks += [f"not {at}", *([f"{at} & {kind.align - 1}"] if kind.align > 1 else [])]
        self.planned += [f"low_{a}", f"high_{a}", *leaves]
        self.pointers.append(f"{at} = DevicePointer({at}, device, {at} + low_{a}, {at} + high_{a}, {a})")
        self.arrays.append(a)
        self.tensors.append(argument)

    def _add_parts(self, a: str, argument: CompoundArgument, values: list[str]) -> bool:
        """A tuple, a list or a dataclass of exactly the type that was compiled, part by part."""
        if issubclass(argument.type, dict):
            return False
        self.scope[f"type_{a}"] = argument.type
        items = a
        if not issubclass(argument.type, (tuple, list)):
            self.scope[f"split_{a}"], items = argument.split, f"split_{a}({a})"
        parts = [f"{a}_{k}" for k in range(len(argument.parts))]
        self.reads.append(f"if type({a}) is not type_{a}: raise Unlike")
        self.reads.append(f"{', '.join(parts)}, = {items}")
        rest = iter(values)
        return all(
            self._add(name, part, [next(rest) for _ in part.types()])
            for name, part in zip(parts, argument.parts, strict=True)
        )

    def _text(self, count: int, host_code: list[str]) -> str:
        """The function of ``count`` parameters, whose last lines are those of the host code."""
        args = ", ".join(f"a{i}" for i in range(count))
        seen = "".join(f"s_{a}, " for a in self.arrays)
        arrays = ", ".join(self.arrays)
        # PyTorch's own test ends the process at a nested tensor, whose strides it asks for where no error may arise.
        nested = " or ".join(f"{a}.is_nested" for a in self.arrays)
        return "\n".join(
            [
                f"def call({args}):",
                "    global last",
                "    plan = last",
                "    try:",
                *(f"        {line}" for line in self.reads),
                f"        if not ({nested}) and plan[0]({arrays}):",
                *(f"            {line}" for line in self.addresses),
                "        else:",
                *(f"            {line}" for line in self.looks),
                f"            plan = known.get(({seen}))",
                "            if plan: last = plan",
                "    except Exception: plan = ()",  # general() runs outside the handler: its errors stand alone
                f"    if plan is None: return learn(({seen}), ({args}, ), ({arrays}, ))",
                f"    if {' or '.join(self.checks)}: return general({args})",
                f"    {', '.join(self.planned)} = plan",
                "    if device is not None:",
                *(f"        {line}" for line in self.pointers),
                *host_code,
                "",
            ]
        )


class CachedArgument:
    """Reads an argument without arrays. What it read is kept while the same object comes, if that cannot change."""

    def __init__(self, argument: Argument, exact: bool) -> None:
        self.read: Callable[[Any], list[Any]] = argument.exact if exact else argument.read
        self.last: tuple[Any, list[Any]] = object(), []

    def __call__(self, value: Any) -> list[Any]:
        seen, cached = self.last  # one look: another thread may put another pair there
        if value is not seen:
            cached = self.read(value)
            if _is_constant(value):
                self.last = value, cached
        return cached


def _is_constant(value: Any) -> bool:
    """Whether an object stays what it is: numbers, names, and tuples of them."""
    if isinstance(value, tuple):
        return all(map(_is_constant, value)) and not hasattr(value, "__dict__")
    if isinstance(value, Numeric):
        return value.is_static
    return value is None or type(value) in (bool, int, float, str) or isinstance(value, (enum.Enum, type))


def _has_pointers(argument: Argument) -> bool:
    return any(isinstance(kind, PtrType) for kind in argument.types())


def _needs_no_conversion(number: str, argument: ScalarArgument) -> str:
    """The test whether a variable holds a Python number that is passed as it is."""
    if argument.cls is Boolean:
        return f"({number} is True or {number} is False)"
    if argument.span is None:
        return f"type({number}) is float"
    low, high = argument.span
    return f"type({number}) is int and {low} <= {number} <= {high}"


def _is_tensor(argument: ProtocolArgument) -> bool:
    """Whether the argument is a tensor of the library, or an array that becomes one in the usual way."""
    return argument.convert in (None, implicit_tensor) and isinstance(argument.template, HostTensor)
