"""``prepare_weight``: a weight of numbers of 4 or 8 bits with scales, arranged once for ``mixed_matmul``."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from math import prod
from typing import Any

from tilewright import BFloat16, Float4E2M1FN, Float8E4M3FN, Float16, Float32, Int4, Int8, Int32, Uint8, cute
from tilewright.errors import ArgumentError
from tilewright.gemm.access import VECTOR
from tilewright.gemm.mainloop.prepared_weight import OFFSET, OFFSET_OF_BYTES, prepared_layout
from tilewright.gemm.mixed_config import COLUMNS, DEPTH, LANES, WORDS
from tilewright.gemm.operators.arrays import as_jax, as_numpy, framework, namespace, new_result
from tilewright.gemm.operators.weight_settings import GROUPS, WeightSettings, settings_of
from tilewright.lang.arguments.arrays import array_of


@dataclass(frozen=True)
class PreparedWeight:
    """A weight (N, K) in the order in which kernels read it, with its scales. :func:`prepare_weight` makes it.

    ``words`` is a vector of int32, whose length says what the weight was prepared for (``weight_settings``), ``scales``
    (K / group, N), ``zeros`` None or (K / group, N) of uint8. The parts may be saved, loaded and moved one by one:
    parts that do not belong together, or words in another order, are refused by :func:`mixed_matmul`.

    >>> prepared = prepare_weight(np.zeros((8, 128), np.int8), np.ones((8, 4), np.float16))
    >>> prepared.group, prepared.words.shape  # 128 words, and 1 that is their mark
    (32, (129,))
    """

    words: Any
    scales: Any
    zeros: Any = None

    @property
    def settings(self) -> WeightSettings:
        """What the words were prepared for; ArgumentError where the parts are no weight. It reads no memory, and takes
        tensors that have none."""
        words, scales = (tuple(map(int, x.shape)) for x in (self.words, self.scales))
        return settings_of(words, scales, self.zeros is not None)

    @property
    def dtype(self) -> Any:
        """The numeric class of the numbers."""
        return self.settings.dtype

    @property
    def bits(self) -> int:
        """The bits of a number."""
        return int(self.settings.dtype.width)

    @property
    def shape(self) -> tuple[int, int]:
        """(N, K)"""
        return int(self.scales.shape[1]), int(self.scales.shape[0]) * self.settings.group

    @property
    def group(self) -> int:
        """The elements of K that share a scale."""
        return self.settings.group

    @property
    def blocks(self) -> Any:
        """The words without their mark, as kernels read them: (N / 8, K / 128, 32, 4), of 8 bits (N / 8, K / 64, 32,
        4)."""
        (n, k), bits = self.shape, self.bits
        return self.words[: n * k * bits // 32].reshape(n // COLUMNS, k * bits // (4 * DEPTH), LANES, WORDS)


def prepare_weight(weight: Any, scales: Any, zeros: Any = None, *, bits: int = 4) -> PreparedWeight:
    """Arrange a weight of numbers of 4 or 8 bits for :func:`mixed_matmul`, once, on its device.

    Args:
        weight: (N, K) of Float8E4M3FN, or integers of -8 to 7 as int8, with ``zeros`` of 0 to 15 as int8 or uint8; N in
            8s, K in 128s: a PyTorch tensor, or a NumPy, CuPy or JAX array. Or 4-bit floats (e2m1), two in a byte, the
            first in its low bits: (N, K / 2) of PyTorch's ``float4_e2m1fn_x2``, or of uint8.
        scales: (N, K / group) of Float16, BFloat16 or Float32: what the numbers of a group of 32, 64 or 128 elements
            of K are multiplied by. Or (N, 1) or (N,), one for a column of the product, which each 128 elements of K
            then have.
        zeros: of the shape of ``scales``, integers of 0 to 15 as int8 or uint8: the zero point of each group, which is
            subtracted before that.
        bits: 4, or 8 for integers of -128 to 127, which have no zero points.

    Raises ArgumentError for others.

    >>> prepared = prepare_weight(np.full((16, 256), -3, np.int8), np.ones((16, 2), np.float16))
    >>> prepared.shape, prepared.group, str(prepared.settings)
    ((16, 256), 128, 'Int4 without zero points, groups of 128')
    """
    kind = framework(weight, "weight")
    if framework(scales, "scales") != kind:
        raise ArgumentError("weight and scales are arrays of PyTorch, of NumPy, of CuPy or of JAX, both of the same")
    if kind == "jax":
        points = None if zeros is None else as_numpy("zeros", zeros)
        made = prepare_weight(as_numpy("weight", weight), as_numpy("scales", scales), points, bits=bits)
        return PreparedWeight(*as_jax(weight, made.words, made.scales, made.zeros))
    fours = kind == "torch" and weight.dtype is getattr(sys.modules["torch"], "float4_e2m1fn_x2", None)
    if fours:
        weight = weight.view(sys.modules["torch"].uint8)
    found = array_of(weight)
    pairs = fours or (found.dtype is Uint8 and zeros is None)  # 4-bit floats have no zero points
    floats = pairs or found.dtype is Float8E4M3FN
    extents = (*found.shape[:-1], (2 if pairs else 1) * found.shape[-1]) if found.shape else ()
    whole = len(extents) == 2 and not (extents[0] % COLUMNS or extents[1] % DEPTH)
    if not whole or not (floats or found.dtype in (Int8, Uint8)):
        raise ArgumentError(
            f"weight is an (N, K) matrix of int8 or Float8E4M3FN, or one of pairs of 4-bit floats (float4_e2m1fn_x2, "
            f"uint8) of (N, K / 2), with N in {COLUMNS}s and K in {DEPTH}s, not {found.dtype.__name__} of shape "
            f"{tuple(found.shape)}: fill it up with zeros"
        )
    (n, k), given = extents, array_of(scales)
    check_scales(given, n, k, pairs)
    if given.device != found.device:
        raise ArgumentError(f"scales are on {given.device}, the weight on {found.device}")
    check_bits(bits, pairs, floats, zeros)
    bits = 8 if floats and not pairs else bits
    of_columns = tuple(given.shape) in ((n,), (n, 1))
    groups = k // GROUPS[-1] if of_columns else given.shape[1]
    by_group = new_result(scales, (groups, n), given.dtype)  # aligned, and not the caller's memory
    by_group[...] = scales.reshape(1, n) if of_columns else scales.T
    dtype = (Float8E4M3FN if bits == 8 else Float4E2M1FN) if floats else Int8 if bits == 8 else Int4
    settings = WeightSettings(dtype, zeros is not None, k // groups if k else GROUPS[-1])
    words = new_result(weight, (settings.words(n, k),), Int32)
    words[: n * k * bits // 32] = words_of(weight, n, k, bits, floats, settings.zeros).reshape(-1)
    words[n * k * bits // 32 :] = settings.mark
    return PreparedWeight(words, by_group, None if zeros is None else zero_points(zeros, scales, groups))


def check_scales(given: Any, n: int, k: int, pairs: bool) -> None:
    """ArgumentError for scales of other shapes and types than those for a weight (n, k)."""
    shapes = [*((n, k // group) for group in GROUPS), (n, 1), (n,)]
    if tuple(given.shape) not in shapes:
        more = ""
        if pairs and tuple(given.shape) in [(n, k // 2 // group) for group in GROUPS]:
            more = ". A weight of uint8 is pairs of 4-bit floats: integers of one byte each are int8"
        listed = " or ".join(map(str, shapes))
        raise ArgumentError(f"scales has the shape {tuple(given.shape)}; for a weight {(n, k)} it is {listed}{more}")
    if given.dtype not in (Float16, BFloat16, Float32):
        raise ArgumentError(f"scales are Float16, BFloat16 or Float32, not {given.dtype.__name__}")


def check_bits(bits: int, pairs: bool, floats: bool, zeros: Any) -> None:
    """ArgumentError for numbers of so many bits, which kernels do not have."""
    if floats and zeros is not None:
        raise ArgumentError("zeros are for integers of 4 bits: floats have no zero points")
    if bits not in (4, 8) or (bits == 8 and (zeros is not None or pairs)):
        more = " with zeros" if zeros is not None else " of pairs of 4-bit floats" if pairs else ""
        raise ArgumentError(f"bits is 4, or 8 without zeros, not {bits}{more}")


def words_of(weight: Any, n: int, k: int, bits: int, floats: bool, zeros: bool) -> Any:
    """The words of the numbers: integers are kept with an offset, so that none is negative."""
    if bits == 8:
        return words_of_bytes(weight, n, k, floats)
    if floats:
        return words_of_pairs(namespace(weight).stack((weight & 15, weight >> 4), -1).reshape(n, k), n, k)
    offset = 0 if zeros else OFFSET  # of uint8 there are zero points, and nothing is added
    check_range("weight", weight, -offset)
    return words_of_pairs(weight + offset, n, k)


def words_of_bytes(weight: Any, n: int, k: int, floats: bool) -> Any:
    """The words of numbers of 8 bits."""
    library = namespace(weight)
    kept = weight.view(library.uint8) if floats else weight.view(library.uint8) ^ OFFSET_OF_BYTES  # q + 128
    words = new_result(weight, (n // COLUMNS, 2 * k // DEPTH, LANES, WORDS), Int32)
    words.view(library.uint8)[...] = arranged(kept, n, k, 8).reshape((*words.shape[:3], 4 * WORDS))
    return words


def words_of_pairs(numbers: Any, n: int, k: int) -> Any:
    """The words of numbers of 0 to 15."""
    library = namespace(numbers)
    pairs = arranged(numbers, n, k).reshape(n // COLUMNS, k // DEPTH, LANES, 4 * WORDS, 2)
    pairs = pairs.to(library.uint8) if framework(numbers) == "torch" else pairs.astype(library.uint8)
    return (pairs[..., 0] | pairs[..., 1] << 4).view(library.int32)


def check_range(name: str, x: Any, least: int) -> None:
    """ArgumentError for numbers that 4 bits do not hold."""
    if prod(x.shape) and (int(x.min()) < least or int(x.max()) > least + 15):
        found = f"{int(x.min())} to {int(x.max())}"
        raise ArgumentError(f"{name} has numbers of {found}, not of {least} to {least + 15}")


def zero_points(zeros: Any, scales: Any, groups: int) -> Any:
    """The zero points as kernels read them, (K / group, N) of uint8; ArgumentError for others than one for each
    scale."""
    kind, given, wanted = framework(zeros, "zeros"), array_of(zeros), array_of(scales)
    if kind != framework(scales) or given.dtype not in (Int8, Uint8) or given.device != wanted.device:
        raise ArgumentError(f"zeros are int8 or uint8 on {wanted.device}, as scales are, not {given.dtype.__name__}")
    if tuple(given.shape) != tuple(wanted.shape):
        raise ArgumentError(f"zeros has the shape {tuple(given.shape)}, scales {tuple(wanted.shape)}")
    check_range("zeros", zeros, 0)
    n = given.shape[0]
    made = new_result(zeros, (groups, n), Uint8)
    made[...] = zeros.reshape(1, n) if prod(given.shape) == n else zeros.T
    return made


def arranged(weight: Any, n: int, k: int, bits: int = 4) -> Any:
    """The elements of a matrix in the order of the prepared layout: its modes by falling stride."""
    if not n * k:
        return weight
    layout = prepared_layout(n, k, bits)
    modes: list[tuple[int, int]] = []
    for mode in (0, 1):  # the first mode of a layout is the fastest, the last one of an array
        shape, stride = (cute.flatten(x[mode]) for x in (layout.shape, layout.stride))
        modes += reversed(list(zip(shape, stride, strict=True)))
    order = sorted(range(len(modes)), key=lambda i: -modes[i][1])
    split = weight.reshape([extent for extent, _ in modes])
    return split.permute(order) if framework(weight) == "torch" else split.transpose(order)


def check_prepared(weight: PreparedWeight) -> None:
    """ArgumentError for parts that are no prepared weight, and for those that kernels cannot read: they take all to lie
    in memory without gaps, and to begin at a multiple of 16 bytes."""
    words, scales, _ = array_of(weight.words), array_of(weight.scales), weight.settings
    if words.dtype is not Int32:
        raise ArgumentError(f"the words of a prepared weight are Int32, not {words.dtype.__name__}")
    named = [("words", words), ("scales", scales)]
    if weight.zeros is not None:
        zeros = array_of(weight.zeros)
        if zeros.dtype is not Uint8 or tuple(zeros.shape) != tuple(scales.shape) or zeros.device != words.device:
            raise ArgumentError(
                f"the zero points of a prepared weight are Uint8 on {words.device}, of the scales' shape "
                f"{tuple(scales.shape)}, not {zeros.dtype.__name__} on {zeros.device} of {tuple(zeros.shape)}"
            )
        named.append(("zero points", zeros))
    if scales.dtype not in (Float16, BFloat16, Float32) or scales.device != words.device:
        raise ArgumentError(
            f"the scales of a prepared weight are Float16, BFloat16 or Float32 on {words.device}, not "
            f"{scales.dtype.__name__} on {scales.device}"
        )
    for name, array in named:
        dense = [prod(array.shape[i + 1 :]) for i in range(len(array.shape))]
        gaps = 0 not in array.shape and any(
            extent > 1 and stride != expected
            for extent, stride, expected in zip(array.shape, array.stride, dense, strict=True)
        )
        if gaps or array.address % VECTOR:
            raise ArgumentError(
                f"the {name} of a prepared weight are a part of a larger array, or do not begin at a multiple of "
                f"{VECTOR} bytes: make a copy of that part"
            )
