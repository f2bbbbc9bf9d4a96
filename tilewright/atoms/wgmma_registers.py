"""The accumulators of ``wgmma`` between registers and the matrix that the simulator keeps while they are in flight."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from tilewright.atoms.tables import offsets
from tilewright.atoms.warpgroups import Accumulators, Array, Warpgroup
from tilewright.ir.target import WARPGROUP_WARPS
from tilewright.ir.types import ScalarType
from tilewright.layout import Layout


class AccumulatorRegisters(NamedTuple):
    """Which registers of a fragment are the accumulators of a call: its ``d_layout (V, M, N)`` and ``d_offset``, for an
    instruction with ``n`` columns."""

    n: int
    type_d: ScalarType
    layout: Layout
    offset: int

    @staticmethod
    @lru_cache(maxsize=1024)
    def of(n: int, type_d: ScalarType, layout: Layout, offset: int) -> AccumulatorRegisters:
        """One object for equal ones: warps compare theirs at every instruction, and the layouts of each call are trees
        of their own."""
        return AccumulatorRegisters(n, type_d, layout, offset)


def into_flight(accumulators: Accumulators, place: int, keep: bool) -> None:
    """Take the accumulators of warp ``place``, whose registers hold poison from now on; ``keep``: they are added to."""
    which, held = accumulators.key, accumulators.held[place]
    assert held is not None
    if keep:
        if accumulators.values is None:
            rest_m, rest_n = _where(which).shape
            accumulators.values = np.empty((64 * rest_m, which.n * rest_n), which.type_d.dtype)
        _move(which, accumulators.values, place, 1, held.values, into_registers=False)
    poison = np.nan if which.type_d.is_float else np.frombuffer(b"\xcd" * 4, np.int32)[0]
    for at, count in _stretches(which):
        held.values[:, at : at + count] = poison


def deliver(waited: list[tuple[Warpgroup, int, int]]) -> None:
    """Write to the registers of each warp (a warpgroup and the place in it) the accumulators of the operations that it
    has waited for, which are its first ``count`` ones."""
    finished: dict[int, tuple[Accumulators, Warpgroup, list[int]]] = {}
    for group, place, count in waited:
        for accumulators in group.finished(place, count):
            finished.setdefault(id(accumulators), (accumulators, group, []))[2].append(place)
    for accumulators, group, places in finished.values():
        which, values, held = accumulators.key, accumulators.values, accumulators.held
        arrived = [value for place in sorted(places) if (value := held[place]) is not None]
        array, lane = arrived[0].array, arrived[0].lane
        assert values is not None
        if len(arrived) == WARPGROUP_WARPS and all(
            h.array is array and h.lane == lane + 32 * k for k, h in enumerate(arrived)
        ):
            _move(which, values, 0, WARPGROUP_WARPS, array[lane : lane + 32 * WARPGROUP_WARPS], into_registers=True)
        else:
            for place, one in zip(sorted(places), arrived, strict=True):
                _move(which, values, place, 1, one.values, into_registers=True)
        for place, one in zip(sorted(places), arrived, strict=True):
            one.release()
            held[place] = None
        if not any(held):
            group.accumulators.remove(accumulators)


@lru_cache(maxsize=256)
def _where(which: AccumulatorRegisters) -> Array:
    """``[RestM, RestN]`` the register at which the accumulators of a repetition begin; they are neighbours."""
    registers: Array = which.offset + offsets(which.layout[1])[:, None] + offsets(which.layout[2])[None, :]
    return registers


@lru_cache(maxsize=256)
def _stretches(which: AccumulatorRegisters) -> list[tuple[int, int]]:
    """The registers as (first, count)."""
    each = which.n // 2
    stretches: list[tuple[int, int]] = []
    for at in np.sort(_where(which).reshape(-1)).tolist():
        if stretches and sum(stretches[-1]) == at:
            stretches[-1] = (stretches[-1][0], stretches[-1][1] + each)
        else:
            stretches.append((at, each))
    return stretches


def _move(
    which: AccumulatorRegisters, values: Array, place: int, warps: int, registers: Array, into_registers: bool
) -> None:
    """Between ``values``, the rows of all four warps, and the ``registers [32 * warps, n]`` of warps ``place`` on."""
    n, where = which.n, _where(which)
    # Rows are (RestM, warp, v1, lane / 4), columns (RestN, v2, lane % 4, v0); registers of a lane (v2, v1, v0).
    split: Any = values.reshape(where.shape[0], WARPGROUP_WARPS, 2, 8, where.shape[1], n // 8, 4, 2)[
        :, place : place + warps
    ]
    for i in range(where.shape[0]):
        for j in range(where.shape[1]):
            at = int(where[i, j])
            part = registers[:, at : at + n // 2].reshape(warps, 8, 4, n // 8, 2, 2)
            matrix = split[i, :, :, :, j].transpose(0, 2, 4, 3, 1, 5)
            if into_registers:
                part[...] = matrix
            else:
                matrix[...] = part
