"""Host functions as Python source: grid expressions and parameter packing, written once and run at each call.

Scalar arithmetic, control flow, pointer offsets and launches become plain Python. What touches memory, vectors or the
console (a documentation sample that runs TensorSSA code on the host) is cut out into *segments*, which the CPU machine
runs as one thread.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

from tilewright.errors import ArgumentError, MachineError, StagingError
from tilewright.ir.arithmetic import DIVISIONS, TABLE, action, convert, evaluate, normalise
from tilewright.ir.core import Block, Constant, Function, Op, Value
from tilewright.ir.launch import LaunchOperands
from tilewright.ir.ops import ELEMENTWISE
from tilewright.ir.passes.written import written_by_host
from tilewright.ir.runtime import DevicePointer, LaunchConfig
from tilewright.ir.types import BOOL, F32, F64, PtrType, ScalarType, element_of
from tilewright.lang.launch.machine import machine_of
from tilewright.lang.launch.segments import Segment, outline
from tilewright.lang.staging.location import GENERATED

SCALAR = ELEMENTWISE | {"select", "cast"}
_POINTER = frozenset(("ptr.add", "ptr.cast", "ptr.toint", "ptr.fromint", "tensormap"))


def in_python(op: Op) -> bool:
    """Whether the generated Python can do ``op``, which launches nothing, itself."""
    if op.opcode in SCALAR:
        return all(isinstance(v.type, ScalarType) for v in (*op.operands, *op.results))
    if op.opcode in _POINTER or op.opcode in ("assert", "yield"):
        return True
    return op.opcode in ("for", "if") and all(in_python(inner) for region in op.regions for inner in region.ops)


def is_positive(value: Value) -> bool:
    """Whether a division of integers by ``value`` cannot fail or overflow."""
    return isinstance(value, Constant) and value.value > 0


def launches(op: Op) -> bool:
    return any(inner.opcode == "launch" for inner in op.walk())


def narrow_floats(function: Function) -> list[Value]:
    """Parameters that hold Python floats (of 64 bits) and that the host computes with: launches round them on their
    own."""
    used = {v for op in function.body.walk() if op.opcode != "launch" for v in op.operands}
    kinds = [(p, p.type) for p in function.params if p in used]
    return [p for p, kind in kinds if isinstance(kind, ScalarType) and kind.is_float and kind.width < 64]


class HostCode:
    """One host function ready to run: ``body(kernels, device, v0, v1, ...)`` is made of ``source``.

    Pointers among the values are DevicePointers, for the ``kernels`` of a machine as they are loaded, or all of them
    plain addresses (``device`` is None then), for launches that take addresses.
    """

    def __init__(self, function: Function, options: Any = None) -> None:
        writer = HostWriter(function)
        self.function, self.options = function, options
        self.source, self.kernels = writer.write(), writer.kernels
        self.names, self.lines = [writer.name(p) for p in function.params], writer.lines
        self.only_launches = not writer.segments  # what touches memory on the host needs more than addresses
        self.loaded: dict[str, list[Any]] = {}
        self.pointers = [i for i, p in enumerate(function.params) if isinstance(p.type, PtrType)]
        self.equal: list[tuple[int, int]] = []
        """Pairs of values that a stand-in's symbol says are one number."""
        self.scope = writer.scope
        exec(compile(self.source, f"{GENERATED}host code of {function.name}>", "exec"), self.scope)
        self.body: Callable[..., tuple[Any, ...]] = self.scope["body"]

    @cached_property
    def written(self) -> dict[int, Any]:
        """The values, by their numbers, whose memory is written, with an operation that does."""
        return written_by_host(self.function)

    def run(self, values: list[Any]) -> tuple[Any, ...]:
        """Run with the values of all arguments, on the machine where the arrays among them are."""
        devices = dict.fromkeys(values[i].device for i in self.pointers)
        for i, op in self.written.items():
            if values[i].readonly:
                raise ArgumentError(
                    f"argument '{self.function.params[i].hint}': the array is read-only, and {op.loc or 'the kernel'} "
                    "writes to it. Pass a copy (array.copy()); JAX's arrays never change: let "
                    "cutlass.jax.cutlass_call make the outputs"
                )
        if len(devices) > 1:
            names = ", ".join(devices)
            raise ArgumentError(f"the arrays of one call are on several devices ({names}); move them to one")
        for i, j in self.equal:
            if values[i] != values[j]:
                first, second = (self.function.params[k].hint for k in (i, j))
                raise ArgumentError(
                    f"'{second}' is {values[j]}, and '{first}' is {values[i]}: the function was compiled with one "
                    "symbol (SymInt) for both"
                )
        device = next(iter(devices), "cpu")
        return self.body(self.loaded.get(device) or self.load(device), device, *values)

    def load(self, device: str) -> list[Any]:
        """The kernels ready for ``device``, which are remembered."""
        if self.kernels:
            machine = machine_of(device)
            self.loaded[device] = [machine.load(kernel, self.options) for kernel in self.kernels]
        return self.loaded.get(device, [])

    def ready(self, device: str) -> tuple[Any, ...]:
        """The first arguments of ``body`` for arrays on ``device``: by plain addresses if all that it does takes them
        (launches on a GPU do)."""
        kernels = self.loaded.get(device, [])
        if self.only_launches and all(hasattr(kernel, "on") for kernel in kernels):
            return [kernel.on(device) for kernel in kernels], None
        return kernels, device

    def moving(
        self,
        device: str,
        values: Sequence[Any],
        moved: Sequence[Any],
        stream: int,
        addresses: Sequence[int],
        distances: Mapping[int, int],
    ) -> list[Callable[[int, Sequence[int]], None]]:
        """The launches that ``body`` makes on ``stream``, each to be called with any stream and the addresses of arrays
        anywhere. For host code that is :meth:`ready` by plain addresses and names no stream. Empty where the launches
        depend on addresses in another way than by pointing there.

        ``values`` are those of arrays at ``addresses``, ``moved`` those where each of them is further on by a distance
        of its own; ``distances`` says by the distance which array it is.
        """
        first, second = self.launched(device, values, stream), self.launched(device, moved, stream)
        if [(kernel, config) for kernel, config, _ in first] != [(kernel, config) for kernel, config, _ in second]:
            return []
        launches = [
            kernel.moving(device, config, before, after, addresses, distances)
            for (kernel, config, before), (_, _, after) in zip(first, second, strict=True)
        ]
        return [] if None in launches else launches

    def launched(
        self, device: str, values: Sequence[Any], stream: int
    ) -> list[tuple[Any, LaunchConfig, Sequence[Any]]]:
        """Which kernels ``body`` launches with these values on ``device``, with their configurations and arguments.
        Nothing is launched."""
        launches: list[tuple[Any, LaunchConfig, Sequence[Any]]] = []

        def recorder(kernel: Any) -> Callable[[LaunchConfig, Sequence[Any]], None]:
            def record(config: LaunchConfig, arguments: Sequence[Any]) -> None:
                config = config._replace(stream=stream) if config.stream is None else config
                launches.append((kernel, config, arguments))

            return record

        self.body([recorder(kernel) for kernel in self.loaded[device]], None, *values)
        return launches


class HostWriter:
    """Writes the body of one host function: ``body(kernels, device, v0, v1, ...)``."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.lines: list[str] = []
        self.indent = 1
        self.names: dict[Value, str] = {}
        self.taken: set[str] = set()
        self.counts: dict[str, int] = {}
        self.constants: list[str] = []
        self.kernels: list[Function] = []
        self.segments: list[Segment] = []
        self.scope: dict[str, Any] = dict(_SCOPE)

    def write(self) -> str:
        params = ["kernels", "device", *(self.name(p) for p in self.function.params)]
        for parameter in narrow_floats(self.function):
            self.line(
                f"{self.name(parameter)} = {self.rounded(self.name(parameter), element_of(parameter.type), given=True)}"
            )
        self.block(self.function.body)
        return "\n".join([*self.constants, f"def body({', '.join(params)}):", *self.lines]) + "\n"

    # -- text ----------------------------------------------------------------------------------------------------

    def line(self, text: str) -> None:
        self.lines.append("    " * self.indent + text)

    def name(self, value: Value) -> str:
        """The Python variable of a value."""
        name = self.names.get(value)
        if name is None:
            base = value.hint if value.hint and value.hint.isidentifier() and value.hint.isascii() else "v"
            n = self.counts.get(base, 0)  # smaller numbers are taken
            name = f"{base}_{n or ''}"
            while name in self.taken:
                n += 1
                name = f"{base}_{n}"
            self.counts[base] = n
            self.taken.add(name)
            self.names[value] = name
        return name

    def use(self, value: Value) -> str:
        if not isinstance(value, Constant):
            return self.name(value)
        text = repr(value.value)
        return f"float('{text}')" if text in ("inf", "-inf", "nan") else f"({text})" if text.startswith("-") else text

    def assign(self, targets: list[Value], sources: list[str]) -> None:
        if targets:
            self.line(f"{', '.join(self.name(t) for t in targets)} = {', '.join(sources)}")

    # -- blocks --------------------------------------------------------------------------------------------------

    def block(self, block: Block) -> None:
        """All ops of a block but its yield; foreign ops between two launches are gathered into one segment."""
        pending: list[Op] = []
        foreign: set[Value] = set()
        for i, op in enumerate(block.ops):
            if op.opcode == "yield":
                self.flush(pending, block.ops[i:])
                self.terminator(op)
                return
            if launches(op):
                self.flush(pending, block.ops[i:])
                pending, foreign = [], set()
                self.op(op)
            elif not pending and in_python(op):
                self.op(op)
            elif in_python(op) and op.opcode in SCALAR | _POINTER and not foreign.intersection(op.operands):
                self.op(op)
            else:
                pending.append(op)
                foreign.update(op.results)
        self.flush(pending, [])

    def flush(self, pending: list[Op], later: list[Op]) -> None:
        """Run the gathered ops as a segment; ``later`` are the ops that may read its results."""
        if not pending:
            return
        segment = outline(pending, later, f"{self.function.name}_host{len(self.segments)}")
        label = f"segment{len(self.segments)}"
        self.segments.append(segment)
        self.scope[label] = segment
        call = f"{label}({', '.join(self.use(v) for v in segment.inputs)})"
        if segment.outputs:
            self.line(f"{', '.join(self.name(v) for v in segment.outputs)}, = {call}")
        else:
            self.line(call)

    def terminator(self, op: Op) -> None:
        """Only the outermost yield is written here; those of regions are written by their ops."""
        if self.indent == 1 and op.opcode == "yield":
            self.line(f"return ({''.join(self.use(v) + ', ' for v in op.operands)})")

    def nested(self, block: Block) -> Op:
        self.indent += 1
        self.block(block)
        self.indent -= 1
        return block.ops[-1]

    def yielded(self, targets: list[Value], values: list[Value]) -> None:
        self.indent += 1
        if targets:
            self.assign(targets, [self.use(v) for v in values])
        else:
            self.line("pass")
        self.indent -= 1

    # -- ops -----------------------------------------------------------------------------------------------------

    def op(self, op: Op) -> None:
        method = getattr(self, f"op_{op.opcode.replace('.', '_')}", None)
        if method is not None:
            method(op)
        elif op.opcode in SCALAR:
            self.line(f"{self.name(op.result)} = {self.scalar(op)}")
        else:
            raise StagingError(
                f"{op.loc}: a launch inside a run-time `{op.opcode}` is not possible in host code; launch in a "
                "`for` loop or an `if`, or call the compiled function in a loop of Python's"
            )

    def scalar(self, op: Op) -> str:
        """An elementwise op as an expression: the table's own where it is exact, else a call of what the table says."""
        opcode, operands = op.opcode, [self.use(v) for v in op.operands]
        if opcode == "select":
            return f"{operands[1]} if {operands[0]} else {operands[2]}"
        kind, result = element_of(op.operands[0].type), element_of(op.result.type)
        if opcode == "cast":
            return self.cast(operands[0], kind, result)
        forms = action(opcode, kind)
        checked = opcode in DIVISIONS and not kind.is_float and not is_positive(op.operands[1])
        if checked or not forms.python:
            place = [repr(str(op.loc or "host code"))] if checked else []
            make = partial(_divide, opcode, kind) if checked else partial(evaluate, opcode, kind)
            return f"{self.named(f'{opcode}_{kind.name}', make)}({', '.join([*operands, *place])})"
        text = forms.python.format(**dict(zip("abc", operands, strict=False)), width=kind.width)
        exact = forms.fits or TABLE[opcode].predicate or opcode in DIVISIONS
        return text if exact else self.rounded(text, result)

    def named(self, name: str, function: Callable[..., Any]) -> str:
        """The name of a function that the generated code calls; no other function has it."""
        while _parts(self.scope.setdefault(name, function)) != _parts(function):
            name += "_"
        return name

    def rounded(self, text: str, kind: ScalarType, given: bool = False) -> str:
        """Python's number made one of ``kind``: integers wrap, floats round (a ``given`` infinity stays)."""
        if kind == BOOL or (kind.is_float and kind.width == 64):
            return text
        if kind == F32:
            return f"float32({text}).value"
        if kind.is_float:
            rounds = partial(convert, F64, kind) if kind.width == 8 and not given else partial(normalise, kind)
            return f"{self.named(('read_' if given else 'to_') + kind.name, rounds)}({text})"
        mask = (1 << kind.width) - 1
        if kind.kind == "uint":
            return f"({text}) & {mask}"
        half = 1 << (kind.width - 1)
        return f"(({text}) + {half} & {mask}) - {half}"

    def cast(self, text: str, old: ScalarType, new: ScalarType) -> str:
        if new == BOOL:
            return f"{text} != 0"
        if new in (F32, F64) and (old.is_float or new == F64 or old.width <= 32):
            return self.rounded(f"float({text})", new)
        if old.is_float or new.is_float:
            return f"{self.named(f'{old.name}_to_{new.name}', partial(convert, old, new))}({text})"
        widens = old.width < new.width and (old.kind != "int" or new.kind == "int")
        return f"int({text})" if widens else self.rounded(f"int({text})", new)

    def op_ptr_add(self, op: Op) -> None:
        pointer, index = op.operands
        size = element_of(pointer.type).bytes
        self.line(f"{self.name(op.result)} = {self.use(pointer)} + {self.use(index)} * {size}")

    def op_ptr_cast(self, op: Op) -> None:
        self.line(f"{self.name(op.result)} = {self.use(op.operands[0])}")

    def op_ptr_toint(self, op: Op) -> None:
        self.line(f"{self.name(op.result)} = int({self.use(op.operands[0])})")

    def op_ptr_fromint(self, op: Op) -> None:
        self.line(f"{self.name(op.result)} = pointer({self.use(op.operands[0])}, device)")

    def op_tensormap(self, op: Op) -> None:
        """The tensor map of this launch: see :class:`tilewright.ir.tensormap.TensorMapTemplate`."""
        template, number = op.attrs["template"], sum(name.startswith("tensormap") for name in self.scope)
        make, lookup = self.named(f"tensormap{number}", template), self.named(f"known{number}", template.known.get)
        targets = "".join(f"{self.name(r)}, " for r in op.results)
        pointer, *rest = (self.use(v) for v in op.operands)
        key = "".join(f"{x}, " for x in (f"int({pointer})", *rest))
        self.line(f"{targets}= {lookup}(({key})) or {make}({', '.join((pointer, *rest))})")

    def op_assert(self, op: Op) -> None:
        message = f"{op.loc}: {op.attrs['message']}" if op.loc else op.attrs["message"]
        self.line(f"if not {self.use(op.operands[0])}: raise MachineError({message!r})")

    def op_if(self, op: Op) -> None:
        self.line(f"if {self.use(op.operands[0])}:")
        for i, region in enumerate(op.regions):
            if i == 1:
                if not op.results and len(region.ops) == 1:
                    break
                self.line("else:")
            end = self.nested(region)
            self.yielded(op.results, end.operands)

    def op_for(self, op: Op) -> None:
        low, high, step, *init = (self.use(v) for v in op.operands)
        body = op.regions[0]
        self.assign(op.results, init)
        self.names.update(zip(body.args[1:], (self.name(r) for r in op.results), strict=True))
        self.line(f"for {self.name(body.args[0])} in range({low}, {high}, {step}):")
        end = self.nested(body)
        self.yielded(op.results, end.operands)

    def op_launch(self, op: Op) -> None:
        kernel = op.attrs["kernel"]
        if kernel not in self.kernels:
            self.kernels.append(kernel)
        launch = LaunchOperands.of(op)
        if launch.is_empty:
            return
        grid, block, cluster = (", ".join(map(self.use, extents)) for extents in launch[:3])
        smem = "None" if launch.takes_own_smem else self.use(launch.smem)
        stream = "None" if launch.stream is None else self.use(launch.stream)
        more = f"{op.attrs.get('attributes', ())!r}, {op.attrs.get('fallback')!r}, None"
        config = f"make(LaunchConfig, (({grid}), ({block}), ({cluster}), {smem}, {stream}, {more}))"
        if launch.stream is None and all(isinstance(v, Constant) for v in launch.sizes):
            self.constants.append(f"config{len(self.constants)} = {config}")
            config = f"config{len(self.constants) - 1}"
        arguments = "".join(f"{self.use(v)}, " for v in launch.arguments)
        call = f"kernels[{self.kernels.index(kernel)}]({config}, ({arguments}))"
        live = [self.use(n) for n in launch.unknown_grid]
        self.line(f"if {' and '.join(live)}: {call}" if live else call)


def _parts(function: Callable[..., Any]) -> Any:
    """What two functions have in common that do the same; two partials are never equal."""
    return (function.func, function.args) if isinstance(function, partial) else function


def _pointer(address: int, device: str | None) -> Any:
    """An address of the program's own: as it is where pointers are addresses."""
    return address if device is None else DevicePointer(address, device, 0, 1 << 63, None)


def _divide(opcode: str, kind: ScalarType, a: int, b: int, place: str) -> Any:
    if a >= 0 and b > 0:  # where all roundings agree and nothing wraps: most counts of tiles, at a third of the time
        return a // b if opcode in ("div", "floordiv") else a % b
    try:
        return evaluate(opcode, kind, a, b)
    except ZeroDivisionError:
        raise MachineError(f"{place}: division by zero in host code") from None


_SCOPE: dict[str, Any] = {
    "pointer": _pointer,
    "LaunchConfig": LaunchConfig,
    "MachineError": MachineError,
    "make": tuple.__new__,
    "float32": ctypes.c_float,
}
"""The names that every generated host function may use."""
