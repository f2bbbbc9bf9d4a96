"""What ``wgmma`` does on the simulator: some time between its issue and the wait for its group it reads shared memory
through its descriptors, as the hardware does, multiplies, and writes the accumulators.

All warpgroups of the lanes and the whole K are one batched matrix product. Sums are in float32 (integers: exact); the
hardware adds the products of 8-bit floats with fewer bits (about 14 of the mantissa), which is not modelled.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tilewright.atoms import numbers
from tilewright.atoms.matrix_descriptor import UNIT, swizzle_of_type
from tilewright.atoms.mma import active_warps
from tilewright.atoms.scratch import scratch
from tilewright.atoms.tables import offsets, owners
from tilewright.ir.core import Op
from tilewright.ir.instruction import Lanes
from tilewright.ir.types import F16, I32, ScalarType

if TYPE_CHECKING:
    from tilewright.atoms.wgmma import WgmmaAtom

Array = np.ndarray[Any, Any]
FIELD = 0x3FFF


class Units(NamedTuple):
    """The warps that act, in units of ``per`` warps (4: whole warpgroups; 1 where a warpgroup has parted).

    ``chosen`` are the units' numbers among those of the lanes, or None for all; ``warp`` is the place of each unit's
    first warp in its warpgroup.
    """

    per: int
    units: int
    chosen: Array | None
    warp: Array

    def of(self, values: Array) -> Array:
        """``[L, ...]`` as ``[units, lanes of a unit, ...]``."""
        split = values.reshape(self.units, 32 * self.per, *values.shape[1:])
        return split if self.chosen is None else split[self.chosen]


def units_of(lanes: Lanes, atom: WgmmaAtom) -> Units:
    """The units that execute an instruction; a Fault where a warpgroup is only partly there."""
    warps = np.asarray(lanes.sreg("warpid"))[::32]
    active = active_warps(lanes, atom)
    whole = warps.size % 4 == 0 and bool((warps.reshape(-1, 4) % 4 == np.arange(4)).all())
    per = 4 if whole else 1
    count = warps.size // per
    chosen = None
    if active is not None:
        by_unit = active.reshape(count, per)
        some, every = by_unit.any(axis=1), by_unit.all(axis=1)
        if (some != every).any():
            unit = int((some != every).argmax())
            there = [int(w) for w in warps.reshape(count, per)[unit][by_unit[unit]]]
            raise lanes.fault(
                f"{atom.mnemonic()}: only warps {there} of a warpgroup execute it, but all four must",
                lanes.active(), "branch by warpgroup (warp_idx // 4), not by warp",
            )  # fmt: skip
        chosen = np.flatnonzero(every)
    first = warps.reshape(count, per)[:, 0] % 4
    return Units(per, count, chosen, first if chosen is None else first[chosen])


def issue(atom: WgmmaAtom, lanes: Lanes, op: Op, operands: list[Any]) -> None:
    """Hand the instruction to its agent. Accumulators and A in registers are the live fragments: what the program does
    to them before the wait shows. Instructions of one group that add to the same accumulators are done together."""
    from tilewright.atoms.wgmma import AGENT

    call = _Call(op.attrs, *operands)
    started = lanes.beside(_Started)
    last = started.products.get(id(lanes))
    if last is not None and last.takes(atom, lanes, call):
        last.calls.append(call)
        return
    product = started.products[id(lanes)] = _Product(atom, lanes, call, units_of(lanes, atom))
    lanes.defer(AGENT, product, registers=True)


def close(lanes: Lanes) -> None:
    """Later instructions of these lanes belong to another group."""
    lanes.beside(_Started).products.pop(id(lanes), None)


class _Started:
    """The newest product of each group of lanes that later instructions of the same group may still join."""

    def __init__(self) -> None:
        self.products: dict[int, _Product] = {}


class _Call(NamedTuple):
    attrs: dict[str, Any]
    d: Array
    a: Any
    b: Any
    accumulate: Any


class _Product:
    """The moment at which the operands of one or several calls are read and their accumulators are written."""

    def __init__(self, atom: WgmmaAtom, lanes: Lanes, call: _Call, units: Units) -> None:
        self.atom, self.lanes, self.calls, self.units = atom, lanes, [call], units
        self.mask, self.over = lanes.mask, False

    def takes(self, atom: WgmmaAtom, lanes: Lanes, call: _Call) -> bool:
        """Whether ``call`` does nothing but add to the accumulators of the last one."""
        last = self.calls[-1]
        return (
            not self.over and lanes is self.lanes and lanes.mask is self.mask and atom == self.atom
            and call.d is last.d and np.ndim(call.accumulate) == 0 and bool(call.accumulate)
            and all(call.attrs[x] == last.attrs[x] for x in ("d_layout", "d_offset"))
        )  # fmt: skip

    def __call__(self) -> None:
        self.over = True
        atom, units, first = self.atom, self.units, self.calls[0]
        m, n, k = atom.shape_mnk
        lefts = [self._a(call, m, k) for call in self.calls]  # [units, RestM, rows, RestK * k]
        rights = [self._shared("B", call.b, call.attrs, n, atom.type_b) for call in self.calls]
        left, right = (x[0] if len(x) == 1 else np.concatenate(x, axis=3) for x in (lefts, rights))
        d = units.of(first.d)  # a view of the live fragment, or a copy of the chosen units
        where = offsets(first.attrs["d_layout"]).reshape(right.shape[1], left.shape[1], -1)
        keep = self._kept(first.accumulate)
        for j in range(right.shape[1]):
            for i in range(left.shape[1]):
                at = first.attrs["d_offset"] + int(where[j, i, 0])
                # Lanes are (warp, lane / 4, lane % 4), values (v2, v1, v0); see accumulator_layout.
                part = d[:, :, at : at + where.shape[2]].reshape(len(d), units.per, 8, 4, n // 8, 2, 2)
                self._add(part, left[:, i], right[:, j], keep, k)
        if units.chosen is not None:
            first.d.reshape(units.units, 32 * units.per, -1)[units.chosen] = d

    def _kept(self, accumulate: Any) -> Any:
        """Whether the accumulators are added to: a bool, or one for each lane, shaped to the accumulators."""
        flag = np.asarray(accumulate)
        if flag.ndim == 0:
            return bool(flag)
        by_lane = self.units.of(self.lanes.spread(flag))
        first = bool(by_lane.flat[0])
        return first if (by_lane == first).all() else by_lane.reshape(len(by_lane), self.units.per, 8, 4, 1, 1, 1)

    def _add(self, part: Array, left: Array, right: Array, keep: Any, step: int) -> None:
        atom = self.atom
        if atom.type_d == F16 or atom.saturate:  # rounds, or clamps, after each instruction along K
            for k in range(0, left.shape[-1], step):
                product = self._multiply(left[..., k : k + step], right[..., k : k + step])
                self._write(part, product, keep if k == 0 else True)
            return
        self._write(part, self._multiply(left, right), keep)

    def _multiply(self, left: Array, right: Array) -> Array:
        """The products of ``[units, rows, k]`` and ``[units, n, k]``, seen as accumulators."""
        atom, units = self.atom, self.units
        if atom.type_d == I32:
            exact = numbers.exact_float(left.shape[-1], atom.type_a, atom.type_b)
            product = np.matmul(left.astype(exact), right.astype(exact).transpose(0, 2, 1))
            product = product.astype(np.int64 if atom.saturate else np.int32)
        else:
            shape = (*left.shape[:2], right.shape[1])
            out = scratch("wgmma", shape, left.dtype)
            product = np.matmul(left, right.transpose(0, 2, 1), out=out)
        # Rows are (warp, v1, lane / 4), columns (v2, lane % 4, v0).
        split = product.reshape(len(product), units.per, 2, 8, right.shape[1] // 8, 4, 2)
        return split.transpose(0, 1, 3, 5, 4, 2, 6)

    def _write(self, part: Array, product: Array, keep: Any) -> None:
        if keep is False:
            old: Any = 0
        elif keep is True:
            old = part
        else:
            old = np.where(keep, part, part.dtype.type(0))
        if self.atom.saturate:
            part[...] = np.clip(old + product, -(1 << 31), (1 << 31) - 1)
        elif self.atom.type_d == F16:
            with np.errstate(over="ignore"):
                part[...] = (np.asarray(old, np.float32) + product).astype(np.float16)
        elif keep is False:
            part[...] = product
        else:
            np.add(old, product, out=part, casting="unsafe")

    # -- operands ------------------------------------------------------------------------------------------------------

    def _a(self, call: _Call, m: int, k: int) -> Array:
        atom, units = self.atom, self.units
        if atom.reads_shared("A"):
            whole = self._shared("A", call.a, call.attrs, m, atom.type_a)
            if units.per == 4:
                return whole
            by_warp = whole.reshape(*whole.shape[:2], 4, 16, -1)
            return by_warp[np.arange(len(whole)), :, units.warp]  # type: ignore[no-any-return]
        return self._registers(call, k)

    def _registers(self, call: _Call, k: int) -> Array:
        atom, attrs, units = self.atom, call.attrs, self.units
        layout = attrs["a_layout"]
        thread, value = owners(atom.layout_a, 64, k)
        values = offsets(layout[0])[value[:16]]
        held = units.of(call.a)
        by_warp = held.reshape(-1, 32, held.shape[-1])
        rest_m, rest_k = offsets(layout[1]), offsets(layout[2])
        place = attrs["a_offset"] + values[None, :, None, :] + rest_m[:, None, None, None] + rest_k[:, None]
        patterns = numbers.raw(by_warp, atom.type_a)
        lane = np.broadcast_to(thread[:16][None, :, None, :], place.shape)
        found = numbers.widen(patterns[:, lane, place], atom.type_a)  # [warps, RestM, 16, RestK, k]
        split = found.reshape(len(held), units.per, rest_m.size, 16, rest_k.size * k)
        return split.transpose(0, 2, 1, 3, 4).reshape(len(held), rest_m.size, 16 * units.per, -1)

    def _shared(self, role: str, low: Any, attrs: dict[str, Any], rows: int, type_: ScalarType) -> Array:
        """``[units, RestMN, rows, RestK * k]`` of an operand in shared memory, as numbers that multiply exactly."""
        layout, high = attrs[f"{role.lower()}_layout"], attrs[f"{role.lower()}_high"]
        words = self._uniform(role, low)
        rest_mn, rest_k = offsets(layout[1]), offsets(layout[2])
        steps = rest_mn[:, None] + rest_k[None, :]
        start = ((words[:, None, None] + steps) & FIELD) * UNIT
        bits = swizzle_of_type(high >> 30)
        major = self.atom.major_of(role)
        chunks = chunk_table(
            major, bits, int(words[0] >> 16) & FIELD, high & FIELD, rows, self.atom.shape_mnk[2], type_
        )
        address = start[..., None] + chunks
        if bits:
            address ^= (address >> 7 & ((1 << bits) - 1)) << 4
        found = self.lanes.read_shared(address.reshape(len(words), -1), self.units.per, self.units.chosen)
        per = 8 * UNIT // type_.width
        values = numbers.widen(numbers.raw(found.view(f"u{type_.bytes}"), type_), type_)
        shape = (len(words), rest_mn.size, rest_k.size)
        if major == "K":
            split = values.reshape(*shape, rows, -1).transpose(0, 1, 3, 2, 4)
        else:
            split = values.reshape(*shape, rows // per, -1, per).transpose(0, 1, 3, 5, 2, 4)
        return split.reshape(len(words), rest_mn.size, rows, -1)

    def _uniform(self, role: str, low: Any) -> Array:
        """The low word of the descriptor of each unit: all its lanes must agree."""
        by_lane = self.units.of(self.lanes.spread(low)).astype(np.int64)
        first = by_lane[:, 0]
        if (by_lane != first[:, None]).any() or ((first ^ first[0]) >> 16).any():
            raise self.lanes.fault(
                f"{self.atom.mnemonic()}: the descriptor of {role} differs among the threads of a warpgroup",
                None, "slice the operand by numbers that are equal in all threads of a warpgroup",
            )  # fmt: skip
        return first


@lru_cache(maxsize=512)
def chunk_table(major: str, bits: int, leading: int, stride: int, rows: int, k: int, type_: ScalarType) -> Array:
    """Byte offsets, before the swizzle, of the pieces of 16 bytes of one instruction's operand.

    K-major ``(row, piece)``, MN-major ``(piece, k)``, the second index running faster; canonical layouts as in
    :mod:`tilewright.atoms.matrix_descriptor`.
    """
    width = 1 << bits
    if major == "K":
        row, piece = np.arange(rows)[:, None], np.arange(k * type_.width // (8 * UNIT))[None, :]
        units = row % 8 * width + row // 8 * stride + piece * (1 if bits else leading)
    else:
        piece, row = np.arange(rows * type_.width // (8 * UNIT))[:, None], np.arange(k)[None, :]
        along_mn, along_k = (leading, stride) if bits else (stride, leading)
        units = piece % width + piece // width * along_mn + row % 8 * width + row // 8 * along_k
    return (units * UNIT).reshape(-1)
