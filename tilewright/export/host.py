"""The body of a host function as C99: grid arithmetic, tensor maps and launches, an instruction a line.

What the Python of :mod:`tilewright.lang.launch.host` does at a call, this does: the same operations from the same
table, in the same order, with the same refusals. Operations that Python leaves to the simulator (memory, vectors,
printing on the host) have no C form.
"""

from __future__ import annotations

from typing import Any

from tilewright.cuda.tensormaps import DATA_TYPE_CODES
from tilewright.errors import ArgumentError
from tilewright.export.arithmetic import Helpers, literal, scalar
from tilewright.export.interface import CParameter
from tilewright.export.names import Names
from tilewright.ir.arithmetic import DIVISIONS
from tilewright.ir.core import Block, Constant, Function, Op, Value
from tilewright.ir.launch import LaunchOperands
from tilewright.ir.tensormap import TENSOR_MAP, Leaf, TensorMapTemplate
from tilewright.ir.types import I64, PtrType, ScalarType, Type, element_of
from tilewright.lang.launch.host import SCALAR, is_positive

_ATTRIBUTES = {"use_pdl": "TW_USE_PDL", "cooperative": "TW_COOPERATIVE", "non_portable_cluster": "TW_NON_PORTABLE"}


def string(text: str) -> str:
    """A C string literal."""
    plain = frozenset(range(32, 127)) - frozenset(b'"\\?')
    escaped = "".join(chr(byte) if byte in plain else f"\\{byte:03o}" for byte in text.encode("utf-8", "replace"))
    return f'"{escaped}"'


class HostWriter:
    """Writes ``function``, whose parameters are the values of the wrapper's ``parameters``."""

    def __init__(
        self, function: Function, kernels: list[Function], parameters: list[CParameter], helpers: Helpers
    ) -> None:
        self.function, self.kernels, self.helpers = function, kernels, helpers
        self.lines: list[str] = []
        self.indent = 1
        self.names = Names("module", "place", *(p.name for p in parameters))
        self.text: dict[Value, str] = {}
        self.templates: list[str] = []
        self.used = {v for op in function.walk() for v in op.operands}
        values = [value for p in parameters for value in p.values]
        for param, value in zip(function.params, values, strict=True):
            if value in self.names.taken:  # a number is the C parameter itself
                self.text[param] = value
            else:
                self.define(param, value, f"{param.hint}_data" if isinstance(param.type, PtrType) else param.hint)

    def write(self) -> list[str]:
        self.block(self.function.body)
        return self.lines

    # -- text ----------------------------------------------------------------------------------------------------------

    def line(self, text: str) -> None:
        self.lines.append("  " * self.indent + text)

    def use(self, value: Value) -> str:
        if isinstance(value, Constant):
            text = literal(element_of(value.type), value.value)
            return f"({text})" if text.startswith("-") else text
        return self.text[value]

    def name(self, value: Value, hint: str | None = None) -> str:
        name = self.text[value] = self.names.fresh(hint or value.hint or "v")
        return name

    def define(self, value: Value, text: str, hint: str | None = None) -> None:
        if value in self.used:  # C compilers warn of variables that nothing reads
            self.line(f"const {c_type(value.type)} {self.name(value, hint)} = {text};")

    # -- ops -----------------------------------------------------------------------------------------------------------

    def block(self, block: Block) -> None:
        for op in block.ops:
            method = getattr(self, f"op_{op.opcode.replace('.', '_')}", None)
            if method is not None:
                method(op)
            elif op.opcode in SCALAR and all(isinstance(v.type, ScalarType) for v in (*op.operands, *op.results)):
                self.op_scalar(op)
            else:
                what = "a launch inside a run-time loop with `while`" if op.opcode == "while" else f"`{op.opcode}`"
                raise ArgumentError(
                    f"export_to_c: {op.loc or self.function.name}: {what} in host code has no C form; export host code "
                    "that launches kernels and computes with numbers, and do the rest in a kernel or before the call"
                )

    def op_scalar(self, op: Op) -> None:
        kind = element_of(op.operands[0].type)
        if op.opcode in DIVISIONS and not kind.is_float and not is_positive(op.operands[1]):
            place = string(f"{op.loc or 'host code'}: division by zero in host code")
            self.line(f'if ({self.use(op.operands[1])} == 0) return tw_fail(TW_INVALID_VALUE, "%s", {place});')
        self.define(op.result, scalar(op, [self.use(v) for v in op.operands], self.helpers))

    def op_yield(self, op: Op) -> None:
        """Written by the op around it; the outermost has nothing to give."""

    def op_ptr_add(self, op: Op) -> None:
        pointer, index = op.operands
        size = element_of(pointer.type).bytes
        self.define(op.result, f"{self.use(pointer)} + (uint64_t){self.use(index)} * {size}")

    def op_ptr_cast(self, op: Op) -> None:
        self.define(op.result, self.use(op.operands[0]))

    def op_ptr_toint(self, op: Op) -> None:
        self.define(op.result, f"({c_type(op.result.type)}){self.use(op.operands[0])}")

    def op_ptr_fromint(self, op: Op) -> None:
        self.define(op.result, f"(uint64_t){self.use(op.operands[0])}")

    def op_assert(self, op: Op) -> None:
        message = f"{op.loc}: {op.attrs['message']}" if op.loc else op.attrs["message"]
        self.line(f'if (!{self.use(op.operands[0])}) return tw_fail(TW_ASSERT, "%s", {string(message)});')

    def op_if(self, op: Op) -> None:
        for result in op.results:
            self.line(f"{c_type(result.type)} {self.name(result)};")
        self.line(f"if ({self.use(op.operands[0])}) {{")
        for i, region in enumerate(op.regions):
            if i == 1:
                if not op.results and len(region.ops) == 1:
                    break
                self.line("} else {")
            self.region(region, op.results)
        self.line("}")

    def op_for(self, op: Op) -> None:
        low, high, step, *init = (self.use(v) for v in op.operands)
        body = op.regions[0]
        for result, value in zip(op.results, init, strict=True):
            self.line(f"{c_type(result.type)} {self.name(result)} = {value};")
        self.text.update(zip(body.args[1:], (self.text[r] for r in op.results), strict=True))
        index, constant = self.names.fresh("i"), op.operands[2]
        ends = f"{step} > 0 ? {index} < {high} : {index} > {high}"
        if isinstance(constant, Constant):
            ends = f"{index} {'<' if constant.value > 0 else '>'} {high}"
        else:
            place = string(f"{op.loc or 'host code'}: a loop with a step of 0 never ends")
            self.line(f'if ({step} == 0) return tw_fail(TW_INVALID_VALUE, "%s", {place});')
        self.line(f"for (int64_t {index} = {low}; {ends}; {index} += {step}) {{")
        self.indent += 1
        self.define(body.args[0], f"({c_type(body.args[0].type)}){index}")
        self.indent -= 1
        self.region(body, op.results)
        self.line("}")

    def region(self, block: Block, results: list[Value]) -> None:
        """The ops of a block, and what it yields written to ``results``, all at once."""
        self.indent += 1
        self.block(block)
        yielded = [self.use(v) for v in block.ops[-1].operands]
        if len(yielded) > 1:
            next_ = [self.names.fresh("next") for _ in yielded]
            for name, text, result in zip(next_, yielded, results, strict=True):
                self.line(f"const {c_type(result.type)} {name} = {text};")
            yielded = next_
        for result, text in zip(results, yielded, strict=True):
            self.line(f"{self.text[result]} = {text};")
        self.indent -= 1

    def op_tensormap(self, op: Op) -> None:
        """The tensor map of this launch: see :class:`tilewright.ir.tensormap.TensorMapTemplate`."""
        template: TensorMapTemplate = op.attrs["template"]
        label = f"tw_template_{len(self.templates)}"
        self.templates.append(template_text(label, template))
        pointer, *rest = (self.use(v) for v in op.operands)
        made, *scales = op.results
        name = self.name(made)
        self.line(f"tw_tensor_map {name};")
        values = self.names.fresh("values")
        self.line(f"const int64_t {values}[] = {{{', '.join(rest) or '0'}}};")
        steps = self.names.fresh("scales")
        self.line(f"int64_t {steps}[{max(1, len(scales))}];")
        self.line(f"TW_TRY(tw_encode(&{name}, &{label}, {pointer}, {values}, {steps}));")
        for i, scale in enumerate(scales):
            self.define(scale, f"({c_type(scale.type)}){steps}[{i}]")

    def op_launch(self, op: Op) -> None:
        kernel: Function = op.attrs["kernel"]
        launch = LaunchOperands.of(op)
        if launch.is_empty:
            return
        live = [self.use(n) for n in launch.unknown_grid]
        self.line(f"if ({' && '.join(f'{g} != 0' for g in live)}) {{" if live else "{")
        self.indent += 1
        pointers = []
        for param, value in zip(kernel.params, launch.arguments, strict=True):
            if param.type == TENSOR_MAP:
                pointers.append(f"&{self.use(value)}")
                continue
            name = self.names.fresh(f"{param.hint or 'argument'}_given")
            self.line(f"{c_type(param.type)} {name} = {self.use(value)};")
            pointers.append(f"&{name}")
        parameters = self.names.fresh("parameters")
        self.line(f"void *{parameters}[] = {{{', '.join(pointers) or 'NULL'}}};")
        if op.attrs.get("fallback") is not None:
            raise ArgumentError(
                f"export_to_c: {kernel.name}: fallback_cluster= is not exported: launch in clusters of one shape"
            )
        flags = " | ".join(_ATTRIBUTES[name] for name in op.attrs.get("attributes", ())) or "0"
        config = self.names.fresh("launch")
        grid, block, cluster = (", ".join(map(self.use, extents)) for extents in launch[:3])
        smem = "TW_OWN_SMEM" if launch.takes_own_smem else self.use(launch.smem)
        self.line(f"const tw_launch {config} = {{{{{grid}}}, {{{block}}}, {{{cluster}}}, {smem}, {flags}}};")
        where = "tw_stream" if launch.stream is None else f"(void *)(intptr_t){self.use(launch.stream)}"
        self.line(f"TW_TRY(tw_go(place, {self.kernels.index(kernel)}, &{config}, {where}, {parameters}));")
        self.indent -= 1
        self.line("}")


def c_type(kind: Type) -> str:
    if isinstance(kind, PtrType):
        return "uint64_t"
    if isinstance(kind, ScalarType):
        return kind.c
    raise ArgumentError(f"export_to_c: host code with a value of type {kind} has no C form")


def template_text(label: str, template: TensorMapTemplate) -> str:
    """The static part of a tensor map as C data."""
    parts: list[Any] = [part for mode in template.modes for part in mode]
    rows = [_part(part.extent, part.stride, part.contiguous) for part in (*parts, *template.scales)]
    ends, total = [], 0
    for mode in template.modes:
        total += len(mode)
        ends.append(str(total))
    where = ", ".join(string(template.where(i)) for i in range(len(template.modes)))
    box = ", ".join(map(str, template.box))
    if template.im2col is not None:
        raise ArgumentError(f"export_to_c: {template.name} is for im2col copies, whose tensor maps have no C form")
    if template.source.packed:
        raise ArgumentError(
            f"export_to_c: {template.name} copies numbers of {template.source.width} bits, whose tensor maps have no C "
            "form: recast the tensor to bytes"
        )
    kind = DATA_TYPE_CODES[template.element.tensor_map]
    sizes = f"{template.source.bytes}, {template.element.bytes}, {kind}, {template.swizzle}"
    counts = f"{len(template.modes)}, {{{', '.join(ends)}}}"
    return "\n".join(
        [
            f"static const tw_part {label}_parts[] = {{{', '.join(rows)}}};",
            f"static const tw_template {label} = {{",
            f"  {string(template.name)}, {string(template.tensor)}, {{{where}}},",
            f"  {counts}, {{{box}}}, {sizes}, {len(template.scales)}, {label}_parts}};",
        ]
    )


def _part(extent: Leaf, stride: Leaf, contiguous: bool) -> str:
    numbers = (literal(I64, extent.value), extent.place, literal(I64, stride.value), stride.place, int(contiguous))
    return f"{{{', '.join(map(str, numbers))}}}"
