"""The description of an exported function for :func:`tilewright.export.load.load_module`: its parameters and its host
function, as JSON."""

from __future__ import annotations

import inspect
from typing import Any

from tilewright.errors import ArgumentError
from tilewright.export import program
from tilewright.ir.runtime import DevicePointer
from tilewright.ir.types import MemSpace
from tilewright.lang.arguments.arrays import Array
from tilewright.lang.arguments.dlpack import HostTensor
from tilewright.lang.arguments.kinds import Argument, CompoundArgument, ScalarArgument, StaticArgument, StreamArgument
from tilewright.lang.arguments.protocol import ProtocolArgument, implicit_tensor
from tilewright.lang.launch.calls import Parameter
from tilewright.lang.numbers import numeric
from tilewright.lang.numbers.facts import Facts
from tilewright.lang.numbers.numeric import Int32, Int64, Integer
from tilewright.lang.tensors.host_pointer import HostPointer
from tilewright.layout import Layout

PLAIN = (type(None), bool, int, float, str)


def describe(executor: Any, prefix: str, architectures: list[str]) -> dict[str, Any]:
    """The description of a compiled function."""
    from tilewright import __version__

    return {
        "tilewright": __version__,
        "prefix": prefix,
        "architectures": architectures,
        "parameters": [_parameter(p) for p in executor.parameters],
        "program": program.write(executor.host, executor.kernels),
        "written": [[i, op.loc or ("the kernel", 0)] for i, op in executor.written.items()],
        "equal": executor.equal_values,
    }


# -- writing -----------------------------------------------------------------------------------------------------------


def _parameter(parameter: Parameter) -> dict[str, Any]:
    described = _argument(parameter.argument)
    if parameter.default is not inspect.Parameter.empty:
        if not isinstance(parameter.default, PLAIN):
            return described
        described["default"] = parameter.default
    return {**described, "parameter": parameter.name}


def _argument(argument: Argument) -> dict[str, Any]:
    name: dict[str, Any] = {"name": argument.name}
    if isinstance(argument, CompoundArgument):
        kind: Any = argument.type
        parts = [_argument(part) for part in argument.parts]
        return {**name, "kind": "group", "type": kind.__name__, "labels": list(argument.labels), "parts": parts}
    if isinstance(argument, StaticArgument):
        return {**name, "kind": "fixed", **_static(argument)}
    if isinstance(argument, StreamArgument):
        return {**name, "kind": "stream"}
    if isinstance(argument, ScalarArgument):
        return {**name, "kind": "number", "type": argument.cls.__name__}
    assert isinstance(argument, ProtocolArgument)  # parameters_of refused all others
    template: Any = argument.template
    if isinstance(template, HostPointer):
        pointer = template._kind
        return {**name, "kind": "pointer", **_pointer(template.dtype, pointer, template.wide)}
    layout = template.layout
    return {
        **name,
        "kind": "tensor",
        "implicit": argument.convert is implicit_tensor,
        "shape": _tree(layout.shape),
        "stride": _tree(layout.stride),
        **_pointer(template.element_type, argument.types()[0], template.engine.wide),
    }


def _pointer(dtype: Any, kind: Any, wide: bool) -> dict[str, Any]:
    return {"type": dtype.__name__, "space": kind.space.value, "align": kind.align, "wide": wide}


def _static(argument: StaticArgument) -> dict[str, Any]:
    """A static value, as what a later argument is compared with."""
    value = argument.value
    if isinstance(value, PLAIN):
        return {"value": value}
    text = repr(value)
    if " at 0x" in text:
        raise ArgumentError(
            f"export_to_c: argument '{argument.name}' is a static {type(value).__name__}, which cannot be written to a "
            "file; make the parameter a Constexpr, which calls do not pass"
        )
    return {"text": text}


def _tree(x: Any) -> Any:
    if isinstance(x, tuple):
        return list(map(_tree, x))
    return {"width": x.width, "facts": list(x.facts)} if isinstance(x, Integer) else x


# -- reading -----------------------------------------------------------------------------------------------------------


class Described(StaticArgument):
    """A static value that is known by its text only."""

    def read(self, value: Any) -> list[Any]:
        if repr(value) != self.value:
            raise self.wrong(f"{self.value}, with which the function was compiled", value)
        return []


class LabelledGroup(CompoundArgument):
    """A group whose class need not be the one that the function was compiled with: its parts are found by their names
    or places."""

    def __init__(self, name: str, labels: list[str], described: str, parts: list[Argument]) -> None:
        super().__init__(name, (None,) * len(parts), parts)
        self.labels, self.value = tuple(labels), described

    def read(self, value: Any) -> list[Any]:
        items = []
        for label in self.labels:
            try:
                if label.startswith("."):
                    items.append(getattr(value, label[1:]))
                else:
                    items.append(value[_key(label)])
            except (AttributeError, KeyError, IndexError, TypeError):
                raise self.wrong_kind(f"{self.value} with {label}", value) from None
        return [leaf for part, item in zip(self.parts, items, strict=True) for leaf in part.read(item)]


def _key(label: str) -> Any:
    import ast

    return ast.literal_eval(label[1:-1])


def parameter_of(item: dict[str, Any]) -> Parameter:
    """The parameter that was described."""
    default = item.get("default", inspect.Parameter.empty)
    return Parameter(item.get("parameter", item["name"]), argument_of(item), default)


def argument_of(item: dict[str, Any]) -> Argument:
    name, kind = item["name"], item["kind"]
    if kind == "group":
        parts = [argument_of(part) for part in item["parts"]]
        return LabelledGroup(name, item["labels"], item["type"], parts)
    if kind == "fixed":
        return Described(name, item["text"]) if "text" in item else StaticArgument(name, item["value"])
    if kind == "stream":
        return StreamArgument(name)
    cls: Any = getattr(numeric, item["type"])
    if kind == "number":
        return ScalarArgument(name, cls)
    place = DevicePointer(0, "cpu", 0, 0, None)
    pointer = HostPointer(place, cls, MemSpace(item["space"]), item["align"], item["wide"])
    if kind == "pointer":
        return ProtocolArgument(name, pointer)
    shape, stride = _leaves(item["shape"]), _leaves(item["stride"])
    tensor = HostTensor(pointer, Layout(shape, stride), Array(0, "cpu", (), (), cls, None))
    return ProtocolArgument(name, tensor, implicit_tensor if item["implicit"] else None)


def _leaves(x: Any) -> Any:
    if isinstance(x, list):
        return tuple(map(_leaves, x))
    if isinstance(x, int):
        return x
    cls: Any = Int64 if x["width"] == 64 else Int32
    leaf = cls.__new__(cls)
    leaf.facts = Facts(*x["facts"])
    leaf.value = leaf.facts.divisibility
    return leaf
