"""The short way of a call whose arrays look like those of an earlier call: nothing but their addresses is new.

What a machine that needs addresses only (a GPU) is handed follows from each array's dtype, shape, strides, device and
address. The first four were checked when such a call was made before; from then on one look-up of them replaces the
checks, and the address alone is checked for its alignment. Anything else takes the long way, which says what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.errors import StagingError
from tilewright.ir.core import Function, Op
from tilewright.ir.types import PtrType
from tilewright.lang.arguments.dlpack import HostTensor
from tilewright.lang.arguments.kinds import Fixed, Scalar, StreamArgument
from tilewright.lang.arguments.protocol import Protocol, implicit_tensor
from tilewright.lang.launch.fastpath import MISS, Caller
from tilewright.lang.launch.host import HostWriter
from tilewright.lang.staging.location import GENERATED

REMEMBERED = 1024
"""Combinations of shapes that a function keeps; more than that are forgotten together."""


class AddressWriter(HostWriter):
    """The host function with addresses in the place of pointers, for functions that only launch kernels."""

    def flush(self, pending: list[Op], later: list[Op]) -> None:
        if pending:
            raise StagingError("what touches memory on the host needs pointers")

    def op_ptr_add(self, op: Op) -> None:
        pointer, index = op.operands
        assert isinstance(pointer.type, PtrType)
        self.line(f"{self.name(op.result)} = {self.use(pointer)} + {self.use(index)} * {pointer.type.elem.bytes}")

    def op_ptr_toint(self, op: Op) -> None:
        self.line(f"{self.name(op.result)} = {self.use(op.operands[0])}")

    op_ptr_fromint = op_ptr_toint


class Plans:
    """What earlier calls showed: for what was seen of the arguments, the device and the other run-time values."""

    def __init__(self, caller: Caller, general: Callable[..., Any], loaded: dict[str, list[Any]]) -> None:
        self.caller, self.general, self.loaded = caller, general, loaded
        self.last: list[tuple[Any, Any]] = [(None, None)]
        """What the last call showed, with its plan: comparing is cheaper than looking up."""
        self.launches: dict[str, list[Any]] = {}
        self.known: dict[Any, tuple[Any, ...]] = {}
        """No plan at all, ``()``, is for arrays of a machine that needs more than addresses."""

    def learn(self, seen: Any, args: tuple[Any, ...]) -> Any:
        """Call the long way, and remember the way for arguments that look the same."""
        result = self.general(*args)
        if result is MISS:
            return result
        if len(self.known) >= REMEMBERED:
            self.known.clear()
        pairs = zip(self.caller.parameters, args, strict=True)
        reads = [(p.argument.read(a) if isinstance(p.argument, Protocol) else []) for p, a in pairs]
        device = next(values[0].device for values in reads if values)
        plan: tuple[Any, ...] = ()
        if all(hasattr(kernel, "on") for kernel in self.loaded.get(device, [None])):
            plan = (device, *(leaf for values in reads for leaf in values[1:]))
        self.known[seen] = plan
        self.last[0] = seen, plan
        return result

    def load(self, device: str) -> list[Any]:
        """The launches on ``device`` that take addresses."""
        found = self.launches[device] = [kernel.on(device) for kernel in self.loaded[device]]
        return found


def shorten(
    host: Function, caller: Caller, general: Callable[..., Any], loaded: dict[str, list[Any]]
) -> Callable[..., Any]:
    """``general``, or a function that does the same by the short way where it can; ``caller`` wrote ``general``."""
    writer = AddressWriter(host)
    text = _text(caller)
    if text is None:
        return general
    try:
        body = writer.write()
    except StagingError:
        return general
    plans = Plans(caller, general, loaded)
    scope = {**writer.scope, **caller.scope, "loaded": plans.launches, "load": plans.load, "general": general,
             "known": plans.known, "last": plans.last, "learn": plans.learn}  # fmt: skip
    exec(compile(f"{body}\n{text}", f"{GENERATED}short calls of {host.name}>", "exec"), scope)
    short: Callable[..., Any] = scope["short"]
    return short


def _text(caller: Caller) -> str | None:
    """``short(a0, a1, ...)``; None where an argument is of a kind that has no short way, or none is an array."""
    reads: list[str] = []
    checks: list[str] = []
    seen: list[str] = []
    planned: list[str] = []
    for i, parameter in enumerate(caller.parameters):
        argument = parameter.argument
        start = caller.offsets[id(argument)]
        values = [f"v{start + k}" for k in range(len(argument.types()))]
        if isinstance(argument, Fixed):
            checks.append(f"a{i} is not fixed{i}")
        elif isinstance(argument, Scalar):
            checks.append(f"not ({caller.accepts(i, argument)})")
            reads.append(f"{values[0]} = a{i}")
        elif isinstance(argument, StreamArgument):
            reads.append(f"{values[0]} = a{i} if type(a{i}) is int else read{i}(a{i})[0]")
        elif isinstance(argument, Protocol) and _is_tensor(argument):
            kind = argument.types()[0]
            assert isinstance(kind, PtrType)
            caller.scope[f"token{i}"] = argument.token
            reads += [
                f"if type(a{i}) is HostTensor:",
                f"    t{i}, l{i} = a{i}.passed",
                f"    {values[0]}, s{i} = l{i}[0].address, (l{i}[0].device, *l{i}[1:])",
                "else:",
                f"    t{i}, {values[0]} = token{i}, a{i}.data_ptr()",
                f"    s{i} = a{i}.dtype, a{i}.shape, a{i}.stride(), a{i}.get_device()",
            ]
            seen.append(f"s{i}, ")
            checks += [f"t{i} is not token{i}", f"{values[0]} & {kind.align - 1}"]
            planned += values[1:]
        else:
            return None
    if not seen:
        return None
    args = ", ".join(f"a{i}" for i in range(len(caller.parameters)))
    return "\n".join([
        f"def short({args}):",
        "    try:",
        *(f"        {line}" for line in reads),
        f"        seen = ({''.join(seen)})",
        "        before, plan = last[0]",
        "        if seen != before: last[0] = seen, plan = seen, known.get(seen)",
        "    except Exception: plan = ()",  # general() runs outside the handler: its errors stand alone
        f"    if plan is None: return learn(seen, ({args}, ))",
        f"    if {' or '.join(['not plan', *checks])}: return general({args})",
        f"    {''.join(v + ', ' for v in ['device', *planned])} = plan",
        f"    return body({', '.join(['device', *(f'v{k}' for k in range(caller.count))])})",
        "",
    ])  # fmt: skip


def _is_tensor(argument: Protocol) -> bool:
    """Whether the argument is a tensor of the library, or an array that becomes one in the usual way."""
    return argument.convert in (None, implicit_tensor) and isinstance(argument.template, HostTensor)
