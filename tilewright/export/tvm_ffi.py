"""The symbol ``__tvm_ffi_PREFIX``: an exported function in the calling convention of TVM FFI.

It takes tensors of any framework (DLPack), numbers, opaque pointers and streams, checks them as the compiled function
does, and launches on the device of the first tensor; where the function has no stream among its arguments, on TVM FFI's
current one. Functions whose arguments are groups, or numbers of 16 and 8 bits of float, have no such symbol.
"""

from __future__ import annotations

from typing import Any

from tilewright.export.arithmetic import literal
from tilewright.export.interface import CParameter
from tilewright.ir.types import I64, U64, ScalarType
from tilewright.lang.arguments.dlpack import HostTensor
from tilewright.lang.arguments.kinds import Argument, CompoundArgument, ScalarArgument, StaticArgument, StreamArgument
from tilewright.lang.numbers.numeric import Integer
from tilewright.layout.tuples import flatten_to_tuple

_FUNCTION = """\
int __tvm_ffi_{prefix}(void *self, const tw_any *args, int32_t count, tw_any *result);
int __tvm_ffi_{prefix}(void *self, const tw_any *args, int32_t count, tw_any *result) {{
  int device = -1;
{declarations}
  (void)self;
  if (count != {count}) return tw_raise("TypeError", "%d arguments are given; there are {count}: {names}", (int)count);
{reads}
  TW_FFI(tw_ffi_enter(device));
{stream}  return tw_ffi_leave(cute_dsl_{prefix}_wrapper({passed}), result);
}}"""
_STREAM = "  if (TVMFFIEnvGetStream) tw_stream = TVMFFIEnvGetStream(2, device < 0 ? 0 : device);\n"


def symbol(executor: Any, parameters: list[CParameter], prefix: str) -> str:
    """The C function; empty where the arguments have no such form."""
    arguments = [p.argument for p in executor.parameters if not isinstance(p.argument, StaticArgument)]
    if any(not _takes(argument) for argument in arguments):
        return ""
    declarations: list[str] = []
    reads: list[str] = []
    passed = ["&tw_packed"]
    for i, (argument, parameter) in enumerate(zip(arguments, parameters, strict=True)):
        name = f"arg{i}"
        if parameter.fields:
            declarations += [f"  const tw_dltensor *t{i};", f"  {parameter.type} {name};"]
            reads += _tensor(argument, parameter, i)
            passed.append(f"&{name}")
            continue
        kind = parameter.declaration.removesuffix(parameter.name).strip()
        declarations.append(f"  {kind} {name};")
        reads += _read_scalar(argument, parameter.name, kind, i)
        passed.append(name)
    names = ", ".join(p.name for p in parameters) or "none"
    has_stream = any(isinstance(argument, StreamArgument) for argument in arguments)
    return _FUNCTION.format(
        prefix=prefix,
        declarations="\n".join(declarations),
        count=len(parameters),
        names=names,
        reads="\n".join(reads),
        stream="" if has_stream else _STREAM,
        passed=", ".join(passed),
    )


def _takes(argument: Argument) -> bool:
    if isinstance(argument, ScalarArgument):
        kind: ScalarType = argument.cls.ir_type
        return not (kind.is_float and kind.width < 32)
    if isinstance(argument, CompoundArgument):
        return False
    template = getattr(argument, "template", None)
    return not isinstance(template, HostTensor) or all(not isinstance(n, tuple) for n in template.layout.shape)


def _tensor(argument: Any, parameter: CParameter, i: int) -> list[str]:
    template: HostTensor = argument.template
    layout: Any = template.layout
    shape, stride = flatten_to_tuple(layout.shape), flatten_to_tuple(layout.stride)
    scalar = len(template.array.shape) == 0 and shape == (1,) and stride == (0,)  # a tensor of rank 0
    kind = template.element_type.ir_type
    bits = 8 if kind.kind == "bool" else kind.width
    rank = 0 if scalar else len(shape)
    name, t, made = parameter.name, f"t{i}", f"arg{i}"
    lines = [
        f'  TW_FFI(tw_ffi_tensor(&args[{i}], "{name}", {kind.dlpack}, {bits}, {rank}, &{t}, &device));',
        f"  {made}.data = (char *){t}->data + {t}->byte_offset;",
    ]
    if scalar:
        return lines
    fields = {field.split()[1].partition("[")[0]: field.split()[0] for field in parameter.fields}
    for part, leaves in (("dynamic_shapes", shape), ("dynamic_strides", stride)):
        place = 0
        for k, leaf in enumerate(leaves):
            extent_or_stride = f"{t}->shape[{k}]" if part == "dynamic_shapes" else f"tw_ffi_stride({t}, {k})"
            label = f'"{name}.{"shape" if part == "dynamic_shapes" else "strides"}[{k}]"'
            if isinstance(leaf, Integer):
                if fields[part] == "int32_t":
                    lines.append(f"  TW_FFI(tw_ffi_int({extent_or_stride}, INT32_MIN, INT32_MAX, {label}));")
                lines.append(f"  {made}.{part}[{place}] = ({fields[part]}){extent_or_stride};")
                place += 1
                continue
            test = "" if part == "dynamic_shapes" else f"if ({t}->shape[{k}] != 1) "
            lines.append(f"  {test}TW_FFI(tw_ffi_fixed({extent_or_stride}, {literal(I64, leaf)}, {label}));")
    return lines


def _read_scalar(argument: Any, name: str, kind: str, i: int) -> list[str]:
    source, made = f"args[{i}]", f"arg{i}"
    if isinstance(argument, StreamArgument):
        check = f'  TW_FFI(tw_ffi_is(&{source}, TW_POINTER, TW_INT, "{name}", "a stream"));'
        return [check, f"  {made} = ({kind}){source}.v.p;"]
    if not isinstance(argument, ScalarArgument):
        return [
            f'  TW_FFI(tw_ffi_is(&{source}, TW_POINTER, TW_NONE, "{name}", "an opaque pointer"));',
            f"  {made} = {source}.v.p;",
        ]
    scalar: ScalarType = argument.cls.ir_type
    if scalar.is_float:
        number = f"{source}.type == TW_INT ? ({kind}){source}.v.i : ({kind}){source}.v.d"
        return [f'  TW_FFI(tw_ffi_is(&{source}, TW_FLOAT, TW_INT, "{name}", "a number"));', f"  {made} = {number};"]
    check = f'  TW_FFI(tw_ffi_is(&{source}, TW_INT, TW_BOOL, "{name}", "an integer"));'
    if scalar.kind == "bool":
        return [check, f"  {made} = {source}.v.i != 0;"]
    low = -(1 << (scalar.width - 1)) if scalar.kind == "int" else 0
    high = (1 << 63) - 1 if scalar == U64 else low + (1 << scalar.width) - 1
    span = f"{literal(I64, low)}, {literal(I64, high)}"
    return [check, f'  TW_FFI(tw_ffi_int({source}.v.i, {span}, "{name}"));', f"  {made} = ({scalar.c}){source}.v.i;"]
