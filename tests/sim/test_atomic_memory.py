"""Atomics hand NumPy the bytes of the array alone, not those before it up to the buffer's base."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.lib.array_utils import byte_bounds

from tilewright.ir.types import I32
from tilewright.sim import atomics
from tilewright.sim.access import access_of
from tilewright.sim.memory import AddressSpace


@pytest.mark.parametrize("start", [0, 1, 5, 31])
def test_ufunc_at_is_given_no_bytes_of_others(start: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """It copies all that it is given, and writes it back, where its operands are in there: bytes that others have
    written since (the allocator's lists) would be as they were."""
    whole = np.zeros(96, np.int32)
    at = -whole.ctypes.data % 128 // 4 + start
    array, given = whole[at : at + 4], []

    def add(memory: Any, index: Any, value: Any) -> None:
        given.append(byte_bounds(memory))
        np.add.at(memory, index, value)

    monkeypatch.setitem(atomics.AT, "add", SimpleNamespace(at=add))
    low, high = byte_bounds(array)
    buffer = AddressSpace().buffer(low, high, array)
    group = SimpleNamespace(checks=True, events=None, changed=False)
    off = buffer.low + np.array([0, 12, 12])
    access = access_of(I32, 1, 4, True)
    for want_old in (False, True):
        update = atomics.AtomicUpdate("add", access, np.array([1, 2, 3], np.int32), None, want_old)
        atomics.atomic(buffer, group, off, update, None)
    assert given == [(low, high)]
    assert array.tolist() == [2, 0, 0, 10] and whole.sum() == 12
