"""TMA copies of pixels of images: the mode ``im2col`` of ``cp.async.bulk.tensor`` (PTX ISA, "im2col mode"; CuTe:
include/cute/atom/copy_traits_sm90_im2col.hpp).

The tensor map has the modes (C, W, N), (C, W, H, N) or (C, W, H, D, N), a box of channels of a pixel and of pixels, and
for W, H, D the pixels where a filter may begin: from ``lower`` to the last one plus ``upper``, in ``steps``. A copy
takes the coordinates of the first, then goes through W, H, D and N. A load reads each pixel at a further offset, the
place in the filter, and what is outside of the images is zeros. A store (``im2col_no_offs``) has no offsets, and its
pixels are in the images: no lower corner is negative, no upper corner positive (PTX ISA, "Restriction on Tensor Copy
instructions"; hardware stops with an illegal instruction). What is behind the last image is not written.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.atoms.tma import TmaCopy, TmaLoad, TmaStore
from tilewright.atoms.tma_engine import Engine, LoadEngine, StoreEngine, combine, in_chunks
from tilewright.errors import ConstraintError
from tilewright.ir.core import Op
from tilewright.ir.instruction import Lanes
from tilewright.ir.lanes import Array
from tilewright.ir.tensormap import CORNER_BITS, CopiedMap, TensorMap

RANKS = tuple(CORNER_BITS)


@dataclass(frozen=True, repr=False)
class TmaIm2colLoad(TmaLoad):
    """Pixels of images to shared memory: behind the coordinates of a copy are as many offsets as the images have modes.

    >>> TmaIm2colLoad(8, rank=4).mnemonic(), TmaIm2colLoad(8, rank=4).numbers
    ('tma.im2col.4d', 6)
    """

    rank: int = 3

    @property
    def numbers(self) -> int:
        return 2 * self.rank - 2

    @property
    def cute_name(self) -> str:
        return super().cute_name.replace("LOAD", "LOAD_IM2COL")

    def mnemonic(self) -> str:
        return super().mnemonic().replace("tma.load", "tma.im2col")

    def verify(self, op: Op) -> None:
        _check_rank(self, op)
        super().verify(op)

    def other_mode(self, tensor_map: CopiedMap) -> tuple[str, str]:
        return _other_than_im2col(tensor_map, self.rank)

    def form(self) -> str:
        cast = ".multicast::cluster" if self.multicast else ""
        mask = ", {mask}" if self.multicast else ""
        pair = ".cta_group::2" if self.pair else ""
        offsets = ", ".join(f"{{o{i}}}" for i in range(self.rank - 2))
        return (
            f"cp.async.bulk.tensor.{self.rank}d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes{cast}{pair}"
            f"{{hint}} [{{smem}}], {{box}}, [{{mbarrier}}], {{{{{offsets}}}}}{mask}"
        )

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        tensor_map, shared, copies = self.parts(operands)
        engine = PixelLoads(lanes, self, tensor_map, op.operands[0].type)
        engine.load(copies, shared[0], shared[1] if self.multicast else None, self.pair)
        return ()


@dataclass(frozen=True, repr=False)
class TmaIm2colStore(TmaStore):
    """Shared memory to pixels of images, in a bulk group. ``reduction``: combined with those in global memory.

    >>> TmaIm2colStore(8, rank=4).mnemonic(), TmaIm2colStore(8, reduction="add").mnemonic()
    ('tma.im2col_store.4d', 'tma.im2col_reduce.add.3d')
    """

    rank: int = 3

    @property
    def cute_name(self) -> str:
        return f"{super().cute_name}_IM2COL"

    def mnemonic(self) -> str:
        return super().mnemonic().replace("tma.", "tma.im2col_")

    def verify(self, op: Op) -> None:
        _check_rank(self, op)
        super().verify(op)

    def other_mode(self, tensor_map: CopiedMap) -> tuple[str, str]:
        problem, fix = _other_than_im2col(tensor_map, self.rank)
        im2col = tensor_map.im2col
        if not problem and im2col is not None:
            wrong = [f"lower corner {n} along {name}" for name, n in zip("WHD", im2col.lower, strict=False) if n < 0]
            wrong += [f"upper corner {n} along {name}" for name, n in zip("WHD", im2col.upper, strict=False) if n > 0]
            if wrong:
                problem = f"the tensor map has the {' and the '.join(wrong)}, and a store's pixels are in the images"
                fix = "make a tensor map for the store, with lower corners from 0 on and upper corners up to 0"
        return problem, fix

    def form(self) -> str:
        tiles, mode = super().form(), "im2col_no_offs"
        return tiles.replace(".tile.", f".{mode}.") if self.reduction else tiles.replace(".bulk_g", f".{mode}.bulk_g")

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        tensor_map, _, copies = self.parts(operands)
        engine = PixelStores(lanes, self, tensor_map, op.operands[0].type)
        engine.store(copies, self.reduction)
        return ()


def _other_than_im2col(tensor_map: CopiedMap, rank: int) -> tuple[str, str]:
    if tensor_map.im2col is not None and tensor_map.rank == rank:
        return "", ""
    what = "is for copies of tiles" if tensor_map.im2col is None else f"has {tensor_map.rank} modes"
    problem = f"the tensor map {what}, and the copy is an im2col copy of {rank} coordinates"
    return problem, "make a tensor map for this copy: create_tensor_map_im2col"


def _check_rank(copy: TmaCopy, op: Op) -> None:
    if copy.rank not in RANKS:
        where = f" at {op.loc}" if op.loc else ""
        raise ConstraintError(
            f"{copy.mnemonic()}: an im2col copy takes 3 to 5 coordinates (C, W, N to C, W, H, D, N), not "
            f"{copy.rank}{where}"
        )


class Pixels(Engine):
    """A box is the pixels of a copy: its coordinates, then its offsets, which are zeros of copies ``without`` them."""

    without = False

    def boxes(self, values: list[Any], leader: int, tensor_map: TensorMap) -> list[tuple[int, ...]]:
        origin = self.coordinates(values, leader, tensor_map)
        if self.without:
            origin += (0,) * (len(origin) - 2)
        rank, im2col = tensor_map.rank, tensor_map.im2col
        assert im2col is not None
        at, offsets, most = origin[1 : rank - 1], origin[rank:], 1 << CORNER_BITS[rank]
        ends = [n - 1 + upper for n, upper in zip(tensor_map.dims[1:-1], im2col.upper, strict=True)]
        for name, x, lower, end, offset in zip("WHD", at, im2col.lower, ends, offsets, strict=False):
            if not lower <= x <= end:
                raise self.lanes.fault(
                    f"{self.name}: the copy begins at {name} = {x}, and the tensor map's pixels go from {lower} to "
                    f"{end}",
                    fix="coordinates are where a filter begins, padding counted; its elements are im2col_offsets",
                )
            if not 0 <= offset < most:
                raise self.lanes.fault(
                    f"{self.name}: the offset along {name} is {offset}; of {rank} modes it is 0 to {most - 1}",
                    fix="offsets count the elements of a filter, times its dilation",
                )
        return [origin]


class PixelLoads(Pixels, LoadEngine):
    def read(self, tensor_map: TensorMap, coordinates: tuple[int, ...]) -> Array:
        """``[pixels * bytes]`` with zeros outside of the images."""
        block = np.zeros((tensor_map.box[1], tensor_map.box[0] * tensor_map.element.width // 8), np.uint8)
        for inside, address, shape, strides in parts(tensor_map, coordinates):
            block[inside] = self.lanes.global_bytes(address, shape, strides, False)
        return block.reshape(-1)


class PixelStores(Pixels, StoreEngine):
    without = True

    def write(self, tensor_map: TensorMap, coordinates: tuple[int, ...], block: Array, reduction: str) -> None:
        rows = block.reshape(tensor_map.box[1], -1)
        for inside, address, shape, strides in parts(tensor_map, coordinates, stores=True):
            target = self.lanes.global_bytes(address, shape, strides, True)
            combine(tensor_map, target, rows[inside], reduction)


def parts(
    tensor_map: TensorMap, coordinates: tuple[int, ...], stores: bool = False
) -> Iterator[tuple[tuple[slice, slice], int, list[int], list[int]]]:
    """The parts of a copy that are in the images: the place in the copy's bytes ``[pixels, bytes of a pixel]``, and the
    address, the shape and the strides of the bytes there; whole chunks of 16 bytes of what ``stores``."""
    channels, first, width = tensor_map.box[0], coordinates[0], tensor_map.element.width
    start, end = max(0, -first), min(channels, tensor_map.dims[0] - first)
    if start >= end:
        return
    if stores:
        end = min(start + in_chunks(tensor_map, end - start), channels)
    inside = slice(start * width // 8, end * width // 8)
    for row, count, step, offset in runs(tensor_map, coordinates):
        address = (tensor_map.address + offset + (first + start) * width // 8) % (1 << 64)
        yield (slice(row, row + count), inside), address, [count, (end - start) * width // 8], [step, 1]


def runs(tensor_map: TensorMap, coordinates: tuple[int, ...]) -> Iterator[tuple[int, int, int, int]]:
    """The pixels of a copy that are in the images, in runs along W: the number of the first, how many, bytes from one
    to the next, and the bytes at which channel 0 of the first is."""
    im2col, rank = tensor_map.im2col, tensor_map.rank
    assert im2col is not None
    at, offsets = list(coordinates[1:rank]), (*coordinates[rank:], 0)
    dims, strides, pixels = tensor_map.dims[1:], tensor_map.strides, tensor_map.box[1]
    ends = [n - 1 + upper for n, upper in zip(dims, im2col.upper, strict=False)]
    done = 0
    while done < pixels and at[-1] < dims[-1]:
        step = im2col.steps[0]
        count = min(pixels - done, (ends[0] - at[0]) // step + 1)
        place = [x + offset for x, offset in zip(at, offsets, strict=True)]
        if all(0 <= x < n for x, n in zip(place[1:], dims[1:], strict=True)):
            skipped = max(0, -(place[0] // step))  # pixels before the first one of the image
            last = min(count, -(-(dims[0] - place[0]) // step))
            if skipped < last:
                place[0] += skipped * step
                where = sum(x * stride for x, stride in zip(place, strides, strict=True))
                yield done + skipped, last - skipped, step * strides[0], where
        done += count
        at[0] = im2col.lower[0]
        for mode in range(1, rank - 1):  # the next row, plane, image
            if mode == rank - 2:
                at[mode] += 1
            elif at[mode] + im2col.steps[mode] <= ends[mode]:
                at[mode] += im2col.steps[mode]
                break
            else:
                at[mode] = im2col.lower[mode]
