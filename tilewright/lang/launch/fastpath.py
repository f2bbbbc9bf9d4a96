"""Generated readers of arguments: the few attribute look-ups and comparisons that a call costs.

For each parameter the writer picks the cheapest way to its values that still notices when the argument does not fit;
whatever is unusual goes to the argument's own ``read``, which converts it or says what is wrong.
"""

from __future__ import annotations

import inspect
from typing import Any, NamedTuple, NoReturn

from tilewright.errors import ArgumentError
from tilewright.ir.runtime import DevicePointer
from tilewright.ir.types import PtrType, ScalarType
from tilewright.lang.arguments.dlpack import HostTensor
from tilewright.lang.arguments.kinds import Argument, Fixed, Scalar, StreamArgument
from tilewright.lang.arguments.protocol import Protocol
from tilewright.lang.arguments.protocol import implicit_tensor as implicit
from tilewright.lang.numbers.numeric import Boolean

MISS = object()
"""What ``direct`` gives for arguments of another specialisation."""


class Parameter(NamedTuple):
    """A parameter of a compiled function that is passed at each call."""

    name: str
    argument: Argument
    default: Any = inspect.Parameter.empty


class Caller:
    """Writes ``call(a, b, ...)``, which reads the arguments and calls ``body``, and ``generic(values)``.

    With ``strict`` it writes ``direct`` instead, for calls that may be of another specialisation: where an argument is
    not exactly of the kind that the program was made for, MISS is given back and nothing is run.
    """

    def __init__(
        self, parameters: list[Parameter], pointers: list[int], arguments: list[Argument], strict: bool = False
    ) -> None:
        self.parameters, self.pointers, self.strict = parameters, pointers, strict
        self.count = sum(len(a.types()) for a in arguments)
        self.offsets: dict[int, int] = {}
        offset = 0
        for argument in arguments:
            self.offsets[id(argument)] = offset
            offset += len(argument.types())
        self.constants = [a for a in arguments if a.types() and not any(a is p.argument for p in parameters)]
        self.scope: dict[str, Any] = {
            "same_device": same_device,
            "DevicePointer": DevicePointer,
            "make": tuple.__new__,
            "device_of": _DeviceNames(),
            "HostTensor": HostTensor,
            "MISS": MISS,
            "ArgumentError": ArgumentError,
        }
        self.lines: list[str] = []

    def write(self) -> str:
        values = [f"v{i}" for i in range(self.count)]
        for i, parameter in enumerate(self.parameters):
            self.read(i, parameter)
        for argument in self.constants:
            raise ArgumentError(f"argument '{argument.name}': a bound object with run-time parts cannot be compiled")
        head = ", ".join(f"a{i}" for i in range(len(self.parameters)))
        device = self.device()
        body = f"    return body({', '.join(['device', *values])})"
        if self.strict:
            guarded = [f"    {line}" for line in self.lines] or ["        pass"]
            lines = [
                f"def direct({head}):",
                "    try:",
                *guarded,
                "    except ArgumentError: return MISS",
                device,
                body,
            ]
            return "\n".join(lines) + "\n"
        unpack = [f"    {''.join(f'{v}, ' for v in values)} = values"] if values else []
        return "\n".join(
            [f"def call({head}):", *self.lines, device, body, "", "def generic(values):", *unpack, device, body, ""]
        )

    def device(self) -> str:
        pointers = [f"v{i}.device" for i in self.pointers]
        if not pointers:
            return "    device = 'cpu'"
        first, *others = pointers
        lines = [f"    device = {first}"]
        if others:
            differ = " or ".join(f"{other} != device" for other in others)
            lines.append(f"    if {differ}: same_device(({', '.join(pointers)},))")
        return "\n".join(lines)

    def read(self, i: int, parameter: Parameter) -> None:
        argument = parameter.argument
        offset = self.offsets[id(argument)]
        targets = [f"v{offset + k}" for k in range(len(argument.types()))]
        self.scope[f"read{i}"] = argument.exact if self.strict else argument.read
        slow = f"{''.join(t + ', ' for t in targets)} = read{i}(a{i})" if targets else f"read{i}(a{i})"
        other = "return MISS" if self.strict else slow
        if isinstance(argument, Fixed):
            self.scope[f"fixed{i}"] = argument.value
            self.lines.append(f"    if a{i} is not fixed{i}: {other}")
        elif isinstance(argument, Scalar):
            self.scalar(i, argument, targets[0], other)
        elif isinstance(argument, StreamArgument):
            self.stream(i, targets[0], slow)
        elif isinstance(argument, Protocol) and argument.convert is implicit and is_torch(argument.template.array):
            self.torch(i, argument, targets, other)
        elif isinstance(argument, Protocol) and isinstance(argument.template, HostTensor) and argument.convert is None:
            self.scope[f"token{i}"] = argument.token
            self.lines += [
                f"    if type(a{i}) is HostTensor and a{i}.passed[0] is token{i}:",
                f"        {', '.join(targets)}, = a{i}.passed[1]",
                f"    else: {slow}",
            ]
        else:
            self.lines.append(f"    {slow}")

    def accepts(self, i: int, argument: Scalar) -> str:
        """The test for a Python number that needs no conversion."""
        if argument.cls is Boolean:
            return f"a{i} is True or a{i} is False"
        if argument.span is None:
            return f"type(a{i}) is float"
        low, high = argument.span
        return f"type(a{i}) is int and {low} <= a{i} <= {high}"

    def scalar(self, i: int, argument: Scalar, target: str, slow: str) -> None:
        self.lines += [f"    if {self.accepts(i, argument)}: {target} = a{i}", f"    else: {slow}"]

    def stream(self, i: int, target: str, slow: str) -> None:
        self.lines += [f"    if type(a{i}) is int: {target} = a{i}", f"    else: {slow}"]

    def torch(self, i: int, argument: Protocol, targets: list[str], slow: str) -> None:
        """A PyTorch tensor passed as it is: type, rank, unit strides and range are compared, the rest is read."""
        layout, array = argument.template.layout, argument.template.array
        rank = len(array.shape)
        kind = argument.types()[0]
        assert isinstance(kind, PtrType)
        if rank == 0:
            self.lines.append(f"    {slow}")
            return
        self.scope[f"dtype{i}"] = array.owner.dtype
        shape, stride = [f"n{i}_{k}" for k in range(rank)], [f"d{i}_{k}" for k in range(rank)]
        checks = [f"a{i}.dtype is dtype{i}"]
        checks += [f"{d} == {s}" for d, s in zip(stride, layout.stride, strict=True) if isinstance(s, int)]
        wide = any(t.width == 64 for t in argument.types()[1:] if isinstance(t, ScalarType))
        reach = " + ".join(f"({n} - 1) * {d}" for n, d in zip(shape, stride, strict=True))
        checks.append(f"r{i} {'>=' if wide else '<'} {1 << 31}")
        if kind.align > kind.elem.bytes:
            checks.append(f"not p{i} % {kind.align}")
        leaves = [n for n, s in zip(shape, layout.shape, strict=True) if not isinstance(s, int)]
        leaves += [d for d, s in zip(stride, layout.stride, strict=True) if not isinstance(s, int)]
        end = f"p{i} + (r{i} + 1) * {kind.elem.bytes}"
        made = f"make(DevicePointer, (p{i}, device_of[a{i}.get_device()], p{i}, {end}, a{i}))"
        self.lines += [
            "    try:",
            f"        {''.join(n + ', ' for n in shape)} = a{i}.shape",
            f"        {''.join(d + ', ' for d in stride)} = a{i}.stride()",
            f"        p{i} = a{i}.data_ptr()",
            f"        r{i} = {reach}",
            f"        fits = {' and '.join(checks)}",
            "    except (AttributeError, TypeError, ValueError): fits = False",
            f"    if fits: {', '.join(targets)} = {', '.join([made, *leaves])}",
            f"    else: {slow}",
        ]


class _DeviceNames(dict[int, str]):
    """PyTorch's device numbers (-1 for the CPU) to names."""

    def __missing__(self, number: int) -> str:
        name = self[number] = "cpu" if number < 0 else f"cuda:{number}"
        return name


def is_torch(array: Any) -> bool:
    owner = array.owner
    return type(owner).__module__.partition(".")[0] == "torch" and hasattr(owner, "data_ptr")


def same_device(devices: tuple[str, ...]) -> NoReturn:
    """The arrays of one call must live together."""
    found = ", ".join(dict.fromkeys(devices))
    raise ArgumentError(f"the arrays of one call lie on several devices ({found}); move them to one")
