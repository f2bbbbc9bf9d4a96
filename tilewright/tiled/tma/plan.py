"""How TMA copies a tile: which modes of the tensor become which TMA modes, the box, and the coordinates.

Pure layout algebra over three layouts: the tensor in global memory, the tile in shared memory (without its swizzle) and
the tiler. Step through shared memory in the order of its addresses and note the mode of the tensor along which each
step goes: as long as every step is one unit along one mode, one instruction can copy it. These steps, merged where the
tensor is contiguous anyway, are the *box*; what remains of the tile is copied by further instructions, and what remains
of the tensor's modes is appended, so that coordinates reach all of it (CuTe:
include/cute/atom/copy_traits_sm90_tma.hpp).
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tilewright.errors import ConstraintError, LayoutError
from tilewright.ir.tensormap import (
    GROUP,
    LONGEST_BOX,
    RANK,
    SWIZZLE_SPANS,
    Leaf,
    ModePart,
    TensorMapTemplate,
    expands,
    place_bits,
    row_bytes,
    swizzle_name,
)
from tilewright.ir.types import U8, ScalarType
from tilewright.layout import (
    Layout,
    ScaledBasis,
    basis_get,
    basis_value,
    coalesce,
    composition,
    cosize,
    filter_zeros,
    flatten_to_tuple,
    format_tree,
    is_injective,
    is_static,
    make_identity_layout,
    make_layout,
    product_each,
    right_inverse,
    size,
    tile_to_shape,
)
from tilewright.tiled.tma.swizzle_mode import split_swizzle


class TooWideError(ConstraintError):
    """The contiguous elements of a tile do not fill the type that TMA is to copy."""


@dataclass(frozen=True, eq=False)
class TmaPlan:
    """One TMA copy of tiles.

    ``gmem`` is the tensor's layout in elements of ``source``; ``smem`` the tile's without its swizzle, which acts on
    byte addresses and is given by its mode (``SWIZZLE_SPANS``); ``element`` is what TMA copies. ``num_multicast``
    blocks of a cluster share each box.
    """

    gmem: Layout
    smem: Layout
    tiler: Any
    source: ScalarType
    element: ScalarType
    swizzle: int = 0
    num_multicast: int = 1
    values: Layout | None = None
    """Index in the tile -> mode of the tensor, where that is not the tiler's own order (partitions of an MMA)."""

    # -- which mode is which -----------------------------------------------------------------------------------------

    @functools.cached_property
    def tile(self) -> Layout:
        """Index in the tile -> mode of the tensor (basis strides)."""
        tile: Layout = self.values or composition(make_identity_layout(self.gmem.shape), self.tiler)
        if not is_static(tile.shape):
            raise ConstraintError(f"TMA copies tiles of a static shape, not {format_tree(tile.shape)}")
        if size(tile) != size(self.smem):
            raise ConstraintError(
                f"the tile {format_tree(self.tiler)} of {self.gmem} has {size(tile)} elements, the shared-memory "
                "layout "
                f"{self.smem} has {size(self.smem)}: both must cover one tile (slice off the stages first)"
            )
        return tile

    @functools.cached_property
    def basis(self) -> Layout:
        """The box before multicast cuts it : the modes of the tensor that each TMA mode steps through."""
        boxes, steps = self._vector
        merged = self._merged(boxes, steps)
        box = composition(Layout(tuple(boxes), tuple(steps)), make_layout(tuple(merged)))
        shapes, strides = list(box.shape), list(box.stride)
        inside = set(flatten_to_tuple(box.stride))
        for s, d, e in self._leaves():
            if not self._idle(s, d, e) and e not in inside:
                shapes.append(1)
                strides.append(e)
        if len(shapes) >= RANK:  # the hardware has five modes: the last takes all that is left
            shapes[RANK - 1 :], strides[RANK - 1 :] = [tuple(shapes[RANK - 1 :])], [tuple(strides[RANK - 1 :])]
        return Layout(tuple(shapes), tuple(strides))

    @functools.cached_property
    def _vector(self) -> tuple[list[int], list[Any]]:
        """The steps through shared memory that one instruction can follow: extents (of ``element``) and modes."""
        order = right_inverse(self.smem)
        steps = coalesce(composition(self.tile, order))
        modes: list[tuple[int, Any]] = []
        for n, e in zip(flatten_to_tuple(steps.shape), flatten_to_tuple(steps.stride), strict=True):
            if basis_value(e) != 1:
                break
            modes.append((n, e))
        if not modes:
            raise ConstraintError(
                f"TMA cannot copy tiles {format_tree(self.tiler)} of {self.gmem} to {self.smem}: the elements "
                "that follow "
                "each other in shared memory are not neighbours along a mode of the tensor; give the shared-memory "
                "layout the tensor's own major mode"
            )
        first = basis_get(modes[0][1], self.gmem.stride)
        if not isinstance(first, int) and self.source.width != self.element.width:
            raise ConstraintError(
                f"TMA: the stride of {mode_name(modes[0][1])} of {self.gmem} is only known at the launch; to copy "
                f"{self.source} as {self.element} it must be 1 while staging: mark the tensor with leading_dim"
            )
        return [self._recast(n, basis_get(e, self.gmem.stride)) for n, e in modes], [e for _, e in modes]

    def _merged(self, boxes: list[int], steps: list[Any]) -> list[int]:
        """Boxes whose modes the tensor keeps contiguous become one, up to 256 elements.

        Rows under a swizzle stay within its span: CuTe merges them, too, into a box that the driver refuses.
        """
        strides = [self._in_elements(basis_get(e, self.gmem.stride)) for e in steps]
        merged: list[int] = []
        begin: Any = 0
        ragged = False  # of the mode before: elements past its end would be the next row's, not zeros
        for n, d, e in zip(boxes, strides, steps, strict=True):
            if n == 1:
                continue
            follows = merged and not ragged and isinstance(begin, int | Fraction) and isinstance(d, int | Fraction)
            ragged = self._ragged(e)
            longest = LONGEST_BOX
            if self.swizzle and len(merged) == 1:
                longest = 8 * SWIZZLE_SPANS[self.swizzle] // place_bits(self.element)
            if follows and merged[-1] * begin == d and merged[-1] * n <= longest:
                merged[-1] *= n
            else:
                merged.append(n)
                begin = d
        return merged or [1]

    def _ragged(self, e: Any) -> bool:
        """Whether tiles may reach past the end of the tensor's mode ``e``."""
        extent, tile = basis_get(e, self.gmem.shape), self._tile_extent(e)
        return tile > 1 and (not isinstance(extent, int) or extent % tile != 0)

    def _tile_extent(self, e: Any) -> int:
        """How far tiles reach along the tensor's mode ``e``."""
        modes = zip(*map(flatten_to_tuple, (self.tile.shape, self.tile.stride)), strict=True)
        return max((n * basis_value(d) for n, d in modes if d != 0 and _mode_of(d) == _mode_of(e)), default=1)

    def _leaves(self) -> list[tuple[Any, Any, Any]]:
        """(extent, stride, basis step) of every mode of the tensor."""
        identity = make_identity_layout(self.gmem.shape).stride
        return list(zip(*map(flatten_to_tuple, (self.gmem.shape, self.gmem.stride, identity)), strict=True))

    def _idle(self, s: Any, d: Any, e: Any) -> bool:
        """A mode that is known to lead nowhere: one of stride 0 does, unless tiles reach past its end, where zeros are;
        one of extent 1, unless more than one box goes along it: all but the first are past its end."""
        if isinstance(s, int) and s == 1:
            return not self._cut(e)
        return isinstance(d, int) and d == 0 and not self._ragged(e)

    def _cut(self, e: Any) -> bool:
        """Whether tiles are more than one box along the tensor's mode ``e``, those of a whole multicast."""
        tile = self._tile_extent(e)
        box = math.prod(n for n, step in zip(*self._vector, strict=True) if step == e)
        return tile > box or (tile > 1 and self.num_multicast > 1)

    def _in_elements(self, d: Any) -> Any:
        """A stride in copied elements."""
        if not isinstance(d, int):
            return d
        return d if d in (0, 1) else Fraction(d * self.source.width, self.element.width)

    def _recast(self, n: int, d: Any) -> int:
        """An extent in copied elements; only the contiguous mode changes."""
        if not (isinstance(d, int) and d == 1) or self.source.width == self.element.width:
            return n
        if n * self.source.width % self.element.width:
            raise TooWideError(
                f"TMA: {n} contiguous x {self.source} of the tile {format_tree(self.tiler)} are not a whole number of "
                f"{self.element}: take a smaller internal_type or a wider tile"
            )
        return n * self.source.width // self.element.width

    # -- the tensor map ----------------------------------------------------------------------------------------------

    @functools.cached_property
    def whole_box(self) -> tuple[int, ...]:
        """The box that all blocks of a multicast copy together, in copied elements."""
        return tuple(int(size(self.basis[i])) for i in range(len(self.basis)))

    @functools.cached_property
    def box(self) -> tuple[int, ...]:
        """The box of one instruction: multicast cuts the outermost mode first, then the next one inwards."""
        box, copies = list(self.whole_box), self.num_multicast
        for i in reversed(range(len(box))):
            if copies == 1:
                break
            if box[i] % copies and copies % box[i]:
                raise ConstraintError(
                    f"num_multicast={self.num_multicast} does not divide the box {format_tree(self.whole_box)} of the "
                    f"tile {format_tree(self.tiler)}: multicast over a divisor of {box[i]} blocks"
                )
            box[i], copies = -(-box[i] // copies), -(-copies // box[i])
        if copies > 1:
            raise ConstraintError(
                f"num_multicast={self.num_multicast} cuts the box {format_tree(self.whole_box)} into more parts "
                "than it "
                "has elements"
            )
        return tuple(box)

    @property
    def elements_per_instruction(self) -> int:
        """Elements of ``source`` in the whole box."""
        return math.prod(self.whole_box) * self.element.width // self.source.width

    @property
    def box_bytes(self) -> int:
        """Bytes that one instruction of one block copies."""
        return math.prod(self.box) * self.element.width // 8

    @property
    def tile_bytes(self) -> int:
        """Bytes that arrive in each block's shared memory for a tile."""
        return int(size(self.smem)) * self.source.memory_bits // 8

    def template(self, name: str = "TMA", places: Any = None, tensor: str = "") -> TensorMapTemplate:
        """The tensor map as far as it is known now; ``places(x)`` tells where a launch finds a run-time leaf."""

        def leaf(x: Any) -> Leaf:
            return Leaf(x) if isinstance(x, int) else Leaf(0, places(x))

        def part(e: Any) -> ModePart:
            s, d = basis_get(e, self.gmem.shape), basis_get(e, self.gmem.stride)
            return ModePart(mode_name(e), leaf(s), leaf(d), isinstance(d, int) and d == 1)

        modes = tuple([tuple([part(e) for e in self.steps(i)]) for i in range(len(self.basis))])
        scales = tuple([part(e) for e in self._late()])
        return TensorMapTemplate(
            name, self.source, self.element, modes, self.box, self.swizzle, scales, tensor or str(self.gmem)
        )

    def steps(self, i: int) -> list[Any]:
        """The modes of the tensor that TMA mode ``i`` steps through."""
        return [e for e in flatten_to_tuple(self.basis.stride[i]) if e != 0]

    # -- coordinates -------------------------------------------------------------------------------------------------

    def _shared_step(self, j: int) -> int | None:
        """The step of a TMA mode that several modes of the tensor share, in bytes (16 at least), if it is known now."""
        strides = [basis_get(e, self.gmem.stride) for e in self.steps(j)]
        is_static = all(isinstance(d, int) for d in strides)
        return max(math.gcd(*strides) * self.source.memory_bits // 8, 16) if is_static else None

    def _late(self) -> list[Any]:
        """The modes of the tensor whose steps in the last, shared TMA mode only a launch knows."""
        last = len(self.basis) - 1
        steps = self.steps(last)
        return steps if last and len(steps) > 1 and self._shared_step(last) is None else []

    def coordinates(self, scales: tuple[Any, ...] = ()) -> Layout:
        """The TMA tensor's layout: coordinate in the tensor -> TMA coordinate, the contiguous mode first.

        ``scales`` are the run-time numbers that the template's call gives after the map.
        """
        rest = iter(scales)
        late = {e: next(rest, 1) for e in self._late()}
        mode_of = {e: j for j in reversed(range(len(self.basis))) for e in self.steps(j)}

        def step(s: Any, d: Any, e: Any) -> Any:
            if self._idle(s, d, e):
                return 0
            j = mode_of[e]
            if j == 0:
                if not isinstance(d, int):  # the launch refuses any stride but 1
                    return ScaledBasis(1, 0)
                ratio = Fraction(self.source.width, self.element.width) * d
                return ScaledBasis(int(ratio) if ratio.denominator == 1 else ratio, 0)
            if len(self.steps(j)) == 1:
                return ScaledBasis(1, j)
            if e in late:
                return ScaledBasis(late[e], j)
            shared = self._shared_step(j)
            assert shared is not None
            return ScaledBasis(-(-d * self.source.memory_bits // 8 // shared), j)

        def walk(s: Any, d: Any, e: Any) -> Any:
            return tuple(map(walk, s, d, e)) if isinstance(s, tuple) else step(s, d, e)

        return Layout(
            self.gmem.shape, walk(self.gmem.shape, self.gmem.stride, make_identity_layout(self.gmem.shape).stride)
        )

    # -- the tiled copy ----------------------------------------------------------------------------------------------

    @functools.cached_property
    def layout_tv(self) -> Layout:
        """(block of the cluster, value) -> index in the tile."""
        order = right_inverse(self.smem)
        n = self.elements_per_instruction
        values = tile_to_shape(make_layout(composition(order, n)), (size(self.tile),))
        blocks = self.num_multicast  # block c begins c/blocks of the way through the box
        cut = Layout(blocks, n // blocks if blocks > 1 else 0)
        return make_layout(composition(order, cut), values)

    @property
    def tiler_mn(self) -> Any:
        return product_each(self.tile.shape)

    # -- rules -------------------------------------------------------------------------------------------------------

    def problems(self, separate_rows: bool = False) -> list[str]:
        """The rules that the box breaks; they do not depend on anything that the launch brings. ``separate_rows``: one
        instruction copies several boxes of a row (gather4, scatter4)."""
        problems = [problem for j in range(len(self.basis)) if (problem := self._sharing_problem(j))]
        contiguous = basis_get(self.steps(0)[0], self.gmem.stride) if self.steps(0) else 1
        if isinstance(contiguous, int) and contiguous != 1:
            problems.append(
                f"the stride of TMA mode 0 ({self._names(0)} of {self.gmem}) is {contiguous}, and TMA needs contiguous "
                f"elements there: {self.smem} has another major mode than the tensor"
            )
        for i, n in enumerate(self.box):
            if n > LONGEST_BOX:
                problems.append(
                    f"the box extent of TMA mode {i} ({self._names(i)} of {self.gmem}) is more than 256 ({n}): "
                    "tile the "
                    f"shared-memory layout so that it steps through at most 256 elements at a time, as "
                    f"{format_tree((LONGEST_BOX, n // LONGEST_BOX))} does, or take a smaller tile"
                )
        if expands(self.element):
            return problems or self._expanding_problems()
        width = self.element.width
        (inner, pitch), span = row_bytes(self.element, self.box[0], self.swizzle), SWIZZLE_SPANS[self.swizzle]
        if self.box[0] * width % 128:
            problems.append(
                f"inner box extent is not a multiple of 16 bytes: {self.box[0]} x {self.element} ({inner} bytes) along "
                f"{self._names(0)}; TMA moves 16 bytes at least: make the tile "
                f"{-(-inner // 16) * 128 // width} "
                "elements wide there"
            )
        if self.swizzle and inner > span:
            problems.append(
                f"inner box extent exceeds the swizzle span: {self.box[0]} x {self.element} ({inner} bytes) along "
                f"{self._names(0)} under a swizzle of {swizzle_name(self.swizzle)}; lay shared memory out in rows of "
                f"{8 * span // width} elements, as the shared-memory atoms do (tile_to_shape of the atom)"
            )
        if pitch > inner and (separate_rows or math.prod(self.box) > self.box[0]):
            fitting = [swizzle_name(k) for k in range(self.swizzle) if SWIZZLE_SPANS[k] in (0, inner)]
            problems.append(
                f"inner box extent is less than the swizzle span: {self.box[0]} x {self.element} ({inner} bytes) along "
                f"{self._names(0)} under a swizzle of {swizzle_name(self.swizzle)}: TMA puts rows {span} bytes apart, "
                f"and {self.smem} has them one behind another; make rows {8 * span // width} elements long, or take "
                f"the swizzle {' or '.join(reversed(fitting))}"
            )
        return problems

    def _expanding_problems(self) -> list[str]:
        """What does not fit numbers that TMA expands, 16 to 16 bytes (CUDA driver API, ``cuTensorMapEncodeTiled``)."""
        what = f"{self.source} expanded to 16 bytes for 16 numbers"
        problems = []
        if self.box[0] != GROUP:
            problems.append(
                f"the inner box extent is {self.box[0]}, and TMA copies {what} {GROUP} at a time: make the tile a "
                f"multiple of {GROUP} wide along {self._names(0)}, and its rows in shared memory {GROUP} bytes"
            )
        if self.swizzle not in (0, 3):
            problems.append(f"{what} take the swizzle 128B, or none, not {swizzle_name(self.swizzle)}")
        return problems

    def _sharing_problem(self, j: int) -> str:
        """Why modes of the tensor cannot share TMA mode ``j``, which has one step and one extent for all of them."""
        modes = self.steps(j)
        if len(modes) < 2:
            return ""
        names = f"TMA mode {j} stands for {self._names(j)} of {self.gmem}"
        boxes = dict(zip(*map(flatten_to_tuple, (self.basis.stride[j], self.basis.shape[j])), strict=True))
        ragged = [e for e in modes if self._ragged(e)]
        strides = {e: basis_get(e, self.gmem.stride) for e in modes}
        is_static = all(isinstance(d, int) for d in strides.values())
        if (ragged or max(boxes.values()) > 1) and not is_static:
            return f"{names}, whose strides must be known while staging unless tiles have extent 1 along each of them"
        reach = step = math.gcd(*strides.values()) if is_static else 0
        for e in modes if is_static else ():
            if boxes[e] > 1 and strides[e] != reach:
                return f"{names}, and a box of {format_tree(tuple(boxes.values()))} there does not step evenly"
            # The box counts copied elements along the contiguous mode; strides count the tensor's.
            reach *= boxes[e] * self.element.width // self.source.width if strides[e] == 1 else boxes[e]
        for e in ragged:  # past its end no mode may have elements, so it must have the longest step
            others = [(m, basis_get(m, self.gmem.shape)) for m in modes if m is not e]
            is_static = len(ragged) == 1 and all(isinstance(n, int) for _, n in others)
            if not is_static or sum((n - 1) * strides[m] for m, n in others) + step > strides[e]:
                return (
                    f"{names}, so what is past the end of {mode_name(e)} would be taken from another: make its "
                    "extent a known multiple of the tile's"
                )
        return ""

    def _names(self, i: int) -> str:
        return " and ".join(map(mode_name, self.steps(i))) or "no mode"


def _mode_of(e: Any) -> tuple[int, ...]:
    return e.mode if isinstance(e, ScaledBasis) else ()


def mode_name(e: Any) -> str:
    if not isinstance(e, ScaledBasis):
        return "mode 0"
    return f"mode {e.mode[0]}" if len(e.mode) == 1 else f"mode ({','.join(map(str, e.mode))})"


def _shared_in_tensor(plan: TmaPlan) -> bool:
    """Whether elements that share an address in shared memory are one element of the tensor, too: a scale factor."""

    def moves(coordinate: Any, stride: Any) -> bool:
        """Whether a coordinate leads to another element than 0 does."""
        if isinstance(coordinate, tuple):
            return any(map(moves, coordinate, stride))
        return bool(coordinate != 0 and not all(isinstance(d, int) and d == 0 for d in flatten_to_tuple(stride)))

    at = 1
    for extent, stride in zip(flatten_to_tuple(plan.smem.shape), flatten_to_tuple(plan.smem.stride), strict=True):
        for i in range(1, extent) if stride == 0 else ():
            if moves(plan.tile(at * i), plan.gmem.stride):
                return False
        at *= extent
    return True


def plan_of(
    gmem: Any,
    smem: Any,
    tiler: Any,
    source: ScalarType,
    element: ScalarType,
    num_multicast: int,
    values: Layout | None = None,
) -> TmaPlan:
    """The plan of a copy, complete: what cannot be copied is an error now."""
    if not isinstance(gmem, Layout):
        raise ConstraintError(f"TMA copies from and to tensors with a plain layout, not {gmem}")
    outer, swizzle = split_swizzle(smem, U8 if expands(element) else source)
    if not is_static(outer):
        raise ConstraintError(f"TMA: the shared-memory layout must be static, not {outer}")
    plan = TmaPlan(gmem, outer, tiler, source, element, swizzle, num_multicast, values)
    if not is_injective(filter_zeros(outer)) or not _shared_in_tensor(plan):
        raise ConstraintError(
            f"TMA: the shared-memory layout {outer} gives several elements of the tile one address; give each its own"
        )
    try:
        _ = plan.basis, plan.box, plan.layout_tv, cosize(outer)
    except LayoutError as error:
        raise ConstraintError(f"TMA cannot copy tiles {format_tree(tiler)} of {gmem} to {smem}: {error}") from error
    return plan
