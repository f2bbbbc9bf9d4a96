"""The emitter: one kernel of the IR printed as CUDA C++.

Scalars and pointers are expressions. A value that is used once, in the same block, and has no name in the user's
program is printed inside its use; any other becomes a ``const`` variable. A vector is a ``tw::vec``, a fragment a local
array; chains of elementwise vector operations print as one unrolled loop (see :mod:`tilewright.cuda.vectors`).
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator

from tilewright.cuda.expressions import UNARY, Expr, literal
from tilewright.cuda.names import Names
from tilewright.cuda.overflow import wrapping_results
from tilewright.cuda.source import Source
from tilewright.errors import CompileError, ConstraintError
from tilewright.ir.core import Block, Constant, Function, Location, Op, Value
from tilewright.ir.ops import UNREAD_IS_DEAD
from tilewright.ir.target import CLUSTERS, Architecture
from tilewright.ir.tensormap import TENSOR_MAP
from tilewright.ir.types import I32, FragType, PtrType, ScalarType, Type, VecType, element_of

LONGEST_INLINE = 72
Printer = Callable[["KernelEmitter", Op], None]
PRINTERS: dict[str, Printer] = {}


def prints(*opcodes: str) -> Callable[[Printer], Printer]:
    """Register the function that prints some opcodes."""

    def register(printer: Printer) -> Printer:
        for opcode in opcodes:
            PRINTERS[opcode] = printer
        return printer

    return register


class KernelEmitter:
    """Prints one kernel; instructions see it as :class:`tilewright.ir.instruction.Emitter`."""

    def __init__(self, function: Function, target: Architecture, vector: Callable[[KernelEmitter, Value], str]) -> None:
        """``vector`` gives the name of a variable that holds a vector."""
        self.function = function
        self._vector = vector
        self.target = target
        self.arch = target.capability
        self.loc: Location | None = None
        self._names = Names()
        self._lines: list[tuple[str, Location | None]] = []
        self._indent = 1
        self._helpers: dict[str, str] = {}
        self._texts: dict[Value, Expr] = {}
        self.parts: dict[Value, tuple[Expr, Expr]] = {}
        self.lazy: dict[Value, object] = {}
        self.wrapping: set[Value] = set()
        self._uses: Counter[Value] = Counter()
        self._user: dict[Value, Block] = {}
        self._blocks: list[Block] = []

    # -- the whole kernel ----------------------------------------------------------------------------------------------

    def source(self) -> Source:
        if self.function.kind != "kernel":
            kind = self.function.kind
            raise CompileError(f"{self.function.name}: only kernels are printed as CUDA, this is a {kind} function")
        self._count(self.function.body)
        self.wrapping = wrapping_results(self.function)
        # Before the parameters: a parameter with the kernel's name is renamed.
        name = self._names.fresh(self.function.name)
        parameters = ", ".join(self._parameter(p) for p in self.function.params)
        self.block_ops(self.function.body)
        head: list[tuple[str, Location | None]] = [('#include "tilewright.cuh"', None), ("", None)]
        for helper in self._helpers.values():
            head += [(line, None) for line in helper.strip("\n").splitlines()] + [("", None)]
        head += [(line, None) for line in self._signature(name, parameters)]
        lines = [*head, *self._lines, ("}", None)]
        return Source(name, "\n".join(text for text, _ in lines) + "\n", tuple(loc for _, loc in lines))

    def _signature(self, name: str, parameters: str) -> list[str]:
        """The head of the kernel, on two lines where one is too long, with its launch bounds and its shared memory."""
        attrs = self.function.attrs
        bounds = ""
        if threads := attrs.get("max_threads"):
            blocks = attrs.get("min_blocks")
            bounds = f" __launch_bounds__({threads}{f', {blocks}' if blocks else ''})"
        cluster = attrs.get("cluster")
        if cluster and self.arch >= CLUSTERS and tuple(cluster) != (1, 1, 1):
            bounds += f" __cluster_dims__({', '.join(map(str, cluster))})"
        line = f'extern "C" __global__ void{bounds} {name}({parameters}) {{'
        if len(line) <= 120:
            lines = [line]
        else:
            lines = [f'extern "C" __global__ void{bounds}', f"{name}({parameters}) {{"]
        if any(op.opcode == "smem.alloc" for op in self.function.walk()):
            lines.append("  extern __shared__ __align__(1024) unsigned char smem[];")
        return lines

    def _parameter(self, value: Value) -> str:
        name = self._names.fresh(value.hint or "arg")
        self._texts[value] = Expr(name)
        if value.type == TENSOR_MAP:
            return f"const __grid_constant__ tw::tensor_map {name}"
        if isinstance(value.type, VecType):
            return f"const __grid_constant__ tw::parameter<{value.type.elem.cuda}, {value.type.n}> {name}"
        if isinstance(value.type, FragType):
            raise CompileError(f"{self.function.name}: fragment {name} is in registers and cannot be a parameter")
        return f"{self.type_name(value.type)} {name}"

    def _count(self, block: Block, unused: frozenset[int] = frozenset()) -> None:
        """Count the uses by ops that will be printed. Goes backwards, so that values used only by dead ops are dead,
        too.

        ``unused`` are the places of the terminator's operands that are never read.
        """
        for op in reversed(block.ops):
            if op.opcode in UNREAD_IS_DEAD and not any(self._uses[r] for r in op.results):
                continue
            idle = frozenset(i for i, r in enumerate(op.results) if op.opcode == "if" and not self._uses[r])
            for region in op.regions:
                self._count(region, idle)
            for place, operand in enumerate(op.operands):
                if op.opcode == "yield" and place in unused:
                    continue
                self._uses[operand] += 1
                self._user[operand] = block

    def block_ops(self, block: Block) -> None:
        """Print every op of a block but its terminator."""
        self._blocks.append(block)
        for op in block.ops:
            if op.opcode not in ("yield", "condition"):
                self.op(op)
        self._blocks.pop()

    def op(self, op: Op) -> None:
        if op.loc is not None:
            self.loc = op.loc
        printer = PRINTERS.get(op.opcode)
        if printer is None:
            raise CompileError(f"{op.opcode} has no CUDA form{f' at {op.loc}' if op.loc else ''}")
        printer(self, op)

    # -- lines -----------------------------------------------------------------------------------------------------

    def line(self, text: str) -> None:
        """One or more statement lines at the current indentation."""
        for part in text.split("\n"):
            self._lines.append(("  " * self._indent + part if part.strip() else "", self.loc))

    @contextlib.contextmanager
    def block(self, head: str = "") -> Iterator[None]:
        self.line(f"{head} {{" if head else "{")
        self._indent += 1
        yield
        self._indent -= 1
        self.line("}")

    def name(self, hint: str) -> str:
        return self._names.fresh(hint)

    def helper(self, name: str, source: str) -> str:
        if self._helpers.setdefault(name, source) != source:
            raise CompileError(f"two different device functions want the name {name}")
        self._names.reserve(name)
        return name

    @contextlib.contextmanager
    def unrolled(self, count: int, index: str = "e", step: int = 1) -> Iterator[str]:
        """A fully unrolled loop ``for (int index = 0; index < count; index += step)``; gives the index as text."""
        self.line("#pragma unroll")
        advance = f"++{index}" if step == 1 else f"{index} += {step}"
        head = f"for (int {index} = 0; {index} < {count}; {advance})"
        mark = len(self._lines)
        self._indent += 1
        yield index
        self._indent -= 1
        body = self._lines[mark:]
        del self._lines[mark:]
        # Most of these loops are one statement, and stay one line.
        if len(body) == 1:
            self.line(f"{head} {body[0][0].strip()}")
        else:
            self.line(f"{head} {{")
            self._lines += body
            self.line("}")

    @contextlib.contextmanager
    def captured(self) -> Iterator[list[tuple[str, Location | None]]]:
        """Collect the lines that are printed inside instead of printing them; ``replay`` prints them."""
        mark = len(self._lines)
        body: list[tuple[str, Location | None]] = []
        yield body
        body += self._lines[mark:]
        del self._lines[mark:]

    def replay(self, lines: list[tuple[str, Location | None]]) -> None:
        self._lines += lines

    @contextlib.contextmanager
    def indented(self) -> Iterator[None]:
        self._indent += 1
        yield
        self._indent -= 1

    # -- values ------------------------------------------------------------------------------------------------------

    def type_name(self, type_: Type) -> str:
        if isinstance(type_, ScalarType):
            return "int" if type_ == I32 else type_.cuda
        if isinstance(type_, PtrType):
            return f"{type_.elem.cuda}*"
        if isinstance(type_, VecType):
            return f"tw::vec<{type_.elem.cuda}, {type_.n}>"
        raise CompileError(f"{type_} has no C++ type that is passed around")

    def expr(self, value: Value) -> Expr:
        """A scalar or pointer as an expression."""
        if isinstance(value, Constant):
            return literal(element_of(value.type), value.value)
        if value not in self._texts:
            raise CompileError(f"{value!r} is used before it is printed")
        return self._texts[value]

    def value(self, value: Value) -> str:
        """Text that is correct wherever an operand is: scalars and pointers in parentheses where needed."""
        if isinstance(value.type, VecType):
            return self._vector(self, value)
        expr = self.expr(value)
        return expr.inside(UNARY) if isinstance(value, Constant) else expr.atom

    def declare(self, value: Value) -> str:
        name = self._names.fresh(value.hint or _plain_hint(value.type))
        self._texts[value] = Expr(name)
        self.line(f"{self.declaration(value.type, name)};")
        return name

    def declaration(self, type_: Type, name: str) -> str:
        """``type name``, or an aligned array for a fragment."""
        if isinstance(type_, FragType):
            size = type_.n * type_.elem.bytes
            # As aligned as its size allows, so that it can be moved by vectors of 16 bytes.
            align = next(a for a in (16, 8, 4, 2, 1) if size % a == 0)
            prefix = f"alignas({align}) " if align > type_.elem.bytes else ""
            return f"{prefix}{type_.elem.cuda} {name}[{type_.n}]"
        return f"{self.type_name(type_)} {name}"

    def alias(self, value: Value, name: str) -> None:
        """``value`` is the variable ``name`` from here on."""
        self._texts[value] = Expr(name)

    def same(self, value: Value, as_: Value) -> None:
        """``value`` is what ``as_`` is."""
        self._texts[value] = self.expr(as_)

    def define(self, value: Value, expr: Expr) -> None:
        """Give a pure scalar or pointer its expression: inline where that reads well, else in a variable."""
        if not self._uses[value]:
            return
        if self.inlines(value) and len(expr.text) <= LONGEST_INLINE:
            self._texts[value] = expr
            return
        self.assign_new(value, expr)

    def assign_new(self, value: Value, expr: Expr) -> None:
        name = self._names.fresh(value.hint or _plain_hint(value.type))
        self._texts[value] = Expr(name)
        # A variable is used by its name, no longer as base and index.
        self.parts.pop(value, None)
        const = "" if isinstance(value.type, PtrType) else "const "
        self.line(f"{const}{self.type_name(value.type)} {name} = {expr.text};")

    def inlines(self, value: Value) -> bool:
        """Whether it is used once, by an op of the block that is being printed, and has no name in the user's
        program."""
        return self._uses[value] == 1 and value.hint is None and self._user[value] is self._blocks[-1]

    def used(self, value: Value) -> bool:
        return self._uses[value] > 0

    def register(self, fragment: Value, offset: int | str, bits: int = 32) -> str:
        name = self.value(fragment)
        if bits == 32 and element_of(fragment.type).cuda == "uint32_t":
            return f"{name}[{offset}]"
        return f"tw::reg{bits}({name}[{offset}])"

    def shared_address(self, pointer: Value | str) -> str:
        return f"tw::shared_address({pointer if isinstance(pointer, str) else self.expr(pointer).text})"

    def check_arch(self, op: Op) -> None:
        atom = op.attrs["atom"]
        if lacking := atom.lacking(self.target, op):
            where = f" at {op.loc}" if op.loc else ""
            raise ConstraintError(
                f"{atom.mnemonic()} needs {lacking}, the kernel is compiled for {self.target}{where}; with arrays on "
                "the CPU the simulator runs it"
            )


def _plain_hint(type_: Type) -> str:
    if isinstance(type_, PtrType):
        return "p"
    return "r" if isinstance(type_, FragType) else "v" if isinstance(type_, VecType) else "t"
