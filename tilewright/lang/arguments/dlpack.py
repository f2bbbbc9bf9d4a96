"""``from_dlpack``: arrays of NumPy, PyTorch, CuPy, JAX... as tensors that jit functions take.

The tensor has the array's shape and strides, static until ``mark_layout_dynamic`` or ``mark_compact_shape_dynamic``
says otherwise: a kernel is specialised for a static layout, a dynamic one is passed with each call.
"""

from __future__ import annotations

import ctypes
import weakref
from typing import Any

from tilewright.errors import ArgumentError, ConstraintError, StagingError
from tilewright.ir.builder import Builder
from tilewright.ir.runtime import DevicePointer
from tilewright.ir.types import MemSpace
from tilewright.lang.arguments.arrays import Array, array_of
from tilewright.lang.numbers.facts import EXTENT_BOUND, Facts
from tilewright.lang.numbers.numeric import Int32, Int64, Integer, is_number, unwrap
from tilewright.lang.tensors.access import need_no_fraction
from tilewright.lang.tensors.bounds import inside
from tilewright.lang.tensors.host_pointer import HostPointer
from tilewright.lang.tensors.leaves import dynamic_leaves
from tilewright.lang.tensors.packed import group
from tilewright.lang.tensors.pointer import element_bytes, is_packed
from tilewright.lang.tensors.tensor import Tensor, coordinate, unwrap_tree
from tilewright.layout.layout import Layout
from tilewright.layout.modes import crd2idx, idx2crd
from tilewright.layout.slicing import slice_and_offset
from tilewright.layout.text import format_tree
from tilewright.layout.tuples import flatten_to_tuple


class HostTensor(Tensor):
    """A tensor over an array of the host program. ``mark_...`` change it in place and return it.

    >>> from tilewright.cute.runtime import from_dlpack
    >>> x = from_dlpack(np.arange(6, dtype=np.float32).reshape(2, 3), assumed_align=4)
    >>> x.layout, x.element_type, x.shape
    ((2,3):(3,1), Float32, (2, 3))
    >>> x.mark_layout_dynamic().layout  # extents and strides are read at each call
    (?,?):(?,1)
    """

    __slots__ = ("_guard", "array", "passed", "symbols")
    is_nested = False
    """What calls ask of PyTorch's tensors."""

    def __init__(self, iterator: HostPointer, layout: Layout, array: Array) -> None:
        super().__init__(iterator, layout)
        self.array = array
        self._guard = _guard(array.owner)
        self.symbols: tuple[Any, ...] = ()
        """The ``SymInt`` of each run-time extent and stride of a stand-in tensor."""
        self.passed: tuple[object, list[Any]] = (None, [])
        """The compiled function's argument that last took this tensor, and the values that it read from it."""

    # -- what it is ----------------------------------------------------------------------------------------------

    @property
    def element_type(self) -> Any:
        return self.engine.dtype

    @element_type.setter
    def element_type(self, dtype: Any) -> None:
        """Read the same bytes as ``dtype`` (of the same width): fp8 kept in uint8, tf32 kept in float32."""
        if dtype.width != self.engine.dtype.width:
            raise ArgumentError(
                f"element_type: {dtype} has {dtype.width} bits, the array's elements {self.engine.dtype.width}"
            )
        self.engine = self.engine.with_dtype(dtype)
        self.passed = (None, [])

    def without_memory(self) -> HostTensor:
        """A tensor of the same type that does not keep the array alive."""
        base = self.engine.base._replace(owner=None)
        kind = self.engine._kind
        pointer = HostPointer(base, self.engine.dtype, kind.space, kind.align, self.engine.wide, self.engine.on_cpu)
        made = HostTensor(pointer, self.linear, self.array._replace(owner=None))
        made.symbols = self.symbols
        return made

    @property
    def __cache_key__(self) -> tuple[object, ...]:
        """Equal, and hashable, for tensors that one compiled function takes: the key of a table of compiled functions.
        Of a ``SymInt`` it says width and divisibility; which extents have to be equal, calls check."""
        return repr(self.type), self.engine.wide, self.engine.on_cpu, *map(repr, self.symbols)

    @property
    def device(self) -> str:
        return self.array.device

    @property
    def data_ptr(self) -> int:
        """The address of the first element."""
        return int(self.engine.toint())

    @property
    def leading_dim(self) -> int | None:
        """The mode of stride 1 (the first of extent above 1, if several), or None."""
        return _leading(self.array)

    @property
    def numel(self) -> int:
        import math

        return math.prod(self.array.shape)

    @property
    def dynamic_shapes_mask(self) -> tuple[int, ...]:
        """1 for each extent that is passed at each call, 0 for those that are static."""
        return tuple([int(isinstance(n, Integer)) for n in flatten_to_tuple(self.linear.shape)])

    @property
    def dynamic_strides_mask(self) -> tuple[int, ...]:
        """1 for each stride that is passed at each call, 0 for those that are static."""
        return tuple([int(isinstance(d, Integer)) for d in flatten_to_tuple(self.linear.stride)])

    @property
    def is_dynamic_layout(self) -> bool:
        return bool(dynamic_leaves(self.linear))

    def __str__(self) -> str:
        """As documented, with the address; ``repr`` has what kernels are specialised for."""
        shape, stride = (str(t).replace("'", "") for t in (_shown(self.linear.shape), _shown(self.linear.stride)))
        return f"Tensor<0x{self.data_ptr:016x}@{self.engine.memspace} o {shape}:{stride}>"

    # -- views ---------------------------------------------------------------------------------------------------

    def with_layout(self, layout: Any, offset: Any = 0) -> Any:
        """The same array, ``offset`` elements on, through another layout: what tilings and slices give."""
        pointer = self.engine + unwrap(offset)
        if not isinstance(layout, Layout):
            return Tensor(pointer, layout)
        shape, stride = (tuple([_number(x) for x in flatten_to_tuple(t)]) for t in (layout.shape, layout.stride))
        kept = {id(x) for x in dynamic_leaves(self.linear)}
        layout = Layout(_unspecific(layout.shape, kept), _unspecific(layout.stride, kept))
        array = self.array._replace(address=pointer.toint(), shape=shape, stride=stride)
        return HostTensor(pointer, layout, array)

    def _slice(self, coord: Any) -> Any:
        layout, offset = slice_and_offset(coord, self.linear)
        return self.with_layout(layout, offset)

    def _mark(self, shape: tuple[Any, ...], stride: tuple[Any, ...]) -> HostTensor:
        self.linear = _layout(shape, stride)
        self.passed = (None, [])
        return self

    def _need_flat(self, what: str) -> None:
        if any(isinstance(n, tuple) for n in self.linear.shape):
            raise ArgumentError(f"{what}: the tensor is tiled already, {self.linear}; mark it before it is tiled")

    # -- dynamic layouts -----------------------------------------------------------------------------------------

    def mark_layout_dynamic(self, leading_dim: int | None = None) -> HostTensor:
        """Shape and strides are passed at each call; the stride of ``leading_dim`` stays 1. Changes this tensor and
        returns it.

        ``leading_dim`` can be left out when exactly one mode has stride 1 (or one of them has an extent above 1).
        Raises ArgumentError when several have and none or more than one of them has an extent above 1, or when the one
        given has another stride. Where no mode has stride 1, all strides are passed.
        """
        self._need_flat("mark_layout_dynamic")
        array = self.array
        if leading_dim is None:
            leading_dim = _the_leading(array)
        else:
            leading_dim = _mode(leading_dim, array)
            if array.stride[leading_dim] != 1 and array.shape[leading_dim] > 1:
                raise ArgumentError(
                    f"mark_layout_dynamic(leading_dim={leading_dim}): that mode has stride "
                    f"{array.stride[leading_dim]}, not 1, in {self._text()}"
                )
        unit = _in_whole_bytes(array)
        shape = tuple([_extent(n, unit if i == leading_dim else 1) for i, n in enumerate(array.shape)])
        wide = self.engine.wide
        stride = tuple(
            [1 if i == leading_dim else 0 if d == 0 else _dynamic(d, unit, wide) for i, d in enumerate(array.stride)]
        )
        return self._mark(shape, stride)

    def mark_all_dynamic(self, contiguous: int | None = None, of_extent: int = 1, of_strides: int = 1) -> HostTensor:
        """Every extent and stride is passed at each call, except that mode ``contiguous`` has stride 1.

        ``of_extent`` divides the extent of that mode at each call, ``of_strides`` every stride but 1. Nothing is looked
        up in the array, so all arrays of one rank and dtype share one specialisation; strides of 0 and of modes with
        extent 1 are run-time numbers like any other. Raises ArgumentError for an array that is not so.
        """
        self._need_flat("mark_all_dynamic")
        array, wide = self.array, self.engine.wide
        for i, (extent, step) in enumerate(zip(array.shape, array.stride, strict=True)):
            inner = i == contiguous
            if extent > 1 and (step != 1 if inner else step % of_strides) or (inner and extent % of_extent):
                raise ArgumentError(
                    f"mark_all_dynamic(contiguous={contiguous}, of_extent={of_extent}, of_strides={of_strides}): mode "
                    f"{i} of {self._text()} is not so"
                )
        unit = _in_whole_bytes(array)
        along, across = max(unit, of_extent), max(unit, of_strides)
        shape = tuple([_extent(n, along if i == contiguous else 1) for i, n in enumerate(array.shape)])
        stride = tuple([1 if i == contiguous else _dynamic(d, across, wide) for i, d in enumerate(array.stride)])
        return self._mark(shape, stride)

    def mark_compact_shape_dynamic(
        self, mode: int, stride_order: tuple[int, ...] | None = None, divisibility: int = 1
    ) -> HostTensor:
        """Extent ``mode`` is passed at each call, with the strides of the slower modes that follow from it. Changes
        this tensor and returns it; other modes stay as they are, so that several can be marked one after the other.

        The array must be compact in ``stride_order`` (modes from slowest to fastest, as in PyTorch's ``dim_order``),
        which can be left out where the strides decide it. ``divisibility`` promises a divisor of the extent.
        Modes whose extent is 1 get the stride 0.
        """
        self._need_flat("mark_compact_shape_dynamic")
        array = self.array
        mode = _mode(mode, array)
        order = _compact_order(array, stride_order, self._text())
        if array.shape[mode] % divisibility:
            raise ArgumentError(
                f"mark_compact_shape_dynamic: extent {array.shape[mode]} of mode {mode} "
                f"is not divisible by {divisibility}"
            )
        shape = list(self.linear.shape)
        shape[mode] = _extent(array.shape[mode], divisibility)
        stride: list[Any] = [0] * len(shape)
        wide, product, number = self.engine.wide, 1, 1
        dynamic = False
        for i in reversed(order):
            if not isinstance(shape[i], Integer) and shape[i] == 1:
                continue  # nothing is ever that far
            stride[i] = _dynamic(number, product, wide) if dynamic else number
            dynamic = dynamic or isinstance(shape[i], Integer)
            product *= shape[i].facts.divisibility if isinstance(shape[i], Integer) else shape[i]
            number *= array.shape[i]
        return self._mark(tuple(shape), tuple(stride))

    def _text(self) -> str:
        return f"{format_tree(self.array.shape)}:{format_tree(self.array.stride)}"

    # -- elements ------------------------------------------------------------------------------------------------

    def numpy(self) -> Any:
        """The elements as a NumPy array: the memory itself on the CPU, a copy of an array on a GPU."""
        import numpy as np

        owner = self.array.owner
        if is_packed(self.element_type):
            raise ArgumentError(
                f"NumPy has no arrays of {self.element_type} without gaps: look at the bytes of the array that "
                f"{self!r} was made from"
            )
        if owner is None:
            raise ArgumentError(f"{self!r} has no elements: it stands for an argument when compiling, without memory")
        if self.device != "cpu":
            import torch

            if not isinstance(owner, torch.Tensor):
                raise ArgumentError("the elements of this GPU array can be read only through its own framework")
            size = element_bytes(self.element_type)
            bits = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[size]
            first = owner.storage_offset() + (self.array.address - owner.data_ptr()) // size
            seen = owner.detach().view(bits).as_strided(self.array.shape, self.array.stride, first)
            return seen.cpu().numpy().view(self.element_type.dtype)
        size = element_bytes(self.element_type)
        low, high = self.array.bounds
        memory: Any = (ctypes.c_char * (high - low)).from_address(low)
        memory.owner = owner, self._guard  # the view keeps the array's memory alive, and where it is
        strides = [d * size for d in self.array.stride]
        return np.ndarray(self.array.shape, self.element_type.dtype, memory, self.array.address - low, strides)

    def __getitem__(self, coord: Any, *, loc: Any = None, ip: Any = None) -> Any:
        """An element as a Python number, or a slice of the layout on the host."""
        from tilewright.layout.layout import has_underscore

        coord = tuple(coord) if isinstance(coord, (tuple, list)) else coord
        if has_underscore(coord):
            return super().__getitem__(coord)
        self._need_the_host()
        return self.element_type(self.numpy()[self._numpy_index(coord)]).value

    def __setitem__(self, coord: Any, value: Any, loc: Any = None, ip: Any = None) -> None:
        self._need_the_host()
        self.numpy()[self._numpy_index(coord)] = self._element(value)

    def fill(self, value: Any, *, loc: Any = None, ip: Any = None) -> None:
        self._need_the_host()
        self.numpy()[...] = self._element(value)

    def _element(self, value: Any) -> Any:
        """A number that is stored, as in kernels: rounded to the element's type; a float keeps its fraction."""
        value = value.item() if hasattr(value, "item") else value  # NumPy's scalars
        if not is_number(value):
            raise ArgumentError(f"{value!r} is not an element of {self!r}: a number is needed")
        need_no_fraction(value, self.element_type, self)
        return self.element_type(value).value

    @staticmethod
    def _need_the_host() -> None:
        """Elements are read and written by Python: while staging that would happen once, not at each run."""
        if Builder.active():
            raise StagingError(
                "a tensor of the host has no elements while staging: pass it to the function (and the kernel) as an "
                "argument"
            )

    def _numpy_index(self, coord: Any) -> tuple[int, ...]:
        coord, shape = unwrap_tree(coordinate(coord)), _known(self.linear.shape)
        if not inside(coord, shape):
            raise ConstraintError(f"the coordinate {format_tree(coord)} is outside {self!r}")
        flat = isinstance(coord, tuple) and not any(isinstance(mode, tuple) for mode in coord)
        if flat and len(coord) == len(self.array.shape):
            return coord
        if not self.array.shape:
            return ()
        return flatten_to_tuple(idx2crd(crd2idx(coord, shape), shape))

    # -- passing -------------------------------------------------------------------------------------------------

    def __c_pointers__(self) -> list[Any]:
        return [self.engine.device_pointer(), *[x.value for x in dynamic_leaves(self.linear)]]


def from_dlpack(
    tensor_dlpack: Any,
    assumed_align: int | None = None,
    use_32bit_stride: bool = True,
    *,
    enable_tvm_ffi: bool = False,
    force_tf32: bool = False,
) -> HostTensor:
    """``tensor_dlpack`` (an array) as a tensor, without a copy.

    ``assumed_align`` (bytes) is what kernels may count on; it defaults to the size of one element and must hold.
    ``use_32bit_stride`` lets run-time strides take 32 bits where all offsets into the array fit, as documented; given
    as False they take 64, so that what is compiled for a small array takes large ones too. (The CuTe DSL's default is
    False.) ``force_tf32`` reads float32 as TFloat32. ``enable_tvm_ffi`` is accepted: calls are made this library's way.

    >>> x = np.zeros((8, 4), np.float16)
    >>> from_dlpack(x).layout, from_dlpack(x).mark_layout_dynamic().layout
    ((8,4):(4,1), (?,?):(?,1))
    >>> from_dlpack(x).mark_compact_shape_dynamic(0, divisibility=4).layout
    (?{div=4},4):(4,1)
    """
    if isinstance(tensor_dlpack, HostTensor):
        tensor_dlpack = tensor_dlpack.array.owner
    array = array_of(tensor_dlpack)
    if force_tf32:
        from tilewright.lang.numbers.numeric import Float32, TFloat32

        if array.dtype is not Float32:
            raise ArgumentError(f"force_tf32 needs float32 elements, not {array.dtype}")
        array = array._replace(dtype=TFloat32)
    return tensor_over(array, assumed_align, not use_32bit_stride)


def tensor_over(array: Array, assumed_align: int | None = None, wide: bool = False) -> HostTensor:
    """A view that :func:`~tilewright.lang.arguments.arrays.array_of` gave (modes permuted or added) as a tensor."""
    align = assumed_align if assumed_align is not None else element_bytes(array.dtype)
    if align < 1 or align & (align - 1):
        raise ArgumentError(f"from_dlpack: an alignment is a power of two, not {assumed_align}")
    align = max(align, element_bytes(array.dtype))
    if array.address % align:
        raise ArgumentError(
            f"from_dlpack: the address {array.address:#x} is not a multiple of assumed_align={align} bytes"
        )
    low, high = array.bounds
    place = DevicePointer(array.address, array.device, low, high, array.owner, array.readonly, array.shape)
    pointer = HostPointer(place, array.dtype, MemSpace.GMEM, align, wide or array.is_wide, array.on_cpu)
    return HostTensor(pointer, _layout(array.shape, array.stride), array)


def _guard(owner: Any) -> Any:
    """A weak reference to a NumPy array: while there is one, ``ndarray.resize`` refuses to move the memory."""
    return weakref.ref(owner) if hasattr(owner, "__array_interface__") and type(owner).__weakrefoffset__ else None


def _layout(shape: Any, stride: Any) -> Layout:
    return Layout(shape, stride) if shape else Layout((1,), (0,))


def _shown(x: Any) -> Any:
    """A shape or stride as Python prints it, with a question mark for each number that is passed at each call."""
    if isinstance(x, tuple):
        return tuple([_shown(i) for i in x])
    return x if isinstance(x, int) else format_tree(x)


def _number(x: Any) -> int:
    """A leaf of a layout on the host as the number that it has now."""
    number = x.value if isinstance(x, Integer) else x
    assert isinstance(number, int)
    return number


def _unspecific(x: Any, kept: set[int]) -> Any:
    """``x`` where run-time leaves that were computed promise no divisor: that of today's number binds no later call."""
    if isinstance(x, tuple):
        return tuple([_unspecific(part, kept) for part in x])
    return _dynamic(_number(x), 1, x.width == 64) if isinstance(x, Integer) and id(x) not in kept else x


def _known(x: Any) -> Any:
    return tuple(map(_known, x)) if isinstance(x, tuple) else _number(x)


def _dynamic(number: int, divisibility: int = 1, wide: bool = False) -> Integer:
    """``number`` as a leaf that is passed at each call."""
    cls: Any = Int64 if wide else Int32
    leaf: Integer = cls.__new__(cls)  # without the constructor: this is on the path of every call
    leaf.value = number
    bound = EXTENT_BOUND[64 if wide else 32]
    leaf.facts = Facts(number >= 0, divisibility, bound if number < bound else None)
    return leaf


def _in_whole_bytes(array: Array) -> int:
    """What divides the run-time extents and strides of an array whose elements share bytes: its frameworks count
    bytes. 1 for others."""
    return group(array.dtype)[0] if is_packed(array.dtype) else 1


def _extent(number: int, divisibility: int = 1) -> Integer:
    """An extent as a leaf that is passed at each call."""
    if number >= 1 << 31:
        raise ArgumentError(
            f"an extent of {number} elements does not fit Int32, which run-time extents are: cut the mode in two by a "
            "reshape, or keep the layout static (from_dlpack without mark_layout_dynamic)"
        )
    return _dynamic(number, divisibility)


def _leading(array: Array) -> int | None:
    units = [i for i, d in enumerate(array.stride) if d == 1]
    longer = [i for i in units if array.shape[i] > 1]
    return (longer or units or [None])[0]  # type: ignore[list-item]  # None without a candidate


def _the_leading(array: Array) -> int | None:
    units = [i for i, d in enumerate(array.stride) if d == 1]
    longer = [i for i in units if array.shape[i] > 1]
    if len(longer) > 1:
        raise ArgumentError(
            f"mark_layout_dynamic: modes {longer} all have stride 1; say which one leads with leading_dim"
        )
    if len(units) > 1 and not longer:
        raise ArgumentError(
            f"mark_layout_dynamic: modes {units} all have stride 1 and extent 1, so that the array does not show which "
            f"one is contiguous: say it with leading_dim (leading_dim={units[-1]} for arrays of rows)"
        )
    return longer[0] if longer else units[0] if units else None


def leading_or_last(array: Array) -> int | None:
    """The leading mode, as ``mark_layout_dynamic`` finds it; of an array of one element the last one, which is as good
    as any other: for arrays that are passed as they are, where nothing can say which one leads."""
    if all(extent == 1 for extent in array.shape):
        return len(array.shape) - 1
    return _the_leading(array)


def _mode(mode: int, array: Array) -> int:
    n = len(array.shape)
    if not -n <= mode < n:
        raise ArgumentError(f"mode {mode} does not exist: the array has {n} modes")
    return mode % n


def _compact_order(array: Array, order: tuple[int, ...] | None, text: str) -> list[int]:
    """The modes from slowest to fastest, checked to make the array compact."""
    modes = range(len(array.shape))
    if order is None:
        by_stride = sorted(modes, key=lambda i: (array.stride[i], array.shape[i] > 1), reverse=True)
    else:
        by_stride = list(order)
        if sorted(by_stride) != list(modes):
            raise ArgumentError(f"stride_order {tuple(order)} is not a permutation of the modes of {text}")
    if 0 in array.shape:  # compact in every order, whatever its strides say
        return by_stride if order else list(modes)
    step = 1
    for i in reversed(by_stride):
        if array.stride[i] != step and array.shape[i] > 1:
            raise ArgumentError(
                f"mark_compact_shape_dynamic: {text} is not compact in the order {tuple(by_stride)} (slowest first): "
                f"mode {i} has stride {array.stride[i]}, not {step}"
            )
        step *= array.shape[i]
    return by_stride
