"""The kinds of argument: how each Python object becomes run-time values, and how it is checked at a call.

One *argument* object per parameter knows the IR types of its values, rebuilds the object that the function sees while
it is staged, and reads the values (Python numbers and :class:`~tilewright.ir.runtime.DevicePointer`) from later
arguments.
"""

from __future__ import annotations

import ctypes
import dataclasses
import math
import numbers
from collections.abc import Callable, Iterator
from typing import Any

from tilewright.errors import ArgumentError
from tilewright.ir.core import Value
from tilewright.ir.runtime import DevicePointer
from tilewright.ir.types import I64, PtrType, Type
from tilewright.lang.arguments.arrays import array_of, is_array
from tilewright.lang.arguments.dlpack import HostTensor, from_dlpack
from tilewright.lang.arguments.signature import is_constexpr, numeric_annotation
from tilewright.lang.numbers.numeric import Boolean, Float32, Int32, Int64, Integer, Numeric
from tilewright.lang.staging import carry, objects, specs
from tilewright.lang.tensors.pointer import Pointer
from tilewright.lang.tensors.tensor import Tensor

ADAPTERS: dict[type, Callable[[Any], Any]] = {}
Values = Iterator[Value]


def register_jit_arg_adapter(cls: type) -> Callable[[Any], Any]:
    """Decorator of an adapter class, called with an object of ``cls`` to make it an argument: the adapter has
    ``__c_pointers__``, ``__get_mlir_types__`` and ``__new_from_mlir_values__``."""

    def register(adapter: Any) -> Any:
        ADAPTERS[cls] = adapter
        return adapter

    return register


class Stream:
    """A CUDA stream inside host code: pass it to ``launch(stream=...)``."""

    def __init__(self, value: Value) -> None:
        self.value = value

    def __extract_mlir_values__(self) -> list[Value]:
        return [self.value]

    def __new_from_mlir_values__(self, values: list[Value]) -> Stream:
        return Stream(values[0])


class Argument:
    """Base: a static argument holds no values."""

    def __init__(self, name: str) -> None:
        self.name = name

    def types(self) -> list[Type]:
        return []

    def labels(self) -> list[str]:
        """A name for each value."""
        return carry.object_names(None, self.name, len(self.types()))

    def rebuild(self, values: Values) -> Any:
        raise NotImplementedError

    def read(self, value: Any) -> list[Any]:
        """The run-time values of ``value``; ArgumentError unless it fits."""
        raise NotImplementedError

    def exact(self, value: Any) -> list[Any]:
        """Like ``read``, but ArgumentError also for what would rather be another specialisation."""
        return self.read(value)

    def key(self) -> Any:
        """Equal for arguments that lead to the same program."""
        raise NotImplementedError

    def release(self) -> None:
        """Let go of the arrays that the function was compiled with; only their kind matters from now on."""

    def wrong(self, expected: str, value: Any) -> ArgumentError:
        return ArgumentError(f"argument '{self.name}': expected {expected}, got {describe(value)}")


class Fixed(Argument):
    """A value that is part of the program."""

    def __init__(self, name: str, value: Any) -> None:
        super().__init__(name)
        self.value = value

    def rebuild(self, values: Values) -> Any:
        return self.value

    def read(self, value: Any) -> list[Any]:
        if value is not self.value and not objects.same_static(self.value, value):
            raise self.wrong(f"{describe(self.value)}, with which the function was compiled", value)
        return []

    def key(self) -> Any:
        return objects.StaticKey(self.value)


class Scalar(Argument):
    """A number."""

    def __init__(self, name: str, cls: Any) -> None:
        super().__init__(name)
        self.cls = cls
        kind = cls.ir_type
        self.span = (cls.min, cls.max) if kind.is_integer else None

    def types(self) -> list[Type]:
        return [self.cls.ir_type]

    def rebuild(self, values: Values) -> Any:
        return self.cls(next(values))

    def read(self, value: Any) -> list[Any]:
        if isinstance(value, Numeric):
            value = value.value
        if isinstance(value, Value) or not isinstance(value, (numbers.Real, *_numpy_scalars(value))):
            raise self.wrong(f"a number ({self.cls.__name__})", value)
        number: Any = value
        if self.span is None:
            return [bool(number) if self.cls is Boolean else float(number)]
        if not math.isfinite(number) or int(number) != number or not self.span[0] <= number <= self.span[1]:
            raise self.wrong(f"{self.cls.__name__} ({self.span[0]} to {self.span[1]})", value)
        return [int(number)]

    def exact(self, value: Any) -> list[Any]:
        if _number_class(value, None) is not self.cls:
            raise self.wrong(self.cls.__name__, value)
        return self.read(value)

    def key(self) -> Any:
        return self.cls


class StreamArgument(Argument):
    def types(self) -> list[Type]:
        return [I64]

    def rebuild(self, values: Values) -> Any:
        return Stream(next(values))

    def read(self, value: Any) -> list[Any]:
        found = stream_handle(value)
        if found is None:
            raise self.wrong("a CUDA stream (cuda.CUstream, a PyTorch stream or its handle)", value)
        return [found]

    def key(self) -> Any:
        return StreamArgument


class Protocol(Argument):
    """An object with the documented methods: host tensors and pointers, users' classes, adapted objects.

    ``convert`` makes such an object from what the caller passes (an array, an adapted class)."""

    def __init__(self, name: str, template: Any, convert: Callable[[Any], Any] | None = None) -> None:
        super().__init__(name)
        self.convert = convert
        self.template = template
        self.type_list: list[Type] = list(template.__get_mlir_types__())
        self.static = objects.static_part(template)
        self.facts = objects.known_facts(template)
        self.token = object()

    def types(self) -> list[Type]:
        return self.type_list

    def labels(self) -> list[str]:
        return carry.object_names(self.template, self.name, len(self.type_list))

    def rebuild(self, values: Values) -> Any:
        return self.template.__new_from_mlir_values__([next(values) for _ in self.type_list])

    def read(self, value: Any) -> list[Any]:
        if self.convert is not None and type(value) is not type(self.template):
            value = self.converted(value)
        if type(value) is not type(self.template):
            if isinstance(self.template, HostTensor) and is_array(value):
                return self._read_array(value)
            raise self.wrong(describe(self.template), value)
        types = list(value.__get_mlir_types__())
        if value is not self.template and not self._fits(value, types):
            raise self.wrong(describe(self.template), value)
        if not covers(objects.known_facts(value), self.facts):
            raise self.wrong(f"{describe(self.template)} with divisors {self.facts}", value)
        found = [_plain(v) for v in value.__c_pointers__()]
        for kind, leaf in zip(self.type_list, found, strict=True):
            if isinstance(kind, PtrType) and isinstance(leaf, DevicePointer) and leaf.address % kind.align:
                raise self.wrong(f"an address that is a multiple of {kind.align} bytes", f"{leaf.address:#x}")
        if isinstance(value, HostTensor):
            value.passed = (self.token, found)
        return found

    def _read_array(self, value: Any) -> list[Any]:
        """A plain array for a parameter that was compiled with a tensor: it must be what the tensor's layout says."""
        array, layout, kind = array_of(value), self.template.layout, self.type_list[0]
        assert isinstance(kind, PtrType)
        shape, stride = layout.shape, layout.stride
        if array.dtype is not self.template.element_type or len(array.shape) != len(shape):
            raise self.wrong(describe(self.template), value)
        if array.is_wide and not self.template.iterator.wide:
            raise self.wrong(f"{describe(self.template)} with offsets of 32 bits", value)
        leaves: list[Any] = []
        free = [False] * len(shape) + [n == 1 for n in array.shape]  # the stride of a single element says nothing
        for want, got, any_fits in zip((*shape, *stride), (*array.shape, *array.stride), free, strict=True):
            if isinstance(want, Integer):
                low = 0 if want.facts.nonneg else -(1 << (want.width - 1))
                if got % want.divisibility or not low <= got < 1 << (want.width - 1):
                    raise self.wrong(f"{describe(self.template)}, whose leaves have known divisors and widths,", value)
                leaves.append(got)
            elif want != got and not any_fits:
                raise self.wrong(describe(self.template), value)
        if array.address % kind.align:
            raise self.wrong(f"an address that is a multiple of {kind.align} bytes", f"{array.address:#x}")
        low, high = array.bounds
        return [DevicePointer(array.address, array.device, low, high, array.owner), *leaves]

    def release(self) -> None:
        if isinstance(self.template, HostTensor):
            self.template = self.template.without_memory()

    def exact(self, value: Any) -> list[Any]:
        if self.convert is None and type(value) is not type(self.template):
            raise self.wrong(describe(self.template), value)
        return self.read(value)

    def _fits(self, value: Any, types: list[Type]) -> bool:
        if not objects.same_static(self.static, objects.static_part(value)) or len(types) != len(self.type_list):
            return False
        return all(fits_type(want, got) for want, got in zip(self.type_list, types, strict=True))

    def converted(self, value: Any) -> Any:
        assert self.convert is not None
        try:
            return self.convert(value)
        except (ArgumentError, TypeError, AttributeError, BufferError) as wrong:
            raise ArgumentError(f"argument '{self.name}': {wrong}") from None

    def key(self) -> Any:
        return (type(self.template), tuple(self.type_list), objects.StaticKey(self.static), self.facts)


class Group(Argument):
    """A tuple, list, dict, named tuple or dataclass of arguments."""

    def __init__(self, name: str, spec: specs.Compound, value: Any, parts: list[Argument]) -> None:
        super().__init__(name)
        self.spec, self.value, self.parts = spec, value, parts

    def types(self) -> list[Type]:
        return [t for part in self.parts for t in part.types()]

    def labels(self) -> list[str]:
        return [label for part in self.parts for label in part.labels()]

    def rebuild(self, values: Values) -> Any:
        return self.spec.make([part.rebuild(values) for part in self.parts])

    def read(self, value: Any) -> list[Any]:
        if type(value) is not self.spec.type or objects.labels_of(value) != self.spec.labels:
            raise self.wrong(describe(self.value), value)
        return [leaf for part, item in zip(self.parts, self.spec.split(value), strict=True) for leaf in part.read(item)]

    def exact(self, value: Any) -> list[Any]:
        if type(value) is not self.spec.type or objects.labels_of(value) != self.spec.labels:
            raise self.wrong(describe(self.value), value)
        return [
            leaf for part, item in zip(self.parts, self.spec.split(value), strict=True) for leaf in part.exact(item)
        ]

    def release(self) -> None:
        self.value = describe(self.value)
        for part in self.parts:
            part.release()

    def key(self) -> Any:
        return (self.spec.type, self.spec.labels, tuple(part.key() for part in self.parts))


def argument_of(name: str, value: Any, annotation: Any = None) -> Argument:
    """The argument that ``value`` makes for a parameter with ``annotation``."""
    if is_constexpr(annotation) or value is None:
        return Fixed(name, value)
    _check_annotation(name, value, annotation)
    if wants_stream(annotation) or is_stream(value):
        return StreamArgument(name)
    if type(value) in ADAPTERS:
        adapter = ADAPTERS[type(value)]
        return Protocol(name, adapter(value), adapter)
    number = None if _is_tensor(annotation) else _number_class(value, annotation)
    if number is not None:
        return Scalar(name, number)
    if hasattr(type(value), "__get_mlir_types__") and hasattr(type(value), "__c_pointers__"):
        return Protocol(name, value)
    if is_array(value):
        return Protocol(name, implicit_tensor(value), implicit_tensor)
    if isinstance(value, (tuple, list, dict)) or objects.is_record(value):
        return _group(name, value)
    return Fixed(name, value)


def _group(name: str, value: Any) -> Argument:
    split, make = objects.codec(value)
    labels = objects.labels_of(value)
    notes = {f".{f.name}": f.type for f in dataclasses.fields(value)} if objects.is_record(value) else {}
    parts = [
        argument_of(f"{name}{label}", item, notes.get(label)) for label, item in zip(labels, split(value), strict=True)
    ]
    if all(isinstance(part, Fixed) for part in parts):
        return Fixed(name, value)
    return Group(name, specs.Compound(type(value), labels, [], split, make), value, parts)


def _number_class(value: Any, annotation: Any) -> Any:
    if isinstance(value, Numeric):
        return numeric_annotation(annotation) or type(value)
    if isinstance(value, (bool, int, float)) and type(value) in (bool, int, float):
        wanted = numeric_annotation(annotation)
        if wanted is not None:
            return wanted
        return Boolean if isinstance(value, bool) else Float32 if isinstance(value, float) else _int_class(value)
    if _numpy_scalars(value):
        return numeric_annotation(annotation) or _number_class(value.item(), None)
    return None


def _int_class(value: int) -> Any:
    return Int32 if -(1 << 31) <= value < 1 << 31 else Int64


def _check_annotation(name: str, value: Any, annotation: Any) -> None:
    if not isinstance(annotation, type):
        return
    number = numeric_annotation(annotation)
    if number is not None and not (isinstance(value, (Numeric, numbers.Real)) or _numpy_scalars(value)):
        raise ArgumentError(f"argument '{name}': expected a number ({number.__name__}), got {objects.describe(value)}")
    if issubclass(annotation, Tensor) and not (isinstance(value, Tensor) or is_array(value) or _has_tensor_face(value)):
        advice = "; an array (NumPy, PyTorch, DLPack) or from_dlpack(array) is wanted"
        raise ArgumentError(f"argument '{name}': expected a Tensor, got {objects.describe(value)}{advice}")
    if issubclass(annotation, Pointer) and not isinstance(value, Pointer) and not hasattr(value, "__c_pointers__"):
        raise ArgumentError(f"argument '{name}': expected a Pointer (cute.runtime.make_ptr), got {describe(value)}")


def _is_tensor(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, Tensor)


def _has_tensor_face(value: Any) -> bool:
    return hasattr(type(value), "__c_pointers__") and not isinstance(value, Numeric)


def implicit_tensor(array: Any) -> Any:
    """An array passed as it is: a tensor with a run-time layout, but for the stride 1 of its leading mode."""
    tensor = from_dlpack(array)
    return tensor.mark_layout_dynamic() if array.ndim else tensor


def wants_stream(annotation: Any) -> bool:
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    return text.rpartition(".")[2] in ("CUstream", "Stream")


def is_stream(value: Any) -> bool:
    return type(value).__name__ == "CUstream" or hasattr(type(value), "cuda_stream") or type(value) is Stream


def stream_handle(value: Any) -> int | None:
    """The driver's handle of a stream: cuda-bindings' CUstream, PyTorch's stream, or the number itself."""
    handle = getattr(value, "cuda_stream", value)
    try:
        return int(handle)
    except (TypeError, ValueError):
        return None


def fits_type(want: Type, got: Type) -> bool:
    if isinstance(want, PtrType) and isinstance(got, PtrType):
        return (want.elem, want.space) == (got.elem, got.space) and got.align % want.align == 0
    return want == got


def covers(got: Any, want: Any) -> bool:
    """Whether the (sign, divisor) pairs known of one object's leaves imply those of another."""
    if got == want or want is None:
        return True
    if got is None or len(got) != len(want):
        return False
    return all((g[0] or not w[0]) and g[1] % w[1] == 0 for g, w in zip(got, want, strict=True))


def _plain(value: Any) -> Any:
    """What a user's ``__c_pointers__`` lists, as numbers: ctypes objects are read."""
    if isinstance(value, Numeric):
        return value.value
    if isinstance(value, ctypes._SimpleCData):
        return value.value
    if isinstance(value, ctypes._Pointer):
        return value.contents.value
    return value


def _numpy_scalars(value: Any) -> tuple[type, ...]:
    """The class of a NumPy scalar, to pass to isinstance; empty for anything else."""
    cls = type(value)
    return (cls,) if hasattr(cls, "dtype") and hasattr(cls, "item") and getattr(value, "shape", None) == () else ()


def describe(value: Any) -> str:
    if isinstance(value, str):
        return value
    if is_array(value):
        shape, dtype = tuple(value.shape), str(value.dtype).removeprefix("torch.")
        return f"{type(value).__name__} of {dtype}, shape {shape}"
    return objects.describe(value)
