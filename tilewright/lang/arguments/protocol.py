"""Arguments with the documented methods: tensors, arrays, pointers, users' classes, adapted objects."""

from __future__ import annotations

import ctypes
import typing
from collections.abc import Callable
from typing import Any

from tilewright.errors import ArgumentError
from tilewright.ir.runtime import DevicePointer
from tilewright.ir.types import MemSpace, PtrType, Type
from tilewright.lang.arguments.arrays import array_of, is_array
from tilewright.lang.arguments.dlpack import HostTensor, from_dlpack, leading_or_last
from tilewright.lang.arguments.kinds import Argument, describe
from tilewright.lang.numbers.numeric import Integer, Numeric
from tilewright.lang.staging import objects
from tilewright.lang.staging import values as run_time
from tilewright.lang.tensors.host_pointer import HostPointer, make_ptr
from tilewright.lang.tensors.pointer import AddressSpace


@typing.runtime_checkable
class JitArgument(typing.Protocol):
    """What Python passes to a ``@cute.jit`` function: an object with these methods."""

    def __c_pointers__(self) -> list[Any]: ...

    def __get_mlir_types__(self) -> list[Any]: ...

    def __new_from_mlir_values__(self, values: list[Any]) -> Any: ...


@typing.runtime_checkable
class DynamicExpression(typing.Protocol):
    """What staged functions pass to each other, and carry through loops and branches: an object with these methods."""

    def __extract_mlir_values__(self) -> list[Any]: ...

    def __new_from_mlir_values__(self, values: list[Any]) -> Any: ...


def get_c_pointers(value: Any) -> list[Any]:
    """What an argument passes to a compiled function: of containers, what their items pass; of a Python number, it."""
    if hasattr(value, "__c_pointers__"):
        return list(value.__c_pointers__())
    if isinstance(value, (tuple, list)):
        return [pointer for item in value for pointer in get_c_pointers(item)]
    return [] if value is None else [value]


ADAPTERS: dict[type, Callable[[Any], Any]] = {}


def register_jit_arg_adapter(cls: type) -> Callable[[Any], Any]:
    """Decorator of an adapter class, called with an object of ``cls`` to make it an argument: the adapter has
    ``__c_pointers__``, ``__get_mlir_types__`` and ``__new_from_mlir_values__``.

    >>> from fractions import Fraction
    >>> import tilewright as cutlass
    >>> @cutlass.register_jit_arg_adapter(Fraction)
    ... class AsFloat:
    ...     def __init__(self, fraction):
    ...         self.number = cutlass.Float32(float(fraction))
    ...     def __c_pointers__(self):
    ...         return self.number.__c_pointers__()
    ...     def __get_mlir_types__(self):
    ...         return self.number.__get_mlir_types__()
    ...     def __new_from_mlir_values__(self, values):
    ...         return self.number.__new_from_mlir_values__(values)
    >>> @cute.kernel
    ... def scale(x: cute.Tensor, factor):
    ...     i = cute.arch.thread_idx()[0]
    ...     x[i] = x[i] * factor
    >>> @cute.jit
    ... def run(x: cute.Tensor, factor):
    ...     scale(x, factor).launch(grid=(1, 1, 1), block=(4, 1, 1))
    >>> x = np.arange(4, dtype=np.float32)
    >>> run(x, Fraction(1, 2))
    >>> x
    array([0. , 0.5, 1. , 1.5], dtype=float32)
    """

    def register(adapter: Any) -> Any:
        ADAPTERS[cls] = adapter
        return adapter

    return register


def implicit_tensor(array: Any) -> Any:
    """An array passed as it is: a tensor with a run-time layout, but for the stride 1 of its leading mode."""
    tensor = from_dlpack(array)
    return tensor.mark_layout_dynamic(leading_or_last(tensor.array)) if tensor.array.shape else tensor


STATIC = (
    "a static layout is a part of what was compiled: compile for the array itself, or for its tensor after "
    "mark_layout_dynamic(), to take other shapes"
)


_HOST_SPACES = (MemSpace.GMEM, MemSpace.GENERIC)


class ProtocolArgument(Argument, run_time.ProtocolSpec):
    """An object with the documented methods: host tensors and pointers, users' classes, adapted objects.

    ``convert`` makes such an object from what the caller passes (an array, an adapted class). ``fields`` is the same
    named tuple as a container: a call may pass plain numbers and arrays in its fields, which its methods do not see."""

    def __init__(
        self,
        name: str,
        template: Any,
        convert: Callable[[Any], Any] | None = None,
        fields: Argument | None = None,
    ) -> None:
        super().__init__(template, template.__get_mlir_types__())
        self.name, self.convert = name, convert
        self.fields = fields if fields is not None and fields.types() == self.type_list else None
        self.static = objects.static_part(template)
        self.facts = objects.known_facts(template)
        self.token = object()

    @property
    def on_cpu(self) -> bool:
        pointer = self.template.engine if isinstance(self.template, HostTensor) else self.template
        return isinstance(pointer, HostPointer) and pointer.on_cpu

    def value_names(self) -> list[str]:
        return run_time.object_names(self.template, self.name, len(self.type_list))

    def read(self, value: Any, exactly: bool = False) -> list[Any]:
        if self.convert is not None and type(value) is not type(self.template):
            value = self.converted(value)
        if isinstance(value, HostTensor):
            self._needs_memory(value.array)
        if type(value) is not type(self.template):
            if isinstance(self.template, HostTensor) and is_array(value):
                return self._read_array(value, self._named(array_of, value), None)
            value = self._pointer(value)
        if not exactly:  # else the code may depend on the space
            value = self._in_the_space(value)
        types = list(value.__get_mlir_types__())
        fits = value is self.template or self._fits(value, types)
        if not fits or not covers(objects.known_facts(value), self.facts):
            if isinstance(value, HostTensor) and not exactly:  # marked otherwise, or promising less: its array may fit
                return self._read_array(value, value.array, value.element_type)
            if self.fields is not None and not exactly:
                return self.fields.read(value)
            raise self.wrong(describe(self.template) + (f" with divisors {self.facts}" if fits else ""), value)
        numbers = [_number_of(v) for v in value.__c_pointers__()]
        for kind, leaf in zip(self.type_list, numbers, strict=True):
            if isinstance(kind, PtrType) and isinstance(leaf, DevicePointer) and leaf.address % kind.align:
                raise self.wrong(f"an address that is a multiple of {kind.align} bytes", f"{leaf.address:#x}")
        if isinstance(value, HostTensor) and not value.array.readonly:  # else every call checks that it is not written
            value.passed = (self.token, numbers)
        return numbers

    def by_fields(self, value: Any) -> bool:
        """Whether ``value`` is read field by field: its own methods do not see what its fields hold."""
        types = list(value.__get_mlir_types__())
        seen = value is self.template or self._fits(value, types) and covers(objects.known_facts(value), self.facts)
        return self.fields is not None and type(value) is type(self.template) and not seen

    def _in_the_space(self, value: Any) -> Any:
        """A pointer to global memory, or one without a memory space, as the kind of these two that was compiled: host
        pointers are addresses of global memory in either."""
        space = self.template._kind.space if isinstance(self.template, HostPointer) else None
        if space not in _HOST_SPACES or value._kind.space not in _HOST_SPACES or value._kind.space is space:
            return value
        place = value.device_pointer()
        return HostPointer(place, value.dtype, space, value.alignment, value.wide, value.on_cpu)

    def _pointer(self, value: Any) -> HostPointer:
        """An address, as a number or kept by ctypes or TVM FFI, for a parameter that was compiled with a pointer."""
        address = getattr(value, "__tvm_ffi_opaque_ptr__", None)
        is_address = address or isinstance(value, ctypes.c_void_p) or type(value) is int
        if not isinstance(self.template, HostPointer) or not is_address:
            raise self.wrong_kind(describe(self.template), value)
        kind = self.template._kind
        place = address() if address else getattr(value, "value", value) or 0
        if place % kind.align:
            raise self.wrong(f"an address that is a multiple of {kind.align} bytes", f"{place:#x}")
        pointer: Any = make_ptr(self.template.dtype, place, AddressSpace(kind.space.value), kind.align)
        return pointer

    def _read_array(self, value: Any, array: Any, dtype: Any) -> list[Any]:
        """An array for a parameter that was compiled with a tensor: it must be what the tensor's layout says.
        ``dtype``: what its elements are read as, if not as its own."""
        self._needs_memory(array)
        layout, kind = self.template.layout, self.type_list[0]
        assert isinstance(kind, PtrType)
        shape, stride = layout.shape, layout.stride
        if (dtype or array.dtype) is not self.template.element_type or len(array.shape) != len(shape):
            raise self.wrong(describe(self.template), value)
        if array.is_wide and not self.template.engine.wide:
            raise self.wrong(f"{describe(self.template)} with offsets of 32 bits", value)
        leaves: list[Any] = []
        free = [False] * len(shape) + [n == 1 for n in array.shape]  # the stride of a single element says nothing
        for want, got, any_fits in zip((*shape, *stride), (*array.shape, *array.stride), free, strict=True):
            if isinstance(want, Integer):
                low = 0 if want.facts.nonneg else -(1 << (want.width - 1))
                divisor = 1 if any_fits else want.divisibility
                if got % divisor or not low <= got < 1 << (want.width - 1):
                    least = "0" if want.facts.nonneg else f"-2**{want.width - 1}"
                    fault = f"a multiple of {divisor}" if got % divisor else f"between {least} and 2**{want.width - 1}"
                    raise self.wrong(describe(self.template), f"{describe(value)}: {got} is not {fault}")
                leaves.append(got)
            elif want != got and not any_fits:
                extents = zip(shape, array.shape, strict=True)
                same = all(isinstance(n, Integer) or n == m for n, m in extents)  # then the strides do not fit
                strides = f", strides {tuple(array.stride)}" if same else ""
                raise self.wrong(describe(self.template), f"{describe(value)}{strides}; {STATIC}")
        if array.address % kind.align:
            raise self.wrong(f"an address that is a multiple of {kind.align} bytes", f"{array.address:#x}")
        low, high = array.bounds
        return [
            DevicePointer(array.address, array.device, low, high, array.owner, array.readonly, array.shape),
            *leaves,
        ]

    def _needs_memory(self, array: Any) -> None:
        if not array.address and 0 not in array.shape:
            raise ArgumentError(
                f"argument '{self.name}': a tensor without memory, to compile with (such as a FakeTensor); a call "
                f"needs one with memory"
            )

    def release(self) -> None:
        if self.fields is not None:
            self.fields.release()
        if isinstance(self.template, HostTensor):
            self.template = self.template.without_memory()

    def exact(self, value: Any) -> list[Any]:
        if self.convert is None and type(value) is not type(self.template):
            raise self.wrong(describe(self.template), value)
        return self.read(value, exactly=True)

    def _fits(self, value: Any, types: list[Type]) -> bool:
        if not objects.same_static(self.static, objects.static_part(value)) or len(types) != len(self.type_list):
            return False
        return all(fits_type(want, got) for want, got in zip(self.type_list, types, strict=True))

    def converted(self, value: Any) -> Any:
        assert self.convert is not None
        return self._named(self.convert, value)

    def _named(self, read: Callable[[Any], Any], value: Any) -> Any:
        """``read(value)``, whose errors name the argument."""
        try:
            return read(value)
        except (ArgumentError, TypeError, AttributeError, BufferError) as wrong:
            raise ArgumentError(f"argument '{self.name}': {wrong}") from None

    def key(self) -> Any:
        return (type(self.template), tuple(self.type_list), objects.StaticKey(self.static), self.facts)


def fits_type(want: Type, got: Type) -> bool:
    if isinstance(want, PtrType) and isinstance(got, PtrType):
        return (want.elem, want.space) == (got.elem, got.space) and got.align % want.align == 0
    return want == got


def covers(got: Any, want: Any) -> bool:
    """Whether what is known of one object's leaves (sign, divisor, bound) implies that of another's."""
    if got == want or want is None:
        return True
    if got is None or len(got) != len(want):
        return False
    return all((g[0] or not w[0]) and g[1] % w[1] == 0 and g[2:] >= w[2:] for g, w in zip(got, want, strict=True))


def _number_of(value: Any) -> Any:
    """What a user's ``__c_pointers__`` lists, as numbers: ctypes objects are read."""
    if isinstance(value, Numeric):
        return value.value
    if isinstance(value, ctypes._SimpleCData):
        return value.value
    if isinstance(value, ctypes._Pointer):
        return value.contents.value
    return value
