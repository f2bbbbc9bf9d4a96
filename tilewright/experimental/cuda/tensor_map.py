"""Tensor maps, made on the host of a tensor's modes and a box, and passed to kernels as parameters
(``cutlass.GridConstant[cuda.TensorMap]``)."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

from tilewright.errors import ConstraintError, StagingError
from tilewright.ir.builder import Builder
from tilewright.ir.core import Value
from tilewright.ir.tensormap import (
    CORNER_BITS,
    LONGEST_STEP,
    MOST_CHANNELS,
    MOST_PIXELS,
    SWIZZLE_SPANS,
    TENSOR_MAP,
    Im2col,
    Leaf,
    ModePart,
    TensorMapTemplate,
)
from tilewright.ir.types import B4X16, EXPANDED, U8, MemSpace, PtrType, ScalarType, scalar_of
from tilewright.lang.device.atomic import not_followed
from tilewright.lang.numbers.numeric import Int64, as_numeric, unwrap
from tilewright.lang.staging.location import here
from tilewright.lang.tensors.pointer import Pointer
from tilewright.lang.tensors.tensor import Tensor

__all__ = [
    "TensorMap",
    "TensorMapDataFormat",
    "TensorMapFloatOOBFill",
    "TensorMapL2Promotion",
    "TensorMapSwizzle",
    "create_tensor_map_im2col",
    "create_tensor_map_tiled",
    "create_tensor_map_tiled_from_tensor",
    "create_tensor_map_tiled_from_view",
]


class TensorMapSwizzle(enum.Enum):
    """The span of the swizzle in shared memory."""

    none = 0
    s32b = 1
    s64b = 2
    s128b = 3
    s128b_atom_32b = 4


class TensorMapDataFormat(enum.Enum):
    """How numbers lie in shared memory: of 4 bits as they are (``B4X16``) or 16 in 16 bytes (``B4X16_P64``), of 6 bits
    16 in 16 bytes; by default as the type says."""

    DEFAULT = "default"
    BYTE = "byte"
    B4X16 = "b4x16"
    B4X16_P64 = "b4x16_p64"
    B6X16_P32 = "b6x16_p32"


class TensorMapL2Promotion(enum.Enum):
    """How much the L2 cache fetches at once: no result depends on it. It is ``l2_128b`` here; where a program asks for
    another, a ``HintWarning`` says so."""

    none = 0
    l2_64b = 1
    l2_128b = 2
    l2_256b = 3


class TensorMapFloatOOBFill(enum.Enum):
    """What elements outside of the tensor are: zeros."""

    none = 0


class MapPointer:
    """What ``TensorMap.get_ptr`` gives: the place of a kernel's parameter."""

    __slots__ = ("_map",)

    def __init__(self, tensor_map: Value) -> None:
        self._map = tensor_map

    def value(self) -> Value:
        """The tensor map, as an operand of the IR."""
        return self._map


class TensorMap:
    """A tensor map: made by ``create_tensor_map_tiled_from_view`` on the host, passed to a kernel as it is."""

    __slots__ = ("_map",)

    def __init__(self, tensor_map: Value) -> None:
        self._map = tensor_map

    def get_ptr(self, *, loc: Any = None, ip: Any = None) -> MapPointer:
        """Where it is, for the copies."""
        return MapPointer(self._map)

    def __extract_mlir_values__(self) -> list[Any]:
        return [self._map]

    def __get_mlir_types__(self) -> list[Any]:
        return [TENSOR_MAP]

    def __new_from_mlir_values__(self, values: list[Any]) -> TensorMap:
        return TensorMap(values[0])

    def __carry_key__(self) -> Any:
        return "TensorMap"


def create_tensor_map_tiled_from_view(
    tensor: Tensor,
    *,
    box_dims: Sequence[int],
    stride_order: Sequence[int],
    swizzle: TensorMapSwizzle = TensorMapSwizzle.none,
    dtype: Any = None,
    tma_format: Any = None,
    l2_promotion: Any = None,
    oob_fill: Any = None,
    loc: Any = None,
    ip: Any = None,
) -> TensorMap:
    """The tensor map of ``tensor``, for boxes of ``box_dims`` (an extent of each mode of the tensor).

    ``stride_order`` lists the modes as TMA counts them, the contiguous one first: copies take coordinates in that
    order, and a box lies so in shared memory. ConstraintError for modes and boxes that TMA does not have;
    ArgumentError at the launch for addresses and strides that are not multiples of 16 bytes.
    """
    what = "create_tensor_map_tiled_from_view"
    _check_fill(what, oob_fill)
    _check_promotion(what, l2_promotion)
    if not isinstance(tensor, Tensor) or not isinstance(tensor.engine, Pointer):
        raise ConstraintError(f"{what} takes a tensor in global memory, not {tensor}")
    shape, stride = (x if isinstance(x, tuple) else (x,) for x in (tensor.layout.shape, tensor.layout.stride))
    if sorted(stride_order) != list(range(len(shape))) or len(box_dims) != len(shape):
        raise ConstraintError(
            f"{what}: box_dims has an extent of each mode of {tensor.layout}, and stride_order lists each mode once, "
            f"not {tuple(box_dims)} and {tuple(stride_order)}"
        )
    modes = [(f"mode {i}", shape[i], stride[i]) for i in stride_order]
    box = [int(unwrap(box_dims[i])) for i in stride_order]
    element = _element(dtype or tensor.element_type, tma_format, what)
    return _make(what, tensor.engine.value(), scalar_of(tensor.element_type), element, modes, box, swizzle, str(tensor))


create_tensor_map_tiled_from_tensor = create_tensor_map_tiled_from_view


def create_tensor_map_tiled(
    *,
    global_address: Any,
    dtype: Any,
    global_dims: Sequence[Any],
    global_strides: Sequence[Any],
    box_dims: Sequence[int],
    swizzle: TensorMapSwizzle = TensorMapSwizzle.none,
    tma_format: Any = None,
    l2_promotion: Any = None,
    oob_fill: Any = None,
    loc: Any = None,
    ip: Any = None,
) -> TensorMap:
    """The tensor map of ``global_dims`` elements at an address, the contiguous mode first; ``global_strides`` are those
    of the other modes in units of 16 bytes."""
    what = "create_tensor_map_tiled"
    _check_fill(what, oob_fill)
    _check_promotion(what, l2_promotion)
    if len(global_strides) != len(global_dims) - 1 or len(box_dims) != len(global_dims):
        raise ConstraintError(
            f"{what}: {len(global_dims)} extents have as many box_dims and one stride less, not {len(box_dims)} and "
            f"{len(global_strides)}"
        )
    element = _element(dtype, tma_format, what)
    source = scalar_of(dtype)
    address = Int64(as_numeric(unwrap(global_address))).ir_value()
    kind = PtrType(U8, MemSpace.GMEM, 1)
    pointer = Builder.current().emit("ptr.fromint", (address,), (kind,)).result
    per = 128 // source.memory_bits
    modes = [("mode 0", global_dims[0], 1)]
    modes += [
        (f"mode {i}", n, s * per) for i, (n, s) in enumerate(zip(global_dims[1:], global_strides, strict=True), 1)
    ]
    return _make(what, pointer, source, element, modes, [int(unwrap(n)) for n in box_dims], swizzle, "the tensor")


def create_tensor_map_im2col(
    tensor: Tensor,
    *,
    pixel_box_lower_corner: Sequence[int],
    pixel_box_upper_corner: Sequence[int],
    channels_per_pixel: int,
    pixels_per_column: int,
    element_strides: Sequence[int] | None = None,
    swizzle: TensorMapSwizzle = TensorMapSwizzle.none,
    l2_promotion: Any = None,
    oob_fill: Any = None,
    loc: Any = None,
    ip: Any = None,
) -> TensorMap:
    """The tensor map of images ``(N, W, C)``, ``(N, H, W, C)`` or ``(N, D, H, W, C)`` for im2col copies of
    ``pixels_per_column`` pixels of ``channels_per_pixel`` channels.

    The corners and ``element_strides`` have a number for W, H and D, in this order, as coordinates and offsets of the
    copies do. A filter may begin from ``lower`` to the last pixel plus ``upper``, every ``element_strides`` pixels: of
    a convolution with padding p and a filter of s elements from -p to p - (s - 1). ConstraintError for numbers that
    TMA does not have.

    >>> create_tensor_map_im2col(None, pixel_box_lower_corner=(0,), pixel_box_upper_corner=(0,), channels_per_pixel=8,
    ...     pixels_per_column=8)
    Traceback (most recent call last):
        ...
    tilewright.errors.ConstraintError: create_tensor_map_im2col takes a tensor in global memory, not None
    """
    what = "create_tensor_map_im2col"
    _check_fill(what, oob_fill)
    _check_promotion(what, l2_promotion)
    if not isinstance(tensor, Tensor) or not isinstance(tensor.engine, Pointer):
        raise ConstraintError(f"{what} takes a tensor in global memory, not {tensor}")
    shape, stride = tensor.layout.shape, tensor.layout.stride
    rank = len(shape) if isinstance(shape, tuple) else 1
    if rank not in CORNER_BITS:
        raise ConstraintError(f"{what}: images have 3 to 5 modes, (N, W, C) to (N, D, H, W, C), not {tensor.layout}")
    steps = (1,) * (rank - 2) if element_strides is None else element_strides
    given = [pixel_box_lower_corner, pixel_box_upper_corner, steps]
    im2col = Im2col(*(tuple(int(unwrap(n)) for n in numbers) for numbers in given))
    box = [int(unwrap(channels_per_pixel)), int(unwrap(pixels_per_column))]
    element = _element(tensor.element_type, None, what)
    _check_im2col(what, im2col, rank, box, element, swizzle)
    modes = [(f"mode {i}", shape[i], stride[i]) for i in reversed(range(rank))]
    source = scalar_of(tensor.element_type)
    return _make(what, tensor.engine.value(), source, element, modes, box, swizzle, str(tensor), im2col)


def _check_im2col(
    what: str, im2col: Im2col, rank: int, box: list[int], element: ScalarType, swizzle: TensorMapSwizzle
) -> None:
    """ConstraintError for numbers that ``cuTensorMapEncodeIm2col`` refuses (CUDA driver API)."""
    half = 1 << CORNER_BITS[rank] - 1
    for name, numbers in zip(("lower corner", "upper corner", "element_strides"), im2col, strict=True):
        least, most = (1, LONGEST_STEP) if name == "element_strides" else (-half, half - 1)
        if len(numbers) != rank - 2 or not all(least <= n <= most for n in numbers):
            raise ConstraintError(
                f"{what}: of images of {rank} modes {name} has {rank - 2} numbers from {least} to {most}, not {numbers}"
            )
    channels, pixels = box
    if not (1 <= channels <= MOST_CHANNELS and 1 <= pixels <= MOST_PIXELS):
        raise ConstraintError(
            f"{what}: a copy has 1 to {MOST_CHANNELS} channels of 1 to {MOST_PIXELS} pixels, not {channels} of {pixels}"
        )
    row, span = channels * element.width // 8, SWIZZLE_SPANS[swizzle.value]
    if row % 16 or (span and row > span):
        raise ConstraintError(
            f"{what}: {channels} channels are {row} bytes; they are a multiple of 16"
            + (f", and at most the {span} bytes of the swizzle" if span else "")
        )


def _check_fill(what: str, fill: Any) -> None:
    if fill is not None and fill is not TensorMapFloatOOBFill.none:
        raise ConstraintError(f"{what}: oob_fill={fill!r}: elements outside of the tensor are zeros here, leave it out")


def _check_promotion(what: str, promotion: Any) -> None:
    if promotion not in (None, TensorMapL2Promotion.l2_128b):
        not_followed(what, f"l2_promotion={getattr(promotion, 'name', promotion)}")


def _element(dtype: Any, tma_format: Any, what: str) -> ScalarType:
    source = scalar_of(dtype)
    form = TensorMapDataFormat.DEFAULT if tma_format is None else tma_format
    match form:
        case TensorMapDataFormat.BYTE:
            return U8
        case TensorMapDataFormat.B4X16:
            return B4X16
        case TensorMapDataFormat.B4X16_P64:
            return EXPANDED[4]
        case TensorMapDataFormat.B6X16_P32:
            return EXPANDED[6]
    if source.packed:
        return U8 if source.width == 4 else EXPANDED[source.width]
    if not source.tensor_map:
        raise ConstraintError(f"{what}: TMA copies numbers of 1, 2, 4 or 8 bytes, not {source}: give another dtype")
    return source


def _make(
    what: str,
    pointer: Value,
    source: ScalarType,
    element: ScalarType,
    modes: Sequence[tuple[str, Any, Any]],
    box: list[int],
    swizzle: TensorMapSwizzle,
    tensor: str,
    im2col: Im2col | None = None,
) -> TensorMap:
    builder = Builder.current()
    if not hasattr(builder, "kernels"):
        raise StagingError(f"{what} makes the tensor map on the host: call it in the @cute.jit function that launches")
    if im2col is None and (not 1 <= len(modes) <= 5 or not all(1 <= n <= 256 for n in box)):
        raise ConstraintError(
            f"{what}: a tensor map has 1 to 5 modes, and its box 1 to 256 elements of each, not {box}"
        )
    leaves: list[Any] = []

    def leaf(x: Any) -> Leaf:
        value = unwrap(x)
        if isinstance(value, int):
            return Leaf(value)
        leaves.append(as_numeric(value))
        return Leaf(0, len(leaves) - 1)

    parts = tuple((ModePart(name, leaf(n), leaf(d), i == 0),) for i, (name, n, d) in enumerate(modes))
    if (first := unwrap(modes[0][2])) != 1 and isinstance(first, int):
        raise ConstraintError(
            f"{what}: the {'channels have' if im2col else 'first mode of stride_order has'} the stride {first} in "
            f"{tensor}, and must have 1"
        )
    where = here(3)
    template = TensorMapTemplate(
        f"{what}{f' at {where}' if where else ''}",
        source,
        element,
        parts,
        tuple(box),
        swizzle.value,
        (),
        tensor,
        im2col,
    )
    operands = [pointer, *(x.ir_value() for x in leaves)]
    (made,) = builder.emit("tensormap", operands, (TENSOR_MAP,), {"template": template}).results
    return TensorMap(made)
